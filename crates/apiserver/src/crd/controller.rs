//! Keeps the catalogue as the definitions want it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::select_all;
use schema::object;
use serde_json::{Value, json};
use store::{Scan, Store};

use super::conditions::{self, Condition};
use super::names::{Taken, accept};
use super::{CLEANUP, Definition, PREFIX, reading, stored};
use crate::builtins;
use crate::catalogue::{Catalogue, Served};
use crate::resource::{Part, Resource};
use crate::status::Failure;
use crate::verbs::{Api, DeleteOptions, WriteOptions, store_failure};

/// Who writes the status of definitions, in the eyes of field owners.
const MANAGER: &str = "kube-apiserver";

/// How long to wait before trying again after the store has failed.
const RETRY: Duration = Duration::from_secs(1);

/// All definitions, and the resources that they define.
#[derive(Debug)]
pub struct Definitions {
    built_ins: Vec<Arc<Resource>>,
    known: BTreeMap<String, Known>,
}

/// What is known about a definition, and what it was read from.
#[derive(Debug)]
struct Known {
    mark: Mark,
    /// `None`: not established, or damaged.
    resource: Option<Arc<Resource>>,
}

/// As long as this is the same, so is the resource.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    uid: String,
    generation: Option<i64>,
    accepted: Value,
    established: bool,
    deleting: bool,
}

impl Mark {
    fn of(definition: &Definition) -> Self {
        let object = &definition.object;
        Self {
            uid: object::uid(object).to_owned(),
            generation: object["metadata"]["generation"].as_i64(),
            accepted: object["status"]["acceptedNames"].clone(),
            established: conditions::is_true(object, "Established"),
            deleting: definition.is_deleting(),
        }
    }

    fn same_schemas(&self, other: &Self) -> bool {
        self.uid == other.uid && self.generation == other.generation
    }
}

impl Definitions {
    /// Reads what is in the store, so that everything can be served from the first request on.
    pub fn load(store: &Store) -> Result<Self, Failure> {
        let mut definitions = Self { built_ins: builtins::resources()?, known: BTreeMap::new() };
        definitions.read(&stored(store)?, None);
        Ok(definitions)
    }

    /// What is to be served: the built-ins and the resources of established definitions.
    pub fn catalogue(&self) -> Catalogue {
        let custom = self.known.values().filter_map(|known| known.resource.clone());
        Catalogue::new(self.built_ins.iter().cloned().chain(custom).collect())
    }

    /// Follows the definitions until the server stops.
    pub async fn run(mut self, api: Api) {
        let stopped = api.stopped();
        stopped
            .run_until_cancelled(async {
                loop {
                    let revision = api.store().revision();
                    let waiting = match self.settle(&api).await {
                        Ok(waiting) => waiting,
                        Err(failure) => {
                            tracing::warn!(%failure, "definitions could not be brought up to date");
                            tokio::time::sleep(RETRY).await;
                            continue;
                        }
                    };
                    let prefixes = waiting.iter().map(String::as_str).chain([PREFIX]);
                    // A revision that is compacted by now only means that there is something to look at.
                    let watches =
                        prefixes.map(|prefix| api.store().watch(prefix, revision)).collect::<Result<Vec<_>, _>>();
                    if let Ok(mut watches) = watches {
                        select_all(watches.iter_mut().map(|watch| watch.next().boxed())).await.0.ok();
                    }
                }
            })
            .await;
    }

    /// Brings status, catalogue and deletions up to date. Returns the places of objects that some definition waits for
    /// to go.
    async fn settle(&mut self, api: &Api) -> Result<Vec<String>, Failure> {
        let mut definitions = stored(api.store())?;
        let now = api.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let changed = grant_names(&mut definitions, &now);
        // Served before it is said to be: who reads "Established" may rely on it.
        if self.read(&definitions, Some(api.store())) {
            api.shelf().replace(self.catalogue());
        }
        for name in changed {
            let Some(wanted) = definitions.iter().find(|definition| definition.name == name) else { continue };
            let status = wanted.object["status"].clone();
            write_status(api, &name, |object| object["status"] = status.clone()).await?;
        }
        let mut waiting = Vec::new();
        for definition in definitions.iter().filter(|definition| definition.is_deleting()) {
            waiting.extend(take_objects_along(api, definition, &now).await?);
        }
        Ok(waiting)
    }

