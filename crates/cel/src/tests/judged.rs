//! Row by row against what kube-apiserver said.

use super::*;

/// What must be the same as in Kubernetes: place and kind of an error and what is said about it, but not how the rule is
/// shown, nor the words about its syntax.
fn essence(error: &str) -> String {
    const SAID: [&str; 3] = [": compilation failed: ", ": program instantiation failed: ", ": cel expression must "];
    let value = error.find("Invalid value: ");
    let mut essence = error.to_owned();
    if let (Some(value), Some(said)) = (value, SAID.iter().find_map(|said| error.find(said))) {
        essence.replace_range(value + "Invalid value: ".len()..said, "RULE");
    }
    if let Some(syntax) = essence.find("Syntax error: ") {
        essence.truncate(syntax);
    }
    essence.replace(&format!("{HERE}.properties[spec].x-kubernetes-validations[0]"), "#").replace(HERE, "$")
}

/// What is wrong with a URL is told in other words.
fn without_url(error: &str) -> String {
    const PARSE: &str = "URL parse error during conversion from string: ";
    match (error.split_once(PARSE), error.find(" evaluating rule: ")) {
        (Some((before, _)), Some(rule)) => format!("{before}{PARSE}{}", &error[rule..]),
        _ => error.to_owned(),
    }
}

fn differences(rows: usize, differences: &[String]) {
    assert!(differences.is_empty(), "{} of {rows} rows differ:\n{}", differences.len(), differences.join("\n\n"));
    assert!(rows > 80, "the table is there");
}

#[test]
fn rules_are_refused_as_kubernetes_does() {
    let table: Value = serde_json::from_str(include_str!("compile.json")).unwrap();
    let rows = table["rules"].as_array().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let mut spec = table["schema"].clone();
        spec["x-kubernetes-validations"] = json!([{"rule": row["rule"], "message": "m"}]);
        let found: Vec<String> =
            compiled(&spec).map_or_else(|errors| errors.iter().map(|error| essence(error)).collect(), |_| Vec::new());
        // What a rule could cost is not estimated here.
        let said = row["errors"].as_array().unwrap().iter().map(|error| error.as_str().unwrap());
        let expected: Vec<String> = said.filter(|error| !error.contains("estimated rule cost")).map(essence).collect();
        if found != expected {
            wrong.push(format!("{}\n  expected {expected:#?}\n  found {found:#?}", row["rule"]));
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
            Ok((_, rules)) => {
                let object = |x: &Value| json!({"metadata": {"name": "a"}, "spec": {"x": x}});
                let old = row.get("old").map(object);
                let found = rules.check(&object(&row["new"]), old.as_ref());
                let found = found.iter().map(|error| without_url(&error.to_string())).collect();
                (found, row.get("errors").map(|errors| texts(errors).iter().map(|one| without_url(one)).collect()))
            }
            Err(errors) => {
                let here = format!("{HERE}.properties[spec].properties[x]");
                let found: Vec<String> = errors.iter().map(|error| essence(&error.replace(&here, "$"))).collect();
                let expected = row.get("refused").map(|errors| texts(errors).iter().map(|one| essence(one)).collect());
                (found, expected)
            }
        };
        if Some(&found) != expected.as_ref() {
            wrong.push(format!("{}\n  expected {expected:#?}\n  found {found:#?}", row["name"]));
        }
    }
    differences(rows.len(), &wrong);
}
