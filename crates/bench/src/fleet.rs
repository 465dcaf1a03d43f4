//! What a fleet costs, on a real API server on the same machine.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::kinds::HostKind;
use crate::process::{float, resident_mb, usage};
use crate::stage::{Size, Stage, by_kind};

/// What it costs until all servers are available, for each of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registering {
    /// Servers per second.
    pub(crate) rate: f64,
    pub(crate) api_writes: f64,
    pub(crate) bmc_requests: f64,
    pub(crate) cpu_ms: f64,
    /// Memory of the operator at most.
    pub(crate) peak_mb: f64,
    /// For each BMC.
    pub(crate) logins: f64,
}

/// What it costs while nothing happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resting {
    /// In all.
    pub(crate) api_writes: usize,
    /// For each BMC and minute.
    pub(crate) bmc_requests: f64,
}

/// Prints what it costs to register a fleet, and to let it rest for so many seconds, if at all.
pub(crate) async fn print(
    kind: HostKind,
    size: Size,
    rest: u64,
    binary: &Path,
) -> Result<(Registering, Option<Resting>)> {
    let Size { bmcs, systems } = size;
    println!(
        "{bmcs} BMCs over TLS with {systems} simulated servers each ({kind:?}), kube-apiserver and etcd on the same machine"
    );
    let mut stage = Stage::start(size, kind, binary, &[]).await?;
    let registering = register_and_print(size, &mut stage).await?;
    let resting = match rest {
        0 => None,
        rest => Some(rest_and_print(rest, bmcs, &stage).await?),
    };
    stage.stop().await?;
    Ok((registering, resting))
}

async fn register_and_print(size: Size, stage: &mut Stage) -> Result<Registering> {
    let started = Instant::now();
    stage.apply_hosts().await?;
    let applied = started.elapsed();
    stage.wait_until_available().await?;
    let took = started.elapsed();
    let (cpu, peak) = usage(stage.pid())?;
    let writes = stage.writes(&["events", "leases"]).await;
    let each = |total: f64| total / f64::from(size.servers());
    let figures = Registering {
        rate: f64::from(size.servers()) / took.as_secs_f64(),
        api_writes: each(float(writes.len() as u64)),
        bmc_requests: each(float(stage.bmc_requests())),
        cpu_ms: each(cpu.as_secs_f64() * 1000.0),
        peak_mb: float(peak) / 1024.0,
        logins: float(stage.logins()) / f64::from(size.bmcs),
    };
    println!(
        "  apply to Available     {:>8.1} servers/s   ({:.1} s; applying alone took {:.1} s)",
        figures.rate,
        took.as_secs_f64(),
        applied.as_secs_f64()
    );
    println!("  API writes             {:>8.2} per server", figures.api_writes);
    for (what, count) in by_kind(&writes) {
        println!("    {:>6.2} {what}", each(float(count)));
    }
    println!("  BMC requests           {:>8.2} per server", figures.bmc_requests);
    println!("  logins                 {:>8.2} per BMC", figures.logins);
    println!("  operator CPU           {:>8.2} ms per server", figures.cpu_ms);
    println!("  operator memory        {:>8.1} MB at most", figures.peak_mb);
    Ok(figures)
}

async fn rest_and_print(rest: u64, bmcs: u32, stage: &Stage) -> Result<Resting> {
    let writes = stage.writes(&["leases"]).await.len();
    let (cpu, _) = usage(stage.pid())?;
    stage.forget_bmc_requests();
    tokio::time::sleep(Duration::from_secs(rest)).await;
    let requests = stage.bmc_requests();
    let written = stage.writes(&["leases"]).await.split_off(writes);
    let (cpu_after, peak) = usage(stage.pid())?;
    let per_minute = |total: f64| total / f64::from(bmcs) * 60.0 / float(rest);
    let figures = Resting { api_writes: written.len(), bmc_requests: per_minute(float(requests)) };
    println!("at rest, for {rest} s");
    println!("  API writes             {:>8} in all", figures.api_writes);
    for (what, count) in by_kind(&written) {
        println!("    {count:>6} {what}");
    }
    println!("  BMC requests           {:>8.2} per BMC and minute", figures.bmc_requests);
    println!(
        "  operator CPU           {:>8.2} ms per BMC and minute",
        per_minute(cpu_after.saturating_sub(cpu).as_secs_f64() * 1000.0)
    );
    println!(
        "  operator memory        {:>8.1} MB at most, {:.1} MB now",
        float(peak) / 1024.0,
        resident_mb(stage.pid(), "VmRSS:")?
    );
    Ok(figures)
}
