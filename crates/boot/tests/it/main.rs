//! ISOs that other programs build, rewritten by us, and read back by other programs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which clippy does not see as tests"
)]

mod boots;
mod hostile;
mod hybrid;
mod lab;
mod layouts;
mod refusals;
