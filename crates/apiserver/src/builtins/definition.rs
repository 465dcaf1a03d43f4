//! CustomResourceDefinitions: what they look like. What becomes of them is in [`crate::crd`].

use serde_json::{Value, json};

use super::{Plan, column, name_column, rules, v1};
use crate::resource::{Cell, Column, Hooks, Part, Resource, Scope, Version};
use crate::status::Failure;

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        scope: Scope::Cluster,
    };
    let created = |object: &Value, _| rules::text(object, &["metadata", "creationTimestamp"]).into();
    let created = column("Created At", "When the object was made.", Cell::Compute(created));
    let columns = vec![name_column(), Column { kind: "date".to_owned(), ..created }];
    let component = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
    let version = Version { status: true, ..v1(component, columns, &[])? };
    let hooks = Hooks { default, prepare, ..Hooks::NONE };
    Ok(plan.resource(vec![version], hooks))
}

fn default(new: &mut Value) {
    if let Some(spec) = new.get_mut("spec") {
        rules::keep(spec, "conversion", json!({ "strategy": "None" }));
        if let Some(names) = spec.get_mut("names") {
            let kind = rules::text(names, &["kind"]).to_owned();
            rules::leave_out(names, &["shortNames", "categories", "singular", "listKind"]);
            if !kind.is_empty() {
                rules::keep(names, "singular", kind.to_lowercase().into());
                rules::keep(names, "listKind", format!("{kind}List").into());
            }
        }
        for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
            rules::leave_out(version, &["deprecated", "additionalPrinterColumns", "selectableFields"]);
            rules::keep(version, "served", false.into());
            rules::keep(version, "storage", false.into());
        }
    }
    rules::keep(new, "status", json!({}));
    if let Some(status) = new.get_mut("status") {
        rules::keep(status, "acceptedNames", json!({ "plural": "", "kind": "" }));
        rules::keep(status, "conditions", Value::Null);
        rules::keep(status, "storedVersions", Value::Null);
    }
}

fn prepare(new: &mut Value, old: Option<&Value>, part: Part) {
    match (old, part) {
        (Some(old), Part::Status) => rules::keep_old(new, old, "spec"),
        (Some(old), _) => rules::keep_old(new, old, "status"),
        (None, _) => {
            rules::set(new, "status", json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" } }));
        }
    }
    if part != Part::Status {
        remember_stored_version(new);
    }
}

/// Objects may be stored in this version from now on.
fn remember_stored_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<String> = versions
        .filter(|version| version["storage"] == true)
        .filter_map(|version| Some(version["name"].as_str()?.to_owned()))
        .collect();
    let Some(Value::Object(status)) = definition.get_mut("status") else { return };
    let known = status.entry("storedVersions").or_insert(Value::Null);
    if !known.is_array() {
        *known = json!([]);
    }
    if let Value::Array(known) = known {
        for version in stored {
            if !known.iter().any(|name| *name == version) {
                known.push(version.into());
            }
        }
    }
}
