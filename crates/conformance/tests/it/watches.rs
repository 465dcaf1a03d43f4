//! Watches: what is told, in which order, from when on, and to whom.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{SECRETS, WIDGETS, secret, widget};

cases![
    a_watch_tells_what_happens_in_order,
    a_watch_of_custom_objects_tells_what_happens,
    a_watch_from_nowhere_begins_with_what_is_there,
    a_watch_from_zero_begins_with_what_is_there,
    a_watch_from_a_revision_misses_nothing,
    a_watch_from_the_future,
    a_watch_from_nonsense,
    a_watch_with_initial_events,
    initial_events_have_rules,
    bookmarks_are_sent_to_those_who_ask,
    a_watch_ends_in_time,
    a_watch_of_one_object,
    a_watch_by_label_sees_objects_come_and_go,
    a_watch_by_field_sees_objects_come_and_go,
    a_watch_of_a_deletion_with_finalizers,
    a_watch_as_table,
    a_watch_of_metadata_only,
    a_watch_by_the_old_path,
    a_watch_of_what_does_not_exist,
    a_write_that_changes_nothing_is_not_told,
];

const SHORT: &str = "timeoutSeconds=1";

/// Long enough for a busy server to send what is there.
const LONGER: &str = "timeoutSeconds=4";

fn labelled(mut object: Value, value: &str) -> Value {
    object["metadata"]["labels"] = json!({"color": value});
    object
}

async fn a_watch_tells_what_happens_in_order(s: &mut Story) {
    let list = s.get(SECRETS).await;
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&resourceVersion={}", list.revision())).await;
    s.post(SECRETS, secret("a")).await.is(201);
    s.merge_patch(&format!("{SECRETS}/a"), json!({"data": {"k": "dg=="}})).await.is(200);
    s.post(SECRETS, secret("b")).await.is(201);
    s.delete(&format!("{SECRETS}/a")).await.is(200);
    watch.take(s, 4).await;
}

async fn a_watch_of_custom_objects_tells_what_happens(s: &mut Story) {
    let list = s.get(WIDGETS).await;
    let mut watch = s.watch(&format!("{WIDGETS}?watch=1&resourceVersion={}", list.revision())).await;
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    s.merge_patch(&format!("{WIDGETS}/a/status"), json!({"status": {"phase": "Up"}})).await.is(200);
    s.delete(&format!("{WIDGETS}/a")).await.is(200);
    watch.take(s, 3).await;
}

async fn a_watch_from_nowhere_begins_with_what_is_there(s: &mut Story) {
    s.post(SECRETS, secret("b")).await.is(201);
    let made = s.post(SECRETS, secret("a")).await;
    // The real server answers from a cache that may lag behind.
    s.get(&format!("{SECRETS}?resourceVersion={}", made.revision())).await.is(200);
    let mut watch = s.watch(&format!("{SECRETS}?watch=true")).await;
    watch.take(s, 2).await;
    s.post(SECRETS, secret("c")).await.is(201);
    watch.take(s, 1).await;
}

async fn a_watch_from_zero_begins_with_what_is_there(s: &mut Story) {
    s.post(WIDGETS, widget("b", json!({}))).await.is(201);
    let made = s.post(WIDGETS, widget("a", json!({}))).await;
    // The real server answers zero from a cache that may lag behind.
    s.get(&format!("{WIDGETS}?resourceVersion={}", made.revision())).await.is(200);
    let mut watch = s.watch(&format!("{WIDGETS}?watch=true&resourceVersion=0")).await;
    watch.take(s, 2).await;
    s.delete(&format!("{WIDGETS}/b")).await.is(200);
    watch.take(s, 1).await;
}

async fn a_watch_from_a_revision_misses_nothing(s: &mut Story) {
    let first = s.post(SECRETS, secret("a")).await;
    let second = s.post(SECRETS, secret("b")).await;
    s.delete(&format!("{SECRETS}/a")).await.is(200);
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&resourceVersion={}", first.revision())).await;
    watch.take(s, 2).await;
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&resourceVersion={}", second.revision())).await;
    watch.take(s, 1).await;
}

async fn a_watch_from_the_future(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&resourceVersion=999999999&{SHORT}")).await;
    watch.rest(s).await;
}

