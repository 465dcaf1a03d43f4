//! What metal-operator's kinds cost, in turns with ours: only ratios can be compared between machines.

use std::path::Path;

use anyhow::Result;
use api::ironcore::states::boot;
use api::ironcore::{ServerBootConfiguration, ServerClaim, conditions as types};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinSet;

use crate::fleet;
use crate::kinds::HostKind;
use crate::machines::{self, Before, GENEROUS, Rush, Rushed};
use crate::process::{float, kept};
use crate::stage::{CREATORS, Size, Stage};

const SYSTEMS: u32 = 4;

const RATE_WANTED: f64 = 15.0;
const WRITES_WANTED: f64 = 9.0;
const CPU_WANTED_MS: f64 = 25.0;
const MEMORY_WANTED_MB: f64 = 96.0;
const MORE_REQUESTS_WANTED: f64 = 4.0;
const RESTING_REQUESTS_WANTED: f64 = 1.0;
const CLAIM_WRITES_WANTED: f64 = 13.0;

/// Prints all that is promised of these kinds.
pub(crate) async fn print(servers: u32, rest: u64, rush: &Rush, binary: &Path) -> Result<()> {
    let (ours, _) = fleet::print(HostKind::PhysicalHost, Size::of(servers), 0, binary).await?;
    println!();
    let (found, _) = fleet::print(HostKind::Server, Size::of(servers), 0, binary).await?;
    println!();
    let size = Size { bmcs: servers / SYSTEMS, systems: SYSTEMS };
    let (shared, resting) = fleet::print(HostKind::Server, size, rest, binary).await?;
    println!();
    let machines = machines::print(rush, binary).await?;
    println!();
    let claims = print_claims(rush, binary).await?;

    println!();
    println!("Endpoints to Servers that are Available");
    line("servers/s", found.rate, found.rate >= RATE_WANTED, &format!("at least {RATE_WANTED}"));
    println!("  {:<34} {:>8.2} of PhysicalHosts in the same minutes", "", found.rate / ours.rate);
    at_most("API writes per server", found.api_writes, WRITES_WANTED);
    at_most("operator CPU per server, ms", found.cpu_ms, CPU_WANTED_MS);
    at_most("operator memory, MB", found.peak_mb, MEMORY_WANTED_MB);
    let more = found.bmc_requests - ours.bmc_requests;
    at_most("BMC requests beyond a PhysicalHost", more, MORE_REQUESTS_WANTED);
    println!("{} BMCs with {SYSTEMS} systems each", size.bmcs);
    at_most("logins per BMC", shared.logins, 1.0);
    if let Some(resting) = resting {
        line("API writes at rest", float(resting.api_writes as u64), resting.api_writes == 0, "none");
        at_most("BMC requests per BMC and minute", resting.bmc_requests, RESTING_REQUESTS_WANTED);
    }
    println!("ServerClaims to servers that run");
    at_most("API writes per claim", claims.api_writes, CLAIM_WRITES_WANTED);
    println!(
        "  {:<34} {:>8.2} ({:.2} of machines in the same minutes)",
        "claims/s",
        claims.rate,
        claims.rate / machines.rate
    );
    println!("  {:<34} {:>8.2} ({:.2} per machine)", "operator CPU per claim, ms", claims.cpu_ms, machines.cpu_ms);
    Ok(())
}

fn at_most(what: &str, is: f64, wanted: f64) {
    line(what, is, is <= wanted, &format!("at most {wanted}"));
}

fn line(what: &str, is: f64, is_kept: bool, wanted: &str) {
    println!("  {what:<34} {is:>8.2} (wanted: {wanted}: {})", kept(is_kept));
}

/// Prints what it costs to claim and boot many servers at once, with somebody who says that each may boot.
async fn print_claims(rush: &Rush, binary: &Path) -> Result<Rushed> {
    let Rush { orders, servers } = *rush;
    println!(
        "{orders} ServerClaims at once on {servers} simulated servers over TLS, kube-apiserver and etcd on the same machine"
    );
    println!("  beskar7 run --dialects=ironcore {}", GENEROUS.join(" "));
    let mut stage = Stage::start(Size::of(servers), HostKind::Server, binary, &GENEROUS).await?;
    stage.apply_hosts().await?;
    stage.wait_until_available().await?;
    // It ends together with this.
    let mut provider = JoinSet::new();
    provider.spawn(provide(stage.api()));
    let before = Before::of(&stage).await?;
    apply(&stage, orders).await?;
    let applied = before.started.elapsed();
    let api = stage.api::<ServerClaim>();
    stage
        .wait_for_all("servers ran for their claims", orders as usize, async || {
            let claims = api.list(&ListParams::default()).await?;
            Ok(claims.iter().filter(|claim| is_served(claim)).count())
        })
        .await?;
    let (figures, _) = before.print("claim", orders, applied, CLAIM_WRITES_WANTED, MEMORY_WANTED_MB, &stage).await?;
    drop(provider);
    stage.stop().await?;
    Ok(figures)
}

/// Stands in for a boot provider, which prepares nothing and says so at once.
async fn provide(api: Api<ServerBootConfiguration>) {
    let all = watcher(api.clone(), watcher::Config::default()).default_backoff().applied_objects();
    let pending = all.filter_map(async |configuration| {
        let configuration = configuration.inspect_err(|error| println!("boot provider: {error}")).ok()?;
        let is_pending = configuration.status.as_ref().is_none_or(|status| status.state != boot::READY);
        is_pending.then(|| configuration.name_any())
    });
    let ready = Patch::Merge(json!({ "status": { "state": boot::READY } }));
    pending
        .for_each_concurrent(CREATORS, async |name| {
            if let Err(error) = api.patch_status(&name, &PatchParams::default(), &ready).await {
                println!("boot provider: {error}");
            }
        })
        .await;
}

async fn apply(stage: &Stage, orders: u32) -> Result<()> {
    let api = stage.api::<ServerClaim>();
    stream::iter(0..orders)
        .map(|number| {
            let api = &api;
            async move {
                let claim = serde_json::from_value(json!({
                    "metadata": { "name": format!("node-{number:03}") },
                    "spec": { "power": "On", "image": "registry.example/os:1" },
                }))?;
                api.create(&PostParams::default(), &claim).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(CREATORS)
        .try_collect()
        .await
}

/// Whether its server runs what was prepared for it.
fn is_served(claim: &ServerClaim) -> bool {
    let conditions = claim.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|shown| shown.type_ == types::READY && shown.status == "True")
}
