//! What we have done and must remember. It lives in the status; when that is lost, it is rebuilt from the anchor.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Anchor, Milestone, Undo, Waiting, pace};
use crate::{
    failure::{Failure, Kind},
    hardware::Part,
    server::PowerState,
};

/// The engine's memory of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub struct Record {
    /// The phase of the host.
    pub phase: Phase,
    /// Since when.
    pub since: Timestamp,
    /// The phase before it was parked or detached, to return to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Phase>,
    /// A copy of the anchor, in case somebody removes the annotation.
    #[serde(default)]
    pub anchor: Anchor,
    /// Which server was registered: address and system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether the inventory of that server was taken.
    #[serde(default)]
    pub inspected: bool,
    /// Whether the probe of this registration has reported.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probed: bool,
    /// Whether it was registered without reading its inventory.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bare: bool,
    /// What of it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// Number of the last act.
    #[serde(default)]
    pub acted: u64,
    /// The last act.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
    /// When we last gave it power, unless we have cut it since. Its BMC may report it off for a while after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When we last started it so that it follows its recipe, unless we have started it otherwise since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_begun: Option<Timestamp>,
    /// Whether boot success is assumed, because the BMC reports nothing about it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub assumed_booted: bool,
    /// What we did about a boot override that would boot the image again at every later start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disarming: Option<Disarming>,
    /// The last act on media, until its effect was seen. What the BMC shows may be about to change.
    #[serde(default, rename = "moving", skip_serializing_if = "Option::is_none")]
    pub media: Option<Moving>,
    /// The last power state that was seen.
    #[serde(default)]
    pub power: PowerState,
    /// What we wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// A second fault, hidden while `fault` is about the object. It is shown again when the object is corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beneath: Option<Fault>,
    /// The last restart request that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebooted: Option<String>,
    /// The last inventory request that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection: Option<String>,
}

impl Record {
    /// The record of a host of which only the anchor is known.
    pub(super) fn from_anchor(anchor: Anchor, now: Timestamp) -> Self {
        Self {
            phase: anchor.phase(false),
            since: now,
            left: None,
            // It may have been given power, or an image, a moment ago.
            started: (anchor.milestone >= Milestone::Written).then_some(now),
            boot_begun: None,
            media: media_may_move(&anchor).then_some(Moving::unknown(now)),
            assumed_booted: false,
            disarming: None,
            anchor,
            target: None,
            inspected: false,
            probed: false,
            bare: false,
            unread: None,
            acted: 0,
            doing: None,
            power: PowerState::Unknown,
            wait: None,
            fault: None,
            beneath: None,
            rebooted: None,
            inspection: None,
        }
    }

    /// Sets the phase from the anchor. An edited status must not make a running server look free.
    pub(super) fn align(&mut self, now: Timestamp) {
        let home = self.anchor.phase(self.inspected);
        if self.phase.is_aside() {
            self.left = Some(home);
        } else if self.phase != home && !(self.phase.is_unclaimed() && home.is_unclaimed()) {
            self.phase = home;
            self.since = now;
            self.doing = None;
        }
    }

    /// Sets times in the future to now: a former leader's clock may have been fast, and that must not prolong a wait.
    pub(super) fn bound_times(&mut self, now: Timestamp) {
        let latest_try = pace::later(now, pace::LONGEST_BACK_OFF);
        if let Some(doing) = &mut self.doing {
            doing.since = doing.since.min(now);
            doing.first = doing.first.min(doing.since);
        }
        if let Some(wait) = &mut self.wait {
            wait.since = wait.since.min(now);
        }
        for fault in self.fault.iter_mut().chain(&mut self.beneath) {
            fault.last = fault.last.min(now);
            fault.next_try = fault.next_try.min(latest_try);
        }
        self.started = self.started.map(|started| started.min(now));
        self.boot_begun = self.boot_begun.map(|begun| begun.min(now));
        if let Some(moving) = &mut self.media {
            moving.since = moving.since.min(now);
        }
        if let Some(disarming) = &mut self.disarming {
            disarming.last = disarming.last.min(now);
        }
        self.since = self.since.min(now);
    }
}

/// Whether an image may be on its way into the drive or out of it.
fn media_may_move(anchor: &Anchor) -> bool {
    matches!(anchor.milestone, Milestone::Armed | Milestone::Releasing) && anchor.undo().contains(&Undo::Media)
}

/// The phase of a host: where it is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// We make contact.
    Registering,
    /// We take its inventory.
    Inspecting,
    /// Ready to be claimed.
    Available,
    /// Claimed; being made ready for its order, or waiting for one.
    Preparing,
    /// The ordered system is starting.
    Provisioning,
    /// The ordered system runs.
    Provisioned,
    /// Released; being cleaned up.
    Deprovisioning,
    /// Under maintenance.
    Parked,
    /// Lent to somebody for maintenance.
    Lent,
    /// In quarantine.
    Quarantined,
    /// Not ours for now.
    Detached,
    /// About to be forgotten.
    Deleting,
}

