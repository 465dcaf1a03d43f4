//! Packets as clients send them, what they are answered, and what becomes of broken ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests, which clippy does not see as tests"
)]

mod dhcp;
mod recognising;
