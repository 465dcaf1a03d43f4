//! One suite of API behaviour: each case is told to the real kube-apiserver and to ours, and the answers are compared.
//!
//! `BESKAR7_SHOW=1` prints what the real server answered.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "cargo shows it when a test fails")]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written where they are sent")]

mod court;
mod known_differences;
mod samples;

mod apply;
mod bad_input;
mod basics;
mod built_ins;
mod clients;
mod definitions;
mod deletion;
mod discovery;
mod dry_run;
mod identity;
mod kubectl;
mod lists;
mod namespaces;
mod patches;
mod rules;
mod schema;
mod strictness;
mod subresources;
mod versions;
mod watches;
