//! Objects that become others.

use schema::names;
use schema::object;
use serde_json::{Map, Value};
use store::{Change, Entry, Expect, StoreError};

use super::create::{check_custom, check_kind, remarks, settle_namespace};
use super::decode::{cannot_be_handled, read};
use super::draft::Draft;
use super::store_failure;
use super::{
    Api, Incoming, Lens, WriteOptions, Written, modified, not_found, plain_failure, qualified, qualified_kind,
};
use crate::catalogue::Served;
use crate::ownership::{self, Operation, Writer};
use crate::request::query::parse_uint;
use crate::resource::Part;
use crate::status::{Failure, FieldError};

/// An object as it is, about to be changed.
pub(super) struct Before {
    pub(super) entry: Entry,
    /// In the stored version.
    pub(super) stored: Value,
    /// In the caller's version.
    pub(super) shown: Value,
}

/// What came of one attempt to write.
pub(super) enum Attempt {
    Done(Value),
    /// Somebody else was faster.
    Raced,
}

/// Whose fields are recorded, and how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// By comparing what was with what is.
    Update,
    /// It has been done: by an apply.
    Done,
}

impl Api {
    /// Puts another object in the place of one that is there.
    pub async fn update(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        part: Part,
        incoming: impl Into<Incoming> + Send,
        options: &WriteOptions,
    ) -> Result<Written, Failure> {
        let mut read =
            read(served, incoming.into(), options.field_validation).map_err(|why| cannot_be_handled(served, &why))?;
        let mut object = read.object.clone();
        settle_namespace(served, namespace, &mut object)?;
        check_name(name, &object)?;
        let given = read_version(&object)?;
        // As etcd's keys are in Kubernetes.
        let key = served.resource.key(namespace, name).replacen("/registry/core/", "/registry/", 1);
        loop {
            let before = self.before(served, namespace, name)?;
            let uid = object::uid(&object);
            let found = before.as_ref().map(|before| object::uid(&before.stored)).unwrap_or_default();
            if !uid.is_empty() && uid != found {
                let why = format!(
                    "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
                     Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
                );
                return Err(Failure::conflict(qualified(served), name, why));
            }
            let Some(before) = before else {
                if part != Part::Main || !served.resource.hooks.made_by_replacing {
                    return Err(not_found(served, name));
                }
                object::meta_mut(&mut read.object).remove("resourceVersion");
                return self.make(served, namespace, read, options).await;
            };
            let attempt = self.overwrite(served, part, &before, object.clone(), options, Record::Update).await;
            match attempt.map_err(|failure| failure.with_warnings(&read.warnings))? {
                Attempt::Done(object) => {
                    let mut warnings = read.warnings;
                    warnings.extend(remarks(served, &object, Some(&before.shown)));
                    return Ok(Written { object, created: false, warnings });
                }
                Attempt::Raced if given != 0 => return Err(modified(served, name)),
                Attempt::Raced => {}
            }
        }
    }

    pub(super) fn before(&self, served: &Served, namespace: &str, name: &str) -> Result<Option<Before>, Failure> {
        let Some(entry) = self.entry(served, namespace, name)? else { return Ok(None) };
        let lens = Lens::new(served);
        let stored = lens.stored_value(entry.revision, &entry.value)?;
        let mut shown = stored.clone();
        lens.load(&mut shown);
        Ok(Some(Before { entry, stored, shown }))
    }

    /// Tries once to put `new` (in the caller's version) in the place of what was there before.
    pub(super) async fn overwrite(
        &self,
        served: &Served,
        part: Part,
        before: &Before,
        new: Value,
        options: &WriteOptions,
        record: Record,
    ) -> Result<Attempt, Failure> {
        self.overwrite_as(served, part, before, new, options, record, part_name(part)).await
    }

