//! `beskar7 hosts`: the fleet at a glance.

mod row;

use anyhow::Context as _;
use clap::ValueEnum;
use controllers::clock::{Clock as _, SystemClock};
use controllers::dialects::Dialect;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

use crate::access::{Access, ClusterArgs};
use crate::dialects::{self, Host, HostKind};
use crate::output::{self, Paper};
use crate::run::DialectArgs;
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
    /// Only this namespace; else all, and hosts without a namespace
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
    dialects: DialectArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Fits the terminal
    Table,
    /// With addresses and serial numbers, nothing cut
    Wide,
    /// namespace/name, one per line, as `beskar7 power` takes them; with the kind before it if there are several
    Name,
    /// Everything that is known
    Json,
    /// Everything that is known
    Yaml,
}

/// A state by its name, in whichever case.
fn state(text: &str) -> Result<&'static str, String> {
    let mut all = Vec::new();
    for state in Dialect::ALL.into_iter().flat_map(|dialect| dialects::kind(dialect).states()) {
        if !all.contains(state) {
            all.push(*state);
        }
    }
    let known = all.iter().find(|known| known.eq_ignore_ascii_case(text));
    known.copied().ok_or_else(|| format!("hosts are never {text:?}; the states are {}", all.join(", ")))
}

pub(crate) async fn execute(args: &Args) -> anyhow::Result<()> {
    let access = args.cluster.access().await?;
    output::print(&args.look(&access, &args.dialects.kinds()).await?)
}

impl Args {
    pub(crate) async fn look(&self, access: &Access, kinds: &[&'static dyn HostKind]) -> anyhow::Result<String> {
        let now = SystemClock.now();
        let (mut seen, mut rows, mut objects, mut names) = (0, Vec::new(), Vec::new(), String::new());
        // Hosts without a namespace are in none that could be asked for.
        let asked = kinds.iter().filter(|kind| self.namespace.is_none() || kind.has_namespaces());
        for kind in asked.copied() {
            let hosts = access.hosts(kind, self.namespace.as_deref());
            let take = |object: DynamicObject| {
                seen += 1;
                let (namespace, name) = (object.namespace(), object.name_any());
                let label = dialects::label(kinds, kind, namespace.as_deref(), &name);
                let host = kind.read(&object).with_context(|| format!("{label} cannot be read"))?;
                if !self.wants(&host) {
                    return Ok(());
                }
                match self.output {
                    Format::Table | Format::Wide => {
                        let kind = (kinds.len() > 1).then(|| kind.resource().kind);
                        rows.push(Row::of(kind, &object.metadata, host, now));
                    }
                    Format::Name => names.extend([&label, "\n"]),
                    Format::Json | Format::Yaml => objects.push(object),
                }
                Ok(())
            };
            hosts.each(self.selector.as_deref(), take).await?;
        }
        if let Some(namespace) = self.namespace.as_deref().filter(|_| seen == 0) {
            access.check_namespace(namespace).await?;
        }
        let list = || json!({"apiVersion": "v1", "kind": "List", "items": objects});
        Ok(match self.output {
            Format::Table | Format::Wide => {
                rows.sort_by(|one, other| one.order().cmp(&other.order()));
                self.show(kinds, &rows, seen)
            }
            Format::Name => names,
            Format::Yaml => serde_saphyr::to_string(&list())?,
            Format::Json => format!("{}\n", serde_json::to_string_pretty(&list())?),
        })
    }

    fn wants(&self, host: &Host) -> bool {
        let fault = host.fault.as_ref();
        let state_fits =
            self.state.is_empty() || self.state.iter().any(|wanted| wanted.eq_ignore_ascii_case(&host.state));
        let fault_fits = match self.fault.as_deref() {
            None => true,
            Some("") => fault.is_some(),
            Some(reason) => fault.is_some_and(|fault| fault.reason.eq_ignore_ascii_case(reason)),
        };
        state_fits && fault_fits
    }

    fn show(&self, kinds: &[&'static dyn HostKind], rows: &[Row], seen: usize) -> String {
        let wide = self.output == Format::Wide;
        let paper = Paper { width: Paper::stdout().width.filter(|_| !wide), ..Paper::stdout() };
        let one_namespace = self.namespace.is_some();
        let cells: Vec<_> = rows.iter().map(|row| row.cells(wide, one_namespace)).collect();
        let table = if rows.is_empty() { String::new() } else { table::render(&COLUMNS, &cells, paper) };
        let gap = if rows.is_empty() { "" } else { "\n" };
        format!("{table}{gap}{}\n", row::summary(kinds, rows, seen, self.fault.is_some()))
    }
}
