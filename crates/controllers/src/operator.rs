//! The operator: watches, loops and hands, all under one lease.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::controller::{self, Controller};
use kube::runtime::events::Reporter;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::beskar7::PhysicalHosts;
use crate::brake::{Brake, BrakeConfig};
use crate::clock::Clock;
use crate::dialect::{HostDialect, HostKey};
use crate::hands::{Dial, Hands};
use crate::host::HostLoop;
use crate::index::Index;
use crate::leader::{Elector, LeaderError, Outcome, Timing};
use crate::metrics::Metrics;
use crate::probes::{self, ProbeError, Readiness};
use crate::vault::Vault;

/// How many hosts are decided on at once. Deciding takes milliseconds, most of them in writes to the API server.
const RECONCILES_AT_ONCE: u16 = 12;

/// How an operator runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Only hosts of this namespace; `None` for all.
    pub namespace: Option<String>,
    /// Only hosts whose watch-filter label has this value.
    pub watch_filter: Option<String>,
    /// Where to take part in the election; `None` to run without one.
    pub election: Option<Election>,
    /// Where to serve metrics; `None` for nowhere.
    pub metrics_address: Option<SocketAddr>,
    /// Where to serve health and readiness; `None` for nowhere.
    pub probe_address: Option<SocketAddr>,
    /// The fleet brake.
    pub brake: BrakeConfig,
    /// How many BMCs are spoken to at once.
    pub bmcs_at_once: usize,
}

/// The election that an operator takes part in.
#[derive(Debug, Clone)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub lease: String,
    /// Differs between any two processes.
    pub identity: String,
    /// How long a lease lasts.
    pub timing: Timing,
}

