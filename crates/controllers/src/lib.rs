//! Turns resources into engine goals, and engine steps into status, events and acts.
//!
//! A *dialect* ([`dialect::HostDialect`], one folder each) translates its resource. The generic loop ([`host`]) steps
//! the engine and stores what follows; the [`hands`] perform it. [`operator`] wires all of it under one lease.

pub mod beskar7;
pub mod brake;
pub mod clock;
pub mod consumer;
pub mod dialect;
pub mod hands;
pub mod host;
pub mod index;
pub mod leader;
pub mod metrics;
pub mod operator;
pub mod probes;
pub mod vault;

#[cfg(test)]
mod simulation;
