//! What the types promise: the CRDs, the manifests of all generations, and how a real API server takes them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is tests, also what they share"
)]

mod crds;
mod manifests;
mod rules;
mod server;
mod statuses;

use std::path::{Path, PathBuf};

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
