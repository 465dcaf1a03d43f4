//! What the operator says about a server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inspection::InspectionReport;
use super::inventory::Inventory;
use crate::capi::{Condition, MachineAddress};

/// What is known about a server, and what is being done with it. Written by the operator alone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhysicalHostStatus {
    /// Whether the host is enrolled and usable: its BMC was reached and its hardware is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,

    /// Where the host is in its life: Enrolling, Inspecting, Available, Claimed, Provisioning, Provisioned,
    /// Deprovisioning, Maintenance, Quarantined, Deleting; or Error, which shows only on a host that nobody claimed. A claimed host
    /// keeps its state, and fault and conditions tell what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,

    /// Since when the host has been in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_state_transition_time: Option<Time>,

    /// Power as the BMC reports it: On, Off, PoweringOn, PoweringOff, Paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_power_state: Option<String>,

    /// Health of the server and all its parts: OK, Warning or Critical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,

    /// What is wrong, in a sentence; empty when nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,

    /// What went wrong last, how often, and when it is tried again. Absent when nothing is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,

    /// What is being waited for, and until when. Absent when nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,

    /// What is so and what is not: RedfishConnectionReady, HostInspected, HostAvailable, HostProvisioned, and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// What the server is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_details: Option<Inventory>,

    /// The address from which the server fetched its bootstrap data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched_from: Option<String>,

    /// Addresses of the server that are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Vec<MachineAddress>,

    /// The address that the server gets by DHCP on the network from which it boots, where the operator gives addresses
    /// (--dhcp reservation). Reserved for as long as this object exists. If the address is in use elsewhere, it is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_address: Option<String>,

    /// What happened to the host, oldest first. Only the last entries are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub timeline: Vec<TimelineEntry>,

    /// The generation of the spec that this status answers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// How far the in-band inspection has come: Pending, Booting, InProgress, Complete, Failed or Timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection_phase: Option<String>,

    /// When the in-band inspection was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection_timestamp: Option<Time>,

    /// What the in-band inspection found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection_report: Option<Box<InspectionReport>>,

    /// When writing the operating system was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploying_timestamp: Option<Time>,

    /// How the server gets its bootstrap data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Box<Bootstrap>>,

    /// The operator's memory of what it has done and is about to do. Do not edit it, and do not build on its shape.
    // A text and not an object: it is nobody else's business, and a thousand trees of it are megabytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

impl PhysicalHostStatus {
    /// The condition of that type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}

/// Something that went wrong, and when it is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Fault {
    /// What went wrong, in one CamelCase word, such as AuthenticationFailed.
    pub reason: String,
    /// What went wrong and what to do, in a sentence.
    pub message: String,
    /// How often in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// When it is tried again, unless the spec or the Secret changes before. Absent if only such a change helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Time>,
}

/// Something that is being waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Waiting {
    /// What for, in one CamelCase word.
    pub reason: String,
    /// What for, in a sentence.
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// Until when at most; then it is a fault, or is asked about again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

/// Something that happened to the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When.
    pub at: Time,
    /// The state that the host was in from then on.
    pub state: String,
    /// What happened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How a server gets its bootstrap data: hashes and times, never the secrets themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Bootstrap {
    /// Where the server fetches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// SHA-256 of the token that the server shows there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_hash: Option<String>,
    /// When the token was issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_at: Option<Time>,
    /// When the token ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    /// SHA-256 of the word with which the server fetches its boot script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_nonce_hash: Option<String>,
    /// When that word ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_nonce_expires_at: Option<Time>,
    /// When that word was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_nonce_consumed_at: Option<Time>,
}
