//! `beskar7 sim`: pretend BMCs with servers behind them, to try things out on.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;
use sim::{Bmc, BmcSpec, Endpoint, Fleet, FleetSpec, Personality, PowerState, ServeSpec, Timing, Tree};

use crate::dialects::Simulated;
use crate::logs::LogArgs;
use crate::machines::MachineArgs;
use crate::output::{self, Paper};
use crate::run::DialectArgs;
use crate::table::{Cell, Column};
use crate::{human, limits, shutdown, table};

pub(crate) const ABOUT: &str = "\
Pretend to be BMCs and servers.

Each BMC is a Redfish service with a certificate of its own and one server behind it, which powers on and off, runs \
through POST and boots what the override says. Personalities behave like the BMCs of their vendors, quirks included.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Eight servers, made known to a cluster
  beskar7 sim --count 8 --manifests hosts.yaml
  kubectl apply -f hosts.yaml

  # A fleet of all vendors, without delays
  beskar7 sim --count 1000 --personality mix --instant

  # A BMC that was recorded
  beskar7 sim --replay r750.tar.gz

  # Two servers that really boot
  beskar7 sim --count 2 --qemu

  # Faults, and the truth about the servers, over HTTP
  beskar7 sim --control 9000
  curl localhost:9000";

const MIX: &str = "mix";

const COLUMNS: [Column; 6] = [
    Column { title: "NAME", spare: 0 },
    Column { title: "URL", spare: 0 },
    Column { title: "USER", spare: 0 },
    Column { title: "PASSWORD", spare: 0 },
    Column { title: "PERSONALITY", spare: 1 },
    Column { title: "FINGERPRINT", spare: 0 },
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many BMCs [default: 1, or one for each --replay]
    #[arg(long, value_name = "NUMBER")]
    count: Option<u32>,
    /// Vendors to simulate, in turn; mix is all of them
    #[arg(long, value_name = "NAME", default_value = "generic", value_delimiter = ',', value_parser = personalities())]
    personality: Vec<String>,
    /// Answer from a recorded tree (tar.gz or folder of a Redfish mockup), with power, boot and media alive; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "personality")]
    replay: Vec<PathBuf>,
    /// Seed of serial numbers, UUIDs, MAC addresses and hardware: the same seed gives the same fleet
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prefix of the names
    #[arg(long, value_name = "PREFIX", default_value = "sim")]
    name: String,
    /// Write the objects that make them known, such as a Secret and a PhysicalHost each, to this file; - is standard output
    #[arg(long, value_name = "FILE")]
    manifests: Option<PathBuf>,
    /// Namespace in the manifests
    #[arg(short, long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    dialects: DialectArgs,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    delays: DelayArgs,
    #[command(flatten)]
    machines: MachineArgs,
    #[command(flatten)]
    logs: LogArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
struct PlaceArgs {
    /// Address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Port of the first BMC, the others follow; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 10443)]
    base_port: u16,
    /// HTTP without TLS
    #[arg(long)]
    plain_http: bool,
    /// Port on localhost for a control API: faults, and the real state of the servers
    #[arg(long, value_name = "PORT")]
    control: Option<u16>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Servers")]
struct DelayArgs {
    /// Servers start powered on
    #[arg(long)]
    powered_on: bool,
    /// No delays at all
    #[arg(long, conflicts_with_all = ["power_on_delay", "power_off_delay", "shutdown_delay", "post_delay"])]
    instant: bool,
    /// From the command until the power is on
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = human::duration)]
    power_on_delay: Duration,
    /// From the command until the power is off
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = human::duration)]
    power_off_delay: Duration,
    /// What an operating system takes to shut down
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = human::duration)]
    shutdown_delay: Duration,
    /// Power-on self test, until something boots
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = human::duration)]
    post_delay: Duration,
    /// What every answer of a BMC takes
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = human::duration)]
    latency: Duration,
}

/// The names that may be given, as the command line takes them.
pub(crate) fn personalities() -> PossibleValuesParser {
    let names = Personality::all().into_iter().map(|personality| personality.name);
    PossibleValuesParser::new(names.chain([MIX]))
}

/// The personalities of these names, which take turns.
pub(crate) fn mix(names: &[String]) -> Vec<(Personality, u32)> {
    let all = names.iter().any(|name| name == MIX);
    let chosen = Personality::all().into_iter().filter(|one| all || names.iter().any(|name| name == one.name));
    chosen.map(|personality| (personality, 1)).collect()
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    args.machines.prepare()?;
    args.logs.install()?;
    limits::raise_open_files();
    let fleet = args.fleet()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(args, &fleet))
}

