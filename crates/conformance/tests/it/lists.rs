//! Lists: selectors, pages, revisions, and other shapes of the answer.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{MAPS, SECRETS, WIDGETS, encoded, map, secret, widget};

cases![
    labels_select,
    label_selectors_that_are_none,
    fields_select,
    fields_of_custom_objects_select,
    field_selectors_that_are_none,
    pages_are_of_one_moment,
    pages_of_custom_objects,
    pages_with_a_selector,
    limits_that_make_no_sense,
    continue_tokens_that_are_foreign,
    revisions_and_how_they_match,
    revisions_that_make_no_sense,
    one_object_at_a_revision,
    metadata_only,
    a_table_of_configmaps,
    a_table_of_custom_objects,
    a_table_of_other_built_ins,
    a_table_with_or_without_objects,
    a_table_without_columns,
    columns_of_many_types,
    answers_nobody_can_give,
    answers_in_other_formats,
];

fn labelled(mut object: Value, labels: Value) -> Value {
    object["metadata"]["labels"] = labels;
    object
}

async fn labels_select(s: &mut Story) {
    s.post(SECRETS, labelled(secret("a"), json!({"tier": "web", "env": "prod"}))).await.is(201);
    s.post(SECRETS, labelled(secret("b"), json!({"tier": "db", "env": "prod"}))).await.is(201);
    s.post(SECRETS, labelled(secret("c"), json!({"tier": "web", "empty": ""}))).await.is(201);
    for selector in [
        "tier=web",
        "tier==web",
        "tier!=web",
        "tier in (web, db)",
        "tier notin (web)",
        "env",
        "!env",
        "tier=web,env=prod",
        " tier = web , env ",
        "empty=",
        "tier in (web),env notin (dev,test)",
        "size>1",
        "",
    ] {
        let encoded = encoded(selector);
        s.get(&format!("{SECRETS}?labelSelector={encoded}")).await.is(200);
    }
}

async fn label_selectors_that_are_none(s: &mut Story) {
    for selector in [
        "a===b",
        "a=b=c",
        "=b",
        "a in b",
        "a in ()",
        "a in (b",
        "a,,b",
        "a b",
        "!",
        "a>x",
        "Bad Key=x",
        "a=-b",
        "/a=b",
        ",",
    ] {
        let encoded = encoded(selector);
        s.get(&format!("{SECRETS}?labelSelector={encoded}")).await;
        s.get(&format!("{WIDGETS}?labelSelector={encoded}")).await;
    }
}

async fn fields_select(s: &mut Story) {
    for name in ["a", "b", "c"] {
        s.post(SECRETS, secret(name)).await.is(201);
    }
    for selector in [
        "metadata.name=b",
        "metadata.name==b",
        "metadata.name!=b",
        "metadata.name=b,metadata.namespace=fields-select",
        "metadata.namespace=elsewhere",
        "metadata.name=",
        "",
    ] {
        let encoded = encoded(selector);
        s.get(&format!("{SECRETS}?fieldSelector={encoded}")).await.is(200);
    }
    s.post(SECRETS, json!({"metadata": {"name": "x"}, "type": "example.com/one"})).await.is(201);
    s.post(SECRETS, json!({"metadata": {"name": "y"}, "type": "example.com/two"})).await.is(201);
    let typed = s.get(&format!("{SECRETS}?fieldSelector=type%3Dexample.com%2Ftwo")).await;
    typed.is(200).has("/items/0/metadata/name", "y");
    s.get("/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3Dfields-select").await.is(200);
}

async fn fields_of_custom_objects_select(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"color": "red"}))).await.is(201);
    s.post(WIDGETS, widget("b", json!({"color": "blue"}))).await.is(201);
    s.post(WIDGETS, widget("c", json!({}))).await.is(201);
    for selector in ["spec.color=red", "spec.color!=red", "metadata.name=b", "spec.color=red,metadata.name=c"] {
        let encoded = encoded(selector);
        s.get(&format!("{WIDGETS}?fieldSelector={encoded}")).await.is(200);
    }
}

async fn field_selectors_that_are_none(s: &mut Story) {
    for selector in ["metadata.uid=x", "spec.size=1", "nothing", "a=b=c", "=", "metadata.name>1", "metadata.name=a\\"] {
        let encoded = encoded(selector);
        s.get(&format!("{SECRETS}?fieldSelector={encoded}")).await;
        s.get(&format!("{WIDGETS}?fieldSelector={encoded}")).await;
        // Namespaces are everybody's: the list itself is different each time.
        let answer = s.ask("GET", &format!("/api/v1/namespaces?fieldSelector={encoded}"), &[], "").await;
        s.record("namespaces", json!([answer.code(), answer.at("/reason"), answer.at("/message")]));
    }
}

