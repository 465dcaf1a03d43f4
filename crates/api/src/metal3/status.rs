//! What the operator says about a server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hardware::HardwareDetails;
use super::host::{FirmwareConfig, SecretReference};
use super::image::{CustomDeploy, Image};
use super::raid::{RaidConfig, RootDeviceHints};
use super::{schemas, wire};
use crate::condition::Condition;

/// What is known about a server, and what is being done with it. Written by the operator alone.
// In the order of Go's type: the annotation baremetalhost.metal3.io/status is this as JSON.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["operationalStatus", "provisioning", "errorMessage", "poweredOn", "errorCount"]))]
pub struct BareMetalHostStatus {
    /// Whether all is well: OK, discovered (no BMC is given), error, delayed, detached, servicing, or nothing yet.
    #[schemars(extend("enum" = ["", "OK", "discovered", "error", "delayed", "detached", "servicing"]))]
    pub operational_status: String,

    /// What kind of thing went wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = [
        "provisioned registration error",
        "registration error",
        "inspection error",
        "preparation error",
        "provisioning error",
        "power management error",
        "servicing error",
    ]))]
    pub error_type: String,

    /// When this status was last written.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "wire::time")]
    pub last_updated: Option<Time>,

    /// The hardware profile in use.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hardware_profile: String,

    /// What the server is made of. The HardwareData of the same name says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareDetails>,

    /// What has been done to the server.
    pub provisioning: ProvisionStatus,

    /// The last credentials that the BMC accepted.
    pub good_credentials: CredentialsStatus,

    /// The last credentials that were tried.
    pub tried_credentials: CredentialsStatus,

    /// What went wrong, in a sentence; empty when nothing did.
    pub error_message: String,

    /// Whether the server is powered on, as the BMC says.
    pub powered_on: bool,

    /// When the steps of the host's life began and ended.
    pub operation_history: OperationHistory,

    /// How often something went wrong since something last went well.
    #[schemars(schema_with = "schemas::integer")]
    pub error_count: i64,

    /// Current conditions of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The operator's memory of what it has done and is about to do. Do not edit it, and do not build on its shape.
    // Not in upstream's type, which reads the annotation baremetalhost.metal3.io/status strictly: not to be written there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

impl BareMetalHostStatus {
    /// The condition of that type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}

/// What has been done to a server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["ID", "state"]))]
pub struct ProvisionStatus {
    /// Where the host is in its life, such as registering, available or provisioned.
    pub state: String,
    /// An id of the host for whoever provisions it.
    #[serde(rename = "ID")]
    pub id: String,
    /// The image that the server was provisioned with; an empty url if there is none.
    pub image: Image,
    /// The hints that chose the root device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,
    /// The firmware that boots: UEFI, UEFISecureBoot or legacy.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schemas::boot_mode")]
    pub boot_mode: String,
    /// How disks were joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidConfig>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareConfig>,
    /// The deployment by a site's own boot agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
}

/// Credentials of a BMC, without what they are.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CredentialsStatus {
    /// The Secret that they are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<SecretReference>,
    /// The resourceVersion of that Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub credentials_version: String,
}

/// When the steps of a host's life began and ended.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationHistory {
    /// Registering.
    pub register: OperationMetric,
    /// Inspecting.
    pub inspect: OperationMetric,
    /// Provisioning.
    pub provision: OperationMetric,
    /// Deprovisioning.
    pub deprovision: OperationMetric,
}

/// When something began and ended.
// Always both, null if there is none.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperationMetric {
    /// When it began.
    #[serde(deserialize_with = "wire::time")]
    pub start: Option<Time>,
    /// When it ended.
    #[serde(deserialize_with = "wire::time")]
    pub end: Option<Time>,
}
