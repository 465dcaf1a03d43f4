//! Metal3's own providers for Cluster API, beside its managers.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::json;

use super::WITHOUT_MIGRATION;
use super::manager::{Provider, START_TIMEOUT};
use super::managers::Managers;
use crate::cluster::Cluster;
use crate::parts;
use crate::wait::wait_ok;

/// Metal3's infrastructure provider (CAPM3) and its provider of addresses (IPAM), at work on a cluster that has Cluster API
/// 1.13; they end when this is dropped.
///
/// They bring all their definitions except those of hosts. In the audit log they are `capm3` and `ipam`, and so are their logs
/// called in the cluster's directory.
pub struct Metal3 {
    managers: Managers,
}

impl Metal3 {
    /// Installs and starts both; when this returns, their webhooks answer. The definition of BareMetalHost must be there.
    pub async fn start(cluster: &Cluster) -> Metal3 {
        let home = parts::home("capm3");
        let contracts = &["v1beta1", "v1beta2"];
        // CAPM3 comes last: whoever sees its webhooks sees those of IPAM.
        let providers = vec![
            Provider { name: "ipam", home: home.join("ipam"), contracts: &contracts[..1], flags: &[] },
            Provider { name: "capm3", home: home.join("capm3"), contracts, flags: &WITHOUT_MIGRATION },
        ];
        let metal3 = Metal3 { managers: Managers::start(cluster, providers).await };
        metal3.wait_until_webhooks_answer(cluster).await;
        metal3
    }

    async fn wait_until_webhooks_answer(&self, cluster: &Cluster) {
        let kind = GroupVersionKind::gvk("infrastructure.cluster.x-k8s.io", "v1beta2", "Metal3Cluster");
        let clusters: Api<DynamicObject> =
            Api::namespaced_with(cluster.admin(), "default", &ApiResource::from_gvk(&kind));
        let dry_run = PostParams { dry_run: true, ..Default::default() };
        let without_endpoint = DynamicObject::new("probe", &ApiResource::from_gvk(&kind)).data(json!({"spec": {}}));
        wait_ok("the webhooks of Metal3", START_TIMEOUT, async || {
            self.assert_alive();
            match clusters.create(&dry_run, &without_endpoint).await {
                Err(kube::Error::Api(refusal)) if refusal.message.contains("validation.metal3cluster") => Ok(()),
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