async fn run(args: &Args, fleet: &Fleet) -> anyhow::Result<()> {
    let shutdown = shutdown::token()?;
    let lab = args.machines.lab(fleet)?;
    let machines = lab.map(|lab| args.machines.start(fleet, lab, None)).transpose()?;
    let serving = fleet.serve(args.place.spec()).await?;
    let endpoints = serving.endpoints();
    let mut told = format!("{}\n{}", args.list(endpoints), args.usage(endpoints, serving.control_url().as_deref()));
    if let Some(machines) = &machines {
        told = format!("{told}\n{}", machines.text());
    }
    match args.manifests.as_deref() {
        // What is piped on must be the manifests alone.
        Some(file) if file == Path::new("-") => {
            output::remark(&told);
            output::print(&args.write_manifests(endpoints)?)?;
        }
        Some(file) => {
            let text = args.write_manifests(endpoints)?;
            write_whole(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
            output::line(&told)?;
        }
        None => output::line(&told)?,
    }
    shutdown.cancelled().await;
    serving.stop().await;
    match machines {
        Some(machines) => machines.stop().await,
        None => Ok(()),
    }
}

/// Scripts wait for the file to appear: then it must be complete.
fn write_whole(file: &Path, text: &str) -> std::io::Result<()> {
    if file.exists() && !file.is_file() {
        return std::fs::write(file, text);
    }
    let mut draft = file.as_os_str().to_owned();
    draft.push(".new");
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, file)
}

impl Args {
    fn fleet(&self) -> anyhow::Result<Fleet> {
        let timing = self.delays.timing();
        let power = if self.delays.powered_on { PowerState::On } else { PowerState::Off };
        let latency = self.delays.latency;
        if self.replay.is_empty() {
            let (count, seed) = (self.count.unwrap_or(1), self.seed);
            let spec = FleetSpec {
                count,
                mix: mix(&self.personality),
                prefix: self.name.clone(),
                timing,
                power,
                latency,
                seed,
                parts: self.machines.parts(),
                ..FleetSpec::default()
            };
            return Ok(Fleet::new(&spec));
        }
        let mut trees = Vec::with_capacity(self.replay.len());
        for file in &self.replay {
            let tree = Tree::open(file).context("there is nothing to replay")?;
            trees.push(Arc::new(tree));
        }
        let count = self.count.map_or(trees.len(), |count| usize::try_from(count).unwrap_or(usize::MAX));
        let bmcs = trees.iter().cycle().take(count).enumerate().map(|(index, tree)| {
            let name = format!("{}-{index:03}", self.name);
            Bmc::replay(
                tree.clone(),
                BmcSpec { name, timing, latency, seed: self.seed, ..BmcSpec::new(tree.personality()) },
            )
        });
        Ok(Fleet::from_bmcs(bmcs.collect()))
    }

    /// Each server is made known once, to the dialects in turn: two objects that name one server are rivals.
    fn write_manifests(&self, endpoints: &[Endpoint]) -> anyhow::Result<String> {
        let mut text = String::new();
        for (endpoint, kind) in endpoints.iter().zip(self.dialects.kinds().into_iter().cycle()) {
            let credentials = endpoint.bmc().credentials();
            let fingerprint = endpoint.certificate().map(|certificate| certificate.fingerprint());
            let manifests = kind.register(&Simulated {
                name: endpoint.bmc().name(),
                namespace: &self.namespace,
                address: &endpoint.url(),
                username: &credentials.username,
                password: &credentials.password,
                fingerprint: fingerprint.as_deref(),
                device: None,
            });
            for manifest in manifests {
                text.extend(["---\n", &serde_saphyr::to_string(manifest.object())?]);
            }
        }
        Ok(text)
    }

    fn list(&self, endpoints: &[Endpoint]) -> String {
        let paper = if self.manifests.as_deref() == Some(Path::new("-")) { Paper::default() } else { Paper::stdout() };
        let row = |endpoint: &Endpoint| -> Vec<Cell> {
            let (bmc, credentials) = (endpoint.bmc(), endpoint.bmc().credentials());
            let fingerprint = endpoint.certificate().map(|certificate| certificate.fingerprint()).unwrap_or_default();
            vec![
                Cell::from(bmc.name()),
                Cell::from(endpoint.url()),
                Cell::from(credentials.username),
                Cell::from(credentials.password),
                Cell::from(bmc.personality().name),
                Cell::from(fingerprint),
            ]
        };
        table::render(&COLUMNS, &endpoints.iter().map(row).collect::<Vec<_>>(), paper)
    }

    fn usage(&self, endpoints: &[Endpoint], control: Option<&str>) -> String {
        let mut lines = vec![human::counted(endpoints.len(), "BMC") + ". Ctrl-C ends them all."];
        if let Some(first) = endpoints.first() {
            let credentials = first.bmc().credentials();
            let insecure = if self.place.plain_http { "" } else { "-k " };
            let (user, password) = (credentials.username, credentials.password);
            lines.push(format!("  look:    curl {insecure}-u {user}:{password} {}/redfish/v1/Systems", first.url()));
        }
        match &self.manifests {
            Some(file) if file != Path::new("-") => {
                lines.push(format!("  use:     kubectl apply -f {}", file.display()));
            }
            Some(_) => {}
            None => {
                lines.push("  use:     start with --manifests hosts.yaml, then kubectl apply -f hosts.yaml".to_owned());
            }
        }
        if let Some(url) = control {
            lines.push(format!("  control: curl {url}"));
        }
        lines.join("\n")
    }
}

impl PlaceArgs {
    fn spec(&self) -> ServeSpec {
        ServeSpec { ip: self.listen, base_port: self.base_port, tls: !self.plain_http, control_port: self.control }
    }
}

impl DelayArgs {
    fn timing(&self) -> Timing {
        if self.instant {
            return Timing::INSTANT;
        }
        Timing {
            power_on: self.power_on_delay,
            power_off: self.power_off_delay,
            shutdown: self.shutdown_delay,
            post: self.post_delay,
        }
    }
}
