//! Whether a schema is structural: every value that it judges has one place where its type is said.

use serde_json::Value;

use super::path::Path;
use super::pattern;
use super::read::Props;
use crate::FieldError;

/// Collects what keeps the schema from being structural, sorted.
pub(crate) fn check(schema: Props<'_>, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_node(schema, Level::Root, path, &mut errors);
    check_complete(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// The first thing in a schema that CustomResourceDefinitions cannot have at all.
pub fn unsupported(schema: Props<'_>) -> Option<&'static str> {
    let given = |key| schema.given(key).is_some_and(|value| !is_empty(value));
    if given("id") {
        return Some("OpenAPIV3Schema 'id' is not supported");
    }
    if given("$schema") {
        return Some("OpenAPIV3Schema 'schema' is not supported");
    }
    if given("$ref") {
        return Some("OpenAPIV3Schema '$ref' is not supported");
    }
    if given("patternProperties") {
        return Some("OpenAPIV3Schema 'patternProperties' is not supported");
    }
    if given("dependencies") {
        return Some("OpenAPIV3Schema 'dependencies' is not supported");
    }
    if schema.given("additionalItems").is_some() {
        return Some("OpenAPIV3Schema 'additionalItems' is not supported");
    }
    if given("definitions") {
        return Some("OpenAPIV3Schema 'definitions' is not supported");
    }
    if schema.given("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined");
    }
    if schema.given("items").is_some_and(Value::is_array) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array");
    }
    let single = ["not", "items", "additionalProperties"].into_iter().filter_map(|key| schema.schema(key));
    let listed = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| schema.schemas(key));
    let named = schema.named("properties").map(|(_, property)| property);
    single.chain(listed).chain(named).find_map(unsupported)
}

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

fn check_node(schema: Props<'_>, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = schema.text("type");
    let items = schema.schema("items");
    if kind == "array" && items.is_none() {
        errors.push(FieldError::required(path.field("items").to_string(), "must be specified"));
    }
    if let Some(items) = items {
        check_node(items, Level::Item, &path.field("items"), errors);
    }
    let properties = path.field("properties");
    for (name, property) in schema.named("properties") {
        check_node(property, Level::Field, &properties.key(name), errors);
    }
    let additional = schema.given("additionalProperties").filter(|given| given.is_object() || given.is_boolean());
    if additional.is_some() && level == Level::Root {
        errors.push(forbidden(path, "additionalProperties", "must not be used at the root"));
    }
    if let Some(additional) = schema.schema("additionalProperties") {
        check_node(additional, Level::Field, &path.field("additionalProperties"), errors);
    }
    check_extensions(schema, path, errors);
    let any_of_is_types = is_integer_or_string(schema);
    let first_is_types = schema.schemas("allOf").next().is_some_and(is_integer_or_string);
    check_values(schema, any_of_is_types, first_is_types, path, errors);
    check_type(schema, level, path, errors);
    let embedded = schema.flag("x-kubernetes-embedded-resource");
    if embedded && additional.is_some() {
        let sentence = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(forbidden(path, "additionalProperties", sentence));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(path.field("type").to_string(), kind, "must be object at the root"));
    }
    check_meta(schema, level, path, errors);
    let preserves = schema.flag("x-kubernetes-preserve-unknown-fields");
    if embedded && !preserves && schema.named("properties").next().is_none() {
        errors.push(FieldError::required(
            properties.to_string(),
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn check_extensions(schema: Props<'_>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !schema.flag("x-kubernetes-int-or-string") {
        return;
    }
    for key in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if schema.flag(key) {
            let sentence = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(path.field(key).to_string(), true, sentence));
        }
    }
}

fn check_type(schema: Props<'_>, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let kind = schema.text("type");
    let at = || path.field("type").to_string();
    if schema.flag("x-kubernetes-embedded-resource") && kind != "object" {
        let sentence = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at(), sentence)
        } else {
            FieldError::invalid(at(), kind, sentence)
        });
        return;
    }
    let anything = schema.flag("x-kubernetes-int-or-string") || schema.flag("x-kubernetes-preserve-unknown-fields");
    if kind.is_empty() && !anything {
        let sentence = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at(), sentence));
    }
}

/// `apiVersion`, `kind` and `metadata` are what they are.
fn check_meta(schema: Props<'_>, level: Level, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let of_resource = level == Level::Root || schema.flag("x-kubernetes-embedded-resource");
    let properties = path.field("properties");
    let Some(fields) = schema.schema("properties") else { return };
    if of_resource {
        for key in ["kind", "apiVersion"] {
            if let Some(kind) = fields.schema(key).map(|field| field.text("type"))
                && kind != "string"
            {
                let at = properties.key(key);
                errors.push(FieldError::invalid(at.field("type").to_string(), kind, "must be string"));
            }
        }
    }
    let Some(metadata) = fields.schema("metadata") else { return };
    let at = properties.key("metadata");
    let kind = metadata.text("type");
    if of_resource && kind != "object" {
        errors.push(FieldError::invalid(at.field("type").to_string(), kind, "must be object"));
    }
    if level == Level::Root && !says_only_names(metadata) {
        errors.push(FieldError::forbidden(
            at.to_string(),
            "must not specify anything other than name and generateName, but metadata is implicitly specified",
        ));
    }
}

