use serde_json::json;

use super::{GADGETS, WIDGETS, World, widget};

const HEAD: &str = r#""apiVersion":"verbs.example.com/v1","kind":"Widget""#;

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_what_the_server_sets() {
    let world = World::new().await;
    let mut sent = widget("a", json!({"status": {"phase": "x"}}));
    sent["metadata"]["uid"] = "5".into();
    sent["metadata"]["generation"] = 9.into();
    sent["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    let made = world.post(WIDGETS, sent).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let meta = &made.body["metadata"];
    assert_eq!((&meta["namespace"], &meta["generation"]), (&json!("verbs-a"), &json!(1)));
    assert_eq!(meta["creationTimestamp"], "2026-11-16T02:17:11Z");
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert!(meta.get("deletionTimestamp").is_none() && made.body.get("status").is_none());
    assert_eq!(world.get(&format!("{WIDGETS}/a")).await.body, made.body);
}

#[tokio::test(start_paused = true)]
async fn names_are_generated() {
    let world = World::new().await;
    let sent = json!({"apiVersion": "verbs.example.com/v1", "kind": "Widget", "metadata": {"generateName": "gen-"}});
    let made = world.post(WIDGETS, sent.clone()).await.body;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    assert_ne!(world.post(WIDGETS, sent).await.body["metadata"]["name"], name);
}

#[tokio::test(start_paused = true)]
async fn bad_objects_are_refused_in_kubernetes_words() {
    let world = World::new().await;
    world.widget("taken", json!({})).await;
    let cases = [
        (
            format!(r#"{{{HEAD},"metadata":{{}}}}"#),
            422,
            "Invalid",
            "Widget.verbs.example.com \"\" is invalid: metadata.name: Required value: name or generateName is required",
        ),
        (
            format!(r#"{{{HEAD},"metadata":{{"name":"a","namespace":"other"}}}}"#),
            400,
            "BadRequest",
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            r#"{"apiVersion":"verbs.example.com/v2","kind":"Widget"}"#.to_owned(),
            400,
            "BadRequest",
            "the API version in the data (verbs.example.com/v2) does not match the expected API version (verbs.example.com/v1)",
        ),
        (
            r#"{"apiVersion":"verbs.example.com/v1","kind":"Gadget","metadata":{"name":"a"}}"#.to_owned(),
            422,
            "Invalid",
            "Gadget.verbs.example.com \"a\" is invalid: kind: Invalid value: \"Gadget\": must be Widget",
        ),
        (
            r#"{"metadata":{}}"#.to_owned(),
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type Widget): kind is missing",
        ),
        (
            format!(r#"{{{HEAD},"metadata":{{"name":"a","resourceVersion":"5"}}}}"#),
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        ),
        (
            format!(r#"{{{HEAD},"metadata":{{"name":"a","labels":{{"a":1}}}}}}"#),
            400,
            "BadRequest",
            "Widget in version \"v1\" cannot be handled as a Widget: metadata.labels[a] must be a string, not the number 1",
        ),
        (
            format!(r#"{{{HEAD},"metadata":{{"name":"taken"}}}}"#),
            409,
            "AlreadyExists",
            "widgets.verbs.example.com \"taken\" already exists",
        ),
        (
            format!(r#"{{{HEAD},"metadata":{{"name":"B"}}}}"#),
            422,
            "Invalid",
            "Widget.verbs.example.com \"B\" is invalid: metadata.name: Invalid value: \"B\": a lowercase RFC 1123 \
             subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an \
             alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        ),
    ];
    for (body, code, reason, message) in cases {
        world.call("POST", WIDGETS, "application/json", body).await.refused(code, reason, message);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_json_is_described() {
    let world = World::new().await;
    let prefix = "the object provided is unrecognized (must be of type Widget): ";
    let deep = format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000));
    for (body, message) in [
        ("{bad", "it is not JSON: key must be a string at line 1 column 2"),
        ("[]", "the document must be an object, not a list"),
        ("null", "kind is missing"),
        ("", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        (&deep, "it is not JSON: nested deeper than 100 levels at line 1 column 501"),
    ] {
        let answer = world.call("POST", WIDGETS, "application/json", body.to_owned()).await;
        answer.refused(400, "BadRequest", &format!("{prefix}{message}"));
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_must_be_readable_and_not_too_large() {
    let world = World::new().await;
    world.call("POST", WIDGETS, "text/plain", "a").await.refused(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    );
    let large = world.call("POST", WIDGETS, "application/json", "x".repeat(3_200_000)).await;
    large.refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
    // Far too large: what is left of it is read, or the client would never see the answer.
    let larger = world.call("POST", WIDGETS, "application/json", "x".repeat(40_000_000)).await;
    larger.refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
}

#[tokio::test(start_paused = true)]
async fn unknown_and_repeated_fields_are_refused_or_remarked_or_ignored() {
    let world = World::new().await;
    let post = async |mode: &str, name: &str| {
        let body = format!(
            r#"{{{HEAD},"metadata":{{"name":"{name}","foo":1}},
                "spec":{{"color":"red","foo":1,"color":"b","bar":{{}}}},"zoo":1}}"#
        );
        world.call("POST", &format!("{WIDGETS}?fieldValidation={mode}"), "application/json", body).await
    };
    post("Strict", "s").await.refused(
        400,
        "BadRequest",
        "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: duplicate field \"spec.color\", \
         unknown field \"metadata.foo\", unknown field \"spec.bar\", unknown field \"spec.foo\", unknown field \"zoo\"",
    );
    let warned = post("Warn", "w").await;
    assert_eq!(
        warned.warnings(),
        [
            r#"299 - "duplicate field \"spec.color\"""#,
            r#"299 - "unknown field \"metadata.foo\"""#,
            r#"299 - "unknown field \"spec.bar\"""#,
            r#"299 - "unknown field \"spec.foo\"""#,
            r#"299 - "unknown field \"zoo\"""#,
        ]
    );
    assert_eq!(warned.body["spec"], json!({"color": "b"}));
    let ignored = post("Ignore", "i").await;
    assert_eq!((ignored.code, ignored.warnings().len()), (201, 0));
}

#[tokio::test(start_paused = true)]
async fn yaml_is_read() {
    let world = World::new().await;
    let yaml = |name: &str| {
        format!(
            "apiVersion: verbs.example.com/v1\nkind: Widget\nmetadata: {{name: {name}}}\nspec:\n  color: a\n  color: b\n  size: 3\n"
        )
    };
    let made = world.call("POST", WIDGETS, "application/yaml", yaml("yam")).await;
    assert_eq!((made.code, &made.body["spec"]), (201, &json!({"color": "b", "size": 3})), "{}", made.text);
    let broken = world.call("POST", WIDGETS, "application/yaml", "x: [").await;
    assert_eq!(broken.code, 400);
    assert!(
        broken.message().starts_with("the object provided is unrecognized (must be of type Widget): it is not YAML: ")
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let world = World::new().await;
    let revision = world.server.api().store().revision();
    let path = format!("{WIDGETS}?dryRun=All");
    let dry = world.post(&path, widget("dry", json!({}))).await;
    assert_eq!(dry.code, 201);
    assert!(dry.body["metadata"].get("resourceVersion").is_none());
    assert_eq!(world.server.api().store().revision(), revision);
    world.widget("dry", json!({})).await;
    assert_eq!(world.post(&path, widget("dry", json!({}))).await.code, 409);
    world.post(&format!("{WIDGETS}?dryRun=Foo"), widget("dry", json!({}))).await.refused(
        422,
        "Invalid",
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\"]: supported values: \
         \"All\"",
    );
}

#[tokio::test(start_paused = true)]
async fn namespaces_must_be_there_and_stay() {
    let world = World::new().await;
    let elsewhere = "/apis/verbs.example.com/v1/namespaces/verbs-none/widgets";
    world.post(elsewhere, widget("a", json!({}))).await.refused(404, "NotFound", "namespaces \"verbs-none\" not found");
    let going = world.delete("/api/v1/namespaces/verbs-a").await;
    assert_eq!((going.code, &going.body["status"]["phase"]), (200, &json!("Terminating")), "{}", going.text);
    let refused = world.post(WIDGETS, widget("x", json!({}))).await;
    refused.refused(
        403,
        "Forbidden",
        "widgets.verbs.example.com \"x\" is forbidden: unable to create new content in namespace verbs-a because it is \
         being terminated",
    );
    let cause = json!({"reason": "NamespaceTerminating", "message": "namespace verbs-a is being terminated",
        "field": "metadata.namespace"});
    assert_eq!(refused.body["details"]["causes"], json!([cause]));
}

#[tokio::test(start_paused = true)]
async fn cluster_wide_objects_have_no_namespace() {
    let world = World::new().await;
    let sent = json!({"apiVersion": "verbs.example.com/v1", "kind": "Gadget",
        "metadata": {"name": "g", "namespace": "x"}, "anything": {"goes": [1]}});
    let made = world.post(GADGETS, sent).await;
    assert_eq!(made.code, 201, "{}", made.text);
    assert!(made.body["metadata"].get("namespace").is_none());
    assert_eq!(made.body["anything"], json!({"goes": [1]}));
}
