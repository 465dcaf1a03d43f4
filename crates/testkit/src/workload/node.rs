//! What a kubelet writes about its node.

use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{NewNode, NodeRole};

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// A fixed moment, because nobody here asks when a kubelet last spoke.
pub(super) const LONG_AGO: &str = "2025-01-01T00:00:00Z";

pub(super) async fn register(client: &Client, node: &NewNode<'_>) {
    let nodes: Api<Node> = Api::all(client.clone());
    let kubelet = PatchParams::apply("kubelet").force();
    let spec = spec(node);
    // Admission taints every new node as not ready; in the life of a node its controller takes that away.
    for _ in 0..2 {
        nodes
            .patch(node.name, &kubelet, &Patch::Apply(&spec))
            .await
            .unwrap_or_else(|error| panic!("cannot register node {}: {error}", node.name));
    }
    nodes
        .patch_status(node.name, &kubelet, &Patch::Apply(&status(node)))
        .await
        .unwrap_or_else(|error| panic!("cannot report the status of node {}: {error}", node.name));
}

pub(super) async fn forget(client: &Client, labels: &str) {
    let nodes: Api<Node> = Api::all(client.clone());
    let matching = ListParams::default().labels(labels);
    nodes
        .delete_collection(&DeleteParams::default(), &matching)
        .await
        .unwrap_or_else(|error| panic!("cannot delete the nodes with {labels}: {error}"));
}

fn spec(node: &NewNode<'_>) -> Value {
    let (mut labels, taint) = match node.role {
        NodeRole::ControlPlane => (json!({CONTROL_PLANE: ""}), CONTROL_PLANE),
        // kubeadm's configuration asks for it, and Cluster API takes it away when it knows the node.
        NodeRole::Worker => (json!({}), "node.cluster.x-k8s.io/uninitialized"),
    };
    for (key, value) in node.labels {
        labels[*key] = json!(value);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]},
    })
}

fn status(node: &NewNode<'_>) -> Value {
    let mut addresses = vec![json!({"type": "Hostname", "address": node.name})];
    addresses.extend(node.addresses.iter().map(|ip| json!({"type": "InternalIP", "address": ip.to_string()})));
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": "Kubelet",
            "message": "as the stand-in says",
            "lastHeartbeatTime": LONG_AGO,
            "lastTransitionTime": LONG_AGO,
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name},
        "status": {
            "addresses": addresses,
            "conditions": [
                condition("Ready", "True"),
                condition("MemoryPressure", "False"),
                condition("DiskPressure", "False"),
                condition("PIDPressure", "False"),
            ],
            "nodeInfo": {
                "machineID": node.system_uuid.replace('-', ""),
                "systemUUID": node.system_uuid,
                "bootID": node.system_uuid,
                "kernelVersion": "6.1.0",
                "osImage": "a stand-in",
                "containerRuntimeVersion": "containerd://2.0.0",
                "kubeletVersion": node.version,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    })
}
