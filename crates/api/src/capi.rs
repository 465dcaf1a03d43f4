//! Shapes and names that Cluster API shares with its providers.

#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Annotation: controllers leave the object alone. Any value counts, also the empty one.
pub const PAUSED_ANNOTATION: &str = "cluster.x-k8s.io/paused";
/// Label: names the one operator, started with that `--watch-filter`, that looks after the object.
pub const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";
/// Label: the Cluster that the object belongs to.
pub const CLUSTER_NAME_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Label: present, with any value, on the objects of a control-plane machine.
pub const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
/// Annotation: somebody else looks after the infrastructure of this cluster. Any value counts, also the empty one.
pub const MANAGED_BY_ANNOTATION: &str = "cluster.x-k8s.io/managed-by";
/// Annotation: `clusterctl move` deletes the object here because it lives on elsewhere. Do nothing to the server.
pub const DELETE_FOR_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
/// Annotation: `clusterctl move` waits until it is gone.
pub const BLOCK_MOVE_ANNOTATION: &str = "clusterctl.cluster.x-k8s.io/block-move";

/// One condition, in the shape of Cluster API's v1beta1 contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about, such as RedfishConnectionReady.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 256))]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// How much a status of False matters: Error, Warning or Info. Empty when the status is True.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub severity: String,
    /// Why, in one CamelCase word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: String,
    /// Why, in a sentence that says what to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 10240))]
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Time,
}

impl Condition {
    /// The status of a condition that holds.
    pub const TRUE: &str = "True";
    /// The status of a condition that does not hold.
    pub const FALSE: &str = "False";
    /// The status of a condition that cannot be told.
    pub const UNKNOWN: &str = "Unknown";
    /// Severity: only a person can mend it.
    pub const ERROR: &str = "Error";
    /// Severity: it is being retried.
    pub const WARNING: &str = "Warning";
    /// Severity: all is well, something is under way.
    pub const INFO: &str = "Info";

    /// Whether the condition holds.
    pub fn is_true(&self) -> bool {
        self.status == Self::TRUE
    }
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineAddress {
    /// What kind of address it is.
    #[serde(rename = "type")]
    pub type_: AddressType,
    /// The address.
    #[schemars(length(min = 1, max = 256))]
    pub address: String,
}

/// What kind of address a [`MachineAddress`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum AddressType {
    /// The host's name.
    Hostname,
    /// An address that is routed publicly.
    #[serde(rename = "ExternalIP")]
    ExternalIp,
    /// An address of a private or local network.
    #[serde(rename = "InternalIP")]
    InternalIp,
    /// A name that resolves publicly.
    #[serde(rename = "ExternalDNS")]
    ExternalDns,
    /// A name that resolves locally.
    #[serde(rename = "InternalDNS")]
    InternalDns,
}

impl AddressType {
    const ALL: [Self; 5] = [Self::Hostname, Self::ExternalIp, Self::InternalIp, Self::ExternalDns, Self::InternalDns];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::ExternalIp => "ExternalIP",
            Self::InternalIp => "InternalIP",
            Self::ExternalDns => "ExternalDNS",
            Self::InternalDns => "InternalDNS",
        }
    }

    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// Where an API server is reached.
// Both fields are always written: readers of the v1beta1 contract expect them.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(r"!has(self.host) || self.host == '' || self.host.matches('^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*$') || self.host.matches('^[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*$')")
        .message("host must be an IP address or a DNS name, such as 192.0.2.100 or api.example.com, without scheme, port or brackets")
        .field_path(".host"),
    validation = Rule::new("!has(self.host) || self.host == '' || (has(self.port) && self.port > 0)")
        .message("an endpoint with a host needs a port from 1 to 65535, such as 6443")
        .reason(Reason::FieldValueRequired)
        .field_path(".port")
)]
pub struct ApiEndpoint {
    /// IP address or DNS name. Empty, no endpoint is given.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub host: String,
    /// Port, normally 6443.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    pub port: i32,
}

impl ApiEndpoint {
    /// Whether it says where.
    pub fn is_given(&self) -> bool {
        !self.host.is_empty() && self.port > 0
    }
}

/// What has been done for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Initialization {
    /// Whether the infrastructure has been provisioned. Once true, it stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioned: Option<bool>,
}

/// Servers that may fail together, in the shape of the v1beta1 contract.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureDomain {
    /// Whether control-plane machines may be placed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<bool>,
    /// What else is known about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

/// Labels and annotations of objects that are made from a template.
// Named in the schema, or the API server would drop them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMeta {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_addresses_are_named_as_they_are_written() {
        for type_ in AddressType::ALL {
            assert_eq!(serde_json::to_value(type_).unwrap(), type_.as_str());
            assert_eq!(AddressType::named(type_.as_str()), Some(type_));
        }
        assert_eq!(AddressType::named("internalip"), None);
    }
}
