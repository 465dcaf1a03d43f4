//! The engine's inventory in PhysicalHost's words.

use api::beskar7::{
    Bmc, Drive, Firmware, HardwareDetails, HardwareStatus, MemoryModule, NetworkInterface, Processor, VirtualMedia,
};
use api::capi::{AddressType, MachineAddress};
use engine::hardware::{self, Hardware, Part};
use engine::server::{Health, Seen};

/// A status may have 256 KiB in all; the rest of it fits into what this leaves.
const SIZE_LIMIT: usize = 192 * 1024;

/// The inventory, cut if it is too big for a status.
pub(super) fn details(hardware: &Hardware, seen: &Seen) -> HardwareDetails {
    let mut details = HardwareDetails {
        manufacturer: hardware.manufacturer.clone(),
        model: hardware.model.clone(),
        serial_number: hardware.serial_number.clone(),
        status: None,
        summary: None,
        sku: hardware.sku.clone(),
        part_number: hardware.part_number.clone(),
        uuid: hardware.uuid.clone(),
        asset_tag: hardware.asset_tag.clone(),
        host_name: hardware.host_name.clone(),
        system_id: hardware.system_id.clone(),
        bios_version: hardware.bios_version.clone(),
        bmc: Some(Bmc {
            vendor: hardware.bmc.vendor.clone(),
            model: hardware.bmc.model.clone(),
            firmware_version: hardware.bmc.firmware_version.clone(),
            redfish_version: hardware.bmc.redfish_version.clone(),
            certificate_fingerprint: seen.certificate.clone(),
        }),
        cores: Some(hardware.cores()).filter(|cores| *cores > 0),
        processors: hardware.processors.iter().map(processor).collect(),
        accelerators: hardware.accelerators.iter().map(processor).collect(),
        memory_mib: Some(hardware.memory_mib).filter(|mib| *mib > 0),
        memory_modules: hardware.memory_modules.iter().map(memory_module).collect(),
        drives: hardware.drives.iter().map(drive).collect(),
        nics: hardware.nics.iter().map(nic).collect(),
        firmware_inventory: hardware.firmware.iter().map(firmware).collect(),
        virtual_media: hardware
            .virtual_media
            .as_ref()
            .map(|media| VirtualMedia { drives: media.drives, schemes: media.schemes.clone() }),
        network_boot: hardware.network_boot,
        truncated: None,
    };
    details.summary = details.summarise();
    cut(&mut details);
    details
}

/// Parts that could not be read this time are taken from the last inventory, if it is the same server.
pub(super) fn keep_what_was_read(details: &mut HardwareDetails, before: &HardwareDetails, unread: &[Part]) {
    if before.uuid != details.uuid || before.serial_number != details.serial_number {
        return;
    }
    for part in unread {
        match part {
            Part::Processors => {
                keep_longer(&mut details.processors, before.processors.clone());
                keep_longer(&mut details.accelerators, before.accelerators.clone());
                details.cores = details.cores.max(before.cores);
            }
            Part::Memory => {
                keep_longer(&mut details.memory_modules, before.memory_modules.clone());
                details.memory_mib = details.memory_mib.max(before.memory_mib);
            }
            Part::Drives => keep_longer(&mut details.drives, before.drives.clone()),
            Part::Nics => keep_longer(&mut details.nics, before.nics.clone()),
            Part::Firmware => keep_longer(&mut details.firmware_inventory, before.firmware_inventory.clone()),
            Part::Manager | Part::Chassis => {}
        }
    }
    details.summary = details.summarise();
}

fn keep_longer<T>(now: &mut Vec<T>, before: Vec<T>) {
    if before.len() > now.len() {
        *now = before;
    }
}

/// Health in PhysicalHost's words.
pub(super) fn health(health: &Health) -> HardwareStatus {
    HardwareStatus { health: health.health.clone(), health_rollup: health.rollup.clone(), state: health.state.clone() }
}

