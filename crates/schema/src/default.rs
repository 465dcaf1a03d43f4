//! Defaults fill what is absent, and nulls that mean nothing go.

use serde_json::{Map, Value};

use super::node::Node;

/// How many bytes defaults may add to an object. A default of a few KB in each of thousands of items would fill the memory.
pub const MOST_DEFAULTS: usize = 3 * 1024 * 1024;

/// Fills in defaults, also inside of defaults, and drops nulls where null is no value. False if there were too many.
pub(crate) fn default(node: &Node, value: &mut Value) -> bool {
    fill_all(node, value, true)
}

/// Fills in defaults, and leaves nulls where they are unless a default takes their place. False if there were too many.
pub(crate) fn default_only(node: &Node, value: &mut Value) -> bool {
    fill_all(node, value, false)
}

fn fill_all(node: &Node, value: &mut Value, dropping: bool) -> bool {
    // Most objects have no nulls, and most branches no defaults.
    let mut filling = Filling { has_nulls: has_nulls(value), dropping, left: MOST_DEFAULTS, enough: true };
    filling.fill(node, value);
    filling.enough
}

fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_nulls),
        Value::Object(fields) => fields.values().any(has_nulls),
        _ => false,
    }
}

struct Filling {
    has_nulls: bool,
    dropping: bool,
    /// How many bytes may still be added, and whether that was enough so far.
    left: usize,
    enough: bool,
}

impl Filling {
    fn fill(&mut self, node: &Node, value: &mut Value) {
        if !self.enough || !self.has_nulls && !node.below.defaults {
            return;
        }
        match value {
            Value::Object(fields) => {
                if self.dropping {
                    drop_nulls(node, fields);
                }
                for (key, property) in &node.properties {
                    if let Some(filler) = &property.default {
                        match fields.get_mut(key) {
                            None => {
                                if let Some(filler) = self.copied(filler, key.len()) {
                                    fields.insert(key.clone(), filler);
                                }
                            }
                            Some(field) if field.is_null() && !property.nullable => self.replace(field, filler),
                            Some(_) => {}
                        }
                    }
                }
                for (key, field) in fields.iter_mut() {
                    match node.properties.get(key) {
                        Some(property) => self.fill(property, field),
                        None => {
                            if let Some(below) = node.additional_node() {
                                self.replace_null(below, field);
                                self.fill(below, field);
                            }
                        }
                    }
                }
            }
            Value::Array(items) => {
                if let Some(below) = node.items.as_deref() {
                    for item in items {
                        self.replace_null(below, item);
                        self.fill(below, item);
                    }
                }
            }
            _ => {}
        }
    }

    fn replace_null(&mut self, node: &Node, value: &mut Value) {
        if value.is_null()
            && !node.nullable
            && let Some(filler) = &node.default
        {
            self.replace(value, filler);
        }
    }

    fn replace(&mut self, value: &mut Value, filler: &Value) {
        if let Some(filler) = self.copied(filler, 0) {
            *value = filler;
        }
    }

    /// A copy of a default, if there is room for it and its key.
    fn copied(&mut self, filler: &Value, key: usize) -> Option<Value> {
        match self.left.checked_sub(key + size(filler)) {
            Some(left) => self.left = left,
            None => self.enough = false,
        }
        self.enough.then(|| filler.clone())
    }
}

/// About how many bytes a value has as JSON.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 3,
        Value::Array(items) => items.iter().map(size).sum::<usize>() + 3,
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + 4 + size(field)).sum::<usize>() + 3,
        _ => 6,
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
