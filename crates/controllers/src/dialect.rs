//! What a dialect must say of its host resource. It translates and decides nothing.

use bmc::{Address, Family, Fingerprint, SystemChoice};
use engine::failure::Failure;
use engine::host::{Anchor, Goal, Phase, Proof, Record, Step, Words};
use engine::server::Seen;
use jiff::Timestamp;
use kube::ResourceExt;

use crate::companions::Companion;
use crate::depot::{Depot, Probed, Session, Shipment};
pub use crate::herald::News;
pub use crate::marks::Mark;
use crate::metrics::{Count, OwnGauge, OwnMetric};
use crate::object::{Object, ObjectId};
use crate::relatives::{Related, Relative};
use crate::roster::{Free, Offer};
use crate::writer::Ownership;

/// Annotation with the anchor: the same on the hosts of every dialect, so that none can lose it in translation.
pub const ANCHOR_ANNOTATION: &str = "beskar7.io/anchor";

/// A kind of host resource, and how it is to be understood.
pub trait HostDialect: Send + Sync + 'static {
    /// The resource.
    type Host: Object;

    /// The dialect's name, for metrics and logs.
    const NAME: &'static str;
    /// All words that [`HostDialect::state`] answers.
    const STATES: &'static [&'static str];
    /// Metrics that its users know, beside those of all hosts ([`Writes::counts`]).
    const METRICS: &'static [OwnMetric] = &[];
    /// Metrics that its users know, which count its hosts as they are.
    const GAUGES: &'static [OwnGauge<Self::Host>] = &[];
    /// Keeps the object until the server is tidy.
    const FINALIZER: &'static str;
    /// What is ours in its status.
    const OURS: Ownership;

    /// The field of the object in which the record is stored, as text.
    const RECORD: &'static [&'static str];

    /// The field that names the Secret with user name and password.
    const CREDENTIALS_FIELD: &'static str;
    /// The field that names the Secret with certificate authorities.
    const CA_BUNDLE_FIELD: &'static str;
    /// The field that names the Secret with bootstrap data.
    const BOOTSTRAP_FIELD: &'static str;

    /// The Lease of the operator that this dialect replaces. While it is held, in whatever namespace, nothing is done to any object of the
    /// dialect.
    const RIVAL_LEASE: Option<&'static str> = None;

    /// How it marks the objects that its hosts need ([`HostDialect::marked`]).
    const MARK: Option<Mark> = None;
    /// Finalizers of another operator on the related objects that belong to a host: taken off when the host goes.
    const COMPANION_FINALIZERS: &'static [&'static str] = &[];

    /// Kinds of objects that its hosts depend on, beside Secrets.
    fn relatives() -> Vec<Relative> {
        Vec::new()
    }

    /// The related objects that this host names, by name. A change of one wakes it. Its credentials need not be among them.
    fn depends_on(_: &View<'_, Self::Host>) -> Vec<ObjectId> {
        Vec::new()
    }

    /// The objects that bear the dialect's mark on behalf of this host, if they exist. They are Secrets or of a kind that the dialect has in
    /// their place.
    fn marked(_: &View<'_, Self::Host>) -> Vec<ObjectId> {
        Vec::new()
    }

    /// How much its owner wants it to be looked after.
    fn attention(view: &View<'_, Self::Host>) -> Attention;

    /// What is wanted of the host.
    fn goal(view: &View<'_, Self::Host>) -> Goal;

    /// What another operator has left in its status that tells how it stands with the server. Asked only of hosts that we know nothing of,
    /// and of adopted ones.
    fn proof(_: &View<'_, Self::Host>) -> Option<Proof> {
        None
    }

    /// Selects the hosts that the boot service has something for, by their fields; `None` if there are none.
    fn served(_: &Settings) -> Option<&'static str> {
        None
    }

    /// The last probe of its server, if there was one.
    fn probed(_: &Self::Host) -> Option<Probed> {
        None
    }

    /// What the boot service is to hand to the server, if anything.
    fn shipment(_: &Self::Host, _: &Depot) -> Option<Shipment> {
        None
    }

    /// How its server is recognised on the network.
    fn network_identity(_: &Self::Host) -> NetworkIdentity {
        NetworkIdentity::default()
    }

    /// The word that stands for the provider id of its server in bootstrap data, and that id.
    fn provider_word(_: &Self::Host) -> Option<(&'static str, String)> {
        None
    }

    /// How to speak to its BMC, or what is wrong with what the object says about it.
    fn connection(view: &View<'_, Self::Host>, anchor: Option<&Anchor>) -> Result<Connection, Failure>;

    /// The state that its status shows, as the docs name it.
    fn state(host: &Self::Host) -> &'static str;

    /// What was remembered in its status.
    fn record(host: &Self::Host) -> Option<Record>;

    /// What tells the server from every other one ([`server_identity`]), once it was inspected.
    fn server_identity(host: &Self::Host) -> Option<String>;

    /// What it has to offer to those who claim hosts, and to whom it belongs.
    fn offer(host: &Self::Host) -> Offer;

    /// The anchor of a free host with the claim that this merge patch makes, if there is something to be done for it at once.
    fn announced(_: &ObjectId, _: &Free, _: &serde_json::Value) -> Option<Anchor> {
        None
    }

    /// The end of a claim that nothing was done for, as a merge patch.
    fn without_claim() -> serde_json::Value;

    /// What [`HostDialect::METRICS`] count whenever a host was decided on; with an error, it will be decided on again.
    fn decided(_: bool) -> Option<Count> {
        None
    }

    /// All that is to be written after a step.
    fn render(outcome: &Outcome<'_, Self::Host>) -> Writes;

    /// The status of a host that nothing is done to because it is paused, or `None` when it says so already. It is still looked at.
    fn paused_status(view: &View<'_, Self::Host>, why: &str, seen: Option<&Seen>) -> Option<serde_json::Value>;

    /// Whether the status says that the host is paused.
    fn shows_pause(host: &Self::Host) -> bool;

    /// The dialect's word for a phase, or for the reason of an event; the engine names phases by its own words. `None` if the dialect
    /// has no such event: then nothing is sent.
    fn event_reason(reason: &'static str) -> Option<&'static str> {
        Some(reason)
    }

    /// The state that a host is shown in during a phase, for logs and metrics.
    fn phase_name(phase: Phase) -> &'static str {
        Self::event_reason(phase.as_str()).unwrap_or(phase.as_str())
    }

    /// What it calls the things that sentences speak of.
    fn words() -> &'static dyn Words;

    /// Annotation by which a claim bears its id, on its own object and on its host.
    const CLAIM_ID: &'static str;
    /// Whether those who claim its hosts belong to Cluster API's Machines, and are left alone while their cluster is paused.
    const CLUSTER_API: bool;
}

/// How a server is recognised on the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkIdentity {
    /// MAC addresses of its network cards, in any notation.
    pub macs: Vec<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// The address that it gets on the network from which it boots, as it was stored.
    pub address: Option<std::net::Ipv4Addr>,
}

/// An object with everything that its dialect may look at.
pub struct View<'a, K> {
    /// The object as it is.
    pub object: &'a K,
    /// The objects of the kinds that the dialect has declared.
    pub related: &'a Related,
    /// The boot service; `None` if nothing can be served.
    pub depot: Option<&'a Depot>,
    /// What whoever started the operator has said of its dialects.
    pub settings: &'a Settings,
    /// The time.
    pub now: Timestamp,
}

#[cfg(test)]
impl<'a, K> View<'a, K> {
    /// An object without relatives, when nobody cares for the time.
    pub(crate) fn alone(object: &'a K) -> Self {
        static USUAL: std::sync::LazyLock<Settings> = std::sync::LazyLock::new(Settings::default);
        Self { object, related: crate::relatives::nobody(), depot: None, settings: &USUAL, now: Timestamp::MIN }
    }
}

/// What whoever starts the operator says of single dialects.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Of metal-operator's kinds.
    pub ironcore: crate::ironcore::Settings,
}

