//! How long until it answers.

use std::path::Path;

use anyhow::Result;

use super::median;
use super::site::Site;

const TIMES: usize = 5;

pub(super) async fn print_empty(binary: &Path) -> Result<()> {
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let folder = tempfile::tempdir()?;
        took.push(milliseconds(Site::start(binary, folder.path()).await?).await?);
    }
    print("an empty folder", &took);
    Ok(())
}

pub(super) async fn print_full(binary: &Path, folder: &Path, objects: u32) -> Result<()> {
    let mut took = Vec::new();
    for _ in 0..TIMES {
        took.push(milliseconds(Site::start(binary, folder).await?).await?);
    }
    print(&format!("{objects} hosts, after kill -9"), &took);
    Ok(())
}

async fn milliseconds(site: Site) -> Result<f64> {
    let took = site.answered_after.as_secs_f64() * 1000.0;
    site.kill().await?;
    Ok(took)
}

fn print(what: &str, took: &[f64]) {
    let most = took.iter().copied().fold(0.0, f64::max);
    let what = format!("start with {what}");
    println!("  {what:<44} {:>9.0} ms        (at most {most:.0} ms; to reach: 300 ms)", median(took));
}
