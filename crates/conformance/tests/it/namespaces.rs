//! Namespaces: where objects may be, and how they end.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{MAPS, WIDGETS, map, widget};

cases![
    a_namespace_is_made,
    the_first_namespaces,
    nothing_is_made_in_a_missing_namespace,
    a_namespace_takes_everything_along,
    a_terminating_namespace_takes_nothing_new,
    a_namespace_with_finalizers_of_its_own,
    a_namespace_that_must_stay,
    a_namespace_has_a_default_account,
];

const NAMESPACES: &str = "/api/v1/namespaces";

async fn a_namespace_is_made(s: &mut Story) {
    let name = format!("{}-2", s.ns());
    let made = s
        .post(
            NAMESPACES,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"a": "b"}}}),
        )
        .await;
    made.is(201)
        .has("/metadata/labels/kubernetes.io~1metadata.name", name.clone())
        .has("/spec/finalizers/0", "kubernetes");
    s.post(NAMESPACES, json!({"metadata": {"name": name}})).await.is(409);
    let one = format!("{NAMESPACES}/{name}");
    s.merge_patch(&one, json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}})).await;
    s.merge_patch(&one, json!({"metadata": {"labels": null}})).await;
    s.merge_patch(&one, json!({"spec": {"finalizers": []}})).await.is(200);
    s.merge_patch(&one, json!({"metadata": {"annotations": {"x": "y"}}})).await.is(200);
}

async fn the_first_namespaces(s: &mut Story) {
    for name in ["default", "kube-system", "kube-public"] {
        let found = s.ask("GET", &format!("{NAMESPACES}/{name}"), &[], "").await;
        found.is(200);
        s.record(name, json!([found.at("/metadata/labels"), found.at("/spec"), found.at("/status")]));
    }
}

async fn nothing_is_made_in_a_missing_namespace(s: &mut Story) {
    s.post("/api/v1/namespaces/no-such-namespace/configmaps", map("a")).await.is(404);
    s.post("/apis/suite.example.com/v1/namespaces/no-such-namespace/widgets", widget("a", json!({}))).await.is(404);
    s.post("/api/v1/namespaces/no-such-namespace/configmaps?dryRun=All", map("a")).await.is(404);
    s.post("/api/v1/namespaces/Bad_Name/configmaps", map("a")).await.is(404);
    s.post("/api/v1/namespaces/no-such-namespace/secrets", json!({"metadata": {"name": "a"}})).await.is(404);
}

async fn a_namespace_takes_everything_along(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    let going = s.delete("/api/v1/namespaces/{ns}").await;
    going.is(200).has("/status/phase", "Terminating");
    s.gone("/api/v1/namespaces/{ns}").await;
    s.get(&format!("{MAPS}/a")).await.is(404);
    s.get(&format!("{WIDGETS}/a")).await.is(404);
    s.post(NAMESPACES, json!({"metadata": {"name": s.ns()}})).await.is(201);
    s.get("/api/v1/namespaces/{ns}/secrets").await.is(200).has("/items", json!([]));
}

async fn a_terminating_namespace_takes_nothing_new(s: &mut Story) {
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    s.post(MAPS, held).await.is(201);
    s.delete("/api/v1/namespaces/{ns}").await.is(200);
    s.post(MAPS, map("late")).await.is(403).says("because it is being terminated");
    s.post(WIDGETS, widget("late", json!({}))).await.is(403);
    s.apply(&format!("{MAPS}/late?fieldManager=one"), map("late")).await.is(403);
    s.eventually(&format!("{MAPS}/held"), "going", |answer| answer.at("/metadata/deletionTimestamp").is_string()).await;
    s.merge_patch(&format!("{MAPS}/held"), json!({"data": {"k": "v"}})).await.is(200);
    let conditions =
        s.until("/api/v1/namespaces/{ns}", "explained", |answer| answer.at("/status/conditions/4").is_object()).await;
    let mut told: Vec<_> = conditions.at("/status/conditions").as_array().into_iter().flatten().cloned().collect();
    told.sort_by_key(|one| one["type"].to_string());
    let told: Vec<_> =
        told.iter().map(|one| json!([one["type"], one["status"], one["reason"], one["message"]])).collect();
    s.record("conditions", told.into());
    s.merge_patch(&format!("{MAPS}/held"), json!({"metadata": {"finalizers": null}})).await.is(200);
    s.gone("/api/v1/namespaces/{ns}").await;
}

async fn a_namespace_with_finalizers_of_its_own(s: &mut Story) {
    let one = "/api/v1/namespaces/{ns}";
    let mut found = s.get(one).await.body().clone();
    found["spec"]["finalizers"] = json!(["kubernetes", "example.com/mine"]);
    s.put(&format!("{one}/finalize"), found).await.is(200);
    s.delete(one).await.is(200);
    let mut left = s
        .until(one, "emptied", |answer| answer.at("/spec/finalizers") == &json!(["example.com/mine"]))
        .await
        .body()
        .clone();
    s.record("finalizers that are left", left["spec"]["finalizers"].clone());
    left["spec"]["finalizers"] = json!([]);
    s.put(&format!("{one}/finalize"), left.clone()).await;
    s.gone(one).await;
    let mut bad = s.post(NAMESPACES, json!({"metadata": {"name": s.ns()}})).await.body().clone();
    bad["spec"]["finalizers"] = json!(["not qualified"]);
    s.put(&format!("{one}/finalize"), bad).await.is(422);
}

async fn a_namespace_that_must_stay(s: &mut Story) {
    for name in ["default", "kube-system"] {
        s.delete(&format!("{NAMESPACES}/{name}")).await.is(403).says("this namespace may not be deleted");
    }
}

async fn a_namespace_has_a_default_account(s: &mut Story) {
    let path = "/api/v1/namespaces/{ns}/serviceaccounts/default";
    let found = s.until(path, "made", |answer| answer.code() == 200).await;
    s.record("its name", found.at("/metadata/name").clone());
    s.delete(path).await.is(200);
    let again = s.until(path, "made again", |answer| answer.code() == 200).await;
    s.record("again", json!(again.uid() != found.uid()));
}
