//! ISOs that other programs build, rewritten by us, read back by other programs, and served over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which clippy does not see as tests"
)]

mod boots;
mod bootstrap;
mod fetching;
mod hostile;
mod hybrid;
mod keeping;
mod lab;
mod layouts;
mod memory;
mod network;
mod refusals;
mod registry;
mod serving;
mod stage;
mod tftp;
mod troubles;
mod upstream;
