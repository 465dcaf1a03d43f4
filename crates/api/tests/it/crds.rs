//! The generated CRDs.

use api::beskar7::{
    Beskar7ClusterSpec, Beskar7ClusterStatus, Beskar7ClusterTemplateSpec, Beskar7MachineSpec, Beskar7MachineStatus,
    Beskar7MachineTemplateSpec, GROUP, PhysicalHostStatus,
};
use api::boot::BootSessionSpec;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::statuses::{machine_statuses, statuses};
use crate::{config, read};

#[test]
fn the_committed_crds_are_the_generated_ones() {
    for (folder, crds) in
        [("crd", api::crds()), ("crd/metal3", api::metal3_crds()), ("crd/ironcore", api::ironcore_crds())]
    {
        for (name, generated) in api::crd::files(&crds) {
            let committed = std::fs::read_to_string(config().join(folder).join(&name)).unwrap_or_default();
            assert!(committed == generated, "config/{folder}/{name} does not match the types: run `make manifests`");
            assert!(
                read(config().join(folder).join("kustomization.yaml")).contains(&format!("- {name}\n")),
                "config/{folder}/kustomization.yaml does not list {name}"
            );
        }
    }
}

#[test]
fn the_yaml_says_what_the_crds_say() {
    for crds in [api::crds(), api::metal3_crds(), api::ironcore_crds()] {
        let read_back: Vec<CustomResourceDefinition> =
            serde_saphyr::from_multiple(&api::crd::documents(&crds)).unwrap();
        assert_eq!(read_back, crds);
    }
}

#[test]
fn both_versions_are_served_with_one_shape() {
    for crd in api::crds().into_iter().filter(|crd| crd.spec.group == GROUP) {
        let kind = crd.spec.names.kind;
        let crd = crd_of(&kind);
        let versions = crd["spec"]["versions"].as_array().unwrap();
        let flags: Vec<_> = versions.iter().map(|v| json!([v["name"], v["served"], v["storage"]])).collect();
        assert_eq!(flags, [json!(["v1beta1", true, true]), json!(["v1alpha1", true, false])], "{kind}");
        for part in ["schema", "additionalPrinterColumns", "subresources"] {
            assert_eq!(versions[0][part], versions[1][part], "{kind}");
        }
        assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}), "{kind}");
    }
    assert_eq!(
        physical_hosts()["metadata"]["labels"],
        json!({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta1"}),
        "Cluster API finds the contract by these labels"
    );
    assert_eq!(physical_hosts()["spec"]["versions"][0]["subresources"], json!({"status": {}}));
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
fn the_schemas_are_structural_and_explained() {
    for crd in api::crds() {
        check(&schema_of(&crd.spec.names.kind), &crd.spec.names.kind);
    }
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
            let values = object.get("additionalProperties");
            if let Some(values) = values {
                check(values, &format!("{path}[]"));
            }
            assert!(
                properties.is_some()
                    || values.is_some()
                    || object.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true)),
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
fn the_schemas_and_the_rust_types_have_the_same_fields() {
    kept::<PhysicalHostStatus>("PhysicalHost", "status");
    kept::<Beskar7MachineSpec>("Beskar7Machine", "spec");
    kept::<Beskar7MachineStatus>("Beskar7Machine", "status");
    kept::<Beskar7MachineTemplateSpec>("Beskar7MachineTemplate", "spec");
    kept::<Beskar7ClusterSpec>("Beskar7Cluster", "spec");
    kept::<Beskar7ClusterStatus>("Beskar7Cluster", "status");
    kept::<Beskar7ClusterTemplateSpec>("Beskar7ClusterTemplate", "spec");
    kept::<BootSessionSpec>("BootSession", "spec");
}

/// A value with every field of the schema is read, and written as it was.
fn kept<T: DeserializeOwned + Serialize>(kind: &str, part: &str) {
    let full = specimen(&schema_of(kind)["properties"][part]);
    let typed: T = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), full, "{kind}");
}

#[test]
fn statuses_of_all_generations_are_read_and_kept() {
    for (generation, status) in statuses() {
        let typed: PhysicalHostStatus = serde_json::from_value(status.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), status, "{generation}");
    }
    for (generation, status) in machine_statuses() {
        let typed: Beskar7MachineStatus = serde_json::from_value(status.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), status, "{generation}");
    }
}

#[test]
fn an_empty_status_writes_nothing() {
    assert_eq!(serde_json::to_value(PhysicalHostStatus::default()).unwrap(), json!({}));
    assert_eq!(serde_json::to_value(Beskar7MachineStatus::default()).unwrap(), json!({}));
    assert_eq!(serde_json::to_value(Beskar7ClusterStatus::default()).unwrap(), json!({}));
}

/// A value with every field that the schema knows.
pub(crate) fn specimen(schema: &Value) -> Value {
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!("7Gi");
    }
    match (schema["type"].as_str().unwrap(), schema["format"].as_str()) {
        ("object", _) if schema["additionalProperties"].is_object() => {
            json!({"name": specimen(&schema["additionalProperties"])})
        }
        ("object", _) if schema["properties"].is_null() => json!({"anything": {"goes": [1, "two", null]}}),
        ("object", _) => {
            schema["properties"].as_object().unwrap().iter().map(|(k, v)| (k.clone(), specimen(v))).collect()
        }
        ("array", _) => json!([specimen(&schema["items"])]),
        ("string", Some("date-time")) => json!("2026-11-15T12:00:00Z"),
        ("string", Some("byte")) => json!("dGV4dA=="),
        ("string", Some("ip")) => json!("192.0.2.7"),
        ("string", _) => json!("text"),
        ("integer", _) => json!(7),
        ("number", _) => json!(7.5),
        ("boolean", _) => json!(true),
        (other, _) => panic!("no specimen of {other}"),
    }
}

fn physical_hosts() -> Value {
    crd_of("PhysicalHost")
}

pub(crate) fn crd_of(kind: &str) -> Value {
    let crd = api::crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    serde_json::to_value(crd).unwrap()
}

pub(crate) fn schema_of(kind: &str) -> Value {
    crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

pub(crate) fn schema() -> Value {
    schema_of("PhysicalHost")
}
