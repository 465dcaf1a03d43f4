//! Server-side apply: who owns which field, and what happens when two want the same.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{MAPS, WIDGETS, map, map_of, widget};

cases![
    apply_creates_and_changes,
    apply_needs_a_manager,
    apply_takes_yaml,
    apply_that_is_none,
    apply_refuses_managed_fields,
    applying_the_same_again_changes_nothing,
    what_is_no_longer_applied_is_removed,
    what_others_own_is_not_removed,
    a_conflict_names_the_owner,
    a_conflict_can_be_forced,
    equal_values_are_shared,
    an_update_takes_fields_over,
    what_was_there_before_the_first_apply_has_an_owner,
    list_maps_are_merged_by_their_keys,
    a_list_map_needs_its_keys_once,
    sets_are_merged_by_value,
    a_set_has_no_duplicates,
    atomic_lists_and_maps_have_one_owner,
    granular_maps_are_merged,
    defaults_are_owned_by_nobody_who_applied,
    null_in_an_apply,
    the_status_has_managers_of_its_own,
    managed_fields_can_be_cleared,
    managed_fields_that_make_no_sense,
    apply_on_a_condition,
    apply_to_built_ins,
    apply_of_what_the_schema_does_not_know,
    apply_of_a_wrong_type,
    apply_under_another_name,
    a_dry_apply,
    finalizers_and_owners_are_applied_one_by_one,
    a_manager_that_owns_nothing_is_forgotten,
];

fn by(path: &str, manager: &str) -> String {
    format!("{path}?fieldManager={manager}")
}

fn forced(path: &str, manager: &str) -> String {
    format!("{path}?fieldManager={manager}&force=true")
}

fn labelled(mut object: Value, labels: Value) -> Value {
    object["metadata"]["labels"] = labels;
    object
}

const A: &str = "/apis/suite.example.com/v1/namespaces/{ns}/widgets/a";
const MAP: &str = "/api/v1/namespaces/{ns}/configmaps/a";

async fn apply_creates_and_changes(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await.is(201);
    s.apply(&by(A, "one"), widget("a", json!({"size": 2}))).await.is(200).has("/metadata/generation", 2);
    s.apply(&by(MAP, "one"), map_of("a", json!({"k": "v"}))).await.is(201);
    s.apply(&by(MAP, "one"), map_of("a", json!({"k": "w"}))).await.is(200);
}

async fn apply_needs_a_manager(s: &mut Story) {
    s.apply(A, widget("a", json!({}))).await.is(422).says("fieldManager");
    s.apply(&by(A, ""), widget("a", json!({}))).await.is(422);
    s.apply(&by(A, &"x".repeat(129)), widget("a", json!({}))).await.is(422);
    s.apply(&format!("{MAP}?force=true"), map("a")).await.is(422);
}

async fn apply_takes_yaml(s: &mut Story) {
    let yaml = "apiVersion: suite.example.com/v1\nkind: Widget\nmetadata:\n  name: a\nspec:\n  size: 3 # a remark\n  tags: [x]\n";
    s.send("PATCH", &by(A, "one"), &[("content-type", "application/apply-patch+yaml")], yaml).await.is(201);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  text: |\n    two\n    lines\n";
    s.send("PATCH", &by(MAP, "one"), &[("content-type", "application/apply-patch+yaml")], yaml).await.is(201);
}

async fn apply_that_is_none(s: &mut Story) {
    for path in [by(A, "one"), by(MAP, "one")] {
        for body in ["", "{", "text", "[]", "a: b: c", "{}"] {
            s.send("PATCH", &path, &[("content-type", "application/apply-patch+yaml")], body).await;
        }
    }
    s.apply(&by(A, "one"), json!({"apiVersion": "suite.example.com/v1", "kind": "Widget"})).await;
    s.apply(&by(A, "one"), json!({"apiVersion": "suite.example.com/v1", "kind": "Widget", "spec": {}})).await;
    s.apply(&by(A, "one"), json!({"kind": "Widget", "metadata": {"name": "a"}, "spec": {}})).await;
    s.apply(&by(A, "one"), json!({"apiVersion": "suite.example.com/v1", "metadata": {"name": "a"}})).await;
    s.apply(&by(MAP, "one"), json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})).await;
    s.apply(&by(MAP, "one"), json!({"apiVersion": "v7", "kind": "ConfigMap", "metadata": {"name": "a"}})).await;
}

