//! What becomes of a claim: how a machine gets a host, follows it, and lets it go.
//!
//! The host does the work. A claim only says who wants what, waits, and tells its owner where it stands.

mod refusals;
mod step;
#[cfg(test)]
mod tests;

pub use refusals::Refusal;
pub use step::{Act, Standing, Step, step};

use jiff::Timestamp;

use crate::host::{Milestone, Phase};
use crate::server::PowerState;

/// What the owner of a claim wants of it. Derived every time, from its object alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goal {
    /// Whether it is to be kept.
    pub road: Road,
    /// Why what it asks for can never be had, if so.
    pub unservable: Option<Refused>,
    /// Why it cannot be had as things are, if so: somebody has to do something.
    pub blocked: Option<Refused>,
    /// What is wrong if there will be no bootstrap data, where it is needed.
    pub needs_bootstrap: Option<Refused>,
    /// Whether somebody has to look at the image before a server is claimed for it.
    pub needs_image: bool,
    /// Keep others from the host once it is released, so that somebody can look at it.
    pub quarantine: bool,
    /// Tells what is ordered from every other order.
    pub order: String,
}

/// Whether a claim is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Road {
    /// It is.
    Keep,
    /// It is to be forgotten, in this manner.
    Leave(Leave),
}

/// How to part with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// When its host has been switched off and cleaned up.
    Release,
    /// At once. Nobody knows then what the server does, so it is kept from others.
    Force,
    /// It goes on living in another cluster: nothing is done.
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
    /// Tells it from every other claim, also of an object of the same name. Once there, the object cannot vanish
    /// without us.
    pub id: Option<String>,
    /// The host that it was once provisioned on, by the name that the cluster knows.
    pub provider: Option<String>,
    /// Hosts that could not serve it.
    pub refusals: Vec<Refusal>,
}

/// What was just seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// For whom the machine is.
    pub owner: Owner,
    /// The host that bears this claim, or still acts for it.
    pub host: Option<Host>,
    /// Other hosts that do: a leader that was deposed in the middle may leave a claim on a second one.
    pub doubles: Vec<Host>,
    /// What is known of the image.
    pub image: Image,
    /// Why the placer found no host, if it was asked.
    pub refusal: Option<String>,
    /// The time.
    pub now: Timestamp,
}

/// For whom a machine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// For nobody but its author: there is no Cluster API here.
    Nobody,
    /// Cluster API has not taken it over yet.
    Awaited,
    /// Nobody can take it over: Cluster API is not installed.
    NoClusterApi,
    /// Cluster API had it, and its Machine or Cluster is gone for certain.
    Gone,
    /// Nothing may be done now, for this reason: it is paused, or whether it is cannot be told.
    Paused(String),
    /// For this machine of a cluster.
    Machine(Machine),
}

/// The machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Whether the cluster's own infrastructure is there.
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
    /// It should be there, and is not.
    Missing,
    /// It is there.
    Ready,
}

/// What is known of an image that we have to change for its machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    /// Nobody has looked yet.
    Unknown,
    /// It can be served.
    Good,
    /// It cannot be had now; that may pass.
    Unreachable(Refused),
    /// It cannot be served as it is.
    Bad(Refused),
}

/// A host that bears a claim, or still acts for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name as the claim calls it: no two hosts that bear one claim have the same.
    pub name: String,
    /// The name that the cluster knows it by.
    pub provider: String,
    /// Whether its object says that it is ours.
    pub claimed: bool,
    /// Whether something is or was done to the server for us.
    pub bound: bool,
    /// Where it is on its way.
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
