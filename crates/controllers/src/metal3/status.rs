//! The status of a BareMetalHost: a projection of what the engine remembers and what was seen.

use api::metal3::states::{self, error_types, operational};
use api::metal3::{
    BareMetalHost, BareMetalHostStatus, CredentialsStatus, Image, RootDeviceHints, SecretReference, names,
};
use engine::host::{Fault, Happening, Origin, Phase, Record, Waiting};
use engine::server::PowerState;
use jiff::Timestamp;
use kube::ResourceExt;

use super::history::pass;
use super::words::HostWords;
use super::{conditions, hardware, is_inspection_disabled, proof, shown_phase};
use crate::conditions::time;
use crate::dialect::{News, Outcome};

/// The firmware that is assumed where the owner says nothing.
const DEFAULT_BOOT_MODE: &str = "UEFI";

/// The whole status.
pub(super) fn project(outcome: &Outcome<'_, BareMetalHost>) -> BareMetalHostStatus {
    let (host, record) = (outcome.host, &outcome.step.record);
    let mut status = before(host);
    let state_before = status.provisioning.state.clone();
    follow(&mut status, outcome, &state_before);
    status.powered_on = match record.power {
        PowerState::On | PowerState::PoweringOff | PowerState::Paused => true,
        PowerState::Off | PowerState::PoweringOn => false,
        PowerState::Unknown => status.powered_on,
    };
    let error = record.fault.as_ref().map(|fault| (error_type(record, fault), fault));
    let operational = if record.phase == Phase::Detached {
        operational::DETACHED
    } else if error.is_some() {
        operational::ERROR
    } else if record.wait.as_ref().is_some_and(|wait| matches!(wait.what, Waiting::FleetBrake { .. })) {
        operational::DELAYED
    } else {
        operational::OK
    };
    operational.clone_into(&mut status.operational_status);
    status.error_type = error.map(|(type_, _)| type_.to_owned()).unwrap_or_default();
    status.error_message = error.map(|(_, fault)| fault.failure.tell(&HostWords)).unwrap_or_default();
    status.error_count = error.map_or(0, |(_, fault)| i64::from(fault.count));
    take_in_credentials(&mut status, outcome);
    settle(&mut status, host, record);
    take_in_hardware(&mut status, outcome);
    status.record = serde_json::to_string(record).ok();
    status.conditions = conditions::project(outcome, &status, &state_before);
    status
}

/// The status as it was; another operator's, if the object was brought here from there.
pub(super) fn before(host: &BareMetalHost) -> BareMetalHostStatus {
    let known = host.status.clone().filter(|status| status.record.is_some());
    known.or_else(|| proof::told(host)).or_else(|| host.status.clone()).unwrap_or_default()
}

/// The state now, and the history of how it came to it.
fn follow(status: &mut BareMetalHostStatus, outcome: &Outcome<'_, BareMetalHost>, state_before: &str) {
    let record = &outcome.step.record;
    let mut from = state_before.to_owned();
    for (to, at) in passed(outcome) {
        pass(&mut status.operation_history, &from, to, at);
        to.clone_into(&mut from);
    }
    let state = state(record);
    pass(&mut status.operation_history, &from, state, outcome.now);
    state.clone_into(&mut status.provisioning.state);
}

/// The states that the host passed in this step. One that is not to be inspected is not shown as inspected.
pub(super) fn passed(outcome: &Outcome<'_, BareMetalHost>) -> impl Iterator<Item = (&'static str, Timestamp)> {
    let is_skipped = |phase| phase == Phase::Inspecting && (outcome.goal.without_inventory || outcome.goal.external);
    outcome.step.moments.iter().filter_map(move |moment| match moment.what {
        Happening::Entered(phase, _) if !is_skipped(phase) => Some((word(phase)?, moment.at)),
        _ => None,
    })
}

/// The word for the state that a host is in.
pub(super) fn state(record: &Record) -> &'static str {
    let is_inspecting = record.wait.as_ref().is_some_and(|wait| wait.what == Waiting::Inspecting);
    match shown_phase(record) {
        Phase::Available if is_inspecting => states::INSPECTING,
        Phase::Provisioned if record.anchor.external => states::EXTERNALLY_PROVISIONED,
        Phase::Deleting if record.anchor.milestone != engine::host::Milestone::None => states::DEPROVISIONING,
        Phase::Deleting if record.anchor.powered_on => states::POWERING_OFF_BEFORE_DELETE,
        phase => word(phase).unwrap_or(states::REGISTERING),
    }
}

/// The word for a phase, if a host is shown in it.
pub(super) fn word(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Registering => Some(states::REGISTERING),
        Phase::Inspecting => Some(states::INSPECTING),
        Phase::Available => Some(states::AVAILABLE),
        Phase::Preparing | Phase::Provisioning => Some(states::PROVISIONING),
        Phase::Provisioned => Some(states::PROVISIONED),
        Phase::Deprovisioning => Some(states::DEPROVISIONING),
        Phase::Deleting => Some(states::DELETING),
        // A host that is set aside keeps its state.
        Phase::Parked | Phase::Lent | Phase::Quarantined | Phase::Detached => None,
    }
}

