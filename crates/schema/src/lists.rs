//! Lists of type set and map: no item twice.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::{ListType, Node};
use super::path::Path;
use crate::{FieldError, FieldFault};

/// Collects the items that are there twice.
pub(crate) fn validate(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !node.below.keyed_lists {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let Some(below) = node.additional_node() {
                for (key, field) in fields {
                    validate(below, field, &path.key(key), errors);
                }
            }
            for (key, field) in fields {
                if let Some(property) = node.properties.get(key) {
                    validate(property, field, &path.field(key), errors);
                }
            }
        }
        Value::Array(items) => {
            match node.list_type {
                Some(ListType::Set) => duplicates(items.iter(), path, errors),
                Some(ListType::Map) => map_items(node, items, path, errors),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(below) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    validate(below, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn map_items(node: &Node, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let odd = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((index, item)) = odd {
        let at = path.index(index).to_string();
        errors.push(FieldError::invalid(at, item.clone(), "must be an object for an array of list-type map"));
        return;
    }
    if items.len() <= 1 {
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let given = node.list_map_keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
            Value::Object(given.collect::<Map<_, _>>())
        })
        .collect();
    duplicates(keys.iter(), path, errors);
}

/// The second of equal items is reported, and none after it.
fn duplicates<'v>(items: impl ExactSizeIterator<Item = &'v Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if items.len() <= 1 {
        return;
    }
    let mut seen: HashMap<String, u32> = HashMap::with_capacity(items.len());
    for (index, item) in items.enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::new(FieldFault::Duplicate(item.clone()), path.index(index).to_string(), ""));
        }
    }
}
