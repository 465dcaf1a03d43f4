//! What the owner of a host wants. Derived at every step, from the host object alone.

use serde::{Deserialize, Serialize};

use super::Recipe;
use crate::failure::Failure;
use crate::server::BootMode;

/// What is wanted of one host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "wishes that have nothing to do with each other")]
pub struct Goal {
    /// Whether and how we manage it.
    pub road: Road,
    /// What is wanted while it is lent for maintenance.
    pub maintenance: Maintenance,
    /// The claim. When it is removed, the deployment ends.
    pub claim: Option<Claim>,
    /// The claim is not to be accepted yet. A claim that was accepted stays so.
    pub claim_waits: bool,
    /// Who wrote the claim.
    pub author: Author,
    /// Who uses the host: if the consumer is paused, so is the host.
    pub consumer: Option<Consumer>,
    /// The system on it is managed by somebody else: only its power is managed here.
    pub external: bool,
    /// Quarantine: once nobody uses it, it is watched, never changed, and nobody can claim it.
    pub quarantine: bool,
    /// What its user wants on it. Ignored without a claim.
    pub order: Option<Order>,
    /// Whether it should have power; `None` leaves the power alone.
    pub online: Option<bool>,
    /// Distinguishes a request for power from an earlier one with the same value.
    pub power_id: Option<String>,
    /// How long the power request counts.
    pub power_lasts: Lasting,
    /// Keep it off, whatever else is requested.
    pub held_off: Option<HeldOff>,
    /// Never switch it off: restart it instead.
    pub never_off: bool,
    /// Do without an inventory.
    pub without_inventory: bool,
    /// What becomes of a server that runs when it is registered.
    pub newcomer: Newcomer,
    /// What it boots to be looked into before it is free; `None` if its BMC tells enough.
    pub probe: Option<Probe>,
    /// Let the operating system shut down before the server is cleaned up; cut the power if it does not.
    pub gentle_release: bool,
    /// What must become of its disks between two claims.
    pub disks: Disks,
    /// Whether a machine may take it while its server runs although nobody asked for it.
    pub claimable_while_running: bool,
    /// Firmware to boot with.
    pub boot_mode: Option<BootMode>,
    /// A restart request. Its id distinguishes it from earlier ones.
    pub reboot: Option<String>,
    /// How a restart is done.
    pub restart: Restart,
    /// A request to read the inventory again. Its id distinguishes it from earlier ones.
    pub inspect: Option<String>,
    /// Its turn among the servers behind one BMC, if it has neighbours there.
    pub turn: Option<Turn>,
    /// Pin the certificate that the BMC shows first.
    pub pin_on_first_use: bool,
    /// The owner's request to end the claim of this id, although the recorded consumer still exists.
    pub release: Option<String>,
    /// The owner's request to provision an adopted host for this claim. Names the claim by its id or its consumer.
    pub provision: Option<String>,
}

/// Servers behind one BMC take turns at rest: it is asked no more often than one with a single server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its place among them, from 0 on.
    pub place: u32,
    /// How many there are.
    pub of: u32,
}

/// A request of the owner that counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// [`Goal::release`], for one claim only.
    Release,
    /// [`Goal::provision`], for one claim only.
    Provision,
    /// [`Goal::inspect`].
    Inspect,
    /// [`HeldOff::once`].
    OffOnce,
    /// [`Goal::reboot`].
    Restart,
    /// [`Disks::Wiped`].
    Wiped,
}

impl Goal {
    /// The power request, if there is one and a claim or a release can outdate it.
    pub fn power_request(&self) -> Option<PowerRequest> {
        if self.power_lasts == Lasting::Always {
            return None;
        }
        // It is stored in the anchor, which limits its size.
        let id = self.power_id.as_ref().map(|id| id.chars().take(64).collect());
        Some(PowerRequest { online: self.online?, id })
    }
}

/// A power request. It counts until a claim or a release outdates it. A new request needs another value or another id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerRequest {
    /// Whether the server is to have power.
    pub online: bool,
    /// Distinguishes it from an earlier request with the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// How long a power request counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lasting {
    /// Until the host is claimed or released.
    #[default]
    UntilClaim,
    /// Until the host is released: it counts for a claimed host, too. A new deployment makes it count again.
    UntilRelease,
    /// As long as it is there.
    Always,
}

/// A request to keep a server off. It counts while the host runs what was ordered, or is looked after by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldOff {
    /// How to take the power away.
    pub manner: Manner,
    /// The server stays off as long as this is requested.
    pub lasts: bool,
    /// The server is to be off for a moment: this request is carried out when that was seen. A server that may never be switched off is
    /// restarted instead.
    pub once: bool,
    /// It counts for a free host, too.
    pub also_free: bool,
}

