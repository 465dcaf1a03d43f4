//! New objects.

use http::StatusCode;
use schema::names;
use schema::object;
use serde_json::Value;
use store::{Change, Expect, StoreError};

use super::decode::{Read, cannot_be_handled, read};
use super::draft::Draft;
use super::update::is_core;
use super::{Api, Incoming, Lens, WriteOptions, Written, plain_failure, qualified, qualified_kind, store_failure};
use crate::catalogue::Served;
use crate::ownership::{self, Writer};
use crate::resource::{Part, Scope};
use crate::status::{Failure, FieldError, Qualified};

/// Letters and digits that make no words and are not mistaken for each other.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The most that a name may have of what a client gave, when the rest is generated.
const STEM: usize = 58;
/// How often another name is tried when a generated one is taken.
const NAMES: usize = 8;

impl Api {
    /// Makes an object. Its name may be given as `generateName`.
    pub async fn create(
        &self,
        served: &Served,
        namespace: &str,
        incoming: impl Into<Incoming> + Send,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        check_open(served, "create")?;
        let read =
            read(served, incoming.into(), options.field_validation).map_err(|why| cannot_be_handled(served, &why))?;
        self.make(served, namespace, read, options).await
    }

    /// Makes an object that has been read.
    pub(super) async fn make(
        &self,
        served: &Served,
        namespace: &str,
        read: Read,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let mut object = read.object;
        settle_namespace(served, namespace, &mut object)?;
        self.check_namespace(served, namespace, object::name(&object))?;
        if served.version().status {
            drop_status(&mut object);
        }
        forget_what_the_server_sets(&mut object);
        let writer = Writer {
            manager: &options.manager,
            api_version: &served.api_version(),
            kind: &served.resource.kind,
            subresource: "",
            untouched: ownership::untouched(&served.resource, served.version(), Part::Main),
            custom: served.resource.custom,
            now: self.now(),
        };
        ownership::record_update(&served.version().schema, None, &mut object, writer);
        let inserted = self.insert(served, object, options).await;
        let object = inserted.map_err(|failure| failure.with_warnings(&read.warnings))?;
        let mut warnings = read.warnings;
        warnings.extend(remarks(served, &object, None));
        Ok(Written { object, created: true, warnings })
    }

    /// The way from a decoded object, whose owners are known, into the store.
    pub(super) async fn insert(
        &self,
        served: &Served,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Value, Failure> {
        let resource = &served.resource;
        let lens = Lens::new(served);
        if !object::resource_version(&object).is_empty() {
            return Err(plain_failure("resourceVersion should not be set on objects to be created"));
        }
        let generated = object::name(&object).is_empty() && !object::meta_text(&object, "generateName").is_empty();
        let meta = object::meta_mut(&mut object);
        meta.insert("uid".to_owned(), self.new_uid().into());
        meta.insert("creationTimestamp".to_owned(), self.stamp().into());
        for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            meta.remove(key);
        }
        lens.store(&mut object);
        for attempt in 1.. {
            if generated {
                let stem = object::meta_text(&object, "generateName").to_owned();
                object::meta_mut(&mut object).insert("name".to_owned(), self.new_name(&stem).into());
            }
            if attempt == 1 {
                (resource.hooks.prepare)(&mut object, None, Part::Main);
                if resource.custom {
                    object::meta_mut(&mut object).insert("generation".to_owned(), 1.into());
                }
                check_new(served, &lens, &object)?;
                lens.settle(&mut object);
                if resource.custom {
                    object::write_whole_numbers_plainly(&mut object);
                }
            }
            let name = object::name(&object).to_owned();
            let key = resource.key(object::namespace(&object), &name);
            let revision = if options.dry_run {
                match self.store().get(&key).map_err(store_failure)? {
                    Some(found) => Err(StoreError::Mismatch(Some(found))),
                    None => Ok(None),
                }
            } else {
                let draft = Draft::fitting(&object)?;
                self.store().write(&key, Expect::Absent, Change::Put(draft.render())).await.map(Some)
            };
            match revision {
                Ok(revision) => {
                    if let Some(revision) = revision {
                        object::meta_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
                    }
                    break;
                }
                Err(StoreError::Mismatch(_)) if generated && attempt < NAMES => {}
                Err(StoreError::Mismatch(found)) => {
                    let mut failure = Failure::already_exists(qualified(served), &name);
                    if !object::meta_text(&object, "generateName").is_empty() {
                        failure.message.push_str(", the server was not able to generate a unique name for the object");
                        if let Some(details) = &mut failure.details {
                            details.retry_after_seconds = 1;
                        }
                    }
                    let found = found.map(|found| lens.stored_value(found.revision, &found.value)).transpose()?;
                    if found.is_some_and(|found| object::is_deleting(&found)) {
                        failure.message.insert_str(0, "object is being deleted: ");
                    }
                    return Err(failure);
                }
                Err(error) => return Err(store_failure(error)),
            }
        }
        lens.load(&mut object);
        Ok(object)
    }

