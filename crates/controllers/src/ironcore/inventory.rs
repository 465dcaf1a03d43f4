//! The engine's inventory in metal-operator's words.

use std::net::IpAddr;

use api::ironcore::{LldpNeighbor, NetworkInterface, Processor, ServerStatus, Storage, StorageDrive};
use engine::hardware::{self, Hardware, Part};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;

/// A status may have 256 KiB in all.
const LIST_LIMIT: usize = 200;
/// Addresses, or neighbours, of one interface.
const NEIGHBOUR_LIMIT: usize = 16;
const TEXT_LIMIT: usize = 200;

/// Takes in what was found in a server. Parts that could not be read this time stay as they were; so does what a probe has told of network
/// interfaces, if one has looked into this server.
pub(super) fn take_in(status: &mut ServerStatus, found: &Hardware, is_probed: bool) {
    let is_same = text(found.serial_number.as_ref()) == status.serial_number;
    status.manufacturer = text(found.manufacturer.as_ref());
    status.model = text(found.model.as_ref());
    status.sku = text(found.sku.as_ref());
    status.serial_number = text(found.serial_number.as_ref());
    status.bios_version = text(found.bios_version.as_ref());
    let is_unread = |part: Part| is_same && found.unread.contains(&part);
    if found.memory_mib > 0 && !(is_unread(Part::Memory) && status.total_system_memory.is_some()) {
        status.total_system_memory = Some(Quantity(format!("{}Gi", found.memory_mib.div_ceil(1024))));
    }
    if !is_unread(Part::Processors) || status.processors.is_empty() {
        let all = found.processors.iter().map(|cpu| processor(cpu, "CPU"));
        let all = all.chain(found.accelerators.iter().map(|gpu| processor(gpu, "Accelerator")));
        status.processors = all.take(LIST_LIMIT).collect();
    }
    if !is_unread(Part::Drives) || status.storages.is_empty() {
        status.storages = storages(&found.drives);
    }
    if !is_unread(Part::Nics) || status.network_interfaces.is_empty() {
        let mut shown = interfaces(&found.nics, &status.network_interfaces);
        if is_probed {
            let is_new = |known: &&NetworkInterface| !shown.iter().any(|shown| is_alike(shown, known));
            let others: Vec<_> = status.network_interfaces.iter().filter(is_new).cloned().collect();
            shown.extend(others);
            shown.truncate(LIST_LIMIT);
        }
        status.network_interfaces = shown;
    }
}

fn is_alike(one: &NetworkInterface, other: &NetworkInterface) -> bool {
    one.mac_address.eq_ignore_ascii_case(&other.mac_address) && !one.mac_address.is_empty()
}

