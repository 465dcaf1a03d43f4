//! One manager: where it listens, how it is started, whether it is well.

use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use super::manifests::Webhook;
use crate::cluster::Cluster;
use crate::process::Process;
use crate::scratch::free_port;
use crate::wait::wait_ok;

/// Four times what a busy machine with two cores needs.
pub(super) const START_TIMEOUT: Duration = Duration::from_mins(1);

/// A manager and what belongs to it.
pub(super) struct Provider {
    /// As user, as log file, and as the last part of the names of its webhook configurations.
    pub(super) name: &'static str,
    /// Where `hack/setup` put the program, the definitions and the webhook configurations.
    pub(super) home: PathBuf,
    /// The contracts that its kinds fulfil, each by the API version of the same name.
    pub(super) contracts: &'static [&'static str],
    /// What the others do not take.
    pub(super) flags: &'static [&'static str],
}

/// What is decided before a manager runs, because definitions name its address.
pub(super) struct Plan {
    pub(super) provider: Provider,
    pub(super) webhook: Webhook,
    webhook_port: u16,
    health_port: u16,
    kubeconfig: PathBuf,
}

pub(super) struct Manager {
    name: &'static str,
    process: Process,
    readiness: Uri,
}

impl Plan {
    pub(super) fn new(cluster: &Cluster, provider: Provider) -> Self {
        let webhook_port = free_port();
        Plan {
            webhook: Webhook {
                url: format!("https://127.0.0.1:{webhook_port}"),
                authority_pem: cluster.authority_pem().to_owned(),
            },
            webhook_port,
            health_port: free_port(),
            kubeconfig: cluster.master_kubeconfig(provider.name),
            provider,
        }
    }

    pub(super) fn start(&self, cluster: &Cluster) -> Manager {
        let name = self.provider.name;
        // Not every manager can be told how the files are called.
        let certificates = cluster.dir().join(format!("{name}-webhook"));
        std::fs::create_dir(&certificates).expect("a directory for the certificate of a webhook");
        cluster.authority().server(&certificates, "tls");
        let health = format!("127.0.0.1:{}", self.health_port);
        let mut arguments = vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--webhook-port={}", self.webhook_port),
            format!("--webhook-cert-dir={}", certificates.display()),
            format!("--health-addr={health}"),
            "--diagnostics-address=0".to_owned(),
            "--leader-elect=false".to_owned(),
        ];
        arguments.extend(self.provider.flags.iter().map(ToString::to_string));
        Manager {
            process: Process::start(name, cluster.dir(), &self.provider.home.join("manager"), &arguments),
            readiness: format!("http://{health}/readyz").parse().expect("a URL of our own"),
            name,
        }
    }
}

impl Manager {
    pub(super) async fn wait_until_ready(&self) {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        wait_ok(&format!("{} to be ready", self.name), START_TIMEOUT, async || {
            self.assert_alive();
            let answer = client.get(self.readiness.clone()).await.map_err(|error| error.to_string())?;
            if answer.status().is_success() { Ok(()) } else { Err(answer.status().to_string()) }
        })
        .await;
    }

    pub(super) fn assert_alive(&self) {
        self.process.alive().unwrap_or_else(|why| panic!("a manager has ended: {why}"));
    }

    pub(super) fn last_words(&self) -> String {
        format!("the last words of {}:\n{}", self.name, self.process.log_tail())
    }
}
