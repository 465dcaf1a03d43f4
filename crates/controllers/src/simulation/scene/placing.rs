//! Which host a machine gets, and what happens when that host is none for it.

use std::time::Duration;

use serde_json::json;
use sim::{PowerState, ResetType};

use super::{NAMESPACE, Scene, condition};

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
    let bmc = scene.servers.bmc(name);
    let id = bmc.first().id.clone();
    bmc.by_hand(&id, ResetType::On);
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
    assert_eq!(scene.servers.bmc("server-0").first().power(), PowerState::On, "nobody cut its power");
    assert_eq!(consumer(&scene, "server-0"), "");

    scene.edit_host("server-0", json!({"spec": {"online": false}})).await;
    scene.until("off", |scene| scene.servers.bmc("server-0").first().power() == PowerState::Off).await;
    scene.until("the first is taken, too", |scene| consumer(scene, "server-0") == "node-1").await;
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
