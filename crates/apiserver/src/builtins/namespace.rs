//! Namespaces: what they look like. Their life is in [`crate::namespaces`].

use schema::{names, object};
use serde_json::{Value, json};

use super::{Plan, age_column, column, name_column, rules, v1};
use crate::resource::{Cell, Hooks, Part, Resource, Scope, Version};
use crate::status::{Failure, FieldError};

const FINALIZER: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "",
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        categories: &[],
        scope: Scope::Cluster,
    };
    let phase = |object: &Value, _| rules::text(object, &["status", "phase"]).into();
    let columns =
        vec![name_column(), column("Status", "Whether it is being deleted.", Cell::Compute(phase)), age_column()];
    let version = Version { status: true, ..v1("io.k8s.api.core.v1.Namespace", columns, &[".status.phase"])? };
    let hooks = Hooks { default, prepare, validate, valid_name: names::label, deleting, stays, held, ..Hooks::NONE };
    Ok(plan.resource(vec![version], hooks))
}

fn default(new: &mut Value) {
    name_label(new);
    rules::keep(new, "spec", json!({}));
    rules::keep(new, "status", json!({}));
    if let Some(spec) = new.get_mut("spec") {
        rules::leave_out(spec, &["finalizers"]);
    }
    if let Some(status) = new.get_mut("status") {
        rules::leave_out(status, &["conditions", "phase"]);
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            rules::leave_out(condition, &["message", "reason"]);
            rules::keep(condition, "lastTransitionTime", Value::Null);
        }
    }
}

fn name_label(new: &mut Value) {
    let name = object::name(new).to_owned();
    if !name.is_empty() {
        let labels = object::meta_mut(new).entry("labels").or_insert_with(|| json!({}));
        rules::set(labels, NAME_LABEL, name.into());
    }
}

fn prepare(new: &mut Value, old: Option<&Value>, part: Part) {
    name_label(new);
    match (old, part) {
        (None, _) => {
            rules::set(new, "status", json!({ "phase": "Active" }));
            let mut names: Vec<Value> = finalizers(new).map(Into::into).collect();
            if !names.iter().any(|name| name == FINALIZER) {
                names.push(FINALIZER.into());
            }
            rules::set(new, "spec", json!({ "finalizers": names }));
        }
        (Some(old), Part::Main) => {
            rules::keep_old(new, old, "spec");
            rules::keep_old(new, old, "status");
        }
        (Some(old), Part::Status) => rules::keep_old(new, old, "spec"),
        (Some(old), Part::Finalize) => rules::keep_old(new, old, "status"),
    }
}

fn validate(new: &Value, old: Option<&Value>, part: Part, _: &Version) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_none() || part == Part::Finalize {
        for (index, name) in finalizers(new).enumerate() {
            let path = if old.is_none() { "spec.finalizers".to_owned() } else { format!("spec.finalizers[{index}]") };
            let mut wrong = names::qualified_faults(name);
            if !name.contains('/') && ![FINALIZER, "orphan", "foregroundDeletion"].contains(&name) {
                wrong.push("name is neither a standard finalizer name nor is it fully qualified".to_owned());
            }
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&path, name, why)));
        }
    }
    if part == Part::Status {
        let phase = rules::text(new, &["status", "phase"]);
        let (expected, why) = if object::is_deleting(new) {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        } else {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        };
        if phase != expected {
            errors.push(FieldError::invalid("status.Phase", phase, why));
        }
    }
    errors
}

fn finalizers(namespace: &Value) -> impl Iterator<Item = &str> {
    namespace["spec"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn deleting(namespace: &mut Value) {
    rules::keep(namespace, "status", json!({}));
    if let Some(status) = namespace.get_mut("status") {
        rules::set(status, "phase", "Terminating".into());
    }
}

fn stays(name: &str) -> Option<&'static str> {
    matches!(name, "default" | "kube-system" | "kube-public").then_some("this namespace may not be deleted")
}

fn held(namespace: &Value) -> bool {
    finalizers(namespace).next().is_some()
}