/// The kind of error that a fault is, by what the host was about to do.
pub(super) fn error_type(record: &Record, fault: &Fault) -> &'static str {
    match (shown_phase(record), fault.origin) {
        (Phase::Registering, _) | (Phase::Available | Phase::Deleting, Origin::Look | Origin::Object) => {
            error_types::REGISTRATION
        }
        (Phase::Inspecting, _) => error_types::INSPECTION,
        (Phase::Provisioned, Origin::Look | Origin::Object) => error_types::PROVISIONED_REGISTRATION,
        (Phase::Available | Phase::Provisioned | Phase::Deleting, Origin::Act) => error_types::POWER_MANAGEMENT,
        _ => error_types::PROVISIONING,
    }
}

/// The Secret that is used, and whether the BMC has accepted what is in it.
fn take_in_credentials(status: &mut BareMetalHostStatus, outcome: &Outcome<'_, BareMetalHost>) {
    let Some(version) = outcome.credentials else { return };
    let host = outcome.host;
    let secret = SecretReference {
        name: host.spec.bmc.credentials_name.clone(),
        namespace: host.namespace().unwrap_or_default(),
    };
    let current = CredentialsStatus { credentials: Some(secret), credentials_version: version.to_owned() };
    if outcome.seen.is_some() {
        status.good_credentials.clone_from(&current);
    }
    status.tried_credentials = current;
}

/// What was done to the server.
fn settle(status: &mut BareMetalHostStatus, host: &BareMetalHost, record: &Record) {
    let provisioning = &mut status.provisioning;
    if provisioning.id.is_empty() {
        provisioning.id = host.uid().unwrap_or_default();
    }
    let (phase, anchor) = (shown_phase(record), &record.anchor);
    let is_ordered = super::claim(host).is_some_and(|claim| Some(&claim) == anchor.claim.as_ref());
    match phase {
        Phase::Provisioned if is_ordered => {
            provisioning.image = host.spec.image.clone().unwrap_or_default();
            provisioning.custom_deploy.clone_from(&host.spec.custom_deploy);
        }
        Phase::Registering | Phase::Inspecting | Phase::Available | Phase::Preparing => {
            provisioning.image = Image::default();
            provisioning.custom_deploy = None;
        }
        _ => {}
    }
    if provisioning.boot_mode.is_empty() || matches!(phase, Phase::Registering | Phase::Preparing) {
        let wanted = &host.spec.boot_mode;
        let mode = if wanted.is_empty() { DEFAULT_BOOT_MODE } else { wanted };
        mode.clone_into(&mut provisioning.boot_mode);
    }
    if status.hardware_profile.is_empty() {
        let wanted = &host.spec.hardware_profile;
        let profile = if wanted.is_empty() { "unknown" } else { wanted };
        profile.clone_into(&mut status.hardware_profile);
    }
    if phase == Phase::Available {
        let hints = host.spec.root_device_hints.clone();
        status.provisioning.root_device_hints = hints.or_else(|| hints_of(&status.hardware_profile));
    }
}

/// The root device that a hardware profile stands for.
fn hints_of(profile: &str) -> Option<RootDeviceHints> {
    let device = |name: &str| RootDeviceHints { device_name: name.to_owned(), ..RootDeviceHints::default() };
    let hctl = |hctl: &str| RootDeviceHints { hctl: hctl.to_owned(), ..RootDeviceHints::default() };
    match profile {
        "unknown" => Some(device("/dev/sda")),
        "libvirt" => Some(device("/dev/vda")),
        "openstack" => Some(device("/dev/vdb")),
        "dell" => Some(hctl("0:0:0:0")),
        "dell-raid" => Some(hctl("0:2:0:0")),
        _ => None,
    }
}

/// What was found in the server, or what its owner says of it where it is not inspected.
fn take_in_hardware(status: &mut BareMetalHostStatus, outcome: &Outcome<'_, BareMetalHost>) {
    let host = outcome.host;
    if let Some(told) = told_hardware(host).filter(|_| is_inspection_disabled(host) || status.hardware.is_none()) {
        status.hardware = Some(told);
    }
    if let Some(found) = outcome.seen.and_then(|seen| seen.hardware.as_ref()) {
        let details = hardware::details(found, &host.spec.boot_mac_address, status.hardware.as_ref());
        status.hardware = Some(details);
    }
}

fn told_hardware(host: &BareMetalHost) -> Option<api::metal3::HardwareDetails> {
    serde_json::from_str(host.annotations().get(names::HARDWARE_DETAILS)?).ok()
}

/// The status of a host without a BMC.
pub(super) fn unmanaged(host: &BareMetalHost, now: Timestamp) -> BareMetalHostStatus {
    let mut status = before(host);
    states::UNMANAGED.clone_into(&mut status.provisioning.state);
    operational::DISCOVERED.clone_into(&mut status.operational_status);
    (status.error_type, status.error_message) = (String::new(), String::new());
    status.conditions = conditions::unmanaged(&status, now);
    status
}

