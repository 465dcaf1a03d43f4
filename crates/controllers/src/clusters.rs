//! The loop of a cluster's infrastructure: object → goal and sight → step → finalizer, endpoint, status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::beskar7::{Beskar7Cluster, names};
use engine::cluster::{Act, ControlPlaneMachine, Endpoint, Owner, Sight, step};
use engine::placement::domain;
use kube::ResourceExt as _;
use tracing::info;

use crate::beskar7::cluster as dialect;
use crate::clock::Clock;
use crate::cluster_api::{ClusterApi, MachineView, paused_itself};
use crate::drive::Loop;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::roster::Roster;
use crate::watches::Change;
use crate::writer::{WriteError, Writer};

/// How often one reconcile may decide: once, and once more after each write to the object itself.
const DECISIONS: usize = 4;
/// How often it is looked again while something outside is in the way.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// What all reconciles share.
pub(crate) struct ClusterLoop {
    pub(crate) roster: Arc<Roster>,
    /// `None` where there is no Cluster API, because whoever started us said so.
    pub(crate) cluster_api: Option<Arc<ClusterApi>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) writer: Writer<Beskar7Cluster>,
}

impl Loop for ClusterLoop {
    type Object = Beskar7Cluster;
    const NAME: &'static str = "beskar7cluster";

    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn take(&self, change: &Change<'_, Beskar7Cluster>) {
        if let Change::Gone(key) = change {
            self.writer.forget(key);
        }
    }

    async fn decide(&self, seen: Arc<Beskar7Cluster>) -> Result<Option<Duration>, WriteError> {
        let mut cluster = self.writer.newest(seen);
        for _ in 0..DECISIONS {
            let key = ObjectId::of(cluster.as_ref());
            let protected = cluster.finalizers().iter().any(|finalizer| finalizer == names::CLUSTER_FINALIZER);
            if cluster.metadata.deletion_timestamp.is_some() && !protected {
                return Ok(None);
            }
            let (owner, control_plane) = self.owner(&cluster);
            let sight = Sight { owner, protected, control_plane, domains: self.domains(&cluster) };
            let decided = step(&dialect::goal(&cluster), &sight);
            let written = match decided.acts.first() {
                Some(Act::Protect) => self.writer.patch(&cluster, dialect::protected(&cluster), "finalizer").await?,
                Some(Act::SetEndpoint(endpoint)) => {
                    info!(cluster = %key, host = endpoint.host, port = endpoint.port, "control plane endpoint");
                    self.writer.patch(&cluster, dialect::endpoint(endpoint), "endpoint").await?
                }
                Some(Act::LetGo) => {
                    self.writer.let_go(&cluster, names::CLUSTER_FINALIZER).await?;
                    return Ok(None);
                }
                None => {
                    if let Some(status) = dialect::status(&cluster, &decided.standing, self.clock.now()) {
                        self.writer.status(&cluster, status).await?;
                    }
                    // Nobody tells when Cluster API is found to be missing, or comes.
                    let waits = matches!(sight.owner, Owner::Held(_) | Owner::Awaited | Owner::NoClusterApi);
                    return Ok(waits.then_some(LOOK_AGAIN));
                }
            };
            cluster = Arc::new(written);
        }
        Ok(Some(Duration::from_millis(100)))
    }
}

impl ClusterLoop {
    /// Whose infrastructure it is, and the machines of its control plane.
    fn owner(&self, cluster: &Beskar7Cluster) -> (Owner, Vec<ControlPlaneMachine>) {
        let Some(cluster_api) = &self.cluster_api else {
            return (paused_itself(cluster).map_or(Owner::Nobody, Owner::Held), Vec::new());
        };
        match cluster_api.cluster_of(cluster) {
            Err(owner) => (owner, Vec::new()),
            Ok((name, view)) => {
                cluster_api.set_domain_keys(name.clone(), domain_keys(cluster));
                let endpoint = view.endpoint.map(|(host, port)| Endpoint { host, port });
                let machines = cluster_api.control_plane(&name).iter().map(control_plane_machine).collect();
                (Owner::Cluster { endpoint, control_plane: view.control_plane }, machines)
            }
        }
    }

    fn domains(&self, cluster: &Beskar7Cluster) -> BTreeSet<String> {
        let namespace = cluster.namespace().unwrap_or_default();
        let keys = domain_keys(cluster);
        self.roster.labels_in(&namespace, |labels| domain(labels, &keys).map(str::to_owned))
    }
}

fn domain_keys(cluster: &Beskar7Cluster) -> Vec<String> {
    cluster.spec.failure_domain_keys().into_iter().map(str::to_owned).collect()
}

fn control_plane_machine(machine: &MachineView) -> ControlPlaneMachine {
    let of = |wanted: bool| {
        let addresses = machine.addresses.iter().filter(move |(kind, _)| (kind == "InternalIP") == wanted);
        addresses.map(|(_, address)| address.clone()).collect()
    };
    ControlPlaneMachine { ready: machine.is_ready, internal: of(true), others: of(false) }
}
