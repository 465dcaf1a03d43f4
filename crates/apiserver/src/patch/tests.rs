use proptest::prelude::*;
use schema::Schema;
use serde_json::{Value, json};

use super::{json, merge, strategic, unknown_fields, without_nulls};
use crate::status::Failure;

const REFUSED: &str = "the server rejected our request due to an error in our request";

fn document() -> Value {
    json!({
        "metadata": {"labels": {"a/b": "x"}},
        "spec": {
            "a": "1", "n": 3, "list": ["p", "q"], "structs": [{"x": "1"}, {"x": "2"}],
            "any": {"n": null, "f": 1.5, "o": {"k": 1, "l": 2}}, "sub": {"x": "1"},
        },
    })
}

fn said(failure: &Failure) -> (u16, &str, &str) {
    (failure.code.as_u16(), failure.reason, &failure.message)
}

/// Each as a real kube-apiserver answered it: the operations, and what is then at a place.
#[test]
fn json_patches_that_apply() {
    let cases = [
        (json!([{"op": "add", "path": "/spec/b", "value": "2"}]), "/spec/b", json!("2")),
        (json!([{"op": "add", "path": "/spec/list/-", "value": "z"}]), "/spec/list", json!(["p", "q", "z"])),
        (json!([{"op": "add", "path": "/spec/list/0", "value": "z"}]), "/spec/list", json!(["z", "p", "q"])),
        (json!([{"op": "add", "path": "/spec/list/2", "value": "z"}]), "/spec/list", json!(["p", "q", "z"])),
        (json!([{"op": "add", "path": "/spec/list/-1", "value": "z"}]), "/spec/list", json!(["p", "q", "z"])),
        (json!([{"op": "add", "path": "/spec/list/-3", "value": "z"}]), "/spec/list", json!(["z", "p", "q"])),
        (json!([{"op": "add", "path": "/spec/list/01", "value": "z"}]), "/spec/list", json!(["p", "z", "q"])),
        (json!([{"op": "add", "path": "/spec/list/+1", "value": "z"}]), "/spec/list", json!(["p", "z", "q"])),
        (
            json!([{"op": "add", "path": "/spec/structs/-1/y", "value": "9"}]),
            "/spec/structs/1",
            json!({"x": "2", "y": "9"}),
        ),
        (json!([{"op": "add", "path": "/spec/any/q"}]), "/spec/any/q", json!(null)),
        (json!([{"op": "add", "path": "/spec/any/~01~1", "value": "9"}]), "/spec/any/~01~1", json!("9")),
        (
            json!([{"op": "add", "path": "/spec/any/~2", "value": "9"}]),
            "/spec/any",
            json!({"n": null, "f": 1.5, "o": {"k": 1, "l": 2}, "~2": "9"}),
        ),
        (json!([{"op": "add", "path": "spec/b", "value": "z"}]), "/b", json!("z")),
        (json!([{"op": "add", "path": "/", "value": "z"}]), "/", json!("z")),
        (json!([{"op": "remove", "path": "/spec/list/0"}]), "/spec/list", json!(["q"])),
        (json!([{"op": "remove", "path": "/spec/list/-1"}]), "/spec/list", json!(["p"])),
        (json!([{"op": "replace", "path": "/spec/a", "value": "9"}]), "/spec/a", json!("9")),
        (json!([{"op": "replace", "path": "/spec/b", "value": "9"}]), "/spec/b", json!("9")),
        (json!([{"op": "replace", "path": "/spec/list/-2", "value": "9"}]), "/spec/list", json!(["9", "q"])),
        (json!([{"op": "replace", "path": "/spec/any/f"}]), "/spec/any/f", json!(null)),
        (json!([{"op": "replace", "path": "", "value": {"k": 1}}]), "", json!({"k": 1})),
        (json!([{"op": "replace", "path": "", "value": "x"}]), "", document()),
        (json!([{"op": "test", "path": "/spec/a", "value": "1"}]), "", document()),
        (json!([{"op": "test", "path": "/spec/zz", "value": null}]), "", document()),
        (json!([{"op": "test", "path": "/spec/any/n", "value": null}]), "", document()),
        (json!([{"op": "test", "path": "/spec/any/o", "value": {"l": 2, "k": 1}}]), "", document()),
        (json!([{"op": "test", "path": "/spec/list/-1", "value": "q"}]), "", document()),
        (json!([{"op": "test", "path": "/metadata/labels/a~1b", "value": "x"}]), "", document()),
        (json!([{"op": "move", "from": "/spec/a", "path": "/spec/b"}]), "/spec/b", json!("1")),
        (json!([{"op": "move", "from": "/spec/list/0", "path": "/spec/list/1"}]), "/spec/list", json!(["q", "p"])),
        (json!([{"op": "copy", "from": "/spec/a", "path": "/spec/b"}]), "/spec/b", json!("1")),
        (json!([{"op": "copy", "from": "/spec/zz", "path": "/spec/b"}]), "/spec/b", json!(null)),
        (json!([{"op": "copy", "from": "/spec/list/-1", "path": "/spec/b"}]), "/spec/b", json!("q")),
        (json!([]), "", document()),
        (json!(null), "", document()),
    ];
    for (patch, at, expected) in cases {
        let patched = json(&document(), &patch).unwrap_or_else(|failure| panic!("{patch}: {failure}"));
        assert_eq!(patched.pointer(at), Some(&expected), "{patch}");
    }
}