/// A status that says nothing new is not written.
pub(super) fn changed(
    host: &BareMetalHost,
    mut status: BareMetalHostStatus,
    now: Timestamp,
) -> Option<serde_json::Value> {
    status.last_updated = host.status.as_ref().and_then(|status| status.last_updated.clone());
    if host.status.as_ref() == Some(&status) {
        return None;
    }
    status.last_updated = Some(time(now));
    // Plain data with string keys: it cannot fail, and an empty status would be refused.
    serde_json::to_value(status).ok()
}

/// The engine's events that Metal3 has no words for keep their names; states and errors are told by [`events`].
pub(super) fn event_reason(reason: &'static str) -> Option<&'static str> {
    let is_phase = Phase::ALL.iter().any(|phase| phase.as_str() == reason);
    let is_failure = engine::failure::Kind::named(reason).is_some();
    (!is_phase && !is_failure).then_some(match reason {
        "ShutDown" => "PowerOff",
        "Restart" => "Reboot",
        other => other,
    })
}

/// What users of Metal3 are told when the status changes.
pub(super) fn events(
    host: &BareMetalHost,
    status: &BareMetalHostStatus,
    outcome: &Outcome<'_, BareMetalHost>,
) -> Vec<News> {
    let before = before(host);
    let mut events = Vec::new();
    let mut tell = |warning: bool, reason: &str, message: &str| {
        events.push(News { warning, reason: reason.to_owned(), message: message.to_owned() });
    };
    let (from, to) = (before.provisioning.state.as_str(), status.provisioning.state.as_str());
    let is_free = |state: &str| matches!(state, states::AVAILABLE | states::READY);
    if status.good_credentials != before.good_credentials {
        tell(false, "BMCAccessValidated", "Verified access to BMC");
    }
    if from == states::REGISTERING && to == states::AVAILABLE && outcome.goal.without_inventory {
        tell(false, "InspectionSkipped", "Hardware inspection is disabled");
    }
    if from != to {
        match to {
            states::REGISTERING => tell(false, "Registered", "Registered new host"),
            states::INSPECTING => tell(false, "InspectionStarted", "Hardware inspection started"),
            states::PROVISIONING => {
                let url = host.spec.image.as_ref().map_or("", |image| image.url.as_str());
                let image = engine::server::without_secrets(url);
                tell(false, "ProvisioningStarted", &format!("Image provisioning started for {image}"));
            }
            states::PROVISIONED if from == states::PROVISIONING => {
                let image = engine::server::without_secrets(&status.provisioning.image.url);
                tell(false, "ProvisioningComplete", &format!("Image provisioning completed for {image}"));
            }
            states::DEPROVISIONING => tell(false, "DeprovisioningStarted", "Image deprovisioning started"),
            to if is_free(to) && from == states::DEPROVISIONING => {
                tell(false, "DeprovisioningComplete", "Image deprovisioning completed; disks were not wiped");
            }
            _ => {}
        }
    }
    if status.hardware != before.hardware && status.hardware.is_some() {
        let is_told = host.annotations().contains_key(names::HARDWARE_DETAILS);
        if is_told && outcome.seen.is_none_or(|seen| seen.hardware.is_none()) {
            tell(false, "UpdateHardwareDetails", "Took the hardware details from the annotation");
        } else {
            tell(false, "InspectionComplete", "Hardware inspection completed by Redfish");
        }
    } else if host.annotations().contains_key(names::HARDWARE_DETAILS) {
        tell(
            true,
            "RemoveAnnotation",
            "The annotation inspect.metal3.io/hardwaredetails was ignored and removed: it cannot be read, or the hardware is known and inspection is not disabled",
        );
    }
    if super::proof::is_annotation_odd(host) {
        tell(
            true,
            "InvalidAnnotationValue",
            "The annotation baremetalhost.metal3.io/status is not a status of a BareMetalHost, or has fields that are not known: it was removed and nothing was restored from it",
        );
    }
    let has_error = !status.error_type.is_empty();
    if has_error && (&status.error_type, &status.error_message) != (&before.error_type, &before.error_message) {
        tell(true, error_event(&status.error_type), &status.error_message);
    }
    if outcome.step.acts.iter().any(engine::host::Act::is_about_power) {
        for name in super::annotations::unreadable_reboots(host.annotations()) {
            tell(
                true,
                "InvalidAnnotationValue",
                &format!("The annotation {name} is not JSON like {{\"mode\": \"hard\"}}: a soft reboot is assumed"),
            );
        }
    }
    events
}

fn error_event(error_type: &str) -> &'static str {
    match error_type {
        error_types::REGISTRATION => "RegistrationError",
        error_types::PROVISIONED_REGISTRATION => "ProvisionedRegistrationError",
        error_types::INSPECTION => "InspectionError",
        error_types::POWER_MANAGEMENT => "PowerManagementError",
        error_types::PREPARATION => "PreparationError",
        _ => "ProvisioningError",
    }
}
