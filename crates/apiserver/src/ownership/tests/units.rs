use schema::Schema;
use serde_json::{Value, json};

use super::judged::widget;
use crate::ownership::fields::FieldSet;
use crate::ownership::{Writer, apply, keep_times, manager_name, record_update};

pub(super) fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        api_version: "ownership.example.com/v1",
        kind: "Widget",
        subresource: "",
        untouched: &["status"],
        custom: true,
        now: "2026-01-02T03:04:05.678Z".parse().unwrap(),
    }
}

fn later(writer: Writer<'_>) -> Writer<'_> {
    Writer { now: "2026-01-02T03:05:00Z".parse().unwrap(), ..writer }
}

pub(super) fn made(spec: &Value) -> Value {
    json!({"apiVersion": "ownership.example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": spec})
}

fn set(fields: &Value) -> FieldSet {
    FieldSet::parse(fields).unwrap_or_else(|| panic!("{fields}"))
}

fn paths(set: &FieldSet) -> Vec<String> {
    let mut paths = Vec::new();
    set.each_path("", &mut |path| paths.push(path));
    paths
}

#[test]
fn every_kind_of_field_is_read_and_written() {
    let fields = json!({
        "f:spec": {
            ".": {},
            "f:a": {},
            "f:list": {"i:0": {}, "i:-3": {}},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}},
            "f:set": {"v:\"x\"": {}, "v:1": {}, "v:true": {}, "v:1.5": {}, "v:null": {}},
        },
    });
    let set = set(&fields);
    assert_eq!(set.clone().into_json(), fields);
    assert_eq!(
        paths(&set),
        [
            ".spec",
            ".spec.a",
            ".spec.list[-3]",
            ".spec.list[0]",
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[port=80,protocol=\"TCP\"].name",
            ".spec.set[=1]",
            ".spec.set[=1.5]",
            ".spec.set[=\"x\"]",
            ".spec.set[=true]",
            ".spec.set[=null]",
        ]
    );
}

#[test]
fn what_a_later_version_adds_is_skipped_and_nonsense_is_none() {
    assert_eq!(set(&json!({"z:new": {"f:x": {}}, "f:a": {}})).clone().into_json(), json!({"f:a": {}}));
    assert_eq!(set(&json!({"f:a": null})).clone().into_json(), json!({"f:a": {}}));
    assert_eq!(set(&json!({"f:a": {".": {}}})).clone().into_json(), json!({"f:a": {}}));
    for nonsense in [
        json!({"k:nonsense": {}}),
        json!({"k:[]": {}}),
        json!({"v:{": {}}),
        json!({"i:x": {}}),
        json!({"nonsense": {}}),
        json!({"f:a": 5}),
        json!([]),
        json!("x"),
    ] {
        assert_eq!(FieldSet::parse(&nonsense), None, "{nonsense}");
    }
}

#[test]
fn values_in_keys_are_written_as_go_writes_them() {
    let fields = json!({"v:\"\\u003c\\u0026\\u003e\\\"\\\\\"": {}});
    assert_eq!(set(&fields).clone().into_json(), fields);
    assert_eq!(set(&json!({"v:\"<&>\\\"\\\\\"": {}})).clone().into_json(), fields);
}

#[test]
fn keys_are_the_same_in_whatever_order_they_are_written() {
    let one = set(&json!({"k:{\"a\":1,\"b\":2}": {}}));
    let other = set(&json!({"k:{\"b\":2,\"a\":1}": {}}));
    assert_eq!(one, other);
}

#[test]
fn taking_a_field_leaves_what_is_below_it_unless_the_whole_is_taken() {
    let mut set_of_three = set(&json!({"f:a": {".": {}, "f:b": {}, "f:c": {}}}));
    let taken = set(&json!({"f:a": {".": {}, "f:b": {}}}));
    let mut rest = set_of_three.clone();
    rest.subtract(&taken);
    assert_eq!(rest.clone().into_json(), json!({"f:a": {"f:c": {}}}));
    set_of_three.subtract_whole(&taken);
    assert!(set_of_three.is_empty());
}

fn recorded(old: Option<&Value>, mut new: Value, writer: Writer<'_>) -> Value {
    record_update(widget(), old, &mut new, writer);
    if let Some(old) = old {
        keep_times(old, &mut new);
    }
    new
}

#[test]
fn times_are_those_of_the_last_change_in_whole_seconds() {
    let created = recorded(None, made(&json!({"a": "1"})), writer("c"));
    assert_eq!(created["metadata"]["managedFields"][0]["time"], "2026-01-02T03:04:05Z");

    let untouched = recorded(Some(&created), created.clone(), later(writer("c")));
    assert_eq!(untouched, created);

    let mut changed = created.clone();
    changed["spec"]["a"] = "2".into();
    let changed = recorded(Some(&created), changed, later(writer("c")));
    assert_eq!(changed["metadata"]["managedFields"][0]["time"], "2026-01-02T03:05:00Z");
}

#[test]
fn an_apply_that_changes_nothing_has_no_time() {
    let schema = widget();
    let intent = made(&json!({"a": "1"}));
    let live = apply(schema, None, &intent, writer("m"), false).unwrap();
    assert_eq!(live["metadata"]["managedFields"][0]["time"], "2026-01-02T03:04:05Z");
    assert_eq!(apply(schema, Some(&live), &intent, later(writer("m")), false).unwrap(), live);

    let shared = apply(schema, Some(&live), &intent, later(writer("n")), false).unwrap();
    assert_eq!(shared["metadata"]["managedFields"][0]["manager"], "n");
    assert_eq!(shared["metadata"]["managedFields"][0].get("time"), None);
}

