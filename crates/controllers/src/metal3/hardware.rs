//! The engine's inventory in Metal3's words.
//!
//! Redfish does not know the names that an operating system gives to devices. A network interface and a disk bear the id that the BMC gives
//! them: it stays the same as long as the part stays where it is.

use api::metal3::{
    BareMetalHost, Bios, Cpu, Firmware, HardwareData, HardwareDataSpec, HardwareDetails, HardwareSystemVendor, Nic,
    Storage,
};
use engine::hardware::{self, Hardware, Part};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};

use crate::companions::Companion;

/// A status may have 256 KiB in all; the rest of it fits into what this leaves.
const LIST_LIMIT: usize = 200;

/// What was found in a server. Parts that could not be read this time stay as they were.
pub(super) fn details(found: &Hardware, boot_mac: &str, before: Option<&HardwareDetails>) -> HardwareDetails {
    let mut details = HardwareDetails {
        system_vendor: HardwareSystemVendor {
            manufacturer: text(found.manufacturer.as_ref()),
            product_name: text(found.model.as_ref()),
            serial_number: text(found.serial_number.as_ref()),
        },
        firmware: Firmware { bios: Bios { version: text(found.bios_version.as_ref()), ..Bios::default() } },
        ram_mebibytes: number(found.memory_mib),
        nics: found.nics.iter().flat_map(|found| nics(found, boot_mac)).take(LIST_LIMIT).collect(),
        storage: found.drives.iter().map(storage).take(LIST_LIMIT).collect(),
        cpu: cpu(found),
        hostname: text(found.host_name.as_ref()),
    };
    let same = before.filter(|before| before.system_vendor.serial_number == details.system_vendor.serial_number);
    for (part, before) in found.unread.iter().filter_map(|part| Some((part, same?))) {
        match part {
            Part::Processors => details.cpu = before.cpu.clone(),
            Part::Memory => details.ram_mebibytes = details.ram_mebibytes.max(before.ram_mebibytes),
            Part::Drives => keep_longer(&mut details.storage, &before.storage),
            Part::Nics => keep_longer(&mut details.nics, &before.nics),
            Part::Manager | Part::Chassis | Part::Firmware => {}
        }
    }
    details
}

fn keep_longer<T: Clone>(now: &mut Vec<T>, before: &[T]) {
    if before.len() > now.len() {
        *now = before.to_vec();
    }
}

/// The object of the host's name that says the same.
pub(super) fn companion(host: &BareMetalHost, hardware: &HardwareDetails) -> Companion {
    let mut data = HardwareData::new(&host.name_any(), HardwareDataSpec { hardware: Some(hardware.clone()) });
    data.metadata = ObjectMeta {
        name: Some(host.name_any()),
        namespace: host.namespace(),
        owner_references: host.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Companion::like(&data)
}

/// An interface without a MAC address is of no use to anybody. One with several addresses is listed once for each.
fn nics<'a>(found: &'a hardware::Nic, boot_mac: &str) -> impl Iterator<Item = Nic> + 'a {
    let boots = found.mac.as_deref().is_some_and(|mac| mac.eq_ignore_ascii_case(boot_mac));
    let addresses: Vec<_> = if found.addresses.is_empty() { vec![String::new()] } else { found.addresses.clone() };
    found.mac.iter().flat_map(move |mac| {
        addresses.clone().into_iter().map(move |ip| Nic {
            name: found.id.clone(),
            mac: mac.clone(),
            ip,
            speed_gbps: number(found.speed_mbps.unwrap_or(0) / 1000),
            pxe: boots,
            ..Nic::default()
        })
    })
}

fn storage(found: &hardware::Drive) -> Storage {
    let is_nvme = found.protocol.as_deref().is_some_and(|protocol| protocol.to_ascii_lowercase().contains("nvme"));
    let rotational = found.media.as_deref() == Some("HDD");
    let type_ = match (is_nvme, rotational) {
        (true, _) => "NVME",
        (false, true) => "HDD",
        (false, false) => "SSD",
    };
    Storage {
        name: found.id.clone(),
        rotational,
        type_: type_.to_owned(),
        size_bytes: number(found.capacity_bytes.unwrap_or(0)),
        vendor: text(found.manufacturer.as_ref()),
        model: text(found.model.as_ref()),
        serial_number: text(found.serial_number.as_ref()),
        ..Storage::default()
    }
}

fn cpu(found: &Hardware) -> Cpu {
    let first = found.processors.first();
    let threads = found.processors.iter().filter_map(|one| one.threads.or(one.cores)).map(u64::from).sum::<u64>();
    let count = if threads > 0 { threads } else { u64::from(found.cores()) };
    Cpu {
        arch: first.and_then(|one| one.architecture.as_deref()).map(arch).unwrap_or_default(),
        model: text(first.and_then(|one| one.model.as_ref())),
        clock_megahertz: first.and_then(|one| one.max_speed_mhz).map_or(0.0, f64::from),
        count: number(count),
        ..Cpu::default()
    }
}

/// Redfish's word for an architecture, as `uname` says it.
fn arch(word: &str) -> String {
    match word {
        "x86-64" => "x86_64".to_owned(),
        "ARM-A64" => "aarch64".to_owned(),
        other => other.to_owned(),
    }
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
