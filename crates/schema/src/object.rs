//! Objects are JSON: accessors for what every Kubernetes object has.

use serde_json::{Map, Value};

use crate::wrong_type;

/// Whether a document is an object that says in the right form what it is; nothing at all is let pass.
pub fn check_type_fields(document: &Value) -> Result<(), String> {
    if !document.is_object() && !document.is_null() {
        return Err(wrong_type("the document", "an object", document));
    }
    let wrong = ["apiVersion", "kind"].into_iter().find_map(|key| {
        let value = document.get(key).filter(|value| !value.is_string() && !value.is_null())?;
        Some(wrong_type(key, "a string", value))
    });
    wrong.map_or(Ok(()), Err)
}

/// `metadata`, if the object has it.
pub fn meta(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// `metadata`, made if the object has none. An object whose metadata is something else gets a fresh one.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    match metadata {
        Value::Object(map) => map,
        _ => unreachable!("just made an object"),
    }
}

/// A text in `metadata`; empty if it is not there.
pub fn meta_text<'a>(object: &'a Value, key: &str) -> &'a str {
    meta(object).and_then(|meta| meta.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    meta_text(object, "name")
}

/// `metadata.namespace`.
pub fn namespace(object: &Value) -> &str {
    meta_text(object, "namespace")
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    meta_text(object, "uid")
}

/// `metadata.resourceVersion`.
pub fn resource_version(object: &Value) -> &str {
    meta_text(object, "resourceVersion")
}

/// Whether somebody has asked to delete the object.
pub fn is_deleting(object: &Value) -> bool {
    !meta_text(object, "deletionTimestamp").is_empty()
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    meta(object)
        .and_then(|meta| meta.get("finalizers"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// `metadata.labels` as pairs.
pub fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    meta(object)
        .and_then(|meta| meta.get("labels"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Writes whole numbers without a point, as Kubernetes does: `1.0` becomes `1`.
pub fn write_whole_numbers_plainly(value: &mut Value) {
    // Beyond this, not every whole number has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= EXACT) {
                #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
                let whole = float as i64;
                *number = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers_plainly),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers_plainly),
        _ => {}
    }
}
