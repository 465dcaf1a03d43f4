use api::beskar7::PhysicalHost;
use engine::failure::Kind;
use engine::hardware::{Hardware, Part};
use engine::host::{
    Anchor, Author, BmcSight, Deletion, Happening, Milestone, Moment, Phase, Presence, Remembered, Road, Sight, Step,
    step,
};
use engine::server::{Health, PowerState, Seen};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;

/// What was decided on a host without relatives.
fn decided<'a>(
    host: &'a PhysicalHost,
    goal: &'a Goal,
    step: &'a engine::host::Step,
    seen: Option<&'a Seen>,
    now: Timestamp,
) -> Outcome<'a, PhysicalHost> {
    Outcome {
        host,
        related: View::alone(host).related,
        depot: None,
        settings: View::alone(host).settings,
        goal,
        step,
        seen,
        session: None,
        credentials: None,
        now,
    }
}

fn host(metadata: &Value, spec: &Value) -> PhysicalHost {
    let mut object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "PhysicalHost",
        "metadata": { "name": "server-01", "namespace": "racks", "uid": "u1" },
        "spec": { "redfishConnection": { "address": "https://192.0.2.10", "credentialsSecretRef": "bmc" } },
    });
    json_patch(&mut object["metadata"], metadata);
    json_patch(&mut object["spec"], spec);
    serde_json::from_value(object).unwrap()
}

