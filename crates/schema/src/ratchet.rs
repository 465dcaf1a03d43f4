//! What stood at the same place before, as far as that can be told.
//!
//! Kubernetes lets an update pass whose faults were there before and have not been touched. It finds the old value by
//! field, by the keys of a list of type map, and not at all in other lists.

use std::collections::HashMap;

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
#[derive(Debug)]
pub(crate) struct OldList<'o> {
    /// The first item with each combination of keys.
    items: HashMap<String, &'o Value>,
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
                OldList::new(items, &node.list_map_keys)
            }
            _ => OldList { items: HashMap::new(), keys: &[] },
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
    fn new(items: &'o [Value], keys: &'o [String]) -> Self {
        let mut first = HashMap::with_capacity(items.len());
        for item in items {
            if let Some(identity) = identity(item, keys) {
                first.entry(identity).or_insert(item);
            }
        }
        Self { items: first, keys }
    }

    /// The item before the update.
    pub(crate) fn item(&self, item: &Value) -> Old<'o> {
        if self.items.is_empty() {
            return Old::None;
        }
        Old::of(identity(item, self.keys).and_then(|identity| self.items.get(&identity).copied()))
    }
}

/// The values of an item's keys, as text; `None` if one is missing or is no scalar.
fn identity(item: &Value, keys: &[String]) -> Option<String> {
    let mut identity = String::new();
    for key in keys {
        match item.get(key)? {
            Value::Null | Value::Object(_) | Value::Array(_) => return None,
            // Texts are quoted, so that they end where they end and are no numbers.
            scalar => identity.push_str(&scalar.to_string()),
        }
        identity.push(',');
    }
    (!keys.is_empty()).then_some(identity)
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
            let list = OldList::new(before, &node.list_map_keys);
            before.len() == after.len()
                && after.iter().all(|item| match list.item(item) {
                    Old::Value(before) => is_same(below, before, item),
                    Old::None => false,
                })
        }
        _ => old == new,
    }
}
