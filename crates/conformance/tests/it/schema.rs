//! What a schema does to objects: pruning, defaulting, validation with Kubernetes' own words.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{WIDGETS, accepted, definition_with_schema, object, refused, thing, widget};

cases![
    unknown_fields_are_pruned,
    unknown_fields_are_kept_where_that_is_asked_for,
    defaults_are_filled_in,
    defaults_replace_null,
    null_where_it_may_be,
    types_are_checked,
    numbers_are_checked,
    texts_are_checked,
    formats_are_checked,
    lists_are_checked,
    maps_are_checked,
    enums_are_checked,
    junctors_are_checked,
    required_fields_are_missed,
    int_or_string,
    embedded_objects,
    embedded_objects_that_are_none,
    many_mistakes_are_told_at_once,
    a_missing_spec,
    numbers_keep_their_shape,
];

async fn unknown_fields_are_pruned(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "a": {"type": "string"},
        "deep": {"type": "object", "properties": {"b": {"type": "string"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": {"type": "string"}}}},
    }}))
    .await;
    let spec = json!({
        "a": "x", "z": 1, "deep": {"b": "x", "z": 1}, "list": [{"c": "x", "z": 1}], "map": {"k": {"d": "x", "z": 1}},
    });
    let mut body = object(s, "Thing", "a", spec);
    body["other"] = json!({"z": 1});
    body["metadata"]["z"] = 1.into();
    s.post(&path, body).await.is(201).has("/spec/z", json!(null)).has("/other", json!(null));
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"y": 1, "deep": {"y": 1}}})).await.is(200);
}

async fn unknown_fields_are_kept_where_that_is_asked_for(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "strict": {"type": "object", "properties": {"a": {"type": "string"}}},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
        }}),
    )
    .await;
    let spec = json!({"free": {"x": [1, {"y": null}]}, "strict": {"a": "x", "z": 1}, "any": [1, "two", null]});
    accepted(s, &path, spec).await;
    accepted(s, &path, json!({"any": "text"})).await;
}

async fn defaults_are_filled_in(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "default": {}, "properties": {
        "a": {"type": "string", "default": "x"},
        "deep": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 7}}},
        "shallow": {"type": "object", "properties": {"c": {"type": "boolean", "default": true}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "string", "default": "y"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"e": {"type": "number", "default": 1.5}}}},
    }}))
    .await;
    accepted(s, &path, json!({})).await;
    accepted(s, &path, json!({"shallow": {}, "list": [{}, {"d": "z"}], "map": {"k": {}}})).await;
    let mut without = object(s, "Thing", "a", json!({}));
    without.as_object_mut().unwrap().remove("spec");
    s.post(&path, without).await.is(201).has("/spec/deep/b", 7);
}

async fn defaults_replace_null(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "string", "default": "x", "nullable": true},
            "c": {"type": "string"},
            "d": {"type": "string", "nullable": true},
        }}),
    )
    .await;
    accepted(s, &path, json!({"a": null, "b": null, "d": null})).await;
    let unfit = object(s, "Thing", "a", json!({"c": null}));
    s.post(&path, unfit).await;
}

async fn null_where_it_may_be(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"nested": {"b": null}}))).await.is(201);
    s.post(WIDGETS, widget("b", json!({"nested": {"a": null}}))).await;
    s.post(WIDGETS, widget("c", json!({"nested": null}))).await;
    s.post(WIDGETS, widget("d", json!(null))).await;
    s.post(WIDGETS, widget("e", json!({"limits": {"x": null}}))).await;
    s.post(WIDGETS, widget("f", json!({"steps": [null]}))).await;
}

async fn types_are_checked(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "text": {"type": "string"}, "whole": {"type": "integer"}, "number": {"type": "number"}, "truth": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}}, "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    }}))
    .await;
    for spec in [
        json!({"text": 1}),
        json!({"text": true}),
        json!({"text": ["a"]}),
        json!({"text": {"a": "b"}}),
        json!({"whole": "1"}),
        json!({"whole": 1.5}),
        json!({"number": "1"}),
        json!({"truth": "yes"}),
        json!({"list": "a"}),
        json!({"list": {"a": "b"}}),
        json!({"list": ["a", 1]}),
        json!({"map": ["a"]}),
        json!({"map": {"a": "b"}}),
    ] {
        refused(s, &path, spec).await;
    }
    accepted(s, &path, json!({"whole": 1.0, "number": 1})).await;
}

