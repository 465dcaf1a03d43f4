//! Rules in CEL: what they refuse, with which words, and which rules are refused themselves.

use conformance::Story;
use serde_json::{Value, json};

use crate::court::cases;
use crate::samples::{DEFINITIONS, accepted, definition, definition_with_schema, object, refused, thing};

cases![
    a_rule_refuses,
    a_rule_says_why,
    a_message_is_computed,
    reasons_and_paths_of_rules,
    a_transition_rule_compares_with_before,
    optional_old_self,
    rules_on_lists_and_maps,
    transition_rules_in_list_maps,
    field_names_are_escaped,
    optional_fields_and_has,
    rules_on_metadata,
    macros_and_functions,
    kubernetes_functions,
    int_or_string_in_rules,
    a_rule_that_fails_at_run_time,
    rules_and_type_errors,
    rules_that_do_not_compile,
    rules_of_the_wrong_type,
    rules_with_bad_messages,
    rules_that_cost_too_much,
    transition_rules_where_there_is_no_before,
    rules_are_kept_when_nothing_changes,
];

fn rules(properties: Value, rules: Value) -> Value {
    json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules})
}

async fn a_rule_refuses(s: &mut Story) {
    let path = thing(
        s,
        rules(
            json!({"min": {"type": "integer"}, "max": {"type": "integer"}}),
            json!([{"rule": "self.min <= self.max"}]),
        ),
    )
    .await;
    accepted(s, &path, json!({"min": 1, "max": 2})).await;
    refused(s, &path, json!({"min": 3, "max": 2})).await;
    refused(s, &path, json!({"min": 3})).await;
}

async fn a_rule_says_why(s: &mut Story) {
    let path = thing(s, rules(
        json!({
            "a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self % 2 == 0", "message": "must be even"}]},
            "deep": {"type": "object", "properties": {"b": {
                "type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('x')", "message": "must begin with x"}],
            }}},
        }),
        json!([{"rule": "!has(self.a) || self.a > 0", "message": "a must be positive"}, {"rule": "has(self.a) ||\ntrue", "message": "never said"}]),
    ))
    .await;
    refused(s, &path, json!({"a": 3})).await;
    refused(s, &path, json!({"a": -2})).await;
    refused(s, &path, json!({"a": -3, "deep": {"b": "y"}})).await;
    accepted(s, &path, json!({"a": 4, "deep": {"b": "xy"}})).await;
}

async fn a_message_is_computed(s: &mut Story) {
    let path = thing(
        s,
        rules(
            json!({"a": {"type": "integer"}, "name": {"type": "string", "maxLength": 10}}),
            json!([
                {"rule": "self.a < 10", "messageExpression": "'the a of ' + self.name + ' is too much'"},
                {"rule": "self.name != 'x'", "message": "spare", "messageExpression": "self.name == 'x' ? '' : 'y'"},
                {"rule": "self.name != 'y'", "message": "spare", "messageExpression": "'two\\nlines'"},
                {"rule": "self.name != 'z'", "messageExpression": "['x', 'y'][self.a + 5]"},
            ]),
        ),
    )
    .await;
    refused(s, &path, json!({"a": 11, "name": "ok"})).await;
    refused(s, &path, json!({"a": 1, "name": "x"})).await;
    refused(s, &path, json!({"a": 1, "name": "y"})).await;
    refused(s, &path, json!({"a": 1, "name": "z"})).await;
}

async fn reasons_and_paths_of_rules(s: &mut Story) {
    let path = thing(s, rules(
        json!({
            "a": {"type": "integer"},
            "deep": {"type": "object", "properties": {"b": {"type": "integer"}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        }),
        json!([
            {"rule": "self.a != 1", "reason": "FieldValueForbidden", "fieldPath": ".a"},
            {"rule": "self.a != 2", "reason": "FieldValueRequired", "fieldPath": ".deep.b", "message": "b is needed"},
            {"rule": "self.a != 3", "reason": "FieldValueDuplicate", "fieldPath": ".map['x y']"},
            {"rule": "self.a != 4", "reason": "FieldValueInvalid"},
        ]),
    ))
    .await;
    for a in 1..=4 {
        refused(s, &path, json!({"a": a})).await;
    }
}

async fn a_transition_rule_compares_with_before(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "cannot change"}]},
        "growing": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
    }}))
    .await;
    s.post(&path, object(s, "Thing", "a", json!({"growing": 1}))).await.is(201);
    let one = format!("{path}/a");
    s.merge_patch(&one, json!({"spec": {"fixed": "x"}})).await.is(200);
    s.merge_patch(&one, json!({"spec": {"fixed": "y"}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"growing": 0, "fixed": "y"}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"fixed": null, "growing": 2}})).await.is(200);
}

