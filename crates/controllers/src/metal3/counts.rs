//! baremetal-operator's metrics, for dashboards that know them. Hosts are not named in the labels.

use api::metal3::states::{self, error_types, operational};
use api::metal3::{BareMetalHost, BareMetalHostStatus, OperationHistory};
use engine::failure::Kind;
use engine::host::Act;
use kube::ResourceExt as _;

use super::status;
use crate::dialect::Outcome;
use crate::metrics::{Count, OwnMetric};

const RECONCILE: &str = "metal3_reconcile";
const STATE_CHANGE: &str = "metal3_provisioning_state_change";
const HOST_ERROR: &str = "metal3_host_error";
const POWER_CHANGE: &str = "metal3_operation_power_change";
const CREDENTIALS_MISSING: &str = "metal3_credentials_missing";
const CREDENTIALS_INVALID: &str = "metal3_credentials_invalid";
const CREDENTIALS_UPDATED: &str = "metal3_credentials_updated";
const NO_ACCESS: &str = "metal3_credentials_no_management_access";
const DELAYED_PROVISIONING: &str = "metal3_delayed__provisioning";
const DELAYED_DEPROVISIONING: &str = "metal3_delayed__deprovisioning";
const REGISTER: &str = "metal3_operation_register_duration_seconds";
const INSPECT: &str = "metal3_operation_inspect_duration_seconds";
const PROVISION: &str = "metal3_operation_provision_duration_seconds";
const DEPROVISION: &str = "metal3_operation_deprovision_duration_seconds";

/// What clients of Prometheus use unless told otherwise, and what upstream uses for what takes minutes.
const QUICK: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const SLOW: &[f64] = &[30.0, 90.0, 180.0, 360.0, 720.0, 1440.0];

pub(super) const METRICS: &[OwnMetric] = &[
    OwnMetric { name: RECONCILE, help: "Decisions on BareMetalHosts", buckets: &[] },
    OwnMetric { name: STATE_CHANGE, help: "Changes of status.provisioning.state", buckets: &[] },
    OwnMetric { name: HOST_ERROR, help: "Errors of hosts, repeated ones included", buckets: &[] },
    OwnMetric { name: POWER_CHANGE, help: "Servers that were switched on or off", buckets: &[] },
    OwnMetric { name: CREDENTIALS_MISSING, help: "Hosts whose Secret was not found", buckets: &[] },
    OwnMetric { name: CREDENTIALS_INVALID, help: "Hosts whose Secret lacks something", buckets: &[] },
    OwnMetric { name: CREDENTIALS_UPDATED, help: "Credentials that changed", buckets: &[] },
    OwnMetric { name: NO_ACCESS, help: "BMCs that could not be registered", buckets: &[] },
    OwnMetric { name: DELAYED_PROVISIONING, help: "Hosts that had to wait to be provisioned", buckets: &[] },
    OwnMetric { name: DELAYED_DEPROVISIONING, help: "Hosts that had to wait to be deprovisioned", buckets: &[] },
    OwnMetric { name: REGISTER, help: "How long registrations took", buckets: QUICK },
    OwnMetric { name: INSPECT, help: "How long inspections took", buckets: SLOW },
    OwnMetric { name: PROVISION, help: "How long it took to provision", buckets: SLOW },
    OwnMetric { name: DEPROVISION, help: "How long it took to deprovision", buckets: SLOW },
];

/// What is to be counted when a status follows another.
pub(super) fn counts(
    outcome: &Outcome<'_, BareMetalHost>,
    before: &BareMetalHostStatus,
    after: &BareMetalHostStatus,
) -> Vec<Count> {
    let namespace = outcome.host.namespace().unwrap_or_default();
    let here = [("namespace", namespace.as_str())];
    let mut counts = vec![Count::one(RECONCILE, &here)];
    let mut from = before.provisioning.state.as_str();
    for to in status::passed(outcome).map(|(state, _)| state).chain([after.provisioning.state.as_str()]) {
        if from != to {
            counts.push(Count::one(STATE_CHANGE, &[("prev_state", from), ("new_state", to)]));
            from = to;
        }
    }
    counts.extend(durations(&before.operation_history, &after.operation_history, here));
    let error = |status: &BareMetalHostStatus| (status.error_type.clone(), status.error_count);
    if !after.error_type.is_empty() && error(before) != error(after) {
        counts.push(Count::one(HOST_ERROR, &[("error_type", &after.error_type)]));
        match outcome.step.record.fault.as_ref().map(|fault| fault.failure.kind) {
            Some(Kind::SecretNotFound) => counts.push(Count::one(CREDENTIALS_MISSING, &[])),
            Some(Kind::MissingSecretData) => counts.push(Count::one(CREDENTIALS_INVALID, &[])),
            _ if after.error_type == error_types::REGISTRATION => counts.push(Count::one(NO_ACCESS, &[])),
            _ => {}
        }
    }
    if before.tried_credentials.credentials.is_some() && before.tried_credentials != after.tried_credentials {
        counts.push(Count::one(CREDENTIALS_UPDATED, &[]));
    }
    for act in &outcome.step.acts {
        let to = match act {
            Act::PowerOn => "on",
            Act::PowerOff | Act::ShutDown => "off",
            _ => continue,
        };
        counts.push(Count::one(POWER_CHANGE, &[here[0], ("on_off", to)]));
    }
    let is_delayed = |status: &BareMetalHostStatus| status.operational_status == operational::DELAYED;
    if is_delayed(after) && !is_delayed(before) {
        let releasing = after.provisioning.state == states::DEPROVISIONING;
        counts.push(Count::one(if releasing { DELAYED_DEPROVISIONING } else { DELAYED_PROVISIONING }, &here));
    }
    counts
}

/// How long the steps of a host's life took that have just ended.
fn durations(before: &OperationHistory, after: &OperationHistory, here: [(&'static str, &str); 1]) -> Vec<Count> {
    let steps = [
        (REGISTER, &before.register, &after.register),
        (INSPECT, &before.inspect, &after.inspect),
        (PROVISION, &before.provision, &after.provision),
        (DEPROVISION, &before.deprovision, &after.deprovision),
    ];
    let ended = steps.into_iter().filter(|(_, before, after)| before != after);
    let took = ended.filter_map(|(metric, _, after)| {
        let (start, end) = (after.start.as_ref()?, after.end.as_ref()?);
        Some(Count::seconds(metric, &here, end.0.duration_since(start.0).as_secs_f64()))
    });
    took.collect()
}
