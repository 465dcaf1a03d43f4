//! Built-in kinds: what is special about each.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{MAPS, encoded, map, map_of};

cases![
    a_secret_keeps_its_data,
    secrets_that_are_none,
    types_of_secrets_have_rules,
    an_immutable_secret,
    a_configmap_keeps_its_data,
    configmaps_that_are_none,
    an_immutable_configmap,
    a_lease_is_held,
    leases_that_are_none,
    a_lease_is_made_by_replacing,
    an_event_is_seen_in_both_groups,
    events_that_are_none,
    new_events_that_are_none,
    events_are_selected,
    an_event_may_not_change_its_story,
    an_account_is_made,
    accounts_that_are_none,
    a_token_is_given_out,
    tokens_that_are_not_given_out,
    sizes_that_are_too_much,
];

const SECRETS: &str = "/api/v1/namespaces/{ns}/secrets";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases";
const EVENTS: &str = "/api/v1/namespaces/{ns}/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/{ns}/events";
const ACCOUNTS: &str = "/api/v1/namespaces/{ns}/serviceaccounts";

async fn a_secret_keeps_its_data(s: &mut Story) {
    let made = s
        .post(
            SECRETS,
            json!({"metadata": {"name": "a"}, "data": {"k": "dg=="}, "stringData": {"l": "plain", "k": "beats"}}),
        )
        .await;
    made.is(201).has("/type", "Opaque").has("/data/l", "cGxhaW4=").has("/stringData", json!(null));
    s.get(&format!("{SECRETS}/a")).await.is(200);
    s.merge_patch(&format!("{SECRETS}/a"), json!({"stringData": {"m": "more"}}))
        .await
        .is(200)
        .has("/data/m", "bW9yZQ==");
    s.merge_patch(&format!("{SECRETS}/a"), json!({"data": {"k": null}})).await.is(200);
    s.merge_patch(&format!("{SECRETS}/a"), json!({"type": "example.com/other"})).await.is(422);
    s.post(SECRETS, json!({"metadata": {"name": "empty"}, "data": {"k": ""}})).await.is(201);
    s.post(SECRETS, json!({"metadata": {"name": "null"}, "data": {"k": null}})).await;
}

async fn secrets_that_are_none(s: &mut Story) {
    for body in [
        json!({"data": {"k": "not base64!"}}),
        json!({"data": {"k": 7}}),
        json!({"data": {"bad key": "dg=="}}),
        json!({"data": {"..": "dg=="}}),
        json!({"data": {"": "dg=="}}),
        json!({"data": []}),
        json!({"stringData": {"k": 7}}),
        json!({"stringData": {"bad/key": "v"}}),
        json!({"type": 7}),
        json!({"immutable": "yes"}),
    ] {
        let mut secret = json!({"metadata": {"name": "a"}});
        secret.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        s.post(SECRETS, secret).await;
    }
}

