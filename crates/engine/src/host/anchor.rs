//! The few facts that protect a running node. They survive a lost status and a move to another cluster.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Claim, Finding, Phase, PowerRequest, Undo, lending::Errand};
use crate::{
    failure::{Failure, Kind},
    server::BootTarget,
};

/// What must never be forgotten about a host. The anchor is stored before the status, and the status before the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Anchor {
    /// Format of this document. A program that finds a newer format leaves the host alone.
    #[serde(rename = "v")]
    pub version: u32,
    /// Grows with every change, so that an old copy that somebody restores is recognised.
    pub seq: u64,
    /// The claim that we act for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// The deployment that we carry out or have carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// How far it has come.
    #[serde(skip_serializing_if = "Milestone::is_none")]
    pub milestone: Milestone,
    /// The host was adopted: it was in use when it was first seen.
    #[serde(skip_serializing_if = "is_false")]
    pub adopted: bool,
    /// The system on the server is managed by somebody else: only its power is managed here.
    #[serde(skip_serializing_if = "is_false")]
    pub external: bool,
    /// The restart request for which the server was switched off and is not on again yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarting: Option<String>,
    /// When the server became free: when it was registered, or when its last release ended. It is part of the next deployment's id,
    /// so that no two deployments have the same one, even if their claims and orders have the same words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_since: Option<Timestamp>,
    /// The operator switched it on, because of its power policy.
    #[serde(skip_serializing_if = "is_false")]
    pub powered_on: bool,
    /// The operator switched it on for a maintenance: what runs is not what its claim ordered, and a free server is not to run.
    #[serde(skip_serializing_if = "is_false")]
    pub lent: bool,
    /// The last probe of the server, also when it is over: reports of an earlier one do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<String>,
    /// The operator switched it on for that probe: a free server is not to run.
    #[serde(skip_serializing_if = "is_false")]
    pub probing: bool,
    /// The request for power that was on the object when it was claimed or released. As long as it is the same, it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outdated: Option<OutdatedRequest>,
    /// What a release must undo; format 1 did not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<Vec<Undo>>,
    /// SMBIOS UUID of the server that was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// Fingerprint of the certificate that was pinned on first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// Mark of the image that we put into a drive that other servers share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Credentials that the BMC refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<AuthHold>,
}

impl Anchor {
    /// The format that this program writes.
    pub const VERSION: u32 = 2;

