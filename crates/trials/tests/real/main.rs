//! The operator against Redfish services that we did not write, a virtual machine that really boots, and the real
//! controllers of Cluster API.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{FakeSystem, Sushy, VmLab, WebServer, build_iso, wait_for};
use trials::world::{Hurry, World, claim};

mod clusters;
mod ironcore;
mod metal3;
mod netboot;
mod probe;
mod remote;
mod site;

/// The emulator takes up to eleven seconds for a change of power, and a release is two of them. It tells nothing of a boot, so
/// a server gets five minutes of the engine's time.
const PATIENCE: Duration = Duration::from_mins(5);

/// A namespace in which the operator runs, faster than the world; not so fast that it loses patience with the emulator.
async fn hurried_world(prefix: &str) -> World {
    let world = World::quiet(prefix).await;
    world.start_operator_with(Hurry::by(4), |_| {});
    world
}

async fn register(world: &World, name: &str, sushy: &Sushy, system: &str, spec: Value) {
    world.create_secret("bmc", Sushy::USER, Sushy::PASSWORD).await;
    world
        .create_host(
            name,
            json!({ "redfishConnection": {
                "address": sushy.url(),
                "systemID": system,
                "certificateFingerprint": sushy.fingerprint(),
            } }),
        )
        .await;
    world.patch_spec(name, spec).await;
    world.wait_within(PATIENCE, name, "state Available", |host| trials::world::state_of(host) == "Available").await;
}

fn power_of(host: &api::beskar7::PhysicalHost) -> Option<&str> {
    host.status.as_ref()?.observed_power_state.as_deref()
}

#[tokio::test]
async fn sushy_over_tls_is_registered_powered_and_fed_with_an_iso() {
    let world = hurried_world("sushy").await;
    let system = FakeSystem::numbered(1);
    let sushy = Sushy::fake(&[system.clone(), FakeSystem::numbered(2)]).await;
    let depot = WebServer::start();
    let image = depot.put("os.iso", "not much of an image, and it need not be");

    register(&world, "server-01", &sushy, &system.uuid, json!({})).await;
    let host = world.host("server-01").await;
    let hardware = host.status.clone().unwrap().hardware_details.unwrap().unpack();
    assert_eq!(hardware.uuid.as_deref(), Some(system.uuid.as_str()));
    assert_eq!(
        hardware.nics.iter().filter_map(|nic| nic.mac_address.as_deref()).collect::<Vec<_>>(),
        [system.mac.as_str()]
    );
    assert_eq!(power_of(&host), Some("Off"));

    world.patch_spec("server-01", json!({ "online": true })).await;
    world.wait_within(PATIENCE, "server-01", "power On", |host| power_of(host) == Some("On")).await;
    world.patch_spec("server-01", json!({ "online": false })).await;
    world.wait_within(PATIENCE, "server-01", "power Off", |host| power_of(host) == Some("Off")).await;
    world.patch_spec("server-01", json!({ "online": null })).await;

    world.patch_spec("server-01", claim("me", &image)).await;
    world
        .wait_within(PATIENCE, "server-01", "state Provisioned", |host| trials::world::state_of(host) == "Provisioned")
        .await;
    assert!(depot.fetched().iter().any(|path| path.contains("os.iso")), "the emulator fetches what is inserted");

    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    let host = world
        .wait_within(PATIENCE, "server-01", "state Available", |host| trials::world::state_of(host) == "Available")
        .await;
    assert_eq!(power_of(&host), Some("Off"));
    world.delete_host("server-01").await;
    world.stop_operator().await;
}

#[tokio::test]
async fn a_virtual_machine_boots_the_ordered_iso_and_is_off_after_its_host_is_deleted() {
    let world = hurried_world("vm").await;
    let lab = VmLab::start().await;
    let depot = WebServer::start();
    let marker = format!("marker-{}", world.namespace);
    let image = depot.put("boot.iso", build_iso(&marker, Some(&depot.guest_url("home"))));

    register(&world, "server-01", lab.bmc(), VmLab::SYSTEM, json!({})).await;
    let hardware = world.host("server-01").await.status.unwrap().hardware_details.unwrap().unpack();
    assert!(hardware.nics.iter().any(|nic| nic.mac_address.as_deref() == Some(VmLab::MAC)), "{hardware:?}");
    assert_eq!(lab.state().await, "shut off", "looking at a server does nothing to it");

    world.patch_spec("server-01", claim("me", &image)).await;
    let report = depot.wait_for_report("home", Duration::from_mins(2)).await;
    assert_eq!(report.body, marker);
    world
        .wait_within(PATIENCE, "server-01", "state Provisioned", |host| trials::world::state_of(host) == "Provisioned")
        .await;
    assert_eq!(lab.state().await, "running");

    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.delete_host("server-01").await;
    wait_for("the machine to be off", PATIENCE, async || (lab.state().await == "shut off").then_some(())).await;
    world.stop_operator().await;
}
