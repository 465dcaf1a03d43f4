//! What servers are handed while they are being provisioned: a boot image with a kernel parameter in it, bootstrap data.
//!
//! Every replica serves ([`Deliveries`], from a watch of the hosts that are to be served); what happens there it writes into a
//! [`BootSession`](api::boot::BootSession) of each deployment, which the leader reads ([`Sessions`]). Only the leader makes URLs.

mod deliveries;
mod image_check;
mod inbox;
mod key;
mod sessions;

use std::net::TcpListener;
use std::sync::Arc;

use boot::fetch::Fetcher;
use boot::links::{LinkError, Links};
use boot::os::Family;
use boot::serve::{Images, IsoOrder, Limits, Service};
use boot::ticket::{Holder, Key, Purpose};
use engine::failure::{Failure, Kind};
use futures::future::join_all;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::dialects::Dialect;
use crate::watches::Selection;

pub use self::deliveries::{Boots, Probed};
pub(crate) use self::deliveries::{Deliveries, Means};
pub(crate) use self::image_check::{ImageCheck, ImageWords, Question};
pub use self::key::KeyError;
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
    /// Namespace of the Secret that tickets are made with.
    pub key_namespace: String,
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
    /// Where the user's image is.
    pub image: String,
    /// The system on it.
    pub family: Family,
    /// Where that finds its configuration.
    pub configuration: Configuration,
    /// Whether the server was powered on for it.
    pub powered_on: bool,
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
        let images = Arc::new(Images::new(config.fetcher.clone()));
        Ok(Some(Arc::new(Self { links: config.links.clone(), key: key?, images })))
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
        let service = Arc::new(service.with_registry(deliveries.clone()));
        let tls = config.tls.clone();
        Ok(async move {
            let served = service.serve(listener, tls, Limits::default(), stop.clone());
            let watched = dialects.iter().map(|dialect| dialect.deliver(&deliveries, &selection));
            let watched = stop.run_until_cancelled(join_all(watched));
            futures::join!(served, watched);
            deliveries.stop().await;
        })
    }

    /// How BMCs fetch images from us: `http` or `https`.
    pub(crate) fn scheme(&self) -> &str {
        self.links.scheme()
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
        let url = match &shipment.configuration {
            Configuration::At(url) => url.clone(),
            Configuration::In(_) => self.config_url(&shipment.holder)?,
        };
        order_with(&shipment.image, shipment.family, &url)
    }

    fn config_url(&self, holder: &Holder) -> Result<String, Failure> {
        let ticket = self.key.ticket(Purpose::Config, holder);
        self.links.config(&holder.deployment, &ticket).map_err(|error| link_failure(&error))
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
