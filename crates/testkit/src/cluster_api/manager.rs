//! One manager: where it listens, how it is started, whether it is well.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use super::Provider;
use super::manifests::Webhook;
use crate::cluster::Cluster;
use crate::process::Process;
use crate::scratch::free_port;
use crate::wait::wait_ok;

/// What is decided before a manager runs, because definitions name its address.
pub(super) struct Plan {
    pub(super) provider: Provider,
    pub(super) webhook: Webhook,
    webhook_port: u16,
    health_port: u16,
    kubeconfig: PathBuf,
}

pub(super) struct Manager {
    name: String,
    process: Process,
    readiness: Uri,
}

impl Plan {
    pub(super) fn new(cluster: &Cluster, provider: Provider) -> Self {
        let webhook_port = free_port();
        Plan {
            provider,
            webhook: Webhook {
                url: format!("https://127.0.0.1:{webhook_port}"),
                authority_pem: cluster.authority_pem().to_owned(),
            },
            webhook_port,
            health_port: free_port(),
            kubeconfig: cluster.master_kubeconfig(&name(provider)),
        }
    }

    pub(super) fn start(&self, cluster: &Cluster, home: &Path) -> Manager {
        let name = name(self.provider);
        let certificate = format!("{name}-webhook");
        cluster.authority().server(cluster.dir(), &certificate);
        let health = format!("127.0.0.1:{}", self.health_port);
        let arguments = [
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--webhook-port={}", self.webhook_port),
            format!("--webhook-cert-dir={}", cluster.dir().display()),
            format!("--webhook-cert-name={certificate}.crt"),
            format!("--webhook-key-name={certificate}.key"),
            format!("--health-addr={health}"),
            "--diagnostics-address=0".to_owned(),
            "--leader-elect=false".to_owned(),
            "--feature-gates=ClusterTopology=true".to_owned(),
            // There is nothing to migrate, and migrating nothing rewrites every definition.
            "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields".to_owned(),
        ];
        let program = home.join(self.provider.name()).join("manager");
        Manager {
            process: Process::start(&name, cluster.dir(), &program, &arguments),
            readiness: format!("http://{health}/readyz").parse().expect("a URL of our own"),
            name,
        }
    }
}

impl Manager {
    pub(super) async fn wait_until_ready(&self, timeout: Duration) {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        wait_ok(&format!("{} to be ready", self.name), timeout, async || {
            self.assert_alive();
            let answer = client.get(self.readiness.clone()).await.map_err(|error| error.to_string())?;
            if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
        })
        .await;
    }

    pub(super) fn assert_alive(&self) {
        self.process.alive().unwrap_or_else(|why| panic!("Cluster API does not run: {why}"));
    }

    pub(super) fn last_words(&self) -> String {
        format!("the last words of {}:\n{}", self.name, self.process.log_tail())
    }
}

/// As user and as log file.
fn name(provider: Provider) -> String {
    format!("capi-{}", provider.name())
}