#[test]
fn json_patches_that_do_not_apply_are_all_answered_alike() {
    let cases = [
        json!([{"op": "add", "path": "/spec/list/3", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/list/-4", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/list/x", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/list/99999999999999999999", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/nosuch/x", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/a/x", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/any/n/y", "value": "z"}]),
        json!([{"op": "add", "path": "/spec/structs/-/y", "value": "9"}]),
        json!([{"op": "add", "path": "//spec/b", "value": "9"}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "add", "value": "x"}]),
        json!([{"op": "add", "path": null, "value": "x"}]),
        json!([{"op": "remove", "path": "/spec/zz"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "remove", "path": "/spec/list/5"}]),
        json!([{"op": "remove", "path": "/spec/list/-"}]),
        json!([{"op": "remove"}]),
        json!([{"op": "replace", "path": "/spec/list/2", "value": "9"}]),
        json!([{"op": "replace", "path": "/nosuch/a", "value": "9"}]),
        json!([{"op": "test", "path": "/spec/a", "value": "2"}]),
        json!([{"op": "test", "path": "/spec/zz", "value": "2"}]),
        json!([{"op": "test", "path": "/spec/any/o", "value": {"k": 1}}]),
        json!([{"op": "test", "path": "/spec/n", "value": 3.0}]),
        json!([{"op": "test", "path": "/spec/list/9", "value": "p"}]),
        json!([{"op": "test", "path": "/spec/a"}]),
        json!([{"op": "test", "path": "", "value": {}}]),
        json!([{"op": "move", "from": "/spec/zz", "path": "/spec/b"}]),
        json!([{"op": "move", "path": "/spec/b"}]),
        json!([{"op": "move", "from": "/spec/sub", "path": "/spec/sub/deep"}]),
        json!([{"op": "copy", "from": "/spec/list/9", "path": "/spec/b"}]),
        json!([{"op": "copy", "from": "/spec/a"}]),
        json!([{"op": "copy", "from": "", "path": "/spec/b"}]),
        json!([{"op": "frobnicate", "path": "/spec/b"}]),
        json!([{"path": "/spec/b"}]),
        json!([null]),
    ];
    for patch in cases {
        let failure = json(&document(), &patch).expect_err(&patch.to_string());
        assert_eq!(said(&failure), (422, "Invalid", REFUSED), "{patch}");
        assert_eq!(failure.to_json()["details"], json!({}));
    }
}

