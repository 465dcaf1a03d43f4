//! Defaults fill what is absent, and nulls that mean nothing go.

use serde_json::{Map, Value};

use super::node::Node;

/// Fills in defaults, also inside of defaults, and drops nulls where null is no value.
pub(crate) fn default(node: &Node, value: &mut Value) {
    // Most objects have no nulls, and most branches no defaults.
    let has_nulls = has_nulls(value);
    fill(node, value, has_nulls, true);
}

/// Fills in defaults, and leaves nulls where they are unless a default takes their place.
pub(crate) fn default_only(node: &Node, value: &mut Value) {
    let has_nulls = has_nulls(value);
    fill(node, value, has_nulls, false);
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_nulls),
        Value::Object(fields) => fields.values().any(has_nulls),
        _ => false,
    }
}

fn fill(node: &Node, value: &mut Value, has_nulls: bool, dropping: bool) {
    if !has_nulls && !node.below.defaults {
        return;
    }
    match value {
        Value::Object(fields) => {
            if dropping {
                drop_nulls(node, fields);
            }
            for (key, property) in &node.properties {
                if let Some(filler) = &property.default {
                    match fields.get_mut(key) {
                        None => {
                            fields.insert(key.clone(), filler.clone());
                        }
                        Some(field) if field.is_null() && !property.nullable => *field = filler.clone(),
                        Some(_) => {}
                    }
                }
            }
            for (key, field) in fields.iter_mut() {
                match node.properties.get(key) {
                    Some(property) => fill(property, field, has_nulls, dropping),
                    None => {
                        if let Some(below) = node.additional_node() {
                            replace_null(below, field);
                            fill(below, field, has_nulls, dropping);
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = node.items.as_deref() {
                for item in items {
                    replace_null(below, item);
                    fill(below, item, has_nulls, dropping);
                }
            }
        }
        _ => {}
    }
}

fn drop_nulls(node: &Node, fields: &mut Map<String, Value>) {
    if !fields.values().any(Value::is_null) {
        return;
    }
    fields.retain(|key, field| {
        let means_nothing =
            field.is_null() && node.declared(key).is_some_and(|below| !below.nullable && below.default.is_none());
        !means_nothing
    });
}

fn replace_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(filler) = &node.default
    {
        *value = filler.clone();
    }
}
