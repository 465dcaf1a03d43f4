//! Create, read, replace: the plain verbs.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{MAPS, SECRETS, WIDGETS, map, map_of, widget};

cases![
    a_configmap_is_created_read_replaced_and_deleted,
    a_custom_object_is_created_read_replaced_and_deleted,
    a_name_that_is_taken_is_refused,
    a_name_is_needed,
    a_name_is_generated,
    a_name_that_is_given_beats_a_generated_one,
    a_long_prefix_of_a_generated_name_is_cut,
    the_namespace_of_the_path_counts,
    the_kind_of_the_body_must_fit_the_path,
    a_new_object_has_no_revision_yet,
    what_the_server_decides_is_not_taken_from_the_client,
    replacing_what_is_not_there,
    a_stale_revision_is_refused,
    replacing_without_a_revision,
    replacing_with_another_identity,
    replacing_under_another_name,
    replacing_with_the_same_changes_nothing,
    the_generation_counts_changes_of_the_wish,
    metadata_that_must_not_change,
    paths_that_lead_nowhere,
    methods_that_do_not_fit,
    an_empty_collection,
    a_collection_across_namespaces,
    names_that_are_none,
    labels_that_are_none,
    annotations_that_are_none,
];

async fn a_configmap_is_created_read_replaced_and_deleted(s: &mut Story) {
    s.post(MAPS, map_of("a", json!({"k": "v"}))).await.is(201);
    let mut found = s.get(&format!("{MAPS}/a")).await.body().clone();
    found["data"]["k"] = "w".into();
    s.put(&format!("{MAPS}/a"), found).await.is(200).has("/data/k", "w");
    s.delete(&format!("{MAPS}/a")).await.is(200).has("/status", "Success");
    s.get(&format!("{MAPS}/a")).await.is(404).says("configmaps \"a\" not found");
    s.post(MAPS, map("a")).await.is(201);
}

async fn a_custom_object_is_created_read_replaced_and_deleted(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"size": 3}))).await.is(201).has("/spec/color", "red");
    let mut found = s.get(&format!("{WIDGETS}/a")).await.body().clone();
    found["spec"]["size"] = 4.into();
    s.put(&format!("{WIDGETS}/a"), found).await.is(200).has("/metadata/generation", 2);
    s.delete(&format!("{WIDGETS}/a")).await.is(200).has("/status", "Success");
    s.get(&format!("{WIDGETS}/a")).await.is(404);
}

async fn a_name_that_is_taken_is_refused(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    s.post(MAPS, map("a")).await.is(409).has("/reason", "AlreadyExists");
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(409).says("widgets.suite.example.com \"a\" already exists");
}

async fn a_name_is_needed(s: &mut Story) {
    s.post(MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap"}))
        .await
        .is(422)
        .says("name or generateName is required");
    let nameless = json!({"apiVersion": "suite.example.com/v1", "kind": "Widget", "spec": {}});
    s.post(WIDGETS, nameless).await.is(422).has("/details/causes/0/field", "metadata.name");
}

async fn a_name_is_generated(s: &mut Story) {
    for (path, kind, version) in [(MAPS, "ConfigMap", "v1"), (WIDGETS, "Widget", "suite.example.com/v1")] {
        let body = json!({
            "apiVersion": version, "kind": kind, "metadata": {"generateName": "made-", "labels": {"made": "1"}}, "spec": {},
        });
        let made = s.post(path, body).await;
        made.is(201).holds("five characters", |body| body["metadata"]["name"].as_str().unwrap().len() == 10);
        s.get(&format!("{path}?labelSelector=made")).await.is(200);
    }
}

async fn a_name_that_is_given_beats_a_generated_one(s: &mut Story) {
    let mut both = map("given");
    both["metadata"]["generateName"] = "made-".into();
    s.post(MAPS, both.clone()).await.is(201).has("/metadata/name", "given");
    s.post(MAPS, both).await.is(409);
}

async fn a_long_prefix_of_a_generated_name_is_cut(s: &mut Story) {
    let long = "x".repeat(70);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": long}});
    let made = s.ask("POST", MAPS, &[("content-type", "application/json")], body.to_string()).await;
    s.record("the length of the name", made.text("/metadata/name").len().into());
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "Not_a-name-"}});
    let refused = s.ask("POST", MAPS, &[("content-type", "application/json")], body.to_string()).await;
    refused.is(422);
    s.record("the refusal of a bad prefix", refused.at("/details/causes").to_string().contains("Not_a-name-").into());
}

