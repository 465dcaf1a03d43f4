//! Defaults fill what is absent, and nulls that mean nothing go.

use serde_json::{Map, Value};

use super::node::Node;

/// Fills in defaults, also inside of defaults, and drops nulls where null is no value.
pub(crate) fn default(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            drop_nulls(node, fields);
            if !node.below.defaults {
                // Nulls may still be further down.
                for (key, field) in fields.iter_mut() {
                    if let Some(below) = node.declared(key) {
                        default(below, field);
                    }
                }
                return;
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
                    Some(property) => default(property, field),
                    None => {
                        if let Some(below) = node.additional_node() {
                            replace_null(below, field);
                            default(below, field);
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = node.items.as_deref() {
                for item in items {
                    replace_null(below, item);
                    default(below, item);
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