fn json_patch(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                json_patch(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

fn plain(spec: &Value) -> PhysicalHost {
    host(&json!({}), spec)
}

#[test]
fn the_same_claim_has_the_same_identity_in_every_version_of_its_kind() {
    let claim_of = |version: &str| {
        let reference = json!({ "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": "Beskar7Machine", "name": "m" });
        goal(&plain(&json!({ "consumerRef": reference })), None).claim.unwrap()
    };
    assert_eq!(claim_of("v1alpha1").id, claim_of("v1beta1").id);
    assert_eq!(
        claim_of("v1beta1").consumer.unwrap().namespace,
        "racks",
        "a reference without a namespace means the host's own"
    );
}

#[test]
fn a_claim_id_tells_namesakes_apart() {
    let with_id = |id: &str| {
        let metadata = json!({ "annotations": { "beskar7.io/claim-id": id } });
        let spec = json!({ "consumerRef": { "name": "m" }, "bootIsoSource": "http://i/os.iso" });
        goal(&host(&metadata, &spec), None)
    };
    let (first, second) = (with_id("one"), with_id("two"));
    assert_ne!(first.claim.unwrap().id, second.claim.unwrap().id);
    assert_ne!(first.order.unwrap().deployment, second.order.unwrap().deployment);
}

#[test]
fn a_claim_is_of_a_claimer_if_it_bears_an_id_and_names_somebody_who_can_be_asked() {
    let machine =
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": "m" });
    let by_hand = json!({ "name": "me" });
    for (id, reference, claimer) in
        [("one", &machine, true), ("", &machine, false), ("one", &by_hand, false), ("one", &json!(null), false)]
    {
        let metadata = json!({ "annotations": { "beskar7.io/claim-id": id } });
        let goal = goal(&host(&metadata, &json!({ "consumerRef": reference })), None);
        assert_eq!(goal.author == Author::Claimer, claimer, "{id} {reference}");
    }
}

#[test]
fn two_hosts_are_two_deployments_also_for_one_consumer_and_one_image() {
    let remote = json!({ "osFamily": "kairos", "configURL": "http://c/x" });
    let spec = json!({ "consumerRef": { "name": "me" }, "bootIsoSource": "http://i/os.iso", "remoteConfig": remote });
    let shipment = |name: &str| {
        let mut host = plain(&spec);
        host.metadata.name = Some(name.to_owned());
        PhysicalHosts::shipment(&host, &Depot::of_test(None)).unwrap()
    };
    let (one, other) = (shipment("one"), shipment("other"));
    assert_eq!(one.holder.claim, other.holder.claim);
    assert_ne!(one.holder.deployment, other.holder.deployment);
}

/// A host that gets its bootstrap data from us, claimed by hand.
fn served(anchor: &Anchor) -> PhysicalHost {
    let spec = json!({
        "consumerRef": { "name": "me" },
        "bootIsoSource": "http://i/os.iso",
        "remoteConfig": { "osFamily": "kairos" },
        "userDataSecretRef": { "name": "data" },
    });
    host(&json!({ "annotations": { "beskar7.io/anchor": anchor.to_json() } }), &spec)
}

#[test]
fn the_same_claim_and_order_after_a_release_is_another_deployment() {
    let free_since = |second: i64| Some(Timestamp::from_second(second).unwrap());
    let anchor = |seq, free_since| Anchor { seq, free_since, ..Anchor::default() };
    let deployment =
        |host: &PhysicalHost| PhysicalHosts::shipment(host, &Depot::of_test(None)).unwrap().holder.deployment;
    let (first, second) = (anchor(5, free_since(1)), anchor(9, free_since(2)));
    assert_ne!(deployment(&served(&first)), deployment(&served(&second)));
    assert_eq!(deployment(&served(&first)), deployment(&served(&Anchor { seq: 7, ..first.clone() })));
    let order = |host: &PhysicalHost| goal(host, None).order.unwrap().deployment;
    assert_eq!(order(&served(&first)), deployment(&served(&first)));
    let plain = |anchor: &Anchor| {
        let mut host = served(anchor);
        host.spec.remote_config = None;
        order(&host)
    };
    assert_ne!(plain(&first), plain(&second));

    // An annotation that was brought back from an old manifest does not bring the old tickets back.
    let step = first_step(&served(&second), &sight(Ok(seen())));
    let record = engine::host::Record { anchor: second.clone(), ..step.record };
    let status = json!({ "record": serde_json::to_string(&record).unwrap() });
    let restored = with_status(&served(&first), status);
    assert_eq!(PhysicalHosts::record(&restored).unwrap().anchor, second);
    assert_eq!(deployment(&restored), deployment(&served(&second)));
}

#[test]
fn bootstrap_data_is_for_a_server_that_was_powered_on_for_this_deployment() {
    let shipment = |anchor: &Anchor| PhysicalHosts::shipment(&served(anchor), &Depot::of_test(None));
    let ours = shipment(&Anchor::default()).unwrap().holder.deployment;
    let anchor =
        |milestone, deployment: &str| Anchor { milestone, deployment: Some(deployment.into()), ..Anchor::default() };
    for (milestone, deployment, powered_on) in [
        (Milestone::None, ours.as_str(), false),
        (Milestone::Armed, &ours, false),
        (Milestone::Written, &ours, true),
        (Milestone::Provisioned, &ours, true),
        (Milestone::Written, "another", false),
    ] {
        let shipment = shipment(&anchor(milestone, deployment)).unwrap();
        assert_eq!(shipment.powered_on, powered_on, "{milestone:?} {deployment}");
    }
}

#[test]
fn roads() {
    let deleted = |annotation: Option<(&str, &str)>| {
        let mut metadata = json!({ "deletionTimestamp": "2026-11-15T08:00:00Z" });
        if let Some((name, value)) = annotation {
            metadata["annotations"] = json!({ name: value });
        }
        goal(&host(&metadata, &json!({})), None).road
    };
    assert_eq!(goal(&plain(&json!({})), None).road, Road::Manage);
    assert_eq!(goal(&plain(&json!({ "maintenance": {} })), None).road, Road::Park);
    assert_eq!(deleted(None), Road::Delete(Deletion::CleanUp));
    assert_eq!(deleted(Some(("beskar7.io/force-delete", "true"))), Road::Delete(Deletion::Force));
    assert_eq!(deleted(Some(("beskar7.io/force-delete", "no"))), Road::Delete(Deletion::CleanUp));
    assert_eq!(deleted(Some(("clusterctl.cluster.x-k8s.io/delete-for-move", ""))), Road::Delete(Deletion::Move));
}

#[test]
fn trust_goes_from_the_strictest_wish_to_the_laxest() {
    let pin = "ab".repeat(32);
    let anchored = Anchor { pin: Some(pin.clone()), ..Anchor::default() };
    let trust = |connection: Value, anchor: Option<&Anchor>| {
        PhysicalHosts::connection(&View::alone(&plain(&json!({ "redfishConnection": connection }))), anchor)
            .unwrap()
            .trust
    };
    let pinned = TrustWish::Pin(pin.parse().unwrap());
    assert_eq!(trust(json!({}), None), TrustWish::SystemRoots);
    assert_eq!(trust(json!({ "certificateFingerprint": pin }), None), pinned);
    assert_eq!(
        trust(json!({ "caBundleSecretRef": { "name": "ca" } }), None),
        TrustWish::CaBundle(ObjectId::named::<Secret>(Some("racks"), "ca"))
    );
    assert_eq!(trust(json!({ "trustOnFirstUse": true }), None), TrustWish::FirstUse);
    assert_eq!(trust(json!({ "trustOnFirstUse": true }), Some(&anchored)), pinned);
    assert_eq!(
        trust(json!({}), Some(&anchored)),
        TrustWish::SystemRoots,
        "a pin from before counts only while it is asked for"
    );
    assert_eq!(trust(json!({ "insecureSkipVerify": true }), None), TrustWish::Anything);
}

#[test]
fn what_cannot_be_reached_is_said_in_words() {
    let failure = |connection: Value| {
        PhysicalHosts::connection(&View::alone(&plain(&json!({ "redfishConnection": connection }))), None).unwrap_err()
    };
    assert_eq!(failure(json!({ "address": "ipmi://192.0.2.1" })).kind, Kind::ProtocolUnsupported);
    assert_eq!(failure(json!({ "address": "https://" })).kind, Kind::AddressInvalid);
    let vendor = failure(json!({ "vendor": "acme" }));
    let told = vendor.to_string();
    assert!(told.contains("spec.redfishConnection.vendor") && told.contains("acme"), "{told}");
}

#[test]
fn a_system_is_named_by_field_or_by_address() {
    let target = |connection: Value| {
        PhysicalHosts::connection(&View::alone(&plain(&json!({ "redfishConnection": connection }))), None)
            .unwrap()
            .target()
    };
    assert_eq!(target(json!({ "systemID": "Node2" })), "192.0.2.10:443#node2");
    assert_ne!(target(json!({})), target(json!({ "systemID": "Node2" })));
}

fn now() -> Timestamp {
    "2026-11-15T08:00:00.123456789Z".parse().unwrap()
}

fn sight(seen: Result<Seen, Failure>) -> Sight {
    Sight {
        now: now(),
        inputs: "i".into(),
        target: "t".into(),
        bmc: Some(BmcSight { at: now() - SignedDuration::from_secs(1), after: 0, inputs: "i".into(), act: None, seen }),
        consumer: Presence::NotLookedUp,
        claimer: Presence::NotLookedUp,
        rival: None,
        granted: vec![],
        fetched: None,
        handed: None,
        probed: None,
        hold: None,
        spread: 0,
    }
}

fn seen() -> Seen {
    Seen {
        power: PowerState::Off,
        health: Health { health: Some("OK".into()), rollup: Some("Warning".into()), state: Some("Enabled".into()) },
        hardware: Some(Box::default()),
        ..Seen::default()
    }
}

fn first_step(host: &PhysicalHost, sight: &Sight) -> Step {
    step(&goal(host, None), Remembered { anchor: Ok(None), record: PhysicalHosts::record(host), proof: None }, sight)
}

fn with_status(host: &PhysicalHost, status: Value) -> PhysicalHost {
    let mut object = serde_json::to_value(host).unwrap();
    object["status"] = status;
    serde_json::from_value(object).unwrap()
}

#[test]
fn a_status_that_was_written_is_not_written_again() {
    let host = plain(&json!({}));
    let sight = sight(Ok(seen()));
    let step = first_step(&host, &sight);
    let goal = goal(&host, None);
    let seen = seen();
    let outcome = decided(&host, &goal, &step, Some(&seen), now());
    let status = PhysicalHosts::render(&outcome).status.expect("the first status says something");
    let host = with_status(&host, status);

    let record = PhysicalHosts::record(&host).expect("the record is read back");
    assert_eq!(record.phase, step.record.phase);
    assert_eq!(host.status.as_ref().unwrap().timeline.len(), step.moments.len());
    let again = self::step(
        &goal,
        Remembered { anchor: Ok(Some(step.record.anchor.clone())), record: Some(record), proof: None },
        &sight,
    );
    let later = now() + SignedDuration::from_mins(1);
    let outcome = decided(&host, &goal, &again, None, later);
    assert_eq!(PhysicalHosts::render(&outcome).status, None);
}

#[test]
fn the_timeline_is_bounded_and_keeps_the_newest() {
    let mut host = plain(&json!({}));
    let goal = goal(&host, None);
    for round in 0..30 {
        let mut step = first_step(&host, &sight(Ok(seen())));
        let at = now() + SignedDuration::from_mins(round);
        step.moments = vec![Moment { at, phase: Phase::Available, what: Happening::InspectedAgain }];
        let outcome = decided(&host, &goal, &step, None, at);
        host = with_status(&host, PhysicalHosts::render(&outcome).status.expect("something has happened"));
        let timeline = &host.status.as_ref().unwrap().timeline;
        assert!(timeline.len() <= 20, "round {round}");
        assert_eq!(timeline.last().unwrap().at, super::findings::time(at), "round {round}");
    }
    assert_eq!(host.status.unwrap().timeline.len(), 20);
}

#[test]
fn error_shows_only_on_hosts_that_nobody_claimed() {
    let failure = Failure::new(Kind::Unreachable, "https://192.0.2.10 cannot be reached: connection refused");
    let state_of = |host: &PhysicalHost| {
        let step = first_step(host, &sight(Err(failure.clone())));
        let goal = goal(host, None);
        let outcome = decided(host, &goal, &step, None, now());
        let host = with_status(host, PhysicalHosts::render(&outcome).status.unwrap());
        let status = host.status.unwrap();
        let connection = status.condition("RedfishConnectionReady").unwrap();
        assert_eq!((connection.status.as_str(), connection.reason.as_str()), ("False", "Unreachable"));
        assert_eq!(status.error_message.as_deref(), Some(failure.to_string().as_str()));
        status.state.unwrap()
    };
    assert_eq!(state_of(&plain(&json!({}))), "Error");
    assert_eq!(state_of(&plain(&json!({ "consumerRef": { "name": "me" } }))), "Provisioned", "adopted");
}

#[test]
fn a_free_host_without_a_way_to_boot_is_not_offered_and_says_what_to_do() {
    let status_with = |drives: u32, network: bool, spec: &Value| {
        let media = engine::hardware::VirtualMedia { drives, schemes: Vec::new() };
        let hardware = Hardware { virtual_media: Some(media), network_boot: Some(network), ..Hardware::default() };
        let seen = Seen { hardware: Some(Box::new(hardware)), ..seen() };
        let host = plain(spec);
        let step = first_step(&host, &sight(Ok(seen.clone())));
        let goal = goal(&host, None);
        let outcome = decided(&host, &goal, &step, Some(&seen), now());
        let host = with_status(&host, PhysicalHosts::render(&outcome).status.unwrap());
        (offer::offer(&host).candidate.availability, host.status.unwrap())
    };
    let (availability, status) = status_with(0, false, &json!({}));
    assert_eq!((status.state.as_deref(), status.ready), (Some("Error"), Some(false)));
    assert_eq!(status.fault.as_ref().unwrap().reason, "NoBootMethod", "kubectl get shows it");
    assert!(status.error_message.as_ref().unwrap().contains("Enable virtual media in the BMC"));
    for type_ in ["Ready", "HostAvailable"] {
        let condition = status.condition(type_).unwrap();
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "NoBootMethod"), "{type_}");
        assert!(condition.message.contains("beskar7.io/inspect"), "{}", condition.message);
    }
    assert_eq!(availability, engine::placement::Availability::Unavailable("Error: NoBootMethod".into()));
    let record = super::status::record(&status).unwrap();
    assert_eq!(record.fault, None, "nothing has failed: its power is kept as its owner wants it");

    let (availability, status) = status_with(1, false, &json!({}));
    assert_eq!((status.state.as_deref(), status.fault), (Some("Available"), None));
    assert_eq!(availability, engine::placement::Availability::Free);
}

