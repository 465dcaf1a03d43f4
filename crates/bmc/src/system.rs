//! One system behind a BMC.

use std::sync::Arc;

use engine::server::{BootOverride, Scope, Seen};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::{Bmc, Client, Error, Manner};

/// Which of the systems behind a BMC is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SystemChoice {
    /// The only one.
    #[default]
    Only,
    /// By its id, URI or UUID.
    Named(String),
}

/// A server behind a Redfish service.
pub struct RedfishSystem {
    client: Arc<Client>,
}

impl RedfishSystem {
    /// Nothing is sent before the first operation.
    pub fn new(client: Arc<Client>, choice: SystemChoice) -> Self {
        drop(choice);
        Self { client }
    }

    fn missing<T: Send>(&self) -> BoxFuture<'_, Result<T, Error>> {
        async { Err(Error::Unsupported { url: self.client.address().origin(), what: "do this yet".into() }) }.boxed()
    }
}

impl Bmc for RedfishSystem {
    fn look(&self, _: Scope) -> BoxFuture<'_, Result<Seen, Error>> {
        self.missing()
    }
    fn power_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.missing()
    }
    fn power_off(&self, _: Manner) -> BoxFuture<'_, Result<(), Error>> {
        self.missing()
    }
    fn restart(&self, _: Manner) -> BoxFuture<'_, Result<(), Error>> {
        self.missing()
    }
    fn insert_media<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.missing()
    }
    fn eject_media(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.missing()
    }
    fn set_boot<'a>(&'a self, _: &'a BootOverride) -> BoxFuture<'a, Result<(), Error>> {
        self.missing()
    }
    fn clear_boot(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.missing()
    }
    fn reset_bmc(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.missing()
    }
}
