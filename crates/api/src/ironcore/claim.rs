//! A request for a server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::references::LocalObjectReference;
use super::schemas;
use super::taints::Toleration;
use crate::condition::Condition;
use crate::wire::absent_is_empty;

/// Which server is wanted, and what it boots.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "ServerClaim",
    plural = "serverclaims",
    shortname = "scl",
    namespaced,
    status = "ServerClaimStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A request for a server."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["image", "power"]))]
pub struct ServerClaimSpec {
    /// Power of the server while the claim has it: On or Off.
    pub power: String,

    /// The server that is wanted. Left out, any that serverSelector allows; the operator then writes here which one it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ref: Option<LocalObjectReference>,

    /// Labels that the server must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::label_selector")]
    pub server_selector: Option<LabelSelector>,

    /// The Secret with the Ignition configuration, in the claim's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_secret_ref: Option<LocalObjectReference>,

    /// The Secret with the user data, in the claim's namespace; of type metal.ironcore.dev/user-data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data_ref: Option<LocalObjectReference>,

    /// The image that the server boots, for whoever prepares the boot.
    pub image: String,

    /// Taints of servers that the claim does not mind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
}

/// What has become of a request. Written by the operator alone.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerClaimStatus {
    /// Unbound, or Bound if the claim has a server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub phase: String,

    /// Current conditions of the claim. Upstream's type has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The operator's memory of what it has done and is about to do. Do not edit it, and do not build on its shape.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

absent_is_empty!(ServerClaimSpec);