async fn apply_refuses_managed_fields(s: &mut Story) {
    for (path, body) in [(A, widget("a", json!({}))), (MAP, map("a"))] {
        let mut found = s.apply(&by(path, "one"), body).await.body().clone();
        found["metadata"]["labels"] = json!({"a": "b"});
        s.apply(&by(path, "one"), found.clone()).await;
        found["metadata"]["managedFields"] = json!([]);
        s.apply(&by(path, "one"), found).await;
    }
}

async fn applying_the_same_again_changes_nothing(s: &mut Story) {
    let config = labelled(widget("a", json!({"size": 1, "tags": ["x"], "ports": [{"name": "p"}]})), json!({"a": "b"}));
    let first = s.apply(&by(A, "one"), config.clone()).await;
    s.apply(&by(A, "one"), config.clone()).await.is(200).has("/metadata/resourceVersion", first.revision());
    s.apply(&by(A, "two"), config.clone()).await.is(200);
    s.apply(&by(A, "two"), config).await.is(200);
    let first = s.apply(&by(MAP, "one"), map_of("a", json!({"k": "v"}))).await;
    let again = s.apply(&by(MAP, "one"), map_of("a", json!({"k": "v"}))).await;
    again.is(200).has("/metadata/resourceVersion", first.revision());
}

async fn what_is_no_longer_applied_is_removed(s: &mut Story) {
    let full =
        json!({"size": 1, "note": "x", "tags": ["x", "y"], "limits": {"a": "1", "b": "2"}, "nested": {"a": "1"}});
    s.apply(&by(A, "one"), labelled(widget("a", full), json!({"a": "b"}))).await.is(201);
    let less = json!({"size": 1, "tags": ["y"], "limits": {"b": "2"}});
    let left = s.apply(&by(A, "one"), widget("a", less)).await;
    left.is(200).has("/spec/note", json!(null)).has("/spec/limits", json!({"b": "2"}));
    s.apply(&by(A, "one"), widget("a", json!({}))).await.is(200);
    s.apply(&by(MAP, "one"), map_of("a", json!({"k": "v", "l": "w"}))).await.is(201);
    s.apply(&by(MAP, "one"), map_of("a", json!({"l": "w"}))).await.has("/data", json!({"l": "w"}));
    s.apply(&by(MAP, "one"), map("a")).await.has("/data", json!(null));
}

async fn what_others_own_is_not_removed(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1, "note": "x"}))).await.is(201);
    s.apply(&by(A, "two"), widget("a", json!({"note": "x"}))).await.is(200);
    s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await.is(200).has("/spec/note", "x");
    s.apply(&by(A, "two"), widget("a", json!({}))).await.is(200).has("/spec/note", json!(null));
}

async fn a_conflict_names_the_owner(s: &mut Story) {
    s.apply(&by(A, "one"), labelled(widget("a", json!({"size": 1, "note": "x"})), json!({"a": "b"}))).await.is(201);
    s.apply(&by(A, "two"), widget("a", json!({"size": 2}))).await.is(409).has("/reason", "Conflict");
    let both = labelled(widget("a", json!({"size": 2, "note": "y"})), json!({"a": "c"}));
    s.apply(&by(A, "two"), both.clone()).await.is(409);
    s.apply(&forced(A, "three"), widget("a", json!({"size": 3}))).await.is(200);
    s.apply(&by(A, "two"), both).await.is(409);
    s.apply(&by(MAP, "one"), map_of("a", json!({"k": "v"}))).await.is(201);
    s.apply(&by(MAP, "two"), map_of("a", json!({"k": "w"}))).await.is(409);
    s.merge_patch(&by(MAP, "patcher"), json!({"data": {"l": "x"}})).await.is(200);
    s.apply(&by(MAP, "two"), map_of("a", json!({"l": "y"}))).await.is(409).says("patcher");
}

