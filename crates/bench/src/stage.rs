//! Where hosts and machines are measured: a real API server, simulated BMCs, and the operator as a process of its own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::beskar7::PhysicalHost;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use sim::{Fleet, FleetSpec, ServeSpec, Serving, Timing};
use testkit::{Account, AuditWrite, Cluster};
use tokio::process::{Child, Command};
use tokio::time::Instant;

const ROLES: &str = concat!(
    include_str!("../../../config/rbac/role.yaml"),
    "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: beskar7-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: beskar7-manager}
subjects: [{kind: ServiceAccount, name: beskar7}]
"
);

const SECRET: &str =
    "apiVersion: v1\nkind: Secret\nmetadata: {name: bmc}\nstringData: {username: admin, password: password}\n";

/// A fleet that takes longer than this is not worth waiting for.
const LIMIT: Duration = Duration::from_mins(15);

/// Requests of ours that are under way at once when many objects are created.
pub(crate) const CREATORS: usize = 16;

/// Everything that a measurement of the operator needs; the operator ends with this.
pub(crate) struct Stage {
    hosts: u32,
    namespace: String,
    pid: u32,
    operator: Child,
    serving: Serving,
    fleet: Fleet,
    account: Account,
    cluster: Cluster,
}

impl Stage {
    /// Starts everything, with `more` arguments for the operator. There are no hosts yet.
    pub(crate) async fn start(hosts: u32, binary: &Path, more: &[&str]) -> Result<Self> {
        let cluster = Cluster::start().await;
        cluster.apply_yaml(&api::crds_yaml()).await;
        let namespace = cluster.namespace("bench").await;
        let account = cluster.service_account(&namespace, "beskar7", ROLES).await;
        let fleet = Fleet::new(&FleetSpec { count: hosts, timing: Timing::INSTANT, ..FleetSpec::default() });
        let serving = fleet.serve(ServeSpec::default()).await?;
        cluster.apply_yaml_in(&namespace, SECRET).await;
        let operator = start_operator(binary, &account, &namespace, more)?;
        let pid = operator.id().context("the operator ended at once")?;
        Ok(Self { hosts, namespace, pid, operator, serving, fleet, account, cluster })
    }

    /// The process of the operator.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The objects of one kind, as the admin sees them.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.cluster.admin(), &self.namespace)
    }

    /// What the operator wrote so far, or tried to, by the API server's own log.
    pub(crate) async fn writes(&self, ignored: &[&str]) -> Vec<AuditWrite> {
        self.cluster.writes(self.account.user(), ignored).await
    }

    pub(crate) fn bmc_requests(&self) -> u64 {
        self.fleet.bmcs().iter().map(|bmc| bmc.counters().total()).sum()
    }

    pub(crate) fn forget_bmc_requests(&self) {
        self.fleet.bmcs().iter().for_each(sim::Bmc::reset_counters);
    }

    pub(crate) async fn apply_hosts(&self) -> Result<()> {
        let api = self.api::<PhysicalHost>();
        stream::iter(self.serving.endpoints())
            .map(|endpoint| {
                let api = &api;
                async move {
                    let fingerprint = endpoint.certificate().map(|certificate| certificate.fingerprint());
                    let host = serde_json::from_value(json!({
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                        "kind": "PhysicalHost",
                        "metadata": { "name": endpoint.bmc().name() },
                        "spec": { "redfishConnection": {
                            "address": endpoint.url(),
                            "credentialsSecretRef": "bmc",
                            "certificateFingerprint": fingerprint,
                        } },
                    }))?;
                    api.create(&PostParams::default(), &host).await?;
                    anyhow::Ok(())
                }
            })
            .buffer_unordered(CREATORS)
            .try_collect()
            .await
    }

    pub(crate) async fn wait_until_available(&mut self) -> Result<()> {
        // Metadata only: reading whole inventories would cost the API server more than the operator does.
        let api: Api<kube::core::PartialObjectMeta<PhysicalHost>> = self.api();
        let available = ListParams::default().fields("status.state=Available");
        let hosts = self.hosts as usize;
        self.wait_for_all("hosts were Available", hosts, async || Ok(api.list_metadata(&available).await?.items.len()))
            .await
    }

    /// Asks how many there are until it is all, while the operator lives.
    pub(crate) async fn wait_for_all(
        &mut self,
        what: &str,
        all: usize,
        count: impl AsyncFn() -> Result<usize>,
    ) -> Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let count = count().await?;
            if count == all {
                return Ok(());
            }
            if let Some(status) = self.operator.try_wait()? {
                bail!("the operator ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("{count} of {all} {what} after {LIMIT:?}");
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.operator.kill().await?;
        self.serving.stop().await;
        Ok(())
    }
}

fn start_operator(binary: &Path, account: &Account, namespace: &str, more: &[&str]) -> Result<Child> {
    let arguments = [
        "run",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--log-level=warn",
    ];
    let command = Command::new(binary)
        .args(arguments)
        .args(more)
        .args(["--namespace", namespace, "--kubeconfig"])
        .arg(account.kubeconfig())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    command.with_context(|| format!("cannot start {}; build it with `make build`", binary.display()))
}
