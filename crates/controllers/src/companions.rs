//! Objects that we keep beside those that they belong to, such as what was found in a server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::metrics::Metrics;
use crate::object::{Object, ObjectId};
use crate::relatives::Related;
use crate::writer::WriteError;

/// An object that belongs to another. Its kind is one that the dialect has declared as related.
#[derive(Debug, Clone, PartialEq)]
pub struct Companion {
    id: ObjectId,
    resource: ApiResource,
    /// What it is to say; `None` if it is not to be.
    wanted: Option<Value>,
    habit: Habit,
}

/// What becomes of an object that says something else than it is to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// It is put right.
    Kept,
    /// It stays as it is: it was made once, and belongs to others from then on.
    MadeOnce,
    /// It is deleted and made anew: what others have said of it was about what it said before.
    Renewed,
}

impl Companion {
    /// An object that is to be like this, in all that is said here. What others write in it stays.
    pub fn like<K: Object>(object: &K) -> Self {
        let mut wanted = serde_json::to_value(object).ok();
        if let Some(wanted) = &mut wanted {
            wanted["apiVersion"] = K::api_version(&()).into();
            wanted["kind"] = K::kind(&()).into();
        }
        let (id, resource) = (ObjectId::of(object).by_name(), ApiResource::erase::<K>(&()));
        Self { id, resource, wanted, habit: Habit::Kept }
    }

    /// An object that is made like this if there is none of its name, and left alone from then on.
    pub fn once<K: Object>(object: &K) -> Self {
        Self { habit: Habit::MadeOnce, ..Self::like(object) }
    }

    /// An object that is to be like this. One that says something else is deleted, and another one is made.
    pub fn renewed<K: Object>(object: &K) -> Self {
        Self { habit: Habit::Renewed, ..Self::like(object) }
    }

    /// An object that is not to be.
    pub fn without<K: Object>(namespace: Option<&str>, name: &str) -> Self {
        let (id, resource) = (ObjectId::named::<K>(namespace, name), ApiResource::erase::<K>(&()));
        Self { id, resource, wanted: None, habit: Habit::Kept }
    }
}

/// Writes companions.
pub(crate) struct Companions {
    client: Client,
    metrics: Metrics,
    /// The loop, for metrics.
    name: &'static str,
    manager: &'static str,
    /// What we wrote last, until the watch has caught up.
    written: Mutex<HashMap<ObjectId, Written>>,
}

struct Written {
    wanted: Value,
    version: u64,
}

impl Companions {
    pub(crate) fn new(client: Client, metrics: Metrics, name: &'static str, manager: &'static str) -> Self {
        Self { client, metrics, name, manager, written: Mutex::default() }
    }

    /// Makes an object what it is to be. What says so already is not written.
    pub(crate) async fn settle(&self, companion: &Companion, related: &Related) -> Result<(), WriteError> {
        let Companion { id, resource, wanted, habit } = companion;
        let known = related.value(id);
        let is_settled = |wanted: &Value| self.is_settled(id, wanted, known.as_ref());
        match (wanted, &known, habit) {
            (None, None, _) | (Some(_), Some(_), Habit::MadeOnce) => Ok(()),
            (Some(wanted), None, Habit::MadeOnce) => self.create(id, resource, wanted).await,
            (Some(wanted), _, _) if is_settled(wanted) => Ok(()),
            // Where another one is to be made, the end of this one wakes whoever it belongs to.
            (None, Some(known), _) | (Some(_), Some(known), Habit::Renewed) => self.remove(id, resource, known).await,
            (Some(wanted), known, _) => self.apply(id, resource, wanted, known.as_ref()).await,
        }
    }

    /// Makes an object if there is none of its name. It may be asked for again before the watch has caught up, and after somebody has
    /// deleted the object; the API server tells these apart.
    async fn create(&self, id: &ObjectId, resource: &ApiResource, wanted: &Value) -> Result<(), WriteError> {
        let object = serde_json::from_value(wanted.clone());
        let object: DynamicObject =
            object.map_err(|error| WriteError::of(id, "the object", kube::Error::SerdeError(error)))?;
        let params = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        let created = self.api(id, resource).create(&params, &object).await;
        let is_there = matches!(&created, Err(kube::Error::Api(status)) if status.code == 409);
        self.metrics.api_write(self.name, "companion", created.is_ok() || is_there);
        match created {
            Err(error) if !is_there => Err(WriteError::of(id, "the object", error)),
            _ => Ok(()),
        }
    }

    fn is_settled(&self, id: &ObjectId, wanted: &Value, known: Option<&Value>) -> bool {
        let mut written = self.written();
        let version = known.map_or(0, version);
        match written.get(id) {
            Some(last) if last.version > version => last.wanted == *wanted,
            _ => {
                written.remove(id);
                known.is_some_and(|known| says(known, wanted))
            }
        }
    }

