use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{to_json, to_json_as};

/// As Go clients send objects, with the JSON that Go makes of them (`objects.go`).
const OBJECTS: &str = include_str!("../../tests/golden/protobuf/objects.jsonl");
/// What kubectl 1.33 sent, recorded.
const KUBECTL: &str = include_str!("../../tests/golden/protobuf/kubectl.jsonl");

fn lines(text: &str) -> Vec<(Value, Vec<u8>)> {
    text.lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let body = BASE64_STANDARD.decode(line["body"].as_str().unwrap()).unwrap();
            (line, body)
        })
        .collect()
}

/// Go writes some fields even if they are empty; nobody tells the difference.
fn without_nothing(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), without_nothing(value)))
            .filter(|(_, value)| !value.is_null() && value != &json!({}))
            .collect(),
        Value::Array(list) => list.iter().map(without_nothing).collect(),
        other => other.clone(),
    }
}

#[test]
fn every_field_of_every_kind_is_read_as_go_reads_it() {
    let goldens = lines(OBJECTS);
    assert_eq!(goldens.len(), 32);
    for (golden, body) in goldens {
        let name = golden["name"].as_str().unwrap();
        let read = to_json(&body).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        if name.ends_with("-full") && name != "selfsubjectrulesreview-full" {
            assert_eq!(read, golden["json"], "{name}");
        }
        let mut expected = without_nothing(&golden["json"]);
        if name.starts_with("selfsubjectrulesreview") {
            expected.as_object_mut().unwrap().remove("status");
        }
        if name == "scale-zero" {
            // The only plain number that Go writes although it is zero.
            expected["status"] = json!({ "replicas": 0 });
        }
        assert_eq!(without_nothing(&read), expected, "{name}");
    }
}

#[test]
fn what_kubectl_sends_is_understood() {
    let read: Vec<Value> =
        lines(KUBECTL).into_iter().map(|(_, body)| without_nothing(&to_json(&body).unwrap())).collect();
    assert_eq!(
        read,
        [
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "auth-y" } }),
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s", "namespace": "auth-y" },
                "data": { "password": "aHVudGVyMg==", "user": "YWRtaW4=" },
            }),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c", "namespace": "auth-y" },
                "data": { "a": "b" },
            }),
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c2", "namespace": "auth-y" },
                "binaryData": { "bin": "AP8=" },
            }),
            json!({
                "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot", "namespace": "auth-y" },
            }),
            json!({
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                "spec": { "audiences": ["vault"], "expirationSeconds": 1200 }, "status": { "token": "" },
            }),
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": { "resourceAttributes": { "namespace": "auth-y", "verb": "create", "resource": "pods" } },
                "status": { "allowed": false },
            }),
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": { "nonResourceAttributes": { "path": "/metrics", "verb": "get" } },
                "status": { "allowed": false },
            }),
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" }),
            json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview",
                "spec": { "namespace": "default" },
            }),
        ]
    );
}

/// A length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend_from_slice(content);
    bytes
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
}

fn refusal(body: &[u8]) -> (u16, String) {
    let failure = to_json_as(body, "v1", "ConfigMap").unwrap_err();
    (failure.code.as_u16(), failure.message)
}

#[test]
fn what_is_no_object_is_refused() {
    let unrecognized =
        |why: &str| (400, format!("the object provided is unrecognized (must be of type ConfigMap): {why}"));
    let unusable = |why: &str| (400, format!("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: {why}"));
    let config_map = |raw: &[u8]| refusal(&envelope("v1", "ConfigMap", raw));
    let prefix = "the body is not Kubernetes' protobuf: it does not begin with \"k8s\\0\"";
    assert_eq!(refusal(b"junk"), unrecognized(prefix));
    assert_eq!(refusal(b"k8s\0"), unrecognized("the body is empty"));
    assert_eq!(refusal(b""), unrecognized(prefix));
    let ends = |message: &str| format!("the protobuf message {message:?} ends too early");
    let malformed = unusable("the protobuf message \"ConfigMap\" is malformed");
    assert_eq!(refusal(b"k8s\0\xff\xff"), unrecognized(&ends("Unknown")));
    assert_eq!(config_map(b"\xff\xff"), unusable(&ends("ConfigMap")));
    assert_eq!(config_map(b"\x0a\x7f"), unusable(&ends("ConfigMap")));
    let other_type = "field \"metadata\" has another type in the protobuf message than in the API";
    assert_eq!(config_map(b"\x08\x01"), unusable(other_type));
    assert_eq!(config_map(b"\x00\x0b"), malformed);
    assert_eq!(config_map(b"\x0c"), malformed);
    assert_eq!(config_map(&[0xff; 11]), malformed);
    assert_eq!(config_map(&[&[0x0a][..], &[0xff; 9], &[1]].concat()), unusable(&ends("ConfigMap")));
    assert_eq!(
        refusal(&envelope("apps/v1", "Deployment", b"")),
        (
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
                .to_owned()
        )
    );
}

