//! What holds for all objects, not only for those that the real one was asked about.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::judged::widget;
use super::units::{made, writer};
use crate::ownership::compare::{compare, fields_of};
use crate::ownership::fields::FieldSet;
use crate::ownership::shape::Shape;
use crate::ownership::{NOBODYS, apply, record_update};

fn texts() -> impl Strategy<Value = Value> {
    "[p-r]".prop_map(Value::from)
}

fn text_map(keys: &'static str) -> impl Strategy<Value = Value> {
    prop::collection::btree_map(keys, texts(), 1..4).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        "[a-c<]".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "a",
        "b",
        "spec",
        "status",
        "metadata",
        "labels",
        "managedFields",
        "set",
        "items",
        "name",
        "ports",
        "port",
        "any",
        "map",
        "sub",
        "f:a",
        "k:{}",
        "v:1",
        "operation",
        "apiVersion",
        "fieldsV1",
        "fieldsType",
        "atomicMap",
    ]);
    leaf.prop_recursive(5, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Fields of a widget that say something: no empty maps and lists, which come and go by rules of their own.
fn specs() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        texts().prop_map(|value| ("a", value)),
        texts().prop_map(|value| ("b", value)),
        (0i64..3).prop_map(|value| ("n", value.into())),
        any::<bool>().prop_map(|value| ("flag", value.into())),
        text_map("[xy]").prop_map(|value| ("sub", value)),
        text_map("[xy]").prop_map(|value| ("atomicStruct", value)),
        text_map("[k-m]").prop_map(|value| ("map", value)),
        text_map("[k-m]").prop_map(|value| ("atomicMap", value)),
        prop::collection::vec(texts(), 1..3).prop_map(|value| ("list", value.into())),
        prop::collection::btree_set("[s-v]", 1..4).prop_map(|value| ("set", json!(value))),
        prop::collection::btree_map("[i-k]", texts(), 1..3).prop_map(|items| {
            let items: Vec<Value> =
                items.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            ("items", items.into())
        }),
        text_map("[d-f]").prop_map(|value| ("any", json!({"in": value}))),
    ];
    prop::collection::vec(field, 1..6)
        .prop_map(|fields| Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
}

fn sets() -> impl Strategy<Value = FieldSet> {
    (specs(), any_json()).prop_map(|(spec, json)| {
        let schema = widget();
        let mut set = fields_of(&made(&spec), Shape::of(schema));
        set.add(fields_of(&json, Shape::Deduced));
        set
    })
}

fn union(left: &FieldSet, right: &FieldSet) -> FieldSet {
    let mut both = left.clone();
    both.add(right.clone());
    both
}

fn difference(left: &FieldSet, right: &FieldSet) -> FieldSet {
    let mut rest = left.clone();
    rest.subtract(right);
    rest
}

fn owners(object: &Value) -> BTreeMap<String, Value> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    entries.map(|entry| (format!("{}{}", entry["manager"], entry["operation"]), entry["fieldsV1"].clone())).collect()
}

/// All fields that anybody owns.
fn owned(object: &Value) -> FieldSet {
    let mut owned = FieldSet::default();
    for fields in owners(object).values() {
        owned.add(FieldSet::parse(fields).unwrap());
    }
    owned
}

/// Lists as sets: managers that come in another order leave their items in another order.
fn unordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(key, field)| (key.clone(), unordered(field))).collect(),
        Value::Array(items) => {
            let items: BTreeSet<String> = items.iter().map(|item| unordered(item).to_string()).collect();
            json!(items)
        }
        scalar => scalar.clone(),
    }
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"].as_object_mut().map(|meta| meta.remove("managedFields"));
    object
}

fn applied(live: Option<&Value>, spec: &Value, manager: &str) -> Value {
    apply(widget(), live, &made(spec), writer(manager), true).unwrap()
}

