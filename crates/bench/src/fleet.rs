//! What a fleet costs, on a real API server on the same machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use api::beskar7::PhysicalHost;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use sim::{Fleet, FleetSpec, ServeSpec, Timing};
use testkit::{Account, Cluster};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use crate::process::{float, status, usage};

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

/// A fleet that takes longer than this is not worth waiting for.
const LIMIT: Duration = Duration::from_mins(15);

/// Prints what it costs to register a fleet, and to let it rest.
pub(crate) async fn print(hosts: u32, rest: u64, binary: &Path) -> Result<()> {
    println!("{hosts} simulated hosts over TLS, kube-apiserver and etcd on the same machine");
    let cluster = Cluster::start().await;
    cluster.apply_yaml(&api::crds_yaml()).await;
    let namespace = cluster.namespace("bench").await;
    let account = cluster.service_account(&namespace, "beskar7", ROLES).await;
    let fleet = Fleet::new(&FleetSpec { count: hosts, timing: Timing::INSTANT, ..FleetSpec::default() });
    let serving = fleet.serve(ServeSpec::default()).await?;
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: bmc}\nstringData: {username: admin, password: password}\n";
    cluster.apply_yaml_in(&namespace, secret).await;
    let mut operator = start_operator(binary, &account, &namespace)?;
    let pid = operator.id().context("the operator ended at once")?;
    let api: Api<PhysicalHost> = Api::namespaced(cluster.admin(), &namespace);

    let started = Instant::now();
    apply(&api, &serving).await?;
    let applied = started.elapsed();
    wait_until_available(&cluster.admin(), &namespace, hosts, &mut operator).await?;
    let took = started.elapsed();
    let (cpu, peak) = usage(pid)?;
    let writes = cluster.writes(account.user(), &["events", "leases"]).await.len();
    let requests: u64 = fleet.bmcs().iter().map(|bmc| bmc.counters().total()).sum();
    let each = |total: f64| total / f64::from(hosts);
    println!(
        "  apply to Available     {:>8.1} hosts/s   ({:.1} s; applying alone took {:.1} s)",
        f64::from(hosts) / took.as_secs_f64(),
        took.as_secs_f64(),
        applied.as_secs_f64()
    );
    println!("  API writes             {:>8.2} per host", each(float(writes as u64)));
    println!("  BMC requests           {:>8.2} per host", each(float(requests)));
    println!("  operator CPU           {:>8.2} ms per host", each(cpu.as_secs_f64() * 1000.0));
    println!("  operator memory        {:>8.1} MB at most", float(peak) / 1024.0);

    rest_and_print(rest, hosts, &cluster, &account, &fleet, pid).await?;
    operator.kill().await?;
    serving.stop().await;
    Ok(())
}

async fn rest_and_print(
    rest: u64,
    hosts: u32,
    cluster: &Cluster,
    account: &Account,
    fleet: &Fleet,
    pid: u32,
) -> Result<()> {
    if rest == 0 {
        return Ok(());
    }
    let writes = cluster.writes(account.user(), &["leases"]).await.len();
    let (cpu, _) = usage(pid)?;
    fleet.bmcs().iter().for_each(sim::Bmc::reset_counters);
    tokio::time::sleep(Duration::from_secs(rest)).await;
    let requests: u64 = fleet.bmcs().iter().map(|bmc| bmc.counters().total()).sum();
    let writes = cluster.writes(account.user(), &["leases"]).await.len() - writes;
    let (cpu_after, peak) = usage(pid)?;
    let per_minute = |total: f64| total / f64::from(hosts) * 60.0 / float(rest);
    println!("at rest, for {rest} s");
    println!("  API writes             {writes:>8} in all");
    println!("  BMC requests           {:>8.2} per host and minute", per_minute(float(requests)));
    println!(
        "  operator CPU           {:>8.2} ms per host and minute",
        per_minute(cpu_after.saturating_sub(cpu).as_secs_f64() * 1000.0)
    );
    println!(
        "  operator memory        {:>8.1} MB at most, {:.1} MB now",
        float(peak) / 1024.0,
        float(status(pid, "VmRSS:")?) / 1024.0
    );
    Ok(())
}

fn start_operator(binary: &Path, account: &Account, namespace: &str) -> Result<Child> {
    let arguments = [
        "run",
        "--leader-elect=false",
        "--metrics-bind-address=0",
        "--health-probe-bind-address=0",
        "--log-level=warn",
    ];
    let command = Command::new(binary)
        .args(arguments)
        .args(["--namespace", namespace, "--kubeconfig"])
        .arg(account.kubeconfig())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    command.with_context(|| format!("cannot start {}; build it with `make build`", binary.display()))
}

async fn apply(api: &Api<PhysicalHost>, serving: &sim::Serving) -> Result<()> {
    stream::iter(serving.endpoints())
        .map(|endpoint| async move {
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
        })
        .buffer_unordered(16)
        .try_collect()
        .await
}

async fn wait_until_available(client: &Client, namespace: &str, hosts: u32, operator: &mut Child) -> Result<()> {
    // Metadata only: reading whole inventories would cost the API server more than the operator does.
    let api: Api<kube::core::PartialObjectMeta<PhysicalHost>> = Api::namespaced(client.clone(), namespace);
    let available = ListParams::default().fields("status.state=Available");
    let deadline = Instant::now() + LIMIT;
    loop {
        let count = api.list_metadata(&available).await?.items.len();
        if count == hosts as usize {
            return Ok(());
        }
        if let Some(status) = operator.try_wait()? {
            bail!("the operator ended: {status}");
        }
        if Instant::now() > deadline {
            bail!("{count} of {hosts} hosts were Available after {LIMIT:?}");
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}