    /// Takes over what has changed; says whether anything has. New schemas count from now on if the server is running.
    fn read(&mut self, definitions: &[Definition], running: Option<&Store>) -> bool {
        let mut before = std::mem::take(&mut self.known);
        let mut changed = false;
        for definition in definitions {
            let mark = Mark::of(definition);
            let known = before.remove(&definition.name);
            if let Some(known) = known.as_ref().filter(|known| known.mark == mark) {
                let resource = known.resource.clone();
                self.known.insert(definition.name.clone(), Known { mark, resource });
                continue;
            }
            changed = true;
            // Objects may have been written under the old schema until this very moment.
            let fresh = running.map_or(definition.revision, Store::revision);
            let since = known.filter(|known| known.mark.same_schemas(&mark)).and_then(|known| known.resource);
            let since = since.map_or(fresh, |resource| resource.schema_since);
            let resource = mark.established.then(|| reading::resource(&definition.object, since)).and_then(|read| {
                read.inspect_err(|why| {
                    tracing::error!(definition = definition.name, why, "a stored CustomResourceDefinition is damaged");
                })
                .ok()
                .map(Arc::new)
            });
            self.known.insert(definition.name.clone(), Known { mark, resource });
        }
        changed || !before.is_empty()
    }
}

/// Gives definitions the names that they want and that are free; returns whose status has changed.
fn grant_names(definitions: &mut [Definition], now: &str) -> Vec<String> {
    let mut changed = Vec::new();
    for index in 0..definitions.len() {
        let mut taken = Taken::default();
        let group = definitions[index].object["spec"]["group"].clone();
        for (other, definition) in definitions.iter().enumerate() {
            if other != index && definition.object["spec"]["group"] == group {
                taken.add(&definition.object["status"]["acceptedNames"]);
            }
        }
        let definition = &mut definitions[index];
        if definition.is_deleting() {
            continue;
        }
        let mut status = definition.object["status"].clone();
        if !status.is_object() {
            status = json!({});
        }
        let (names, condition) = accept(&definition.object["spec"]["names"], &status["acceptedNames"], &taken);
        status["acceptedNames"] = names;
        conditions::set(&mut status, &condition, now);
        if !conditions::is_true(&definition.object, "Established") {
            let established = if condition.status { Condition::established() } else { Condition::not_established() };
            conditions::set(&mut status, &established, now);
        }
        if definition.object["status"] != status {
            definition.object["status"] = status;
            changed.push(definition.name.clone());
        }
    }
    changed
}

/// Deletes the objects of a definition that is going, and lets it go when there are none left. Returns where objects are
/// that it still waits for.
async fn take_objects_along(api: &Api, definition: &Definition, now: &str) -> Result<Option<String>, Failure> {
    if !object::finalizers(&definition.object).any(|finalizer| finalizer == CLEANUP) {
        return Ok(None);
    }
    write_status(api, &definition.name, |object| {
        if let Some(status) = object.get_mut("status") {
            conditions::set(status, &Condition::deleting_objects(), now);
        }
    })
    .await?;
    // One that could never be served has no objects that could be found.
    if let Ok(resource) = reading::without_schemas(&definition.object) {
        let prefix = resource.prefix.clone();
        let served = Served { index: resource.storage, resource: Arc::new(resource) };
        for key in keys(api.store(), &prefix)? {
            let place = key.strip_prefix(&prefix).unwrap_or_default();
            let (namespace, name) = place.rsplit_once('/').unwrap_or(("", place));
            match api.delete(&served, namespace, name, &DeleteOptions::default()).await {
                Err(failure) if failure.code != http::StatusCode::NOT_FOUND => return Err(failure),
                _ => {}
            }
        }
        if !keys(api.store(), &prefix)?.is_empty() {
            return Ok(Some(prefix));
        }
    }
    let release = |object: &mut Value| {
        let kept: Vec<Value> =
            object::finalizers(object).filter(|finalizer| *finalizer != CLEANUP).map(Into::into).collect();
        let meta = object::meta_mut(object);
        if kept.is_empty() {
            meta.remove("finalizers");
        } else {
            meta.insert("finalizers".to_owned(), kept.into());
        }
    };
    write(api, &definition.name, Part::Main, release).await?;
    Ok(None)
}

fn keys(store: &Store, prefix: &str) -> Result<Vec<String>, Failure> {
    let mut keys = Vec::new();
    store
        .find(Scan { prefix, after: None, at: None }, &mut |key, _, _| {
            keys.push(key.to_owned());
            ControlFlow::Continue(())
        })
        .map_err(store_failure)?;
    Ok(keys)
}

async fn write_status(api: &Api, name: &str, change: impl FnMut(&mut Value) + Send) -> Result<(), Failure> {
    write(api, name, Part::Status, change).await
}

/// Changes a definition, unless it is gone.
async fn write(api: &Api, name: &str, part: Part, change: impl FnMut(&mut Value) + Send) -> Result<(), Failure> {
    let served = api.served("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
    match api.modify(&served, "", name, part, &WriteOptions::by(MANAGER), change).await {
        Err(failure) if failure.code != http::StatusCode::NOT_FOUND => Err(failure),
        _ => Ok(()),
    }
}
