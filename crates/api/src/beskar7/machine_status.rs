//! What the operator says about a machine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host::LocalObjectReference;
use crate::capi::{Condition, Initialization, MachineAddress};

/// Where a machine stands. Written by the operator alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Beskar7MachineStatus {
    /// Whether the machine has been provisioned. Once true, it stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,

    /// Where the machine is in its life: Pending, Associating, Provisioning, Provisioned, Deleting or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// Why the machine can never become ready, in one CamelCase word. Only another machine helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,

    /// Why the machine can never become ready, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,

    /// Addresses of the server that are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Vec<MachineAddress>,

    /// What is so and what is not: Ready, InfrastructureReady, PhysicalHostAssociated, BootstrapDataReady, and Paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// What has been done for the first time, in the words of Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,

    /// The failure domain that the server is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,

    /// The PhysicalHost that the machine has claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ref: Option<LocalObjectReference>,

    /// PhysicalHosts that could not serve the machine and were given back. Each is passed over until its retryAfter, or until
    /// what the machine asks for is changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub refused_by: Vec<HostRefusal>,

    /// The generation of the spec that this status answers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// A PhysicalHost that could not serve a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostRefusal {
    /// Name of the PhysicalHost.
    pub host: String,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The image that it was about, without passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Digest of everything that was asked for.
    pub order: String,
    /// How often in a row.
    pub count: u32,
    /// When the host may be tried again.
    pub retry_after: Time,
}

impl Beskar7MachineStatus {
    /// The condition of that type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}

/// The words of `status.phase`. The schema has no enum, since generations differ.
pub mod phases {
    /// It waits: for its cluster, its bootstrap data, or a free host.
    pub const PENDING: &str = "Pending";
    /// A host has been claimed and is being made ready.
    pub const ASSOCIATING: &str = "Associating";
    /// The second generation's word for a host that is being looked at.
    pub const INSPECTING: &str = "Inspecting";
    /// The host is being provisioned.
    pub const PROVISIONING: &str = "Provisioning";
    /// The host has been provisioned.
    pub const PROVISIONED: &str = "Provisioned";
    /// The host is being released.
    pub const DELETING: &str = "Deleting";
    /// It can never become ready.
    pub const FAILED: &str = "Failed";

    /// All words that we write, in the order of a life.
    pub const ALL: [&str; 6] = [PENDING, ASSOCIATING, PROVISIONING, PROVISIONED, DELETING, FAILED];
}
