//! What the real kube-apiserver (v1.33) answers. The table is a recording; values that Go prints with addresses in them
//! have been replaced by `…`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::validate;
use crate::status::FieldError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    definition: Value,
    says: Vec<String>,
}

/// As it is when it comes to validation: with defaults, and with the stored versions.
fn prepared(mut definition: Value) -> Value {
    let spec = &mut definition["spec"];
    if spec.get("conversion").is_none() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if !kind.is_empty() {
        for (key, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
            if spec["names"].get(key).is_none() {
                spec["names"][key] = name.into();
            }
        }
    }
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    if let Some(stored) = versions.iter().find(|version| version["storage"] == true) {
        definition["status"] = json!({"storedVersions": [stored["name"]]});
    }
    definition
}

/// Whether the same is said of the same places; how Go prints values that are no scalars does not matter.
fn are_alike(ours: &[String], recorded: &[String]) -> bool {
    let same = |(ours, recorded): (&String, &String)| {
        let Some((before, after)) = recorded.split_once("Invalid value: ") else { return ours == recorded };
        let said = ["…", "[]string(nil)"].iter().find_map(|value| after.strip_prefix(value));
        let said = said.or_else(|| after.strip_prefix("[]string{").and_then(|list| Some(list.split_once('}')?.1)));
        said.map_or(ours == recorded, |said| ours.starts_with(before) && ours.ends_with(said))
    };
    ours.len() == recorded.len() && ours.iter().zip(recorded).all(same)
}

fn sentences(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn definitions_are_refused_as_recorded() {
    let rows: Vec<Row> = serde_json::from_str(include_str!("tests/definitions.json")).expect("a table");
    assert!(rows.len() > 50);
    let mut wrong = Vec::new();
    for row in rows {
        let says = sentences(&validate(&prepared(row.definition.clone()), None));
        if !are_alike(&says, &row.says) {
            wrong.push(format!("{}\n  said {:#?}\n  not  {says:#?}", row.definition, row.says));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn established() -> Value {
    let mut definition = prepared(json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        },
    }));
    definition["status"]["conditions"] = json!([{"type": "Established", "status": "True"}]);
    definition
}

#[test]
fn what_objects_are_stored_by_cannot_be_changed() {
    let old = established();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new);
        sentences(&validate(&new, Some(&old)))
    };
    assert_eq!(changed(&|_| {}), [""; 0]);
    assert_eq!(
        changed(&|new| new["spec"]["scope"] = "Namespaced".into()),
        [r#"spec.scope: Invalid value: "Namespaced": field is immutable"#]
    );
    assert_eq!(
        changed(&|new| new["spec"]["names"]["kind"] = "Other".into()),
        [r#"spec.names.kind: Invalid value: "Other": field is immutable"#]
    );
    assert_eq!(
        changed(&|new| new["spec"]["group"] = "other.example.com".into()),
        [r#"spec.group: Invalid value: "other.example.com": field is immutable"#]
    );
    assert_eq!(
        changed(&|new| new["spec"]["names"]["plural"] = "others".into()),
        [r#"spec.names.plural: Invalid value: "others": field is immutable"#]
    );
    assert_eq!(
        changed(&|new| {
            new["spec"]["versions"][0]["name"] = "v2".into();
            new["status"]["storedVersions"] = json!(["v1", "v2"]);
        }),
        [concat!(
            r#"status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage "#,
            "version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ",
            "v1 and removes v1 from status.storedVersions"
        )]
    );
}

#[test]
fn until_a_definition_is_established_its_kind_and_scope_may_change() {
    let mut old = established();
    old["status"]["conditions"] = json!([]);
    let mut new = old.clone();
    new["spec"]["scope"] = "Namespaced".into();
    new["spec"]["names"]["kind"] = "Other".into();
    assert_eq!(sentences(&validate(&new, Some(&old))), [""; 0]);
}

#[test]
fn conversion_webhooks_are_refused_with_a_sentence() {
    let mut definition = established();
    definition["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(
        sentences(&validate(&definition, None)),
        [
            "spec.conversion.strategy: Forbidden: conversion webhooks are not supported by this server; versions must be \
             alike, and the strategy None"
        ]
    );
}
