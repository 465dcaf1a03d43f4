//! What the types promise: the CRDs, the manifests of all generations, and how a real API server takes them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is tests, also what they share"
)]

mod clusters;
mod compared;
mod contract;
mod crds;
mod ironcore;
mod machines;
mod manifests;
mod metal3;
mod roles;
mod rules;
mod server;
mod statuses;

use std::path::{Path, PathBuf};

use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::Cluster;
use tokio::sync::OnceCell;

/// The folder with what we ship.
fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config")
}

/// A manifest of this folder's `manifests/`.
fn manifest(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/manifests").join(name)
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A real API server that knows our resources.
async fn cluster() -> &'static Cluster {
    static READY: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    READY
        .get_or_init(|| async {
            cluster.apply_yaml(&api::crds_yaml()).await;
        })
        .await;
    cluster
}

/// Lays a JSON merge patch over an object.
fn merge(into: &mut Value, patch: &Value) {
    match (into.as_object_mut(), patch.as_object()) {
        (Some(fields), Some(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    fields.remove(key);
                } else {
                    merge(fields.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        _ => *into = patch.clone(),
    }
}

/// An object of ours.
fn object(kind: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "tried"},
        "spec": spec,
    })
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(api::beskar7::GROUP, api::beskar7::VERSION, kind))
}

/// Tries to create it: `Ok`, or what the API server says. Nothing is stored.
async fn try_create(kind: &str, spec: &Value) -> Result<(), String> {
    let objects: Api<DynamicObject> = Api::namespaced_with(cluster().await.admin(), "default", &resource(kind));
    let dry_run = PostParams { dry_run: true, field_manager: None };
    let object = serde_json::from_value(object(kind, spec)).unwrap();
    objects.create(&dry_run, &object).await.map(drop).map_err(|error| error.to_string())
}

/// Changes an object: `Ok`, or what the API server says.
async fn change(namespace: &str, kind: &str, name: &str, patch: &Value) -> Result<(), String> {
    let objects: Api<DynamicObject> = Api::namespaced_with(cluster().await.admin(), namespace, &resource(kind));
    let changed = objects.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    changed.map(drop).map_err(|error| error.to_string())
}

/// The API server refuses each spec, with that sentence.
async fn refuses(kind: &str, table: &[(Value, &str)]) {
    for (spec, sentence) in table {
        let said = try_create(kind, spec).await.expect_err(&format!("{spec} was accepted"));
        assert!(said.contains(sentence), "for {spec} the API server says\n{said}\nand not\n{sentence}");
    }
}

/// The API server accepts each spec.
async fn accepts(kind: &str, table: &[Value]) {
    for spec in table {
        try_create(kind, spec).await.unwrap_or_else(|said| panic!("{spec} was refused: {said}"));
    }
}
