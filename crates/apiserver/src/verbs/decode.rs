//! What a client sent, read as an object of a resource: types of metadata, fields that nobody knows, defaults.

use std::collections::HashSet;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::builtins;
use crate::catalogue::Served;
use crate::object::json_kind;
use crate::request::body::{Document, key_order};
use crate::request::query::FieldValidation;
use crate::resource::Resource;
use crate::schema::MOST_DEFAULTS;
use crate::status::{Failure, FieldError, Qualified};

/// An object from outside.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The object.
    pub object: Value,
    /// The paths of keys that were there more than once.
    pub duplicates: Vec<String>,
    /// The text that it was read from, where there was one.
    pub text: Option<Bytes>,
    /// What else there is to remark about fields.
    pub remarks: Vec<String>,
    /// Whether it comes of an apply.
    pub applied: bool,
    /// What Go's parser of YAML remarks.
    pub yaml_remarks: Vec<String>,
}

impl From<Value> for Incoming {
    fn from(object: Value) -> Self {
        Self {
            object,
            duplicates: Vec::new(),
            text: None,
            remarks: Vec::new(),
            applied: false,
            yaml_remarks: Vec::new(),
        }
    }
}

impl From<Document> for Incoming {
    fn from(document: Document) -> Self {
        let Document { value: object, duplicates, text, yaml_remarks } = document;
        Self { object, duplicates, text, remarks: Vec::new(), applied: false, yaml_remarks }
    }
}

/// Why an object cannot be read: the sentence after `… cannot be handled as a …:`.
pub(super) type Why = String;

/// An object that has been read, and remarks about it.
#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

/// Reads an object of a resource as Kubernetes' decoder does.
pub(super) fn read(served: &Served, incoming: Incoming, validation: FieldValidation) -> Result<Read, Why> {
    let Incoming { mut object, duplicates, text, remarks: mut noted, applied, yaml_remarks } = incoming;
    let custom = served.resource.custom;
    let applied = applied && custom;
    let foreign = served.resource.custom && is_of_another_kind(served, &object);
    let mut unknown = read_metadata(&mut object, &served.resource)?;
    let version = served.version();
    let mut pruned = if custom {
        version.schema.coerce(&mut object)?
    } else {
        let mut pruned = builtins::decode::read(served, &mut object)?;
        pruned.append(&mut version.schema.prune(&mut object));
        pruned.sort();
        pruned
    };
    if foreign {
        pruned.clear();
    }
    let known: HashSet<&String> = unknown.iter().collect();
    pruned.retain(|path| !known.contains(path));
    unknown.append(&mut pruned);
    let filled = if applied { version.schema.default_only(&mut object) } else { version.schema.default(&mut object) };
    if !filled {
        return Err(format!("the defaults of its schema would make it larger by more than {MOST_DEFAULTS} bytes"));
    }
    match version.convert {
        Some(convert) => {
            (convert.store)(&mut object);
            (served.resource.hooks.default)(&mut object);
            (convert.load)(&mut object);
        }
        None => (served.resource.hooks.default)(&mut object),
    }
    object["apiVersion"] = served.api_version().into();
    // Whoever sends a custom resource of another kind is told so later.
    if !custom || object.get("kind").is_none() {
        object["kind"] = served.resource.kind.as_str().into();
    }
    noted.append(&mut remarks(&duplicates, &unknown, text.as_ref().filter(|_| !custom)));
    let mut remarks = noted;
    if !yaml_remarks.is_empty() {
        let summed_up = format!("yaml: unmarshal errors:\n  {}", yaml_remarks.join("\n  "));
        let said = if validation == FieldValidation::Strict { vec![summed_up] } else { yaml_remarks };
        remarks.splice(0..0, said);
    }
    match validation {
        FieldValidation::Strict if !remarks.is_empty() => Err(format!("strict decoding error: {}", remarks.join(", "))),
        FieldValidation::Ignore | FieldValidation::Strict => Ok(Read { object, warnings: Vec::new() }),
        FieldValidation::Warn => Ok(Read { object, warnings: remarks }),
    }
}

/// An object of a kind that is not the resource's is refused later, without remarks about its fields.
fn is_of_another_kind(served: &Served, object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind != served.resource.kind)
}

