//! The parts of a version: schema, subresources, columns, selectable fields.

use std::collections::HashSet;

use schema::path_faults;
use serde_json::Value;

use super::{Check, Path, Props, Rules, Schema, find};
use crate::status::{FieldError, FieldFault};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MOST_SELECTABLE: usize = 8;

/// What the root of a schema may not say when the status is apart, in the order in which Kubernetes looks.
const BESIDE_STATUS: [&str; 22] = [
    "id",
    "$schema",
    "$ref",
    "nullable",
    "default",
    "enum",
    "maxProperties",
    "minProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

impl Check {
    pub(super) fn schema(&mut self, openapi: &Value, status: bool, path: &str) {
        if status && let Some(props) = Props::of(openapi) {
            self.root_beside_status(props, path);
        }
        match Schema::parse(openapi, path) {
            Err(mut errors) => self.errors.append(&mut errors),
            Ok(schema) => {
                if let Err(mut errors) = Rules::compile(&schema, path) {
                    self.errors.append(&mut errors);
                }
            }
        }
    }

    /// The schema of the status is taken out of the whole one, which must not lose anything by that.
    fn root_beside_status(&mut self, schema: Props<'_>, path: &str) {
        let kind = schema.text("type");
        let is_said = |key: &&str| match schema.given(key) {
            None | Some(Value::Bool(false)) => *key == "additionalProperties" && schema.given(key).is_some(),
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        };
        let forbidden = BESIDE_STATUS.into_iter().find(is_said);
        let comes_first = |key| ["id", "$schema", "$ref"].contains(&key);
        if !kind.is_empty() && kind != "object" && forbidden.is_none_or(|key| !comes_first(key)) {
            let sentence = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
            self.invalid(&format!("{path}.type"), kind, sentence);
        } else if let Some(forbidden) = forbidden {
            let sentence = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                            MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties \
                            ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of \
                            the schema if the status subresource is enabled";
            self.errors.push(FieldError::invalid(path, forbidden, sentence));
        }
    }

    pub(super) fn deprecation(&mut self, version: Props<'_>, path: &str) {
        let Some(warning) = version.given("deprecationWarning").and_then(Value::as_str) else { return };
        if !version.flag("deprecated") {
            return self.invalid(path, warning, "can only be set for deprecated versions");
        }
        if warning.len() > 256 {
            self.invalid(path, warning, "must be <= 256 characters long");
        }
        if warning.is_empty() {
            self.invalid(path, warning, "must not be an empty string");
        }
        let unprintable = |character: char| character.is_control() || character != ' ' && character.is_whitespace();
        if let Some((index, _)) = warning.char_indices().find(|(_, character)| unprintable(*character)) {
            let sentence =
                format!("must only contain printable UTF-8 characters; non-printable character found at index {index}");
            self.invalid(path, warning, sentence);
        }
    }

    pub(super) fn subresources(&mut self, version: Props<'_>, path: &Path<'_>) {
        let Some(scale) = version.schema("subresources").and_then(|subresources| subresources.schema("scale")) else {
            return;
        };
        let at = path.field("scale");
        for (key, roots, sentence) in [
            ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
            ("statusReplicasPath", &[".status."][..], "should be a json path under .status"),
            ("labelSelectorPath", &[".spec.", ".status."][..], "should be a json path under either .spec or .status"),
        ] {
            let at = at.field(key).to_string();
            match scale.text(key) {
                "" if key == "labelSelectorPath" => {}
                "" => self.required(&at, ""),
                json_path if !json_path.starts_with('.') => {
                    self.invalid(&at, json_path, "must be a simple json path starting with .");
                }
                json_path if !roots.iter().any(|root| json_path.starts_with(root)) => {
                    self.invalid(&at, json_path, sentence);
                }
                _ => {}
            }
        }
    }

    pub(super) fn columns(&mut self, version: Props<'_>, path: &Path<'_>) {
        for (index, column) in version.schemas("additionalPrinterColumns").enumerate() {
            let at = path.index(index);
            if column.text("name").is_empty() {
                self.required(&at.field("name").to_string(), "");
            }
            let (kind, at_kind) = (column.text("type"), at.field("type").to_string());
            let kinds = format!("must be one of {}", COLUMN_TYPES.join(","));
            if kind.is_empty() {
                self.required(&at_kind, &kinds);
            } else if !COLUMN_TYPES.contains(&kind) {
                self.invalid(&at_kind, kind, kinds);
            }
            let format = column.text("format");
            if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
                let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
                self.invalid(&at.field("format").to_string(), format, formats);
            }
            let at_path = at.field("JSONPath").to_string();
            match column.text("jsonPath") {
                "" => self.required(&at_path, ""),
                json_path if !json_path.starts_with('.') => {
                    self.invalid(&at_path, json_path, "must be a simple json path starting with .");
                }
                _ => {}
            }
        }
    }

    pub(super) fn selectable(&mut self, version: Props<'_>, path: &Path<'_>) {
        let fields: Vec<&str> = version.schemas("selectableFields").map(|field| field.text("jsonPath")).collect();
        if fields.is_empty() {
            return;
        }
        let Some(schema) = super::openapi_of(version).and_then(Props::of) else {
            let sentence = "selectableFields may only be set when version.schema.openAPIV3Schema is not included";
            return self.invalid(&path.to_string(), "", sentence);
        };
        if path_faults(schema).is_some() {
            return;
        }
        let mut seen = HashSet::new();
        for (index, field) in fields.iter().enumerate() {
            let at = path.index(index);
            let at = at.field("jsonPath").to_string();
            if field.is_empty() {
                self.required(&at, "");
                continue;
            }
            let (steps, found) = match find(field, schema, false) {
                Ok(found) => found,
                Err(why) => {
                    self.invalid(&at, *field, format!("is an invalid path: {why}"));
                    continue;
                }
            };
            if steps.first().is_some_and(|first| first == "metadata") {
                self.invalid(&at, *field, "must not point to fields in metadata");
            }
            let kind = found.map_or("", |found| found.text("type"));
            if !["string", "boolean", "integer"].contains(&kind) {
                let sentence = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
                self.invalid(&at, *field, sentence);
            }
            if !seen.insert(steps) {
                self.errors.push(FieldError::new(FieldFault::Duplicate((*field).into()), at, ""));
            }
        }
        if seen.len() > MOST_SELECTABLE {
            let fault = FieldFault::TooMany { actual: Some(seen.len()), most: MOST_SELECTABLE };
            self.errors.push(FieldError::new(fault, path.to_string(), ""));
        }
    }
}
