//! Where the usual Rust implementation differs from kube-apiserver: each of these was wrong somewhere once.

use super::*;

fn object(rule: &str, properties: &Value) -> Value {
    json!({"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]})
}

/// The row passes on the good value and fails on the bad one.
fn tells_apart(rule: &str, properties: &Value, good: &Value, bad: &Value) {
    let spec = object(rule, properties);
    assert_eq!(said(&spec, good, None), Vec::<String>::new(), "{rule}");
    assert_eq!(said(&spec, bad, None), [format!("spec: Invalid value: \"object\": failed rule: {rule}")]);
}

#[test]
fn a_single_underscore_is_not_escaped() {
    tells_apart(
        "self.my_field == 'a'",
        &json!({"my_field": {"type": "string"}}),
        &json!({"my_field": "a"}),
        &json!({"my_field": "b"}),
    );
}

#[test]
fn optional_syntax_is_understood() {
    tells_apart("self.?a.orValue(1) == 1", &json!({"a": {"type": "integer"}}), &json!({}), &json!({"a": 2}));
}

#[test]
fn bind_is_refused_as_kubernetes_refuses_it() {
    let spec = object("cel.bind(x, self.a, x > 0)", &json!({"a": {"type": "integer"}}));
    let errors = compiled(&spec).err().unwrap();
    assert!(errors[0].contains("undeclared reference to 'bind' (in container '')"), "{errors:?}");
}

#[test]
fn types_are_values_and_json_integers_are_ints() {
    tells_apart(
        "type(self.n) == int",
        &json!({"n": {"x-kubernetes-int-or-string": true}}),
        &json!({"n": 1}),
        &json!({"n": "1"}),
    );
}

#[test]
fn comprehensions_may_have_two_variables() {
    let list = json!({"l": {"type": "array", "maxItems": 9, "items": {"type": "integer"}}});
    tells_apart("self.l.all(i, v, i == v)", &list, &json!({"l": [0, 1]}), &json!({"l": [1, 0]}));
    tells_apart("self.l.transformList(i, v, i * v) == [0, 1]", &list, &json!({"l": [5, 1]}), &json!({"l": [5, 2]}));
}

#[test]
fn sizes_are_in_code_points() {
    tells_apart("size(self.s) == 1", &json!({"s": {"type": "string"}}), &json!({"s": "é"}), &json!({"s": "éé"}));
}

#[test]
fn old_items_are_found_by_key() {
    let spec = json!({
        "type": "array", "maxItems": 9, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {
            "type": "object", "required": ["k"],
            "properties": {"k": {"type": "string", "maxLength": 9}, "v": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.v == oldSelf.v"}],
        },
    });
    let old = json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}]);
    assert_eq!(said(&spec, &json!([{"k": "b", "v": 2}, {"k": "a", "v": 1}]), Some(&old)), Vec::<String>::new());
    assert_eq!(
        said(&spec, &json!([{"k": "b", "v": 1}, {"k": "c", "v": 1}]), Some(&old)),
        ["spec[0]: Invalid value: \"object\": failed rule: self.v == oldSelf.v"]
    );
}

