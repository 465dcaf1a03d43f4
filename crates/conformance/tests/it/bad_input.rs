//! Input that no program should send, and what it is told.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{MAPS, SECRETS, WIDGETS, map, widget};

cases![
    bodies_that_are_not_json,
    bodies_that_are_yaml,
    yaml_that_is_none,
    content_types_that_nobody_speaks,
    bodies_that_are_too_big,
    bodies_that_are_too_deep,
    duplicate_keys,
    bodies_of_other_shapes,
    text_that_is_not_utf8,
    queries_that_make_no_sense,
    paths_that_are_odd,
    lists_instead_of_objects,
];

const JSON: (&str, &str) = ("content-type", "application/json");

async fn bodies_that_are_not_json(s: &mut Story) {
    for path in [MAPS, WIDGETS] {
        for body in ["", "{", "text", "{\"a\":}", "{\"kind\": \"ConfigMap\",}", "{} {}", "\u{feff}{}", "nul", "'a'"] {
            s.send("POST", path, &[JSON], body).await;
        }
    }
}

async fn bodies_that_are_yaml(s: &mut Story) {
    let yaml = [("content-type", "application/yaml")];
    s.send("POST", MAPS, &yaml, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {k: v}\n").await.is(201);
    let widget = "apiVersion: suite.example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3\n  free: {yes: on, number: 0x10, date: 2001-01-01}\n";
    s.send("POST", WIDGETS, &yaml, widget).await.is(201);
    s.send("PUT", &format!("{MAPS}/a"), &yaml, "metadata:\n  name: a\ndata: {k: w}\n").await.is(200);
}

async fn yaml_that_is_none(s: &mut Story) {
    let yaml = [("content-type", "application/yaml")];
    for path in [MAPS, WIDGETS] {
        for body in [
            "a: b: c",
            "\tx",
            "- a\n- b",
            "a: &x [*x]",
            "a: !!python/object:x {}",
            "text",
            "a: 1\n---\nb: 2",
            "{a: 1, a: 2}",
        ] {
            s.send("POST", path, &yaml, body).await;
        }
    }
}

async fn content_types_that_nobody_speaks(s: &mut Story) {
    for (path, body) in [(MAPS, map("a").to_string()), (WIDGETS, widget("a", json!({})).to_string())] {
        for kind in ["text/plain", "application/xml", "application/x-www-form-urlencoded", "nonsense", ";"] {
            s.send("POST", path, &[("content-type", kind)], body.clone()).await;
        }
        s.send("POST", &format!("{path}?dryRun=All"), &[], body.clone()).await.is(201);
        let charset = [("content-type", "application/json; charset=utf-8")];
        s.send("POST", &format!("{path}?dryRun=All"), &charset, body).await;
    }
}

async fn bodies_that_are_too_big(s: &mut Story) {
    let big = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(3 * 1024 * 1024)}}).to_string();
    s.send("POST", MAPS, &[JSON], big.clone()).await.is(413);
    s.send("POST", WIDGETS, &[JSON], big.clone()).await.is(413);
    s.post(MAPS, map("a")).await.is(201);
    s.send("PUT", &format!("{MAPS}/a"), &[JSON], big.clone()).await.is(413);
    s.send("PATCH", &format!("{MAPS}/a"), &[("content-type", "application/merge-patch+json")], big).await.is(413);
}