async fn types_of_secrets_have_rules(s: &mut Story) {
    for (kind, data) in [
        ("kubernetes.io/tls", json!({})),
        ("kubernetes.io/tls", json!({"tls.crt": "", "tls.key": ""})),
        ("kubernetes.io/basic-auth", json!({})),
        ("kubernetes.io/basic-auth", json!({"username": "dg=="})),
        ("kubernetes.io/ssh-auth", json!({})),
        ("kubernetes.io/dockercfg", json!({})),
        ("kubernetes.io/dockercfg", json!({".dockercfg": "dg=="})),
        ("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "dg=="})),
        ("kubernetes.io/dockerconfigjson", json!({".dockerconfigjson": "e30="})),
        ("kubernetes.io/service-account-token", json!({})),
        ("bootstrap.kubernetes.io/token", json!({})),
        ("any.example.com/type", json!({})),
    ] {
        s.post(&format!("{SECRETS}?dryRun=All"), json!({"metadata": {"name": "a"}, "type": kind, "data": data})).await;
    }
}

async fn an_immutable_secret(s: &mut Story) {
    s.post(SECRETS, json!({"metadata": {"name": "a"}, "data": {"k": "dg=="}, "immutable": true})).await.is(201);
    let one = format!("{SECRETS}/a");
    s.merge_patch(&one, json!({"data": {"k": "dw=="}})).await.is(422);
    s.merge_patch(&one, json!({"immutable": false})).await.is(422);
    s.merge_patch(&one, json!({"immutable": null})).await.is(422);
    s.merge_patch(&one, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    s.delete(&one).await.is(200);
}

async fn a_configmap_keeps_its_data(s: &mut Story) {
    let mut full = map_of("a", json!({"k": "v", "text": "two\nlines", "empty": ""}));
    full["binaryData"] = json!({"b": "AAECAw=="});
    s.post(MAPS, full).await.is(201);
    s.get(&format!("{MAPS}/a")).await.is(200);
    s.post(MAPS, map_of("nothing", json!({}))).await.is(201);
    s.post(MAPS, map_of("null", json!(null))).await.is(201);
}

async fn configmaps_that_are_none(s: &mut Story) {
    for body in [
        json!({"data": {"k": 7}}),
        json!({"data": {"k": true}}),
        json!({"data": {"bad key": "v"}}),
        json!({"data": {"": "v"}}),
        json!({"data": "text"}),
        json!({"binaryData": {"k": "not base64!"}}),
        json!({"data": {"k": "v"}, "binaryData": {"k": "AAAA"}}),
        json!({"data": {"x".repeat(254): "v"}}),
    ] {
        let mut map = map("a");
        map.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        s.post(MAPS, map).await;
    }
}

async fn an_immutable_configmap(s: &mut Story) {
    let mut fixed = map_of("a", json!({"k": "v"}));
    fixed["immutable"] = true.into();
    s.post(MAPS, fixed).await.is(201);
    let one = format!("{MAPS}/a");
    s.merge_patch(&one, json!({"data": {"k": "w"}})).await.is(422);
    s.merge_patch(&one, json!({"binaryData": {"b": "AAAA"}})).await.is(422);
    s.merge_patch(&one, json!({"immutable": false})).await.is(422);
    s.merge_patch(&one, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
}

async fn a_lease_is_held(s: &mut Story) {
    let spec = json!({
        "holderIdentity": "one", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2001-01-01T00:00:00.000000Z", "renewTime": "2001-01-01T00:00:00.123456Z",
    });
    let made = s
        .post(
            LEASES,
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": spec}),
        )
        .await;
    made.is(201);
    let mut lease = made.body().clone();
    lease["spec"]["renewTime"] = "2001-01-01T00:00:01Z".into();
    s.put(&format!("{LEASES}/a"), lease.clone()).await.is(400);
    lease["spec"]["renewTime"] = "2001-01-01T00:00:01.000000Z".into();
    let renewed = s.put(&format!("{LEASES}/a"), lease.clone()).await;
    renewed.is(200).has("/spec/renewTime", "2001-01-01T00:00:01.000000Z");
    s.put(&format!("{LEASES}/a"), lease).await.is(409);
    s.merge_patch(&format!("{LEASES}/a"), json!({"spec": {"holderIdentity": "two", "leaseTransitions": 1}}))
        .await
        .is(200);
    s.post(LEASES, json!({"metadata": {"name": "bare"}})).await.is(201);
}

async fn leases_that_are_none(s: &mut Story) {
    for spec in [
        json!({"leaseDurationSeconds": 0}),
        json!({"leaseDurationSeconds": -1}),
        json!({"leaseTransitions": -1}),
        json!({"leaseDurationSeconds": "long"}),
        json!({"renewTime": "yesterday"}),
        json!({"renewTime": 7}),
        json!({"acquireTime": "2001-01-01"}),
        json!({"holderIdentity": ""}),
        json!({"strategy": "OldestEmulationVersion"}),
        json!({"preferredHolder": "x"}),
        json!("text"),
    ] {
        s.post(&format!("{LEASES}?dryRun=All"), json!({"metadata": {"name": "a"}, "spec": spec})).await;
    }
}

async fn a_lease_is_made_by_replacing(s: &mut Story) {
    s.put(&format!("{LEASES}/a"), json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "one"}})).await;
    s.put(&format!("{EVENTS}/a"), event("a", s)).await;
    s.put(&format!("{SECRETS}/a"), json!({"metadata": {"name": "a"}})).await.is(404);
    s.put(&format!("{ACCOUNTS}/a"), json!({"metadata": {"name": "a"}})).await.is(404);
}

