//! The operator: watches, loops and hands, all under one lease.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, Stream};
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::beskar7;
use crate::brake::{Brake, BrakeConfig};
use crate::claims::{ClaimDialect, ClaimLoop};
use crate::clock::Clock;
use crate::cluster_api::ClusterApi;
use crate::clusters::{ClusterDialect, ClusterLoop};
use crate::companions::Companions;
use crate::definition::Definition;
use crate::depot::{BootConfig, BootError, Depot, ImageCheck, Sessions};
use crate::dialect::HostDialect as _;
use crate::drive::{Loop, drive};
use crate::hands::{Dial, Hands};
use crate::herald::Herald;
use crate::host::HostLoop;
use crate::index::Index;
use crate::leader::{Elector, LeaderError, Outcome, Timing};
use crate::metrics::Metrics;
use crate::nodes::Nodes;
use crate::object::{self, Object, ObjectId, Reach};
use crate::probes::{self, ProbeError, Readiness};
use crate::relatives::{self, Dependents, Related, Relative, Setting};
use crate::roster::Roster;
use crate::vault::Vault;
use crate::watches::Wakeups;
use crate::writer::{Ownership, Writer};

/// Shutdown grace period for active downloads.
const FAREWELL: Duration = Duration::from_secs(8);

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
    /// Whether machines belong to Cluster API. Said by whoever starts us and never guessed: a discovery that fails must
    /// not make paused machines act.
    pub cluster_api: bool,
    /// What hands images and bootstrap data to servers; `None` if nothing does.
    pub boot: Option<BootConfig>,
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

