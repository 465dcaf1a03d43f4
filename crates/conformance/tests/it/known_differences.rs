//! The differences that we live with. `docs/reference/api-server.md` says the same to users, and a test keeps the two equal.

use std::fmt::Write as _;

use conformance::KnownDifference;

pub(crate) const KNOWN_DIFFERENCES: &[KnownDifference] = &[
    KnownDifference {
        cases: &["conversion_that_makes_no_sense"],
        at: "/body/*",
        reason: "Definitions cannot ask for conversion by webhook; the versions of a kind must be alike.",
    },
    KnownDifference {
        cases: &["kubectl_describes_built_ins"],
        at: "/stdout/*",
        reason: "There are no resource quotas and limit ranges, so `kubectl describe namespace` does not mention them.",
    },
    KnownDifference {
        cases: &["answers_in_other_formats"],
        at: "*",
        reason: "Nothing is answered in protobuf, not even the refusal of those who accept only that.",
    },
    KnownDifference {
        cases: &["may_i"],
        at: "/body/metadata/managedFields",
        reason: "Reviews of access are answered without `managedFields`.",
    },
    KnownDifference {
        cases: &["accounts_that_are_none"],
        at: "/body/metadata/managedFields",
        reason: "An object whose list lacks the keys of its items still gets `managedFields`.",
    },
    KnownDifference {
        cases: &["schemas_with_bad_defaults"],
        at: "/body/*",
        reason: "A default of a whole object, which never takes effect, is not checked for `apiVersion` and `kind`.",
    },
    KnownDifference {
        cases: &["rules_are_kept_when_nothing_changes"],
        at: "/headers/warning",
        reason: "There is no warning when an update leaves alone what has always broken a rule.",
    },
    KnownDifference {
        cases: &["rules_that_cost_too_much"],
        at: "*",
        reason: "A definition is not refused because its rules could cost too much: rules that do are stopped, and the object is refused.",
    },
    KnownDifference {
        cases: &["text_that_is_not_utf8"],
        at: "*",
        reason: "JSON with text that is not Unicode is refused; kube-apiserver puts replacement characters into it.",
    },
    KnownDifference {
        cases: &["the_kind_of_the_body_must_fit_the_path"],
        at: "/headers/warning",
        reason: "An object that is refused because it is of another version is not warned about its fields as well.",
    },
];

const DOCUMENT: &str = include_str!("../../../../docs/reference/api-server.md");

/// The list as it is in the documentation: one point for each reason, with the cases that show it.
fn list() -> String {
    let mut reasons: Vec<&str> = KNOWN_DIFFERENCES.iter().map(|one| one.reason).collect();
    reasons.dedup();
    let mut list = String::new();
    for reason in reasons {
        let entries = KNOWN_DIFFERENCES.iter().filter(|one| one.reason == reason);
        let mut cases: Vec<_> = entries.flat_map(|one| one.cases).map(|case| format!("`{case}`")).collect();
        cases.sort();
        cases.dedup();
        let _ = writeln!(list, "- {reason} ({})", cases.join(", "));
    }
    list
}

#[test]
fn the_documentation_lists_the_known_differences() {
    let (_, section) = DOCUMENT.split_once("## Known differences\n").expect("a section of known differences");
    let section = section.split("\n## ").next().unwrap_or_default();
    let (_, points) = section.split_once("\n- ").expect("a list of differences");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = list();
    assert_eq!(
        words(&format!("- {points}")),
        words(&expected),
        "docs/reference/api-server.md should list:\n\n{expected}"
    );
}
