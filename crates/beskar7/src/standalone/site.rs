//! An API server of our own in this process, with our CRDs in it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use apiserver::auth::StaticTokens;
use apiserver::clock::Clock;
use apiserver::server::{Config, Server};
use apiserver::store::{OpenError, Options, Store};
use apiserver::tls::{Pki, server_url};
use controllers::api_client;
use controllers::clock::{Clock as _, SystemClock};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Client, ResourceExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::dialects::HostKind;
use crate::human;

/// Our CRDs are established in milliseconds; what takes longer will not happen.
const ESTABLISHED_WITHIN: Duration = Duration::from_secs(20);
const MANAGER: &str = "beskar7";
/// The name of the cluster, user and context in the kubeconfig.
const NAME: &str = "beskar7";

/// An API server in this process.
pub(crate) struct Site {
    server: Arc<Server>,
    /// The way there, without a socket; with the rights of an admin.
    pub(crate) client: Client,
    outside: Option<Outside>,
}

/// What others reach it by.
struct Outside {
    url: String,
    kubeconfig: PathBuf,
}

/// Everything in the store is read once before anybody is served: a list that leaves out what cannot be read would look as if it were
/// gone, and one that fails would blind the operator for a whole kind. That takes time, in which other things can be done.
#[must_use = "nobody may be served before it has passed"]
pub(crate) struct Check {
    unreadable: JoinHandle<Vec<String>>,
    folder: PathBuf,
}

impl Check {
    fn begin(store: Store, folder: &Path) -> Self {
        Self { unreadable: tokio::task::spawn_blocking(move || store.unreadable()), folder: folder.to_owned() }
    }

    /// Waits until everything was read. An error if something could not be.
    pub(crate) async fn passes(self) -> anyhow::Result<()> {
        let unreadable = self.unreadable.await.context("the store cannot be checked")?;
        if unreadable.is_empty() {
            return Ok(());
        }
        let (count, list) = (human::counted(unreadable.len(), "object"), unreadable.join("; "));
        let (folder, advice) = (self.folder.display(), advice(&self.folder));
        bail!("the store in {folder} is damaged: {count} cannot be read: {list}; {advice}");
    }
}

impl Site {
    /// Opens the folder of a site, or makes it, with a kubeconfig for clients that reach it at `address`.
    pub(crate) async fn open(folder: &Path, address: SocketAddr, names: &[String]) -> anyhow::Result<(Self, Check)> {
        let clock = clock();
        let store = Store::open(&folder.join("store"), Options::default()).map_err(|error| advise(error, folder))?;
        let check = Check::begin(store.clone(), folder);
        let mut all_names = names.to_vec();
        if !address.ip().is_unspecified() {
            all_names.push(address.ip().to_string());
        }
        let pki = Pki::open_or_create(&folder.join("pki"), &clock, &all_names)?;
        let (url, kubeconfig) = (server_url(address), folder.join("kubeconfig"));
        pki.write_kubeconfig(&kubeconfig, NAME, &url)?;
        match start(store, clock, Some(pki)).await {
            Ok(server) => Ok((Self::of(server, Some(Outside { url, kubeconfig })), check)),
            // Damage explains it better.
            Err(error) => check.passes().await.and(Err(error)),
        }
    }

    /// A site that is forgotten when it ends, and that nobody reaches from outside.
    pub(crate) async fn in_memory() -> anyhow::Result<Self> {
        Ok(Self::of(start(Store::memory(), clock(), None).await?, None))
    }

    fn of(server: Server, outside: Option<Outside>) -> Self {
        let client = api_client::bounded(Client::new(server.router(), "default"));
        Self { server: Arc::new(server), client, outside }
    }

    /// Where clients reach it; empty if they cannot.
    pub(crate) fn url(&self) -> &str {
        self.outside.as_ref().map_or("", |outside| &outside.url)
    }

    /// The admin's kubeconfig; empty if nobody reaches it from outside.
    pub(crate) fn kubeconfig(&self) -> &Path {
        self.outside.as_ref().map_or(Path::new(""), |outside| &outside.kubeconfig)
    }

    /// Teaches the API server our kinds, in the words of this version of the binary.
    pub(crate) async fn install_crds(&self, kinds: &[&'static dyn HostKind]) -> anyhow::Result<()> {
        for definition in kinds.iter().flat_map(|kind| kind.definitions()).chain(api::crd::shared_crds()) {
            self.install(definition).await?;
        }
        Ok(())
    }

    /// Teaches the API server a kind.
    pub(crate) async fn install(&self, definition: CustomResourceDefinition) -> anyhow::Result<()> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let params = PatchParams::apply(MANAGER).force();
        let name = definition.name_any();
        let failed = || format!("cannot install the CRD {name}");
        definitions.patch(&name, &params, &Patch::Apply(&definition)).await.with_context(failed)?;
        let established = await_condition(definitions, &name, conditions::is_crd_established());
        tokio::time::timeout(ESTABLISHED_WITHIN, established).await.with_context(failed)?.with_context(failed)?;
        Ok(())
    }

    /// Answers clients from outside until the site stops.
    pub(crate) fn serve(&self, listener: TcpListener) -> impl Future<Output = anyhow::Result<()>> + Send + use<> {
        let server = self.server.clone();
        async move { server.serve(listener).await.context("the API server cannot be served") }
    }

    /// Ends everything in good order.
    pub(crate) async fn stop(&self) {
        self.server.stop().await;
    }
}

/// What to do about a store that is damaged.
fn advise(error: OpenError, folder: &Path) -> anyhow::Error {
    match error {
        OpenError::Damaged { .. } => anyhow::anyhow!("{error}; {}", advice(folder)),
        other => other.into(),
    }
}

fn advice(folder: &Path) -> String {
    format!(
        "restore the folder from a backup, or keep what can be read with: beskar7 standalone --data {} --repair-store",
        folder.display()
    )
}

async fn start(store: Store, clock: Clock, pki: Option<Pki>) -> anyhow::Result<Server> {
    let config = Config {
        store,
        clock,
        seed: fastrand::u64(..),
        pki,
        tokens: StaticTokens::default(),
        build: format!("beskar7.{}", env!("CARGO_PKG_VERSION")),
    };
    Ok(Server::start(config).await?)
}

fn clock() -> Clock {
    Clock::new(|| SystemClock.now())
}
