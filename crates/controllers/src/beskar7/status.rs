//! The status of a PhysicalHost: a projection of what the engine remembers and what was seen.

use api::beskar7::{
    Fault, HardwareDetails, Inventory, PhysicalHost, PhysicalHostStatus, TimelineEntry, Waiting, conditions as types,
    states,
};
use engine::failure::{Failure, What};
use engine::host::{Moment, Origin, Phase, Record, Waiting as Awaited, no_way_to_boot};
use engine::server::{PowerState, Seen};
use jiff::Timestamp;

use super::findings::{holds, put, time};
use super::words::HostWords;
use super::{conditions, hardware};
use crate::depot::Depot;
use crate::dialect::Outcome;
use crate::object::ObjectId;

/// The whole status. Whatever is not in it is removed from the object.
pub(super) fn project(outcome: &Outcome<'_, PhysicalHost>) -> PhysicalHostStatus {
    let record = &outcome.step.record;
    let before = outcome.host.status.clone().unwrap_or_default();
    let mut status = PhysicalHostStatus {
        ready: Some(record.inspected && !shows_error(outcome)),
        state: Some(state(outcome).to_owned()),
        last_state_transition_time: Some(time(record.since)),
        observed_power_state: (record.power != PowerState::Unknown).then(|| record.power.as_str().to_owned()),
        error_message: record.fault.as_ref().map(|fault| fault.failure.tell(&HostWords)),
        fault: record.fault.as_ref().map(fault),
        waiting: record.wait.as_ref().filter(|wait| !is_told_by_fault(wait, record)).map(|wait| Waiting {
            reason: wait.what.name().to_owned(),
            message: wait.what.tell(&HostWords),
            since: Some(time(wait.since)),
            deadline: Some(time(wait.deadline)),
        }),
        fetched_from: outcome.session.and_then(|session| session.fetched.as_ref()).map(|fetched| fetched.by.clone()),
        timeline: timeline(&before.timeline, &outcome.step.moments),
        observed_generation: outcome.host.metadata.generation,
        record: stored(record),
        ..before
    };
    if let Some(seen) = outcome.seen {
        see(&mut status, seen);
    }
    status.boot_address = boot_address(outcome, &status);
    let useless = useless(outcome, &status);
    if let Some(failure) = &useless {
        status.ready = Some(false);
        status.state = Some(states::ERROR.to_owned());
        status.error_message = Some(failure.tell(&HostWords));
        status.fault = Some(Fault {
            reason: failure.kind.reason().to_owned(),
            message: failure.tell(&HostWords),
            count: None,
            since: Some(time(record.since)),
            next_try: None,
        });
    }
    status.conditions = conditions::project(outcome, &status, useless.as_ref());
    status
}

/// Why nobody can use a free host although nothing has failed.
fn useless(outcome: &Outcome<'_, PhysicalHost>, status: &PhysicalHostStatus) -> Option<Failure> {
    let record = &outcome.step.record;
    let is_free = record.phase == Phase::Available && record.inspected && outcome.goal.claim.is_none();
    let details = status.hardware_details.as_ref().filter(|_| is_free && record.fault.is_none())?;
    let hardware = details.unpack();
    no_way_to_boot(hardware.virtual_media.map(|media| media.drives), hardware.network_boot)
}

/// Takes in what was seen, and keeps what was not looked at. An inventory is packed once at most: that costs time.
fn see(status: &mut PhysicalHostStatus, seen: &Seen) {
    let health = Some(hardware::health(&seen.health));
    if let Some(found) = &seen.hardware {
        let mut details = hardware::details(found, seen);
        if let Some(before) = status.hardware_details.as_ref().filter(|_| !found.unread.is_empty()) {
            hardware::keep_what_was_read(&mut details, &before.unpack(), &found.unread);
        }
        status.addresses = hardware::addresses(&details.nics);
        status.hardware_details = Some(Inventory::pack(&HardwareDetails { status: health, ..details }));
    } else if let Some(inventory) = &mut status.hardware_details {
        let details = inventory.unpack();
        if details.status != health {
            *inventory = Inventory::pack(&HardwareDetails { status: health, ..details });
        }
    }
    if let Some(health) = seen.health.rollup.as_ref().or(seen.health.health.as_ref()) {
        status.health = Some(health.clone());
    }
}

/// The address that the server gets on the network from which it boots, where we give addresses. Stored before it is offered.
fn boot_address(outcome: &Outcome<'_, PhysicalHost>, status: &PhysicalHostStatus) -> Option<String> {
    let stored = status.boot_address.clone();
    let Some(leases) = outcome.depot.and_then(Depot::leases) else { return stored };
    let is_new = stored.is_none();
    if is_new && (outcome.step.record.phase == Phase::Deleting || !is_known_on_the_network(outcome.host, status)) {
        return None;
    }
    let before = stored.and_then(|address| address.parse().ok());
    leases.address(&ObjectId::of(outcome.host), before, outcome.now).map(|address| address.to_string())
}

