//! Our CRDs beside those of baremetal-operator.

use serde_json::{Value, json};

use crate::compared::{self, facts, is_explained};
use crate::crds::specimen;
use crate::read;

fn upstream(plural: &str) -> Value {
    let file = testkit::part("bmo").join(format!("crds/metal3.io_{plural}.yaml"));
    serde_saphyr::from_str(&read(file)).unwrap()
}

fn ours(plural: &str) -> Value {
    let crd = api::metal3_crds().into_iter().find(|crd| crd.spec.names.plural == plural).unwrap();
    serde_json::to_value(crd).unwrap()
}

/// What is different, but for our rules, which stand in for upstream's webhook.
fn differences(plural: &str) -> Vec<(String, Value, Value)> {
    let mut differences = compared::differences(&upstream(plural), &ours(plural));
    differences.retain(|(fact, _, _)| !fact.ends_with(" rules"));
    differences
}

#[test]
fn the_crd_of_hosts_is_upstreams_but_for_what_is_listed_here() {
    let formats = json!(["raw", "qcow2", "vdi", "vmdk", "live-iso"]);
    // Cluster API's provider writes an empty format when its user gave none.
    let more_formats = json!(["raw", "qcow2", "vdi", "vmdk", "live-iso", ""]);
    let mut expected = vec![
        ("object.spec.image.format enum".to_owned(), formats.clone(), more_formats.clone()),
        ("object.status.provisioning.image.format enum".to_owned(), formats, more_formats),
        // Ours.
        ("object.status.record type".to_owned(), Value::Null, json!("string")),
    ];
    // A boolean is true or false anyhow.
    for firmware in ["spec.firmware", "status.provisioning.firmware"] {
        for field in ["simultaneousMultithreadingEnabled", "sriovEnabled", "virtualizationEnabled"] {
            expected.push((format!("object.{firmware}.{field} enum"), json!([true, false]), Value::Null));
        }
    }
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(differences("baremetalhosts"), expected);
    assert!(facts(&upstream("baremetalhosts")).len() > 250, "nothing was compared");
}

#[test]
fn the_crd_of_hardware_data_is_upstreams() {
    assert_eq!(differences("hardwaredata"), []);
    assert!(facts(&upstream("hardwaredata")).len() > 60, "nothing was compared");
}

#[test]
fn clusterctl_finds_the_crds() {
    for crd in api::metal3_crds() {
        let labels = crd.metadata.labels.unwrap();
        assert_eq!(labels.get("clusterctl.cluster.x-k8s.io").map(String::as_str), Some(""));
    }
}

#[test]
fn every_field_of_upstream_is_in_the_types() {
    let part = |plural: &str, part: &str| {
        let schema = &upstream(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        specimen(&schema["properties"][part])
    };
    let spec = part("baremetalhosts", "spec");
    let typed: api::metal3::BareMetalHostSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), spec);
    let mut status = part("baremetalhosts", "status");
    let typed: api::metal3::BareMetalHostStatus = serde_json::from_value(status.clone()).unwrap();
    // Its first value is the empty one, which upstream writes, too.
    status["operationalStatus"] = json!("");
    assert_eq!(serde_json::to_value(typed).unwrap(), status);
    let spec = part("hardwaredata", "spec");
    let typed: api::metal3::HardwareDataSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), spec);
}

#[test]
fn every_field_of_ours_is_explained() {
    for plural in ["baremetalhosts", "hardwaredata"] {
        is_explained(&ours(plural));
    }
}
