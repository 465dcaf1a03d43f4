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
fn wrong_types_are_refused_in_the_words_of_go() {
    let spec = |spec: Value| json!({ "spec": spec });
    let schema = |schema: Value| json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": schema } }] } });
    for (group, plural, object, expected) in [
        ("", "secrets", json!({ "type": 1 }), "number into Go struct field Secret.type of type v1.SecretType"),
        ("", "secrets", json!({ "immutable": "x" }), "string into Go struct field Secret.immutable of type bool"),
        (
            "",
            "secrets",
            json!({ "stringData": { "a": 1 } }),
            "number into Go struct field Secret.stringData of type string",
        ),
        ("", "secrets", json!({ "data": { "a": 1 } }), "number into Go struct field Secret.data of type []uint8"),
        ("", "secrets", json!({ "data": { "a": ["x"] } }), "string into Go struct field Secret.data of type uint8"),
        ("", "secrets", json!({ "data": "z" }), "string into Go struct field Secret.data of type map[string][]uint8"),
        (
            "",
            "namespaces",
            spec(json!({ "finalizers": [1] })),
            "number into Go struct field NamespaceSpec.spec.finalizers of type v1.FinalizerName",
        ),
        (
            "",
            "namespaces",
            spec(json!({ "finalizers": "a" })),
            "string into Go struct field NamespaceSpec.spec.finalizers of type []v1.FinalizerName",
        ),
        ("", "namespaces", spec(json!(1)), "number into Go struct field Namespace.spec of type v1.NamespaceSpec"),
        (
            "",
            "namespaces",
            json!({ "status": { "conditions": [{ "status": 2 }] } }),
            "number into Go struct field NamespaceCondition.status.conditions.status of type v1.ConditionStatus",
        ),
        (
            "",
            "namespaces",
            json!({ "status": { "conditions": [1] } }),
            "number into Go struct field NamespaceStatus.status.conditions of type v1.NamespaceCondition",
        ),
        (
            "",
            "namespaces",
            json!({ "status": { "conditions": [{ "lastTransitionTime": 2 }] } }),
            "number into Go struct field NamespaceCondition.status.conditions.lastTransitionTime of type string",
        ),
        (
            "coordination.k8s.io",
            "leases",
            spec(json!({ "leaseDurationSeconds": 1.5 })),
            "number 1.5 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            "coordination.k8s.io",
            "leases",
            spec(json!({ "leaseDurationSeconds": 99_999_999_999_i64 })),
            "number 99999999999 into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32",
        ),
        (
            "",
            "events",
            json!({ "involvedObject": { "uid": 1 } }),
            "number into Go struct field ObjectReference.involvedObject.uid of type types.UID",
        ),
        ("", "events", json!({ "series": 1 }), "number into Go struct field Event.series of type v1.EventSeries"),
        (
            "",
            "serviceaccounts",
            json!({ "secrets": {} }),
            "object into Go struct field ServiceAccount.secrets of type []v1.ObjectReference",
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            schema(json!({ "properties": { "a": 1 } })),
            "number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.properties of type \
             v1.JSONSchemaProps",
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            schema(json!({ "required": 1 })),
            "number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.required of type []string",
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            schema(json!({ "maximum": "1" })),
            "string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.maximum of type float64",
        ),
    ] {
        assert_eq!(
            read_as(group, plural, object.clone()).unwrap_err(),
            format!("json: cannot unmarshal {expected}"),
            "{object}"
        );
    }
    assert_eq!(
        read_as("apiextensions.k8s.io", "customresourcedefinitions", schema(json!({ "additionalProperties": 1 }))),
        Err("boolean or JSON schema expected".to_owned())
    );
}

#[test]
fn bytes_must_be_base64_as_go_reads_it() {
    for (text, at) in [("!!", 0), ("e", 0), ("eA==z", 4), ("eA", 0), ("eAB!", 3), ("eA=", 3), ("=", 0), ("eA=x", 3)] {
        assert_eq!(
            read_as("", "secrets", json!({ "data": { "a": text } })).unwrap_err(),
            format!("illegal base64 data at input byte {at}"),
            "{text}"
        );
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
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    let renew = |text: &str| {
        let lease = json!({ "spec": { "renewTime": text } });
        read_as("coordination.k8s.io", "leases", lease).map(|(lease, _)| lease["spec"]["renewTime"].clone())
    };
    for (text, rest, piece) in [
        ("yesterday", "yesterday", "2006"),
        ("", "", "2006"),
        ("2026-01-01T00:00:00Z", "Z", ".000000"),
        ("2026-01-01T00:00:00.1Z", ".1Z", ".000000"),
        ("2026-01-01 00:00:00.000000Z", " 00:00:00.000000Z", "T"),
        ("2026-01-01T00:00:00.000000", "", "Z07:00"),
    ] {
        assert_eq!(
            renew(text).unwrap_err(),
            format!("parsing time {text:?} as {LAYOUT:?}: cannot parse {rest:?} as {piece:?}")
        );
    }
    assert_eq!(
        renew("2026-13-01T00:00:00.000000Z").unwrap_err(),
        "parsing time \"2026-13-01T00:00:00.000000Z\": month out of range"
    );
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