/// Why an operator could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The election cannot be taken part in.
    #[error(transparent)]
    Election(#[from] LeaderError),
    /// The probes cannot be served.
    #[error(transparent)]
    Probes(#[from] ProbeError),
}

/// An operator with everything that it is handed from outside.
pub struct Operator {
    /// The way to the API server.
    pub client: Client,
    /// How to run.
    pub config: Config,
    /// The way to BMCs.
    pub dial: Dial,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What is counted.
    pub metrics: Metrics,
}

impl Operator {
    /// Runs until `shutdown`. A lost lease ends everything that is under way, and we stand for election again.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let readiness = Readiness::default();
        let mut servers = JoinSet::new();
        if let Some(address) = self.config.metrics_address {
            servers.spawn(probes::serve_metrics(address, self.metrics.clone(), shutdown.clone()).await?);
        }
        if let Some(address) = self.config.probe_address {
            servers.spawn(probes::serve_probes(address, readiness.clone(), shutdown.clone()).await?);
        }
        let Some(election) = self.config.election.clone() else {
            self.work(shutdown.clone(), &readiness).await;
            return Ok(());
        };
        let Election { namespace, lease, identity, timing } = election;
        let elector = Elector::new(self.client.clone(), &namespace, &lease, &identity, timing, self.clock.clone())?;
        self.metrics.follow_leadership(elector.leading());
        // A standby is ready too: ready to take over.
        readiness.set(true);
        while !shutdown.is_cancelled() {
            match elector.lead(shutdown.clone(), |term| self.work(term, &readiness)).await? {
                Outcome::Lost { loss, .. } => warn!("{loss}; standing for election again"),
                Outcome::Done(()) | Outcome::NeverLed => {}
            }
        }
        Ok(())
    }

    /// The work of a leader.
    async fn work(&self, term: CancellationToken, readiness: &Readiness) {
        let secrets = self.api_of_secrets();
        let (wake, woken) = mpsc::unbounded_channel();
        let index = Arc::new(Index::default());
        let (known_secrets, writer) = reflector::store();
        let mut helpers = JoinSet::new();
        let vault = Vault::new(self.client.clone(), known_secrets.clone());
        helpers.spawn(watch_secrets(secrets, writer, index.clone(), vault.clone(), wake.clone()));
        let hands = Hands::new(
            self.dial.clone(),
            Arc::new(self.metrics.clone()),
            self.metrics.clone(),
            self.clock.clone(),
            self.config.bmcs_at_once,
            wake,
            &term,
        );
        let brake = Arc::new(Brake::new(self.config.brake.clone()));
        self.metrics.follow_brake(brake.clone());
        let reporter = Reporter { controller: "beskar7".into(), instance: None };
        let hosts = Arc::new(HostLoop::<PhysicalHosts> {
            client: self.client.clone(),
            index,
            vault,
            hands: hands.clone(),
            brake,
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            reporter,
            tasks: TaskTracker::new(),
            written: std::sync::Mutex::default(),
        });
        let synced = wait_for_store(&known_secrets);
        if term.run_until_cancelled(synced).await.is_some() {
            info!("watching PhysicalHosts");
            readiness.set(true);
            term.run_until_cancelled(self.drive(hosts.clone(), woken)).await;
        }
        hands.stop().await;
        hosts.tasks.close();
        // Events that are on their way may arrive; nothing depends on them.
        tokio::time::timeout(Duration::from_secs(1), hosts.tasks.wait()).await.ok();
    }

    async fn drive<D: HostDialect>(&self, hosts: Arc<HostLoop<D>>, woken: mpsc::UnboundedReceiver<HostKey>) {
        let (store, writer) = reflector::store();
        let (index, bystander) = (hosts.index.clone(), hosts.clone());
        let stream = watcher(self.api::<D>(), self.watch_config())
            .backoff(pauses())
            .try_filter_map(|event| std::future::ready(Ok(readable(event))))
            .modify(|host| drop_ballast(host.meta_mut()))
            .inspect_ok(move |event| follow::<D>(&index, &bystander, event))
            .reflect(writer)
            .applied_objects()
            // Handed on, an interruption would hold up everything that wakes a host, not only the watch.
            .filter_map(|event| std::future::ready(uninterrupted(event, D::NAME).map(Ok)));
        self.metrics.follow_hosts(D::NAME, host_counter::<D>(store.clone()));
        let woken = tokio_stream(woken).map(|key| ObjectRef::new(&key.name).within(&key.namespace));
        Controller::for_stream(stream, store)
            .with_config(controller::Config::default().concurrency(RECONCILES_AT_ONCE))
            .reconcile_on(woken)
            .run(|host, hosts: Arc<HostLoop<D>>| hosts.reconcile(host), HostLoop::<D>::after_error, hosts)
            .for_each(|_| std::future::ready(()))
            .await;
    }

    fn watch_config(&self) -> watcher::Config {
        let config = watcher::Config::default();
        match &self.config.watch_filter {
            Some(filter) => config.labels(&format!("{}={filter}", api::capi::WATCH_FILTER_LABEL)),
            None => config,
        }
    }

    fn api<D: HostDialect>(&self) -> Api<DeserializeGuard<D::Host>> {
        match &self.config.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn api_of_secrets(&self) -> Api<PartialObjectMeta<Secret>> {
        match &self.config.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

/// What is of no use to us is not kept in memory, a thousand times.
fn drop_ballast(metadata: &mut ObjectMeta) {
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

/// One object that cannot be read must not hide all others.
fn readable<H: std::fmt::Debug>(event: Event<DeserializeGuard<H>>) -> Option<Event<H>> {
    let read = |object: DeserializeGuard<H>| {
        object.0.inspect_err(|object| warn!(name = object.metadata.name, error = %object.error, "object cannot be read and is left alone")).ok()
    };
    Some(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(read(object)?),
        Event::Apply(object) => Event::Apply(read(object)?),
        Event::Delete(object) => Event::Delete(read(object)?),
    })
}

/// Keeps the index true, and lets go of what is gone.
fn follow<D: HostDialect>(index: &Index, hosts: &HostLoop<D>, event: &Event<D::Host>) {
    match event {
        Event::Init => index.begin_list(),
        Event::InitApply(host) | Event::Apply(host) => index.put::<D>(host),
        Event::InitDone => index.end_list().iter().for_each(|key| hosts.forget(key)),
        Event::Delete(host) => {
            let key = HostKey::of(host);
            index.remove(&key);
            hosts.forget(&key);
        }
    }
}

/// Watches Secrets as metadata, and wakes the hosts that depend on one that changed.
async fn watch_secrets(
    secrets: Api<PartialObjectMeta<Secret>>,
    writer: reflector::store::Writer<PartialObjectMeta<Secret>>,
    index: Arc<Index>,
    vault: Vault,
    wake: mpsc::UnboundedSender<HostKey>,
) {
    let stream = watcher(secrets, watcher::Config::default())
        .backoff(pauses())
        .modify(|secret| {
            secret.metadata.managed_fields = None;
            secret.metadata.annotations = None;
            secret.metadata.labels = None;
        })
        .reflect(writer)
        .touched_objects()
        .filter_map(|event| std::future::ready(uninterrupted(event, "Secrets")));
    futures::pin_mut!(stream);
    while let Some(secret) = stream.next().await {
        let (namespace, name) = (secret.namespace().unwrap_or_default(), secret.name_any());
        let dependents = index.dependents(&namespace, &name);
        if dependents.is_empty() || !vault.is_news(&namespace, &name, &secret.metadata).await {
            continue;
        }
        for key in dependents {
            // Nobody listens any more only when the loop has stopped.
            wake.send(key).ok();
        }
    }
}

/// What a watch shows. That it was interrupted is only worth a line in the log: it is taken up again.
fn uninterrupted<T>(event: Result<T, watcher::Error>, of: &str) -> Option<T> {
    event.inspect_err(|error| warn!(%error, of, "the watch was interrupted; it is taken up again")).ok()
}

/// Pauses before an interrupted watch is taken up again. We are one client with two watches: nobody is helped when we stay
/// deaf for a minute after the API server came back, as kube's own default does.
fn pauses() -> ResetTimerBackoff<Pauses> {
    ResetTimerBackoff::new(Pauses(SHORTEST_PAUSE), 4 * LONGEST_PAUSE)
}

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

struct Pauses(Duration);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.0.mul_f64(0.5 + 0.5 * fastrand::f64());
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = SHORTEST_PAUSE;
    }
}

async fn wait_for_store(store: &Store<PartialObjectMeta<Secret>>) {
    // Fails only when the writer is gone, and then the loop ends by itself.
    store.wait_until_ready().await.ok();
}

/// Counts hosts by namespace and phase, from the watch's own store: it cannot drift.
fn host_counter<D: HostDialect>(
    store: Store<D::Host>,
) -> impl Fn() -> Vec<(String, &'static str)> + Send + Sync + 'static {
    move || {
        let hosts = store.state();
        hosts
            .iter()
            .map(|host| {
                let phase = D::record(host).map_or("Registering", |record| record.phase.as_str());
                (host.namespace().unwrap_or_default(), phase)
            })
            .collect()
    }
}

fn tokio_stream<T: Send + 'static>(
    mut receiver: mpsc::UnboundedReceiver<T>,
) -> impl futures::Stream<Item = T> + Send + 'static {
    futures::stream::poll_fn(move |context| receiver.poll_recv(context))
}