/// Remarks in Kubernetes' order: for custom resources what is there twice first, for built-ins as they stand in the text.
fn remarks(duplicates: &[String], unknown: &[String], text: Option<&Bytes>) -> Vec<String> {
    let twice = |path: &String| format!("duplicate field {path:?}");
    let strange = |path: &String| format!("unknown field {path:?}");
    let order = text.filter(|_| !duplicates.is_empty() && !unknown.is_empty()).and_then(|text| key_order(text).ok());
    let Some(order) = order else {
        return duplicates.iter().map(twice).chain(unknown.iter().map(strange)).collect();
    };
    let mut seen = HashSet::new();
    let mut remarks = Vec::new();
    let strangers: HashSet<&String> = unknown.iter().collect();
    for path in &order {
        let again = !seen.insert(path);
        if again && duplicates.contains(path) {
            remarks.push(twice(path));
        } else if !again && strangers.contains(path) {
            remarks.push(strange(path));
        }
    }
    remarks
}

/// The object in the body of a create or update makes no sense.
pub(super) fn cannot_be_handled(served: &Served, why: &str) -> Failure {
    let (kind, version) = (&served.resource.kind, &served.version().name);
    Failure::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// The object that a patch makes makes no sense.
pub(super) fn cannot_be_patched(patched: &Value, why: &str) -> Failure {
    cannot_be_patched_in(patched.to_string(), why)
}

/// The same, with what is shown instead of the object.
pub(super) fn cannot_be_patched_in(shown: String, why: &str) -> Failure {
    let error = FieldError::invalid("patch", shown, why);
    Failure::invalid(Qualified { group: "", name: "" }, "", &[error])
}

/// What Go calls the types of `metadata`'s fields.
const METADATA: &[(&str, &str)] = &[
    ("annotations", "map[string]string"),
    ("creationTimestamp", "Time"),
    ("deletionGracePeriodSeconds", "int64"),
    ("deletionTimestamp", "Time"),
    ("finalizers", "[]string"),
    ("generateName", "string"),
    ("generation", "int64"),
    ("labels", "map[string]string"),
    ("managedFields", "[]v1.ManagedFieldsEntry"),
    ("name", "string"),
    ("namespace", "string"),
    ("ownerReferences", "[]v1.OwnerReference"),
    ("resourceVersion", "string"),
    ("selfLink", "string"),
    ("uid", "types.UID"),
];

/// Brings `metadata` into the form that Go's types give it. Returns the paths of unknown fields, which are dropped.
fn read_metadata(object: &mut Value, resource: &Resource) -> Result<Vec<String>, Why> {
    let custom = resource.custom;
    let Some(fields) = object.as_object_mut() else {
        return Err("json: cannot unmarshal into Go value".to_owned());
    };
    let metadata = match fields.entry("metadata").or_insert(Value::Null) {
        Value::Object(metadata) => metadata,
        null @ Value::Null => {
            *null = Value::Object(Map::new());
            return Ok(Vec::new());
        }
        other if custom => {
            return Err(format!("json: cannot unmarshal {} into Go value of type v1.ObjectMeta", json_kind(other)));
        }
        other => {
            let (found, kind) = (json_kind(other), &resource.kind);
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field {kind}.metadata of type v1.ObjectMeta"
            ));
        }
    };
    let mut unknown = Vec::new();
    let keys: Vec<String> = metadata.keys().cloned().collect();
    for key in keys {
        let Some((_, go_type)) = METADATA.iter().find(|(known, _)| *known == key) else {
            unknown.push(format!("metadata.{key}"));
            metadata.remove(&key);
            continue;
        };
        let value = metadata.get_mut(&key).map(Value::take).unwrap_or_default();
        if let Some(value) = read_meta_field(&key, go_type, value, custom, &mut unknown)? {
            metadata.insert(key, value);
        } else {
            metadata.remove(&key);
        }
    }
    Ok(unknown)
}

