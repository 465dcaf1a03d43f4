//! The binary as users start it: against a real API server, and with simulated BMCs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is tests, also what they share"
)]

mod apply;
mod assets;
mod cli;
mod deploy;
mod docs;
mod hosts;
mod image;
mod layers;
mod links;
mod power;
mod program;
mod reference;
mod report;
mod run;
mod show;
mod sim;
mod standalone;
mod systemd;
mod uninstall;

use std::path::{Path, PathBuf};

use api::beskar7::PhysicalHost;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::Cluster;
use tokio::sync::OnceCell;

/// The root of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
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

/// Creates a host, and writes its status as an operator would.
async fn put_host(cluster: &Cluster, namespace: &str, name: &str, spec: &Value, status: &Value) {
    let connection = json!({"address": "https://192.0.2.7", "credentialsSecretRef": "bmc"});
    let mut manifest = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "PhysicalHost",
        "metadata": {"name": name, "labels": {"rack": name.split('-').next()}},
        "spec": {"redfishConnection": connection},
    });
    manifest["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let hosts = hosts_in(cluster, namespace);
    hosts.patch(name, &PatchParams::apply("test"), &Patch::Apply(manifest)).await.unwrap();
    put_status(cluster, namespace, name, status).await;
}

async fn put_status(cluster: &Cluster, namespace: &str, name: &str, status: &Value) {
    let patch = json!({"status": status});
    hosts_in(cluster, namespace).patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn get_host(cluster: &Cluster, namespace: &str, name: &str) -> PhysicalHost {
    hosts_in(cluster, namespace).get(name).await.unwrap()
}

fn hosts_in(cluster: &Cluster, namespace: &str) -> Api<PhysicalHost> {
    Api::namespaced(cluster.admin(), namespace)
}
