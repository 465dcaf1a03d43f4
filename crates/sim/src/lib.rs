//! A fleet of pretend BMCs and servers, with vendor personalities and faults.
//!
//! The heart is [`Bmc`]: a Redfish service that answers in process or behind HTTPS, over a small state machine of a
//! server ([`Server`]) and a tree that is either written from a [`Personality`] or replayed from a recording ([`Tree`]).
//! Time is tokio's and is only ever compared, so a fleet costs nothing while nobody asks, and a day of it runs in a
//! second under paused time.
//!
//! The crate knows nothing of our client: both sides must not share a mistake.

mod act;
mod bios;
mod bmc;
mod built;
mod cert;
mod control;
mod fault;
mod fleet;
mod hardware;
mod journal;
mod kind;
mod listen;
mod login;
mod manifest;
mod overlay;
pub mod personality;
mod place;
mod query;
mod recorded;
mod reply;
mod seconds;
mod serve;
mod server;
mod state;
mod task;

pub use bmc::{Bmc, BmcSpec, Dropped, FaultDesk};
pub use cert::Certificate;
pub use control::Control;
pub use fault::{Effect, Fault, FaultBody, FaultId, Limit, When};
pub use fleet::{Fleet, FleetSpec, ServeSpec, Serving};
pub use hardware::{Disk, Hardware};
pub use journal::{Counters, Mutation, Outcome};
pub use kind::{Kind, Verb};
pub use listen::{Endpoint, ListenError};
pub use login::Credentials;
pub use manifest::{Trust, manifests};
pub use personality::Personality;
pub use recorded::{Tree, TreeError};
pub use server::{BootSource, Booted, Enabled, Guest, Mode, Override, PowerState, ResetType, Server, Slot, Timing};