async fn a_conflict_can_be_forced(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1, "note": "x"}))).await.is(201);
    s.apply(&forced(A, "two"), widget("a", json!({"size": 2}))).await.is(200).has("/spec/size", 2);
    s.apply(&by(A, "one"), widget("a", json!({"note": "x"}))).await.is(200).has("/spec/size", 2);
    s.apply(&format!("{}&force=false", by(A, "one")), widget("a", json!({"size": 9}))).await.is(409);
    s.apply(&format!("{}&force=maybe", by(A, "one")), widget("a", json!({"size": 9}))).await;
}

async fn equal_values_are_shared(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await.is(201);
    s.apply(&by(A, "two"), widget("a", json!({"size": 1}))).await.is(200);
    s.apply(&by(A, "two"), widget("a", json!({"size": 2}))).await.is(409);
    s.apply(&forced(A, "two"), widget("a", json!({"size": 2}))).await.is(200);
    s.apply(&by(A, "one"), widget("a", json!({"size": 2}))).await.is(200);
}

async fn an_update_takes_fields_over(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1, "note": "x"}))).await.is(201);
    s.merge_patch(&by(A, "patcher"), json!({"spec": {"size": 2}})).await.is(200);
    s.apply(&by(A, "one"), widget("a", json!({"size": 1, "note": "x"}))).await.is(409);
    s.apply(&by(A, "one"), widget("a", json!({"note": "x"}))).await.is(200).has("/spec/size", 2);
    let mut found = s.get(A).await.body().clone();
    found["spec"]["note"] = "y".into();
    found["spec"]["replicas"] = 3.into();
    s.put(&by(A, "putter"), found).await.is(200);
    s.merge_patch(&by(A, "patcher"), json!({"spec": {"note": null}})).await.is(200);
}

async fn what_was_there_before_the_first_apply_has_an_owner(s: &mut Story) {
    s.post(&by(WIDGETS, "creator"), widget("a", json!({"size": 1, "note": "x"}))).await.is(201);
    // Without managers, as objects of old are.
    s.merge_patch(A, json!({"metadata": {"managedFields": [{}]}}))
        .await
        .is(200)
        .has("/metadata/managedFields", json!(null));
    s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await.is(200);
    s.apply(&by(A, "one"), widget("a", json!({"size": 2}))).await.is(409).says("before-first-apply");
    s.apply(&forced(A, "one"), widget("a", json!({"size": 2}))).await.is(200);
}

async fn list_maps_are_merged_by_their_keys(s: &mut Story) {
    let ports = |ports: Value| widget("a", json!({"ports": ports}));
    s.apply(&by(A, "one"), ports(json!([{"name": "a", "number": 1}, {"name": "b", "number": 2}]))).await.is(201);
    s.apply(&by(A, "two"), ports(json!([{"name": "c", "number": 3}, {"name": "a", "protocol": "UDP"}]))).await.is(200);
    s.apply(&by(A, "two"), ports(json!([{"name": "b", "number": 9}]))).await.is(409).says("name=\"b\"");
    s.apply(&by(A, "one"), ports(json!([{"name": "b", "number": 2}, {"name": "d"}]))).await.is(200);
    s.apply(&by(A, "two"), ports(json!([]))).await.is(200);
}

async fn a_list_map_needs_its_keys_once(s: &mut Story) {
    let ports = |ports: Value| widget("a", json!({"ports": ports}));
    s.apply(&by(A, "one"), ports(json!([{"name": "a"}, {"name": "a"}]))).await;
    s.apply(&by(A, "one"), ports(json!([{"number": 1}]))).await;
    s.apply(&by(A, "one"), ports(json!([{"name": "a", "protocol": "TCP"}, {"name": "a"}]))).await;
    s.apply(&by(A, "one"), ports(json!(["text"]))).await;
    s.apply(&by(A, "one"), ports(json!({"name": "a"}))).await;
    s.get(WIDGETS).await.is(200);
}

