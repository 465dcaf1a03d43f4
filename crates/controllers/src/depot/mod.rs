//! What servers are handed while they are being provisioned: a boot image with a kernel parameter in it, bootstrap data.
//!
//! Every replica serves ([`Deliveries`], from a watch of the hosts that are to be served); what happens there it writes into a
//! [`BootSession`](api::boot::BootSession) of each deployment, which the leader reads ([`Sessions`]). Only the leader makes URLs.

mod boots;
mod deliveries;
mod image_check;
mod inbox;
mod key;
mod leases;
mod network;
mod sessions;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;

use boot::fetch::Fetcher;
use boot::links::{LinkError, Links};
use boot::neighbours::Neighbours;
use boot::os::Family;
use boot::serve::network::Network;
use boot::serve::{Images, IsoOrder, Limits, Service};
use boot::ticket::{Holder, Key, Purpose};
use bytes::Bytes;
use engine::failure::{Failure, Kind};
use engine::host::Payload;
use futures::future::join_all;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::dialects::Dialect;
use crate::watches::Selection;

pub use self::deliveries::{BootState, Probed};
pub(crate) use self::deliveries::{Deliveries, Means};
pub(crate) use self::image_check::{Check, ImageCheck, ImageWords, Question};
pub use self::key::KeyError;
pub(crate) use self::leases::Leases;
pub use self::leases::{RangeError, Reservations};
pub use self::sessions::{Session, Sessions};

/// How the boot service runs.
#[derive(Debug, Clone)]
pub struct BootConfig {
    /// Where BMCs and servers reach it.
    pub links: Links,
    /// Where it listens. Taken by whoever starts us, so that an address in use is told at once.
    pub listener: Arc<TcpListener>,
    /// Its certificate; `None` for plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// How it reads users' images.
    pub fetcher: Fetcher,
    /// How it serves servers that boot from the network; `None` if others do.
    pub network: Option<NetworkConfig>,
    /// Namespace of the Secret that tickets are made with.
    pub key_namespace: String,
}

/// How servers are served that boot from the network.
#[derive(Debug, Clone, Default)]
pub struct NetworkConfig {
    /// Boot files such as iPXE, by the names under which firmware asks for them.
    pub files: Arc<BTreeMap<String, Bytes>>,
    /// How DHCP is answered; `None` if the site's own DHCP server says everything.
    pub dhcp: Option<DhcpConfig>,
    /// Where TFTP is served, on each interface.
    pub tftp: Vec<boot::tftp::Sockets>,
}

/// How DHCP is answered.
#[derive(Debug, Clone)]
pub struct DhcpConfig {
    /// The sockets on each interface.
    pub sockets: Arc<Vec<boot::dhcp::Sockets>>,
    /// The addresses that known hosts get from us; `None` if the DHCP server of the site gives them.
    pub reserves: Option<Reserves>,
}

/// What it takes to give known hosts their addresses.
#[derive(Debug, Clone)]
pub struct Reserves {
    /// Which addresses.
    pub reservations: Reservations,
    /// Who else is on that network.
    pub neighbours: Arc<Neighbours>,
}

/// How the boot service serves servers that boot from the network.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NetworkBoots {
    /// Whether it serves any.
    pub(crate) serves_network: bool,
    /// Whether it serves all, because it answers DHCP.
    pub(crate) answers_dhcp: bool,
}

/// Why there is no boot service.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// There is no key for tickets.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The socket cannot be used.
    #[error("the boot service cannot listen: {0}")]
    Listen(#[source] std::io::Error),
}

/// What a server is to be handed, as its host object says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipment {
    /// Whose tickets open it.
    pub holder: Holder,
    /// What it boots.
    pub cargo: Cargo,
    /// The system that is booted, if its own kernel parameter tells it where its configuration is.
    pub family: Option<Family>,
    /// Where that finds its configuration, if it has one.
    pub configuration: Option<Configuration>,
    /// Whether the server was powered on for it.
    pub powered_on: bool,
}

