//! Conditions in the shape of Kubernetes' own, as several dialects have them.

use api::condition::Condition;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// A sentence may have this many characters.
const LIMIT: usize = 10_000;

/// A condition without its time.
pub(crate) struct Finding {
    pub(crate) type_: &'static str,
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

pub(crate) fn finding(type_: &'static str, holds: bool, reason: &'static str) -> Finding {
    let status = if holds { Condition::TRUE } else { Condition::FALSE };
    Finding { type_, status, reason, message: String::new() }
}

impl Finding {
    pub(crate) fn saying(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }
}

/// Puts a condition into a list; its time changes only with its status.
pub(crate) fn put(conditions: &mut Vec<Condition>, finding: &Finding, now: Timestamp) {
    let before = conditions.iter().find(|condition| condition.type_ == finding.type_);
    let since =
        before.filter(|before| before.status == finding.status).map(|before| before.last_transition_time.clone());
    let condition = Condition {
        type_: finding.type_.to_owned(),
        status: finding.status.to_owned(),
        observed_generation: 0,
        last_transition_time: since.unwrap_or_else(|| time(now)),
        reason: finding.reason.to_owned(),
        message: finding.message.chars().take(LIMIT).collect(),
    };
    match conditions.iter_mut().find(|known| known.type_ == condition.type_) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Kubernetes stores whole seconds: a finer time would look changed when it is read back.
pub(crate) fn time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}
