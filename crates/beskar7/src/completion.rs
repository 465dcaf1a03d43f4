//! `beskar7 completion`: scripts that teach a shell our commands.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  # In this shell
  source <(beskar7 completion bash)

  # In all shells
  beskar7 completion bash >/etc/bash_completion.d/beskar7
  beskar7 completion zsh >\"${fpath[1]}/_beskar7\"
  beskar7 completion fish >~/.config/fish/completions/beskar7.fish";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "beskar7", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
