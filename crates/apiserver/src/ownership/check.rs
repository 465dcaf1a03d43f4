//! Whether an intent is of the form that its schema declares, in the words of structured-merge-diff.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::compare::element_of;
use super::fields;
use super::shape::{Items, Kind, Shape};
use crate::schema::Kind as Type;

/// All that is wrong with the intent, as one text; `None` if nothing is.
pub(crate) fn check(intent: &Value, shape: Shape<'_>) -> Option<String> {
    let mut faults = Vec::new();
    check_at(intent, shape, &mut faults);
    match faults.as_slice() {
        [] => None,
        [one] => Some(one.shown()),
        many => Some(format!("errors:\n  {}", many.iter().map(Fault::shown).collect::<Vec<_>>().join("\n  "))),
    }
}

struct Fault {
    path: String,
    what: String,
}

impl Fault {
    fn new(what: impl Into<String>) -> Self {
        Self { path: String::new(), what: what.into() }
    }

    fn shown(&self) -> String {
        if self.path.is_empty() { self.what.clone() } else { format!("{}: {}", self.path, self.what) }
    }
}

fn check_at(value: &Value, shape: Shape<'_>, faults: &mut Vec<Fault>) {
    if value.is_null() || !matches!(shape, Shape::Declared { .. }) {
        return;
    }
    match shape.kind(Some(value)) {
        Kind::Scalar => faults.extend(check_scalar(value, shape).map(Fault::new)),
        Kind::Map => {
            let Value::Object(fields) = value else {
                faults.push(Fault::new(format!("expected map, got &{{{}}}", go_text(value))));
                return;
            };
            for (key, part) in fields {
                let path = || format!(".{key}");
                let Some(shape) = shape.field(key) else {
                    faults.push(Fault { path: path(), what: "field not declared in schema".to_owned() });
                    return;
                };
                check_part(part, shape, path, faults);
            }
        }
        Kind::List => {
            let Value::Array(items) = value else {
                faults.push(Fault::new(format!("expected list, got &{{{}}}", go_text(value))));
                return;
            };
            let whole = shape.items() == Items::Whole;
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                if whole {
                    check_part(item, shape.item(), || format!("[{index}]"), faults);
                    continue;
                }
                let element = match element_of(item, shape) {
                    Ok(element) => element,
                    Err(why) => {
                        faults.push(Fault::new(format!("element {index}: {why}")));
                        return;
                    }
                };
                if seen.contains(&element) {
                    faults.push(Fault::new(format!("duplicate entries for key {}", fields::shown(&element))));
                }
                check_part(item, shape.item(), || fields::shown(&element), faults);
                seen.insert(element);
            }
        }
    }
}

fn check_part(value: &Value, shape: Shape<'_>, path: impl Fn() -> String, faults: &mut Vec<Fault>) {
    let known = faults.len();
    check_at(value, shape, faults);
    for fault in faults.iter_mut().skip(known) {
        fault.path.insert_str(0, &path());
    }
}

fn check_scalar(value: &Value, shape: Shape<'_>) -> Option<String> {
    match (shape.scalar(), value) {
        (Some(Type::Integer | Type::Number), Value::Number(_))
        | (Some(Type::String), Value::String(_))
        | (Some(Type::Boolean), Value::Bool(_))
        | (None, Value::Number(_) | Value::String(_) | Value::Bool(_)) => None,
        (Some(Type::Integer | Type::Number), other) => {
            Some(format!("expected numeric (int or float), got {}", go_type(other)))
        }
        (Some(Type::String), other) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(other)))
        }
        (Some(Type::Boolean), other) => Some(format!("expected boolean, got &{{{}}}", go_text(other))),
        (_, other) => Some(format!("expected any scalar, got &{{{}}}", go_text(other))),
    }
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
