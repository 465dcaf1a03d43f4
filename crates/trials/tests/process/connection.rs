//! BMCs that refuse us, fail us, or are away for a while.

use std::time::Duration;

use api::beskar7::PhysicalHost;
use controllers::clock::Clock as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sim::{Credentials, Effect, Fault, FaultBody, Kind, PowerState, Verb};
use testkit::wait_for;
use trials::gate::Gate;
use trials::story::ISO;
use trials::world::{
    EVER, World, anchor, assert_told, claim, condition, fault_of, instant_bmc, is_well, spec, state_of,
};

fn logins(bmc: &sim::Bmc) -> u64 {
    bmc.counters().of(Verb::Post, Kind::Sessions)
}

fn hold(host: &PhysicalHost) -> Option<(u64, jiff::Timestamp)> {
    let anchor = anchor(host);
    let hold = anchor.get("hold")?;
    Some((hold["count"].as_u64().unwrap(), hold["until"].as_str().unwrap().parse().unwrap()))
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_tried_once_until_the_hold_is_over_or_the_secret_changes() {
    let world = World::in_process().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "guessed").await;
    world.create_host("server-01", json!({})).await;
    let host = world.wait_for_fault("server-01", "AuthenticationFailed").await;
    assert_told(&host, "AuthenticationFailed", &["https://server-01 refused the user name and password", "Secret"]);
    assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), "AuthenticationFailed".into()));
    let (count, until) = hold(&host).unwrap();
    assert_eq!((count, logins(&bmc)), (1, 1));
    world.wait_for_event_of("server-01", "AuthenticationFailed").await;

    // Neither a restart nor a lost status shortens the hold.
    world.stop_operator().await;
    world.wipe_status("server-01").await;
    world.start_operator();
    let host = world.wait_for_fault("server-01", "AuthenticationFailed").await;
    assert_eq!(hold(&host), Some((1, until)));
    assert_eq!(logins(&bmc), 1, "locked accounts are made of this");
    assert!(bmc.counters().total() <= 4 && world.writes() <= 12, "{:?}", bmc.counters());

    wait_for("the second try", EVER, async || (logins(&bmc) == 2).then_some(())).await;
    assert!(world.clock().now() >= until);
    let host = world.wait_until("server-01", "a second hold", |host| hold(host).is_some_and(|(n, _)| n == 2)).await;
    let (_, second) = hold(&host).unwrap();
    assert!(second.duration_since(until) >= jiff::SignedDuration::from_mins(10), "it grows: {until} {second}");

    world.create_secret("bmc", "admin", "password").await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host) && hold(&host).is_none(), "{host:?}");
    assert_eq!(logins(&bmc), 3);
    assert_eq!(world.events("server-01").await.iter().filter(|reason| *reason == "AuthenticationFailed").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_password_that_was_put_right_on_the_bmc_is_found_out_when_the_hold_is_over() {
    let world = World::in_process().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "agreed").await;
    world.create_host("server-01", json!({})).await;
    world.wait_for_fault("server-01", "AuthenticationFailed").await;
    bmc.set_credentials(Credentials::new("admin", "agreed"));
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
    assert_eq!(logins(&bmc), 2);
}

