//! Objects that others depend on: the kinds are declared by the dialects; they are watched, kept, and a change wakes whoever depends on
//! them.

use std::any::Any;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt as _, Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{Config, Event, watcher};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::object::{KindId, Object, ObjectId, api};
use crate::vault::{Keeper, Vault, shorten};
use crate::watches::{self, Change, Interruptions, Present, pauses};

/// How many objects with credentials that were touched are read at once.
const READ_AT_ONCE: usize = 8;

/// A kind of objects that others depend on.
pub struct Relative {
    kind: KindId,
    open: Box<dyn Open>,
}

/// Begins to follow a kind, and answers with what is to be polled for that.
trait Open: FnOnce(&Setting, &mut Related, &mut Vault) -> BoxFuture<'static, ()> + Send {}

impl<F: FnOnce(&Setting, &mut Related, &mut Vault) -> BoxFuture<'static, ()> + Send> Open for F {}

/// What it takes to follow related objects.
#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) client: Client,
    /// Only objects of this namespace; `None` for all.
    pub(crate) namespace: Option<String>,
    pub(crate) dependents: Arc<Dependents>,
    pub(crate) wake: UnboundedSender<ObjectId>,
    /// The labels of objects with credentials that somebody asks for.
    pub(crate) labels: Vec<&'static str>,
}

impl Relative {
    /// The kind.
    pub(crate) fn kind(&self) -> &KindId {
        &self.kind
    }

    /// Objects that can be looked at. Each tells whom it concerns because it names them; who names the object itself is told by
    /// `depends_on` of its dialect.
    pub fn of<K: Object>(concerned: fn(&K) -> Vec<ObjectId>) -> Self {
        let open = move |setting: &Setting, related: &mut Related, _: &mut Vault| {
            let (store, writer) = reflector::store::<K>();
            related.shelves.push((KindId::of::<K>(), Arc::new(store)));
            let (setting, objects) = (setting.clone(), api(&setting.client, setting.namespace.as_deref()));
            let events = watches::follow::<K>(objects, Config::default(), |_| ()).reflect(writer);
            wake_concerned(events.filter_map(async |event| event.ok()), concerned, setting).boxed()
        };
        Self { kind: KindId::of::<K>(), open: Box::new(open) }
    }

    /// Objects that hold credentials: only their metadata is watched, and they are read when somebody needs what they hold.
    pub fn with_credentials<K: Keeper>() -> Self {
        let open = |setting: &Setting, related: &mut Related, vault: &mut Vault| {
            let (store, writer) = reflector::store::<PartialObjectMeta<K>>();
            related.kept.push((KindId::of::<K>(), Arc::new(store.clone())));
            vault.keep::<K>(store);
            let (setting, vault, labels) = (setting.clone(), vault.clone(), setting.labels.clone());
            let mut interruptions = Interruptions::of(K::kind(&()));
            let objects = api::<PartialObjectMeta<K>>(&setting.client, setting.namespace.as_deref());
            let touched = watcher(objects, Config::default())
                .backoff(pauses())
                .modify(move |object| {
                    shorten::<K>(&mut object.metadata);
                    if let Some(known) = &mut object.metadata.labels {
                        known.retain(|label, _| labels.contains(&label.as_str()));
                    }
                    object.metadata.labels.take_if(|labels| labels.is_empty());
                })
                .reflect(writer)
                .touched_objects()
                .filter_map(move |event| std::future::ready(interruptions.pass(event)));
            async move { wake_dependents(touched, &setting, &vault).await }.boxed()
        };
        Self { kind: KindId::of::<K>(), open: Box::new(open) }
    }
}

/// All related objects, as they are now.
#[derive(Clone, Default)]
pub struct Related {
    shelves: Vec<(KindId, Arc<dyn Shelf>)>,
    /// Objects with credentials: it is known which there are, and nothing else.
    kept: Vec<(KindId, Arc<dyn Roll>)>,
}

/// No related objects at all.
#[cfg(test)]
pub(crate) fn nobody() -> &'static Related {
    static NOBODY: std::sync::LazyLock<Related> = std::sync::LazyLock::new(Related::default);
    &NOBODY
}

/// Which objects of a kind there are.
trait Roll: Send + Sync {
    fn has(&self, id: &ObjectId) -> bool;
}

impl<K: Keeper> Roll for Store<PartialObjectMeta<K>> {
    fn has(&self, id: &ObjectId) -> bool {
        self.get(&id.object_ref()).is_some()
    }
}

