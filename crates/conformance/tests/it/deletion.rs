//! Deletion: preconditions, finalizers, collections, and what owners take with them.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{MAPS, SECRETS, WIDGETS, map, secret, widget};

cases![
    deleting_what_is_not_there,
    deletion_on_conditions,
    deletion_with_a_grace_period,
    deletion_options_in_the_query,
    deletion_options_that_make_no_sense,
    a_finalizer_holds_an_object,
    a_finalizer_may_not_join_a_deletion,
    finalizers_that_are_none,
    deleting_a_collection,
    deleting_a_collection_in_pages,
    owners_that_are_none,
    dependents_go_in_the_background,
    dependents_go_first_in_the_foreground,
    dependents_that_do_not_block_are_not_waited_for,
    orphans_stay,
    a_dependent_of_nobody_goes,
    a_dependent_of_two_stays_with_one,
    an_owner_in_another_namespace_does_not_count,
];

fn owned(mut object: Value, owner: &Value, block: bool) -> Value {
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": block,
    }]);
    object
}

/// The real collector learns of new kinds twice a minute.
async fn until_widgets_are_collected(s: &mut Story) {
    until_collector_has_seen(s, WIDGETS, widget("canary", json!({}))).await;
}

/// Waits until the collector knows everything of a kind that was there before this object of it, which belongs to nobody: it hears of one
/// after the other. An owner that is deleted before its dependents are known leaves them behind.
async fn until_collector_has_seen(s: &mut Story, path: &str, canary: Value) {
    let nobody = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "11111111-1111-4111-8111-111111111111"},
    });
    let orphan = owned(canary, &nobody, false);
    s.ask("POST", path, &[("content-type", "application/json")], orphan.to_string()).await.is(201);
    s.until(&format!("{path}/canary"), "collected", |answer| answer.code() == 404).await;
}

async fn deleting_what_is_not_there(s: &mut Story) {
    s.delete(&format!("{MAPS}/a")).await.is(404);
    s.delete(&format!("{WIDGETS}/a")).await.is(404);
    s.delete("/api/v1/namespaces/no-such-namespace").await.is(404);
    let uid = json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}});
    s.delete_with(&format!("{MAPS}/a"), uid).await.is(404);
}

async fn deletion_on_conditions(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let made = s.post(path, body).await;
        let one = format!("{path}/a");
        let other = json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}});
        s.delete_with(&one, other).await.is(409);
        s.delete_with(&one, json!({"preconditions": {"resourceVersion": "1"}})).await.is(409);
        let fitting = json!({"preconditions": {"uid": made.uid(), "resourceVersion": made.revision()}});
        s.delete_with(&one, fitting).await.is(200);
    }
}

async fn deletion_with_a_grace_period(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let one = format!("{path}/a");
        s.post(path, body.clone()).await.is(201);
        s.delete_with(&one, json!({"gracePeriodSeconds": 100})).await.is(200);
        s.get(&one).await.is(404);
        s.post(path, body.clone()).await.is(201);
        s.delete_with(&one, json!({"gracePeriodSeconds": -1})).await;
    }
}

async fn deletion_options_in_the_query(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let one = format!("{path}/a");
        s.post(path, body).await.is(201);
        s.delete(&format!("{one}?dryRun=All")).await.is(200);
        s.get(&one).await.is(200);
        s.delete(&format!("{one}?propagationPolicy=Sideways")).await.is(422);
        s.delete(&format!("{one}?gracePeriodSeconds=x")).await.is(400);
        s.delete(&format!("{one}?gracePeriodSeconds=0&propagationPolicy=Background")).await.is(200);
    }
}

async fn deletion_options_that_make_no_sense(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let one = format!("{path}/a");
        s.post(path, body).await.is(201);
        s.delete_with(&one, json!({"propagationPolicy": "Sideways"})).await.is(422);
        s.delete_with(&one, json!({"propagationPolicy": "Orphan", "orphanDependents": true})).await.is(422);
        s.delete_with(&one, json!({"dryRun": ["Some"]})).await.is(422);
        s.send("DELETE", &one, &[("content-type", "application/json")], "{").await;
        s.send("DELETE", &one, &[("content-type", "application/json")], "[]").await;
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap"}).to_string();
        s.send("DELETE", &one, &[("content-type", "application/json")], other).await;
        s.send("DELETE", &one, &[("content-type", "text/plain")], "{}").await;
        s.get(&one).await;
    }
}

