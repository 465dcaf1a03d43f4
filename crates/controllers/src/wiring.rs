//! Puts the loops of the dialects together that are looked after. Each has hosts; it may have claims on them, and clusters.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::brake::Brake;
use crate::claims::{ClaimDialect, ClaimLoop, Lacks};
use crate::cluster_api::ClusterApi;
use crate::clusters::{ClusterDialect, ClusterLoop};
use crate::companions::Companions;
use crate::definition::{Definition, Fitness, Notices};
use crate::depot::{Depot, ImageCheck, Sessions};
use crate::dialect::HostDialect;
use crate::drive::{Loop, drive};
use crate::hands::Hands;
use crate::herald::Herald;
use crate::host::HostLoop;
use crate::index::Index;
use crate::marks::Marks;
use crate::nodes::Nodes;
use crate::object::{Object, ObjectId, Reach as _};
use crate::objects::{ObjectDialect, ObjectLoop};
use crate::operator::Operator;
use crate::placer::Placer;
use crate::relatives::{Dependents, Related, Relative};
use crate::rival::Rival;
use crate::roster::Roster;
use crate::vault::Vault;
use crate::watches::Wakeups;
use crate::writer::{Ownership, Writer};

/// Two objects of any dialects may name one server, and which has the better right to it is known when all have been listed. So nothing is
/// done before that; but a kind that cannot be listed holds up the others for this long only.
const LISTED_WITHIN: Duration = Duration::from_secs(10);

/// What the loops of all dialects share: one server has one BMC, whoever names it.
pub(crate) struct Shared {
    pub(crate) index: Arc<Index>,
    pub(crate) vault: Vault,
    pub(crate) dependents: Arc<Dependents>,
    pub(crate) related: Related,
    pub(crate) hands: Arc<Hands>,
    pub(crate) brake: Arc<Brake>,
    pub(crate) herald: Arc<Herald>,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) cluster_api: Option<Arc<ClusterApi>>,
    pub(crate) depot: Option<Arc<Depot>>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) wake: mpsc::UnboundedSender<ObjectId>,
}

impl Shared {
    /// Waits until the objects of these kinds have been listed once. Kinds that are not installed hold up their dialect only.
    fn has_listed(&self, relatives: &[Relative]) -> impl Future<Output = ()> + Send + use<> {
        let (related, vault) = (self.related.clone(), self.vault.clone());
        let kinds: Vec<_> = relatives.iter().map(|relative| relative.kind().clone()).collect();
        async move {
            futures::join!(related.is_complete(&kinds), vault.is_complete(&kinds));
        }
    }
}

/// The loops of one operator, as far as they have been put together.
pub(crate) struct Wiring<'a> {
    operator: &'a Operator,
    shared: &'a Shared,
    wakeups: Wakeups,
    loops: Vec<BoxFuture<'a, ()>>,
    definitions: Vec<BoxFuture<'a, ()>>,
    /// The hosts of each dialect.
    rosters: Vec<Arc<Roster>>,
    /// Of each dialect.
    pub(crate) fitness: Vec<Fitness>,
    /// Whether one of the dialects belongs to Cluster API.
    pub(crate) has_cluster_api: bool,
    /// Whether the hosts of one of the dialects have no namespace.
    pub(crate) has_hosts_of_the_cluster: bool,
}

/// The hosts of a dialect, for those who claim them.
pub(crate) struct Hosts<D> {
    roster: Arc<Roster>,
    fitness: Fitness,
    dialect: PhantomData<D>,
}

