//! Objects that go, or are told to go.

use schema::object;
use serde_json::{Value, json};
use store::{Change, Expect, StoreError};

use super::draft::Draft;
use super::{Api, Lens, Paging, not_found, plain_failure, qualified, qualified_kind, store_failure};
use crate::catalogue::Served;
use crate::request::query::{Query, check_dry_run, invalid_options};
use crate::selector::Selector;
use crate::status::{Failure, FieldError, FieldFault, wrong_type};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// What happens to the objects that the deleted one owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

/// How an object is deleted.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// What happens to what it owns.
    pub propagation: Option<Propagation>,
    /// Only if it is this object.
    pub uid: Option<String>,
    /// Only if it is still this version of it.
    pub resource_version: Option<String>,
    /// Do everything but the deletion.
    pub dry_run: bool,
}

/// What a deletion has led to.
#[derive(Debug, Clone)]
pub enum Deleted {
    /// The object is gone; this was it, in the caller's version.
    Gone(Value),
    /// It will go when its finalizers are done; this is it, in the caller's version.
    Going(Value),
}

impl Deleted {
    /// What a client is told.
    pub fn answer(self, served: &Served) -> Value {
        match self {
            Self::Going(object) => object,
            // Like pods and services, for reasons of history.
            Self::Gone(object) if served.resource.kind == "ServiceAccount" && !served.resource.custom => object,
            Self::Gone(object) => {
                let mut details = json!({
                    "name": object::name(&object), "kind": served.resource.plural, "uid": object::uid(&object),
                });
                if !served.group().is_empty() {
                    details["group"] = served.group().into();
                }
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
            }
        }
    }
}

impl DeleteOptions {
    /// Reads `DeleteOptions` from a body, if there is one, and else from parameters.
    pub fn read(body: Option<&Value>, query: &Query) -> Result<Self, Failure> {
        let mut errors = Vec::new();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (propagation, orphan, dry_run, uid, resource_version);
        if let Some(body) = body {
            check_types(body).map_err(plain_failure)?;
            propagation = body.get("propagationPolicy").and_then(text);
            orphan = body.get("orphanDependents").and_then(Value::as_bool);
            let values = body.get("dryRun").and_then(Value::as_array);
            dry_run = values.into_iter().flatten().filter_map(text).collect::<Vec<String>>();
            let preconditions = body.get("preconditions");
            uid = preconditions.and_then(|preconditions| preconditions.get("uid")).and_then(text);
            resource_version =
                preconditions.and_then(|preconditions| preconditions.get("resourceVersion")).and_then(text);
        } else {
            query.number("gracePeriodSeconds")?;
            propagation = query.get("propagationPolicy").filter(|value| !value.is_empty()).map(str::to_owned);
            orphan = query.switch("orphanDependents");
            dry_run = query.all("dryRun").map(str::to_owned).collect();
            (uid, resource_version) = (None, None);
        }
        if let (Some(policy), Some(_)) = (&propagation, orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(FieldError::invalid("propagationPolicy", policy.as_str(), why));
        }
        let chosen = match propagation.as_deref() {
            None => orphan.map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"].map(str::to_owned).to_vec();
                errors.push(FieldError::new(FieldFault::Unsupported(other.into(), supported), "propagationPolicy", ""));
                None
            }
        };
        let values: Vec<&str> = dry_run.iter().map(String::as_str).collect();
        errors.extend(check_dry_run(&values));
        if !errors.is_empty() {
            return Err(invalid_options("DeleteOptions", &errors));
        }
        Ok(Self { propagation: chosen, uid, resource_version, dry_run: !dry_run.is_empty() })
    }
}