#[test]
fn json_patches_that_are_none() {
    let cases = [
        (json!({"op": "add"}), "a JSON patch must be a list of operations, not an object"),
        (json!("x"), "a JSON patch must be a list of operations, not a string"),
        (json!([5]), "an operation must be an object, not the number 5"),
        (json!([{"op": 5}]), "op must be a string, not the number 5"),
        (json!([{"op": "add", "path": 5}]), "path must be a string, not the number 5"),
        (json!([{"op": "copy", "from": 5}]), "from must be a string, not the number 5"),
    ];
    for (patch, expected) in cases {
        let failure = json(&document(), &patch).expect_err(&patch.to_string());
        let message = format!("error decoding patch: {expected}");
        assert_eq!(said(&failure), (400, "BadRequest", message.as_str()));
    }
}

#[test]
fn a_json_patch_has_at_most_ten_thousand_operations() {
    let operation = json!({"op": "add", "path": "/spec/a", "value": 1});
    assert!(json(&document(), &Value::Array(vec![operation.clone(); 10_000])).is_ok());
    let failure = json(&document(), &Value::Array(vec![operation; 10_001])).unwrap_err();
    let message = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(said(&failure), (413, "RequestEntityTooLarge", message));
}

#[test]
fn copies_end_before_they_fill_the_memory_or_the_stack() {
    let large = json!({"spec": {"text": "x".repeat(1024 * 1024)}});
    let copy = |to: usize| json!({"op": "copy", "from": "/spec/text", "path": format!("/spec/{to}")});
    assert!(json(&large, &(0..2).map(copy).collect()).is_ok());
    assert_eq!(said(&json(&large, &(0..3).map(copy).collect()).unwrap_err()), (422, "Invalid", REFUSED));

    let deepen = json!({"op": "copy", "from": "/spec", "path": "/spec/again"});
    assert_eq!(said(&json(&document(), &json!(vec![deepen; 200])).unwrap_err()), (422, "Invalid", REFUSED));
}