/// How much an object is to be looked after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attention {
    /// As its spec says.
    Full,
    /// It is paused: nothing is done to it, and its status says why.
    StatusOnly(String),
    /// It is left alone altogether: also its status is not ours for now.
    Nothing,
}

/// What was decided on a host, and on what.
pub struct Outcome<'a, H> {
    /// The object as it is.
    pub host: &'a H,
    /// The objects of the kinds that the dialect has declared.
    pub related: &'a Related,
    /// The boot service; `None` if nothing can be served.
    pub depot: Option<&'a Depot>,
    /// What whoever started the operator has said of its dialects.
    pub settings: &'a Settings,
    /// What is wanted.
    pub goal: &'a Goal,
    /// What was decided.
    pub step: &'a Step,
    /// The last good look, if it was in this life of the process.
    pub seen: Option<&'a Seen>,
    /// What the boot service tells of the current deployment.
    pub session: Option<&'a Session>,
    /// The version of the credentials that are used; `None` if there are none.
    pub credentials: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// All that a dialect may write for one object. The loop writes it in this order, each on the version that it was decided on, and counts it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Writes {
    /// A change of the object beside its status, as a merge patch, such as annotations that are taken off once they were heeded. It is
    /// written together with the anchor.
    pub object: Option<serde_json::Value>,
    /// Objects beside it.
    pub companions: Vec<Companion>,
    /// The new status; `None` when it says the same as the present one.
    pub status: Option<serde_json::Value>,
    /// Events beside those of the step. They are sent when all this has been written, every time that they are in here: say them
    /// together with the change of the status that they tell of.
    pub events: Vec<News>,
    /// What [`HostDialect::METRICS`] count then, as events are sent.
    pub counts: Vec<Count>,
}

