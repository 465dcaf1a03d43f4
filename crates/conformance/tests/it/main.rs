//! One suite of API behaviour: each case is told to the real kube-apiserver and to ours, and the answers are compared.
//!
//! `BESKAR7_SHOW=1` prints what the real server answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod court;
mod known_differences;
mod samples;

mod apply;
mod basics;
mod deletion;
mod lists;
mod patches;
mod watches;
