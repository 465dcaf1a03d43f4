//! What a schema in a CustomResourceDefinition may say, beyond being structural.

use serde_json::Value;

use super::path::Path;
use super::read::Props;
use super::structural;
use crate::{FieldError, FieldFault};

/// Collects what the schema may not say.
pub(crate) fn check(schema: Props<'_>, path: &Path<'_>) -> Vec<FieldError> {
    let mut check = Check { errors: Vec::new() };
    check.schema(schema, path, Setting { root: true, ..Setting::default() });
    check.errors
}

struct Check {
    errors: Vec<FieldError>,
}

/// Where in the resource a schema is.
#[derive(Debug, Clone, Copy, Default)]
struct Setting<'a> {
    root: bool,
    inside_meta: bool,
    /// Defaults may not be here, because of this.
    no_defaults: Option<NoDefaults<'a>>,
}

#[derive(Debug, Clone, Copy)]
enum NoDefaults<'a> {
    TopLevel(&'a str),
    MetaMap,
}

const KINDS: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

impl Check {
    fn schema(&mut self, schema: Props<'_>, path: &Path<'_>, setting: Setting<'_>) {
        self.standard(schema, path, setting);
        if schema.flag("uniqueItems") {
            let sentence = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(path, "uniqueItems", sentence);
        }
        let below = Setting { root: false, ..setting };
        self.properties(schema, path, setting);
        if let Some(not) = schema.schema("not") {
            self.schema(not, &path.field("not"), below);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let list = path.field(key);
            for (index, one) in schema.schemas(key).enumerate() {
                self.schema(one, &list.index(index), below);
            }
        }
        let definitions = path.field("definitions");
        for (name, definition) in schema.named("definitions") {
            self.schema(definition, &definitions.key(name), below);
        }
        let items = path.field("items");
        if let Some(item) = schema.schema("items") {
            self.schema(item, &items, below);
        }
        for (index, item) in schema.schemas("items").enumerate() {
            self.schema(item, &items.index(index), below);
        }
        if schema.given("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            let at = path.field("x-kubernetes-preserve-unknown-fields").to_string();
            self.errors.push(FieldError::invalid(at, false, "must be true or undefined"));
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        self.list_map(schema, path);
        self.keyed_items(schema, path);
        self.rules(schema, path);
    }

    fn standard(&mut self, schema: Props<'_>, path: &Path<'_>, setting: Setting<'_>) {
        let kind = schema.text("type");
        if !kind.is_empty() && !KINDS.contains(&kind) {
            self.unsupported(path, "type", kind, &KINDS);
        }
        if schema.given("default").is_some()
            && let Some(reason) = setting.no_defaults
        {
            let sentence = match reason {
                NoDefaults::TopLevel(field) => format!("must not be set in top-level {field}"),
                NoDefaults::MetaMap => {
                    "must not be set inside additionalProperties applying to object metadata".to_owned()
                }
            };
            self.forbidden(path, "default", sentence);
        }
        let has = |key: &str| match schema.given(key) {
            Some(Value::Object(fields)) => !fields.is_empty() || key == "dependencies",
            Some(Value::String(text)) => !text.is_empty() || key == "$ref",
            other => other.is_some(),
        };
        for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
            if has(key) {
                self.forbidden(path, key, format!("{key} is not supported"));
            }
        }
        if kind == "null" {
            self.forbidden(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if schema.given("items").is_some_and(|items| items.as_array().is_some_and(|items| !items.is_empty())) {
            self.forbidden(path, "items", "items must be a schema object and not an array");
        }
        if setting.inside_meta && schema.flag("x-kubernetes-embedded-resource") {
            self.forbidden(path, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
    }

    fn properties(&mut self, schema: Props<'_>, path: &Path<'_>, setting: Setting<'_>) {
        let additional = schema.given("additionalProperties");
        let has_properties = schema.named("properties").next().is_some();
        if has_properties && additional.is_some_and(|additional| *additional != Value::Bool(true)) {
            let sentence = "additionalProperties and properties are mutual exclusive";
            self.forbidden(path, "additionalProperties", sentence);
        }
        let below = Setting { root: false, ..setting };
        if let Some(additional) = schema.schema("additionalProperties") {
            let setting =
                if setting.inside_meta { Setting { no_defaults: Some(NoDefaults::MetaMap), ..below } } else { below };
            self.schema(additional, &path.field("additionalProperties"), setting);
        }
        let properties = path.field("properties");
        for (name, property) in schema.named("properties") {
            let of_resource = setting.root || schema.flag("x-kubernetes-embedded-resource");
            let mut setting_of_property = below;
            if of_resource && super::meta::is_known(name) {
                setting_of_property.inside_meta = true;
                if setting.root {
                    setting_of_property.no_defaults = Some(NoDefaults::TopLevel(name));
                }
            }
            self.schema(property, &properties.key(name), setting_of_property);
        }
    }

    fn map_type(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let Some(map_type) = schema.map_type() else { return };
        self.wants_type(schema, path, "object", "x-kubernetes-map-type");
        if !["atomic", "granular"].contains(&map_type) {
            self.unsupported(path, "x-kubernetes-map-type", map_type, &["atomic", "granular"]);
        }
    }

    fn list_type(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let list_type = schema.list_type();
        if let Some(list_type) = list_type {
            if self.wants_type(schema, path, "array", "x-kubernetes-list-type")
                && list_type == "set"
                && let Some(items) = schema.schema("items")
            {
                self.set_items(items, &path.field("items"));
            }
            if !["atomic", "set", "map"].contains(&list_type) {
                self.unsupported(path, "x-kubernetes-list-type", list_type, &["atomic", "set", "map"]);
            }
        }
        if schema.texts("x-kubernetes-list-map-keys").next().is_some() && list_type != Some("map") {
            let at = path.field("x-kubernetes-list-type").to_string();
            let sentence = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(match list_type {
                None => FieldError::required(at, sentence),
                Some(other) => FieldError::invalid(at, other, sentence),
            });
        }
    }

    fn set_items(&mut self, items: Props<'_>, path: &Path<'_>) {
        let sentence = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let shown = items.list_type().map_or(Value::Null, Value::from);
        match items.text("type") {
            "array" if items.list_type().is_some_and(|list_type| list_type != "atomic") => {
                let at = path.field("x-kubernetes-list-type").to_string();
                self.errors.push(FieldError::invalid(at, shown, sentence));
            }
            // Kubernetes shows the type of the list here, too.
            "object" if items.map_type() != Some("atomic") => {
                let at = path.field("x-kubernetes-map-type").to_string();
                self.errors.push(FieldError::invalid(at, shown, sentence));
            }
            _ => {}
        }
    }

    fn wants_type(&mut self, schema: Props<'_>, path: &Path<'_>, wanted: &str, because: &str) -> bool {
        let kind = schema.text("type");
        if kind == wanted {
            return true;
        }
        let at = path.field("type").to_string();
        let sentence = format!("must be {wanted} if {because} is specified");
        self.errors.push(if kind.is_empty() {
            FieldError::required(at, sentence)
        } else {
            FieldError::invalid(at, kind, sentence)
        });
        false
    }

    fn list_map(&mut self, schema: Props<'_>, path: &Path<'_>) {
        if schema.list_type() != Some("map") {
            return;
        }
        let keys: Vec<&str> = schema.texts("x-kubernetes-list-map-keys").collect();
        if keys.is_empty() {
            let at = path.field("x-kubernetes-list-map-keys").to_string();
            let sentence = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(at, sentence));
        }
        let at_items = path.field("items");
        let Some(items) = schema.schema("items") else {
            let sentence = "must have a schema if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(at_items.to_string(), sentence));
            return;
        };
        let kind = items.text("type");
        if kind != "object" {
            let sentence = "must be object if parent array's x-kubernetes-list-type is map";
            self.errors.push(FieldError::invalid(at_items.field("type").to_string(), kind, sentence));
            return;
        }
        let at_keys = path.field("x-kubernetes-list-map-keys").to_string();
        let properties = items.schema("properties");
        for (index, key) in keys.iter().enumerate() {
            match properties.and_then(|properties| properties.schema(key)) {
                Some(property) if matches!(property.text("type"), "array" | "object") => {
                    let places = at_items.field("properties");
                    let at = places.key(key).field("type").to_string();
                    let sentence = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors.push(FieldError::invalid(at, kind, sentence));
                }
                Some(_) => {}
                None => {
                    let sentence = "entries must all be names of item properties";
                    self.errors.push(FieldError::invalid(at_keys.clone(), keys.clone(), sentence));
                }
            }
            if keys[..index].contains(key) {
                let sentence = "must not contain duplicate entries";
                self.errors.push(FieldError::invalid(at_keys.clone(), keys.clone(), sentence));
            }
        }
    }

    /// Items that are found by their keys must have them.
    fn keyed_items(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let (Some(list_type @ ("set" | "map")), Some(items)) = (schema.list_type(), schema.schema("items")) else {
            return;
        };
        let at_items = path.field("items");
        if items.flag("nullable") {
            let sentence = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbidden(&at_items, "nullable", sentence);
        }
        if list_type != "map" {
            return;
        }
        let properties = at_items.field("properties");
        for key in schema.texts("x-kubernetes-list-map-keys") {
            let Some(property) = items.schema("properties").and_then(|properties| properties.schema(key)) else {
                continue;
            };
            let at = properties.key(key);
            if property.given("default").is_none() && !items.texts("required").any(|required| required == key) {
                let sentence = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                self.errors.push(FieldError::required(at.field("default").to_string(), sentence));
            }
            if property.flag("nullable") {
                let sentence = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbidden(&at, "nullable", sentence);
            }
        }
    }

    fn rules(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        let list = path.field("x-kubernetes-validations");
        for (index, rule) in schema.rules().iter().enumerate() {
            let at = list.index(index);
            let place = |key: &str| at.field(key).to_string();
            let (text, message) = (rule.rule.trim(), rule.message.trim());
            if text.is_empty() {
                self.errors.push(FieldError::required(place("rule"), "rule is not specified"));
            } else if !rule.message.is_empty() && message.is_empty() {
                let sentence = "message must be non-empty if specified";
                self.errors.push(FieldError::invalid(place("message"), rule.message.as_str(), sentence));
            } else if has_breaks(message) {
                let sentence = "message must not contain line breaks";
                self.errors.push(FieldError::invalid(place("message"), rule.message.as_str(), sentence));
            } else if has_breaks(text) && message.is_empty() {
                let sentence = "message must be specified if rule contains line breaks";
                self.errors.push(FieldError::required(place("message"), sentence));
            }
            if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
                let sentence = "messageExpression must be non-empty if specified";
                self.errors.push(FieldError::required(place("messageExpression"), sentence));
            }
            if let Some(reason) = &rule.reason
                && !REASONS.contains(&reason.as_str())
            {
                self.unsupported(&at, "reason", reason, &REASONS);
            }
            let field_path = rule.field_path.as_str();
            if !field_path.is_empty() {
                let mut faults = Vec::new();
                if field_path.trim().is_empty() {
                    faults.push("fieldPath must be non-empty if specified");
                }
                if has_breaks(field_path) {
                    faults.push("fieldPath must not contain line breaks");
                }
                if structural::unsupported(schema).is_none() && find(field_path, schema, true).is_err() {
                    faults.push("fieldPath must be a valid path");
                }
                let errors = faults.into_iter().map(|why| FieldError::invalid(place("fieldPath"), field_path, why));
                self.errors.extend(errors);
            }
        }
    }

    fn forbidden(&mut self, path: &Path<'_>, key: &str, sentence: impl Into<String>) {
        self.errors.push(FieldError::forbidden(path.field(key).to_string(), sentence));
    }

    fn unsupported(&mut self, path: &Path<'_>, key: &str, value: &str, supported: &[&str]) {
        let supported = supported.iter().map(|&one| one.to_owned()).collect();
        let fault = FieldFault::Unsupported(value.into(), supported);
        self.errors.push(FieldError::new(fault, path.field(key).to_string(), ""));
    }
}

/// What a path like `.a.b['c']` leads to: its steps, and the schema there. `Err` is the sentence.
pub fn find<'s>(path: &str, schema: Props<'s>, brackets: bool) -> Result<(Vec<String>, Option<Props<'s>>), String> {
    const NOWHERE: &str = "does not refer to a valid field";
    const TOO_SHORT: &str = "unexpected end of JSON path";
    let token_of = |rest: &str| rest[..rest.find(['.', '[', ']']).unwrap_or(rest.len())].to_owned();
    let mut steps = Vec::new();
    let mut place = Some(schema);
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ']']).unwrap_or(after.len());
            match after.get(..end) {
                _ if after.is_empty() => return Err(TOO_SHORT.to_owned()),
                // A delimiter where a name should be is read as a name.
                Some("") => after.split_at(after.chars().next().map_or(0, char::len_utf8)),
                _ => after.split_at(end),
            }
        } else if let Some(after) = rest.strip_prefix('[') {
            if !brackets {
                return Err("array notation is not allowed".to_owned());
            }
            let quoted = after.strip_prefix('\'').and_then(|after| after.split_once('\''));
            let Some((name, after)) = quoted else {
                return Err(format!("expected single quoted string but got {}", token_of(after)));
            };
            (name, after.strip_prefix(']').ok_or(TOO_SHORT)?)
        } else {
            return Err(format!("expected [ or . but got: {}", token_of(rest)));
        };
        let here = place.ok_or(NOWHERE)?;
        place = if here.named("properties").next().is_some() {
            let fields = here.schema("properties").ok_or(NOWHERE)?;
            Some(fields.schema(name).ok_or(NOWHERE)?)
        } else if here.given("additionalProperties").is_some() {
            here.schema("additionalProperties")
        } else {
            return Err(NOWHERE.to_owned());
        };
        steps.push(name.to_owned());
        rest = after;
    }
    Ok((steps, place))
}
