//! What an API server refuses, and with which sentence: upstream's own rules, in its words, and those of its admission webhook for
//! BMCSecrets.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

const UNCHANGED: &str = "self == oldSelf";

/// The field cannot change once it is set.
pub(crate) fn immutable(message: &str) -> Vec<ValidationRule> {
    vec![rule(UNCHANGED, message)]
}

/// As [`immutable`], without a sentence.
pub(crate) fn unchanged() -> Vec<ValidationRule> {
    vec![ValidationRule { rule: UNCHANGED.to_owned(), ..ValidationRule::default() }]
}

/// Rules of `spec` of a BMC.
pub(crate) fn of_bmc() -> Vec<ValidationRule> {
    vec![rule("has(self.access) != has(self.endpointRef)", "exactly one of access or endpointRef needs to be set")]
}

/// Rules of `spec` of a ServerClaim.
pub(crate) fn of_claim() -> Vec<ValidationRule> {
    vec![
        rule("!has(oldSelf.serverRef) || has(self.serverRef)", "serverRef is required once set"),
        rule("!has(oldSelf.serverSelector) || has(self.serverSelector)", "serverSelector is required once set"),
    ]
}

/// Rules of `spec.taint` of a ServerReadinessRule.
pub(crate) fn of_taint() -> Vec<ValidationRule> {
    vec![
        rule("self.key.size() <= 253", "taint key length must be at most 253 characters"),
        rule("!has(oldSelf.key) || self.key == oldSelf.key", "taint key is immutable"),
        rule("!has(oldSelf.effect) || self.effect == oldSelf.effect", "taint effect is immutable"),
        rule("!has(oldSelf.value) || self.value == oldSelf.value", "taint value is immutable"),
    ]
}

/// Rules of a BMCSecret, which has no spec: those of upstream's webhook.
pub(crate) fn of_secret() -> Vec<ValidationRule> {
    let frozen = |field: &str| {
        let holds_if = format!(
            "!oldSelf.?immutable.orValue(false) || (has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field}))"
        );
        forbidden(
            field,
            &holds_if,
            &format!("{field} of an immutable BMCSecret cannot change: delete it and create it again"),
        )
    };
    vec![
        forbidden(
            "immutable",
            "!oldSelf.?immutable.orValue(false) || self.?immutable.orValue(false)",
            "immutable cannot be taken back: delete the BMCSecret and create it again",
        ),
        frozen("data"),
        frozen("stringData"),
    ]
}

fn rule(holds_if: &str, message: &str) -> ValidationRule {
    ValidationRule { rule: holds_if.to_owned(), message: Some(message.to_owned()), ..ValidationRule::default() }
}

fn forbidden(field: &str, holds_if: &str, message: &str) -> ValidationRule {
    ValidationRule {
        field_path: Some(format!(".{field}")),
        reason: Some("FieldValueForbidden".to_owned()),
        ..rule(holds_if, message)
    }
}
