//! `beskar7 run`: the operator.

mod args;
mod bind;

use std::sync::Arc;

use anyhow::Context as _;
use bmc::{Https, Transport};
use controllers::clock::SystemClock;
use controllers::hands::Dial;
use controllers::metrics::Metrics;
use controllers::operator::Operator;
use tracing::info;

pub(crate) use args::{ABOUT, Args, EXAMPLES};

use crate::{limits, shutdown};

/// DNS look-ups and files are all that blocks. Each thread more has a heap of its own.
const BLOCKING_THREADS: usize = 4;

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    args.logs.install()?;
    limits::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.threads.get())
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start")?;
    runtime.block_on(run(args))
}

async fn run(args: &Args) -> anyhow::Result<()> {
    let shutdown = shutdown::token()?;
    let config = args.config(&args::Surroundings::look());
    let access = args.cluster.access().await?;
    let hosts = access.hosts(config.namespace.as_deref());
    if let Some(checked) = shutdown.run_until_cancelled(hosts.check()).await {
        checked?;
    } else {
        return Ok(());
    }
    info!(
        version = env!("CARGO_PKG_VERSION"),
        cluster = access.url(),
        namespace = config.namespace.as_deref().unwrap_or("(all)"),
        watch_filter = config.watch_filter,
        identity = config.election.as_ref().map_or("(alone)", |election| election.identity.as_str()),
        lease = config.election.as_ref().map(|election| format!("{}/{}", election.namespace, election.lease)),
        "beskar7 looks after PhysicalHosts"
    );
    let operator =
        Operator { client: access.client, config, dial: dial(), clock: Arc::new(SystemClock), metrics: Metrics::new() };
    operator.run(shutdown).await?;
    info!("stopped");
    Ok(())
}

/// BMCs are spoken to over the network.
fn dial() -> Dial {
    Arc::new(|address, trust| Ok(Arc::new(Https::new(address, trust)?) as Arc<dyn Transport>))
}
