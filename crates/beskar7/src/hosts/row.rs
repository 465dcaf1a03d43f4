//! One host as a line, and many as a sentence.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::dialects::{Host, HostKind, Progress};
use crate::human;
use crate::table::{Cell, Column, Tone};

/// What an operator looks for, from left to right. The sentence comes last: it takes what room is left.
pub(super) const COLUMNS: [Column; 13] = [
    column("KIND", 0),
    column("NAMESPACE", 0),
    column("NAME", 0),
    column("STATE", 0),
    column("POWER", 1),
    column("HEALTH", 2),
    column("CONSUMER", 4),
    column("MODEL", 5),
    column("HARDWARE", 6),
    column("AGE", 3),
    column("ADDRESS", 7),
    column("SERIAL", 7),
    column("DETAIL", 0),
];

const fn column(title: &'static str, spare: u8) -> Column {
    Column { title, spare }
}

/// A host without a status is news for this long; afterwards somebody should have looked at it.
const NEWS: i64 = 60;

/// What is shown of one host.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    /// Only where there are several.
    kind: String,
    namespace: String,
    name: String,
    state: String,
    power: String,
    health: String,
    consumer: String,
    model: String,
    hardware: String,
    age: String,
    address: String,
    serial: String,
    detail: String,
    progress: Progress,
    faulty: bool,
}

/// How much a host needs somebody; the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    Fault,
    HealthCritical,
    HealthWarning,
    NeverSeen,
    UnderWay,
    Rest,
}

impl Row {
    pub(super) fn of(kind: Option<String>, meta: &ObjectMeta, host: Host, now: Timestamp) -> Self {
        let created = meta.creation_timestamp.as_ref().map(|created| created.0);
        let hardware = host.hardware.as_ref();
        Self {
            kind: kind.unwrap_or_default(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            detail: detail(&host, created, now),
            model: hardware.and_then(|hardware| hardware.model.clone()).unwrap_or_default(),
            hardware: hardware
                .and_then(|hardware| hardware.summary.clone().or_else(|| hardware.summarise()))
                .unwrap_or_default(),
            age: created.map(|created| human::span(created, now)).unwrap_or_default(),
            serial: hardware.and_then(|hardware| hardware.serial_number.clone()).unwrap_or_default(),
            state: host.state,
            power: host.power,
            health: host.health,
            consumer: host.claimed_by.map(|claimant| claimant.name).unwrap_or_default(),
            address: host.bmc,
            progress: host.progress,
            faulty: host.fault.is_some(),
        }
    }

    pub(super) fn order(&self) -> (Urgency, &str, &str, &str) {
        (self.urgency(), &self.namespace, &self.name, &self.kind)
    }

    fn urgency(&self) -> Urgency {
        match (self.progress, self.health.as_str()) {
            (Progress::Failed, _) => Urgency::Fault,
            _ if self.faulty => Urgency::Fault,
            (_, "Critical") => Urgency::HealthCritical,
            (_, "Warning") => Urgency::HealthWarning,
            _ if self.state.is_empty() => Urgency::NeverSeen,
            (Progress::Resting, _) => Urgency::Rest,
            (Progress::UnderWay, _) => Urgency::UnderWay,
        }
    }

    pub(super) fn cells(&self, wide: bool, one_namespace: bool) -> Vec<Cell> {
        let unless = |hidden: bool, text: &str| Cell::from(if hidden { "" } else { text });
        let state = match self.urgency() {
            Urgency::Fault => Some(Tone::Bad),
            Urgency::UnderWay | Urgency::NeverSeen => Some(Tone::Odd),
            _ => None,
        };
        let health = match self.health.as_str() {
            "Critical" => Some(Tone::Bad),
            "Warning" => Some(Tone::Odd),
            _ => None,
        };
        vec![
            Cell::from(&self.kind),
            unless(one_namespace, &self.namespace),
            Cell::from(&self.name),
            Cell::toned(if self.state.is_empty() { "-" } else { &self.state }, state),
            Cell::from(&self.power),
            Cell::toned(&self.health, health),
            Cell::from(&self.consumer),
            Cell::from(&self.model),
            Cell::from(&self.hardware),
            Cell::from(&self.age),
            unless(!wide, &self.address),
            unless(!wide, &self.serial),
            Cell::toned(&self.detail, state.filter(|tone| *tone == Tone::Bad)),
        ]
    }
}

/// What is wrong or waited for. The word and the time come first: what follows may be cut.
fn detail(host: &Host, created: Option<Timestamp>, now: Timestamp) -> String {
    if let Some(why) = &host.paused {
        return why.clone();
    }
    if !host.is_seen {
        let age = created.map_or(0, |created| now.duration_since(created).as_secs());
        return if age < NEWS { "new" } else { "nobody has looked at it yet: is the operator running?" }.to_owned();
    }
    if let Some(fault) = &host.fault {
        let again = fault.next_try.as_ref().map(|at| next_try(at.0, now)).unwrap_or_default();
        return format!("{}{again}: {}", fault.reason, fault.message);
    }
    if let Some(reason) = &host.maintenance {
        return reason.clone();
    }
    if let Some(waiting) = &host.waiting {
        let left = host.time_left(now).map(|left| format!(", {left}")).unwrap_or_default();
        return format!("{}{left}: {}", waiting.reason, waiting.message);
    }
    host.remark.clone().unwrap_or_default()
}

/// When a fault is tried again, as a part of a sentence.
fn next_try(at: Timestamp, now: Timestamp) -> String {
    if at <= now { ", next try now".to_owned() } else { format!(", next try in {}", human::span(now, at)) }
}

/// The fleet in one sentence.
pub(super) fn summary(kinds: &[&'static dyn HostKind], rows: &[Row], seen: usize, faults_only: bool) -> String {
    if seen == 0 {
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.resource().kind).collect();
        return format!("No hosts. Apply a {}, or try `beskar7 sim --help`.", kinds.join(" or a "));
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for row in rows {
        let state = if row.state.is_empty() { "not seen yet" } else { &row.state };
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    let place = |state: &str| {
        let known = kinds.iter().flat_map(|kind| kind.states()).position(|known| *known == state);
        known.unwrap_or(usize::MAX)
    };
    counts.sort_by_key(|(state, _)| (place(state), *state));
    let states: Vec<_> = counts.iter().map(|(state, count)| format!("{} {state}", human::number(*count))).collect();
    let hosts = if rows.len() == seen {
        human::counted(seen, "host")
    } else {
        format!("{} of {}", human::number(rows.len()), human::counted(seen, "host"))
    };
    let mut text = hosts;
    if !states.is_empty() {
        text = format!("{text}: {}", states.join(", "));
    }
    let faulty = rows.iter().filter(|row| row.faulty).count();
    if faulty > 0 && !faults_only {
        text = format!("{text}; {} with a fault (beskar7 hosts --fault)", human::number(faulty));
    }
    text
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