/// The conditions after a first look at a host that answers.
fn condition_after_a_look(spec: &Value, seen: &Seen, type_: &str) -> Option<(String, String, String)> {
    let host = plain(spec);
    let sight = sight(Ok(seen.clone()));
    let step = first_step(&host, &sight);
    let goal = goal(&host, None);
    let outcome = decided(&host, &goal, &step, Some(seen), now());
    let status = with_status(&host, PhysicalHosts::render(&outcome).status.unwrap()).status.unwrap();
    let condition = status.condition(type_)?;
    Some((condition.status.clone(), condition.reason.clone(), condition.message.clone()))
}

#[test]
fn a_bmc_without_tls_is_warned_of_in_its_connection() {
    let connection = |address: &str| {
        let spec = json!({ "redfishConnection": { "address": address } });
        condition_after_a_look(&spec, &seen(), "RedfishConnectionReady").unwrap()
    };
    for address in ["http://192.0.2.10", "redfish+http://192.0.2.10"] {
        let (status, reason, message) = connection(address);
        assert_eq!((status.as_str(), reason.as_str()), ("True", "ConnectedWithoutTLS"));
        assert!(message.contains("password") && message.contains("spec.redfishConnection.address"), "{message}");
    }
    assert_eq!(connection("192.0.2.10").1, "Connected");
}

