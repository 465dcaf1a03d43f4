//! Leases.

use serde_json::{Value, json};

use super::{Plan, age_column, column, name_column, rules, v1};
use crate::resource::{Cell, Hooks, Part, Resource, Scope, Version};
use crate::status::{Failure, FieldError};

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        short_names: &[],
        categories: &[],
        scope: Scope::Namespaced,
    };
    let holder = |object: &Value, _| rules::text(object, &["spec", "holderIdentity"]).into();
    let columns = vec![name_column(), column("Holder", "Who holds it.", Cell::Compute(holder)), age_column()];
    let hooks = Hooks { default, prepare, validate, made_by_replacing: true, ..Hooks::NONE };
    Ok(plan.resource(vec![v1("io.k8s.api.coordination.v1.Lease", columns, &[])?], hooks))
}

fn default(new: &mut Value) {
    rules::keep(new, "spec", json!({}));
    if let Some(spec) = new.get_mut("spec") {
        rules::leave_out(spec, &[]);
    }
}

/// Coordinated leader election is not on by default: its fields are dropped, unless they were there before.
fn prepare(new: &mut Value, old: Option<&Value>, _: Part) {
    let Some(Value::Object(spec)) = new.get_mut("spec") else { return };
    for field in ["strategy", "preferredHolder"] {
        if old.is_none_or(|old| old["spec"].get(field).is_none()) {
            spec.remove(field);
        }
    }
}

fn validate(new: &Value, _: Option<&Value>, _: Part, _: &Version) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (field, least, why) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        if let Some(value) = new["spec"][field].as_i64().filter(|&value| value < least) {
            errors.push(FieldError::invalid(format!("spec.{field}"), value, why));
        }
    }
    errors
}
