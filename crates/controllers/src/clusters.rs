//! The loop of a cluster's infrastructure: object → goal and sight → step → finalizer, endpoint, status.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::beskar7::{Beskar7Cluster, names};
use engine::cluster::{Act, ControlPlaneMachine, Endpoint, Owner, Sight, step};
use engine::placement::domain;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::beskar7::cluster as dialect;
use crate::clock::Clock;
use crate::cluster_api::{ClusterApi, MachineView, paused_itself};
use crate::latest::Latest;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::roster::Roster;

const NAME: &str = "beskar7cluster";
/// How often one reconcile may decide: once, and once more after each write to the object itself.
const DECISIONS: usize = 4;
/// How often it is looked again while something outside is in the way.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Why a reconcile failed. The object is tried again.
#[derive(Debug, thiserror::Error)]
#[error("{cluster}: cannot write its {what}: {source}")]
pub(crate) struct Error {
    cluster: ObjectId,
    what: &'static str,
    source: Box<kube::Error>,
}

/// What all reconciles share.
pub(crate) struct ClusterLoop {
    pub(crate) client: Client,
    pub(crate) roster: Arc<Roster>,
    /// `None` where there is no Cluster API, because whoever started us said so.
    pub(crate) cluster_api: Option<Arc<ClusterApi>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) latest: Latest<Beskar7Cluster>,
}

impl ClusterLoop {
    pub(crate) async fn reconcile(self: Arc<Self>, cluster: Arc<Beskar7Cluster>) -> Result<Action, Error> {
        let started = tokio::time::Instant::now();
        let result = self.decide(cluster).await;
        self.metrics.reconcile(NAME, result.is_ok(), started.elapsed());
        result.map(|again| again.map_or_else(Action::await_change, Action::requeue))
    }

    pub(crate) fn after_error(_: Arc<Beskar7Cluster>, error: &Error, _: Arc<Self>) -> Action {
        if matches!(&*error.source, kube::Error::Api(status) if status.code == 409) {
            debug!("{error}");
            return Action::requeue(Duration::from_millis(100));
        }
        warn!("{error}");
        Action::requeue(Duration::from_secs(3 + fastrand::u64(0..3)))
    }

    async fn decide(&self, seen: Arc<Beskar7Cluster>) -> Result<Option<Duration>, Error> {
        let mut cluster = self.latest.newest(seen);
        for _ in 0..DECISIONS {
            let key = ObjectId::of(cluster.as_ref());
            let protected = cluster.finalizers().iter().any(|finalizer| finalizer == names::CLUSTER_FINALIZER);
            if cluster.metadata.deletion_timestamp.is_some() && !protected {
                self.latest.forget(&key);
                return Ok(None);
            }
            let (owner, control_plane) = self.owner(&cluster);
            let sight = Sight { owner, protected, control_plane, domains: self.domains(&cluster) };
            let decided = step(&dialect::goal(&cluster), &sight);
            let written = match decided.acts.first() {
                Some(Act::Protect) => self.write(&cluster, &key, dialect::protected(&cluster), "finalizer").await?,
                Some(Act::SetEndpoint(endpoint)) => {
                    info!(cluster = %key, host = endpoint.host, port = endpoint.port, "control plane endpoint");
                    self.write(&cluster, &key, dialect::endpoint(endpoint), "endpoint").await?
                }
                Some(Act::LetGo) => {
                    self.write(&cluster, &key, dialect::let_go(&cluster), "finalizer").await?;
                    self.latest.forget(&key);
                    return Ok(None);
                }
                None => {
                    if let Some(status) = dialect::status(&cluster, &decided.standing, self.clock.now()) {
                        self.write_status(&cluster, &key, status).await?;
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

    async fn write(
        &self,
        cluster: &Beskar7Cluster,
        key: &ObjectId,
        mut patch: Value,
        what: &'static str,
    ) -> Result<Beskar7Cluster, Error> {
        patch["metadata"]["resourceVersion"] = json!(cluster.resource_version());
        patch["metadata"]["uid"] = json!(key.uid);
        let written = self.api(key).patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        self.remember(key, what, written)
    }

    async fn write_status(&self, cluster: &Beskar7Cluster, key: &ObjectId, status: Value) -> Result<(), Error> {
        let patch = Patch::Apply(json!({
            "apiVersion": Beskar7Cluster::api_version(&()),
            "kind": Beskar7Cluster::kind(&()),
            "metadata": { "resourceVersion": cluster.resource_version(), "uid": key.uid },
            "status": status,
        }));
        let params = PatchParams::apply(names::FIELD_MANAGER).force();
        let written = self.api(key).patch_status(&key.name, &params, &patch).await;
        self.remember(key, "status", written).map(drop)
    }

    fn remember(
        &self,
        key: &ObjectId,
        what: &'static str,
        written: kube::Result<Beskar7Cluster>,
    ) -> Result<Beskar7Cluster, Error> {
        self.metrics.api_write(NAME, what, written.is_ok());
        let cluster = written.map_err(|source| Error { cluster: key.clone(), what, source: Box::new(source) })?;
        self.latest.put(&cluster);
        Ok(cluster)
    }

    fn api(&self, key: &ObjectId) -> Api<Beskar7Cluster> {
        key.api(&self.client)
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