    /// The same, on behalf of a subresource of another name than the part's.
    #[expect(clippy::too_many_arguments, reason = "the one place where everything about a write comes together")]
    pub(super) async fn overwrite_as(
        &self,
        served: &Served,
        part: Part,
        before: &Before,
        mut new: Value,
        options: &WriteOptions,
        record: Record,
        subresource: &str,
    ) -> Result<Attempt, Failure> {
        let resource = &served.resource;
        let name = object::name(&before.stored).to_owned();
        let lens = Lens::new(served);
        let given = read_version(&new)?;
        if given == 0 && !may_update_blindly(served, part) {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            return Err(Failure::invalid(qualified(served), &name, &[error]));
        }
        if given != 0 && given != before.entry.revision {
            return Err(modified(served, &name));
        }
        let readable = part != Part::Status || ownership::is_readable(&served.version().schema, &new);
        keep_other_parts(served, part, &before.shown, &mut new);
        keep_what_the_server_set(&before.shown, &mut new);
        if !readable && resource.custom {
            // Kubernetes loses track of all managers then.
            object::meta_mut(&mut new).remove("managedFields");
        } else if record == Record::Update {
            let api_version = served.api_version();
            let writer = Writer {
                manager: &options.manager,
                api_version: &api_version,
                kind: &resource.kind,
                subresource,
                untouched: ownership::untouched(resource, served.version(), part),
                custom: resource.custom,
                now: self.now(),
            };
            if ownership::lost_in_translation(resource, &before.shown, &new, writer, Operation::Update).is_some() {
                object::meta_mut(&mut new).remove("managedFields");
            } else {
                ownership::record_update(&served.version().schema, Some(&before.shown), &mut new, writer);
                if subresource == "scale" {
                    ownership::forget_times(&mut new, subresource);
                }
            }
        }
        if resource.custom && part == Part::Status {
            keep_metadata(&before.shown, &mut new);
        }
        lens.store(&mut new);
        (resource.hooks.prepare)(&mut new, Some(&before.stored), part);
        if resource.custom && differs_beyond_metadata(&before.shown, &new, part) {
            let generation = object::meta(&before.stored).and_then(|meta| meta.get("generation")?.as_i64());
            object::meta_mut(&mut new).insert("generation".to_owned(), (generation.unwrap_or_default() + 1).into());
        }
        check_changed(served, part, &lens, before, &new)?;
        lens.settle(&mut new);
        if resource.custom {
            object::write_whole_numbers_plainly(&mut new);
        }
        let gone =
            object::is_deleting(&new) && object::finalizers(&new).next().is_none() && !(resource.hooks.held)(&new);
        let shown = |mut object: Value| {
            lens.load(&mut object);
            Attempt::Done(object)
        };
        ownership::keep_times(&before.stored, &mut new);
        if !gone && new == before.stored {
            return Ok(shown(new));
        }
        if options.dry_run {
            return Ok(shown(new));
        }
        // Who watches sees an object go as it was before.
        let draft = if gone { Draft::of(&before.stored) } else { Draft::fitting(&new)? };
        let change = if gone { Change::Delete(draft.render()) } else { Change::Put(draft.render()) };
        match self.store().write(&before.entry.key, Expect::Revision(before.entry.revision), change).await {
            // Whoever removes the last finalizer sees the version before the removal, as in Kubernetes.
            Ok(_) if gone => Ok(shown(new)),
            Ok(revision) => {
                object::meta_mut(&mut new).insert("resourceVersion".to_owned(), revision.to_string().into());
                Ok(shown(new))
            }
            Err(StoreError::Mismatch(_)) => Ok(Attempt::Raced),
            Err(error) => Err(store_failure(error)),
        }
    }
}

