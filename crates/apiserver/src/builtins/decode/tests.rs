use serde_json::json;

use super::*;
use crate::builtins;
use crate::catalogue::Catalogue;

fn read_as(group: &str, plural: &str, mut object: Value) -> Result<(Value, Vec<String>), String> {
    let served = Catalogue::new(builtins::resources().unwrap()).find(group, "v1", plural).unwrap();
    let unknown = read(&served, &mut object)?;
    Ok((object, unknown))
}

#[test]
fn wrong_types_are_refused_with_their_place() {
    let spec = |spec: Value| json!({ "spec": spec });
    let schema = |schema: Value| json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] } });
    let (leases, definitions) =
        (("coordination.k8s.io", "leases"), ("apiextensions.k8s.io", "customresourcedefinitions"));
    let openapi = "spec.versions[0].schema.openAPIV3Schema";
    for ((group, plural), object, expected) in [
        (("", "secrets"), json!({ "type": 1 }), "type must be of type string, not the number 1"),
        (("", "secrets"), json!({ "immutable": "x" }), "immutable must be of type boolean, not a string"),
        (("", "secrets"), json!({ "stringData": { "a": 1 } }), "stringData.a must be of type string, not the number 1"),
        (("", "secrets"), json!({ "data": { "a": 1 } }), "data.a must be of type string, in base64, not the number 1"),
        (("", "secrets"), json!({ "data": { "a": ["x"] } }), "data.a must be a list of bytes, not a string"),
        (("", "secrets"), json!({ "data": "z" }), "data must be of type object, not a string"),
        (
            ("", "namespaces"),
            spec(json!({ "finalizers": [1] })),
            "spec.finalizers[0] must be of type string, not the number 1",
        ),
        (("", "namespaces"), spec(json!(1)), "spec must be of type object, not the number 1"),
        (
            ("", "namespaces"),
            json!({ "status": { "conditions": [{ "lastTransitionTime": 2 }] } }),
            "status.conditions[0].lastTransitionTime must be of type string, not the number 2",
        ),
        (
            leases,
            spec(json!({ "leaseDurationSeconds": 1.5 })),
            "spec.leaseDurationSeconds must be of type integer, not the number 1.5",
        ),
        (
            leases,
            spec(json!({ "leaseDurationSeconds": 99_999_999_999_i64 })),
            "spec.leaseDurationSeconds must be of type integer, not the number 99999999999",
        ),
        (("", "serviceaccounts"), json!({ "secrets": {} }), "secrets must be of type array, not an object"),
        (
            definitions,
            schema(json!({ "properties": { "a": 1 } })),
            &format!("{openapi}.properties.a must be of type object, not the number 1"),
        ),
        (
            definitions,
            schema(json!({ "additionalProperties": 1 })),
            &format!("{openapi}.additionalProperties must be a boolean or a schema, not the number 1"),
        ),
    ] {
        assert_eq!(read_as(group, plural, object.clone()).unwrap_err(), expected, "{object}");
    }
}

#[test]
fn bytes_must_be_base64_and_lines_do_not_matter() {
    for text in ["!!", "e", "eA==z", "eA", "eAB!", "eA=", "=", "eA=x"] {
        let why = read_as("", "secrets", json!({ "data": { "a": text } })).unwrap_err();
        assert!(why.starts_with("data.a must be in base64: "), "{text}: {why}");
    }
    for (given, kept) in [("eA==", "eA=="), ("eB==", "eA=="), ("e\nA==\n", "eA=="), ("YWJj", "YWJj"), ("", "")] {
        let (secret, _) = read_as("", "secrets", json!({ "data": { "a": given } })).unwrap();
        assert_eq!(secret["data"]["a"], kept);
    }
    let (secret, _) = read_as("", "secrets", json!({ "data": { "a": [1, 2] } })).unwrap();
    assert_eq!(secret["data"]["a"], "AQI=");
}

#[test]
fn moments_get_their_usual_form_or_are_refused() {
    let renew = |text: &str| {
        let lease = json!({ "spec": { "renewTime": text } });
        read_as("coordination.k8s.io", "leases", lease).map(|(lease, _)| lease["spec"]["renewTime"].clone())
    };
    for text in [
        "yesterday",
        "",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.1Z",
        "2026-01-01 00:00:00.000000Z",
        "2026-01-01T00:00:00.000000",
        "2026-13-01T00:00:00.000000Z",
    ] {
        let why = format!("spec.renewTime must be a time such as 2026-01-02T15:04:05.000000Z, not {text:?}");
        assert_eq!(renew(text).unwrap_err(), why);
    }
    assert_eq!(renew("2026-01-01T00:00:00.123456+01:00").unwrap(), "2025-12-31T23:00:00.123456Z");
    let (event, _) = read_as("", "events", json!({ "firstTimestamp": "2026-01-01T00:00:00.5Z" })).unwrap();
    assert_eq!(event["firstTimestamp"], "2026-01-01T00:00:00Z");
}

#[test]
fn unknown_fields_are_dropped_and_told_where_go_tells_them() {
    let definition = json!({ "spec": { "versions": [{
        "subresources": { "status": {}, "nope": 1 },
        "schema": { "openAPIV3Schema": { "foo": 1, "properties": { "spec": {
            "bar": { "x": 1 },
            "properties": {
                "a": { "items": { "zip": 1, "type": "string" } },
                "c": { "additionalProperties": { "q": 2 } },
                "d": { "anyOf": [{ "minLength": 1, "w": 1 }], "not": { "v": 1 } },
            },
        } } } },
    }] } });
    let (read, mut unknown) = read_as("apiextensions.k8s.io", "customresourcedefinitions", definition).unwrap();
    unknown.sort();
    assert_eq!(
        unknown,
        [
            "spec.versions[0].schema.openAPIV3Schema.foo",
            "spec.versions[0].schema.openAPIV3Schema.properties.spec.bar",
            "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.d.anyOf[0].w",
            "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.d.not.v",
            "spec.versions[0].subresources.nope",
        ]
    );
    assert_eq!(
        read["spec"]["versions"][0],
        json!({
            "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "properties": { "spec": { "properties": {
                "a": { "items": { "type": "string" } },
                "c": { "additionalProperties": {} },
                "d": { "anyOf": [{ "minLength": 1 }], "not": {} },
            } } } } },
        })
    );
}