#[test]
fn a_mac_address_that_no_interface_has_is_told_about() {
    let found = |mac: &str| {
        let nic = engine::hardware::Nic { mac: Some("52:54:00:12:34:56".into()), ..Default::default() };
        let hardware = engine::hardware::Hardware { nics: vec![nic], ..Default::default() };
        let seen = Seen { hardware: Some(Box::new(hardware)), ..seen() };
        condition_after_a_look(&json!({ "bootMacAddress": mac }), &seen, "BootInterfaceFound")
    };
    assert_eq!(found("52-54-00-12-34-56").unwrap().0, "True");
    let (status, reason, message) = found("52:54:00:00:00:01").unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoSuchInterface"));
    assert!(message.contains("52:54:00:00:00:01") && message.contains("52:54:00:12:34:56"), "{message}");
    let without = json!({ "bootMacAddress": "52:54:00:00:00:01" });
    assert_eq!(condition_after_a_look(&without, &seen(), "BootInterfaceFound"), None, "nothing is listed");
}

#[test]
fn pausing_keeps_the_status_and_says_so_once() {
    let host = with_status(&plain(&json!({})), json!({ "state": "Available", "ready": true }));
    let status = PhysicalHosts::paused_status(&View { now: now(), ..View::alone(&host) }, "why", None).unwrap();
    assert_eq!(status["state"], "Available");
    assert!(!PhysicalHosts::shows_pause(&host));
    let host = with_status(&host, status);
    assert_eq!(host.status.as_ref().unwrap().condition("Paused").unwrap().status, "True");
    assert!(PhysicalHosts::shows_pause(&host));
    let later = now() + SignedDuration::from_hours(1);
    assert_eq!(PhysicalHosts::paused_status(&View { now: later, ..View::alone(&host) }, "why", None), None);
    let status =
        PhysicalHosts::paused_status(&View { now: later, ..View::alone(&host) }, "why", Some(&seen())).unwrap();
    assert_eq!((&status["observedPowerState"], &status["health"]), (&json!("Off"), &json!("Warning")));
}

