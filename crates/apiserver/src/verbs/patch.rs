//! Changes that say what is different.

use bytes::Bytes;
use schema::object;
use serde_json::Value;

use super::create::{check_open, drop_status, remarks, settle_namespace};
use super::decode::{Read, cannot_be_patched, not_another_built_in, read};
use super::update::{Attempt, Record, check_name, keep_other_parts, part_name};
use super::{Api, Incoming, WriteOptions, Written, modified, not_found, plain_failure, qualified};
use crate::catalogue::Served;
use crate::ownership::{self, Operation, Writer};
use crate::patch;
use crate::request::body::Document;
use crate::resource::Part;
use crate::status::{Failure, wrong_type};

/// A patch.
#[derive(Debug, Clone)]
pub enum Patch {
    /// `application/json-patch+json`.
    Json(Document),
    /// `application/merge-patch+json`.
    Merge(Document),
    /// `application/strategic-merge-patch+json`.
    Strategic(Document),
    /// `application/apply-patch+yaml`: YAML or JSON.
    Apply(Bytes),
}

impl Api {
    /// Changes an object as a patch says; an apply makes the object if there is none.
    pub async fn patch(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        part: Part,
        patch: &Patch,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        if let Patch::Apply(intent) = patch {
            return self.apply(served, namespace, name, part, intent, options).await;
        }
        loop {
            let before = self.before(served, namespace, name)?.ok_or_else(|| not_found(served, name))?;
            let mut incoming = patched(served, &before.shown, patch)?;
            let patched = incoming.object.clone();
            check_type_meta(served, &patched).map_err(|why| cannot_be_patched(&patched, &why))?;
            match part {
                Part::Main if served.resource.custom => check_type(served, name, &patched)?,
                // What is not looked at cannot be wrong.
                _ => set_type(served, &mut incoming.object),
            }
            let Read { mut object, mut warnings } =
                read(served, incoming, options.field_validation).map_err(|why| cannot_be_patched(&patched, &why))?;
            check_name(name, &object)?;
            settle_namespace(served, namespace, &mut object)?;
            // Without a version of its own the patch is about whatever is there.
            let pinned = object::resource_version(&patched) != object::resource_version(&before.shown);
            let attempt = self.overwrite(served, part, &before, object, options, Record::Update).await;
            match attempt.map_err(|failure| failure.with_warnings(&warnings))? {
                Attempt::Done(object) => {
                    warnings.extend(remarks(served, &object, Some(&before.shown)));
                    return Ok(Written { object, created: false, warnings });
                }
                Attempt::Raced if pinned => return Err(modified(served, name)),
                Attempt::Raced => {}
            }
        }
    }

    async fn apply(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        part: Part,
        text: &Bytes,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let api_version = served.api_version();
        loop {
            let before = self.before(served, namespace, name)?;
            if before.is_none() && part != Part::Main {
                return Err(not_found(served, name));
            }
            if before.is_none() {
                check_open(served, "create")?;
            }
            let intent = read_intent(served, text)?;
            let live = before.as_ref().map(|before| &before.shown);
            let writer = Writer {
                manager: &options.manager,
                api_version: &api_version,
                kind: &served.resource.kind,
                subresource: part_name(part),
                untouched: ownership::untouched(&served.resource, served.version(), part),
                custom: served.resource.custom,
                now: self.now(),
            };
            let schema = &served.version().schema;
            let merged = ownership::apply(schema, live, &intent.value, writer, options.force)?;
            if let Some(live) = live
                && let Some(why) =
                    ownership::lost_in_translation(&served.resource, live, &merged, writer, Operation::Apply)
            {
                return Err(plain_failure(why));
            }
            let duplicates = intent.duplicates.clone();
            let incoming = Incoming { duplicates, applied: true, ..Incoming::from(merged.clone()) };
            let Read { mut object, mut warnings } =
                read(served, incoming, options.field_validation).map_err(|why| cannot_be_patched(&merged, &why))?;
            if served.resource.custom && live.is_some_and(|live| same_but_for_owners(live, &merged)) {
                // Who applies what is there already does not bring in defaults either.
                object = merged;
            }
            let Some(before) = before else {
                let uid = object::uid(&object);
                if !uid.is_empty() {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(Failure::conflict(qualified(served), name, why));
                }
                check_name(name, &object)?;
                settle_namespace(served, namespace, &mut object)?;
                self.check_namespace(served, namespace, name)?;
                object::meta_mut(&mut object).remove("resourceVersion");
                if served.version().status {
                    drop_status(&mut object);
                }
                let object = match self.insert(served, object, options).await {
                    // Somebody else was faster to make it: now there is something to apply to.
                    Err(failure) if failure.reason == "AlreadyExists" => continue,
                    inserted => inserted.map_err(|failure| failure.with_warnings(&warnings))?,
                };
                warnings.extend(remarks(served, &object, None));
                return Ok(Written { object, created: true, warnings });
            };
            check_name(name, &object)?;
            settle_namespace(served, namespace, &mut object)?;
            keep_other_parts(served, part, &before.shown, &mut object);
            let attempt = self.overwrite(served, part, &before, object, options, Record::Done).await;
            match attempt.map_err(|failure| failure.with_warnings(&warnings))? {
                Attempt::Done(object) => {
                    warnings.extend(remarks(served, &object, Some(&before.shown)));
                    return Ok(Written { object, created: false, warnings });
                }
                Attempt::Raced if !object::resource_version(&intent.value).is_empty() => {
                    return Err(modified(served, name));
                }
                Attempt::Raced => {}
            }
        }
    }
}

