//! The conditions of a PhysicalHost.

use api::beskar7::conditions::{self as types, reason};
use api::beskar7::{PhysicalHost, PhysicalHostStatus, names};
use api::capi::Condition;
use bmc::Address;
use engine::failure::{Class, Failure};
use engine::host::{ASSUMED_BOOTED, Claim, Note, Phase, runs_unasked};
use kube::ResourceExt as _;

use super::findings::{Finding, holds, known, not, put, unknown};
use super::words::HostWords;
use crate::dialect::Outcome;

fn failed(type_: &'static str, failure: &Failure) -> Finding {
    let severity = match failure.kind.class() {
        Class::Transient | Class::Throttled => Condition::WARNING,
        _ => Condition::ERROR,
    };
    not(type_, severity, failure.kind.reason(), &failure.tell(&HostWords))
}

/// Conditions that are there only as long as there is something to say.
const PASSING: [&str; 5] = [
    types::PAUSED,
    types::ORDER_IN_EFFECT,
    types::POWER_REQUEST_IN_EFFECT,
    types::BOOT_SERVED,
    types::BOOT_INTERFACE_FOUND,
];

/// All conditions, for a status that is complete but for them. `useless` is why nobody can use a free host, if so.
pub(super) fn project(
    outcome: &Outcome<'_, PhysicalHost>,
    status: &PhysicalHostStatus,
    useless: Option<&Failure>,
) -> Vec<Condition> {
    let mut conditions = status.conditions.clone();
    conditions.retain(|condition| !PASSING.contains(&condition.type_.as_str()));
    let findings = [
        connection(outcome, &status.conditions),
        inspected(outcome),
        available(outcome, useless),
        provisioned(outcome),
        healthy(status),
    ];
    let ready = ready(&findings, outcome, useless);
    for finding in std::iter::once(ready).chain(findings) {
        put(&mut conditions, finding, outcome.now);
    }
    for finding in remarks(outcome).chain(boot_served(outcome)).chain(boot_interface(outcome, status)) {
        conditions.extend(known(&status.conditions, finding.type_).cloned());
        put(&mut conditions, finding, outcome.now);
    }
    conditions
}

/// How many interfaces a sentence lists.
const SHOWN_INTERFACES: usize = 8;

const WITHOUT_TLS: &str = "The BMC answers, but without TLS: whoever is on the way reads the user name and the password. Use https in spec.redfishConnection.address.";

/// An outage shows here and nowhere else.
fn connection(outcome: &Outcome<'_, PhysicalHost>, before: &[Condition]) -> Finding {
    let type_ = types::REDFISH_CONNECTION_READY;
    match &outcome.step.record.fault {
        Some(fault) if fault.failure.kind.is_about_reaching_the_bmc() => failed(type_, &fault.failure),
        _ if outcome.seen.is_some() || known(before, type_).is_some_and(Condition::is_true) => {
            match Address::parse(&outcome.host.spec.redfish_connection.address) {
                Ok(address) if !address.is_secure() => holds(type_, reason::CONNECTED_WITHOUT_TLS, WITHOUT_TLS),
                _ => holds(type_, reason::CONNECTED, "The BMC answers."),
            }
        }
        _ => unknown(type_, reason::ENROLLING, "The BMC has not answered yet."),
    }
}

fn inspected(outcome: &Outcome<'_, PhysicalHost>) -> Finding {
    if let Some(unread) = outcome.step.record.unread.as_ref().filter(|_| outcome.step.record.inspected) {
        let parts = unread.parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!(
            "The hardware is known but for what could not be read yet: {parts}. Counts of these come from the BMC's own summary, or are too low. They are read again later; beskar7.io/inspect reads them now."
        );
        return holds(types::HOST_INSPECTED, reason::INSPECTED_IN_PART, &message);
    }
    if outcome.step.record.inspected {
        return holds(types::HOST_INSPECTED, reason::INSPECTED, "The hardware is known.");
    }
    let reason = if outcome.step.record.phase == Phase::Registering { reason::ENROLLING } else { reason::INSPECTING };
    not(types::HOST_INSPECTED, Condition::INFO, reason, "The hardware is not known yet.")
}

