use serde_json::json;
use store::{Options, Store};

use super::{GADGETS, MERGE, WIDGETS, World, widget};

const MODIFIED: &str = "Operation cannot be fulfilled on widgets.verbs.example.com \"u\": the object has been modified; \
                        please apply your changes to the latest version and try again";

#[tokio::test(start_paused = true)]
async fn an_update_names_the_version_it_read() {
    let world = World::new().await;
    let made = world.widget("u", json!({})).await;
    let path = format!("{WIDGETS}/u");
    let blind = world.put(&path, widget("u", json!({"spec": {"color": "blue"}}))).await;
    blind.refused(
        422,
        "Invalid",
        "widgets.verbs.example.com \"u\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
         for an update",
    );
    assert_eq!(blind.body["details"]["kind"], "widgets");
    let no_version =
        "metadata.resourceVersion: Invalid value: \"abc\": must be a resource version that this server has given";
    let at = |version: &str| widget("u", json!({"metadata": {"resourceVersion": version}, "spec": {"color": "blue"}}));
    world.put(&path, at("1")).await.refused(409, "Conflict", MODIFIED);
    world.put(&path, at("abc")).await.refused(500, "", no_version);
    let done = world.put(&path, at(made["metadata"]["resourceVersion"].as_str().unwrap())).await;
    assert_eq!((done.code, &done.body["metadata"]["generation"]), (200, &json!(2)), "{}", done.text);
    assert_eq!(done.body["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn an_update_is_about_the_object_it_names() {
    let world = World::new().await;
    let made = world.widget("u", json!({})).await;
    let uid = made["metadata"]["uid"].as_str().unwrap();
    let path = format!("{WIDGETS}/u");
    let put = async |meta| {
        let mut sent = widget("u", json!({}));
        sent["metadata"] = meta;
        world.put(&path, sent).await
    };
    let mismatch = "the name of the object (u2) does not match the name on the URL (u)";
    put(json!({"name": "u2"})).await.refused(400, "BadRequest", mismatch);
    let nameless = "the name of the object (u based on URL) was undeterminable: name must be provided";
    put(json!({})).await.refused(400, "BadRequest", nameless);
    put(json!({"name": "u", "uid": "zzz", "resourceVersion": "1"})).await.refused(
        409,
        "Conflict",
        &format!(
            "Operation cannot be fulfilled on widgets.verbs.example.com \"u\": StorageError: invalid object, Code: 4, \
             Key: /registry/verbs.example.com/widgets/verbs-a/u, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: zzz, UID in object meta: {uid}"
        ),
    );
    let missing = world.put(&format!("{WIDGETS}/missing"), widget("missing", json!({}))).await;
    missing.refused(404, "NotFound", "widgets.verbs.example.com \"missing\" not found");
    world.put(WIDGETS, json!({})).await.refused(400, "BadRequest", "name must be provided");
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_not_written() {
    let world = World::new().await;
    let made = world.widget("n", json!({})).await;
    let path = format!("{WIDGETS}/n");
    assert_eq!(world.merge(&path, json!({})).await.body, made);
    assert_eq!(world.merge(&path, json!({"spec": {"unknown": 7}})).await.body, made);
    assert_eq!(world.put(&path, made.clone()).await.body, made);
    assert_eq!(world.merge(&path, json!({"metadata": {"creationTimestamp": null}})).await.body, made);
}

#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_apart() {
    let world = World::new().await;
    world.widget("s", json!({})).await;
    let main = world.merge(&format!("{WIDGETS}/s"), json!({"status": {"phase": "no"}, "spec": {"size": 1}})).await.body;
    assert!(main.get("status").is_none());
    assert_eq!(main["metadata"]["generation"], 2);
    let patch = json!({"status": {"phase": "y"}, "spec": {"color": "zzz"}, "metadata": {"labels": {"s": "t"}}});
    let status = world.merge(&format!("{WIDGETS}/s/status"), patch).await.body;
    assert_eq!((&status["status"], &status["spec"]), (&json!({"phase": "y"}), &json!({"color": "red", "size": 1})));
    assert_eq!(status["metadata"]["generation"], 2);
    assert!(status["metadata"].get("labels").is_none());
    assert_eq!(world.get(&format!("{WIDGETS}/s/status")).await.body, status);
    let labelled = world.merge(&format!("{WIDGETS}/s"), json!({"metadata": {"labels": {"a": "b"}}})).await.body;
    assert_eq!((&labelled["metadata"]["generation"], &labelled["status"]), (&json!(2), &json!({"phase": "y"})));
}

#[tokio::test(start_paused = true)]
async fn without_a_status_subresource_status_is_a_field_like_others() {
    let world = World::new().await;
    let sent = json!({"apiVersion": "verbs.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"},
        "status": {"phase": "x"}});
    assert_eq!(world.post(GADGETS, sent).await.body["status"]["phase"], "x");
    let path = format!("{GADGETS}/g");
    let patched = world.merge(&path, json!({"status": {"phase": "y"}})).await.body;
    assert_eq!((&patched["status"]["phase"], &patched["metadata"]["generation"]), (&json!("y"), &json!(2)));
    for part in ["status", "scale"] {
        let answer = world.get(&format!("{path}/{part}")).await;
        answer.refused(404, "NotFound", "gadgets.verbs.example.com \"g\" not found");
    }
}

#[tokio::test(start_paused = true)]
async fn patches_cannot_change_what_is_fixed() {
    let world = World::new().await;
    world.widget("u", json!({})).await;
    let path = format!("{WIDGETS}/u");
    let times = json!({"metadata": {"generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5}});
    for (patch, code, reason, message) in [
        (
            json!({"metadata": {"name": "other"}}),
            400,
            "BadRequest",
            "the name of the object (other) does not match the name on the URL (u)",
        ),
        (
            json!({"metadata": {"uid": "other"}}),
            422,
            "Invalid",
            "Widget.verbs.example.com \"u\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable",
        ),
        (
            times,
            422,
            "Invalid",
            "Widget.verbs.example.com \"u\" is invalid: [metadata.deletionTimestamp: Invalid value: \
             \"2020-01-01T00:00:00Z\": field is immutable, metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable]",
        ),
        (json!({"metadata": {"resourceVersion": "1"}}), 409, "Conflict", MODIFIED),
        (
            json!({"kind": "Foo"}),
            422,
            "Invalid",
            "Foo.verbs.example.com \"u\" is invalid: kind: Invalid value: \"Foo\": must be Widget",
        ),
        (
            json!({"apiVersion": "foo/v1"}),
            422,
            "Invalid",
            "Widget.foo \"u\" is invalid: apiVersion: Invalid value: \"foo/v1\": must be verbs.example.com/v1",
        ),
    ] {
        world.merge(&path, patch).await.refused(code, reason, message);
    }
    let refused = world.merge(&path, json!({"metadata": {"labels": {"a": "-"}}})).await;
    assert_eq!(refused.body["details"]["causes"].as_array().unwrap().len(), 3);
    let missing = world.merge(&format!("{WIDGETS}/missing"), json!({})).await;
    missing.refused(404, "NotFound", "widgets.verbs.example.com \"missing\" not found");
}

#[tokio::test(start_paused = true)]
async fn patches_come_in_known_forms() {
    let world = World::new().await;
    world.widget("u", json!({})).await;
    let path = format!("{WIDGETS}/u");
    for kind in ["application/foo", "application/strategic-merge-patch+json", "application/json", ""] {
        world.call("PATCH", &path, kind, "{}").await.refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        );
    }
    let apply = "application/apply-patch+yaml";
    let options = "PatchOptions.meta.k8s.io \"\" is invalid: ";
    for (query, kind, body, code, reason, message) in [
        (
            "",
            MERGE,
            "{bad",
            400,
            "BadRequest",
            "error decoding patch: it is not JSON: key must be a string at line 1 column 2".to_owned(),
        ),
        (
            "?force=true",
            MERGE,
            "{}",
            422,
            "Invalid",
            format!("{options}force: Forbidden: may not be specified for non-apply patch"),
        ),
        (
            "",
            apply,
            "{}",
            422,
            "Invalid",
            format!("{options}fieldManager: Required value: is required for apply patch"),
        ),
        ("?fieldManager=f", apply, "{}", 400, "BadRequest", "invalid object type: /, Kind=".to_owned()),
    ] {
        world.call("PATCH", &format!("{path}{query}"), kind, body).await.refused(code, reason, &message);
    }
    let body = r#"[{"op":"replace","path":"/spec/color","value":"green"}]"#;
    let patched = world.call("PATCH", &path, "application/json-patch+json", body).await;
    assert_eq!(patched.body["spec"]["color"], "green", "{}", patched.text);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_makes_nonsense_shows_the_nonsense() {
    let world = World::new().await;
    let mut patched = world.widget("u", json!({})).await;
    let patch = json!({"spec": {"foo": 7, "bar": 8}});
    json_patch::merge(&mut patched, &patch);
    let shown = serde_json::to_string(&patched.to_string()).unwrap();
    world.merge(&format!("{WIDGETS}/u?fieldValidation=Strict"), patch).await.refused(
        422,
        "Invalid",
        &format!(
            " \"\" is invalid: patch: Invalid value: {shown}: strict decoding error: unknown field \"spec.bar\", \
             unknown field \"spec.foo\""
        ),
    );
}

#[tokio::test(start_paused = true)]
async fn versions_exchange_their_objects() {
    let world = World::new().await;
    world.widget("v", json!({"spec": {"size": 5}})).await;
    let old = "/apis/verbs.example.com/v1alpha1/namespaces/verbs-a/widgets";
    let shown = world.get(&format!("{old}/v")).await.body;
    assert_eq!(shown["apiVersion"], "verbs.example.com/v1alpha1");
    assert_eq!(shown["spec"], json!({"color": "red"}));
    let listed = world.get(old).await.body;
    assert_eq!((&listed["apiVersion"], &listed["items"]), (&shown["apiVersion"], &json!([shown])));
}

#[tokio::test(start_paused = true)]
async fn scale_is_a_view_that_can_be_written() {
    let world = World::new().await;
    let made = world.widget("s", json!({"spec": {"replicas": 2}})).await;
    let path = format!("{WIDGETS}/s/scale");
    let meta = &made["metadata"];
    assert_eq!(
        world.get(&path).await.body,
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "s", "namespace": "verbs-a",
            "uid": meta["uid"], "resourceVersion": meta["resourceVersion"], "creationTimestamp": "2026-11-16T02:17:11Z"},
            "spec": {"replicas": 2}, "status": {"replicas": 0}})
    );
    let scaled = world.merge(&path, json!({"spec": {"replicas": 5}, "status": {"replicas": 8}})).await.body;
    assert_eq!((&scaled["spec"]["replicas"], &scaled["status"]["replicas"]), (&json!(5), &json!(0)), "{scaled}");
    let object = world.get(&format!("{WIDGETS}/s")).await.body;
    assert_eq!((&object["spec"]["replicas"], &object["metadata"]["generation"]), (&json!(5), &json!(2)));
    world.merge(&path, json!({"spec": {"replicas": -5}})).await.refused(
        422,
        "Invalid",
        "Widget.verbs.example.com \"s\" is invalid: .spec.replicas: Invalid value: -5: should be a non-negative integer",
    );
    let put = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "s", "namespace": "verbs-a", "resourceVersion": "1"}, "spec": {"replicas": 6}});
    assert_eq!(world.put(&path, put).await.code, 409);
}