/// How to speak to a BMC, as an object describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Where.
    pub address: Address,
    /// Which of the systems there.
    pub system: SystemChoice,
    /// User name and password.
    pub credentials: Login,
    /// Whom to believe that it is the BMC.
    pub trust: TrustWish,
    /// Firmware family, where the owner knows better.
    pub family: Option<Family>,
}

/// Where user name and password come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// They are in a Secret, or in an object of a kind that the dialect has in its place.
    Kept(ObjectId),
    /// They are known beforehand, such as those that a BMC leaves its factory with.
    Given(GivenCredentials),
}

impl From<ObjectId> for Login {
    fn from(id: ObjectId) -> Self {
        Self::Kept(id)
    }
}

/// User name and password that are known beforehand.
#[derive(Clone, PartialEq, Eq, serde::Deserialize)]
pub struct GivenCredentials {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
}

/// Without the password: logs are read by others than those who may know it.
impl std::fmt::Debug for GivenCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenCredentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Whom to believe that it is the BMC, as an object describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustWish {
    /// Whoever the system's certificate authorities vouch for.
    SystemRoots,
    /// Whoever the certificate authorities in this Secret vouch for.
    CaBundle(ObjectId),
    /// The holder of this certificate.
    Pin(Fingerprint),
    /// Whoever comes first.
    FirstUse,
    /// Anybody.
    Anything,
}

impl Connection {
    /// Which server this is: address and system.
    pub fn target(&self) -> String {
        match &self.system {
            SystemChoice::Only => self.address.key(),
            SystemChoice::Named(system) => format!("{}#{}", self.address.key(), system.to_ascii_lowercase()),
        }
    }

    /// The Secrets and the like that it depends on.
    pub fn secrets(&self) -> impl Iterator<Item = &ObjectId> {
        let ca = match &self.trust {
            TrustWish::CaBundle(secret) => Some(secret),
            _ => None,
        };
        self.kept_credentials().into_iter().chain(ca)
    }

    /// The object with user name and password, if they are in one.
    pub fn kept_credentials(&self) -> Option<&ObjectId> {
        match &self.credentials {
            Login::Kept(id) => Some(id),
            Login::Given(_) => None,
        }
    }
}

/// What tells a server from every other one, whatever address its BMC is reached by.
pub fn server_identity(uuid: Option<&str>, serial: Option<&str>) -> Option<String> {
    // Boards whose maker forgot to set one all have the same.
    let blank =
        |text: &str| text.chars().filter(char::is_ascii_alphanumeric).all(|c| c == '0' || c.eq_ignore_ascii_case(&'f'));
    let (uuid, serial) = (uuid?.to_ascii_lowercase(), serial?);
    (!blank(&uuid) && !blank(serial)).then(|| format!("uuid {uuid}, serial {serial}"))
}

/// The anchor of an object, or why it cannot be read.
pub(crate) fn anchor(host: &impl ResourceExt) -> Result<Option<Anchor>, Failure> {
    host.annotations().get(ANCHOR_ANNOTATION).map(|text| Anchor::parse(text)).transpose()
}

/// The anchor that the engine believes: that of the annotation, or that of the status where the annotation is behind, lost or damaged.
pub(crate) fn known_anchor<D: HostDialect>(host: &D::Host) -> Option<Anchor> {
    let annotated = anchor(host).ok().flatten();
    let recorded = D::record(host).map(|record| record.anchor);
    annotated.into_iter().chain(recorded).max_by_key(|anchor| anchor.seq)
}

/// The same without a claim that was only announced.
pub(crate) fn settled_anchor<D: HostDialect>(host: &D::Host) -> Result<Option<Anchor>, Failure> {
    let anchor = anchor(host)?;
    Ok(anchor.map(|anchor| match anchor.may_be_announced().then(|| D::record(host)).flatten() {
        Some(record) => anchor.settled(&record.anchor),
        None => anchor,
    }))
}

/// Changes an object as a merge patch does.
pub(crate) fn merge(object: &mut serde_json::Value, patch: &serde_json::Value) {
    use serde_json::Value;
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = serde_json::json!({});
    }
    let Value::Object(into) = object else { return };
    for (key, value) in patch {
        if value.is_null() {
            into.remove(key);
        } else {
            merge(into.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
pub(crate) mod foreign;