#[test]
fn fields_that_operations_do_not_have_are_remarked() {
    let patch = json!([{"op": "add", "path": "/a", "value": 1}, {"op": "add", "extra": 2, "x y": 1}]);
    assert_eq!(
        unknown_fields(&patch),
        [r#"json patch unknown field "[1].extra""#, r#"json patch unknown field "[1].x y""#]
    );
}

#[test]
fn merge_patches() {
    let cases = [
        (json!({"spec": {"a": null, "b": "2"}}), "/spec/b", json!("2")),
        (json!({"spec": {"any": {"l": [{"x": null, "y": 1}]}}}), "/spec/any/l", json!([{"y": 1}])),
        (json!({"spec": {"any": {"o": [{"k": null}]}}}), "/spec/any/o", json!([{"k": null}])),
        (json!({"spec": {"any": {"new": {"a": null, "b": {"c": null}}}}}), "/spec/any/new", json!({"b": {}})),
        (json!({"spec": {"structs": [{"x": null, "y": "1"}]}}), "/spec/structs", json!([{"y": "1"}])),
        (json!({"spec": {"any": {"n": {"a": null}}}}), "/spec/any/n", json!({})),
        (json!({"spec": {"sub": "x"}}), "/spec/sub", json!("x")),
        (json!({"spec": null}), "", json!({"metadata": {"labels": {"a/b": "x"}}})),
    ];
    for (patch, at, expected) in cases {
        let patched = merge(&document(), &patch).unwrap();
        assert_eq!(patched.pointer(at), Some(&expected), "{patch}");
    }
    let failure = merge(&document(), &json!([])).unwrap_err();
    let message = "a merge patch must be an object, not a list";
    assert_eq!(said(&failure), (400, "BadRequest", message));
    assert_eq!(said(&merge(&document(), &Value::Null).unwrap_err()), (400, "BadRequest", "Invalid JSON Patch"));
}

fn config_map() -> Schema {
    let text = json!({"type": "string"});
    let reference = json!({"type": "object", "properties": {"name": text, "namespace": text}});
    Schema::parse(
        &json!({
            "type": "object",
            "properties": {
                "data": {"type": "object", "additionalProperties": text},
                "secrets": {
                    "type": "array", "items": reference,
                    "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                },
                "others": {"type": "array", "items": reference},
            },
        }),
        "",
    )
    .unwrap()
}

fn live() -> Value {
    json!({
        "metadata": {
            "name": "sp", "labels": {"l": "1"}, "finalizers": ["a", "b", "d"],
            "ownerReferences": [{"kind": "C", "name": "o1", "uid": "u1"}, {"kind": "C", "name": "o2", "uid": "u2"}],
        },
        "data": {"k": "v", "k2": "v2"},
        "secrets": [{"name": "s1"}, {"name": "s2", "namespace": "n"}],
        "others": [{"name": "i1"}],
    })
}

#[test]
fn strategic_merge_patches() {
    let cases = [
        (json!({"data": {"k": null, "n": "1"}}), "/data", json!({"k2": "v2", "n": "1"})),
        (json!({"data": {"$patch": "replace", "n": "1"}}), "/data", json!({"n": "1"})),
        (json!({"data": {"$patch": "delete"}}), "/data", json!({})),
        (json!({"data": {"$retainKeys": ["k"], "k": "3"}}), "/data", json!({"k": "3"})),
        (json!({"data": {"$retainKeys": ["k2", 5, null]}}), "/data", json!({"k2": "v2"})),
        (json!({"data": {"$retainKeys": ["k2"], "k": null}}), "/data", json!({"k2": "v2"})),
        (json!({"$patch": "replace", "data": {"q": "1"}}), "", json!({"data": {"q": "1"}})),
        (json!({"$patch": "delete"}), "", json!({})),
        (json!({"metadata": {"finalizers": ["c"]}}), "/metadata/finalizers", json!(["c", "a", "b", "d"])),
        (json!({"metadata": {"finalizers": ["b"]}}), "/metadata/finalizers", json!(["a", "b", "d"])),
        (json!({"metadata": {"finalizers": ["c", "a"]}}), "/metadata/finalizers", json!(["c", "a", "b", "d"])),
        (json!({"metadata": {"finalizers": ["c", "c"]}}), "/metadata/finalizers", json!(["c", "a", "b", "d"])),
        (json!({"metadata": {"finalizers": []}}), "/metadata/finalizers", json!(["a", "b", "d"])),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}),
            "/metadata/finalizers",
            json!(["b", "d"]),
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}),
            "/metadata/finalizers",
            json!(["a", "b", "d"]),
        ),
        (json!({"metadata": {"$deleteFromPrimitiveList/nosuch": ["a"]}}), "", live()),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["z"]}}),
            "/metadata/finalizers",
            json!(["z", "b", "d"]),
        ),
        (
            json!({"metadata": {
                "$deleteFromPrimitiveList/finalizers": ["a", "d"], "$setElementOrder/finalizers": ["z", "b"],
                "finalizers": ["z"],
            }}),
            "/metadata/finalizers",
            json!(["z", "b"]),
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"]}}),
            "/metadata/finalizers",
            json!(["b", "a", "d"]),
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["b", "c", "a"], "finalizers": ["c"]}}),
            "/metadata/finalizers",
            json!(["b", "c", "a", "d"]),
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["c", "d"], "finalizers": ["c"]}}),
            "/metadata/finalizers",
            json!(["c", "a", "b", "d"]),
        ),
        (
            json!({"metadata": {"ownerReferences": [{"uid": "u1", "name": "changed"}]}}),
            "/metadata/ownerReferences",
            json!([{"kind": "C", "name": "changed", "uid": "u1"}, {"kind": "C", "name": "o2", "uid": "u2"}]),
        ),
        (
            json!({"metadata": {"ownerReferences": [{"uid": "u3", "name": "new"}]}}),
            "/metadata/ownerReferences",
            json!([
                {"name": "new", "uid": "u3"},
                {"kind": "C", "name": "o1", "uid": "u1"}, {"kind": "C", "name": "o2", "uid": "u2"},
            ]),
        ),
        (
            json!({"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "delete"}]}}),
            "/metadata/ownerReferences",
            json!([{"kind": "C", "name": "o2", "uid": "u2"}]),
        ),
        (json!({"metadata": {"ownerReferences": [{"uid": "nosuch", "$patch": "delete"}]}}), "", live()),
        (
            json!({"metadata": {"ownerReferences": [{"$patch": "replace"}, {"uid": "u9"}]}}),
            "/metadata/ownerReferences",
            json!([{"uid": "u9"}]),
        ),
        (json!({"metadata": {"ownerReferences": []}}), "", live()),
        (
            json!({"metadata": {
                "$setElementOrder/ownerReferences": [{"uid": "u2"}, {"uid": "u1"}],
                "ownerReferences": [{"uid": "u1", "name": "c"}],
            }}),
            "/metadata/ownerReferences",
            json!([{"kind": "C", "name": "o2", "uid": "u2"}, {"kind": "C", "name": "c", "uid": "u1"}]),
        ),
        (
            json!({"secrets": [{"name": "s3"}]}),
            "/secrets",
            json!([{"name": "s3"}, {"name": "s1"}, {"name": "s2", "namespace": "n"}]),
        ),
        (json!({"secrets": [{"name": "s2", "namespace": null}]}), "/secrets", json!([{"name": "s1"}, {"name": "s2"}])),
        (json!({"secrets": [{"name": "s2", "$patch": "delete"}]}), "/secrets", json!([{"name": "s1"}])),
        (json!({"others": [{"name": "i2"}]}), "/others", json!([{"name": "i2"}])),
        (json!({"metadata": {"labels": {"l": null, "m": "2"}}}), "/metadata/labels", json!({"m": "2"})),
        (json!({"metadata": {"annotations": {"x": null}}}), "/metadata/annotations", json!({})),
        (json!({"binaryData": {"$patch": "replace", "x": "aGk="}}), "", live()),
        (json!(null), "", live()),
    ];
    let schema = config_map();
    for (patch, at, expected) in cases {
        let patched = strategic(&schema, &live(), &patch).unwrap_or_else(|failure| panic!("{patch}: {failure}"));
        assert_eq!(patched.pointer(at), Some(&expected), "{patch}");
    }
}

