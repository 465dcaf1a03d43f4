//! The command line.

use std::future::Future;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::{apply, assets, completion, crds, demo, hosts, power, roles, run, show, sim, standalone, version};

const ABOUT: &str = "\
Turns racks of servers into Kubernetes nodes.

Each server is a PhysicalHost in a Kubernetes cluster. `beskar7 run` looks after all of them through their BMCs \
(Redfish): it inventories them, powers them, and boots the requested image. The other commands are client tools.";

const EXAMPLES: &str = "\
First steps:
  # Try it, without Kubernetes and without servers
  beskar7 standalone --simulate 20

  # Watch the life of a server, in half a minute
  beskar7 demo

  # On a Kubernetes cluster: install the CRDs, run the operator, look at hosts
  beskar7 crds | kubectl apply --server-side -f -
  beskar7 run --leader-elect=false
  beskar7 hosts

`beskar7 COMMAND --help` tells more, with examples.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "beskar7", version, about = ABOUT, after_help = EXAMPLES, max_term_width = 120)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run alone, without Kubernetes
    #[command(long_about = standalone::ABOUT, after_help = standalone::EXAMPLES, mut_args(|arg| arg.hide_env(true)))]
    Standalone(Box<standalone::Args>),
    /// Walk through the life of a server, on simulated ones
    #[command(long_about = demo::ABOUT)]
    Demo(demo::Args),
    /// Run the operator
    #[command(long_about = run::ABOUT, after_help = run::EXAMPLES, mut_args(|arg| arg.hide_env(true)))]
    Run(Box<run::Args>),
    /// Show the fleet, trouble first
    #[command(after_help = hosts::EXAMPLES)]
    Hosts(hosts::Args),
    /// Show everything about one host
    #[command(after_help = show::EXAMPLES)]
    Show(show::Args),
    /// Apply manifests
    #[command(long_about = apply::ABOUT, after_help = apply::EXAMPLES)]
    Apply(apply::Args),
    /// Power servers on or off, or restart them
    #[command(long_about = power::ABOUT, after_help = power::EXAMPLES)]
    Power(power::Args),
    /// Pretend to be BMCs and servers
    #[command(long_about = sim::ABOUT, after_help = sim::EXAMPLES, mut_args(|arg| arg.hide_env(true)))]
    Sim(sim::Args),
    /// Get and check the files that servers load first from the network
    #[command(long_about = assets::ABOUT, after_help = assets::EXAMPLES)]
    Assets(assets::Args),
    /// Print the custom resource definitions
    #[command(after_help = crds::EXAMPLES)]
    Crds(crds::Args),
    /// Print the role that the operator needs
    #[command(long_about = roles::ABOUT, after_help = roles::EXAMPLES)]
    Roles(roles::Args),
    /// Print a script that completes commands in your shell
    #[command(after_help = completion::EXAMPLES)]
    Completion(completion::Args),
    /// Print version, commit and target of this binary
    #[command(after_help = version::EXAMPLES)]
    Version,
}

impl Cli {
    /// Does what was asked for.
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        install_cryptography();
        match self.command {
            Command::Standalone(args) => standalone::execute(&args),
            Command::Demo(args) => demo::execute(&args),
            Command::Run(args) => run::execute(&args),
            Command::Hosts(args) => block_on(hosts::execute(&args)),
            Command::Show(args) => block_on(show::execute(&args)),
            Command::Apply(args) => block_on(apply::execute(&args)),
            Command::Power(args) => block_on(power::execute(&args)),
            Command::Sim(args) => sim::execute(&args),
            Command::Assets(args) => assets::execute(&args),
            Command::Crds(args) => crds::execute(&args),
            Command::Roles(args) => roles::execute(&args),
            Command::Completion(args) => completion::execute(&args),
            Command::Version => version::execute(),
        }
    }
}

/// For commands that ask the API server a few questions: one thread is enough.
fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(work)
}

/// Libraries take whichever implementation the binary has chosen.
fn install_cryptography() {
    // Fails only if one was installed before, and then it is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