async fn numbers_are_checked(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "small": {"type": "integer", "maximum": 10, "minimum": -10},
            "open": {"type": "number", "maximum": 1, "exclusiveMaximum": true, "minimum": 0, "exclusiveMinimum": true},
            "even": {"type": "integer", "multipleOf": 2},
            "int32": {"type": "integer", "format": "int32"},
            "int64": {"type": "integer", "format": "int64"},
            "half": {"type": "number", "multipleOf": 0.5},
        }}),
    )
    .await;
    for spec in [
        json!({"small": 11}),
        json!({"small": -11}),
        json!({"open": 1}),
        json!({"open": 0}),
        json!({"even": 3}),
        json!({"half": 0.7}),
    ] {
        refused(s, &path, spec).await;
    }
    accepted(s, &path, json!({"small": 10, "open": 0.5, "even": -4, "int32": 2_147_483_648_i64, "int64": i64::MAX}))
        .await;
    let big = object(s, "Thing", "a", json!({"int64": 18_446_744_073_709_551_615_u64}));
    s.post(&path, big).await;
}

async fn texts_are_checked(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "short": {"type": "string", "maxLength": 3},
            "long": {"type": "string", "minLength": 3},
            "shaped": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
        }}),
    )
    .await;
    refused(s, &path, json!({"short": "äöüß"})).await;
    refused(s, &path, json!({"long": "äö"})).await;
    refused(s, &path, json!({"shaped": "A \"quote\""})).await;
    accepted(s, &path, json!({"short": "äöü", "long": "äöü", "shaped": "a-b"})).await;
}

async fn formats_are_checked(s: &mut Story) {
    let text = |format: &str| json!({"type": "string", "format": format});
    let path = thing(s, json!({"type": "object", "properties": {
        "date-time": text("date-time"), "date": text("date"), "email": text("email"), "ipv4": text("ipv4"), "ipv6": text("ipv6"),
        "uri": text("uri"), "uuid": text("uuid"), "cidr": text("cidr"), "mac": text("mac"), "byte": text("byte"),
        "duration": text("duration"), "hostname": text("hostname"), "made-up": text("made-up"), "password": text("password"),
    }}))
    .await;
    for format in [
        "date-time",
        "date",
        "email",
        "ipv4",
        "ipv6",
        "uri",
        "uuid",
        "cidr",
        "mac",
        "byte",
        "duration",
        "hostname",
        "made-up",
    ] {
        let object = object(s, "Thing", "a", json!({format: "!"}));
        s.post(&format!("{path}?dryRun=All"), object).await;
    }
    accepted(s, &path, json!({
        "date-time": "2001-01-01T00:00:00Z", "date": "2001-01-01", "email": "a@example.com", "ipv4": "10.0.0.1", "ipv6": "::1",
        "uri": "https://example.com/x", "uuid": "11111111-1111-4111-8111-111111111111", "cidr": "10.0.0.0/8",
        "mac": "00:11:22:33:44:55", "byte": "AAAA", "duration": "5m", "hostname": "example.com", "password": "x",
    }))
    .await;
}

async fn lists_are_checked(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "few": {"type": "array", "items": {"type": "integer"}, "maxItems": 2, "minItems": 1},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}},
        },
    }}))
    .await;
    refused(s, &path, json!({"few": []})).await;
    refused(s, &path, json!({"few": [1, 2, 3]})).await;
    refused(s, &path, json!({"set": ["a", "b", "a"]})).await;
    refused(s, &path, json!({"map": [{"k": "a"}, {"k": "b"}, {"k": "a", "v": "x"}]})).await;
    refused(s, &path, json!({"map": [{"v": "x"}]})).await;
    accepted(s, &path, json!({"few": [1], "set": ["a", "b"], "map": [{"k": "a"}]})).await;
}

async fn maps_are_checked(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "few": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1, "minProperties": 1},
        "short": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 2}},
    }}))
    .await;
    refused(s, &path, json!({"few": {}})).await;
    refused(s, &path, json!({"few": {"a": "1", "b": "2"}})).await;
    refused(s, &path, json!({"short": {"a/b c": "long"}})).await;
    accepted(s, &path, json!({"few": {"a": "1"}, "short": {"x": "y"}})).await;
}

async fn enums_are_checked(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "text": {"type": "string", "enum": ["a", "b", ""]},
            "number": {"type": "integer", "enum": [1, 2]},
            "null": {"type": "string", "nullable": true, "enum": ["a", null]},
        }}),
    )
    .await;
    refused(s, &path, json!({"text": "c"})).await;
    refused(s, &path, json!({"number": 3})).await;
    accepted(s, &path, json!({"text": "", "number": 2, "null": "a"})).await;
    refused(s, &path, json!({"null": null})).await;
    let odd = object(s, "Thing", "a", json!({"text": 5}));
    s.post(&path, odd).await.is(422);
}

async fn junctors_are_checked(s: &mut Story) {
    let path = thing(
        s,
        json!({
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "not": {"required": ["c"], "properties": {"c": {"maximum": 0}}},
            "allOf": [{"properties": {"a": {"maxLength": 2}}}],
            "anyOf": [{"properties": {"c": {"minimum": 5}}}, {"properties": {"c": {"maximum": 3}}}],
        }),
    )
    .await;
    refused(s, &path, json!({})).await;
    refused(s, &path, json!({"a": "x", "b": "y"})).await;
    refused(s, &path, json!({"a": "long"})).await;
    refused(s, &path, json!({"a": "x", "c": 0})).await;
    refused(s, &path, json!({"a": "x", "c": 4})).await;
    accepted(s, &path, json!({"a": "x", "c": 5})).await;
}

