//! Several managers that are installed together: definitions first, then the programs, then their webhooks.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::manager::{Manager, Plan, Provider};
use super::manifests;
use crate::cluster::Cluster;

/// They end when this is dropped.
pub(super) struct Managers(Vec<Manager>);

impl Managers {
    /// Installs and starts them. When this returns, all are ready, and the API server has stored their webhooks in the order
    /// of `providers`.
    pub(super) async fn start(cluster: &Cluster, providers: Vec<Provider>) -> Self {
        assert!(!cluster.is_shared(), "webhooks are for all: take Cluster::start() for managers");
        let plans: Vec<_> = providers.into_iter().map(|provider| Plan::new(cluster, provider)).collect();

        let mut definitions = Vec::new();
        for plan in &plans {
            for document in manifests::read_dir(&plan.provider.home.join("crds")) {
                definitions.push(manifests::definition(document, &plan.provider, &plan.webhook));
            }
        }
        apply_definitions(cluster, definitions).await;

        let managers = Managers(plans.iter().map(|plan| plan.start(cluster)).collect());
        for manager in &managers.0 {
            manager.wait_until_ready().await;
        }
        for plan in &plans {
            apply_webhooks(cluster, plan).await;
        }
        managers
    }

    /// Panics with its last words when a manager has ended.
    pub(super) fn assert_alive(&self) {
        for manager in &self.0 {
            manager.assert_alive();
        }
    }
}

impl Drop for Managers {
    #[expect(clippy::print_stderr, reason = "a test that fails wants to know what the managers had to say")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            for manager in &self.0 {
                eprintln!("{}", manager.last_words());
            }
        }
    }
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

async fn apply_webhooks(cluster: &Cluster, plan: &Plan) {
    for document in manifests::read(&plan.provider.home.join("webhooks.yaml")) {
        let configuration = manifests::admission(document, &plan.provider, &plan.webhook);
        cluster.apply_yaml(&configuration.to_string()).await;
    }
}
