//! Our API server beside kube-apiserver and etcd: the same clients, the same machine, the same disk, in turns.
//!
//! Clients speak HTTPS on loopback with client certificates and keep their connections. etcd syncs its writes, as ours
//! does. Ours is the released program, operator included, and the figures are what its users get.

mod crashes;
mod creates;
mod hosts;
mod memory;
mod reads;
mod site;
mod starts;
mod wire;

use std::path::Path;

use anyhow::Result;
use testkit::Cluster;
use tokio::time::Instant;

use self::hosts::Kinds;
use self::site::Site;
use self::wire::Door;

/// How much is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Comparison {
    /// PhysicalHosts in both API servers
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
    registered: u32,
    /// How often the program is killed while it writes
    #[arg(long, default_value_t = 10, value_name = "NUMBER")]
    kills: u32,
    /// Leave kube-apiserver out
    #[arg(long)]
    alone: bool,
}

/// Figures of one thing: ours, and the real one's if it is there.
struct Pair {
    ours: Vec<f64>,
    real: Vec<f64>,
}

/// Prints how our API server compares.
pub(crate) async fn print(binary: &Path, args: &Comparison) -> Result<()> {
    let started = Instant::now();
    println!(
        "our API server (beskar7 standalone) beside kube-apiserver and etcd with fsync; same machine, same clients"
    );
    let kinds = Kinds::from_simulator(binary).await?;
    if args.kills > 0 {
        crashes::print(binary, args.kills).await?;
    }
    starts::print_empty(binary).await?;

    let folder = tempfile::Builder::new().prefix("beskar7-bench-").tempdir()?;
    let site = Site::start(binary, folder.path()).await?;
    let ours = site.door();
    let cluster = if args.alone { None } else { Some(Cluster::start_durable().await) };
    let real = match &cluster {
        Some(cluster) => {
            cluster.apply_yaml(&api::crds_yaml()).await;
            Some(Door::new(cluster.admin_kubeconfig()))
        }
        None => None,
    };
    creates::print(&ours, real.as_ref()).await?;
    hosts::register(&ours, real.as_ref(), &kinds, args.registered).await?;
    reads::print_list(&ours, real.as_ref(), args.registered).await?;
    reads::print_fan_out(&ours, real.as_ref(), &kinds).await?;
    drop(cluster);

    hosts::let_the_operator_have_them(&ours, args.registered).await?;
    site.kill().await?;
    starts::print_full(binary, folder.path(), args.registered).await?;
    memory::print(binary, folder.path(), args.registered).await?;
    println!("took {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

impl Pair {
    fn new() -> Self {
        Self { ours: Vec::new(), real: Vec::new() }
    }

    /// A line of the table; `larger_is_better` says which way the ratio goes.
    fn print(&self, what: &str, unit: &str, larger_is_better: bool) {
        let ours = median(&self.ours);
        if self.real.is_empty() {
            println!("  {what:<44} {ours:>9.1} {unit}");
            return;
        }
        let real = median(&self.real);
        let ratio = if larger_is_better { ours / real } else { real / ours };
        println!("  {what:<44} {ours:>9.1} {unit:<9} kube-apiserver {real:>9.1} {unit:<9} {ratio:>5.1}x");
    }
}

/// The middle of some numbers; 0 if there are none.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
