//! What machines cost that all want a server at once, on a real API server on the same machine.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::Result;
use api::beskar7::Beskar7Machine;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, PostParams};
use serde_json::json;
use testkit::AuditWrite;
use tokio::time::Instant;

use crate::kinds::HostKind;
use crate::process::{float, kept, usage};
use crate::stage::{CREATORS, Stage};

/// How much is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Rush {
    /// Beskar7Machines that are applied at once
    #[arg(long, default_value_t = 300, value_name = "NUMBER")]
    orders: u32,
    /// Hosts that they can have
    #[arg(long, default_value_t = 500, value_name = "NUMBER")]
    servers: u32,
}

/// The operator is measured, not its brakes: nobody waits for a turn.
const GENEROUS: [&str; 4] =
    ["--without-cluster-api", "--max-deployments=1000", "--max-disruptions-per-minute=100000", "--bmc-concurrency=128"];

const WRITES_WANTED: f64 = 10.0;
const MEMORY_WANTED_MB: f64 = 64.0;

/// Prints what it costs to boot many machines at once.
pub(crate) async fn print(args: &Rush, binary: &Path) -> Result<()> {
    let Rush { orders, servers } = *args;
    println!(
        "{orders} machines at once on {servers} simulated hosts over TLS, kube-apiserver and etcd on the same machine"
    );
    println!("  beskar7 run {}", GENEROUS.join(" "));
    let mut stage = Stage::start(servers, HostKind::PhysicalHost, binary, &GENEROUS).await?;
    stage.apply_hosts().await?;
    stage.wait_until_available().await?;
    // Hosts that have just come are no part of what a machine costs.
    let registered = stage.writes(&[]).await.len();
    stage.forget_bmc_requests();
    let (cpu_before, _) = usage(stage.pid())?;

    let started = Instant::now();
    apply(&stage, orders).await?;
    let applied = started.elapsed();
    wait_until_ready(&mut stage, orders).await?;
    let took = started.elapsed();
    let (cpu, peak) = usage(stage.pid())?;
    let writes = stage.writes(&[]).await.split_off(registered);
    let (events, writes): (Vec<_>, Vec<_>) = writes.into_iter().partition(|write| write.resource == "events");

    let each = |total: f64| total / f64::from(orders);
    let per_machine = each(float(writes.len() as u64));
    let peak = float(peak) / 1024.0;
    println!(
        "  apply to ready         {:>8.1} machines/s   ({:.1} s; applying alone took {:.1} s)",
        f64::from(orders) / took.as_secs_f64(),
        took.as_secs_f64(),
        applied.as_secs_f64()
    );
    println!(
        "  API writes             {per_machine:>8.2} per machine   (wanted: at most {WRITES_WANTED}: {})",
        kept(per_machine <= WRITES_WANTED)
    );
    println!(
        "    {:.2} of them from the claim on, the others protect the machine before; {:.2} Events beside these",
        each(float(from_the_claim_on(&writes).count() as u64)),
        each(float(events.len() as u64))
    );
    for (what, count) in by_kind(&writes) {
        println!("    {:>6.2} {what}", each(float(count)));
    }
    println!("  BMC requests           {:>8.2} per machine", each(float(stage.bmc_requests())));
    println!(
        "  operator CPU           {:>8.2} ms per machine",
        each(cpu.saturating_sub(cpu_before).as_secs_f64() * 1000.0)
    );
    println!(
        "  operator memory        {peak:>8.1} MB at most   (wanted: at most {MEMORY_WANTED_MB} MB: {})",
        kept(peak <= MEMORY_WANTED_MB)
    );
    stage.stop().await
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

/// What was written how often: the object or its status, and whether the API server refused it.
fn by_kind(writes: &[AuditWrite]) -> BTreeMap<String, u64> {
    let mut kinds = BTreeMap::new();
    for write in writes {
        let slash = if write.subresource.is_empty() { "" } else { "/" };
        let refused = if write.code < 400 { String::new() } else { format!(", refused with {}", write.code) };
        let kind = format!("{} {}{slash}{}{refused}", write.verb, write.resource, write.subresource);
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}