#[test]
fn strategic_merge_patches_that_are_wrong() {
    let cases = [
        (
            json!({"data": {"$patch": "merge", "n": "1"}}),
            500,
            "unknown patch type: \"merge\" in map: {\"$patch\":\"merge\",\"n\":\"1\"}",
        ),
        (json!({"data": {"$patch": 5}}), 500, "unknown patch type: 5 in map: {\"$patch\":5}"),
        (json!({"data": {"$retainKeys": ["k"], "z": "3"}}), 400, "invalid patch format of retainKeys"),
        (json!({"data": {"$retainKeys": "k"}}), 400, "invalid patch format of retainKeys"),
        (json!({"metadata": {"$deleteFromPrimitiveList": ["a"]}}), 400, "invalid patch format of primitive list"),
        (json!({"metadata": {"$setElementOrder": ["a"]}}), 400, "invalid patch format of setElementOrder list"),
        (
            json!({"metadata": {"$setElementOrder/finalizers": "x"}}),
            500,
            "what is merged as a list must be a list, not a string",
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"], "finalizers": ["c"]}}),
            500,
            "the items of the patch are not in the order of its $setElementOrder list",
        ),
        (
            json!({"metadata": {
                "$setElementOrder/ownerReferences": [{"uid": "u2"}], "ownerReferences": [{"uid": "u1", "name": "c"}],
            }}),
            500,
            "the items of the patch are not in the order of its $setElementOrder list",
        ),
        (
            json!({"metadata": {
                "$setElementOrder/ownerReferences": [{"x": "u2"}], "ownerReferences": [{"uid": "u1"}],
            }}),
            500,
            "an item of a list lacks \"uid\", by which items are told apart: {\"x\":\"u2\"}",
        ),
        (
            json!({"metadata": {"finalizers": [{"x": 1}]}}),
            500,
            "the items of a list and of the patch for it are not all of one type",
        ),
        (
            json!({"metadata": {"ownerReferences": [null]}}),
            500,
            "the items of a list and of the patch for it are not all of one type",
        ),
        (
            json!({"metadata": {"ownerReferences": [{"$patch": "delete"}]}}),
            500,
            "an item of a list lacks \"uid\", by which items are told apart: {\"$patch\":\"delete\"}",
        ),
        (
            json!({"metadata": {"ownerReferences": [{"name": "nokey"}]}}),
            500,
            "an item of a list lacks \"uid\", by which items are told apart: {\"name\":\"nokey\"}",
        ),
        (
            json!({"metadata": {"ownerReferences": [{"uid": "u1", "$patch": "merge"}]}}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (json!([]), 400, "a strategic merge patch must be an object, not a list"),
    ];
    let schema = config_map();
    for (patch, code, message) in cases {
        let failure = strategic(&schema, &live(), &patch).expect_err(&patch.to_string());
        let reason = if code == 400 { "BadRequest" } else { "" };
        assert_eq!(said(&failure), (code, reason, message), "{patch}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        prop_oneof!["[a-c]", Just("replace".to_owned()), Just("delete".to_owned())].prop_map(Value::from),
    ];
    let key = prop_oneof![
        4 => "[a-c]".prop_map(|key| key),
        1 => prop::sample::select(vec![
            "$patch", "$retainKeys", "$setElementOrder/a", "$deleteFromPrimitiveList/a", "metadata", "finalizers",
            "ownerReferences", "uid", "name", "secrets", "data",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        let key = key.clone();
        prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from), objects(key, inner)]
    })
}

fn objects(key: impl Strategy<Value = String>, inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(key, inner, 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn any_object() -> impl Strategy<Value = Value> {
    objects("[a-d]", any_json())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_patch_makes_us_panic(object in any_json(), patch in any_json()) {
        let _ = json(&object, &patch);
        let _ = merge(&object, &patch);
        let _ = strategic(&config_map(), &object, &patch);
    }

    #[test]
    fn a_merge_patch_that_is_applied_again_only_drops_nulls(object in any_object(), patch in any_object()) {
        let once = merge(&object, &patch).unwrap();
        let twice = merge(&once, &patch).unwrap();
        prop_assert_eq!(without_nulls(&twice), without_nulls(&once));
        prop_assert_eq!(merge(&twice, &patch).unwrap(), twice);
    }

    #[test]
    fn the_empty_patch_changes_nothing(object in any_object()) {
        prop_assert_eq!(&merge(&object, &json!({})).unwrap(), &object);
        prop_assert_eq!(&json(&object, &json!([])).unwrap(), &object);
        prop_assert_eq!(&strategic(&config_map(), &object, &json!({})).unwrap(), &object);
    }

    #[test]
    fn what_was_added_can_be_tested_and_removed(object in any_object(), value in any_json()) {
        let there_and_back = json!([
            {"op": "add", "path": "/new", "value": value},
            {"op": "test", "path": "/new", "value": value},
            {"op": "remove", "path": "/new"},
        ]);
        prop_assert_eq!(json(&object, &there_and_back).unwrap(), object);
    }
}
