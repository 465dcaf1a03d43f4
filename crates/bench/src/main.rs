//! Prints the figures that Beskar7 is measured by: requests per BMC, what a fleet and its machines
//! cost on a real API server, and how our own API server and boot service compare with others.
//!
//! Not a test: nothing fails here, and nothing in CI depends on how fast a machine is. `make bench` runs it.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

mod api_server;
mod fleet;
mod ironcore;
mod iso;
mod kinds;
mod machines;
mod process;
mod requests;
mod stage;

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;

use kinds::HostKind;
use stage::Size;

/// Print the figures that Beskar7 is measured by.
#[derive(Debug, Parser)]
#[allow(clippy::struct_excessive_bools, reason = "switches that have nothing to do with each other")]
struct Args {
    /// Hosts in the fleet; 0 leaves the fleet out
    #[arg(long, default_value_t = 1000)]
    hosts: u32,
    /// What kind they are of
    #[arg(long, value_enum, default_value_t = HostKind::PhysicalHost)]
    kind: HostKind,
    /// How long the fleet is watched at rest, in seconds
    #[arg(long, default_value_t = 60)]
    rest: u64,
    /// The program to measure
    #[arg(long, default_value = "target/release/beskar7")]
    binary: PathBuf,
    /// Only the API server of our own beside kube-apiserver and etcd; takes three minutes
    #[arg(long)]
    api: bool,
    #[command(flatten)]
    api_server: api_server::Comparison,
    /// Only machines that all want a server at once; takes a minute
    #[arg(long)]
    machines: bool,
    /// Only metal-operator's kinds, in turns with ours: Servers found by their Endpoints, several behind one BMC, and ServerClaims that all
    /// want one at once; takes ten minutes
    #[arg(long)]
    ironcore: bool,
    #[command(flatten)]
    rush: machines::Rush,
    /// Only ISOs that our boot service streams, beside nginx; takes five minutes
    #[arg(long)]
    iso: bool,
    #[command(flatten)]
    streaming: iso::Streaming,
    #[command(flatten)]
    part: iso::Part,
    /// Folder with recordings of real BMCs
    #[arg(long, env = "BESKAR7_CAPTURES")]
    captures: Option<PathBuf>,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    // Fails only when a provider is there already, and then it is the same one.
    rustls::crypto::ring::default_provider().install_default().ok();
    let args = Args::parse();
    if args.api {
        return api_server::print(&args.binary, &args.api_server).await;
    }
    if iso::play(&args.part).await? {
        return Ok(());
    }
    if args.iso {
        return iso::print(&args.streaming).await;
    }
    if args.machines {
        return machines::print(&args.rush, &args.binary).await.map(drop);
    }
    if args.ironcore {
        return ironcore::print(args.hosts, args.rest, &args.rush, &args.binary).await;
    }
    if let HostKind::PhysicalHost = args.kind {
        requests::print(args.captures.as_deref()).await?;
    }
    if args.hosts > 0 {
        fleet::print(args.kind, Size::of(args.hosts), args.rest, &args.binary).await?;
    }
    Ok(())
}
