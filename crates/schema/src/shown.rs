//! How values are shown in messages.

use serde_json::{Number, Value};

/// A value as it stands in `Invalid value: …`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        // Kubernetes replaces nothing by the word, and then quotes the word.
        Value::Null => "\"null\"".to_owned(),
        Value::Number(number) => shown_number(number),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// A text in quotes.
pub fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn shown_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (None, Some(float)) => float.to_string(),
        _ => number.to_string(),
    }
}

/// What is said of a value that is not of the type that its place wants: `expected` is `a string`, …
pub fn wrong_type(path: impl std::fmt::Display, expected: &str, value: &Value) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) => &format!("the number {number}"),
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("{path} must be {expected}, not {found}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_json_and_whole_numbers_without_a_point() {
        for (value, text) in [
            (json!(null), r#""null""#),
            (json!("a\"b\n"), r#""a\"b\n""#),
            (json!(11), "11"),
            (json!(1.5), "1.5"),
            (json!(100_000.0), "100000"),
            (json!({"a": "x", "b": [1, null, true, 2.5]}), r#"{"a":"x","b":[1,null,true,2.5]}"#),
        ] {
            assert_eq!(shown(&value), text);
        }
    }

    #[test]
    fn a_value_of_the_wrong_type_is_told_with_its_place() {
        assert_eq!(
            wrong_type("spec.size", "an integer", &json!(1.5)),
            "spec.size must be an integer, not the number 1.5"
        );
        assert_eq!(wrong_type("spec", "an object", &json!([])), "spec must be an object, not a list");
    }
}