impl Phase {
    /// Every phase, in the order of a life.
    pub const ALL: [Self; 12] = [
        Self::Registering,
        Self::Inspecting,
        Self::Available,
        Self::Preparing,
        Self::Provisioning,
        Self::Provisioned,
        Self::Deprovisioning,
        Self::Parked,
        Self::Lent,
        Self::Quarantined,
        Self::Detached,
        Self::Deleting,
    ];

    /// Whether the host is set aside, for now or for good.
    pub fn is_aside(self) -> bool {
        matches!(self, Self::Parked | Self::Lent | Self::Quarantined | Self::Detached | Self::Deleting)
    }

    fn is_unclaimed(self) -> bool {
        matches!(self, Self::Registering | Self::Inspecting | Self::Available)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registering => "Registering",
            Self::Inspecting => "Inspecting",
            Self::Available => "Available",
            Self::Preparing => "Preparing",
            Self::Provisioning => "Provisioning",
            Self::Provisioned => "Provisioned",
            Self::Deprovisioning => "Deprovisioning",
            Self::Parked => "Parked",
            Self::Lent => "Lent",
            Self::Quarantined => "Quarantined",
            Self::Detached => "Detached",
            Self::Deleting => "Deleting",
        }
    }
}

/// Parts of the inventory that could not be read; they are read again later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unread {
    /// Which.
    pub parts: Vec<Part>,
    /// How often that was tried.
    pub tries: u32,
    /// When last.
    pub last: Timestamp,
}

/// An act that was decided. It may or may not have been performed: only a look can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doing {
    /// What.
    pub what: Deed,
    /// When it was decided.
    pub since: Timestamp,
    /// When the first of several tries at the same thing was decided.
    pub first: Timestamp,
}

/// Media that are inserted or ejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moving {
    /// When that was decided.
    pub since: Timestamp,
    /// The number of the act; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act: Option<u64>,
    /// Whether it leaves an image in the drive.
    #[serde(default)]
    pub inserts: bool,
}

impl Moving {
    fn unknown(since: Timestamp) -> Self {
        Self { since, act: None, inserts: false }
    }
}

/// What an act is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// Give it power.
    PowerOn,
    /// Ask its operating system to shut down.
    ShutDown,
    /// Cut its power.
    PowerOff,
    /// Restart it.
    Restart,
    /// Insert the image and arm the boot override.
    PrepareBoot,
    /// Eject media and clear the boot override.
    CleanUp,
    /// Take back a boot override that the BMC keeps.
    DisarmBoot,
}

/// Taking back a boot override that the BMC keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disarming {
    /// How often it was tried; zero if it is not known who set the override.
    pub tries: u32,
    /// When it was last tried or reported.
    pub last: Timestamp,
    /// Whether nothing more is done about it: it is cleared, the BMC keeps it, or it is not known who set it.
    pub over: bool,
}

/// What the host waits for. Every wait ends, or leads to a fault or a reminder at its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredWait")]
pub struct Wait {
    /// What.
    pub what: Waiting,
    /// Since when.
    pub since: Timestamp,
    /// Until when at most.
    pub deadline: Timestamp,
}

/// A wait as stored by this version or an earlier one. Earlier versions stored only the name of the wait.
#[derive(Deserialize)]
struct StoredWait {
    what: Option<Waiting>,
    reason: Option<String>,
    since: Timestamp,
    deadline: Timestamp,
}

impl From<StoredWait> for Wait {
    fn from(stored: StoredWait) -> Self {
        let named = || stored.reason.as_deref().and_then(Waiting::named);
        // An unknown name equals no other: the next step begins a new wait.
        let what = stored.what.or_else(named).unwrap_or(Waiting::NextTry(Kind::Internal));
        Self { what, since: stored.since, deadline: stored.deadline }
    }
}

/// What is wrong. A fault is not a phase: a host in fault keeps its phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What failed.
    pub failure: Failure,
    /// Where it arose.
    pub origin: Origin,
    /// How often in a row.
    pub count: u32,
    /// Since when.
    pub since: Timestamp,
    /// The last time.
    pub last: Timestamp,
    /// The next try.
    pub next_try: Timestamp,
    /// The inputs that failed. With other inputs it is tried at once.
    pub inputs: String,
}

/// Where a fault arose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// In looking: the next good look ends it.
    Look,
    /// In acting: reaching what the act was for ends it.
    Act,
    /// In what the object says: only a change there ends it.
    Object,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if wants a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
