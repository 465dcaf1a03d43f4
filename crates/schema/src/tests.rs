//! What the real kube-apiserver (v1.33) answers, row by row. The tables are recordings: each row was asked of it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::Schema;
use crate::FieldError;

mod laws;

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

/// What is said about changes of objects that were written when the schema asked for less.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Updates {
    schema: Value,
    rows: Vec<UpdateRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateRow {
    old: Value,
    new: Value,
    /// Whether only the status is written.
    status: bool,
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

/// Whether the same is said of the same places. Where Go prints a value in its own way, or speaks of a pattern, only the
/// place and the kind of the mistake are compared.
fn are_alike(ours: &[String], recorded: &[String]) -> bool {
    const WORDS_OF_GO: [&str; 4] = ["interface {}", "[]string{", "e+", "error parsing regexp"];
    let kind = |sentence: &str| sentence.split("value: ").next().unwrap_or_default().to_owned();
    let same = |(ours, recorded): (&String, &String)| {
        ours == recorded || WORDS_OF_GO.iter().any(|mark| recorded.contains(mark)) && kind(ours) == kind(recorded)
    };
    ours.len() == recorded.len() && ours.iter().zip(recorded).all(same)
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
            (Err(why), Some(_)) => why.contains(" must be "),
            (Ok(unknown), None) if says.is_empty() => {
                row.says.is_empty() && *unknown == row.unknown && becomes == row.becomes.as_ref().map(plain)
            }
            (Ok(_), None) => are_alike(&says, &sorted(row.says.clone())),
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
        if !are_alike(&sorted(says.clone()), &sorted(row.says.clone())) {
            wrong.push(format!("{}\n  said {:#?}\n  not  {says:#?}", row.schema, row.says));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_was_wrong_before_and_is_untouched_passes_as_recorded() {
    let updates: Updates = serde_json::from_str(include_str!("tests/updates.json")).expect("a table");
    let schema = Schema::parse(&updates.schema, PATH).expect("structural");
    for row in updates.rows {
        let whole = |part: &Value| {
            let mut whole = object(&Value::Null);
            for key in ["spec", "status"] {
                match part.get(key) {
                    Some(value) => whole[key] = value.clone(),
                    None => drop(whole.as_object_mut().and_then(|whole| whole.remove(key))),
                }
            }
            whole
        };
        let (old, new) = (whole(&row.old), whole(&row.new));
        let errors =
            if row.status { schema.validate_status(&new, Some(&old)) } else { schema.validate(&new, Some(&old)) };
        assert_eq!(sorted(sentences(&errors)), sorted(row.says.clone()), "{} to {}", row.old, row.new);
    }
}

#[test]
fn complaints_come_in_the_order_of_the_checks() {
    let schema = schema_of_x(&json!({"type": "string", "enum": ["z", "a"], "anyOf": [{"minLength": 3}]}));
    let errors = schema.validate(&object(&json!({"x": 5})), None);
    assert_eq!(
        sentences(&errors),
        [
            r#"spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer""#,
            r#"spec.x: Unsupported value: 5: supported values: "z", "a""#,
        ]
    );
    let not_checked = super::rules_not_checked(&errors).map(|error| error.to_string());
    assert_eq!(
        not_checked.as_deref(),
        Some(
            r#"<nil>: Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"#
        )
    );
    assert_eq!(super::rules_not_checked(&errors[..0]), None);
}

#[test]
fn metadata_gets_its_usual_form_or_is_refused() {
    let schema = schema_of_x(&json!({"type": "string"}));
    let read = |metadata: Value| {
        let mut object = object(&json!({}));
        object["metadata"] = metadata;
        schema.coerce(&mut object).map(|unknown| (unknown, object["metadata"].take()))
    };
    for (metadata, sentence) in [
        (json!({"labels": []}), "metadata.labels must be of type object, not a list"),
        (json!({"labels": {"a": true}}), "metadata.labels[a] must be a string, not a boolean"),
        (json!({"finalizers": [1]}), "metadata.finalizers[0] must be a string, not the number 1"),
        (json!({"ownerReferences": {}}), "metadata.ownerReferences must be of type array, not an object"),
        (json!({"ownerReferences": [1]}), "metadata.ownerReferences[0] must be an object, not the number 1"),
        (
            json!({"ownerReferences": [{"name": 1}]}),
            "metadata.ownerReferences[0].name must be of type string, not the number 1",
        ),
        (
            json!({"ownerReferences": [{"controller": "x"}]}),
            "metadata.ownerReferences[0].controller must be of type boolean, not a string",
        ),
        (json!({"generation": "x"}), "metadata.generation must be of type integer, not a string"),
        (json!({"generation": 1.5}), "metadata.generation must be an integer, not the number 1.5"),
        (
            json!({"creationTimestamp": "x"}),
            "metadata.creationTimestamp must be a time such as 2026-01-02T15:04:05Z, not \"x\"",
        ),
        (json!({"creationTimestamp": 5}), "metadata.creationTimestamp must be of type string, not the number 5"),
        (
            json!({"managedFields": [{"time": 5}]}),
            "metadata.managedFields[0].time must be of type string, not the number 5",
        ),
        (json!({"uid": 5}), "metadata.uid must be of type string, not the number 5"),
        (json!(5), "metadata must be an object, not the number 5"),
    ] {
        assert_eq!(read(metadata), Err(sentence.to_owned()));
    }
    let odd = json!({
        "name": null, "labels": {"a": null}, "annotations": {}, "generation": 1.0, "Name": "x",
        "ownerReferences": [{"foo": 1, "name": "y"}],
    });
    let (unknown, metadata) = read(odd).expect("readable");
    assert_eq!(unknown, ["metadata.Name", "metadata.ownerReferences[0].foo"]);
    let owner = json!({"apiVersion": "", "kind": "", "name": "y", "uid": ""});
    assert_eq!(metadata, json!({"labels": {"a": ""}, "generation": 1, "ownerReferences": [owner]}));
}

#[test]
fn walkers_find_what_nobody_declared() {
    let schema = schema_of_x(&json!({"type": "string"}));
    let metadata = schema.root().child("metadata").expect("known");
    assert_eq!(metadata.child("finalizers").and_then(|node| node.list_type), Some(super::ListType::Set));
    let owners = metadata.child("ownerReferences").expect("known");
    assert_eq!(owners.list_map_keys, ["uid"]);
    assert_eq!(metadata.child("managedFields").and_then(|node| node.list_type), Some(super::ListType::Atomic));
    assert!(metadata.child("nothing").is_none());
    assert!(schema.root().child("spec").and_then(|spec| spec.child("x")).is_some());
    assert!(schema.root().declared("metadata").is_none());
}
