//! What the real kube-apiserver (v1.33) answers. The table is a recording; values that Go prints with addresses in them
//! have been replaced by `…`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::validate;
use crate::status::FieldError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    definition: Value,
    says: Vec<String>,
}

/// As it is when it comes to validation: with defaults, and with the stored versions.
fn prepared(mut definition: Value) -> Value {
    let spec = &mut definition["spec"];
    if spec.get("conversion").is_none() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if !kind.is_empty() {
        for (key, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
            if spec["names"].get(key).is_none() {
                spec["names"][key] = name.into();
            }
        }
    }
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    if let Some(stored) = versions.iter().find(|version| version["storage"] == true) {
        definition["status"] = json!({"storedVersions": [stored["name"]]});
    }
    definition
}

fn plain(sentence: &str) -> String {
    match sentence.split_once("Invalid value: ") {
        Some((before, after)) if after.starts_with("[]apiextensions.") || after.starts_with("apiextensions.") => {
            let end = after.rfind("}: ").map_or(0, |end| end + 1);
            format!("{before}Invalid value: …{}", &after[end..])
        }
        _ => sentence.to_owned(),
    }
}

fn sentences(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(|error| plain(&error.to_string())).collect()
}

#[test]
fn definitions_are_refused_as_recorded() {
    let rows: Vec<Row> = serde_json::from_str(include_str!("tests/definitions.json")).expect("a table");
    assert!(rows.len() > 50);
    let mut wrong = Vec::new();
    for row in rows {
        let says = sentences(&validate(&prepared(row.definition.clone()), None));
        if says != row.says {
            wrong.push(format!("{}\n  said {:#?}\n  not  {says:#?}", row.definition, row.says));
        }
    }
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}
