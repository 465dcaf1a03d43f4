//! `beskar7 standalone`: API server and operator in one process, for one machine.

mod announce;
mod fleet;
mod lab;
mod repair;
mod site;

use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use controllers::clock::SystemClock;
use controllers::dialect::Settings;
use controllers::hands::Dial;
use controllers::metrics::Metrics;
use controllers::operator::{Config, Operator};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

pub(crate) use fleet::{NAMESPACE, create, dial, introduce, register};
pub(crate) use site::Site;

use crate::boot_args::BootArgs;
use crate::dialects::kind;
use crate::logs::LogArgs;
use crate::run::{Bind, BrakeArgs, DialectArgs, IronCoreArgs, bind, listen};
use crate::{limits, output, runtime, shutdown};

pub(crate) const ABOUT: &str = "\
Run alone, without Kubernetes.

One process is the API server, for kubectl and every other client, and the operator. Everything is kept in one folder: \
objects, certificates, and a kubeconfig for the admin. It survives kill -9 and power cuts, and goes on where it was.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Twenty simulated servers, to try things out; nothing is left when it ends
  beskar7 standalone --simulate 20

  # Three simulated servers that really boot
  beskar7 standalone --simulate 3 --qemu

  # A lab or an edge site, for years
  beskar7 standalone --data /var/lib/beskar7
  export KUBECONFIG=/var/lib/beskar7/kubeconfig
  beskar7 apply -f server-01.yaml
  beskar7 hosts

  # Reachable from elsewhere
  beskar7 standalone --data /var/lib/beskar7 --listen 192.0.2.5:6443

  # Look at a copy of the folder, without touching a server
  beskar7 standalone --data /tmp/copy --listen 127.0.0.1:0 --api-only

  # Bad days: every tenth answer of a BMC is lost
  beskar7 standalone --simulate 20 --faults '{\"effect\":\"DropAnswer\",\"probability\":0.1}'";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for everything that is kept; the admin's kubeconfig is DIR/kubeconfig [default: ~/.local/share/beskar7, or with --simulate a folder that is removed at the end]
    #[arg(long, value_name = "DIR", env = "BESKAR7_DATA")]
    data: Option<PathBuf>,
    /// Where the API server listens; port 0 lets the system choose
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6443", env = "BESKAR7_LISTEN", value_parser = listen)]
    listen: SocketAddr,
    /// More names by which clients reach the API server, for its certificate
    #[arg(long, value_name = "NAME", value_delimiter = ',', env = "BESKAR7_TLS_NAMES")]
    tls_names: Vec<String>,
    /// Where to serve the operator's metrics; 0 for nowhere. Those of the API server are at its /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "0", env = "BESKAR7_METRICS_BIND_ADDRESS", value_parser = bind)]
    metrics_bind_address: Bind,
    /// How many BMCs are spoken to at once
    #[arg(long, value_name = "NUMBER", default_value = "64", env = "BESKAR7_BMC_CONCURRENCY")]
    bmc_concurrency: NonZeroU16,
    /// Threads that do the work
    #[arg(long, value_name = "NUMBER", default_value = "2", env = "BESKAR7_THREADS")]
    threads: NonZeroUsize,
    /// Serve the API only, without the operator: nothing is done to servers or objects, say to look at a backup
    #[arg(long, conflicts_with = "simulate", env = "BESKAR7_API_ONLY")]
    api_only: bool,
    /// Repair a damaged store, report what could not be read, and exit; the damaged files are kept beside it
    #[arg(long, conflicts_with_all = ["simulate", "api_only"])]
    repair_store: bool,
    #[command(flatten)]
    dialects: DialectArgs,
    #[command(flatten)]
    fleet: fleet::FleetArgs,
    #[command(flatten)]
    boot: BootArgs,
    #[command(flatten)]
    ironcore: IronCoreArgs,
    #[command(flatten)]
    brake: BrakeArgs,
    #[command(flatten)]
    logs: LogArgs,
}

/// Where what belongs to the operator itself is kept, such as the key of the boot service: a namespace that is always there.
const OWN_NAMESPACE: &str = "kube-system";

/// Where everything is kept.
enum Folder {
    Lasting(PathBuf),
    ForNow(TempDir),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Lasting(path) => path,
            Self::ForNow(temporary) => temporary.path(),
        }
    }

    /// Removes it if it was only for now.
    fn leave(self) -> anyhow::Result<()> {
        let Self::ForNow(temporary) = self else { return Ok(()) };
        let path = temporary.path().display().to_string();
        temporary.close().with_context(|| format!("cannot remove {path}, which is no longer needed"))
    }
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    args.fleet.machines()?.prepare()?;
    args.logs.install()?;
    limits::raise_open_files();
    let folder = args.folder()?;
    if args.repair_store {
        return output::print(&repair::repair(folder.path())?);
    }
    let ran = runtime::start(args.threads)?.block_on(shutdown::until_done(run(args, &folder)));
    // The runtime is gone, and with it every task that might still have held the store open.
    ran.and_then(|()| folder.leave())
}

