//! The fields of the built-ins, in two forms: as OpenAPI documents show them, with references, and as one structural
//! schema for each kind.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::catalogue::Served;

const REFERENCE: &str = "#/components/schemas/";

/// What only documentation says: Kubernetes checks none of it by the schema for its own kinds.
const ONLY_SAID: [&str; 5] = ["description", "required", "default", "enum", "x-kubernetes-group-version-kind"];

/// References nest in the built-ins; the deepest chain is shorter than this.
const DEEPEST: usize = 16;

/// All schemas of the built-ins by their name in OpenAPI documents.
pub fn components() -> &'static BTreeMap<String, Value> {
    static COMPONENTS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        [
            include_str!("schemas/meta.json"),
            include_str!("schemas/core.json"),
            include_str!("schemas/events.json"),
            include_str!("schemas/coordination.json"),
            include_str!("schemas/apiextensions.json"),
            include_str!("schemas/autoscaling.json"),
        ]
        .into_iter()
        .filter_map(|text| serde_json::from_str::<BTreeMap<String, Value>>(text).ok())
        .flatten()
        .collect()
    });
    &COMPONENTS
}

/// The component that describes a built-in in a version, with its name.
pub(crate) fn component_of(served: &Served) -> Option<(&'static str, &'static Value)> {
    let (group, version, kind) = (served.group(), &served.version().name, &served.resource.kind);
    components().iter().map(|(name, schema)| (name.as_str(), schema)).find(|(_, schema)| {
        let about = &schema["x-kubernetes-group-version-kind"][0];
        about["kind"] == **kind && about["group"] == *group && about["version"] == **version
    })
}

/// The name of `ObjectMeta` among the [`components`].
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The structural schema of `metadata`, which is the same for all objects: which fields there are, and how they merge.
pub fn object_meta() -> &'static Value {
    static META: LazyLock<Value> = LazyLock::new(|| structural(OBJECT_META));
    &META
}

/// One of the [`components`] with everything that it refers to in place.
pub fn structural(name: &str) -> Value {
    named(name, 0)
}

fn named(name: &str, depth: usize) -> Value {
    if depth > DEEPEST {
        return anything();
    }
    match name.rsplit('.').next() {
        // Schemas hold schemas; what they may say is checked where definitions are.
        Some("JSONSchemaProps" | "FieldsV1" | "RawExtension") => {
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
        }
        Some("JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray") => {
            anything()
        }
        _ => components().get(name).map_or_else(anything, |schema| in_place(schema, depth)),
    }
}

fn anything() -> Value {
    json!({ "x-kubernetes-preserve-unknown-fields": true })
}

fn in_place(schema: &Value, depth: usize) -> Value {
    let mut whole = match referred(schema) {
        Some(name) => named(name, depth + 1),
        None => Value::Object(Map::new()),
    };
    let Value::Object(into) = &mut whole else { return whole };
    for (key, value) in schema.as_object().into_iter().flatten() {
        match key.as_str() {
            "allOf" | "$ref" => {}
            said if ONLY_SAID.contains(&said) => {}
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.map(|(name, field)| (name.clone(), in_place(field, depth + 1)));
                into.insert(key.clone(), Value::Object(fields.collect()));
            }
            "items" | "additionalProperties" => {
                into.insert(key.clone(), in_place(value, depth + 1));
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
    whole
}

/// The name of the component that a schema refers to.
pub(crate) fn referred(schema: &Value) -> Option<&str> {
    let reference = schema.get("$ref").or_else(|| schema.get("allOf")?.get(0)?.get("$ref"))?;
    reference.as_str()?.strip_prefix(REFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_references_lead_somewhere() {
        fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
            match value {
                Value::Object(map) => {
                    if let Some(Value::String(reference)) = map.get("$ref") {
                        found.push(reference);
                    }
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(items) => items.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        assert_eq!(components().len(), 57);
        for (name, schema) in components() {
            let mut found = Vec::new();
            references(schema, &mut found);
            for reference in found {
                let known = reference.strip_prefix(REFERENCE).is_some_and(|name| components().contains_key(name));
                assert!(known, "{name} refers to {reference}");
            }
        }
    }

    #[test]
    fn a_structural_schema_has_its_references_in_place_and_says_only_what_is_checked() {
        let lease = structural("io.k8s.api.coordination.v1.Lease");
        assert_eq!(
            lease["properties"]["spec"],
            json!({ "type": "object", "properties": {
                "acquireTime": { "type": "string", "format": "date-time" },
                "holderIdentity": { "type": "string" },
                "leaseDurationSeconds": { "type": "integer", "format": "int32" },
                "leaseTransitions": { "type": "integer", "format": "int32" },
                "preferredHolder": { "type": "string" },
                "renewTime": { "type": "string", "format": "date-time" },
                "strategy": { "type": "string" },
            } })
        );
        assert_eq!(lease["properties"]["metadata"], *object_meta());
        let owners = &object_meta()["properties"]["ownerReferences"];
        assert_eq!(owners["x-kubernetes-list-map-keys"], json!(["uid"]));
        assert_eq!(owners["items"]["x-kubernetes-map-type"], "atomic");
    }
}