async fn bodies_that_are_too_deep(s: &mut Story) {
    let deep = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    for levels in [20_000] {
        let body = format!(r#"{{"metadata":{{"name":"a"}},"data":{}}}"#, deep(levels));
        let answer = s.ask("POST", MAPS, &[JSON], body.clone()).await;
        s.record("a deep ConfigMap", json!([answer.code(), answer.at("/reason")]));
        let body = format!(
            r#"{{"apiVersion":"suite.example.com/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"free":{}}}}}"#,
            deep(levels)
        );
        let answer = s.ask("POST", WIDGETS, &[JSON], body).await;
        s.record("a deep widget", json!([answer.code(), answer.at("/reason")]));
        let answer = s.ask("POST", MAPS, &[JSON], "[".repeat(levels)).await;
        s.record("deep brackets", json!([answer.code(), answer.at("/reason")]));
    }
    let free: serde_json::Value = serde_json::from_str(&deep(50)).unwrap();
    s.post(WIDGETS, widget("a", json!({"free": free}))).await.is(201);
}

async fn duplicate_keys(s: &mut Story) {
    let map = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"b"},"data":{"k":"v","k":"w"}}"#;
    let widget =
        r#"{"apiVersion":"suite.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}"#;
    for (path, body) in [(MAPS, map), (WIDGETS, widget)] {
        for mode in ["Ignore", "Warn", "Strict"] {
            s.send("POST", &format!("{path}?dryRun=All&fieldValidation={mode}"), &[JSON], body).await;
        }
        s.send("POST", &format!("{path}?dryRun=All"), &[JSON], body).await;
    }
}

async fn bodies_of_other_shapes(s: &mut Story) {
    for path in [MAPS, WIDGETS] {
        for body in
            ["[]", "7", "\"text\"", "null", "true", "{}", "{\"kind\": 7}", "{\"apiVersion\": []}", "{\"metadata\": []}"]
        {
            s.send("POST", path, &[JSON], body).await;
        }
    }
}

async fn text_that_is_not_utf8(s: &mut Story) {
    let body = b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"\xff\xfe\"}}".to_vec();
    s.send("POST", MAPS, &[JSON], body).await;
    let body = b"{\"metadata\":{\"name\":\"b\"},\"data\":{\"k\":\"\\ud800\"}}".to_vec();
    s.send("POST", MAPS, &[JSON], body).await;
}

async fn queries_that_make_no_sense(s: &mut Story) {
    for path in [SECRETS, WIDGETS] {
        s.get(&format!("{path}?nothing=1&&=x&limit=")).await.is(400);
        s.get(&format!("{path}?limit=%zz")).await;
        s.get(&format!("{path}?limit=1&limit=2")).await;
        s.get(&format!("{path}?&limit=1")).await.is(200);
    }
    s.post(&format!("{MAPS}?dryRun=Some"), map("a")).await.is(422);
    s.post(&format!("{MAPS}?dryRun=All&dryRun=All"), map("a")).await;
    s.post(&format!("{MAPS}?fieldValidation=Sometimes"), map("a")).await.is(422);
    s.post(&format!("{WIDGETS}?dryRun=Some"), widget("a", json!({}))).await.is(422);
    s.post(&format!("{WIDGETS}?fieldValidation=Sometimes"), widget("a", json!({}))).await.is(422);
    s.put(&format!("{MAPS}/a?dryRun=Some"), map("a")).await.is(422);
}

async fn paths_that_are_odd(s: &mut Story) {
    for path in [
        "/api/v1/namespaces/{ns}/secrets/",
        "/api/v1//namespaces/{ns}/secrets",
        "/api/v1/namespaces/{ns}/configmaps/%20",
        "/api/v1/namespaces/{ns}/configmaps/a%2Fb",
        "/api/v1/namespaces/{ns}/configmaps/a%00b",
        "/apis/suite.example.com/v1/namespaces/{ns}/widgets/",
        "/apis/suite.example.com/v1/namespaces/{ns}/widgets/a%2Fb",
    ] {
        s.get(path).await;
    }
}

async fn lists_instead_of_objects(s: &mut Story) {
    s.post(MAPS, json!({"apiVersion": "v1", "kind": "List", "items": []})).await;
    s.post(MAPS, json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": [map("a")]})).await;
    s.post(WIDGETS, json!({"apiVersion": "suite.example.com/v1", "kind": "WidgetList", "items": []})).await;
}
