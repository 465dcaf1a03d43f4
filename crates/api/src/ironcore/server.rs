//! A server that the operator looks after, in metal-operator's words.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bmc::Protocol;
use super::inventory::{NetworkInterface, Processor, Storage};
use super::references::{LocalObjectReference, ObjectReference, ServerClaimReference};
use super::taints::Taint;
use super::{quantity, schemas};
use crate::condition::Condition;
use crate::wire::{absent_is_empty, is_false};

/// Which server it is, how its BMC is reached, and who uses it.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "Server",
    plural = "servers",
    shortname = "srv",
    status = "ServerStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A server, reached through its BMC, as metal-operator describes it."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["systemUUID"]))]
pub struct ServerSpec {
    /// UUID of the server, as its firmware and its BMC tell it.
    #[serde(rename = "systemUUID")]
    pub system_uuid: String,

    /// Path of the server in its BMC's Redfish service. Left out, the one with the UUID.
    #[serde(rename = "systemURI", skip_serializing_if = "String::is_empty")]
    pub system_uri: String,

    /// Power that a claim or a maintenance wants: On or Off. Written by the operator; what others write here has no effect. Deprecated.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub power: String,

    /// The indicator light: Lit, Blinking or Off.
    #[serde(rename = "indicatorLED", skip_serializing_if = "String::is_empty")]
    pub indicator_led: String,

    /// What becomes of the server when its claim is deleted: Recycle (it becomes Available) or Retain (it stays Released until
    /// serverClaimRef is removed). Left out, Recycle.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Recycle", "Retain"]))]
    pub reclaim_policy: String,

    /// The ServerClaim that has the server. Written by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_claim_ref: Option<ServerClaimReference>,

    /// The ServerMaintenance that has the server. Written by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_maintenance_ref: Option<ObjectReference>,

    /// The BMC of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc_ref: Option<LocalObjectReference>,

    /// How to reach the BMC, in place of bmcRef.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bmc: Option<BmcAccess>,

    /// The ServerBootConfiguration that the server boots with. Written by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_configuration_ref: Option<ObjectReference>,

    /// The ServerBootConfiguration that the server boots with during maintenance. Written by the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance_boot_configuration_ref: Option<ObjectReference>,

    /// The order in which the server tries its boot devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boot_order: Vec<BootOrder>,

    /// The BIOSSettings of this server. Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bios_settings_ref: Option<LocalObjectReference>,

    /// Marks that keep claims away which do not tolerate them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,

    /// No claim gets the server. A claim that has it keeps it.
    #[serde(skip_serializing_if = "is_false")]
    pub unclaimable: bool,
}

/// How to reach the BMC of a server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["address", "bmcSecretRef", "protocol"]))]
pub struct BmcAccess {
    /// The language that the BMC speaks.
    pub protocol: Protocol,
    /// Address of the BMC.
    pub address: String,
    /// The BMCSecret with user name and password.
    pub bmc_secret_ref: LocalObjectReference,
}

/// A boot device and its place in the order.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["device", "name", "priority"]))]
pub struct BootOrder {
    /// A name for people.
    pub name: String,
    /// The lowest comes first.
    #[schemars(schema_with = "schemas::integer")]
    pub priority: i64,
    /// The device, as the BMC names it.
    pub device: String,
}

/// What is known about a server, and what is being done with it. Written by the operator; conditions also by others.
#[derive(JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerStatus {
    /// Maker of the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    /// Version of the server's firmware.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bios_version: String,
    /// Model of the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Stock keeping unit of the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sku: String,
    /// Serial number of the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    /// Power, as the BMC reports it: On, Off, Paused, PoweringOn or PoweringOff.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub power_state: String,
    /// The indicator light, as the BMC reports it.
    #[serde(rename = "indicatorLED", skip_serializing_if = "String::is_empty")]
    pub indicator_led: String,
    /// Where the server is in its life: Initial, Discovery, Available, Reserved, Cleanup, Released, Maintenance, Parked or Error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
    /// Network interfaces of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_interfaces: Vec<NetworkInterface>,
    /// Memory of the server.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "quantity::read")]
    #[schemars(with = "String")]
    pub total_system_memory: Option<Quantity>,
    /// Processors of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<Processor>,
    /// Storage controllers of the server, with their disks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storages: Vec<Storage>,
    /// Current conditions of the server, the operator's and those of others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The operator's memory of what it has done and is about to do. Do not edit it, and do not build on its shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

impl ServerStatus {
    /// The condition of a type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}

absent_is_empty!(ServerSpec);
