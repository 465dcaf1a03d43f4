//! The operator on a real API server, under the ServiceAccount and roles that we ship, with simulated BMCs. What needs neither
//! roles nor sockets is in `tests/process`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod api_outage;
mod definition;
mod ironcore;
mod lifecycle;
mod machines;
mod netboot;
mod owned;
mod remote;
mod secrecy;
mod tls;
mod transcript;
