//! `clusterctl move`, as its user runs it.

use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::cluster::Cluster;
use crate::parts;

/// A move of everything that belongs to the Clusters of a namespace, while it runs. It is killed when this is dropped.
///
/// It moves the kinds whose definitions bear the label `clusterctl.cluster.x-k8s.io`; those of the managers do. In the audit
/// logs it is `clusterctl`. Neither cluster has an inventory of providers, so none is compared.
pub struct Move {
    child: Child,
}

impl Move {
    /// Starts clusterctl of Cluster API 1.13.
    pub fn start(from: &Cluster, to: &Cluster, namespace: &str) -> Move {
        let child = Command::new(parts::home("capm3").join("bin/clusterctl"))
            .arg("move")
            .arg(format!("--namespace={namespace}"))
            .arg(format!("--kubeconfig={}", from.master_kubeconfig("clusterctl").display()))
            .arg(format!("--to-kubeconfig={}", to.master_kubeconfig("clusterctl").display()))
            // Where it looks for settings, and would look for a newer version of itself.
            .env("HOME", from.dir())
            .env("XDG_CONFIG_HOME", from.dir())
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start clusterctl: {error}"));
        Move { child }
    }

    /// Waits for its end; panics with its words if it failed.
    pub async fn finish(self) {
        let output = self.child.wait_with_output().await.expect("clusterctl ends");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "clusterctl failed ({}): {words}", output.status);
    }

    /// Ends it wherever it is, as a lost connection or a closed laptop would.
    pub async fn interrupt(mut self) {
        self.child.kill().await.expect("clusterctl can be killed");
    }
}
