//! What the trials share: a world with one operator, one namespace and as many pretend BMCs as a test wants, and the words to
//! tell what happens in it. It is compiled once for all test binaries.
//!
//! A world is either on a cluster of the test bed, with wall-clock time and the roles that we ship, or in process: the API
//! server that `beskar7 standalone` embeds, the operator and the BMCs on one thread under paused time, where hours cost nothing
//! and nothing depends on how busy the machine is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod bed;
mod running;

pub mod definitions;
pub mod gate;
pub mod hurry;
pub mod ironcore;
pub mod machines;
pub mod metal3;
pub mod outage;
pub mod served;
pub mod stored;
pub mod story;
pub mod world;
