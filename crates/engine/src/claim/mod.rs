//! What happens to a claim: how a machine gets a host, follows it, and releases it.
//!
//! The host does the work. A claim only states who wants what, waits, and reports its state to its owner.

mod refusals;
mod step;
#[cfg(test)]
mod tests;

pub use refusals::Refusal;
pub use step::{Act, Standing, Step, step};

use jiff::Timestamp;

use crate::host::{Milestone, Phase};
use crate::server::PowerState;

/// What the owner of a claim wants. Derived at every step, from its object alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// Whether it is to be kept.
    pub road: Road,
    /// Why the request can never be served, if so.
    pub unservable: Option<Refused>,
    /// Why the request cannot be served now, if so: somebody has to do something.
    pub blocked: Option<Refused>,
    /// What to report if there will be no bootstrap data, where it is needed.
    pub needs_bootstrap: Option<Refused>,
    /// Whether the image has to be checked before a server is claimed for it.
    pub needs_image: bool,
    /// Put the host into quarantine once it is released, so that somebody can check it.
    pub quarantine: bool,
    /// When the claim is bound to its host for good.
    pub binds: Binds,
    /// Distinguishes this order from every other one.
    pub order: String,
}

/// When a claim is bound to its host for good: the provider ID is stored, and the claim never gets another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Binds {
    /// When the ordered system runs there.
    #[default]
    WhenBooted,
    /// When the host has accepted the claim.
    WhenAccepted,
}

/// Whether a claim is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Road {
    /// It is.
    Keep,
    /// It is to be deleted, in this manner.
    Leave(Leave),
}

/// How to end a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// When its host has been switched off and cleaned up.
    Release,
    /// At once. What the server does is then unknown, so the host goes into quarantine.
    Force,
    /// It was moved to another cluster: nothing is done.
    Move,
}

/// Something that cannot be done, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// CamelCase reason.
    pub reason: String,
    /// What is wrong and what to do, in a sentence.
    pub message: String,
}

/// What is remembered about a claim, on its own object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// Distinguishes it from every other claim, also of an object with the same name. Once it is set, the object has our
    /// finalizer.
    pub id: Option<String>,
    /// Provider ID of the host that it was provisioned on.
    pub provider: Option<String>,
    /// Hosts that could not serve it.
    pub refusals: Vec<Refusal>,
}

/// What was just seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The owner of the machine.
    pub owner: Owner,
    /// The host that has this claim, or still acts for it.
    pub host: Option<Host>,
    /// Further hosts with this claim: a former leader may have left it on a second one.
    pub doubles: Vec<Host>,
    /// What is known of the image.
    pub image: Image,
    /// Why the placer found no host, if it was asked.
    pub refusal: Option<String>,
    /// The time.
    pub now: Timestamp,
}

/// The owner of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// It needs none: the operator runs without Cluster API.
    Nobody,
    /// Cluster API has not set an owner yet.
    Awaited,
    /// There can be none: Cluster API is not installed.
    NoClusterApi,
    /// Its Machine or Cluster was deleted, for certain.
    Gone,
    /// Nothing may be done now, for this reason: it is paused, or it is unknown whether it is.
    Paused(String),
    /// This Machine of a cluster.
    Machine(Machine),
}

/// The machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Whether the infrastructure of the cluster is ready.
    pub cluster_ready: bool,
    /// Its bootstrap data.
    pub bootstrap: Bootstrap,
}

/// Where the bootstrap data of a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bootstrap {
    /// There will be none.
    None,
    /// It is being made.
    Awaited,
    /// It should exist, and does not.
    Missing,
    /// It exists.
    Ready,
}

/// What is known about an image that the boot service has to change for its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// Nobody has looked yet.
    Unknown,
    /// It can be served.
    Good,
    /// It cannot be fetched now; that may pass.
    Unreachable(Refused),
    /// It cannot be served as it is.
    Bad(Refused),
}

/// A host that has a claim, or still acts for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name as the claim calls it: no two hosts that bear one claim have the same.
    pub name: String,
    /// Its provider ID.
    pub provider: String,
    /// Whether the claim is on its object.
    pub claimed: bool,
    /// Whether something is or was done to the server for this claim.
    pub bound: bool,
    /// Its phase.
    pub phase: Phase,
    /// How far our deployment has come.
    pub milestone: Milestone,
    /// Whether its order is the one that the claim asks for now.
    pub ordered: bool,
    /// What is wrong with it.
    pub fault: Option<Refused>,
    /// Why it cannot serve the claim, where another host may.
    pub refusal: Option<Refused>,
    /// What it waits for.
    pub wait: Option<Refused>,
    /// Power, as it was last seen.
    pub power: PowerState,
}
