//! What a client sent, read as an object of a resource: types of metadata, fields that nobody knows, defaults.

use schema::MOST_DEFAULTS;
use serde_json::{Map, Value};

use crate::builtins;
use crate::catalogue::Served;
use crate::request::body::Document;
use crate::request::query::FieldValidation;
use crate::status::{Failure, FieldError, Qualified, wrong_type};

/// An object from outside.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The object.
    pub object: Value,
    /// The paths of keys that were there more than once.
    pub duplicates: Vec<String>,
    /// What else there is to remark about fields.
    pub remarks: Vec<String>,
    /// Whether it comes of an apply.
    pub applied: bool,
}

impl From<Value> for Incoming {
    fn from(object: Value) -> Self {
        Self { object, duplicates: Vec::new(), remarks: Vec::new(), applied: false }
    }
}

impl From<Document> for Incoming {
    fn from(document: Document) -> Self {
        let Document { value: object, duplicates } = document;
        Self { object, duplicates, remarks: Vec::new(), applied: false }
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
    let Incoming { mut object, duplicates, mut remarks, applied } = incoming;
    let custom = served.resource.custom;
    let applied = applied && custom;
    let foreign = served.resource.custom && is_of_another_kind(served, &object);
    let Some(fields) = object.as_object_mut() else {
        return Err(wrong_type("the object", "an object", &object));
    };
    fields.entry("metadata").or_insert_with(|| Map::new().into());
    let version = served.version();
    let mut unknown = if custom { Vec::new() } else { builtins::decode::read(served, &mut object)? };
    unknown.append(&mut version.schema.coerce(&mut object)?);
    if !custom {
        unknown.sort();
    }
    if foreign {
        unknown.clear();
    }
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
    remarks.extend(duplicates.iter().map(|path| format!("duplicate field {path:?}")));
    remarks.extend(unknown.iter().map(|path| format!("unknown field {path:?}")));
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

/// The object in the body of a create or update makes no sense.
pub(super) fn cannot_be_handled(served: &Served, why: &str) -> Failure {
    let (kind, version) = (&served.resource.kind, &served.version().name);
    Failure::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// The object that a patch makes makes no sense.
pub(super) fn cannot_be_patched(patched: &Value, why: &str) -> Failure {
    let error = FieldError::invalid("patch", patched.to_string(), why);
    Failure::invalid(Qualified { group: "", name: "" }, "", &[error])
}

/// Built-ins know what they are; only a contradiction is refused.
pub(crate) fn not_another_built_in(served: &Served, api_version: &str, kind: &str) -> Result<(), String> {
    let (wanted, expected) = (served.resource.kind.as_str(), served.api_version());
    if (kind.is_empty() || kind == wanted) && (api_version.is_empty() || api_version == expected) {
        return Ok(());
    }
    Err(format!("it says that it is a {kind:?} of {api_version:?}, and a {wanted:?} of {expected:?} belongs here"))
}
