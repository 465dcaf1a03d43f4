//! What was just seen.

use jiff::Timestamp;

use super::BrakeLimit;
use crate::{failure::Failure, server::Seen};

/// Everything that a step can see, besides what is wanted and remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The time.
    pub now: Timestamp,
    /// Fingerprint of the present access to the BMC: address, system, versions of the Secrets, trust.
    pub inputs: String,
    /// The part of `inputs` that identifies the server: address and system.
    pub target: String,
    /// The last look at the server.
    pub bmc: Option<BmcSight>,
    /// Whether the recorded consumer exists. Only looked up if a step asks for it.
    pub consumer: Presence,
    /// When the configuration of the current deployment was fetched for the first time.
    pub fetched: Option<Timestamp>,
    /// When the server was last handed all that it is to boot from the network in the current deployment.
    pub handed: Option<Timestamp>,
    /// When the current probe has last reported.
    pub probed: Option<Timestamp>,
    /// Whether the claimer on the object exists. Only looked up if a step asks for it.
    pub claimer: Presence,
    /// Another host object that was registered for the same server before.
    pub rival: Option<String>,
    /// What the fleet brake allows.
    pub granted: Vec<Ask>,
    /// Its answer if it did not allow it.
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
    /// Whether a failed act was certainly not carried out. A missing answer, or one that blames a component behind the BMC,
    /// leaves that open.
    pub not_performed: bool,
}

/// Whose existence a step needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inquiry {
    /// The recorded consumer's.
    Consumer,
    /// The claimer's on the object.
    Claimer,
}

/// Whether a consumer exists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Presence {
    /// Not looked up.
    #[default]
    NotLookedUp,
    /// It does.
    Exists,
    /// It is being deleted.
    Leaving,
    /// It does not exist.
    Gone,
    /// Unknown, for this reason.
    Unknown(String),
}

/// A permission that the fleet brake gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Switch off or reset a server that runs.
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