async fn optional_old_self(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "a": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() ? self > oldSelf.value() : self == 1", "optionalOldSelf": true, "message": "begins with 1 and grows"},
        ]},
    }}))
    .await;
    s.post(&path, object(s, "Thing", "a", json!({"a": 2}))).await.is(422);
    s.post(&path, object(s, "Thing", "a", json!({"a": 1}))).await.is(201);
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"a": 3}})).await.is(200);
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"a": 2}})).await.is(422);
}

async fn rules_on_lists_and_maps(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "list": {
            "type": "array", "maxItems": 10, "x-kubernetes-validations": [{"rule": "self.exists(x, x == 'must')", "message": "'must' is missing"}],
            "items": {"type": "string", "maxLength": 20, "x-kubernetes-validations": [{"rule": "self != 'not'"}]},
        },
        "map": {
            "type": "object", "maxProperties": 10, "x-kubernetes-validations": [{"rule": "self.all(k, k.size() < 4 && self[k] > 0)"}],
            "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 100"}]},
        },
    }}))
    .await;
    refused(s, &path, json!({"list": ["a"]})).await;
    refused(s, &path, json!({"list": ["must", "not", "not"]})).await;
    refused(s, &path, json!({"map": {"long key": 1}})).await;
    refused(s, &path, json!({"map": {"a": 100, "b": 0}})).await;
    accepted(s, &path, json!({"list": ["must"], "map": {"a": 1}})).await;
}

async fn transition_rules_in_list_maps(s: &mut Story) {
    let path = thing(s, json!({"type": "object", "properties": {
        "items": {
            "type": "array", "maxItems": 10, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 20}, "v": {"type": "integer"}},
                "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v", "message": "v must not shrink"}],
            },
        },
    }}))
    .await;
    s.post(&path, object(s, "Thing", "a", json!({"items": [{"name": "a", "v": 5}, {"name": "b", "v": 1}]})))
        .await
        .is(201);
    let one = format!("{path}/a");
    s.merge_patch(&one, json!({"spec": {"items": [{"name": "b", "v": 1}, {"name": "a", "v": 5}]}})).await.is(200);
    s.merge_patch(&one, json!({"spec": {"items": [{"name": "c", "v": 0}, {"name": "a", "v": 4}]}})).await.is(422);
    s.merge_patch(&one, json!({"spec": {"items": [{"name": "c", "v": 0}]}})).await.is(200);
}

async fn field_names_are_escaped(s: &mut Story) {
    let path = thing(s, rules(
        json!({
            "with_underscore": {"type": "integer"}, "with__two": {"type": "integer"}, "with-dash": {"type": "integer"},
            "with.dot": {"type": "integer"}, "with/slash": {"type": "integer"}, "in": {"type": "integer"}, "namespace": {"type": "integer"},
        }),
        json!([
            {"rule": "!has(self.with_underscore) || self.with_underscore > 0"},
            {"rule": "!has(self.with__underscores__two) || self.with__underscores__two > 0"},
            {"rule": "!has(self.with__dash__dash) || self.with__dash__dash > 0"},
            {"rule": "!has(self.with__dot__dot) || self.with__dot__dot > 0"},
            {"rule": "!has(self.with__slash__slash) || self.with__slash__slash > 0"},
            {"rule": "!has(self.__in__) || self.__in__ > 0"},
            {"rule": "!has(self.__namespace__) || self.__namespace__ > 0"},
        ]),
    ))
    .await;
    for name in ["with_underscore", "with__two", "with-dash", "with.dot", "with/slash", "in", "namespace"] {
        accepted(s, &path, json!({name: 1})).await;
        refused(s, &path, json!({name: 0})).await;
    }
}

