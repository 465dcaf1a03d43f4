//! Marks on objects of others that a host needs, such as the Secret with the password of its BMC: labels, the host as an owner, and a
//! finalizer that keeps the object until the last host that needs it is gone.
//!
//! Only metadata is read and written, on exactly the version that was seen. An object that does not exist is never created. A mark that
//! cannot be set holds up no host.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::herald::{Herald, News};
use crate::metrics::Metrics;
use crate::object::{Object, ObjectId};
use crate::relatives::Dependents;
use crate::vault::Vault;
use crate::writer::WriteError;

/// How long to wait before a mark is tried again that was refused.
const AGAIN: Duration = Duration::from_mins(1);
/// How long to wait when the object was changed meanwhile, and the watch has not shown that yet.
const SOON_AGAIN: Duration = Duration::from_secs(1);
/// Reason of the Event on a host whose objects cannot be marked.
const REASON: &str = "MetadataNotWritten";

/// How a dialect marks the objects that its hosts need. Each also names the host as an owner, so that it is known for whom it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Labels, and the value that each gets where it is missing.
    pub labels: &'static [(&'static str, &'static str)],
    /// Keeps the object until the last host that it is marked for is gone.
    pub finalizer: &'static str,
}

impl Mark {
    /// The names of its labels.
    pub(crate) fn labels(self) -> impl Iterator<Item = &'static str> {
        self.labels.iter().map(|(label, _)| *label)
    }
}

/// Sets marks, and takes them off.
pub(crate) struct Marks {
    vault: Vault,
    dependents: Arc<Dependents>,
    herald: Arc<Herald>,
    metrics: Metrics,
    /// The loop, for metrics.
    name: &'static str,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What we wrote last, until the watch has caught up.
    written: HashMap<ObjectId, ObjectMeta>,
    /// When a mark was refused, by host and object.
    refused: HashMap<(ObjectId, ObjectId), Instant>,
}

impl Marks {
    pub(crate) fn new(
        vault: Vault,
        dependents: Arc<Dependents>,
        herald: Arc<Herald>,
        metrics: Metrics,
        name: &'static str,
    ) -> Self {
        Self { vault, dependents, herald, metrics, name, known: Mutex::default() }
    }

    /// Marks objects for a host. Those that bear the mark already are not written, nor those that are being deleted. Answers when to try
    /// again if nothing happens before.
    pub(crate) async fn settle<H: Object>(&self, host: &H, mark: &Mark, objects: &[ObjectId]) -> Option<Duration> {
        let (key, mut again) = (ObjectId::of(host), None);
        for id in objects.iter().filter(|id| may_own(&key, id)) {
            let Some(seen) = self.newest(id) else { continue };
            let Some(patch) = missing(&seen, mark, &owner(host)) else { continue };
            let place = (key.clone(), id.clone());
            if self.known().refused.get(&place).is_some_and(|at| at.elapsed() < AGAIN) {
                continue;
            }
            match self.write(id, &seen, patch).await {
                Ok(()) => drop(self.known().refused.remove(&place)),
                Err(WriteError::Conflict(_)) => again = Some(SOON_AGAIN),
                // The watch will show that it is gone.
                Err(error) if error.is_gone() => {}
                Err(error) => {
                    if self.known().refused.insert(place, Instant::now()).is_none() {
                        self.tell(
                            host,
                            format!(
                                "{error}. The host is looked after all the same; allow the operator to patch {}s.",
                                id.kind.kind
                            ),
                        );
                    }
                }
            }
        }
        again
    }

    /// A host goes: takes the finalizer off what was marked for it, also what it does not name any more. What another host needs, too, keeps
    /// the finalizer, and does not go with this one.
    pub(crate) async fn release<H: Object>(&self, host: &H, mark: &Mark, named: &[ObjectId]) -> Result<(), WriteError> {
        let key = ObjectId::of(host);
        let is_ours = |seen: &ObjectMeta| bears(seen, mark.finalizer) && is_owned(seen, key.uid.as_deref());
        let mut objects = self.vault.find(&is_ours);
        objects.extend(named.iter().filter(|id| may_own(&key, id)).cloned());
        objects.sort();
        objects.dedup();
        for id in objects {
            let Some(seen) = self.newest(&id) else { continue };
            let users: Vec<_> = self.dependents.of(&id).into_iter().filter(|user| *user != key).collect();
            let Some(patch) = surplus(&seen, mark, key.uid.as_deref(), &users) else { continue };
            match self.write(&id, &seen, patch).await {
                Ok(()) => info!(host = %key, object = %format!("{id:#}"), "released"),
                Err(error) if error.is_gone() => {}
                // It will not be allowed either when it is tried again.
                Err(error) if error.is_final() => {
                    self.tell(host, format!("{error}. Take the finalizer {} off it.", mark.finalizer));
                }
                Err(error) => return Err(error),
            }
        }
        self.known().refused.retain(|(host, _), _| *host != key);
        Ok(())
    }

