//! The inventory of a server. Everything that a BMC may not report is optional.

use serde::{Deserialize, Serialize};

/// The inventory of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hardware {
    /// Who made it.
    pub manufacturer: Option<String>,
    /// Model name.
    pub model: Option<String>,
    /// The number on the label (Dell: the service tag).
    pub serial_number: Option<String>,
    /// The maker's order number.
    pub sku: Option<String>,
    /// Part number.
    pub part_number: Option<String>,
    /// SMBIOS UUID, lower case.
    pub uuid: Option<String>,
    /// The owner's tag.
    pub asset_tag: Option<String>,
    /// Host name as the BMC knows it.
    pub host_name: Option<String>,
    /// The Redfish id of the system.
    pub system_id: Option<String>,
    /// Firmware version of the host (BIOS/UEFI).
    pub bios_version: Option<String>,
    /// The management controller.
    pub bmc: Controller,
    /// CPUs.
    pub processors: Vec<Processor>,
    /// GPUs and other accelerators that the BMC lists beside the CPUs.
    pub accelerators: Vec<Processor>,
    /// Memory in MiB, summed over the modules, else as the system states it.
    pub memory_mib: u64,
    /// Memory modules that are present.
    pub memory_modules: Vec<MemoryModule>,
    /// Disks.
    pub drives: Vec<Drive>,
    /// Network interfaces of the host.
    pub nics: Vec<Nic>,
    /// Installed firmware.
    pub firmware: Vec<Firmware>,
    /// How it takes images; `None` if that could not be read.
    pub virtual_media: Option<VirtualMedia>,
    /// Whether its next start can be set to the network; `None` if the BMC does not report it.
    pub network_boot: Option<bool>,
    /// Parts that exist and could not be read completely. What is listed of them comes from the system's own summary, or is
    /// incomplete.
    pub unread: Vec<Part>,
    /// Whether the next look goes on where this one has stopped, to spare the BMC.
    pub goes_on: bool,
}

/// How a server takes images.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMedia {
    /// How many virtual CD drives its BMC shows.
    pub drives: u32,
    /// Schemes of the image URLs that it takes; empty if it states none, or takes any.
    pub schemes: Vec<String>,
}

/// A part of the inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// CPUs and accelerators.
    Processors,
    /// Memory modules.
    Memory,
    /// Disks.
    Drives,
    /// Network interfaces.
    Nics,
    /// The management controller.
    Manager,
    /// Manufacturer of the server, as its chassis states it.
    Chassis,
    /// Installed firmware.
    Firmware,
}

impl Part {
    /// As a user calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Processors => "processors",
            Self::Memory => "memory modules",
            Self::Drives => "drives",
            Self::Nics => "network interfaces",
            Self::Manager => "management controller",
            Self::Chassis => "chassis",
            Self::Firmware => "firmware",
        }
    }
}

/// A management controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Controller {
    /// Who made its firmware.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Firmware version.
    pub firmware_version: Option<String>,
    /// Redfish version of its service.
    pub redfish_version: Option<String>,
}

/// A processor package.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Processor {
    /// The BMC's id.
    pub id: String,
    /// Socket.
    pub socket: Option<String>,
    /// Maker.
    pub manufacturer: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// `x86-64`, `ARM-A64`, …
    pub architecture: Option<String>,
    /// Cores.
    pub cores: Option<u32>,
    /// Hardware threads.
    pub threads: Option<u32>,
    /// Top speed.
    pub max_speed_mhz: Option<u32>,
    /// Health.
    pub health: Option<String>,
}

/// A memory module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MemoryModule {
    /// The BMC's id.
    pub id: String,
    /// Where it sits.
    pub location: Option<String>,
    /// Size.
    pub capacity_mib: Option<u64>,
    /// `DDR4`, …
    pub kind: Option<String>,
    /// Speed.
    pub speed_mhz: Option<u32>,
    /// Maker.
    pub manufacturer: Option<String>,
    /// Part number.
    pub part_number: Option<String>,
    /// Serial number.
    pub serial_number: Option<String>,
    /// Health.
    pub health: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Drive {
    /// The BMC's id.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// Its controller.
    pub controller: Option<String>,
    /// Maker.
    pub manufacturer: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial_number: Option<String>,
    /// Size.
    pub capacity_bytes: Option<u64>,
    /// `SSD` or `HDD`.
    pub media: Option<String>,
    /// `SATA`, `SAS`, `NVMe`, …
    pub protocol: Option<String>,
    /// Firmware.
    pub revision: Option<String>,
    /// Health.
    pub health: Option<String>,
}

/// A network interface of the host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Nic {
    /// The BMC's id.
    pub id: String,
    /// Name.
    pub name: Option<String>,
    /// MAC address, lower case with colons.
    pub mac: Option<String>,
    /// Speed.
    pub speed_mbps: Option<u64>,
    /// Whether there is a link; `None` if the BMC does not report it.
    pub link_up: Option<bool>,
    /// Addresses that the BMC knows.
    pub addresses: Vec<String>,
}

/// A piece of firmware.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Firmware {
    /// What it is for.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
}

impl Hardware {
    /// Cores of all CPUs.
    pub fn cores(&self) -> u32 {
        self.processors.iter().filter_map(|p| p.cores).sum()
    }

    /// Bytes of all disks.
    pub fn disk_bytes(&self) -> u64 {
        self.drives.iter().filter_map(|d| d.capacity_bytes).sum()
    }
}

/// Whether two SMBIOS UUIDs belong to one server. Firmware and operating systems disagree about the byte order of the first three
/// groups, so both orders are compared.
pub fn is_same_uuid(left: &str, right: &str) -> bool {
    let (left, right) = (left.to_ascii_lowercase(), right.to_ascii_lowercase());
    !left.is_empty() && (left == right || swapped(&left).is_some_and(|swapped| swapped == right))
}

/// A UUID with the first three groups in the other byte order.
fn swapped(uuid: &str) -> Option<String> {
    let groups: Vec<&str> = uuid.split('-').collect();
    let [low, mid, high, rest @ ..] = groups.as_slice() else { return None };
    let turned = |group: &str| -> Option<String> {
        let bytes: Option<Vec<&str>> = (0..group.len()).step_by(2).map(|at| group.get(at..at + 2)).collect();
        Some(bytes?.into_iter().rev().collect())
    };
    let first = [turned(low)?, turned(mid)?, turned(high)?].join("-");
    Some([&[first.as_str()], rest].concat().join("-"))
}

#[cfg(test)]
mod tests {
    use super::is_same_uuid;

    #[test]
    fn a_uuid_is_known_in_either_byte_order() {
        let uuid = "4c4c4544-0042-3510-8053-b2c04f4c5232";
        let table = [
            (uuid, true),
            ("4C4C4544-0042-3510-8053-B2C04F4C5232", true),
            ("44454c4c-4200-1035-8053-b2c04f4c5232", true),
            ("44454c4c-0042-3510-8053-b2c04f4c5232", false),
            ("4c4c4544-0042-3510-8053-b2c04f4c5233", false),
            ("", false),
            ("4c4c4544", false),
            ("4c4-0042-3510", false),
        ];
        for (other, same) in table {
            assert_eq!(is_same_uuid(uuid, other), same, "{other}");
            assert_eq!(is_same_uuid(other, uuid), same, "{other}");
        }
        assert!(!is_same_uuid("", ""), "nothing is the same as nothing");
    }
}