async fn the_namespace_of_the_path_counts(s: &mut Story) {
    for path in [MAPS, WIDGETS] {
        let mut body = if path == MAPS { map("a") } else { widget("a", json!({})) };
        body["metadata"]["namespace"] = "elsewhere".into();
        s.post(path, body.clone()).await.is(400).says("does not match the namespace");
        body["metadata"]["namespace"] = s.ns().into();
        s.post(path, body).await.is(201);
    }
    s.post("/api/v1/configmaps", map("a")).await.is(405);
}

async fn the_kind_of_the_body_must_fit_the_path(s: &mut Story) {
    s.post(MAPS, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})).await.is(400);
    s.post(MAPS, json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}})).await.is(400);
    s.post(MAPS, json!({"apiVersion": "v1", "metadata": {"name": "kindless"}})).await.is(201);
    s.post(MAPS, json!({"metadata": {"name": "versionless"}})).await.is(201);
    let mut other = widget("a", json!({}));
    other["kind"] = "Gadget".into();
    s.post(WIDGETS, other.clone()).await.is(422).says("must be Widget");
    other["kind"] = "Widget".into();
    other["apiVersion"] = "suite.example.com/v2".into();
    s.post(WIDGETS, other.clone()).await;
    other["apiVersion"] = "other.example.com/v1".into();
    s.post(WIDGETS, other).await;
    s.post(WIDGETS, json!({"metadata": {"name": "kindless"}, "spec": {}})).await;
    s.post(WIDGETS, json!({"kind": "Widget", "metadata": {"name": "kindless"}, "spec": {}})).await;
}

async fn a_new_object_has_no_revision_yet(s: &mut Story) {
    for (path, mut body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        body["metadata"]["resourceVersion"] = "7".into();
        s.post(path, body).await.is(500).says("resourceVersion should not be set");
    }
}