impl Api {
    /// Deletes an object, or tells it to go if finalizers keep it.
    pub async fn delete(
        &self,
        served: &Served,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted, Failure> {
        let resource = &served.resource;
        if let Some(why) = (resource.hooks.stays)(name) {
            return Err(Failure::forbidden(qualified(served), name, why));
        }
        let lens = Lens::new(served);
        loop {
            let before = self.before(served, namespace, name)?.ok_or_else(|| not_found(served, name))?;
            check_preconditions(served, name, &before.stored, options)?;
            let mut new = before.stored.clone();
            choose_finalizers(&mut new, options.propagation);
            let kept = object::finalizers(&new).next().is_some() || (resource.hooks.held)(&new);
            if kept && !object::is_deleting(&new) {
                self.mark(&mut new, !(resource.hooks.held)(&before.stored));
                (resource.hooks.deleting)(&mut new);
            }
            let written = if options.dry_run || (kept && new == before.stored) {
                Ok(before.entry.revision)
            } else {
                let (draft, expect) = (Draft::of(&new), Expect::Revision(before.entry.revision));
                let change = if kept { Change::Put(draft.render()) } else { Change::Delete(draft.render()) };
                self.store().write(&before.entry.key, expect, change).await
            };
            match written {
                Ok(revision) => {
                    object::meta_mut(&mut new).insert("resourceVersion".to_owned(), revision.to_string().into());
                    lens.load(&mut new);
                    return Ok(if kept { Deleted::Going(new) } else { Deleted::Gone(new) });
                }
                Err(StoreError::Mismatch(_)) => {}
                Err(error) => return Err(store_failure(error)),
            }
        }
    }

    /// Deletes all objects that are meant, and returns what they were, with the revision at which they were found.
    pub async fn delete_collection(
        &self,
        served: &Served,
        namespace: Option<&str>,
        selector: &Selector,
        paging: &Paging,
        options: &DeleteOptions,
    ) -> Result<super::Page, Failure> {
        let page = self.list(served, namespace, selector, paging).await?;
        for found in &page.found {
            let object = page.lens.value(found.revision, &found.read()?)?;
            match self.delete(served, object::namespace(&object), object::name(&object), options).await {
                Err(failure) if failure.code == http::StatusCode::NOT_FOUND => {}
                other => drop(other?),
            }
        }
        Ok(page)
    }

    /// Namespaces have no period of grace: they are held by other means.
    fn mark(&self, object: &mut Value, graceful: bool) {
        let meta = object::meta_mut(object);
        meta.insert("deletionTimestamp".to_owned(), self.stamp().into());
        if graceful {
            meta.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        }
        if let Some(generation) = meta.get("generation").and_then(Value::as_i64).filter(|generation| *generation > 0) {
            meta.insert("generation".to_owned(), (generation + 1).into());
        }
    }
}

/// Whether the options are of the right types.
fn check_types(body: &Value) -> Result<(), String> {
    let is_text: fn(&Value) -> bool = Value::is_string;
    let is_list_of_texts = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    for (pointer, expected, fits) in [
        ("/gracePeriodSeconds", "an integer", Value::is_i64 as fn(&Value) -> bool),
        ("/preconditions", "an object", Value::is_object),
        ("/preconditions/uid", "a string", is_text),
        ("/preconditions/resourceVersion", "a string", is_text),
        ("/orphanDependents", "a boolean", Value::is_boolean),
        ("/propagationPolicy", "a string", is_text),
        ("/dryRun", "a list of strings", is_list_of_texts),
    ] {
        if let Some(value) = body.pointer(pointer).filter(|value| !value.is_null() && !fits(value)) {
            return Err(wrong_type(pointer[1..].replace('/', "."), expected, value));
        }
    }
    Ok(())
}

fn check_preconditions(served: &Served, name: &str, found: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != object::uid(found)) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            object::uid(found)
        );
        return Err(Failure::conflict(qualified_kind(served), name, why));
    }
    let version = object::resource_version(found);
    if let Some(asked) = options.resource_version.as_deref().filter(|asked| *asked != version) {
        let why = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        );
        return Err(Failure::conflict(qualified_kind(served), name, why));
    }
    Ok(())
}

/// Propagation is asked for by finalizers that the garbage collector honours.
fn choose_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let mut finalizers: Vec<String> = object::finalizers(object).map(str::to_owned).collect();
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    finalizers.retain(|finalizer| !matches!(finalizer.as_str(), FOREGROUND | ORPHAN) || wanted == Some(finalizer));
    if let Some(wanted) = wanted.filter(|wanted| !finalizers.iter().any(|finalizer| finalizer == wanted)) {
        finalizers.push(wanted.to_owned());
    }
    let meta = object::meta_mut(object);
    if finalizers.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), finalizers.into());
    }
}
