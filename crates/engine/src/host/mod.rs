//! One host's life: what is wanted, what was done, what was seen, and what follows.

mod anchor;
mod boot;
mod cause;
mod claims;
mod fault;
mod goal;
mod observe;
mod pace;
mod phases;
mod power;
mod recipe;
mod record;
mod shared;
mod sight;
mod step;

#[cfg(test)]
mod tests;

pub use anchor::{Anchor, AuthHold, Milestone, OutdatedRequest, Since};
pub use boot::{ASSUMED_BOOTED, no_way_to_boot};
pub use cause::Cause;
pub use goal::{Author, Claim, Consumer, Farewell, Gate, Goal, Order, PowerRequest, Request, Road};
pub use power::{is_running, runs_unasked};
pub use recipe::{MayBoot, NetworkProtocol, Recipe, Starts, Undo, may_boot};
pub use record::{Deed, Disarming, Doing, Fault, Moment, Moving, Origin, Phase, Record, Unread, Wait};
pub use sight::{Ask, BmcSight, Held, Inquiry, Outcome, Sight, Whereabouts};
pub use step::{Act, Event, Note, NoteKind, Remembered, Step, step};
