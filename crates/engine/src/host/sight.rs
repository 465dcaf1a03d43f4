//! What was just seen.

use jiff::Timestamp;

use super::BrakeLimit;
use crate::{failure::Failure, server::Seen};

/// Everything that a step may look at, besides what is wanted and remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The time.
    pub now: Timestamp,
    /// Fingerprint of how we would speak to the BMC now: address, system, version of the Secrets, trust.
    pub inputs: String,
    /// The part of `inputs` that tells which server this is: address and system.
    pub target: String,
    /// The last look at the server.
    pub bmc: Option<BmcSight>,
    /// Whether the recorded consumer exists. Only looked up when a step inquires.
    pub consumer: Presence,
    /// When the configuration of the current deployment was fetched for the first time.
    pub fetched: Option<Timestamp>,
    /// Whether the one exists whose claim the object bears. Only looked up when a step inquires.
    pub claimer: Presence,
    /// Another host object that names the same server and was there first.
    pub rival: Option<String>,
    /// What the fleet brake allows.
    pub granted: Vec<Ask>,
    /// What the fleet brake said when it did not.
    pub hold: Option<Hold>,
    /// Spreads hosts in time: anything, but always the same for one host.
    pub spread: u8,
}

/// One look at the server, and how the acts before it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmcSight {
    /// When the look ended.
    pub at: Timestamp,
    /// Number of the last act that was performed (or given up) before the look began.
    pub after: u64,
    /// The inputs that were used.
    pub inputs: String,
    /// How the act of number `after` went, if it was performed just before.
    pub act: Option<Outcome>,
    /// What was seen.
    pub seen: Result<Seen, Failure>,
}

/// How an act went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its number.
    pub number: u64,
    /// Whether the BMC took it.
    pub result: Result<(), Failure>,
    /// Whether an act that failed was certainly not carried out. An answer that did not come, or that blames a part behind the
    /// BMC, says nothing about that.
    pub not_performed: bool,
}

/// Of whom a step needs to know whether it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inquiry {
    /// Of the recorded consumer.
    Consumer,
    /// Of the one whose claim the object bears.
    Claimer,
}

/// Whether a consumer exists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Presence {
    /// Nobody has looked.
    #[default]
    NotLookedUp,
    /// It does.
    Exists,
    /// It is being deleted.
    Leaving,
    /// It does not exist.
    Gone,
    /// We could not find out, for this reason.
    Unknown(String),
}

/// A permission that the fleet brake gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Take the power from a server that runs, or reset it.
    Disrupt,
    /// Begin a deployment.
    Deploy,
}

/// The fleet brake's "not now".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub limit: BrakeLimit,
    /// When to ask again.
    pub until: Timestamp,
}
