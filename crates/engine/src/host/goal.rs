//! What the owner of a host wants of it. Derived every time, from the host object alone.

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
    /// What ends a deployment when it is gone.
    pub claim: Option<Claim>,
    /// Who wrote the claim.
    pub author: Author,
    /// Who uses it: whose pause is a pause for its host.
    pub consumer: Option<Consumer>,
    /// Somebody else put a system on it and looks after that: only its power is ours.
    pub external: bool,
    /// Kept from everybody, once nobody uses it, until somebody has looked at it: watched, never touched.
    pub quarantine: bool,
    /// What its user wants on it. Means nothing without a claim.
    pub order: Option<Order>,
    /// Whether it should have power; `None` leaves the power alone.
    pub online: Option<bool>,
    /// Tells a request for power from an earlier one of the same words.
    pub power_id: Option<String>,
    /// What is asked of the power is a policy: it counts always, also if it was asked before a claim or a release.
    pub power_is_policy: bool,
    /// Keep it without power for as long as this is wanted, whatever else is asked of its power.
    pub held_off: Option<Manner>,
    /// Never take its power away: restart it instead.
    pub never_off: bool,
    /// Do without an inventory.
    pub without_inventory: bool,
    /// Whether a machine may take it while its server runs although nobody asked for it.
    pub claimable_while_running: bool,
    /// Firmware to boot with.
    pub boot_mode: Option<BootMode>,
    /// A request to restart it, told from earlier ones by its id.
    pub reboot: Option<String>,
    /// How a restart is done.
    pub restart: Restart,
    /// A request to take its inventory again, told from earlier ones by its id.
    pub inspect: Option<String>,
    /// Pin the certificate that the BMC shows first.
    pub pin_on_first_use: bool,
    /// The owner says: end the claim of this id, although the recorded consumer still exists.
    pub release: Option<String>,
    /// The owner says: provision the host for this claim, although it was adopted as it is. Names the claim by its id or its consumer.
    pub provision: Option<String>,
}

/// What an owner asks for by a word on the object that counts for one claim only, and once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// [`Goal::release`].
    Release,
    /// [`Goal::provision`].
    Provision,
}

impl Goal {
    /// What is asked of the server's power, if anything is, and may be outdated by a claim or a release.
    pub fn power_request(&self) -> Option<PowerRequest> {
        if self.power_is_policy {
            return None;
        }
        // It goes into the anchor, so whatever an annotation says must fit there.
        let id = self.power_id.as_ref().map(|id| id.chars().take(64).collect());
        Some(PowerRequest { online: self.online?, id })
    }
}

/// What is asked of a server's power. A request counts until a claim or a release outdates it, and a new one needs another value
/// or another id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerRequest {
    /// Whether the server is to have power.
    pub online: bool,
    /// Tells it from an earlier request of the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Whether and how we manage a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Road {
    /// The usual way.
    #[default]
    Manage,
    /// Under maintenance: watched, never touched.
    Park,
    /// Under maintenance, and switched off for it: watched, otherwise never touched.
    ParkOff,
    /// Not ours for now: neither watched nor touched.
    Detach,
    /// To be forgotten.
    Delete(Deletion),
}

/// How to take the power away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Ask the operating system first, cut the power when it does not listen.
    Soft,
    /// Cut it.
    Hard,
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
    /// Clean the server up first: off and without our media, if it was us who started it.
    CleanUp,
    /// Let go at once, whatever state the server is in.
    Force,
    /// The object goes on living in another cluster: do nothing to the server.
    Move,
}

/// A claim on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Tells this claim from every other one, also of a consumer of the same name.
    pub id: String,
    /// Who claims. `None` if the object orders for itself: then the claim ends when the object says so, and nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Consumer>,
}

impl Claim {
    /// Who claims, as users call it.
    pub fn holder(&self) -> String {
        self.consumer.as_ref().map_or_else(|| "its owner".to_owned(), Consumer::to_string)
    }

    /// Whether somebody who calls its consumer that means this one.
    pub(super) fn is_of(&self, name: &str) -> bool {
        self.consumer.as_ref().is_some_and(|consumer| consumer.is_called(name))
    }
}

/// Who wrote a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Author {
    /// Somebody by hand: the reference may name anything.
    #[default]
    Hand,
    /// A claimer that gave itself the id of the claim. It must exist before anything is done for it.
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
    /// Whether somebody who calls it that means this one.
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
    /// Tells this deployment from every other one: it changes with the claim and with the recipe.
    pub deployment: String,
    /// Who must be ready first.
    pub gate: Option<Gate>,
    /// How the system gets onto the server, or why it cannot.
    pub recipe: Result<Recipe, Failure>,
}

impl Order {
    /// Who must be ready first and is not.
    pub(super) fn closed_gate(&self) -> Option<&Gate> {
        self.gate.as_ref().filter(|gate| !gate.open)
    }
}

/// Somebody who must be ready before the server is booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// Who, as users call it.
    pub keeper: String,
    /// Whether it is ready.
    pub open: bool,
}
