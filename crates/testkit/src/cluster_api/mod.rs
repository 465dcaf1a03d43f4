//! The real managers of Cluster API, as plain processes: core, kubeadm bootstrap and kubeadm control plane.

mod manager;
mod manifests;

use std::path::Path;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::parts;
use crate::wait::wait_ok;
use crate::workload::machines;
use manager::Manager;

/// Four times what a busy machine with two cores needs.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A release of Cluster API; the patch level is pinned in `hack/capi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapiRelease {
    /// The last one whose own contract is v1beta1.
    V1_10,
    /// Contract v1beta2; takes providers of v1beta1, too.
    V1_13,
}

/// The three managers of Cluster API at work on a cluster of one's own; they end when this is dropped.
///
/// Definitions and webhooks are cluster-wide, so it is not for the shared cluster. Both releases serve `v1beta1` of all
/// kinds. In the audit log the managers are `capi-core`, `capi-bootstrap` and `capi-control-plane`, and so are their
/// logs called in the cluster's directory.
pub struct ClusterApi {
    managers: Vec<Manager>,
}

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Core,
    Bootstrap,
    ControlPlane,
}

/// Core comes last: whoever sees its webhooks sees those of the others.
const PROVIDERS: [Provider; 3] = [Provider::Bootstrap, Provider::ControlPlane, Provider::Core];

impl CapiRelease {
    fn folder(self) -> &'static str {
        match self {
            CapiRelease::V1_10 => "v1.10",
            CapiRelease::V1_13 => "v1.13",
        }
    }

    /// The contracts that the kubeadm providers of this release fulfil, each by the API version of the same name.
    fn contracts(self) -> &'static [&'static str] {
        match self {
            CapiRelease::V1_10 => &["v1beta1"],
            CapiRelease::V1_13 => &["v1beta1", "v1beta2"],
        }
    }
}

impl Provider {
    /// The folder in the part, and the last part of its names.
    fn name(self) -> &'static str {
        match self {
            Provider::Core => "core",
            Provider::Bootstrap => "bootstrap",
            Provider::ControlPlane => "control-plane",
        }
    }
}

impl ClusterApi {
    /// Installs and starts `release`; when this returns, its webhooks answer. Not for the embedded API server, which has
    /// none.
    pub async fn start(cluster: &Cluster, release: CapiRelease) -> ClusterApi {
        assert!(!cluster.is_shared(), "webhooks are for all: take Cluster::start() for Cluster API");
        let home = parts::home("capi").join(release.folder());
        let plans = PROVIDERS.map(|provider| manager::Plan::new(cluster, provider));

        let mut definitions = Vec::new();
        for plan in &plans {
            for document in manifests::read_dir(&home.join(plan.provider.name()).join("crds")) {
                definitions.push(manifests::definition(document, plan.provider, release, &plan.webhook));
            }
        }
        apply_definitions(cluster, definitions).await;

        let api = ClusterApi { managers: plans.iter().map(|plan| plan.start(cluster, &home)).collect() };
        for manager in &api.managers {
            manager.wait_until_ready(START_TIMEOUT).await;
        }
        for plan in &plans {
            apply_webhooks(cluster, plan, &home).await;
        }
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
        for manager in &self.managers {
            manager.assert_alive();
        }
    }
}

impl Drop for ClusterApi {
    #[expect(clippy::print_stderr, reason = "a test that fails wants to know what the managers had to say")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            for manager in &self.managers {
                eprintln!("{}", manager.last_words());
            }
        }
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

async fn apply_definitions(cluster: &Cluster, definitions: Vec<Value>) {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.admin());
    let mut names = Vec::new();
    for definition in definitions {
        let name = manifests::name(&definition).to_owned();
        api.patch(&name, &PatchParams::apply("testkit").force(), &Patch::Apply(&definition))
            .await
            .unwrap_or_else(|error| panic!("cannot apply {name}: {error}"));
        names.push(name);
    }
    for name in names {
        cluster.wait_until_established(&name).await;
    }
}

async fn apply_webhooks(cluster: &Cluster, plan: &manager::Plan, home: &Path) {
    let file = home.join(plan.provider.name()).join("webhooks.yaml");
    for document in manifests::read(&file) {
        let configuration = manifests::admission(document, plan.provider, &plan.webhook);
        cluster.apply_yaml(&configuration.to_string()).await;
    }
}
