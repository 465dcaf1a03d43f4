//! What machines cost that all want a server at once, on a real API server on the same machine.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use api::beskar7::Beskar7Machine;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use serde_json::json;
use testkit::AuditWrite;
use tokio::time::Instant;

use crate::kinds::HostKind;
use crate::process::{float, kept, usage};
use crate::stage::{CREATORS, Size, Stage, by_kind};

/// How much is measured.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Rush {
    /// Beskar7Machines or ServerClaims that are applied at once
    #[arg(long, default_value_t = 300, value_name = "NUMBER")]
    pub(crate) orders: u32,
    /// Hosts that they can have
    #[arg(long, default_value_t = 500, value_name = "NUMBER")]
    pub(crate) servers: u32,
}

/// The operator is measured, not its brakes: nobody waits for a turn.
pub(crate) const GENEROUS: [&str; 3] =
    ["--max-deployments=1000", "--max-disruptions-per-minute=100000", "--bmc-concurrency=128"];

const WRITES_WANTED: f64 = 10.0;
const MEMORY_WANTED_MB: f64 = 64.0;

/// What it costs from the orders to servers that run, for each of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rushed {
    /// Orders per second.
    pub(crate) rate: f64,
    pub(crate) api_writes: f64,
    pub(crate) cpu_ms: f64,
}

/// Prints what it costs to boot many machines at once.
pub(crate) async fn print(args: &Rush, binary: &Path) -> Result<Rushed> {
    let Rush { orders, servers } = *args;
    println!(
        "{orders} machines at once on {servers} simulated hosts over TLS, kube-apiserver and etcd on the same machine"
    );
    let arguments = [&["--without-cluster-api"], &GENEROUS[..]].concat();
    println!("  beskar7 run {}", arguments.join(" "));
    let mut stage = Stage::start(Size::of(servers), HostKind::PhysicalHost, binary, &arguments).await?;
    stage.apply_hosts().await?;
    stage.wait_until_available().await?;
    let before = Before::of(&stage).await?;
    apply(&stage, orders).await?;
    let applied = before.started.elapsed();
    wait_until_ready(&mut stage, orders).await?;
    let (figures, writes) = before.print("machine", orders, applied, WRITES_WANTED, MEMORY_WANTED_MB, &stage).await?;
    println!(
        "  {:.2} of the API writes from the claim on, the others protect the machine before",
        float(from_the_claim_on(&writes).count() as u64) / f64::from(orders)
    );
    stage.stop().await?;
    Ok(figures)
}

/// What there was before the orders came: hosts that have just come are no part of what an order costs.
pub(crate) struct Before {
    registered: usize,
    cpu: Duration,
    pub(crate) started: Instant,
}

impl Before {
    pub(crate) async fn of(stage: &Stage) -> Result<Self> {
        let registered = stage.writes(&[]).await.len();
        stage.forget_bmc_requests();
        let (cpu, _) = usage(stage.pid())?;
        Ok(Self { registered, cpu, started: Instant::now() })
    }

    /// Prints what has been spent since then on orders that are all carried out now, and answers with the writes, too.
    pub(crate) async fn print(
        self,
        what: &str,
        orders: u32,
        applied: Duration,
        writes_wanted: f64,
        memory_wanted_mb: f64,
        stage: &Stage,
    ) -> Result<(Rushed, Vec<AuditWrite>)> {
        let took = self.started.elapsed();
        let (cpu, peak) = usage(stage.pid())?;
        let writes = stage.writes(&[]).await.split_off(self.registered);
        let (events, writes): (Vec<_>, Vec<_>) = writes.into_iter().partition(|write| write.resource == "events");
        let each = |total: f64| total / f64::from(orders);
        let peak = float(peak) / 1024.0;
        let figures = Rushed {
            rate: f64::from(orders) / took.as_secs_f64(),
            api_writes: each(float(writes.len() as u64)),
            cpu_ms: each(cpu.saturating_sub(self.cpu).as_secs_f64() * 1000.0),
        };
        println!(
            "  apply to ready         {:>8.1} {what}s/s   ({:.1} s; applying alone took {:.1} s)",
            figures.rate,
            took.as_secs_f64(),
            applied.as_secs_f64()
        );
        println!(
            "  API writes             {:>8.2} per {what}   (wanted: at most {writes_wanted}: {}); {:.2} Events beside these",
            figures.api_writes,
            kept(figures.api_writes <= writes_wanted),
            each(float(events.len() as u64))
        );
        for (what, count) in by_kind(&writes) {
            println!("    {:>6.2} {what}", each(float(count)));
        }
        println!("  BMC requests           {:>8.2} per {what}", each(float(stage.bmc_requests())));
        println!("  operator CPU           {:>8.2} ms per {what}", figures.cpu_ms);
        println!(
            "  operator memory        {peak:>8.1} MB at most   (wanted: at most {memory_wanted_mb} MB: {})",
            kept(peak <= memory_wanted_mb)
        );
        Ok((figures, writes))
    }
}

async fn apply(stage: &Stage, orders: u32) -> Result<()> {
    let api = stage.api::<Beskar7Machine>();
    stream::iter(0..orders)
        .map(|number| {
            let api = &api;
            async move {
                let machine = serde_json::from_value(json!({
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "Beskar7Machine",
                    "metadata": { "name": format!("node-{number:03}") },
                    "spec": { "provisioningMode": "PreBakedISO", "imageURL": "http://images.test/os.iso" },
                }))?;
                api.create(&PostParams::default(), &machine).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(CREATORS)
        .try_collect()
        .await
}

async fn wait_until_ready(stage: &mut Stage, orders: u32) -> Result<()> {
    let api = stage.api::<Beskar7Machine>();
    stage
        .wait_for_all("machines were ready", orders as usize, async || {
            let machines = api.list(&ListParams::default()).await?;
            Ok(machines.iter().filter(|machine| is_ready(machine)).count())
        })
        .await
}

fn is_ready(machine: &Beskar7Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.ready == Some(true))
}

/// All but the first write on each machine: that one gives it its id and finalizer, without which it may not claim.
fn from_the_claim_on(writes: &[AuditWrite]) -> impl Iterator<Item = &AuditWrite> {
    let mut known = HashSet::new();
    writes.iter().filter(move |write| write.resource != "beskar7machines" || !known.insert(&write.name))
}
