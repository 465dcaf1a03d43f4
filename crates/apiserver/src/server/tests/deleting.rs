use serde_json::json;

use super::{WIDGETS, World, names};

const JSON: &str = "application/json";

#[tokio::test(start_paused = true)]
async fn what_nothing_keeps_is_gone_at_once() {
    let world = World::new().await;
    let made = world.widget("d", json!({})).await;
    let gone = world.delete(&format!("{WIDGETS}/d")).await;
    let details = json!({"name": "d", "group": "verbs.example.com", "kind": "widgets", "uid": made["metadata"]["uid"]});
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    assert_eq!((gone.code, gone.body), (200, status));
    world.delete(&format!("{WIDGETS}/d")).await.refused(404, "NotFound", "widgets.verbs.example.com \"d\" not found");
}

#[tokio::test(start_paused = true)]
async fn finalizers_keep_an_object_until_the_last_one_goes() {
    let world = World::new().await;
    world.widget("f", json!({"metadata": {"finalizers": ["a.b/c"]}})).await;
    let path = format!("{WIDGETS}/f");
    let going = world.delete(&path).await.body;
    let meta = &going["metadata"];
    assert_eq!(
        (&meta["deletionTimestamp"], &meta["deletionGracePeriodSeconds"], &meta["generation"]),
        (&json!("2026-11-16T02:17:11Z"), &json!(0), &json!(2))
    );
    assert_eq!(world.delete(&path).await.body, going);
    let refused = world.merge(&path, json!({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})).await;
    refused.refused(
        422,
        "Invalid",
        "Widget.verbs.example.com \"f\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if \
         the object is being deleted, found [\"d.e/f\"]",
    );
    let change = json!({"metadata": {"deletionTimestamp": null, "labels": {"a": "b"}}, "spec": {"color": "blue"}});
    let changed = world.merge(&path, change).await.body;
    assert!(changed["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(changed["metadata"]["generation"], 3);
    let last = world.merge(&path, json!({"metadata": {"finalizers": null}, "spec": {"color": "green"}})).await;
    assert_eq!((last.code, &last.body["spec"]["color"]), (200, &json!("green")));
    assert_eq!(last.body["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
    assert_eq!(world.get(&path).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn propagation_is_asked_for_by_finalizers() {
    let world = World::new().await;
    world.widget("p", json!({})).await;
    let path = format!("{WIDGETS}/p");
    let revision = world.server.api().store().revision();
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let dry = world.delete(&format!("{path}?propagationPolicy={policy}&dryRun=All")).await.body;
        assert_eq!(dry["metadata"]["finalizers"], json!([finalizer]));
    }
    assert_eq!(world.server.api().store().revision(), revision);
    let going = world.call("DELETE", &path, JSON, r#"{"propagationPolicy":"Foreground"}"#).await.body;
    assert_eq!(going["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let gone = world.call("DELETE", &path, JSON, r#"{"propagationPolicy":"Background"}"#).await.body;
    assert_eq!(gone["status"], "Success");
}

#[tokio::test(start_paused = true)]
async fn preconditions_are_kept() {
    let world = World::new().await;
    let made = world.widget("p", json!({})).await;
    let path = format!("{WIDGETS}/p");
    let text = |key: &str| made["metadata"][key].as_str().unwrap().to_owned();
    let (uid, version) = (text("uid"), text("resourceVersion"));
    let start = "Operation cannot be fulfilled on Widget.verbs.example.com \"p\": ";
    world.call("DELETE", &path, JSON, r#"{"preconditions":{"uid":"zzz"}}"#).await.refused(
        409,
        "Conflict",
        &format!(
            "{start}the UID in the precondition (zzz) does not match the UID in record ({uid}). The object might have \
             been deleted and then recreated"
        ),
    );
    world.call("DELETE", &path, JSON, r#"{"preconditions":{"resourceVersion":"1"}}"#).await.refused(
        409,
        "Conflict",
        &format!(
            "{start}the ResourceVersion in the precondition (1) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        ),
    );
    let kept = json!({"preconditions": {"uid": uid, "resourceVersion": version}}).to_string();
    assert_eq!(world.call("DELETE", &path, JSON, kept).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn options_make_sense() {
    let world = World::new().await;
    world.widget("p", json!({})).await;
    let path = format!("{WIDGETS}/p");
    let options = "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: ";
    for (body, code, reason, message) in [
        (
            r#"{"propagationPolicy":"Foo"}"#,
            422,
            "Invalid",
            format!(
                "{options}Unsupported value: \"Foo\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            ),
        ),
        (
            r#"{"propagationPolicy":"Orphan","orphanDependents":true}"#,
            422,
            "Invalid",
            format!("{options}Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"),
        ),
        ("{bad", 500, "", "it is not JSON: key must be a string at line 1 column 2".to_owned()),
        (r#"{"kind":"Foo"}"#, 500, "", "kind must be \"DeleteOptions\", not \"Foo\"".to_owned()),
    ] {
        world.call("DELETE", &path, JSON, body).await.refused(code, reason, &message);
    }
    let answer = world.delete(&format!("{path}?gracePeriodSeconds=x")).await;
    answer.refused(400, "BadRequest", "gracePeriodSeconds must be a whole number, not \"x\"");
    assert_eq!(world.get(&path).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn collections_go_by_selector() {
    let world = World::new().await;
    for name in ["a", "b", "c"] {
        world.widget(name, json!({"metadata": {"labels": {"n": name}}})).await;
    }
    let gone = world.delete(&format!("{WIDGETS}?labelSelector=n%20in%20(a,b)")).await;
    assert_eq!((gone.code, &gone.body["kind"]), (200, &json!("WidgetList")));
    assert_eq!(names(&gone.body), ["a", "b"]);
    assert_eq!(names(&world.get(WIDGETS).await.body), ["c"]);
}

#[tokio::test(start_paused = true)]
async fn service_accounts_say_goodbye_in_person() {
    let world = World::new().await;
    let accounts = "/api/v1/namespaces/verbs-a/serviceaccounts";
    world.post(accounts, json!({"metadata": {"name": "robot"}})).await;
    assert_eq!(world.delete(&format!("{accounts}/robot")).await.body["kind"], "ServiceAccount");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_when_it_is_finalized() {
    let world = World::new().await;
    let path = "/api/v1/namespaces/verbs-a";
    let going = world.delete(path).await.body;
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    assert!(going["metadata"].get("generation").is_none());
    let done =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "verbs-a"}, "spec": {"finalizers": []}});
    let last = world.put(&format!("{path}/finalize"), done).await;
    assert_eq!(last.code, 200, "{}", last.text);
    assert_eq!(world.get(path).await.code, 404);
}
