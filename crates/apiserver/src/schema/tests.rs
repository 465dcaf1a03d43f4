//! What the real kube-apiserver (v1.33) answers, row by row. The tables are recordings: each row was asked of it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Schema;
use crate::status::FieldError;

const PATH: &str = "spec.validation.openAPIV3Schema";

/// What becomes of a value of `spec.x`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueRow {
    schema: Value,
    value: Value,
    /// What is stored.
    #[serde(default, deserialize_with = "given")]
    becomes: Option<Value>,
    /// What strict decoding complains about.
    #[serde(default)]
    unknown: Vec<String>,
    /// What validation complains about.
    #[serde(default)]
    says: Vec<String>,
    /// What the decoder complains about.
    refused: Option<String>,
}

/// Null is a value.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What is said about a schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SchemaRow {
    schema: Value,
    says: Vec<String>,
}

/// A schema with this at `spec.x`.
fn schema_of_x(x: &Value) -> Schema {
    let openapi = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": x}}}});
    Schema::parse(&openapi, PATH).unwrap_or_else(|errors| panic!("{x}: {errors:?}"))
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
}

/// Kubernetes walks maps in any order, so its complaints come in any order, too.
fn sorted(mut sentences: Vec<String>) -> Vec<String> {
    sentences.sort();
    sentences
}

fn sentences(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// JSON does not tell 1.0 from 1.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() == 0.0) => {
            json!(number.as_f64().map(|float| float.to_string()))
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), plain(field))).collect(),
        other => other.clone(),
    }
}

#[test]
fn values_become_and_are_refused_as_recorded() {
    let rows: Vec<ValueRow> = serde_json::from_str(include_str!("tests/values.json")).expect("a table");
    assert!(rows.len() > 300);
    let mut wrong = Vec::new();
    for row in rows {
        let schema = schema_of_x(&row.schema);
        let mut object = object(&json!({"x": row.value}));
        let coerced = schema.coerce(&mut object);
        schema.default(&mut object);
        let says = sorted(sentences(&schema.validate(&object, None)));
        let becomes = object["spec"].get("x").map(plain);
        let fits = match (&coerced, &row.refused) {
            (Err(why), Some(refused)) => why == refused,
            (Ok(unknown), None) if says.is_empty() => {
                row.says.is_empty() && *unknown == row.unknown && becomes == row.becomes.as_ref().map(plain)
            }
            (Ok(_), None) => says == sorted(row.says.clone()),
            _ => false,
        };
        if !fits {
            wrong.push(format!("{row:?}\n  gave {coerced:?} {says:#?} {becomes:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn schemas_are_refused_as_recorded() {
    let rows: Vec<SchemaRow> = serde_json::from_str(include_str!("tests/refusals.json")).expect("a table");
    assert!(rows.len() > 80);
    let mut wrong = Vec::new();
    for row in rows {
        let says = Schema::parse(&row.schema, PATH).err().map(|errors| sentences(&errors)).unwrap_or_default();
        if sorted(says.clone()) != sorted(row.says.clone()) {
            wrong.push(format!("{}\n  said {:#?}\n  not  {says:#?}", row.schema, row.says));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}