async fn required_fields_are_missed(s: &mut Story) {
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
        "type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string"}, "b": {"type": "string"},
            "deep": {"type": "object", "required": ["c"], "properties": {"c": {"type": "string"}}},
            "list": {"type": "array", "items": {"type": "object", "required": ["d"], "properties": {"d": {"type": "string"}}}},
        },
    }}});
    let path = {
        let definition = definition_with_schema(s, "Thing", schema);
        s.define(definition).await
    };
    refused(s, &path, json!({})).await;
    refused(s, &path, json!({"a": "x"})).await;
    refused(s, &path, json!({"a": "x", "b": "y", "deep": {}, "list": [{}, {"d": "z"}]})).await;
    let mut without = object(s, "Thing", "a", json!({}));
    without.as_object_mut().unwrap().remove("spec");
    s.post(&path, without).await.is(422);
}

async fn int_or_string(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"port": 80}))).await.is(201);
    s.post(WIDGETS, widget("b", json!({"port": "http"}))).await.is(201);
    s.post(WIDGETS, widget("c", json!({"port": true}))).await.is(422);
    s.post(WIDGETS, widget("d", json!({"port": 1.5}))).await.is(422);
    s.post(WIDGETS, widget("e", json!({"port": {"a": 1}}))).await.is(422);
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "port": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
            "size": {
                "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
                "pattern": "^[0-9]+Gi$",
            },
        }}),
    )
    .await;
    refused(s, &path, json!({"port": []})).await;
    refused(s, &path, json!({"size": "7Mi"})).await;
    accepted(s, &path, json!({"port": "x", "size": "7Gi"})).await;
    accepted(s, &path, json!({"port": 7, "size": 7})).await;
}

async fn embedded_objects(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "template": {
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            },
            "strict": {
                "type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
            },
        }}),
    )
    .await;
    let inner = json!({"apiVersion": "v1", "kind": "Anything", "metadata": {"name": "x", "labels": {"a": "b"}, "odd": 1}, "spec": {"a": "x", "z": 1}});
    accepted(s, &path, json!({"template": inner, "strict": inner})).await;
}

async fn embedded_objects_that_are_none(s: &mut Story) {
    let path = thing(
        s,
        json!({"type": "object", "properties": {
            "template": {
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            },
        }}),
    )
    .await;
    for template in [
        json!({}),
        json!({"apiVersion": "v1"}),
        json!({"apiVersion": "a/b/c", "kind": "Thing"}),
        json!({"apiVersion": "v1", "kind": "bad kind"}),
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"labels": {"a b": "c"}}}),
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "Bad Name"}}),
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": "text"}),
        json!({"apiVersion": 1, "kind": "Thing"}),
    ] {
        let object = object(s, "Thing", "a", json!({"template": template}));
        s.post(&format!("{path}?dryRun=All"), object).await;
    }
}

async fn many_mistakes_are_told_at_once(s: &mut Story) {
    let spec =
        json!({"size": 101, "color": "pink", "note": "much too long a note", "tags": ["a", "a"], "nested": {"a": 1}});
    s.post(WIDGETS, widget("a", spec)).await.is(422);
    let mut bad = widget("Bad Name", json!({"size": 101}));
    bad["metadata"]["labels"] = json!({"a b": "c"});
    s.post(WIDGETS, bad).await.is(422);
}

async fn a_missing_spec(s: &mut Story) {
    let mut without = widget("a", json!({}));
    without.as_object_mut().unwrap().remove("spec");
    s.post(WIDGETS, without.clone()).await.is(422).has("/details/causes/0/field", "spec");
    without["spec"] = "text".into();
    s.post(WIDGETS, without.clone()).await.is(422);
    without["spec"] = json!([]);
    s.post(WIDGETS, without).await.is(422);
}

async fn numbers_keep_their_shape(s: &mut Story) {
    let spec = json!({"free": {
        "one": 1, "float": 1.0, "half": 0.5, "big": i64::MAX, "tiny": 1e-9, "huge": 1e21, "negative": -0.0, "exp": 1e3,
    }});
    s.post(WIDGETS, widget("a", spec)).await.is(201);
    s.get(&format!("{WIDGETS}/a")).await.is(200);
    let body = r#"{"apiVersion":"suite.example.com/v1","kind":"Widget","metadata":{"name":"b"},"spec":{"size":1e1,"free":{"a":12345678901234567890,"b":1.10,"c":1E400}}}"#;
    s.send("POST", WIDGETS, &[("content-type", "application/json")], body).await;
}
