//! Nothing that a rule or an object says makes the server busy for long.

use super::*;

fn over(spec: &Value, value: &Value) -> String {
    let mut errors = said(spec, value, None);
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors.remove(0)
}

#[test]
fn a_triple_loop_is_cut() {
    let rule = "self.all(x, self.all(y, self.all(z, x != 1)))";
    let spec = json!({
        "type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}],
    });
    let items: Vec<i64> = vec![2; 300];
    assert_eq!(
        over(&spec, &json!(items)),
        format!(
            "spec: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation rules \
             will be run due to call cost exceeds limit for rule: {rule}"
        )
    );
}

#[test]
fn all_rules_of_an_object_share_a_budget() {
    let spec = json!({
        "type": "array", "maxItems": 300,
        "items": {
            "type": "array", "maxItems": 80, "items": {"type": "integer"},
            "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x == y))"}],
        },
    });
    let inner = vec![json!(1); 80];
    let errors = said(&spec, &json!(vec![json!(inner); 600]), None);
    assert_eq!(
        errors,
        [format!(
            "spec[{}]: Invalid value: \"array\": validation failed due to running out of cost budget, no further validation \
             rules will be run",
            errors[0].split(['[', ']']).nth(1).unwrap()
        )]
    );
}

#[test]
fn unbounded_loops_inside_each_other_are_cut() {
    let spec = json!({
        "type": "array", "items": {"type": "string"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.exists(y, x == y))"}],
    });
    assert_eq!(said(&spec, &json!(["a", "b"]), None), Vec::<String>::new());
    let many: Vec<String> = (0..3_000).map(|number| number.to_string()).collect();
    let error = over(&spec, &json!(many));
    assert!(error.contains("actual cost limit exceeded"), "{error}");
}

#[test]
fn strings_and_lists_do_not_explode() {
    let text = json!({
        "type": "string",
        "x-kubernetes-validations": [{
            "rule": "self.replace('', self).replace('', self).replace('', self).replace('', self).size() > 0"
        }],
    });
    let error = over(&text, &json!("x".repeat(100)));
    assert!(error.contains("actual cost limit exceeded"), "{error}");
    let list = json!({
        "type": "object", "properties": {"l": {"type": "array", "maxItems": 2, "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{
            "rule": "self.l.map(x, [x, x]).size() > 0",
        }],
    });
    assert_eq!(said(&list, &json!({"l": [1, 2]}), None), Vec::<String>::new());
    let doubling = (0..40).fold("optional.of(self.l)".to_owned(), |so_far, _| format!("{so_far}.optMap(v, v + v)"));
    let mut list = list;
    list["x-kubernetes-validations"] = json!([{"rule": format!("{doubling}.hasValue()")}]);
    assert!(compiled(&list).is_err(), "macros that double are refused");
}

#[test]
fn large_texts_made_again_and_again_are_cut() {
    let spec = json!({
        "type": "object",
        "properties": {"s": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}},
        "x-kubernetes-validations": [{"rule": "self.l.all(x, self.s.replace('', self.s).size() > 0)"}],
    });
    let error = over(&spec, &json!({"s": "x".repeat(3_000), "l": vec![1; 1_000]}));
    assert!(error.contains("actual cost limit exceeded"), "{error}");
}

#[test]
fn deep_expressions_are_refused_and_long_ones_are_not() {
    let boolean = |rule: String| json!({"type": "boolean", "x-kubernetes-validations": [{"rule": rule}]});
    for rule in [
        format!("{}self{}", "(".repeat(5000), ")".repeat(5000)),
        format!("{}self", "!(".repeat(400)),
        vec!["1"; 5000].join(" + ") + " > 0",
        format!("{}1{} == []", "[".repeat(5000), "]".repeat(5000)),
        format!("self{}", ".a".repeat(5000)),
        format!("{}self", "self ? true : ".repeat(5000)),
        "-".repeat(5000) + "1 == 1" + &" - 1".repeat(5000),
        "a".repeat(100_001),
    ] {
        assert!(compiled(&boolean(rule)).is_err());
    }
    let long = vec!["self"; 5000].join(" && ");
    assert_eq!(said(&boolean(long), &json!(true), None), Vec::<String>::new());
    let deep = format!("{}self{}", "!(".repeat(90), ")".repeat(90));
    assert_eq!(said(&boolean(deep), &json!(true), None), Vec::<String>::new());
}

#[test]
fn comparing_big_containers_again_and_again_is_cut() {
    let spec = json!({
        "type": "object",
        "properties": {
            "big": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
            "l": {"type": "array", "maxItems": 100, "items": {"type": "integer"}},
        },
        "x-kubernetes-validations": [{"rule": "self.l.all(x, self.l.all(y, self == self))"}],
    });
    let big = vec![json!({"a": 1}); 10_000];
    let error = over(&spec, &json!({"big": big, "l": vec![1; 100]}));
    assert!(error.contains("actual cost limit exceeded"), "{error}");
}
