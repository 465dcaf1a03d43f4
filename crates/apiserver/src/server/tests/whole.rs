//! The server with all its controllers, under paused time.

use serde_json::json;
use store::Store;

use super::{Answer, Events, Server, WIDGETS, World, config, names, widget};

pub(super) async fn whole(store: Store) -> World {
    World { server: Server::start(config(store)).await.unwrap() }
}

pub(super) fn definition() -> serde_json::Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.verbs.example.com"},
        "spec": {"group": "verbs.example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"color": {"type": "string", "enum": ["red", "blue"]},
                        "size": {"type": "integer", "default": 3}}}}}}}]}})
}

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Reads events until one fulfils a wish.
async fn until(events: &mut Events, wish: impl Fn(&serde_json::Value) -> bool) {
    while !wish(&events.next().await.expect("the watch goes on")) {}
}

async fn define(world: &World) {
    define_as(world, &definition()).await;
}

pub(super) async fn define_as(world: &World, definition: &serde_json::Value) {
    let mut events = world.watch(&format!("{DEFINITIONS}?watch=1")).await;
    let made = world.post(DEFINITIONS, definition.clone()).await;
    assert_eq!(made.code, 201, "{}", made.text);
    until(&mut events, |event| {
        let conditions = event["object"]["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_a_resource_after_a_moment_and_after_a_restart() {
    let store = Store::memory();
    let world = whole(store.clone()).await;
    world.post("/api/v1/namespaces", json!({"metadata": {"name": "verbs-a"}})).await;
    define(&world).await;
    let refused: Answer = world.post(WIDGETS, widget("w", json!({"spec": {"color": "green"}}))).await;
    refused.refused(
        422,
        "Invalid",
        "Widget.verbs.example.com \"w\" is invalid: spec.color: Unsupported value: \"green\": supported values: \
         \"red\", \"blue\"",
    );
    assert_eq!(world.widget("w", json!({})).await["spec"], json!({"color": "red", "size": 3}));
    world.server.stop().await;
    let again = whole(store).await;
    assert_eq!(names(&again.get(WIDGETS).await.body), ["w"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_everything_along() {
    let world = whole(Store::memory()).await;
    world.post("/api/v1/namespaces", json!({"metadata": {"name": "verbs-a"}})).await;
    define(&world).await;
    world.widget("w", json!({})).await;
    let mut events = world.watch("/api/v1/namespaces?watch=1&fieldSelector=metadata.name=verbs-a").await;
    assert_eq!(world.delete("/api/v1/namespaces/verbs-a").await.body["status"]["phase"], "Terminating");
    until(&mut events, |event| event["type"] == "DELETED").await;
    assert_eq!(names(&world.get("/apis/verbs.example.com/v1/widgets").await.body).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_resource_goes() {
    let world = whole(Store::memory()).await;
    world.post("/api/v1/namespaces", json!({"metadata": {"name": "verbs-a"}})).await;
    define(&world).await;
    world.widget("w", json!({})).await;
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.brief().await.0, "ADDED");
    world.delete(&format!("{DEFINITIONS}/widgets.verbs.example.com")).await;
    assert_eq!(events.brief().await.0, "DELETED");
    assert!(events.next().await.is_none());
    assert_eq!(world.get(WIDGETS).await.text, "404 page not found\n");
}

#[tokio::test(start_paused = true)]
async fn what_an_owner_leaves_is_collected() {
    let world = whole(Store::memory()).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let owner = world.post(maps, json!({"metadata": {"name": "owner"}})).await.body;
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]});
    world.post(maps, json!({"metadata": {"name": "owned", "ownerReferences": [reference]}})).await;
    let mut events = world.watch(&format!("{maps}?watch=1&fieldSelector=metadata.name=owned")).await;
    assert_eq!(events.brief().await.0, "ADDED");
    world.delete(&format!("{maps}/owner")).await;
    assert_eq!(events.brief().await.0, "DELETED");
}
