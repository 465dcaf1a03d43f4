//! Simulated servers of a site: they answer in process, and are made known as hosts.

use std::path::Path;

use anyhow::{Context as _, bail};
use kube::Client;
use kube::api::PostParams;
use sim::{Fault, Fleet, FleetSpec};

use crate::dialects::{HostKind, Manifest, Simulated};
use crate::sim::{mix, personalities};

/// Who registers simulated servers, as the API server remembers it.
const MANAGER: &str = "beskar7-simulate";
/// Where they are registered, if they have namespaces.
pub(crate) const NAMESPACE: &str = "default";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Simulation")]
pub(super) struct FleetArgs {
    /// Pretend to have this many servers, and register them
    #[arg(long, value_name = "NUMBER", env = "BESKAR7_SIMULATE")]
    simulate: Option<u32>,
    /// How many servers are behind each simulated BMC (--dialects ironcore)
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16), requires = "simulate")]
    systems: u32,
    /// Vendors to simulate, in turn; mix is all of them
    #[arg(long, value_name = "NAME", default_value = "mix", value_delimiter = ',', requires = "simulate", value_parser = personalities())]
    personality: Vec<String>,
    /// What goes wrong with them: a fault in JSON, a list of faults, or a file with either (docs/develop/simulator.md)
    #[arg(long, value_name = "FAULTS", requires = "simulate")]
    faults: Option<String>,
    /// Seed of serial numbers, UUIDs, MAC addresses and hardware
    #[arg(long, default_value_t = 1, requires = "simulate")]
    seed: u64,
}

impl FleetArgs {
    pub(super) fn is_wanted(&self) -> bool {
        self.simulate.is_some()
    }

    /// The servers, if any are wanted.
    pub(super) fn invent(&self) -> anyhow::Result<Option<Fleet>> {
        let Some(count) = self.simulate else { return Ok(None) };
        let faults = self.faults.as_deref().map(read_faults).transpose()?.unwrap_or_default();
        let fleet = Fleet::new(&FleetSpec {
            count,
            systems: self.systems,
            mix: mix(&self.personality),
            seed: self.seed,
            ..FleetSpec::default()
        });
        for bmc in fleet.bmcs() {
            for fault in &faults {
                bmc.faults().add(fault.clone());
            }
        }
        Ok(Some(fleet))
    }
}

fn read_faults(given: &str) -> anyhow::Result<Vec<Fault>> {
    let text = if given.trim_start().starts_with(['{', '[']) {
        given.to_owned()
    } else {
        std::fs::read_to_string(Path::new(given))
            .with_context(|| format!("--faults is neither JSON nor a file that can be read: {given}"))?
    };
    let one_or_many = if text.trim_start().starts_with('[') { text } else { format!("[{text}]") };
    match serde_json::from_str(&one_or_many) {
        Ok(faults) => Ok(faults),
        Err(error) => bail!("--faults: {error}; docs/develop/simulator.md lists what can go wrong"),
    }
}

/// Makes the servers known, to the dialects in turn. Whatever is there under the same name is left as it is.
pub(crate) async fn register(client: &Client, kinds: &[&'static dyn HostKind], fleet: &Fleet) -> anyhow::Result<()> {
    for (bmc, kind) in fleet.bmcs().iter().zip(kinds.iter().cycle()) {
        let (name, credentials) = (bmc.name(), bmc.credentials());
        let manifests = kind.register(&Simulated {
            name,
            namespace: NAMESPACE,
            address: &format!("https://{name}"),
            username: &credentials.username,
            password: &credentials.password,
            fingerprint: None,
        });
        for manifest in manifests {
            create(client, &manifest).await.with_context(|| format!("cannot register {name}"))?;
        }
    }
    Ok(())
}

/// Creates an object, if there is none of that name.
pub(crate) async fn create(client: &Client, manifest: &Manifest) -> anyhow::Result<()> {
    let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
    match manifest.api(client).create(&params, &serde_json::from_value(manifest.object().clone())?).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        created => Ok(created.map(drop)?),
    }
}
