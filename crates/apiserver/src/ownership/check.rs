//! Whether an intent is of the form that its schema declares, in the words of structured-merge-diff.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::compare::element_of;
use super::fields::Element;
use super::shape::{Items, Kind, Shape};

/// All that is wrong with the intent, as one text; `None` if nothing is.
pub(crate) fn check(intent: &Value, shape: Shape<'_>) -> Option<String> {
    let mut errors = Vec::new();
    check_at(intent, shape, "", &mut errors);
    match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn check_at(value: &Value, shape: Shape<'_>, path: &str, errors: &mut Vec<String>) {
    if value.is_null() {
        return;
    }
    match shape.kind(Some(value)) {
        Kind::Scalar => {
            let fault = match (shape.scalar(), value) {
                (Some("integer" | "number"), Value::Number(_))
                | (Some("string"), Value::String(_))
                | (Some("boolean"), Value::Bool(_))
                | (None, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return,
                (Some("integer" | "number"), other) => {
                    format!("expected numeric (int or float), got {}", go_type(other))
                }
                (Some("string"), other) => {
                    format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other))
                }
                (Some("boolean"), other) => format!("expected boolean, got &{{{}}}", go_text(other)),
                (_, other) => format!("expected any scalar, got &{{{}}}", go_text(other)),
            };
            errors.push(located(path, &fault));
        }
        Kind::Map => {
            let Value::Object(fields) = value else {
                errors.push(located(path, &format!("expected map, got &{{{}}}", go_text(value))));
                return;
            };
            for (key, field) in fields {
                let path = format!("{path}.{key}");
                let Some(shape) = shape.field(key) else {
                    errors.push(located(&path, "field not declared in schema"));
                    return;
                };
                check_at(field, shape, &path, errors);
            }
        }
        Kind::List => {
            let Value::Array(items) = value else {
                errors.push(located(path, &format!("expected list, got &{{{}}}", go_text(value))));
                return;
            };
            let whole = shape.items() == Items::Whole;
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let element = if whole {
                    Element::Index(i64::try_from(index).unwrap_or(i64::MAX))
                } else {
                    match element_of(item, shape) {
                        Ok(element) => element,
                        Err(why) => {
                            errors.push(located(path, &format!("element {index}: {why}")));
                            return;
                        }
                    }
                };
                let item_path = format!("{path}{element}");
                if !seen.insert(element.clone()) {
                    errors.push(located(path, &format!("duplicate entries for key {element}")));
                }
                check_at(item, shape.item(), &item_path, errors);
            }
        }
    }
}

fn located(path: &str, fault: &str) -> String {
    if path.is_empty() { fault.to_owned() } else { format!("{path}: {fault}") }
}

/// Go's `%T`.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's `%v`.
pub(crate) fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(key, field)| format!("{key}:{}", go_text(field))).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let mut text = "map[string]interface {}{".to_owned();
            for (index, (key, field)) in fields.iter().enumerate() {
                let comma = if index > 0 { ", " } else { "" };
                // Writing to a String cannot fail.
                let _ = write!(text, "{comma}{key:?}:{}", go_syntax(field));
            }
            text.push('}');
            text
        }
        scalar => scalar.to_string(),
    }
}
