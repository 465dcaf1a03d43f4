use std::convert::Infallible;
use std::sync::{Arc, LazyLock, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use store::{Change, Expect, Store};
use tower_service::Service;

use super::{Auth, Decision, Gate, ReviewKind, StaticTokens, User, authorize, caller, jwt};
use crate::clock::Clock;
use crate::status::Failure;
use crate::tls::{Peer, Pki};

struct Fixture {
    now: Arc<Mutex<Timestamp>>,
    pki: Pki,
    store: Store,
    auth: Auth,
}

impl Fixture {
    fn new() -> Self {
        let now = Arc::new(Mutex::new("2026-03-01T12:00:00.5Z".parse::<Timestamp>().unwrap()));
        let hand = Arc::clone(&now);
        let clock = Clock::new(move || *hand.lock().unwrap());
        let pki = Pki::in_memory(&clock, &[]).unwrap();
        let store = Store::memory();
        let fixed = StaticTokens::parse("# for scripts\ns3cret,ci,77,\"builders,testers\"\n\nother,bob,\n").unwrap();
        let auth = Auth::new(&pki, &clock, &store, fixed).unwrap();
        Self { now, pki, store, auth }
    }

    async fn with_account(uid: &str) -> Self {
        let fixture = Self::new();
        fixture.put("serviceaccounts/lab/robot", &json!({ "metadata": { "name": "robot", "uid": uid } })).await;
        fixture
    }

    async fn put(&self, key: &str, object: &Value) {
        let key = format!("/registry/core/{key}");
        let before = self.store.get(&key).unwrap().map_or(Expect::Absent, |entry| Expect::Revision(entry.revision));
        let bytes = Bytes::from(object.to_string());
        self.store.write(&key, before, Change::Put(Box::new(move |_| bytes))).await.unwrap();
    }

    async fn remove(&self, key: &str) {
        let key = format!("/registry/core/{key}");
        let before = self.store.get(&key).unwrap().unwrap().revision;
        self.store.write(&key, Expect::Revision(before), Change::Delete(Box::new(|_| Bytes::new()))).await.unwrap();
    }

    fn advance(&self, seconds: i64) {
        *self.now.lock().unwrap() += SignedDuration::from_secs(seconds);
    }

    fn token(&self, spec: &Value) -> String {
        let answer = self.auth.issue_token("lab", "robot", &json!({ "spec": spec })).unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    fn whoami(&self, token: &str) -> Result<User, Failure> {
        self.auth.authenticate("/api", &headers(&[("authorization", &format!("Bearer {token}"))]), Some(&Peer::Unknown))
    }

    fn review(&self, plural: &str, namespace: &str, body: &Value) -> Result<Value, Failure> {
        let group = if plural == "tokenreviews" || plural == "selfsubjectreviews" {
            "authentication.k8s.io"
        } else {
            "authorization.k8s.io"
        };
        self.auth.review(ReviewKind::find(group, plural).unwrap(), namespace, body, &User::admin())
    }

    /// What a TokenReview says against a token.
    fn objection(&self, token: &str) -> String {
        let answer = self.review("tokenreviews", "", &json!({ "spec": { "token": token } })).unwrap();
        assert_eq!(answer["status"]["user"], json!({}));
        assert_eq!(answer["status"].get("authenticated"), None);
        answer["status"]["error"].as_str().unwrap().to_owned()
    }
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (key, value) in pairs {
        headers.append(*key, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn groups(user: &User) -> Vec<&str> {
    user.groups.iter().map(String::as_str).collect()
}

#[test]
fn nothing_is_open_without_credentials_but_health() {
    let fixture = Fixture::new();
    let ask = |path: &str, peer: Option<&Peer>| fixture.auth.authenticate(path, &HeaderMap::new(), peer);
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(ask(path, Some(&Peer::Unknown)).unwrap().name, "system:anonymous");
    }
    for path in ["/", "/api", "/version", "/metrics", "/healthz/etcd", "/apis/x/v1/y"] {
        let failure = ask(path, None).unwrap_err();
        assert_eq!(
            failure.to_json(),
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Unauthorized", "reason": "Unauthorized", "code": 401
            })
        );
    }
    // Whoever shows a bad certificate or token is refused even there.
    assert!(ask("/healthz", Some(&Peer::Refused)).is_err());
    let junk = headers(&[("authorization", "Bearer junk")]);
    assert!(fixture.auth.authenticate("/healthz", &junk, None).is_err());
}

#[test]
fn a_certificate_names_its_user_until_it_ends() {
    let fixture = Fixture::new();
    let pem = fixture.pki.issue_client("jane", "dev", SignedDuration::from_hours(1)).unwrap();
    let chain = [CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()];
    let peer = Peer::Certified(fixture.pki.client(&chain).unwrap());
    let ask = |headers: &HeaderMap| fixture.auth.authenticate("/api", headers, Some(&peer));
    let jane = ask(&HeaderMap::new()).unwrap();
    assert_eq!((jane.name.as_str(), groups(&jane)), ("jane", vec!["dev", "system:authenticated"]));
    assert!(jane.extra["authentication.kubernetes.io/credential-id"][0].starts_with("X509SHA256="));
    // The certificate counts first.
    assert_eq!(ask(&headers(&[("authorization", "Bearer junk")])).unwrap().name, "jane");
    fixture.advance(3700);
    assert_eq!(ask(&HeaderMap::new()).unwrap_err().code, StatusCode::UNAUTHORIZED);
    // And a good token helps out.
    assert_eq!(ask(&headers(&[("authorization", "Bearer s3cret")])).unwrap().name, "ci");
}

#[test]
fn fixed_tokens_name_their_users() {
    let fixture = Fixture::new();
    let ci = fixture.whoami("s3cret").unwrap();
    assert_eq!((ci.name.as_str(), ci.uid.as_str()), ("ci", "77"));
    assert_eq!(groups(&ci), ["builders", "testers", "system:authenticated"]);
    assert_eq!(fixture.whoami("other").unwrap().name, "bob");
    assert_eq!(fixture.whoami("s3cre").unwrap_err().code, StatusCode::UNAUTHORIZED);
    for (text, why) in [
        ("a,b", "line 1: a token, a user and a uid are needed"),
        ("\n,b,c", "line 2: token and user must not be empty"),
    ] {
        assert_eq!(StaticTokens::parse(text).unwrap_err(), why);
    }
    assert_eq!(format!("{:?}", StaticTokens::parse("s3cret,a,b").unwrap()), "StaticTokens(1)");
}

#[test]
fn the_authorization_header_is_read_as_kubernetes_does() {
    let fixture = Fixture::new();
    for good in ["Bearer s3cret", "bearer s3cret", " BEARER s3cret ", "Bearer s3cret and more"] {
        assert!(fixture.auth.authenticate("/api", &headers(&[("authorization", good)]), None).is_ok(), "{good}");
    }
    for bad in ["Basic s3cret", "s3cret", "Bearer", "Bearer ", "Bearer  s3cret", ""] {
        assert!(fixture.auth.authenticate("/api", &headers(&[("authorization", bad)]), None).is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_service_account_gets_a_token_that_ends() {
    let fixture = Fixture::with_account("u-1").await;
    let answer = fixture.auth.issue_token("lab", "robot", &json!({})).unwrap();
    let token = answer["status"]["token"].as_str().unwrap();
    assert_eq!(
        answer,
        json!({
            "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
            "metadata": { "name": "robot", "namespace": "lab", "creationTimestamp": "2026-03-01T12:00:00Z" },
            "spec": { "audiences": [jwt::ISSUER], "expirationSeconds": 3600, "boundObjectRef": null },
            "status": { "token": token, "expirationTimestamp": "2026-03-01T13:00:00Z" },
        })
    );
    let user = fixture.whoami(token).unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:lab:robot", "u-1"));
    assert_eq!(groups(&user), ["system:serviceaccounts", "system:serviceaccounts:lab", "system:authenticated"]);
    assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    fixture.advance(3600 + 59);
    assert!(fixture.whoami(token).is_ok());
    fixture.advance(2);
    assert_eq!(fixture.whoami(token).unwrap_err().code, StatusCode::UNAUTHORIZED);
    assert_eq!(fixture.objection(token), "[invalid bearer token, service account token has expired]");
    fixture.advance(-3 * 3600);
    assert_eq!(fixture.objection(token), "[invalid bearer token, service account token is not valid yet]");
}

#[tokio::test]
async fn a_token_ends_with_its_account() {
    let fixture = Fixture::with_account("u-1").await;
    let token = fixture.token(&json!({}));
    fixture.remove("serviceaccounts/lab/robot").await;
    assert_eq!(fixture.objection(&token), "[invalid bearer token, serviceaccounts \"robot\" not found]");
    fixture.put("serviceaccounts/lab/robot", &json!({ "metadata": { "name": "robot", "uid": "u-2" } })).await;
    assert_eq!(
        fixture.objection(&token),
        "[invalid bearer token, service account UID (u-2) does not match claim (u-1)]"
    );
    let terminating = json!({ "metadata": { "uid": "u-1", "deletionTimestamp": "2026-03-01T12:00:00Z" } });
    fixture.put("serviceaccounts/lab/robot", &terminating).await;
    assert!(fixture.whoami(&token).is_ok());
    fixture.advance(61);
    assert_eq!(fixture.objection(&token), "[invalid bearer token, service account lab/robot has been deleted]");
}

#[tokio::test]
async fn a_token_can_end_with_a_secret() {
    let fixture = Fixture::with_account("u-1").await;
    fixture.put("secrets/lab/leash", &json!({ "metadata": { "name": "leash", "uid": "s-1" } })).await;
    let bound = json!({ "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "leash" } });
    let token = fixture.token(&bound);
    assert!(fixture.whoami(&token).is_ok());
    fixture.remove("secrets/lab/leash").await;
    assert_eq!(fixture.objection(&token), "[invalid bearer token, service account token has been invalidated]");
    fixture.put("secrets/lab/leash", &json!({ "metadata": { "name": "leash", "uid": "s-2" } })).await;
    assert_eq!(
        fixture.objection(&token),
        "[invalid bearer token, secret UID (s-2) does not match service account secret ref claim (s-1)]"
    );
}

#[tokio::test]
async fn token_requests_that_make_no_sense_are_refused_in_kubernetes_words() {
    let fixture = Fixture::with_account("u-1").await;
    let bound = |kind: &str, uid: &str| json!({ "spec": { "boundObjectRef": { "kind": kind, "apiVersion": "v1", "name": "x", "uid": uid } } });
    fixture.put("secrets/lab/x", &json!({ "metadata": { "name": "x", "uid": "s-1" } })).await;
    let cases = [
        (
            json!({ "spec": { "expirationSeconds": 599 } }),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        ),
        (
            json!({ "spec": { "expirationSeconds": 4_294_967_297_i64 } }),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            json!({ "metadata": { "name": "other" } }),
            422,
            "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified",
        ),
        (
            json!({ "metadata": { "namespace": "other" } }),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (bound("Job", ""), 400, "cannot bind token to object of type /v1, Kind=Job"),
        (bound("Pod", ""), 404, "pods \"x\" not found"),
        (
            bound("Secret", "s-9"),
            409,
            "Operation cannot be fulfilled on Secret \"x\": the UID in the bound object reference (s-9) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (
            json!({ "kind": "Foo", "apiVersion": "v1" }),
            400,
            "Foo in version \"v1\" cannot be handled as a TokenRequest: kind must be \"TokenRequest\" and apiVersion \"authentication.k8s.io/v1\"",
        ),
    ];
    for (body, code, message) in cases {
        let failure = fixture.auth.issue_token("lab", "robot", &body).unwrap_err();
        assert_eq!((failure.code.as_u16(), failure.message.as_str()), (code, message));
    }
    let failure = fixture.auth.issue_token("lab", "nobody", &json!({})).unwrap_err();
    assert_eq!(failure.message, "serviceaccounts \"nobody\" not found");
    assert_eq!(fixture.auth.issue_token("lab", "../lab/robot", &json!({})).unwrap_err().code, StatusCode::NOT_FOUND);
    assert_eq!(
        fixture.auth.issue_token("lab", "robot", &json!({ "spec": 3 })).unwrap_err().code,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn tokens_for_others_are_not_for_us() {
    let fixture = Fixture::with_account("u-1").await;
    let token = fixture.token(&json!({ "audiences": ["vault", "consul"] }));
    assert!(fixture.whoami(&token).is_err());
    let answer =
        fixture.review("tokenreviews", "", &json!({ "spec": { "token": token, "audiences": ["vault", "x"] } }));
    let answer = answer.unwrap();
    assert_eq!(answer["status"]["audiences"], json!(["vault"]));
    assert_eq!(answer["status"]["authenticated"], json!(true));
    assert_eq!(
        fixture.objection(&token),
        "[invalid bearer token, token audiences [\"vault\", \"consul\"] is invalid for the target audiences \
         [\"https://kubernetes.default.svc.cluster.local\"]]"
    );
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;

    let fixture = Fixture::with_account("u-1").await;
    let token = fixture.token(&json!({}));
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let claims = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    let forged = encode(&claims.replace("robot", "admin"));
    let stranger = Fixture::with_account("u-1").await;
    let none = encode(r#"{"alg":"none"}"#);
    let hmac = encode(r#"{"alg":"HS256"}"#);
    let cases = [
        format!("{}.{forged}.{}", parts[0], parts[2]),
        format!("{none}.{}.", parts[1]),
        format!("{none}.{}.{}", parts[1], parts[2]),
        format!("{hmac}.{}.{}", parts[1], parts[2]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{token}."),
        format!("{token}.x"),
        format!(".{token}"),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{token}="),
        "..".to_owned(),
        "a".repeat(1 << 20),
        stranger.token(&json!({})),
    ];
    for case in cases {
        assert!(fixture.whoami(&case).is_err(), "{case:.80}");
        assert_eq!(fixture.objection(&case), "invalid bearer token");
    }
    assert!(fixture.whoami(&token).is_ok());
}

static SHARED: LazyLock<Fixture> = LazyLock::new(Fixture::new);

proptest! {
    #[test]
    fn any_text_may_be_given_for_a_token(text in "\\PC{0,80}", header in "[ -~]{0,60}") {
        let fixture = &*SHARED;
        prop_assert!(fixture.auth.user_of_token(&text, &[]).is_err());
        let _ = fixture.auth.authenticate("/api", &headers(&[("authorization", &header)]), None);
    }

    #[test]
    fn any_change_of_a_token_breaks_it(at in 0usize..500, to in "[A-Za-z0-9_.-]") {
        let fixture = &*SHARED;
        let claims = json!({ "iss": jwt::ISSUER, "kubernetes.io": {} });
        let token = fixture.auth.0.signer.sign(&claims).unwrap();
        prop_assert!(fixture.auth.0.signer.read(&token).is_some());
        let mut changed = token.clone();
        let at = at % token.len();
        changed.replace_range(at..=at, &to);
        prop_assert!(changed == token || fixture.auth.0.signer.read(&changed).is_none());
    }
}

#[test]
fn the_admin_may_act_as_somebody_else() {
    let fixture = Fixture::new();
    let act = |pairs: &[(&'static str, &str)]| {
        let mut all = vec![("authorization", "Bearer s3cret")];
        all.extend_from_slice(pairs);
        fixture.auth.authenticate("/api", &headers(&all), None)
    };
    let jane = act(&[("impersonate-user", "jane"), ("impersonate-extra-acme.com%2fproject", "x")]).unwrap();
    assert_eq!((jane.name.as_str(), groups(&jane)), ("jane", vec!["system:authenticated"]));
    assert_eq!(jane.extra["acme.com/project"], ["x"]);
    let robot = act(&[("impersonate-user", "system:serviceaccount:lab:robot")]).unwrap();
    assert_eq!(groups(&robot), ["system:serviceaccounts", "system:serviceaccounts:lab", "system:authenticated"]);
    let grouped = act(&[("impersonate-user", "jane"), ("impersonate-group", "a"), ("impersonate-group", "b")]).unwrap();
    assert_eq!(groups(&grouped), ["a", "b", "system:authenticated"]);
    assert_eq!(groups(&act(&[("impersonate-user", "system:anonymous")]).unwrap()), ["system:unauthenticated"]);
    let failure = act(&[("impersonate-group", "a")]).unwrap_err();
    assert_eq!(failure.code, StatusCode::INTERNAL_SERVER_ERROR);
    let nobody = fixture.auth.authenticate("/healthz", &headers(&[("impersonate-user", "jane")]), None);
    assert_eq!(nobody.unwrap_err().code, StatusCode::FORBIDDEN);
}

#[test]
fn whoever_is_known_is_admin_for_now() {
    let path = super::Attributes { verb: "get", path: "/metrics", ..super::Attributes::default() };
    assert_eq!(authorize(&User::admin(), &path), Decision::Allow);
    assert_eq!(authorize(&User::anonymous(), &path), Decision::Deny(String::new()));
    let health = super::Attributes { verb: "get", path: "/livez", ..super::Attributes::default() };
    assert_eq!(authorize(&User::anonymous(), &health), Decision::Allow);
}

#[test]
fn kubectl_auth_whoami_and_can_i_are_answered() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.review("selfsubjectreviews", "", &json!({ "metadata": { "name": "a" }, "spec": { "u": 1 } })).unwrap(),
        json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": { "creationTimestamp": "2026-03-01T12:00:00Z" },
            "status": { "userInfo": { "username": "admin", "groups": ["system:masters", "system:authenticated"] } },
        })
    );
    let pods = json!({ "resourceAttributes": { "verb": "get", "resource": "pods", "namespace": "x", "junk": 1 } });
    assert_eq!(
        fixture.review("selfsubjectaccessreviews", "", &json!({ "spec": pods })).unwrap(),
        json!({
            "kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
            "metadata": { "creationTimestamp": null },
            "spec": { "resourceAttributes": { "namespace": "x", "verb": "get", "resource": "pods" } },
            "status": { "allowed": true },
        })
    );
    let nobody = json!({ "spec": {
        "user": "system:anonymous", "groups": ["system:unauthenticated"],
        "nonResourceAttributes": { "verb": "get", "path": "/metrics" },
    } });
    let answer = fixture.review("subjectaccessreviews", "", &nobody).unwrap();
    assert_eq!(answer["status"], json!({ "allowed": false }));
    let local = json!({ "spec": {
        "user": "bob", "resourceAttributes": { "verb": "get", "resource": "pods", "namespace": "lab" },
    } });
    let answer = fixture.review("localsubjectaccessreviews", "lab", &local).unwrap();
    assert_eq!(answer["metadata"], json!({ "namespace": "lab", "creationTimestamp": null }));
    assert_eq!(answer["status"], json!({ "allowed": true }));
    let rules = fixture.review("selfsubjectrulesreviews", "", &json!({ "spec": { "namespace": "lab" } })).unwrap();
    assert_eq!(rules["status"]["resourceRules"][0], json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
}

#[test]
fn questions_that_make_no_sense_are_refused_in_kubernetes_words() {
    let fixture = Fixture::new();
    let resource = json!({ "verb": "get", "resource": "pods" });
    let cases = [
        (
            "selfsubjectaccessreviews",
            "",
            json!({ "spec": {} }),
            422,
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes: Invalid value: \"null\": exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            "subjectaccessreviews",
            "",
            json!({ "spec": { "resourceAttributes": resource } }),
            422,
            ".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            "localsubjectaccessreviews",
            "lab",
            json!({ "spec": { "user": "bob", "resourceAttributes": resource } }),
            422,
            ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.namespace: Invalid value: \"\": must match metadata.namespace",
        ),
        (
            "localsubjectaccessreviews",
            "lab",
            json!({ "metadata": { "namespace": "x" } }),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ("selfsubjectrulesreviews", "", json!({}), 400, "no namespace on request"),
        (
            "tokenreviews",
            "",
            json!({ "spec": { "token": null } }),
            400,
            "token is required for TokenReview in authentication",
        ),
        (
            "selfsubjectreviews",
            "",
            json!({ "kind": "Foo", "apiVersion": "v1" }),
            400,
            "Foo in version \"v1\" cannot be handled as a SelfSubjectReview: kind must be \"SelfSubjectReview\" and apiVersion \"authentication.k8s.io/v1\"",
        ),
    ];
    for (plural, namespace, body, code, message) in cases {
        let failure = fixture.review(plural, namespace, &body).unwrap_err();
        assert_eq!((failure.code.as_u16(), failure.message.as_str()), (code, message), "{plural}");
    }
    let named = json!({ "metadata": { "name": "x" }, "spec": { "resourceAttributes": resource } });
    let failure = fixture.review("selfsubjectaccessreviews", "", &named).unwrap_err();
    assert!(failure.message.ends_with("must be empty"), "{failure}");
}

#[derive(Clone)]
struct Inside;

impl Service<Request<Full<Bytes>>> for Inside {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        assert!(request.headers().get("authorization").is_none());
        std::future::ready(Ok(Response::new(Bytes::from(caller(request.extensions()).name.clone()))))
    }
}

#[tokio::test]
async fn the_gate_refuses_strangers_and_marks_the_others() {
    let fixture = Fixture::new();
    let mut gate = Gate::new(fixture.auth.clone(), Inside);
    let response = gate.call(Request::get("/api").body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(serde_json::from_slice::<Value>(response.body()).unwrap()["reason"], "Unauthorized");
    let request = Request::get("/api").header("authorization", "Bearer s3cret").body(Full::default()).unwrap();
    assert_eq!(gate.call(request).await.unwrap().body(), "ci");
    // Within the process there is no gate.
    assert_eq!(Inside.call(Request::get("/api").body(Full::default()).unwrap()).await.unwrap().body(), "admin");
}

/// A body that tells how much of it was read.
struct Counted(Full<Bytes>, Arc<Mutex<usize>>);

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        let frame = std::pin::Pin::new(&mut self.0).poll_frame(context);
        if let std::task::Poll::Ready(Some(Ok(frame))) = &frame {
            *self.1.lock().unwrap() += frame.data_ref().map_or(0, Bytes::len);
        }
        frame
    }
}

impl Service<Request<Counted>> for Inside {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Counted>) -> Self::Future {
        std::future::ready(Ok(Response::new(Bytes::new())))
    }
}

#[tokio::test]
async fn a_stranger_may_finish_his_request_before_he_is_refused_so_that_he_reads_it() {
    let fixture = Fixture::new();
    let mut gate = Gate::new(fixture.auth.clone(), Inside);
    for (expects, read) in [(false, 5_000_000), (true, 0)] {
        let count = Arc::new(Mutex::new(0));
        let mut request = Request::post("/api");
        if expects {
            request = request.header("expect", "100-continue");
        }
        let body = Counted(Full::new(Bytes::from(vec![b' '; 5_000_000])), count.clone());
        let response = gate.call(request.body(body).unwrap()).await.unwrap();
        assert_eq!((response.status(), *count.lock().unwrap()), (StatusCode::UNAUTHORIZED, read));
    }
}
