//! What a fleet costs, on a real API server on the same machine.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::kinds::HostKind;
use crate::process::{float, resident_mb, usage};
use crate::stage::Stage;

/// Prints what it costs to register a fleet, and to let it rest.
pub(crate) async fn print(kind: HostKind, hosts: u32, rest: u64, binary: &Path) -> Result<()> {
    println!("{hosts} simulated servers ({kind:?}) over TLS, kube-apiserver and etcd on the same machine");
    let mut stage = Stage::start(hosts, kind, binary, &[]).await?;
    let started = Instant::now();
    stage.apply_hosts().await?;
    let applied = started.elapsed();
    stage.wait_until_available().await?;
    let took = started.elapsed();
    let (cpu, peak) = usage(stage.pid())?;
    let writes = stage.writes(&["events", "leases"]).await.len();
    let each = |total: f64| total / f64::from(hosts);
    println!(
        "  apply to Available     {:>8.1} hosts/s   ({:.1} s; applying alone took {:.1} s)",
        f64::from(hosts) / took.as_secs_f64(),
        took.as_secs_f64(),
        applied.as_secs_f64()
    );
    println!("  API writes             {:>8.2} per host", each(float(writes as u64)));
    println!("  BMC requests           {:>8.2} per host", each(float(stage.bmc_requests())));
    println!("  operator CPU           {:>8.2} ms per host", each(cpu.as_secs_f64() * 1000.0));
    println!("  operator memory        {:>8.1} MB at most", float(peak) / 1024.0);

    rest_and_print(rest, hosts, &stage).await?;
    stage.stop().await
}

async fn rest_and_print(rest: u64, hosts: u32, stage: &Stage) -> Result<()> {
    if rest == 0 {
        return Ok(());
    }
    let writes = stage.writes(&["leases"]).await.len();
    let (cpu, _) = usage(stage.pid())?;
    stage.forget_bmc_requests();
    tokio::time::sleep(Duration::from_secs(rest)).await;
    let requests = stage.bmc_requests();
    let writes = stage.writes(&["leases"]).await.len() - writes;
    let (cpu_after, peak) = usage(stage.pid())?;
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
        resident_mb(stage.pid(), "VmRSS:")?
    );
    Ok(())
}
