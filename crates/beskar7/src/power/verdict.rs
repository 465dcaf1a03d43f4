//! What a host's status says about a wish.

use api::beskar7::{PhysicalHost, conditions, names, states};
use api::capi;
use controllers::beskar7::PhysicalHosts;
use controllers::dialect::HostDialect as _;
use jiff::Timestamp;

use super::{Action, Wish};
use crate::human;

/// How a wish stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is as wished.
    Done(String),
    /// It will not be so without somebody's help.
    Failed(String),
    /// Not yet; what is waited for, if the operator says so.
    Waiting(Option<String>),
}

/// Why nothing would come of a wish, as the rest of a sentence that begins with the host.
pub(super) fn obstacle(host: &PhysicalHost, action: Action) -> Option<String> {
    if host.metadata.deletion_timestamp.is_some() {
        return Some("is being deleted".to_owned());
    }
    if let Some(maintenance) = &host.spec.maintenance {
        let why = maintenance.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        return Some(format!("is under maintenance{why} and is left alone until spec.maintenance is removed"));
    }
    let annotations = host.metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(capi::PAUSED_ANNOTATION)) {
        let annotation = capi::PAUSED_ANNOTATION;
        return Some(format!("is paused and is left alone until its annotation {annotation} is removed"));
    }
    let quarantine = annotations.and_then(|all| all.get(names::QUARANTINE));
    let status = host.status.as_ref();
    let state = status.and_then(|status| status.state.as_deref());
    if matches!(action, Action::On | Action::Off) && state == Some(states::DEPROVISIONING) {
        return Some(
            "is being released: its server is switched off and stays off; ask again when it is Available".to_owned(),
        );
    }
    if let Some(why) = quarantine.filter(|_| state == Some(states::QUARANTINED)) {
        let annotation = names::QUARANTINE;
        return Some(format!(
            "is in quarantine ({why}) and is left alone until its annotation {annotation} is removed"
        ));
    }
    // What was asked before the host was claimed or released does not keep the server off.
    let in_effect = status.and_then(|status| status.condition(conditions::POWER_REQUEST_IN_EFFECT));
    if action == Action::Cycle && host.spec.online == Some(false) && in_effect.is_none() {
        return Some(
            "cannot be restarted: its power is requested off (spec.online: false); run `beskar7 power on` first"
                .to_owned(),
        );
    }
    None
}

