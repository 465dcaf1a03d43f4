//! Sentences and checks that several built-ins share.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::status::FieldError;

/// How much data a Secret or a ConfigMap may hold, in bytes.
pub(crate) const MOST_DATA: usize = 1024 * 1024;

/// What is wrong with a key of a ConfigMap or a Secret.
pub(crate) fn data_key(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if key.len() > 253 {
        wrong.push("must be no more than 253 characters".to_owned());
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(allowed) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// A text in the object; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    path.iter().try_fold(object, |value, key| value.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The entries of a map in the object.
pub(crate) fn entries<'a>(object: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// How many entries a map in the object has.
pub(crate) fn count(object: &Value, key: &str) -> usize {
    entries(object, key).count()
}

/// The bytes of values in base64; what is no base64 counts as nothing.
pub(crate) fn bytes<'a>(object: &'a Value, key: &str) -> BTreeMap<&'a str, Vec<u8>> {
    let decode = |value: &Value| STANDARD.decode(value.as_str()?).ok();
    entries(object, key).map(|(name, value)| (name.as_str(), decode(value).unwrap_or_default())).collect()
}

/// Takes the fields away that are null, and of `empty` those that are empty too, as Kubernetes leaves them out.
pub(crate) fn leave_out(object: &mut Value, empty: &[&str]) {
    let Value::Object(fields) = object else { return };
    fields.retain(|name, value| match value {
        Value::Null => false,
        _ if !empty.contains(&name.as_str()) => true,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    });
}

/// Sets a field. A value that is no object becomes one.
pub(crate) fn set(object: &mut Value, name: &str, value: Value) {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value);
    }
}

/// Adds a field that Kubernetes never leaves out.
pub(crate) fn keep(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = object
        && fields.get(name).is_none_or(Value::is_null)
    {
        fields.insert(name.to_owned(), value);
    }
}

/// Gives a field of the new object the value that it has in the old one.
pub(crate) fn keep_old(new: &mut Value, old: &Value, name: &str) {
    let Value::Object(fields) = new else { return };
    match old.get(name) {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}

/// The data of an object that was made immutable, and the flag itself, cannot be changed.
pub(crate) fn still_immutable(new: &Value, old: &Value, data: &[&str]) -> Vec<FieldError> {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old["immutable"] != true {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", WHY));
    }
    for &field in data {
        if new[field] != old[field] {
            errors.push(FieldError::forbidden(field, WHY));
        }
    }
    errors
}
