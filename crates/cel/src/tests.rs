//! The tables in `tests/` are answers of kube-apiserver 1.33 to the same rules and objects.

use proptest::prelude::*;
use schema::FieldError;
use schema::Schema;
use serde_json::{Value, json};

use super::Rules;

mod budget;
mod deviations;
mod judged;
mod random;

const HERE: &str = "spec.validation.openAPIV3Schema";

/// The rules of a schema that has the given one at `spec`, or what is said against them.
fn compiled(spec: &Value) -> Result<(Schema, Rules), Vec<String>> {
    let said = |errors: Vec<FieldError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": spec}}), HERE).map_err(said)?;
    let rules = Rules::compile(&schema, HERE).map_err(said)?;
    Ok((schema, rules))
}

/// What the rules of the schema of `spec` say about a value of it.
fn said(spec: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
    let (_, rules) = compiled(spec).unwrap_or_else(|errors| panic!("{errors:?}"));
    let object = |spec: &Value| json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    let old = old.map(object);
    rules.check(&object(new), old.as_ref()).iter().map(ToString::to_string).collect()
}