/// How the wish stands on this host now.
pub(super) fn judge(host: &PhysicalHost, wish: &Wish, now: Timestamp) -> Verdict {
    let action = match wish {
        Wish::On { .. } => Action::On,
        Wish::Off { .. } => Action::Off,
        Wish::Auto { .. } => Action::Auto,
        Wish::Cycle { .. } => Action::Cycle,
    };
    if let Some(why) = obstacle(host, action) {
        return Verdict::Failed(why);
    }
    let Some(status) = &host.status else { return Verdict::Waiting(None) };
    if let Some(paused) = status.condition(conditions::PAUSED).filter(|condition| condition.is_true()) {
        return Verdict::Failed(format!("is paused: {}", paused.message));
    }
    // What the status says about the time before the wish tells nothing.
    let noticed = match wish {
        Wish::On { generation } | Wish::Off { generation } | Wish::Auto { generation } => {
            status.observed_generation >= Some(*generation)
        }
        Wish::Cycle { id } => PhysicalHosts::record(host).and_then(|record| record.rebooted).as_ref() == Some(id),
    };
    let power = status.observed_power_state.as_deref().unwrap_or_default();
    let settled = status.waiting.is_none();
    match wish {
        Wish::On { .. } if noticed && power == "On" => return Verdict::Done("on".to_owned()),
        Wish::Off { .. } if noticed && power == "Off" => return Verdict::Done("off".to_owned()),
        Wish::Auto { .. } if noticed => return Verdict::Done("left alone".to_owned()),
        Wish::Cycle { .. } if noticed && settled && power == "On" => {
            return Verdict::Done("restarted".to_owned());
        }
        _ => {}
    }
    // A restart is not even begun while something is wrong, so there an old fault counts too.
    if let Some(fault) = status.fault.as_ref().filter(|_| noticed || action == Action::Cycle) {
        let again = match &fault.next_try {
            Some(at) if at.0 > now => format!(" The operator tries again in {}.", human::span(now, at.0)),
            _ => String::new(),
        };
        return Verdict::Failed(format!("has a fault ({}): {}{again}", fault.reason, fault.message));
    }
    Verdict::Waiting(status.waiting.as_ref().filter(|_| noticed).map(|waiting| waiting.message.clone()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn host(generation: i64, spec: &Value, status: &Value) -> PhysicalHost {
        let mut host = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "PhysicalHost",
            "metadata": {"name": "a", "namespace": "lab", "generation": generation},
            "spec": {"redfishConnection": {"address": "https://192.0.2.7", "credentialsSecretRef": "bmc"}},
            "status": status,
        });
        host["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(host).unwrap()
    }

    fn judged(spec: &Value, status: &Value, wish: &Wish) -> Verdict {
        judge(&host(2, spec, status), wish, "2026-11-15T12:00:00Z".parse().unwrap())
    }

    const ON: Wish = Wish::On { generation: 2 };
    const OFF: Wish = Wish::Off { generation: 2 };

    fn cycle() -> Wish {
        Wish::Cycle { id: "7".to_owned() }
    }

    #[test]
    fn nobody_asks_for_power_in_the_middle_of_a_release() {
        let releasing = json!({"state": "Deprovisioning", "observedGeneration": 2});
        for wish in [ON, OFF] {
            let Verdict::Failed(why) = judged(&json!({}), &releasing, &wish) else { panic!() };
            assert!(why.contains("ask again when it is Available"), "{why}");
        }
    }

    #[test]
    fn power_that_is_left_alone_again_is_not_waited_for() {
        let auto = Wish::Auto { generation: 2 };
        let status = |generation: i64| json!({"observedPowerState": "On", "observedGeneration": generation});
        assert_eq!(judged(&json!({}), &status(1), &auto), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status(2), &auto), Verdict::Done("left alone".into()));
    }

    #[test]
    fn a_request_that_does_not_count_any_more_does_not_stand_in_the_way_of_a_restart() {
        let condition = json!({
            "type": "PowerRequestInEffect", "status": "False", "reason": "Outdated", "message": "",
            "lastTransitionTime": "2026-11-15T11:00:00Z",
        });
        let running = json!({"observedPowerState": "On", "record": record("7"), "conditions": [condition]});
        assert_eq!(judged(&json!({"online": false}), &running, &cycle()), Verdict::Done("restarted".into()));
    }

    /// The operator's memory with one restart carried out.
    fn record(rebooted: &str) -> String {
        json!({"phase": "Available", "since": "2026-11-15T11:00:00Z", "rebooted": rebooted}).to_string()
    }

    #[test]
    fn power_counts_only_once_the_operator_has_read_the_wish() {
        let status = |generation: i64| json!({"observedPowerState": "On", "observedGeneration": generation});
        assert_eq!(judged(&json!({}), &status(1), &ON), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status(2), &ON), Verdict::Done("on".into()));
        assert_eq!(judged(&json!({}), &status(2), &OFF), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &Value::Null, &ON), Verdict::Waiting(None));
    }

    #[test]
    fn what_is_waited_for_is_told() {
        let waiting = json!({"reason": "PoweringOn", "message": "Waiting for power."});
        let status = json!({"observedPowerState": "Off", "observedGeneration": 2, "waiting": waiting});
        assert_eq!(judged(&json!({}), &status, &ON), Verdict::Waiting(Some("Waiting for power.".into())));
    }

    #[test]
    fn a_fault_ends_the_wait_with_its_sentence_and_the_next_try() {
        let fault = json!({"reason": "Unreachable", "message": "No answer.", "nextTry": "2026-11-15T12:00:30Z"});
        let status = |generation: i64| json!({"observedGeneration": generation, "fault": fault});
        let Verdict::Failed(why) = judged(&json!({}), &status(2), &ON) else { panic!() };
        assert_eq!(why, "has a fault (Unreachable): No answer. The operator tries again in 30s.");
        assert_eq!(judged(&json!({}), &status(1), &ON), Verdict::Waiting(None), "it is about the time before");
        assert!(matches!(judged(&json!({}), &status(2), &cycle()), Verdict::Failed(_)));
    }

    #[test]
    fn a_restart_is_done_when_the_operator_says_so_and_the_server_is_on() {
        let status = |id: &str, power: &str| json!({"observedPowerState": power, "record": record(id)});
        assert_eq!(judged(&json!({}), &status("6", "On"), &cycle()), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status("7", "Off"), &cycle()), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status("7", "On"), &cycle()), Verdict::Done("restarted".into()));
        let mut under_way = status("7", "On");
        under_way["waiting"] = json!({"reason": "Restarting", "message": "Restarting."});
        assert_eq!(judged(&json!({}), &under_way, &cycle()), Verdict::Waiting(Some("Restarting.".into())));
    }

    #[test]
    fn who_is_left_alone_is_not_waited_for() {
        let on = json!({"observedPowerState": "On", "observedGeneration": 2});
        let parked = json!({"maintenance": {"reason": "new disks"}});
        let Verdict::Failed(why) = judged(&parked, &on, &ON) else { panic!() };
        assert!(why.starts_with("is under maintenance (new disks)"), "{why}");
        let Verdict::Failed(why) = judged(&json!({"online": false}), &on, &cycle()) else { panic!() };
        assert!(why.contains("spec.online: false"), "{why}");
        let condition = json!({
            "type": "Paused", "status": "True", "message": "Its cluster is paused.",
            "lastTransitionTime": "2026-11-15T11:00:00Z",
        });
        let Verdict::Failed(why) = judged(&json!({}), &json!({"conditions": [condition]}), &ON) else { panic!() };
        assert_eq!(why, "is paused: Its cluster is paused.");
    }
}
