//! What the boot service tells the operator, group `boot.beskar7.io`. Nobody else writes these.
#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of the boot image and the bootstrap data of one deployment.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "boot.beskar7.io",
    version = "v1alpha1",
    kind = "BootSession",
    plural = "bootsessions",
    category = "beskar7",
    namespaced,
    derive = "PartialEq",
    doc = "What a server has fetched while it was being provisioned, or told while it was being looked into. Written by the boot service, and deleted when that is over."
)]
#[serde(rename_all = "camelCase")]
pub struct BootSessionSpec {
    /// The host that is being provisioned, which owns this object.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// Who fetched the bootstrap data, and when. Nobody else gets it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched: Option<Fetched>,
    /// What went wrong last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<BootProblem>,
    /// How far the boot from the network has come, the latest of each step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<BootStep>,
    /// What a probe has told of the server that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// A step of a boot from the network.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootStep {
    /// Which: asked, when the server asked what to boot, or the name of a file that it has fetched.
    #[schemars(length(max = 64))]
    pub step: String,
    /// The address that it came from: of DHCP the MAC address, of everything else the IP address.
    #[schemars(length(max = 45))]
    pub by: String,
    /// When.
    pub at: Time,
}

/// What a probe has told of its server.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// When.
    pub at: Time,
    /// What, as it came: a JSON object.
    #[schemars(length(max = 262_144))]
    pub data: String,
}

/// Who fetched something, and when.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// The address that it was fetched from.
    #[schemars(length(max = 45))]
    pub by: String,
    /// When it was fetched first.
    pub at: Time,
}

/// Something that could not be served.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootProblem {
    /// In a word.
    #[schemars(length(max = 64))]
    pub reason: String,
    /// In a sentence.
    #[schemars(length(max = 1024))]
    pub message: String,
    /// When it happened.
    pub at: Time,
}