fn event(name: &str, s: &Story) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "type": "Normal", "reason": "Tested", "message": "It was tested.",
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": s.ns()},
        "firstTimestamp": "2001-01-01T00:00:00Z", "lastTimestamp": "2001-01-01T00:00:05Z", "count": 2,
        "source": {"component": "suite", "host": "here"},
    })
}

fn new_event(name: &str, s: &Story) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name}, "type": "Warning", "reason": "Tested", "action": "Testing",
        "note": "It was tested.", "reportingController": "example.com/suite", "reportingInstance": "suite-1",
        "eventTime": "2001-01-01T00:00:00.000000Z",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": s.ns()},
    })
}

async fn an_event_is_seen_in_both_groups(s: &mut Story) {
    s.post(EVENTS, event("old", s)).await.is(201);
    s.get(&format!("{NEW_EVENTS}/old")).await.is(200).has("/note", "It was tested.").has("/deprecatedCount", 2);
    s.post(NEW_EVENTS, new_event("new", s)).await.is(201);
    s.get(&format!("{EVENTS}/new")).await.is(200).has("/message", "It was tested.");
    let series = json!({"series": {"count": 2, "lastObservedTime": "2001-01-01T00:00:09.000000Z"}});
    s.merge_patch(&format!("{NEW_EVENTS}/new"), series).await.is(200);
    s.get(EVENTS).await.is(200);
    s.get(NEW_EVENTS).await.is(200);
    s.merge_patch(&format!("{EVENTS}/old"), json!({"count": 3, "lastTimestamp": "2001-01-01T00:00:07Z"})).await.is(200);
    s.delete(&format!("{NEW_EVENTS}/old")).await.is(200);
    s.get(&format!("{EVENTS}/old")).await.is(404);
}

async fn events_that_are_none(s: &mut Story) {
    let mut elsewhere = event("a", s);
    elsewhere["involvedObject"]["namespace"] = "elsewhere".into();
    s.post(EVENTS, elsewhere).await.is(422);
    let mut placeless = event("b", s);
    placeless["involvedObject"].as_object_mut().unwrap().remove("namespace");
    s.post(EVENTS, placeless).await;
    let mut untimely = event("c", s);
    untimely["firstTimestamp"] = "yesterday".into();
    s.post(EVENTS, untimely).await.is(400);
    s.post(EVENTS, json!({"metadata": {"name": "d"}})).await;
    let mut odd = event("e", s);
    odd["type"] = "Odd".into();
    s.post(EVENTS, odd).await.is(201);
}

async fn new_events_that_are_none(s: &mut Story) {
    for (field, value) in [
        ("reportingController", json!("")),
        ("reportingController", json!("not a name")),
        ("reportingInstance", json!("")),
        ("action", json!("")),
        ("reason", json!("")),
        ("reason", json!("x".repeat(129))),
        ("type", json!("Odd")),
        ("note", json!("x".repeat(1025))),
        ("eventTime", json!(null)),
        ("deprecatedCount", json!(3)),
        ("series", json!({"count": 1, "lastObservedTime": "2001-01-01T00:00:00.000000Z"})),
    ] {
        let mut event = new_event("a", s);
        event[field] = value;
        s.post(&format!("{NEW_EVENTS}?dryRun=All"), event).await;
    }
}

async fn events_are_selected(s: &mut Story) {
    for (name, about, kind) in [("one", "a", "ConfigMap"), ("two", "b", "ConfigMap"), ("three", "a", "Widget")] {
        let mut event = event(name, s);
        event["involvedObject"]["name"] = about.into();
        event["involvedObject"]["kind"] = kind.into();
        s.post(EVENTS, event).await.is(201);
    }
    for selector in [
        "involvedObject.name=a",
        "involvedObject.name=a,involvedObject.kind=Widget",
        "involvedObject.namespace=events-are-selected,involvedObject.uid=",
        "reason=Tested",
        "type!=Normal",
        "source=suite",
        "reportingComponent=suite",
        "regarding.name=a",
        "metadata.name=one",
        "nothing=1",
    ] {
        let encoded = encoded(selector);
        s.get(&format!("{EVENTS}?fieldSelector={encoded}")).await;
        s.get(&format!("{NEW_EVENTS}?fieldSelector={encoded}")).await;
    }
}