fn claimed(annotations: &Value, spec: &Value) -> PhysicalHost {
    let anchor = Anchor {
        claim: Some(Claim { id: "one".into(), consumer: Some(Consumer::default()) }),
        milestone: engine::host::Milestone::Provisioned,
        uuid: Some("registered".into()),
        ..Anchor::default()
    };
    let mut metadata =
        json!({ "annotations": { "beskar7.io/anchor": anchor.to_json(), "beskar7.io/claim-id": "one" } });
    json_patch(&mut metadata["annotations"], annotations);
    let mut object = json!({ "consumerRef": { "name": "m" } });
    json_patch(&mut object, spec);
    host(&metadata, &object)
}

#[test]
fn a_node_is_named_after_the_server_that_was_registered_whatever_the_inventory_shows() {
    let details = json!({ "hardwareDetails": { "uuid": "another" } });
    let offer = PhysicalHosts::offer(&with_status(&claimed(&json!({}), &json!({})), details));
    assert_eq!(offer.holdings[0].uuid.as_deref(), Some("registered"));
}

#[test]
fn a_host_that_is_left_alone_tells_its_machine_so() {
    let wait_of = |host: &PhysicalHost| PhysicalHosts::offer(host).holdings[0].host.wait.clone();
    assert_eq!(wait_of(&claimed(&json!({}), &json!({}))), None);
    let parked = claimed(&json!({}), &json!({ "maintenance": { "reason": "fan swap" } }));
    let paused = claimed(&json!({ "cluster.x-k8s.io/paused": "" }), &json!({}));
    for (host, reason, words) in [
        (parked, "Maintenance", "under maintenance (fan swap): nothing is done to its server until spec.maintenance"),
        (paused, "Paused", "nothing is done to its server until its annotation cluster.x-k8s.io/paused is removed"),
    ] {
        let wait = wait_of(&host).unwrap();
        assert_eq!(wait.reason, reason);
        assert!(wait.message.contains(words), "{}", wait.message);
    }
}