async fn sets_are_merged_by_value(s: &mut Story) {
    let tags = |tags: Value| widget("a", json!({"tags": tags}));
    s.apply(&by(A, "one"), tags(json!(["a", "b"]))).await.is(201);
    s.apply(&by(A, "two"), tags(json!(["c", "b"]))).await.is(200);
    s.apply(&by(A, "one"), tags(json!(["a"]))).await.is(200);
    s.apply(&by(A, "two"), tags(json!(["c"]))).await.is(200);
    s.apply(&by(A, "one"), tags(json!(["z", "a", "c"]))).await.is(200);
}

async fn a_set_has_no_duplicates(s: &mut Story) {
    let tags = |tags: Value| widget("a", json!({"tags": tags}));
    s.apply(&by(A, "one"), tags(json!(["a", "a"]))).await;
    s.apply(&by(A, "one"), tags(json!([1]))).await;
    s.apply(&by(A, "one"), tags(json!([null]))).await;
    s.apply(&by(A, "one"), tags(json!("a"))).await;
}

async fn atomic_lists_and_maps_have_one_owner(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"steps": ["a", "b"], "selector": {"a": "1"}}))).await.is(201);
    s.apply(&by(A, "two"), widget("a", json!({"steps": ["a"]}))).await.is(409);
    s.apply(&by(A, "two"), widget("a", json!({"selector": {"b": "1"}}))).await.is(409);
    s.apply(&by(A, "two"), widget("a", json!({"selector": {"a": "1"}}))).await.is(200);
    s.apply(&forced(A, "two"), widget("a", json!({"steps": ["c"], "selector": {"b": "2"}}))).await.is(200);
}

async fn granular_maps_are_merged(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"limits": {"a": "1"}, "free": {"x": {"y": 1}, "list": [1]}})))
        .await
        .is(201);
    s.apply(&by(A, "two"), widget("a", json!({"limits": {"b": "2"}, "free": {"x": {"z": 2}}}))).await.is(200);
    s.apply(&by(A, "two"), widget("a", json!({"limits": {"a": "3"}}))).await.is(409);
    s.apply(&by(A, "two"), widget("a", json!({"free": {"list": [2]}}))).await.is(409);
    s.apply(&by(A, "one"), widget("a", json!({"limits": {}, "free": {}}))).await.is(200);
}

async fn defaults_are_owned_by_nobody_who_applied(s: &mut Story) {
    let made = s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await;
    made.is(201).has("/spec/color", "red");
    s.apply(&by(A, "two"), widget("a", json!({"color": "blue"}))).await.is(200).has("/spec/color", "blue");
    s.apply(&by(A, "two"), widget("a", json!({}))).await.is(200).has("/spec/color", "red");
}

async fn null_in_an_apply(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"note": null, "nested": {"a": null, "b": null}, "color": null}))).await;
    s.apply(&by(A, "one"), widget("a", json!({"size": 1, "nested": {"b": "x"}}))).await;
    s.apply(&by(A, "two"), widget("a", json!({"size": null, "nested": {"b": null}}))).await;
    s.apply(
        &by(MAP, "one"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": null}, "data": null}),
    )
    .await;
}

