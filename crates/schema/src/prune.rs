//! Fields that nobody declared go.

use std::fmt::Write;

use serde_json::Value;

use super::meta;
use super::node::{Additional, Node};

/// Drops what the schema does not know; says where that was, sorted, as strict decoding reports it.
pub(crate) fn prune(node: &Node, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Vec::new() };
    pruner.prune(Some(node), object);
    pruner.unknown.sort_unstable();
    pruner.unknown
}

struct Pruner {
    path: String,
    unknown: Vec<String>,
}

impl Pruner {
    fn prune(&mut self, node: Option<&Node>, value: &mut Value) {
        if let Some(node) = node
            && node.preserve_unknown
        {
            return self.keep(node, value);
        }
        match value {
            Value::Object(fields) => {
                let mut strangers = false;
                for (key, field) in fields.iter_mut() {
                    match meet(node, key) {
                        Meeting::Enter(below) if is_nested(field) => {
                            self.with_key(key, |pruner| pruner.prune(below, field));
                        }
                        Meeting::Enter(_) | Meeting::Leave => {}
                        Meeting::Drop => {
                            strangers = true;
                            // At the root these are put back, so nobody is told.
                            if !(self.path.is_empty() && meta::is_known(key)) {
                                self.with_key(key, |pruner| pruner.unknown.push(pruner.path.clone()));
                            }
                        }
                    }
                }
                if strangers {
                    fields.retain(|key, _| !matches!(meet(node, key), Meeting::Drop));
                }
            }
            Value::Array(items) => {
                let below = node.and_then(|node| node.items.as_deref());
                for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| is_nested(item)) {
                    self.with_index(index, |pruner| pruner.prune(below, item));
                }
            }
            _ => {}
        }
    }

    /// Below what keeps unknown fields, what is declared is still pruned.
    fn keep(&mut self, node: &Node, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut().filter(|(_, field)| is_nested(field)) {
                    if let Meeting::Enter(below) = meet(Some(node), key) {
                        self.with_key(key, |pruner| pruner.prune(below, field));
                    }
                }
            }
            Value::Array(items) => {
                let Some(below) = node.items.as_deref() else { return };
                for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| is_nested(item)) {
                    self.with_index(index, |pruner| pruner.keep(below, item));
                }
            }
            _ => {}
        }
    }

    fn with_key(&mut self, key: &str, act: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        act(self);
        self.path.truncate(length);
    }

    fn with_index(&mut self, index: usize, act: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        // Writing to a string does not fail.
        let _ = write!(self.path, "[{index}]");
        act(self);
        self.path.truncate(length);
    }
}

enum Meeting<'n> {
    Enter(Option<&'n Node>),
    Leave,
    Drop,
}

fn meet<'n>(node: Option<&'n Node>, key: &str) -> Meeting<'n> {
    let Some(node) = node else { return Meeting::Drop };
    if node.resource && meta::is_known(key) {
        return Meeting::Leave;
    }
    match (node.properties.get(key), &node.additional) {
        (Some(property), _) => Meeting::Enter(Some(property)),
        (None, Some(Additional::Of(below))) => Meeting::Enter(Some(below)),
        // Kubernetes prunes everything inside of values that have no schema.
        (None, Some(Additional::Any(_))) => Meeting::Enter(None),
        (None, None) => Meeting::Drop,
    }
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}