#[test]
fn quarantine_does_not_look_like_maintenance() {
    let barred = host(&json!({ "annotations": { "beskar7.io/quarantine": "It smelled of smoke." } }), &json!({}));
    let goal = goal(&barred, None);
    assert!(goal.quarantine && goal.road == Road::Manage);
    let sight = sight(Ok(seen()));
    let step = first_step(&barred, &sight);
    let outcome = decided(&barred, &goal, &step, None, now());
    let status = with_status(&barred, PhysicalHosts::render(&outcome).status.unwrap()).status.unwrap();
    assert_eq!(status.state.as_deref(), Some("Quarantined"));
    let available = status.condition("HostAvailable").unwrap();
    assert_eq!(available.reason, "Quarantined");
    assert!(
        available.message.contains("(It smelled of smoke)")
            && available.message.contains("beskar7.io/quarantine is removed")
    );
    assert!(status.timeline.iter().all(|entry| !entry.message.contains("maintenance")), "{:?}", status.timeline);

    let both = host(&json!({ "annotations": { "beskar7.io/quarantine": "" } }), &json!({ "maintenance": {} }));
    assert_eq!(super::goal(&both, None).road, Road::Park);
}

#[test]
fn a_huge_inventory_is_cut_and_says_so() {
    let mut inventory = engine::hardware::Hardware::default();
    for number in 0..5000 {
        inventory.firmware.push(engine::hardware::Firmware {
            name: format!("component number {number} of a very large chassis"),
            version: Some("1.2.3".into()),
        });
    }
    let details = hardware::details(&inventory, &engine::server::Seen::default());
    assert_eq!(details.truncated, Some(true));
    assert!(serde_json::to_vec(&details).unwrap().len() < 192 * 1024);
    assert!(details.firmware_inventory.len() > 500);
}

#[test]
fn link_local_addresses_are_left_out() {
    let nic =
        |address: &str| api::beskar7::NetworkInterface { ip_addresses: vec![address.into()], ..Default::default() };
    let nics: Vec<_> = ["10.0.0.1", "169.254.1.1", "203.0.113.9", "fe80::1", "fd00::1", "2001:db8::1", "nonsense"]
        .into_iter()
        .map(nic)
        .collect();
    let addresses = hardware::addresses(&nics);
    let words: Vec<_> = addresses.iter().map(|a| (format!("{:?}", a.type_), a.address.as_str())).collect();
    assert_eq!(
        words,
        [
            ("InternalIp".into(), "10.0.0.1"),
            ("ExternalIp".into(), "203.0.113.9"),
            ("InternalIp".into(), "fd00::1"),
            ("ExternalIp".into(), "2001:db8::1")
        ]
    );
}

