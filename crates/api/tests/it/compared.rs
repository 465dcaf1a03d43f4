//! CRDs of ours beside those of the project that they come from.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What a CRD promises, one fact under each name. Texts are nobody's to compare.
pub(crate) fn facts(crd: &Value) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::new();
    for field in ["group", "names", "scope"] {
        facts.insert(field.to_owned(), crd["spec"][field].clone());
    }
    let versions = crd["spec"]["versions"].as_array().unwrap();
    for version in versions {
        let name = version["name"].as_str().unwrap();
        facts.insert(format!("{name} served, stored"), json!([version["served"], version["storage"]]));
        let subresources = version["subresources"].as_object().cloned().unwrap_or_default();
        facts.insert(format!("{name} subresources"), json!(subresources));
        facts.insert(format!("{name} deprecated"), json!([version["deprecated"], version["deprecationWarning"]]));
        for (place, column) in version["additionalPrinterColumns"].as_array().into_iter().flatten().enumerate() {
            let mut column = column.clone();
            column.as_object_mut().unwrap().remove("description");
            facts.insert(format!("column {place}"), column);
        }
        let mut schema = version["schema"]["openAPIV3Schema"].clone();
        for every_objects in ["apiVersion", "kind", "metadata"] {
            schema["properties"].as_object_mut().unwrap().remove(every_objects);
        }
        walk(&schema, "object", &mut facts);
    }
    facts
}

fn walk(schema: &Value, path: &str, facts: &mut BTreeMap<String, Value>) {
    for (key, value) in schema.as_object().unwrap() {
        match key.as_str() {
            "description" => {}
            "properties" => {
                for (name, field) in value.as_object().unwrap() {
                    walk(field, &format!("{path}.{name}"), facts);
                }
            }
            "items" => walk(value, &format!("{path}[]"), facts),
            "additionalProperties" if value.is_object() => walk(value, &format!("{path}{{}}"), facts),
            "required" => {
                let mut names: Vec<_> = value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
                names.sort_unstable();
                facts.insert(format!("{path} required"), json!(names));
            }
            "x-kubernetes-validations" => {
                facts.insert(format!("{path} rules"), value.clone());
            }
            // 0 or 0.0
            "minimum" | "maximum" => {
                facts.insert(format!("{path} {key}"), json!(value.as_f64()));
            }
            _ => {
                facts.insert(format!("{path} {key}"), value.clone());
            }
        }
    }
}

/// What is different: the fact, theirs, ours.
pub(crate) fn differences(theirs: &Value, ours: &Value) -> Vec<(String, Value, Value)> {
    let (theirs, ours) = (facts(theirs), facts(ours));
    let names = theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)));
    let fact = |facts: &BTreeMap<String, Value>, name: &String| facts.get(name).cloned().unwrap_or_default();
    let mut differences: Vec<_> = names
        .map(|name| (name.clone(), fact(&theirs, name), fact(&ours, name)))
        .filter(|(_, theirs, ours)| theirs != ours)
        .collect();
    differences.sort_by(|a, b| a.0.cmp(&b.0));
    differences
}

/// Every field has a text for `kubectl explain`.
pub(crate) fn is_explained(crd: &Value) {
    fn check(schema: &Value, path: &str) {
        if !path.ends_with("[]") {
            assert!(schema["description"].as_str().is_some_and(|text| text.len() > 3), "{path} has no text");
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            check(field, &format!("{path}.{name}"));
        }
        if schema["items"].is_object() {
            check(&schema["items"], &format!("{path}[]"));
        }
    }
    let plural = crd["spec"]["names"]["plural"].as_str().unwrap();
    let mut schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    schema["properties"].as_object_mut().unwrap().remove("metadata");
    check(&schema, plural);
}