async fn pages_are_of_one_moment(s: &mut Story) {
    for name in ["a", "b", "c", "d", "e"] {
        s.post(SECRETS, secret(name)).await.is(201);
    }
    let first = s.get(&format!("{SECRETS}?limit=2")).await;
    first.is(200).has("/metadata/remainingItemCount", 3);
    s.delete(&format!("{SECRETS}/d")).await.is(200);
    s.post(SECRETS, secret("c2")).await.is(201);
    let second = s.get(&format!("{SECRETS}?limit=2&continue={}", first.text("/metadata/continue"))).await;
    second.is(200).has("/items/1/metadata/name", "d");
    let third = s.get(&format!("{SECRETS}?limit=2&continue={}", second.text("/metadata/continue"))).await;
    third.is(200).has("/items/1", json!(null)).has("/metadata/continue", json!(null));
    s.get(&format!("{SECRETS}?continue={}", first.text("/metadata/continue"))).await.is(200);
    s.get(&format!("{SECRETS}?limit=500")).await.is(200);
}

async fn pages_of_custom_objects(s: &mut Story) {
    for name in ["a", "b", "c"] {
        s.post(WIDGETS, widget(name, json!({}))).await.is(201);
    }
    let first = s.get(&format!("{WIDGETS}?limit=1")).await;
    let second = s.get(&format!("{WIDGETS}?limit=1&continue={}", first.text("/metadata/continue"))).await;
    s.get(&format!("{WIDGETS}?limit=1&continue={}", second.text("/metadata/continue"))).await.is(200);
    s.get(&format!("{WIDGETS}?limit=3")).await.is(200);
}

async fn pages_with_a_selector(s: &mut Story) {
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red"), ("d", "blue"), ("e", "red")] {
        s.post(SECRETS, labelled(secret(name), json!({"color": color}))).await.is(201);
    }
    let selector = "labelSelector=color%3Dred";
    let first = s.get(&format!("{SECRETS}?limit=2&{selector}")).await;
    first.is(200).has("/metadata/remainingItemCount", json!(null));
    s.get(&format!("{SECRETS}?limit=2&{selector}&continue={}", first.text("/metadata/continue"))).await.is(200);
}

async fn limits_that_make_no_sense(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    s.post(SECRETS, secret("b")).await.is(201);
    for limit in ["0", "-1", "x", "1.5", "99999999999999999999"] {
        s.get(&format!("{SECRETS}?limit={limit}")).await;
        s.get(&format!("{WIDGETS}?limit={limit}")).await;
    }
}