#[test]
fn a_write_that_leaves_all_but_the_times_as_it_was_is_none() {
    let live = recorded(None, made(&json!({"a": "1"})), writer("c"));
    let mut rewritten = live.clone();
    rewritten["metadata"]["managedFields"][0]["time"] = "2026-02-02T00:00:00Z".into();
    keep_times(&live, &mut rewritten);
    assert_eq!(rewritten, live);

    let mut changed = live.clone();
    changed["metadata"]["managedFields"][0]["time"] = "2026-02-02T00:00:00Z".into();
    changed["spec"]["b"] = "1".into();
    let expected = changed.clone();
    keep_times(&live, &mut changed);
    assert_eq!(changed, expected);
}

#[test]
fn a_reset_forgets_all_owners_until_somebody_applies() {
    let live = recorded(None, made(&json!({"a": "1"})), writer("c"));
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    let reset = recorded(Some(&live), reset, writer("x"));
    assert_eq!(reset["metadata"].get("managedFields"), None);

    let mut changed = reset.clone();
    changed["spec"]["a"] = "2".into();
    let changed = recorded(Some(&reset), changed, writer("x"));
    assert_eq!(changed["metadata"].get("managedFields"), None);

    let applied = apply(widget(), Some(&changed), &made(&json!({"b": "1"})), writer("m"), false).unwrap();
    let managers: Vec<_> =
        applied["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(managers, ["m", "before-first-apply"]);
}

#[test]
fn an_empty_list_resets_built_ins_only() {
    let live = recorded(None, made(&json!({"a": "1"})), writer("c"));
    let mut reset = live.clone();
    reset["metadata"]["managedFields"] = json!([]);
    assert_eq!(recorded(Some(&live), reset.clone(), writer("x")), live);
    let built_in = Writer { custom: false, ..writer("x") };
    assert_eq!(recorded(Some(&live), reset, built_in)["metadata"].get("managedFields"), None);
}

#[test]
fn what_has_become_a_whole_is_owned_as_one() {
    let text = json!({"type": "string"});
    let schema = |atomic: bool| {
        let mut spec = json!({
            "type": "object",
            "properties": {
                "m": {"type": "object", "additionalProperties": text},
                "l": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
                "s": {"type": "object", "properties": {"x": text}},
                "am": {"type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic"},
            },
        });
        if atomic {
            spec["properties"]["m"]["x-kubernetes-map-type"] = "atomic".into();
            spec["properties"]["l"]["x-kubernetes-list-type"] = "atomic".into();
            spec["properties"]["s"]["x-kubernetes-map-type"] = "atomic".into();
            spec["properties"]["am"]["x-kubernetes-map-type"] = "granular".into();
        }
        Schema::parse(&json!({"type": "object", "properties": {"spec": spec}}), "").unwrap()
    };
    let intent = made(&json!({"m": {"k": "1"}, "l": ["x"], "s": {"x": "1"}, "am": {"k": "1"}}));
    let live = apply(&schema(false), None, &intent, writer("m"), false).unwrap();
    let mut changed = live.clone();
    changed["metadata"]["labels"] = json!({"l": "1"});
    record_update(&schema(true), Some(&live), &mut changed, writer("u"));
    assert_eq!(
        changed["metadata"]["managedFields"][0]["fieldsV1"],
        json!({"f:spec": {"f:am": {}, "f:l": {}, "f:m": {}, "f:s": {}}})
    );

    let other = made(&json!({"m": {"y": "1"}}));
    let conflict = apply(&schema(true), Some(&changed), &other, writer("o"), false).unwrap_err();
    assert_eq!(conflict.message, "Apply failed with 1 conflict: conflict with \"m\": .spec.m");
}

#[test]
fn last_applied_goes_if_it_no_longer_fits() {
    let schema = widget();
    let key = "kubectl.kubernetes.io/last-applied-configuration";
    let mut live = made(&json!({"a": "1"}));
    live["metadata"]["annotations"] = json!({key: "{}", "other": "x".repeat(200_000)});
    let live = recorded(None, live, writer("c"));
    let small = apply(schema, Some(&live), &made(&json!({"b": "<1>"})), writer("kubectl"), false).unwrap();
    assert_eq!(
        small["metadata"]["annotations"][key],
        "{\"apiVersion\":\"ownership.example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"b\":\"\\u003c1\\u003e\"}}\n"
    );
    let large = made(&json!({"b": "x".repeat(100_000)}));
    let large = apply(schema, Some(&live), &large, writer("kubectl"), false).unwrap();
    assert_eq!(large["metadata"]["annotations"].get(key), None);
    assert!(large["metadata"]["annotations"].get("other").is_some());
}

#[test]
fn managers_are_named_by_the_request_or_its_user_agent() {
    assert_eq!(manager_name("given", "kubectl/v1.33"), "given");
    assert_eq!(manager_name("", "kubectl/v1.33 (linux/amd64)"), "kubectl");
    assert_eq!(manager_name("", "Mozilla"), "Mozilla");
    assert_eq!(manager_name("", ""), "");
    assert_eq!(manager_name("", "a\u{7}b/1"), "ab");
    assert_eq!(manager_name("", &"é".repeat(100)).len(), 128);
}

#[test]
fn large_sets_take_no_longer_than_they_must() {
    let members: Vec<String> = (0..4_000).map(|index| format!("member-{index}")).collect();
    let half: Vec<&String> = members.iter().step_by(2).collect();
    let live = apply(widget(), None, &made(&json!({"set": members})), writer("m"), false).unwrap();
    let applied = apply(widget(), Some(&live), &made(&json!({"set": half})), writer("m"), false).unwrap();
    assert_eq!(applied["spec"]["set"], json!(half));
}
