//! The infrastructure of a cluster: where its API server is, and which failure domains its servers are in.
#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selector::KEY;
use crate::capi::{ApiEndpoint, Condition, FailureDomain, Initialization};

/// What is wanted of a cluster's infrastructure.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Beskar7Cluster",
    plural = "beskar7clusters",
    shortname = "b7c",
    category = "cluster-api",
    category = "beskar7",
    namespaced,
    status = "Beskar7ClusterStatus",
    derive = "PartialEq",
    doc = "The infrastructure of a cluster: where its API server is reached, and which failure domains its servers are in.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    // Here and not in the spec, which templates share: it is about this one cluster.
    validation = Rule::new("!has(oldSelf.spec.controlPlaneEndpoint) || !has(oldSelf.spec.controlPlaneEndpoint.host) || oldSelf.spec.controlPlaneEndpoint.host == '' || (has(self.spec.controlPlaneEndpoint) && self.spec.controlPlaneEndpoint == oldSelf.spec.controlPlaneEndpoint)")
        .message("controlPlaneEndpoint is written into certificates and configurations of the cluster and cannot change once it is set")
        .reason(Reason::FieldValueForbidden)
        .field_path(".spec.controlPlaneEndpoint")
)]
#[serde(rename_all = "camelCase")]
pub struct Beskar7ClusterSpec {
    /// Where the cluster's API server is reached: a virtual address or a load balancer that you provide. Left out, or with
    /// an empty host, the operator writes the address of the first control-plane machine that is ready. A control plane
    /// provider such as KubeadmControlPlane needs it from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,

    /// Keys of the PhysicalHost labels whose values are the failure domains. A host is in the one that the first of these
    /// labels on it names. Left out, topology.kubernetes.io/zone.
    // Kept as they are when empty: an empty list is refused, and must not turn into none on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5), inner(length(max = 317)), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = Rule::new(format!("self.all(key, key.matches('{KEY}'))"))
        .message("failureDomainLabels must consist of keys that a label can have, such as topology.kubernetes.io/zone"))]
    pub failure_domain_labels: Option<Vec<String>>,
}

impl Beskar7ClusterSpec {
    /// The labels that make a failure domain when the spec names none.
    pub const FAILURE_DOMAIN_LABELS: &[&str] = &["topology.kubernetes.io/zone"];

    /// The endpoint, if one is given: an empty host is none.
    pub fn endpoint(&self) -> Option<&ApiEndpoint> {
        self.control_plane_endpoint.as_ref().filter(|endpoint| endpoint.is_given())
    }

    /// The keys of the labels that make a failure domain, the first one first.
    pub fn failure_domain_keys(&self) -> Vec<&str> {
        match &self.failure_domain_labels {
            Some(labels) => labels.iter().map(String::as_str).collect(),
            None => Self::FAILURE_DOMAIN_LABELS.to_vec(),
        }
    }
}

/// Where a cluster's infrastructure stands. Written by the operator alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Beskar7ClusterStatus {
    /// Whether the infrastructure is there. Once true, it stays so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,

    /// Where the cluster's API server is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_endpoint: Option<ApiEndpoint>,

    /// The failure domains of the hosts in the namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomain>,

    /// What is so and what is not: Ready, ControlPlaneEndpointReady, FailureDomainsReady, and Paused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// What has been done for the first time, in the words of Cluster API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialization: Option<Initialization>,

    /// The generation of the spec that this status answers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Beskar7ClusterStatus {
    /// The condition of that type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_host_is_no_endpoint() {
        let spec = |value| serde_json::from_value::<Beskar7ClusterSpec>(value).unwrap();
        assert_eq!(spec(json!({})).endpoint(), None);
        assert_eq!(spec(json!({"controlPlaneEndpoint": {}})).endpoint(), None);
        assert_eq!(spec(json!({"controlPlaneEndpoint": {"host": "", "port": 6443}})).endpoint(), None);
        let given = spec(json!({"controlPlaneEndpoint": {"host": "192.0.2.100", "port": 6443}}));
        assert_eq!(given.endpoint(), Some(&ApiEndpoint { host: "192.0.2.100".to_owned(), port: 6443 }));
    }

    #[test]
    fn failure_domains_come_from_zones_unless_told_otherwise() {
        assert_eq!(Beskar7ClusterSpec::default().failure_domain_keys(), ["topology.kubernetes.io/zone"]);
        let labels = Some(vec!["example.com/rack".to_owned(), "example.com/row".to_owned()]);
        let spec = Beskar7ClusterSpec { failure_domain_labels: labels, ..Beskar7ClusterSpec::default() };
        assert_eq!(spec.failure_domain_keys(), ["example.com/rack", "example.com/row"]);
    }
}
