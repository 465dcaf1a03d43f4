//! Prints the figures that Beskar7 is measured by: requests per BMC, and what a fleet costs on a real API server.
//!
//! Not a test: nothing fails here, and nothing in CI depends on how fast a machine is. `make bench` runs it.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

mod fleet;
mod requests;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

/// Print the figures that Beskar7 is measured by.
#[derive(Debug, Parser)]
struct Args {
    /// Hosts in the fleet; 0 leaves the fleet out
    #[arg(long, default_value_t = 1000)]
    hosts: u32,
    /// How long the fleet is watched at rest, in seconds
    #[arg(long, default_value_t = 60)]
    rest: u64,
    /// The program to measure
    #[arg(long, default_value = "target/release/beskar7")]
    binary: PathBuf,
    /// Folder with recordings of real BMCs
    #[arg(long, env = "BESKAR7_CAPTURES")]
    captures: Option<PathBuf>,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    // Fails only when a provider is there already, and then it is the same one.
    rustls::crypto::ring::default_provider().install_default().ok();
    let args = Args::parse();
    requests::print(args.captures.as_deref()).await?;
    if args.hosts > 0 {
        fleet::print(args.hosts, args.rest, &args.binary).await?;
    }
    Ok(())
}