#[tokio::test(start_paused = true)]
async fn hosts_behind_one_bmc_try_a_wrong_password_once_for_all() {
    let world = World::in_process().await;
    let mut plan = spec("chassis").timing(sim::Timing::INSTANT);
    plan.hardware = (0..2).map(|index| sim::Hardware::invent(&plan.personality, 78, index)).collect();
    let bmc = world.add_bmc("chassis", sim::Bmc::new(plan));
    world.create_secret("bmc", "admin", "guessed").await;
    for (name, system) in [("left", "1"), ("right", "2")] {
        let connection = json!({ "address": "https://chassis", "systemID": system });
        world.create_host(name, json!({ "redfishConnection": connection })).await;
    }
    for count in [1, 2] {
        for name in ["left", "right"] {
            let held = |host: &PhysicalHost| hold(host).is_some_and(|(times, _)| times == count);
            world.wait_until(name, "the next hold", held).await;
        }
        assert_eq!(logins(&bmc), count);
    }
    world.create_secret("bmc", "admin", "password").await;
    for name in ["left", "right"] {
        world.wait_for_state(name, "Available").await;
    }
    assert_eq!((logins(&bmc), bmc.sessions_open()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_label_on_the_secret_is_no_new_password() {
    let world = World::in_process().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "guessed").await;
    world.create_host("server-01", json!({})).await;
    world.wait_for_fault("server-01", "AuthenticationFailed").await;
    let secrets: Api<Secret> = Api::namespaced(world.admin(), &world.namespace);
    let label = Patch::Merge(json!({ "metadata": { "labels": { "seen-by": "backup" } } }));
    secrets.patch("bmc", &PatchParams::default(), &label).await.unwrap();
    // One watch shows all Secrets in order: who sees this one has seen the label.
    world.add_bmc("server-02", instant_bmc("server-02"));
    world.create_host("server-02", json!({ "redfishConnection": { "credentialsSecretRef": "later" } })).await;
    world.wait_for_fault("server-02", "SecretNotFound").await;
    world.create_secret("later", "admin", "password").await;
    world.wait_for_state("server-02", "Available").await;
    assert_eq!(logins(&bmc), 1);
    world.create_secret("bmc", "admin", "password").await;
    world.wait_for_state("server-01", "Available").await;
    assert_eq!(logins(&bmc), 2);
}

#[tokio::test(start_paused = true)]
async fn a_password_that_is_read_before_the_watch_shows_it_is_tried_once() {
    let world = World::quiet_in_process().await;
    let gate = Gate::default();
    let operator = world.launch(&gate, world.clock(), |_| {});
    world.create_secret("shown", "admin", "password").await;
    world.add_bmc("server-02", instant_bmc("server-02"));
    world.create_host("server-02", json!({ "redfishConnection": { "credentialsSecretRef": "shown" } })).await;
    world.wait_for_state("server-02", "Available").await;

    gate.veil(Some("secrets"));
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "guessed").await;
    world.create_host("server-01", json!({})).await;
    world.wait_for_fault("server-01", "AuthenticationFailed").await;
    gate.veil(None);
    // One watch shows all Secrets in order: who sees this one has seen the other.
    world.add_bmc("server-03", instant_bmc("server-03"));
    world.create_host("server-03", json!({ "redfishConnection": { "credentialsSecretRef": "later" } })).await;
    world.wait_for_fault("server-03", "SecretNotFound").await;
    world.create_secret("later", "admin", "password").await;
    world.wait_for_state("server-03", "Available").await;
    assert_eq!(logins(&bmc), 1);
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_password_that_must_be_changed_first_is_told_and_not_tried_again() {
    let world = World::in_process().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    let body = json!({ "error": { "code": "Base.1.8.GeneralError", "message": "See ExtendedInfo.", "@Message.ExtendedInfo": [{
        "MessageId": "Base.1.8.PasswordChangeRequired",
        "Message": "The password provided for this account must be changed before access is granted.",
    }] } });
    let wants = Effect::Status { code: 403, body: FaultBody::Json(body.to_string()) }.always();
    bmc.faults().add(wants.kind(Kind::Sessions).method(Verb::Post));
    world.create_secret("bmc", "admin", "password").await;
    world.create_host("server-01", json!({})).await;
    let host = world.wait_for_fault("server-01", "PasswordChangeRequired").await;
    assert_told(&host, "PasswordChangeRequired", &["https://server-01", "set a new password and update the Secret"]);
    assert_eq!((logins(&bmc), hold(&host).map(|(count, _)| count)), (1, Some(1)));
    bmc.faults().clear();
    bmc.set_credentials(Credentials::new("admin", "changed"));
    world.create_secret("bmc", "admin", "changed").await;
    world.wait_for_state("server-01", "Available").await;
}

#[tokio::test(start_paused = true)]
async fn a_new_password_for_a_provisioned_host_is_taken_up_in_silence() {
    let world = World::in_process().await;
    let bmc = provisioned(&world, "server-01").await;
    let (resets, writes) = (bmc.first().resets, world.writes());
    let before = world.host("server-01").await;
    bmc.set_credentials(Credentials::new("admin", "rotated"));
    world.create_secret("bmc", "admin", "rotated").await;
    wait_for("a login with the new password", EVER, async || (logins(&bmc) == 2).then_some(())).await;
    wait_for("the old session to be closed", EVER, async || (bmc.sessions_open() == 1).then_some(())).await;
    // It works: an order from the user is carried out.
    world.annotate("server-01", "beskar7.io/inspect", Some("again")).await;
    world.wait_for_event_of("server-01", "Inspected").await;
    let after = world.host("server-01").await;
    assert_eq!(condition_times(&before), condition_times(&after), "no condition has changed");
    assert_eq!((state_of(&after).as_str(), bmc.first().resets), ("Provisioned", resets));
    assert!(world.writes() <= writes + 3, "only for the inventory");
    world.stop_operator().await;
    let mut events = world.events("server-01").await;
    events.sort();
    assert_eq!(events, ["Available", "Claimed", "Inspected", "PowerOn", "Provisioned", "Provisioning"]);
}

/// Whatever happens to the BMC of a running server, the server runs on. All at once, as on a bad day.
#[tokio::test(start_paused = true)]
async fn an_outage_of_the_bmc_changes_conditions_and_nothing_else() {
    let world = World::in_process().await;
    let always = |effect: Effect| vec![effect.always()];
    let status = |code: u16, body: FaultBody| Effect::Status { code, body }.always();
    let outages: [(&str, Vec<Fault>, &[&str], &str); 7] = [
        ("busy", vec![status(503, FaultBody::Redfish)], &["Busy"], "answered with 503"),
        ("proxy", vec![status(502, FaultBody::Html)], &["Busy"], "it answered HTML"),
        ("drops", always(Effect::Drop), &["Unreachable"], "connection reset"),
        ("refuses", always(Effect::Refuse), &["Unreachable"], "connection refused"),
        // Two requests of a minute each are what a look has time for.
        ("hangs", vec![Effect::Hang.always().times(2)], &["Unreachable"], "no answer within 60 s"),
        ("full", always(Effect::SessionLimit(0)), &["SessionLimit"], "no free session"),
        ("locked", always(Effect::Unauthorized), &["AuthenticationFailed", "BadAnswer"], "https://locked"),
    ];
    join_all(outages.iter().map(|(name, ..)| provisioned(&world, name))).await;
    world.stop_operator().await;
    world.start_operator();
    join_all(outages.map(async |(name, faults, reasons, words)| {
        let bmc = world.bmc(name);
        wait_for("a look by the new operator", EVER, async || (bmc.sessions_open() == 1).then_some(())).await;
        let (before, journal) = (bmc.first(), bmc.journal().len());
        let seen = world.host(name).await;
        assert!(is_well(&seen), "{:?}", seen.status);
        bmc.reset_counters();
        for fault in faults {
            bmc.faults().add(fault);
        }
        if name == "full" {
            bmc.drop_sessions();
        }
        let lost = |host: &PhysicalHost| fault_of(host).is_some_and(|reason| reasons.contains(&reason.as_str()));
        let host = world.wait_until(name, "an outage", lost).await;
        assert_told(&host, &fault_of(&host).unwrap(), &[words]);
        assert_eq!(condition(&host, "RedfishConnectionReady").0, "False");
        assert_eq!((state_of(&host).as_str(), condition(&host, "HostProvisioned").0.as_str()), ("Provisioned", "True"));
        assert_eq!(host.status.as_ref().and_then(|status| status.observed_power_state.as_deref()), Some("On"));
        assert!(bmc.counters().total() <= 20, "{name}: {:?}", bmc.counters());

        bmc.faults().clear();
        let host = world.wait_until(name, "recovery", is_well).await;
        assert_eq!(state_of(&host), "Provisioned");
        let after = bmc.first();
        assert_eq!((after.resets, after.boots, after.power()), (before.resets, before.boots, PowerState::On), "{name}");
        assert_eq!(bmc.journal().len(), journal, "{name}: {:?}", bmc.journal());
        world.wait_for_event_of(name, "Recovered").await;
    }))
    .await;
    let writes = world.writes();
    assert!(writes <= 7 * 40, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn bmcs_that_hang_do_not_keep_the_others_waiting() {
    let world = World::quiet_in_process().await;
    world.start_operator_with(world.clock(), |config| config.bmcs_at_once = 2);
    world.create_secret("bmc", "admin", "password").await;
    let names = ["dead-01", "dead-02", "dead-03", "dead-04"];
    for name in names {
        let bmc = world.add_bmc(name, instant_bmc(name));
        bmc.faults().add(Effect::Hang.always());
        world.create_host(name, json!({})).await;
    }
    let busy = || names.iter().filter(|name| world.bmc(name).counters().total() > 0).count();
    wait_for("all turns to be taken", EVER, async || (busy() >= 2).then_some(())).await;
    let bmc = world.available_host("alive").await;
    world.patch_spec("alive", claim("me", ISO)).await;
    world.wait_for_state("alive", "Provisioned").await;
    assert_eq!(bmc.first().boots, 1);
    // Nor do they keep the operator from stopping.
    let asked = tokio::time::Instant::now();
    world.stop_operator().await;
    assert!(asked.elapsed() < Duration::from_secs(15), "{:?}", asked.elapsed());
    assert_eq!(bmc.sessions_open(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_redfish_is_told_and_registered_once_it_is() {
    let world = World::in_process().await;
    world.create_secret("bmc", "admin", "password").await;
    let page = |code: u16| Effect::Status { code, body: FaultBody::Html }.always();
    let json = |text: &str| Effect::Status { code: 200, body: FaultBody::Json(text.into()) }.always();
    let cases = [
        ("page", page(200), "HTML"),
        ("missing", page(404), "404"),
        ("other-api", json("{\"hello\": \"world\"}"), "https://other-api"),
        ("garbage", json("{\"RedfishVersion\": "), "not JSON"),
    ];
    join_all(cases.map(async |(name, fault, words)| {
        let bmc = world.add_bmc(name, instant_bmc(name));
        bmc.faults().add(fault);
        world.create_host(name, json!({})).await;
        let host = world.wait_for_fault(name, "NotRedfish").await;
        assert_told(&host, "NotRedfish", &["does not speak Redfish", words]);
        assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), "NotRedfish".into()));
        assert_eq!(logins(&bmc), 0, "a password is not sent to whatever that is");
        assert!(bmc.counters().total() <= 4, "{name}: {:?}", bmc.counters());
        bmc.faults().clear();
        let host = world.wait_for_state(name, "Available").await;
        assert!(is_well(&host), "{:?}", host.status);
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_stops_leaves_no_session_behind() {
    let world = World::in_process().await;
    let names = ["server-01", "server-02", "server-03"];
    let bmcs = join_all(names.map(|name| world.available_host(name))).await;
    // One that is logged in but still taking its inventory.
    let slow = instant_bmc("slow");
    world.add_bmc("slow", slow.clone());
    slow.faults().add(Effect::Latency(Duration::from_secs(2)).always().kind(Kind::Systems));
    world.create_host("slow", json!({})).await;
    wait_for("the slow one to be logged in", EVER, async || (slow.sessions_open() == 1).then_some(())).await;
    assert!(bmcs.iter().all(|bmc| bmc.sessions_open() == 1), "one each");
    world.stop_operator().await;
    let open: Vec<_> = bmcs.iter().chain([&slow]).map(sim::Bmc::sessions_open).collect();
    assert_eq!(open, [0, 0, 0, 0]);
}

/// Adds a BMC and a host of that name, and has it provisioned.
async fn provisioned(world: &World, name: &str) -> sim::Bmc {
    let bmc = world.available_host(name).await;
    world.patch_spec(name, claim("me", ISO)).await;
    world.wait_for_state(name, "Provisioned").await;
    bmc
}

fn condition_times(host: &PhysicalHost) -> Vec<(String, String, String)> {
    let conditions = host.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default();
    conditions.into_iter().map(|c| (c.type_, c.status, c.last_transition_time.0.to_string())).collect()
}
