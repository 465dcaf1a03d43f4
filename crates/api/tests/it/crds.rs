//! The generated CRDs.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::statuses::statuses;
use crate::{config, read};

#[test]
fn the_committed_crds_are_the_generated_ones() {
    for (name, generated) in api::crd_files() {
        let path = config().join("crd").join(&name);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == generated, "config/crd/{name} does not match the types: run `make manifests`");
        assert!(
            read(config().join("crd/kustomization.yaml")).contains(&name),
            "config/crd/kustomization.yaml does not list {name}"
        );
    }
}

#[test]
fn the_yaml_says_what_the_crds_say() {
    let read_back: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&api::crds_yaml()).unwrap();
    assert_eq!(read_back, api::crds());
}

#[test]
fn both_versions_are_served_with_one_shape() {
    let crd = physical_hosts();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let flags: Vec<_> = versions.iter().map(|v| json!([v["name"], v["served"], v["storage"]])).collect();
    assert_eq!(flags, [json!(["v1beta1", true, true]), json!(["v1alpha1", true, false])]);
    assert_eq!(versions[0]["schema"], versions[1]["schema"]);
    assert_eq!(versions[0]["additionalPrinterColumns"], versions[1]["additionalPrinterColumns"]);
    assert_eq!(versions[0]["subresources"], json!({"status": {}}));
    assert_eq!(versions[1]["subresources"], json!({"status": {}}));
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(
        crd["metadata"]["labels"],
        json!({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta1"}),
        "Cluster API finds the contract by these labels"
    );
}

#[test]
fn only_the_connection_is_required() {
    let schema = schema();
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(schema["properties"]["spec"]["required"], json!(["redfishConnection"]));
    assert_eq!(
        schema["properties"]["spec"]["properties"]["redfishConnection"]["required"],
        json!(["address", "credentialsSecretRef"])
    );
    assert_eq!(schema["properties"]["status"]["required"], Value::Null);
}

#[test]
fn the_schema_is_structural_and_explained() {
    check(&schema(), "");
}

/// A schema as the API server wants it, with a text for `kubectl explain` and an owner rule for every list.
fn check(schema: &Value, path: &str) {
    let object = schema.as_object().unwrap_or_else(|| panic!("{path} is not a schema: {schema}"));
    for forbidden in ["$ref", "definitions", "$defs", "anyOf", "oneOf", "allOf", "nullable", "default", "title"] {
        assert!(!object.contains_key(forbidden), "{path} has {forbidden}");
    }
    let format = object.get("format").and_then(Value::as_str);
    assert!(matches!(format, None | Some("int32" | "int64" | "date-time")), "{path} has format {format:?}");
    if !path.ends_with("[]") {
        assert!(object.get("description").and_then(Value::as_str).is_some_and(|d| d.len() > 3), "{path} has no text");
    }
    match object.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = object.get("properties").and_then(Value::as_object);
            assert!(
                properties.is_some() || object.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true)),
                "{path} is an object without properties"
            );
            for (name, property) in properties.into_iter().flatten() {
                check(property, &format!("{path}.{name}"));
            }
        }
        Some("array") => {
            assert!(object.contains_key("x-kubernetes-list-type"), "{path} is a list without a list type");
            check(&schema["items"], &format!("{path}[]"));
        }
        Some("string" | "integer" | "boolean") => {}
        other => panic!("{path} has type {other:?}"),
    }
}

#[test]
fn the_schema_and_the_rust_types_have_the_same_fields() {
    let full = specimen(&schema()["properties"]["status"]);
    let typed: api::beskar7::PhysicalHostStatus = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), full);
}

#[test]
fn statuses_of_all_generations_are_read_and_kept() {
    for (generation, status) in statuses() {
        let typed: api::beskar7::PhysicalHostStatus = serde_json::from_value(status.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), status, "{generation}");
    }
}

#[test]
fn an_empty_status_writes_nothing() {
    assert_eq!(serde_json::to_value(api::beskar7::PhysicalHostStatus::default()).unwrap(), json!({}));
}

/// A value with every field that the schema knows.
pub(crate) fn specimen(schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    match (schema["type"].as_str().unwrap(), schema["format"].as_str()) {
        ("object", _) if schema["properties"].is_null() => json!({"anything": {"goes": [1, "two", null]}}),
        ("object", _) => {
            schema["properties"].as_object().unwrap().iter().map(|(k, v)| (k.clone(), specimen(v))).collect()
        }
        ("array", _) => json!([specimen(&schema["items"])]),
        ("string", Some("date-time")) => json!("2026-11-15T12:00:00Z"),
        ("string", _) => json!("text"),
        ("integer", _) => json!(7),
        ("boolean", _) => json!(true),
        (other, _) => panic!("no specimen of {other}"),
    }
}

fn physical_hosts() -> Value {
    serde_json::to_value(&api::crds()[0]).unwrap()
}

pub(crate) fn schema() -> Value {
    physical_hosts()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}
