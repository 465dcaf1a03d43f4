//! The simulator seen from outside, one file for each side of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which clippy does not see as tests")]

mod bios;
mod boot;
mod captures;
mod client;
mod faults;
mod fleet;
mod media;
mod power;
mod replay;
mod sessions;
mod sockets;
mod tree;