async fn continue_tokens_that_are_foreign(s: &mut Story) {
    for name in ["a", "b"] {
        s.post(SECRETS, secret(name)).await.is(201);
        s.post(WIDGETS, widget(name, json!({}))).await.is(201);
    }
    let token = s.get(&format!("{SECRETS}?limit=1")).await.text("/metadata/continue");
    s.get(&format!("{SECRETS}?limit=1&continue={token}&resourceVersion=7")).await.is(400);
    s.get(&format!("{SECRETS}?limit=1&continue={token}&resourceVersionMatch=Exact")).await;
    s.get(&format!("{WIDGETS}?limit=1&continue={token}")).await;
    for garbage in ["garbage", "e30", "bm90IGpzb24", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTUsInN0YXJ0IjoiYVx1MDAwMCJ9"]
    {
        s.get(&format!("{SECRETS}?limit=1&continue={garbage}")).await;
        s.get(&format!("{WIDGETS}?limit=1&continue={garbage}")).await;
    }
    s.get(&format!("{SECRETS}?watch=true&continue={token}&timeoutSeconds=1")).await;
}

async fn revisions_and_how_they_match(s: &mut Story) {
    for (path, one, two) in
        [(SECRETS, secret("a"), secret("b")), (WIDGETS, widget("a", json!({})), widget("b", json!({})))]
    {
        let first = s.post(path, one).await.revision();
        let second = s.post(path, two).await.revision();
        s.get(&format!("{path}?resourceVersion={first}&resourceVersionMatch=Exact"))
            .await
            .is(200)
            .has("/items/1", json!(null));
        s.get(&format!("{path}?resourceVersion={second}&resourceVersionMatch=Exact")).await.is(200);
        s.get(&format!("{path}?resourceVersion={second}&resourceVersionMatch=NotOlderThan")).await.is(200);
        s.get(&format!("{path}?resourceVersion={second}")).await.is(200);
        s.get(&format!("{path}?limit=1&resourceVersion={first}&resourceVersionMatch=Exact")).await.is(200);
        s.get(&format!("{path}?limit=1&resourceVersion={second}&resourceVersionMatch=NotOlderThan")).await.is(200);
    }
}

async fn revisions_that_make_no_sense(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    for path in [SECRETS, WIDGETS] {
        for options in [
            "resourceVersion=x",
            "resourceVersion=-1",
            "resourceVersionMatch=Exact",
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersion=1&resourceVersionMatch=Roughly",
            "resourceVersionMatch=NotOlderThan",
        ] {
            s.get(&format!("{path}?{options}")).await;
        }
    }
}

async fn one_object_at_a_revision(s: &mut Story) {
    for (path, one) in [(SECRETS, secret("a")), (WIDGETS, widget("a", json!({})))] {
        let made = s.post(path, one).await;
        s.get(&format!("{path}/a?resourceVersion={}", made.revision())).await.is(200);
        s.get(&format!("{path}/a?resourceVersion=x")).await;
        s.get(&format!("{path}/nobody?resourceVersion={}", made.revision())).await.is(404);
    }
}

async fn metadata_only(s: &mut Story) {
    let one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let many = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    s.post(SECRETS, labelled(secret("a"), json!({"a": "b"}))).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    for path in [SECRETS, WIDGETS] {
        s.get_as(&format!("{path}/a"), one).await.is(200).has("/kind", "PartialObjectMetadata");
        s.get_as(path, many).await.is(200).has("/kind", "PartialObjectMetadataList");
        s.get_as(&format!("{path}?limit=1"), many).await.is(200);
        s.get_as(&format!("{path}/nobody"), one).await.is(404);
        s.get_as(path, one).await;
        s.get_as(&format!("{path}/a"), many).await;
        let headers = [("content-type", "application/merge-patch+json"), ("accept", one)];
        s.send("PATCH", &format!("{path}/a"), &headers, r#"{"metadata":{"labels":{"c":"d"}}}"#).await.is(200);
        s.send("DELETE", &format!("{path}/a"), &[("accept", one)], "").await.is(200);
    }
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn a_table_of_configmaps(s: &mut Story) {
    let mut full = map("a");
    full["data"] = json!({"x": "1", "y": "2"});
    full["binaryData"] = json!({"z": "AAAA"});
    s.post(MAPS, full).await.is(201);
    s.get_as(&format!("{MAPS}?fieldSelector=metadata.name%3Da"), TABLE)
        .await
        .is(200)
        .has("/kind", "Table")
        .has("/rows/0/cells/1", 3);
    s.get_as(&format!("{MAPS}/a"), TABLE).await.is(200);
    s.get_as(&format!("{MAPS}/nobody"), TABLE).await.is(404);
    s.get_as(&format!("{MAPS}?limit=1&fieldSelector=metadata.name%3Dnobody"), TABLE).await.is(200);
}

async fn a_table_of_custom_objects(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"size": 3, "tags": ["x", "y"]}))).await.is(201);
    s.post(WIDGETS, widget("b", json!({}))).await.is(201);
    s.get_as(WIDGETS, TABLE).await.is(200).has("/rows/0/cells/2", 3).has("/rows/1/cells/2", json!(null));
    s.get_as(&format!("{WIDGETS}/a"), TABLE).await.is(200);
    s.get_as(&format!("{WIDGETS}?limit=1"), TABLE).await.is(200);
}

async fn a_table_of_other_built_ins(s: &mut Story) {
    s.post("/api/v1/namespaces/{ns}/secrets", json!({"metadata": {"name": "a"}, "stringData": {"k": "v"}}))
        .await
        .is(201);
    s.get_as("/api/v1/namespaces/{ns}/secrets", TABLE).await.is(200);
    s.get_as("/api/v1/namespaces/{ns}", TABLE).await.is(200);
    s.post("/api/v1/namespaces/{ns}/serviceaccounts", json!({"metadata": {"name": "a"}, "secrets": [{"name": "x"}]}))
        .await
        .is(201);
    s.get_as("/api/v1/namespaces/{ns}/serviceaccounts/a", TABLE).await.is(200);
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    s.post("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", lease).await.is(201);
    s.get_as("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", TABLE).await.is(200);
    s.get_as("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.suite.example.com", TABLE).await.is(200);
    let event = json!({
        "metadata": {"name": "a"}, "type": "Normal", "reason": "Tested", "message": "It was tested.",
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": s.ns()},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 2, "source": {"component": "suite"},
    });
    s.post("/api/v1/namespaces/{ns}/events", event).await.is(201);
    s.get_as("/api/v1/namespaces/{ns}/events", TABLE).await.is(200);
}

