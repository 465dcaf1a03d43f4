//! Clusters and their templates on a real API server.

use api::beskar7::{Beskar7Cluster, Beskar7ClusterStatus};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::crds::{schema_of, specimen};
use crate::{accepts, change, cluster, manifest, read, refuses};

fn endpoint(host: &str, port: i32) -> Value {
    json!({"controlPlaneEndpoint": {"host": host, "port": port}})
}

#[tokio::test]
async fn endpoints_may_be_given_or_left_to_us() {
    let mut accepted = vec![
        json!({}),
        json!({"controlPlaneEndpoint": {}}),
        // As an example of v0.3 has it, and as Go writes what was not given.
        endpoint("", 6443),
        endpoint("", 0),
        json!({"failureDomainLabels": ["topology.kubernetes.io/zone", "example.com/rack", "row"]}),
    ];
    for host in [
        "192.0.2.100",
        "api.example.com",
        "localhost",
        "a",
        "API.Example.com",
        "2001:db8::1",
        "::1",
        "::ffff:192.0.2.1",
        "fe80::AB",
    ] {
        accepted.push(endpoint(host, 6443));
    }
    accepts("Beskar7Cluster", &accepted).await;
    let templates: Vec<_> = accepted.into_iter().map(|spec| json!({"template": {"spec": spec}})).collect();
    accepts("Beskar7ClusterTemplate", &templates).await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_a_sentence() {
    let host = "spec.controlPlaneEndpoint.host: Invalid value: \"object\": host must be an IP address or a DNS name, such as 192.0.2.100 or api.example.com, without scheme, port or brackets";
    let port = "spec.controlPlaneEndpoint.port: Required value: an endpoint with a host needs a port from 1 to 65535, such as 6443";
    let labels = "failureDomainLabels must consist of keys that a label can have, such as topology.kubernetes.io/zone";
    let long = format!("{}.com", "a".repeat(64));
    let table = [
        (endpoint("https://192.0.2.100", 6443), host),
        (endpoint("192.0.2.100:6443", 6443), host),
        (endpoint("[2001:db8::1]", 6443), host),
        (endpoint("a..b", 6443), host),
        (endpoint("-a.example.com", 6443), host),
        (endpoint("a-.example.com", 6443), host),
        (endpoint("my api", 6443), host),
        (endpoint(&long, 6443), host),
        (endpoint("192.0.2.100", 0), port),
        (json!({"controlPlaneEndpoint": {"host": "192.0.2.100"}}), port),
        (endpoint("192.0.2.100", 65536), "should be less than or equal to 65535"),
        (endpoint("192.0.2.100", -1), "should be greater than or equal to 0"),
        (json!({"failureDomainLabels": []}), "should have at least 1 items"),
        (json!({"failureDomainLabels": ["a", "b", "c", "d", "e", "f"]}), "must have at most 5 items"),
        (json!({"failureDomainLabels": ["zone", ""]}), labels),
        (json!({"failureDomainLabels": ["a/b/c"]}), labels),
        (json!({"failureDomainLabels": ["my zone"]}), labels),
    ];
    refuses("Beskar7Cluster", &table).await;
    let templates: Vec<_> =
        table.iter().map(|(spec, _)| (json!({"template": {"spec": spec}}), "spec.template")).collect();
    refuses("Beskar7ClusterTemplate", &templates).await;
}

#[tokio::test]
async fn an_endpoint_is_set_once() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("endpoint").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("machines-v0.3.yaml"))).await;
    let set = async |spec: Value| change(&namespace, "Beskar7Cluster", "ipxe-cluster", &json!({ "spec": spec })).await;

    set(endpoint("", 8443)).await.expect("nothing is set yet");
    set(json!({"failureDomainLabels": ["example.com/rack"]})).await.unwrap();
    set(endpoint("192.0.2.100", 6443)).await.expect("the first one counts");
    set(endpoint("192.0.2.100", 6443)).await.expect("once more the same");
    let sentence = "spec.controlPlaneEndpoint: Forbidden: controlPlaneEndpoint is written into certificates and configurations of the cluster and cannot change once it is set";
    for other in [
        endpoint("192.0.2.101", 6443),
        endpoint("192.0.2.100", 443),
        endpoint("", 6443),
        json!({"controlPlaneEndpoint": null}),
    ] {
        let said = set(other).await.unwrap_err();
        assert!(said.contains(sentence), "{said}");
    }
    set(json!({"failureDomainLabels": null})).await.expect("the rest may change");
}

#[tokio::test]
async fn a_template_may_be_changed_and_keeps_its_metadata() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("cluster-templates").await;
    let template = |host: &str| json!({"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": endpoint(host, 6443)}});
    let object = crate::object("Beskar7ClusterTemplate", &template("192.0.2.100"));
    cluster.apply_yaml_in(&namespace, &object.to_string()).await;
    let changed = json!({"spec": template("192.0.2.101")});
    change(&namespace, "Beskar7ClusterTemplate", "tried", &changed).await.expect("ClusterClass compares by dry runs");
    let get = ["get", "b7ct", "-n", &namespace, "tried", "-o", "json"];
    let stored: Value = serde_json::from_str(&cluster.kubectl(&get).await.ok()).unwrap();
    assert_eq!(stored["spec"], changed["spec"]);
}

#[tokio::test]
async fn no_field_of_a_status_is_lost() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("cluster-statuses").await;
    cluster.apply_yaml_in(&namespace, &read(manifest("machines-v0.4.yaml"))).await;
    let clusters: Api<Beskar7Cluster> = Api::namespaced(cluster.admin(), &namespace);
    let upstream = json!({
        "ready": true,
        "controlPlaneEndpoint": {"host": "10.0.0.6", "port": 6443},
        "failureDomains": {"rack-1": {"controlPlane": true}, "rack-2": {"controlPlane": true}},
        "conditions": [
            {"type": "ControlPlaneEndpointReady", "status": "True", "lastTransitionTime": "2025-10-23T10:00:00Z"},
        ],
    });
    for status in [upstream, specimen(&schema_of("Beskar7Cluster")["properties"]["status"])] {
        let patch = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Cluster", "status": status,
        });
        let params = PatchParams::apply("beskar7").force().validation_strict();
        let stored = clusters.patch_status("my-cluster", &params, &Patch::Apply(patch)).await.unwrap();
        let stored: Beskar7ClusterStatus = stored.status.unwrap();
        assert_eq!(serde_json::to_value(stored).unwrap(), status);
    }
    let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "All is well.", "lastTransitionTime": "2026-11-15T08:00:00Z"});
    let ready = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    clusters.patch_status("my-cluster", &PatchParams::default(), &ready).await.unwrap();
    let table = cluster.kubectl(&["get", "b7c", "-n", &namespace]).await.ok();
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NAME", "CLUSTER", "READY", "ENDPOINT", "AGE"], "\n{table}");
    assert_eq!(rows[1][..3], ["my-cluster", "True", "192.0.2.100"], "\n{table}");
}
