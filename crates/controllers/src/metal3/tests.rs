//! What a BareMetalHost asks for, and what its status shows: object in, goal or status out.

use engine::host::{Detachment, Fault, Milestone, Origin, PowerRequest, Presence, Remembered, Sight, step};
use serde_json::{Value, json};

use super::*;
use crate::dialect::ANCHOR_ANNOTATION;

const ISO: &str = "https://images.example/live.iso";

fn host(metadata: &Value, spec: &Value) -> BareMetalHost {
    let mut object = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": {"name": "server-0", "namespace": "lab", "uid": "u-1", "resourceVersion": "7"},
        "spec": {"online": true, "bmc": {"address": "redfish-virtualmedia://bmc-0", "credentialsName": "bmc-0"}},
    });
    crate::dialect::merge(&mut object["metadata"], metadata);
    crate::dialect::merge(&mut object["spec"], spec);
    serde_json::from_value(object).unwrap()
}

fn annotated(name: &str, value: &str) -> Value {
    json!({"annotations": {name: value}})
}

fn live(url: &str) -> Value {
    json!({"image": {"url": url, "format": "live-iso"}})
}

#[test]
fn only_the_url_of_an_image_tells_one_order_from_another() {
    let ordered = |spec: &Value| goal(&host(&json!({}), spec));
    let first = ordered(&live(ISO));
    let claim = first.claim.clone().unwrap();
    assert_eq!((&claim.consumer, &first.consumer), (&None, &None), "nobody is looked up");
    let same = json!({"image": {"url": ISO, "format": "live-iso", "checksum": "x"}, "consumerRef": {"name": "m"}, "userData": {"name": "u"}});
    assert_eq!(ordered(&same).claim.unwrap().id, claim.id);
    assert_ne!(ordered(&live("https://images.example/other.iso")).claim.unwrap().id, claim.id);
    assert_eq!(ordered(&json!({"image": {"url": ""}})).claim, None);
    assert_eq!(ordered(&json!({"consumerRef": {"kind": "Metal3Machine", "name": "m"}})).claim, None);
    assert_eq!(first.order.clone().unwrap().recipe, Ok(Recipe::Iso { url: ISO.to_owned(), starts: Starts::EveryByUs }));
    assert_eq!(first.power_request(), Some(PowerRequest { online: true, id: None }));
    assert!(!first.claim_waits && ordered(&json!({"online": false, "image": {"url": ISO}})).claim_waits);
}

#[test]
fn what_cannot_be_deployed_says_so_and_names_the_field() {
    let table = [
        (
            json!({"image": {"url": "https://images.example/disk.qcow2", "checksum": "x"}}),
            "spec.image: writing disk images",
        ),
        (json!({"image": {"url": ISO, "format": ""}}), "spec.image: writing disk images"),
        (json!({"customDeploy": {"method": "install_coreos"}}), "spec.customDeploy: writing disk images"),
        (
            json!({"image": {"url": ISO, "format": "live-iso"}, "userData": {"name": "u", "namespace": "other"}}),
            "spec.userData.namespace is \"other\"",
        ),
    ];
    for (spec, words) in table {
        let failure = goal(&host(&json!({}), &spec)).order.unwrap().recipe.unwrap_err();
        assert_eq!(failure.kind, Kind::OrderInvalid);
        assert!(failure.to_string().starts_with(words), "{failure}");
    }
    let own = json!({"image": {"url": ISO, "format": "live-iso"}, "userData": {"name": "u", "namespace": "lab"}});
    assert!(goal(&host(&json!({}), &own)).order.unwrap().recipe.is_ok());
}