async fn a_table_with_or_without_objects(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    for path in [SECRETS, WIDGETS] {
        for include in ["None", "Metadata", "Object", "Other"] {
            s.get_as(&format!("{path}?includeObject={include}"), TABLE).await;
        }
        s.get_as(path, "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json").await;
        s.get_as(path, "application/json;as=Table;v=v7;g=meta.k8s.io").await;
        s.get_as(path, "application/json;as=Chair;v=v1;g=meta.k8s.io").await;
    }
}

async fn a_table_without_columns(s: &mut Story) {
    let path = s.define(crate::samples::definition(s, "Plain", json!({"type": "object"}))).await;
    s.post(&path, crate::samples::object(s, "Plain", "a", json!({}))).await.is(201);
    s.get_as(&path, TABLE).await.is(200).has("/columnDefinitions/1/name", "Age");
}

async fn columns_of_many_types(s: &mut Story) {
    let mut definition = crate::samples::definition(
        s,
        "Column",
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    );
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
        {"name": "Whole", "type": "integer", "jsonPath": ".spec.whole", "format": "int64"},
        {"name": "Number", "type": "number", "jsonPath": ".spec.number"},
        {"name": "Truth", "type": "boolean", "jsonPath": ".spec.truth"},
        {"name": "When", "type": "date", "jsonPath": ".spec.when"},
        {"name": "First", "type": "string", "jsonPath": ".spec.list[0].name"},
        {"name": "All", "type": "string", "jsonPath": ".spec.list[*].name"},
        {"name": "Ready", "type": "string", "jsonPath": ".spec.list[?(@.type==\"Ready\")].name"},
        {"name": "Map", "type": "string", "jsonPath": ".spec.map"},
        {"name": "Label", "type": "string", "jsonPath": ".metadata.labels['example\\.com/x']"},
    ]);
    let path = s.define(definition).await;
    let full = json!({
        "text": "word", "whole": 7, "number": 1.5, "truth": true, "when": "2001-01-01T00:00:00Z",
        "list": [{"name": "n1", "type": "Other"}, {"name": "n2", "type": "Ready"}], "map": {"a": "b"},
    });
    s.post(&path, labelled(crate::samples::object(s, "Column", "full", full), json!({"example.com/x": "y"})))
        .await
        .is(201);
    let odd = json!({"text": 5, "whole": "seven", "number": "x", "truth": "yes", "when": "yesterday", "list": "none", "map": [1, "a"]});
    s.post(&path, crate::samples::object(s, "Column", "odd", odd)).await.is(201);
    s.post(&path, crate::samples::object(s, "Column", "void", json!({}))).await.is(201);
    s.get_as(&format!("{path}/full?includeObject=None"), TABLE).await.is(200);
    s.get_as(&format!("{path}/void?includeObject=None"), TABLE).await.is(200);
    s.get_as(&format!("{path}/odd?includeObject=None"), TABLE).await.is(200);
}

async fn answers_nobody_can_give(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    for path in [SECRETS, WIDGETS] {
        s.get_as(path, "text/plain").await.is(406);
        s.get_as(path, "application/xml, text/html").await.is(406);
        s.get_as(path, "*/*").await.is(200);
        s.get_as(path, "application/*").await;
        s.get_as(path, "text/html, application/json;q=0.5").await;
        s.get_as(path, "application/json;charset=utf-8").await;
    }
}

async fn answers_in_other_formats(s: &mut Story) {
    s.post(SECRETS, secret("a")).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    for path in [SECRETS, WIDGETS] {
        let answer = s.ask("GET", &format!("{path}/a"), &[("accept", "application/yaml")], "").await;
        answer.is(200);
        let yaml: Value = serde_saphyr::from_str(answer.body().as_str().unwrap_or_default()).unwrap_or_default();
        s.record("the object, read from YAML", yaml);
        let pretty = s.ask("GET", &format!("{path}/a?pretty=true"), &[], "").await;
        s.record("pretty", pretty.body().clone());
    }
    s.get_as(&format!("{WIDGETS}/a"), "application/vnd.kubernetes.protobuf").await.is(406);
    s.get_as(&format!("{WIDGETS}/a"), "application/vnd.kubernetes.protobuf,application/json").await.is(200);
}
