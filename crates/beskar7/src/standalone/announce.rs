//! What a newcomer reads first: where it is, and what to type next.

use sim::Fleet;

use super::{Folder, Site};
use crate::run::DialectArgs;
use crate::{human, program};

pub(super) fn text(
    site: &Site,
    folder: &Folder,
    fleet: Option<&Fleet>,
    dialects: &DialectArgs,
    api_only: bool,
) -> String {
    let kubeconfig = site.kubeconfig().display().to_string();
    let servers = fleet.map(|fleet| {
        let servers = fleet.bmcs().iter().map(|bmc| bmc.servers().len()).sum();
        human::counted(servers, "simulated server")
    });
    let servers = servers.map(|servers| format!(", {servers}")).unwrap_or_default();
    let operator = if api_only { ", without the operator" } else { "" };
    let first = fleet.and_then(|fleet| fleet.bmcs().first()).zip(dialects.kinds().into_iter().next());
    let first = first.map(|(bmc, kind)| kind.first_host(bmc.name()));
    let beskar7 = program::name();
    let flag = dialects.for_clients();
    let second = match dialects.kinds().as_slice() {
        // kubectl watches one kind at a time.
        [kind] if program::is_on_path("kubectl") => {
            format!("kubectl get {} --watch        # or: {beskar7} hosts{flag}", kind.resource().plural)
        }
        _ => format!("{beskar7} hosts{flag}"),
    };
    let third = match &first {
        Some(name) => format!("{beskar7} show {name}{flag}"),
        None => format!("{beskar7} apply -f server-01.yaml          # docs/use/first-server.md"),
    };
    let end = match folder {
        Folder::Lasting(path) => format!("Ctrl-C ends it; everything is kept in {}.", path.display()),
        Folder::ForNow(_) => "Ctrl-C ends it, and nothing is left; to keep it, start with --data DIR.".to_owned(),
    };
    format!(
        "\
Beskar7 runs alone: API server at {url}{servers}{operator}.

  export KUBECONFIG={kubeconfig}
  {second}
  {third}

{end}
",
        url = site.url(),
    )
}
