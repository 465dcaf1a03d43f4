//! The loop of a cluster's infrastructure: object → goal and sight → step → finalizer, endpoint, status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::cluster::{Act, ControlPlaneMachine, Endpoint, Goal, Owner, Sight, Standing, step};
use engine::placement::domain;
use jiff::Timestamp;
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tracing::info;

use crate::clock::Clock;
use crate::cluster_api::{ClusterApi, MachineView, paused_itself};
use crate::drive::Loop;
use crate::object::{Object, ObjectId};
use crate::roster::Roster;
use crate::writer::{Ownership, WriteError, Writer, with_finalizer};

/// How often one reconcile may decide: once, and once more after each write to the object itself.
const DECISIONS: usize = 4;
/// How often it is looked again while something outside is in the way.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// A kind of resource that is the infrastructure of a cluster, and how it is to be understood.
pub(crate) trait ClusterDialect: Send + Sync + 'static {
    /// The resource.
    type Cluster: Object;

    /// The loop, for metrics.
    const NAME: &'static str;
    /// Keeps the object until nobody needs it.
    const FINALIZER: &'static str;
    /// What is ours in its status.
    const OURS: Ownership;

    /// What is wanted.
    fn goal(cluster: &Self::Cluster) -> Goal;
    /// Labels of hosts that make its failure domains.
    fn domain_keys(cluster: &Self::Cluster) -> Vec<String>;
    /// Where its API server is reached, as a merge patch.
    fn endpoint(endpoint: &Endpoint) -> Value;
    /// The new status, or `None` when it says the same as the present one.
    fn status(cluster: &Self::Cluster, standing: &Standing, now: Timestamp) -> Option<Value>;
}

/// What all reconciles of one dialect share.
pub(crate) struct ClusterLoop<D: ClusterDialect> {
    pub(crate) roster: Arc<Roster>,
    /// `None` where there is no Cluster API, because whoever started us said so.
    pub(crate) cluster_api: Option<Arc<ClusterApi>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) writer: Writer<D::Cluster>,
}

impl<D: ClusterDialect> Loop for ClusterLoop<D> {
    type Object = D::Cluster;

    fn writer(&self) -> &Writer<D::Cluster> {
        &self.writer
    }

    async fn decide(&self, seen: Arc<D::Cluster>) -> Result<Option<Duration>, WriteError> {
        let mut cluster = self.writer.newest(seen);
        for _ in 0..DECISIONS {
            let key = ObjectId::of(cluster.as_ref());
            let protected = cluster.finalizers().iter().any(|finalizer| finalizer == D::FINALIZER);
            if cluster.meta().deletion_timestamp.is_some() && !protected {
                return Ok(None);
            }
            let (owner, control_plane) = self.owner(&cluster);
            let sight = Sight { owner, protected, control_plane, domains: self.domains(&cluster) };
            let decided = step(&D::goal(&cluster), &sight);
            let written = match decided.acts.first() {
                Some(Act::Protect) => {
                    let finalizers = with_finalizer(cluster.as_ref(), D::FINALIZER);
                    self.writer
                        .patch(&cluster, json!({ "metadata": { "finalizers": finalizers } }), "finalizer")
                        .await?
                }
                Some(Act::SetEndpoint(endpoint)) => {
                    info!(cluster = %key, host = endpoint.host, port = endpoint.port, "control plane endpoint");
                    self.writer.patch(&cluster, D::endpoint(endpoint), "endpoint").await?
                }
                Some(Act::LetGo) => {
                    self.writer.let_go(&cluster, D::FINALIZER).await?;
                    return Ok(None);
                }
                None => {
                    if let Some(status) = D::status(&cluster, &decided.standing, self.clock.now()) {
                        self.writer.status(&cluster, status).await?;
                    }
                    // Nobody tells when Cluster API is found to be missing, or comes.
                    let waits = matches!(sight.owner, Owner::Paused(_) | Owner::Awaited | Owner::NoClusterApi);
                    return Ok(waits.then_some(LOOK_AGAIN));
                }
            };
            cluster = Arc::new(written);
        }
        Ok(Some(Duration::from_millis(100)))
    }
}

impl<D: ClusterDialect> ClusterLoop<D> {
    /// Whose infrastructure it is, and the machines of its control plane.
    fn owner(&self, cluster: &D::Cluster) -> (Owner, Vec<ControlPlaneMachine>) {
        let Some(cluster_api) = &self.cluster_api else {
            return (paused_itself(cluster).map_or(Owner::Nobody, Owner::Paused), Vec::new());
        };
        match cluster_api.cluster_of(cluster) {
            Err(owner) => (owner, Vec::new()),
            Ok((name, view)) => {
                cluster_api.set_domain_keys(name.clone(), D::domain_keys(cluster));
                let endpoint = view.endpoint.map(|(host, port)| Endpoint { host, port });
                let machines = cluster_api.control_plane(&name).iter().map(control_plane_machine).collect();
                (Owner::Cluster { endpoint, control_plane: view.control_plane }, machines)
            }
        }
    }

    fn domains(&self, cluster: &D::Cluster) -> BTreeSet<String> {
        let namespace = cluster.namespace().unwrap_or_default();
        let keys = D::domain_keys(cluster);
        self.roster.labels_in(&namespace, |labels| domain(labels, &keys).map(str::to_owned))
    }
}

fn control_plane_machine(machine: &MachineView) -> ControlPlaneMachine {
    let of = |wanted: bool| {
        let addresses = machine.addresses.iter().filter(move |(kind, _)| (kind == "InternalIP") == wanted);
        addresses.map(|(_, address)| address.clone()).collect()
    };
    ControlPlaneMachine { ready: machine.is_ready, internal: of(true), others: of(false) }
}
