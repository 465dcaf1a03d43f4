//! A model of the API server: as much of it as the loop of a host uses, with its one rule that matters. A write that was
//! decided on an older version than the present one is refused.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use api::beskar7::names::CLAIM_ID;
use api::capi::PAUSED_ANNOTATION;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use super::fate::Life;
use crate::dialect::merge;

const HOSTS: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/lab/physicalhosts/";
const SECRETS: &str = "/api/v1/namespaces/lab/secrets/";
const CONSUMERS: &str = "/apis/sim.cluster.x-k8s.io/v1/namespaces/lab/consumers/";

/// The objects, shared by all lives of the operator.
#[derive(Clone, Default)]
pub(super) struct Model(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    revision: u64,
    /// By path.
    objects: BTreeMap<String, Arc<Value>>,
    /// Hosts whose object changed since somebody asked.
    changed: Vec<String>,
    writes: u64,
    last_write: Value,
    /// How many of the next writes are refused, and whether they happen all the same.
    outage: Option<(u32, bool)>,
    /// How many of the next writes find that somebody was faster.
    rivals: u32,
    /// What happens while the operator waits for the next answer about a consumer.
    meanwhile: Option<Box<dyn FnOnce() + Send>>,
}

/// Why the API server refuses.
struct Refusal(StatusCode, &'static str);

impl Model {
    /// The way of one process to the API server.
    pub(super) fn client(&self, life: &Life) -> kube::Client {
        let (model, life) = (self.clone(), life.clone());
        let service = Service(Arc::new(move |request| {
            let (model, life) = (model.clone(), life.clone());
            async move { Ok(life.effect(model.answer(request)).await) }.boxed()
        }));
        kube::Client::new(service, "lab")
    }

    pub(super) fn host(&self, name: &str) -> Option<Arc<Value>> {
        self.state().objects.get(&format!("{HOSTS}{name}")).cloned()
    }

    pub(super) fn secret(&self, name: &str) -> Option<Arc<Value>> {
        self.state().objects.get(&format!("{SECRETS}{name}")).cloned()
    }

    /// The hosts whose object changed since the last call.
    pub(super) fn changed(&self) -> Vec<String> {
        std::mem::take(&mut self.state().changed)
    }

    /// Writes to hosts, by the operator.
    pub(super) fn writes(&self) -> u64 {
        self.state().writes
    }

    /// What the operator wrote last.
    pub(super) fn last_write(&self) -> String {
        self.state().last_write.to_string()
    }

    pub(super) fn put_host(&self, name: &str, object: Value) {
        self.state().put(format!("{HOSTS}{name}"), object);
    }

    pub(super) fn put_secret(&self, name: &str, object: Value) {
        self.state().put(format!("{SECRETS}{name}"), object);
    }

    /// Somebody who may claim, and the id that it claims by.
    pub(super) fn put_consumer(&self, name: &str, id: Option<&str>) {
        let annotations = id.map_or_else(|| json!({}), |id| json!({CLAIM_ID: id}));
        let metadata = json!({"name": name, "namespace": "lab", "annotations": annotations});
        let object = json!({"apiVersion": "sim.cluster.x-k8s.io/v1", "kind": "Consumer", "metadata": metadata});
        self.state().put(format!("{CONSUMERS}{name}"), object);
    }

    /// Pauses a consumer as clusterctl does, or lets it go on. Answers whether there is one.
    pub(super) fn pause_consumer(&self, name: &str, paused: bool) -> bool {
        let mut state = self.state();
        let path = format!("{CONSUMERS}{name}");
        let Some(mut object) = state.objects.get(&path).map(|object| Value::clone(object)) else { return false };
        merge(&mut object["metadata"], &json!({"annotations": {PAUSED_ANNOTATION: paused.then_some("true")}}));
        state.settle(path, object);
        true
    }

    pub(super) fn remove_consumer(&self, name: &str) {
        self.state().objects.remove(&format!("{CONSUMERS}{name}"));
    }

    /// Changes a host as its owner does. Answers whether there was one.
    pub(super) fn edit_host(&self, name: &str, edit: impl FnOnce(&mut Value)) -> bool {
        let mut state = self.state();
        let path = format!("{HOSTS}{name}");
        let Some(mut object) = state.objects.get(&path).map(|object| Value::clone(object)) else { return false };
        let before = object["spec"].clone();
        edit(&mut object);
        if object["spec"] != before {
            object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap_or(1) + 1);
        }
        state.settle(path, object);
        true
    }

    /// The next so many writes fail; they may have happened.
    pub(super) fn fail_writes(&self, count: u32, they_happen: bool) {
        self.state().outage = Some((count, they_happen));
    }

    /// Before each of the next so many writes, somebody else changes the object.
    pub(super) fn interfere(&self, count: u32) {
        self.state().rivals = count;
    }

    /// Does this while the operator waits for the next answer about a consumer.
    pub(super) fn meanwhile(&self, work: impl FnOnce() + Send + 'static) {
        self.state().meanwhile = Some(Box::new(work));
    }

    /// From now on the API server is at its best.
    pub(super) fn calm_down(&self) {
        let mut state = self.state();
        state.outage = None;
        state.rivals = 0;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap_or_default();
        let patch: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = head.uri.path();
        let meanwhile = if path.starts_with(CONSUMERS) { self.state().meanwhile.take() } else { None };
        if let Some(work) = meanwhile {
            work();
        }
        let answer = match (&head.method, path) {
            (&Method::GET, "/apis") => Ok(Arc::new(groups())),
            (&Method::GET, "/apis/sim.cluster.x-k8s.io/v1") => Ok(Arc::new(consumers())),
            (&Method::GET, _) => {
                self.state().objects.get(path).cloned().ok_or(Refusal(StatusCode::NOT_FOUND, "NotFound"))
            }
            (&Method::PATCH, _) if path.starts_with(HOSTS) => self.state().write(path, patch),
            // Events.
            (&Method::POST, _) => Ok(Arc::new(patch)),
            (method, path) => panic!("the model does not know {method} {path}"),
        };
        let (code, body) = match answer {
            Ok(object) => (StatusCode::OK, serde_json::to_vec(object.as_ref())),
            Err(Refusal(code, reason)) => {
                let details = json!({"name": path.rsplit('/').next()});
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": code.as_u16(), "details": details});
                (code, serde_json::to_vec(&status))
            }
        };
        let mut response = Response::new(Body::from(body.unwrap()));
        *response.status_mut() = code;
        response
    }
}

