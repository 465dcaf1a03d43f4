//! Speaks to baseboard management controllers: a thin, lenient Redfish client over a [`Transport`].
//!
//! The way of a request: [`RedfishSystem`] (what a server can be asked) → [`Client`] (manners: session, retries, breaker) →
//! [`Transport`] (bytes). Differences between vendors are data in [`quirks`], never a branch in the flow.

use engine::server::{BootOverride, Scope, Seen};
use futures::future::BoxFuture;

pub mod address;
mod boot;
mod boot_attributes;
mod breaker;
mod choice;
mod client;
mod collection;
mod credentials;
mod error;
mod error_body;
mod inventory;
mod lenient;
mod logout;
mod media;
mod observer;
mod power;
pub mod quirks;
mod resource;
mod retry;
mod service;
mod session;
mod survey;
mod system;
mod task;
mod tls;
mod transport;
mod wire;

pub use address::Address;
pub use choice::SystemChoice;
pub use client::{Client, Endpoint, Options};
pub use credentials::Credentials;
pub use error::{Error, Refusal};
pub use error_body::Problem;
pub use logout::close_all_sessions;
pub use observer::Observer;
pub use power::ResetType;
pub use quirks::Family;
pub use system::RedfishSystem;
pub use tls::{Fingerprint, Trust};
pub use transport::{Https, InProcess, Transport, TransportError};

/// How to treat a running operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manner {
    /// At once, without asking the operating system.
    Hard,
    /// By asking the operating system, which may take its time or not react at all.
    Soft,
}

/// One server, through its BMC.
///
/// Acts are idempotent and do not wait for their effect: the caller looks again, and escalates. Every call has a time limit.
pub trait Bmc: Send + Sync {
    /// Looks at the server, or with [`Scope::Service`] at the BMC itself.
    fn look(&self, scope: Scope) -> BoxFuture<'_, Result<Seen, Error>>;
    /// Powers it on; nothing happens when it is on already.
    fn power_on(&self) -> BoxFuture<'_, Result<(), Error>>;
    /// Powers it off; nothing happens when it is off already.
    fn power_off(&self, manner: Manner) -> BoxFuture<'_, Result<(), Error>>;
    /// Restarts it; powers it on when it is off.
    fn restart(&self, manner: Manner) -> BoxFuture<'_, Result<(), Error>>;
    /// Puts an image into the virtual CD drive; an image that is in there is ejected first.
    fn insert_media<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<(), Error>>;
    /// Empties all virtual CD drives.
    fn eject_media(&self) -> BoxFuture<'_, Result<(), Error>>;
    /// Overrides the boot order.
    fn set_boot<'a>(&'a self, wish: &'a BootOverride) -> BoxFuture<'a, Result<(), Error>>;
    /// Ends an override of the boot order; where a BMC cannot do that, the disk is chosen.
    fn clear_boot(&self) -> BoxFuture<'_, Result<(), Error>>;
    /// Restarts the BMC itself.
    fn reset_bmc(&self) -> BoxFuture<'_, Result<(), Error>>;
}
