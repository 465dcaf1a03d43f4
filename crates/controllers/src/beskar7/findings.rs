//! Findings about an object, and how they become conditions.

use api::beskar7::conditions as types;
use api::capi::Condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A condition without its time.
#[derive(Clone)]
pub(super) struct Finding {
    pub(super) type_: &'static str,
    pub(super) status: &'static str,
    pub(super) severity: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

pub(super) fn holds(type_: &'static str, reason: &str, message: &str) -> Finding {
    Finding { type_, status: Condition::TRUE, severity: "", reason: reason.into(), message: message.into() }
}

pub(super) fn not(type_: &'static str, severity: &'static str, reason: &str, message: &str) -> Finding {
    Finding { type_, status: Condition::FALSE, severity, reason: reason.into(), message: message.into() }
}

pub(super) fn unknown(type_: &'static str, reason: &str, message: &str) -> Finding {
    Finding { type_, status: Condition::UNKNOWN, severity: "", reason: reason.into(), message: message.into() }
}

/// Puts a condition into a list; its time changes only with its status.
pub(super) fn put(conditions: &mut Vec<Condition>, finding: Finding, now: Timestamp) {
    debug_assert!(types::ALL.contains(&finding.type_), "{} would never be written", finding.type_);
    let before = known(conditions, finding.type_).filter(|condition| condition.status == finding.status);
    let condition = Condition {
        type_: finding.type_.to_owned(),
        status: finding.status.to_owned(),
        severity: finding.severity.to_owned(),
        reason: finding.reason,
        // The maximum length that the API server accepts.
        message: finding.message.chars().take(10_000).collect(),
        last_transition_time: before.map_or_else(|| time(now), |before| before.last_transition_time.clone()),
    };
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The condition of that type, as it was.
pub(super) fn known<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Kubernetes stores whole seconds: a finer time would look changed when it is read back.
pub(super) fn time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}
