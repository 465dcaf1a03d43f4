//! Whatever is written in a rule, the answer comes, and it is an answer.

use super::*;

/// Expressions that mostly make sense.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("self".to_owned()),
        Just("self.a".to_owned()),
        Just("self.s".to_owned()),
        Just("self.l".to_owned()),
        Just("self.m".to_owned()),
        Just("self.t".to_owned()),
        Just("self.v".to_owned()),
        Just("oldSelf".to_owned()),
        Just("x".to_owned()),
        Just("'é'".to_owned()),
        Just("''".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("dyn(self.a)".to_owned()),
        Just("9223372036854775807".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u8>().prop_map(|number| format!("{number}u")),
        any::<f32>().prop_map(|number| format!("{number:?}")),
    ];
    leaf.prop_recursive(5, 48, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec!["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "in", "&&", "||"]))
                .prop_map(|((a, b), operator)| format!("({a} {operator} {b})")),
            (inner.clone(), prop::sample::select(vec!["!", "-"])).prop_map(|(a, sign)| format!("{sign}({a})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (two.clone(), prop::sample::select(vec!["all", "exists", "exists_one", "map", "filter", "optMap"]))
                .prop_map(|((a, b), function)| format!("{a}.{function}(x, {b})")),
            (
                two.clone(),
                prop::sample::select(vec!["all", "existsOne", "transformList", "transformMap", "transformMapEntry"])
            )
                .prop_map(|((a, b), function)| format!("{a}.{function}(i, x, {b})")),
            (
                two.clone(),
                prop::sample::select(vec![
                    "contains",
                    "matches",
                    "split",
                    "indexOf",
                    "lastIndexOf",
                    "substring",
                    "charAt",
                    "join",
                    "format",
                    "find",
                    "findAll",
                    "orValue",
                    "or",
                    "replace",
                    "startsWith",
                    "getHours"
                ])
            )
                .prop_map(|((a, b), function)| format!("{a}.{function}({b})")),
            (
                inner.clone(),
                prop::sample::select(vec!["size", "sum", "min", "max", "isSorted", "trim", "first", "value"])
            )
                .prop_map(|(a, function)| format!("{a}.{function}()")),
            (
                inner.clone(),
                prop::sample::select(vec![
                    "size",
                    "int",
                    "uint",
                    "double",
                    "string",
                    "bytes",
                    "timestamp",
                    "duration",
                    "type",
                    "url",
                    "quantity",
                    "ip",
                    "cidr",
                    "dyn",
                    "has",
                    "optional.of"
                ])
            )
                .prop_map(|(a, function)| format!("{function}({a})")),
            two.clone().prop_map(|(a, b)| format!("{a}[{b}]")),
            two.clone().prop_map(|(a, b)| format!("{a}[?{b}]")),
            two.clone().prop_map(|(a, b)| format!("[{a}, {b}]")),
            two.prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            inner.clone().prop_map(|a| format!("{a}.a")),
            inner.prop_map(|a| format!("{a}.?s")),
        ]
    })
}

fn spec(rule: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "s": {"type": "string", "maxLength": 20},
            "l": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 9}},
            "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
            "t": {"type": "string", "format": "date-time"},
            "v": {"x-kubernetes-int-or-string": true, "maxLength": 9},
        },
        "x-kubernetes-validations": [{"rule": rule, "message": "m", "messageExpression": "string(self.a)"}],
    })
}

fn try_out(rule: &str) {
    if let Ok((_, rules)) = compiled(&spec(rule)) {
        let full = json!({"metadata": {"name": "n"}, "spec": {
            "a": -3, "s": "aé1 b", "l": ["a", "", "é"], "m": {"a": 1, "b": 0}, "t": "2020-02-29T23:59:59.9Z", "v": "7",
        }});
        let sparse = json!({"metadata": {"name": "n"}, "spec": {"a": 0, "v": 7, "l": []}});
        rules.check(&full, None);
        rules.check(&sparse, Some(&full));
        rules.check(&full, Some(&sparse));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn expressions_never_panic(rule in expression()) {
        try_out(&rule);
        try_out(&format!("dyn({rule}) == true || true"));
    }

    #[test]
    fn noise_never_panics(rule in "[a-z0-9'\"\\\\.?:()\\[\\]{}<>=!&|+*/%, é\n\t-]{0,60}") {
        try_out(&rule);
    }

    #[test]
    fn literals_never_panic(text in any::<String>()) {
        try_out(&format!("self.s == '{text}'"));
        try_out(&format!("timestamp('{text}') == self.t || duration('{text}') == duration('1s') || quantity('{text}') == quantity('1')"));
        try_out(&format!("url('{text}').getQuery().size() == ip('{text}').family() || self.s.matches(r'{text}') || '{text}'.format([self.a]) == ''"));
    }
}
