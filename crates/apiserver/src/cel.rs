//! `x-kubernetes-validations`: rules in the Common Expression Language.

use serde_json::Value;

use crate::schema::Schema;
use crate::status::FieldError;

/// The rules of a schema, compiled.
#[derive(Debug, Default)]
pub struct Rules {}

impl Rules {
    /// Compiles all rules of a schema. `path` is where it stands in the CustomResourceDefinition, for the errors.
    pub fn compile(_schema: &Schema, _path: &str) -> Result<Self, Vec<FieldError>> {
        Ok(Self {})
    }

    /// What the rules say against the object.
    pub fn check(&self, _schema: &Schema, _new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
        Vec::new()
    }
}