/// What a probe reports, as far as it is shown. Whatever else it says is not read, and a part that makes no sense is left out.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Told {
    #[serde(deserialize_with = "lenient")]
    network_interfaces: Vec<ToldInterface>,
    #[serde(deserialize_with = "lenient")]
    lldp: Vec<ToldLldp>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ToldInterface {
    name: String,
    ip_address: Option<String>,
    ip_addresses: Option<Vec<String>>,
    mac_address: String,
    carrier_status: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ToldLldp {
    name: String,
    #[serde(deserialize_with = "lenient")]
    neighbors: Vec<ToldNeighbor>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ToldNeighbor {
    chassis_id: String,
    port_id: String,
    port_description: String,
    system_name: String,
    system_description: String,
}

/// A list, without what makes no sense in it.
fn lenient<'de, D: serde::Deserializer<'de>, T: serde::de::DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    let all = serde_json::Value::deserialize(from)?;
    let all = all.as_array().into_iter().flatten().take(LIST_LIMIT);
    Ok(all.filter_map(|one| serde_json::from_value(one.clone()).ok()).collect())
}

/// Takes in what a probe has told: names, addresses and neighbours are those that the system sees. Interfaces that only the BMC knows stay.
pub(super) fn take_report(status: &mut ServerStatus, report: &str) {
    let Ok(told) = serde_json::from_str::<Told>(report) else { return };
    let mut shown: Vec<_> = told.network_interfaces.iter().map(|interface| interface.show(&told.lldp)).collect();
    let is_new = |known: &&NetworkInterface| !shown.iter().any(|shown| is_alike(shown, known));
    let others: Vec<_> = status.network_interfaces.iter().filter(is_new).cloned().collect();
    shown.extend(others);
    shown.truncate(LIST_LIMIT);
    status.network_interfaces = shown;
}

impl ToldInterface {
    fn show(&self, lldp: &[ToldLldp]) -> NetworkInterface {
        let told = self.ip_addresses.iter().flatten().chain(self.ip_address.as_ref().filter(|_| {
            // The field of former probes.
            self.ip_addresses.as_ref().is_none_or(Vec::is_empty)
        }));
        let ips = told.filter_map(|ip| ip.parse::<IpAddr>().ok()).take(NEIGHBOUR_LIMIT).map(|ip| ip.to_string());
        let neighbors = lldp.iter().find(|lldp| lldp.name == self.name).map(|lldp| lldp.neighbors.as_slice());
        NetworkInterface {
            name: short(&self.name),
            mac_address: short(&self.mac_address),
            carrier_status: short(&self.carrier_status),
            ips: ips.collect(),
            neighbors: neighbors.unwrap_or_default().iter().take(NEIGHBOUR_LIMIT).map(ToldNeighbor::show).collect(),
            ..NetworkInterface::default()
        }
    }
}

impl ToldNeighbor {
    fn show(&self) -> LldpNeighbor {
        LldpNeighbor {
            mac_address: short(&self.chassis_id),
            port_id: short(&self.port_id),
            port_description: short(&self.port_description),
            system_name: short(&self.system_name),
            system_description: short(&self.system_description),
        }
    }
}

/// Whoever is on that network may have written it.
fn short(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(TEXT_LIMIT).collect()
}

fn processor(found: &hardware::Processor, kind: &str) -> Processor {
    let set = text(found.architecture.as_ref());
    Processor {
        id: found.id.clone(),
        type_: kind.to_owned(),
        architecture: if set.starts_with("ARM") {
            "ARM".to_owned()
        } else if set.is_empty() {
            set.clone()
        } else {
            "x86".to_owned()
        },
        instruction_set: set,
        manufacturer: text(found.manufacturer.as_ref()),
        model: text(found.model.as_ref()),
        max_speed_mhz: found.max_speed_mhz.unwrap_or(0).into(),
        total_cores: found.cores.unwrap_or(0).into(),
        total_threads: found.threads.unwrap_or(0).into(),
    }
}

/// Disks by their controllers.
fn storages(drives: &[hardware::Drive]) -> Vec<Storage> {
    let mut all: Vec<Storage> = Vec::new();
    for drive in drives.iter().take(LIST_LIMIT) {
        let name = text(drive.controller.as_ref());
        let shown = StorageDrive {
            name: drive.name.clone().unwrap_or_else(|| drive.id.clone()),
            media_type: text(drive.media.as_ref()),
            type_: text(drive.protocol.as_ref()),
            capacity: drive.capacity_bytes.map(|bytes| Quantity(bytes.to_string())),
            vendor: text(drive.manufacturer.as_ref()),
            model: text(drive.model.as_ref()),
            state: "Enabled".to_owned(),
        };
        match all.iter_mut().find(|storage| storage.name == name) {
            Some(storage) => storage.drives.push(shown),
            None => all.push(Storage { name, state: "Enabled".to_owned(), drives: vec![shown], ..Storage::default() }),
        }
    }
    all
}

/// Network interfaces by their MAC addresses: an interface without one cannot be told from another.
fn interfaces(found: &[hardware::Nic], before: &[NetworkInterface]) -> Vec<NetworkInterface> {
    let with_mac = found.iter().filter_map(|nic| Some((nic, nic.mac.clone()?)));
    let shown = with_mac.map(|(nic, mac)| {
        let known = before.iter().find(|known| known.mac_address.eq_ignore_ascii_case(&mac)).cloned();
        let carrier = nic.link_up.map(|up| if up { "up" } else { "down" }.to_owned());
        let fresh = NetworkInterface { name: nic.id.clone(), mac_address: mac, ..NetworkInterface::default() };
        let mut shown = known.unwrap_or(fresh);
        if let Some(carrier) = carrier {
            shown.carrier_status = carrier;
        }
        shown
    });
    shown.take(LIST_LIMIT).collect()
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}
