use std::sync::Arc;
use std::time::Duration;

use schema::object;
use serde_json::{Value, json};
use store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::graph::{Facts, Graph};
use super::{expire_events, run};
use crate::catalogue::{Catalogue, Shelf};
use crate::clock::Clock;
use crate::resource::{Part, Resource};
use crate::verbs::{Api, DeleteOptions, Propagation, WriteOptions};

fn builtins() -> Vec<Arc<Resource>> {
    crate::builtins::resources().unwrap()
}

struct World {
    api: Api,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl World {
    async fn empty() -> Self {
        let shelf = Shelf::new(Catalogue::new(builtins()));
        let clock = Clock::new(|| "2026-03-01T12:00:00Z".parse().unwrap());
        let api = Api::new(Store::memory(), shelf, clock, 1);
        let world = Self { api, stop: CancellationToken::new(), tasks: JoinSet::new() };
        world.create("namespaces", "", &json!({ "metadata": { "name": "lab" } })).await;
        world
    }

    async fn new() -> Self {
        let mut world = Self::empty().await;
        world.start();
        world.settle().await;
        world
    }

    fn start(&mut self) {
        self.tasks.spawn(run(self.api.clone(), self.stop.clone()));
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.unwrap();
        }
        self.stop = CancellationToken::new();
    }

    fn served(&self, plural: &str) -> crate::catalogue::Served {
        let group = if plural == "leases" { "coordination.k8s.io" } else { "" };
        self.api.served(group, "v1", plural).unwrap()
    }

    async fn create(&self, plural: &str, namespace: &str, object: &Value) -> Value {
        let served = self.served(plural);
        let mut object = object.clone();
        object["apiVersion"] = served.api_version().into();
        object["kind"] = served.resource.kind.clone().into();
        self.api.create(&served, namespace, object, &WriteOptions::by("test")).await.unwrap().object
    }

    /// A ConfigMap in `lab`.
    async fn owned(&self, name: &str, owners: &[Value]) -> Value {
        self.create("configmaps", "lab", &json!({ "metadata": { "name": name, "ownerReferences": owners } })).await
    }

    async fn delete(&self, name: &str, propagation: Propagation) {
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        self.api.delete(&self.served("configmaps"), "lab", name, &options).await.unwrap();
    }