    /// Now, as Kubernetes writes it.
    pub(super) fn stamp(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn new_uid(&self) -> String {
        let random = self.draw(|dice| dice.u128(..));
        // Version 4, variant 1.
        let bits = (random & !(0xf << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    fn new_name(&self, stem: &str) -> String {
        let cut = (0..=STEM.min(stem.len())).rev().find(|at| stem.is_char_boundary(*at)).unwrap_or_default();
        let mut name = stem[..cut].to_owned();
        self.draw(|dice| {
            for _ in 0..5 {
                name.push(char::from(ALPHABET[dice.usize(..ALPHABET.len())]));
            }
        });
        name
    }
}

fn check_new(served: &Served, lens: &Lens, stored: &Value) -> Result<(), Failure> {
    let resource = &served.resource;
    check_kind(served, stored)?;
    let mut errors = names::check_metadata(stored, resource.scope, resource.hooks.valid_name);
    if is_core(served) {
        errors.extend(names::check_core_finalizers(stored));
    }
    if resource.custom {
        let mut shown = stored.clone();
        lens.load(&mut shown);
        errors.extend(check_custom(served, &shown, None, Part::Main));
    } else {
        errors.extend((resource.hooks.validate)(stored, None, Part::Main, served.version()));
    }
    errors.extend(check_path_segment(object::name(stored)).filter(|_| errors.is_empty()));
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(qualified_kind(served), object::name(stored), &errors))
}

/// Resources whose definition is being deleted take no new objects.
pub(super) fn check_open(served: &Served, verb: &str) -> Result<(), Failure> {
    if served.resource.accepts_creates {
        return Ok(());
    }
    let message = format!("{verb} not allowed while custom resource definition is terminating");
    let mut failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
    failure.details = Some(Box::new(crate::status::Details {
        group: served.group().to_owned(),
        kind: served.resource.plural.clone(),
        ..crate::status::Details::default()
    }));
    Err(failure)
}

/// What there is to say about an object that was written.
pub(super) fn remarks(served: &Served, new: &Value, old: Option<&Value>) -> Vec<String> {
    if !served.resource.custom {
        return (served.resource.hooks.warnings)(new);
    }
    let had = |finalizer: &str| old.is_some_and(|old| object::finalizers(old).any(|known| known == finalizer));
    object::finalizers(new)
        .filter(|finalizer| !finalizer.contains('/') && !matches!(*finalizer, "orphan" | "foregroundDeletion"))
        .filter(|finalizer| !had(finalizer))
        .map(|finalizer| {
            format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name to avoid accidental \
                 conflicts with other finalizer writers"
            )
        })
        .collect()
}

/// Built-ins were of the right kind when they were read.
pub(super) fn check_kind(served: &Served, object: &Value) -> Result<(), Failure> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let wanted = &served.resource.kind;
    if kind == wanted {
        return Ok(());
    }
    let error = FieldError::invalid("kind", kind, format!("must be {wanted}"));
    Err(Failure::invalid(Qualified { group: served.group(), name: kind }, object::name(object), &[error]))
}

/// What the schema and its rules say against an object of a custom resource, in the version that the client speaks.
pub(super) fn check_custom(served: &Served, new: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
    let version = served.version();
    let mut errors = match part {
        Part::Status => version.schema.validate_status(new, old),
        _ => version.schema.validate(new, old),
    };
    if let Some(scale) = &version.scale {
        errors.extend(super::scale::check(scale, new, part));
    }
    if version.schema.root().has_rules() {
        match schema::rules_not_checked(&errors) {
            Some(remark) => errors.push(remark),
            None => errors.extend(version.rules.check(new, old)),
        }
    }
    errors
}

/// Names become parts of paths.
fn check_path_segment(name: &str) -> Option<FieldError> {
    let why = match name {
        "." | ".." => format!("may not be '{name}'"),
        _ => format!("may not contain '{}'", name.chars().find(|c| matches!(c, '/' | '%'))?),
    };
    Some(FieldError::invalid("metadata.name", name, why))
}

/// The namespace of the request becomes the object's.
pub(super) fn settle_namespace(served: &Served, namespace: &str, object: &mut Value) -> Result<(), Failure> {
    if served.resource.scope == Scope::Cluster {
        object::meta_mut(object).remove("namespace");
        return Ok(());
    }
    let given = object::namespace(object);
    if !given.is_empty() && given != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    object::meta_mut(object).insert("namespace".to_owned(), namespace.into());
    Ok(())
}

pub(super) fn drop_status(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
}

fn forget_what_the_server_sets(object: &mut Value) {
    let meta = object::meta_mut(object);
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "uid", "creationTimestamp"] {
        meta.remove(key);
    }
}
