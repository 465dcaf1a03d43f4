//! One host as a line, and many as a sentence.

use api::beskar7::{Inventory, PhysicalHost, conditions, states};
use api::capi;
use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::human;
use crate::table::{Cell, Column, Tone};

/// What an operator looks for, from left to right. The sentence comes last: it takes what room is left.
pub(super) const COLUMNS: [Column; 12] = [
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
    pub(super) fn of(host: &PhysicalHost, now: Timestamp) -> Self {
        let status = host.status.clone().unwrap_or_default();
        let hardware = status.hardware_details.as_ref().map(Inventory::unpack);
        let hardware = hardware.as_ref();
        let created = host.metadata.creation_timestamp.as_ref().map(|created| created.0);
        Self {
            namespace: host.namespace().unwrap_or_default(),
            name: host.name_any(),
            detail: detail(host, now),
            state: status.state.unwrap_or_default(),
            power: status.observed_power_state.unwrap_or_default(),
            health: status.health.unwrap_or_default(),
            consumer: host.spec.consumer_ref.as_ref().and_then(|consumer| consumer.name.clone()).unwrap_or_default(),
            model: hardware.and_then(|hardware| hardware.model.clone()).unwrap_or_default(),
            hardware: hardware
                .and_then(|hardware| hardware.summary.clone().or_else(|| hardware.summarise()))
                .unwrap_or_default(),
            age: created.map(|created| human::span(created, now)).unwrap_or_default(),
            address: host.spec.redfish_connection.address.clone(),
            serial: hardware.and_then(|hardware| hardware.serial_number.clone()).unwrap_or_default(),
            faulty: status.fault.is_some(),
        }
    }

    pub(super) fn order(&self) -> (Urgency, &str, &str) {
        (self.urgency(), &self.namespace, &self.name)
    }

    fn urgency(&self) -> Urgency {
        match (self.state.as_str(), self.health.as_str()) {
            (states::ERROR, _) => Urgency::Fault,
            _ if self.faulty => Urgency::Fault,
            (_, "Critical") => Urgency::HealthCritical,
            (_, "Warning") => Urgency::HealthWarning,
            ("", _) => Urgency::NeverSeen,
            (
                states::AVAILABLE | states::PROVISIONED | states::READY | states::MAINTENANCE | states::QUARANTINED,
                _,
            ) => Urgency::Rest,
            _ => Urgency::UnderWay,
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
fn detail(host: &PhysicalHost, now: Timestamp) -> String {
    if host.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(capi::PAUSED_ANNOTATION)) {
        return format!("paused by its annotation {}", capi::PAUSED_ANNOTATION);
    }
    let Some(status) = &host.status else {
        let age =
            host.metadata.creation_timestamp.as_ref().map_or(0, |created| now.duration_since(created.0).as_secs());
        return if age < NEWS { "new" } else { "nobody has looked at it yet: is the operator running?" }.to_owned();
    };
    if let Some(paused) = status.condition(conditions::PAUSED).filter(|condition| condition.is_true()) {
        return paused.message.clone();
    }
    if let Some(fault) = &status.fault {
        let again = fault.next_try.as_ref().map(|at| next_try(at.0, now)).unwrap_or_default();
        return format!("{}{again}: {}", fault.reason, fault.message);
    }
    if let Some(maintenance) = &host.spec.maintenance {
        return maintenance.reason.clone().unwrap_or_default();
    }
    if let Some(waiting) = &status.waiting {
        let left = waiting.deadline.as_ref().map(|at| format!(", {} left", human::span(now, at.0))).unwrap_or_default();
        return format!("{}{left}: {}", waiting.reason, waiting.message);
    }
    let order = status.condition(conditions::ORDER_IN_EFFECT).filter(|condition| !condition.is_true());
    order.map(|order| format!("{}: {}", order.reason, order.message)).unwrap_or_default()
}

/// When a fault is tried again, as a part of a sentence.
fn next_try(at: Timestamp, now: Timestamp) -> String {
    if at <= now { ", next try now".to_owned() } else { format!(", next try in {}", human::span(now, at)) }
}

/// The fleet in one sentence.
pub(super) fn summary(rows: &[Row], seen: usize, faults_only: bool) -> String {
    if seen == 0 {
        return "No hosts. Apply a PhysicalHost, or try `beskar7 sim --help`.".to_owned();
    }
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for row in rows {
        let state = if row.state.is_empty() { "not seen yet" } else { &row.state };
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    let place = |state: &str| states::ALL.iter().position(|known| *known == state).unwrap_or(states::ALL.len());
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
