//! The interface through which the service asks what to serve.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderValue;

use engine::host::Payload;

use super::{Gate, IsoOrder, Problem};
use crate::links::Part;
use crate::os::Family;
use crate::ticket::Holder;

/// Knows the deployments in progress. Implemented by the part that watches the hosts.
pub trait Directory: Send + Sync + 'static {
    /// What to serve for a deployment; `None` once its host is released. Called for every request, so it must answer from memory.
    fn delivery(&self, deployment: &str) -> Option<Delivery>;

    /// The bootstrap data, read now and not kept. Only called if [`Delivery::config`] shows that there is some.
    fn bootstrap<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>>;

    /// Records that this address fetches the bootstrap data, if it is the first one, and returns whether it may. Whatever number
    /// of replicas is asked at once, one address is the first: the record is an atomic create, judged by
    /// [`config_gate`](super::config_gate).
    fn first_seen<'a>(&'a self, delivery: &'a Delivery, from: IpAddr) -> BoxFuture<'a, Result<Gate, Unavailable>>;

    /// What the client with this MAC address and UUID may boot from the network now. Called for every request, so it must answer from
    /// memory.
    fn boots(&self, client: &Client) -> Boots;

    /// Records how far a boot from the network has come. May be called for every request; must not wait.
    fn note(&self, delivery: &Delivery, step: Step, from: IpAddr);

    /// Reports what went wrong, for a condition. May be called for every request; must not wait.
    fn report(&self, delivery: &Delivery, problem: &Problem);
}

/// Who a server says it is that boots from the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// The MAC address that it boots from, as it came.
    pub mac: String,
    /// Its UUID, as it came.
    pub uuid: String,
}

/// What a client may boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boots {
    /// It is not known which server it is, or there is nothing for it, in a sentence. The firmware goes on with its next device.
    Nothing(String),
    /// What is on its disk.
    Disk,
    /// What is ordered for it.
    Payload(Box<Delivery>),
}

/// How far a boot from the network has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The server was told by DHCP what to load first.
    Offered,
    /// The server has asked what to boot.
    Asked,
    /// It was handed all of this.
    Fetched(Part),
}

/// Where a server finds its configuration, and how it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The user's own place; `None` if we serve it.
    pub url: Option<String>,
    /// The system that is booted, if that is known: it decides about the kernel parameter.
    pub family: Option<Family>,
}

/// What to serve for one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Whose tickets open it.
    pub holder: Holder,
    /// The boot image, if we serve it.
    pub iso: Option<IsoOrder>,
    /// What the server boots from the network, if we serve it.
    pub payload: Option<Payload>,
    /// How the system that it boots from there is configured.
    pub configuration: Option<Configuration>,
    /// Whether we serve its bootstrap data.
    pub config: bool,
    /// Whether its server was powered on for it. Before that, nobody gets the bootstrap data.
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