async fn optional_fields_and_has(s: &mut Story) {
    let path = thing(s, rules(
        json!({"a": {"type": "string"}, "deep": {"type": "object", "properties": {"b": {"type": "string"}}}, "default": {"type": "string", "default": "d"}}),
        json!([
            {"rule": "self.?a.orValue('x') != 'bad'"},
            {"rule": "self.?deep.?b.hasValue() ? self.deep.b != 'bad' : true"},
            {"rule": "has(self.default)"},
        ]),
    ))
    .await;
    accepted(s, &path, json!({})).await;
    refused(s, &path, json!({"a": "bad"})).await;
    refused(s, &path, json!({"deep": {"b": "bad"}})).await;
}

async fn rules_on_metadata(s: &mut Story) {
    let schema = json!({
        "type": "object",
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name.startsWith('good')", "message": "the name must begin with good"},
            {"rule": "self.kind == 'Thing' && self.apiVersion != ''"},
        ],
        "properties": {"spec": {"type": "object"}},
    });
    let path = {
        let definition = definition_with_schema(s, "Thing", schema);
        s.define(definition).await
    };
    s.post(&path, object(s, "Thing", "good-one", json!({}))).await.is(201);
    s.post(&path, object(s, "Thing", "bad-one", json!({}))).await.is(422);
    let mut generated = object(s, "Thing", "x", json!({}));
    generated["metadata"] = json!({"generateName": "good-"});
    s.post(&path, generated).await.is(201);
}

async fn macros_and_functions(s: &mut Story) {
    let list = json!({"type": "array", "maxItems": 20, "items": {"type": "integer"}});
    let path = thing(s, rules(
        json!({"list": list, "text": {"type": "string", "maxLength": 50}, "case": {"type": "string", "maxLength": 20}}),
        json!([
            {"rule": "self.case != 'exists_one' || self.list.exists_one(x, x == 1)"},
            {"rule": "self.case != 'filter' || self.list.filter(x, x > 1).size() == 2"},
            {"rule": "self.case != 'map' || self.list.map(x, x * 2) == [2, 4, 6]"},
            {"rule": "self.case != 'in' || 3 in self.list"},
            {"rule": "self.case != 'ternary' || (self.list.size() > 0 ? self.list[0] == 1 : false)"},
            {"rule": "self.case != 'matches' || self.text.matches('^[a-z]+$')"},
            {"rule": "self.case != 'contains' || (self.text.contains('el') && self.text.endsWith('o'))"},
            {"rule": "self.case != 'type' || type(self.list[0]) == int"},
            {"rule": "self.case != 'duration' || duration('1h') > duration('59m')"},
            {"rule": "self.case != 'timestamp' || timestamp('2001-01-01T00:00:00Z').getFullYear() == 2001"},
            {"rule": "self.case != 'dyn' || dyn(1) == 1.0"},
            {"rule": "self.case != 'size' || size('äö') == 2"},
        ]),
    ))
    .await;
    for case in [
        "exists_one",
        "filter",
        "map",
        "in",
        "ternary",
        "matches",
        "contains",
        "type",
        "duration",
        "timestamp",
        "dyn",
        "size",
    ] {
        accepted(s, &path, json!({"case": case, "list": [1, 2, 3], "text": "hello"})).await;
    }
    for case in ["exists_one", "filter", "map", "in", "ternary", "matches", "contains"] {
        refused(s, &path, json!({"case": case, "list": [2, 1, 1, 0], "text": "HELLO"})).await;
    }
}