fn available(outcome: &Outcome<'_, PhysicalHost>, useless: Option<&Failure>) -> Finding {
    let type_ = types::HOST_AVAILABLE;
    if let Some(failure) = useless {
        return failed(type_, failure);
    }
    let record = &outcome.step.record;
    let info = |reason: &str, message: &str| not(type_, Condition::INFO, reason, message);
    match (record.phase, &record.fault) {
        (Phase::Registering | Phase::Inspecting | Phase::Available, Some(fault)) => Finding {
            message: "Not claimable because of a fault: see condition Ready.".into(),
            ..failed(type_, &fault.failure)
        },
        (Phase::Available, None) if outcome.goal.claim.is_some() => {
            let told = record.wait.as_ref().map(|wait| (wait.what.name(), wait.what.tell(&HostWords)));
            let (reason, told) = told.unwrap_or((reason::CLAIMED, "Somebody claims the host.".to_owned()));
            info(reason, &told)
        }
        (Phase::Available, None) if is_passed_over(outcome) => holds(type_, reason::AVAILABLE, RUNS_UNASKED),
        (Phase::Available, None) => holds(type_, reason::AVAILABLE, "The host can be claimed."),
        (Phase::Registering, None) => info(reason::ENROLLING, "The BMC has not been reached yet."),
        (Phase::Inspecting, None) => info(reason::INSPECTING, "The hardware is being looked at."),
        (Phase::Preparing | Phase::Provisioning | Phase::Provisioned, _) => {
            let by = record.anchor.claim.as_ref().map(Claim::holder).unwrap_or_default();
            info(reason::CLAIMED, &format!("Claimed by {by}."))
        }
        (Phase::Deprovisioning, _) => info(reason::DEPROVISIONING, "Released; being switched off and cleaned up."),
        (Phase::Parked | Phase::Lent | Phase::Detached, _) => {
            let why = outcome.host.spec.maintenance.as_ref().and_then(|maintenance| maintenance.reason.as_deref());
            info(
                reason::MAINTENANCE,
                &format!("Under maintenance{}.", why.map(|why| format!(": {why}")).unwrap_or_default()),
            )
        }
        (Phase::Quarantined, _) => {
            let why = outcome.host.annotations().get(names::QUARANTINE).map(String::as_str).unwrap_or_default();
            let why = if why.is_empty() { String::new() } else { format!(" ({})", why.trim_end_matches('.')) };
            info(
                reason::QUARANTINED,
                &format!(
                    "In quarantine{why}. Nobody can claim the host, and nothing is done to its server, until the annotation {} is removed.",
                    names::QUARANTINE
                ),
            )
        }
        (Phase::Deleting, _) => info(reason::DELETING, "The host object is being deleted."),
    }
}

const RUNS_UNASKED: &str = "The server runs although nobody asked for it, so machines pass it over. Set spec.online: false to have it switched off, or spec.claimableWhileRunning: true to have it taken as it is. A claim by hand is accepted.";

fn is_passed_over(outcome: &Outcome<'_, PhysicalHost>) -> bool {
    let (spec, record) = (&outcome.host.spec, &outcome.step.record);
    let online = spec.online.filter(|_| record.anchor.outdated.is_none());
    runs_unasked(record.power, online, spec.claimable_while_running == Some(true))
}

fn provisioned(outcome: &Outcome<'_, PhysicalHost>) -> Finding {
    let type_ = types::HOST_PROVISIONED;
    let record = &outcome.step.record;
    let phase = record
        .left
        .filter(|_| matches!(record.phase, Phase::Parked | Phase::Lent | Phase::Quarantined | Phase::Detached))
        .unwrap_or(record.phase);
    let under_way = |reason: &str| match (&record.fault, &record.wait) {
        (Some(fault), _) => failed(type_, &fault.failure),
        (None, Some(wait)) => not(type_, Condition::INFO, reason, &wait.what.tell(&HostWords)),
        (None, None) => not(type_, Condition::INFO, reason, "Under way."),
    };
    match phase {
        Phase::Provisioned if record.assumed_booted => holds(type_, reason::ASSUMED_BOOTED, ASSUMED_BOOTED),
        Phase::Provisioned if record.anchor.adopted => {
            holds(type_, reason::PROVISIONED, "Adopted in use: whatever runs is left as it is.")
        }
        Phase::Provisioned => holds(type_, reason::PROVISIONED, "The server has booted the image."),
        Phase::Preparing if outcome.goal.order.is_none() => under_way(reason::WAITING_FOR_BOOT_INFO),
        Phase::Preparing | Phase::Provisioning => under_way(reason::PROVISIONING),
        Phase::Deprovisioning => under_way(reason::DEPROVISIONING),
        Phase::Deleting => under_way(reason::DELETING),
        _ => not(type_, Condition::INFO, reason::NOT_CLAIMED, "Nobody has claimed the host."),
    }
}

