//! Status and scale.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{WIDGETS, definition, object, widget};

cases![
    the_status_is_written_by_its_own_path,
    the_status_path_leaves_the_rest_alone,
    a_status_that_is_bad,
    a_kind_without_status_path,
    the_scale_is_read_and_written,
    scales_that_make_no_sense,
    the_status_of_a_namespace,
];

const A: &str = "/apis/suite.example.com/v1/namespaces/{ns}/widgets/a";

async fn the_status_is_written_by_its_own_path(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"size": 1}))).await.is(201);
    let status = format!("{A}/status");
    s.get(&status).await.is(200);
    let mut found = s.get(A).await.body().clone();
    found["status"] = json!({"phase": "Up"});
    s.put(&status, found.clone()).await.is(200).has("/status/phase", "Up");
    s.put(&status, found).await.is(409);
    s.json_patch(&status, json!([{"op": "add", "path": "/status/replicas", "value": 2}])).await.is(200);
    s.merge_patch(A, json!({"status": {"phase": "Down"}})).await.is(200).has("/status/phase", "Up");
    s.merge_patch(&status, json!({"status": null})).await.is(200).has("/status", json!(null));
    s.merge_patch(&format!("{WIDGETS}/nobody/status"), json!({})).await.is(404);
}

async fn the_status_path_leaves_the_rest_alone(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"size": 1}))).await.is(201);
    let patch = json!({
        "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/x"]},
        "spec": {"size": 2}, "status": {"phase": "Up"},
    });
    let patched = s.merge_patch(&format!("{A}/status"), patch).await;
    patched.is(200).has("/spec/size", 1).has("/metadata/labels", json!(null));
    s.merge_patch(&format!("{A}/status"), json!({"spec": {"size": "bad"}, "status": {"phase": "On"}})).await;
}

async fn a_status_that_is_bad(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    let status = format!("{A}/status");
    s.merge_patch(&status, json!({"status": {"replicas": "two"}})).await.is(422);
    s.merge_patch(&status, json!({"status": "text"})).await.is(422);
    s.merge_patch(&status, json!({"status": {"conditions": [{"type": "a"}]}})).await.is(422);
    let twice = json!({"type": "a", "status": "True"});
    s.merge_patch(&status, json!({"status": {"conditions": [twice, twice]}})).await.is(422);
    s.merge_patch(&status, json!({"status": {"unknown": 1}})).await.is(200);
    s.merge_patch(&format!("{status}?fieldValidation=Strict"), json!({"status": {"unknown": 1}})).await.is(422);
}

async fn a_kind_without_status_path(s: &mut Story) {
    let definition = crate::samples::definition_with_schema(
        s,
        "Thing",
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
            "status": {"type": "object", "properties": {"b": {"type": "string"}}},
        }}),
    );
    let path = s.define(definition).await;
    let mut body = object(s, "Thing", "a", json!({"a": "x"}));
    body["status"] = json!({"b": "y"});
    s.post(&path, body).await.is(201).has("/status/b", "y");
    s.merge_patch(&format!("{path}/a"), json!({"status": {"b": "z"}})).await.is(200).has("/metadata/generation", 2);
    s.get(&format!("{path}/a/status")).await.is(404);
}

async fn the_scale_is_read_and_written(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"replicas": 2}))).await.is(201);
    let scale = format!("{A}/scale");
    s.get(&scale).await.is(200).has("/spec/replicas", 2);
    s.merge_patch(&format!("{A}/status"), json!({"status": {"replicas": 1, "selector": "a=b"}})).await.is(200);
    let mut found = s.get(&scale).await.body().clone();
    found["spec"]["replicas"] = 5.into();
    s.put(&scale, found).await.is(200).has("/spec/replicas", 5).has("/status/replicas", 1);
    s.merge_patch(&scale, json!({"spec": {"replicas": 7}})).await.is(200);
    s.json_patch(&scale, json!([{"op": "replace", "path": "/spec/replicas", "value": 8}])).await.is(200);
    s.get(A).await.is(200).has("/spec/replicas", 8);
    s.post(WIDGETS, widget("b", json!({}))).await.is(201);
    s.get(&format!("{WIDGETS}/b/scale")).await.is(500).says("does not exist");
    s.merge_patch(&format!("{WIDGETS}/b/scale"), json!({"spec": {"replicas": 1}})).await;
}

async fn scales_that_make_no_sense(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"replicas": 2}))).await.is(201);
    let scale = format!("{A}/scale");
    s.merge_patch(&scale, json!({"spec": {"replicas": -1}})).await.is(422);
    s.merge_patch(&scale, json!({"spec": {"replicas": "two"}})).await;
    let mut found = s.get(&scale).await.body().clone();
    found["metadata"]["resourceVersion"] = "1".into();
    s.put(&scale, found.clone()).await.is(409);
    found["metadata"]["name"] = "b".into();
    s.put(&scale, found.clone()).await;
    found["kind"] = "Widget".into();
    s.put(&scale, found).await;
    s.get(&format!("{WIDGETS}/nobody/scale")).await.is(404);
    let plain = definition(s, "Plain", json!({"type": "object"}));
    let path = s.define(plain).await;
    s.get(&format!("{path}/a/scale")).await.is(404);
}

async fn the_status_of_a_namespace(s: &mut Story) {
    let path = "/api/v1/namespaces/{ns}";
    s.get(&format!("{path}/status")).await.is(200).has("/status/phase", "Active");
    let mut found = s.get(path).await.body().clone();
    found["status"]["conditions"] =
        json!([{"type": "Suite", "status": "True", "lastTransitionTime": "2001-01-01T00:00:00Z"}]);
    s.put(&format!("{path}/status"), found).await.is(200);
    s.merge_patch(path, json!({"status": {"phase": "Terminating"}})).await.is(200).has("/status/phase", "Active");
}