impl State {
    fn put(&mut self, path: String, mut object: Value) {
        let uid = format!("uid-{}", self.revision);
        let metadata = &mut object["metadata"];
        metadata["uid"] = json!(uid);
        metadata["generation"] = json!(1);
        metadata["creationTimestamp"] = json!("2026-11-16T08:00:00Z");
        self.settle(path, object);
    }

    /// Stores an object, or forgets it if it was deleted and nothing holds it.
    fn settle(&mut self, path: String, mut object: Value) {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        if let Some(host) = path.strip_prefix(HOSTS) {
            self.changed.push(host.to_owned());
        }
        let metadata = &object["metadata"];
        let held = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if metadata.get("deletionTimestamp").is_some() && !held {
            self.objects.remove(&path);
        } else {
            self.objects.insert(path, Arc::new(object));
        }
    }

    fn write(&mut self, path: &str, patch: Value) -> Result<Arc<Value>, Refusal> {
        self.writes += 1;
        let status = path.ends_with("/status");
        let path = path.trim_end_matches("/status");
        let failing = match &mut self.outage {
            Some((left, they_happen)) if *left > 0 => {
                *left -= 1;
                Some(*they_happen)
            }
            _ => None,
        };
        if failing == Some(false) {
            return Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError"));
        }
        if self.rivals > 0 && self.objects.contains_key(path) {
            self.rivals -= 1;
            let mut object = Value::clone(&self.objects[path]);
            object["metadata"]["labels"]["touched"] = json!(self.revision.to_string());
            self.settle(path.to_owned(), object);
        }
        self.last_write = patch;
        let patch = &self.last_write;
        let Some(object) = self.objects.get(path) else { return Err(Refusal(StatusCode::NOT_FOUND, "NotFound")) };
        for field in ["resourceVersion", "uid"] {
            if patch["metadata"][field] != object["metadata"][field] {
                return Err(Refusal(StatusCode::CONFLICT, "Conflict"));
            }
        }
        let mut object = Value::clone(object);
        if status {
            object["status"] = patch["status"].clone();
        } else {
            merge(&mut object["metadata"], &patch["metadata"]);
        }
        self.settle(path.to_owned(), object.clone());
        if failing == Some(true) {
            return Err(Refusal(StatusCode::GATEWAY_TIMEOUT, "Timeout"));
        }
        Ok(self.objects.get(path).cloned().unwrap_or_else(|| Arc::new(object)))
    }
}

fn groups() -> Value {
    let version = json!({"groupVersion": "sim.cluster.x-k8s.io/v1", "version": "v1"});
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
        {"name": "sim.cluster.x-k8s.io", "versions": [version], "preferredVersion": version}]})
}

fn consumers() -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "sim.cluster.x-k8s.io/v1", "resources": [
        {"name": "consumers", "singularName": "consumer", "namespaced": true, "kind": "Consumer", "verbs": ["get", "list"]}]})
}

type Answer = BoxFuture<'static, Result<Response<Body>, Infallible>>;

#[derive(Clone)]
struct Service(Arc<dyn Fn(Request<Body>) -> Answer + Send + Sync>);

impl tower_service::Service<Request<Body>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        (self.0)(request)
    }
}
