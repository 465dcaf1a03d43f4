//! The management controller of one or more servers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::LocalObjectReference;
use super::schemas;
use crate::condition::Condition;
use crate::wire::{self, absent_is_empty};

/// How to reach a BMC.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "BMC",
    root = "Bmc",
    plural = "bmcs",
    singular = "bmc",
    status = "BmcStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The management controller of one or more servers."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["bmcSecretRef", "protocol"]))]
pub struct BmcSpec {
    /// UUID of the Redfish manager, where a BMC has several. Left out, the first one.
    #[serde(rename = "bmcUUID", skip_serializing_if = "String::is_empty")]
    pub bmc_uuid: String,

    /// The Endpoint with the address of the BMC. Deprecated: use access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint_ref: Option<LocalObjectReference>,

    /// The address of the BMC, in place of endpointRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<InlineEndpoint>,

    /// The BMCSecret with user name and password.
    pub bmc_secret_ref: LocalObjectReference,

    /// The language that the BMC speaks.
    pub protocol: Protocol,

    /// How to reach the serial console.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_protocol: Option<ConsoleProtocol>,

    /// The BMCSettings of this BMC. Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc_settings_ref: Option<LocalObjectReference>,

    /// Host name of the BMC, for DNS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
}

/// An address on the management network.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InlineEndpoint {
    /// MAC address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    /// IP address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
}

/// The language that a BMC speaks.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "port"]))]
pub struct Protocol {
    /// Redfish, or RedfishLocal and RedfishWithRegistryPatch for BMCs that are pretended in tests.
    pub name: String,
    /// TCP port of the BMC.
    #[schemars(schema_with = "schemas::int32")]
    pub port: i64,
    /// http or https. Left out, what the operator was told.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scheme: String,
}

/// How to reach a serial console.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "port"]))]
pub struct ConsoleProtocol {
    /// IPMI, SSH or SSHLenovo.
    #[schemars(extend("enum" = ["IPMI", "SSH", "SSHLenovo"]))]
    pub name: String,
    /// TCP port of the console.
    #[schemars(schema_with = "schemas::int32")]
    pub port: i64,
}

/// What is known about a BMC. Written by the operator alone.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BmcStatus {
    /// MAC address of the BMC.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = schemas::MAC_PATTERN))]
    pub mac_address: String,
    /// IP address of the BMC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// Maker of the BMC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    /// Model of the BMC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Part number of the BMC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sku: String,
    /// Serial number of the BMC.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    /// Version of the BMC's firmware.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub firmware_version: String,
    /// State of the BMC in the words of Redfish, such as Enabled; Pending if it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Power of the BMC: On, Off, Paused, PoweringOn, PoweringOff or Unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub power_state: String,
    /// When the BMC was last reset.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "wire::time")]
    #[schemars(schema_with = "schemas::date_time")]
    pub last_reset_time: Option<Time>,
    /// Path of the subscription to metric reports.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metrics_report_subscription_link: String,
    /// Path of the subscription to events.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub events_subscription_link: String,
    /// Current conditions of the BMC.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The operator's memory of what it has done and is about to do. Do not edit it, and do not build on its shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

absent_is_empty!(BmcSpec);
