//! The conditions of a BareMetalHost, as baremetal-operator 0.13 computes them from the state, and two of our own.

use api::metal3::conditions::{self as types, reasons};
use api::metal3::states::{self, operational};
use api::metal3::{BareMetalHost, BareMetalHostStatus, Condition};
use engine::host::Waiting;
use jiff::Timestamp;

use super::words::HostWords;
use crate::conditions::{Finding, finding, put};
use crate::dialect::Outcome;

/// The value of `spec.automatedCleaningMode` for no cleaning.
const NO_CLEANING: &str = "disabled";

/// All conditions of a host, with those that others have written.
pub(super) fn project(
    outcome: &Outcome<'_, BareMetalHost>,
    status: &BareMetalHostStatus,
    state_before: &str,
) -> Vec<Condition> {
    let mut conditions = status.conditions.clone();
    let mut findings = of_state(status);
    let record = &outcome.step.record;
    let is_shown = |what: &Waiting| !matches!(what, Waiting::NextTry(_));
    if let Some(wait) = record.wait.as_ref().filter(|wait| is_shown(&wait.what)) {
        for progress in findings.iter_mut().filter(|finding| finding.type_ == types::PROGRESSING) {
            progress.message = wait.what.tell(&HostWords);
        }
    }
    if let Some(health) = outcome.seen.map(|seen| seen.health.rollup.as_ref().or(seen.health.health.as_ref())) {
        findings.push(health_of(health.map(String::as_str)));
    } else if status.condition(types::HEALTHY).is_none() {
        findings.push(health_of(None));
    }
    let is_free = status.provisioning.state == states::AVAILABLE;
    if is_free && state_before == states::DEPROVISIONING && outcome.host.spec.automated_cleaning_mode != NO_CLEANING {
        findings.push(Finding {
            message: "Disks were not wiped: cleaning them needs the agent, which this version does not have yet."
                .to_owned(),
            ..finding(types::DISKS_CLEANED, false, reasons::NOT_SUPPORTED)
        });
    } else if status.provisioning.state == states::PROVISIONING {
        conditions.retain(|condition| condition.type_ != types::DISKS_CLEANED);
    }
    let notes: Vec<_> = outcome.step.notes.iter().map(|note| note.tell(&HostWords)).collect();
    match outcome.step.notes.first() {
        Some(note) => findings.push(Finding { message: notes.join(" "), ..finding(types::NOTICE, true, note.name()) }),
        None => conditions.retain(|condition| condition.type_ != types::NOTICE),
    }
    for finding in &findings {
        put(&mut conditions, finding, outcome.now);
    }
    conditions
}

/// The conditions of a host without a BMC.
pub(super) fn unmanaged(status: &BareMetalHostStatus, now: Timestamp) -> Vec<Condition> {
    let mut conditions = status.conditions.clone();
    for finding in &of_state(status) {
        put(&mut conditions, finding, now);
    }
    if status.condition(types::HEALTHY).is_none() {
        put(&mut conditions, &health_of(None), now);
    }
    conditions
}

fn of_state(status: &BareMetalHostStatus) -> Vec<Finding> {
    let is_wrong = status.operational_status == operational::ERROR;
    let is_detached = status.operational_status == operational::DETACHED;
    let progressing = |reason| (true, reason);
    let resting = (false, reasons::NOT_PROGRESSING);
    let manageable = (true, reasons::MANAGEABLE);
    let (manageable, progressing) = match status.provisioning.state.as_str() {
        states::NONE | states::UNMANAGED => ((false, reasons::NOT_MANAGED), resting),
        states::REGISTERING if is_wrong => ((false, reasons::REGISTRATION_FAILED), progressing(reasons::REGISTERING)),
        states::REGISTERING => ((false, reasons::REGISTERING), progressing(reasons::REGISTERING)),
        states::INSPECTING => (manageable, progressing(reasons::INSPECTING)),
        states::PREPARING => (manageable, progressing(reasons::PREPARING)),
        states::PROVISIONING => (manageable, progressing(reasons::PROVISIONING)),
        states::DEPROVISIONING => (manageable, progressing(reasons::DEPROVISIONING)),
        states::POWERING_OFF_BEFORE_DELETE => (manageable, progressing(reasons::POWERING_OFF_BEFORE_DELETE)),
        states::DELETING => (manageable, progressing(reasons::DELETING)),
        _ => (manageable, resting),
    };
    let is_out_of_reach = is_wrong
        && [states::error_types::REGISTRATION, states::error_types::PROVISIONED_REGISTRATION]
            .contains(&status.error_type.as_str());
    let manageable = if manageable.0 && is_out_of_reach { (false, reasons::POWER_FAILURE) } else { manageable };
    let progressing = if is_detached { (false, reasons::DETACHED) } else { progressing };
    let is_available = matches!(status.provisioning.state.as_str(), states::AVAILABLE | states::READY);
    let is_provisioned =
        matches!(status.provisioning.state.as_str(), states::PROVISIONED | states::EXTERNALLY_PROVISIONED);
    let ready = match (is_wrong, is_detached, is_provisioned) {
        (true, _, _) => (false, reasons::ERROR),
        (_, true, _) => (false, reasons::DETACHED),
        (_, _, true) => (true, reasons::PROVISIONED),
        _ => (false, reasons::NOT_PROVISIONED),
    };
    vec![
        finding(types::MANAGEABLE, manageable.0, manageable.1),
        finding(
            types::AVAILABLE_FOR_PROVISIONING,
            is_available,
            if is_available { reasons::AVAILABLE } else { reasons::NOT_AVAILABLE },
        ),
        finding(
            types::PROVISIONED,
            is_provisioned,
            if is_provisioned { reasons::PROVISIONED } else { reasons::NOT_PROVISIONED },
        ),
        finding(types::READY, ready.0, ready.1),
        finding(types::PROGRESSING, progressing.0, progressing.1),
    ]
}

fn health_of(word: Option<&str>) -> Finding {
    match word {
        Some("OK") => finding(types::HEALTHY, true, reasons::HEALTHY),
        Some("Warning") => finding(types::HEALTHY, false, reasons::WARNING),
        Some("Critical") => finding(types::HEALTHY, false, reasons::CRITICAL_ERROR),
        _ => Finding { status: Condition::UNKNOWN, ..finding(types::HEALTHY, false, reasons::UNKNOWN) },
    }
}
