//! Structural schemas: what a CustomResourceDefinition says about fields, and what follows from it for objects.

use serde_json::Value;

use crate::status::FieldError;

/// A structural schema.
#[derive(Debug)]
pub struct Schema {
    raw: Value,
}

impl Schema {
    /// Reads an `openAPIV3Schema`. `path` is where it stands in the CustomResourceDefinition, for the errors.
    pub fn parse(openapi: &Value, _path: &str) -> Result<Self, Vec<FieldError>> {
        Ok(Self { raw: openapi.clone() })
    }

    /// The schema as it was written, for OpenAPI documents.
    pub fn raw(&self) -> &Value {
        &self.raw
    }

    /// Drops fields that the schema does not know; returns their paths, as `spec.a[0].b`.
    pub fn prune(&self, _object: &mut Value) -> Vec<String> {
        Vec::new()
    }

    /// Fills in defaults.
    pub fn default(&self, _object: &mut Value) {}

    /// What the schema says against the object. With `old`, what was wrong before and is untouched is let pass.
    pub fn validate(&self, _new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
        Vec::new()
    }
}