fn healthy(status: &PhysicalHostStatus) -> Finding {
    let type_ = types::HARDWARE_HEALTHY;
    match status.health.as_deref() {
        Some("OK") => holds(type_, reason::HEALTH_OK, "The BMC reports no fault of the hardware."),
        Some("Critical") => {
            not(type_, Condition::ERROR, reason::HEALTH_CRITICAL, "The BMC reports a critical fault of the hardware.")
        }
        Some(other) => not(
            type_,
            Condition::WARNING,
            reason::HEALTH_WARNING,
            &format!("The BMC reports the hardware's health as {other}."),
        ),
        None => unknown(type_, reason::HEALTH_UNKNOWN, "The BMC has not told how the hardware is."),
    }
}

/// Only said of a host in use whose order is not what runs on it, and of a host whose power is not as its spec says.
fn remarks(outcome: &Outcome<'_, PhysicalHost>) -> impl Iterator<Item = Finding> {
    outcome.step.notes.iter().map(|note| {
        let (type_, severity, reason) = match note {
            Note::Adopted { .. } => (types::ORDER_IN_EFFECT, Condition::WARNING, reason::ADOPTED),
            Note::OrderChanged => (types::ORDER_IN_EFFECT, Condition::WARNING, reason::ORDER_CHANGED),
            Note::NeverOff => (types::POWER_REQUEST_IN_EFFECT, Condition::INFO, note.name()),
            Note::PowerRequestOutdated { .. } => {
                (types::POWER_REQUEST_IN_EFFECT, Condition::INFO, reason::POWER_REQUEST_OUTDATED)
            }
        };
        not(type_, severity, reason, &note.tell(&HostWords))
    })
}

/// Only said of a host that the boot service has told something about.
fn boot_served(outcome: &Outcome<'_, PhysicalHost>) -> Option<Finding> {
    let session = outcome.session?;
    match (&session.problem, &session.fetched) {
        (Some(problem), _) => {
            let message = format!("{} ({})", sentence(&problem.message), problem.at.0);
            Some(not(types::BOOT_SERVED, Condition::WARNING, &problem.reason, &message))
        }
        (None, Some(fetched)) => {
            let message = format!("{} has fetched the bootstrap data.", fetched.by);
            Some(holds(types::BOOT_SERVED, reason::BOOTSTRAP_DATA_FETCHED, &message))
        }
        (None, None) if session.steps.is_empty() => None,
        (None, None) => {
            let said = session.steps.iter().map(|step| format!("{} at {}", step.step, step.at.0.strftime("%H:%M:%S")));
            let message = format!("The server boots from the network: {}.", said.collect::<Vec<_>>().join(", "));
            Some(holds(types::BOOT_SERVED, reason::NETWORK_BOOT_SERVED, &message))
        }
    }
}

/// Only said of a host whose object names an interface, once the inventory lists some.
fn boot_interface(outcome: &Outcome<'_, PhysicalHost>, status: &PhysicalHostStatus) -> Option<Finding> {
    let wanted = outcome.host.spec.boot_mac_address.as_deref()?;
    let details = status.hardware_details.as_ref()?.unpack();
    let known: Vec<&str> = details.nics.iter().filter_map(|nic| nic.mac_address.as_deref()).collect();
    if known.is_empty() || !outcome.step.record.inspected {
        return None;
    }
    let digits = |mac: &str| mac.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase();
    let type_ = types::BOOT_INTERFACE_FOUND;
    Some(if known.iter().any(|mac| digits(mac) == digits(wanted)) {
        holds(type_, reason::INTERFACE_FOUND, "The server has the interface that spec.bootMacAddress names.")
    } else {
        let shown: Vec<&str> = known.into_iter().take(SHOWN_INTERFACES).collect();
        let message = format!(
            "spec.bootMacAddress is {wanted}, but the BMC lists no such interface; it lists {}. Correct it, or check that this is the server that you mean.",
            shown.join(", ")
        );
        not(type_, Condition::WARNING, reason::NO_SUCH_INTERFACE, &message)
    })
}

/// What other parts of the program say without capital and full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// The summary: what is wrong, else what is missing, else that all is well.
fn ready(findings: &[Finding; 5], outcome: &Outcome<'_, PhysicalHost>, useless: Option<&Failure>) -> Finding {
    if let Some(failure) = outcome.step.record.fault.as_ref().map(|fault| &fault.failure).or(useless) {
        return failed(types::READY, failure);
    }
    let [connection, inspected, ..] = findings;
    match [connection, inspected].into_iter().find(|finding| finding.status != Condition::TRUE) {
        Some(finding) => not(types::READY, Condition::INFO, &finding.reason, &finding.message),
        None => holds(types::READY, reason::READY, "The BMC answers and the hardware is known."),
    }
}
