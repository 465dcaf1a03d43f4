//! Which claims a server accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schemas;

/// A mark on a server that keeps claims away.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["key"]))]
pub struct Taint {
    /// Key of the taint.
    #[schemars(length(min = 1))]
    pub key: String,
    /// Its value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What becomes of claims that do not tolerate it: NoBind (they do not get the server) or Evict (a bound one loses it). Left out,
    /// NoBind.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schemas::effect")]
    pub effect: String,
}

/// Taints that a claim does not mind.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["key"]))]
pub struct Toleration {
    /// Key of the taint.
    #[schemars(length(min = 1))]
    pub key: String,
    /// Equal (the value must be the same) or Exists (any value will do). Left out, Equal.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["Equal", "Exists"]))]
    pub operator: String,
    /// Value of the taint.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect of the taint. Left out, every effect.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schemas::effect")]
    pub effect: String,
}