    /// Reads what [`Anchor::to_json`] wrote.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let unreadable = |error: &serde_json::Error| {
            Failure::new(
                Kind::AnchorUnreadable,
                format!(
                    "The anchor of this host cannot be read ({error}), so nothing is done to the server. Restore the annotation, or remove it to have it rebuilt from the status."
                ),
            )
        };
        let Version { v } = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        if v > Self::VERSION {
            return Err(Failure::new(
                Kind::AnchorUnreadable,
                format!(
                    "The anchor of this host has format {v}, this program knows {}: a newer version manages it, so nothing is done to the server.",
                    Self::VERSION
                ),
            ));
        }
        if let Some((content, sum)) = split_sum(text)
            && checksum(&content) != sum
        {
            return Err(Finding::AnchorChecksum.into());
        }
        serde_json::from_str(text).map_err(|error| unreadable(&error))
    }

    /// The text to store, with a checksum at its end: edits by hand are noticed, even if the status is lost.
    pub fn to_json(&self) -> String {
        // Serializing strings, numbers and times cannot fail.
        let content = serde_json::to_string(self).unwrap_or_default();
        let sum = checksum(&content);
        format!("{}{SUM}{sum}\"}}", content.strip_suffix('}').unwrap_or_default())
    }

    /// What is wrong if this anchor was stored after `known`. Within a deployment, the operator never takes a milestone back once
    /// the ordered system may run.
    pub(super) fn contradicts(&self, known: &Self) -> Option<Failure> {
        let is_same = self.claim == known.claim && self.deployment == known.deployment && known.claim.is_some();
        let may_run = known.milestone >= Milestone::Written && !known.adopted;
        (is_same && may_run && self.milestone < known.milestone && self.seq >= known.seq).then(|| {
            let (shown, reached) = (self.milestone.as_str().to_owned(), known.milestone.as_str().to_owned());
            Finding::AnchorWentBack { shown, reached }.into()
        })
    }

    /// What a release must undo. All deployments of format 1 booted an image from the CD drive, and an adopted host may have,
    /// too.
    pub fn undo(&self) -> Vec<Undo> {
        let is_ours = match self.milestone {
            Milestone::None => false,
            Milestone::Releasing => true,
            Milestone::Armed | Milestone::Written | Milestone::Provisioned => !self.adopted,
        };
        self.undo.clone().unwrap_or_else(|| if is_ours { Self::of_format_1() } else { Vec::new() })
    }

    /// The server is about to be prepared for its order. What a release must undo is remembered before it is done, in addition to
    /// what was done for an earlier order of this claim. What was done to an adopted server is unknown.
    pub(super) fn arm(&mut self, undo: &[Undo]) {
        self.take_over(undo);
        self.milestone = Milestone::Armed;
    }

    /// What is done to the server from now on is done by us, and must be undone together with what was done before.
    pub(super) fn take_over(&mut self, undo: &[Undo]) {
        let mut all = if std::mem::take(&mut self.adopted) { Self::of_format_1() } else { self.undo() };
        for one in undo {
            if !all.contains(one) {
                all.push(one.clone());
            }
        }
        self.undo = Some(all);
    }

    /// The server is about to be switched on for an errand. What is done for that is undone when the errand ends.
    pub(super) fn lend(&mut self, errand: Errand, undo: &[Undo]) {
        let mut all = self.undo();
        all.extend(undo.iter().filter(|one| !all.contains(one)).cloned().collect::<Vec<_>>());
        self.undo = (!all.is_empty()).then_some(all).or(self.undo.take());
        match errand {
            Errand::Maintenance => self.lent = true,
            Errand::Probe => self.probing = true,
        }
    }

    /// The id under which the boot service keeps what it is told now: of the probe that runs, or of the deployment.
    pub fn session(&self) -> Option<&str> {
        if self.probing { self.probe.as_deref() } else { self.deployment.as_deref() }
    }

    /// Whether something is set for the next start, or runs, that nobody has ordered.
    pub(super) fn is_on_errand(&self) -> bool {
        self.lent || self.probing
    }

    /// Whether what runs was started for this errand.
    pub(super) fn is_lent(&self, errand: Errand) -> bool {
        match errand {
            Errand::Maintenance => self.lent,
            Errand::Probe => self.probing,
        }
    }

    /// Whatever the server was lent for is over, and what was done for it is undone.
    pub(super) fn take_back(&mut self) {
        (self.lent, self.probing, self.powered_on) = (false, false, false);
        if !self.is_in_use() {
            self.undo = None;
        }
    }

    fn of_format_1() -> Vec<Undo> {
        vec![Undo::Media, Undo::Boot(BootTarget::Cd)]
    }

    /// The anchor that a free host gets when a claim is accepted and its first act is decided. The writer of a claim stores it in
    /// the same write, so that it need not be stored again. Whether the claim was accepted is in the status: see
    /// [`Anchor::settled`].
    pub fn announcing(&self, claim: Claim, deployment: String, undo: Vec<Undo>, request: Option<PowerRequest>) -> Self {
        Self {
            undo: Some(undo),
            deployment: Some(deployment),
            milestone: Milestone::Armed,
            ..self.announcing_claim(claim, request)
        }
    }

    /// The same where nothing is done for the claim before somebody else is ready.
    pub fn announcing_claim(&self, claim: Claim, request: Option<PowerRequest>) -> Self {
        let mut announced =
            Self { version: Self::VERSION, seq: self.seq.saturating_add(1), claim: Some(claim), ..self.clone() };
        announced.forget_other_requests(request.as_ref());
        announced.outdate(request, Since::Claim);
        announced
    }

    /// This anchor, without a claim that nothing was done for. The status is stored before the first act: while its copy
    /// (`known`) is that of a free host, the claim was only announced and not accepted yet.
    pub fn settled(self, known: &Self) -> Self {
        let is_next = self.seq == known.seq.saturating_add(1);
        if !self.may_be_announced() || known.is_in_use() || !is_next {
            return self;
        }
        let settled = Self {
            seq: known.seq,
            claim: None,
            deployment: None,
            milestone: Milestone::None,
            outdated: known.outdated.clone(),
            image: known.image.clone(),
            undo: known.undo.clone(),
            version: known.version,
            ..self
        };
        if settled == *known { settled } else { Self { seq: self.seq, ..settled } }
    }

    /// Whether only the status knows if this claim was accepted.
    pub fn may_be_announced(&self) -> bool {
        self.claim.is_some() && self.milestone <= Milestone::Armed && !self.adopted
    }

    /// Forgets an outdated request for power if there is a new one, or none.
    pub(super) fn forget_other_requests(&mut self, request: Option<&PowerRequest>) {
        self.outdated.take_if(|outdated| Some(&outdated.request) != request);
    }

    /// Ignore this request for power from now on.
    pub(super) fn outdate(&mut self, request: Option<PowerRequest>, since: Since) {
        // What a release outdated stays outdated, even if the next claim ends before anything was done for it.
        if since == Since::Claim && self.outdated.is_some() {
            return;
        }
        self.outdated = request.map(|request| OutdatedRequest { request, since });
    }

    /// The id of the claim that we act for.
    pub(super) fn claim_id(&self) -> &str {
        self.claim.as_ref().map_or("", |claim| claim.id.as_str())
    }

    /// Whether the server is in use, or is being cleaned up.
    pub fn is_in_use(&self) -> bool {
        self.claim.is_some() || self.milestone != Milestone::None
    }

    /// Forgets the claim and what was done for it, but not that the operator switched the server on because of its power policy.
    pub(super) fn release(&mut self, now: Timestamp) {
        self.free_since = Some(now);
        self.claim = None;
        self.deployment = None;
        self.milestone = Milestone::None;
        self.adopted = false;
        self.external = false;
        self.restarting = None;
        (self.lent, self.probing) = (false, false);
        // Nothing about the power was changed for the claim, so the policy of the free host stays in effect.
        self.outdated.take_if(|outdated| outdated.since == Since::Claim);
        self.image = None;
        self.undo = None;
    }

    /// The phase of a host with this anchor.
    pub(super) fn phase(&self, inspected: bool) -> Phase {
        match self.milestone {
            Milestone::None if self.claim.is_some() => Phase::Preparing,
            Milestone::None if inspected => Phase::Available,
            Milestone::None => Phase::Registering,
            Milestone::Armed => Phase::Preparing,
            Milestone::Written => Phase::Provisioning,
            Milestone::Provisioned => Phase::Provisioned,
            Milestone::Releasing => Phase::Deprovisioning,
        }
    }
}