async fn a_watch_from_nonsense(s: &mut Story) {
    for path in [SECRETS, WIDGETS] {
        s.get(&format!("{path}?watch=true&resourceVersion=nonsense&{SHORT}")).await;
        s.get(&format!("{path}?watch=true&resourceVersion=-1&{SHORT}")).await;
        s.get(&format!("{path}?watch=true&timeoutSeconds=soon")).await;
        s.get(&format!("{path}?watch=true&labelSelector=a%3D%3D%3Db&{SHORT}")).await;
        s.get(&format!("{path}?watch=true&fieldSelector=nothing%3D1&{SHORT}")).await;
        s.get(&format!("{path}?watch=maybe&{SHORT}")).await;
    }
}

async fn a_watch_with_initial_events(s: &mut Story) {
    for (path, one, two) in
        [(SECRETS, secret("a"), secret("b")), (WIDGETS, widget("a", json!({})), widget("b", json!({})))]
    {
        s.post(path, one).await.is(201);
        let options = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let mut watch = s.watch(&format!("{path}?{options}")).await;
        let events = watch.take(s, 2).await;
        let judge = s.target().is_judge();
        assert!(!judge || events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true");
        s.post(path, two).await.is(201);
        watch.take(s, 1).await;
    }
}

async fn initial_events_have_rules(s: &mut Story) {
    for path in [SECRETS, WIDGETS] {
        for options in [
            "watch=true&sendInitialEvents=true",
            "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact&resourceVersion=1",
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
            "watch=true&resourceVersionMatch=NotOlderThan",
            "watch=true&sendInitialEvents=false",
            "sendInitialEvents=true",
            "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=x",
        ] {
            s.get(&format!("{path}?{options}&{SHORT}")).await;
        }
    }
}

async fn bookmarks_are_sent_to_those_who_ask(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    let options = "watch=true&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=4";
    bookmark(s, &format!("{SECRETS}?{options}")).await;
    // The real server answers zero from a cache that may lag behind.
    let made = s.post(WIDGETS, widget("a", json!({}))).await;
    s.get(&format!("{WIDGETS}?resourceVersion={}", made.revision())).await.is(200);
    bookmark(s, &format!("{WIDGETS}?{options}")).await;
}

/// The real server sends bookmarks when it gets round to it, which may be after the end of a short watch.
async fn bookmark(s: &mut Story, path: &str) {
    for _ in 0..5 {
        let mut watch = s.watch(path).await;
        if watch.bookmark(s).await.is_some() {
            return;
        }
    }
    panic!("no bookmark on {path}");
}

async fn a_watch_ends_in_time(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&{LONGER}")).await;
    watch.rest(s).await;
    let mut watch = s.watch(&format!("{WIDGETS}?watch=true&{SHORT}")).await;
    watch.rest(s).await;
}

async fn a_watch_of_one_object(s: &mut Story) {
    let made = s.post(SECRETS, secret("a")).await;
    s.post(SECRETS, secret("b")).await.is(201);
    let select = "fieldSelector=metadata.name%3Da";
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&{select}&resourceVersion={}", made.revision())).await;
    // The path of one object has no watch; there, the word is ignored.
    s.get(&format!("{SECRETS}/a?watch=true&timeoutSeconds=1")).await.is(200).has("/kind", "Secret");
    s.merge_patch(&format!("{SECRETS}/b"), json!({"data": {"k": "dg=="}})).await.is(200);
    s.merge_patch(&format!("{SECRETS}/a"), json!({"data": {"k": "dg=="}})).await.is(200);
    s.delete(&format!("{SECRETS}/a")).await.is(200);
    watch.take(s, 2).await;
}

async fn a_watch_by_label_sees_objects_come_and_go(s: &mut Story) {
    for (path, body) in [(SECRETS, secret("a")), (WIDGETS, widget("a", json!({})))] {
        let list = s.get(path).await;
        let mut watch =
            s.watch(&format!("{path}?watch=true&labelSelector=color%3Dred&resourceVersion={}", list.revision())).await;
        let one = format!("{path}/a");
        s.post(path, labelled(body, "blue")).await.is(201);
        s.merge_patch(&one, json!({"metadata": {"labels": {"color": "red"}}})).await.is(200);
        s.merge_patch(&one, json!({"metadata": {"labels": {"more": "x"}}})).await.is(200);
        s.merge_patch(&one, json!({"metadata": {"labels": {"color": "blue"}}})).await.is(200);
        s.merge_patch(&one, json!({"metadata": {"labels": {"color": "red"}}})).await.is(200);
        s.delete(&one).await.is(200);
        watch.take(s, 5).await;
    }
}

async fn a_watch_by_field_sees_objects_come_and_go(s: &mut Story) {
    let list = s.get(WIDGETS).await;
    let select = "fieldSelector=spec.color%3Dred";
    let mut watch = s.watch(&format!("{WIDGETS}?watch=true&{select}&resourceVersion={}", list.revision())).await;
    s.post(WIDGETS, widget("a", json!({"color": "blue"}))).await.is(201);
    s.merge_patch(&format!("{WIDGETS}/a"), json!({"spec": {"color": "red"}})).await.is(200);
    s.merge_patch(&format!("{WIDGETS}/a"), json!({"spec": {"color": "green"}})).await.is(200);
    watch.take(s, 2).await;
}

async fn a_watch_of_a_deletion_with_finalizers(s: &mut Story) {
    let list = s.get(SECRETS).await;
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&resourceVersion={}", list.revision())).await;
    let mut held = secret("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    s.post(SECRETS, held).await.is(201);
    s.delete(&format!("{SECRETS}/a")).await.is(200);
    s.merge_patch(&format!("{SECRETS}/a"), json!({"metadata": {"finalizers": null}})).await.is(200);
    watch.take(s, 3).await;
}

async fn a_watch_as_table(s: &mut Story) {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    for (path, one, two) in
        [(SECRETS, secret("a"), secret("b")), (WIDGETS, widget("a", json!({"size": 1})), widget("b", json!({})))]
    {
        s.post(path, one).await.is(201);
        let mut watch = s.watch_as(&format!("{path}?watch=true"), table).await;
        watch.take(s, 1).await;
        s.post(path, two).await.is(201);
        s.delete(&format!("{path}/a")).await.is(200);
        watch.take(s, 2).await;
    }
}

async fn a_watch_of_metadata_only(s: &mut Story) {
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
    for (path, one, two) in
        [(SECRETS, secret("a"), secret("b")), (WIDGETS, widget("a", json!({})), widget("b", json!({})))]
    {
        s.post(path, one).await.is(201);
        let options = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
        let mut watch = s.watch_as(&format!("{path}?{options}"), partial).await;
        watch.take(s, 2).await;
        s.post(path, two).await.is(201);
        s.delete(&format!("{path}/a")).await.is(200);
        watch.take(s, 2).await;
    }
}

async fn a_watch_by_the_old_path(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    let mut watch = s.watch(&format!("/api/v1/watch/namespaces/{{ns}}/secrets?{LONGER}")).await;
    watch.rest(s).await;
    let mut watch = s.watch(&format!("/api/v1/watch/namespaces/{{ns}}/secrets/a?{LONGER}")).await;
    watch.rest(s).await;
}

async fn a_watch_of_what_does_not_exist(s: &mut Story) {
    s.get(&format!("/api/v1/namespaces/{{ns}}/nothings?watch=true&{SHORT}")).await.is(404);
    s.get(&format!("/apis/suite.example.com/v1/namespaces/{{ns}}/nothings?watch=true&{SHORT}")).await.is(404);
    let mut watch = s.watch(&format!("/api/v1/namespaces/no-such-namespace/secrets?watch=true&{SHORT}")).await;
    watch.rest(s).await;
    let mut watch = s.watch(&format!("{WIDGETS}/nobody?watch=true&{SHORT}")).await;
    watch.rest(s).await;
}

async fn a_write_that_changes_nothing_is_not_told(s: &mut Story) {
    let made = s.post(SECRETS, secret("a")).await;
    let mut watch = s.watch(&format!("{SECRETS}?watch=true&resourceVersion={}", made.revision())).await;
    s.merge_patch(&format!("{SECRETS}/a"), json!({})).await.is(200);
    s.merge_patch(&format!("{SECRETS}/a?dryRun=All"), json!({"data": {"k": "dg=="}})).await.is(200);
    s.merge_patch(&format!("{SECRETS}/a"), json!({"data": {"l": "dw=="}})).await.is(200);
    watch.take(s, 1).await;
}