/// What the loops of all dialects share: one server has one BMC, whoever names it.
struct Shared {
    index: Arc<Index>,
    vault: Vault,
    dependents: Arc<Dependents>,
    related: Related,
    hands: Arc<Hands>,
    brake: Arc<Brake>,
    herald: Arc<Herald>,
    nodes: Arc<Nodes>,
    cluster_api: Option<Arc<ClusterApi>>,
    depot: Option<Arc<Depot>>,
    sessions: Arc<Sessions>,
    wake: mpsc::UnboundedSender<ObjectId>,
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
                let (client, hosts) = (self.client.clone(), self.api());
                let (watch, clock) = (self.watch_config(), self.clock.clone());
                servers.spawn(depot.serve::<beskar7::Hosts>(client, hosts, watch, boot, clock, stop.clone())?);
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
            Box::pin(self.work_while_fit(shutdown.clone(), readiness, depot)).await;
            return Ok(());
        };
        let Election { namespace, lease, identity, timing } = election;
        let elector = Elector::new(self.client.clone(), &namespace, &lease, &identity, timing, self.clock.clone())?;
        self.metrics.follow_leadership(elector.leading());
        // A standby is ready too: ready to take over.
        readiness.set(true);
        while !shutdown.is_cancelled() {
            match elector.lead(shutdown.clone(), |term| self.work_while_fit(term, readiness, depot.clone())).await? {
                Outcome::Lost { loss, .. } => warn!("{loss}; rejoining the leader election"),
                Outcome::Done(()) | Outcome::NeverLed => {}
            }
        }
        Ok(())
    }

    /// Works as long as the API server keeps what is stored in the hosts. Before that, and when it does not any more, nothing is
    /// done, to no server and no object.
    async fn work_while_fit(&self, term: CancellationToken, readiness: &Readiness, depot: Option<Arc<Depot>>) {
        let herald = Herald::new(self.client.clone());
        let mut definition = Definition::new(&self.client, &herald);
        while term.run_until_cancelled(definition.is_fit::<beskar7::Hosts>(self.api())).await.is_some() {
            let shift = term.child_token();
            let mut work = std::pin::pin!(self.work(shift.clone(), readiness, depot.clone()));
            tokio::select! {
                () = &mut work => break,
                () = definition.is_unfit::<beskar7::Hosts>() => {}
            }
            shift.cancel();
            work.await;
        }
        herald.stop().await;
    }

    /// The work of a leader.
    async fn work(&self, term: CancellationToken, readiness: &Readiness, depot: Option<Arc<Depot>>) {
        let (wake, mut wakeups) = Wakeups::new();
        let index = Arc::new(Index::default());
        let dependents = Arc::<Dependents>::default();
        let setting = Setting {
            client: self.client.clone(),
            namespace: self.config.namespace.clone(),
            dependents: dependents.clone(),
            wake: wake.clone(),
        };
        let declared = [Relative::with_credentials::<Secret>()].into_iter().chain(beskar7::Hosts::relatives());
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
        let dialects = [self.dialect::<beskar7::Claims, beskar7::Clusters>(&shared, &mut wakeups)];
        let is_listed = async { futures::join!(shared.vault.is_complete(), shared.related.is_complete()) };
        if term.run_until_cancelled(is_listed).await.is_some() {
            readiness.set(true);
            let follow_cluster_api = async {
                if let Some(cluster_api) = &shared.cluster_api {
                    cluster_api.follow(&self.client, self.config.namespace.as_deref(), &shared.wake).await;
                }
            };
            let follow_sessions = async {
                if shared.depot.is_some() {
                    shared.sessions.follow(self.api(), &shared.wake).await;
                }
            };
            let work = async {
                futures::join!(
                    wakeups.run(),
                    join_all(dialects),
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

    /// Everything of one dialect: its hosts, its claims on them, and its clusters.
    fn dialect<C: ClaimDialect, K: ClusterDialect>(&self, shared: &Shared, wakeups: &mut Wakeups) -> BoxFuture<'_, ()> {
        let (woken_hosts, woken_claims, woken_clusters) = (wakeups.of(), wakeups.of(), wakeups.of());
        let (roster, wake) = (Arc::new(Roster::default()), shared.wake.clone());
        let hosts = Arc::new(HostLoop::<C::Hosts> {
            client: self.client.clone(),
            index: shared.index.clone(),
            dependents: shared.dependents.clone(),
            related: shared.related.clone(),
            companions: self.companions(C::Hosts::NAME, C::Hosts::OURS),
            vault: shared.vault.clone(),
            hands: shared.hands.clone(),
            brake: shared.brake.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            herald: shared.herald.clone(),
            writer: self.writer(C::Hosts::NAME, C::Hosts::OURS),
            roster: roster.clone(),
            cluster_api: self.config.cluster_api,
            depot: shared.depot.clone(),
            sessions: shared.sessions.clone(),
        });
        let claims = Arc::new(ClaimLoop::<C> {
            client: self.client.clone(),
            roster: roster.clone(),
            placer: Arc::default(),
            nodes: shared.nodes.clone(),
            cluster_api: shared.cluster_api.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            writer: self.writer(C::NAME, C::OURS),
            herald: shared.herald.clone(),
            image_check: shared.depot.clone().map(|depot| ImageCheck::new(depot, wake.clone())),
            vault: shared.vault.clone(),
        });
        let clusters = Arc::new(ClusterLoop::<K> {
            roster: roster.clone(),
            cluster_api: shared.cluster_api.clone(),
            clock: self.clock.clone(),
            writer: self.writer(K::NAME, K::OURS),
        });
        let placer = claims.placer.clone();
        let all = async move {
            info!(dialect = C::Hosts::NAME, "watching hosts");
            let claims_and_clusters = async {
                roster.is_complete().await;
                futures::join!(self.drive(claims, woken_claims), self.drive(clusters, woken_clusters));
            };
            futures::join!(
                self.drive(hosts, woken_hosts),
                claims_and_clusters,
                placer.run::<C::Hosts>(&self.client, &roster, &wake),
            );
        };
        all.boxed()
    }

    /// Runs a loop for as long as it is polled.
    async fn drive<L: Loop>(&self, work: Arc<L>, woken: impl Stream<Item = ObjectRef<L::Object>> + Send + 'static) {
        drive(work, self.api(), self.watch_config(), woken).await;
    }

    fn writer<K: Object>(&self, name: &'static str, ours: Ownership) -> Writer<K> {
        Writer::new(self.client.clone(), self.metrics.clone(), name, ours)
    }

    fn companions(&self, name: &'static str, ours: Ownership) -> Companions {
        Companions::new(self.client.clone(), self.metrics.clone(), name, ours.manager)
    }

    fn watch_config(&self) -> watcher::Config {
        let config = watcher::Config::default();
        match &self.config.watch_filter {
            Some(filter) => config.labels(&format!("{}={filter}", api::capi::WATCH_FILTER_LABEL)),
            None => config,
        }
    }

    fn api<K: Resource<DynamicType = (), Scope: Reach>>(&self) -> Api<K> {
        object::api(&self.client, self.config.namespace.as_deref())
    }
}

#[cfg(test)]
mod gone_tests;
