//! The patch types: JSON patch, merge patch, strategic merge patch. Apply has a file of its own.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{MAPS, WIDGETS, map, map_of, widget};

cases![
    json_patch_has_six_operations,
    json_patch_stops_at_a_test,
    json_patch_that_cannot_be_applied,
    json_patch_that_is_none,
    json_patch_that_is_too_long,
    merge_patch_removes_what_is_null,
    merge_patch_replaces_lists,
    merge_patch_that_is_none,
    strategic_patch_merges_lists_by_key,
    strategic_patch_has_directives,
    strategic_patch_that_makes_no_sense,
    strategic_patch_on_owners_and_finalizers,
    strategic_patch_on_a_custom_object,
    a_patch_of_an_unknown_type,
    a_patch_of_what_is_not_there,
    a_patch_that_makes_the_object_bad,
    a_patch_that_breaks_the_types,
    a_field_manager_has_a_name,
    force_is_for_apply,
];

async fn json_patch_has_six_operations(s: &mut Story) {
    s.post(MAPS, map_of("a", json!({"one": "1", "two": "2"}))).await.is(201);
    let patch = json!([
        {"op": "test", "path": "/data/one", "value": "1"},
        {"op": "add", "path": "/metadata/labels", "value": {"x/y": "z"}},
        {"op": "replace", "path": "/data/one", "value": "uno"},
        {"op": "copy", "from": "/data/one", "path": "/data/three"},
        {"op": "move", "from": "/data/two", "path": "/data/four"},
        {"op": "remove", "path": "/metadata/labels/x~1y"},
    ]);
    s.json_patch(&format!("{MAPS}/a"), patch).await.is(200).has("/data/four", "2");
    s.post(WIDGETS, widget("a", json!({"steps": ["a", "b"], "size": 1}))).await.is(201);
    let patch = json!([
        {"op": "add", "path": "/spec/steps/-", "value": "d"},
        {"op": "add", "path": "/spec/steps/1", "value": "c"},
        {"op": "remove", "path": "/spec/steps/0"},
        {"op": "add", "path": "/spec/size", "value": 5},
    ]);
    s.json_patch(&format!("{WIDGETS}/a"), patch).await.is(200).has("/spec/steps", json!(["c", "b", "d"]));
}

