//! One host's life: what is wanted, what was done, what was seen, and what follows.

mod anchor;
mod boot;
mod boot_plan;
mod cause;
mod claims;
mod facts;
mod fault;
mod goal;
mod lending;
mod observe;
mod offer;
mod pace;
mod phases;
mod power;
mod probe;
mod recipe;
mod record;
mod shared;
mod sight;
mod step;
mod words;

#[cfg(test)]
mod tests;

pub use anchor::{Anchor, AuthHold, Milestone, OutdatedRequest, Since};
pub use boot::no_way_to_boot;
pub use boot_plan::{BootPlan, LastBoot, boot_plan};
pub use cause::Cause;
pub use facts::{Ahead, Asked, BrakeLimit, ClaimChange, Finding, Happening, Neglect, Note, Passage, Waiting};
pub use goal::{
    Author, Boot, Claim, Consumer, Deletion, Detachment, Disks, Gate, Goal, HeldOff, Lasting, Maintenance, Manner,
    Newcomer, Order, PowerRequest, Probe, Request, Restart, Road, Turn,
};
pub use offer::{Availability, Holding, Overview};
pub use power::{is_running, runs_unasked};
pub use recipe::{NetworkProtocol, Payload, Recipe, Sign, Starts, Undo};
pub use record::{Deed, Disarming, Doing, Fault, Moving, Origin, Phase, Record, Unread, Wait};
pub use sight::{Ask, BmcSight, Hold, Inquiry, Outcome, Presence, Sight};
pub use step::{Act, Moment, Proof, Remembered, Step, step};
pub use words::{ASSUMED_BOOTED, Neutral, Words};