async fn the_status_has_managers_of_its_own(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await.is(201);
    let status = format!("{A}/status");
    let mut config = widget("a", json!({"size": 9}));
    config["status"] = json!({"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]});
    s.apply(&by(&status, "one"), config.clone()).await.is(200).has("/spec/size", 1);
    config["status"] = json!({"conditions": [{"type": "Synced", "status": "True"}]});
    s.apply(&by(&status, "two"), config.clone()).await.is(200).has("/status/phase", "Up");
    config["status"] = json!({"phase": "Down"});
    s.apply(&by(&status, "two"), config.clone()).await.is(409);
    s.apply(&by(A, "one"), config).await.is(200).has("/status/phase", "Up");
    s.merge_patch(&by(&status, "one"), json!({"status": {"phase": "Down"}})).await.is(200);
    s.apply(&by("/apis/suite.example.com/v1/namespaces/{ns}/widgets/b/status", "one"), widget("b", json!({})))
        .await
        .is(404);
}

async fn managed_fields_can_be_cleared(s: &mut Story) {
    for (path, body) in [(A, widget("a", json!({"size": 1}))), (MAP, map_of("a", json!({"k": "v"})))] {
        s.apply(&by(path, "one"), body).await.is(201);
        s.json_patch(path, json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}])).await.is(200);
        s.merge_patch(path, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
        s.merge_patch(path, json!({"metadata": {"managedFields": []}})).await.is(200);
        s.merge_patch(path, json!({"metadata": {"managedFields": null}})).await.is(200);
        s.json_patch(path, json!([{"op": "remove", "path": "/metadata/managedFields"}])).await;
    }
}

async fn managed_fields_that_make_no_sense(s: &mut Story) {
    s.post(&by(WIDGETS, "creator"), widget("a", json!({"size": 1}))).await.is(201);
    let good = json!({"manager": "x", "operation": "Update", "apiVersion": "suite.example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}}});
    let mut other_operation = good.clone();
    other_operation["operation"] = "Sing".into();
    let mut other_type = good.clone();
    other_type["fieldsType"] = "FieldsV2".into();
    let mut other_fields = good.clone();
    other_fields["fieldsV1"] = json!({"spec": {}});
    let mut no_version = good.clone();
    no_version["apiVersion"] = json!(null);
    for managed in [good, other_operation, other_type, other_fields, no_version] {
        s.merge_patch(&by(A, "patcher"), json!({"metadata": {"managedFields": [managed]}})).await;
    }
    s.merge_patch(&by(A, "patcher"), json!({"metadata": {"managedFields": "text"}})).await;
}

async fn apply_on_a_condition(s: &mut Story) {
    let mut config = widget("a", json!({"size": 1}));
    config["metadata"]["resourceVersion"] = "1".into();
    s.apply(&by(A, "one"), config.clone()).await;
    config["metadata"]["resourceVersion"] = json!(null);
    s.apply(&by(A, "one"), config).await.is(422);
    let mut config = widget("a", json!({"size": 1}));
    let made = s.apply(&by(A, "one"), config.clone()).await;
    made.is(200);
    config["spec"]["size"] = 2.into();
    config["metadata"]["resourceVersion"] = made.revision().into();
    s.apply(&by(A, "one"), config.clone()).await.is(200);
    config["spec"]["size"] = 3.into();
    s.apply(&by(A, "one"), config.clone()).await.is(409);
    let mut config = widget("a", json!({"size": 1}));
    config["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    s.apply(&by(A, "one"), config.clone()).await.is(422);
    s.apply(&by("/apis/suite.example.com/v1/namespaces/{ns}/widgets/new", "one"), {
        config["metadata"]["name"] = "new".into();
        config
    })
    .await
    .is(409);
}

async fn apply_to_built_ins(s: &mut Story) {
    let account = |secrets: Value| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}, "secrets": secrets});
    let path = "/api/v1/namespaces/{ns}/serviceaccounts/a";
    s.apply(&by(path, "one"), account(json!([{"name": "x"}]))).await.is(201);
    s.apply(&by(path, "two"), account(json!([{"name": "y"}]))).await.is(200).has("/secrets/1/name", "y");
    s.apply(&by(path, "one"), account(json!([]))).await.is(200);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "v"}, "type": "Opaque"});
    s.apply(&by("/api/v1/namespaces/{ns}/secrets/a", "one"), secret).await.is(201);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}});
    s.apply(&by("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a", "one"), lease).await.is(201);
}

