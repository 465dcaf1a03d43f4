//! The resources that are compiled in.

use std::sync::Arc;

use cel::Rules;
use schema::Schema;
use schema::object;
use serde_json::Value;

use crate::resource::{Cell, Column, Convert, Hooks, Resource, Scope, Version};
use crate::status::Failure;
use crate::table::age;

pub mod bootstrap;
mod config_map;
pub(crate) mod decode;
mod definition;
mod event;
mod lease;
mod namespace;
mod rules;
pub mod schemas;
mod secret;
mod service_account;

/// All built-ins, in the order in which discovery names them.
pub fn resources() -> Result<Vec<Arc<Resource>>, Failure> {
    let all = [
        config_map::resource()?,
        event::resource()?,
        namespace::resource()?,
        secret::resource()?,
        service_account::resource()?,
        definition::resource()?,
        lease::resource()?,
    ];
    Ok(all.into_iter().map(Arc::new).collect())
}

/// What differs between the built-ins, beside their hooks and columns.
struct Plan {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    scope: Scope,
}

impl Plan {
    fn resource(self, versions: Vec<Version>, hooks: Hooks) -> Resource {
        let Self { group, kind, plural, short_names, categories, scope } = self;
        let folder = if group.is_empty() { "core" } else { group };
        Resource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
            categories: categories.iter().map(|&name| name.to_owned()).collect(),
            scope,
            versions,
            storage: 0,
            prefix: format!("/registry/{folder}/{plural}/"),
            schema_since: 0,
            hooks,
            custom: false,
            accepts_creates: true,
        }
    }
}

/// Version `v1` of a built-in. `component` is the name of its schema.
fn v1(component: &str, columns: Vec<Column>, selectable: &[&str]) -> Result<Version, Failure> {
    let schema = Schema::of_built_in(&schemas::structural(component))
        .map_err(|errors| Failure::internal(format!("the schema of {component} is broken: {errors:?}")))?;
    Ok(Version {
        name: "v1".to_owned(),
        group: None,
        served: true,
        deprecation: None,
        schema: Arc::new(schema),
        rules: Arc::new(Rules::default()),
        columns,
        status: false,
        scale: None,
        selectable: selectable.iter().map(|&path| path.to_owned()).collect(),
        convert: None::<Convert>,
    })
}

fn column(name: &str, description: &str, value: Cell) -> Column {
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: String::new(),
        description: description.to_owned(),
        priority: 0,
        value,
    }
}

fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

/// The column that all tables begin with.
pub(crate) fn name_column() -> Column {
    let name = |object: &Value, _| object::name(object).into();
    let column = column("Name", "The name of the object.", Cell::Compute(name));
    Column { format: "name".to_owned(), ..column }
}

/// The columns of scales, whatever they are of.
pub(crate) fn scale_columns() -> Vec<Column> {
    let number = |name: &str, description: &str, path: &str| {
        let column = column(name, description, Cell::Path(path.to_owned()));
        Column { kind: "integer".to_owned(), ..column }
    };
    let desired = |object: &Value, _| object["spec"].get("replicas").cloned().unwrap_or(Value::from(0));
    let desired = Column { value: Cell::Compute(desired), ..number("Desired", "How many there should be.", "") };
    vec![name_column(), desired, number("Available", "How many there are.", ".status.replicas"), age_column()]
}

fn age_column() -> Column {
    let since_creation = |object: &Value, now| age(&object["metadata"]["creationTimestamp"], now).into();
    column("Age", "How long ago the object was made.", Cell::Compute(since_creation))
}

#[cfg(test)]
mod tests;
