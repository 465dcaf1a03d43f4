//! Objects as rows of a table, and as metadata only.

use jiff::Timestamp;
use schema::object;
use serde_json::{Map, Value, json};

use crate::resource::{Cell, Column, Version};
use crate::status::{Failure, FieldError};

mod duration;
mod path;

pub(crate) use duration::age;
pub use path::JsonPath;

/// How much of each object a table carries along, beside the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// `?includeObject=…`.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => {
                let error =
                    FieldError::invalid("includeObject", other, "must be 'Metadata', 'Object', 'None', or empty");
                Err(Failure::bad_request(format!("Unable to convert to Table as requested: {error}")))
            }
        }
    }
}

/// Makes tables of the objects of one version.
#[derive(Debug)]
pub struct Tabulator<'a> {
    /// `v1` or `v1beta1`.
    meta_version: &'a str,
    include: IncludeObject,
    columns: Vec<(&'a Column, Source)>,
}

/// Where a cell comes from, made ready.
#[derive(Debug)]
enum Source {
    Path(JsonPath),
    Compute(fn(&Value, Timestamp) -> Value),
    Nothing,
}

impl<'a> Tabulator<'a> {
    /// Prepares tables of this version. `meta_version` is the version of the table itself, `v1` or `v1beta1`.
    pub fn new(version: &'a Version, meta_version: &'a str, include: IncludeObject) -> Self {
        Self::of(&version.columns, meta_version, include)
    }

    /// Prepares tables with these columns.
    pub fn of(columns: &'a [Column], meta_version: &'a str, include: IncludeObject) -> Self {
        let source = |column: &Column| match &column.value {
            Cell::Compute(compute) => Source::Compute(*compute),
            Cell::Path(path) => JsonPath::parse(path).map_or(Source::Nothing, Source::Path),
        };
        let columns = columns.iter().map(|column| (column, source(column))).collect();
        Self { meta_version, include, columns }
    }

    /// A table. `metadata` is that of the list, or `{"resourceVersion": …}` of the one object. The events of a watch have
    /// `columnDefinitions` only once: `headed` for the first.
    pub fn table<'o>(
        &self,
        objects: impl IntoIterator<Item = &'o Value>,
        metadata: &Value,
        headed: bool,
        now: Timestamp,
    ) -> Value {
        json!({
            "kind": "Table", "apiVersion": format!("meta.k8s.io/{}", self.meta_version), "metadata": metadata,
            "columnDefinitions": if headed { self.headings() } else { Value::Null },
            "rows": objects.into_iter().map(|object| self.row(object, now)).collect::<Vec<_>>(),
        })
    }

    /// A table of one object.
    pub fn table_of_one(&self, object: &Value, headed: bool, now: Timestamp) -> Value {
        let mut metadata = Map::new();
        let revision = object::resource_version(object);
        if !revision.is_empty() {
            metadata.insert("resourceVersion".to_owned(), revision.into());
        }
        self.table([object], &Value::Object(metadata), headed, now)
    }

    fn headings(&self) -> Value {
        let heading = |column: &Column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        };
        self.columns.iter().map(|(column, _)| heading(column)).collect()
    }

    fn row(&self, object: &Value, now: Timestamp) -> Value {
        let cells: Vec<Value> = self.columns.iter().map(|(column, source)| cell(column, source, object, now)).collect();
        let object = match self.include {
            IncludeObject::None => Value::Null,
            IncludeObject::Metadata => metadata_only(object, self.meta_version),
            IncludeObject::Object => object.clone(),
        };
        json!({ "cells": cells, "object": object })
    }
}

/// `PartialObjectMetadata` of an object, in version `v1` or `v1beta1` of meta.k8s.io.
pub fn metadata_only(object: &Value, meta_version: &str) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": format!("meta.k8s.io/{meta_version}"), "metadata": metadata,
    })
}

/// `PartialObjectMetadataList` of objects. `metadata` is that of the list.
pub fn metadata_list<'o>(objects: impl IntoIterator<Item = &'o Value>, metadata: &Value, meta_version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{meta_version}"), "metadata": metadata,
        "items": objects.into_iter().map(|object| metadata_only(object, meta_version)).collect::<Vec<_>>(),
    })
}

fn cell(column: &Column, source: &Source, object: &Value, now: Timestamp) -> Value {
    let value = match source {
        Source::Compute(compute) => return compute(object, now),
        Source::Path(path) => path.first(object),
        Source::Nothing => None,
    };
    let Some(value) = value else { return Value::Null };
    match (column.kind.as_str(), value) {
        ("string", value) => text(value).into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            #[expect(clippy::cast_possible_truncation, reason = "Go's conversion cuts the fraction off too")]
            (None, Some(float)) => (float as i64).into(),
            _ => Value::Null,
        },
        ("number", Value::Number(number)) => number.as_f64().into(),
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(_)) => age(value, now).into(),
        _ => Value::Null,
    }
}

/// Any value in a column of texts.
fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => shortest(float),
            _ => number.to_string(),
        },
        // As Go writes JSON, safe inside of HTML.
        other => other.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"),
    }
}

/// A number as Go prints it by `%v`: with an exponent if that is below -4 or above 5.
fn shortest(number: f64) -> String {
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests;