async fn json_patch_stops_at_a_test(s: &mut Story) {
    for (path, body) in [(MAPS, map_of("a", json!({"k": "v"}))), (WIDGETS, widget("a", json!({})))] {
        s.post(path, body).await.is(201);
        let one = format!("{path}/a");
        let patch = json!([
            {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
            {"op": "test", "path": "/metadata/name", "value": "other"},
        ]);
        s.json_patch(&one, patch).await.is(422);
        s.get(&one).await.has("/metadata/labels", json!(null));
        s.json_patch(&one, json!([{"op": "test", "path": "/metadata/nothing", "value": 1}])).await.is(422);
        s.json_patch(&one, json!([{"op": "test", "path": "/metadata/nothing", "value": null}])).await.is(200);
    }
}

async fn json_patch_that_cannot_be_applied(s: &mut Story) {
    for (path, body) in [(MAPS, map_of("a", json!({"k": "v"}))), (WIDGETS, widget("a", json!({"steps": ["a"]})))] {
        s.post(path, body).await.is(201);
        let one = format!("{path}/a");
        for operation in [
            json!({"op": "remove", "path": "/metadata/nothing"}),
            json!({"op": "replace", "path": "/metadata/nothing", "value": 1}),
            json!({"op": "add", "path": "/no/such/path", "value": 1}),
            json!({"op": "move", "from": "/nothing", "path": "/something"}),
            json!({"op": "copy", "from": "/nothing", "path": "/something"}),
            json!({"op": "add", "path": "/spec/steps/7", "value": "x"}),
            json!({"op": "remove", "path": "/spec/steps/x"}),
            json!({"op": "remove", "path": "/metadata/name/x"}),
        ] {
            s.json_patch(&one, json!([operation])).await;
        }
    }
}

async fn json_patch_that_is_none(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    let one = format!("{MAPS}/a");
    s.json_patch(&one, json!({"op": "remove", "path": "/data"})).await.is(400);
    s.json_patch(&one, json!(["remove"])).await.is(400);
    s.json_patch(&one, json!([])).await.is(200);
    s.json_patch(&one, json!([{"op": "burn", "path": "/data"}])).await;
    s.json_patch(&one, json!([{"path": "/data"}])).await;
    s.json_patch(&one, json!([{"op": "add", "path": "/data"}])).await;
    s.json_patch(&one, json!([{"op": "add", "value": {}}])).await;
    s.json_patch(&one, json!([{"op": "add", "path": "data", "value": {}}])).await;
    s.json_patch(&one, json!([{"op": "add", "path": 7, "value": {}}])).await;
    s.send("PATCH", &one, &[("content-type", "application/json-patch+json")], "[{").await.is(400);
    s.send("PATCH", &one, &[("content-type", "application/json-patch+json")], "").await;
}

async fn json_patch_that_is_too_long(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    let operations: Vec<_> =
        (0..10_001).map(|_| json!({"op": "test", "path": "/metadata/name", "value": "a"})).collect();
    s.json_patch(&format!("{MAPS}/a"), operations.into()).await.is(413);
}

async fn merge_patch_removes_what_is_null(s: &mut Story) {
    s.post(MAPS, map_of("a", json!({"k": "v", "l": "w"}))).await.is(201);
    s.merge_patch(&format!("{MAPS}/a"), json!({"data": {"k": null, "m": "x"}}))
        .await
        .has("/data", json!({"l": "w", "m": "x"}));
    s.merge_patch(&format!("{MAPS}/a"), json!({"data": null})).await.is(200).has("/data", json!(null));
    s.post(WIDGETS, widget("a", json!({"nested": {"a": "1", "b": "2"}, "limits": {"x": "y"}}))).await.is(201);
    let one = format!("{WIDGETS}/a");
    s.merge_patch(&one, json!({"spec": {"nested": {"a": null}}})).await.has("/spec/nested", json!({"b": "2"}));
    s.merge_patch(&one, json!({"spec": {"color": null}})).await.has("/spec/color", "red");
    s.merge_patch(&one, json!({"spec": null})).await;
}

async fn merge_patch_replaces_lists(s: &mut Story) {
    let ports = json!([{"name": "a", "number": 1}, {"name": "b", "number": 2}]);
    s.post(WIDGETS, widget("a", json!({"ports": ports, "tags": ["x", "y"]}))).await.is(201);
    let one = format!("{WIDGETS}/a");
    let patch = json!({"spec": {"ports": [{"name": "c"}], "tags": ["z"]}});
    s.merge_patch(&one, patch).await.is(200).has("/spec/ports", json!([{"name": "c", "protocol": "TCP"}]));
    s.merge_patch(&one, json!({"spec": {"tags": ["z", "z"]}})).await.is(422);
    let twice = json!({"spec": {"ports": [{"name": "c"}, {"name": "c", "protocol": "TCP"}]}});
    s.merge_patch(&one, twice).await.is(422);
}

async fn merge_patch_that_is_none(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        s.post(path, body).await.is(201);
        let one = format!("{path}/a");
        s.merge_patch(&one, json!([])).await;
        s.merge_patch(&one, json!("text")).await;
        s.merge_patch(&one, json!(null)).await;
        s.send("PATCH", &one, &[("content-type", "application/merge-patch+json")], "{").await;
        s.send("PATCH", &one, &[("content-type", "application/merge-patch+json")], "").await;
        s.send("PATCH", &one, &[("content-type", "application/merge-patch+json")], "metadata: {}").await;
    }
}

