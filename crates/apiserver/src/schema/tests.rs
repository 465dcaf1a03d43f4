//! What the real kube-apiserver (v1.33) answers, row by row.

use serde_json::{Value, json};

use super::Schema;
use crate::status::FieldError;

mod values;

/// A schema with these fields in `spec`.
fn schema(spec: &Value) -> Schema {
    let openapi = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
    Schema::parse(&openapi, "spec.validation.openAPIV3Schema").expect("structural")
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

fn sentences(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}
