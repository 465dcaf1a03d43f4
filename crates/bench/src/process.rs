//! What the kernel says about a running program.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// CPU time so far, and the most memory ever in KiB.
pub(crate) fn usage(pid: u32) -> Result<(Duration, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Fields 14 and 15 in ticks, of which Linux has 100 a second; the name before them may contain blanks.
    let fields: Vec<_> = stat.rsplit_once(')').context("no such process")?.1.split_whitespace().collect();
    let ticks: u64 =
        fields.get(11..13).context("odd /proc/PID/stat")?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok((Duration::from_millis(ticks * 10), status(pid, "VmHWM:")?))
}

/// A number of KiB from what the kernel says about a process.
fn status(pid: u32, key: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).context("odd /proc/PID/status")?;
    Ok(line.split_whitespace().next().context("odd /proc/PID/status")?.parse()?)
}

/// The same in MB.
pub(crate) fn resident_mb(pid: u32, key: &str) -> Result<f64> {
    Ok(float(status(pid, key)?) / 1024.0)
}

/// Whether a limit is kept, in a word.
pub(crate) fn kept(is: bool) -> &'static str {
    if is { "kept" } else { "NOT kept" }
}

/// For tables.
#[allow(clippy::cast_precision_loss, reason = "for a table with two decimals")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}
