//! Rules for names, labels, annotations and the rest of `metadata`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::object;
use crate::{FieldError, FieldFault};

/// Where objects live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// The most that all annotations of an object may take, keys and values together.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// An expression that must match all of a text.
fn whole(expression: &str) -> LazyRegex {
    Regex::new(&format!("^(?:{expression})$")).ok()
}

/// `None` cannot happen (the expressions are the constants above and have tests); it would refuse everything.
type LazyRegex = Option<Regex>;

static IS_LABEL: LazyLock<LazyRegex> = LazyLock::new(|| whole(LABEL));
static IS_SUBDOMAIN: LazyLock<LazyRegex> = LazyLock::new(|| whole(SUBDOMAIN));
static IS_QUALIFIED: LazyLock<LazyRegex> = LazyLock::new(|| whole(QUALIFIED));
static IS_LABEL_VALUE: LazyLock<LazyRegex> = LazyLock::new(|| whole(LABEL_VALUE));

fn matches(expression: &LazyLock<LazyRegex>, text: &str) -> bool {
    // `$` also matches before a final line break in some engines, but not in this one.
    expression.as_ref().is_some_and(|expression| expression.is_match(text))
}

/// `metadata.name` as most resources want it: an RFC 1123 subdomain.
pub fn subdomain(name: &str) -> Result<(), String> {
    if name.len() > 253 {
        return Err(too_long(253));
    }
    if matches(&IS_SUBDOMAIN, name) {
        return Ok(());
    }
    Err(format!(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
    ))
}

/// `metadata.name` as namespaces want it: an RFC 1123 label.
pub fn label(name: &str) -> Result<(), String> {
    if name.len() > 63 {
        return Err(too_long(63));
    }
    if matches(&IS_LABEL, name) {
        return Ok(());
    }
    if matches(&IS_SUBDOMAIN, name) {
        return Err("must not contain dots".to_owned());
    }
    Err(format!(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
         with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
    ))
}

/// What is wrong with the key of a label or annotation, or with a finalizer: `example.com/name`.
pub fn qualified_faults(key: &str) -> Vec<String> {
    let sentence = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED}')"
    );
    let mut faults = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else if let Err(why) = subdomain(prefix) {
                faults.push(format!("prefix part {why}"));
            }
            name
        }
        _ => {
            faults.push(format!(
                "a qualified name {sentence} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return faults;
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push(format!("name part {}", too_long(63)));
    }
    if !matches(&IS_QUALIFIED, name) {
        faults.push(format!("name part {sentence}"));
    }
    faults
}

/// What is wrong with the value of a label.
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > 63 {
        faults.push(too_long(63));
    }
    if !matches(&IS_LABEL_VALUE, value) {
        faults.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '{LABEL_VALUE}')"
        ));
    }
    faults
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

/// What is wrong with an object's `metadata`, whatever it was before.
pub fn check_metadata(object: &Value, scope: Scope, valid_name: fn(&str) -> Result<(), String>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let generate = object::meta_text(object, "generateName");
    if !generate.is_empty() {
        // What is generated ends with letters and digits, so a dash at the end of the stem is fine.
        let stem = generate.strip_suffix('-').map_or_else(|| generate.to_owned(), |stem| format!("{stem}a"));
        if let Err(why) = valid_name(&stem) {
            errors.push(FieldError::invalid("metadata.generateName", generate, why));
        }
    }
    let name = object::name(object);
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if let Err(why) = valid_name(name) {
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    let namespace = object::namespace(object);
    match scope {
        Scope::Namespaced if namespace.is_empty() => errors.push(FieldError::required("metadata.namespace", "")),
        Scope::Namespaced => {
            if let Err(why) = label(namespace) {
                errors.push(FieldError::invalid("metadata.namespace", namespace, why));
            }
        }
        Scope::Cluster if !namespace.is_empty() => {
            errors.push(FieldError::forbidden("metadata.namespace", "not allowed on this type"));
        }
        Scope::Cluster => {}
    }
    errors.extend(check_labels(object));
    errors.extend(check_annotations(object));
    errors.extend(check_owners(object));
    errors.extend(check_finalizers(object));
    errors
}

/// What is wrong with an object's `metadata`, given what it was.
pub fn check_metadata_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if object::is_deleting(old) {
        let had = |finalizer: &&str| object::finalizers(old).any(|had| had == *finalizer);
        let added: Vec<&str> = object::finalizers(new).filter(|finalizer| !had(finalizer)).collect();
        if !added.is_empty() {
            let why = format!("no new finalizers can be added if the object is being deleted, found {added:?}");
            errors.push(FieldError::forbidden("metadata.finalizers", why));
        }
    }
    if object::resource_version(new).is_empty() {
        errors.push(FieldError::invalid("metadata.resourceVersion", "", "must be specified for an update"));
    }
    for key in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let is = object::meta(new).and_then(|meta| meta.get(key)).filter(|value| !value.is_null());
        let was = object::meta(old).and_then(|meta| meta.get(key)).filter(|value| !value.is_null());
        if is != was {
            errors.push(immutable(key, is));
        }
    }
    errors.extend(check_labels(new));
    errors.extend(check_annotations(new));
    errors.extend(check_owners(new));
    errors
}

