//! Simulated servers of a site: they answer in process, and are made known as hosts.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bmc::{Https, InProcess, Transport};
use controllers::dialect::Settings;
use controllers::hands::Dial;
use kube::Client;
use kube::api::PostParams;
use sim::{Bmc, Credentials, Fault, Fleet, FleetSpec};

use crate::dialects::{Device, Devices, HostKind, Manifest, Simulated};
use crate::machines::MachineArgs;
use crate::sim::{mix, personalities};

/// Who registers simulated servers, as the API server remembers it.
const MANAGER: &str = "beskar7-simulate";
/// Where they are registered, if they have namespaces.
pub(crate) const NAMESPACE: &str = "default";

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Simulation")]
pub(super) struct FleetArgs {
    /// Pretend to have this many servers, each behind a BMC of its own, and register them
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(..=100_000), env = "BESKAR7_SIMULATE")]
    simulate: Option<u32>,
    /// How many servers are behind each of these BMCs, where more than one can be (--dialects ironcore)
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
    #[command(flatten)]
    machines: MachineArgs,
}

impl FleetArgs {
    pub(super) fn is_wanted(&self) -> bool {
        self.simulate.is_some()
    }

    /// The machines of the servers, if they are to have some.
    pub(super) fn machines(&self) -> anyhow::Result<&MachineArgs> {
        if self.machines.is_wanted() && !self.is_wanted() {
            bail!("--qemu gives machines to simulated servers: say how many with --simulate");
        }
        Ok(&self.machines)
    }

    /// The servers, if any are wanted, to be registered with these kinds of hosts.
    pub(super) fn invent(&self, kinds: &[&'static dyn HostKind]) -> anyhow::Result<Option<Fleet>> {
        let Some(count) = self.simulate else { return Ok(None) };
        if self.systems > 1
            && let Some(kind) = kinds.iter().find(|kind| !kind.finds_systems())
        {
            bail!(
                "--systems {}: a {} is made known for one server, the only one behind its BMC. Leave --systems out, or start with --dialects ironcore alone.",
                self.systems,
                kind.resource().kind
            );
        }
        let faults = self.faults.as_deref().map(read_faults).transpose()?.unwrap_or_default();
        let fleet = Fleet::new(&FleetSpec {
            count,
            systems: self.systems,
            mix: mix(&self.personality),
            seed: self.seed,
            parts: self.machines.parts(),
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

/// What the MAC addresses of simulated BMCs begin with: the bit for addresses that no vendor has given is set.
const PREFIX: [u8; 3] = [0x02, 0xbe, 0x07];
/// Where simulated BMCs are: in the network that is set aside for measurements (RFC 2544), so that nothing real is there.
const NETWORK: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// Where a simulated BMC is, by its number.
fn device(number: usize) -> Device {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let [_, own @ ..] = number.to_be_bytes();
    Device {
        // The first address is that of the network.
        ip: Ipv4Addr::from_bits(NETWORK.to_bits().saturating_add(number).saturating_add(1)).into(),
        mac: mac(&[PREFIX, own].concat()),
    }
}

/// A MAC address, or the beginning of one.
fn mac(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Tells the operator how it knows simulated BMCs.
pub(crate) fn introduce(kinds: &[&'static dyn HostKind], fleet: &Fleet, settings: &mut Settings) {
    let Some(Credentials { username, password }) = fleet.bmcs().first().map(Bmc::credentials) else { return };
    let devices = Devices { mac_prefix: mac(&PREFIX).replace(':', ""), username, password };
    for kind in kinds {
        kind.introduce(&devices, settings);
    }
}

/// Simulated BMCs answer in this process, by their names and by their addresses; all others over the network.
pub(crate) fn dial(fleet: Option<&Fleet>) -> Dial {
    let bmcs = fleet.map(Fleet::bmcs).unwrap_or_default().iter().enumerate();
    let simulated: HashMap<_, _> = bmcs
        .flat_map(|(number, bmc)| [(bmc.name().to_owned(), bmc.clone()), (device(number).ip.to_string(), bmc.clone())])
        .collect();
    Arc::new(move |address, trust| {
        Ok(match simulated.get(address.host()) {
            Some(bmc) => Arc::new(InProcess::new(bmc.clone())) as Arc<dyn Transport>,
            None => Arc::new(Https::new(address, trust)?),
        })
    })
}

/// Makes the servers known, to the dialects in turn. Whatever is there under the same name is left as it is.
pub(crate) async fn register(client: &Client, kinds: &[&'static dyn HostKind], fleet: &Fleet) -> anyhow::Result<()> {
    for ((number, bmc), kind) in fleet.bmcs().iter().enumerate().zip(kinds.iter().cycle()) {
        let (name, credentials) = (bmc.name(), bmc.credentials());
        let manifests = kind.register(&Simulated {
            name,
            namespace: NAMESPACE,
            address: &format!("https://{name}"),
            username: &credentials.username,
            password: &credentials.password,
            fingerprint: None,
            device: Some(&device(number)),
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
