//! `beskar7 show`: the whole story of one host.

mod story;

use anyhow::Context as _;
use clap::ValueEnum;
use controllers::clock::{Clock as _, SystemClock};
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use crate::access::{Access, ClusterArgs};
use crate::dialects::{self, HostKind};
use crate::output::{self, Paper};
use crate::run::DialectArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  # State, claim, hardware, conditions, and what happened
  beskar7 show server-01
  beskar7 show lab/server-01

  # Everything that is known, for programs
  beskar7 show server-01 -o json";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The host: NAME, NAMESPACE/NAME, or with its kind before it, such as physicalhost/NAMESPACE/NAME
    #[arg(value_name = "HOST")]
    host: String,
    /// Namespace of a host that is given without one; else the context's
    #[arg(short, long)]
    namespace: Option<String>,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
    #[command(flatten)]
    dialects: DialectArgs,
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
    output::print(&args.look(&access, &args.dialects.kinds()).await?)
}

impl Args {
    pub(crate) async fn look(&self, access: &Access, kinds: &[&'static dyn HostKind]) -> anyhow::Result<String> {
        let found = dialects::find(access, kinds, &self.host, self.namespace.as_deref()).await?;
        Ok(match self.output {
            Format::Json => format!("{}\n", serde_json::to_string_pretty(&found.object)?),
            Format::Yaml => serde_saphyr::to_string(&found.object)?,
            Format::Text => {
                let host =
                    found.hosts.kind.read(&found.object).with_context(|| format!("{} cannot be read", found.label))?;
                let events =
                    events(access, found.namespace.as_deref(), &found.object.uid().unwrap_or_default()).await?;
                let kind = (kinds.len() > 1).then(|| found.hosts.kind.resource().kind);
                story::write(kind, &found.object.metadata, &host, &events, SystemClock.now(), Paper::stdout())
            }
        })
    }
}

/// What was reported of the host, the oldest first. Whoever may not read Events sees the rest all the same.
async fn events(access: &Access, namespace: Option<&str>, uid: &str) -> anyhow::Result<Vec<Event>> {
    // Events of what has no namespace are kept in this one.
    let api: Api<Event> = Api::namespaced(access.client.clone(), namespace.unwrap_or("default"));
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
