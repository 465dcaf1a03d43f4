//! A whole cluster under the real managers, with a stand-in for the infrastructure provider.

mod provider;

use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Api, Client, ResourceExt};
use testkit::{CapiRelease, Cluster, ClusterApi, Workload, wait_ok};

use provider::{Provider, kind};

const NAME: &str = "walk";
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

const MANIFESTS: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: walk}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlane, name: walk}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: StandInCluster, name: walk}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: StandInCluster
metadata: {name: walk}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1
kind: StandInMachineTemplate
metadata: {name: walk}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: walk}
spec:
  replicas: 1
  version: v1.33.13
  machineTemplate:
    infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: StandInMachineTemplate, name: walk}
  # Without both, 1.10 takes its own first machine for outdated and replaces it.
  kubeadmConfigSpec:
    initConfiguration: {nodeRegistration: {imagePullPolicy: IfNotPresent}}
    joinConfiguration: {nodeRegistration: {imagePullPolicy: IfNotPresent}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: walk}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {name: worker}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: walk}
spec:
  clusterName: walk
  replicas: 1
  selector: {}
  template:
    spec:
      clusterName: walk
      version: v1.33.13
      bootstrap: {configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: walk}}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: StandInMachineTemplate, name: walk}
";

/// Everything that must be gone when the Cluster is.
const OWNED: [(&str, &str); 11] = [
    ("cluster.x-k8s.io/v1beta1", "Cluster"),
    ("cluster.x-k8s.io/v1beta1", "Machine"),
    ("cluster.x-k8s.io/v1beta1", "MachineDeployment"),
    ("cluster.x-k8s.io/v1beta1", "MachineSet"),
    ("controlplane.cluster.x-k8s.io/v1beta1", "KubeadmControlPlane"),
    ("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfig"),
    ("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate"),
    ("infrastructure.cluster.x-k8s.io/v1", "StandInCluster"),
    ("infrastructure.cluster.x-k8s.io/v1", "StandInMachine"),
    ("infrastructure.cluster.x-k8s.io/v1", "StandInMachineTemplate"),
    ("v1", "Secret"),
];

// Half a minute up and a quarter of a minute down on a quiet machine; the limits are for busy ones.

#[tokio::test]
async fn a_cluster_comes_and_goes_under_cluster_api_1_13() {
    a_cluster_comes_and_goes(CapiRelease::V1_13).await;
}

#[tokio::test]
async fn a_cluster_comes_and_goes_under_cluster_api_1_10() {
    a_cluster_comes_and_goes(CapiRelease::V1_10).await;
}

async fn a_cluster_comes_and_goes(release: CapiRelease) {
    let cluster = Cluster::start().await;
    let api = ClusterApi::start(&cluster, release).await;
    let namespace = cluster.namespace("capi").await;
    let workload = Workload::prepare(&cluster, &namespace, NAME).await;
    cluster.apply_yaml(provider::DEFINITIONS).await;
    let client = cluster.admin();
    let provider = Provider::new(&client, &workload, &namespace);
    cluster.apply_yaml_in(&namespace, &Workload::fit(MANIFESTS)).await;

    let machines = kind(&client, &namespace, "cluster.x-k8s.io/v1beta1", "Machine");
    wait_ok("both machines to run", Duration::from_mins(8), async || {
        api.assert_alive();
        provider.step().await;
        running(&machines).await
    })
    .await;
    // Core knows a node by nothing but its providerID, and took its taint away.
    let nodes = cluster.kubectl(&["get", "nodes", "-o", "jsonpath={.items[*].spec}"]).await.ok();
    assert_eq!(nodes.matches("stand-in://").count(), 2, "{nodes}");
    assert!(!nodes.contains("uninitialized"), "{nodes}");
    assert!(!nodes.contains("not-ready"), "{nodes}");

    let clusters = kind(&client, &namespace, "cluster.x-k8s.io/v1beta1", "Cluster");
    clusters.delete(NAME, &DeleteParams::default()).await.expect("the Cluster is deleted");
    wait_ok("nothing to be left of the Cluster", Duration::from_mins(5), async || {
        let left = left(&client, &namespace).await;
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await;
}

/// `Err` with the machines as they are while they are not a control plane and a worker that run.
async fn running(machines: &Api<DynamicObject>) -> Result<(), String> {
    let found = machines.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
    let control_planes = found.iter().filter(|machine| machine.labels().contains_key(CONTROL_PLANE)).count();
    let all_run = found.iter().all(|machine| machine.data["status"]["phase"] == "Running");
    if found.len() == 2 && control_planes == 1 && all_run {
        return Ok(());
    }
    let seen: Vec<_> =
        found.iter().map(|machine| format!("{} {}", machine.name_any(), machine.data["status"])).collect();
    Err(seen.join("; "))
}

async fn left(client: &Client, namespace: &str) -> Vec<String> {
    let mut left = Vec::new();
    for (version, name) in OWNED {
        let objects = kind(client, namespace, version, name).list(&ListParams::default()).await;
        left.extend(objects.expect("a list").items.iter().map(|object| format!("{name} {}", object.name_any())));
    }
    left
}
