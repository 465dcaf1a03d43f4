//! Definitions of custom resources: what is accepted, what is refused, and how they live.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{DEFINITIONS, definition, definition_with_schema, object};

cases![
    a_definition_is_completed_and_accepted,
    a_definition_of_the_cluster,
    a_definition_is_changed_and_deleted,
    a_deleted_definition_takes_its_objects_along,
    names_that_are_taken,
    names_of_definitions_that_are_none,
    versions_of_definitions_that_make_no_sense,
    schemas_that_are_not_structural,
    schemas_with_forbidden_words,
    schemas_with_bad_defaults,
    schemas_with_bad_lists,
    columns_and_subresources_that_make_no_sense,
    selectable_fields_that_make_no_sense,
    a_definition_needs_a_schema,
    preserving_unknown_fields_is_over,
    conversion_that_makes_no_sense,
    what_must_not_change_in_a_definition,
    a_version_is_no_longer_served,
    a_schema_is_tightened,
];

async fn a_definition_is_completed_and_accepted(s: &mut Story) {
    let mut definition = definition(s, "Thing", json!({"type": "object"}));
    definition["spec"]["names"] =
        json!({"plural": "things", "kind": "Thing", "shortNames": ["tg"], "categories": ["all"]});
    let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
    s.post(DEFINITIONS, definition.clone()).await.is(201).has("/spec/names/singular", "thing");
    s.served(&definition).await;
    let path = format!("{DEFINITIONS}/{name}");
    let settled = s.until(&path, "established", |answer| answer.at("/status/conditions/1").is_object()).await;
    let conditions = settled.at("/status/conditions").as_array().cloned().unwrap_or_default();
    let mut conditions: Vec<_> =
        conditions.iter().map(|one| json!([one["type"], one["status"], one["reason"], one["message"]])).collect();
    conditions.sort_by_key(Value::to_string);
    s.record("conditions", conditions.into());
    for part in ["/status/acceptedNames", "/status/storedVersions", "/spec"] {
        s.record(part, settled.at(part).clone());
    }
    s.post(DEFINITIONS, definition).await.is(409);
}

async fn a_definition_of_the_cluster(s: &mut Story) {
    let mut definition = definition(s, "Moon", json!({"type": "object"}));
    definition["spec"]["scope"] = "Cluster".into();
    let path = s.define(definition).await;
    let moon = object(s, "Moon", "a", json!({}));
    s.post(&path, moon.clone()).await.is(201).has("/metadata/namespace", json!(null));
    s.get(&path).await.is(200);
    s.get(&format!("{path}/a")).await.is(200);
    s.post("/apis/{group}/v1/namespaces/{ns}/moons", moon.clone()).await.is(404);
    s.get("/apis/{group}/v1/namespaces/{ns}/moons").await.is(404);
    let mut placed = object(s, "Moon", "b", json!({}));
    placed["metadata"]["namespace"] = s.ns().into();
    s.post(&path, placed).await;
    s.delete(&format!("{path}/a")).await.is(200);
}