/// What a server boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cargo {
    /// The user's ISO, with a kernel parameter written into it.
    Iso {
        /// Where it is.
        image: String,
        /// The system on it.
        family: Family,
    },
    /// Something that it gets from the network.
    Network(Payload),
}

/// Where a system finds its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Configuration {
    /// At a URL of the user.
    At(String),
    /// With us, from this Secret in the host's namespace.
    In(String),
}

/// Makes URLs with tickets, and has the images that are served.
#[derive(Debug)]
pub struct Depot {
    links: Links,
    key: Key,
    images: Arc<Images>,
    fetcher: Fetcher,
    network: Option<NetworkConfig>,
    leases: Option<Leases>,
}

impl Depot {
    /// A depot with the key that all replicas share. Waits for the API server as long as it takes, or until `stop`.
    pub(crate) async fn open(
        client: &Client,
        config: &BootConfig,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<Self>>, BootError> {
        let Some(key) = stop.run_until_cancelled(key::open(client, &config.key_namespace)).await else {
            return Ok(None);
        };
        Ok(Some(Arc::new(Self::new(config.links.clone(), key?, config.fetcher.clone(), config.network.clone()))))
    }

    fn new(links: Links, key: Key, fetcher: Fetcher, network: Option<NetworkConfig>) -> Self {
        let images = Arc::new(Images::new(fetcher.clone()));
        let dhcp = network.as_ref().and_then(|network| network.dhcp.as_ref());
        let reserves = dhcp.and_then(|dhcp| dhcp.reserves.clone());
        let leases = reserves.map(|reserves| Leases::new(reserves.reservations, reserves.neighbours));
        Self { links, key, images, fetcher, network, leases }
    }

    /// One that fetches nothing, with a key of its own.
    #[cfg(test)]
    pub(crate) fn of_test(network: Option<NetworkConfig>) -> Self {
        let key = Key::draw(&ring::rand::SystemRandom::new()).unwrap();
        let fetcher = Fetcher::new(boot::fetch::Guard::default(), None, boot::fetch::Patience::default()).unwrap();
        Self::new(Links::new("http://192.0.2.5:8082").unwrap(), key, fetcher, network)
    }

    /// Serves the hosts of these dialects until `stop`.
    pub(crate) fn serve(
        self: &Arc<Self>,
        dialects: Vec<Dialect>,
        selection: Selection,
        config: &BootConfig,
        means: Means,
        stop: CancellationToken,
    ) -> Result<impl Future<Output = ()> + Send + 'static, BootError> {
        let listener = config.listener.try_clone().map_err(BootError::Listen)?;
        listener.set_nonblocking(true).map_err(BootError::Listen)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(BootError::Listen)?;
        match listener.local_addr() {
            Ok(address) => info!(%address, tls = config.tls.is_some(), "boot service listening"),
            Err(error) => warn!(%error, "the boot service listens on an unknown address"),
        }
        let (client, namespace) = (selection.client.clone(), &config.key_namespace);
        let deliveries = Arc::new(Deliveries::new(self.clone(), client, namespace, means));
        let service = Service::new(deliveries.clone(), self.key.clone(), self.images.clone());
        let service = service.with_registry(deliveries.clone());
        let service = match &self.network {
            Some(network) => {
                service.with_network(Network::new(self.links.clone(), self.fetcher.clone(), network.files.clone()))
            }
            None => service,
        };
        let service = Arc::new(service);
        let tls = config.tls.clone();
        let namespaces = Sessions::namespaces(selection.namespace.as_deref(), &config.key_namespace, true);
        let namespaces: Vec<_> = namespaces.into_iter().map(|namespace| namespace.map(str::to_owned)).collect();
        let dhcp = self.network.as_ref().and_then(|network| network.dhcp.clone());
        let (serves_network, depot) = (self.serves_network(), self.clone());
        Ok(async move {
            let served = service.serve(listener, tls, Limits::default(), stop.clone());
            let watched = dialects.iter().map(|dialect| dialect.deliver(&deliveries, &selection));
            let told = async {
                if serves_network {
                    deliveries.follow_sessions(namespaces).await;
                }
            };
            let watched = stop.run_until_cancelled(futures::future::join(join_all(watched), told));
            let answered = async {
                let Some(dhcp) = &dhcp else { return };
                let all = dhcp.sockets.iter().map(async |sockets| {
                    let (address, interface) = (sockets.address(), sockets.interface());
                    info!(interface, %address, shares_machine = sockets.shares_machine(), "answering DHCP");
                    if let Err(error) = sockets.serve(dhcp.reserves.is_some(), deliveries.clone(), stop.clone()).await {
                        warn!(interface, %error, "DHCP is not answered");
                    }
                });
                join_all(all).await;
            };
            let loaded = async {
                let Some(network) = &depot.network else { return };
                join_all(network.tftp.iter().map(|sockets| serve_tftp(sockets, &deliveries, &stop))).await;
            };
            let probed = async {
                if let Some(leases) = &depot.leases {
                    stop.run_until_cancelled(leases.probe(deliveries.clock())).await;
                }
            };
            futures::join!(served, watched, answered, loaded, probed);
            deliveries.stop().await;
        })
    }

