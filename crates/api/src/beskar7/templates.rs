//! Templates that Cluster API makes machines and clusters from.
//!
//! That a template must not change once it is used is no rule here. A rule of the schema cannot tell the dry runs by which
//! ClusterClass compares templates from changes that are meant, and would break it.
#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cluster::Beskar7ClusterSpec;
use super::machine::Beskar7MachineSpec;
use crate::capi::TemplateMeta;

/// What machines are made from.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Beskar7MachineTemplate",
    plural = "beskar7machinetemplates",
    shortname = "b7mt",
    category = "cluster-api",
    category = "beskar7",
    namespaced,
    derive = "PartialEq",
    doc = "What Cluster API makes Beskar7Machines from. Changing it changes no machine: make a new one and refer to that.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    validation = Rule::new("!has(self.spec.template.spec.providerID)")
        .message("providerID names one server, so a template cannot have it: remove it")
        .reason(Reason::FieldValueForbidden)
        .field_path(".spec.template.spec.providerID")
)]
pub struct Beskar7MachineTemplateSpec {
    /// The machine.
    pub template: Beskar7MachineTemplateResource,
}

/// A machine to be.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beskar7MachineTemplateResource {
    /// Labels and annotations of the machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The machines' spec.
    pub spec: Beskar7MachineSpec,
}

/// What clusters are made from.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Beskar7ClusterTemplate",
    plural = "beskar7clustertemplates",
    shortname = "b7ct",
    category = "cluster-api",
    category = "beskar7",
    namespaced,
    derive = "PartialEq",
    doc = "What a ClusterClass makes Beskar7Clusters from. The endpoint is better left to each cluster.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1")
)]
pub struct Beskar7ClusterTemplateSpec {
    /// The cluster.
    pub template: Beskar7ClusterTemplateResource,
}

/// A cluster to be.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beskar7ClusterTemplateResource {
    /// Labels and annotations of the clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMeta>,
    /// The clusters' spec.
    pub spec: Beskar7ClusterSpec,
}