/// The objects of one kind.
trait Shelf: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn value(&self, id: &ObjectId) -> Option<Value>;
    fn find(&self, is_meant: &dyn Fn(&ObjectMeta) -> bool) -> Vec<(ObjectId, ApiResource, ObjectMeta)>;
    fn is_ready(&self) -> BoxFuture<'_, ()>;
}

impl<K: Object> Shelf for Store<K> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn value(&self, id: &ObjectId) -> Option<Value> {
        serde_json::to_value(self.get(&id.object_ref())?.as_ref()).ok()
    }

    fn find(&self, is_meant: &dyn Fn(&ObjectMeta) -> bool) -> Vec<(ObjectId, ApiResource, ObjectMeta)> {
        let all = self.state();
        let meant = all.iter().filter(|object| is_meant(object.meta()));
        meant.map(|object| (ObjectId::of(&**object), ApiResource::erase::<K>(&()), object.meta().clone())).collect()
    }

    fn is_ready(&self) -> BoxFuture<'_, ()> {
        // Fails only when the writer is gone, and then the work ends by itself.
        self.wait_until_ready().map(drop).boxed()
    }
}

impl Related {
    /// An object of a declared kind, if there is one of that name.
    pub fn get<K: Object>(&self, namespace: Option<&str>, name: &str) -> Option<Arc<K>> {
        self.store::<K>()?.get(&ObjectId::named::<K>(namespace, name).object_ref())
    }

    /// All objects of a declared kind.
    pub fn all<K: Object>(&self) -> Vec<Arc<K>> {
        self.store::<K>().map(Store::state).unwrap_or_default()
    }

    /// Whether there is an object with credentials of that name.
    pub fn has_kept(&self, id: &ObjectId) -> bool {
        self.kept.iter().any(|(kind, roll)| *kind == id.kind && roll.has(id))
    }

    /// Those of one kind.
    #[cfg(test)]
    pub(crate) fn of<K: Object>(store: Store<K>) -> Self {
        Self { shelves: vec![(KindId::of::<K>(), Arc::new(store))], kept: Vec::new() }
    }

    /// All objects that bear one of these finalizers and belong to somebody: they name it as an owner, or have its name.
    pub(crate) fn held(&self, finalizers: &[&str], by: &ObjectId) -> Vec<(ObjectId, ApiResource, ObjectMeta)> {
        let is_meant = |object: &ObjectMeta| {
            let is_owned = object.owner_references.iter().flatten().any(|owner| Some(&owner.uid) == by.uid.as_ref());
            let is_namesake = object.name.as_ref() == Some(&by.name) && object.namespace == by.namespace;
            let mut held = object.finalizers.iter().flatten();
            (is_owned || is_namesake) && held.any(|finalizer| finalizers.contains(&finalizer.as_str()))
        };
        self.shelves.iter().flat_map(|(_, shelf)| shelf.find(&is_meant)).collect()
    }

    /// An object of a declared kind, as the API server shows it.
    pub(crate) fn value(&self, id: &ObjectId) -> Option<Value> {
        self.shelf(&id.kind)?.value(id)
    }

    /// Whether no kind was declared.
    pub(crate) fn is_empty(&self) -> bool {
        self.shelves.is_empty()
    }

    fn store<K: Object>(&self) -> Option<&Store<K>> {
        self.shelf(&KindId::of::<K>())?.as_any().downcast_ref()
    }

    fn shelf(&self, kind: &KindId) -> Option<&dyn Shelf> {
        self.shelves.iter().find(|(known, _)| known == kind).map(|(_, shelf)| shelf.as_ref())
    }

    /// Waits until all objects of these kinds have been listed once. Before that, nobody can say that one is missing.
    pub(crate) async fn is_complete(&self, kinds: &[KindId]) {
        join_all(kinds.iter().filter_map(|kind| self.shelf(kind)).map(Shelf::is_ready)).await;
    }
}

/// Opens what was declared; a kind that several depend on is followed once. Answers with what is to be polled for as long as it is to be
/// kept up to date.
pub(crate) fn open(
    setting: &Setting,
    declared: impl IntoIterator<Item = Relative>,
) -> (Related, Vault, BoxFuture<'static, ()>) {
    let (mut related, mut vault, mut known) = (Related::default(), Vault::new(setting.client.clone()), BTreeSet::new());
    let fresh = declared.into_iter().filter(|relative| known.insert(relative.kind.clone()));
    let follow: Vec<_> = fresh.map(|relative| (relative.open)(setting, &mut related, &mut vault)).collect();
    (related, vault, join_all(follow).map(drop).boxed())
}

