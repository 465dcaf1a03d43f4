use std::time::Duration;

use schema::object;
use serde_json::{Value, json};
use store::Store;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::run;
use crate::catalogue::{Catalogue, Served, Shelf};
use crate::clock::Clock;
use crate::resource::Part;
use crate::verbs::{Api, DeleteOptions, WriteOptions};

struct World {
    api: Api,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl World {
    fn empty() -> Self {
        let start = tokio::time::Instant::now();
        let clock = Clock::new(move || {
            let passed = jiff::SignedDuration::try_from(start.elapsed()).unwrap();
            "2026-03-01T12:00:00Z".parse::<jiff::Timestamp>().unwrap() + passed
        });
        let shelf = Shelf::new(Catalogue::new(crate::builtins::resources().unwrap()));
        let api = Api::new(Store::memory(), shelf, clock, 1);
        Self { api, stop: CancellationToken::new(), tasks: JoinSet::new() }
    }

    async fn new() -> Self {
        let mut world = Self::empty();
        world.start();
        world.settle().await;
        world
    }

    fn start(&mut self) {
        self.tasks.spawn(run(self.api.clone(), self.stop.clone()));
    }

    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    fn served(&self, plural: &str) -> Served {
        let group = if plural == "leases" { "coordination.k8s.io" } else { "" };
        self.api.served(group, "v1", plural).unwrap()
    }

    async fn create(&self, plural: &str, namespace: &str, object: Value) {
        let served = self.served(plural);
        let mut object = object;
        object["apiVersion"] = served.api_version().into();
        object["kind"] = served.resource.kind.clone().into();
        self.api.create(&served, namespace, object, &WriteOptions::by("test")).await.unwrap();
    }

    async fn namespace(&self, name: &str) {
        self.create("namespaces", "", json!({ "metadata": { "name": name } })).await;
    }

    async fn delete_namespace(&self, name: &str) {
        self.api.delete(&self.served("namespaces"), "", name, &DeleteOptions::default()).await.unwrap();
    }

    async fn release(&self, plural: &str, name: &str) {
        let served = self.served(plural);
        let release = |object: &mut Value| drop(object::meta_mut(object).remove("finalizers"));
        self.api.modify(&served, "lab", name, Part::Main, &WriteOptions::by("test"), release).await.unwrap();
    }

    fn get(&self, name: &str) -> Option<Value> {
        self.api.get(&self.served("namespaces"), "", name).ok()
    }

    fn condition(&self, kind: &str) -> Value {
        let namespace = self.get("lab").unwrap();
        let conditions = namespace["status"]["conditions"].as_array().unwrap().clone();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_goes_at_once() {
    let world = World::new().await;
    world.namespace("lab").await;
    world.delete_namespace("lab").await;
    world.settle().await;
    assert_eq!(world.get("lab"), None);
}

#[tokio::test(start_paused = true)]
async fn everything_in_a_namespace_goes_with_it_and_events_last() {
    let world = World::new().await;
    world.namespace("lab").await;
    world.namespace("other").await;
    for number in 0..1200 {
        world.create("configmaps", "lab", json!({ "metadata": { "name": format!("c-{number}") } })).await;
    }
    world.create("secrets", "lab", json!({ "metadata": { "name": "s" } })).await;
    world.create("leases", "lab", json!({ "metadata": { "name": "l" } })).await;
    world.create("configmaps", "other", json!({ "metadata": { "name": "c" } })).await;
    let event = json!({
        "metadata": { "name": "e" }, "involvedObject": { "kind": "ConfigMap", "name": "x", "namespace": "lab" },
        "reason": "Test", "message": "m", "type": "Normal",
    });
    world.create("events", "lab", event).await;
    let mut watch = world.api.store().watch("/registry/", world.api.store().revision()).unwrap();
    world.delete_namespace("lab").await;
    world.settle().await;
    assert_eq!(world.get("lab"), None);
    let mut order = Vec::new();
    while let Some(event) = watch.try_next() {
        order.extend(Some(event.unwrap()).filter(|event| event.deleted).map(|event| event.key.clone()));
    }
    assert_eq!(order.len(), 1200 + 4);
    assert_eq!(order[1202..], ["/registry/core/events/lab/e", "/registry/core/namespaces/lab"]);
    assert!(world.api.get(&world.served("configmaps"), "other", "c").is_ok());
}

#[tokio::test(start_paused = true)]
async fn conditions_tell_what_keeps_a_namespace() {
    let world = World::new().await;
    world.namespace("lab").await;
    let held = |name: &str, finalizers: Value| json!({ "metadata": { "name": name, "finalizers": finalizers } });
    world.create("configmaps", "lab", held("a", json!(["x.example.com/hold"]))).await;
    world.create("configmaps", "lab", held("b", json!(["x.example.com/hold", "y.example.com/z"]))).await;
    world.create("secrets", "lab", held("s", json!(["x.example.com/hold"]))).await;
    world.create("secrets", "lab", json!({ "metadata": { "name": "free" } })).await;
    world.delete_namespace("lab").await;
    world.settle().await;
    let lab = world.get("lab").unwrap();
    assert_eq!(lab["status"]["phase"], "Terminating");
    let since = "2026-03-01T12:00:00Z";
    assert_eq!(
        lab["status"]["conditions"],
        json!([
            { "lastTransitionTime": since, "message": "All resources successfully discovered", "reason": "ResourcesDiscovered", "status": "False", "type": "NamespaceDeletionDiscoveryFailure" },
            { "lastTransitionTime": since, "message": "All legacy kube types successfully parsed", "reason": "ParsedGroupVersions", "status": "False", "type": "NamespaceDeletionGroupVersionParsingFailure" },
            { "lastTransitionTime": since, "message": "All content successfully deleted, may be waiting on finalization", "reason": "ContentDeleted", "status": "False", "type": "NamespaceDeletionContentFailure" },
            { "lastTransitionTime": since, "message": "Some resources are remaining: configmaps. has 2 resource instances, secrets. has 1 resource instances", "reason": "SomeResourcesRemain", "status": "True", "type": "NamespaceContentRemaining" },
            { "lastTransitionTime": since, "message": "Some content in the namespace has finalizers remaining: x.example.com/hold in 3 resource instances, y.example.com/z in 1 resource instances", "reason": "SomeFinalizersRemain", "status": "True", "type": "NamespaceFinalizersRemaining" },
        ])
    );
    let revision = world.api.store().revision();
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert_eq!(world.api.store().revision(), revision, "nothing is written while it waits");

    world.release("secrets", "s").await;
    world.settle().await;
    let condition = world.condition("NamespaceContentRemaining");
    assert_eq!(condition["message"], "Some resources are remaining: configmaps. has 2 resource instances");
    assert_eq!(condition["lastTransitionTime"], since);
    world.release("configmaps", "a").await;
    world.release("configmaps", "b").await;
    world.settle().await;
    assert_eq!(world.get("lab"), None);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_with_other_finalizers_is_emptied_and_stays() {
    let world = World::new().await;
    let kept = json!({ "metadata": { "name": "lab" }, "spec": { "finalizers": ["x.example.com/hold"] } });
    world.create("namespaces", "", kept).await;
    world.create("configmaps", "lab", json!({ "metadata": { "name": "c" } })).await;
    world.delete_namespace("lab").await;
    world.settle().await;
    assert_eq!(world.get("lab").unwrap()["spec"]["finalizers"], json!(["x.example.com/hold"]));
    assert!(world.api.get(&world.served("configmaps"), "lab", "c").is_err());
    assert_eq!(world.condition("NamespaceContentRemaining")["reason"], "ContentRemoved");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_goes_on_after_a_restart() {
    let mut world = World::empty();
    world.namespace("lab").await;
    world.create("configmaps", "lab", json!({ "metadata": { "name": "c" } })).await;
    world.delete_namespace("lab").await;
    assert!(world.get("lab").is_some());
    world.start();
    world.settle().await;
    assert_eq!(world.get("lab"), None);
    world.stop.cancel();
    while let Some(ended) = world.tasks.join_next().await {
        ended.unwrap();
    }
}
