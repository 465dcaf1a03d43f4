//! What a newcomer reads first: where it is, and what to type next.

use sim::Fleet;

use super::{Folder, Site};
use crate::human;

pub(super) fn text(site: &Site, folder: &Folder, fleet: Option<&Fleet>, api_only: bool) -> String {
    let kubeconfig = site.kubeconfig().display().to_string();
    let servers = fleet.map(|fleet| human::counted(fleet.bmcs().len(), "simulated server"));
    let servers = servers.map(|servers| format!(", {servers}")).unwrap_or_default();
    let operator = if api_only { ", without the operator" } else { "" };
    let first = fleet.and_then(|fleet| fleet.bmcs().first()).map(|bmc| bmc.name().to_owned());
    let third = match &first {
        Some(name) => format!("beskar7 show {name}"),
        None => "beskar7 apply -f server-01.yaml          # README: Register a server".to_owned(),
    };
    let end = match folder {
        Folder::Lasting(path) => format!("Ctrl-C ends it; everything is kept in {}.", path.display()),
        Folder::ForNow(_) => "Ctrl-C ends it, and nothing is left; to keep it, start with --data DIR.".to_owned(),
    };
    format!(
        "\
Beskar7 runs alone: API server at {url}{servers}{operator}.

  export KUBECONFIG={kubeconfig}
  kubectl get physicalhosts --watch        # or: beskar7 hosts
  {third}

{end}
",
        url = site.url(),
    )
}
