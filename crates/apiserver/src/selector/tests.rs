use serde_json::json;

use super::LabelSelector;

fn complaint(text: &str) -> String {
    LabelSelector::parse(text).expect_err(text)
}

#[test]
fn labels_are_selected() {
    let object = json!({"metadata": {"labels": {"n": "3", "tier": "web", "empty": ""}}});
    for (selector, matches) in [
        ("", true),
        ("n", true),
        ("!n", false),
        ("!absent", true),
        ("n=3", true),
        ("n==3", true),
        ("n!=3", false),
        ("absent!=3", true),
        ("n in (1,3)", true),
        ("n notin (1,3)", false),
        ("absent notin (1,3)", true),
        ("absent in (1,3)", false),
        ("n>2", true),
        ("n<3", false),
        ("absent>1", false),
        (" n = 3 , tier = web ", true),
        ("n=3,tier=db", false),
        ("empty=", true),
        ("empty in ()", true),
        ("n in (,)", false),
        ("empty in (a,)", true),
        ("tier in (in,web)", true),
    ] {
        assert_eq!(LabelSelector::parse(selector).unwrap().matches(&object), matches, "{selector}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_kubernetes_words() {
    for (selector, why) in [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("n in (1,2", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("n in 1", "unable to parse requirement: found '1' expected: '('"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("n=a,,", "found ',', expected: identifier after ','"),
        ("n===a", "unable to parse requirement: found '=', expected: identifier"),
        ("n=1 m", "found 'm', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be \
             an integer",
        ),
    ] {
        assert_eq!(complaint(selector), why, "{selector}");
    }
    assert!(
        complaint("n=-").starts_with("unable to parse requirement: values[0][n]: Invalid value: \"-\": a valid label")
    );
    assert!(complaint("-x=1").starts_with("unable to parse requirement: <nil>: Invalid value: \"-x\": name part must"));
}
