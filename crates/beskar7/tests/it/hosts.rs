//! The fleet at a glance, with hand-written statuses on a real API server.

use serde_json::{Value, json};

use crate::program::beskar7;
use crate::{cluster, put_host};

async fn fleet(namespace: &str) -> String {
    let cluster = cluster().await;
    let hardware =
        json!({"model": "PowerEdge R640", "serialNumber": "ABC1234", "summary": "64 cores, 512 GiB, 1.9 TB"});
    let claimed = json!({"consumerRef": {"kind": "Beskar7Machine", "name": "node-01"}});
    let available = json!({"state": "Available", "ready": true, "observedPowerState": "Off", "health": "OK", "hardwareDetails": hardware});
    put_host(cluster, namespace, "b7-free", &json!({}), &available).await;
    let provisioned =
        json!({"state": "Provisioned", "observedPowerState": "On", "health": "OK", "hardwareDetails": hardware});
    put_host(cluster, namespace, "b8-used", &claimed, &provisioned).await;
    let fault = json!({"reason": "Unreachable", "message": "The connection to port 443 was refused.", "nextTry": "2026-01-01T00:00:00Z"});
    let error = json!({"state": "Error", "fault": fault, "errorMessage": fault["message"]});
    put_host(cluster, namespace, "b9-lost", &json!({}), &error).await;
    cluster.admin_kubeconfig().to_str().unwrap().to_owned()
}

/// Columns are two or more spaces apart.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[tokio::test]
async fn the_table_shows_trouble_first_and_ends_with_a_summary() {
    let namespace = cluster().await.namespace("hosts").await;
    let kubeconfig = fleet(&namespace).await;
    let said = beskar7(&["hosts", "--kubeconfig", &kubeconfig, "-n", &namespace]).await.ok();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        cells(lines[0]),
        ["NAME", "STATE", "POWER", "HEALTH", "CONSUMER", "MODEL", "HARDWARE", "AGE", "DETAIL"],
        "\n{said}"
    );
    let lost = cells(lines[1]);
    assert_eq!(lost[..2], ["b9-lost", "Error"], "\n{said}");
    assert_eq!(lost.last(), Some(&"Unreachable, next try now: The connection to port 443 was refused."), "\n{said}");
    assert_eq!(cells(lines[2])[..4], ["b7-free", "Available", "Off", "OK"], "\n{said}");
    let used = cells(lines[3]);
    assert_eq!(
        used[..7],
        ["b8-used", "Provisioned", "On", "OK", "node-01", "PowerEdge R640", "64 cores, 512 GiB, 1.9 TB"],
        "\n{said}"
    );
    let summary = "3 hosts: 1 Available, 1 Provisioned, 1 Error; 1 with a fault (beskar7 hosts --fault)";
    assert_eq!(lines.last(), Some(&summary), "\n{said}");
    assert!(!said.contains('\x1b'), "colours are for terminals only\n{said}");
}

#[tokio::test]
async fn hosts_can_be_chosen() {
    let namespace = cluster().await.namespace("hosts").await;
    let kubeconfig = fleet(&namespace).await;
    let chosen = async |arguments: &[&str]| {
        let all = [&["hosts", "--kubeconfig", &kubeconfig, "-o", "name"], arguments].concat();
        beskar7(&all).await.ok().replace(&format!("{namespace}/"), "")
    };
    let here = ["-n", namespace.as_str()];
    assert_eq!(chosen(&here).await, "b7-free\nb8-used\nb9-lost\n");
    assert_eq!(chosen(&[&here[..], &["--state", "available,ERROR"]].concat()).await, "b7-free\nb9-lost\n");
    assert_eq!(chosen(&[&here[..], &["--fault"]].concat()).await, "b9-lost\n");
    assert_eq!(chosen(&[&here[..], &["--fault=SessionLimit"]].concat()).await, "");
    assert_eq!(chosen(&[&here[..], &["-l", "rack=b8"]].concat()).await, "b8-used\n");
    // All namespaces is the default; other tests have theirs.
    assert!(chosen(&["--state", "Error"]).await.contains("b9-lost\n"));

    let none = beskar7(&["hosts", "--kubeconfig", &kubeconfig, "-n", &namespace, "--state", "Deleting"]).await.ok();
    assert_eq!(none, "0 of 3 hosts\n");
    for format in ["table", "name"] {
        let error = beskar7(&["hosts", "--kubeconfig", &kubeconfig, "-n", "nope", "-o", format]).await.error();
        assert!(error.contains("has no namespace \"nope\""), "{error}");
    }
    let empty = cluster().await.namespace("empty").await;
    let none = beskar7(&["hosts", "--kubeconfig", &kubeconfig, "-n", &empty]).await.ok();
    assert!(none.starts_with("No hosts."), "{none}");
}

#[tokio::test]
async fn other_formats_have_everything() {
    let namespace = cluster().await.namespace("hosts").await;
    let kubeconfig = fleet(&namespace).await;
    let write = async |format: &str| {
        beskar7(&["hosts", "--kubeconfig", &kubeconfig, "-n", &namespace, "--fault", "-o", format]).await.ok()
    };
    let list: Value = serde_json::from_str(&write("json").await).unwrap();
    assert_eq!(list["items"][0]["kind"], "PhysicalHost");
    assert_eq!(list["items"][0]["status"]["fault"]["reason"], "Unreachable");
    assert!(list["items"][0]["metadata"].get("managedFields").is_none());
    let yaml: Value = serde_saphyr::from_str(&write("yaml").await).unwrap();
    assert_eq!(yaml, list);
    let wide = write("wide").await;
    assert!(wide.contains("https://192.0.2.7"), "{wide}");
}

#[tokio::test]
async fn a_cluster_without_our_resources_is_told_apart() {
    let cluster = testkit::Cluster::start().await;
    let kubeconfig = cluster.admin_kubeconfig().to_str().unwrap();
    for command in [&["hosts"][..], &["run"], &["power", "on", "a"]] {
        let error = beskar7(&[command, &["--kubeconfig", kubeconfig]].concat()).await.error();
        let advice = "install the CRDs: beskar7 crds | kubectl apply --server-side -f -";
        assert!(error.contains(advice), "{command:?}: {error}");
    }
}

#[tokio::test]
async fn who_may_not_see_all_is_told_to_choose_a_namespace() {
    let cluster = cluster().await;
    if cluster.is_embedded_and_has("no roles") {
        return;
    }
    let namespace = cluster.namespace("viewer").await;
    fleet(&namespace).await;
    let role = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: viewer}
rules: [{apiGroups: [infrastructure.cluster.x-k8s.io], resources: [physicalhosts], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: viewer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: viewer}
subjects: [{kind: ServiceAccount, name: viewer}]
";
    let viewer = cluster.service_account(&namespace, "viewer", role).await;
    let kubeconfig = viewer.kubeconfig().to_str().unwrap();
    let error = beskar7(&["hosts", "--kubeconfig", kubeconfig]).await.error();
    assert!(error.contains("cannot list resource"), "{error}");
    assert!(error.contains("Choose a namespace with --namespace"), "{error}");
    let said = beskar7(&["hosts", "--kubeconfig", kubeconfig, "-n", &namespace]).await.ok();
    assert!(said.contains("3 hosts"), "{said}");
    let error = beskar7(&["power", "on", "b7-free", "--kubeconfig", kubeconfig, "-n", &namespace]).await.error();
    assert!(error.contains("cannot patch resource"), "{error}");
}
