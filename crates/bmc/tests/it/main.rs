//! The client against services: scripted ones, simulated BMCs, recorded trees and real sockets.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "helpers of tests are tests")]

mod captures;
mod connections;
mod dell;
mod links;
mod manners;
mod script;
mod sessions;
mod simulated;
mod tls;
mod trees;
mod vendors;
