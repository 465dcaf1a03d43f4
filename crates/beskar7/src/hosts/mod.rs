//! `beskar7 hosts`: the fleet at a glance.

mod row;

use api::beskar7::{PhysicalHost, states};
use clap::ValueEnum;
use controllers::clock::{Clock as _, SystemClock};
use kube::ResourceExt as _;
use serde_json::json;

use crate::access::{ClusterArgs, Hosts};
use crate::output::{self, Paper};
use crate::table;
use row::{COLUMNS, Row};

pub(crate) const EXAMPLES: &str = "\
Examples:
  # Everything, hosts with trouble first
  beskar7 hosts

  # Only what needs somebody
  beskar7 hosts --fault

  # What is free in one namespace
  beskar7 hosts --state Available -n lab

  # One rack, with addresses, serial numbers and whole sentences
  beskar7 hosts -l rack=b7 -o wide

  # Switch off what nobody uses
  beskar7 hosts --state Available -o name | xargs beskar7 power off";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only this namespace; else all
    #[arg(short, long)]
    namespace: Option<String>,
    /// All namespaces, which is the default
    #[arg(short = 'A', long, conflicts_with = "namespace", hide = true)]
    all_namespaces: bool,
    /// Only hosts with these labels, as kubectl takes them
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only hosts in these states, such as Available or Error; repeat it or separate by commas
    #[arg(long, value_delimiter = ',', value_parser = state)]
    state: Vec<&'static str>,
    /// Only hosts with a fault; with a word, such as Unreachable, only with this one
    #[arg(long, value_name = "REASON", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    fault: Option<String>,
    /// How to show them
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "table")]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Fits the terminal
    Table,
    /// With addresses and serial numbers, nothing cut
    Wide,
    /// namespace/name, one per line, as `beskar7 power` takes them
    Name,
    /// Everything that is known
    Json,
    /// Everything that is known
    Yaml,
}

/// A state by its name, in whichever case.
fn state(text: &str) -> Result<&'static str, String> {
    let known = states::ALL.into_iter().find(|known| known.eq_ignore_ascii_case(text));
    known.ok_or_else(|| format!("hosts are never {text:?}; the states are {}", states::ALL.join(", ")))
}

pub(crate) async fn execute(args: &Args) -> anyhow::Result<()> {
    let access = args.cluster.access().await?;
    let hosts = access.hosts(args.namespace.as_deref());
    let mut seen = 0;
    let shown = args.look(&hosts, &mut seen).await?;
    if let Some(namespace) = args.namespace.as_deref().filter(|_| seen == 0) {
        access.check_namespace(namespace).await?;
    }
    output::print(&shown)
}

impl Args {
    async fn look(&self, hosts: &Hosts, seen: &mut usize) -> anyhow::Result<String> {
        let labels = self.selector.as_deref();
        match self.output {
            Format::Table | Format::Wide => {
                let now = SystemClock.now();
                let mut rows = Vec::new();
                let take = |host: PhysicalHost| {
                    *seen += 1;
                    rows.extend(self.wants(&host).then(|| Row::of(&host, now)));
                };
                hosts.each(labels, take).await?;
                rows.sort_by(|one, other| one.order().cmp(&other.order()));
                Ok(self.show(&rows, *seen))
            }
            Format::Name | Format::Json | Format::Yaml => {
                let mut all = Vec::new();
                let take = |host: PhysicalHost| {
                    *seen += 1;
                    all.extend(self.wants(&host).then_some(host));
                };
                hosts.each(labels, take).await?;
                self.write(all)
            }
        }
    }

    fn wants(&self, host: &PhysicalHost) -> bool {
        let status = host.status.as_ref();
        let state = status.and_then(|status| status.state.as_deref()).unwrap_or_default();
        let fault = status.and_then(|status| status.fault.as_ref());
        let state_fits = self.state.is_empty() || self.state.iter().any(|wanted| wanted.eq_ignore_ascii_case(state));
        let fault_fits = match self.fault.as_deref() {
            None => true,
            Some("") => fault.is_some(),
            Some(reason) => fault.is_some_and(|fault| fault.reason.eq_ignore_ascii_case(reason)),
        };
        state_fits && fault_fits
    }

    fn show(&self, rows: &[Row], seen: usize) -> String {
        let wide = self.output == Format::Wide;
        let paper = Paper { width: Paper::stdout().width.filter(|_| !wide), ..Paper::stdout() };
        let one_namespace = self.namespace.is_some();
        let cells: Vec<_> = rows.iter().map(|row| row.cells(wide, one_namespace)).collect();
        let table = if rows.is_empty() { String::new() } else { table::render(&COLUMNS, &cells, paper) };
        let gap = if rows.is_empty() { "" } else { "\n" };
        format!("{table}{gap}{}\n", row::summary(rows, seen, self.fault.is_some()))
    }

    fn write(&self, mut hosts: Vec<PhysicalHost>) -> anyhow::Result<String> {
        if self.output == Format::Name {
            let name = |host: &PhysicalHost| format!("{}/{}\n", host.namespace().unwrap_or_default(), host.name_any());
            return Ok(hosts.iter().map(name).collect());
        }
        for host in &mut hosts {
            host.metadata.managed_fields = None;
        }
        let list = json!({"apiVersion": "v1", "kind": "List", "items": hosts});
        Ok(if self.output == Format::Yaml {
            serde_saphyr::to_string(&list)?
        } else {
            format!("{}\n", serde_json::to_string_pretty(&list)?)
        })
    }
}
