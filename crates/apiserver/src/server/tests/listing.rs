use serde_json::json;

use super::{GADGETS, WIDGETS, World, names};

async fn five(world: &World) {
    for n in 1..=5 {
        let more = json!({"metadata": {"labels": {"n": n.to_string()}}, "spec": {"color": format!("c{n}")}});
        world.widget(&format!("l{n}"), more).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lists_are_what_is_there() {
    let world = World::new().await;
    let empty = world.get(&format!("{WIDGETS}?&foo=bar")).await.body;
    let revision = world.server.api().store().revision().to_string();
    assert_eq!(
        empty,
        json!({"apiVersion": "verbs.example.com/v1", "items": [], "kind": "WidgetList",
            "metadata": {"continue": "", "resourceVersion": revision}})
    );
    five(&world).await;
    assert_eq!(names(&world.get(WIDGETS).await.body), ["l1", "l2", "l3", "l4", "l5"]);
    assert_eq!(names(&world.get("/apis/verbs.example.com/v1/widgets").await.body).len(), 5);
    assert_eq!(names(&world.get("/apis/verbs.example.com/v1/namespaces/none/widgets").await.body).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn built_ins_do_not_repeat_what_they_are_in_lists() {
    let world = World::new().await;
    let maps = "/api/v1/namespaces/verbs-a/configmaps";
    world.post(maps, json!({"metadata": {"name": "m"}, "data": {"a": "b"}})).await;
    let list = world.get(maps).await.body;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert!(list["metadata"].get("continue").is_none());
    assert!(list["items"][0].get("kind").is_none() && list["items"][0].get("apiVersion").is_none());
    assert_eq!(list["items"][0]["data"], json!({"a": "b"}));
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_moment() {
    let world = World::new().await;
    five(&world).await;
    let first = world.get(&format!("{WIDGETS}?limit=2")).await.body;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["l1", "l2"], &json!(3)));
    let token = first["metadata"]["continue"].as_str().unwrap();
    world.delete(&format!("{WIDGETS}/l3")).await;
    let second = world.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.body;
    assert_eq!(names(&second), ["l3", "l4"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = world.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.body;
    assert_eq!((names(&last), &last["metadata"]["continue"]), (vec!["l5"], &json!("")));
    assert!(last["metadata"].get("remainingItemCount").is_none());
    let selected = world.get(&format!("{WIDGETS}?limit=1&labelSelector=n%20in%20(1,2)")).await.body;
    assert_ne!(selected["metadata"]["continue"], "");
    assert!(selected["metadata"].get("remainingItemCount").is_none());
}

#[tokio::test(start_paused = true)]
async fn tokens_are_checked() {
    let world = World::new().await;
    five(&world).await;
    let first = world.get(&format!("{WIDGETS}?limit=2")).await.body;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let answer = world.get(&format!("{WIDGETS}?limit=2&continue={token}&resourceVersion=5")).await;
    answer.refused(400, "BadRequest", "specifying resource version is not allowed when using continue");
    world.get(&format!("{WIDGETS}?limit=2&continue=abc")).await.refused(
        400,
        "BadRequest",
        "invalid continue token: continue key is not valid: take it from the last page, as it is, or list anew",
    );
    assert_eq!(names(&world.get(&format!("{GADGETS}?limit=2&continue={token}")).await.body).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_old_can_go_on_with_what_is_there() {
    let world = World::new().await;
    five(&world).await;
    let first = world.get(&format!("{WIDGETS}?limit=2")).await.body;
    let token = first["metadata"]["continue"].as_str().unwrap();
    world.delete(&format!("{WIDGETS}/l3")).await;
    let store = world.server.api().store();
    store.compact(store.revision());
    let expired = world.get(&format!("{WIDGETS}?limit=2&continue={token}")).await;
    expired.refused(
        410,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new list \
         without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
         results. Continuing with the provided token results in an inconsistent list - objects that were created, \
         modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    assert_eq!(names(&world.get(&format!("{WIDGETS}?limit=9&continue={token}")).await.body), ["l4", "l5"]);
    let answer = world.get(&format!("{WIDGETS}?resourceVersion=2&resourceVersionMatch=Exact")).await;
    answer.refused(410, "Expired", "The resourceVersion for the provided list is too old.");
}

#[tokio::test(start_paused = true)]
async fn resource_versions_mean_what_kubernetes_says() {
    let world = World::new().await;
    five(&world).await;
    let revision = world.server.api().store().revision();
    let list = async |query: &str| world.get(&format!("{WIDGETS}?{query}")).await;
    list("resourceVersion=abc").await.refused(
        400,
        "BadRequest",
        "invalid resource version: resourceVersion: Invalid value: \"abc\": must be a resource version that this server \
         has given",
    );
    let ahead = list("resourceVersion=99999999").await;
    ahead.refused(504, "Timeout", &format!("Timeout: Too large resource version: 99999999, current: {revision}"));
    let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    assert_eq!(ahead.body["details"], json!({"causes": [cause], "retryAfterSeconds": 1}));
    assert_eq!(names(&list("resourceVersion=1").await.body).len(), 5);
    assert_eq!(names(&list("resourceVersion=0&limit=2").await.body).len(), 5);
    let before = revision - 1;
    assert_eq!(names(&list(&format!("resourceVersion={before}&resourceVersionMatch=Exact")).await.body).len(), 4);
    let kind = "ListOptions.meta.k8s.io \"\" is invalid: ";
    for (query, why) in [
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        ),
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersion=4&resourceVersionMatch=Foo",
            "resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"",
        ),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ] {
        list(query).await.refused(422, "Invalid", &format!("{kind}{why}"));
    }
    list("limit=x").await.refused(400, "BadRequest", "limit must be a whole number, not \"x\"");
    assert_eq!(world.get(&format!("{WIDGETS}/l1?resourceVersion=99999999")).await.code, 504);
}

#[tokio::test(start_paused = true)]
async fn selectors_select() {
    let world = World::new().await;
    five(&world).await;
    let list = async |query: &str| world.get(&format!("{WIDGETS}?{query}")).await;
    for (query, found) in [
        ("labelSelector=n%20in%20(1,3)", vec!["l1", "l3"]),
        ("labelSelector=n!%3D1,n%20notin%20(2)", vec!["l3", "l4", "l5"]),
        ("fieldSelector=metadata.name=l1", vec!["l1"]),
        ("fieldSelector=metadata.name!=l1,spec.color!=c2", vec!["l3", "l4", "l5"]),
        ("fieldSelector=spec.color==c4", vec!["l4"]),
    ] {
        assert_eq!(names(&list(query).await.body), found, "{query}");
    }
    for (query, why) in [
        ("labelSelector=a%20b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("fieldSelector=foo=bar", "field label not supported: foo"),
        ("fieldSelector=foo", "invalid selector: 'foo'; can't understand 'foo'"),
    ] {
        list(query).await.refused(400, "BadRequest", why);
    }
    let answer = world.get("/api/v1/namespaces/verbs-a/configmaps?fieldSelector=type=x").await;
    let why = "\"type\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    answer.refused(400, "BadRequest", why);
}

#[tokio::test(start_paused = true)]
async fn large_lists_come_in_pieces_and_are_whole() {
    let world = World::new().await;
    for n in 0..1200 {
        world.widget(&format!("w{n:04}"), json!({"spec": {"color": "x".repeat(200)}})).await;
    }
    let list = world.get(WIDGETS).await.body;
    assert_eq!(list["items"].as_array().unwrap().len(), 1200);
    assert_eq!(list["items"][1199]["metadata"]["name"], "w1199");
    let found = world.get(&format!("{WIDGETS}?fieldSelector=metadata.name=w0777")).await.body;
    assert_eq!(names(&found), ["w0777"]);
}

#[tokio::test(start_paused = true)]
async fn views_of_lists_and_objects() {
    let world = World::new().await;
    five(&world).await;
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = world.get_as(&format!("{WIDGETS}?limit=1"), partial).await.body;
    assert_eq!(
        (&list["kind"], &list["metadata"]["remainingItemCount"]),
        (&json!("PartialObjectMetadataList"), &json!(4))
    );
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    assert_eq!(world.get_as(WIDGETS, table).await.body["kind"], "Table");
    assert_eq!(world.get_as(&format!("{WIDGETS}/l1"), table).await.body["kind"], "Table");
    world.get_as(WIDGETS, "text/html").await.refused(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    );
    world.get_as(WIDGETS, "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").await.refused(
        406,
        "NotAcceptable",
        "you requested PartialObjectMetadata, but a WidgetList is a list",
    );
    let yaml = world.get_as(&format!("{WIDGETS}/l1"), "application/yaml").await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    assert!(yaml.text.contains("\n  name: l1\n"), "{}", yaml.text);
    let both = world.get_as(WIDGETS, "application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(both.body["kind"], "WidgetList");
}
