//! What a server is made of.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schemas;
use super::wire::{absent_is_empty, is_false, is_no_speed, is_no_vlan, is_zero, speed};

/// What an inspection found.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal3.io",
    version = "v1alpha1",
    kind = "HardwareData",
    plural = "hardwaredata",
    singular = "hardwaredata",
    shortname = "hd",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "What was found in a server. It has the name of its BareMetalHost, and belongs to it.",
    label("clusterctl.cluster.x-k8s.io", "")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct HardwareDataSpec {
    /// What the server is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareDetails>,
}

/// What a server is made of.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareDetails {
    /// Who made it.
    pub system_vendor: HardwareSystemVendor,
    /// Its firmware.
    pub firmware: Firmware,
    /// Memory in MiB.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::integer")]
    pub ram_mebibytes: i64,
    /// Network interfaces, one entry for each of their addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nics: Vec<Nic>,
    /// Disks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<Storage>,
    /// Processors.
    pub cpu: Cpu,
    /// Name that the server had during the inspection.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
}

/// Who made a server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HardwareSystemVendor {
    /// Maker.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub product_name: String,
    /// Serial number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
}

/// Firmware of a server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Firmware {
    /// BIOS, which may be UEFI.
    pub bios: Bios,
}

/// Firmware that boots a server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bios {
    /// When it was built.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// Who made it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// Processors of a server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cpu {
    /// Architecture, such as x86_64 or aarch64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arch: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Speed in MHz.
    #[serde(skip_serializing_if = "is_no_speed", serialize_with = "speed")]
    pub clock_megahertz: f64,
    /// Features.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Number of hardware threads.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::integer")]
    pub count: i64,
}

/// A network interface, with one of its addresses.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Nic {
    /// Name, such as eth0.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// PCI ids of vendor and product, such as 0x8086 0x1572.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// MAC address.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = schemas::MAC_PATTERN))]
    pub mac: String,
    /// IPv4 or IPv6 address. An interface that has both is listed twice.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Speed in Gbit/s.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::integer")]
    pub speed_gbps: i64,
    /// VLANs of the switch port.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vlans: Vec<Vlan>,
    /// VLAN that is not tagged.
    #[serde(skip_serializing_if = "is_no_vlan")]
    #[schemars(schema_with = "schemas::vlan_id")]
    pub vlan_id: i32,
    /// Whether the server can boot from it over the network.
    #[serde(skip_serializing_if = "is_false")]
    pub pxe: bool,
    /// What its switch says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lldp: Option<Lldp>,
    /// PCI address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pci_address: String,
}

/// A VLAN.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Vlan {
    /// Its number.
    #[serde(skip_serializing_if = "is_no_vlan")]
    #[schemars(schema_with = "schemas::vlan_id")]
    pub id: i32,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// What a switch says by LLDP.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lldp {
    /// Chassis id of the switch.
    #[serde(rename = "switchID", skip_serializing_if = "String::is_empty")]
    pub switch_id: String,
    /// Id of the port.
    #[serde(rename = "portID", skip_serializing_if = "String::is_empty")]
    pub port_id: String,
    /// Name of the switch.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub switch_system_name: String,
}

/// A disk.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Storage {
    /// Name of the device, one that stays if there is such a name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Other names of the device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternate_names: Vec<String>,
    /// Whether it rotates; type tells more.
    #[serde(skip_serializing_if = "is_false")]
    pub rotational: bool,
    /// HDD, SSD or NVME.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["HDD", "SSD", "NVME"]))]
    pub type_: String,
    /// Size in bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub size_bytes: i64,
    /// Maker.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Serial number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    /// World-wide name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    /// The vendor's extension of the world-wide name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn_vendor_extension: String,
    /// World-wide name with the vendor's extension.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn_with_extension: String,
    /// SCSI address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hctl: String,
}

absent_is_empty!(HardwareDataSpec);
