//! ConfigMaps.

use serde_json::Value;

use super::rules::{self, MOST_DATA};
use super::{Plan, age_column, column, name_column, v1};
use crate::resource::{Cell, Hooks, Part, Resource, Scope, Version};
use crate::status::{Failure, FieldError, FieldFault};

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "",
        kind: "ConfigMap",
        plural: "configmaps",
        short_names: &["cm"],
        categories: &[],
        scope: Scope::Namespaced,
    };
    let size = |object: &Value, _| (rules::count(object, "data") + rules::count(object, "binaryData")).into();
    let columns = vec![name_column(), column("Data", "How many entries there are.", Cell::Compute(size)), age_column()];
    let hooks = Hooks { default, validate, ..Hooks::NONE };
    Ok(plan.resource(vec![v1("io.k8s.api.core.v1.ConfigMap", columns, &[])?], hooks))
}

fn default(new: &mut Value) {
    rules::leave_out(new, &["data", "binaryData"]);
}

fn validate(new: &Value, old: Option<&Value>, _: Part, _: &Version) -> Vec<FieldError> {
    let mut errors = old.map_or_else(Vec::new, |old| rules::still_immutable(new, old, &["data", "binaryData"]));
    let mut size = 0;
    for (key, value) in rules::entries(new, "data") {
        let path = format!("data[{key}]");
        errors.extend(rules::data_key(key).into_iter().map(|why| FieldError::invalid(&path, key.as_str(), why)));
        if new["binaryData"].get(key).is_some() {
            errors.push(FieldError::invalid(&path, key.as_str(), "duplicate of key present in binaryData"));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, bytes) in rules::bytes(new, "binaryData") {
        let path = format!("binaryData[{key}]");
        errors.extend(rules::data_key(key).into_iter().map(|why| FieldError::invalid(&path, key, why)));
        size += bytes.len();
    }
    if size > MOST_DATA {
        errors.push(FieldError::new(FieldFault::TooLong(MOST_DATA), "[]", ""));
    }
    errors
}
