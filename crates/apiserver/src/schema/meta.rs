//! What every resource has without declaring it: `apiVersion`, `kind`, `metadata`.

use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::node::Node;
use super::path::Path;
use super::read;
use crate::object::json_kind;
use crate::status::quoted;

/// The schema of `apiVersion`, `kind` or `metadata`.
pub(crate) fn known(key: &str) -> Option<&'static Node> {
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
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text,
                "blockOwnerDeletion": flag,
                "controller": flag,
                "kind": text,
                "name": text,
                "uid": text,
            }},
        },
        "resourceVersion": text,
        "selfLink": text,
        "uid": text,
    }})
}

/// Gives `metadata` the form that it has in Go: what is unknown or empty goes. `Err` is what Go's decoder says about
/// values of the wrong type.
pub(crate) fn decode(metadata: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), String> {
    match metadata {
        Value::Null => *metadata = Value::Object(Map::new()),
        Value::Object(fields) => decode_fields(fields, "ObjectMeta", &META_FIELDS, "", path, unknown)?,
        other => {
            return Err(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", json_kind(other)));
        }
    }
    Ok(())
}

/// A field of a Go struct.
struct Field {
    name: &'static str,
    form: Form,
    /// Whether it is written even when it is empty.
    always: bool,
}

/// The Go types that occur in `metadata`.
#[derive(Clone, Copy)]
enum Form {
    Text(&'static str),
    Integer,
    Flag,
    Time,
    TextMap,
    Texts,
    Structs(&'static str, &'static [Field]),
    Raw,
}

const fn field(name: &'static str, form: Form) -> Field {
    Field { name, form, always: false }
}

const fn always(name: &'static str, form: Form) -> Field {
    Field { name, form, always: true }
}

static META_FIELDS: [Field; 15] = [
    field("annotations", Form::TextMap),
    field("creationTimestamp", Form::Time),
    field("deletionGracePeriodSeconds", Form::Integer),
    field("deletionTimestamp", Form::Time),
    field("finalizers", Form::Texts),
    field("generateName", Form::Text("string")),
    field("generation", Form::Integer),
    field("labels", Form::TextMap),
    field("managedFields", Form::Structs("ManagedFieldsEntry", &MANAGED_FIELDS)),
    field("name", Form::Text("string")),
    field("namespace", Form::Text("string")),
    field("ownerReferences", Form::Structs("OwnerReference", &OWNER_FIELDS)),
    field("resourceVersion", Form::Text("string")),
    field("selfLink", Form::Text("string")),
    field("uid", Form::Text("types.UID")),
];

static MANAGED_FIELDS: [Field; 7] = [
    field("apiVersion", Form::Text("string")),
    field("fieldsType", Form::Text("string")),
    field("fieldsV1", Form::Raw),
    field("manager", Form::Text("string")),
    field("operation", Form::Text("v1.ManagedFieldsOperationType")),
    field("subresource", Form::Text("string")),
    field("time", Form::Time),
];

static OWNER_FIELDS: [Field; 6] = [
    always("apiVersion", Form::Text("string")),
    field("blockOwnerDeletion", Form::Flag),
    field("controller", Form::Flag),
    always("kind", Form::Text("string")),
    always("name", Form::Text("string")),
    always("uid", Form::Text("types.UID")),
];

fn decode_fields(
    fields: &mut Map<String, Value>,
    owner: &str,
    known: &[Field],
    inside: &str,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let mut failure = None;
    fields.retain(|key, value| {
        let Some(field) = known.iter().find(|field| field.name == key) else {
            unknown.push(path.field(key).to_string());
            return false;
        };
        match decode_value(value, field.form, owner, &format!("{inside}{key}"), &path.field(key), unknown) {
            Ok(kept) => kept || field.always,
            Err(why) => {
                failure.get_or_insert(why);
                true
            }
        }
    });
    for field in known.iter().filter(|field| field.always) {
        let value = fields.entry(field.name).or_insert(Value::Null);
        if value.is_null() {
            *value = "".into();
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Whether there is something to keep.
fn decode_value(
    value: &mut Value,
    form: Form,
    owner: &str,
    name: &str,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<bool, String> {
    let wrong = |value: &Value, go: &str| {
        format!("json: cannot unmarshal {} into Go struct field {owner}.{name} of type {go}", json_kind(value))
    };
    if value.is_null() {
        return Ok(false);
    }
    match form {
        Form::Raw => Ok(true),
        Form::Text(go) => value.as_str().map(|text| !text.is_empty()).ok_or_else(|| wrong(value, go)),
        Form::Flag => value.is_boolean().then_some(true).ok_or_else(|| wrong(value, "bool")),
        Form::Integer => match value {
            Value::Number(number) => match integer(number) {
                Some(integer) => {
                    *value = integer.into();
                    // A grace period of 0 is said; a generation of 0 is none.
                    Ok(integer != 0 || name == "deletionGracePeriodSeconds")
                }
                None => Err(format!(
                    "json: cannot unmarshal number {number} into Go struct field {owner}.{name} of type int64"
                )),
            },
            other => Err(wrong(other, "int64")),
        },
        Form::Time => {
            let Some(text) = value.as_str() else { return Err(wrong(value, "string")) };
            match text.parse::<Timestamp>() {
                Ok(time) => {
                    *value = time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
                    Ok(true)
                }
                Err(_) => Err(format!(
                    "parsing time {0} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0} as \"2006\"",
                    quoted(text)
                )),
            }
        }
        Form::TextMap => match value {
            Value::Object(texts) => {
                for text in texts.values_mut() {
                    decode_text(text, &wrong)?;
                }
                Ok(!texts.is_empty())
            }
            other => Err(wrong(other, "map[string]string")),
        },
        Form::Texts => match value {
            Value::Array(texts) => {
                for text in texts.iter_mut() {
                    decode_text(text, &wrong)?;
                }
                Ok(!texts.is_empty())
            }
            other => Err(wrong(other, "[]string")),
        },
        Form::Structs(go, known) => match value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = Value::Object(Map::new());
                    }
                    let Value::Object(fields) = item else { return Err(wrong(item, &format!("v1.{go}"))) };
                    decode_fields(fields, go, known, &format!("{name}."), &path.index(index), unknown)?;
                }
                // An empty list of managers has a meaning: it makes the server forget them all.
                Ok(!items.is_empty() || name == "managedFields")
            }
            other => Err(wrong(other, &format!("[]v1.{go}"))),
        },
    }
}

fn decode_text(text: &mut Value, wrong: &impl Fn(&Value, &str) -> String) -> Result<(), String> {
    match text {
        Value::String(_) => Ok(()),
        Value::Null => {
            *text = "".into();
            Ok(())
        }
        other => Err(wrong(other, "string")),
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
