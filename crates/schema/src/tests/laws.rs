//! What holds for all schemas and objects.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{PATH, object};
use crate::Schema;

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        Just(json!(1.5)),
        prop::sample::select(vec!["", "x", "2020-01-02", "abcdef"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Schemas that mean something; some are still refused, for a default that does not fit.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::option::of(0..9_i64).prop_map(|default| with_default(json!({"type": "integer", "maximum": 5}), default)),
        prop::option::of("[a-z]{0,3}")
            .prop_map(|default| with_default(json!({"type": "string", "maxLength": 4}), default)),
        Just(json!({"type": "string", "format": "date"})),
        Just(json!({"x-kubernetes-int-or-string": true})),
        Just(json!({"x-kubernetes-preserve-unknown-fields": true})),
        Just(
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})
        ),
    ];
    let nested = leaf.prop_recursive(4, 30, 3, |inner| {
        let fields = prop::collection::btree_map(key(), inner.clone(), 0..3);
        prop_oneof![
            (fields, prop::option::of(Just(json!({}))), prop::collection::vec(key(), 0..2)).prop_map(
                |(fields, default, required)| {
                    let fields: Map<String, Value> = fields.into_iter().collect();
                    with_default(json!({"type": "object", "properties": fields, "required": required}), default)
                }
            ),
            inner.clone().prop_map(|below| json!({"type": "object", "additionalProperties": below})),
            inner.clone().prop_map(|below| json!({"type": "array", "items": below})),
            inner.prop_map(|below| json!({"type": "array", "items": below, "x-kubernetes-list-type": "atomic"})),
        ]
    });
    (nested, any::<bool>()).prop_map(|(mut schema, nullable)| {
        schema["nullable"] = nullable.into();
        schema
    })
}

fn with_default(mut schema: Value, default: Option<impl Into<Value>>) -> Value {
    if let Some(default) = default {
        schema["default"] = default.into();
    }
    schema
}

fn parsed(spec: &Value) -> Option<Schema> {
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}}), PATH).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_pruned_and_filled_stays_so(spec in schema(), value in value()) {
        let Some(schema) = parsed(&spec) else { return Ok(()) };
        let mut once = object(&value);
        schema.prune(&mut once);
        let pruned = once.clone();
        prop_assert_eq!(schema.prune(&mut once), Vec::<String>::new());
        prop_assert_eq!(&once, &pruned);
        schema.default(&mut once);
        let mut twice = once.clone();
        prop_assert_eq!(schema.prune(&mut twice), Vec::<String>::new());
        schema.default(&mut twice);
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn defaults_break_nothing(spec in schema(), value in value()) {
        let Some(schema) = parsed(&spec) else { return Ok(()) };
        let mut object = object(&value);
        schema.prune(&mut object);
        if schema.validate(&object, None).is_empty() {
            schema.default(&mut object);
            prop_assert_eq!(schema.validate(&object, None), Vec::new(), "{}", object);
        }
    }

    #[test]
    fn an_update_is_never_held_to_more_than_a_creation(spec in schema(), old in value(), new in value()) {
        let Some(schema) = parsed(&spec) else { return Ok(()) };
        let (old, new) = (object(&old), object(&new));
        let created = schema.validate(&new, None);
        for error in schema.validate(&new, Some(&old)) {
            prop_assert!(created.contains(&error), "{}", error);
        }
    }

    #[test]
    fn nonsense_is_refused_or_read_but_never_fatal(openapi in value(), spec in value(), object in value()) {
        let _ = Schema::parse(&openapi, PATH);
        if let Ok(schema) = Schema::parse(&json!({"type": "object", "properties": {"spec": spec}}), PATH) {
            let mut object = object;
            let _ = schema.coerce(&mut object);
            schema.default(&mut object);
            schema.validate(&object, None);
        }
    }
}

#[test]
fn deep_nesting_is_walked_to_the_end() {
    let mut schema = json!({"type": "integer", "default": 7});
    let mut value = json!({"x": null});
    for _ in 0..45 {
        schema = json!({"type": "object", "properties": {"x": schema}});
        value = json!({"x": value, "y": 1});
    }
    let schema = Schema::parse(&schema, PATH).expect("structural");
    let unknown = schema.prune(&mut value);
    assert_eq!(unknown.len(), 46);
    schema.default(&mut value);
    assert_eq!(schema.validate(&value, None).len(), 1, "the innermost is an object where an integer should be");
}
