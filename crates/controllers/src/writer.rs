//! How objects are written: only if they still have the version that the decision was based on, counted in metrics, and
//! remembered until the watch has caught up.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Map, Value, json};
use tracing::{debug, warn};

use crate::latest::Latest;
use crate::metrics::{Count, Metrics};
use crate::object::{Object, ObjectId};

/// How long to wait before reconciling again after a conflict.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);

/// Why something was not written. The object is reconciled again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The object was changed in between: the decision is outdated.
    #[error("{0:#} was changed by someone else meanwhile")]
    Conflict(Box<ObjectId>),
    /// The API server refused a write.
    #[error("{object:#}: cannot write {what}: {source}")]
    Refused {
        /// The object.
        object: Box<ObjectId>,
        /// What was to be written, such as `status`.
        what: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
}

impl WriteError {
    pub(crate) fn of(object: &ObjectId, what: &'static str, error: kube::Error) -> Self {
        let object = Box::new(object.clone());
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict(object),
            error => Self::Refused { object, what, source: Box::new(error) },
        }
    }

    /// Whether the object no longer exists.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { source, .. } if matches!(&**source, kube::Error::Api(status) if status.code == 404))
    }

    /// Whether it would be refused again.
    pub(crate) fn is_final(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status) if (400..500).contains(&status.code) && ![408, 429].contains(&status.code))
    }

    /// How long to wait before the next try.
    pub(crate) fn pause(&self) -> Duration {
        match self {
            Self::Conflict(_) => {
                debug!("{self}; reconciling again");
                return AFTER_CONFLICT;
            }
            // It was deleted meanwhile; the watch will show that, or its kind is gone.
            Self::Refused { .. } if self.is_gone() => debug!("{self}"),
            Self::Refused { .. } => warn!("{self}"),
        }
        Duration::from_secs(3 + fastrand::u64(0..3))
    }
}

/// Changes an object with a merge patch, if it still has that version.
pub(crate) async fn patch<K: Object>(
    client: &Client,
    id: &ObjectId,
    version: Option<&str>,
    mut patch: Value,
) -> kube::Result<K> {
    patch["metadata"]["resourceVersion"] = json!(version);
    patch["metadata"]["uid"] = json!(id.uid);
    id.api::<K>(client).patch(&id.name, &PatchParams::default(), &Patch::Merge(patch)).await
}

/// The finalizers of an object, with this one.
pub(crate) fn with_finalizer(object: &impl ResourceExt, finalizer: &str) -> Value {
    let others = object.finalizers().iter().map(String::as_str).filter(|other| *other != finalizer);
    json!(others.chain([finalizer]).collect::<Vec<_>>())
}

/// The part of a status that the operator owns. Others may write there, too.
#[derive(Debug, Clone, Copy)]
pub struct Ownership {
    /// Field manager.
    pub manager: &'static str,
    /// Types of the conditions that the operator owns; others stay as they are. Empty if the schema does not declare conditions
    /// as a map by type: then the list has one owner, and conditions of others are written with it.
    pub conditions: &'static [&'static str],
    /// Fields of the status that another operator may have left behind. Where ours has none of them they are removed; applying alone
    /// would leave them to their owner.
    pub left_behind: &'static [&'static str],
}

impl Ownership {
    /// The fields that another operator has left behind in this status, beside ours, as a merge patch that removes them.
    fn removal(&self, ours: &Value, all: &Value) -> Option<Value> {
        let is_left = |field: &&&str| ours.get(**field).is_none() && all.get(**field).is_some();
        let left: Map<_, _> =
            self.left_behind.iter().filter(is_left).map(|field| ((*field).to_owned(), Value::Null)).collect();
        (!left.is_empty()).then(|| json!({ "status": left }))
    }

    /// The status without what others own.
    fn of(&self, mut status: Value) -> Value {
        let all = status.get_mut("conditions").and_then(Value::as_array_mut);
        if let Some(all) = all.filter(|_| !self.conditions.is_empty()) {
            all.retain(|condition| condition["type"].as_str().is_some_and(|type_| self.conditions.contains(&type_)));
        }
        status
    }
}

/// Writes the objects of one loop.
pub(crate) struct Writer<K> {
    client: Client,
    metrics: Metrics,
    /// Name of the loop, for metrics.
    name: &'static str,
    ours: Ownership,
    latest: Latest<K>,
}

impl<K: Object> Writer<K> {
    pub(crate) fn new(client: Client, metrics: Metrics, name: &'static str, ours: Ownership) -> Self {
        Self { client, metrics, name, ours, latest: Latest::default() }
    }

