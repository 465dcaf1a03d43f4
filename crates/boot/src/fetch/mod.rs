//! Reads the user's image over HTTP(S), a range at a time.
//!
//! - **Where to**: names are looked up once, and the connection goes to an address that the [`Guard`] has let pass. That holds
//!   for every redirect, of which at most five are followed, and none from HTTPS to HTTP.
//! - **What**: the image is pinned to the version that its server sends (`ETag`, `Last-Modified`, length). Another version is
//!   an error, never a mixture of both.
//! - **How long**: connecting, the first byte and each pause between bytes have a limit; how long a whole image takes has none.
//! - **How much**: a reader keeps one buffer of the connection, whatever the image's size.
//!
//! Every byte of an image passes [`HttpSource`]. With a [`Cache`] it passes once for all readers.

mod ask;
mod cache;
mod connect;
mod error;
mod guard;
mod kept;
mod source;
mod trust;
mod url;
mod version;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use self::cache::Cache;
use self::connect::Connector;
pub use self::error::FetchError;
pub use self::guard::{Guard, Network, NetworkInvalid};
pub use self::source::HttpSource;
pub use self::version::Version;

/// What one connection may keep in memory. 50 readers of large images must fit into 20 MB, with as much again on the side
/// that they read from.
const BUFFER: usize = 64 * 1024;
/// BMCs read in bursts; a connection that is idle for longer is closed to free its buffers.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
const IDLE_CONNECTIONS: usize = 8;

/// How long to wait for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection, TLS included.
    pub connect: Duration,
    /// For the head of an answer, connection included.
    pub first_byte: Duration,
    /// Between bytes.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(10), first_byte: seconds(30), idle: seconds(30) }
    }
}

/// Opens images. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct Fetcher {
    client: legacy::Client<Connector, Empty<Bytes>>,
    patience: Patience,
    cache: Option<Arc<Cache>>,
}

impl Fetcher {
    /// Trusts the roots of this machine, and the CA certificates (PEM) that are given.
    pub fn new(guard: Guard, extra_roots: Option<&str>, patience: Patience) -> Result<Self, FetchError> {
        let connector = Connector::new(guard, trust::client_config(extra_roots)?, patience.connect);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .http1_max_buf_size(BUFFER)
            .build(connector);
        Ok(Self { client, patience, cache: None })
    }

    /// Keeps on disk what is read from now on.
    pub fn with_cache(self, cache: Arc<Cache>) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// What may be shown of a URL: scheme, host and port.
    pub(crate) fn origin_of(url: &str) -> String {
        url::ImageUrl::parse(url).map(|url| url.origin()).unwrap_or_default()
    }

    /// Asks how long an image is and which version, so that it can be read.
    pub async fn open(&self, url: &str) -> Result<HttpSource, FetchError> {
        let url = url::ImageUrl::parse(url)?;
        match HttpSource::open(self.clone(), url.clone()).await {
            // A kept connection that the server closed meanwhile is no failure of the server.
            Err(FetchError::Broken { .. }) => HttpSource::open(self.clone(), url).await,
            other => other,
        }
    }
}
