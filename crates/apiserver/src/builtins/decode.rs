//! Built-ins as Kubernetes' decoder reads them: what has the wrong type is refused, what nobody knows is dropped, moments and bytes get their usual form.

use base64::Engine as _;
use base64::alphabet::STANDARD as STANDARD_ALPHABET;
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::schemas::{component_of, components, referred};
use crate::catalogue::Served;
use crate::status::wrong_type;

/// Kubernetes does not mind bits that mean nothing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&STANDARD_ALPHABET, PAD.with_decode_allow_trailing_bits(true));

/// Reads an object of a built-in in place, all but its metadata. Returns the paths of fields that nobody knows. `Err` is
/// about a value of the wrong type.
pub(crate) fn read(served: &Served, object: &mut Value) -> Result<Vec<String>, String> {
    let Some((_, schema)) = component_of(served) else { return Ok(Vec::new()) };
    let mut unknown = Vec::new();
    let root = Place { path: String::new(), tells: true };
    if let Value::Object(fields) = object {
        let metadata = fields.remove("metadata");
        let read = structure(schema, &root, fields, &mut unknown);
        if let Some(metadata) = metadata {
            fields.insert("metadata".to_owned(), metadata);
        }
        read?;
    }
    Ok(unknown)
}

/// Where the reader is.
#[derive(Clone)]
struct Place {
    /// `spec.versions[0].name`.
    path: String,
    /// Whether unknown fields are told; they are dropped in any case.
    tells: bool,
}

impl Place {
    fn refuse(&self, value: &Value, wanted: &str) -> String {
        wrong_type(&self.path, wanted, value)
    }

    fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), ..*self }
    }

    fn below(&self, key: &str) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { path, ..*self }
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn structure(
    schema: &Value,
    place: &Place,
    fields: &mut Map<String, Value>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let known = &schema["properties"];
    let mut strange = Vec::new();
    for (key, value) in fields.iter_mut() {
        let Some(schema) = known.get(key) else {
            strange.push(key.clone());
            if place.tells {
                unknown.push(place.below(key).path);
            }
            continue;
        };
        read_value(schema, &place.below(key), value, unknown)?;
    }
    for key in strange {
        fields.remove(&key);
    }
    Ok(())
}

fn read_value(schema: &Value, place: &Place, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    if let Some(name) = referred(schema) {
        return read_named(name, place, value, unknown);
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    match (kind, &mut *value) {
        ("object", Value::Object(entries)) => {
            let Some(schema) = schema.get("additionalProperties") else { return Ok(()) };
            for (key, value) in entries {
                if value.is_null() && schema["type"] == "string" {
                    *value = "".into();
                }
                read_value(schema, &place.below(key), value, unknown)?;
            }
            Ok(())
        }
        ("array", Value::Array(items)) => {
            for (index, item) in items.iter_mut().enumerate() {
                read_value(&schema["items"], &place.item(index), item, unknown)?;
            }
            Ok(())
        }
        ("string", _) if schema["format"] == "byte" => read_bytes(place, value),
        ("string", Value::String(_)) | ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) | ("", _) => Ok(()),
        ("integer", Value::Number(number)) if fits(number, &schema["format"]) => Ok(()),
        _ => Err(place.refuse(value, &format!("of type {kind}"))),
    }
}

fn fits(number: &serde_json::Number, format: &Value) -> bool {
    number.as_i64().is_some_and(|number| format != "int32" || i32::try_from(number).is_ok())
}

fn read_named(name: &str, place: &Place, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let schema_of_schemas = || components().get(name.trim_end_matches("OrArray").trim_end_matches("OrBool"));
    match last(name) {
        "FieldsV1" | "RawExtension" | "JSON" | "JSONSchemaPropsOrStringArray" => return Ok(()),
        "Time" | "MicroTime" => {
            let Value::String(text) = value else { return Err(place.refuse(value, "of type string")) };
            *text = moment(text, last(name) == "MicroTime").map_err(|why| format!("{} {why}", place.path))?;
            return Ok(());
        }
        // What is unknown inside of these is dropped without a word.
        "JSONSchemaPropsOrBool" if value.is_boolean() => return Ok(()),
        "JSONSchemaPropsOrBool" if !value.is_object() => return Err(place.refuse(value, "a boolean or a schema")),
        "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" => {
            let Some(schema) = schema_of_schemas() else { return Ok(()) };
            let place = Place { tells: false, ..place.clone() };
            let all = match value {
                Value::Array(items) => &mut items[..],
                one => std::slice::from_mut(one),
            };
            for one in all.iter_mut().filter_map(Value::as_object_mut) {
                structure(schema, &place, one, unknown)?;
            }
            return Ok(());
        }
        _ => {}
    }
    let Some(schema) = components().get(name) else { return Ok(()) };
    match value {
        Value::Object(fields) => structure(schema, place, fields, unknown),
        other => Err(place.refuse(other, "of type object")),
    }
}

/// Bytes are a text in base64, or a list of numbers.
fn read_bytes(place: &Place, value: &mut Value) -> Result<(), String> {
    let bytes = match value {
        Value::String(text) => {
            let text: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
            LENIENT.decode(text).map_err(|why| format!("{} must be in base64: {why}", place.path))?
        }
        Value::Array(items) => {
            let byte = |item: &Value| item.as_u64().and_then(|number| u8::try_from(number).ok());
            if let Some(wrong) = items.iter().find(|item| byte(item).is_none()) {
                return Err(place.refuse(wrong, "a list of bytes"));
            }
            items.iter().filter_map(byte).collect()
        }
        other => return Err(place.refuse(other, "of type string, in base64")),
    };
    *value = STANDARD.encode(bytes).into();
    Ok(())
}

/// A moment in the form in which Kubernetes writes it: in UTC, to the second or to the microsecond.
fn moment(text: &str, micro: bool) -> Result<String, String> {
    let example = if micro { "2026-01-02T15:04:05.000000Z" } else { "2026-01-02T15:04:05Z" };
    let (seconds, rest) = text.split_at_checked(19).unwrap_or((text, ""));
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let moment: Option<Timestamp> = text.parse().ok();
    match moment.filter(|_| seconds.contains('T') && (!micro || digits == 6)) {
        Some(moment) => {
            let form = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
            Ok(moment.strftime(form).to_string())
        }
        None => Err(format!("must be a time such as {example}, not {text:?}")),
    }
}

#[cfg(test)]
mod tests;