/// One field of `metadata`; `None` where Go would leave it out.
fn read_meta_field(
    key: &str,
    go_type: &str,
    value: Value,
    custom: bool,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, Why> {
    let wrong = |value: &Value, go_type: &str| {
        let prefix = if custom { "ObjectMeta" } else { "ObjectMeta.metadata" };
        format!("json: cannot unmarshal {} into Go struct field {prefix}.{key} of type {go_type}", json_kind(value))
    };
    Ok(match (go_type, value) {
        (_, Value::Null) => None,
        ("string" | "types.UID", Value::String(text)) => (!text.is_empty()).then_some(Value::String(text)),
        ("int64", Value::Number(number)) if number.is_i64() || number.is_u64() => Some(Value::Number(number)),
        ("int64", Value::Number(number)) => {
            let prefix = if custom { "ObjectMeta" } else { "ObjectMeta.metadata" };
            return Err(format!(
                "json: cannot unmarshal number {number} into Go struct field {prefix}.{key} of type int64"
            ));
        }
        ("Time", Value::String(text)) => Some(read_time(&text)?.into()),
        ("map[string]string", Value::Object(mut map)) => {
            if let Some(value) = map.values().find(|value| !matches!(value, Value::String(_) | Value::Null)) {
                return Err(wrong(value, "string"));
            }
            map.values_mut().filter(|value| value.is_null()).for_each(|value| *value = "".into());
            (!map.is_empty()).then_some(Value::Object(map))
        }
        ("[]string", Value::Array(list)) => {
            if let Some(value) = list.iter().find(|value| !value.is_string()) {
                return Err(wrong(value, "string"));
            }
            (!list.is_empty()).then_some(Value::Array(list))
        }
        ("[]v1.OwnerReference", Value::Array(list)) => {
            let mut owners = Vec::with_capacity(list.len());
            for (index, owner) in list.into_iter().enumerate() {
                if !owner.is_object() {
                    return Err(wrong(&owner, "v1.OwnerReference"));
                }
                owners.push(read_owner(owner, index, unknown).map_err(|(value, field, go_type)| {
                    let (kind, prefix) = (json_kind(&value), if custom { "" } else { "metadata." });
                    format!(
                        "json: cannot unmarshal {kind} into Go struct field OwnerReference.{prefix}ownerReferences.{field} \
                         of type {go_type}"
                    )
                })?);
            }
            (!owners.is_empty()).then_some(Value::Array(owners))
        }
        // An empty list of managers has a meaning: forget them all.
        ("[]v1.ManagedFieldsEntry", Value::Array(list)) => Some(Value::Array(list)),
        ("Time", value) => return Err(wrong(&value, "string")),
        (go_type, value) => return Err(wrong(&value, go_type)),
    })
}

type WrongOwner = (Value, &'static str, &'static str);

fn read_owner(owner: Value, index: usize, unknown: &mut Vec<String>) -> Result<Value, WrongOwner> {
    let Value::Object(mut owner) = owner else {
        return Err((owner, "ownerReferences", "v1.OwnerReference"));
    };
    owner.retain(|key, value| {
        let known =
            matches!(key.as_str(), "apiVersion" | "kind" | "name" | "uid" | "controller" | "blockOwnerDeletion");
        if !known {
            unknown.push(format!("metadata.ownerReferences[{index}].{key}"));
        }
        known && !value.is_null()
    });
    for (key, go_type) in [("apiVersion", "string"), ("kind", "string"), ("name", "string"), ("uid", "types.UID")] {
        let value = owner.entry(key).or_insert_with(|| "".into());
        if !value.is_string() {
            return Err((value.take(), key, go_type));
        }
    }
    for key in ["controller", "blockOwnerDeletion"] {
        if let Some(value) = owner.get_mut(key).filter(|value| !value.is_boolean()) {
            return Err((value.take(), key, "bool"));
        }
    }
    Ok(Value::Object(owner))
}

/// A time as Kubernetes stores it: UTC, whole seconds.
fn read_time(text: &str) -> Result<String, Why> {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Ok(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        Err(_) => {
            Err(format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""))
        }
    }
}

/// Kinds that a client may mix up with each other, and where they are.
const BUILT_INS: &[(&str, &str)] = &[
    ("v1", "ConfigMap"),
    ("v1", "Event"),
    ("v1", "Namespace"),
    ("v1", "Pod"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("coordination.k8s.io/v1", "Lease"),
    ("events.k8s.io/v1", "Event"),
];

/// Built-ins know what they are; only a contradiction is refused, in Go's words.
pub(crate) fn not_another_built_in(served: &Served, api_version: &str, kind: &str) -> Result<(), String> {
    let wanted = served.resource.kind.as_str();
    let expected = served.api_version();
    let kind = if kind.is_empty() { wanted } else { kind };
    let api_version = if api_version.is_empty() { &expected } else { api_version };
    if kind == wanted && api_version == expected {
        return Ok(());
    }
    let of_a_list = kind.strip_suffix("List").unwrap_or(kind);
    if BUILT_INS.contains(&(api_version, of_a_list)) || (api_version, kind) == ("v1", "List") {
        let group = served.resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        return Err(format!("converting (v1.{kind}) to ({group}.{wanted}): unknown conversion"));
    }
    Err(not_registered(kind, api_version))
}

/// What Go says about a kind that it does not know.
pub(crate) fn not_registered(kind: &str, version: &str) -> String {
    format!("no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:110\"")
}
