//! Names of other objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An object in the same namespace, or one that has no namespace.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl LocalObjectReference {
    /// The object of that name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// An object in some namespace.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct ObjectReference {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// A ServerClaim. The reference is set and removed as a whole, never changed.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "namespace"]))]
pub struct ServerClaimReference {
    /// Namespace of the claim.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name of the claim.
    #[schemars(length(max = 253))]
    pub name: String,
}