#[test]
fn transitions_inside_of_atomic_lists_are_refused() {
    let spec = json!({
        "type": "array", "maxItems": 9,
        "items": {"type": "string", "maxLength": 9, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    });
    assert_eq!(
        compiled(&spec).err().unwrap(),
        ["spec.validation.openAPIV3Schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \
          \"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within \
          spec.validation.openAPIV3Schema.properties[spec]"]
    );
}

#[test]
fn defaults_are_filled_in_before_rules_run() {
    let spec = json!({
        "type": "object", "default": {},
        "properties": {"a": {"type": "integer", "default": 3}},
        "x-kubernetes-validations": [{"rule": "self.a == 3"}],
    });
    let (schema, rules) = compiled(&spec).unwrap();
    for mut object in [json!({}), json!({"spec": null}), json!({"spec": {"a": null}}), json!({"spec": {}})] {
        schema.default(&mut object);
        assert_eq!(object, json!({"spec": {"a": 3}}));
        assert_eq!(rules.check(&object, None), []);
    }
}

#[test]
fn what_can_be_wrong_about_a_rule_besides_its_expression() {
    for (rule, error) in [
        (json!({"rule": " "}), "rule: Required value: rule is not specified"),
        (
            json!({"rule": "true", "message": " "}),
            "message: Invalid value: \" \": message must be non-empty if specified",
        ),
        (
            json!({"rule": "true", "message": "a\nb"}),
            "message: Invalid value: \"a\\nb\": message must not contain line breaks",
        ),
        (
            json!({"rule": "true\n&& true"}),
            "message: Required value: message must be specified if rule contains line breaks",
        ),
        (
            json!({"rule": "true", "messageExpression": " "}),
            "messageExpression: Required value: messageExpression must be non-empty if specified",
        ),
        (
            json!({"rule": "true", "reason": "Foo"}),
            "reason: Unsupported value: \"Foo\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", \
             \"FieldValueInvalid\", \"FieldValueRequired\"",
        ),
        (
            json!({"rule": "true", "fieldPath": ".b"}),
            "fieldPath: Invalid value: \".b\": fieldPath must be a valid path",
        ),
        (json!({"rule": "true", "fieldPath": "a"}), "fieldPath: Invalid value: \"a\": fieldPath must be a valid path"),
        (
            json!({"rule": "true", "optionalOldSelf": true}),
            "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
        ),
        (
            json!({"rule": "true", "messageExpression": "1"}),
            "messageExpression: Invalid value: \"1\": messageExpression must evaluate to a string",
        ),
    ] {
        let spec =
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [rule]});
        let path = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
        assert_eq!(compiled(&spec).err().unwrap(), [format!("{path}.{error}")]);
    }
}

#[test]
fn rules_of_values_that_expressions_cannot_see_are_refused() {
    let spec = json!({"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [{"rule": "true"}]});
    assert_eq!(
        compiled(&spec).err().unwrap(),
        ["spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations: Internal error: internal error: \
          failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema \
          to CEL declarations"]
    );
}

#[test]
fn the_object_itself_has_no_path() {
    let schema = Schema::parse(
        &json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name == 'b'"}]}),
        HERE,
    )
    .unwrap();
    let rules = Rules::compile(&schema, HERE).unwrap();
    let errors = rules.check(&json!({"metadata": {"name": "a"}}), None);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["<nil>: Invalid value: \"object\": failed rule: self.metadata.name == 'b'"]
    );
}

/// Rules of our own resources compile and do what they are there for.
#[test]
fn our_own_definitions_compile() {
    let text = include_str!("../../../../config/crd/infrastructure.cluster.x-k8s.io_physicalhosts.yaml");
    let definition: Value = serde_saphyr::from_str(text).unwrap();
    for version in definition["spec"]["versions"].as_array().unwrap() {
        let openapi = &version["schema"]["openAPIV3Schema"];
        let schema = Schema::parse(openapi, HERE).unwrap();
        let rules = Rules::compile(&schema, HERE).unwrap();
        let host = |address: &str| {
            json!({"metadata": {"name": "a"}, "spec": {
                "redfishConnection": {"address": address, "credentialsSecretRef": "bmc"},
                "consumerRef": {"name": "m", "kind": "M", "apiVersion": "v1"},
            }})
        };
        let (old, new) = (host("https://192.0.2.1"), host("https://192.0.2.2"));
        assert_eq!(rules.check(&old, None), []);
        let errors: Vec<String> = rules.check(&new, Some(&old)).iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "spec.redfishConnection.address: Forbidden: redfishConnection.address cannot change while the host is claimed, \
              since another address may be another server: release the host first"
            ]
        );
    }
}
