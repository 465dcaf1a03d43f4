//! The operator on a real API server, under the ServiceAccount and roles that we ship, with simulated BMCs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod api_outage;
mod bad_days;
mod connection;
mod crash;
mod deletion;
mod deploy;
mod fleet;
mod gate;
mod input;
mod lifecycle;
mod machines;
mod owned;
mod power;
mod release;
mod remote;
mod served;
mod story;
mod tls;
mod transcript;
mod world;
