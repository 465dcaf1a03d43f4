use futures::FutureExt;
use serde_json::json;

use super::{WIDGETS, World, widget};

#[tokio::test(start_paused = true)]
async fn paths_that_lead_nowhere() {
    let world = World::new().await;
    for path in [
        "/nope",
        "/apis/verbs.example.com/v1/nope",
        "/apis/verbs.example.com/v9/widgets",
        "/apis/nope.example.com/v1/widgets",
        "/apis/verbs.example.com/v1/namespaces/verbs-a/gadgets",
    ] {
        let answer = world.get(path).await;
        assert_eq!((answer.code, answer.text.as_str()), (404, "404 page not found\n"), "{path}");
    }
    let posted = world.post("/apis/verbs.example.com/v1/widgets", widget("a", json!({}))).await;
    assert_eq!((posted.code, posted.text.as_str()), (404, "404 page not found\n"));
    for path in ["/api/v1/namespaces/verbs-a/nope", "/api/v1/namespaces/verbs-a/configmaps/a/b", "/api/v2/x"] {
        let answer = world.get(path).await;
        answer.refused(404, "NotFound", "the server could not find the requested resource");
        assert_eq!(answer.body["details"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn methods_that_are_not_there() {
    let world = World::new().await;
    world.widget("s", json!({})).await;
    let refused = world.post(&format!("{WIDGETS}/s/status"), json!({})).await;
    let message = "create is not supported on resources of kind \"widgets.verbs.example.com\"";
    refused.refused(405, "MethodNotAllowed", message);
    assert_eq!(refused.body["details"], json!({"group": "verbs.example.com", "kind": "widgets"}));
    for (method, path) in [
        ("DELETE", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/configmaps"),
        ("POST", "/api/v1/configmaps"),
        ("PUT", "/api/v1/namespaces/verbs-a/configmaps"),
        ("POST", "/api/v1/namespaces/verbs-a/configmaps/a"),
        ("DELETE", "/version"),
    ] {
        let answer = world.call(method, path, "application/json", "{}").await;
        let message = "the server does not allow this method on the requested resource";
        answer.refused(405, "MethodNotAllowed", message);
    }
}

#[tokio::test(start_paused = true)]
async fn health_version_and_metrics() {
    let world = World::new().await;
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping"] {
        assert_eq!(world.get(path).await.text, "ok");
    }
    assert!(world.get("/readyz?verbose").await.text.ends_with("readyz check passed\n"));
    assert_eq!(world.get("/version").await.body["minor"], "33");
    world.get(WIDGETS).await;
    let _watch = world.watch(&format!("{WIDGETS}?watch=1")).await;
    let metrics = world.get("/metrics").await.text;
    for line in [
        r#"apiserver_request_total{verb="LIST",group="verbs.example.com",resource="widgets",code="200"} 1"#,
        r#"apiserver_registered_watchers{verb="WATCH",group="verbs.example.com",resource="widgets"} 1"#,
        "apiserver_store_revision ",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_are_not_cached_and_pretty_for_eyes() {
    let world = World::new().await;
    let answer = world.get(WIDGETS).await;
    assert_eq!(answer.headers["cache-control"], "no-cache, private");
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(!answer.text.contains('\n'));
    assert!(world.get(&format!("{WIDGETS}?pretty=true")).await.text.contains("\n  \"items\": []"));
}

#[tokio::test(start_paused = true)]
async fn discovery_is_answered() {
    let world = World::new().await;
    assert_eq!(world.get("/api").await.body["versions"], json!(["v1"]));
    assert_eq!(world.get("/apis/verbs.example.com/v1").await.body["kind"], "APIResourceList");
}

#[tokio::test(start_paused = true)]
async fn built_ins_have_types() {
    let world = World::new().await;
    let cannot = |why: &str| format!("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: {why}");
    for (body, why) in [
        (
            r#"{"metadata":{"name":"x","labels":{"a":1}}}"#,
            cannot("metadata.labels[a] must be a string, not the number 1"),
        ),
        (r#"{"metadata":{"name":"x"},"data":{"a":1}}"#, cannot("data.a must be of type string, not the number 1")),
        (r#"{"metadata":{"name":"x"},"data":7}"#, cannot("data must be of type object, not the number 7")),
        (
            r#"{"kind":"Secret","metadata":{"name":"x"}}"#,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: it says that it is a \"Secret\" of \"\", and a \
             \"ConfigMap\" of \"v1\" belongs here"
                .to_owned(),
        ),
        (
            r#"{"kind":"ConfigMap","apiVersion":"v2","metadata":{"name":"x"}}"#,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: it says that it is a \"ConfigMap\" of \"v2\", \
             and a \"ConfigMap\" of \"v1\" belongs here"
                .to_owned(),
        ),
    ] {
        let maps = "/api/v1/namespaces/verbs-a/configmaps";
        world.call("POST", maps, "application/json", body).await.refused(400, "BadRequest", &why);
    }
}

#[tokio::test(start_paused = true)]
async fn patches_that_race_all_go_through() {
    let world = World::new().await;
    world.widget("r", json!({})).await;
    let path = format!("{WIDGETS}/r");
    let patches = (0..20).map(|n| world.merge(&path, json!({"metadata": {"labels": {format!("l{n}"): "x"}}})).boxed());
    let answers = futures::future::join_all(patches).await;
    assert!(answers.iter().all(|answer| answer.code == 200));
    let object = world.get(&path).await.body;
    assert_eq!(object["metadata"]["labels"].as_object().unwrap().len(), 20);
    assert_eq!(object["metadata"]["generation"], 1);
}
