//! `beskar7 power`: writes what is wished onto hosts, and follows what the operator makes of it.

mod follow;
mod verdict;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{anyhow, bail};
use api::beskar7::{PhysicalHost, names};
use clap::ValueEnum;
use kube::ResourceExt as _;
use serde_json::json;

use crate::access::{Access, ClusterArgs, Hosts};
use crate::{human, output};
use verdict::obstacle;

pub(crate) const ABOUT: &str = "\
Power servers on or off, or restart them.

Nothing here speaks to a BMC: `on` and `off` set spec.online of the host, `auto` removes it, `cycle` asks for one \
restart by an annotation, and the operator does the rest. spec.online stays in effect until the host is claimed or \
released: a server that was switched off here is kept off, but a machine that claims the host gets a running server, \
and after its release the server stays off until somebody asks again. An operating system is asked to shut down before \
the power is cut; a restart is immediate.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Two hosts of one namespace
  beskar7 power on server-01 server-02 -n lab

  # One host, as `beskar7 hosts -o name` writes it
  beskar7 power cycle lab/server-01

  # A host that is in use, without being asked
  beskar7 power off lab/server-01 --yes

  # Leave the power alone from now on
  beskar7 power auto server-01

  # Do not wait until it is on
  beskar7 power on server-01 --wait=false";

/// How often a host may change under our hands before we give up.
const TRIES: u32 = 5;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do
    #[arg(value_enum)]
    action: Action,
    /// Hosts: NAME, or NAMESPACE/NAME
    #[arg(required = true, value_name = "HOST")]
    hosts: Vec<String>,
    /// Namespace of hosts that are given without one; else the context's
    #[arg(short, long)]
    namespace: Option<String>,
    /// Do not ask, also if a host is in use
    #[arg(short, long)]
    yes: bool,
    /// Wait for the requested power state
    #[arg(long, value_name = "BOOL", hide_possible_values = true, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = human::duration)]
    timeout: Duration,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Keep it on from now on
    On,
    /// Keep it off from now on
    Off,
    /// Leave its power alone from now on
    Auto,
    /// Restart it once
    Cycle,
}

/// What is wished of a host, and how to tell that it was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wish {
    /// spec.online is true since this generation.
    On { generation: i64 },
    /// spec.online is false since this generation.
    Off { generation: i64 },
    /// spec.online is unset since this generation.
    Auto { generation: i64 },
    /// One restart, told from others by this id.
    Cycle { id: String },
}

/// A host that was named on the command line.
struct Target {
    hosts: Hosts,
    namespace: String,
    name: String,
    /// namespace/name.
    label: String,
    host: PhysicalHost,
}

pub(crate) async fn execute(args: &Args) -> anyhow::Result<()> {
    let access = args.cluster.access().await?;
    let targets = find(args, &access).await?;
    // Nobody is touched unless all can be.
    for target in &targets {
        if let Some(why) = obstacle(&target.host, args.action) {
            bail!("{} {why}; nothing was changed", target.label);
        }
    }
    if !args.yes && !agreed(args.action, &targets)? {
        bail!("nothing was changed");
    }
    let mut wishes = Vec::with_capacity(targets.len());
    for target in targets {
        let wish = write(args.action, &target).await?;
        output::line(&format!("{}: {}", target.label, args.action.told()))?;
        wishes.push((target, wish));
    }
    if args.wait { follow::until_done(wishes, args.timeout).await } else { Ok(()) }
}

async fn find(args: &Args, access: &Access) -> anyhow::Result<Vec<Target>> {
    let here = args.namespace.as_deref().unwrap_or(&access.namespace);
    let mut targets: Vec<Target> = Vec::with_capacity(args.hosts.len());
    for given in &args.hosts {
        let (namespace, name) = given.split_once('/').unwrap_or((here, given));
        let label = format!("{namespace}/{name}");
        if targets.iter().any(|target| target.label == label) {
            continue;
        }
        let hosts = access.hosts(Some(namespace));
        let host = hosts.get(name).await?;
        let host = host.ok_or_else(|| anyhow!("there is no host {label}; `beskar7 hosts` lists them"))?;
        targets.push(Target { hosts, namespace: namespace.to_owned(), name: name.to_owned(), label, host });
    }
    Ok(targets)
}

