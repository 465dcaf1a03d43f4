//! Conditions that servers must have before they can be claimed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schemas;
use super::taints::Taint;
use crate::condition::Condition;
use crate::wire::absent_is_empty;

/// Which servers need which conditions, and the taint that they have until then.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal.ironcore.dev",
    version = "v1alpha1",
    kind = "ServerReadinessRule",
    plural = "serverreadinessrules",
    status = "ServerReadinessRuleStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A rule that keeps a taint on servers until they have certain conditions."
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["conditions", "enforcementMode", "serverSelector", "taint"]))]
pub struct ServerReadinessRuleSpec {
    /// The conditions; all of them are needed.
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<ConditionRequirement>,

    /// BootstrapOnly (until a server has the conditions for the first time) or Continuous (whenever it does not have them).
    #[schemars(extend("enum" = ["BootstrapOnly", "Continuous"]))]
    pub enforcement_mode: String,

    /// The taint.
    pub taint: Taint,

    /// Labels of the servers that the rule is for.
    #[schemars(schema_with = "schemas::label_selector")]
    pub server_selector: LabelSelector,
}

/// A condition that a server must have.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["requiredStatus", "type"]))]
pub struct ConditionRequirement {
    /// Type of the condition.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 316))]
    pub type_: String,
    /// Status that it must have: True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub required_status: String,
}

/// Whether a rule is followed.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerReadinessRuleStatus {
    /// Current conditions of the rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

absent_is_empty!(ServerReadinessRuleSpec);