    async fn change(&self, name: &str, change: impl FnMut(&mut Value) + Send) {
        let options = WriteOptions::by("test");
        self.api.modify(&self.served("configmaps"), "lab", name, Part::Main, &options, change).await.unwrap();
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.api.get(&self.served("configmaps"), "lab", name).ok()
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Waits until all is quiet: under paused time, a minute passes only when nobody has anything to do.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

fn blocking(owner: &Value) -> Value {
    let mut reference = reference(owner);
    reference["blockOwnerDeletion"] = true.into();
    reference
}

#[tokio::test(start_paused = true)]
async fn dependents_go_when_their_last_owner_is_gone() {
    let world = World::new().await;
    let (one, two) = (world.owned("one", &[]).await, world.owned("two", &[]).await);
    let child = world.owned("child", &[reference(&one), reference(&two)]).await;
    world.owned("grandchild", &[reference(&child)]).await;
    world.owned("other", &[]).await;
    world.delete("one", Propagation::Background).await;
    world.settle().await;
    // The reference that leads nowhere is removed.
    let child = world.get("child").unwrap();
    assert_eq!(child["metadata"]["ownerReferences"], json!([reference(&two)]));
    assert!(world.has("grandchild"));
    world.delete("two", Propagation::Background).await;
    world.settle().await;
    assert!(!world.has("child") && !world.has("grandchild") && world.has("other"));
}

#[tokio::test(start_paused = true)]
async fn an_owner_of_another_uid_is_no_owner() {
    let world = World::new().await;
    let owner = world.owned("owner", &[]).await;
    let mut stale = reference(&owner);
    stale["uid"] = "of-the-one-before".into();
    world.owned("child", &[stale]).await;
    world.settle().await;
    assert!(!world.has("child") && world.has("owner"));
}

#[tokio::test(start_paused = true)]
async fn owners_in_another_namespace_are_no_owners() {
    let mut world = World::empty().await;
    world.create("namespaces", "", &json!({ "metadata": { "name": "elsewhere" } })).await;
    let owner = world.create("configmaps", "elsewhere", &json!({ "metadata": { "name": "owner" } })).await;
    world.owned("before", &[reference(&owner)]).await;
    world.start();
    world.settle().await;
    assert!(!world.has("before"));
    world.owned("after", &[reference(&owner)]).await;
    world.settle().await;
    assert!(!world.has("after"));
}

#[tokio::test(start_paused = true)]
async fn objects_of_the_cluster_own_but_are_not_owned_by_objects_in_namespaces() {
    let world = World::new().await;
    let cluster = world.create("namespaces", "", &json!({ "metadata": { "name": "owner" } })).await;
    world.owned("child", &[reference(&cluster)]).await;
    let inside = world.owned("inside", &[]).await;
    let owned = json!({ "metadata": { "name": "owned", "ownerReferences": [reference(&inside)] } });
    world.create("namespaces", "", &owned).await;
    world.delete("inside", Propagation::Background).await;
    world.settle().await;
    assert!(world.has("child"));
    let owned = world.api.get(&world.served("namespaces"), "", "owned").unwrap();
    assert!(!object::is_deleting(&owned));
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_dependents_go_first() {
    let world = World::new().await;
    let owner = world.owned("owner", &[]).await;
    world.owned("blocking", &[blocking(&owner)]).await;
    world.owned("other", &[reference(&owner)]).await;
    world.change("blocking", |object| object["metadata"]["finalizers"] = json!(["x.example.com/hold"])).await;
    world.delete("owner", Propagation::Foreground).await;
    world.settle().await;
    assert!(world.has("owner") && !world.has("other"));
    assert!(object::is_deleting(&world.get("blocking").unwrap()));
    world.change("blocking", |object| object["metadata"]["finalizers"] = json!([])).await;
    world.settle().await;
    assert!(!world.has("owner") && !world.has("blocking"));
}

#[tokio::test(start_paused = true)]
async fn an_owner_waits_no_longer_for_whom_does_not_block_it_any_more() {
    let world = World::new().await;
    let owner = world.owned("owner", &[]).await;
    world.owned("child", &[blocking(&owner)]).await;
    world.change("child", |object| object["metadata"]["finalizers"] = json!(["x.example.com/hold"])).await;
    world.delete("owner", Propagation::Foreground).await;
    world.settle().await;
    assert!(world.has("owner"));
    world.change("child", |object| object["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into()).await;
    world.settle().await;
    assert!(!world.has("owner") && world.has("child"));
}

#[tokio::test(start_paused = true)]
async fn the_foreground_reaches_down_the_tree() {
    let world = World::new().await;
    let owner = world.owned("owner", &[]).await;
    let child = world.owned("child", &[blocking(&owner)]).await;
    world.owned("grandchild", &[blocking(&child)]).await;
    world.change("grandchild", |object| object["metadata"]["finalizers"] = json!(["x.example.com/hold"])).await;
    world.delete("owner", Propagation::Foreground).await;
    world.settle().await;
    let child = world.get("child").unwrap();
    assert_eq!(child["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(world.has("owner"));
    world.change("grandchild", |object| object["metadata"]["finalizers"] = json!([])).await;
    world.settle().await;
    assert!(!world.has("owner") && !world.has("child") && !world.has("grandchild"));
}

#[tokio::test(start_paused = true)]
async fn a_dependent_with_another_owner_stays_and_is_freed_from_the_one_that_goes() {
    let world = World::new().await;
    let (owner, other) = (world.owned("owner", &[]).await, world.owned("other", &[]).await);
    world.owned("child", &[blocking(&owner), blocking(&other)]).await;
    world.delete("owner", Propagation::Foreground).await;
    world.settle().await;
    assert!(!world.has("owner"));
    assert_eq!(world.get("child").unwrap()["metadata"]["ownerReferences"], json!([blocking(&other)]));
}

#[tokio::test(start_paused = true)]
async fn a_circle_does_not_wait_for_ever() {
    let world = World::new().await;
    let one = world.owned("one", &[]).await;
    let two = world.owned("two", &[blocking(&one)]).await;
    let back = blocking(&two);
    world.change("one", |object| object["metadata"]["ownerReferences"] = json!([back.clone()])).await;
    world.settle().await;
    world.delete("one", Propagation::Foreground).await;
    world.settle().await;
    assert!(!world.has("one") && !world.has("two"));
}

#[tokio::test(start_paused = true)]
async fn orphans_stay_and_forget_their_owner() {
    let world = World::new().await;
    let (owner, other) = (world.owned("owner", &[]).await, world.owned("other", &[]).await);
    world.owned("child", &[blocking(&owner)]).await;
    world.owned("shared", &[reference(&owner), reference(&other)]).await;
    world.delete("owner", Propagation::Orphan).await;
    world.settle().await;
    assert!(!world.has("owner"));
    assert_eq!(world.get("child").unwrap()["metadata"].get("ownerReferences"), None);
    assert_eq!(world.get("shared").unwrap()["metadata"]["ownerReferences"], json!([reference(&other)]));
}

#[tokio::test(start_paused = true)]
async fn what_was_left_is_done_after_a_restart() {
    let mut world = World::empty().await;
    let owner = world.owned("owner", &[]).await;
    let kept = world.owned("kept", &[]).await;
    for number in 0..500 {
        world.owned(&format!("child-{number}"), &[reference(&owner)]).await;
    }
    world.owned("grandchild", &[reference(&kept)]).await;
    let foreground = world.owned("foreground", &[]).await;
    world.owned("blocking", &[blocking(&foreground)]).await;
    let orphaning = world.owned("orphaning", &[]).await;
    world.owned("orphan", &[reference(&orphaning)]).await;
    world.delete("owner", Propagation::Background).await;
    world.delete("foreground", Propagation::Foreground).await;
    world.delete("orphaning", Propagation::Orphan).await;
    world.start();
    world.settle().await;
    let left: Vec<String> = world
        .api
        .list_all(&world.served("configmaps"), Some("lab"))
        .await
        .unwrap()
        .0
        .iter()
        .map(|object| object::name(object).to_owned())
        .collect();
    assert_eq!(left, ["grandchild", "kept", "orphan"]);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_at_rest() {
    let world = World::new().await;
    let owner = world.owned("owner", &[]).await;
    world.owned("child", &[blocking(&owner)]).await;
    world.settle().await;
    let revision = world.api.store().revision();
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert_eq!(world.api.store().revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn owners_of_unknown_kinds_are_taken_to_be_there_until_their_kind_is_served() {
    let mut world = World::empty().await;
    let without_leases = builtins().into_iter().filter(|resource| resource.plural != "leases").collect();
    world.api.shelf().replace(Catalogue::new(without_leases));
    world.start();
    let absent = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": "x", "uid": "u" });
    world.owned("child", &[absent]).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(world.has("child"));
    world.api.shelf().replace(Catalogue::new(builtins()));
    world.settle().await;
    assert!(!world.has("child"));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_was_cut_off_is_read_again() {
    let world = World::new().await;
    world.settle().await;
    let owner = world.owned("owner", &[]).await;
    world.owned("child", &[reference(&owner)]).await;
    world.delete("owner", Propagation::Background).await;
    world.api.store().compact(world.api.store().revision());
    world.settle().await;
    assert!(!world.has("child"));
}

#[test]
fn only_what_has_owners_or_waits_is_remembered() {
    let mut graph = Graph::default();
    let facts = |object: Value| Facts::read(object.to_string().as_bytes()).unwrap();
    for number in 0..100 {
        let plain =
            json!({ "metadata": { "uid": number.to_string(), "finalizers": ["x"] }, "spec": { "metadata": 1 } });
        assert!(graph.put(&format!("/{number}"), facts(plain)).is_empty());
    }
    assert_eq!(graph.len(), 0);
    let child = json!({ "metadata": { "uid": "c", "ownerReferences": [{ "uid": "7" }] } });
    graph.put("/c", facts(child));
    assert_eq!(graph.len(), 1);
    assert_eq!(graph.remove("/7", Some("7")), [Arc::from("/c")]);
    assert!(graph.remove("/c", Some("c")).is_empty());
    assert_eq!(format!("{graph:?}"), format!("{:?}", Graph::default()));
    for junk in ["", "[]", "{}", "{\"metadata\":{}}", "{\"metadata\":{\"uid\":1}}"] {
        assert_eq!(Facts::read(junk.as_bytes()), None);
    }
}

#[test]
fn what_comes_behind_the_metadata_of_an_object_is_not_read() {
    let facts = |text: &str| Facts::read(text.as_bytes());
    let whole = r#"{"kind":"A","metadata":{"uid":"a","namespace":"n"},"status":{"metadata":{"uid":"b"}}}"#;
    let cut = whole.split_once(",\"status\"").unwrap().0;
    assert_eq!(facts(cut), facts(whole));
    assert_eq!(facts(cut).unwrap().uid.as_ref(), "a");
    assert_eq!(facts(r#"{"spec":{"metadata":{"uid":"b"}},"metadata":{"uid":"a"}}"#).unwrap().uid.as_ref(), "a");
}

#[tokio::test(start_paused = true)]
async fn events_are_forgotten_after_an_hour() {
    let start = tokio::time::Instant::now();
    let clock = Clock::new(move || {
        let passed = jiff::SignedDuration::try_from(start.elapsed()).unwrap();
        "2026-03-01T12:00:00Z".parse::<jiff::Timestamp>().unwrap() + passed
    });
    let api = Api::new(Store::memory(), Shelf::new(Catalogue::new(builtins())), clock, 1);
    let mut world = World { api, stop: CancellationToken::new(), tasks: JoinSet::new() };
    world.create("namespaces", "", &json!({ "metadata": { "name": "lab" } })).await;
    world.tasks.spawn(expire_events(world.api.clone(), world.stop.clone()));
    world.settle().await;
    let event = |name: &str| {
        json!({
            "metadata": { "name": name }, "involvedObject": { "kind": "ConfigMap", "name": "x", "namespace": "lab" },
            "reason": "Test", "message": "m", "type": "Normal",
        })
    };
    let names = || {
        let objects = world.api.store();
        let mut names = Vec::new();
        let scan = store::Scan { prefix: "/registry/core/events/", after: None, at: None };
        objects
            .scan(scan, &mut |key, _, _| {
                names.push(key.rsplit('/').next().unwrap().to_owned());
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        names
    };
    world.create("events", "lab", &event("first")).await;
    tokio::time::sleep(Duration::from_mins(40)).await;
    world.create("events", "lab", &event("second")).await;
    assert_eq!(names(), ["first", "second"]);
    tokio::time::sleep(Duration::from_mins(26)).await;
    assert_eq!(names(), ["second"]);
    tokio::time::sleep(Duration::from_mins(45)).await;
    assert!(names().is_empty());
    let revision = world.api.store().revision();
    tokio::time::sleep(Duration::from_hours(100)).await;
    assert_eq!(world.api.store().revision(), revision);
    world.stop().await;
}
