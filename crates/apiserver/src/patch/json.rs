//! RFC 6902, as `evanphx/json-patch` version 4 reads it.

use http::StatusCode;
use serde_json::Value;

use super::not_applicable;
use crate::status::{Failure, wrong_type};

/// More operations than this are refused unread.
const MOST_OPERATIONS: usize = 10_000;

/// How many bytes all `copy` operations of a patch may add: else a short patch makes an object that fills the memory.
const MOST_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How deep the result may be nested, as at the door: what comes after recurses.
const MOST_LEVELS: usize = 100;

/// Applies a JSON patch.
pub fn json(object: &Value, patch: &Value) -> Result<Value, Failure> {
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(undecodable("a JSON patch", "a list of operations", other)),
    };
    for operation in operations {
        check_form(operation)?;
    }
    if operations.len() > MOST_OPERATIONS {
        return Err(Failure::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    let mut patched = object.clone();
    let mut copied = 0;
    for operation in operations {
        perform(&mut patched, operation, &mut copied).ok_or_else(not_applicable)?;
    }
    Ok(patched)
}

/// Fields of operations that mean nothing, each as the remark that field validation makes about it.
pub fn unknown_fields(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut remarks = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        for key in operation.as_object().into_iter().flat_map(|fields| fields.keys()) {
            if !matches!(key.as_str(), "op" | "path" | "from" | "value") {
                remarks.push(format!("json patch unknown field \"[{index}].{key}\""));
            }
        }
    }
    remarks
}

fn check_form(operation: &Value) -> Result<(), Failure> {
    let fields = match operation {
        Value::Object(fields) => fields,
        Value::Null => return Ok(()),
        other => return Err(undecodable("an operation", "an object", other)),
    };
    for key in ["op", "path", "from"] {
        match fields.get(key) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(other) => return Err(undecodable(key, "a string", other)),
        }
    }
    Ok(())
}

fn undecodable(what: &str, expected: &str, value: &Value) -> Failure {
    Failure::bad_request(format!("error decoding patch: {}", wrong_type(what, expected, value)))
}

/// One operation; `None` when it does not apply.
fn perform(document: &mut Value, operation: &Value, copied: &mut usize) -> Option<()> {
    let text = |key| operation.get(key).and_then(Value::as_str);
    let path = text("path");
    // An operation without a value is one with null.
    let value = || operation.get("value").cloned().unwrap_or_default();
    match text("op")? {
        "add" => add(document, path?, value()),
        "remove" => remove(document, path?).map(drop),
        "replace" => replace(document, path?, value()),
        "test" => {
            let found = find(document, path?)?;
            (found == operation.get("value")?).then_some(())
        }
        "move" => {
            let moved = remove(document, text("from")?)?;
            add(document, path?, moved)
        }
        "copy" => {
            let copy = find(document, text("from")?)?.clone();
            *copied += serde_json::to_vec(&copy).map_or(0, |text| text.len());
            if *copied > MOST_COPIED_BYTES {
                return None;
            }
            add(document, path?, copy)
        }
        _ => None,
    }
}

/// The container of what a pointer points at, and the last step. What stands before the first slash is ignored.
fn container<'a>(document: &'a mut Value, pointer: &str) -> Option<(&'a mut Value, String)> {
    let mut steps = pointer.split('/').skip(1).map(unescaped);
    let mut last = steps.next()?;
    let mut container = document;
    for step in steps {
        container = match container {
            Value::Object(fields) => fields.get_mut(&last)?,
            Value::Array(items) => {
                let index = position(&last, items.len())?;
                items.get_mut(index)?
            }
            _ => return None,
        };
        last = step;
    }
    (container.is_object() || container.is_array()).then_some((container, last))
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// What a pointer points at. A missing field of an object is null, a missing item of a list is nothing.
fn find<'a>(document: &'a mut Value, pointer: &str) -> Option<&'a Value> {
    let (container, last) = container(document, pointer)?;
    match container {
        Value::Array(items) => items.get(position(&last, items.len())?),
        other => Some(other.get(&last).unwrap_or(&Value::Null)),
    }
}

fn add(document: &mut Value, pointer: &str, value: Value) -> Option<()> {
    if pointer.split('/').count() + levels(&value) > MOST_LEVELS {
        return None;
    }
    let (container, last) = container(document, pointer)?;
    match container {
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let index = position(&last, items.len() + 1)?;
            items.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, pointer: &str) -> Option<Value> {
    let (container, last) = container(document, pointer)?;
    match container {
        Value::Object(fields) => fields.remove(&last),
        Value::Array(items) => {
            let index = position(&last, items.len())?;
            Some(items.remove(index))
        }
        _ => None,
    }
}

/// A field need not be there to be replaced; the whole document can be, by anything that is not a scalar.
fn replace(document: &mut Value, pointer: &str, value: Value) -> Option<()> {
    if pointer.split('/').count() + levels(&value) > MOST_LEVELS {
        return None;
    }
    if pointer.is_empty() {
        if value.is_object() || value.is_array() {
            *document = value;
        }
        return Some(());
    }
    let (container, last) = container(document, pointer)?;
    match container {
        Value::Object(fields) => {
            fields.insert(last, value);
        }
        Value::Array(items) => {
            let index = position(&last, items.len())?;
            *items.get_mut(index)? = value;
        }
        _ => return None,
    }
    Some(())
}

/// An index below `places`; a negative one counts from the end.
fn position(step: &str, places: usize) -> Option<usize> {
    let index: i64 = step.parse().ok()?;
    let places = i64::try_from(places).ok()?;
    let index = if index < 0 { index + places } else { index };
    if (0..places).contains(&index) { usize::try_from(index).ok() } else { None }
}

fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}
