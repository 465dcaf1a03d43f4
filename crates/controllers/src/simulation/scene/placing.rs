//! Which host a machine gets, and what happens when that host is none for it.

use std::time::Duration;

use serde_json::json;
use sim::{BootSource, Effect, PowerState, ResetType};

use super::{NAMESPACE, Scene, condition};
use crate::simulation::whole::wire::Outage;

const ISO: &str = "https://192.0.2.1/os.iso";

/// Two servers, of which the first runs although nobody asked for it.
async fn with_a_running_server() -> Scene {
    let mut scene = Scene::open(&["server-0", "server-1"]).await;
    switch_on(&scene, "server-0");
    tokio::time::sleep(Duration::from_mins(2)).await;
    scene.start(|_| {});
    scene.until_state("server-0", "Available").await;
    scene.until_state("server-1", "Available").await;
    scene
}

fn switch_on(scene: &Scene, name: &str) {
    scene.servers.press(name, ResetType::On);
}

fn consumer(scene: &Scene, host: &str) -> String {
    scene.host(host)["spec"]["consumerRef"]["name"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_runs_although_nobody_asked_is_not_taken_by_a_machine() {
    let scene = with_a_running_server().await;
    let told = condition(&scene.host("server-0"), "HostAvailable")["message"].to_string();
    assert!(told.contains("machines pass it over"), "{told}");
    scene.create_machine("node-0", json!({"imageURL": ISO})).await;
    scene.create_machine("node-1", json!({"imageURL": ISO})).await;
    scene.until("the other is taken", |scene| scene.machine("node-0")["status"]["ready"] == true).await;
    assert_eq!(consumer(&scene, "server-1"), "node-0");
    let told = scene.until_told("node-1", "Ready", "WaitingForPhysicalHost").await;
    assert!(told.contains("1 is running although nobody asked for it"), "{told}");
    assert!(told.contains("server-0 (running: set spec.online: false, or spec.claimableWhileRunning: true"), "{told}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::On, "nobody cut its power");
    assert_eq!(consumer(&scene, "server-0"), "");

    scene.edit_host("server-0", json!({"spec": {"online": false}})).await;
    scene.until("off", |scene| scene.servers.server("server-0").power() == PowerState::Off).await;
    scene.until("the first is taken, too", |scene| consumer(scene, "server-0") == "node-1").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_switched_on_after_the_last_look_refuses_a_machine_which_takes_another() {
    let scene = with_servers(&["server-0", "server-1"]).await;
    switch_on(&scene, "server-0");
    assert_eq!(scene.host("server-0")["status"]["observedPowerState"], "Off", "as of the last look");
    scene.create_machine("node-0", json!({"imageURL": ISO})).await;
    let took = scene.until("node-0 is ready", |scene| scene.machine("node-0")["status"]["ready"] == true).await;
    assert!(took < Duration::from_mins(9), "{took:?}");
    assert_eq!((consumer(&scene, "server-0"), consumer(&scene, "server-1")), (String::new(), "node-0".to_owned()));
    let timeline = scene.host("server-0")["status"]["timeline"].to_string();
    assert!(timeline.contains("The server runs although nobody asked for it"), "{timeline}");
    let server = scene.servers.server("server-0");
    assert_eq!((server.power(), server.boots), (PowerState::On, 1), "nobody cut its power");

    // Once its owner has it switched off, the next machine takes it within minutes.
    scene.create_machine("node-1", json!({"imageURL": ISO})).await;
    scene.until_told("node-1", "Ready", "WaitingForPhysicalHost").await;
    scene.edit_host("server-0", json!({"spec": {"online": false}})).await;
    let took = scene.until("it is taken", |scene| consumer(scene, "server-0") == "node-1").await;
    assert!(took < Duration::from_mins(5), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_running_server_is_taken_where_that_is_allowed_and_by_a_claim_that_names_it() {
    let scene = with_a_running_server().await;
    scene.edit_host("server-0", json!({"spec": {"claimableWhileRunning": true}})).await;
    switch_on(&scene, "server-1");
    let is_on = |scene: &Scene| scene.host("server-1")["status"]["observedPowerState"] == "On";
    scene.until("the second is seen running", is_on).await;
    scene.create_machine("node-0", json!({"imageURL": ISO})).await;
    scene.until("node-0 is ready", |scene| scene.machine("node-0")["status"]["ready"] == true).await;
    assert_eq!(consumer(&scene, "server-0"), "node-0");

    let claim = json!({"consumerRef": {"namespace": NAMESPACE, "name": "me"}, "bootIsoSource": ISO});
    scene.edit_host("server-1", json!({"spec": claim})).await;
    scene.until_state("server-1", "Provisioned").await;
}

async fn with_servers(names: &[&str]) -> Scene {
    let mut scene = Scene::open(names).await;
    scene.start(|_| {});
    for name in names {
        scene.until_state(name, "Available").await;
    }
    scene
}

fn refuses(scene: &Scene, name: &str) {
    scene.servers.bmc(name).faults().add(Effect::RefusesMedia("no licence".to_owned()).always());
}

#[tokio::test(start_paused = true)]
async fn a_machine_moves_on_from_a_host_that_refuses_its_image() {
    let scene = with_servers(&["server-0", "server-1"]).await;
    refuses(&scene, "server-0");
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    let took = scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    assert!(took < Duration::from_mins(9), "{took:?}");
    assert_eq!((consumer(&scene, "server-0"), consumer(&scene, "server-1")), (String::new(), "node".to_owned()));
    assert_eq!(scene.machine("node")["spec"]["providerID"], "b7://lab/server-1");
    assert!(scene.machine("node")["status"].get("refusedBy").is_none(), "of no interest any more");
    scene.until_state("server-0", "Available").await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_everybody_refused_lists_them_and_tries_again_later() {
    let scene = with_servers(&["server-0", "server-1"]).await;
    refuses(&scene, "server-0");
    refuses(&scene, "server-1");
    scene.create_machine("node", json!({"imageURL": "https://user:secret@192.0.2.1/os.iso"})).await;
    let all_refused = |scene: &Scene| {
        let machine = scene.machine("node");
        condition(&machine, "Ready")["reason"] == "WaitingForPhysicalHost"
            && machine["status"]["refusedBy"].as_array().is_some_and(|refused| refused.len() == 2)
    };
    scene.until("everybody refused", all_refused).await;
    let machine = scene.machine("node");
    let told = condition(&machine, "Ready")["message"].as_str().unwrap().to_owned();
    assert!(told.contains("2 have refused") && told.contains("Refused by server-0: MediaRefused: "), "{told}");
    assert!(told.contains("server-1: MediaRefused: ") && told.contains("no licence"), "{told}");
    let first = &machine["status"]["refusedBy"][0];
    assert_eq!((&first["host"], &first["count"]), (&json!("server-0"), &json!(1)));
    assert_eq!(first["image"], "https://192.0.2.1/os.iso", "without the password");

    // Nobody is asked again and again.
    let boots = scene.host("server-0")["metadata"]["resourceVersion"].clone();
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(scene.host("server-0")["metadata"]["resourceVersion"], boots);

    scene.servers.bmc("server-0").faults().clear();
    scene.servers.bmc("server-1").faults().clear();
    tokio::time::sleep(Duration::from_mins(10)).await;
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
}

#[tokio::test(start_paused = true)]
async fn a_corrected_image_is_tried_at_once_also_by_hosts_that_refused_the_former_one() {
    let scene = with_servers(&["server-0"]).await;
    refuses(&scene, "server-0");
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    let has_refused = |scene: &Scene| condition(&scene.machine("node"), "Ready")["reason"] == "WaitingForPhysicalHost";
    scene.until("refused", has_refused).await;
    scene.servers.bmc("server-0").faults().clear();
    let better = "https://192.0.2.1/better.iso";
    scene.edit_machine("node", json!({"spec": {"imageURL": better}})).await;
    let took = scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    assert!(took < Duration::from_mins(8), "{took:?}");
    assert_eq!(scene.host("server-0")["spec"]["bootIsoSource"], better);
}

#[tokio::test(start_paused = true)]
async fn a_corrected_image_reaches_a_host_that_was_not_started_and_no_other() {
    let scene = with_servers(&["server-0"]).await;
    let bmc = scene.servers.bmc("server-0");
    // Something else than the image keeps it from being started.
    bmc.faults().add(Effect::IgnoresBootOverride.always());
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    scene.until("inserted", |scene| scene.host("server-0")["status"]["fault"]["reason"] == "NotApplied").await;
    let told = condition(&scene.machine("node"), "Ready")["message"].to_string();
    assert!(told.contains("PhysicalHost server-0: ") && told.contains(" Next try at 2026-11-16T"), "{told}");
    bmc.faults().clear();
    let better = "https://192.0.2.1/better.iso";
    scene.edit_machine("node", json!({"spec": {"imageURL": better}})).await;
    let reached = |scene: &Scene| scene.host("server-0")["spec"]["bootIsoSource"] == better;
    let took = scene.until("the order is on the host", reached).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    assert_eq!(bmc.first().last_boot.map(|boot| boot.from), Some(BootSource::Cd(better.to_owned())));

    scene.edit_machine("node", json!({"spec": {"imageURL": "https://192.0.2.1/late.iso"}})).await;
    let is_told = |scene: &Scene| {
        let told = condition(&scene.machine("node"), "Ready")["message"].as_str().unwrap_or_default().to_owned();
        told.contains("was changed after its server had been started; that has no effect")
    };
    scene.until("told", is_told).await;
    assert_eq!(scene.host("server-0")["spec"]["bootIsoSource"], better);
    assert_eq!(condition(&scene.machine("node"), "Ready")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_machine_shows_what_its_host_waits_for_where_it_is_in_the_queue_and_until_when() {
    let mut scene = Scene::open(&["server-0", "server-1"]).await;
    scene.start(|config| config.brake.concurrent_deployments = 1);
    for name in ["server-0", "server-1"] {
        scene.until_state(name, "Available").await;
        scene.servers.bmc(name).faults().add(Effect::SlowPower(Duration::from_secs(100)).always());
    }
    scene.create_machine("node-0", json!({"imageURL": ISO})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.create_machine("node-1", json!({"imageURL": ISO})).await;
    // The queue may take any time.
    let tells = |node: &'static str, what: &'static str, has_deadline: bool| {
        move |scene: &Scene| {
            let told = condition(&scene.machine(node), "Ready")["message"].as_str().unwrap_or_default().to_owned();
            told.contains(what) && told.contains(" Deadline: 2026-11-") == has_deadline
        }
    };
    scene.until("a wait", tells("node-0", "PhysicalHost server-0: ", true)).await;
    let queue = "next in queue; 1 of 1 deployment slots used: lab/server-0";
    scene.until("the queue", tells("node-1", queue, false)).await;
    for node in ["node-0", "node-1"] {
        scene.until("ready", |scene| scene.machine(node)["status"]["ready"] == true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_vanished_while_nobody_watched_gets_no_host() {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.edit_host("server-0", json!({"spec": {"maintenance": {}}})).await;
    scene.start(|_| {});
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    scene.until_told("node", "Ready", "WaitingForPhysicalHost").await;
    scene.wire.fail_until(tokio::time::Instant::now() + Duration::from_secs(30), Outage::Blind);
    scene.wire.cut_watches();
    // By force: nobody is asked, and nobody sees it.
    scene.edit_machine("node", json!({"metadata": {"finalizers": null}})).await;
    scene.delete_machine("node").await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    scene.edit_host("server-0", json!({"spec": {"maintenance": null}})).await;
    scene.until_state("server-0", "Available").await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(consumer(&scene, "server-0"), "", "nobody claims for somebody who is gone");
}

#[tokio::test(start_paused = true)]
async fn a_claim_write_that_hangs_does_not_hold_up_the_placement_of_others() {
    let mut scene = Scene::open(&["server-0", "server-1", "server-2"]).await;
    scene.start(|_| {});
    for host in ["server-0", "server-1", "server-2"] {
        scene.until_state(host, "Available").await;
    }
    scene.wire.hold_up(Duration::from_secs(12));
    scene.create_machine("node-0", json!({"imageURL": ISO})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(consumer(&scene, "server-0"), "", "the claim is under way");
    for (machine, host) in [("node-1", "server-1"), ("node-2", "server-2")] {
        scene.create_machine(machine, json!({"imageURL": ISO})).await;
        let took = scene.until("the next one is placed", |scene| consumer(scene, host) == machine).await;
        assert!(took < Duration::from_secs(2), "{machine}: {took:?}");
    }
    // What is booked is told as held, not as missing.
    scene.create_machine("node-3", json!({"imageURL": ISO})).await;
    let told = scene.until_told("node-3", "Ready", "WaitingForPhysicalHost").await;
    assert!(told.contains("3 are claimed"), "{told}");
    scene.until("the first one is placed", |scene| consumer(scene, "server-0") == "node-0").await;
    scene.until("ready", |scene| scene.machine("node-0")["status"]["ready"] == true).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_write_that_is_not_answered_gets_its_machine_one_host_only() {
    let mut scene = Scene::open(&["server-0", "server-1"]).await;
    // The host that would be the better choice becomes available while the claim of the other is under way.
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::default_namespaced(scene.admin.clone());
    secrets.delete("server-0", &kube::api::DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.start(|_| {});
    scene.until_state("server-1", "Available").await;
    scene.wire.hold_up(Duration::from_secs(40));
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.add_secret("server-0").await;
    scene.until_state("server-0", "Available").await;
    assert_eq!(consumer(&scene, "server-1"), "", "the claim is under way");
    for _ in 0..1000 {
        assert_eq!(consumer(&scene, "server-0"), "", "the first claim may still arrive");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert_eq!(consumer(&scene, "server-1"), "node");
    scene.until("ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
}

#[tokio::test(start_paused = true)]
async fn many_claim_writes_that_hang_do_not_hold_up_the_placement_of_others() {
    let (machines, hosts): (Vec<_>, Vec<_>) =
        (0..12).map(|number| (format!("node-{number:02}"), format!("server-{number:02}"))).unzip();
    let names: Vec<_> = hosts.iter().map(String::as_str).collect();
    let mut scene = Scene::open(&names).await;
    scene.start(|_| {});
    for host in &names {
        scene.until_state(host, "Available").await;
    }
    for machine in &machines[..10] {
        scene.wire.hold_up(Duration::from_secs(14));
        scene.create_machine(machine, json!({"imageURL": ISO})).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    scene.create_machine(&machines[10], json!({"imageURL": ISO})).await;
    let is_placed = |scene: &Scene| names.iter().any(|host| consumer(scene, host) == machines[10]);
    let took = scene.until("placed", is_placed).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    scene.until("all", |scene| names.iter().filter(|host| !consumer(scene, host).is_empty()).count() == 11).await;
    let consumers: std::collections::BTreeSet<_> = names.iter().map(|host| consumer(&scene, host)).collect();
    assert_eq!(consumers.len(), 12, "eleven machines and nobody: {consumers:?}");
}