fn immutable(key: &str, value: Option<&Value>) -> FieldError {
    let path = format!("metadata.{key}");
    FieldError::invalid(path, value.cloned().unwrap_or_default(), "field is immutable")
}

fn check_labels(object: &Value) -> Vec<FieldError> {
    let path = "metadata.labels";
    let mut errors = Vec::new();
    for (key, value) in object::labels(object) {
        errors.extend(qualified_faults(key).into_iter().map(|why| FieldError::invalid(path, key, why)));
        errors.extend(label_value_faults(value).into_iter().map(|why| FieldError::invalid(path, value, why)));
    }
    errors
}

fn check_annotations(object: &Value) -> Vec<FieldError> {
    let path = "metadata.annotations";
    let mut errors = Vec::new();
    let mut total = 0;
    let annotations = object::meta(object).and_then(|meta| meta.get("annotations")).and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flatten() {
        total += key.len() + value.as_str().unwrap_or_default().len();
        let faults = qualified_faults(&key.to_lowercase());
        errors.extend(faults.into_iter().map(|why| FieldError::invalid(path, key.as_str(), why)));
    }
    if total > ANNOTATIONS_LIMIT {
        errors.push(FieldError::new(FieldFault::TooLong(ANNOTATIONS_LIMIT), path, ""));
    }
    errors
}

fn check_owners(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    let owners = object::meta(object).and_then(|meta| meta.get("ownerReferences")).and_then(Value::as_array);
    for owner in owners.into_iter().flatten() {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        // Kubernetes reads a version with too many slashes as none at all.
        let version = match api_version.matches('/').count() {
            0 => api_version,
            1 => api_version.split('/').next_back().unwrap_or_default(),
            _ => "",
        };
        if version.is_empty() {
            errors.push(FieldError::invalid(
                "metadata.ownerReferences.apiVersion",
                api_version,
                "version must not be empty",
            ));
        }
        for key in ["kind", "name", "uid"] {
            if text(key).is_empty() {
                let path = format!("metadata.ownerReferences.{key}");
                errors.push(FieldError::invalid(path, "", format!("{key} must not be empty")));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            errors.push(FieldError::invalid(
                "metadata.ownerReferences",
                owner.clone(),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            if let Some(first) = &controller {
                let second = format!("{}/{}", text("kind"), text("name"));
                errors.push(FieldError::invalid(
                    "metadata.ownerReferences",
                    owners.cloned().unwrap_or_default(),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                         and {second}"
                    ),
                ));
            }
            controller.get_or_insert_with(|| format!("{}/{}", text("kind"), text("name")));
        }
    }
    errors
}

/// Finalizers of the resources of the core group are standard or have a domain.
pub fn check_core_finalizers(object: &Value) -> Vec<FieldError> {
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let wrong = |finalizer: &str| {
        !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | "orphan" | "foregroundDeletion")
    };
    let all = object::finalizers(object).enumerate().filter(|(_, finalizer)| wrong(finalizer));
    all.map(|(index, finalizer)| FieldError::invalid(format!("metadata.finalizers[{index}]"), finalizer, why)).collect()
}

fn check_finalizers(object: &Value) -> Vec<FieldError> {
    let path = "metadata.finalizers";
    let mut errors = Vec::new();
    for finalizer in object::finalizers(object) {
        let faults = qualified_faults(finalizer);
        errors.extend(faults.into_iter().map(|why| FieldError::invalid(path, finalizer, why)));
    }
    let has = |wanted: &str| object::finalizers(object).any(|finalizer| finalizer == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let all: Vec<&str> = object::finalizers(object).collect();
        errors.push(FieldError::invalid(path, all, "finalizer orphan and foregroundDeletion cannot be both set"));
    }
    errors
}