fn says_only_names(metadata: Props<'_>) -> bool {
    metadata.0.iter().all(|(key, value)| match key.as_str() {
        "type" | "default" | "example" | "externalDocs" => true,
        "properties" => {
            value.as_object().is_none_or(|names| names.keys().all(|name| name == "name" || name == "generateName"))
        }
        _ => is_empty(value),
    })
}

/// Null, false, and what has nothing in it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, which is how `x-kubernetes-int-or-string` may be spelled out.
fn is_integer_or_string(schema: Props<'_>) -> bool {
    let only_type = |one: Props<'_>, kind: &str| {
        one.0.iter().all(|(key, value)| if key == "type" { value == kind } else { is_empty(value) })
            && one.text("type") == kind
    };
    let alternatives: Vec<Props<'_>> = schema.schemas("anyOf").collect();
    matches!(alternatives[..], [one, other] if only_type(one, "integer") && only_type(other, "string"))
}

fn check_values(
    schema: Props<'_>,
    any_of_is_types: bool,
    first_is_types: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !any_of_is_types {
        let any_of = path.field("anyOf");
        for (index, one) in schema.schemas("anyOf").enumerate() {
            check_nested(one, false, &any_of.index(index), errors);
        }
    }
    let all_of = path.field("allOf");
    for (index, one) in schema.schemas("allOf").enumerate() {
        check_nested(one, first_is_types && index == 0, &all_of.index(index), errors);
    }
    let one_of = path.field("oneOf");
    for (index, one) in schema.schemas("oneOf").enumerate() {
        check_nested(one, false, &one_of.index(index), errors);
    }
    if let Some(not) = schema.schema("not") {
        check_nested(not, false, &path.field("not"), errors);
    }
    let source = schema.text("pattern");
    if let Err(why) = pattern::compile(source) {
        errors.push(FieldError::invalid(
            path.field("pattern").to_string(),
            source,
            format!("must be a valid regular expression, but isn't: {why}"),
        ));
    }
}

/// What stands below `allOf`, `anyOf`, `oneOf` and `not` judges values and says nothing about their form.
fn check_nested(schema: Props<'_>, any_of_is_types: bool, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    check_values(schema, any_of_is_types, false, path, errors);
    if let Some(items) = schema.schema("items") {
        check_nested(items, false, &path.field("items"), errors);
    }
    let properties = path.field("properties");
    for (name, property) in schema.named("properties") {
        check_nested(property, false, &properties.key(name), errors);
    }
    for (key, sentence) in [
        ("type", "must be empty to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let given = match key {
            "default" => schema.given(key).is_some(),
            _ => schema.given(key).is_some_and(|value| !is_empty(value)),
        };
        if given {
            errors.push(forbidden(path, key, sentence));
        }
    }
    let additional = schema.given("additionalProperties");
    if additional.is_some_and(|additional| additional.is_object() || *additional == Value::Bool(true)) {
        errors.push(forbidden(path, "additionalProperties", "must be undefined to be structural"));
    }
    if schema.schema("properties").is_some_and(|fields| fields.0.contains_key("metadata")) {
        let at = properties.key("metadata").to_string();
        errors.push(FieldError::forbidden(at, "must not be specified in a nested context"));
    }
}

/// What alternatives at the root judge must be declared outside of them.
fn check_complete(
    values: Props<'_>,
    declared: Option<Props<'_>>,
    place: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(declared) = declared else {
        errors.push(FieldError::required(place.to_string(), format!("because it is defined in {path}")));
        return;
    };
    if let Some(not) = values.schema("not") {
        check_nested_complete(not, Some(declared), place, &path.field("not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let list = path.field(key);
        for (index, one) in values.schemas(key).enumerate() {
            check_nested_complete(one, Some(declared), place, &list.index(index), errors);
        }
    }
}

fn check_nested_complete(
    values: Props<'_>,
    declared: Option<Props<'_>>,
    place: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    check_complete(values, declared, place, path, errors);
    let Some(declared) = declared else { return };
    if let Some(items) = values.schema("items") {
        check_nested_complete(items, declared.schema("items"), &place.field("items"), &path.field("items"), errors);
    }
    let (places, paths) = (place.field("properties"), path.field("properties"));
    let fields = declared.schema("properties");
    for (name, property) in values.named("properties") {
        let below = fields.and_then(|fields| fields.schema(name));
        check_nested_complete(property, below, &places.key(name), &paths.key(name), errors);
    }
}

fn forbidden(path: &Path<'_>, key: &str, sentence: &str) -> FieldError {
    FieldError::forbidden(path.field(key).to_string(), sentence)
}
