//! Conditions as Kubernetes' own kinds have them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// One condition, in the shape of Kubernetes' own.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["lastTransitionTime", "message", "reason", "status", "type"]))]
pub struct Condition {
    /// What the condition is about, such as Ready.
    #[serde(rename = "type")]
    #[schemars(length(max = 316), extend("pattern" = CONDITION_TYPE_PATTERN))]
    pub type_: String,
    /// True, False or Unknown.
    #[schemars(extend("enum" = ["True", "False", "Unknown"]))]
    pub status: String,
    /// The generation of the spec that the condition is about.
    #[serde(skip_serializing_if = "wire::is_zero")]
    #[schemars(range(min = 0))]
    pub observed_generation: i64,
    /// When the status last changed.
    #[serde(deserialize_with = "wire::time_or_epoch")]
    pub last_transition_time: Time,
    /// Why, in one CamelCase word.
    #[schemars(length(min = 1, max = 1024), extend("pattern" = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"))]
    pub reason: String,
    /// Why, in a sentence; may be empty.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// A label's key.
const CONDITION_TYPE_PATTERN: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
);

impl Default for Condition {
    fn default() -> Self {
        Self {
            type_: String::new(),
            status: Self::UNKNOWN.to_owned(),
            observed_generation: 0,
            last_transition_time: wire::epoch(),
            reason: String::new(),
            message: String::new(),
        }
    }
}

impl Condition {
    /// The status of a condition that holds.
    pub const TRUE: &str = "True";
    /// The status of a condition that does not hold.
    pub const FALSE: &str = "False";
    /// The status of a condition that cannot be told.
    pub const UNKNOWN: &str = "Unknown";

    /// Whether the condition holds.
    pub fn is_true(&self) -> bool {
        self.status == Self::TRUE
    }
}
