//! What an API server keeps of statuses, and of hosts that were stored before our CRD was.

use api::metal3::{BareMetalHost, BareMetalHostStatus};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::Cluster;

use super::{cluster, host, hosts, ours};
use crate::crds::specimen;
use crate::read;

#[tokio::test]
async fn no_field_of_a_status_is_lost() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("metal3-status").await;
    hosts(cluster, &namespace).create(&PostParams::default(), &host("host", &json!({}))).await.unwrap();
    let typed: Api<BareMetalHost> = Api::namespaced(cluster.admin(), &namespace);
    let crd = serde_json::to_value(&api::metal3_crds()[0]).unwrap();
    let mut full = specimen(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]);
    // Values that patterns and bounds allow.
    full["hardware"]["nics"][0]["mac"] = json!("52:54:00:12:34:56");
    let hints = full["provisioning"]["rootDeviceHints"].clone();
    full["provisioning"]["raid"]["softwareRAIDVolumes"][0]["physicalDisks"] = json!([hints, hints]);
    for status in [serde_json::to_value(BareMetalHostStatus::default()).unwrap(), full] {
        let patch = json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "status": status});
        let params = PatchParams::apply("beskar7").force().validation_strict();
        let stored = typed.patch_status("host", &params, &Patch::Apply(patch)).await.unwrap();
        assert_eq!(serde_json::to_value(stored.status.unwrap()).unwrap(), status);
    }
}

#[tokio::test]
async fn kubectl_applies_the_committed_crds_and_shows_upstreams_table() {
    let cluster = cluster().await;
    let folder = crate::config().join("crd/metal3").display().to_string();
    let applied = cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &folder]).await;
    assert_eq!(applied.stderr, "");
    let namespace = cluster.namespace("metal3-table").await;
    hosts(cluster, &namespace).create(&PostParams::default(), &host("host", &json!({}))).await.unwrap();
    let table = cluster.kubectl(&["get", "bmh", "-n", &namespace, "-o", "wide"]).await.ok();
    let head: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["NAME", "STATUS", "STATE", "CONSUMER", "BMC", "ONLINE", "ERROR", "AGE"]);
    let explained = cluster.kubectl(&["explain", "bmhost.status.record"]).await.ok();
    let words = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Do not edit it"), "{explained}");
    cluster.kubectl(&["get", "hd", "-n", &namespace]).await.ok();
}

/// Hosts that upstream's CRD accepts while its webhook is not running.
fn odd_hosts() -> [Value; 4] {
    let odd = |name: &str, spec: Value| json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": {"name": name}, "spec": spec});
    let mut bare = odd("bare", Value::Null);
    bare.as_object_mut().unwrap().remove("spec");
    [
        bare,
        odd("4c4c4544-0047-5010-8037-b2c04f4d4c32", json!({"online": true})),
        odd(
            "unknown-scheme",
            json!({"online": false, "disablePowerOff": true, "bmc": {"address": "irmc://h", "credentialsName": "bmc"}}),
        ),
        odd(
            "no-checksum",
            json!({"online": true, "image": {"url": ""}, "firmware": {}, "bmc": {"address": "redfish://h", "credentialsName": "bmc"}}),
        ),
    ]
}

#[tokio::test]
async fn hosts_from_before_our_crd_can_be_read_and_written_and_deleted() {
    let cluster = Cluster::start().await;
    cluster.apply_yaml(&read(testkit::part("bmo").join("crds/metal3.io_baremetalhosts.yaml"))).await;
    let objects = hosts(&cluster, "default");
    for odd in odd_hosts() {
        objects.create(&PostParams::default(), &serde_json::from_value(odd).unwrap()).await.unwrap();
    }
    cluster.apply_yaml(&ours()).await;
    let typed: Api<BareMetalHost> = Api::namespaced(cluster.admin(), "default");
    for odd in odd_hosts() {
        let name = odd["metadata"]["name"].as_str().unwrap();
        // The new schema takes effect after a moment.
        testkit::wait_for("the record to be kept", std::time::Duration::from_mins(1), async || {
            let status = BareMetalHostStatus { record: Some("kept".to_owned()), ..BareMetalHostStatus::default() };
            let patch = json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "status": status});
            let params = PatchParams::apply("beskar7").force();
            let host = typed.patch_status(name, &params, &Patch::Apply(patch)).await.unwrap();
            host.status.and_then(|status| status.record)
        })
        .await;
        let marked = json!({"metadata": {"finalizers": ["baremetalhost.metal3.io"], "annotations": {"a": "b"}}});
        typed.patch(name, &PatchParams::default(), &Patch::Merge(marked)).await.unwrap();
        typed.delete(name, &DeleteParams::default()).await.unwrap();
        let released = json!({"metadata": {"finalizers": null}});
        typed.patch(name, &PatchParams::default(), &Patch::Merge(released)).await.unwrap();
        assert!(typed.get_opt(name).await.unwrap().is_none(), "{name}");
    }
}
