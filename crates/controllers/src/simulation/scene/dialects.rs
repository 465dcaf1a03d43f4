//! Two dialects in one process, one of which belongs to other people: its hosts have no namespace, its claims have no Machine of
//! Cluster API, and it has no clusters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use tower_service::Service as _;

use super::{NAMESPACE, Scene};
use crate::claims::foreign::{CLAIMANT, PROVIDER};
use crate::dialect::merge;
use crate::dialects::Dialect;
use crate::simulation::whole::wire::Wire;

const ISO: &str = "https://192.0.2.1/os.iso";
/// Longer than the operator needs to notice another definition.
const NOTICED: Duration = Duration::from_mins(3);
const CLAIM_ID: &str = "example.com/claim-id";

/// An API server's Nodes and PersistentVolumeClaims, by path. All else is asked of the scene's own API server.
#[derive(Clone, Default)]
struct Foreign(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    version: u64,
    keeps_record: bool,
    /// How long an answer takes.
    pause: Duration,
}

impl Foreign {
    fn beside(scene: &mut Scene) -> Self {
        let (foreign, others) = (Self::default(), scene.server.router());
        let ours = foreign.clone();
        let router = Router::new().fallback(move |request: axum::extract::Request| {
            let (ours, mut others) = (ours.clone(), others.clone());
            async move {
                let path = request.uri().path().to_owned();
                if path != "/openapi/v3/api/v1" && !path.contains("/nodes") && !path.contains("/persistentvolumeclaims")
                {
                    return others.call(request).await.into_response();
                }
                let (method, query) = (request.method().clone(), request.uri().query().unwrap_or_default().to_owned());
                let pause = ours.state().pause;
                tokio::time::sleep(pause).await;
                let body = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
                ours.answer(&method, &path, &query, &body)
            }
        });
        scene.wire = Wire::new(router);
        foreign
    }

    fn answer(&self, method: &Method, path: &str, query: &str, body: &[u8]) -> Response {
        let mut state = self.state();
        if path == "/openapi/v3/api/v1" {
            return axum::Json(state.document()).into_response();
        }
        if query.contains("watch=") {
            // Whoever watches lists anew after a pause.
            let status = json!({ "status": "Failure", "reason": "Expired", "message": "too old", "code": 410 });
            return axum::Json(json!({ "type": "ERROR", "object": status })).into_response();
        }
        let plural = if path.contains("/nodes") { "nodes" } else { "persistentvolumeclaims" };
        if path.ends_with(plural) {
            let is_meant =
                |key: &&String| key.contains(plural) && (path == format!("/api/v1/{plural}") || key.starts_with(path));
            let items: Vec<_> =
                state.objects.iter().filter(|(key, _)| is_meant(key)).map(|(_, object)| object).collect();
            let version = state.version.to_string();
            return axum::Json(json!({ "metadata": { "resourceVersion": version }, "items": items })).into_response();
        }
        let path = path.trim_end_matches("/status");
        let patch = (*method == Method::PATCH).then(|| serde_json::from_slice(body).unwrap());
        if !state.objects.contains_key(path) {
            return StatusCode::NOT_FOUND.into_response();
        }
        axum::Json(state.change(path, &patch.unwrap_or(json!({})))).into_response()
    }

    fn set(&self, path: &str, patch: &Value) {
        self.state().change(path, patch);
    }

    fn get(&self, path: &str) -> Value {
        self.state().objects.get(path).cloned().unwrap_or_default()
    }