#[test]
fn a_body_that_does_not_say_its_kind_is_what_is_expected() {
    let body = [b"k8s\0".to_vec(), field(2, &field(1, &field(1, b"x")))].concat();
    let expected = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x" } });
    assert_eq!(to_json_as(&body, "v1", "ConfigMap").unwrap(), expected);
    assert_eq!(to_json(&body).unwrap_err().code.as_u16(), 415);
}

#[test]
fn unknown_fields_are_skipped_and_parts_are_merged() {
    let unknown: &[u8] = &[
        0xa0, 0x06, 0x07, // 100: varint
        0xa1, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, // 100: 64 bits
        0xa2, 0x06, 1, b'x', // 100: bytes
        0xa5, 0x06, 0, 0, 0, 0, // 100: 32 bits
        0xa3, 0x06, 0xa3, 0x06, 0x08, 0x01, 0xa4, 0x06, 0xa4, 0x06, // 100: a group within a group
    ];
    let raw =
        [field(1, &field(1, b"a")), unknown.to_vec(), field(1, &field(3, b"b")), field(1, &field(1, b"c"))].concat();
    let read = to_json(&envelope("v1", "ConfigMap", &raw)).unwrap();
    assert_eq!(read["metadata"], json!({ "name": "c", "namespace": "b" }));
}

#[test]
fn depth_costs_nothing() {
    let deep = [0x0b].repeat(3 << 20);
    assert_eq!(to_json(&envelope("v1", "ConfigMap", &deep)).unwrap_err().code.as_u16(), 400);
    let fields = [b"{\"a\":".repeat(10_000), b"1".to_vec(), b"}".repeat(10_000)].concat();
    let raw = field(1, &[&[0x8a, 1][..], &field(0, &field(7, &field(1, &fields)))[1..]].concat());
    assert_eq!(to_json(&envelope("v1", "ConfigMap", &raw)).unwrap_err().code.as_u16(), 400);
}

#[test]
fn times_out_of_range_are_refused() {
    let time = [&[0x08][..], &[0xff; 8], &[0x7f]].concat();
    let raw = field(1, &field(8, &time));
    assert_eq!(
        to_json(&envelope("v1", "ConfigMap", &raw)).unwrap_err().message,
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: a time is out of range"
    );
}

static GOLDENS: LazyLock<Vec<(Value, Vec<u8>)>> = LazyLock::new(|| lines(OBJECTS));

proptest! {
    #[test]
    fn any_bytes_may_come(kind in 0usize..32, raw in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = to_json(&raw);
        let _ = to_json(&[b"k8s\0".to_vec(), raw.clone()].concat());
        let golden = &GOLDENS[kind].0["json"];
        let _ = to_json(&envelope(golden["apiVersion"].as_str().unwrap(), golden["kind"].as_str().unwrap(), &raw));
    }

    #[test]
    fn any_damage_is_survived(kind in 0usize..32, damage in proptest::collection::btree_map(any::<u16>(), any::<u8>(), 1..8), cut in any::<u16>()) {
        let damage: BTreeMap<u16, u8> = damage;
        let mut body = GOLDENS[kind].1.clone();
        for (at, to) in damage {
            let at = usize::from(at) % body.len();
            body[at] = to;
        }
        let _ = to_json(&body);
        body.truncate(usize::from(cut) % (body.len() + 1));
        let _ = to_json(&body);
    }
}
