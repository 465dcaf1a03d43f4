//! CustomResourceDefinitions: what they look like. What becomes of them is in [`crate::crd`].

use schema::object;
use schema::pattern::within_limits;
use serde_json::{Value, json};

use super::{Plan, column, name_column, rules, v1};
use crate::crd::CLEANUP;
use crate::crd::conditions::{self, Condition};
use crate::resource::{Cell, Column, Hooks, Part, Resource, Scope, Version};
use crate::status::{Failure, FieldError};

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
    let hooks = Hooks { default, prepare, validate, deleting, held, ..Hooks::NONE };
    Ok(plan.resource(vec![version], hooks))
}

fn default(new: &mut Value) {
    if let Some(spec) = new.get_mut("spec") {
        rules::leave_out(spec, &["preserveUnknownFields"]);
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
            for column in
                version.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut).into_iter().flatten()
            {
                rules::leave_out(column, &["description", "format", "priority"]);
            }
            if let Some(schema) = version.get_mut("schema").and_then(|schema| schema.get_mut("openAPIV3Schema")) {
                tidy(schema);
            }
        }
    }
    rules::keep(new, "status", json!({}));
    if let Some(status) = new.get_mut("status") {
        rules::keep(status, "acceptedNames", json!({ "plural": "", "kind": "" }));
        rules::keep(status, "conditions", Value::Null);
        rules::keep(status, "storedVersions", Value::Null);
    }
}

/// Leaves out what Kubernetes leaves out of a schema.
fn tidy(schema: &mut Value) {
    const EMPTY: [&str; 23] = [
        "id",
        "$schema",
        "description",
        "type",
        "format",
        "title",
        "pattern",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "uniqueItems",
        "nullable",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "required",
        "enum",
        "allOf",
        "anyOf",
        "oneOf",
        "properties",
        "patternProperties",
        "definitions",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
    ];
    rules::leave_out(schema, &EMPTY);
    for (key, value) in schema.as_object_mut().into_iter().flatten() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties" | "definitions", Value::Object(schemas)) => {
                schemas.values_mut().for_each(tidy);
            }
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => schemas.iter_mut().for_each(tidy),
            ("items" | "not" | "additionalProperties" | "additionalItems", schema @ Value::Object(_)) => tidy(schema),
            ("externalDocs", documentation) => rules::leave_out(documentation, &["description", "url"]),
            ("x-kubernetes-validations", Value::Array(all)) => {
                for rule in all {
                    rules::leave_out(rule, &["message", "messageExpression", "fieldPath"]);
                }
            }
            _ => {}
        }
    }
}

fn prepare(new: &mut Value, old: Option<&Value>, part: Part) {
    let generation = old.and_then(|old| old["metadata"]["generation"].as_i64());
    match (old, part) {
        (Some(old), Part::Status) => rules::keep_old(new, old, "spec"),
        (Some(old), _) => {
            rules::keep_old(new, old, "status");
            if new["spec"] != old["spec"] {
                set_generation(new, generation.unwrap_or(0) + 1);
            }
        }
        (None, _) => {
            rules::set(new, "status", json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" } }));
            set_generation(new, 1);
        }
    }
    if part != Part::Status {
        remember_stored_version(new);
    }
}

fn validate(new: &Value, old: Option<&Value>, part: Part, _: &Version) -> Vec<FieldError> {
    if part == Part::Status { Vec::new() } else { within_limits(|| crate::crd::validate::validate(new, old)) }
}

fn set_generation(definition: &mut Value, generation: i64) {
    object::meta_mut(definition).insert("generation".to_owned(), generation.into());
}

/// Its objects go first: the definition waits for them, and says so.
fn deleting(definition: &mut Value) {
    let meta = object::meta_mut(definition);
    let since = meta.get("deletionTimestamp").cloned().unwrap_or_default();
    meta.remove("deletionGracePeriodSeconds");
    // Unlike that of other objects, its generation does not count deletion.
    if let Some(generation) = meta.get("generation").and_then(Value::as_i64) {
        meta.insert("generation".to_owned(), (generation - 1).into());
    }
    let finalizers = meta.entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|finalizer| finalizer == CLEANUP)
    {
        finalizers.push(CLEANUP.into());
    }
    rules::keep(definition, "status", json!({}));
    if let Some(status) = definition.get_mut("status") {
        conditions::set(status, &Condition::deletion_pending(), since.as_str().unwrap_or_default());
    }
}

/// Until its deletion has begun, a definition cannot just vanish.
fn held(definition: &Value) -> bool {
    !conditions::is_true(definition, "Terminating")
}

/// Objects may be stored in this version from now on.
fn remember_stored_version(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Option<String> = versions
        .filter(|version| version["storage"] == true)
        .find_map(|version| Some(version["name"].as_str()?.to_owned()));
    let Some(Value::Object(status)) = definition.get_mut("status") else { return };
    let known = status.entry("storedVersions").or_insert(Value::Null);
    if !known.is_array() {
        *known = json!([]);
    }
    if let (Value::Array(known), Some(version)) = (known, stored)
        && !known.iter().any(|name| *name == version)
    {
        known.push(version.into());
    }
}
