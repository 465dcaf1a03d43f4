//! What there is to serve, as the service asks for it.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderValue;

use super::{Gate, IsoOrder, Problem};
use crate::ticket::Holder;

/// Knows the deployments that are under way. Implemented by whoever watches the hosts.
pub trait Directory: Send + Sync + 'static {
    /// What a deployment is to be given; none once its host is released. Asked for every request, so it answers from memory.
    fn delivery(&self, deployment: &str) -> Option<Delivery>;

    /// The bootstrap data, read now and not kept. Only asked if [`Delivery::config`] says that there is some.
    fn bootstrap<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>>;

    /// Records that this address fetches the bootstrap data, if it is the first one, and says whether it may. Whatever number of
    /// replicas is asked at once, one address is the first: the record is an atomic create, judged by
    /// [`config_gate`](super::config_gate).
    fn first_seen<'a>(&'a self, delivery: &'a Delivery, from: IpAddr) -> BoxFuture<'a, Result<Gate, Unavailable>>;

    /// Is told what went wrong, so that a condition can say it. May come with every request; must not wait.
    fn report(&self, delivery: &Delivery, problem: &Problem);
}

/// What one deployment is to be given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whose tickets open it.
    pub holder: Holder,
    /// The boot image, if we serve it.
    pub iso: Option<IsoOrder>,
    /// Whether we serve its bootstrap data.
    pub config: bool,
    /// Whether its server was powered on for it. Nobody gets the bootstrap data before.
    pub powered_on: bool,
}

/// Bootstrap data: passwords and join tokens, mostly.
#[derive(Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// The data.
    pub bytes: Bytes,
    /// What it is: `text/cloud-config`, `application/vnd.coreos.ignition+json`.
    pub content_type: HeaderValue,
}

/// Something that should be there cannot be read or written now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unavailable {
    /// What, and why.
    pub why: String,
}

impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bootstrap({} bytes)", self.bytes.len())
    }
}