async fn an_event_may_not_change_its_story(s: &mut Story) {
    s.post(NEW_EVENTS, new_event("a", s)).await.is(201);
    let one = format!("{NEW_EVENTS}/a");
    s.merge_patch(&one, json!({"note": "Another story."})).await.is(422);
    s.merge_patch(&one, json!({"reason": "Other"})).await.is(422);
    s.merge_patch(&one, json!({"regarding": {"name": "b"}})).await.is(422);
    s.merge_patch(&one, json!({"metadata": {"labels": {"a": "b"}}})).await.is(200);
    s.post(EVENTS, event("b", s)).await.is(201);
    s.merge_patch(&format!("{EVENTS}/b"), json!({"message": "Another story."})).await.is(200);
}

async fn an_account_is_made(s: &mut Story) {
    let account = json!({
        "metadata": {"name": "a"}, "secrets": [{"name": "x"}], "imagePullSecrets": [{"name": "p"}], "automountServiceAccountToken": false,
    });
    s.post(ACCOUNTS, account).await.is(201);
    s.get(&format!("{ACCOUNTS}/a")).await.is(200);
    s.merge_patch(&format!("{ACCOUNTS}/a"), json!({"secrets": []})).await.is(200);
    s.delete(&format!("{ACCOUNTS}/a")).await.is(200);
}

async fn accounts_that_are_none(s: &mut Story) {
    s.post(ACCOUNTS, json!({"metadata": {"name": "a"}, "secrets": "x"})).await;
    s.post(ACCOUNTS, json!({"metadata": {"name": "a"}, "secrets": [{"name": 7}]})).await;
    s.post(ACCOUNTS, json!({"metadata": {"name": "a"}, "automountServiceAccountToken": "yes"})).await;
    s.post(ACCOUNTS, json!({"metadata": {"name": "a.b"}, "secrets": [{}]})).await;
}

async fn a_token_is_given_out(s: &mut Story) {
    s.post(ACCOUNTS, json!({"metadata": {"name": "a"}})).await.is(201);
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let granted = s
        .ask("POST", &format!("{ACCOUNTS}/a/token"), &[("content-type", "application/json")], request.to_string())
        .await;
    granted.is(201);
    s.record(
        "what is granted",
        json!([
            granted.at("/kind"),
            granted.at("/spec/expirationSeconds"),
            granted.at("/metadata/name"),
            granted.at("/metadata/namespace"),
            granted.text("/status/token").split('.').count(),
        ]),
    );
    let token = granted.text("/status/token");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let reviewed = s
        .ask(
            "POST",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            &[("content-type", "application/json")],
            review.to_string(),
        )
        .await;
    s.record(
        "who that is",
        json!([
            reviewed.at("/status/authenticated"),
            reviewed.at("/status/user/username"),
            reviewed.at("/status/user/groups"),
        ]),
    );
    s.delete(&format!("{ACCOUNTS}/a")).await.is(200);
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    s.until("/api/v1/namespaces/{ns}", "there", |_| true).await;
    for _ in 0..100 {
        let target = s.target().with_token(&token);
        let mut other = Story::new("x", target);
        if other.ask("GET", "/api", &[], "").await.code() == 401 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    s.send_with_token(&token, "POST", path).await.is(401);
}

async fn tokens_that_are_not_given_out(s: &mut Story) {
    s.post(ACCOUNTS, json!({"metadata": {"name": "a"}})).await.is(201);
    let path = format!("{ACCOUNTS}/a/token");
    let request = |spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    s.post(&path, request(json!({"expirationSeconds": 5}))).await.is(422);
    s.post(&path, request(json!({"expirationSeconds": 5_000_000_000_i64}))).await.is(422);
    s.post(&format!("{ACCOUNTS}/nobody/token"), request(json!({}))).await.is(404);
    s.post(&path, json!({"metadata": {"name": "b"}})).await;
    s.get(&path).await.is(405);
}

async fn sizes_that_are_too_much(s: &mut Story) {
    s.post(MAPS, map_of("a", json!({"k": "x".repeat(1_100_000)}))).await.is(422);
    s.post(SECRETS, json!({"metadata": {"name": "a"}, "stringData": {"k": "x".repeat(1_100_000)}})).await.is(422);
    let mut spec = crate::samples::widget("a", json!({}));
    spec["spec"]["free"] = json!({"k": "x".repeat(1_600_000)});
    s.post(crate::samples::WIDGETS, spec).await;
}