async fn strategic_patch_merges_lists_by_key(s: &mut Story) {
    let accounts = "/api/v1/namespaces/{ns}/serviceaccounts";
    let account = json!({"metadata": {"name": "a"}, "secrets": [{"name": "x"}, {"name": "y"}], "imagePullSecrets": [{"name": "p"}]});
    s.post(accounts, account).await.is(201);
    let one = format!("{accounts}/a");
    s.strategic_patch(&one, json!({"secrets": [{"name": "z"}]})).await.is(200).has("/secrets/2/name", "y");
    s.strategic_patch(&one, json!({"imagePullSecrets": [{"name": "q"}]})).await.is(200);
    s.strategic_patch(&one, json!({"automountServiceAccountToken": false})).await.is(200);
    s.strategic_patch(&one, json!({"automountServiceAccountToken": null})).await.is(200);
    s.post(MAPS, map_of("a", json!({"k": "v"}))).await.is(201);
    s.strategic_patch(&format!("{MAPS}/a"), json!({"data": {"l": "w", "k": null}}))
        .await
        .has("/data", json!({"l": "w"}));
}

async fn strategic_patch_has_directives(s: &mut Story) {
    let accounts = "/api/v1/namespaces/{ns}/serviceaccounts";
    let account = json!({"metadata": {"name": "a"}, "secrets": [{"name": "x"}, {"name": "y"}, {"name": "z"}]});
    s.post(accounts, account).await.is(201);
    let one = format!("{accounts}/a");
    s.strategic_patch(&one, json!({"secrets": [{"$patch": "delete", "name": "y"}]})).await.is(200);
    let ordered =
        json!({"$setElementOrder/secrets": [{"name": "z"}, {"name": "w"}, {"name": "x"}], "secrets": [{"name": "w"}]});
    s.strategic_patch(&one, ordered).await.is(200);
    s.strategic_patch(&one, json!({"secrets": [{"$patch": "replace"}, {"name": "only"}]})).await.is(200);
    s.post(MAPS, map_of("a", json!({"k": "v", "l": "w"}))).await.is(201);
    let map = format!("{MAPS}/a");
    s.strategic_patch(&map, json!({"data": {"$patch": "replace", "m": "x"}})).await.has("/data", json!({"m": "x"}));
    s.strategic_patch(&map, json!({"data": {"$patch": "delete"}})).await.is(200);
    s.strategic_patch(&map, json!({"data": {"$retainKeys": ["n"], "n": "y"}})).await;
}

async fn strategic_patch_that_makes_no_sense(s: &mut Story) {
    let accounts = "/api/v1/namespaces/{ns}/serviceaccounts";
    s.post(accounts, json!({"metadata": {"name": "a"}, "secrets": [{"name": "x"}]})).await.is(201);
    let one = format!("{accounts}/a");
    s.strategic_patch(&one, json!({"secrets": [{"uid": "nameless"}]})).await;
    s.strategic_patch(&one, json!({"secrets": "text"})).await;
    s.strategic_patch(&one, json!({"secrets": [{"$patch": "burn", "name": "x"}]})).await;
    s.strategic_patch(&one, json!({"$patch": "burn"})).await;
    s.strategic_patch(&one, json!({"nothing": {"a": 1}})).await;
    s.strategic_patch(&one, json!([])).await;
    s.strategic_patch(&one, json!({"$setElementOrder/secrets": [{"name": "y"}], "secrets": [{"name": "z"}]})).await;
    s.send("PATCH", &one, &[("content-type", "application/strategic-merge-patch+json")], "{").await;
}

async fn strategic_patch_on_owners_and_finalizers(s: &mut Story) {
    let mut object = map("a");
    object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    let owner = |uid: u8, name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": format!("{uid}1111111-1111-4111-8111-111111111111")});
    s.post(MAPS, object).await.is(201);
    let one = format!("{MAPS}/a");
    // A dry run, or the collector would take the object away.
    let dry = format!("{one}?dryRun=All");
    s.strategic_patch(&dry, json!({"metadata": {"ownerReferences": [owner(1, "x"), owner(2, "y")]}})).await.is(200);
    s.strategic_patch(&one, json!({"metadata": {"finalizers": ["example.com/c"]}})).await.is(200);
    let minus = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}});
    s.strategic_patch(&one, minus).await.is(200);
    let ordered = json!({"metadata": {"$setElementOrder/finalizers": ["example.com/c", "example.com/b"]}});
    s.strategic_patch(&one, ordered).await.is(200);
}

