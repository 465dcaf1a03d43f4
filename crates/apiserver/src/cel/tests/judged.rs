//! Row by row against what kube-apiserver said.

use super::*;

/// A rule as it stands in errors, without its source.
fn without_source(error: &str) -> String {
    let mut error = error.to_owned();
    if let Some(start) = error.find("apiextensions.ValidationRule{")
        && let Some(end) = error[start..].find("OptionalOldSelf:(*bool)(nil)}")
    {
        error.replace_range(start..start + end + "OptionalOldSelf:(*bool)(nil)}".len(), "RULE");
    }
    error.replace(&format!("{HERE}.properties[spec].x-kubernetes-validations[0]"), "#").replace(HERE, "$")
}

fn differences(rows: usize, differences: &[String]) {
    assert!(differences.is_empty(), "{} of {rows} rows differ:\n{}", differences.len(), differences.join("\n\n"));
    assert!(rows > 80, "the table is there");
}

#[test]
fn rules_are_refused_in_the_words_of_kubernetes() {
    let table: Value = serde_json::from_str(include_str!("compile.json")).unwrap();
    let rows = table["rules"].as_array().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let mut spec = table["schema"].clone();
        spec["x-kubernetes-validations"] = json!([{"rule": row["rule"], "message": "m"}]);
        let found: Vec<String> = compiled(&spec)
            .map_or_else(|errors| errors.iter().map(|error| without_source(error)).collect(), |_| Vec::new());
        let expected: Vec<String> =
            row["errors"].as_array().unwrap().iter().map(|error| error.as_str().unwrap().to_owned()).collect();
        if found != expected {
            wrong.push(format!("{}\n  expected {expected:#?}\n  found {found:#?}", row["rule"]));
        }
    }
    differences(rows.len(), &wrong);
}

#[test]
fn costs_are_estimated_as_kubernetes_does() {
    let table: Value = serde_json::from_str(include_str!("cost.json")).unwrap();
    let rows = table["rules"].as_array().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let mut item = table["schema"].clone();
        item["x-kubernetes-validations"] = json!([{"rule": row["rule"], "message": "m"}]);
        let spec = json!({"type": "object", "properties": {
            "outer": {"type": "array", "maxItems": row["items"], "items": item}
        }});
        let expected = format!("estimated rule cost exceeds budget by factor of {} ", row["factor"].as_str().unwrap());
        match compiled(&spec) {
            Err(errors) if errors.iter().any(|error| error.contains(&expected)) => {}
            other => wrong.push(format!("{row}\n  {:?}", other.map(|_| "accepted"))),
        }
    }
    differences(rows.len(), &wrong);
}

#[test]
fn objects_are_judged_as_kubernetes_does() {
    let table: Value = serde_json::from_str(include_str!("check.json")).unwrap();
    let rows = table.as_array().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let spec = json!({"type": "object", "properties": {"x": row["schema"]}});
        let texts = |errors: &Value| -> Vec<String> {
            errors.as_array().unwrap().iter().map(|error| error.as_str().unwrap().to_owned()).collect()
        };
        let (found, expected) = match compiled(&spec) {
            Ok((schema, rules)) => {
                let object = |x: &Value| json!({"metadata": {"name": "a"}, "spec": {"x": x}});
                let old = row.get("old").map(object);
                let found = rules.check(&schema, &object(&row["new"]), old.as_ref());
                (found.iter().map(ToString::to_string).collect(), row.get("errors").map(texts))
            }
            Err(errors) => {
                let here = format!("{HERE}.properties[spec].properties[x]");
                let found: Vec<String> = errors
                    .iter()
                    .filter(|error| !error.contains("contributed to") && !error.contains("cost total"))
                    .map(|error| error.replace(&here, "$"))
                    .collect();
                (found, row.get("refused").map(texts))
            }
        };
        if Some(&found) != expected.as_ref() {
            wrong.push(format!("{}\n  expected {expected:#?}\n  found {found:#?}", row["name"]));
        }
    }
    differences(rows.len(), &wrong);
}
