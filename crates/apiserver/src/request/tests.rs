use bytes::Bytes;
use proptest::prelude::{any, proptest};
use serde_json::json;

use super::accept::{Form, Media, View, negotiate};
use super::body::Document;
use super::path::{Target, decode};
use super::query::Query;

fn target(path: &str) -> (String, Option<String>, String, Option<String>, Option<String>) {
    let target = Target::parse(path).expect(path);
    (target.group, target.namespace, target.plural, target.name, target.subresource)
}

#[test]
fn paths_name_resources() {
    let text = |text: &str| Some(text.to_owned());
    for (path, group, namespace, plural, name, subresource) in [
        ("/api/v1/namespaces", "", None, "namespaces", None, None),
        ("/api/v1/namespaces/a", "", None, "namespaces", text("a"), None),
        ("/api/v1/namespaces/a/finalize", "", None, "namespaces", text("a"), text("finalize")),
        ("/api/v1/namespaces/a/configmaps", "", text("a"), "configmaps", None, None),
        ("/api/v1/namespaces/a/configmaps/b", "", text("a"), "configmaps", text("b"), None),
        ("/apis/g.io/v1/things/", "g.io", None, "things", None, None),
        ("/apis/g.io/v1/namespaces/a/things/b/status", "g.io", text("a"), "things", text("b"), text("status")),
        ("/apis/g.io/v1/watch/namespaces/a/things", "g.io", text("a"), "things", None, None),
    ] {
        assert_eq!(target(path), (group.to_owned(), namespace, plural.to_owned(), name, subresource), "{path}");
    }
    for path in ["/", "/api", "/api/v1", "/apis/g.io", "/apis/g.io/v1/", "/healthz"] {
        assert_eq!(Target::parse(path), None, "{path}");
    }
}

#[test]
fn queries_are_read_with_tolerance() {
    let query = Query::parse("&limit=5&&labelSelector=a%20in%20(b%2Cc)&x=1+2&watch&pretty=False&bad=%zz");
    let list = query.list().unwrap();
    assert_eq!((list.limit, list.label_selector.as_str(), list.watch), (5, "a in (b,c)", true));
    assert_eq!((query.get("x"), query.switch("pretty"), query.get("bad")), (Some("1 2"), Some(false), None));
}

#[test]
fn the_best_answer_that_we_have_is_picked() {
    let form = |media, view| Some(Form { media, view, pretty: false });
    for (accept, picked) in [
        ("", form(Media::Json, View::Whole)),
        ("*/*", form(Media::Json, View::Whole)),
        ("application/yaml", form(Media::Yaml, View::Whole)),
        ("application/yaml;q=0.1, application/json;q=0.9", form(Media::Json, View::Whole)),
        ("application/vnd.kubernetes.protobuf,application/json", form(Media::Json, View::Whole)),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", form(Media::Json, View::Table("v1"))),
        ("application/json;as=Odd;v=v1;g=meta.k8s.io,application/json", form(Media::Json, View::Whole)),
        ("text/html", None),
    ] {
        assert_eq!(negotiate(accept, false), picked, "{accept}");
    }
    assert_eq!(negotiate("application/yaml", true), None);
}

#[test]
fn keys_that_are_there_twice_are_noticed_and_the_last_counts() {
    let text = Bytes::from_static(br#"{"a":1,"b":[{"c":1,"c":2}],"a":{"d":1}}"#);
    let document = Document::json(&text).unwrap();
    assert_eq!(document.value, json!({"a": {"d": 1}, "b": [{"c": 2}]}));
    assert_eq!(document.duplicates, ["b[0].c", "a"]);
    let yaml = Document::yaml(&Bytes::from_static(b"a: 1\nb:\n- c: 1\n  c: 2\n1: x\n")).unwrap();
    assert_eq!(yaml.value, json!({"a": 1, "b": [{"c": 2}], "1": "x"}));
    assert_eq!(yaml.duplicates, ["b[0].c"]);
}

#[test]
fn bad_json_is_described_with_its_place() {
    let deep = "[".repeat(20_000);
    for (text, why) in [
        ("", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        ("{bad", "it is not JSON: key must be a string at line 1 column 2"),
        ("{\"a\":}", "it is not JSON: expected value at line 1 column 6"),
        ("{}x", "it is not JSON: trailing characters at line 1 column 3"),
        (&deep, "it is not JSON: nested deeper than 100 levels at line 1 column 101"),
    ] {
        assert_eq!(Document::json(text.as_bytes()).unwrap_err(), why, "{text}");
    }
}

#[test]
fn of_several_documents_in_yaml_the_first_counts() {
    let document = Document::yaml(b"# a remark\n---\na: 1\n---\nb: 2\n").unwrap();
    assert_eq!(document.value, json!({"a": 1}));
    assert!(Document::yaml(b"a: [").unwrap_err().starts_with("it is not YAML: "));
}

proptest! {
    #[test]
    fn whatever_comes_is_read_or_refused(text in any::<Vec<u8>>(), path: String, query: String) {
        let bytes = Bytes::from(text);
        let _ = Document::json(&bytes);
        let _ = Document::yaml(&bytes);
        let _ = Target::parse(&decode(&path, false));
        let _ = Query::parse(&query).list();
        let _ = negotiate(&query, false);
        let _ = super::super::selector::LabelSelector::parse(&query);
    }

    #[test]
    fn what_we_write_is_what_we_read(number: i64, text: String, keys: Vec<String>) {
        let value: serde_json::Map<String, serde_json::Value> =
            keys.into_iter().map(|key| (key, json!([number, text]))).collect();
        let written = Bytes::from(serde_json::Value::Object(value.clone()).to_string());
        assert_eq!(Document::json(&written).unwrap().value, serde_json::Value::Object(value));
    }
}
