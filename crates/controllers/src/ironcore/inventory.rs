//! The engine's inventory in metal-operator's words.

use api::ironcore::{NetworkInterface, Processor, ServerStatus, Storage, StorageDrive};
use engine::hardware::{self, Hardware, Part};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A status may have 256 KiB in all.
const LIST_LIMIT: usize = 200;

/// Takes in what was found in a server. Parts that could not be read this time stay as they were; so does what a probe has told of network
/// interfaces.
pub(super) fn take_in(status: &mut ServerStatus, found: &Hardware) {
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
        status.network_interfaces = interfaces(&found.nics, &status.network_interfaces);
    }
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
