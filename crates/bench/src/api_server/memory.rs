//! How much memory the whole process has with a fleet in it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use http::Method;
use tokio::time::sleep;

use super::hosts::{NAMESPACE, collection};
use super::site::Site;
use super::wire::{JSON, send};
use crate::process::{resident_mb, usage};

/// Long enough for the operator to have tried every BMC twice.
const SETTLED: Duration = Duration::from_secs(30);

pub(super) async fn print(binary: &Path, folder: &Path, count: u32) -> Result<()> {
    let site = Site::start(binary, folder).await?;
    let pid = site.pid()?;
    sleep(SETTLED).await;
    let settled = resident_mb(pid, "VmRSS:")?;
    let client = site.door().client().await?;
    for _ in 0..3 {
        send(&client, Method::GET, &collection(NAMESPACE), JSON, String::new()).await?;
    }
    let (cpu, _) = usage(pid)?;
    println!(
        "  memory with {count} hosts, operator included     {settled:>6.0} MB after {} s, {:.0} MB after three lists, {:.0} MB at most (to reach: 256 MB); {:.1} s CPU",
        SETTLED.as_secs(),
        resident_mb(pid, "VmRSS:")?,
        resident_mb(pid, "VmHWM:")?,
        cpu.as_secs_f64(),
    );
    site.kill().await
}
