//! What kubeadm leaves behind on a control plane, as far as a KubeadmControlPlane looks at it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::node::LONG_AGO;
use super::{NewNode, Workload, machines, resource};

const COMPONENTS: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// Etcd of our own would be asked for its members through a kubelet; DNS and proxy would be upgraded.
pub(super) fn fit(manifests: &str) -> String {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(manifests).unwrap_or_else(|error| panic!("not a manifest: {error}\n{manifests}"));
    let fitted: Vec<_> = documents.into_iter().map(|document| fit_one(document).to_string()).collect();
    fitted.join("\n---\n")
}

fn fit_one(mut document: Value) -> Value {
    if document["kind"] == "KubeadmControlPlane" {
        for addon in ["coredns", "kube-proxy"] {
            document["metadata"]["annotations"][format!("controlplane.cluster.x-k8s.io/skip-{addon}")] = json!("");
        }
        document["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"] = json!({"external": {
            "endpoints": ["https://etcd.invalid:2379"],
            "caFile": "/etc/kubernetes/pki/etcd/ca.crt",
            "certFile": "/etc/kubernetes/pki/apiserver-etcd-client.crt",
            "keyFile": "/etc/kubernetes/pki/apiserver-etcd-client.key",
        }});
    }
    document
}

pub(super) async fn join(workload: &Workload<'_>, machine: &str, node: &NewNode<'_>) {
    tell_when_certificates_expire(workload, machine).await;
    workload.cluster.apply_yaml_in("kube-system", &settings(&workload.name, node.version)).await;
    for component in COMPONENTS {
        run_static_pod(&workload.cluster.admin(), component, node.name).await;
    }
}

/// Otherwise the certificate of the API server would be looked at through the node.
async fn tell_when_certificates_expire(workload: &Workload<'_>, machine: &str) {
    let client = workload.cluster.admin();
    let found = machines(client.clone(), &workload.namespace)
        .get(machine)
        .await
        .unwrap_or_else(|error| panic!("cannot read Machine {machine}: {error}"));
    let Some(config) = found.data["spec"]["bootstrap"]["configRef"]["name"].as_str() else {
        return;
    };
    let annotation =
        json!({"metadata": {"annotations": {"machine.cluster.x-k8s.io/certificates-expiry": "2099-01-01T00:00:00Z"}}});
    resource(client, &workload.namespace, "bootstrap.cluster.x-k8s.io", "KubeadmConfig", "kubeadmconfigs")
        .patch(config, &PatchParams::default(), &Patch::Merge(annotation))
        .await
        .unwrap_or_else(|error| panic!("cannot annotate KubeadmConfig {config}: {error}"));
}

/// With `kubeadm-config` there, a control plane counts as initialised.
fn settings(cluster: &str, version: &str) -> String {
    let kubeadm = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "clusterName": cluster,
        "kubernetesVersion": version,
    });
    let kubelet = json!({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"});
    let map = |name: &str, key: &str, value: &Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value.to_string()}});
    format!(
        "{}\n---\n{}\n",
        map("kubeadm-config", "ClusterConfiguration", &kubeadm),
        map("kubelet-config", "kubelet", &kubelet)
    )
}

async fn run_static_pod(client: &Client, component: &str, node: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    let kubelet = PatchParams::apply("kubelet").force();
    let name = format!("{component}-{node}");
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"component": component, "tier": "control-plane"},
            // Marks the mirror of a static Pod, which no drain waits for.
            "annotations": {"kubernetes.io/config.mirror": node},
        },
        "spec": {
            "nodeName": node,
            "hostNetwork": true,
            "containers": [{"name": component, "image": component}],
            "tolerations": [{"operator": "Exists"}],
        },
    });
    let running = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}],
        },
    });
    pods.patch(&name, &kubelet, &Patch::Apply(pod))
        .await
        .unwrap_or_else(|error| panic!("cannot make Pod {name}: {error}"));
    pods.patch_status(&name, &kubelet, &Patch::Apply(running))
        .await
        .unwrap_or_else(|error| panic!("cannot report the status of Pod {name}: {error}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_plane_is_fitted_and_the_rest_is_left_as_it_is() {
        let fitted = fit("kind: Cluster\n---\nkind: KubeadmControlPlane\nspec: {replicas: 3}\n");
        let documents: Vec<Value> = serde_saphyr::from_multiple(&fitted).expect("manifests");
        assert_eq!(documents[0], json!({"kind": "Cluster"}));
        assert_eq!(documents[1]["spec"]["replicas"], 3);
        assert!(documents[1]["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]["etcd"]["external"].is_object());
        assert_eq!(documents[1]["metadata"]["annotations"]["controlplane.cluster.x-k8s.io/skip-coredns"], "");
    }
}