async fn a_definition_is_changed_and_deleted(s: &mut Story) {
    let definition = definition(s, "Thing", json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let path = s.define(definition.clone()).await;
    s.post(&path, object(s, "Thing", "a", json!({"a": "x", "b": "y"}))).await.is(201).has("/spec/b", json!(null));
    let one = format!("{DEFINITIONS}/{}", definition["metadata"]["name"].as_str().unwrap());
    let more = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/b", "value": {"type": "string", "default": "z"}}]);
    s.json_patch(&one, more).await.is(200).has("/metadata/generation", 2);
    s.eventually(&format!("{path}/a"), "defaulted", |answer| answer.at("/spec/b") == "z").await;
    s.delete(&one).await.is(200);
    s.gone(&one).await;
    s.until(&path, "gone", |answer| answer.code() == 404).await;
    s.get(&path).await.is(404);
}

async fn a_deleted_definition_takes_its_objects_along(s: &mut Story) {
    let definition = definition(s, "Thing", json!({"type": "object"}));
    let path = s.define(definition.clone()).await;
    let mut held = object(s, "Thing", "held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    s.post(&path, held).await.is(201);
    s.post(&path, object(s, "Thing", "free", json!({}))).await.is(201);
    let one = format!("{DEFINITIONS}/{}", definition["metadata"]["name"].as_str().unwrap());
    s.delete(&one).await.is(200);
    s.eventually(&format!("{path}/held"), "going", |answer| answer.at("/metadata/deletionTimestamp").is_string()).await;
    s.gone(&format!("{path}/free")).await;
    let refused = s.post(&path, object(s, "Thing", "new", json!({}))).await;
    refused.is(405);
    s.merge_patch(&format!("{path}/held"), json!({"metadata": {"finalizers": null}})).await.is(200);
    s.gone(&one).await;
}

async fn names_that_are_taken(s: &mut Story) {
    let first = definition(s, "Thing", json!({"type": "object"}));
    s.define(first.clone()).await;
    let mut second = definition(s, "Other", json!({"type": "object"}));
    second["spec"]["names"]["kind"] = "Thing".into();
    let name = second["metadata"]["name"].as_str().unwrap().to_owned();
    s.post(DEFINITIONS, second).await.is(201);
    let path = format!("{DEFINITIONS}/{name}");
    let settled = s.until(&path, "refused", |answer| answer.at("/status/conditions/1").is_object()).await;
    let conditions = settled.at("/status/conditions").as_array().cloned().unwrap_or_default();
    let mut conditions: Vec<_> =
        conditions.iter().map(|one| json!([one["type"], one["status"], one["reason"], one["message"]])).collect();
    conditions.sort_by_key(Value::to_string);
    s.record("conditions", conditions.into());
    s.record("accepted names", settled.at("/status/acceptedNames").clone());
    s.get("/apis/{group}/v1/namespaces/{ns}/others").await.is(404);
}

async fn refused(s: &mut Story, pointer: &str, value: Value) {
    let mut definition = definition(s, "Thing", json!({"type": "object"}));
    *definition.pointer_mut(pointer).unwrap() = value;
    s.post(DEFINITIONS, definition).await.is(422);
}

async fn names_of_definitions_that_are_none(s: &mut Story) {
    refused(s, "/metadata/name", "things".into()).await;
    refused(s, "/metadata/name", "others.example.com".into()).await;
    refused(s, "/spec/group", "UPPER.example.com".into()).await;
    refused(s, "/spec/group", "".into()).await;
    refused(s, "/spec/group", "single".into()).await;
    refused(s, "/spec/scope", "Galaxy".into()).await;
    refused(s, "/spec/names/kind", "lower_Case".into()).await;
    refused(s, "/spec/names/kind", "".into()).await;
    refused(s, "/spec/names/plural", "Things".into()).await;
    refused(s, "/spec/names/singular", "thing!".into()).await;
    refused(s, "/spec/names/listKind", "Thing".into()).await;
    let mut many = definition(s, "Thing", json!({"type": "object"}));
    many["spec"]["names"]["shortNames"] = json!(["OK?", "a b"]);
    many["spec"]["names"]["categories"] = json!(["Bad One"]);
    s.post(DEFINITIONS, many).await.is(422);
    let mut protected = definition(s, "Thing", json!({"type": "object"}));
    protected["spec"]["group"] = "suite.k8s.io".into();
    protected["metadata"]["name"] = "things.suite.k8s.io".into();
    s.post(DEFINITIONS, protected).await.is(422);
}

async fn versions_of_definitions_that_make_no_sense(s: &mut Story) {
    refused(s, "/spec/versions", json!([])).await;
    refused(s, "/spec/versions/0/name", "V1".into()).await;
    refused(s, "/spec/versions/0/name", "".into()).await;
    refused(s, "/spec/versions/0/storage", false.into()).await;
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": {"type": "object"}}});
    refused(s, "/spec/versions", json!([version("v1", true), version("v1", false)])).await;
    refused(s, "/spec/versions", json!([version("v1", true), version("v2", true)])).await;
}

async fn bad_schema(s: &mut Story, schema: Value) {
    let definition = definition_with_schema(s, "Thing", schema);
    s.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await.is(422);
}

async fn bad_spec(s: &mut Story, spec: Value) {
    let definition = definition(s, "Thing", spec);
    s.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await.is(422);
}

/// What one would not expect to be accepted.
async fn fine_spec(s: &mut Story, spec: Value) {
    let definition = definition(s, "Thing", spec);
    s.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await.is(201);
}

async fn schemas_that_are_not_structural(s: &mut Story) {
    bad_schema(s, json!({})).await;
    bad_schema(s, json!({"type": "string"})).await;
    bad_schema(s, json!({"type": "object", "properties": {"spec": {"properties": {"a": {"type": "string"}}}}})).await;
    bad_spec(s, json!({"type": "object", "properties": {"a": {}}})).await;
    bad_spec(s, json!({"type": "array"})).await;
    bad_spec(s, json!({"type": "array", "items": [{"type": "string"}]})).await;
    bad_spec(
        s,
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
    )
    .await;
    fine_spec(s, json!({"type": "object", "additionalProperties": false})).await;
    bad_spec(s, json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"b": {"type": "string"}}}]})).await;
    bad_spec(s, json!({"type": "object", "allOf": [{"type": "object"}]})).await;
    bad_spec(s, json!({"type": "object", "oneOf": [{"description": "x"}]})).await;
    bad_spec(s, json!({"type": "object", "not": {"default": 1}})).await;
    bad_spec(s, json!({"type": "strong"})).await;
    bad_spec(s, json!({"type": "null"})).await;
    bad_schema(s, json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}})).await;
    bad_schema(s, json!({"type": "object", "properties": {"apiVersion": {"type": "integer"}}})).await;
}