async fn a_finalizer_holds_an_object(s: &mut Story) {
    for (path, mut body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        body["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
        s.post(path, body.clone()).await.is(201);
        let one = format!("{path}/a");
        s.delete(&one).await.is(200).holds("going", |body| body["metadata"]["deletionTimestamp"].is_string());
        s.delete(&one).await.is(200);
        s.post(path, body).await.is(409);
        s.merge_patch(&one, json!({"metadata": {"labels": {"still": "changeable"}}})).await.is(200);
        s.merge_patch(&one, json!({"metadata": {"finalizers": ["example.com/two"]}})).await.is(200);
        s.json_patch(&one, json!([{"op": "remove", "path": "/metadata/finalizers"}])).await.is(200);
        s.get(&one).await.is(404);
    }
}

async fn a_finalizer_may_not_join_a_deletion(s: &mut Story) {
    for (path, mut body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        body["metadata"]["finalizers"] = json!(["example.com/one"]);
        s.post(path, body).await.is(201);
        let one = format!("{path}/a");
        s.delete(&one).await.is(200);
        let more = json!({"metadata": {"finalizers": ["example.com/one", "example.com/two"]}});
        s.merge_patch(&one, more).await.is(422).says("no new finalizers can be added");
        let other = json!({"metadata": {"finalizers": ["example.com/two"]}});
        s.merge_patch(&one, other).await.is(422);
        s.merge_patch(&one, json!({"metadata": {"deletionTimestamp": null}})).await.is(200);
        s.merge_patch(&one, json!({"metadata": {"finalizers": []}})).await.is(200);
    }
}

async fn finalizers_that_are_none(s: &mut Story) {
    for finalizers in [json!(["plain"]), json!(["Not A Name"]), json!([""]), json!(["a/b/c"]), json!([1]), json!("x")] {
        let mut map = map("a");
        map["metadata"]["finalizers"] = finalizers.clone();
        s.post(MAPS, map).await;
        let mut widget = widget("a", json!({}));
        widget["metadata"]["finalizers"] = finalizers;
        s.post(WIDGETS, widget).await;
    }
    let mut both = map("both");
    both["metadata"]["finalizers"] = json!(["orphan", "foregroundDeletion"]);
    s.post(MAPS, both).await.is(422);
    let mut twice = map("twice");
    twice["metadata"]["finalizers"] = json!(["example.com/a", "example.com/a"]);
    s.post(MAPS, twice).await.is(201);
}

async fn deleting_a_collection(s: &mut Story) {
    for (path, body) in [(SECRETS, secret("a")), (WIDGETS, widget("a", json!({})))] {
        for (name, color) in [("a", "red"), ("b", "red"), ("c", "blue")] {
            let mut body = body.clone();
            body["metadata"]["name"] = name.into();
            body["metadata"]["labels"] = json!({"color": color});
            if name == "b" {
                body["metadata"]["finalizers"] = json!(["example.com/hold"]);
            }
            s.post(path, body).await.is(201);
        }
        s.delete(&format!("{path}?labelSelector=color%3Dred&dryRun=All")).await.is(200);
        s.delete(&format!("{path}?labelSelector=color%3Dred")).await.is(200);
        s.get(path).await.is(200).has("/items/0/metadata/name", "b").has("/items/1/metadata/name", "c");
        s.delete(&format!("{path}?fieldSelector=metadata.name%3Dc")).await.is(200);
        s.delete(path).await.is(200);
        s.merge_patch(&format!("{path}/b"), json!({"metadata": {"finalizers": null}})).await.is(200);
        s.get(path).await.is(200).has("/items", json!([]));
    }
}

async fn deleting_a_collection_in_pages(s: &mut Story) {
    for (path, body) in [(SECRETS, secret("a")), (WIDGETS, widget("a", json!({})))] {
        for name in ["a", "b", "c"] {
            let mut body = body.clone();
            body["metadata"]["name"] = name.into();
            s.post(path, body).await.is(201);
        }
        s.delete(&format!("{path}?limit=2")).await.is(200);
        s.get(path).await.is(200);
        s.delete_with(path, json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}})).await;
        s.get(path).await.is(200);
    }
}

async fn owners_that_are_none(s: &mut Story) {
    let good =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-1111-4111-8111-111111111111"});
    let without = |key: &str| {
        let mut owner = good.clone();
        owner[key] = "".into();
        json!([owner])
    };
    let mut controller = good.clone();
    controller["controller"] = true.into();
    let mut other = controller.clone();
    other["uid"] = "21111111-1111-4111-8111-111111111111".into();
    let mut bad_version = good.clone();
    bad_version["apiVersion"] = "a/b/c".into();
    let mut event = good.clone();
    event["kind"] = "Event".into();
    for owners in [
        without("apiVersion"),
        without("kind"),
        without("name"),
        without("uid"),
        json!([controller, other]),
        json!([bad_version]),
        json!([event]),
        json!([{}]),
        json!("x"),
    ] {
        let mut map = map("a");
        map["metadata"]["ownerReferences"] = owners.clone();
        s.post(MAPS, map).await;
        let mut widget = widget("a", json!({}));
        widget["metadata"]["ownerReferences"] = owners;
        s.post(WIDGETS, widget).await;
    }
}