/// Whether and how we manage a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Road {
    /// The usual way.
    #[default]
    Manage,
    /// Under maintenance: watched, never changed.
    Park,
    /// Under maintenance and switched off for it: watched, otherwise never changed. Until nothing is under way, it is managed.
    ParkOff,
    /// Lent to somebody for maintenance, as [`Goal::maintenance`] says. Until nothing is under way, it is managed.
    Lend,
    /// Detached: neither watched nor changed.
    Detach(Detachment),
    /// To be forgotten.
    Delete(Deletion),
}

/// What whoever has a server for maintenance wants of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maintenance {
    /// Whether it is to have power; `None` leaves the power alone.
    pub online: Option<bool>,
    /// What it boots when the operator switches it on; `None` leaves that to its firmware.
    pub boot: Option<Boot>,
}

/// A system that looks into a server and reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Tells this probe from earlier ones of the same server. It counts when the probe begins, and is stored then.
    pub id: String,
    /// What is booted, and who must be ready first.
    pub boot: Boot,
}

/// A system that a server boots for a while, and who must be ready first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// Who must be ready first.
    pub gate: Gate,
    /// How it gets onto the server.
    pub recipe: Recipe,
}

/// When to detach a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detachment {
    /// Now, whatever is under way.
    AtOnce,
    /// When nothing is under way. Until then it is managed.
    AtRest,
}

/// How to take the power away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Ask the operating system first; cut the power if it does not shut down.
    Soft,
    /// Cut it.
    Hard,
}

/// What must become of disks before a released server can be claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Disks {
    /// They stay as they are.
    #[default]
    Kept,
    /// Somebody must wipe them: until then the server is not free.
    MustBeWiped,
    /// Somebody says that they are wiped.
    Wiped,
}

/// What becomes of a server that runs when it is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Newcomer {
    /// It is registered as it is.
    #[default]
    Register,
    /// Somebody may use it: it is registered once it is off.
    AwaitOff,
    /// It is switched off, then registered.
    SwitchOff,
}

/// How to restart a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Restart {
    /// Reset it.
    #[default]
    Reset,
    /// Switch it off in this manner, then on.
    OffThenOn(Manner),
}

/// How to forget a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Clean up first: switch the server off and eject our media, if the operator started it.
    CleanUp,
    /// Remove the object at once, whatever state the server is in.
    Force,
    /// The host is or would be detached: remove the object at once if it may be detached now, else clean up first.
    Detached(Detachment),
    /// The object was moved to another cluster: do nothing to the server.
    Move,
}

/// A claim on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Distinguishes this claim from every other one, also of a consumer with the same name.
    pub id: String,
    /// Who claims. `None` if the object orders for itself: then the claim ends when the object says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Consumer>,
}

impl Claim {
    /// Who claims, as users call it.
    pub fn holder(&self) -> String {
        self.consumer.as_ref().map_or_else(|| "its owner".to_owned(), Consumer::to_string)
    }

    /// Whether this text names its consumer.
    pub(super) fn is_of(&self, name: &str) -> bool {
        self.consumer.as_ref().is_some_and(|consumer| consumer.is_called(name))
    }
}

/// Who wrote a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Author {
    /// A person: the reference may name anything.
    #[default]
    Hand,
    /// A claimer that has the id of the claim as an annotation. It must exist before anything is done for it.
    Claimer,
}

/// A reference to who uses a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Consumer {
    /// API version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl Consumer {
    /// Whether this text names it.
    fn is_called(&self, name: &str) -> bool {
        !self.name.is_empty()
            && (name == self.name || name == format!("{}/{}", self.namespace, self.name) || name == self.to_string())
    }
}

impl std::fmt::Display for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.kind.is_empty() {
            write!(f, "{} ", self.kind)?;
        }
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// What a user wants on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Distinguishes this deployment from every other one: it changes with the claim and with the recipe.
    pub deployment: String,
    /// Who must be ready first.
    pub gate: Option<Gate>,
    /// How the system gets onto the server, or why it cannot.
    pub recipe: Result<Recipe, Failure>,
}

impl Order {
    /// The gate, if it is not open.
    pub(super) fn closed_gate(&self) -> Option<&Gate> {
        self.gate.as_ref().filter(|gate| !gate.open)
    }
}

/// Another party, which must be ready before the server is booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Who, as users call it.
    pub keeper: String,
    /// Whether it is ready.
    pub open: bool,
}