impl Action {
    /// Whether it takes a running server from whoever uses it.
    fn disrupts(self) -> bool {
        matches!(self, Self::Off | Self::Cycle)
    }

    fn told(self) -> &'static str {
        match self {
            Self::On => "power on requested (spec.online: true)",
            Self::Off => "power off requested (spec.online: false)",
            Self::Auto => "power left alone (spec.online unset)",
            Self::Cycle => "restart requested",
        }
    }
}

/// Whether those who asked really mean it.
fn agreed(action: Action, targets: &[Target]) -> anyhow::Result<bool> {
    let used: Vec<_> =
        targets.iter().filter_map(|target| Some((&target.label, consumer(&target.host)?, &target.host))).collect();
    if used.is_empty() || !action.disrupts() {
        return Ok(true);
    }
    let lines: Vec<_> = used
        .iter()
        .map(|(label, consumer, host)| {
            let state = host.status.as_ref().and_then(|status| status.state.as_deref()).unwrap_or("not seen yet");
            format!("{label} ({state}) is held by {consumer}")
        })
        .collect();
    if !std::io::stdin().is_terminal() {
        bail!("{}: to do it all the same, add --yes; nothing was changed", lines.join("; "));
    }
    output::remark(&lines.join("\n"));
    output::confirm(match action {
        Action::Cycle => "Restart all the same?",
        _ => "Power off all the same?",
    })
}

/// Who holds a host, in words.
fn consumer(host: &PhysicalHost) -> Option<String> {
    let consumer = host.spec.consumer_ref.as_ref()?;
    let (kind, name) = (consumer.kind.as_deref().unwrap_or_default(), consumer.name.as_deref().unwrap_or_default());
    Some(format!("{kind} {name}").trim().to_owned())
}

/// Writes the wish, on the host that was judged: if it changed since, it is judged again.
async fn write(action: Action, target: &Target) -> anyhow::Result<Wish> {
    let id = format!("{:016x}", fastrand::u64(..));
    let mut host = target.host.clone();
    for _ in 0..TRIES {
        let version = host.resource_version();
        let patch = match action {
            Action::On => requested(version.as_deref(), Some(true), Some(&id)),
            Action::Off => requested(version.as_deref(), Some(false), Some(&id)),
            Action::Auto => requested(version.as_deref(), None, None),
            Action::Cycle => json!({"metadata": {"resourceVersion": version, "annotations": {names::REBOOT: id}}}),
        };
        if let Some(written) = target.hosts.patch(&target.name, &patch).await? {
            let generation = written.metadata.generation.unwrap_or_default();
            return Ok(match action {
                Action::On => Wish::On { generation },
                Action::Off => Wish::Off { generation },
                Action::Auto => Wish::Auto { generation },
                Action::Cycle => Wish::Cycle { id },
            });
        }
        host = target.hosts.get(&target.name).await?.ok_or_else(|| anyhow!("{} is gone", target.label))?;
        if host.uid() != target.host.uid() || consumer(&host) != consumer(&target.host) {
            bail!("{} has another consumer than a moment ago; it was not changed", target.label);
        }
        if let Some(why) = obstacle(&host, action) {
            bail!("{} {why}; it was not changed", target.label);
        }
    }
    bail!("{} was changed by somebody else at each attempt; try again", target.label)
}

/// A request for power, with an id of its own: the same value from before a claim or a release would not count.
fn requested(version: Option<&str>, online: Option<bool>, id: Option<&str>) -> serde_json::Value {
    json!({
        "metadata": {"resourceVersion": version, "annotations": {names::POWER_REQUEST: id}},
        "spec": {"online": online},
    })
}