async fn dependents_go_in_the_background(s: &mut Story) {
    until_widgets_are_collected(s).await;
    let owner = s.post(WIDGETS, widget("owner", json!({}))).await.body().clone();
    let child = s.post(MAPS, owned(map("child"), &owner, true)).await.body().clone();
    s.post(WIDGETS, owned(widget("grandchild", json!({})), &child, true)).await.is(201);
    s.delete_with(&format!("{WIDGETS}/owner"), json!({"propagationPolicy": "Background"})).await.is(200);
    s.get(&format!("{WIDGETS}/owner")).await.is(404);
    s.gone(&format!("{MAPS}/child")).await;
    s.gone(&format!("{WIDGETS}/grandchild")).await;
}

async fn dependents_go_first_in_the_foreground(s: &mut Story) {
    until_widgets_are_collected(s).await;
    let owner = s.post(MAPS, map("owner")).await.body().clone();
    let mut child = owned(widget("child", json!({})), &owner, true);
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    s.post(WIDGETS, child).await.is(201);
    until_collector_has_seen(s, WIDGETS, widget("canary", json!({}))).await;
    let going = s.delete_with(&format!("{MAPS}/owner"), json!({"propagationPolicy": "Foreground"})).await;
    going.is(200).has("/metadata/finalizers/0", "foregroundDeletion");
    let child = format!("{WIDGETS}/child");
    s.eventually(&child, "going", |answer| answer.at("/metadata/deletionTimestamp").is_string()).await;
    s.get(&format!("{MAPS}/owner")).await.is(200);
    s.merge_patch(&child, json!({"metadata": {"finalizers": null}})).await.is(200);
    s.gone(&format!("{MAPS}/owner")).await;
}

async fn dependents_that_do_not_block_are_not_waited_for(s: &mut Story) {
    let owner = s.post(MAPS, map("owner")).await.body().clone();
    let mut child = owned(map("child"), &owner, false);
    child["metadata"]["finalizers"] = json!(["example.com/hold"]);
    s.post(MAPS, child).await.is(201);
    s.delete_with(&format!("{MAPS}/owner"), json!({"propagationPolicy": "Foreground"})).await.is(200);
    s.gone(&format!("{MAPS}/owner")).await;
    let child = format!("{MAPS}/child");
    s.until(&child, "going", |answer| answer.at("/metadata/deletionTimestamp").is_string()).await;
    s.merge_patch(&child, json!({"metadata": {"finalizers": null}})).await.is(200);
    s.gone(&child).await;
}

async fn orphans_stay(s: &mut Story) {
    until_widgets_are_collected(s).await;
    let owner = s.post(WIDGETS, widget("owner", json!({}))).await.body().clone();
    s.post(MAPS, owned(map("child"), &owner, true)).await.is(201);
    until_collector_has_seen(s, MAPS, map("canary")).await;
    let going = s.delete_with(&format!("{WIDGETS}/owner"), json!({"propagationPolicy": "Orphan"})).await;
    going.is(200).has("/metadata/finalizers/0", "orphan");
    s.gone(&format!("{WIDGETS}/owner")).await;
    s.get(&format!("{MAPS}/child")).await.is(200).has("/metadata/ownerReferences", json!(null));
}

async fn a_dependent_of_nobody_goes(s: &mut Story) {
    let owner = s.post(MAPS, map("owner")).await.body().clone();
    s.delete(&format!("{MAPS}/owner")).await.is(200);
    s.post(MAPS, owned(map("late"), &owner, true)).await.is(201);
    s.gone(&format!("{MAPS}/late")).await;
}

async fn a_dependent_of_two_stays_with_one(s: &mut Story) {
    until_widgets_are_collected(s).await;
    let first = s.post(MAPS, map("first")).await.body().clone();
    let second = s.post(WIDGETS, widget("second", json!({}))).await.body().clone();
    let mut child = owned(map("child"), &first, false);
    let mut other = owned(map("x"), &second, false)["metadata"]["ownerReferences"][0].clone();
    other["controller"] = false.into();
    child["metadata"]["ownerReferences"].as_array_mut().unwrap().push(other);
    s.post(MAPS, child).await.is(201);
    s.delete_with(&format!("{MAPS}/first"), json!({"propagationPolicy": "Background"})).await.is(200);
    let child = format!("{MAPS}/child");
    s.eventually(&child, "one owner", |answer| answer.at("/metadata/ownerReferences/1").is_null()).await.is(200);
    s.delete_with(&format!("{WIDGETS}/second"), json!({"propagationPolicy": "Background"})).await.is(200);
    s.gone(&child).await;
}

async fn an_owner_in_another_namespace_does_not_count(s: &mut Story) {
    let other = format!("{}-2", s.ns());
    s.post("/api/v1/namespaces", json!({"metadata": {"name": other}})).await.is(201);
    let owner = s.post(&format!("/api/v1/namespaces/{other}/configmaps"), map("owner")).await.body().clone();
    s.post(MAPS, owned(map("child"), &owner, true)).await.is(201);
    s.gone(&format!("{MAPS}/child")).await;
}
