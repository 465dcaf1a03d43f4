//! What happens to a server, decided by pure functions.
//!
//! Nothing here does I/O, reads a clock, knows Kubernetes or is async. `host::step` takes what the owner wants
//! (goal), what we have done ([`host::Record`], [`host::Anchor`]) and what was just seen ([`host::Sight`]), and
//! answers with what to do now, what to remember, when to look again and why we wait ([`host::Step`]).

pub mod claim;
pub mod cluster;
pub mod discovery;
pub mod failure;
pub mod hardware;
pub mod host;
pub mod maintenance;
pub mod placement;
pub mod server;
