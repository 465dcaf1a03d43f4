//! Turns resources into engine goals, and engine steps into status, events and acts.
//!
//! A *dialect* ([`dialect::HostDialect`], one folder each) translates its resource. The generic loop ([`host`]) steps the engine
//! and stores what follows; the [`hands`] perform it. A machine that needs a host claims one (`claims`), and one task places all
//! that wait. [`operator`] runs all of it under one lease.

pub mod api_client;
pub mod beskar7;
pub mod brake;
mod claims;
pub mod clock;
mod cluster_api;
mod clusters;
pub mod companions;
mod conditions;
pub mod consumer;
mod definition;
pub mod depot;
pub mod dialect;
pub mod dialects;
mod drive;
mod fingerprint;
pub mod hands;
mod herald;
pub mod host;
pub mod index;
pub mod ironcore;
mod kinds;
mod latest;
pub mod leader;
pub mod marks;
mod metal3;
pub mod metrics;
mod nodes;
pub mod object;
pub mod objects;
pub mod operator;
mod placer;
pub mod probes;
pub mod relatives;
mod rival;
pub mod roster;
pub mod vault;
mod watches;
mod wiring;
pub mod writer;

#[cfg(test)]
mod simulation;