/// Another spec with other names for everything, so that two writers never meet.
fn elsewhere(spec: &Value) -> Value {
    let mut moved = Map::new();
    for (key, value) in spec.as_object().unwrap() {
        match key.as_str() {
            "map" | "any" => {
                let renamed: Map<String, Value> =
                    value.as_object().unwrap().iter().map(|(key, value)| (format!("o{key}"), value.clone())).collect();
                moved.insert(key.clone(), Value::Object(renamed));
            }
            "set" => {
                let renamed = value.as_array().unwrap().iter().map(|item| format!("o{}", item.as_str().unwrap()));
                moved.insert(key.clone(), renamed.collect());
            }
            "items" => {
                let renamed = value.as_array().unwrap().iter().map(
                    |item| json!({"name": format!("o{}", item["name"].as_str().unwrap()), "value": item["value"]}),
                );
                moved.insert(key.clone(), renamed.collect());
            }
            "a" => {
                moved.insert("dflt".to_owned(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(moved)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_set_is_read_as_it_was_written(set in sets()) {
        prop_assert_eq!(FieldSet::parse(&set.clone().into_json()), Some(set));
    }

    #[test]
    fn sets_are_sets(a in sets(), b in sets(), c in sets()) {
        prop_assert_eq!(union(&a, &b), union(&b, &a));
        prop_assert_eq!(union(&union(&a, &b), &c), union(&a, &union(&b, &c)));
        prop_assert_eq!(&union(&a, &a), &a);
        prop_assert!(difference(&a, &a).is_empty());
        prop_assert_eq!(a.common(&b), b.common(&a));
        prop_assert_eq!(a.common(&b), difference(&a, &difference(&a, &b)));
        prop_assert_eq!(&union(&difference(&a, &b), &a.common(&b)), &a);
        prop_assert_eq!(difference(&union(&a, &b), &b), difference(&a, &b));
        prop_assert!(a.common(&b).is_within(&a) && a.is_within(&union(&a, &b)));
        prop_assert_eq!(a.is_within(&b), difference(&a, &b).is_empty());
        prop_assert_eq!(difference(&a, &union(&b, &c)), difference(&difference(&a, &b), &c));
    }

    #[test]
    fn nothing_makes_us_panic(old in any_json(), new in any_json(), intent in any_json()) {
        let schema = widget();
        let mut recorded = new.clone();
        record_update(schema, Some(&old), &mut recorded, writer("u"));
        record_update(schema, None, &mut recorded, writer("u"));
        let mut intent = intent;
        if let Some(intent) = intent.as_object_mut() {
            intent.insert("apiVersion".to_owned(), "ownership.example.com/v1".into());
            intent.insert("kind".to_owned(), "Widget".into());
        }
        let _ = apply(schema, Some(&old), &intent, writer("kubectl"), false);
        let _ = apply(schema, Some(&recorded), &intent, writer("u"), true);
        let _ = FieldSet::parse(&old);
    }

    #[test]
    fn what_is_the_same_has_no_changes_and_what_came_has_gone_backwards(a in specs(), b in specs()) {
        let schema = widget();
        let shape = Shape::of(schema);
        let (a, b) = (made(&a), made(&b));
        prop_assert!(compare(&a, &a, shape).is_empty());
        let (there, back) = (compare(&a, &b, shape), compare(&b, &a, shape));
        prop_assert_eq!(there.added, back.removed);
        prop_assert_eq!(there.removed, back.added);
        prop_assert_eq!(there.modified, back.modified);
    }

    #[test]
    fn applying_again_changes_nothing(before in specs(), spec in specs()) {
        let schema = widget();
        let mut live = made(&before);
        record_update(schema, None, &mut live, writer("c"));
        let once = applied(Some(&live), &spec, "m");
        prop_assert_eq!(applied(Some(&once), &spec, "m"), once);
    }

    #[test]
    fn who_applies_by_force_gets_what_it_says_and_owns_it(before in specs(), spec in specs()) {
        let schema = widget();
        let mut live = made(&before);
        record_update(schema, None, &mut live, writer("c"));
        let result = applied(Some(&live), &spec, "m");
        let shape = Shape::of(schema);
        let intended = fields_of(&made(&spec), shape);
        let there = fields_of(&bare(&result), shape);
        prop_assert!(difference(&intended, &there).is_empty());
        prop_assert_eq!(&owners(&result)["\"m\"\"Apply\""], &difference(&intended, &NOBODYS).into_json());
        // And nobody agrees to anything else: applying the same without force is no conflict.
        prop_assert!(apply(schema, Some(&result), &made(&spec), writer("m"), false).is_ok());
    }

    #[test]
    fn writers_of_different_things_do_not_care_who_comes_first(one in specs(), other in specs()) {
        let other = elsewhere(&other);
        prop_assume!(!other.as_object().unwrap().is_empty());
        let schema = widget();
        let plain = |live: Option<&Value>, spec: &Value, manager| {
            apply(schema, live, &made(spec), writer(manager), false).unwrap()
        };
        let one_first = plain(Some(&plain(None, &one, "m")), &other, "o");
        let other_first = plain(Some(&plain(None, &other, "o")), &one, "m");
        prop_assert_eq!(unordered(&bare(&one_first)), unordered(&bare(&other_first)));
        prop_assert_eq!(owners(&one_first), owners(&other_first));
    }

    #[test]
    fn what_is_no_longer_applied_goes_and_nothing_else(spec in specs(), others in specs(), which in any::<prop::sample::Index>()) {
        let schema = widget();
        let keys: Vec<String> = spec.as_object().unwrap().keys().cloned().collect();
        prop_assume!(keys.len() > 1);
        let dropped = which.get(&keys);
        let mut less = spec.clone();
        less.as_object_mut().unwrap().remove(dropped);

        // Alone, exactly that field goes.
        let alone = applied(Some(&applied(None, &spec, "m")), &less, "m");
        prop_assert_eq!(bare(&alone), bare(&applied(None, &less, "m")));

        // With others, their fields stay, whatever they share.
        let shared = applied(Some(&applied(None, &others, "o")), &spec, "m");
        let left = applied(Some(&shared), &less, "m");
        let shape = Shape::of(schema);
        let owned = owned(&left);
        let there = fields_of(&bare(&left), shape);
        prop_assert!(difference(&owned, &there).is_empty(), "{:#}", left);
        prop_assert!(difference(&difference(&there, &owned), &NOBODYS).is_empty(), "{:#}", left);
    }

    #[test]
    fn every_field_of_a_followed_object_has_an_owner(versions in prop::collection::vec(specs(), 1..5)) {
        let schema = widget();
        let mut live: Option<Value> = None;
        for (number, spec) in versions.iter().enumerate() {
            let mut new = made(spec);
            record_update(schema, live.as_ref(), &mut new, writer(&format!("m{number}")));
            let fields = difference(&fields_of(&bare(&new), Shape::of(schema)), &NOBODYS);
            prop_assert!(difference(&fields, &owned(&new)).is_empty(), "{:#}", new);
            live = Some(new);
        }
    }
}