/// Wakes whom a changed object concerns, after everybody can see the change.
async fn wake_concerned<K: Object>(
    events: impl Stream<Item = Event<K>>,
    concerned: fn(&K) -> Vec<ObjectId>,
    setting: Setting,
) {
    let mut present = Present::default();
    let mut concerns = HashMap::<ObjectId, Vec<ObjectId>>::new();
    // A list is shown as a whole, when it is complete.
    let (mut is_listing, mut touched) = (false, HashSet::new());
    futures::pin_mut!(events);
    while let Some(event) = events.next().await {
        for change in present.take(&event, ObjectId::of) {
            let (id, names) = match change {
                Change::Begin => {
                    is_listing = true;
                    continue;
                }
                Change::Complete => {
                    is_listing = false;
                    continue;
                }
                Change::Seen(object) => (ObjectId::of(object).by_name(), concerned(object)),
                Change::Gone(id) => (id.by_name(), Vec::new()),
            };
            touched.extend(names.iter().cloned());
            let before = if names.is_empty() { concerns.remove(&id) } else { concerns.insert(id.clone(), names) }
                .unwrap_or_default();
            touched.extend(before);
            touched.extend(setting.dependents.of(&id));
            touched.extend(setting.dependents.of(&id.all_alike()));
        }
        if !is_listing {
            // Nobody listens any more only when the loop has stopped.
            for id in touched.drain() {
                setting.wake.send(id).ok();
            }
        }
    }
}

/// Wakes those whose credentials are others than before. An object that cannot be read holds up no other.
async fn wake_dependents<K: Keeper>(
    touched: impl Stream<Item = PartialObjectMeta<K>>,
    setting: &Setting,
    vault: &Vault,
) {
    let wake_one = |object: PartialObjectMeta<K>| async move {
        let id = ObjectId { kind: KindId::of::<K>(), ..ObjectId::of(&object).by_name() };
        let dependents = setting.dependents.of(&id);
        if dependents.is_empty() || !vault.is_news(&id, &object.metadata).await {
            return;
        }
        for id in dependents {
            setting.wake.send(id).ok();
        }
    };
    touched.for_each_concurrent(READ_AT_ONCE, wake_one).await;
}

/// Who depends on which object, by name.
#[derive(Debug, Default)]
pub struct Dependents(Mutex<Links>);

#[derive(Debug, Default)]
struct Links {
    of: HashMap<ObjectId, HashSet<ObjectId>>,
    on: HashMap<ObjectId, Vec<ObjectId>>,
}

impl Dependents {
    /// Somebody depends on these objects, and on no others any more.
    pub(crate) fn set(&self, key: &ObjectId, on: Vec<ObjectId>) {
        let mut links = self.links();
        if links.on.get(key).map_or(&[][..], Vec::as_slice) != on {
            links.remove(key);
            for object in &on {
                links.of.entry(object.clone()).or_default().insert(key.clone());
            }
            if !on.is_empty() {
                links.on.insert(key.clone(), on);
            }
        }
    }

    /// Somebody is gone.
    pub(crate) fn remove(&self, key: &ObjectId) {
        self.links().remove(key);
    }