async fn what_the_server_decides_is_not_taken_from_the_client(s: &mut Story) {
    for (path, mut body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        body["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
        body["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
        body["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
        body["metadata"]["deletionGracePeriodSeconds"] = 7.into();
        body["metadata"]["generation"] = 7.into();
        body["metadata"]["selfLink"] = "/here".into();
        let made = s.post(path, body).await;
        made.is(201).holds("a fresh uid", |body| !body["metadata"]["uid"].to_string().contains("1111111"));
    }
    let mut body = widget("b", json!({}));
    body["status"] = json!({"phase": "Done"});
    s.post(WIDGETS, body).await.is(201).has("/status", json!(null));
}

async fn replacing_what_is_not_there(s: &mut Story) {
    s.put(&format!("{MAPS}/a"), map("a")).await.is(404);
    s.put(&format!("{WIDGETS}/a"), widget("a", json!({}))).await.is(404);
    let mut with_revision = widget("a", json!({}));
    with_revision["metadata"]["resourceVersion"] = "1".into();
    s.put(&format!("{WIDGETS}/a"), with_revision).await.is(404);
    let mut with_uid = map("a");
    with_uid["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
    s.put(&format!("{MAPS}/a"), with_uid).await.is(409).says("UID in object meta: ");
}

async fn a_stale_revision_is_refused(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let mut old = s.post(path, body).await.body().clone();
        let one = format!("{path}/a");
        s.merge_patch(&one, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
        s.put(&one, old.clone()).await.is(409).says("the object has been modified");
        let stale = json!({"metadata": {"resourceVersion": old["metadata"]["resourceVersion"], "labels": {"a": "c"}}});
        s.merge_patch(&one, stale).await.is(409);
        old["metadata"]["resourceVersion"] = "not a number".into();
        s.put(&one, old.clone()).await;
        old["metadata"]["resourceVersion"] = "999999999".into();
        s.put(&one, old).await.is(409);
    }
}

async fn replacing_without_a_revision(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    s.put(&format!("{MAPS}/a"), map_of("a", json!({"k": "v"}))).await.is(200);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    let refused = s.put(&format!("{WIDGETS}/a"), widget("a", json!({"size": 1}))).await;
    refused.is(422).says("must be specified for an update");
}

async fn replacing_with_another_identity(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let mut found = s.post(path, body).await.body().clone();
        found["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into();
        s.put(&format!("{path}/a"), found).await.is(409).says("Precondition failed: UID in precondition");
    }
}

async fn replacing_under_another_name(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let mut found = s.post(path, body).await.body().clone();
        found["metadata"]["name"] = "b".into();
        s.put(&format!("{path}/a"), found.clone()).await.is(400).says("does not match the name on the URL");
        found["metadata"]["name"] = json!(null);
        s.put(&format!("{path}/a"), found.clone()).await;
        found["metadata"]["name"] = "a".into();
        found["metadata"]["namespace"] = "elsewhere".into();
        s.put(&format!("{path}/a"), found).await.is(400);
    }
}

async fn replacing_with_the_same_changes_nothing(s: &mut Story) {
    for (path, body) in [(MAPS, map_of("a", json!({"k": "v"}))), (WIDGETS, widget("a", json!({"size": 1})))] {
        let made = s.post(path, body).await;
        let same = s.put(&format!("{path}/a"), made.body().clone()).await;
        let revision = made.revision();
        same.is(200).has("/metadata/resourceVersion", revision.clone());
        let one = format!("{path}/a");
        s.merge_patch(&one, json!({})).await.is(200).has("/metadata/resourceVersion", revision.clone());
        s.merge_patch(&one, json!({"metadata": {"labels": null}})).await.has("/metadata/resourceVersion", revision);
    }
}

async fn the_generation_counts_changes_of_the_wish(s: &mut Story) {
    s.post(WIDGETS, widget("a", json!({"size": 1}))).await.has("/metadata/generation", 1);
    let one = format!("{WIDGETS}/a");
    s.merge_patch(&one, json!({"metadata": {"labels": {"a": "b"}}})).await.has("/metadata/generation", 1);
    s.merge_patch(&one, json!({"metadata": {"annotations": {"a": "b"}}})).await.has("/metadata/generation", 1);
    s.merge_patch(&one, json!({"spec": {"size": 2}})).await.has("/metadata/generation", 2);
    s.merge_patch(&format!("{one}/status"), json!({"status": {"phase": "x"}})).await.has("/metadata/generation", 2);
    s.merge_patch(&one, json!({"metadata": {"generation": 9}})).await.has("/metadata/generation", 2);
}

async fn metadata_that_must_not_change(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        s.post(path, body).await.is(201);
        let one = format!("{path}/a");
        s.merge_patch(&one, json!({"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}})).await.is(422);
        s.merge_patch(&one, json!({"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})).await;
        s.merge_patch(&one, json!({"metadata": {"creationTimestamp": null}})).await;
        s.merge_patch(&one, json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})).await;
        s.merge_patch(&one, json!({"metadata": {"deletionGracePeriodSeconds": 3}})).await;
        s.merge_patch(&one, json!({"metadata": {"generateName": "other-"}})).await;
        s.merge_patch(&one, json!({"metadata": {"selfLink": "/here"}})).await;
        s.merge_patch(&one, json!({"metadata": {"name": "b"}})).await.is(400);
        s.merge_patch(&one, json!({"metadata": {"namespace": "b"}})).await.is(400);
        s.merge_patch(&one, json!({"kind": "Other"})).await;
        s.merge_patch(&one, json!({"apiVersion": "other/v7"})).await;
    }
}

async fn paths_that_lead_nowhere(s: &mut Story) {
    for path in [
        "/nothing",
        "/api/v7",
        "/api/v1/nothings",
        "/api/v1/namespaces/{ns}/nothings",
        "/api/v1/namespaces/{ns}/nothings/a",
        "/api/v1/namespaces/{ns}/configmaps/a/nothing",
        "/apis/nothing.example.com",
        "/apis/nothing.example.com/v1",
        "/apis/nothing.example.com/v1/namespaces/{ns}/nothings",
        "/apis/suite.example.com/v7",
        "/apis/suite.example.com/v7/namespaces/{ns}/widgets",
        "/apis/suite.example.com/v1/namespaces/{ns}/nothings",
        "/apis/suite.example.com/v1/namespaces/{ns}/widgets/a/nothing",
        "/apis/suite.example.com/v1/namespaces/{ns}/widgets/a/status",
        "/apis/coordination.k8s.io/v7/namespaces/{ns}/leases",
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/nothings",
    ] {
        s.get(path).await.is(404);
    }
}

async fn methods_that_do_not_fit(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    s.post(&format!("{MAPS}/a"), map("a")).await.is(405);
    s.put(MAPS, map("a")).await.is(405);
    s.merge_patch(MAPS, json!({})).await.is(405);
    // Custom resources do not mind.
    s.post(&format!("{WIDGETS}/a"), widget("a", json!({}))).await.is(409);
    s.put(WIDGETS, widget("a", json!({}))).await.is(400).says("name must be provided");
    s.merge_patch(WIDGETS, json!({})).await;
    s.delete(&format!("{WIDGETS}/a/status")).await.is(405);
    s.post(&format!("{WIDGETS}/a/status"), widget("a", json!({}))).await;
    s.delete("/api/v1/namespaces").await.is(405);
    s.send("BREW", &format!("{MAPS}/a"), &[], "").await;
}

async fn an_empty_collection(s: &mut Story) {
    s.get(SECRETS).await.is(200).has("/kind", "SecretList").has("/items", json!([]));
    s.get(WIDGETS).await.is(200).has("/kind", "WidgetList").has("/items", json!([]));
    s.get("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases").await.is(200).has("/kind", "LeaseList");
    s.get("/api/v1/namespaces/no-such-namespace/secrets").await.is(200);
    s.get("/apis/suite.example.com/v1/namespaces/no-such-namespace/widgets").await.is(200);
}

async fn a_collection_across_namespaces(s: &mut Story) {
    let other = format!("{}-2", s.ns());
    s.post("/api/v1/namespaces", json!({"metadata": {"name": other}})).await.is(201);
    for namespace in [s.ns().to_owned(), other] {
        for name in ["b", "a"] {
            let mut map = map(name);
            map["metadata"]["labels"] = json!({"across": "namespaces"});
            s.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), map).await.is(201);
            let mut widget = widget(name, json!({}));
            widget["metadata"]["labels"] = json!({"across": "namespaces"});
            s.post(&format!("/apis/suite.example.com/v1/namespaces/{namespace}/widgets"), widget).await.is(201);
        }
    }
    let all = "labelSelector=across%3Dnamespaces";
    s.get(&format!("/api/v1/configmaps?{all}")).await.is(200).holds("four", |body| body["items"][3].is_object());
    s.get(&format!("/apis/suite.example.com/v1/widgets?{all}")).await.is(200).has("/items/3/metadata/name", "b");
    let here = format!("fieldSelector=metadata.namespace%3D{}", s.ns());
    s.get(&format!("/api/v1/configmaps?{all}&{here}")).await.is(200).has("/items/2", json!(null));
}

async fn names_that_are_none(s: &mut Story) {
    let long = "x".repeat(254);
    for name in ["Upper", "under_score", "-dash", "dot.", "a/b", "a%b", ".", "..", "ä", "", &long] {
        s.post(MAPS, map(name)).await.is(422);
        s.post(WIDGETS, widget(name, json!({}))).await.is(422);
    }
    let namespaces = "/api/v1/namespaces";
    for name in ["Upper", "dotted.name", &"x".repeat(64)] {
        s.post(namespaces, json!({"metadata": {"name": name}})).await.is(422);
    }
    s.post("/api/v1/namespaces/{ns}/serviceaccounts", json!({"metadata": {"name": "Upper"}})).await.is(422);
    s.get(&format!("{MAPS}/Upper")).await.is(404);
}

async fn labels_that_are_none(s: &mut Story) {
    let long = "x".repeat(64);
    for (key, value) in [
        ("a b", "v"),
        ("", "v"),
        ("/a", "v"),
        ("UPPER.example.com/a", "v"),
        ("a/b/c", "v"),
        (long.as_str(), "v"),
        ("a", "v w"),
        ("a", "-v"),
        ("a", long.as_str()),
    ] {
        let mut map = map("a");
        map["metadata"]["labels"] = json!({key: value});
        s.post(MAPS, map).await.is(422);
        let mut widget = widget("a", json!({}));
        widget["metadata"]["labels"] = json!({key: value});
        s.post(WIDGETS, widget).await.is(422);
    }
    let mut map = map("a");
    map["metadata"]["labels"] = json!({"a": 1});
    s.post(MAPS, map).await.is(400);
    let mut widget = widget("a", json!({}));
    widget["metadata"]["labels"] = json!({"a": 1});
    s.post(WIDGETS, widget.clone()).await;
    widget["metadata"]["labels"] = "a=b".into();
    s.post(WIDGETS, widget).await;
}

async fn annotations_that_are_none(s: &mut Story) {
    for annotations in
        [json!({"a b": "v"}), json!({"/a": "v"}), json!({"a": 1}), json!({"big": "x".repeat(257 * 1024)}), json!([])]
    {
        let mut map = map("a");
        map["metadata"]["annotations"] = annotations.clone();
        s.post(MAPS, map).await;
        let mut widget = widget("a", json!({}));
        widget["metadata"]["annotations"] = annotations;
        s.post(WIDGETS, widget).await;
    }
    let mut map = map("a");
    map["metadata"]["annotations"] = json!({"UPPER.example.com/a": "any text: äöü\n"});
    s.post(MAPS, map).await;
}
