//! The schemas in a document: those of the objects, of lists of them, and everything that they refer to.

use serde_json::{Map, Value, json};

use crate::builtins::schemas::{OBJECT_META, component_of, components};
use crate::catalogue::Served;

const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const API_VERSION: &str = "Group and version of the form in which this object is written.";
const KIND: &str = "The type of this object.";
const METADATA: &str = "What every object has: its name, labels and the like.";

/// A reference to another schema in the same document.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Schemas by name.
#[derive(Debug, Default)]
pub(super) struct Components(Map<String, Value>);

impl Components {
    /// Adds a resource in a version, and lists of it; returns the name of its schema.
    pub(super) fn add(&mut self, served: &Served) -> String {
        let name = name(served);
        if served.resource.custom {
            self.0.insert(name.clone(), custom(served));
            self.add_named(OBJECT_META);
        } else {
            self.add_named(&name);
        }
        self.0.insert(format!("{name}List"), list(served, &name));
        self.add_named(LIST_META);
        name
    }

    /// Adds a schema that is compiled in, and those that it refers to.
    pub(super) fn add_named(&mut self, name: &str) {
        if self.0.contains_key(name) {
            return;
        }
        if let Some(schema) = components().get(name) {
            self.0.insert(name.to_owned(), schema.clone());
            self.add_references(schema);
        }
    }

    fn add_references(&mut self, schema: &Value) {
        match schema {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    self.add_named(reference.trim_start_matches("#/components/schemas/"));
                }
                fields.values().for_each(|value| self.add_references(value));
            }
            Value::Array(items) => items.iter().for_each(|value| self.add_references(value)),
            _ => {}
        }
    }

    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// The kind of objects, as documents say it.
pub(super) fn group_version_kind(served: &Served, kind: &str) -> Value {
    json!({ "group": served.group(), "version": served.version().name, "kind": kind })
}

/// `io.k8s.api.core.v1.Secret`; for custom resources the labels of the group in reverse.
fn name(served: &Served) -> String {
    if let Some((name, _)) = component_of(served).filter(|_| !served.resource.custom) {
        return name.to_owned();
    }
    let group: Vec<&str> = served.group().rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), served.version().name, served.resource.kind)
}

fn custom(served: &Served) -> Value {
    let mut schema = served.version().schema.raw().clone();
    if !schema.is_object() {
        schema = json!({ "type": "object" });
    }
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    say_int_or_string(&mut schema);
    let fields = &mut schema["properties"];
    fields["apiVersion"] = json!({ "description": API_VERSION, "type": "string" });
    fields["kind"] = json!({ "description": KIND, "type": "string" });
    fields["metadata"] = json!({ "description": METADATA, "allOf": [reference(OBJECT_META)] });
    schema["x-kubernetes-group-version-kind"] = json!([group_version_kind(served, &served.resource.kind)]);
    add_selectable(served, &mut schema);
    schema
}

/// What may be a number or a text says so also to those who know only OpenAPI.
fn say_int_or_string(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) && !fields.contains_key("anyOf") {
        fields.insert("anyOf".to_owned(), json!([{ "type": "integer" }, { "type": "string" }]));
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(say_int_or_string);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = fields.get_mut(key) {
            say_int_or_string(below);
        }
    }
}

fn list(served: &Served, name: &str) -> Value {
    let kind = &served.resource.kind;
    let mut schema = json!({
        "description": format!("A list of objects of kind {kind}."),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": { "description": API_VERSION, "type": "string" },
            "kind": { "description": KIND, "type": "string" },
            "metadata": { "description": "What every list has.", "allOf": [reference(LIST_META)] },
            "items": { "description": "The objects.", "type": "array", "items": reference(name) },
        },
        "x-kubernetes-group-version-kind": [group_version_kind(served, &served.resource.list_kind)],
    });
    add_selectable(served, &mut schema);
    schema
}

fn add_selectable(served: &Served, schema: &mut Value) {
    if served.resource.custom && !served.version().selectable.is_empty() {
        let paths = served.version().selectable.iter().map(|path| path.trim_start_matches('.'));
        schema["x-kubernetes-selectable-fields"] = paths.map(|path| json!({ "fieldPath": path })).collect();
    }
}
