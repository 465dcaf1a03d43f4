use controllers::dialects::Dialect;
use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::*;
use crate::dialects;
use crate::output::Paper;
use crate::table;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

fn kind() -> &'static dyn HostKind {
    dialects::kind(Dialect::Beskar7)
}

fn row(name: &str, spec: &Value, status: &Value) -> Row {
    let mut host = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "PhysicalHost",
        "metadata": {"name": name, "namespace": "lab", "creationTimestamp": "2026-11-15T09:00:00Z"},
        "spec": {"redfishConnection": {"address": "https://192.0.2.7", "credentialsSecretRef": "bmc"}},
    });
    host["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    if !status.is_null() {
        host["status"] = status.clone();
    }
    let object: DynamicObject = serde_json::from_value(host).unwrap();
    Row::of(None, &object.metadata, kind().read(&object).unwrap(), now())
}

#[test]
fn trouble_comes_first_and_rest_is_sorted_by_name() {
    let mut rows = [
        row("b-rest", &json!({}), &json!({"state": "Available"})),
        row("a-rest", &json!({}), &json!({"state": "Provisioned"})),
        row("moving", &json!({}), &json!({"state": "Provisioning"})),
        row("ill", &json!({}), &json!({"state": "Available", "health": "Critical"})),
        row("new", &json!({}), &Value::Null),
        row("lost", &json!({}), &json!({"state": "Provisioned", "fault": {"reason": "Unreachable", "message": "No."}})),
        row("broken", &json!({}), &json!({"state": "Error"})),
    ];
    rows.sort_by(|one, other| one.order().cmp(&other.order()));
    let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["broken", "lost", "ill", "new", "moving", "a-rest", "b-rest"]);
}

#[test]
fn the_detail_says_what_is_wrong_and_when_it_is_tried_again() {
    let fault = |next: &str| {
        let fault = json!({"reason": "Unreachable", "message": "No answer.", "nextTry": next});
        row("a", &json!({}), &json!({"state": "Error", "fault": fault})).detail
    };
    assert_eq!(fault("2026-11-15T12:04:30Z"), "Unreachable, next try in 4m30s: No answer.");
    assert_eq!(fault("2026-11-15T11:59:00Z"), "Unreachable, next try now: No answer.");

    let fault = json!({"reason": "AddressInvalid", "message": "It is empty."});
    let detail = row("a", &json!({}), &json!({"state": "Error", "fault": fault})).detail;
    assert_eq!(detail, "AddressInvalid: It is empty.", "only a change of the object helps");
}

#[test]
fn the_detail_says_what_is_waited_for() {
    let waiting = json!({"reason": "ShuttingDown", "message": "Waiting.", "deadline": "2026-11-15T12:01:30Z"});
    let detail = row("a", &json!({}), &json!({"state": "Deprovisioning", "waiting": waiting})).detail;
    assert_eq!(detail, "ShuttingDown, 90s left: Waiting.");
    let waiting = json!({"reason": "FleetBrake", "message": "Waiting.", "deadline": "2026-11-16T12:01:30Z"});
    let detail = row("a", &json!({}), &json!({"state": "Claimed", "waiting": waiting})).detail;
    assert_eq!(detail, "FleetBrake: Waiting.", "nothing but a reminder comes then");

    let parked = row("a", &json!({"maintenance": {"reason": "new disks"}}), &json!({"state": "Maintenance"}));
    assert_eq!(parked.detail, "new disks");
    assert!(row("a", &json!({}), &Value::Null).detail.contains("is the operator running?"));
}

#[test]
fn the_summary_counts_by_state() {
    let rows = vec![
        row("a", &json!({}), &json!({"state": "Error", "fault": {"reason": "Unreachable", "message": "No."}})),
        row("b", &json!({}), &json!({"state": "Available"})),
        row("c", &json!({}), &json!({"state": "Available"})),
        row("d", &json!({}), &json!({"state": "Sleeping"})),
    ];
    assert_eq!(
        summary(&[kind()], &rows, 4, false),
        "4 hosts: 2 Available, 1 Error, 1 Sleeping; 1 with a fault (beskar7 hosts --fault)"
    );
    assert_eq!(summary(&[kind()], &rows[..1], 1_000, true), "1 of 1,000 hosts: 1 Error");
    assert_eq!(summary(&[kind()], &[], 1_000, true), "0 of 1,000 hosts");
    assert!(summary(&[kind()], &[], 0, false).starts_with("No hosts."));
}

#[test]
fn a_line_fits_the_terminal() {
    let status = json!({
        "state": "Provisioned", "observedPowerState": "On", "health": "OK",
        "hardwareDetails": {"model": "PowerEdge R640", "serialNumber": "ABC1234", "summary": "64 cores, 512 GiB, 1.9 TB"},
        "fault": {"reason": "Unreachable", "message": "The connection to port 443 was refused. ".repeat(5)},
    });
    let row = row("server-01", &json!({"consumerRef": {"name": "node-01"}}), &status);
    for width in [60, 80, 100, 120, 200] {
        let paper = Paper { width: Some(width), colour: false };
        let text = table::render(&COLUMNS, &[row.cells(false, false)], paper);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        assert!(text.contains("Unreachable"), "{width}\n{text}");
    }
    let wide = table::render(&COLUMNS, &[row.cells(true, true)], Paper::default());
    assert!(wide.starts_with("NAME       STATE        POWER  HEALTH  CONSUMER  MODEL"), "{wide}");
    assert!(wide.contains("https://192.0.2.7  ABC1234"), "{wide}");
}
