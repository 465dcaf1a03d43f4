//! A cluster for a demo or for trying things out: `throwaway-cluster KUBECONFIG [KUSTOMIZATION...]`.
//!
//! Writes KUBECONFIG when the cluster is ready and the kustomizations are applied, and runs until Ctrl-C or SIGTERM.
#![allow(clippy::expect_used, reason = "its only user is a person who reads the message")]

use std::path::PathBuf;

use testkit::Cluster;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let kubeconfig = arguments.next().expect("name the file that gets the kubeconfig");
    let mut terminated = signal(SignalKind::terminate()).expect("a handler for SIGTERM");
    let cluster = Cluster::start().await;
    for kustomization in arguments {
        cluster.apply_kustomization(kustomization).await;
    }
    // By rename, because somebody waits for the file.
    let unfinished = kubeconfig.with_extension("new");
    std::fs::copy(cluster.admin_kubeconfig(), &unfinished).expect("the kubeconfig can be written");
    std::fs::rename(&unfinished, &kubeconfig).expect("the kubeconfig can be put in place");
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}
