//! Several versions of one kind, with conversion None.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{definition, object};

cases![
    an_object_is_served_in_each_version,
    each_version_has_its_schema,
    each_version_has_its_columns,
    a_watch_speaks_its_version,
    managers_remember_their_version,
    a_deprecated_version_warns,
];

async fn two_versions(s: &mut Story) -> (String, String) {
    let mut definition = definition(
        s,
        "Thing",
        json!({"type": "object", "properties": {"a": {"type": "string"}, "both": {"type": "string"}}}),
    );
    definition["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "First", "type": "string", "jsonPath": ".spec.a"}]);
    let second = json!({
        "name": "v2beta1", "served": true, "storage": false,
        "deprecated": true, "deprecationWarning": "v2beta1 was a mistake",
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": "Second", "type": "string", "jsonPath": ".spec.b"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"b": {"type": "string", "default": "x"}, "both": {"type": "string", "maxLength": 3}}},
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        }}},
    });
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    let first = s.define(definition).await;
    let second = first.replace("/v1/", "/v2beta1/");
    (first, second)
}

fn second_version(s: &Story, name: &str, spec: Value) -> Value {
    let mut object = object(s, "Thing", name, spec);
    object["apiVersion"] = format!("{}/v2beta1", s.group()).into();
    object
}

async fn an_object_is_served_in_each_version(s: &mut Story) {
    let (first, second) = two_versions(s).await;
    s.post(&first, object(s, "Thing", "a", json!({"a": "x", "both": "y"}))).await.is(201);
    s.get(&format!("{second}/a")).await.is(200).has("/spec/a", json!(null));
    s.post(&second, second_version(s, "b", json!({"b": "x", "both": "y"}))).await.is(201);
    s.get(&format!("{first}/b")).await.is(200);
    s.get(&first).await.is(200);
    s.get(&second).await.is(200);
    s.merge_patch(&format!("{second}/a"), json!({"spec": {"b": "z"}})).await.is(200);
    s.get(&format!("{first}/a")).await.is(200);
    s.delete(&format!("{second}/a")).await.is(200);
}

async fn each_version_has_its_schema(s: &mut Story) {
    let (first, second) = two_versions(s).await;
    s.post(&first, object(s, "Thing", "a", json!({"both": "long"}))).await.is(201);
    s.post(&second, second_version(s, "b", json!({"both": "long"}))).await.is(422);
    s.merge_patch(&format!("{second}/a"), json!({"metadata": {"labels": {"a": "b"}}})).await;
    s.post(&first, second_version(s, "c", json!({}))).await;
    s.merge_patch(&format!("{second}/a/status"), json!({"status": {"phase": "x"}})).await;
    s.merge_patch(&format!("{first}/a/status"), json!({"status": {"phase": "x"}})).await.is(404);
}

async fn each_version_has_its_columns(s: &mut Story) {
    let (first, second) = two_versions(s).await;
    s.post(&first, object(s, "Thing", "a", json!({"a": "x"}))).await.is(201);
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    s.get_as(&first, table).await.is(200).has("/columnDefinitions/1/name", "First");
    s.get_as(&second, table).await.is(200).has("/columnDefinitions/1/name", "Second");
}

async fn a_watch_speaks_its_version(s: &mut Story) {
    let (first, second) = two_versions(s).await;
    let list = s.get(&second).await;
    let mut watch = s.watch(&format!("{second}?watch=true&resourceVersion={}", list.revision())).await;
    s.post(&first, object(s, "Thing", "a", json!({"a": "x"}))).await.is(201);
    s.delete(&format!("{first}/a")).await.is(200);
    watch.take(s, 2).await;
}

async fn managers_remember_their_version(s: &mut Story) {
    let (first, second) = two_versions(s).await;
    s.apply(&format!("{first}/a?fieldManager=one"), object(s, "Thing", "a", json!({"a": "x", "both": "y"})))
        .await
        .is(201);
    s.apply(&format!("{second}/a?fieldManager=two"), second_version(s, "a", json!({"b": "z"})))
        .await
        .is(500)
        .says("field not declared in schema");
    s.apply(&format!("{second}/a?fieldManager=one"), second_version(s, "a", json!({"both": "y"}))).await.is(200);
    s.get(&format!("{first}/a")).await.is(200);
}

async fn a_deprecated_version_warns(s: &mut Story) {
    let (first, second) = two_versions(s).await;
    s.post(&second, second_version(s, "a", json!({}))).await.is(201).warns("v2beta1 was a mistake");
    s.get(&second).await.is(200).warns("v2beta1 was a mistake");
    s.get(&first).await.is(200);
}