fn check_changed(served: &Served, part: Part, lens: &Lens, before: &Before, new: &Value) -> Result<(), Failure> {
    let resource = &served.resource;
    check_kind(served, new)?;
    // Names were checked when the object was made; Kubernetes only looks whether they fit into a path.
    let mut errors = names::check_metadata(new, resource.scope, |_| Ok(()));
    // Kubernetes looks at metadata in the general strategy and again in that of the resource, and says it twice.
    if is_core(served) {
        errors.extend(names::check_core_finalizers(new));
        errors.extend(errors.clone());
    }
    errors.extend(names::check_metadata_update(new, &before.stored));
    errors.extend(names::check_metadata_update(new, &before.stored));
    if resource.custom {
        let mut shown = new.clone();
        lens.load(&mut shown);
        errors.extend(check_custom(served, &shown, Some(&before.shown), part));
    } else {
        errors.extend((resource.hooks.validate)(new, Some(&before.stored), part, served.version()));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(qualified_kind(served), object::name(new), &errors))
}

/// Some resources may be updated without saying which version was read.
fn may_update_blindly(served: &Served, part: Part) -> bool {
    part == Part::Finalize || is_core(served)
}

/// Whether a resource is of Kubernetes' oldest group, which has some rules of its own.
pub(super) fn is_core(served: &Served) -> bool {
    !served.resource.custom && served.resource.group.is_empty()
}

pub(super) fn part_name(part: Part) -> &'static str {
    match part {
        Part::Main => "",
        Part::Status => "status",
        Part::Finalize => "finalize",
    }
}

/// The version that a client has read; 0 if it does not say.
fn read_version(object: &Value) -> Result<u64, Failure> {
    match object::resource_version(object) {
        "" => Ok(0),
        text => parse_uint(text).map_err(|why| plain_failure(format!("metadata.resourceVersion: {why}"))),
    }
}

/// The name in the object must be that in the path.
pub(super) fn check_name(name: &str, object: &Value) -> Result<(), Failure> {
    let given = object::name(object);
    if given == name {
        return Ok(());
    }
    Err(Failure::bad_request(if given.is_empty() {
        format!("the name of the object ({name} based on URL) was undeterminable: name must be provided")
    } else {
        format!("the name of the object ({given}) does not match the name on the URL ({name})")
    }))
}

/// A write of one part leaves the others as they were.
pub(super) fn keep_other_parts(served: &Served, part: Part, old: &Value, new: &mut Value) {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object_mut()) else { return };
    match part {
        Part::Main if served.version().status => copy(old, new, "status"),
        Part::Main => {}
        Part::Status => {
            let keys: Vec<String> = old.keys().chain(new.keys()).cloned().collect();
            for key in keys.iter().filter(|key| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"))
            {
                copy(old, new, key);
            }
        }
        Part::Finalize => copy(old, new, "status"),
    }
}

fn copy(from: &Map<String, Value>, to: &mut Map<String, Value>, key: &str) {
    match from.get(key) {
        Some(value) => to.insert(key.to_owned(), value.clone()),
        None => to.remove(key),
    };
}

/// What clients cannot change in `metadata` whatever they write.
fn keep_what_the_server_set(old: &Value, new: &mut Value) {
    let empty = Map::new();
    let old = object::meta(old).unwrap_or(&empty);
    let new = object::meta_mut(new);
    for key in ["resourceVersion", "creationTimestamp", "generation", "selfLink"] {
        copy(old, new, key);
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        if !new.contains_key(key) {
            copy(old, new, key);
        }
    }
    if old.contains_key("deletionTimestamp") {
        copy(old, new, "deletionTimestamp");
    }
}

fn keep_metadata(old: &Value, new: &mut Value) {
    let managed = object::meta_mut(new).remove("managedFields");
    new["metadata"] = old["metadata"].clone();
    let meta = object::meta_mut(new);
    match managed {
        Some(managed) => meta.insert("managedFields".to_owned(), managed),
        None => meta.remove("managedFields"),
    };
}

fn differs_beyond_metadata(old: &Value, new: &Value, part: Part) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let counts = |key: &String| key != "metadata" && key != "apiVersion";
    part == Part::Main && !old.iter().filter(|(key, _)| counts(key)).eq(new.iter().filter(|(key, _)| counts(key)))
}
