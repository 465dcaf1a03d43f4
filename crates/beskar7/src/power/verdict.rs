//! What a host's status says about a power request.

use jiff::Timestamp;
use kube::api::DynamicObject;

use crate::dialects::{Action, HostKind, Request};
use crate::human;

/// How a request stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is as requested.
    Done(String),
    /// It will not be so without somebody's help.
    Failed(String),
    /// Not yet; what is waited for, if the operator says so.
    Waiting(Option<String>),
}

/// How the request stands on this host now.
pub(super) fn judge(kind: &dyn HostKind, object: &DynamicObject, request: &Request, now: Timestamp) -> Verdict {
    let action = request.action;
    if let Some(why) = kind.obstacle(object, action) {
        return Verdict::Failed(why);
    }
    let host = match kind.read(object) {
        Ok(host) => host,
        Err(error) => return Verdict::Failed(format!("cannot be read: {error}")),
    };
    if let Some(why) = &host.paused {
        return Verdict::Failed(format!("is paused: {why}"));
    }
    // What the status says about the time before the request tells nothing.
    let noticed = kind.has_heeded(object, request);
    let settled = host.waiting.is_none();
    let done = match action {
        Action::On => (host.power == "On").then_some("on"),
        Action::Off => (host.power == "Off").then_some("off"),
        Action::Auto => Some("left alone"),
        Action::Cycle => (settled && host.power == "On").then_some("restarted"),
    };
    if let Some(done) = done.filter(|_| noticed) {
        return Verdict::Done(done.to_owned());
    }
    // A restart is not even begun while something is wrong, so there an old fault counts too.
    if let Some(fault) = host.fault.filter(|_| noticed || action == Action::Cycle) {
        let again = match &fault.next_try {
            Some(at) if at.0 > now => format!(" The operator tries again in {}.", human::span(now, at.0)),
            _ => String::new(),
        };
        return Verdict::Failed(format!("has a fault ({}): {}{again}", fault.reason, fault.message));
    }
    Verdict::Waiting(host.waiting.filter(|_| noticed).map(|waiting| waiting.message))
}

#[cfg(test)]
mod tests {
    use controllers::dialects::Dialect;
    use serde_json::{Value, json};

    use super::*;
    use crate::dialects;

    fn host(generation: i64, spec: &Value, status: &Value) -> DynamicObject {
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

    fn judged(spec: &Value, status: &Value, action: Action) -> Verdict {
        let request = Request { action, id: "7".to_owned(), generation: 2 };
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        judge(dialects::kind(Dialect::Beskar7), &host(2, spec, status), &request, now)
    }

    #[test]
    fn nobody_asks_for_power_in_the_middle_of_a_release() {
        let releasing = json!({"state": "Deprovisioning", "observedGeneration": 2});
        for wish in [Action::On, Action::Off] {
            let Verdict::Failed(why) = judged(&json!({}), &releasing, wish) else { panic!() };
            assert!(why.contains("ask again when it is Available"), "{why}");
        }
    }

    #[test]
    fn power_that_is_left_alone_again_is_not_waited_for() {
        let status = |generation: i64| json!({"observedPowerState": "On", "observedGeneration": generation});
        assert_eq!(judged(&json!({}), &status(1), Action::Auto), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status(2), Action::Auto), Verdict::Done("left alone".into()));
    }

    #[test]
    fn a_request_that_does_not_count_any_more_does_not_stand_in_the_way_of_a_restart() {
        let condition = json!({
            "type": "PowerRequestInEffect", "status": "False", "reason": "Outdated", "message": "",
            "lastTransitionTime": "2026-11-15T11:00:00Z",
        });
        let running = json!({"observedPowerState": "On", "record": record("7"), "conditions": [condition]});
        assert_eq!(judged(&json!({"online": false}), &running, Action::Cycle), Verdict::Done("restarted".into()));
    }

    /// The operator's memory with one restart carried out.
    fn record(rebooted: &str) -> String {
        json!({"phase": "Available", "since": "2026-11-15T11:00:00Z", "rebooted": rebooted}).to_string()
    }

    #[test]
    fn power_counts_only_once_the_operator_has_read_the_wish() {
        let status = |generation: i64| json!({"observedPowerState": "On", "observedGeneration": generation});
        assert_eq!(judged(&json!({}), &status(1), Action::On), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status(2), Action::On), Verdict::Done("on".into()));
        assert_eq!(judged(&json!({}), &status(2), Action::Off), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &Value::Null, Action::On), Verdict::Waiting(None));
    }

    #[test]
    fn what_is_waited_for_is_told() {
        let waiting = json!({"reason": "PoweringOn", "message": "Waiting for power."});
        let status = json!({"observedPowerState": "Off", "observedGeneration": 2, "waiting": waiting});
        assert_eq!(judged(&json!({}), &status, Action::On), Verdict::Waiting(Some("Waiting for power.".into())));
    }

    #[test]
    fn a_fault_ends_the_wait_with_its_sentence_and_the_next_try() {
        let fault = json!({"reason": "Unreachable", "message": "No answer.", "nextTry": "2026-11-15T12:00:30Z"});
        let status = |generation: i64| json!({"observedGeneration": generation, "fault": fault});
        let Verdict::Failed(why) = judged(&json!({}), &status(2), Action::On) else { panic!() };
        assert_eq!(why, "has a fault (Unreachable): No answer. The operator tries again in 30s.");
        assert_eq!(judged(&json!({}), &status(1), Action::On), Verdict::Waiting(None), "it is about the time before");
        assert!(matches!(judged(&json!({}), &status(2), Action::Cycle), Verdict::Failed(_)));
    }

    #[test]
    fn a_restart_is_done_when_the_operator_says_so_and_the_server_is_on() {
        let status = |id: &str, power: &str| json!({"observedPowerState": power, "record": record(id)});
        assert_eq!(judged(&json!({}), &status("6", "On"), Action::Cycle), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status("7", "Off"), Action::Cycle), Verdict::Waiting(None));
        assert_eq!(judged(&json!({}), &status("7", "On"), Action::Cycle), Verdict::Done("restarted".into()));
        let mut under_way = status("7", "On");
        under_way["waiting"] = json!({"reason": "Restarting", "message": "Restarting."});
        assert_eq!(judged(&json!({}), &under_way, Action::Cycle), Verdict::Waiting(Some("Restarting.".into())));
    }

    #[test]
    fn who_is_left_alone_is_not_waited_for() {
        let on = json!({"observedPowerState": "On", "observedGeneration": 2});
        let parked = json!({"maintenance": {"reason": "new disks"}});
        let Verdict::Failed(why) = judged(&parked, &on, Action::On) else { panic!() };
        assert!(why.starts_with("is under maintenance (new disks)"), "{why}");
        let Verdict::Failed(why) = judged(&json!({"online": false}), &on, Action::Cycle) else { panic!() };
        assert!(why.contains("spec.online: false"), "{why}");
        let condition = json!({
            "type": "Paused", "status": "True", "message": "Its cluster is paused.",
            "lastTransitionTime": "2026-11-15T11:00:00Z",
        });
        let Verdict::Failed(why) = judged(&json!({}), &json!({"conditions": [condition]}), Action::On) else {
            panic!()
        };
        assert_eq!(why, "is paused: Its cluster is paused.");
    }
}
