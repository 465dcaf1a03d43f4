//! The service between a web server of the test and clients of the test.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use boot::fetch::{Cache, Fetcher, Guard, Patience};
use boot::links::Links;
use boot::serve::network::Network;
use boot::serve::{
    Boots, Bootstrap, Client, Delivery, Directory, Gate, Images, IsoOrder, Limits, Problem, Service, Step, Unavailable,
    config_gate,
};
use boot::ticket::{Holder, Key, Purpose};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Response};
use jiff::{Timestamp, ToSpan as _};
use testkit::fetch_from;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lab::{ISOLINUX, Lab, parameters};
use crate::upstream::Upstream;

pub(crate) const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// An ISO of some 3 MB, and what it becomes with [`parameters`].
pub(crate) async fn images() -> (Bytes, Bytes) {
    let lab = Lab::new();
    lab.put_isolinux("label live\n  linux /vmlinuz\n  append quiet\n");
    let noise: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(3_000_000).collect();
    let iso = lab.put("vmlinuz", noise).build(&[ISOLINUX]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    (std::fs::read(iso).unwrap().into(), std::fs::read(rewritten.after).unwrap().into())
}

/// Loopback is allowed, and a busy machine may take its time.
pub(crate) fn fetcher() -> Fetcher {
    let long = Duration::from_secs(30);
    waiting(Patience { connect: long, first_byte: long, idle: long })
}

/// For those who wait in vain.
pub(crate) fn impatient() -> Fetcher {
    let short = Duration::from_secs(2);
    waiting(Patience { connect: short, first_byte: short, idle: Duration::from_millis(500) })
}

fn waiting(patience: Patience) -> Fetcher {
    Fetcher::new(Guard::allowing(["127.0.0.0/8".parse().unwrap()]), None, patience).unwrap()
}

pub(crate) fn holder(number: u32) -> Holder {
    Holder {
        kind: String::new(),
        namespace: "default".into(),
        host: format!("host-{number}"),
        claim: format!("claim-{number}"),
        deployment: format!("d{number}"),
    }
}

pub(crate) struct Stage {
    pub(crate) upstream: Upstream,
    pub(crate) registry: Arc<Registry>,
    address: SocketAddr,
    pub(crate) links: Links,
    pub(crate) key: Key,
    _serving: (DropGuard, JoinSet<()>),
}

impl Stage {
    /// Serves this image, and bootstrap data, to hosts 1 and 2.
    pub(crate) async fn new(content: Bytes) -> Self {
        Self::limited(content, Limits::default()).await
    }

    /// The same with these limits.
    pub(crate) async fn limited(content: Bytes, limits: Limits) -> Self {
        Self::with(content, fetcher(), limits).await
    }

    /// The same, and keeps images on disk.
    pub(crate) async fn keeping(content: Bytes, cache: Cache) -> Self {
        Self::with(content, fetcher().with_cache(Arc::new(cache)), Limits::default()).await
    }

    async fn with(content: Bytes, fetcher: Fetcher, limits: Limits) -> Self {
        let upstream = Upstream::start(content).await;
        let registry = Arc::new(Registry::default());
        for number in [1, 2] {
            registry.deploy(number, &upstream.url());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let links = Links::new(&format!("http://{address}")).unwrap();
        let key = Key::from_text(KEY).unwrap();
        let files = BTreeMap::from([("snponly.efi".to_owned(), Bytes::from_static(b"MZ iPXE"))]);
        let network = Network::new(links.clone(), fetcher.clone(), Arc::new(files));
        let service = Service::new(registry.clone(), key.clone(), Arc::new(Images::new(fetcher))).with_network(network);
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(Arc::new(service).serve(listener, None, limits, stop.clone()));
        Self { upstream, registry, address, links, key, _serving: (stop.drop_guard(), serving) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn iso(&self, number: u32) -> String {
        self.links.iso(&format!("d{number}"), &self.key.ticket(Purpose::Iso, &holder(number))).unwrap()
    }

    pub(crate) fn config(&self, number: u32) -> String {
        self.links.config(&format!("d{number}"), &self.key.ticket(Purpose::Config, &holder(number))).unwrap()
    }
}

/// Asks, and waits for all of the answer. An answer that breaks off is none.
pub(crate) async fn ask(method: &str, url: &str, headers: &[(&str, &str)]) -> Option<Response<Bytes>> {
    fetch_from(Ipv4Addr::LOCALHOST, method, url, headers).await
}

/// A directory in memory.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Book>);

struct Book {
    deliveries: HashMap<String, Delivery>,
    first: HashMap<String, (IpAddr, Timestamp)>,
    now: Timestamp,
    secret_is_missing: bool,
    reports: Vec<(String, Problem)>,
    /// By MAC address.
    boots: HashMap<String, Boots>,
    steps: Vec<(String, Step)>,
    bootstrap_format: &'static str,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            deliveries: HashMap::new(),
            first: HashMap::new(),
            now: Timestamp::UNIX_EPOCH,
            secret_is_missing: false,
            reports: Vec::new(),
            boots: HashMap::new(),
            steps: Vec::new(),
            bootstrap_format: "text/cloud-config",
        }
    }
}

impl Registry {
    pub(crate) fn deploy(&self, number: u32, url: &str) {
        let iso = Some(IsoOrder { url: url.to_owned(), parameters: parameters() });
        let delivery = Delivery {
            holder: holder(number),
            iso,
            payload: None,
            configuration: None,
            config: true,
            powered_on: true,
        };
        self.0.lock().unwrap().deliveries.insert(delivery.holder.deployment.clone(), delivery);
    }

    pub(crate) fn change(&self, number: u32, change: impl FnOnce(&mut Delivery)) {
        change(self.0.lock().unwrap().deliveries.get_mut(&format!("d{number}")).unwrap());
    }

    pub(crate) fn release(&self, number: u32) {
        self.0.lock().unwrap().deliveries.remove(&format!("d{number}")).unwrap();
    }

    pub(crate) fn advance(&self, seconds: i64) {
        let mut book = self.0.lock().unwrap();
        book.now += seconds.seconds();
    }

    /// What the server with this MAC address boots from the network.
    pub(crate) fn boot(&self, mac: &str, boots: Boots) {
        let mut book = self.0.lock().unwrap();
        if let Boots::Payload(delivery) = &boots {
            book.deliveries.insert(delivery.holder.deployment.clone(), delivery.as_ref().clone());
        }
        book.boots.insert(mac.to_owned(), boots);
    }

    pub(crate) fn is_ignition(&self) {
        self.0.lock().unwrap().bootstrap_format = "application/vnd.coreos.ignition+json";
    }

    /// `(deployment, step)` of all steps so far.
    pub(crate) fn steps(&self) -> Vec<(String, Step)> {
        self.0.lock().unwrap().steps.clone()
    }

    pub(crate) fn lose_secret(&self, missing: bool) {
        self.0.lock().unwrap().secret_is_missing = missing;
    }

    /// `(deployment, reason)` of all reports so far.
    pub(crate) fn reported(&self) -> Vec<(String, &'static str)> {
        let book = self.0.lock().unwrap();
        book.reports.iter().map(|(deployment, problem)| (deployment.clone(), problem.reason())).collect()
    }
}

impl Directory for Registry {
    fn delivery(&self, deployment: &str) -> Option<Delivery> {
        self.0.lock().unwrap().deliveries.get(deployment).cloned()
    }

    fn bootstrap<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<Bootstrap, Unavailable>> {
        async {
            if self.0.lock().unwrap().secret_is_missing {
                return Err(Unavailable { why: "there is no Secret".into() });
            }
            let bytes = format!("#cloud-config\nhost: {}\n", delivery.holder.host).into();
            let content_type = HeaderValue::from_static(self.0.lock().unwrap().bootstrap_format);
            Ok(Bootstrap { bytes, content_type })
        }
        .boxed()
    }

    fn first_seen<'a>(&'a self, delivery: &'a Delivery, from: IpAddr) -> BoxFuture<'a, Result<Gate, Unavailable>> {
        async move {
            let mut book = self.0.lock().unwrap();
            let (deployment, now) = (&delivery.holder.deployment, book.now);
            let gate = config_gate(delivery.powered_on, book.first.get(deployment).copied(), from, now);
            if gate == Gate::First {
                book.first.insert(deployment.clone(), (from, now));
            }
            Ok(gate)
        }
        .boxed()
    }

    fn boots(&self, client: &Client) -> Boots {
        let book = self.0.lock().unwrap();
        book.boots.get(&client.mac).cloned().unwrap_or_else(|| Boots::Nothing("Nobody knows this server.".into()))
    }

    fn note(&self, delivery: &Delivery, step: Step, _: IpAddr) {
        self.0.lock().unwrap().steps.push((delivery.holder.deployment.clone(), step));
    }

    fn report(&self, delivery: &Delivery, problem: &Problem) {
        self.0.lock().unwrap().reports.push((delivery.holder.deployment.clone(), problem.clone()));
    }
}

/// Where a listener of nobody is.
pub(crate) async fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
