//! The operator, the API server that `beskar7 standalone` embeds and simulated BMCs on one thread, under paused time: hours
//! cost nothing, and nothing depends on how busy the machine is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod api_outage;
mod bad_days;
mod connection;
mod crash;
mod definition;
mod deletion;
mod deploy;
mod fleet;
mod input;
mod ironcore;
mod machines;
mod metal3;
mod other_writers;
mod power;
mod release;
mod upgrade;
