//! A device on the management network.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::wire::absent_is_empty;

/// Where a device is.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "Endpoint",
    plural = "endpoints",
    shortname = "mep",
    status = "EndpointStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A device on the management network. Deprecated: write its address into spec.access of a BMC."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct EndpointSpec {
    /// MAC address of the device. Its first digits tell what the device is.
    pub mac_address: String,
    /// IP address of the device.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
}

/// What is known about a device. Written by the operator alone.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointStatus {
    /// Current conditions of the endpoint. Upstream's type has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The operator's memory of what it has done and is about to do. Do not edit it, and do not build on its shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

absent_is_empty!(EndpointSpec);
