//! Resources inside of resources: their `apiVersion`, `kind` and `metadata` are held to the rules of all resources.

use serde_json::{Map, Value};

use super::meta;
use super::node::Node;
use super::path::Path;
use crate::FieldError;
use crate::names;
use crate::names::Scope;

/// Gives the metadata of embedded resources its form; collects the paths of unknown fields in it.
pub(crate) fn coerce(
    node: &Node,
    value: &mut Value,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    if !node.below.resources {
        return Ok(());
    }
    match value {
        Value::Object(fields) => {
            // The object itself has been looked at before.
            if node.resource && !path.is_root() {
                coerce_resource(fields, path, unknown)?;
            }
            for (key, field) in fields {
                if let Some(property) = node.properties.get(key) {
                    coerce(property, field, &path.field(key), unknown)?;
                } else if let Some(below) = node.additional_node() {
                    coerce(below, field, &path.key(key), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = node.items.as_deref() {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce(below, item, &path.index(index), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_resource(
    fields: &mut Map<String, Value>,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    for key in ["apiVersion", "kind"] {
        if let Some(value) = fields.get(key).filter(|value| !value.is_string()) {
            return Err(FieldError::invalid(path.field(key).to_string(), value.clone(), "must be a string"));
        }
    }
    if let Some(metadata) = fields.get_mut("metadata") {
        let at = path.field("metadata");
        let given = metadata.clone();
        meta::decode(metadata, &at, unknown).map_err(|why| FieldError::invalid(at.to_string(), given, why))?;
    }
    Ok(())
}

/// Collects what is wrong with `apiVersion`, `kind` and `metadata` of embedded resources.
pub(crate) fn validate(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !node.below.resources {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.resource && !path.is_root() {
                validate_resource(value, fields, path, errors);
            }
            for (key, field) in fields {
                if let Some(property) = node.properties.get(key) {
                    validate(property, field, &path.field(key), errors);
                } else if let Some(below) = node.additional_node() {
                    validate(below, field, &path.key(key), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = node.items.as_deref() {
                for (index, item) in items.iter().enumerate() {
                    validate(below, item, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

/// Also for defaults inside of `metadata`, which are tried on an object made for them.
pub(crate) fn validate_resource(
    resource: &Value,
    fields: &Map<String, Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for key in ["apiVersion", "kind"] {
        if !fields.contains_key(key) {
            errors.push(FieldError::required(path.field(key).to_string(), "must not be empty"));
        }
    }
    for (key, check) in [("apiVersion", is_api_version as fn(&str) -> Result<(), String>), ("kind", is_kind)] {
        let at = || path.field(key).to_string();
        match fields.get(key) {
            None => {}
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(at(), "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                if let Err(why) = check(text) {
                    errors.push(FieldError::invalid(at(), text.as_str(), why));
                }
            }
            Some(other) => errors.push(FieldError::invalid(at(), other.clone(), "must be a string")),
        }
    }
    let Some(metadata) = fields.get("metadata") else { return };
    let at = path.field("metadata");
    let mut decoded = metadata.clone();
    if let Err(why) = meta::decode(&mut decoded, &at, &mut Vec::new()) {
        errors.push(FieldError::invalid(at.to_string(), metadata.clone(), why));
        return;
    }
    if crate::object::name(resource).is_empty() {
        decoded["name"] = "fakename".into();
    }
    let scope = if decoded.get("namespace").is_some() { Scope::Namespaced } else { Scope::Cluster };
    let resource = Value::Object(Map::from_iter([("metadata".to_owned(), decoded)]));
    for error in names::check_metadata(&resource, scope, is_path_segment) {
        errors.push(FieldError { path: path.field(&error.path).to_string(), ..error });
    }
}

fn is_api_version(text: &str) -> Result<(), String> {
    if text.matches('/').count() > 1 { Err(format!("unexpected GroupVersion string: {text}")) } else { Ok(()) }
}

fn is_kind(text: &str) -> Result<(), String> {
    let faults = super::dns_1035_faults(&text.to_lowercase());
    if faults.is_empty() {
        return Ok(());
    }
    Err(format!("may have mixed case, but should otherwise match: {}", faults.join(",")))
}

/// A name that can stand in a URL between two slashes.
fn is_path_segment(name: &str) -> Result<(), String> {
    if name == "." || name == ".." {
        return Err(format!("may not be '{name}'"));
    }
    match ['/', '%'].into_iter().find(|forbidden| name.contains(*forbidden)) {
        Some(forbidden) => Err(format!("may not contain '{forbidden}'")),
        None => Ok(()),
    }
}
