//! Secrets.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::rules::{self, MOST_DATA};
use super::{Plan, age_column, column, name_column, v1};
use crate::resource::{Cell, Hooks, Part, Resource, Scope, Version};
use crate::status::{Failure, FieldError, FieldFault};

const OPAQUE: &str = "Opaque";

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "",
        kind: "Secret",
        plural: "secrets",
        short_names: &[],
        categories: &[],
        scope: Scope::Namespaced,
    };
    let columns = vec![
        name_column(),
        column("Type", "What the data is for.", Cell::Path(".type".to_owned())),
        column("Data", "How many entries there are.", Cell::Compute(|object, _| rules::count(object, "data").into())),
        age_column(),
    ];
    let hooks = Hooks { default, validate, warnings, ..Hooks::NONE };
    Ok(plan.resource(vec![v1("io.k8s.api.core.v1.Secret", columns, &[".type"])?], hooks))
}

fn default(new: &mut Value) {
    let Value::Object(fields) = new else { return };
    if let Some(Value::Object(plain)) = fields.remove("stringData")
        && !plain.is_empty()
    {
        let data = fields.entry("data").or_insert(Value::Null);
        for (key, value) in plain {
            rules::set(data, &key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
        }
    }
    rules::leave_out(new, &["data", "type"]);
    rules::keep(new, "type", OPAQUE.into());
}

fn validate(new: &Value, old: Option<&Value>, _: Part, _: &Version) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = rules::text(new, &["type"]);
    if let Some(old) = old {
        if kind != rules::text(old, &["type"]) {
            errors.push(FieldError::invalid("type", kind, "field is immutable"));
        }
        errors.extend(rules::still_immutable(new, old, &["data"]));
    }
    let data = rules::bytes(new, "data");
    for key in data.keys() {
        let wrong = rules::data_key(key).into_iter();
        errors.extend(wrong.map(|why| FieldError::invalid(format!("data[{key}]"), *key, why)));
    }
    if data.values().map(Vec::len).sum::<usize>() > MOST_DATA {
        errors.push(FieldError::new(FieldFault::TooLong(MOST_DATA), "data", ""));
    }
    errors.extend(missing(kind, new, &data));
    errors
}

/// A certificate or key that is none is taken, with a remark.
fn warnings(new: &Value) -> Vec<String> {
    if rules::text(new, &["type"]) != "kubernetes.io/tls" {
        return Vec::new();
    }
    let data = rules::bytes(new, "data");
    let has_pem = |key: &str| data.get(key).is_some_and(|text| String::from_utf8_lossy(text).contains("-----BEGIN "));
    let what = [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find(|(key, _)| !has_pem(key));
    what.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input")).into_iter().collect()
}

/// What secrets of this type must hold and this one does not.
fn missing(kind: &str, new: &Value, data: &BTreeMap<&str, Vec<u8>>) -> Vec<FieldError> {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let absent = |keys: &[&str]| -> Vec<FieldError> {
        keys.iter().filter(|&key| !data.contains_key(key)).map(|key| required(key)).collect()
    };
    match kind {
        "kubernetes.io/service-account-token" if rules::text(new, &["metadata", "annotations", ACCOUNT]).is_empty() => {
            vec![FieldError::required(format!("metadata.annotations[{ACCOUNT}]"), "")]
        }
        "kubernetes.io/dockercfg" => well_formed(".dockercfg", data),
        "kubernetes.io/dockerconfigjson" => well_formed(".dockerconfigjson", data),
        "kubernetes.io/basic-auth" => {
            let absent = absent(&["username", "password"]);
            if absent.len() == 2 { absent } else { Vec::new() }
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_none_or(Vec::is_empty) => {
            vec![required("ssh-privatekey")]
        }
        "kubernetes.io/tls" => absent(&["tls.crt", "tls.key"]),
        _ => Vec::new(),
    }
}

fn well_formed(key: &str, data: &BTreeMap<&str, Vec<u8>>) -> Vec<FieldError> {
    let path = format!("data[{key}]");
    let Some(bytes) = data.get(key) else { return vec![FieldError::required(path, "")] };
    match serde_json::from_slice::<Map<String, Value>>(bytes) {
        Ok(_) => Vec::new(),
        Err(why) => vec![FieldError::invalid(path, "<secret contents redacted>", why.to_string())],
    }
}
