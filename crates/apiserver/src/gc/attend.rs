//! Looking after one object.

use std::sync::Arc;

use http::StatusCode;
use schema::object;
use serde_json::Value;

use super::graph::{FOREGROUND, Facts, ORPHAN, View};
use crate::catalogue::{Catalogue, Served};
use crate::resource::{Part, Scope};
use crate::status::Failure;
use crate::verbs::{Api, DeleteOptions, Propagation, WriteOptions};

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing more to do until something happens.
    Done,
    /// The kind of the object or of an owner is not served: whether the owner is there cannot be told.
    Unknown,
    /// Not now.
    Failed(String),
}

/// Where an object is.
struct Place {
    served: Served,
    namespace: String,
    name: String,
}

/// What an object's reference to an owner is worth.
enum Standing {
    /// The owner is there.
    Solid,
    /// It is not, or it is another one of that name.
    Dangling,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// That kind of owner is not served.
    Unknown,
    /// An object of the cluster cannot be owned by one in a namespace: nothing is done about it.
    Impossible,
}

/// Looks after an object.
pub(super) async fn attend(api: &Api, key: &str, view: View) -> Outcome {
    let catalogue = api.catalogue();
    let Some(place) = locate(&catalogue, key) else { return Outcome::Unknown };
    let done = match look_after(api, &catalogue, &place, view).await {
        Ok(outcome) => return outcome,
        Err(failure) => failure,
    };
    match done.code {
        // It is gone, and that will be noted.
        StatusCode::NOT_FOUND => Outcome::Done,
        _ => Outcome::Failed(done.message),
    }
}

async fn look_after(api: &Api, catalogue: &Catalogue, place: &Place, view: View) -> Result<Outcome, Failure> {
    let object = api.get(&place.served, &place.namespace, &place.name)?;
    if object::uid(&object) != &*view.uid {
        return Ok(Outcome::Done);
    }
    let waits_with =
        |finalizer| object::is_deleting(&object) && object::finalizers(&object).any(|found| found == finalizer);
    if waits_with(ORPHAN) {
        return free_dependents(api, catalogue, place, &view).await;
    }
    if waits_with(FOREGROUND) {
        if !view.blocked {
            remove_finalizer(api, place, &view.uid, FOREGROUND).await?;
        }
        return Ok(Outcome::Done);
    }
    if object::is_deleting(&object) {
        return Ok(Outcome::Done);
    }
    consider_owners(api, catalogue, place, &object, &view).await
}

