//! metal-operator's metrics, for dashboards that know them. Servers are counted, not named in the labels.

use api::ironcore::Server;
use api::ironcore::conditions;
use api::ironcore::states::{power, server as states};

use super::server::Servers;
use crate::dialect::HostDialect as _;
use crate::metrics::{Count, Labels, OwnGauge, OwnMetric};

const RECONCILIATION: &str = "metal_server_reconciliation";

pub(super) const METRICS: &[OwnMetric] =
    &[OwnMetric { name: RECONCILIATION, help: "Decisions on Servers, by result", buckets: &[] }];

pub(super) const GAUGES: &[OwnGauge<Server>] = &[
    OwnGauge {
        name: "metal_server_state",
        help: "Servers by status.state, as the leader sees them now.",
        of: |server| vec![one("state", Servers::state(server))],
        always: || states::ALL.map(|state| one("state", state)).into(),
    },
    OwnGauge {
        name: "metal_server_power_state",
        help: "Servers by status.powerState, as the leader sees them now.",
        of: |server| {
            let shown = server.status.iter().map(|status| status.power_state.as_str());
            shown.filter(|power| !power.is_empty()).map(|power| one("power_state", power)).collect()
        },
        always: || POWER_STATES.map(|power| one("power_state", power)).into(),
    },
    OwnGauge {
        name: "metal_server_condition_status",
        help: "Servers by the status of their conditions, as the leader sees them now.",
        of: |server| {
            let shown = server.status.iter().flat_map(|status| &status.conditions);
            shown.map(|shown| condition(&shown.type_, &shown.status)).collect()
        },
        always: || {
            let statuses = |type_| ["True", "False", "Unknown"].map(|status| condition(type_, status));
            SERVER_CONDITIONS.into_iter().flat_map(statuses).collect()
        },
    },
];

const POWER_STATES: [&str; 5] = [power::ON, power::OFF, power::PAUSED, power::POWERING_ON, power::POWERING_OFF];

/// Those of our conditions that Servers have.
const SERVER_CONDITIONS: [&str; 4] =
    [conditions::READY, conditions::POWERING_ON, conditions::WAITING_FOR_POWER_OFF, conditions::SANITIZED];

/// A Server was decided on. Upstream has a third result for Servers that it cannot read; ours come with the watch.
pub(super) fn decided(is_ok: bool) -> Count {
    Count::one(RECONCILIATION, &[("result", if is_ok { "success" } else { "error_reconcile" })])
}

fn one(label: &'static str, value: &str) -> Labels {
    vec![(label, value.to_owned())]
}

fn condition(type_: &str, status: &str) -> Labels {
    vec![("condition_type", type_.to_owned()), ("status", status.to_owned())]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn servers_are_counted_by_what_they_show_and_words_that_none_shows_are_zero() {
        let server = |status| {
            let server = json!({"metadata": {"name": "a"}, "spec": {"systemUUID": "a"}, "status": status});
            Arc::new(serde_json::from_value::<Server>(server).unwrap())
        };
        let foreign = json!({"type": "CablingChecked", "status": "True", "reason": "x", "message": "", "lastTransitionTime": null});
        let servers = [
            server(json!({"state": "Parked", "powerState": "Off", "conditions": [foreign]})),
            server(json!({"state": "Parked", "powerState": "On"})),
            server(json!({"state": "Cleanup", "powerState": "Off"})),
            server(json!(null)),
        ];
        let metrics = Metrics::new();
        metrics.follow_gauges(GAUGES, move || servers.to_vec());
        let text = metrics.text();
        let states = [("Parked", 2), ("Cleanup", 1), ("Initial", 1), ("Maintenance", 0), ("Released", 0), ("Error", 0)];
        let states = states.map(|(state, count)| format!("metal_server_state{{state=\"{state}\"}} {count}\n"));
        let others = [
            "metal_server_power_state{power_state=\"Off\"} 2\n",
            "metal_server_power_state{power_state=\"PoweringOn\"} 0\n",
            "metal_server_condition_status{condition_type=\"CablingChecked\",status=\"True\"} 1\n",
            "metal_server_condition_status{condition_type=\"Ready\",status=\"False\"} 0\n",
        ];
        for line in states.iter().map(String::as_str).chain(others) {
            assert!(text.contains(line), "{line}{text}");
        }
    }
}
