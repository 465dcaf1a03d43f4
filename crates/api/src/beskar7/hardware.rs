//! What a server is made of, as its BMC tells. A BMC may leave out anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The inventory of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct HardwareDetails {
    /// Who made the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Model of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number of the server (Dell: the service tag).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// Health of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<HardwareStatus>,
    /// Cores, memory and disks in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The maker's order number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sku: Option<String>,
    /// Part number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// SMBIOS UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The owner's tag, as set in the BMC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_tag: Option<String>,
    /// Host name, as the BMC knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Redfish id of the system; what spec.redfishConnection.systemID chooses.
    #[serde(default, rename = "systemID", skip_serializing_if = "Option::is_none")]
    pub system_id: Option<String>,
    /// Version of the BIOS or UEFI firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bios_version: Option<String>,
    /// The BMC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<Bmc>,
    /// Cores of all processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Processors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub processors: Vec<Processor>,
    /// GPUs and other accelerators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub accelerators: Vec<Processor>,
    /// Memory in MiB.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Memory modules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub memory_modules: Vec<MemoryModule>,
    /// Disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub drives: Vec<Drive>,
    /// Network interfaces of the server (not the BMC's own).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub nics: Vec<NetworkInterface>,
    /// How the BMC takes images as virtual media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_media: Option<VirtualMedia>,
    /// Whether the BMC can set the next start to the network (PXE or UEFI HTTP); left out where it does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_boot: Option<bool>,
    // Not `firmware`: CRDs of v0.2.7 to v0.3.3 had an object of that name.
    /// Installed firmware and its versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub firmware_inventory: Vec<Firmware>,
    /// True when the lists above were cut to keep the object small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// How a BMC takes images as virtual media.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMedia {
    /// How many virtual CD drives it has.
    pub drives: u32,
    /// Schemes of the image URLs that it takes, such as https. Empty if it does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub schemes: Vec<String>,
}

impl HardwareDetails {
    /// Cores, memory and disks in a few words, for [`summary`](Self::summary); `None` when nothing is known of them.
    pub fn summarise(&self) -> Option<String> {
        let cores = self.cores.unwrap_or_else(|| self.processors.iter().filter_map(|p| p.cores).sum());
        let disk_bytes: u64 = self.drives.iter().filter_map(|d| d.capacity_bytes).sum();
        let mut parts = Vec::new();
        if cores > 0 {
            parts.push(counted(cores, "core"));
        }
        match self.memory_mib.unwrap_or(0) {
            0 => {}
            mib if mib < 1024 => parts.push(format!("{mib} MiB")),
            mib => parts.push(format!("{} GiB", tenths(mib, 1024))),
        }
        match disk_bytes {
            0 => {}
            bytes if bytes < 1_000_000_000_000 => parts.push(format!("{} GB", bytes / 1_000_000_000)),
            bytes => parts.push(format!("{} TB", tenths(bytes, 1_000_000_000_000))),
        }
        if !self.accelerators.is_empty() {
            parts.push(counted(self.accelerators.len(), "accelerator"));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

fn counted<N: Copy + PartialEq + From<u8> + std::fmt::Display>(count: N, noun: &str) -> String {
    format!("{count} {noun}{}", if count == N::from(1) { "" } else { "s" })
}

/// `value / unit` with one decimal, and none if it is zero.
fn tenths(value: u64, unit: u64) -> String {
    match value % unit * 10 / unit {
        0 => format!("{}", value / unit),
        tenth => format!("{}.{tenth}", value / unit),
    }
}

/// Health in Redfish's words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareStatus {
    /// Health of the system itself: OK, Warning or Critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Health of the system and all its parts: OK, Warning or Critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_rollup: Option<String>,
    /// Enabled, StandbyOffline, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A management controller.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bmc {
    /// Who made its firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Version of its firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware_version: Option<String>,
    /// Version of its Redfish service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redfish_version: Option<String>,
    /// SHA-256 of the certificate that it showed, as spec.redfishConnection.certificateFingerprint takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_fingerprint: Option<String>,
}

/// A processor package or an accelerator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Processor {
    /// The BMC's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Maker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Instruction set, such as x86-64 or ARM-A64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Hardware threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Top speed in MHz.
    #[serde(default, rename = "maxSpeedMHz", skip_serializing_if = "Option::is_none")]
    pub max_speed_mhz: Option<u32>,
    /// OK, Warning or Critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// A memory module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryModule {
    /// The BMC's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where it sits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Size in MiB.
    #[serde(default, rename = "capacityMiB", skip_serializing_if = "Option::is_none")]
    pub capacity_mib: Option<u64>,
    /// DDR4, DDR5, …
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Speed in MHz.
    #[serde(default, rename = "speedMHz", skip_serializing_if = "Option::is_none")]
    pub speed_mhz: Option<u32>,
    /// Maker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Part number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// OK, Warning or Critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// A disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drive {
    /// The BMC's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The controller that it hangs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// Maker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manufacturer: Option<String>,
    /// Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// SSD or HDD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<String>,
    /// SATA, SAS, NVMe, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Version of its firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// OK, Warning or Critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
}

/// A network interface of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// The BMC's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// MAC address, lower case with colons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Speed in Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbps: Option<u64>,
    /// Whether a link was seen; absent when the BMC does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_up: Option<bool>,
    /// IP addresses that the BMC knows of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub ip_addresses: Vec<String>,
}

/// A piece of firmware.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Firmware {
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_what_is_known() {
        let processor = Processor { cores: Some(32), ..Processor::default() };
        let drive = Drive { capacity_bytes: Some(960_197_124_096), ..Drive::default() };
        let full = HardwareDetails {
            processors: vec![processor.clone(), processor],
            memory_mib: Some(524_288),
            drives: vec![drive.clone(), drive.clone()],
            accelerators: vec![Processor::default()],
            ..HardwareDetails::default()
        };
        assert_eq!(full.summarise().as_deref(), Some("64 cores, 512 GiB, 1.9 TB, 1 accelerator"));

        let small = HardwareDetails {
            cores: Some(1),
            memory_mib: Some(512),
            drives: vec![drive],
            ..HardwareDetails::default()
        };
        assert_eq!(small.summarise().as_deref(), Some("1 core, 512 MiB, 960 GB"));
        assert_eq!(HardwareDetails::default().summarise(), None);
    }
}