async fn schemas_with_forbidden_words(s: &mut Story) {
    bad_spec(s, json!({"type": "object", "$ref": "#/definitions/x"})).await;
    bad_spec(s, json!({"type": "object", "uniqueItems": true})).await;
    bad_spec(s, json!({"type": "object", "patternProperties": {"a": {"type": "string"}}})).await;
    bad_spec(s, json!({"type": "object", "dependencies": {"a": ["b"]}})).await;
    bad_spec(s, json!({"type": "object", "definitions": {"a": {"type": "string"}}})).await;
    bad_spec(s, json!({"type": "object", "id": "x"})).await;
    bad_spec(s, json!({"type": "array", "items": {"type": "string"}, "additionalItems": {"type": "string"}})).await;
    bad_spec(s, json!({"type": "string", "pattern": "("})).await;
    fine_spec(s, json!({"type": "string", "x-kubernetes-int-or-string": true})).await;
    bad_spec(s, json!({"type": "string", "x-kubernetes-embedded-resource": true})).await;
    bad_spec(s, json!({"type": "object", "x-kubernetes-embedded-resource": true})).await;
    bad_spec(s, json!({"type": "object", "x-kubernetes-preserve-unknown-fields": false})).await;
    bad_spec(s, json!({"type": "object", "x-kubernetes-map-type": "wild"})).await;
}

async fn schemas_with_bad_defaults(s: &mut Story) {
    bad_spec(s, json!({"type": "object", "properties": {"a": {"type": "string", "default": 1}}})).await;
    bad_spec(s, json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 3, "default": 4}}})).await;
    bad_spec(s, json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"], "default": "y"}}}))
        .await;
    bad_spec(s, json!({"type": "object", "default": {"unknown": 1}})).await;
    fine_spec(s, json!({"type": "object", "properties": {"a": {"type": "string", "default": null}}})).await;
    bad_schema(
        s,
        json!({"type": "object", "default": {}, "properties": {"metadata": {"type": "object", "default": {}}}}),
    )
    .await;
}

async fn schemas_with_bad_lists(s: &mut Story) {
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "deep": {"type": "object"}}});
    bad_spec(s, json!({"type": "array", "items": item, "x-kubernetes-list-type": "map"})).await;
    bad_spec(s, json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})).await;
    bad_spec(s, json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["other"]})).await;
    bad_spec(s, json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["deep"]})).await;
    bad_spec(s, json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})).await;
    bad_spec(s, json!({"type": "array", "items": item, "x-kubernetes-list-map-keys": ["name"]})).await;
    bad_spec(s, json!({"type": "array", "items": item, "x-kubernetes-list-type": "set"})).await;
    bad_spec(s, json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"})).await;
    bad_spec(s, json!({"type": "string", "x-kubernetes-list-type": "set"})).await;
}

async fn columns_and_subresources_that_make_no_sense(s: &mut Story) {
    for columns in [
        json!([{"name": "", "type": "string", "jsonPath": ".a"}]),
        json!([{"name": "A", "type": "text", "jsonPath": ".a"}]),
        json!([{"name": "A", "type": "string", "jsonPath": ""}]),
        json!([{"name": "A", "type": "string", "jsonPath": "a"}]),
        json!([{"name": "A", "type": "string", "jsonPath": ".a[", "format": "fancy"}]),
    ] {
        let mut definition = definition(s, "Thing", json!({"type": "object"}));
        definition["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
        s.post(DEFINITIONS, definition).await.is(422);
    }
    for scale in [
        json!({"specReplicasPath": "", "statusReplicasPath": ".status.r"}),
        json!({"specReplicasPath": ".status.r", "statusReplicasPath": ".spec.r"}),
        json!({"specReplicasPath": ".spec.r[0]", "statusReplicasPath": ".status.r", "labelSelectorPath": ".x"}),
    ] {
        let mut definition = definition(s, "Thing", json!({"type": "object"}));
        definition["spec"]["versions"][0]["subresources"] = json!({"scale": scale});
        s.post(DEFINITIONS, definition).await.is(422);
    }
}

async fn selectable_fields_that_make_no_sense(s: &mut Story) {
    let spec = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "deep": {"type": "object"}, "list": {"type": "array", "items": {"type": "string"}},
    }});
    for fields in [
        json!([{"jsonPath": ""}]),
        json!([{"jsonPath": ".spec.nothing"}]),
        json!([{"jsonPath": ".spec.deep"}]),
        json!([{"jsonPath": ".spec.list[0]"}]),
        json!([{"jsonPath": ".metadata.name"}]),
        json!([{"jsonPath": ".spec.text"}, {"jsonPath": ".spec.text"}]),
        json!([{"jsonPath": "spec.text"}]),
    ] {
        let mut definition = definition(s, "Thing", spec.clone());
        definition["spec"]["versions"][0]["selectableFields"] = fields;
        s.post(DEFINITIONS, definition).await.is(422);
    }
}

