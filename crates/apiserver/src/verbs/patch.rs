//! Changes that say what is different.

use serde_json::Value;

use super::create::{check_open, settle_namespace};
use super::decode::{Read, cannot_be_patched, read};
use super::update::{Attempt, Record, check_name, keep_other_parts, part_name};
use super::{Api, Incoming, WriteOptions, Written, modified, not_found, qualified};
use crate::catalogue::Served;
use crate::object;
use crate::ownership::{self, Writer};
use crate::patch;
use crate::request::body::Document;
use crate::resource::Part;
use crate::status::Failure;

/// A patch.
#[derive(Debug, Clone)]
pub enum Patch {
    /// `application/json-patch+json`.
    Json(Document),
    /// `application/merge-patch+json`.
    Merge(Document),
    /// `application/strategic-merge-patch+json`.
    Strategic(Document),
    /// `application/apply-patch+yaml`.
    Apply(Document),
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
            let (patched, duplicates) = patched(served, &before.shown, patch)?;
            check_type(served, name, &patched)?;
            let incoming = Incoming { object: patched.clone(), duplicates, text: None };
            let Read { mut object, warnings } =
                read(served, incoming, options.field_validation).map_err(|why| cannot_be_patched(&patched, &why))?;
            check_name(name, &object)?;
            settle_namespace(served, namespace, &mut object)?;
            // Without a version of its own the patch is about whatever is there.
            let pinned = object::resource_version(&patched) != object::resource_version(&before.shown);
            match self.overwrite(served, part, &before, object, options, Record::Update).await? {
                Attempt::Done(object) => return Ok(Written { object, created: false, warnings }),
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
        intent: &Document,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        check_apply_type(served, &intent.value)?;
        let api_version = served.api_version();
        loop {
            let before = self.before(served, namespace, name)?;
            if before.is_none() && part != Part::Main {
                return Err(not_found(served, name));
            }
            if before.is_none() {
                check_open(served, "create")?;
            }
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
            let mut intended = intent.value.clone();
            leave_other_parts(served, part, &mut intended);
            let schema = &served.version().schema;
            let merged = ownership::apply(schema, live, &intended, writer, options.force)?;
            let incoming = Incoming { object: merged.clone(), duplicates: intent.duplicates.clone(), text: None };
            let Read { mut object, warnings } =
                read(served, incoming, options.field_validation).map_err(|why| cannot_be_patched(&merged, &why))?;
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
                let object = self.insert(served, object, options).await?;
                return Ok(Written { object, created: true, warnings });
            };
            check_name(name, &object)?;
            settle_namespace(served, namespace, &mut object)?;
            keep_other_parts(served, part, &before.shown, &mut object);
            match self.overwrite(served, part, &before, object, options, Record::Done).await? {
                Attempt::Done(object) => return Ok(Written { object, created: false, warnings }),
                Attempt::Raced if !object::resource_version(&intent.value).is_empty() => {
                    return Err(modified(served, name));
                }
                Attempt::Raced => {}
            }
        }
    }
}

/// What the object becomes, and which keys the patch has twice.
fn patched(served: &Served, object: &Value, patch: &Patch) -> Result<(Value, Vec<String>), Failure> {
    Ok(match patch {
        Patch::Json(document) => (patch::json(object, &document.value)?, Vec::new()),
        Patch::Merge(document) | Patch::Apply(document) => {
            (patch::merge(object, &document.value)?, document.duplicates.clone())
        }
        Patch::Strategic(document) => {
            (patch::strategic(&served.version().schema, object, &document.value)?, document.duplicates.clone())
        }
    })
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
    let api_version = if text("apiVersion").is_empty() { "/" } else { text("apiVersion") };
    Err(Failure::bad_request(format!("invalid object type: {api_version}, Kind={}", text("kind"))))
}

/// An apply on one part has no opinion about the others.
fn leave_other_parts(served: &Served, part: Part, intent: &mut Value) {
    let Some(fields) = intent.as_object_mut() else { return };
    match part {
        Part::Main if served.version().status => {
            fields.remove("status");
        }
        Part::Status => fields.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status")),
        Part::Main | Part::Finalize => {}
    }
}
