//! What every resource has without declaring it: `apiVersion`, `kind`, `metadata`.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::node::{Kind, Node};
use super::path::Path;
use super::read;
use crate::wrong_type;

/// The schema of `apiVersion`, `kind` or `metadata`.
pub fn known(key: &str) -> Option<&'static Node> {
    match key {
        "apiVersion" | "kind" => Some(&TEXT),
        "metadata" => Some(&OBJECT_META),
        _ => None,
    }
}

/// Whether the schema need not declare it.
pub(crate) fn is_known(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

static TEXT: LazyLock<Node> = LazyLock::new(|| read::node(&json!({"type": "string"})));

static OBJECT_META: LazyLock<Node> = LazyLock::new(|| read::node(&object_meta()));

/// `metav1.ObjectMeta`.
fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let integer = json!({"type": "integer", "format": "int64"});
    let flag = json!({"type": "boolean"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "properties": {
        "annotations": texts,
        "creationTimestamp": time,
        "deletionGracePeriodSeconds": integer,
        "deletionTimestamp": time,
        "finalizers": {
            "type": "array", "items": text,
            "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
        },
        "generateName": text,
        "generation": integer,
        "labels": texts,
        "managedFields": {
            "type": "array", "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "properties": {
                "apiVersion": text,
                "fieldsType": text,
                "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "manager": text,
                "operation": text,
                "subresource": text,
                "time": time,
            }},
        },
        "name": text,
        "namespace": text,
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
            "items": {
                "type": "object", "x-kubernetes-map-type": "atomic",
                "required": ["apiVersion", "kind", "name", "uid"],
                "properties": {
                    "apiVersion": text,
                    "blockOwnerDeletion": flag,
                    "controller": flag,
                    "kind": text,
                    "name": text,
                    "uid": text,
                },
            },
        },
        "resourceVersion": text,
        "selfLink": text,
        "uid": text,
    }})
}

/// Gives `metadata` the form in which Kubernetes keeps it: what is unknown or empty goes. `Err` is about a value of the
/// wrong type.
pub(crate) fn decode(metadata: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), String> {
    match metadata {
        Value::Null => *metadata = Value::Object(Map::new()),
        Value::Object(fields) => decode_fields(fields, &OBJECT_META, path, unknown)?,
        other => return Err(wrong_type(path, "an object", other)),
    }
    Ok(())
}

fn decode_fields(
    fields: &mut Map<String, Value>,
    node: &Node,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let mut failure = None;
    fields.retain(|key, value| {
        let Some(below) = node.properties.get(key) else {
            unknown.push(path.field(key).to_string());
            return false;
        };
        match decode_value(value, below, key, &path.field(key), unknown) {
            Ok(kept) => kept || node.limits.required.contains(key),
            Err(why) => {
                failure.get_or_insert(why);
                true
            }
        }
    });
    for key in &node.limits.required {
        let value = fields.entry(key).or_insert(Value::Null);
        if value.is_null() {
            *value = "".into();
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Whether there is something to keep.
fn decode_value(
    value: &mut Value,
    node: &Node,
    name: &str,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<bool, String> {
    match (node.kind, &mut *value) {
        (_, Value::Null) => Ok(false),
        (Some(Kind::String), Value::String(text)) if node.limits.format == "date-time" => {
            let time: Timestamp = text
                .parse()
                .map_err(|_| format!("{path} must be a time such as 2026-01-02T15:04:05Z, not {text:?}"))?;
            *text = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            Ok(true)
        }
        (Some(Kind::String), Value::String(text)) => Ok(!text.is_empty()),
        (Some(Kind::Boolean), Value::Bool(_)) => Ok(true),
        (Some(Kind::Integer), Value::Number(number)) => {
            let integer = integer(number).ok_or_else(|| wrong_type(path, "an integer", value))?;
            *value = integer.into();
            // A grace period of 0 is said; a generation of 0 is none.
            Ok(integer != 0 || name == "deletionGracePeriodSeconds")
        }
        (Some(Kind::Object), value) if node.preserve_unknown => Ok(!value.is_null()),
        (Some(Kind::Object), Value::Object(texts)) => {
            texts.iter_mut().try_for_each(|(key, text)| decode_text(text, &path.key(key)))?;
            Ok(!texts.is_empty())
        }
        (Some(Kind::Array), Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                let at = path.index(index);
                match node.items.as_deref() {
                    Some(below) if below.kind == Some(Kind::Object) => {
                        if item.is_null() {
                            *item = Value::Object(Map::new());
                        }
                        let Value::Object(fields) = item else { return Err(wrong_type(at, "an object", item)) };
                        decode_fields(fields, below, &at, unknown)?;
                    }
                    _ => decode_text(item, &at)?,
                }
            }
            // An empty list of managers has a meaning: it makes the server forget them all.
            Ok(!items.is_empty() || name == "managedFields")
        }
        (kind, other) => {
            let expected = format!("of type {}", kind.map_or("object", Kind::name));
            Err(wrong_type(path, &expected, other))
        }
    }
}

fn decode_text(text: &mut Value, path: &Path<'_>) -> Result<(), String> {
    match text {
        Value::String(_) => Ok(()),
        Value::Null => {
            *text = "".into();
            Ok(())
        }
        other => Err(wrong_type(path, "a string", other)),
    }
}

/// An integer, also when it is written with a fraction of nothing.
fn integer(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let whole = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
        #[allow(clippy::cast_possible_truncation, reason = "whole and small enough")]
        whole.then_some(float as i64)
    })
}