impl Default for Anchor {
    fn default() -> Self {
        Self {
            version: Self::VERSION,
            seq: 0,
            claim: None,
            deployment: None,
            milestone: Milestone::None,
            adopted: false,
            external: false,
            restarting: None,
            free_since: None,
            powered_on: false,
            lent: false,
            probe: None,
            probing: false,
            outdated: None,
            undo: None,
            uuid: None,
            pin: None,
            image: None,
            hold: None,
        }
    }
}

/// How far a deployment has come. What may still be done to the server depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Milestone {
    /// Nothing was begun.
    #[default]
    None,
    /// The server is being prepared; nothing of the new system has run. It may be switched off.
    Armed,
    /// The new system may run from now on.
    Written,
    /// The new system runs.
    Provisioned,
    /// The claim has ended; the server is being cleaned up.
    Releasing,
}

/// What the checksum follows.
const SUM: &str = ",\"sum\":\"";

/// The text without its checksum, and the checksum. Older versions wrote none.
fn split_sum(text: &str) -> Option<(String, &str)> {
    let (content, sum) = text.strip_suffix("\"}")?.rsplit_once(SUM)?;
    Some((format!("{content}}}"), sum))
}

/// FNV-1a: it finds mistakes and distinguishes texts; it does not keep out attackers.
pub(super) fn checksum(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

impl Milestone {
    /// Its name in the anchor.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Armed => "armed",
            Self::Written => "written",
            Self::Provisioned => "provisioned",
            Self::Releasing => "releasing",
        }
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if wants a reference")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A request for power that is ignored from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutdatedRequest {
    /// The request.
    #[serde(flatten)]
    pub request: PowerRequest,
    /// What came after it.
    pub since: Since,
}

/// What outdates a request for power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Since {
    /// The host was claimed: the power policy of a free host is not that of its user.
    Claim,
    /// The host was released: its server stays off until somebody requests power.
    Release,
}

/// Credentials that the BMC refused. They are not tried again before `until`, so that no account gets locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthHold {
    /// Until when.
    pub until: Timestamp,
    /// How often they were refused.
    pub count: u32,
    /// Fingerprint of the inputs that were refused. Others may be tried at once.
    pub inputs: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
