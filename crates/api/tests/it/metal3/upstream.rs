//! Our CRDs beside those of baremetal-operator.

use std::collections::BTreeMap;

use serde_json::{Value, json};

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

/// What a CRD promises, one fact under each name. Texts and rules are nobody's to compare.
fn facts(crd: &Value) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::new();
    for field in ["group", "names", "scope"] {
        facts.insert(field.to_owned(), crd["spec"][field].clone());
    }
    let versions = crd["spec"]["versions"].as_array().unwrap();
    for version in versions {
        let name = version["name"].as_str().unwrap();
        facts.insert(format!("{name} served, stored"), json!([version["served"], version["storage"]]));
        let subresources = version["subresources"].as_object().cloned().unwrap_or_default();
        facts.insert(format!("{name} subresources"), json!(subresources));
        for (place, column) in version["additionalPrinterColumns"].as_array().unwrap().iter().enumerate() {
            let mut column = column.clone();
            column.as_object_mut().unwrap().remove("description");
            facts.insert(format!("column {place}"), column);
        }
        let mut schema = version["schema"]["openAPIV3Schema"].clone();
        for every_objects in ["apiVersion", "kind", "metadata"] {
            schema["properties"].as_object_mut().unwrap().remove(every_objects);
        }
        walk(&schema, "object", &mut facts);
    }
    facts
}

fn walk(schema: &Value, path: &str, facts: &mut BTreeMap<String, Value>) {
    for (key, value) in schema.as_object().unwrap() {
        match key.as_str() {
            "description" | "x-kubernetes-validations" => {}
            "properties" => {
                for (name, field) in value.as_object().unwrap() {
                    walk(field, &format!("{path}.{name}"), facts);
                }
            }
            "items" => walk(value, &format!("{path}[]"), facts),
            "required" => {
                let mut names: Vec<_> = value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
                names.sort_unstable();
                facts.insert(format!("{path} required"), json!(names));
            }
            // 0 or 0.0
            "minimum" | "maximum" => {
                facts.insert(format!("{path} {key}"), json!(value.as_f64()));
            }
            _ => {
                facts.insert(format!("{path} {key}"), value.clone());
            }
        }
    }
}

/// What is different: the fact, theirs, ours.
fn differences(plural: &str) -> Vec<(String, Value, Value)> {
    let (theirs, ours) = (facts(&upstream(plural)), facts(&ours(plural)));
    let names = theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)));
    let fact = |facts: &BTreeMap<String, Value>, name: &String| facts.get(name).cloned().unwrap_or_default();
    names
        .map(|name| (name.clone(), fact(&theirs, name), fact(&ours, name)))
        .filter(|(_, theirs, ours)| theirs != ours)
        .collect()
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
    let mut found = differences("baremetalhosts");
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found, expected);
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
    fn check(schema: &Value, path: &str) {
        if !path.ends_with("[]") {
            assert!(schema["description"].as_str().is_some_and(|text| text.len() > 3), "{path} has no text");
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            check(field, &format!("{path}.{name}"));
        }
        if schema["items"].is_object() {
            check(&schema["items"], &format!("{path}[]"));
        }
    }
    for plural in ["baremetalhosts", "hardwaredata"] {
        check(&ours(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], plural);
    }
}