    /// Who depends on an object.
    pub(crate) fn of(&self, object: &ObjectId) -> Vec<ObjectId> {
        self.links().of.get(object).into_iter().flatten().cloned().collect()
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Links {
    fn remove(&mut self, key: &ObjectId) {
        for object in self.on.remove(key).into_iter().flatten() {
            if let Some(dependents) = self.of.get_mut(&object) {
                dependents.remove(key);
                if dependents.is_empty() {
                    self.of.remove(&object);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use api::beskar7::PhysicalHost;
    use axum::Router;
    use axum::response::IntoResponse as _;
    use k8s_openapi::api::core::v1::Secret;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;

    /// An API server that answers for each Secret once, and for one of them never again.
    fn secrets_server(hangs: &'static str) -> Client {
        let asked = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let asked = asked.clone();
            async move {
                let name = request.uri().path().rsplit('/').next().unwrap().to_owned();
                let times = {
                    let mut asked = asked.lock().unwrap();
                    let times = asked.entry(name.clone()).or_default();
                    *times += 1;
                    *times
                };
                if times > 1 && name == hangs {
                    std::future::pending::<()>().await;
                }
                // "a" to "d" in base64.
                let password = ["YQ==", "Yg==", "Yw==", "ZA=="][times as usize];
                axum::Json(json!({
                    "metadata": { "name": name, "namespace": "racks", "uid": name, "resourceVersion": times.to_string() },
                    "data": { "username": "YQ==", "password": password },
                }))
                .into_response()
            }
        });
        crate::api_client::bounded(Client::new(router, "racks"))
    }

    fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn whoever_depends_on_an_object_is_known_until_it_depends_on_another_or_is_gone() {
        let dependents = Dependents::default();
        let [a, b] = ["a", "b"].map(|name| ObjectId::named::<PhysicalHost>(Some("racks"), name));
        let secret = |namespace: &str| ObjectId::named::<Secret>(Some(namespace), "bmc");
        dependents.set(&a, vec![secret("racks")]);
        dependents.set(&b, vec![secret("racks"), secret("other")]);
        let of = |namespace: &str| {
            let mut names: Vec<_> = dependents.of(&secret(namespace)).into_iter().map(|id| id.name).collect();
            names.sort();
            names.join(" ")
        };
        assert_eq!((of("racks"), of("other"), of("third")), ("a b".into(), "b".into(), String::new()));
        dependents.set(&b, vec![secret("other")]);
        assert_eq!((of("racks"), of("other")), ("a".into(), "b".into()));
        dependents.remove(&a);
        dependents.set(&b, Vec::new());
        assert_eq!((of("racks"), of("other")), (String::new(), String::new()));
        assert!(dependents.links().of.is_empty() && dependents.links().on.is_empty(), "nothing is kept for ever");
    }

    #[tokio::test]
    async fn whom_an_object_concerns_is_woken_also_when_it_names_another_or_is_gone() {
        let (wake, mut woken) = mpsc::unbounded_channel();
        let client = Client::new(Router::new(), "racks");
        let setting = Setting { client, namespace: None, dependents: Arc::default(), wake, labels: Vec::new() };
        let named = |name: &str, host: &str| -> Secret {
            object(json!({"metadata": {"name": name, "namespace": "racks", "uid": name, "labels": {"host": host}}}))
        };
        let events = [
            (Event::Init, vec![]),
            (Event::InitApply(named("s", "a")), vec![]),
            (Event::InitDone, vec!["a"]),
            (Event::Apply(named("s", "b")), vec!["a", "b"]),
            (Event::Apply(named("s", "b")), vec!["b"]),
            (Event::Apply(named("t", "c")), vec!["c"]),
            (Event::Delete(named("t", "c")), vec!["c"]),
            // It is missing from the next list, which is shown as a whole.
            (Event::Init, vec![]),
            (Event::InitApply(named("u", "d")), vec![]),
            (Event::InitDone, vec!["b", "d"]),
        ];
        let concerned = |secret: &Secret| {
            let host = &secret.metadata.labels.as_ref().unwrap()["host"];
            vec![ObjectId::named::<PhysicalHost>(Some("racks"), host)]
        };
        let (send, events_seen) = mpsc::unbounded_channel();
        let stream = futures::stream::unfold(events_seen, |mut seen| async { Some((seen.recv().await?, seen)) });
        let mut waking = tokio::task::JoinSet::new();
        waking.spawn(wake_concerned(stream, concerned, setting));
        for (event, expected) in events {
            send.send(event).unwrap();
            tokio::task::yield_now().await;
            let mut told: Vec<_> = std::iter::from_fn(|| woken.try_recv().ok()).map(|id| id.name).collect();
            told.sort();
            assert_eq!(told, expected);
        }
        drop(send);
        waking.join_next().await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_secret_that_cannot_be_read_holds_up_no_wake_up_of_another() {
        let (known, _writer) = reflector::store::<PartialObjectMeta<Secret>>();
        let (wake, mut woken) = mpsc::unbounded_channel();
        let client = secrets_server("slow");
        let setting =
            Setting { client: client.clone(), namespace: None, dependents: Arc::default(), wake, labels: Vec::new() };
        let mut vault = Vault::new(client);
        vault.keep(known);
        for name in ["slow", "quick"] {
            let secret = ObjectId::named::<Secret>(Some("racks"), name);
            setting.dependents.set(&ObjectId::named::<PhysicalHost>(Some("racks"), name), vec![secret.clone()]);
            vault.credentials(&secret, "field").await.unwrap();
        }
        let touched: [PartialObjectMeta<Secret>; 2] = ["slow", "quick"].map(|name| {
            object(json!({ "metadata": { "name": name, "namespace": "racks", "uid": name, "resourceVersion": "7" } }))
        });
        let waking = wake_dependents::<Secret>(futures::stream::iter(touched), &setting, &vault);
        let first = async { woken.recv().await.unwrap().name };
        let begun = tokio::time::Instant::now();
        let (first, ()) = futures::join!(first, waking);
        assert_eq!(first, "quick");
        // What cannot be read may have changed: its host looks for itself.
        assert_eq!(woken.recv().await.unwrap().name, "slow");
        assert_eq!(begun.elapsed(), crate::api_client::ANSWER_WITHIN);
    }
}
