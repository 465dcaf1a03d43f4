//! Has apt download Debian's package. Whom to trust is apt's to know: it checks packages against the signed release file.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::program;

/// No package comes from a source whose release file is not signed, whatever this machine's apt allows otherwise.
const OPTIONS: [&str; 5] = [
    "APT::Get::AllowUnauthenticated=false",
    "Acquire::AllowInsecureRepositories=false",
    "Acquire::AllowWeakRepositories=false",
    "Acquire::AllowDowngradeToInsecureRepositories=false",
    // It could not write into a folder that is ours alone; nothing is installed.
    "APT::Sandbox::User=root",
];

/// Downloads the package into a folder.
pub(super) fn download(package: &str, folder: &Path) -> anyhow::Result<()> {
    if !program::is_on_path("apt-get") {
        bail!(
            "there is no apt on this machine: bring Debian's package {package} here and name its folder with --packages"
        );
    }
    let mut command = Command::new("apt-get");
    command.arg("-q").args(OPTIONS.iter().flat_map(|option| ["-o", option])).args(["download", package]);
    command.current_dir(folder).env("LC_ALL", "C").stdin(Stdio::null());
    let output = command.output().context("cannot start apt-get")?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    if ["Unable to locate package", "No packages found", "has no installation candidate", "Can't find a source"]
        .iter()
        .any(|unknown| complaint.contains(unknown))
    {
        bail!(
            "apt knows no package {package}: bring its lists up to date with `apt-get update`, or name with --packages a folder that has the package"
        );
    }
    if complaint.contains("could not be authenticated") || complaint.contains("unauthenticated") {
        bail!(
            "apt cannot tell who made the package {package}, because the release file of its source is not signed by anybody it trusts; it was not taken"
        );
    }
    let errors: Vec<_> = complaint.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    let told = if errors.is_empty() { complaint.trim().to_owned() } else { errors.join("; ") };
    bail!("apt cannot download the package {package}: {told}; `apt-get update` may help, or --packages")
}
