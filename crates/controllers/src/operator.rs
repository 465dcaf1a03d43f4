//! The operator: watches, loops and hands, all under one lease.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::brake::{Brake, BrakeConfig};
use crate::clock::Clock;
use crate::depot::{BootConfig, BootError, Depot, Means, Sessions};
use crate::dialect::Settings;
use crate::dialects::Dialect;
use crate::hands::{Dial, Hands};
use crate::herald::Herald;
use crate::index::Index;
use crate::leader::{Elector, LeaderError, Outcome, Timing};
use crate::marks::Mark;
use crate::metrics::Metrics;
use crate::object::{self, KindId};
use crate::probes::{self, ProbeError, Readiness};
use crate::relatives::{self, Dependents, Relative, Setting};
use crate::watches::{Selection, Wakeups};
use crate::wiring::{Shared, Wiring};

/// Shutdown grace period for active downloads.
const FAREWELL: Duration = Duration::from_secs(8);

/// How an operator runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Whose resources it looks after.
    pub dialects: Vec<Dialect>,
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
    /// Whether machines belong to Cluster API. Said by whoever starts us and never guessed: a discovery that fails must
    /// not make paused machines act.
    pub cluster_api: bool,
    /// What hands images and bootstrap data to servers; `None` if nothing does.
    pub boot: Option<BootConfig>,
    /// What is said of single dialects.
    pub settings: Arc<Settings>,
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
    /// The boot service cannot run.
    #[error(transparent)]
    Boot(#[from] BootError),
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
        let stop = shutdown.child_token();
        if let Some(address) = self.config.metrics_address {
            servers.spawn(probes::serve_metrics(address, self.metrics.clone(), stop.clone()).await?);
        }
        if let Some(address) = self.config.probe_address {
            servers.spawn(probes::serve_probes(address, readiness.clone(), stop.clone()).await?);
        }
        let depot = match &self.config.boot {
            Some(boot) => {
                let Some(depot) = Depot::open(&self.client, boot, &shutdown).await? else { return Ok(()) };
                let means = Means {
                    clock: self.clock.clone(),
                    metrics: self.metrics.clone(),
                    settings: self.config.settings.clone(),
                };
                servers.spawn(depot.serve(self.dialects(), self.selection(), boot, means, stop.clone())?);
                Some(depot)
            }
            None => None,
        };
        let worked = self.lead(depot, &readiness, &shutdown).await;
        stop.cancel();
        let ended = async { while servers.join_next().await.is_some() {} };
        tokio::time::timeout(FAREWELL, ended).await.ok();
        worked
    }

    /// Works while it leads, or all the time if nobody else could.
    async fn lead(
        &self,
        depot: Option<Arc<Depot>>,
        readiness: &Readiness,
        shutdown: &CancellationToken,
    ) -> Result<(), Error> {
        let Some(election) = self.config.election.clone() else {
            Box::pin(self.work(shutdown.clone(), readiness, depot)).await;
            return Ok(());
        };
        let Election { namespace, lease, identity, timing } = election;
        let elector = Elector::new(self.client.clone(), &namespace, &lease, &identity, timing, self.clock.clone())?;
        self.metrics.follow_leadership(elector.leading());
        // A standby is ready too: ready to take over.
        readiness.set(true);
        while !shutdown.is_cancelled() {
            match elector.lead(shutdown.clone(), |term| self.work(term, readiness, depot.clone())).await? {
                Outcome::Lost { loss, .. } => warn!("{loss}; rejoining the leader election"),
                Outcome::Done(()) | Outcome::NeverLed => {}
            }
        }
        Ok(())
    }

    /// The work of a leader. Nothing is done to the objects of a dialect as long as the API server does not keep what is stored in
    /// its hosts.
    async fn work(&self, term: CancellationToken, readiness: &Readiness, depot: Option<Arc<Depot>>) {
        let (wake, wakeups) = Wakeups::new();
        let index = Arc::new(Index::default());
        let dependents = Arc::<Dependents>::default();
        let setting = Setting {
            client: self.client.clone(),
            namespace: self.config.namespace.clone(),
            dependents: dependents.clone(),
            wake: wake.clone(),
            labels: self.dialects().into_iter().filter_map(Dialect::mark).flat_map(Mark::labels).collect(),
        };
        let declared = self.dialects().into_iter().flat_map(Dialect::relatives);
        let declared = [Relative::with_credentials::<Secret>()].into_iter().chain(declared);
        let (related, vault, follow_relatives) = relatives::open(&setting, declared);
        let mut helpers = JoinSet::new();
        helpers.spawn(follow_relatives);
        let hands = Hands::new(
            self.dial.clone(),
            Arc::new(self.metrics.clone()),
            self.metrics.clone(),
            self.clock.clone(),
            self.config.bmcs_at_once,
            wake.clone(),
            &term,
        );
        let brake = Arc::new(Brake::new(self.config.brake.clone()));
        self.metrics.follow_brake(brake.clone());
        if let Some(leases) = depot.as_ref().and_then(|depot| depot.leases()) {
            leases.wake_by(wake.clone());
        }
        let shared = Shared {
            index,
            vault,
            dependents,
            related,
            hands,
            brake,
            herald: Arc::new(Herald::new(self.client.clone())),
            nodes: Arc::default(),
            cluster_api: self.config.cluster_api.then(Arc::default),
            depot,
            sessions: Arc::default(),
            wake,
        };
        let mut wiring = Wiring::new(self, &shared, wakeups);
        self.dialects().into_iter().for_each(|dialect| dialect.wire(&mut wiring));
        let (fitness, has_cluster_api) = (wiring.fitness.clone(), wiring.has_cluster_api);
        let has_hosts_of_the_cluster = wiring.has_hosts_of_the_cluster;
        let (loops, wakeups) = wiring.into_loops();
        if term.run_until_cancelled(shared.vault.is_complete(&[KindId::of::<Secret>()])).await.is_some() {
            let tell_ready = async {
                let mut fit: FuturesUnordered<_> = fitness.iter().map(|fitness| fitness.becomes(true)).collect();
                if fit.next().await.is_some() {
                    readiness.set(true);
                }
            };
            let follow_cluster_api = async {
                if let Some(cluster_api) = shared.cluster_api.as_ref().filter(|_| has_cluster_api) {
                    cluster_api.follow(&self.client, self.config.namespace.as_deref(), &shared.wake).await;
                }
            };
            let follow_sessions = async {
                let Some(boot) = &self.config.boot else { return };
                let ours = self.config.namespace.as_deref();
                let namespaces = Sessions::namespaces(ours, &boot.key_namespace, has_hosts_of_the_cluster).into_iter();
                let sessions = namespaces.map(|namespace| object::api(&self.client, namespace));
                join_all(sessions.map(|sessions| shared.sessions.follow(sessions, &shared.wake))).await;
            };
            let work = async {
                futures::join!(
                    wakeups.run(),
                    join_all(loops),
                    tell_ready,
                    shared.nodes.run(&self.client),
                    follow_cluster_api,
                    follow_sessions,
                )
            };
            term.run_until_cancelled(Box::pin(work)).await;
        }
        shared.hands.stop().await;
        shared.herald.stop().await;
    }

    /// Each once, however often it was named.
    fn dialects(&self) -> Vec<Dialect> {
        let mut dialects = self.config.dialects.clone();
        dialects.sort_unstable();
        dialects.dedup();
        dialects
    }

    pub(crate) fn selection(&self) -> Selection {
        let Config { namespace, watch_filter, .. } = &self.config;
        Selection { client: self.client.clone(), namespace: namespace.clone(), filter: watch_filter.clone() }
    }
}

#[cfg(test)]
mod gone_tests;
