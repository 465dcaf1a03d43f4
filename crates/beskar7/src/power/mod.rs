//! `beskar7 power`: writes power requests onto hosts, and follows what the operator makes of it.

mod follow;
mod verdict;

use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use kube::ResourceExt as _;
use kube::api::DynamicObject;

use crate::access::{Access, ClusterArgs};
use crate::dialects::{self, Action, Found, Host, HostKind, Request};
use crate::run::DialectArgs;
use crate::{human, output};

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
    /// Hosts: NAME, NAMESPACE/NAME, or with its kind before it, such as physicalhost/NAMESPACE/NAME
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
    dialects: DialectArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

pub(crate) async fn execute(args: &Args) -> anyhow::Result<()> {
    let access = args.cluster.access().await?;
    args.power(&access, &args.dialects.kinds()).await
}

impl Args {
    pub(crate) async fn power(&self, access: &Access, kinds: &[&'static dyn HostKind]) -> anyhow::Result<()> {
        let mut targets: Vec<Found> = Vec::with_capacity(self.hosts.len());
        for given in &self.hosts {
            let found = dialects::find(access, kinds, given, self.namespace.as_deref()).await?;
            if !targets.iter().any(|target| target.label == found.label) {
                targets.push(found);
            }
        }
        // Nobody is touched unless all can be.
        for target in &targets {
            if let Some(why) = target.hosts.kind.obstacle(&target.object, self.action) {
                bail!("{} {why}; nothing was changed", target.label);
            }
        }
        if !self.yes && !agreed(self.action, &targets)? {
            bail!("nothing was changed");
        }
        let mut requests = Vec::with_capacity(targets.len());
        for target in targets {
            let request = write(self.action, &target).await?;
            output::line(&format!("{}: {}", target.label, target.hosts.kind.requested(self.action)))?;
            requests.push((target, request));
        }
        if self.wait { follow::until_done(requests, self.timeout).await } else { Ok(()) }
    }
}

/// Whether it takes a running server from whoever uses it.
fn disrupts(action: Action) -> bool {
    matches!(action, Action::Off | Action::Cycle)
}

/// Whether those who asked really mean it.
fn agreed(action: Action, targets: &[Found]) -> anyhow::Result<bool> {
    let mut lines = Vec::new();
    for target in targets {
        let host = read(target, &target.object)?;
        if let Some(claimant) = host.claimed_by {
            let state = if host.state.is_empty() { "not seen yet" } else { &host.state };
            lines.push(format!("{} ({state}) is held by {claimant}", target.label));
        }
    }
    if lines.is_empty() || !disrupts(action) {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!("{}: to do it all the same, add --yes; nothing was changed", lines.join("; "));
    }
    output::remark(&lines.join("\n"));
    output::confirm(match action {
        Action::Cycle => "Restart all the same?",
        _ => "Power off all the same?",
    })
}

fn read(target: &Found, object: &DynamicObject) -> anyhow::Result<Host> {
    target.hosts.kind.read(object).with_context(|| format!("{} cannot be read", target.label))
}

/// Writes the request, on the host that was judged: if it changed since, it is judged again.
async fn write(action: Action, target: &Found) -> anyhow::Result<Request> {
    let (hosts, kind) = (&target.hosts, target.hosts.kind);
    let id = format!("{:016x}", fastrand::u64(..));
    let claimant = read(target, &target.object)?.claimed_by;
    let mut patch = kind.request(action, &id);
    let mut version = target.object.resource_version();
    for _ in 0..TRIES {
        patch["metadata"]["resourceVersion"] = version.into();
        if let Some(written) = hosts.patch(&target.name, &patch).await? {
            return Ok(Request { action, id, generation: written.metadata.generation.unwrap_or_default() });
        }
        let object = hosts.get(&target.name).await?.ok_or_else(|| anyhow!("{} is gone", target.label))?;
        if object.uid() != target.object.uid() || read(target, &object)?.claimed_by != claimant {
            bail!("{} has another consumer than a moment ago; it was not changed", target.label);
        }
        if let Some(why) = kind.obstacle(&object, action) {
            bail!("{} {why}; it was not changed", target.label);
        }
        version = object.resource_version();
    }
    bail!("{} was changed by somebody else at each attempt; try again", target.label)
}
