//! A fleet of pretend BMCs and servers, with vendor personalities and faults.
//!
//! The heart is [`Bmc`]: a Redfish service that answers in process or behind HTTPS, over a small state machine of a server
//! ([`Server`]) and a tree that is either written from a [`Personality`] or replayed from a recording ([`Tree`]). Time is tokio's
//! and is only ever compared, so an idle fleet costs nothing, and a day of it runs in a second under paused time.
//!
//! Servers that really boot are QEMU machines: see [`qemu`].
//!
//! The crate knows nothing of our client: both sides must not share a mistake.
//!
//! ```
//! # use bytes::Bytes;
//! # use http::Request;
//! # use sim::{Bmc, BmcSpec, Effect, Kind, PowerState, Verb, personality};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let bmc = Bmc::new(BmcSpec::new(personality::dell_idrac9()).power(PowerState::On));
//! bmc.faults().add(Effect::Drop.always().kind(Kind::Root).times(1));
//! let root = || Request::get("/redfish/v1").body(Bytes::new());
//! assert!(bmc.call(root()?).await.is_err());
//! assert!(bmc.call(root()?).await?.status().is_success());
//! assert_eq!(bmc.counters().of(Verb::Get, Kind::Root), 2);
//! assert_eq!(bmc.first().power(), PowerState::On);
//! # Ok(())
//! # }
//! ```

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
mod machine;
mod overlay;
pub mod personality;
mod place;
pub mod qemu;
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
pub use fault::{Effect, Fault, FaultBody, FaultId, ImageName, Limit, When};
pub use fleet::{Fleet, FleetSpec, ServeSpec, Serving};
pub use hardware::{Disk, Hardware, Parts};
pub use journal::{Counters, Mutation, Outcome};
pub use kind::{Kind, Verb};
pub use listen::{Endpoint, ListenError};
pub use login::Credentials;
pub use personality::Personality;
pub use recorded::{Tree, TreeError};
pub use server::{BootSource, Booted, Enabled, Guest, Mode, Override, PowerState, ResetType, Server, Slot, Timing};