fn same_but_for_owners(one: &Value, other: &Value) -> bool {
    let without_owners = |object: &Value| {
        let mut object = object.clone();
        object::meta_mut(&mut object).remove("managedFields");
        object
    };
    without_owners(one) == without_owners(other)
}

/// What the object becomes, and what there is to remark about the patch.
fn patched(served: &Served, object: &Value, patch: &Patch) -> Result<Incoming, Failure> {
    let (object, document) = match patch {
        Patch::Json(document) => {
            let patched = patch::json(object, &document.value)?;
            let remarks = patch::unknown_fields(&document.value);
            return Ok(Incoming { remarks, ..Incoming::from(patched) });
        }
        Patch::Merge(document) => (patch::merge(object, &document.value)?, document),
        Patch::Strategic(document) => (patch::strategic(&served.version().schema, object, &document.value)?, document),
        Patch::Apply(_) => return Err(Failure::internal("an apply is not made of an object")),
    };
    Ok(Incoming { duplicates: document.duplicates.clone(), ..Incoming::from(object) })
}

/// What somebody wants to own.
fn read_intent(served: &Served, text: &Bytes) -> Result<Document, Failure> {
    let decoding = |why: String| Failure::bad_request(format!("error decoding YAML: {why}"));
    let intent = Document::yaml(text).map_err(decoding)?;
    if !intent.value.is_object() && !intent.value.is_null() {
        return Err(decoding(wrong_type("the object", "an object", &intent.value)));
    }
    check_apply_type(served, &intent.value)?;
    Ok(intent)
}

fn set_type(served: &Served, object: &mut Value) {
    object["apiVersion"] = served.api_version().into();
    object["kind"] = served.resource.kind.as_str().into();
}

/// Whether a patched object still says what it is.
fn check_type_meta(served: &Served, patched: &Value) -> Result<(), String> {
    object::check_type_fields(patched)?;
    let text = |key: &str| patched.get(key).and_then(Value::as_str).unwrap_or_default();
    if !served.resource.custom {
        return not_another_built_in(served, text("apiVersion"), text("kind"));
    }
    if text("kind").is_empty() {
        return Err("kind is missing".to_owned());
    }
    Ok(())
}

/// Patches cannot make an object something else.
fn check_type(served: &Served, name: &str, patched: &Value) -> Result<(), Failure> {
    let text = |key: &str| patched.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let wanted = served.api_version();
    let wrong = if kind != served.resource.kind {
        crate::status::FieldError::invalid("kind", kind, format!("must be {}", served.resource.kind))
    } else if api_version != wanted {
        crate::status::FieldError::invalid("apiVersion", api_version, format!("must be {wanted}"))
    } else {
        return Ok(());
    };
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Err(Failure::invalid(crate::status::Qualified { group, name: kind }, name, &[wrong]))
}

fn check_apply_type(served: &Served, intent: &Value) -> Result<(), Failure> {
    let text = |key: &str| intent.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") == served.api_version() && text("kind") == served.resource.kind {
        return Ok(());
    }
    let slash = if text("apiVersion").contains('/') { "" } else { "/" };
    Err(Failure::bad_request(format!("invalid object type: {slash}{}, Kind={}", text("apiVersion"), text("kind"))))
}