    async fn write(&self, id: &ObjectId, seen: &ObjectMeta, patch: Value) -> Result<(), WriteError> {
        let written = self.vault.patch(id, seen, patch).await;
        self.metrics.api_write(self.name, "mark", written.is_ok());
        let written = written.map_err(|error| WriteError::of(id, "labels, owners and finalizers", error))?;
        self.known().written.insert(id.clone(), written);
        Ok(())
    }

    /// The metadata of an object as the watch shows it, or as last written if the watch has not caught up.
    fn newest(&self, id: &ObjectId) -> Option<ObjectMeta> {
        let mut known = self.known();
        let seen = self.vault.metadata(id);
        let version =
            |object: &ObjectMeta| object.resource_version.as_deref().and_then(|text| text.parse::<u64>().ok());
        let ours = known.written.get(id).zip(seen.as_ref());
        if let Some((ours, _)) = ours.filter(|(ours, seen)| ours.uid == seen.uid && version(ours) > version(seen)) {
            return Some(ours.clone());
        }
        known.written.remove(id);
        seen
    }

    fn tell<H: Object>(&self, host: &H, message: String) {
        warn!(host = %ObjectId::of(host), "{message}");
        self.herald.tell(host.object_ref(&()), News { warning: true, reason: REASON.to_owned(), message });
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An owner must be in the same namespace, or have none: else the garbage collector takes it for gone, and removes the object.
fn may_own(host: &ObjectId, object: &ObjectId) -> bool {
    host.namespace.is_none() || host.namespace == object.namespace
}

/// The host as an owner, but not as the controller.
fn owner<H: Object>(host: &H) -> OwnerReference {
    let id = ObjectId::of(host);
    OwnerReference {
        api_version: H::api_version(&()).into_owned(),
        kind: H::kind(&()).into_owned(),
        name: id.name,
        uid: id.uid.unwrap_or_default(),
        ..OwnerReference::default()
    }
}

fn bears(object: &ObjectMeta, finalizer: &str) -> bool {
    object.finalizers.iter().flatten().any(|known| known == finalizer)
}

fn is_owned(object: &ObjectMeta, uid: Option<&str>) -> bool {
    object.owner_references.iter().flatten().any(|owner| Some(owner.uid.as_str()) == uid)
}

/// What an object lacks of a mark, as a merge patch. Lists are written as a whole: the version that they were seen in fences them.
fn missing(seen: &ObjectMeta, mark: &Mark, owner: &OwnerReference) -> Option<Value> {
    if seen.deletion_timestamp.is_some() {
        return None;
    }
    let mut patch = json!({});
    for (label, value) in mark.labels {
        if !seen.labels.as_ref().is_some_and(|labels| labels.contains_key(*label)) {
            patch["metadata"]["labels"][label] = json!(value);
        }
    }
    if !is_owned(seen, Some(&owner.uid)) {
        let owners: Vec<_> = seen.owner_references.iter().flatten().chain([owner]).collect();
        patch["metadata"]["ownerReferences"] = json!(owners);
    }
    if !bears(seen, mark.finalizer) {
        let all = seen.finalizers.iter().flatten().map(String::as_str).chain([mark.finalizer]);
        patch["metadata"]["finalizers"] = json!(all.collect::<Vec<_>>());
    }
    (patch != json!({})).then_some(patch)
}

/// What is to go of a mark with a host, as a merge patch. An object that nobody else needs keeps the host as an owner, and goes with it;
/// one that others need loses it, and keeps the finalizer if it is marked for one of them.
fn surplus(seen: &ObjectMeta, mark: &Mark, uid: Option<&str>, users: &[ObjectId]) -> Option<Value> {
    let mut patch = json!({});
    let is_kept = users.iter().any(|user| is_owned(seen, user.uid.as_deref()));
    if !is_kept && bears(seen, mark.finalizer) {
        let rest: Vec<_> = seen.finalizers.iter().flatten().filter(|known| *known != mark.finalizer).collect();
        patch["metadata"]["finalizers"] = json!(rest);
    }
    if !users.is_empty() && is_owned(seen, uid) {
        let rest: Vec<_> =
            seen.owner_references.iter().flatten().filter(|owner| Some(owner.uid.as_str()) != uid).collect();
        patch["metadata"]["ownerReferences"] = json!(rest);
    }
    (patch != json!({})).then_some(patch)
}

#[cfg(test)]
mod tests;
