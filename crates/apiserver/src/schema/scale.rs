//! What a scale subresource points at must be numbers, and a selector a text.

use serde_json::Value;

use crate::resource::{Part, Scale};
use crate::status::{FieldError, shown_float};

/// Collects what is wrong at the places that a scale subresource points at.
pub fn check_scale(scale: &Scale, object: &Value, part: Part) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if part != Part::Status {
        errors.extend(check_replicas(&scale.spec_replicas, object));
    }
    errors.extend(check_replicas(&scale.status_replicas, object));
    if let Some(path) = &scale.label_selector {
        let found = find(path, object).and_then(|found| match found {
            None | Some(Value::String(_)) => Ok(()),
            Some(other) => Err(wrong(path, other, "string")),
        });
        errors.extend(found.err().map(|why| FieldError::invalid(path, "", why)));
    }
    errors
}

fn check_replicas(path: &str, object: &Value) -> Option<FieldError> {
    let number = find(path, object).and_then(|found| match found {
        None => Ok(0),
        Some(found) => found.as_i64().ok_or_else(|| wrong(path, found, "int64")),
    });
    match number {
        Err(why) => Some(FieldError::invalid(path, 0, why)),
        Ok(number) if number < 0 => Some(FieldError::invalid(path, number, "should be a non-negative integer")),
        Ok(number) if number > i64::from(i32::MAX) => {
            Some(FieldError::invalid(path, number, format!("should be less than or equal to {}", i32::MAX)))
        }
        Ok(_) => None,
    }
}

fn find<'o>(path: &str, object: &'o Value) -> Result<Option<&'o Value>, String> {
    let mut place = object;
    for step in path.trim_start_matches('.').split('.') {
        let Value::Object(fields) = place else { return Err(wrong(path, place, "map[string]interface{}")) };
        match fields.get(step) {
            Some(below) => place = below,
            None => return Ok(None),
        }
    }
    Ok(Some(place))
}

fn wrong(path: &str, value: &Value, expected: &str) -> String {
    let go_type = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    format!("{path} accessor error: {} is of the type {go_type}, expected {expected}", plain(value))
}

/// `%v` of JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| shown_float(number.as_f64().unwrap_or_default()), |number| number.to_string()),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(key, field)| format!("{key}:{}", plain(field))).collect();
            format!("map[{}]", fields.join(" "))
        }
        truth @ Value::Bool(_) => truth.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_scale_points_at_is_checked() {
        let scale = Scale {
            spec_replicas: ".spec.r".to_owned(),
            status_replicas: ".status.r.n".to_owned(),
            label_selector: Some(".status.sel".to_owned()),
        };
        for (object, sentences) in [
            (json!({}), &[][..]),
            (
                json!({"spec": {"r": "x"}}),
                &[".spec.r: Invalid value: 0: .spec.r accessor error: x is of the type string, expected int64"],
            ),
            (json!({"spec": {"r": -1}}), &[".spec.r: Invalid value: -1: should be a non-negative integer"]),
            (
                json!({"spec": {"r": 3_000_000_000_i64}}),
                &[".spec.r: Invalid value: 3000000000: should be less than or equal to 2147483647"],
            ),
            (
                json!({"spec": {"r": 1.5}}),
                &[".spec.r: Invalid value: 0: .spec.r accessor error: 1.5 is of the type float64, expected int64"],
            ),
            (
                json!({"spec": 5}),
                &[
                    ".spec.r: Invalid value: 0: .spec.r accessor error: 5 is of the type int64, expected map[string]interface{}",
                ],
            ),
            (
                json!({"spec": {"r": null}}),
                &[".spec.r: Invalid value: 0: .spec.r accessor error: <nil> is of the type <nil>, expected int64"],
            ),
            (
                json!({"spec": {"r": [1, "a"]}}),
                &[
                    ".spec.r: Invalid value: 0: .spec.r accessor error: [1 a] is of the type []interface {}, expected int64",
                ],
            ),
            (
                json!({"status": {"r": "x", "sel": {}}}),
                &[
                    ".status.r.n: Invalid value: 0: .status.r.n accessor error: x is of the type string, expected map[string]interface{}",
                    ".status.sel: Invalid value: \"\": .status.sel accessor error: map[] is of the type map[string]interface {}, expected string",
                ],
            ),
        ] {
            let errors: Vec<String> =
                check_scale(&scale, &object, Part::Main).iter().map(ToString::to_string).collect();
            assert_eq!(errors, sentences);
        }
        assert_eq!(check_scale(&scale, &json!({"spec": {"r": -1}}), Part::Status), []);
    }
}