async fn strategic_patch_on_a_custom_object(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    s.strategic_patch(&format!("{WIDGETS}/a"), json!({"spec": {"size": 1}})).await.is(415);
    s.strategic_patch(&format!("{WIDGETS}/a/status"), json!({})).await.is(415);
}

async fn a_patch_of_an_unknown_type(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        s.post(path, body).await.is(201);
        s.patch(&format!("{path}/a"), "application/json", json!({})).await.is(415);
        s.patch(&format!("{path}/a"), "text/plain", json!({})).await.is(415);
        s.patch(&format!("{path}/a"), "application/merge-patch+json; charset=utf-8", json!({})).await;
        s.send("PATCH", &format!("{path}/a"), &[], "{}").await.is(415);
    }
}

async fn a_patch_of_what_is_not_there(s: &mut Story) {
    for path in [MAPS, WIDGETS] {
        let one = format!("{path}/a");
        s.merge_patch(&one, json!({})).await.is(404);
        s.json_patch(&one, json!([])).await.is(404);
        s.merge_patch(&one, json!({"metadata": {"resourceVersion": "7"}})).await;
        s.merge_patch(&format!("{path}/Not-A-Name"), json!({})).await.is(404);
    }
    s.strategic_patch(&format!("{MAPS}/a"), json!({})).await.is(404);
}

async fn a_patch_that_makes_the_object_bad(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    let one = format!("{WIDGETS}/a");
    s.merge_patch(&one, json!({"spec": {"size": 101}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"size": "big"}})).await.is(422);
    s.json_patch(&one, json!([{"op": "add", "path": "/spec/color", "value": "pink"}])).await.is(422);
    s.json_patch(&one, json!([{"op": "remove", "path": "/spec"}])).await.is(422);
    s.json_patch(&one, json!([{"op": "remove", "path": "/metadata"}])).await;
    s.json_patch(&one, json!([{"op": "replace", "path": "", "value": []}])).await;
}

async fn a_patch_that_breaks_the_types(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    let one = format!("{MAPS}/a");
    s.merge_patch(&one, json!({"data": "text"})).await;
    s.merge_patch(&one, json!({"data": {"k": 7}})).await;
    s.merge_patch(&one, json!({"data": {"k": {"deep": "er"}}})).await;
    s.merge_patch(&one, json!({"metadata": []})).await;
    s.merge_patch(&one, json!({"immutable": "yes"})).await;
    s.json_patch(&one, json!([{"op": "replace", "path": "", "value": []}])).await;
    s.json_patch(&one, json!([{"op": "add", "path": "/data", "value": 7}])).await;
    s.strategic_patch(&one, json!({"data": {"k": 7}})).await;
}

async fn a_field_manager_has_a_name(s: &mut Story) {
    s.post(&format!("{MAPS}?fieldManager=creator"), map("a")).await.is(201).has("/metadata/managedFields", json!(null));
    let one = format!("{MAPS}/a");
    let long = "x".repeat(129);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    s.merge_patch(&format!("{one}?fieldManager={long}"), label.clone()).await.is(422);
    s.merge_patch(&format!("{one}?fieldManager=a%07b"), label.clone()).await.is(422);
    s.merge_patch(&format!("{one}?fieldManager=patcher"), label).await.is(200);
    s.put(&format!("{one}?fieldManager=putter"), map_of("a", json!({"k": "v"}))).await.is(200);
    s.post(&format!("{MAPS}?fieldManager={long}"), map("b")).await.is(422);
    let agent = [("content-type", "application/json"), ("user-agent", "tool/v1.2 (linux) x")];
    s.send("POST", MAPS, &agent, map_of("c", json!({"k": "v"})).to_string()).await.is(201);
    let agent = [("content-type", "application/json"), ("user-agent", "")];
    s.send("POST", MAPS, &agent, map_of("d", json!({"k": "v"})).to_string()).await.is(201);
}

async fn force_is_for_apply(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        s.post(path, body).await.is(201);
        s.merge_patch(&format!("{path}/a?force=true"), json!({})).await.is(422);
        s.json_patch(&format!("{path}/a?force=false"), json!([])).await.is(422);
        s.merge_patch(&format!("{path}/a?force=maybe"), json!({})).await;
    }
}