async fn apply_of_what_the_schema_does_not_know(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": 1, "unknown": 1}))).await;
    s.apply(&format!("{}&fieldValidation=Strict", by(A, "one")), widget("a", json!({"unknown": 1}))).await;
    s.apply(&format!("{}&fieldValidation=Ignore", by(A, "one")), widget("a", json!({"unknown": 1}))).await;
    let odd = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "unknown": 1});
    s.apply(&by(MAP, "one"), odd.clone()).await;
    s.apply(&format!("{}&fieldValidation=Strict", by(MAP, "one")), odd.clone()).await;
    s.apply(&format!("{}&fieldValidation=Ignore", by(MAP, "one")), odd).await;
    let twice = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":\"b\",\"a\":\"c\"}}";
    s.send("PATCH", &by(MAP, "one"), &[("content-type", "application/apply-patch+yaml")], twice).await;
}

async fn apply_of_a_wrong_type(s: &mut Story) {
    s.apply(&by(A, "one"), widget("a", json!({"size": "big"}))).await;
    s.apply(&by(A, "one"), widget("a", json!({"nested": "text"}))).await;
    s.apply(&by(A, "one"), widget("a", json!({"color": "pink"}))).await;
    s.apply(&by(A, "one"), widget("a", json!("text"))).await;
    s.apply(&by(MAP, "one"), map_of("a", json!({"k": 1}))).await;
    s.apply(&by(MAP, "one"), map_of("a", json!([]))).await;
    let mut labels = map("a");
    labels["metadata"]["labels"] = json!(["x"]);
    s.apply(&by(MAP, "one"), labels).await;
}

async fn apply_under_another_name(s: &mut Story) {
    for (path, body) in [(A, widget("b", json!({}))), (MAP, map("b"))] {
        s.apply(&by(path, "one"), body.clone()).await.is(400);
        let mut elsewhere = body;
        elsewhere["metadata"]["name"] = "a".into();
        elsewhere["metadata"]["namespace"] = "elsewhere".into();
        s.apply(&by(path, "one"), elsewhere).await.is(400);
    }
    s.apply(&by("/apis/suite.example.com/v1/namespaces/no-such-namespace/widgets/a", "one"), widget("a", json!({})))
        .await
        .is(404);
}

async fn a_dry_apply(s: &mut Story) {
    s.apply(&format!("{}&dryRun=All", by(A, "one")), widget("a", json!({"size": 1}))).await.is(201);
    s.get(A).await.is(404);
    s.apply(&by(A, "one"), widget("a", json!({"size": 1}))).await.is(201);
    s.apply(&format!("{}&dryRun=All", by(A, "two")), widget("a", json!({"size": 2}))).await.is(409);
    s.apply(&format!("{}&dryRun=All", by(A, "one")), widget("a", json!({"size": 2})))
        .await
        .is(200)
        .has("/spec/size", 2);
    s.get(A).await.is(200).has("/spec/size", 1);
}

async fn finalizers_and_owners_are_applied_one_by_one(s: &mut Story) {
    let finalizers = |list: Value| {
        let mut map = map("a");
        map["metadata"]["finalizers"] = list;
        map
    };
    s.apply(&by(MAP, "one"), finalizers(json!(["example.com/a"]))).await.is(201);
    s.apply(&by(MAP, "two"), finalizers(json!(["example.com/b"]))).await.is(200);
    s.apply(&by(MAP, "one"), finalizers(json!([]))).await.is(200).has("/metadata/finalizers", json!(["example.com/b"]));
    let mut dependent = widget("a", json!({}));
    let owner = s.get(MAP).await;
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner.uid()}]);
    s.apply(&by(A, "one"), dependent).await.is(201);
    s.apply(&by(A, "two"), widget("a", json!({}))).await.is(200);
    s.apply(&by(A, "one"), widget("a", json!({}))).await.is(200);
}

async fn a_manager_that_owns_nothing_is_forgotten(s: &mut Story) {
    s.post(&by(MAPS, "creator"), map_of("a", json!({"k": "v"}))).await.is(201);
    s.merge_patch(&by(MAP, "patcher"), json!({"data": {"k": "w"}})).await.is(200);
    s.merge_patch(&by(MAP, "other"), json!({"data": null})).await.is(200);
    s.apply(&by(MAP, "one"), map("a")).await.is(200);
}
