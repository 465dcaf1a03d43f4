//! What a server is made of.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{quantity, schemas};
use crate::wire::is_zero;

/// A processor.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["id"]))]
pub struct Processor {
    /// Id of the processor, as the BMC names it.
    pub id: String,
    /// What kind of processor it is, such as CPU or GPU.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Architecture, such as x86.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Instruction set, such as x86-64.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instruction_set: String,
    /// Maker.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Highest clock rate in MHz.
    #[serde(rename = "maxSpeedMHz", skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::int32")]
    pub max_speed_mhz: i64,
    /// Number of cores.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::int32")]
    pub total_cores: i64,
    /// Number of threads.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::int32")]
    pub total_threads: i64,
}

/// A network interface.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["macAddress", "name"]))]
pub struct NetworkInterface {
    /// Name of the interface.
    pub name: String,
    /// Never written. Deprecated: see ips.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// IP addresses of the interface.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schemas::addresses")]
    pub ips: Vec<String>,
    /// MAC address of the interface.
    pub mac_address: String,
    /// Whether there is a link: up or down.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub carrier_status: String,
    /// What is at the other end of the cable, by LLDP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<LldpNeighbor>,
}

/// A device that speaks LLDP, such as a switch.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LldpNeighbor {
    /// MAC address of the device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    /// Id of the port.
    #[serde(rename = "portID", skip_serializing_if = "String::is_empty")]
    pub port_id: String,
    /// Text of the port.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub port_description: String,
    /// Name of the device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system_name: String,
    /// Text of the device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system_description: String,
}

/// A storage controller.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Storage {
    /// Name of the controller.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Enabled, Disabled or Absent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Volumes that are made of its drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<StorageVolume>,
    /// Its drives.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<StorageDrive>,
}

/// A volume.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageVolume {
    /// Name of the volume.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Size of the volume.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "quantity::read")]
    #[schemars(with = "String")]
    pub capacity: Option<Quantity>,
    /// Enabled, Disabled or Absent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// RAID level of the volume.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub raid_type: String,
    /// What the volume is used for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub volume_usage: String,
}

/// A drive.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageDrive {
    /// Name of the drive.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// HDD or SSD.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// How it is connected, such as NVMe or SATA.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
    /// Size of the drive.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "quantity::read")]
    #[schemars(with = "String")]
    pub capacity: Option<Quantity>,
    /// Maker.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Enabled, Disabled or Absent.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
}