/// Decides about an object by what its owners are worth.
async fn consider_owners(
    api: &Api,
    catalogue: &Catalogue,
    place: &Place,
    object: &Value,
    view: &View,
) -> Result<Outcome, Failure> {
    let (mut solid, mut waiting) = (false, false);
    let mut void: Vec<&str> = Vec::new();
    for reference in references(object) {
        let uid = reference["uid"].as_str().unwrap_or_default();
        match standing(api, catalogue, place, reference)? {
            Standing::Solid => solid = true,
            Standing::Dangling => void.push(uid),
            Standing::Waiting => {
                waiting = true;
                void.push(uid);
            }
            Standing::Unknown => return Ok(Outcome::Unknown),
            Standing::Impossible => return Ok(Outcome::Done),
        }
    }
    if void.is_empty() {
        return Ok(Outcome::Done);
    }
    if solid {
        // The others would wait for it for ever.
        forget_owners(api, place, &view.uid, &void).await?;
        return Ok(Outcome::Done);
    }
    let propagation = if waiting && view.has_dependents {
        if view.circle {
            unblock_owners(api, place, &view.uid).await?;
        }
        Propagation::Foreground
    } else if object::finalizers(object).any(|finalizer| finalizer == ORPHAN) {
        Propagation::Orphan
    } else if object::finalizers(object).any(|finalizer| finalizer == FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let options =
        DeleteOptions { propagation: Some(propagation), uid: Some(view.uid.to_string()), ..DeleteOptions::default() };
    match api.delete(&place.served, &place.namespace, &place.name, &options).await {
        // It was made again under its name.
        Err(failure) if failure.code == StatusCode::CONFLICT => Ok(Outcome::Done),
        other => other.map(|_| Outcome::Done),
    }
}

fn standing(api: &Api, catalogue: &Catalogue, place: &Place, reference: &Value) -> Result<Standing, Failure> {
    let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
    let Some(owner) = catalogue.find_kind(text("apiVersion"), text("kind")) else { return Ok(Standing::Unknown) };
    // Owners are in the same namespace, or in none.
    if owner.resource.scope == Scope::Namespaced && place.served.resource.scope == Scope::Cluster {
        return Ok(Standing::Impossible);
    }
    let key = owner.resource.key(&place.namespace, text("name"));
    let entry = api.store().get(&key).map_err(Failure::internal)?;
    Ok(match entry.and_then(|entry| Facts::read(&entry.value)) {
        Some(owner) if *owner.uid == *text("uid") && owner.foreground => Standing::Waiting,
        Some(owner) if *owner.uid == *text("uid") => Standing::Solid,
        _ => Standing::Dangling,
    })
}

async fn free_dependents(api: &Api, catalogue: &Catalogue, place: &Place, view: &View) -> Result<Outcome, Failure> {
    for key in &view.orphans {
        let Some(dependent) = locate(catalogue, key) else { continue };
        let freed = change_metadata(api, &dependent, None, |object| retain_owners(object, &[&view.uid])).await;
        if let Err(failure) = freed
            && failure.code != StatusCode::NOT_FOUND
        {
            return Err(failure);
        }
    }
    remove_finalizer(api, place, &view.uid, ORPHAN).await?;
    Ok(Outcome::Done)
}

async fn forget_owners(api: &Api, place: &Place, uid: &str, owners: &[&str]) -> Result<(), Failure> {
    change_metadata(api, place, Some(uid), |object| retain_owners(object, owners)).await
}

fn retain_owners(object: &mut Value, void: &[&str]) {
    let meta = object::meta_mut(object);
    if let Some(Value::Array(references)) = meta.get_mut("ownerReferences") {
        references.retain(|reference| !reference["uid"].as_str().is_some_and(|uid| void.contains(&uid)));
        if references.is_empty() {
            meta.remove("ownerReferences");
        }
    }
}

async fn unblock_owners(api: &Api, place: &Place, uid: &str) -> Result<(), Failure> {
    change_metadata(api, place, Some(uid), |object| {
        if let Some(Value::Array(references)) = object::meta_mut(object).get_mut("ownerReferences") {
            for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
                reference["blockOwnerDeletion"] = false.into();
            }
        }
    })
    .await
}

async fn remove_finalizer(api: &Api, place: &Place, uid: &str, finalizer: &str) -> Result<(), Failure> {
    change_metadata(api, place, Some(uid), |object| {
        let meta = object::meta_mut(object);
        if let Some(Value::Array(finalizers)) = meta.get_mut("finalizers") {
            finalizers.retain(|found| found != finalizer);
            if finalizers.is_empty() {
                meta.remove("finalizers");
            }
        }
    })
    .await
}

/// Changes an object if it is still the one with this uid.
async fn change_metadata(
    api: &Api,
    place: &Place,
    uid: Option<&str>,
    mut change: impl FnMut(&mut Value) + Send,
) -> Result<(), Failure> {
    let options = WriteOptions::by("kube-controller-manager");
    let guarded = |object: &mut Value| {
        if uid.is_none_or(|uid| uid == object::uid(object)) {
            change(object);
        }
    };
    api.modify(&place.served, &place.namespace, &place.name, Part::Main, &options, guarded).await.map(drop)
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object::meta(object).and_then(|meta| meta.get("ownerReferences")?.as_array()).into_iter().flatten()
}

/// What a key in the store is about, if that is served.
fn locate(catalogue: &Catalogue, key: &str) -> Option<Place> {
    catalogue.resources().iter().find_map(|resource| {
        let path = key.strip_prefix(resource.prefix.as_str())?;
        let (namespace, name) = match resource.scope {
            Scope::Namespaced => path.split_once('/')?,
            Scope::Cluster => ("", path),
        };
        let served = Served { resource: Arc::clone(resource), index: resource.storage };
        Some(Place { served, namespace: namespace.to_owned(), name: name.to_owned() })
    })
}