async fn a_definition_needs_a_schema(s: &mut Story) {
    let mut definition = definition(s, "Thing", json!({"type": "object"}));
    definition["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    s.post(DEFINITIONS, definition.clone()).await.is(422);
    definition["spec"]["versions"][0]["schema"] = json!({});
    s.post(DEFINITIONS, definition.clone()).await.is(422);
    definition["spec"]["versions"][0]["schema"] = json!({"openAPIV3Schema": "text"});
    s.post(DEFINITIONS, definition.clone()).await.is(400);
    definition["spec"]["versions"] = "text".into();
    s.post(DEFINITIONS, definition).await.is(400);
    s.post(DEFINITIONS, json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b.c"}})).await.is(422);
}

async fn preserving_unknown_fields_is_over(s: &mut Story) {
    let mut definition = definition(s, "Thing", json!({"type": "object"}));
    definition["spec"]["preserveUnknownFields"] = true.into();
    s.post(DEFINITIONS, definition).await.is(422);
}

async fn conversion_that_makes_no_sense(s: &mut Story) {
    for conversion in [
        json!({"strategy": "Magic"}),
        json!({"strategy": "Webhook"}),
        json!({"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
    ] {
        let mut definition = definition(s, "Thing", json!({"type": "object"}));
        definition["spec"]["conversion"] = conversion;
        s.post(DEFINITIONS, definition).await.is(422);
    }
}

async fn what_must_not_change_in_a_definition(s: &mut Story) {
    let definition = definition(s, "Thing", json!({"type": "object"}));
    s.define(definition.clone()).await;
    let one = format!("{DEFINITIONS}/{}", definition["metadata"]["name"].as_str().unwrap());
    s.merge_patch(&one, json!({"spec": {"group": "other.example.com"}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"scope": "Cluster"}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"names": {"kind": "Other"}}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"names": {"plural": "others"}}})).await.is(422);
    let version =
        json!({"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}});
    s.merge_patch(&one, json!({"spec": {"versions": [version]}})).await.is(422).says("storedVersions");
}

async fn a_version_is_no_longer_served(s: &mut Story) {
    let mut definition = definition(s, "Thing", json!({"type": "object"}));
    let version =
        json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}});
    definition["spec"]["versions"].as_array_mut().unwrap().push(version);
    let path = s.define(definition.clone()).await;
    s.post(&path, object(s, "Thing", "a", json!({}))).await.is(201);
    let second = path.replace("/v1/", "/v2/");
    s.get(&format!("{second}/a")).await.is(200);
    let one = format!("{DEFINITIONS}/{}", definition["metadata"]["name"].as_str().unwrap());
    s.json_patch(&one, json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}])).await.is(200);
    s.gone(&format!("{second}/a")).await;
    s.get(&format!("{path}/a")).await.is(200);
}

async fn a_schema_is_tightened(s: &mut Story) {
    let definition = definition(
        s,
        "Thing",
        json!({"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}},
        }}),
    );
    let path = s.define(definition.clone()).await;
    s.post(&path, object(s, "Thing", "a", json!({"a": "long", "b": "x", "list": ["long"]}))).await.is(201);
    let one = format!("{DEFINITIONS}/{}", definition["metadata"]["name"].as_str().unwrap());
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let tighter = json!([
        {"op": "add", "path": format!("{properties}/a/maxLength"), "value": 2},
        {"op": "add", "path": format!("{properties}/list/items/maxLength"), "value": 2},
    ]);
    s.json_patch(&one, tighter).await.is(200);
    let refusal = object(s, "Thing", "probe", json!({"a": "long"})).to_string();
    for _ in 0..200 {
        let probe = s
            .ask("POST", &format!("{path}?dryRun=All"), &[("content-type", "application/json")], refusal.clone())
            .await;
        if probe.code() == 422 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // What was there and does not change is left in peace.
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"b": "y"}})).await.is(200);
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"a": "longer"}})).await.is(422);
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"list": ["long", "new"]}})).await;
    s.post(&path, object(s, "Thing", "b", json!({"a": "long"}))).await.is(422);
}