#[test]
fn a_host_that_could_not_be_read_whole_says_what_is_missing_and_keeps_what_was_read() {
    let told = |host: &PhysicalHost, unread: Vec<Part>, drives: usize| {
        let mut found = seen();
        let drive = |at: usize| engine::hardware::Drive { id: at.to_string(), ..Default::default() };
        found.hardware =
            Some(Box::new(Hardware { unread, drives: (0..drives).map(drive).collect(), ..Hardware::default() }));
        let sight = sight(Ok(found.clone()));
        let step = first_step(host, &sight);
        let goal = goal(host, None);
        let outcome = decided(host, &goal, &step, Some(&found), now());
        with_status(host, PhysicalHosts::render(&outcome).status.unwrap())
    };
    let inspected = |host: &PhysicalHost| {
        let condition = host.status.as_ref().unwrap().condition("HostInspected").cloned().unwrap();
        (condition.status, condition.reason, condition.message)
    };
    let drives =
        |host: &PhysicalHost| host.status.as_ref().unwrap().hardware_details.as_ref().unwrap().unpack().drives.len();
    let whole = told(&plain(&json!({})), Vec::new(), 4);
    assert_eq!((inspected(&whole).1.as_str(), drives(&whole)), ("Inspected", 4));
    let partial = told(&whole, vec![Part::Drives, Part::Firmware], 0);
    let (status, reason, message) = inspected(&partial);
    assert_eq!((status.as_str(), reason.as_str()), ("True", "InspectedInPart"));
    assert!(message.contains("drives, firmware"), "{message}");
    assert_eq!(drives(&partial), 4, "they were read before");
}

/// Tickets that BMCs are reading and hosts that refused a machine are known by these: they must not change with a release.
#[test]
fn ids_of_deployments_and_orders_stay_the_same_from_release_to_release() {
    let deployment = |spec: &Value| {
        let mut all = json!({ "consumerRef": { "name": "me", "namespace": "racks" } });
        json_patch(&mut all, spec);
        goal(&host(&json!({ "annotations": { names::CLAIM_ID: "c-1" } }), &all), None).order.unwrap().deployment
    };
    let iso = "http://i/os.iso";
    let secret = json!({ "name": "data" });
    for (spec, words) in [
        (json!({ "bootIsoSource": iso }), "c-1 iso http://i/os.iso"),
        (json!({ "bootIsoSource": iso, "bootEveryStart": false }), "c-1 iso http://i/os.iso"),
        (json!({ "bootIsoSource": iso, "bootEveryStart": true }), "c-1 iso http://i/os.iso every-start"),
        (
            json!({ "bootIsoSource": iso, "remoteConfig": { "osFamily": "talos", "configURL": "http://i/c" } }),
            r#"c-1 remote racks/server-01 http://i/os.iso talos At("http://i/c")"#,
        ),
        (
            json!({ "bootIsoSource": iso, "remoteConfig": { "osFamily": "kairos" }, "userDataSecretRef": secret }),
            r#"c-1 remote racks/server-01 http://i/os.iso kairos In("data")"#,
        ),
        (json!({ "networkBoot": { "protocol": "PXE" } }), "c-1 network pxe - - -"),
        (
            json!({ "networkBoot": { "protocol": "HTTP", "url": "http://i/b.efi" }, "bootEveryStart": true }),
            "c-1 network http http://i/b.efi - - every-start",
        ),
    ] {
        assert_eq!(deployment(&spec), crate::fingerprint::digest(words), "{spec}");
    }
    assert_eq!(deployment(&json!({ "bootIsoSource": iso })), "c890c2ef09bc2ac51dd9", "the digest itself");
}
