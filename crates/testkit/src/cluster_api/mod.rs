//! The real managers of Cluster API, as plain processes: core, kubeadm bootstrap and kubeadm control plane, and beside them those of
//! Metal3.

mod clusterctl;
mod manager;
mod managers;
mod manifests;
mod metal3;

use kube::ResourceExt;
use kube::api::{DynamicObject, PostParams};
use kube::core::Status;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::parts;
use crate::wait::wait_ok;
use crate::workload::machines;
pub use clusterctl::Move;
use manager::{Provider, START_TIMEOUT};
use managers::Managers;
pub use metal3::Metal3;

/// There is nothing to migrate, and migrating nothing rewrites every definition.
const WITHOUT_MIGRATION: [&str; 2] =
    ["--skip-crd-migration-phases=StorageVersionMigration", "--skip-crd-migration-phases=CleanupManagedFields"];

/// A release of Cluster API; the patch level is pinned in `hack/capi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapiRelease {
    /// The last one whose own contract is v1beta1.
    V1_10,
    /// Contract v1beta2; takes providers of v1beta1, too.
    V1_13,
}

impl CapiRelease {
    fn folder(self) -> &'static str {
        match self {
            CapiRelease::V1_10 => "v1.10",
            CapiRelease::V1_13 => "v1.13",
        }
    }

    /// The contracts that the kubeadm providers of this release fulfil.
    fn contracts(self) -> &'static [&'static str] {
        match self {
            CapiRelease::V1_10 => &["v1beta1"],
            CapiRelease::V1_13 => &["v1beta1", "v1beta2"],
        }
    }

    /// Core comes last: whoever sees its webhooks sees those of the others. It reads its own kinds without looking for a
    /// contract.
    fn providers(self) -> Vec<Provider> {
        let home = parts::home("capi").join(self.folder());
        let kubeadm = self.contracts();
        [
            ("capi-bootstrap", "bootstrap", kubeadm),
            ("capi-control-plane", "control-plane", kubeadm),
            ("capi-core", "core", &[]),
        ]
        .map(|(name, folder, contracts)| Provider { name, home: home.join(folder), contracts, flags: &FLAGS })
        .into()
    }
}

const FLAGS: [&str; 3] = ["--feature-gates=ClusterTopology=true", WITHOUT_MIGRATION[0], WITHOUT_MIGRATION[1]];

/// The three managers of Cluster API at work on a cluster of one's own; they end when this is dropped.
///
/// Definitions and webhooks are cluster-wide, so it is not for the shared cluster. Both releases serve `v1beta1` of all
/// kinds. In the audit log the managers are `capi-core`, `capi-bootstrap` and `capi-control-plane`, and so are their
/// logs called in the cluster's directory.
pub struct ClusterApi {
    managers: Managers,
}

impl ClusterApi {
    /// Installs and starts `release`; when this returns, its webhooks answer. Not for the embedded API server, which has
    /// none.
    pub async fn start(cluster: &Cluster, release: CapiRelease) -> ClusterApi {
        let api = ClusterApi { managers: Managers::start(cluster, release.providers()).await };
        api.wait_until_webhooks_answer(cluster).await;
        api
    }

    /// The API server hears of webhooks a moment after they are stored. It hears of them in order, so it is enough to ask
    /// those of core, which mark a Machine with its cluster and refuse one without bootstrap.
    async fn wait_until_webhooks_answer(&self, cluster: &Cluster) {
        let machines = machines(cluster.admin(), "default");
        let dry_run = PostParams { dry_run: true, ..Default::default() };
        wait_ok("the webhooks of Cluster API", START_TIMEOUT, async || {
            self.assert_alive();
            match machines.create(&dry_run, &probe(&json!({"dataSecretName": "probe"}))).await {
                Ok(machine) if machine.labels().contains_key("cluster.x-k8s.io/cluster-name") => {}
                other => return Err(format!("{other:?}")),
            }
            match machines.create(&dry_run, &probe(&json!({}))).await {
                Err(kube::Error::Api(refusal)) if from_webhook(&refusal) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Panics with its last words when a manager has ended.
    pub fn assert_alive(&self) {
        self.managers.assert_alive();
    }
}

fn probe(bootstrap: &Value) -> DynamicObject {
    // A reference is only converted between versions when its kind is known and says its contract.
    let known = json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "probe"});
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "probe"},
        "spec": {"clusterName": "probe", "bootstrap": bootstrap, "infrastructureRef": known},
    }))
    .expect("a Machine is an object")
}

fn from_webhook(refusal: &Status) -> bool {
    refusal.message.contains("validation.machine.cluster.x-k8s.io")
}
