//! Where hosts and machines are measured: a real API server, simulated BMCs, and the operator as a process of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use sim::{Fleet, FleetSpec, ServeSpec, Serving, Timing};
use tempfile::TempDir;
use testkit::{Account, AuditWrite, Cluster};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::kinds::{HostKind, mac_prefixes, no_program};

/// A fleet that takes longer than this is not worth waiting for.
const LIMIT: Duration = Duration::from_mins(15);

/// Requests of ours that are under way at once when many objects are created.
pub(crate) const CREATORS: usize = 16;

/// How many servers there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) bmcs: u32,
    /// Behind each of them.
    pub(crate) systems: u32,
}

impl Size {
    /// Each server has a BMC of its own.
    pub(crate) fn of(bmcs: u32) -> Self {
        Self { bmcs, systems: 1 }
    }

    pub(crate) fn servers(self) -> u32 {
        self.bmcs * self.systems
    }
}

/// Everything that a measurement of the operator needs; the operator ends with this.
pub(crate) struct Stage {
    size: Size,
    kind: HostKind,
    namespace: String,
    pid: u32,
    operator: Child,
    serving: Serving,
    fleet: Fleet,
    account: Account,
    cluster: Cluster,
    /// Files that the operator reads.
    _files: TempDir,
}

impl Stage {
    /// Starts everything, with `more` arguments for the operator. There are no hosts yet.
    pub(crate) async fn start(size: Size, kind: HostKind, binary: &Path, more: &[&str]) -> Result<Self> {
        let cluster = Cluster::start().await;
        cluster.apply_yaml(&kind.definitions()).await;
        let namespace = cluster.namespace("bench").await;
        let account = cluster.service_account(&namespace, "beskar7", &kind.roles(&namespace, binary)?).await;
        let Size { bmcs, systems } = size;
        let fleet = Fleet::new(&FleetSpec { count: bmcs, systems, timing: Timing::INSTANT, ..FleetSpec::default() });
        let serving = fleet.serve(ServeSpec::default()).await?;
        create(&Api::namespaced(cluster.admin(), &namespace), secrets(kind, &fleet)?).await?;
        let files = TempDir::new()?;
        let own = match kind {
            HostKind::PhysicalHost | HostKind::BareMetalHost => vec!["--namespace".to_owned(), namespace.clone()],
            HostKind::Server => {
                let prefixes = files.path().join("mac-prefixes.yaml");
                std::fs::write(&prefixes, mac_prefixes(serving.endpoints()))?;
                vec!["--mac-prefixes-file".to_owned(), prefixes.display().to_string()]
            }
        };
        let own = own.iter().map(String::as_str);
        let arguments: Vec<_> = kind.arguments().iter().copied().chain(own).chain(more.iter().copied()).collect();
        let operator = start_operator(binary, &account, &arguments)?;
        let pid = operator.id().context("the operator ended at once")?;
        Ok(Self { size, kind, namespace, pid, operator, serving, fleet, account, cluster, _files: files })
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
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The admin's way to the API server.
    pub(crate) fn client(&self) -> Client {
        self.cluster.admin()
    }

    /// What the operator wrote so far, or tried to, by the API server's own log.
    pub(crate) async fn writes(&self, ignored: &[&str]) -> Vec<AuditWrite> {
        self.cluster.writes(self.account.user(), ignored).await
    }

    pub(crate) fn bmc_requests(&self) -> u64 {
        self.fleet.bmcs().iter().map(|bmc| bmc.counters().total()).sum()
    }

    /// How often somebody has logged in, on all BMCs.
    pub(crate) fn logins(&self) -> u64 {
        let counters = self.fleet.bmcs().iter().map(sim::Bmc::counters);
        counters.map(|counters| counters.of(sim::Verb::Post, sim::Kind::Sessions)).sum()
    }

    pub(crate) fn forget_bmc_requests(&self) {
        self.fleet.bmcs().iter().for_each(sim::Bmc::reset_counters);
    }

    pub(crate) async fn apply_hosts(&self) -> Result<()> {
        let endpoints = self.serving.endpoints().iter().enumerate();
        let hosts = endpoints.map(|(number, endpoint)| self.kind.host(number, endpoint)).collect::<Result<_>>()?;
        create(&self.kind.api(self.cluster.admin(), &self.namespace), hosts).await
    }

    pub(crate) async fn wait_until_available(&mut self) -> Result<()> {
        let (kind, client, namespace) = (self.kind, self.cluster.admin(), self.namespace.clone());
        let hosts = self.size.servers() as usize;
        self.wait_for_all("hosts were available", hosts, async || kind.available(&client, &namespace).await).await
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

async fn create<K>(api: &Api<K>, objects: Vec<K>) -> Result<()>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let parameters = PostParams::default();
    stream::iter(&objects)
        .map(async |object| api.create(&parameters, object).await)
        .buffer_unordered(CREATORS)
        .try_for_each(async |_| Ok(()))
        .await?;
    Ok(())
}

/// What the BMCs of these names are logged in to with.
fn secrets(kind: HostKind, fleet: &Fleet) -> Result<Vec<Secret>> {
    let names: BTreeSet<_> = fleet.bmcs().iter().filter_map(|bmc| kind.secret(bmc.name())).collect();
    let login = json!({ "username": "admin", "password": "password" });
    let secret = |name| serde_json::from_value(json!({ "metadata": { "name": name }, "stringData": login }));
    Ok(names.into_iter().map(secret).collect::<Result<_, _>>()?)
}

/// What was written how often: the object or its status, and whether the API server refused it.
pub(crate) fn by_kind(writes: &[AuditWrite]) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    for write in writes {
        let slash = if write.subresource.is_empty() { "" } else { "/" };
        let refused = if write.code < 400 { String::new() } else { format!(", refused with {}", write.code) };
        let kind = format!("{} {}{slash}{}{refused}", write.verb, write.resource, write.subresource);
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

fn start_operator(binary: &Path, account: &Account, more: &[&str]) -> Result<Child> {
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
        .arg("--kubeconfig")
        .arg(account.kubeconfig())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    command.with_context(|| no_program(binary))
}