    /// How BMCs fetch images from us: `http` or `https`.
    pub(crate) fn scheme(&self) -> &str {
        self.links.scheme()
    }

    /// Whether servers are served that boot from the network.
    pub(crate) fn serves_network(&self) -> bool {
        self.network.is_some()
    }

    /// Whether all servers that boot from the network are served, because we answer DHCP.
    pub(crate) fn answers_dhcp(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.dhcp.is_some())
    }

    /// The addresses of hosts, if they get them from us.
    pub(crate) fn leases(&self) -> Option<&Leases> {
        self.leases.as_ref()
    }

    /// Where the BMC finds the image of a shipment, if that can be served at all.
    pub fn image_url(&self, shipment: &Shipment) -> Result<String, Failure> {
        self.order(shipment)?;
        let ticket = self.key.ticket(Purpose::Iso, &shipment.holder);
        self.links.iso(&shipment.holder.deployment, &ticket).map_err(|error| link_failure(&error))
    }

    /// Where the probe of this holder tells what it has found.
    pub(crate) fn registry_url(&self, holder: &Holder) -> Result<String, LinkError> {
        self.links.registry(&holder.deployment, &self.key.ticket(Purpose::Registry, holder))
    }

    /// A secret of this holder, the same in every replica.
    pub(crate) fn secret(&self, what: &str, holder: &Holder) -> [u8; 32] {
        self.key.secret(what, holder)
    }

    /// What is to be served as the image of a shipment.
    fn order(&self, shipment: &Shipment) -> Result<IsoOrder, Failure> {
        let (Cargo::Iso { image, family }, Some(configuration)) = (&shipment.cargo, &shipment.configuration) else {
            return Err(Failure::new(Kind::OrderInvalid, "There is no ISO to serve."));
        };
        let url = match configuration {
            Configuration::At(url) => url.clone(),
            Configuration::In(_) => self.config_url(&shipment.holder)?,
        };
        order_with(image, *family, &url)
    }

    fn config_url(&self, holder: &Holder) -> Result<String, Failure> {
        let ticket = self.key.ticket(Purpose::Config, holder);
        self.links.config(&holder.deployment, &ticket).map_err(|error| link_failure(&error))
    }
}

/// Hands out boot files by TFTP until `stop`.
async fn serve_tftp(sockets: &boot::tftp::Sockets, deliveries: &Arc<Deliveries>, stop: &CancellationToken) {
    let limits = boot::tftp::Limits::default();
    if let Err(error) = boot::tftp::serve(sockets.clone(), deliveries.clone(), limits, stop.clone()).await {
        warn!(%error, "TFTP is not served");
    }
}

fn order_with(image: &str, family: Family, config_url: &str) -> Result<IsoOrder, Failure> {
    let parameters =
        family.parameters(config_url).map_err(|error| Failure::new(Kind::OrderInvalid, format!("{error}.")))?;
    Ok(IsoOrder { url: image.to_owned(), parameters })
}

fn link_failure(error: &LinkError) -> Failure {
    Failure::new(Kind::OrderInvalid, format!("{error}."))
}
