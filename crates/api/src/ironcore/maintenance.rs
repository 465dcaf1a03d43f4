//! A request to take a server out of use for a while.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::boot_configuration::ServerBootConfigurationSpec;
use super::references::LocalObjectReference;
use super::schemas;
use crate::wire::{absent_is_empty, is_zero};

/// Which server is needed, and what for.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "ServerMaintenance",
    plural = "servermaintenances",
    shortname = "sm",
    namespaced,
    status = "ServerMaintenanceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A request to take a server out of use for maintenance, until the request is deleted."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["serverRef"]))]
pub struct ServerMaintenanceSpec {
    /// Whether the owner of a claim must agree: OwnerApproval, or Enforced for at once.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,

    /// The server.
    pub server_ref: LocalObjectReference,

    /// Power of the server during maintenance: On or Off.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server_power: String,

    /// The indicator light during maintenance: Lit, Blinking or Off.
    #[serde(rename = "locatorLED", skip_serializing_if = "String::is_empty")]
    pub locator_led: String,

    /// Among several requests for one server, the highest comes first.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "schemas::int32")]
    pub priority: i64,

    /// What the server boots during maintenance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_boot_configuration_template: Option<ServerBootConfigurationTemplate>,
}

/// A ServerBootConfiguration that is to be created.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "spec"]))]
pub struct ServerBootConfigurationTemplate {
    /// Its name.
    pub name: String,
    /// Its spec.
    pub spec: ServerBootConfigurationSpec,
}

/// What has become of a request. Written by the operator alone.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerMaintenanceStatus {
    /// Pending, InMaintenance or Failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,
}

absent_is_empty!(ServerMaintenanceSpec);
