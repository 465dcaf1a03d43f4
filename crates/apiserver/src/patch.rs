//! JSON patch, merge patch and strategic merge patch, with the habits of the libraries that Kubernetes uses for them:
//! where those differ from the RFCs, clients have come to depend on the difference.

mod json;
mod strategic;
#[cfg(test)]
mod tests;

use http::StatusCode;
use serde_json::{Map, Value};

pub use self::json::{json, unknown_fields};
pub use self::strategic::strategic;
use crate::status::{Details, Failure, wrong_type};

/// Merge patch: RFC 7386, except that nulls inside lists are dropped too, unless the list takes the place of an object.
pub fn merge(object: &Value, patch: &Value) -> Result<Value, Failure> {
    let Value::Object(patch) = patch else {
        return Err(Failure::bad_request(match patch {
            Value::Null => "Invalid JSON Patch".to_owned(),
            other => wrong_type("a merge patch", "an object", other),
        }));
    };
    let mut merged = object.clone();
    match &mut merged {
        Value::Object(merged) => merge_objects(merged, patch),
        other => *other = without_nulls(&Value::Object(patch.clone())),
    }
    Ok(merged)
}

fn merge_objects(object: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, change) in patch {
        match (object.get_mut(key), change) {
            (_, Value::Null) => {
                object.remove(key);
            }
            (Some(Value::Object(present)), Value::Object(change)) => merge_objects(present, change),
            (Some(present @ Value::Object(_)), change) => *present = change.clone(),
            (_, change) => {
                object.insert(key.clone(), without_nulls(change));
            }
        }
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(key, field)| (key.clone(), without_nulls(field)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

/// What a patch of the right form that cannot be applied is answered with, whatever the reason.
fn not_applicable() -> Failure {
    let mut failure = Failure::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    failure.details = Some(Box::<Details>::default());
    failure
}