async fn kubernetes_functions(s: &mut Story) {
    let path = thing(s, rules(
        json!({"text": {"type": "string", "maxLength": 60}, "list": {"type": "array", "maxItems": 10, "items": {"type": "integer"}}, "case": {"type": "string", "maxLength": 20}}),
        json!([
            {"rule": "self.case != 'url' || (isURL(self.text) && url(self.text).getHost() == 'example.com')"},
            {"rule": "self.case != 'ip' || isIP(self.text)"},
            {"rule": "self.case != 'cidr' || (isCIDR(self.text) && cidr(self.text).containsIP('10.1.2.3'))"},
            {"rule": "self.case != 'quantity' || (isQuantity(self.text) && quantity(self.text).isGreaterThan(quantity('1Gi')))"},
            {"rule": "self.case != 'split' || self.text.split('-').size() == 3"},
            {"rule": "self.case != 'lower' || self.text.lowerAscii() == 'hello'"},
            {"rule": "self.case != 'replace' || self.text.replace('a', 'b') == 'bbb'"},
            {"rule": "self.case != 'trim' || self.text.trim().size() == 2"},
            {"rule": "self.case != 'substring' || self.text.substring(1, 3) == 'el'"},
            {"rule": "self.case != 'find' || self.text.find('[0-9]+') == '42'"},
            {"rule": "self.case != 'sorted' || self.list.isSorted()"},
            {"rule": "self.case != 'sum' || (self.list.sum() == 6 && self.list.min() == 1 && self.list.max() == 3)"},
            {"rule": "self.case != 'index' || self.list.indexOf(2) == 1"},
            {"rule": "self.case != 'format' || format.dns1123Label().validate(self.text).hasValue() == false"},
        ]),
    ))
    .await;
    for (case, good, bad) in [
        ("url", "https://example.com/x", "https://example.org/x"),
        ("ip", "10.0.0.1", "10.0.0"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/16"),
        ("quantity", "2Gi", "200Mi"),
        ("split", "a-b-c", "a-b"),
        ("lower", "HeLLo", "HeLL"),
        ("replace", "aba", "abc"),
        ("trim", "  xy ", "xyz"),
        ("substring", "hello", "hallo"),
        ("find", "the 42nd", "none"),
        ("format", "a-label", "No Label"),
    ] {
        accepted(s, &path, json!({"case": case, "text": good})).await;
        refused(s, &path, json!({"case": case, "text": bad})).await;
    }
    for case in ["sorted", "sum", "index"] {
        accepted(s, &path, json!({"case": case, "list": [1, 2, 3]})).await;
        refused(s, &path, json!({"case": case, "list": [3, 1]})).await;
    }
}

async fn int_or_string_in_rules(s: &mut Story) {
    let path = thing(s, rules(
        json!({"port": {"x-kubernetes-int-or-string": true}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
        json!([
            {"rule": "type(self.port) == int ? self.port > 0 : self.port.startsWith('p')"},
        ]),
    ))
    .await;
    accepted(s, &path, json!({"port": 1, "free": {"x": 1}})).await;
    accepted(s, &path, json!({"port": "p1"})).await;
    refused(s, &path, json!({"port": 0})).await;
    refused(s, &path, json!({"port": "x"})).await;
}

async fn a_rule_that_fails_at_run_time(s: &mut Story) {
    let path = thing(s, rules(
        json!({"a": {"type": "integer"}, "list": {"type": "array", "maxItems": 5, "items": {"type": "integer"}}, "map": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}}, "text": {"type": "string", "maxLength": 20}}),
        json!([
            {"rule": "!has(self.a) || 10 / self.a > 0"},
            {"rule": "!has(self.list) || self.list[3] > 0"},
            {"rule": "!has(self.map) || self.map['x'] > 0"},
            {"rule": "!has(self.text) || int(self.text) > 0"},
        ]),
    ))
    .await;
    refused(s, &path, json!({"a": 0})).await;
    refused(s, &path, json!({"list": [1]})).await;
    refused(s, &path, json!({"map": {"y": 1}})).await;
    refused(s, &path, json!({"text": "seven"})).await;
}

async fn rules_and_type_errors(s: &mut Story) {
    let path = thing(
        s,
        rules(
            json!({"a": {"type": "integer", "maximum": 5}, "b": {"type": "string"}}),
            json!([{"rule": "self.a < 3", "message": "a is too big"}]),
        ),
    )
    .await;
    refused(s, &path, json!({"a": "text"})).await;
    refused(s, &path, json!({"a": 9})).await;
    refused(s, &path, json!({"a": 4, "b": 1})).await;
}

async fn bad_rule(s: &mut Story, properties: Value, rule: Value) {
    let definition = definition(s, "Thing", rules(properties, json!([rule])));
    s.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await.is(422);
}

/// What one would not expect to be accepted.
async fn fine_rule(s: &mut Story, properties: Value, rule: Value) {
    let definition = definition(s, "Thing", rules(properties, json!([rule])));
    s.post(&format!("{DEFINITIONS}?dryRun=All"), definition).await.is(201);
}

async fn rules_that_do_not_compile(s: &mut Story) {
    let a = json!({"a": {"type": "integer"}, "text": {"type": "string"}});
    for rule in [
        "",
        "   ",
        "self.a >",
        "self.a > 0 &&",
        "self.nothing == 1",
        "self.a == 'text'",
        "self.a.size() > 0",
        "nothing(self.a)",
        "oldself.a == 1",
        "self.text + 1 == 2",
        "self.a > 0)",
        "'unclosed",
    ] {
        bad_rule(s, a.clone(), json!({"rule": rule})).await;
    }
    let two = definition(s, "Thing", rules(a, json!([{"rule": "self.a >"}, {"rule": "self.b"}])));
    s.post(DEFINITIONS, two).await.is(422);
}

async fn rules_of_the_wrong_type(s: &mut Story) {
    let a = json!({"a": {"type": "integer"}});
    for rule in ["self.a", "1", "'true'", "self.a + 1", "[true]"] {
        bad_rule(s, a.clone(), json!({"rule": rule})).await;
    }
}

async fn rules_with_bad_messages(s: &mut Story) {
    let a = json!({"a": {"type": "integer"}});
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "message": "two\nlines"})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a >\n0"})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "message": " "})).await;
    fine_rule(s, a.clone(), json!({"rule": "self.a > 0", "message": "x".repeat(2049)})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "messageExpression": "1"})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "messageExpression": "self.b"})).await;
    fine_rule(s, a.clone(), json!({"rule": "self.a > 0", "messageExpression": ""})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "reason": "Whim"})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "fieldPath": ".b"})).await;
    bad_rule(s, a.clone(), json!({"rule": "self.a > 0", "fieldPath": "a"})).await;
    fine_rule(s, a, json!({"rule": "self.a > 0", "fieldPath": ""})).await;
}