    async fn apply(
        &self,
        id: &ObjectId,
        resource: &ApiResource,
        wanted: &Value,
        known: Option<&Value>,
    ) -> Result<(), WriteError> {
        let mut object = wanted.clone();
        if let Some(known) = known {
            object["metadata"]["resourceVersion"] = known["metadata"]["resourceVersion"].clone();
        }
        let params = PatchParams::apply(self.manager).force();
        let applied = self.api(id, resource).patch(&id.name, &params, &Patch::Apply(&object)).await;
        self.metrics.api_write(self.name, "companion", applied.is_ok());
        let applied = applied.map_err(|error| WriteError::of(id, "the object", error))?;
        let version = applied.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0);
        self.written().insert(id.clone(), Written { wanted: wanted.clone(), version });
        Ok(())
    }

    async fn remove(&self, id: &ObjectId, resource: &ApiResource, known: &Value) -> Result<(), WriteError> {
        if !known["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        // A namesake that was made meanwhile is another object.
        let uid = known["metadata"]["uid"].as_str().map(str::to_owned);
        let preconditions = Some(kube::api::Preconditions { uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        let deleted = self.api(id, resource).delete(&id.name, &params).await;
        self.metrics.api_write(self.name, "companion", deleted.is_ok());
        match deleted {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(WriteError::of(id, "the end of the object", error)),
        }
    }

    /// Somebody goes: takes these finalizers off what belongs to it, or garbage collection would wait for whoever has put them there.
    pub(crate) async fn release(
        &self,
        of: &ObjectId,
        finalizers: &[&str],
        related: &Related,
    ) -> Result<(), WriteError> {
        if finalizers.is_empty() {
            return Ok(());
        }
        for (id, resource, seen) in related.held(finalizers, of) {
            let is_foreign = |held: &&String| !finalizers.contains(&held.as_str());
            let rest: Vec<_> = seen.finalizers.iter().flatten().filter(is_foreign).collect();
            let fence = json!({ "finalizers": rest, "resourceVersion": seen.resource_version, "uid": seen.uid });
            let patch = Patch::Merge(json!({ "metadata": fence }));
            let patched = self.api(&id, &resource).patch_metadata(&id.name, &PatchParams::default(), &patch).await;
            self.metrics.api_write(self.name, "companion", patched.is_ok());
            match patched.map_err(|error| WriteError::of(&id, "finalizers", error)) {
                Ok(_) => info!(object = %format!("{id:#}"), "released"),
                Err(error) if error.is_gone() => {}
                Err(error) if error.is_final() => {
                    warn!("{error}. Take the finalizer {} off it.", finalizers.join(", "));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn api(&self, id: &ObjectId, resource: &ApiResource) -> Api<DynamicObject> {
        match &id.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        }
    }

    fn written(&self) -> MutexGuard<'_, HashMap<ObjectId, Written>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Whether an object says all that is wanted of it. It may say more.
fn says(known: &Value, wanted: &Value) -> bool {
    match (known, wanted) {
        (Value::Object(known), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| wanted.is_null() || known.get(key).is_some_and(|known| says(known, wanted))),
        (Value::Array(known), Value::Array(wanted)) => {
            known.len() == wanted.len() && known.iter().zip(wanted).all(|(known, wanted)| says(known, wanted))
        }
        _ => known == wanted,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::response::IntoResponse as _;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::reflector;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn object(version: &str, data: &Value) -> ConfigMap {
        let metadata = json!({"name": "a", "namespace": "lab", "uid": "1", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata, "data": data})).unwrap()
    }

    fn wanted(data: &Value) -> Companion {
        let object: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "a", "namespace": "lab"}, "data": data})).unwrap();
        Companion::like(&object)
    }

    /// An API server that remembers what it is asked, and has the object in version 7 afterwards.
    fn server() -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let seen = seen.clone();
            async move {
                let method = request.method().to_string();
                let body = axum::body::to_bytes(request.into_body(), 1 << 16).await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                let fence = &body["metadata"]["resourceVersion"];
                seen.lock().unwrap().push(format!("{method} {fence} {}", body["preconditions"]["uid"]));
                axum::Json(serde_json::to_value(object("7", &json!({}))).unwrap()).into_response()
            }
        });
        (Client::new(router, "lab"), asked)
    }

    #[tokio::test]
    async fn an_object_is_written_when_it_does_not_say_what_it_is_to_say_and_on_the_version_that_was_seen() {
        let like = |data: Value| wanted(&data);
        let without = || Companion::without::<ConfigMap>(Some("lab"), "a");
        let table = [
            ("there is none", None, like(json!({"x": "1"})), vec!["PATCH null null"]),
            ("it says the same", Some(json!({"x": "1"})), like(json!({"x": "1"})), vec![]),
            ("somebody else says more", Some(json!({"x": "1", "y": "2"})), like(json!({"x": "1"})), vec![]),
            ("it says something else", Some(json!({"x": "0"})), like(json!({"x": "1"})), vec![r#"PATCH "5" null"#]),
            ("it is not to be", Some(json!({"x": "1"})), without(), vec![r#"DELETE null "1""#]),
            ("it is not there and not to be", None, without(), vec![]),
        ];
        for (what, known, companion, expected) in table {
            let (client, asked) = server();
            let (store, mut writer) = reflector::store();
            writer.apply_watcher_event(&Event::Init);
            if let Some(known) = known {
                writer.apply_watcher_event(&Event::InitApply(object("5", &known)));
            }
            writer.apply_watcher_event(&Event::InitDone);
            let related = Related::of(store);
            let companions = Companions::new(client, Metrics::default(), "test", "us");
            companions.settle(&companion, &related).await.unwrap();
            assert_eq!(*asked.lock().unwrap(), expected, "{what}");

            // The watch has not caught up: what was applied is not applied again, but something else is.
            asked.lock().unwrap().clear();
            if companion.wanted.is_some() && !expected.is_empty() {
                companions.settle(&companion, &related).await.unwrap();
                assert_eq!(*asked.lock().unwrap(), [""; 0], "{what}");
                companions.settle(&wanted(&json!({"x": "9"})), &related).await.unwrap();
                assert_eq!(asked.lock().unwrap().len(), 1, "{what}");
            }
        }
    }
}