#[test]
fn a_host_is_managed_detached_or_deleted_as_its_annotations_say() {
    let deleted = |metadata: &Value| {
        let mut metadata = metadata.clone();
        metadata["deletionTimestamp"] = "2026-11-16T08:00:00Z".into();
        road(&host(&metadata, &json!({})))
    };
    let detached = |value: &str| annotated(names::DETACHED, value);
    assert_eq!(road(&host(&json!({}), &json!({}))), Road::Manage);
    assert_eq!(road(&host(&detached(""), &json!({}))), Road::Detach(Detachment::AtRest));
    assert_eq!(road(&host(&detached(r#"{"force":true}"#), &json!({}))), Road::Detach(Detachment::AtOnce));
    assert_eq!(deleted(&json!({})), Road::Delete(Deletion::CleanUp));
    assert_eq!(deleted(&detached("")), Road::Delete(Deletion::Detached(Detachment::AtRest)));
    assert_eq!(deleted(&detached(r#"{"deleteAction":"delay"}"#)), Road::Detach(Detachment::AtRest));
    assert_eq!(deleted(&annotated(capi::DELETE_FOR_MOVE_ANNOTATION, "")), Road::Delete(Deletion::Move));
    assert_eq!(
        road(&host(&annotated(capi::DELETE_FOR_MOVE_ANNOTATION, ""), &json!({}))),
        Road::Manage,
        "an interrupted move has left it there"
    );
}

#[test]
fn inspection_can_be_asked_for_or_switched_off() {
    let asked = goal(&host(&annotated(names::INSPECT, ""), &json!({})));
    assert_eq!((asked.inspect.as_deref(), asked.without_inventory), (Some("7"), false));
    for (metadata, spec) in [
        (annotated(names::INSPECT, names::INSPECT_DISABLED), json!({})),
        (json!({}), json!({"inspectionMode": "disabled"})),
    ] {
        let goal = goal(&host(&metadata, &spec));
        assert_eq!((goal.inspect, goal.without_inventory), (None, true));
    }
}

#[test]
fn what_another_operator_has_written_down_proves_how_it_stands() {
    let status = |state: &str, url: &str| json!({"lastUpdated": "2026-11-01T00:00:00Z", "provisioning": {"state": state, "ID": "1", "image": {"url": url}}});
    let kept = json!({"finalizers": [names::HOST_FINALIZER]});
    let proven = |metadata: &Value, spec: &Value, status: Option<Value>| {
        let mut host = host(metadata, spec);
        host.status = status.map(|status| serde_json::from_value(status).unwrap());
        proof::proof(&host)
    };
    let table = [
        ("a new host", json!({}), live(ISO), None, Proof::Free),
        ("nothing but a finalizer", kept.clone(), live(ISO), None, Proof::InUse),
        ("nothing but our anchor", annotated(ANCHOR_ANNOTATION, "{}"), live(ISO), None, Proof::InUse),
        ("provisioned", kept.clone(), live(ISO), Some(status("provisioned", ISO)), Proof::Deployed),
        ("provisioned with another image", kept.clone(), live(ISO), Some(status("provisioned", "x")), Proof::InUse),
        (
            "provisioned, and not ordered any more",
            kept.clone(),
            json!({}),
            Some(status("provisioned", ISO)),
            Proof::InUse,
        ),
        ("available", kept.clone(), live(ISO), Some(status("available", "")), Proof::Free),
        ("deprovisioning", kept.clone(), json!({}), Some(status("deprovisioning", ISO)), Proof::Releasing),
        (
            "externally provisioned",
            kept.clone(),
            json!({"externallyProvisioned": true}),
            Some(status("externally provisioned", "")),
            Proof::Free,
        ),
        (
            "a status of ours",
            kept,
            live(ISO),
            Some(json!({"lastUpdated": "2026-11-01T00:00:00Z", "record": "{}"})),
            Proof::InUse,
        ),
    ];
    for (what, metadata, spec, status, expected) in table {
        assert_eq!(proven(&metadata, &spec, status), expected, "{what}");
    }
    let moved = |text: &str| annotated(names::STATUS, text);
    let told = status("provisioned", ISO).to_string();
    assert_eq!(proven(&moved(&told), &live(ISO), None), Proof::Deployed, "moved here");
    let odd = r#"{"provisioning":{"state":"provisioned","ID":"1","image":{"url":"x"}},"surprise":"!"}"#;
    assert_eq!(proven(&moved(odd), &live(ISO), None), Proof::InUse, "it lived elsewhere, whatever it says");
    let mut metadata = moved(odd);
    metadata["finalizers"] = json!([names::HOST_FINALIZER]);
    assert_eq!(proven(&metadata, &live(ISO), None), Proof::InUse, "unknown fields are not believed");
}

/// A record in a phase, as the engine writes it.
fn record(phase: Phase, milestone: Milestone) -> Record {
    let anchor = Anchor { milestone, ..Anchor::default() };
    let sight = Sight {
        now: jiff::Timestamp::UNIX_EPOCH,
        inputs: "i".into(),
        target: "t".into(),
        bmc: None,
        consumer: Presence::NotLookedUp,
        fetched: None,
        handed: None,
        probed: None,
        claimer: Presence::NotLookedUp,
        rival: None,
        granted: Vec::new(),
        hold: None,
        spread: 0,
    };
    let remembered = Remembered { anchor: Ok(Some(Anchor::default())), record: None, proof: None };
    Record { phase, anchor, wait: None, ..step(&Goal::default(), remembered, &sight).record }
}

#[test]
fn every_phase_has_a_state_that_upstream_knows() {
    let table = [
        (Phase::Registering, Milestone::None, "registering"),
        (Phase::Inspecting, Milestone::None, "inspecting"),
        (Phase::Available, Milestone::None, "available"),
        (Phase::Preparing, Milestone::None, "provisioning"),
        (Phase::Provisioning, Milestone::Written, "provisioning"),
        (Phase::Provisioned, Milestone::Provisioned, "provisioned"),
        (Phase::Deprovisioning, Milestone::Releasing, "deprovisioning"),
        (Phase::Deleting, Milestone::Releasing, "deprovisioning"),
        (Phase::Deleting, Milestone::None, "deleting"),
    ];
    for (phase, milestone, state) in table {
        assert_eq!(status::state(&record(phase, milestone)), state, "{phase:?}");
    }
    let mut external = record(Phase::Provisioned, Milestone::Provisioned);
    external.anchor.external = true;
    assert_eq!(status::state(&external), "externally provisioned");
    let mut off = record(Phase::Deleting, Milestone::None);
    off.anchor.powered_on = true;
    assert_eq!(status::state(&off), "powering off before delete");
    let detached = Record { left: Some(Phase::Provisioned), ..record(Phase::Detached, Milestone::Provisioned) };
    assert_eq!(status::state(&detached), "provisioned", "a detached host keeps its state");
}

#[test]
fn an_error_is_named_after_what_the_host_was_about_to_do() {
    let table = [
        (Phase::Registering, Origin::Look, "registration error"),
        (Phase::Registering, Origin::Object, "registration error"),
        (Phase::Inspecting, Origin::Look, "inspection error"),
        (Phase::Available, Origin::Look, "registration error"),
        (Phase::Available, Origin::Act, "power management error"),
        (Phase::Preparing, Origin::Object, "provisioning error"),
        (Phase::Preparing, Origin::Act, "provisioning error"),
        (Phase::Provisioning, Origin::Act, "provisioning error"),
        (Phase::Provisioned, Origin::Look, "provisioned registration error"),
        (Phase::Provisioned, Origin::Act, "power management error"),
        (Phase::Deprovisioning, Origin::Act, "provisioning error"),
    ];
    let at = jiff::Timestamp::UNIX_EPOCH;
    for (phase, origin, expected) in table {
        let failure = Failure::new(Kind::Refused, "No.".to_owned());
        let fault = Fault { failure, origin, count: 1, since: at, last: at, next_try: at, inputs: String::new() };
        assert_eq!(status::error_type(&record(phase, Milestone::None), &fault), expected, "{phase:?} {origin:?}");
    }
}
