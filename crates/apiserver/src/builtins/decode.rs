//! Built-ins as Kubernetes' decoder reads them: what has the wrong type is refused in Go's words, what nobody knows is
//! dropped, moments and bytes get their usual form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::schemas::{component_of, components, referred};
use crate::catalogue::Served;

mod base64_text;
mod moment;

/// Texts that are types of their own in Go, by structure and field.
const NAMED: [(&str, &str, &str); 11] = [
    ("Secret", "type", "v1.SecretType"),
    ("NamespaceSpec", "finalizers", "v1.FinalizerName"),
    ("NamespaceStatus", "phase", "v1.NamespacePhase"),
    ("NamespaceCondition", "type", "v1.NamespaceConditionType"),
    ("NamespaceCondition", "status", "v1.ConditionStatus"),
    ("LeaseSpec", "strategy", "v1.CoordinatedLeaseStrategy"),
    ("ObjectReference", "uid", "types.UID"),
    ("CustomResourceDefinitionSpec", "scope", "v1.ResourceScope"),
    ("CustomResourceConversion", "strategy", "v1.ConversionStrategyType"),
    ("CustomResourceDefinitionCondition", "type", "v1.CustomResourceDefinitionConditionType"),
    ("CustomResourceDefinitionCondition", "status", "v1.ConditionStatus"),
];

/// Reads an object of a built-in in place, all but its metadata. Returns the paths of fields that nobody knows. `Err` is
/// what Go says about a value of the wrong type.
pub(crate) fn read(served: &Served, object: &mut Value) -> Result<Vec<String>, String> {
    let Some((name, schema)) = component_of(served) else { return Ok(Vec::new()) };
    let mut unknown = Vec::new();
    let root = Place { owner: last(name), field: "", go: String::new(), path: String::new(), tells: true };
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
struct Place<'a> {
    /// The structure that holds the field.
    owner: &'a str,
    field: &'a str,
    /// The path as Go's errors show it: `spec.versions.name`.
    go: String,
    /// The path as it is told for unknown fields: `spec.versions[0].name`.
    path: String,
    /// Whether unknown fields are told; they are dropped in any case.
    tells: bool,
}

impl Place<'_> {
    fn refuse(&self, value: &Value, wanted: &str) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if wanted.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        format!("json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}", self.owner, self.go)
    }

    fn item(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), ..self.clone() }
    }

    fn entry(&self, key: &str) -> Self {
        Self { path: format!("{}.{key}", self.path), ..self.clone() }
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn structure(
    schema: &Value,
    place: &Place<'_>,
    fields: &mut Map<String, Value>,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    let known = &schema["properties"];
    let join = |path: &str, key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let mut strange = Vec::new();
    for (key, value) in fields.iter_mut() {
        let Some(schema) = known.get(key) else {
            strange.push(key.clone());
            if place.tells {
                unknown.push(join(&place.path, key));
            }
            continue;
        };
        let inner = Place { field: key, go: join(&place.go, key), path: join(&place.path, key), ..*place };
        read_value(schema, &inner, value, unknown)?;
    }
    for key in strange {
        fields.remove(&key);
    }
    Ok(())
}

fn read_value(schema: &Value, place: &Place<'_>, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
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
                read_value(schema, &place.entry(key), value, unknown)?;
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
        _ => Err(place.refuse(value, &go_type(schema, place))),
    }
}

fn fits(number: &serde_json::Number, format: &Value) -> bool {
    number.as_i64().is_some_and(|number| format != "int32" || i32::try_from(number).is_ok())
}

fn read_named(name: &str, place: &Place<'_>, value: &mut Value, unknown: &mut Vec<String>) -> Result<(), String> {
    let schema_of_schemas = || components().get(name.trim_end_matches("OrArray").trim_end_matches("OrBool"));
    match last(name) {
        "FieldsV1" | "RawExtension" | "JSON" | "JSONSchemaPropsOrStringArray" => return Ok(()),
        "Time" | "MicroTime" => {
            let Value::String(text) = value else { return Err(place.refuse(value, "string")) };
            *text = moment::read(text, last(name) == "MicroTime")?;
            return Ok(());
        }
        // These read themselves in Go: what is unknown inside is dropped without a word.
        "JSONSchemaPropsOrBool" if value.is_boolean() => return Ok(()),
        "JSONSchemaPropsOrBool" if !value.is_object() => return Err("boolean or JSON schema expected".to_owned()),
        "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" => {
            let Some(schema) = schema_of_schemas() else { return Ok(()) };
            let place = Place { owner: "JSONSchemaProps", tells: false, ..place.clone() };
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
        Value::Object(fields) => structure(schema, &Place { owner: last(name), ..place.clone() }, fields, unknown),
        other => Err(place.refuse(other, &format!("v1.{}", last(name)))),
    }
}

/// Bytes are a text in base64, or a list of numbers.
fn read_bytes(place: &Place<'_>, value: &mut Value) -> Result<(), String> {
    let bytes = match value {
        Value::String(text) => {
            let bytes = base64_text::decode(text.as_bytes());
            bytes.map_err(|at| format!("illegal base64 data at input byte {at}"))?
        }
        Value::Array(items) => {
            let byte = |item: &Value| item.as_u64().and_then(|number| u8::try_from(number).ok());
            if let Some(wrong) = items.iter().find(|item| byte(item).is_none()) {
                return Err(place.refuse(wrong, "uint8"));
            }
            items.iter().filter_map(byte).collect()
        }
        other => return Err(place.refuse(other, "[]uint8")),
    };
    *value = STANDARD.encode(bytes).into();
    Ok(())
}

fn go_type(schema: &Value, place: &Place<'_>) -> String {
    if let Some(name) = referred(schema) {
        return match last(name) {
            "Time" | "MicroTime" => "string".to_owned(),
            name => format!("v1.{name}"),
        };
    }
    match (schema["type"].as_str().unwrap_or_default(), schema["format"].as_str().unwrap_or_default()) {
        ("array", _) => format!("[]{}", go_type(&schema["items"], place)),
        ("object", _) => format!("map[string]{}", go_type(&schema["additionalProperties"], place)),
        ("string", "byte") => "[]uint8".to_owned(),
        ("string", _) => {
            let named = NAMED.iter().find(|(owner, field, _)| *owner == place.owner && *field == place.field);
            named.map_or("string", |(_, _, name)| name).to_owned()
        }
        ("integer", format) => format.to_owned(),
        ("number", _) => "float64".to_owned(),
        ("boolean", _) => "bool".to_owned(),
        (other, _) => other.to_owned(),
    }
}

#[cfg(test)]
mod tests;