async fn rules_that_cost_too_much(s: &mut Story) {
    let lists = json!({
        "a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "array", "items": {"type": "string"}},
        "c": {"type": "array", "items": {"type": "string"}},
    });
    bad_rule(s, lists, json!({"rule": "self.a.all(x, self.b.all(y, self.c.all(z, x != y && y != z)))"})).await;
    let text = json!({"a": {"type": "array", "items": {"type": "string"}}});
    bad_rule(s, text, json!({"rule": "self.a.all(x, x.matches('^[a-z]*$'))"})).await;
}

async fn transition_rules_where_there_is_no_before(s: &mut Story) {
    let atomic = json!({"list": {"type": "array", "maxItems": 5, "items": {
        "type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }}});
    let refused = definition(s, "Thing", json!({"type": "object", "properties": atomic}));
    s.post(DEFINITIONS, refused).await.is(422);
    let set = json!({"list": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": {
        "type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }}});
    let refused = definition(s, "Thing", json!({"type": "object", "properties": set}));
    s.post(DEFINITIONS, refused).await.is(422);
}

async fn rules_are_kept_when_nothing_changes(s: &mut Story) {
    let mut definition =
        definition(s, "Thing", rules(json!({"a": {"type": "integer"}, "b": {"type": "integer"}}), json!([])));
    let path = s.define(definition.clone()).await;
    s.post(&path, object(s, "Thing", "a", json!({"a": -1, "b": 1}))).await.is(201);
    let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
    let found = s.ask("GET", &format!("{DEFINITIONS}/{name}"), &[], "").await;
    definition = found.body().clone();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["a"]["x-kubernetes-validations"] =
        json!([{"rule": "self > 0"}]);
    s.ask("PUT", &format!("{DEFINITIONS}/{name}"), &[("content-type", "application/json")], definition.to_string())
        .await
        .is(200);
    let probe = object(s, "Thing", "probe", json!({"a": -1})).to_string();
    for _ in 0..200 {
        let answer =
            s.ask("POST", &format!("{path}?dryRun=All"), &[("content-type", "application/json")], probe.clone()).await;
        if answer.code() == 422 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"b": 2}})).await.is(200);
    s.merge_patch(&format!("{path}/a"), json!({"spec": {"a": -2}})).await.is(422);
}
