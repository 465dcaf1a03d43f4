//! What stood at the same place before, as far as that can be told.
//!
//! Kubernetes lets an update pass whose faults were there before and have not been touched. It finds the old value by
//! field, by the keys of a list of type map, and not at all in other lists.

use serde_json::Value;

use super::node::{ListType, Node};

/// The value before the update.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Old<'o> {
    /// There is none, or it cannot be told which one.
    None,
    /// This one.
    Value(&'o Value),
}

/// The list before the update.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OldList<'o> {
    items: &'o [Value],
    keys: &'o [String],
}

impl<'o> Old<'o> {
    pub(crate) fn of(value: Option<&'o Value>) -> Self {
        value.map_or(Self::None, Self::Value)
    }

    /// The field before the update.
    pub(crate) fn field(self, key: &str) -> Self {
        match self {
            Self::Value(Value::Object(fields)) => Self::of(fields.get(key)),
            _ => Self::None,
        }
    }

    /// The list before the update, if its items have keys.
    pub(crate) fn list(self, node: &'o Node) -> OldList<'o> {
        match self {
            Self::Value(Value::Array(items)) if node.list_type == Some(ListType::Map) => {
                OldList { items, keys: &node.list_map_keys }
            }
            _ => OldList { items: &[], keys: &[] },
        }
    }

    /// Whether nothing has changed here, as far as the schema can see.
    pub(crate) fn is_same(self, node: &Node, value: &Value) -> bool {
        match self {
            Self::None => false,
            Self::Value(old) => is_same(node, old, value),
        }
    }
}

impl<'o> OldList<'o> {
    /// The item before the update.
    pub(crate) fn item(self, item: &Value) -> Old<'o> {
        if self.keys.is_empty() {
            return Old::None;
        }
        let same_keys = |old: &&Value| {
            self.keys.iter().all(|key| match (old.get(key), item.get(key)) {
                (Some(old), Some(new)) => !old.is_null() && !old.is_object() && !old.is_array() && old == new,
                _ => false,
            })
        };
        Old::of(self.items.iter().find(same_keys))
    }
}

/// Equality that goes where the schema goes: what the schema does not describe counts as changed.
fn is_same(node: &Node, old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && after.iter().all(|(key, field)| match (before.get(key), node.declared(key)) {
                    (Some(before), Some(below)) => is_same(below, before, field),
                    _ => false,
                })
        }
        (Value::Array(before), Value::Array(after)) => {
            let Some(below) = node.items.as_deref().filter(|_| node.list_type == Some(ListType::Map)) else {
                return old == new;
            };
            let list = OldList { items: before, keys: &node.list_map_keys };
            before.len() == after.len()
                && after.iter().all(|item| match list.item(item) {
                    Old::Value(before) => is_same(below, before, item),
                    Old::None => false,
                })
        }
        _ => old == new,
    }
}