async fn run(args: &Args, folder: &Folder) -> anyhow::Result<()> {
    let shutdown = shutdown::token()?;
    let data = folder.path();
    // Before anything else is done: an address that is taken should not leave half a folder behind.
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!(
            "cannot listen on {}: choose another address with --listen, or port 0 for any that is free",
            args.listen
        )
    })?;
    let address = listener.local_addr().context("cannot listen")?;
    let mut boot = if args.api_only { None } else { args.boot.open(OWN_NAMESPACE)? };
    if args.fleet.is_wanted() && args.ironcore.boots_probes() {
        bail!("simulated servers run no probe: leave --discovery probe out");
    }
    let mut settings = Settings { ironcore: args.ironcore.settings(&args.boot, OWN_NAMESPACE)? };
    let kinds = args.dialects.kinds();
    let fleet = args.fleet.invent(&kinds)?;
    if let Some(fleet) = &fleet {
        introduce(&kinds, fleet, &mut settings);
    }
    let mut machines = None;
    if let Some(fleet) = &fleet
        && let Some(network) = args.fleet.machines()?.lab(fleet)?
    {
        let is_given = boot.is_some();
        if !is_given {
            boot = lab::boot_service(&network, &args.boot, OWN_NAMESPACE)?;
        }
        let told = lab::text(&network).filter(|_| !is_given);
        let running = args.fleet.machines()?.start(fleet, network, Some(&data.join("machines")))?;
        machines = Some((running, told));
    }
    let settings = Arc::new(settings);
    let (site, check) = Site::open(data, address, &args.tls_names).await?;
    let installed = if args.api_only { Ok(()) } else { site.install_crds(&kinds).await };
    check.passes().await?;
    installed?;
    let mut serving = JoinSet::new();
    serving.spawn(site.serve(listener));
    if let Some(fleet) = &fleet {
        register(&site.client, &kinds, fleet).await?;
    }
    info!(
        version = env!("CARGO_PKG_VERSION"),
        api = site.url(),
        data = %data.display(),
        dialects = %args.dialects,
        "beskar7 runs alone"
    );
    output::print(&announce::text(&site, folder, fleet.as_ref(), &args.dialects, args.api_only))?;
    if let Some((machines, boots)) = &machines {
        let lines: Vec<_> = [machines.text()].into_iter().chain(boots.clone()).collect();
        output::line(&lines.join("\n"))?;
    }
    let worked = if args.api_only {
        shutdown.cancelled().await;
        Ok(())
    } else {
        let config = Config { boot, settings, ..args.config() };
        work(&site, config, dial(fleet.as_ref()), fleet.is_some(), &shutdown).await
    };
    if let Some((machines, _)) = machines {
        machines.stop().await?;
    }
    site.stop().await;
    while let Some(ended) = serving.join_next().await {
        ended.context("the API server")??;
    }
    worked
}

/// The operator's work, against the API server in this process. Where servers are simulated, what others do at a site is done, too.
pub(crate) async fn work(
    site: &Site,
    config: Config,
    dial: Dial,
    simulates: bool,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let kinds = config.dialects.iter().map(|dialect| kind(*dialect)).filter(|_| simulates);
    let mut others: FuturesUnordered<_> = kinds.filter_map(|kind| kind.others(&site.client)).collect();
    let operator =
        Operator { client: site.client.clone(), config, dial, clock: Arc::new(SystemClock), metrics: Metrics::new() };
    let work = operator.run(shutdown.clone());
    let mut work = pin!(work);
    loop {
        tokio::select! {
            worked = &mut work => return Ok(worked?),
            // What ends is not done any more; the operator goes on.
            Some(()) = others.next() => {}
        }
    }
}

impl Args {
    fn folder(&self) -> anyhow::Result<Folder> {
        if let Some(path) = &self.data {
            return Ok(Folder::Lasting(std::path::absolute(path).context("--data")?));
        }
        if self.fleet.is_wanted() {
            let folder =
                TempDir::with_prefix("beskar7-").context("cannot make a folder for the data; name one with --data")?;
            return Ok(Folder::ForNow(folder));
        }
        let base = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".local/share")));
        let base = base.context("there is no home folder to keep the data in: name a folder with --data")?;
        Ok(Folder::Lasting(base.join("beskar7")))
    }

    fn config(&self) -> Config {
        Config {
            dialects: self.dialects.selected(),
            namespace: None,
            watch_filter: None,
            // One process has the folder, so nobody else can lead.
            election: None,
            metrics_address: self.metrics_bind_address.0,
            probe_address: None,
            brake: self.brake.config(),
            bmcs_at_once: usize::from(self.bmc_concurrency.get()),
            settings: Arc::default(),
            cluster_api: false,
            boot: None,
        }
    }
}
