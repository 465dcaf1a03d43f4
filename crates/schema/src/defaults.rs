//! Defaults must themselves be what the schema asks for.

use serde_json::{Map, Value, json};

use super::node::Node;
use super::path::Path;
use super::{embedded, meta, prune, validate};
use crate::FieldError;

/// Collects what is wrong with the defaults in a schema.
pub(crate) fn check(root: &Node, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(root, path, true, None, &mut errors);
    errors
}

/// `inside` is how to get from the resource to this node, when that is in its `metadata` or is `apiVersion` or `kind`.
fn check_node(node: &Node, path: &Path<'_>, root: bool, inside: Option<&Steps<'_>>, errors: &mut Vec<FieldError>) {
    if !node.below.defaults {
        return;
    }
    let inside = if node.resource { None } else { inside };
    if let Some(default) = &node.default {
        let at = path.field("default").to_string();
        match inside {
            Some(steps) => check_in_meta(node, default, steps, &at, errors),
            None => check_default(node, default, root, &at, errors),
        }
    }
    if let Some(items) = node.items.as_deref() {
        let steps = inside.map(|before| Steps { before: Some(before), step: Step::Item });
        check_node(items, &path.field("items"), false, steps.as_ref(), errors);
    }
    let properties = path.field("properties");
    for (name, property) in &node.properties {
        let steps = match inside {
            Some(before) => Some(Steps { before: Some(before), step: Step::Field(name) }),
            None if node.resource && meta::is_known(name) => Some(Steps { before: None, step: Step::Field(name) }),
            None => None,
        };
        check_node(property, &properties.key(name), false, steps.as_ref(), errors);
    }
}

fn check_default(node: &Node, default: &Value, root: bool, at: &str, errors: &mut Vec<FieldError>) {
    let mut pruned = default.clone();
    prune::prune(node, &mut pruned);
    if pruned != *default {
        errors.push(FieldError::invalid(at, default.clone(), "must not have unknown fields"));
    }
    let path = Path::Base(at);
    let mut coerced = default.clone();
    if let Err(error) = embedded::coerce(node, &mut coerced, &path, &mut Vec::new()) {
        errors.push(error);
        return;
    }
    let mut found = Vec::new();
    if !root {
        embedded::validate(node, default, &path, &mut found);
    }
    if found.is_empty() {
        found = validate::validate_default(node, default, at);
    }
    errors.append(&mut found);
}

/// Defaults inside of metadata are tried on a resource that has nothing else.
fn check_in_meta(node: &Node, default: &Value, steps: &Steps<'_>, at: &str, errors: &mut Vec<FieldError>) {
    let mut resource = steps.around(default.clone());
    for (key, value) in [("apiVersion", json!("validation/v1")), ("kind", json!("Validation"))] {
        if resource.get(key).is_none() {
            resource[key] = value;
        }
    }
    let mut found = Vec::new();
    if let Value::Object(fields) = &resource {
        embedded::validate_resource(&resource, fields, &Path::ROOT, &mut found);
    }
    if found.is_empty() {
        errors.append(&mut validate::validate_default(node, default, at));
        return;
    }
    let sentences: Vec<String> = found.iter().map(ToString::to_string).collect();
    let sum = if sentences.len() == 1 { sentences.concat() } else { format!("[{}]", sentences.join(", ")) };
    errors.push(FieldError::invalid(at, default.clone(), format!("must result in valid metadata: {sum}")));
}

struct Steps<'a> {
    before: Option<&'a Steps<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Field(&'a str),
    Item,
}

impl Steps<'_> {
    fn around(&self, value: Value) -> Value {
        let value = match self.step {
            Step::Field(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
            Step::Item => Value::Array(vec![value]),
        };
        match self.before {
            Some(before) => before.around(value),
            None => value,
        }
    }
}
