//! `beskar7 show`: the whole story of one host.

mod story;

use anyhow::anyhow;
use clap::ValueEnum;
use controllers::clock::{Clock as _, SystemClock};
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::access::{Access, ClusterArgs};
use crate::output::{self, Paper};

pub(crate) const EXAMPLES: &str = "\
Examples:
  # State, claim, hardware, conditions, and what happened
  beskar7 show server-01
  beskar7 show lab/server-01

  # Everything that is known, for programs
  beskar7 show server-01 -o json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The host: NAME, or NAMESPACE/NAME
    #[arg(value_name = "HOST")]
    host: String,
    /// Namespace of a host that is given without one; else the context's
    #[arg(short, long)]
    namespace: Option<String>,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// Everything that is known
    Json,
    /// Everything that is known
    Yaml,
}

pub(crate) async fn execute(args: &Args) -> anyhow::Result<()> {
    let access = args.cluster.access().await?;
    let here = args.namespace.as_deref().unwrap_or(&access.namespace);
    let (namespace, name) = args.host.split_once('/').unwrap_or((here, &args.host));
    let mut host = access
        .hosts(Some(namespace))
        .get(name)
        .await?
        .ok_or_else(|| anyhow!("there is no host {namespace}/{name}; `beskar7 hosts` lists them"))?;
    host.metadata.managed_fields = None;
    match args.output {
        Format::Json => output::line(&serde_json::to_string_pretty(&host)?),
        Format::Yaml => output::print(&serde_saphyr::to_string(&host)?),
        Format::Text => {
            let events = events(&access, namespace, &host.uid().unwrap_or_default()).await?;
            output::print(&story::write(&host, &events, SystemClock.now(), Paper::stdout()))
        }
    }
}

/// What was reported of the host, the oldest first. Whoever may not read Events sees the rest all the same.
async fn events(access: &Access, namespace: &str, uid: &str) -> anyhow::Result<Vec<Event>> {
    let api: Api<Event> = Api::namespaced(access.client.clone(), namespace);
    let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
    match api.list(&about).await {
        Ok(list) => {
            let mut events = list.items;
            events.sort_by_key(story::last_seen);
            Ok(events)
        }
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(Vec::new()),
        Err(error) => Err(access.explain(error)),
    }
}
