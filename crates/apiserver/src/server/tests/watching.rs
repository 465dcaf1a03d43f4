use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use store::Limits;
use tokio::time::Instant;

use super::{WIDGETS, World};

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_what_is_there() {
    let world = World::new().await;
    world.widget("a", json!({})).await;
    let mut from_zero = world.watch(&format!("{WIDGETS}?watch=true&resourceVersion=0")).await;
    assert_eq!(from_zero.brief().await, pair("ADDED", "a"));
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.brief().await, pair("ADDED", "a"));
    world.widget("b", json!({})).await;
    world.merge(&format!("{WIDGETS}/b"), json!({"spec": {"size": 1}})).await;
    world.delete(&format!("{WIDGETS}/b")).await;
    assert_eq!(events.brief().await, pair("ADDED", "b"));
    assert_eq!(events.brief().await, pair("MODIFIED", "b"));
    let gone = events.next().await.unwrap();
    assert_eq!((&gone["type"], &gone["object"]["spec"]["size"]), (&json!("DELETED"), &json!(1)));
    let revision = world.server.api().store().revision().to_string();
    assert_eq!(gone["object"]["metadata"]["resourceVersion"], revision);
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_a_revision() {
    let world = World::new().await;
    let a = world.widget("a", json!({})).await;
    world.widget("b", json!({})).await;
    let version = a["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events = world.watch(&format!("{WIDGETS}?watch=1&resourceVersion={version}")).await;
    assert_eq!(events.brief().await, pair("ADDED", "b"));
    world.get(&format!("{WIDGETS}?watch=1&resourceVersion=abc")).await.refused(
        500,
        "",
        "resourceVersion: Invalid value: \"abc\": must be a resource version that this server has given",
    );
    let legacy = format!("/apis/verbs.example.com/v1/watch/namespaces/verbs-a/widgets?resourceVersion={version}");
    assert_eq!(world.watch(&legacy).await.brief().await, pair("ADDED", "b"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_past_is_told_that_it_is_too_old() {
    let world = World::new().await;
    world.widget("a", json!({})).await;
    let store = world.server.api().store();
    store.compact(store.revision());
    let oldest = store.compacted();
    let mut events = world.watch(&format!("{WIDGETS}?watch=1&resourceVersion=1")).await;
    assert_eq!(
        events.next().await.unwrap(),
        json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": format!("too old resource version: 1 ({oldest})"), "reason": "Expired", "code": 410}})
    );
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_bookmark() {
    let world = World::new().await;
    world.widget("a", json!({})).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut events = world.watch(&format!("{WIDGETS}?{query}")).await;
    assert_eq!(events.brief().await, pair("ADDED", "a"));
    let revision = world.server.api().store().revision().to_string();
    assert_eq!(
        events.next().await.unwrap(),
        json!({"type": "BOOKMARK", "object": {"apiVersion": "verbs.example.com/v1", "kind": "Widget", "metadata": {
            "resourceVersion": revision, "annotations": {"k8s.io/initial-events-end": "true",
                "kubernetes.io/initial-events-list-blueprint": STANDARD.encode(
                    "{\"apiVersion\":\"verbs.example.com/v1\",\"items\":[],\"kind\":\"WidgetList\"}\n")}}}})
    );
    let kind = "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: ";
    for (query, why) in [
        ("sendInitialEvents=true", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ] {
        world.get(&format!("{WIDGETS}?watch=1&{query}")).await.refused(422, "Invalid", &format!("{kind}{why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_before_the_end() {
    let world = World::new().await;
    let begun = Instant::now();
    let mut events = world.watch(&format!("{WIDGETS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=90")).await;
    assert_eq!(events.brief().await.0, "BOOKMARK");
    assert_eq!(begun.elapsed().as_secs(), 60);
    // Not ours, but we are told how far things have come.
    world.post("/api/v1/namespaces", json!({"metadata": {"name": "verbs-b"}})).await;
    let bookmark = events.next().await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 88);
    let revision = world.server.api().store().revision().to_string();
    assert_eq!(bookmark["object"]["metadata"], json!({"resourceVersion": revision}));
    assert!(events.next().await.is_none());
    assert_eq!(begun.elapsed().as_secs(), 90);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_time_ends_within_the_hour() {
    let world = World::new().await;
    let begun = Instant::now();
    assert!(world.watch(&format!("{WIDGETS}?watch=1")).await.next().await.is_none());
    assert!(begun.elapsed() >= Duration::from_mins(30) && begun.elapsed() <= Duration::from_hours(1));
}

#[tokio::test(start_paused = true)]
async fn selectors_see_objects_come_and_go() {
    let world = World::new().await;
    let mut events = world.watch(&format!("{WIDGETS}?watch=1&labelSelector=on=yes")).await;
    let path = format!("{WIDGETS}/a");
    world.widget("a", json!({})).await;
    let on = world.merge(&path, json!({"metadata": {"labels": {"on": "yes"}}})).await.body;
    world.merge(&path, json!({"spec": {"size": 2}})).await;
    world.merge(&path, json!({"metadata": {"labels": {"on": "no"}}})).await;
    world.delete(&path).await;
    world.widget("z", json!({"metadata": {"labels": {"on": "yes"}}})).await;
    let added = events.next().await.unwrap();
    assert_eq!((&added["type"], &added["object"]), (&json!("ADDED"), &on));
    assert_eq!(events.brief().await, pair("MODIFIED", "a"));
    let gone = events.next().await.unwrap();
    // As it was when it was last meant, at the time when it was no longer.
    assert_eq!((&gone["type"], &gone["object"]["metadata"]["labels"]), (&json!("DELETED"), &json!({"on": "yes"})));
    assert_eq!(gone["object"]["spec"]["size"], 2);
    assert_eq!(events.brief().await, pair("ADDED", "z"));
}

#[tokio::test(start_paused = true)]
async fn one_object_can_be_watched_by_name() {
    let world = World::new().await;
    world.widget("a1", json!({})).await;
    let mut events = world.watch(&format!("{WIDGETS}?watch=1&fieldSelector=metadata.name=a")).await;
    world.widget("ab", json!({})).await;
    world.widget("a", json!({})).await;
    assert_eq!(events.brief().await, pair("ADDED", "a"));
}

#[tokio::test(start_paused = true)]
async fn views_of_events() {
    let world = World::new().await;
    world.widget("a", json!({})).await;
    world.widget("b", json!({})).await;
    let path = format!("{WIDGETS}?watch=1");
    let mut events = world.watch_as(&path, "application/json;as=Table;g=meta.k8s.io;v=v1").await;
    let (first, second) = (events.next().await.unwrap(), events.next().await.unwrap());
    assert!(first["object"]["columnDefinitions"].is_array() && second["object"]["columnDefinitions"].is_null());
    let mut events = world.watch_as(&path, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").await;
    assert_eq!(events.next().await.unwrap()["object"]["kind"], "PartialObjectMetadata");
    world.get_as(&path, "text/html").await.refused(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_ends_its_watches() {
    let world = World::new().await;
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    world.server.stop().await;
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reader_who_is_too_slow_begins_anew() {
    let world = World::with_history(Limits { events: 10, bytes: 1, least_events: 1, most_bytes: 1 }).await;
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    for n in 0..40 {
        world.widget(&format!("w{n}"), json!({})).await;
    }
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)), "{event}");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn a_long_beginning_is_shown_page_by_page_as_it_was() {
    let world = World::new().await;
    let name = |n: usize| format!("w{n:04}");
    for n in 0..1_100 {
        world.widget(&name(n), json!({})).await;
    }
    let mut events = world
        .watch(&format!(
            "{WIDGETS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        ))
        .await;
    assert_eq!(events.brief().await, ("ADDED".to_owned(), name(0)));
    world.delete(&format!("{WIDGETS}/{}", name(1_050))).await;
    world.widget("x-late", json!({})).await;
    for n in 1..1_100 {
        assert_eq!(events.brief().await, ("ADDED".to_owned(), name(n)));
    }
    assert_eq!(events.next().await.unwrap()["type"], "BOOKMARK");
    assert_eq!(events.brief().await, ("DELETED".to_owned(), name(1_050)));
    assert_eq!(events.brief().await, ("ADDED".to_owned(), "x-late".to_owned()));
}

#[tokio::test]
async fn a_beginning_that_is_read_too_slowly_is_expired() {
    let world = World::with_history(Limits { events: 600, least_events: 0, ..Limits::default() }).await;
    for n in 0..600 {
        world.widget(&format!("w{n:04}"), json!({})).await;
    }
    let mut events = world.watch(&format!("{WIDGETS}?watch=1")).await;
    events.brief().await;
    for n in 0..700 {
        world.widget(&format!("x{n:04}"), json!({})).await;
    }
    let mut last = events.next().await.unwrap();
    while last["type"] == "ADDED" {
        last = events.next().await.unwrap();
    }
    assert_eq!((&last["type"], &last["object"]["code"]), (&json!("ERROR"), &json!(410)), "{last}");
    assert!(events.next().await.is_none());
}
