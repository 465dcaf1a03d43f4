//! Clusters under the real controllers of Cluster API: core, kubeadm bootstrap and kubeadm control plane. BMCs are
//! simulated, nodes are stood in for; they join without a provider id.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use testkit::{CapiRelease, wait_ok};

use crate::site::{self, Site};

/// KubeadmControlPlane starts its next machine half a minute after the last.
pub(crate) const PATIENCE: Duration = Duration::from_mins(6);

#[tokio::test]
async fn a_cluster_lives_and_dies_under_cluster_api_1_13() {
    a_cluster_lives_and_dies_under(CapiRelease::V1_13).await;
}

#[tokio::test]
async fn a_cluster_lives_and_dies_under_cluster_api_1_10() {
    a_cluster_lives_and_dies_under(CapiRelease::V1_10).await;
}

async fn a_cluster_lives_and_dies_under(release: CapiRelease) {
    // Four in each failure domain. Workers are spread by what is left, so that the control plane finds one in each.
    let site = Site::start(release, 12).await;
    site.check_guide().await;
    site.apply_cluster(1, 2).await;
    site.wait_for_running(1, 2).await;
    site.check_nodes_and_machines().await;

    // Failure domains come from the labels of the hosts, and the control plane is spread over them.
    let cluster = site.get("cluster.x-k8s.io/v1beta1", "Cluster", site::NAME).await;
    let domains = cluster.data["status"]["failureDomains"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(domains, ["a", "b", "c"]);
    assert_eq!(cluster.data["status"]["infrastructureReady"], true);

    site.scale("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane", 3).await;
    site.scale("cluster.x-k8s.io/v1beta1", "MachineDeployment", 5).await;
    site.wait_for_running(3, 5).await;
    site.check_nodes_and_machines().await;
    assert_eq!(site.domains_of_control_plane().await.len(), 3, "one control-plane machine in each failure domain");

    roll_out_workers(&site, 5).await;
    site.wait_for_running(3, 5).await;
    site.check_nodes_and_machines().await;

    site.delete_cluster().await;
    site.wait_for_all_hosts_free().await;
}

/// Gives the workers another template, and waits until each is a new machine.
async fn roll_out_workers(site: &Site, count: usize) {
    let before: BTreeSet<String> = site.workers().await;
    assert_eq!(before.len(), count);
    site.patch(
        "cluster.x-k8s.io/v1beta1",
        "MachineDeployment",
        site::NAME,
        json!({
            "spec": { "template": { "metadata": { "labels": { "example.com/generation": "2" } },
                "spec": { "nodeDrainTimeout": "5s", "infrastructureRef": { "name": "walk-2" } } } },
        }),
    )
    .await;
    wait_ok("all workers to be new ones", PATIENCE, async || {
        site.step().await;
        let now = site.workers().await;
        if now.len() == count && now.is_disjoint(&before) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_paused_cluster_is_left_alone_and_an_endpoint_is_found_or_asked_for() {
    let site = Site::start(CapiRelease::V1_13, 2).await;
    site.world.apply(site::WITHOUT_ENDPOINT).await;
    let asked =
        site.wait_for_condition("Beskar7Cluster", "asks", "ControlPlaneEndpointReady", "EndpointRequired").await;
    assert!(asked.contains("spec.controlPlaneEndpoint"), "{asked}");
    site.wait_for_condition("Beskar7Cluster", "finds", "ControlPlaneEndpointReady", "ControlPlaneEndpointNotSet").await;

    // A machine of nobody's control plane: its address becomes the endpoint.
    site.world.apply(site::MACHINE).await;
    site.wait_for_condition("Beskar7Machine", "first", "PhysicalHostAssociated", "WaitingForPhysicalHost").await;
    let pause = |paused: bool| json!({ "spec": { "paused": paused } });
    site.patch("cluster.x-k8s.io/v1beta1", "Cluster", "finds", pause(true)).await;
    site.wait_for_condition("Beskar7Machine", "first", "Paused", "Paused").await;
    site.label_host("server-0", "class", "gold").await;
    site.wait_for_condition("Beskar7Cluster", "finds", "Paused", "Paused").await;
    assert_eq!(site.free_hosts().await, 2, "nothing is claimed for a paused cluster");
    site.patch("cluster.x-k8s.io/v1beta1", "Cluster", "finds", pause(false)).await;
    wait_ok("an endpoint", PATIENCE, async || {
        site.step().await;
        let cluster = site.get("cluster.x-k8s.io/v1beta1", "Cluster", "finds").await;
        let endpoint = &cluster.data["spec"]["controlPlaneEndpoint"];
        let found = endpoint["host"] == "192.0.2.20" && endpoint["port"] == 6443;
        if found { Ok(()) } else { Err(endpoint.to_string()) }
    })
    .await;
}
