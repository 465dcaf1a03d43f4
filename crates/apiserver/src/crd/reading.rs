//! From a definition to a resource.

use std::sync::Arc;

use cel::Rules;
use schema::Schema;
use schema::object;
use serde_json::{Value, json};
use store::Revision;

use crate::builtins::name_column;
use crate::catalogue::prefer;
use crate::resource::{Cell, Column, Hooks, Resource, Scale, Scope, Version};
use crate::status::FieldError;

/// The resource that a definition defines. `Err` says what is wrong with it: definitions are checked before they are
/// stored, but a store may be older than a check.
pub(crate) fn resource(definition: &Value, schema_since: Revision) -> Result<Resource, String> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten().enumerate();
    let versions = versions.map(|(index, version)| read_version(definition, index, version));
    assemble(definition, versions.collect::<Result<Vec<_>, _>>()?, schema_since)
}

/// The same without its schemas: enough to find its objects and to delete them.
pub(super) fn without_schemas(definition: &Value) -> Result<Resource, String> {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let versions = versions.map(|version| {
        let schema = Schema::parse(&anything, "").map_err(|errors| sentence(&errors))?;
        Ok::<_, String>(Version {
            name: text(version, "name"),
            group: None,
            served: true,
            deprecation: None,
            schema: Arc::new(schema),
            rules: Arc::new(Rules::default()),
            columns: Vec::new(),
            status: false,
            scale: None,
            selectable: Vec::new(),
            convert: None,
        })
    });
    assemble(definition, versions.collect::<Result<Vec<_>, _>>()?, 0)
}

fn assemble(definition: &Value, mut versions: Vec<Version>, schema_since: Revision) -> Result<Resource, String> {
    let spec = &definition["spec"];
    let stored = spec["versions"].as_array().into_iter().flatten().find(|version| version["storage"] == true);
    let stored = stored.map(|version| text(version, "name")).ok_or("no version is stored")?;
    versions.sort_by(|left, right| prefer(&left.name, &right.name));
    let storage = versions.iter().position(|version| version.name == stored).ok_or("no version is stored")?;
    // The names that were granted, not those that were asked for.
    let accepted = &definition["status"]["acceptedNames"];
    let names = if accepted["kind"].as_str().unwrap_or_default().is_empty() { &spec["names"] } else { accepted };
    let (group, plural) = (text(spec, "group"), text(&spec["names"], "plural"));
    let (kind, singular) = (text(names, "kind"), text(names, "singular"));
    if group.is_empty() || plural.is_empty() || kind.is_empty() {
        return Err("group, plural name or kind are missing".to_owned());
    }
    let list_kind = text(names, "listKind");
    Ok(Resource {
        prefix: format!("/registry/{group}/{plural}/"),
        singular: if singular.is_empty() { kind.to_lowercase() } else { singular },
        list_kind: if list_kind.is_empty() { format!("{kind}List") } else { list_kind },
        short_names: texts(names, "shortNames"),
        categories: texts(names, "categories"),
        scope: if spec["scope"] == "Cluster" { Scope::Cluster } else { Scope::Namespaced },
        group,
        plural,
        kind,
        versions,
        storage,
        schema_since,
        hooks: Hooks::NONE,
        custom: true,
        accepts_creates: !object::is_deleting(definition),
    })
}

fn read_version(definition: &Value, index: usize, version: &Value) -> Result<Version, String> {
    let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let openapi = version["schema"].get("openAPIV3Schema").unwrap_or(&anything);
    let schema = Schema::parse(openapi, &path).map_err(|errors| sentence(&errors))?;
    let rules = Rules::compile(&schema, &path).map_err(|errors| sentence(&errors))?;
    let subresources = &version["subresources"];
    Ok(Version {
        name: text(version, "name"),
        group: None,
        served: version["served"] == true,
        deprecation: deprecation(definition, version),
        schema: Arc::new(schema),
        rules: Arc::new(rules),
        columns: columns(version),
        status: subresources.get("status").is_some_and(Value::is_object),
        scale: subresources.get("scale").filter(|scale| scale.is_object()).map(|scale| Scale {
            spec_replicas: text(scale, "specReplicasPath"),
            status_replicas: text(scale, "statusReplicasPath"),
            label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        selectable: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| text(field, "jsonPath"))
            .collect(),
        convert: None,
    })
}

/// The remark that users of a deprecated version get.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(warning) = version["deprecationWarning"].as_str() {
        return Some(warning.to_owned());
    }
    let spec = &definition["spec"];
    let (group, kind, name) = (text(spec, "group"), text(&spec["names"], "kind"), text(version, "name"));
    let others = spec["versions"].as_array().into_iter().flatten();
    let better = others
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(other, "name"))
        .filter(|other| prefer(other, &name).is_lt())
        .min_by(|left, right| prefer(left, right));
    let instead = better.map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

fn columns(version: &Value) -> Vec<Column> {
    let declared = version["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty());
    let mut columns = vec![name_column()];
    match declared {
        Some(declared) => columns.extend(declared.iter().map(column)),
        None => columns.push(Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: "How long ago the object was made.".to_owned(),
            priority: 0,
            value: Cell::Path(".metadata.creationTimestamp".to_owned()),
        }),
    }
    columns
}

fn column(declared: &Value) -> Column {
    let (path, description) = (text(declared, "jsonPath"), text(declared, "description"));
    Column {
        name: text(declared, "name"),
        kind: text(declared, "type"),
        format: text(declared, "format"),
        description: if description.is_empty() {
            format!("Custom resource definition column (in JSONPath format): {path}")
        } else {
            description
        },
        priority: declared["priority"].as_i64().and_then(|priority| priority.try_into().ok()).unwrap_or(0),
        value: Cell::Path(path),
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn sentence(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
