//! Disks: which one gets the image, and how disks are joined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schemas;
use super::wire::is_zero;

/// What the wanted disk is like. All hints that are given must match.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RootDeviceHints {
    /// Name of the device, such as /dev/vda, or its link in /dev/disk/by-path.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device_name: String,
    /// SCSI address, such as 0:0:0:0.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hctl: String,
    /// Part of the model's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Part of the maker's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// Serial number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    /// Smallest size, in GiB (in spite of the name).
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::size")]
    pub min_size_gigabytes: i64,
    /// World-wide name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    /// World-wide name with the vendor's extension.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn_with_extension: String,
    /// The vendor's extension of the world-wide name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn_vendor_extension: String,
    /// Whether the disk rotates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
}

/// How disks are joined before a server is provisioned, by its RAID controller or by the agent.
// Both lists are always written, null if there is none: that, and an empty list, are two different wishes.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RaidConfig {
    /// Volumes of RAID controllers. Left out or null, what is configured stays; an empty list removes all volumes. Without
    /// rootDeviceHints, the first one gets the image.
    #[serde(rename = "hardwareRAIDVolumes")]
    pub hardware_raid_volumes: Option<Vec<HardwareRaidVolume>>,
    /// Volumes of software RAID: one or two, the first of level 1. Not together with hardwareRAIDVolumes.
    #[serde(rename = "softwareRAIDVolumes")]
    #[schemars(length(max = 2))]
    pub software_raid_volumes: Option<Vec<SoftwareRaidVolume>>,
}

/// A volume of a RAID controller.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["level"]))]
pub struct HardwareRaidVolume {
    /// Size in GiB. Left out or 0, as large as the disks allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::size")]
    pub size_gibibytes: Option<i64>,
    /// RAID level: 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0.
    #[schemars(extend("enum" = ["0", "1", "2", "5", "6", "1+0", "5+0", "6+0"]))]
    pub level: String,
    /// Name of the volume. Left out, the controller chooses one.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub name: String,
    /// Whether to use disks that rotate. Left out, any disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotational: Option<bool>,
    /// Number of disks. Left out, as few as the level needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "disk_count")]
    pub number_of_physical_disks: Option<i64>,
    /// Name of the RAID controller.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub controller: String,
    /// Names of the disks, as the controller names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub physical_disks: Vec<String>,
}

/// A volume of software RAID.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["level"]))]
pub struct SoftwareRaidVolume {
    /// Size in GiB. Left out or 0, as large as the disks allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::size")]
    pub size_gibibytes: Option<i64>,
    /// RAID level: 0, 1 or 1+0.
    #[schemars(extend("enum" = ["0", "1", "1+0"]))]
    pub level: String,
    /// What the disks are like, one entry for each; two or more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 2))]
    pub physical_disks: Vec<RootDeviceHints>,
}

fn disk_count(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "integer", "minimum": 1 })
}