/// Whether the server would be recognised by a MAC address.
fn is_known_on_the_network(host: &PhysicalHost, status: &PhysicalHostStatus) -> bool {
    let has_cards = |details: &Inventory| details.unpack().nics.iter().any(|nic| nic.mac_address.is_some());
    host.spec.boot_mac_address.is_some() || status.hardware_details.as_ref().is_some_and(has_cards)
}

/// A paused host keeps its status, but for what was seen, and says that it is paused.
pub(super) fn paused(host: &PhysicalHost, why: &str, seen: Option<&Seen>, now: Timestamp) -> PhysicalHostStatus {
    let mut status = host.status.clone().unwrap_or_default();
    if let Some(seen) = seen {
        see(&mut status, seen);
        if seen.power != PowerState::Unknown {
            status.observed_power_state = Some(seen.power.as_str().to_owned());
        }
    }
    put(&mut status.conditions, holds(types::PAUSED, types::reason::PAUSED, why), now);
    status
}

/// What [`stored`] left in the status.
pub(super) fn record(status: &PhysicalHostStatus) -> Option<Record> {
    let mut record: Record = serde_json::from_str(status.record.as_deref()?).ok()?;
    if let Some(fault) = &mut record.fault
        && let (What::Told(message), Some(told)) = (&mut fault.failure.what, &status.fault)
    {
        message.clone_from(&told.message);
    }
    Some(record)
}

/// The record without the sentence of its fault, which the status shows anyway: a reader of the whole status should not meet it
/// twice.
fn stored(record: &Record) -> Option<String> {
    let mut record = record.clone();
    if let Some(fault) = &mut record.fault
        && let What::Told(message) = &mut fault.failure.what
    {
        message.clear();
    }
    serde_json::to_string(&record).ok()
}

/// Whether a host waits for nothing but the next try of what failed. The fault says that already.
fn is_told_by_fault(wait: &engine::host::Wait, record: &Record) -> bool {
    matches!(wait.what, Awaited::NextTry(_)) && record.fault.is_some()
}

fn state(outcome: &Outcome<'_, PhysicalHost>) -> &'static str {
    if shows_error(outcome) { states::ERROR } else { word(outcome.step.record.phase) }
}

/// `Error` shows only on hosts that nobody claimed. A claimed host keeps its state; its conditions tell.
fn shows_error(outcome: &Outcome<'_, PhysicalHost>) -> bool {
    let record = &outcome.step.record;
    let claimed = outcome.goal.claim.is_some() || record.anchor.claim.is_some();
    record.fault.is_some()
        && !claimed
        && matches!(record.phase, Phase::Registering | Phase::Inspecting | Phase::Available)
}

const WORDS: [(Phase, &str); 12] = [
    (Phase::Registering, states::ENROLLING),
    (Phase::Inspecting, states::INSPECTING),
    (Phase::Available, states::AVAILABLE),
    (Phase::Preparing, states::CLAIMED),
    (Phase::Provisioning, states::PROVISIONING),
    (Phase::Provisioned, states::PROVISIONED),
    (Phase::Deprovisioning, states::DEPROVISIONING),
    (Phase::Parked, states::MAINTENANCE),
    (Phase::Lent, states::MAINTENANCE),
    (Phase::Quarantined, states::QUARANTINED),
    (Phase::Detached, "Detached"),
    (Phase::Deleting, states::DELETING),
];

fn word(phase: Phase) -> &'static str {
    WORDS.iter().find(|(known, _)| *known == phase).map_or(states::UNKNOWN, |(_, word)| word)
}

/// Events of a phase are told in the words of the states.
pub(super) fn event_reason(reason: &'static str) -> &'static str {
    WORDS.iter().find(|(phase, _)| phase.as_str() == reason).map_or(reason, |(_, word)| word)
}

/// How much of the past is kept.
const TIMELINE_LIMIT: usize = 20;

/// What is known of the past, and what has just happened.
fn timeline(known: &[TimelineEntry], moments: &[Moment]) -> Vec<TimelineEntry> {
    let mut all = known.to_vec();
    all.extend(moments.iter().map(|moment| TimelineEntry {
        at: time(moment.at),
        state: word(moment.phase).to_owned(),
        message: moment.what.tell(&HostWords),
    }));
    let surplus = all.len().saturating_sub(TIMELINE_LIMIT);
    all.drain(..surplus);
    all
}

fn fault(fault: &engine::host::Fault) -> Fault {
    Fault {
        reason: fault.failure.kind.reason().to_owned(),
        message: fault.failure.tell(&HostWords),
        count: Some(fault.count),
        since: Some(time(fault.since)),
        next_try: (fault.origin != Origin::Object).then(|| time(fault.next_try)),
    }
}
