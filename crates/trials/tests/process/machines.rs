//! Machines without Cluster API: a manifest, a server, and back.

use std::time::Duration;

use api::beskar7::{Beskar7Machine, PhysicalHost};
use kube::ResourceExt as _;
use serde_json::json;
use sim::{BootSource, Effect, PowerState};
use trials::gate::Passage;
use trials::machines::{iso, told};
use trials::world::{World, state_of};

/// Time enough for everything that goes on, and less than anything at rest takes.
const SETTLED: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn a_machine_gets_its_server_with_ten_writes() {
    let world = World::alone_in_process().await;
    world.available_host("server-01").await;
    tokio::time::sleep(SETTLED).await;
    let before = world.writes();
    world.create_machine("node-01", iso()).await;
    world.wait_for_ready("node-01").await;
    tokio::time::sleep(SETTLED).await;
    let writes = world.all_writes().split_off(before);
    assert!(writes.iter().all(Passage::is_accepted), "{writes:#?}");
    assert!(writes.len() <= 10, "{} writes, Events not counted: {writes:#?}", writes.len());
}

#[tokio::test(start_paused = true)]
async fn a_recreated_namesake_gets_a_clean_server_of_its_own() {
    let world = World::alone_in_process().await;
    let bmc = world.available_host("server-01").await;
    world.create_machine("node", iso()).await;
    let first = world.wait_for_ready("node").await;
    world.delete_machine("node").await;
    world.wait_for_no_machine("node").await;
    world.create_machine("node", iso()).await;
    let second = world.wait_for_ready("node").await;
    assert_ne!(first.annotations()["beskar7.io/claim-id"], second.annotations()["beskar7.io/claim-id"]);
    assert_eq!(bmc.first().boots, 2);
}

#[tokio::test(start_paused = true)]
async fn a_dead_bmc_keeps_a_deleted_machine_until_somebody_forces_it_and_the_host_is_kept_from_others() {
    let world = World::alone_in_process().await;
    let bmc = world.available_host("server-01").await;
    world.create_machine("node", iso()).await;
    world.wait_for_ready("node").await;
    bmc.faults().add(Effect::Refuse.always());
    world.delete_machine("node").await;
    let failed = |machine: &Beskar7Machine| told(machine, "InfrastructureReady").1 == "ReleasePhysicalHostFailed";
    let machine = world.wait_for_machine("node", "told", failed).await;
    assert!(told(&machine, "InfrastructureReady").2.contains("beskar7.io/force-release=true"), "{machine:?}");

    world.annotate_machine("node", "beskar7.io/force-release", "true").await;
    world.wait_for_no_machine("node").await;
    let host = world.host("server-01").await;
    assert!(host.annotations()["beskar7.io/quarantine"].contains("by force"), "{:?}", host.annotations());

    bmc.faults().clear();
    world.stop_operator().await;
    world.start_alone();
    let parked = |host: &PhysicalHost| state_of(host) == "Quarantined";
    world.wait_until("server-01", "quarantine after the clean-up", parked).await;
    assert_eq!(bmc.first().power(), PowerState::Off, "it was cleaned up when that became possible");
    world.create_machine("next", iso()).await;
    let waits = |machine: &Beskar7Machine| told(machine, "PhysicalHostAssociated").2.contains("Quarantined");
    world.wait_for_machine("next", "to be told", waits).await;
    world.annotate("server-01", "beskar7.io/quarantine", None).await;
    world.wait_for_ready("next").await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_by_pxe_takes_any_server_and_tells_the_site_what_it_is_to_run() {
    let world = World::alone_in_process().await;
    let bmc = world.available_host("server-01").await;
    for (name, mode) in [("node-pxe", "PXE"), ("node-ipxe", "iPXE")] {
        let (image, config) = ("http://images.test/boot.ipxe", "http://images.test/node.yaml");
        let spec = json!({ "imageURL": image, "configURL": config, "provisioningMode": mode });
        world.create_machine(name, spec).await;
        world.wait_for_ready(name).await;
        let host = world.host("server-01").await;
        let ordered = host.spec.network_boot.unwrap();
        assert_eq!((ordered.image_url.as_deref(), ordered.config_url.as_deref()), (Some(image), Some(config)));
        assert_eq!((host.spec.boot_iso_source, bmc.first().media()), (None, None));
        assert_eq!(bmc.first().last_boot.map(|boot| boot.from), Some(BootSource::Pxe));
        world.delete_machine(name).await;
        world.wait_for_no_machine(name).await;
        let host = world.host("server-01").await;
        assert_eq!((host.spec.network_boot, bmc.first().power()), (None, PowerState::Off));
    }
}
