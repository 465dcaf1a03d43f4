//! JSON patch, merge patch and strategic merge patch.

use serde_json::Value;

use crate::schema::Schema;
use crate::status::Failure;

/// RFC 6902.
pub fn json(object: &Value, _patch: &Value) -> Result<Value, Failure> {
    Ok(object.clone())
}

/// RFC 7386.
pub fn merge(object: &Value, _patch: &Value) -> Value {
    object.clone()
}

/// Strategic merge, with `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` of the schema.
pub fn strategic(_schema: &Schema, object: &Value, _patch: &Value) -> Result<Value, Failure> {
    Ok(object.clone())
}
