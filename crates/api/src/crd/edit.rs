//! Changes of generated schemas: what upstream's say and our types cannot.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};
use serde_json::Value;

/// Changes the schema of the one version. An object may have no spec: the types read that as an empty one.
pub(super) fn edit(definition: &mut CustomResourceDefinition, change: impl FnOnce(&mut JSONSchemaProps)) {
    let version = definition.spec.versions.first_mut().and_then(|version| version.schema.as_mut());
    if let Some(schema) = version.and_then(|schema| schema.open_api_v3_schema.as_mut()) {
        schema.required = None;
        change(schema);
    }
}

/// The schema of a field.
#[expect(clippy::panic, reason = "plain data that does not depend on input; tests build all of it")]
pub(super) fn at<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> &'a mut JSONSchemaProps {
    path.iter().fold(schema, |schema, field| {
        let field_schema = schema.properties.as_mut().and_then(|properties| properties.get_mut(*field));
        field_schema.unwrap_or_else(|| panic!("there is no field {path:?}"))
    })
}

/// The schema of a list's items.
#[expect(clippy::panic, reason = "plain data that does not depend on input; tests build all of it")]
pub(super) fn item(schema: &mut JSONSchemaProps) -> &mut JSONSchemaProps {
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => items,
        _ => panic!("not a list"),
    }
}

pub(super) fn given_default(schema: &mut JSONSchemaProps, default: Value) {
    schema.default = Some(JSON(default));
}

pub(super) fn nullable(schema: &mut JSONSchemaProps) {
    schema.nullable = Some(true);
}

pub(super) fn ruled(schema: &mut JSONSchemaProps, rules: Vec<ValidationRule>) {
    schema.x_kubernetes_validations = Some(rules);
}
