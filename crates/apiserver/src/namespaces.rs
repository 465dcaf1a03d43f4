//! What happens when a namespace is deleted.
//!
//! A namespace that is being deleted is emptied, Events last; its conditions tell what keeps it; and when nothing is left in
//! it, it gives up the finalizer `kubernetes` and is gone. Whatever happens in such a namespace is looked at again; when no
//! namespace is going, nothing runs.

mod conditions;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use schema::object;
use serde_json::Value;
use store::{Event, Revision, Scan, StoreError, Watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use self::conditions::Remains;
use crate::catalogue::Served;
use crate::resource::{Part, Scope};
use crate::status::Failure;
use crate::verbs::{Api, DeleteOptions, Deleted, Propagation, WriteOptions};

const FINALIZER: &str = "kubernetes";
const EVERYTHING: &str = "/registry/";
/// How many entries are read at a time.
const CHUNK: usize = 500;
/// What happens in a namespace within this time is looked at together; much content takes longer to look at.
const LULL: Duration = Duration::from_millis(50);
const LONGEST_LULL: Duration = Duration::from_secs(8);
/// When something could not be deleted.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(5);

/// Empties namespaces that are being deleted, until told to stop. Begins with those that were left when the last process
/// ended.
pub async fn run(api: Api, stop: CancellationToken) {
    while let Some(Err(error)) = stop.run_until_cancelled(tend(&api)).await {
        // Compacted, mostly: look at all namespaces again.
        tracing::debug!(%error, "namespaces are looked at anew");
        sleep(LULL).await;
    }
}

/// Namespaces that are going, and when to look at each again.
#[derive(Debug, Default)]
struct Going {
    due: BTreeMap<String, Option<Instant>>,
    failures: BTreeMap<String, u32>,
    lulls: BTreeMap<String, Duration>,
}

async fn tend(api: &Api) -> Result<(), StoreError> {
    let store = api.store();
    let mut catalogue = api.shelf().changes();
    let mut namespaces = store.watch("/registry/core/namespaces/", store.revision())?;
    // Open while a namespace is going.
    let mut content: Option<Watch> = None;
    let mut going = Going::default();
    if let Some(served) = api.catalogue().find("", "v1", "namespaces") {
        let (all, _) = api.list_all(&served, None).await.map_err(|failure| StoreError::Io(failure.message))?;
        for namespace in all.iter().filter(|namespace| object::is_deleting(namespace)) {
            going.look_at(object::name(namespace));
        }
    }
    loop {
        if going.due.is_empty() {
            content = None;
        } else if content.is_none() {
            content = Some(store.watch(EVERYTHING, store.revision())?);
        }
        let next = going.next();
        tokio::select! {
            event = namespaces.next() => going.note_namespace(&*event?),
            event = happening(content.as_mut()) => going.note_content(&*event?),
            Ok(()) = catalogue.changed() => going.look_at_all(),
            name = next => match empty(api, &name).await {
                Ok(Progress::Gone) => going.forget(&name),
                Ok(Progress::Waits(objects)) => going.wait(&name, objects),
                Ok(Progress::Failed) => going.retry(&name),
                Err(failure) if failure.code == StatusCode::NOT_FOUND => going.forget(&name),
                Err(failure) => {
                    tracing::warn!(namespace = name, %failure, "a namespace could not be emptied, trying again later");
                    going.retry(&name);
                }
            },
        }
    }
}

async fn happening(watch: Option<&mut Watch>) -> Result<Arc<Event>, StoreError> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

impl Going {
    fn look_at(&mut self, name: &str) {
        let due = self.due.entry(name.to_owned()).or_default();
        let soon = Instant::now() + self.lulls.get(name).copied().unwrap_or(LULL);
        *due = Some(due.map_or(soon, |due| due.min(soon)));
    }

    fn look_at_all(&mut self) {
        let names: Vec<String> = self.due.keys().cloned().collect();
        for name in names {
            self.look_at(&name);
        }
    }

    fn note_namespace(&mut self, event: &Event) {
        let name = event.key.rsplit('/').next().unwrap_or_default();
        let namespace: Value = serde_json::from_slice(&event.value).unwrap_or_default();
        if event.deleted {
            self.forget(name);
        } else if object::is_deleting(&namespace) && !self.due.contains_key(name) {
            self.look_at(name);
        }
    }

    fn note_content(&mut self, event: &Event) {
        // /registry/<group>/<plural>/<namespace>/<name>
        let mut parts = event.key.splitn(6, '/').skip(4);
        if let (Some(namespace), Some(_)) = (parts.next(), parts.next())
            && self.due.contains_key(namespace)
        {
            self.look_at(namespace);
        }
    }

    /// Until something happens in it.
    fn wait(&mut self, name: &str, objects: usize) {
        self.failures.remove(name);
        let lull = LULL.saturating_mul(u32::try_from(objects / 50).unwrap_or(u32::MAX).saturating_add(1));
        self.lulls.insert(name.to_owned(), lull.min(LONGEST_LULL));
        self.due.insert(name.to_owned(), None);
    }

    fn retry(&mut self, name: &str) {
        let failures = self.failures.entry(name.to_owned()).or_default();
        let delay = FIRST_RETRY.saturating_mul(1 << (*failures).min(16)).min(LAST_RETRY);
        *failures += 1;
        self.due.insert(name.to_owned(), Some(Instant::now() + delay));
    }

    fn forget(&mut self, name: &str) {
        self.due.remove(name);
        self.failures.remove(name);
        self.lulls.remove(name);
    }

    /// Ends when a namespace is to be looked at; never if none is.
    fn next(&self) -> impl Future<Output = String> + use<> {
        let first = self.due.iter().filter_map(|(name, due)| Some((due.as_ref()?, name))).min();
        let first = first.map(|(due, name)| (*due, name.clone()));
        async move {
            match first {
                Some((due, name)) => {
                    sleep_until(due).await;
                    name
                }
                None => std::future::pending().await,
            }
        }
    }
}

/// How far the deletion of a namespace is.
enum Progress {
    /// Our part is done.
    Gone,
    /// Finalizers keep so many objects in it.
    Waits(usize),
    /// Something could not be deleted.
    Failed,
}

/// Deletes everything in a namespace, says in its conditions what remains, and lets it go if nothing does.
async fn empty(api: &Api, name: &str) -> Result<Progress, Failure> {
    let catalogue = api.catalogue();
    let Some(namespaces) = catalogue.find("", "v1", "namespaces") else { return Ok(Progress::Gone) };
    let namespace = api.get(&namespaces, "", name)?;
    if !object::is_deleting(&namespace) || !finalizers(&namespace).any(|finalizer| finalizer == FINALIZER) {
        return Ok(Progress::Gone);
    }
    let mut remains = Remains::default();
    let inside: Vec<Served> = catalogue
        .resources()
        .iter()
        .filter(|resource| resource.scope == Scope::Namespaced)
        .map(|resource| Served { resource: Arc::clone(resource), index: resource.storage })
        .collect();
    let is_event = |served: &&Served| served.resource.plural == "events" && !served.resource.custom;
    let (events, others): (Vec<&Served>, Vec<&Served>) = inside.iter().partition(is_event);
    for served in others.into_iter().chain(events) {
        if let Err(failure) = empty_of(api, served, name, &mut remains).await {
            remains.failures.insert(failure.message);
        }
    }
    let now = api.now();
    let options = WriteOptions::by("kube-controller-manager");
    // Conditions that could not be written are no reason to stop.
    let told = api
        .modify(&namespaces, "", name, Part::Status, &options, |namespace| remains.tell(&mut namespace["status"], now))
        .await;
    if let Err(failure) = told
        && failure.code != StatusCode::NOT_FOUND
    {
        tracing::warn!(namespace = name, %failure, "the conditions of a namespace could not be written");
    }
    if !remains.failures.is_empty() {
        return Ok(Progress::Failed);
    }
    if !remains.objects.is_empty() {
        return Ok(Progress::Waits(remains.objects.values().sum()));
    }
    let release = |namespace: &mut Value| {
        if let Some(Value::Array(finalizers)) = namespace.pointer_mut("/spec/finalizers") {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
    };
    api.modify(&namespaces, "", name, Part::Finalize, &options, release).await?;
    Ok(Progress::Gone)
}

/// Deletes the objects of one resource in a namespace and counts what stays.
async fn empty_of(api: &Api, served: &Served, namespace: &str, remains: &mut Remains) -> Result<(), Failure> {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let prefix = format!("{}{namespace}/", served.resource.prefix);
    let mut after: Option<String> = None;
    loop {
        let (mut seen, mut last, mut names) = (0, None, Vec::new());
        let scan = Scan { prefix: &prefix, after: after.as_deref(), at: None };
        let visit = &mut |key: &str, _: Revision, stored: &Bytes| {
            let object: Value = serde_json::from_slice(stored).unwrap_or_default();
            if object::is_deleting(&object) {
                remains.count(&served.resource, &object);
            } else {
                names.push(key[prefix.len()..].to_owned());
            }
            seen += 1;
            last = Some(key.to_owned());
            if seen < CHUNK { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        api.store().scan(scan, visit).map_err(Failure::internal)?;
        for name in names {
            tokio::task::coop::consume_budget().await;
            match api.delete(served, namespace, &name, &options).await {
                Err(failure) if failure.code == StatusCode::NOT_FOUND => {}
                Err(failure) => return Err(failure),
                Ok(Deleted::Gone(_)) => {}
                Ok(Deleted::Going(object)) => remains.count(&served.resource, &object),
            }
        }
        if seen < CHUNK {
            return Ok(());
        }
        after = last;
        tokio::task::yield_now().await;
    }
}

fn finalizers(namespace: &Value) -> impl Iterator<Item = &str> {
    namespace.pointer("/spec/finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
