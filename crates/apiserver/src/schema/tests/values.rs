use serde_json::{Value, json};

use super::{object, schema, sentences};

/// Checks `spec.x` against a schema for it; the sentences are the judge's.
fn says(x: &Value, value: &Value, expected: &[&str]) {
    let schema = schema(&json!({ "x": x }));
    let mut object = object(&json!({ "x": value }));
    assert_eq!(schema.prune(&mut object), [""; 0], "{x} prunes {value}");
    schema.default(&mut object);
    assert_eq!(sentences(&schema.validate(&object, None)), expected, "{x} on {value}");
}

#[test]
fn types() {
    for (x, value, expected) in [
        (
            json!({"type": "integer"}),
            json!("x"),
            r#"spec.x: Invalid value: "string": spec.x in body must be of type integer: "string""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(1.5),
            r#"spec.x: Invalid value: "number": spec.x in body must be of type integer,string: "number""#,
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({}),
            r#"spec.x: Invalid value: "object": spec.x in body must be of type integer,string: "object""#,
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!("x"),
            r#"spec.x: Invalid value: "x": spec.x in body must be of type date: "x""#,
        ),
        (
            json!({"type": "string", "format": "date"}),
            json!({}),
            r#"spec.x: Invalid value: "": spec.x in body must be of type date: """#,
        ),
    ] {
        says(&x, &value, &[expected]);
    }
}
