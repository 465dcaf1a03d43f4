//! What a server is to boot, for whoever prepares it: a boot provider such as boot-operator.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::LocalObjectReference;
use crate::condition::Condition;
use crate::wire::absent_is_empty;

/// What a server is to boot.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "ServerBootConfiguration",
    plural = "serverbootconfigurations",
    shortname = "sbc",
    namespaced,
    status = "ServerBootConfigurationStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "What a server is to boot, for the boot provider that prepares it."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["serverRef"]))]
pub struct ServerBootConfigurationSpec {
    /// The server.
    pub server_ref: LocalObjectReference,

    /// The image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub image: String,

    /// The Secret with the Ignition configuration, in the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_secret_ref: Option<LocalObjectReference>,
}

/// Whether the boot has been prepared. Written by the boot provider; conditions also by the operator.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerBootConfigurationStatus {
    /// Pending, Ready or Error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub state: String,

    /// Current conditions of the boot, the provider's and the operator's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

absent_is_empty!(ServerBootConfigurationSpec);
