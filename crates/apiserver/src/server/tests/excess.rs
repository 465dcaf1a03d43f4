//! Bodies that would take very long or very much memory. Each is refused or done soon, and others are answered meanwhile.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use store::Store;
use tokio::time::Instant;
use tower_service::Service as _;

use super::whole::{DEFINITIONS, definition, whole};
use super::{GADGETS, WIDGETS, World, read, widget};

/// Debug builds on a busy machine are slow; what this is about took minutes.
const SOON: Duration = Duration::from_secs(20);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = work.await;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    done
}

#[tokio::test]
async fn a_hundred_thousand_wrong_values_get_a_thousand_complaints() {
    let world = World::new().await;
    let tags: Vec<usize> = (0..100_000).collect();
    let refused = soon(world.post(WIDGETS, widget("w", json!({"spec": {"tags": tags}})))).await;
    assert_eq!((refused.code, refused.body["reason"].as_str()), (422, Some("Invalid")), "{}", refused.code);
    assert_eq!(refused.body["details"]["causes"].as_array().unwrap().len(), 1_000);
    assert!(refused.message().contains("spec.tags[999]: Invalid value: \"integer\""));
}

#[tokio::test]
async fn very_many_keys_that_are_there_twice_are_found_soon_and_a_hundred_are_told() {
    let world = World::new().await;
    let body = |name: &str, count: usize| {
        let mut keys = String::new();
        for key in 0..count {
            let _ = write!(keys, "\"k{key}\":1,\"k{key}\":2,");
        }
        let head = "\"apiVersion\":\"verbs.example.com/v1\",\"kind\":\"Gadget\"";
        format!("{{{head},\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{{{keys}\"z\":1}}}}")
    };
    let post = async |validation: &str, body: String| {
        let path = format!("{GADGETS}?fieldValidation={validation}");
        soon(world.call("POST", &path, "application/json", body)).await
    };
    let strict = post("Strict", body("a", 120_000)).await;
    assert_eq!(strict.code, 400, "{}", strict.code);
    assert_eq!(strict.message().matches("duplicate field").count(), 100);
    let warned = post("Warn", body("b", 10_000)).await;
    assert_eq!(warned.code, 201, "{}", warned.code);
    assert_eq!(warned.warnings().len(), 100);
    assert_eq!(warned.body["spec"]["k7"], 2);
}

#[tokio::test]
async fn long_warnings_are_cut_as_kubernetes_cuts_them() {
    let world = World::new().await;
    let mut object = widget("w", json!({}));
    for field in 0..30 {
        object["spec"][format!("{field}{}", "x".repeat(300))] = 1.into();
    }
    let made = world.post(&format!("{WIDGETS}?fieldValidation=Warn"), object).await;
    assert_eq!(made.code, 201);
    assert_eq!(made.warnings().len(), 16, "4,096 characters in pieces of 256");
}

/// A definition with these schemas of fields of `spec`.
fn defining(fields: Value) -> Value {
    let mut definition = definition();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"] = fields;
    definition
}

fn costly_patterns() -> Value {
    let fields =
        (0..200).map(|n| (format!("f{n}"), json!({"type": "string", "pattern": format!("^\\p{{L}}{{{}}}$", 300 + n)})));
    defining(Value::Object(fields.collect()))
}

#[tokio::test]
async fn patterns_that_are_too_costly_together_are_refused_soon() {
    let world = whole(Store::memory()).await;
    let refused = soon(world.post(DEFINITIONS, costly_patterns())).await;
    assert_eq!(refused.code, 422, "{}", refused.code);
    let sentence = "must be a valid regular expression, but isn't: expression too large";
    assert!(refused.message().contains(sentence), "{}", &refused.message()[..500]);

    let same =
        (0..2_000).map(|n| (format!("f{n}"), json!({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"})));
    let made = soon(world.post(DEFINITIONS, defining(Value::Object(same.collect())))).await;
    assert_eq!(made.code, 201, "what is usual is taken, however often it is there: {}", made.text);
}

#[tokio::test]
async fn defaults_that_would_fill_the_memory_are_refused() {
    let world = whole(Store::memory()).await;
    let item = json!({"type": "object", "properties": {"filler": {"type": "string", "default": "x".repeat(20_000)}}});
    super::whole::define_as(&world, &defining(json!({"items": {"type": "array", "items": item}}))).await;
    let items = |count: usize| widget("w", json!({"spec": {"color": null, "items": vec![json!({}); count]}}));
    let default = "/apis/verbs.example.com/v1/namespaces/default/widgets";
    let refused = soon(world.post(default, items(50_000))).await;
    assert_eq!(refused.code, 400, "{}", refused.code);
    let sentence = "the defaults of its schema would make it larger by more than 3145728 bytes";
    assert!(refused.message().ends_with(sentence), "{}", refused.message());
    let made = world.post(default, items(50)).await;
    assert_eq!(made.code, 201, "{}", made.code);
    assert_eq!(made.text.len() / 1_000_000, 1, "a megabyte of defaults is fine");
}

/// Two threads, as a site has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_within_a_second_while_others_ask_for_much() {
    let world = whole(Store::memory()).await;
    let mut heavy = tokio::task::JoinSet::new();
    for n in 0..4 {
        let mut router = world.server.router();
        let tags: Vec<usize> = (0..150_000).collect();
        let (path, body) = if n % 2 == 0 {
            (DEFINITIONS.to_owned(), costly_patterns())
        } else {
            ("/api/v1/namespaces/default/configmaps".to_owned(), json!({"metadata": {"name": "c"}, "data": tags}))
        };
        let request = Request::post(path).header("Content-Type", "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        heavy.spawn(async move { router.call(request).await.unwrap().status() });
    }
    health_is_told_within_a_second(&world, heavy).await;
    world.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_within_a_second_while_rules_run_out_of_budget() {
    let world = whole(Store::memory()).await;
    let rule = |n: usize| json!({"rule": format!("self.all(x, self.all(y, x + y > -{n}))")});
    let rules: Vec<Value> = (1..=60).map(rule).collect();
    let numbers = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rules});
    super::whole::define_as(&world, &defining(json!({"numbers": numbers}))).await;
    let mut heavy = tokio::task::JoinSet::new();
    for n in 0..4 {
        let mut router = world.server.router();
        let body = widget(&format!("w{n}"), json!({"spec": {"color": null, "numbers": vec![1; 200]}}));
        let path = "/apis/verbs.example.com/v1/namespaces/default/widgets";
        let request = Request::post(path).header("Content-Type", "application/json");
        let request = request.body(Body::from(body.to_string())).unwrap();
        heavy.spawn(async move { router.call(request).await.unwrap().status() });
    }
    health_is_told_within_a_second(&world, heavy).await;
    world.server.stop().await;
}

/// Asks until all that is heavy has been refused.
async fn health_is_told_within_a_second(world: &World, mut heavy: tokio::task::JoinSet<http::StatusCode>) {
    let mut asked = 0;
    let mut slowest = Duration::ZERO;
    while !heavy.is_empty() {
        let begun = Instant::now();
        let mut router = world.server.router();
        let healthy = tokio::task::JoinSet::from_iter([async move {
            read(router.call(Request::get("/healthz").body(Body::empty()).unwrap()).await.unwrap()).await.text
        }]);
        assert_eq!(healthy.join_all().await, ["ok"]);
        slowest = slowest.max(begun.elapsed());
        asked += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
        while let Some(done) = heavy.try_join_next() {
            assert!(done.unwrap().is_client_error());
        }
    }
    assert!(asked > 2, "nothing took long: {asked}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}