#[tokio::test(start_paused = true)]
async fn some_built_ins_may_be_updated_blindly() {
    let world = World::new().await;
    let maps = "/api/v1/namespaces/verbs-a/configmaps";
    world.post(maps, json!({"metadata": {"name": "m"}})).await;
    let put = world.put(&format!("{maps}/m"), json!({"metadata": {"name": "m"}, "data": {"a": "b"}})).await;
    assert_eq!((put.code, &put.body["data"]), (200, &json!({"a": "b"})), "{}", put.text);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/verbs-a/leases";
    world.post(leases, json!({"metadata": {"name": "l"}})).await;
    world.put(&format!("{leases}/l"), json!({"metadata": {"name": "l"}})).await.refused(
        422,
        "Invalid",
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
         for an update",
    );
}

#[tokio::test]
async fn all_who_apply_at_once_succeed_and_one_of_them_makes_the_object() {
    // On a disk, where writing takes long enough for others to come in between.
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(Store::open(folder.path(), Options::default()).unwrap()).await;
    let world = &world;
    let answers = futures::future::join_all((0..8).map(|number| async move {
        let path = format!("{WIDGETS}/a?fieldManager=m{number}");
        world.call("PATCH", &path, "application/apply-patch+yaml", widget("a", json!({})).to_string()).await
    }));
    let mut codes: Vec<_> = answers.await.iter().map(|answer| answer.code).collect();
    codes.sort_unstable();
    assert_eq!(codes, [200, 200, 200, 200, 200, 200, 200, 201]);
}
