//! The server as clients see it, without a socket. Texts are those of the real kube-apiserver.

mod creating;
mod deleting;
mod excess;
mod listing;
mod manners;
mod updating;
mod watching;
mod whole;

use std::sync::Arc;

use axum::body::Body;
use cel::Rules;
use futures::StreamExt;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use schema::Schema;
use serde_json::{Value, json};
use store::{Limits, Store};
use tower_service::Service;

use super::{Config, Server};
use crate::auth::StaticTokens;
use crate::builtins;
use crate::catalogue::Catalogue;
use crate::clock::Clock;
use crate::resource::{Hooks, Resource, Scale, Scope, Version};

/// The collection that most tests use.
const WIDGETS: &str = "/apis/verbs.example.com/v1/namespaces/verbs-a/widgets";
const GADGETS: &str = "/apis/verbs.example.com/v1/gadgets";
const MERGE: &str = "application/merge-patch+json";

struct World {
    server: Server,
}

/// An answer that has been read to its end.
struct Answer {
    code: u16,
    headers: HeaderMap,
    body: Value,
    text: String,
}

impl World {
    async fn new() -> Self {
        Self::with(Store::memory()).await
    }

    async fn with_history(limits: Limits) -> Self {
        Self::with(Store::memory_with(limits)).await
    }

    async fn with(store: Store) -> Self {
        let mut resources = builtins::resources().unwrap();
        resources.push(Arc::new(widgets()));
        resources.push(Arc::new(gadgets()));
        let server = Server::bare(config(store), Catalogue::new(resources));
        let world = Self { server: server.unwrap() };
        let made = world.post("/api/v1/namespaces", json!({"metadata": {"name": "verbs-a"}})).await;
        assert_eq!(made.code, 201, "{}", made.text);
        world
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.server.router().call(request).await.unwrap()
    }

    async fn call(&self, method: &str, path: &str, kind: &str, body: impl Into<Body>) -> Answer {
        let request = Request::builder().method(method).uri(path).header("User-Agent", "tester/1");
        let request = if kind.is_empty() { request } else { request.header("Content-Type", kind) };
        read(self.send(request.body(body.into()).unwrap()).await).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "", "").await
    }

    async fn get_as(&self, path: &str, accept: &str) -> Answer {
        read(self.send(Request::builder().uri(path).header("Accept", accept).body(Body::empty()).unwrap()).await).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, "application/json", body.to_string()).await
    }

    async fn put(&self, path: &str, body: Value) -> Answer {
        self.call("PUT", path, "application/json", body.to_string()).await
    }

    async fn merge(&self, path: &str, body: Value) -> Answer {
        self.call("PATCH", path, MERGE, body.to_string()).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, "", "").await
    }

    /// Makes a widget that must be welcome.
    async fn widget(&self, name: &str, more: Value) -> Value {
        let made = self.post(WIDGETS, widget(name, more)).await;
        assert_eq!(made.code, 201, "{}", made.text);
        made.body
    }

    /// Events of a watch, as they come.
    async fn watch(&self, path: &str) -> Events {
        self.watch_as(path, "application/json").await
    }

    async fn watch_as(&self, path: &str, accept: &str) -> Events {
        let request = Request::builder().uri(path).header("Accept", accept).body(Body::empty()).unwrap();
        let response = self.send(request).await;
        assert_eq!(response.status(), 200);
        Events { stream: response.into_body().into_data_stream(), text: String::new() }
    }
}

fn config(store: Store) -> Config {
    Config {
        store,
        clock: Clock::new(|| "2026-11-16T02:17:11Z".parse().unwrap()),
        seed: 7,
        pki: None,
        tokens: StaticTokens::default(),
        build: String::new(),
    }
}

struct Events {
    stream: axum::body::BodyDataStream,
    text: String,
}

impl Events {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.text.find('\n') {
                let line: String = self.text.drain(..=end).collect();
                return Some(serde_json::from_str(&line).unwrap());
            }
            let piece = self.stream.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Type and name of the next event.
    async fn brief(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch goes on");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        (event["type"].as_str().unwrap().to_owned(), name.to_owned())
    }
}

async fn read(response: Response<Body>) -> Answer {
    let (head, body) = response.into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let body = serde_json::from_str(&text).unwrap_or_default();
    Answer { code: head.status.as_u16(), headers: head.headers, body, text }
}

impl Answer {
    fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or(&self.text)
    }

    fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|warning| warning.to_str().unwrap()).collect()
    }

    #[track_caller]
    fn refused(&self, code: u16, reason: &str, message: &str) {
        assert_eq!((self.code, self.message()), (code, message), "{}", self.text);
        assert_eq!(self.body["reason"].as_str().unwrap_or_default(), reason);
    }
}

#[expect(clippy::needless_pass_by_value, reason = "callers write it down in place")]
fn widget(name: &str, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": "verbs.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"color": "red"},
    });
    json_patch::merge(&mut object, &more);
    object
}

fn schema(openapi: &Value) -> Arc<Schema> {
    Arc::new(Schema::parse(openapi, "").unwrap())
}

fn version(name: &str, openapi: &Value) -> Version {
    Version {
        name: name.to_owned(),
        group: None,
        served: true,
        deprecation: None,
        schema: schema(openapi),
        rules: Arc::new(Rules::default()),
        columns: Vec::new(),
        status: true,
        scale: None,
        selectable: Vec::new(),
        convert: None,
    }
}

fn resource(plural: &str, singular: &str, kind: &str, scope: Scope, versions: Vec<Version>) -> Resource {
    Resource {
        group: "verbs.example.com".to_owned(),
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope,
        versions,
        storage: 0,
        prefix: format!("/registry/verbs.example.com/{plural}/"),
        schema_since: 0,
        hooks: Hooks::NONE,
        custom: true,
        accepts_creates: true,
    }
}

fn widgets() -> Resource {
    let v1 = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "color": {"type": "string"}, "size": {"type": "integer"}, "replicas": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {
            "phase": {"type": "string"}, "replicas": {"type": "integer"}, "selector": {"type": "string"},
        }},
    }});
    let v1alpha1 = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"color": {"type": "string"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }});
    let scale = Scale {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: Some(".status.selector".to_owned()),
    };
    let v1 = Version { scale: Some(scale), selectable: vec![".spec.color".to_owned()], ..version("v1", &v1) };
    resource("widgets", "widget", "Widget", Scope::Namespaced, vec![v1, version("v1alpha1", &v1alpha1)])
}

fn gadgets() -> Resource {
    let openapi = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = Version { status: false, ..version("v1", &openapi) };
    resource("gadgets", "gadget", "Gadget", Scope::Cluster, vec![version])
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}