    fn keep_record(&self, keeps: bool) {
        self.state().keeps_record = keeps;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn document(&self) -> Value {
        let kept = if self.keeps_record { json!({ "record": { "type": "string" } }) } else { json!({}) };
        let status = json!({ "type": "object", "properties": kept });
        let node = json!({
            "type": "object",
            "properties": { "status": status },
            "x-kubernetes-group-version-kind": [{ "group": "", "version": "v1", "kind": "Node" }],
        });
        json!({ "components": { "schemas": { "io.k8s.api.core.v1.Node": node } } })
    }

    /// Changes an object as a merge patch does. Who is deleted and has no finalizer is gone.
    fn change(&mut self, path: &str, patch: &Value) -> Value {
        let mut object = self.objects.remove(path).unwrap_or(json!({ "metadata": {} }));
        let before = object.clone();
        let mut patch = patch.clone();
        patch.get_mut("metadata").and_then(Value::as_object_mut).map(|metadata| metadata.remove("resourceVersion"));
        merge(&mut object, &patch);
        if object != before {
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
        let is_held = object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        if object["metadata"]["deletionTimestamp"].is_null() || is_held {
            self.objects.insert(path.to_owned(), object.clone());
        }
        object
    }
}

const CLAIM: &str = "/api/v1/namespaces/lab/persistentvolumeclaims/tenant";

fn node(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn metadata(name: &str) -> Value {
    json!({ "name": name, "uid": name, "annotations": { "address": format!("https://{name}.test") } })
}

/// A site with a server of ours, and a host and a claim of other people.
async fn site(keeps_record: bool) -> (Scene, Foreign) {
    let mut scene = Scene::open(&["server-0"]).await;
    let foreign = Foreign::beside(&mut scene);
    foreign.keep_record(keeps_record);
    foreign.set(&node("a"), &json!({ "metadata": metadata("a") }));
    let claim = json!({ "name": "tenant", "namespace": NAMESPACE, "uid": "tenant" });
    foreign.set(CLAIM, &json!({ "metadata": claim }));
    (scene, foreign)
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_drops_the_record_stops_its_own_dialect_and_no_other() {
    let (mut scene, foreign) = site(false).await;
    let (host, claim) = (foreign.get(&node("a")), foreign.get(CLAIM));
    scene.start(|config| config.dialects = vec![Dialect::Foreign, Dialect::Beskar7, Dialect::Foreign]);
    scene.until_state("server-0", "Available").await;
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    assert_eq!((foreign.get(&node("a")), foreign.get(CLAIM)), (host, claim), "nothing is written there");

    // Replaced by one that keeps it.
    foreign.keep_record(true);
    let is_bound = |_: &Scene| foreign.get(CLAIM)["status"]["phase"] == "Bound";
    scene.until("the claim has a host", is_bound).await;
    scene.until("the host is looked after", |_| foreign.get(&node("a"))["status"]["phase"].is_string()).await;

    // And by the old one again, while the operator runs.
    foreign.keep_record(false);
    tokio::time::sleep(NOTICED).await;
    foreign.set(&node("b"), &json!({ "metadata": metadata("b") }));
    foreign.set(CLAIM, &json!({ "metadata": { "deletionTimestamp": "2026-11-16T09:00:00Z" } }));
    let (a, b) = (foreign.get(&node("a")), foreign.get(&node("b")));
    scene.delete_machine("node").await;
    scene.until_state("server-0", "Available").await;
    tokio::time::sleep(NOTICED).await;
    assert_eq!((foreign.get(&node("a")), foreign.get(&node("b"))), (a, b), "nothing is written there any more");

    foreign.keep_record(true);
    scene.until("the claim is let go of", |_| foreign.get(CLAIM).is_null()).await;
    scene.until("the other host is looked after", |_| foreign.get(&node("b"))["status"]["phase"].is_string()).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_to_a_server_before_all_are_known_who_may_have_the_better_right_to_it() {
    let (mut scene, foreign) = site(true).await;
    foreign.state().pause = Duration::from_secs(5);
    // Without a time, it is the older object.
    let address = &scene.host("server-0")["spec"]["redfishConnection"]["address"];
    foreign.set(&node("a"), &json!({ "metadata": { "annotations": { "address": address } } }));
    scene.start(|config| config.dialects = vec![Dialect::Beskar7, Dialect::Foreign]);
    scene.until("an answer", |scene| scene.host("server-0")["status"].is_object()).await;
    assert_eq!(scene.host("server-0")["status"]["fault"]["reason"], "DuplicateHost");
    assert_eq!(scene.servers.server("server-0").boots, 0);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_holds_up_no_other_dialect() {
    let (mut scene, foreign) = site(true).await;
    foreign.state().pause = Duration::from_hours(1);
    scene.start(|config| config.dialects = vec![Dialect::Beskar7, Dialect::Foreign]);
    let took = scene.until_state("server-0", "Available").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_machine_of_cluster_api_gets_a_host_without_a_namespace_and_gives_it_back() {
    let (mut scene, foreign) = site(true).await;
    // Cluster API is not installed, and that is nothing to this claim.
    scene.start(|config| {
        config.dialects = vec![Dialect::Foreign];
        config.cluster_api = true;
    });
    scene.until("the claim has a host", |_| foreign.get(CLAIM)["status"]["phase"] == "Bound").await;
    let (claim, host) = (foreign.get(CLAIM), foreign.get(&node("a")));
    let annotations = claim["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations.keys().collect::<Vec<_>>(), [CLAIM_ID, PROVIDER], "nothing blocks a move that is none");
    assert_eq!(annotations[PROVIDER], "foreign://a");
    assert_eq!(host["metadata"]["annotations"][CLAIM_ID], annotations[CLAIM_ID]);
    assert_eq!(host["metadata"]["annotations"][CLAIMANT], "lab/tenant");
    // What is kept beside the claim comes back when somebody removes it, and goes with the host.
    let slips: Api<ConfigMap> = Api::namespaced(scene.admin.clone(), NAMESPACE);
    let slip = || async { slips.get_opt("tenant").await.unwrap() };
    assert_eq!(slip().await.unwrap().data.unwrap()["host"], "a");
    slips.delete("tenant", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(slip().await.unwrap().data.unwrap()["host"], "a");
    // Only dialects that were named are looked after, whatever else is there.
    assert_eq!(scene.host("server-0")["status"], Value::Null);

    foreign.set(CLAIM, &json!({ "metadata": { "deletionTimestamp": "2026-11-16T09:00:00Z" } }));
    scene.until("the claim is let go of", |_| foreign.get(CLAIM).is_null()).await;
    assert_eq!(foreign.get(&node("a"))["metadata"]["annotations"][CLAIM_ID], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_second_host_of_the_same_name_in_another_namespace_is_given_back_and_no_other() {
    let mut scene = Scene::open(&["server-0"]).await;
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(scene.admin.clone());
    let other = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
    namespaces.create(&PostParams::default(), &other).await.unwrap();
    scene.start(|config| config.namespace = None);
    scene.until_state("server-0", "Available").await;
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    scene.until("claimed", |scene| scene.host("server-0")["spec"]["consumerRef"]["name"] == "node").await;
    // A manifest of the claimed host, applied to another namespace.
    let claimed = scene.host("server-0");
    let id = &claimed["metadata"]["annotations"]["beskar7.io/claim-id"];
    let double = json!({
        "metadata": { "name": "server-0", "annotations": { "beskar7.io/claim-id": id } },
        "spec": {
            "redfishConnection": { "address": "https://elsewhere.test", "credentialsSecretRef": "none" },
            "consumerRef": claimed["spec"]["consumerRef"],
            "bootIsoSource": ISO,
        },
    });
    let doubles: kube::Api<api::beskar7::PhysicalHost> = kube::Api::namespaced(scene.admin.clone(), "other");
    doubles.create(&PostParams::default(), &serde_json::from_value(double).unwrap()).await.unwrap();
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    assert_eq!(scene.host("server-0")["metadata"]["annotations"]["beskar7.io/claim-id"], *id, "it was never let go of");
    assert!(doubles.get("server-0").await.unwrap().spec.consumer_ref.is_none());
}