    /// The object as the watch shows it, or as last written if the watch has not caught up.
    pub(crate) fn newest(&self, seen: Arc<K>) -> Arc<K> {
        self.latest.newest(seen)
    }

    /// An object was reconciled.
    pub(crate) fn count_decision(&self, is_ok: bool, took: Duration) {
        self.metrics.reconcile(self.name, is_ok, took);
    }

    /// Something happened that a dialect counts.
    pub(crate) fn count(&self, counts: &[Count]) {
        self.metrics.count(counts);
    }

    /// The watch has shown its deletion.
    pub(crate) fn forget(&self, id: &ObjectId) {
        self.latest.forget(id);
    }

    /// Changes metadata or spec by a merge patch.
    pub(crate) async fn patch(&self, object: &K, change: Value, what: &'static str) -> Result<K, WriteError> {
        let (id, version) = (ObjectId::of(object), object.resource_version());
        let written = patch(&self.client, &id, version.as_deref(), change).await;
        self.remember(&id, what, written)
    }

    /// Removes our finalizer. If the object is already gone, that counts as success. The result is remembered until the watch has
    /// caught up: it may still show the object without its deletion, and something would be done for it.
    pub(crate) async fn let_go(&self, object: &K, finalizer: &str) -> Result<(), WriteError> {
        let rest: Vec<_> = object.finalizers().iter().filter(|other| *other != finalizer).collect();
        match self.patch(object, json!({ "metadata": { "finalizers": rest } }), "finalizer").await {
            Err(error) if error.is_gone() => self.latest.put(object),
            result => drop(result?),
        }
        Ok(())
    }

    /// Applies the part of the status that the operator owns.
    pub(crate) async fn status(&self, object: &K, status: Value) -> Result<K, WriteError> {
        let (id, ours) = (ObjectId::of(object), self.ours.of(status));
        let patch = Patch::Apply(json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "resourceVersion": object.resource_version(), "uid": id.uid },
            "status": ours,
        }));
        let params = PatchParams::apply(self.ours.manager).force();
        let api = id.api::<K>(&self.client);
        let written = self.remember(&id, "status", api.patch_status(&id.name, &params, &patch).await)?;
        if self.ours.left_behind.is_empty() {
            return Ok(written);
        }
        // What cannot be written as JSON was not read from there.
        let all = serde_json::to_value(&written).unwrap_or_default();
        let Some(mut removal) = self.ours.removal(&ours, &all["status"]) else { return Ok(written) };
        removal["metadata"] = json!({ "resourceVersion": written.resource_version(), "uid": id.uid });
        let removed = api.patch_status(&id.name, &PatchParams::default(), &Patch::Merge(removal)).await;
        self.remember(&id, "status", removed)
    }

    fn remember(&self, id: &ObjectId, what: &'static str, written: kube::Result<K>) -> Result<K, WriteError> {
        self.metrics.api_write(self.name, what, written.is_ok());
        let written = written.map_err(|error| WriteError::of(id, what, error));
        match &written {
            Ok(object) => self.latest.put(object),
            // The last write is outdated; use what the watch shows.
            Err(WriteError::Conflict(_)) => self.latest.forget(id),
            Err(WriteError::Refused { .. }) => {}
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_others_are_not_applied_where_each_has_an_owner() {
        let status = json!({ "state": "x", "conditions": [{ "type": "Ready" }, { "type": "CablingChecked" }] });
        let ours = Ownership { manager: "beskar7", conditions: &["Ready", "Paused"], left_behind: &["errorType"] };
        assert_eq!(ours.of(status.clone()), json!({ "state": "x", "conditions": [{ "type": "Ready" }] }));
        assert_eq!(Ownership { conditions: &[], ..ours }.of(status.clone()), status);
        assert_eq!(ours.of(json!({ "state": "x" })), json!({ "state": "x" }));
    }

    #[test]
    fn what_another_operator_has_left_behind_is_removed_once_ours_has_none_of_it() {
        let ours = Ownership { manager: "beskar7", conditions: &[], left_behind: &["errorType"] };
        let (wrong, right) = (json!({ "state": "x", "errorType": "y" }), json!({ "state": "x" }));
        assert_eq!(ours.removal(&right, &wrong), Some(json!({ "status": { "errorType": null } })));
        for (ours_now, all) in [(&wrong, &wrong), (&right, &right)] {
            assert_eq!(ours.removal(ours_now, all), None);
        }
    }
}
