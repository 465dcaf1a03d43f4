//! One BMC.

use std::sync::Arc;

use crate::{Address, Credentials, Family, Observer, Transport};

/// Whom to speak to, and as whom.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where.
    pub address: Address,
    /// As whom.
    pub credentials: Credentials,
    /// The firmware family, where the operator knows better than the BMC tells.
    pub family: Option<Family>,
}

/// What is handed in from outside.
pub struct Options {
    /// Is told of every request.
    pub observer: Arc<dyn Observer>,
    /// Seed of the jitter.
    pub seed: u64,
}

/// One BMC: session, manners, caches. Shared by all systems behind it.
pub struct Client {
    endpoint: Endpoint,
}

impl Client {
    /// Nothing is sent before the first operation.
    pub fn new(endpoint: Endpoint, transport: Arc<dyn Transport>, options: Options) -> Arc<Self> {
        drop((transport, options));
        Arc::new(Self { endpoint })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.endpoint.address
    }

    /// Ends the session. Must be awaited before the client is dropped: BMCs have few sessions.
    pub async fn close(&self) {}
}
