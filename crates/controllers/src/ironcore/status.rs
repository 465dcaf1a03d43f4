//! The status of a Server: a projection of what the engine remembers and what was seen.

use api::ironcore::conditions::{self as types, reasons};
use api::ironcore::names;
use api::ironcore::states::server as states;
use api::ironcore::{Server, ServerStatus};
use engine::host::{Act, Happening, Passage, Phase, Record, Waiting};
use engine::server::PowerState;
use kube::ResourceExt;
use serde_json::Value;

use super::inventory;
use super::words::ServerWords;
use crate::conditions::{finding, put};
use crate::dialect::Outcome;

/// The whole status.
pub(super) fn project(outcome: &Outcome<'_, Server>) -> ServerStatus {
    let (server, record) = (outcome.host, &outcome.step.record);
    let mut status = server.status.clone().unwrap_or_default();
    let before = status.state.clone();
    state(server, record, &before).clone_into(&mut status.state);
    if record.power != PowerState::Unknown {
        record.power.as_str().clone_into(&mut status.power_state);
    }
    if let Some(found) = outcome.seen.and_then(|seen| seen.hardware.as_ref()) {
        inventory::take_in(&mut status, found, record.probed);
    }
    let report = outcome.session.and_then(|session| session.report.as_ref());
    if let Some(report) = report.filter(|_| record.probed) {
        inventory::take_report(&mut status, &report.data);
    }
    tell(&mut status, outcome);
    status.record = serde_json::to_string(record).ok();
    status
}

/// The word for the state that a server is in.
fn state(server: &Server, record: &Record, before: &str) -> &'static str {
    let is_free = record.anchor.claim.is_none() && !record.anchor.is_in_use();
    match record.phase {
        Phase::Registering | Phase::Inspecting | Phase::Available if record.fault.is_some() && is_free => states::ERROR,
        // Until it is off, it is shown in the state that it was in.
        Phase::Parked if record.power == PowerState::Off || server.annotations().contains_key(names::PARKED) => {
            states::PARKED
        }
        Phase::Parked | Phase::Detached => {
            let known = states::ALL.into_iter().find(|state| *state == before);
            known.or_else(|| word(record.left?)).unwrap_or(states::INITIAL)
        }
        Phase::Deleting => states::ALL.into_iter().find(|state| *state == before).unwrap_or(states::INITIAL),
        phase => word(phase).unwrap_or(states::INITIAL),
    }
}

/// The word for a phase.
pub(super) fn word(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Registering => Some(states::INITIAL),
        Phase::Inspecting => Some(states::DISCOVERY),
        Phase::Available => Some(states::AVAILABLE),
        Phase::Preparing | Phase::Provisioning | Phase::Provisioned => Some(states::RESERVED),
        Phase::Deprovisioning => Some(states::CLEANUP),
        Phase::Quarantined => Some(states::RELEASED),
        Phase::Parked => Some(states::PARKED),
        Phase::Lent => Some(states::MAINTENANCE),
        Phase::Detached | Phase::Deleting => None,
    }
}

/// The conditions, beside those that others have written.
fn tell(status: &mut ServerStatus, outcome: &Outcome<'_, Server>) {
    let (record, now) = (&outcome.step.record, outcome.now);
    let ready = match (&record.fault, &record.wait) {
        (Some(fault), _) => {
            finding(types::READY, false, fault.failure.kind.reason()).saying(fault.failure.tell(&ServerWords))
        }
        (None, Some(wait)) if !matches!(wait.what, Waiting::NextTry(_)) => {
            finding(types::READY, false, wait.what.name()).saying(wait.what.tell(&ServerWords))
        }
        _ => {
            let notes: Vec<_> = outcome.step.notes.iter().map(|note| note.tell(&ServerWords)).collect();
            let state = states::ALL.into_iter().find(|state| *state == status.state).unwrap_or(states::INITIAL);
            finding(types::READY, true, state).saying(notes.join(" "))
        }
    };
    put(&mut status.conditions, &ready, now);
    let acts = &outcome.step.acts;
    if acts.contains(&Act::PowerOn) {
        put(&mut status.conditions, &finding(types::POWERING_ON, true, reasons::SERVER_POWER_ON), now);
    } else if status.condition(types::POWERING_ON).is_some_and(|shown| shown.status == "True")
        && record.power == PowerState::On
    {
        put(&mut status.conditions, &finding(types::POWERING_ON, false, reasons::POWER_ON_CONFIRMED), now);
    }
    let is_cleaned = record.phase == Phase::Deprovisioning;
    if is_cleaned && record.power != PowerState::Off {
        put(&mut status.conditions, &finding(types::WAITING_FOR_POWER_OFF, true, reasons::WAITING_FOR_POWER_OFF), now);
    } else if status.condition(types::WAITING_FOR_POWER_OFF).is_some() && record.power == PowerState::Off {
        put(&mut status.conditions, &finding(types::WAITING_FOR_POWER_OFF, false, reasons::POWER_OFF_CONFIRMED), now);
    }
    let is_released = outcome
        .step
        .moments
        .iter()
        .any(|moment| matches!(moment.what, Happening::Entered(Phase::Available, Passage::CleanedUp { .. })));
    let is_held = record.wait.as_ref().is_some_and(|wait| wait.what == Waiting::Wiping);
    if is_released || is_held {
        let told = "The disks were not wiped: that needs the agent, which this version does not have yet.";
        put(&mut status.conditions, &finding(types::SANITIZED, false, reasons::DISKS_NOT_WIPED).saying(told), now);
    } else if record.phase == Phase::Provisioning {
        status.conditions.retain(|condition| condition.type_ != types::SANITIZED);
    }
}

/// A status that says nothing new is not written.
pub(super) fn changed(server: &Server, status: ServerStatus) -> Option<Value> {
    let is_new = server.status.as_ref() != Some(&status);
    // Plain data with string keys: it cannot fail, and an empty status would be refused.
    is_new.then(|| serde_json::to_value(status).ok()).flatten()
}

/// Phases are told by the names of states.
pub(super) fn event_reason(reason: &'static str) -> &'static str {
    let phase = Phase::ALL.into_iter().find(|phase| phase.as_str() == reason);
    phase.and_then(word).unwrap_or(reason)
}
