//! `beskar7 crds`: the resource definitions, as they are in `config/crd`.

use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Install or update them
  beskar7 crds | kubectl apply --server-side -f -

  # See what an update would change
  beskar7 crds | kubectl diff --server-side -f -";

pub(crate) fn execute() -> anyhow::Result<()> {
    output::print(&api::crds_yaml())
}
