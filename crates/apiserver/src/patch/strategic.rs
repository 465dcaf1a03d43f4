//! Strategic merge: a merge patch that knows which lists are sets or maps, with directives in the patch.
//!
//! The directives are read as Kubernetes reads them: `$patch` in a map or in an item of a list, `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>`, `$setElementOrder/<field>`.

use http::StatusCode;
use schema::Schema;
use serde_json::{Map, Value};

use crate::ownership::shape::Shape;
use crate::status::{Failure, wrong_type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Applies a strategic merge patch, with `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of the schema.
pub fn strategic(schema: &Schema, object: &Value, patch: &Value) -> Result<Value, Failure> {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => return Ok(object.clone()),
        other => return Err(Failure::bad_request(wrong_type("a strategic merge patch", "an object", other))),
    };
    let original = object.as_object().cloned().unwrap_or_default();
    merge_maps(original, patch, Some(Shape::of(schema))).map(Value::Object)
}

type Fields = Map<String, Value>;

fn merge_maps(mut original: Fields, patch: &Fields, shape: Option<Shape<'_>>) -> Result<Fields, Failure> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                let mut replacement = patch.clone();
                replacement.remove(DIRECTIVE);
                Ok(replacement)
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(directive, patch)),
        };
    }
    if let Some(keys) = patch.get(RETAIN_KEYS) {
        retain_keys(&mut original, patch, keys)?;
    }
    let mut done = Vec::new();
    for (key, order) in patch {
        if key.starts_with(ELEMENT_ORDER) {
            let field = after_slash(key).ok_or_else(|| bad_form("setElementOrder list"))?;
            merge_in_order(&mut original, patch, field, order, shape.and_then(|shape| shape.field(field)))?;
            done.push(field);
        }
    }
    for (key, change) in patch {
        if key.starts_with(ELEMENT_ORDER) || key == RETAIN_KEYS || done.contains(&key.as_str()) {
            continue;
        }
        let deletes = key.starts_with(DELETE_FROM_LIST);
        let field = if deletes { after_slash(key).ok_or_else(|| bad_form("primitive list"))? } else { key.as_str() };
        let field_shape = shape.and_then(|shape| shape.field(field));
        let merged = match (original.remove(field), change) {
            (_, Value::Null) => continue,
            (None, _) if deletes => continue,
            (None, change) => match without_directives(change) {
                Some(plain) => plain,
                None => continue,
            },
            (Some(Value::Object(present)), Value::Object(change)) => {
                if field_shape.is_some_and(Shape::replaces) {
                    Value::Object(change.clone())
                } else {
                    Value::Object(merge_maps(present, change, field_shape)?)
                }
            }
            (Some(Value::Array(present)), Value::Array(change)) => match field_shape.filter(|shape| shape.merges()) {
                Some(shape) => Value::Array(merge_lists(present, change, shape, deletes)?),
                None => Value::Array(change.clone()),
            },
            (Some(present), _) if deletes => present,
            (Some(_), change) => change.clone(),
        };
        original.insert(field.to_owned(), merged);
    }
    Ok(original)
}

fn after_slash(key: &str) -> Option<&str> {
    key.split_once('/').map(|(_, field)| field)
}

/// A value for a place that was empty: nulls have nothing to delete, and a part with a directive is nothing.
fn without_directives(value: &Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => Some(
            fields
                .iter()
                .filter(|(_, field)| !field.is_null())
                .filter_map(|(key, field)| Some((key.clone(), without_directives(field)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.iter().filter_map(without_directives).collect()),
        scalar => Some(scalar.clone()),
    }
}

fn retain_keys(original: &mut Fields, patch: &Fields, keys: &Value) -> Result<(), Failure> {
    let Value::Array(keys) = keys else { return Err(bad_form("retainKeys")) };
    let retained = |key: &str| keys.iter().any(|retained| retained == key);
    let set = patch.iter().filter(|(key, value)| {
        !value.is_null()
            && key.as_str() != RETAIN_KEYS
            && !key.starts_with(DELETE_FROM_LIST)
            && !key.starts_with(ELEMENT_ORDER)
    });
    for (key, _) in set {
        if !retained(key) {
            return Err(bad_form("retainKeys"));
        }
    }
    original.retain(|key, _| retained(key));
    Ok(())
}

/// Merges a list for which the patch also gives the order of the items.
fn merge_in_order(
    original: &mut Fields,
    patch: &Fields,
    field: &str,
    order: &Value,
    shape: Option<Shape<'_>>,
) -> Result<(), Failure> {
    let order = as_list(order)?;
    let present = original.get(field).map(as_list).transpose()?;
    let change = patch.get(field).map(as_list).transpose()?;
    let key = shape.and_then(Shape::merge_key);
    check_order(change.unwrap_or_default(), order, key)?;
    let merged = match (present, change) {
        (None, None) => return Ok(()),
        (Some(present), None) => present.to_vec(),
        (None, Some(change)) => change.to_vec(),
        (Some(present), Some(change)) => match shape.filter(|shape| shape.merges()) {
            Some(shape) => merge_lists(present.to_vec(), change, shape, false)?,
            None => change.to_vec(),
        },
    };
    let ordered = in_order(merged, order, present.unwrap_or_default(), key)?;
    original.insert(field.to_owned(), Value::Array(ordered));
    Ok(())
}

/// The items of the patch must be among those of the order, in that order.
fn check_order(change: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Failure> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in change {
        if key.is_some() && item.get(DIRECTIVE).is_some() {
            continue;
        }
        loop {
            let Some(place) = places.next() else {
                return Err(broken(format!("the items of the patch are not in the order of its {ELEMENT_ORDER} list")));
            };
            if identity(item, key)? == identity(place, key)? {
                break;
            }
        }
    }
    Ok(())
}

fn merge_lists(
    mut original: Vec<Value>,
    patch: &[Value],
    shape: Shape<'_>,
    deletes: bool,
) -> Result<Vec<Value>, Failure> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let Some(maps) = same_kind(&original, patch)? else {
        return Err(broken("lists of lists not supported"));
    };
    if !maps {
        if deletes {
            original.retain(|item| !patch.contains(item));
            return Ok(original);
        }
        let mut merged: Vec<Value> = Vec::new();
        for item in original.iter().chain(patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return in_order(merged, patch, &original, None);
    }
    let Some(key) = shape.merge_key() else {
        return Err(broken("cannot merge lists without merge key for type map"));
    };
    let mut changes = Vec::new();
    let mut replace = false;
    for item in patch {
        let Value::Object(fields) = item else { continue };
        match fields.get(DIRECTIVE) {
            None => changes.push(fields),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let gone = identity(item, Some(key))?;
                    original.retain(|present| present.get(key) != Some(gone));
                }
                Some("replace") => replace = true,
                Some("merge") => return Err(broken("merging lists cannot yet be specified in the patch")),
                _ => return Err(unknown_directive(directive, fields)),
            },
        }
    }
    if replace {
        return Ok(changes.into_iter().cloned().map(Value::Object).collect());
    }
    let before = original.clone();
    let mut order = Vec::new();
    for change in changes {
        let Some(name) = change.get(key) else { return Err(no_merge_key(change, key)) };
        order.push(Value::Object(change.clone()));
        match original.iter_mut().find(|present| present.get(key) == Some(name)) {
            Some(present) => {
                let fields = std::mem::take(present);
                let Value::Object(fields) = fields else { continue };
                *present = Value::Object(merge_maps(fields, change, Some(shape.item()))?);
            }
            None => original.push(without_directives(&Value::Object(change.clone())).unwrap_or_default()),
        }
    }
    in_order(original, &order, &before, Some(key))
}

/// Whether all items are maps; `None` if they are lists.
fn same_kind(original: &[Value], patch: &[Value]) -> Result<Option<bool>, Failure> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else { return Ok(Some(false)) };
    if first.is_null() || all.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        return Err(broken("the items of a list and of the patch for it are not all of one type"));
    }
    Ok(if first.is_array() { None } else { Some(first.is_object()) })
}

/// Puts the items that `order` names into its order and weaves the others in where they stood among the items of
/// `before`.
fn in_order(items: Vec<Value>, order: &[Value], before: &[Value], key: Option<&str>) -> Result<Vec<Value>, Failure> {
    let place = |list: &[Value], item: &Value| -> Result<Option<usize>, Failure> {
        let name = identity(item, key)?;
        for (index, other) in list.iter().enumerate() {
            if identity(other, key)? == name {
                return Ok(Some(index));
            }
        }
        Ok(None)
    };
    let (mut ordered, mut others) = (Vec::new(), Vec::new());
    for item in items {
        match place(order, &item)? {
            Some(index) => ordered.push((index, item)),
            None => others.push((place(before, &item)?, item)),
        }
    }
    ordered.sort_by_key(|(index, _)| *index);
    others.sort_by_key(|(index, _)| *index);
    let mut result = Vec::with_capacity(ordered.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, item) in ordered {
        let stood = place(before, &item)?;
        // An item that is new has no place among the old ones: it comes before what has not been placed yet.
        while let (Some(stood), Some((other, _))) = (stood, others.peek()) {
            if other.is_none_or(|other| other >= stood) {
                break;
            }
            result.extend(others.next().map(|(_, item)| item));
        }
        result.push(item);
    }
    result.extend(others.map(|(_, item)| item));
    Ok(result)
}

/// What tells an item from others.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> Result<&'a Value, Failure> {
    let Some(key) = key else { return Ok(item) };
    match item {
        Value::Object(fields) => fields.get(key).ok_or_else(|| no_merge_key(fields, key)),
        other => Err(broken(wrong_type("an item of a list that is merged", "an object", other))),
    }
}

fn as_list(value: &Value) -> Result<&[Value], Failure> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(broken(wrong_type("what is merged as a list", "a list", other))),
    }
}

fn bad_form(of: &str) -> Failure {
    Failure::bad_request(format!("invalid patch format of {of}"))
}

fn no_merge_key(item: &Fields, key: &str) -> Failure {
    broken(format!("an item of a list lacks {key:?}, by which items are told apart: {}", Value::Object(item.clone())))
}

fn unknown_directive(directive: &Value, map: &Fields) -> Failure {
    broken(format!("unknown patch type: {directive} in map: {}", Value::Object(map.clone())))
}

/// Kubernetes takes these mistakes for its own.
fn broken(message: impl Into<String>) -> Failure {
    Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
}
