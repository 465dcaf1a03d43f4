//! Who asks: certificates, tokens, nobody.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::SECRETS;

cases![nobody_sees_nothing, tokens_that_are_wrong, who_am_i, may_i,];

async fn nobody_sees_nothing(s: &mut Story) {
    for path in ["/healthz", "/livez", "/readyz"] {
        s.send_anonymously("GET", path).await.is(200);
    }
    for path in [SECRETS, "/api", "/apis", "/api/v1", "/openapi/v3", "/metrics"] {
        let answer = s.send_anonymously("GET", path).await;
        answer.holds("a refusal", |_| answer.code() == 401 || answer.code() == 403);
    }
}

async fn tokens_that_are_wrong(s: &mut Story) {
    let expired = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4IiwiZXhwIjoxfQ.c2ln";
    for token in ["wrong", "", expired, "a.b.c", "x y"] {
        s.send_with_token(token, "GET", SECRETS).await;
    }
    let basic = [("authorization", "Basic YTpi")];
    s.send("GET", SECRETS, &basic, "").await;
}

async fn who_am_i(s: &mut Story) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let me = s.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await;
    me.is(201).holds("a group", |body| body["status"]["userInfo"]["groups"].to_string().contains("system:masters"));
}

fn access(attributes: Value) -> Value {
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": attributes})
}

async fn may_i(s: &mut Story) {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let resource = json!({"resourceAttributes": {"verb": "create", "resource": "configmaps", "namespace": s.ns()}});
    s.post(path, access(resource)).await.is(201).has("/status/allowed", true);
    s.post(path, access(json!({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}))).await.is(201);
    s.post(path, access(json!({}))).await.is(422);
    let both = json!({"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"verb": "get", "path": "/"}});
    s.post(path, access(both)).await.is(422);
    let rules = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": s.ns()}});
    let rules = s
        .ask(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            &[("content-type", "application/json")],
            rules.to_string(),
        )
        .await;
    rules.is(201);
    let all = rules.at("/status/resourceRules").as_array().into_iter().flatten().any(|rule| {
        rule["verbs"] == json!(["*"]) && rule["apiGroups"] == json!(["*"]) && rule["resources"] == json!(["*"])
    });
    s.record("everything is allowed", all.into());
}
