//! Deployment slots: only hosts that something happens for have one.

use serde_json::{Value, json};
use sim::Effect;

use super::{NAMESPACE, Scene, condition};

fn claim(by: &str) -> Value {
    json!({"spec": {"consumerRef": {"namespace": NAMESPACE, "name": by}, "bootIsoSource": "https://192.0.2.1/os.iso"}})
}

async fn with_one_slot(names: &[&str]) -> Scene {
    let mut scene = Scene::open(names).await;
    scene.start(|config| config.brake.concurrent_deployments = 1);
    for name in names {
        scene.until_state(name, "Available").await;
    }
    scene
}

#[tokio::test(start_paused = true)]
async fn a_host_in_fault_gives_its_deployment_slot_back_and_asks_again_when_it_goes_on() {
    let scene = with_one_slot(&["server-0", "server-1"]).await;
    let refuses = Effect::RefusesMedia("no licence".to_owned()).always();
    scene.servers.bmc("server-0").faults().add(refuses);
    scene.edit_host("server-0", claim("a")).await;
    scene.until("a fault", |scene| scene.host("server-0")["status"]["fault"].is_object()).await;
    scene.edit_host("server-1", claim("b")).await;
    let took = scene.until_state("server-1", "Provisioned").await;
    assert!(took.as_secs() < 420, "{took:?}");
    assert!(scene.host("server-0")["status"]["fault"].is_object(), "still in fault");

    scene.servers.bmc("server-0").faults().clear();
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    scene.until_state("server-0", "Provisioned").await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_host_gives_its_deployment_slot_back_and_asks_again_when_it_goes_on() {
    let scene = with_one_slot(&["server-0", "server-1"]).await;
    let slow = Effect::SlowPower(std::time::Duration::from_secs(30)).always();
    scene.servers.bmc("server-0").faults().add(slow);
    scene.edit_host("server-0", claim("a")).await;
    scene.until("claimed", |scene| scene.host("server-0")["status"]["state"] == "Claimed").await;
    let pause = |value: Value| json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
    scene.edit_host("server-0", pause(json!(""))).await;
    scene.until("paused", |scene| condition(&scene.host("server-0"), "Paused")["status"] == "True").await;
    scene.edit_host("server-1", claim("b")).await;
    scene.until_state("server-1", "Provisioned").await;
    assert_eq!(scene.host("server-0")["status"]["state"], "Claimed");

    scene.edit_host("server-0", pause(Value::Null)).await;
    scene.until_state("server-0", "Provisioned").await;
}

#[tokio::test(start_paused = true)]
async fn the_next_in_the_queue_names_who_has_the_slots() {
    let scene = with_one_slot(&["server-0", "server-1"]).await;
    scene.servers.bmc("server-0").set_latency(std::time::Duration::from_secs(4));
    scene.edit_host("server-0", claim("a")).await;
    scene.until("claimed", |scene| scene.host("server-0")["status"]["state"] == "Claimed").await;
    scene.edit_host("server-1", claim("b")).await;
    scene.until("waits", |scene| scene.host("server-1")["status"]["waiting"]["reason"] == "FleetBrake").await;
    let told = scene.host("server-1")["status"]["waiting"]["message"].to_string();
    assert!(told.contains("next in queue; 1 of 1 deployment slots used: lab/server-0"), "{told}");
    scene.until_state("server-1", "Provisioned").await;
}
