//! `beskar7 crds`: the resource definitions, as they are in `config/crd`.

use crate::dialects::HostKind;
use crate::output;
use crate::run::DialectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Install or update them
  beskar7 crds | kubectl apply --server-side -f -

  # See what an update would change
  beskar7 crds | kubectl diff --server-side -f -";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    dialects: DialectArgs,
}

pub(crate) fn execute(args: &Args) -> anyhow::Result<()> {
    let of_dialects = args.dialects.kinds().into_iter().flat_map(HostKind::definitions);
    let all: Vec<_> = of_dialects.chain(api::crd::shared_crds()).collect();
    output::print(&api::crd::documents(&all))
}