impl<'a> Wiring<'a> {
    pub(crate) fn new(operator: &'a Operator, shared: &'a Shared, wakeups: Wakeups) -> Self {
        let (loops, definitions, rosters, fitness) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            operator,
            shared,
            wakeups,
            loops,
            definitions,
            rosters,
            fitness,
            has_cluster_api: false,
            has_hosts_of_the_cluster: false,
        }
    }

    /// The loops, once they are all there, and what wakes them.
    pub(crate) fn into_loops(mut self) -> (Vec<BoxFuture<'a, ()>>, Wakeups) {
        let (definitions, rosters) = (self.definitions, self.rosters);
        // Nothing is decided before a definition is known to be fit.
        self.loops.push(
            async move {
                let listed = join_all(rosters.iter().map(|roster| roster.is_complete()));
                if tokio::time::timeout(LISTED_WITHIN, listed).await.is_err() {
                    warn!(
                        "not all hosts could be listed within {} s; continuing without them",
                        LISTED_WITHIN.as_secs()
                    );
                }
                join_all(definitions).await;
            }
            .boxed(),
        );
        (self.loops, self.wakeups)
    }

    /// The loop of hosts, which works while their definition is fit.
    pub(crate) fn hosts<D: HostDialect>(&mut self) -> Hosts<D> {
        let Self { operator, shared, .. } = *self;
        let (verdict, fitness) = Fitness::new(D::RIVAL_LEASE.is_some());
        let roster: Arc<Roster> = Arc::default();
        let work = HostLoop::<D> {
            client: operator.client.clone(),
            index: shared.index.clone(),
            dependents: shared.dependents.clone(),
            related: shared.related.clone(),
            companions: self.companions(D::NAME, D::OURS),
            marks: Marks::new(
                shared.vault.clone(),
                shared.dependents.clone(),
                shared.herald.clone(),
                operator.metrics.clone(),
                D::NAME,
            ),
            vault: shared.vault.clone(),
            hands: shared.hands.clone(),
            brake: shared.brake.clone(),
            clock: operator.clock.clone(),
            metrics: operator.metrics.clone(),
            herald: shared.herald.clone(),
            writer: self.writer(D::NAME, D::OURS),
            roster: roster.clone(),
            cluster_api: operator.config.cluster_api,
            depot: shared.depot.clone(),
            sessions: shared.sessions.clone(),
            settings: operator.config.settings.clone(),
        };
        let definition = Definition::new(operator.client.clone(), shared.herald.clone());
        let rival = Rival::new(operator.client.clone(), operator.clock.clone(), operator.config.namespace.clone());
        let notices = Notices::new(shared.herald.clone());
        self.definitions.push(rival.follow::<D>(operator.selection().api(), notices, verdict.clone()).boxed());
        self.definitions.push(definition.follow::<D>(operator.selection().api(), verdict).boxed());
        self.drive(work, fitness.clone(), shared.has_listed(&D::relatives()));
        self.fitness.push(fitness.clone());
        self.rosters.push(roster.clone());
        self.has_hosts_of_the_cluster |= !<D::Host as kube::Resource>::Scope::HAS_NAMESPACES;
        info!(dialect = D::NAME, "watching hosts");
        Hosts { roster, fitness, dialect: PhantomData }
    }

    /// The loop of claims on hosts, and who places them.
    pub(crate) fn claims<C: ClaimDialect>(&mut self, hosts: &Hosts<C::Hosts>) {
        let Self { operator, shared, .. } = *self;
        let (placer, roster): (Arc<Placer>, _) = (Arc::default(), hosts.roster.clone());
        let work = ClaimLoop::<C> {
            client: operator.client.clone(),
            namespace: operator.config.namespace.clone(),
            roster: roster.clone(),
            placer: placer.clone(),
            nodes: shared.nodes.clone(),
            cluster_api: shared.cluster_api.clone(),
            clock: operator.clock.clone(),
            metrics: operator.metrics.clone(),
            writer: self.writer(C::NAME, C::OURS),
            herald: shared.herald.clone(),
            dependents: shared.dependents.clone(),
            related: shared.related.clone(),
            companions: self.companions(C::NAME, C::OURS),
            image_check: shared.depot.clone().map(|depot| ImageCheck::new(depot, shared.wake.clone())),
            vault: shared.vault.clone(),
            lacks: Lacks::default(),
        };
        self.has_cluster_api |= C::CLUSTER_API;
        self.drive_when_complete(work, hosts, &C::relatives());
        self.loops.push(async move { placer.run::<C::Hosts>(&operator.client, &roster, &shared.wake).await }.boxed());
    }

    /// The loop of clusters whose machines are such hosts.
    pub(crate) fn clusters<K: ClusterDialect, D: HostDialect>(&mut self, hosts: &Hosts<D>) {
        let work = ClusterLoop::<K> {
            roster: hosts.roster.clone(),
            cluster_api: self.shared.cluster_api.clone(),
            clock: self.operator.clock.clone(),
            writer: self.writer(K::NAME, K::OURS),
        };
        self.has_cluster_api = true;
        self.drive_when_complete(work, hosts, &[]);
    }

    /// The loop of objects of the same dialect that are neither of these.
    pub(crate) fn objects<O: ObjectDialect, D: HostDialect>(&mut self, hosts: &Hosts<D>) {
        let Self { operator, shared, .. } = *self;
        let work = ObjectLoop::<O> {
            dependents: shared.dependents.clone(),
            related: shared.related.clone(),
            companions: self.companions(O::NAME, O::OURS),
            vault: shared.vault.clone(),
            hands: shared.hands.clone(),
            clock: operator.clock.clone(),
            depot: shared.depot.clone(),
            herald: shared.herald.clone(),
            writer: self.writer(O::NAME, O::OURS),
            settings: operator.config.settings.clone(),
        };
        self.drive(work, hosts.fitness.clone(), shared.has_listed(&O::relatives()));
    }

    /// Nobody can say that a claim has no host before all hosts have been listed once.
    fn drive_when_complete<L: Loop, D: HostDialect>(&mut self, work: L, hosts: &Hosts<D>, relatives: &[Relative]) {
        let (roster, listed) = (hosts.roster.clone(), self.shared.has_listed(relatives));
        let start = async move {
            roster.is_complete().await;
            listed.await;
        };
        self.drive(work, hosts.fitness.clone(), start);
    }

    fn drive<L: Loop>(&mut self, work: L, fitness: Fitness, start: impl Future<Output = ()> + Send + 'static) {
        let (woken, selection) = (self.wakeups.of::<L::Object>(), self.operator.selection());
        let driven = async move {
            start.await;
            drive(Arc::new(work), selection.api(), selection.watch(), woken, fitness).await;
        };
        self.loops.push(driven.boxed());
    }

    fn companions(&self, name: &'static str, ours: Ownership) -> Companions {
        Companions::new(self.operator.client.clone(), self.operator.metrics.clone(), name, ours.manager)
    }

    fn writer<K: Object>(&self, name: &'static str, ours: Ownership) -> Writer<K> {
        Writer::new(self.operator.client.clone(), self.operator.metrics.clone(), name, ours)
    }
}