/// Addresses that the BMC reports. Private ones are internal.
pub(super) fn addresses(nics: &[NetworkInterface]) -> Vec<MachineAddress> {
    let all = nics.iter().flat_map(|nic| &nic.ip_addresses);
    let usable = all.filter_map(|address| Some((address, address.parse::<std::net::IpAddr>().ok()?)));
    usable
        .filter_map(|(address, ip)| Some(MachineAddress { type_: address_type(ip)?, address: address.clone() }))
        .collect()
}

fn address_type(ip: std::net::IpAddr) -> Option<AddressType> {
    let (local, private) = match ip {
        std::net::IpAddr::V4(ip) => (ip.is_loopback() || ip.is_link_local() || ip.is_unspecified(), ip.is_private()),
        std::net::IpAddr::V6(ip) => {
            (ip.is_loopback() || ip.is_unicast_link_local() || ip.is_unspecified(), ip.is_unique_local())
        }
    };
    if local {
        return None;
    }
    Some(if private { AddressType::InternalIp } else { AddressType::ExternalIp })
}

/// Halves the longest list until the whole fits.
fn cut(details: &mut HardwareDetails) {
    while serde_json::to_vec(&details).is_ok_and(|bytes| bytes.len() > SIZE_LIMIT) {
        let lengths = [
            details.firmware_inventory.len(),
            details.memory_modules.len(),
            details.drives.len(),
            details.nics.len(),
            details.accelerators.len(),
            details.processors.len(),
        ];
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return;
        }
        let keep = longest / 2;
        match lengths.iter().position(|length| *length == longest) {
            Some(0) => details.firmware_inventory.truncate(keep),
            Some(1) => details.memory_modules.truncate(keep),
            Some(2) => details.drives.truncate(keep),
            Some(3) => details.nics.truncate(keep),
            Some(4) => details.accelerators.truncate(keep),
            _ => details.processors.truncate(keep),
        }
        details.truncated = Some(true);
    }
}

fn processor(processor: &hardware::Processor) -> Processor {
    Processor {
        id: text(&processor.id),
        socket: processor.socket.clone(),
        manufacturer: processor.manufacturer.clone(),
        model: processor.model.clone(),
        architecture: processor.architecture.clone(),
        cores: processor.cores,
        threads: processor.threads,
        max_speed_mhz: processor.max_speed_mhz,
        health: processor.health.clone(),
    }
}

fn memory_module(module: &hardware::MemoryModule) -> MemoryModule {
    MemoryModule {
        id: text(&module.id),
        location: module.location.clone(),
        capacity_mib: module.capacity_mib,
        type_: module.kind.clone(),
        speed_mhz: module.speed_mhz,
        manufacturer: module.manufacturer.clone(),
        part_number: module.part_number.clone(),
        serial_number: module.serial_number.clone(),
        health: module.health.clone(),
    }
}

fn drive(drive: &hardware::Drive) -> Drive {
    Drive {
        id: text(&drive.id),
        name: drive.name.clone(),
        controller: drive.controller.clone(),
        manufacturer: drive.manufacturer.clone(),
        model: drive.model.clone(),
        serial_number: drive.serial_number.clone(),
        capacity_bytes: drive.capacity_bytes,
        media: drive.media.clone(),
        protocol: drive.protocol.clone(),
        revision: drive.revision.clone(),
        health: drive.health.clone(),
    }
}

fn nic(nic: &hardware::Nic) -> NetworkInterface {
    NetworkInterface {
        id: text(&nic.id),
        name: nic.name.clone(),
        mac_address: nic.mac.clone(),
        speed_mbps: nic.speed_mbps,
        link_up: nic.link_up,
        ip_addresses: nic.addresses.clone(),
    }
}

fn firmware(firmware: &hardware::Firmware) -> Firmware {
    Firmware { name: text(&firmware.name), version: firmware.version.clone() }
}

fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
