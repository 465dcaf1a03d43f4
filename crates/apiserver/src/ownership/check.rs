//! Whether an intent is of the form that its schema declares.

use std::collections::BTreeSet;

use schema::Kind as Type;
use serde_json::Value;

use super::compare::element_of;
use super::fields;
use super::shape::{Items, Kind, Shape};
use crate::status::wrong_type;

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
                faults.push(Fault::new(wrong_type("the value", "an object", value)));
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
                faults.push(Fault::new(wrong_type("the value", "a list", value)));
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
    let expected = match (shape.scalar(), value) {
        (Some(Type::Integer | Type::Number), Value::Number(_))
        | (Some(Type::String), Value::String(_))
        | (Some(Type::Boolean), Value::Bool(_))
        | (None, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return None,
        (Some(Type::Integer | Type::Number), _) => "a number",
        (Some(Type::String), _) => "a string",
        (Some(Type::Boolean), _) => "a boolean",
        _ => "a number, a string or a boolean",
    };
    Some(wrong_type("the value", expected, value))
}
