//! The way of a host, as its user sees it.

use serde_json::json;
use sim::{BootSource, PowerState};

use crate::world::{World, claim, condition, spec, state_of};

const ISO: &str = "http://images.test/os.iso";

#[tokio::test]
async fn a_host_is_registered_and_shows_what_it_is_made_of() {
    let world = World::new("register").await;
    let bmc = world.available_host("server-01").await;
    let host = world.host("server-01").await;
    let status = host.status.clone().unwrap();
    let hardware = status.hardware_details.clone().unwrap().unpack();
    assert_eq!(status.ready, Some(true));
    assert_eq!(status.observed_power_state.as_deref(), Some("Off"));
    assert_eq!(status.health.as_deref(), Some("OK"));
    assert_eq!(
        hardware.uuid.as_deref().map(str::to_lowercase),
        Some(spec("server-01").hardware[0].uuid.to_lowercase())
    );
    assert!(
        !hardware.processors.is_empty() && !hardware.drives.is_empty() && !hardware.nics.is_empty(),
        "{hardware:?}"
    );
    for type_ in ["Ready", "RedfishConnectionReady", "HostInspected", "HostAvailable", "HardwareHealthy"] {
        assert_eq!(condition(&host, type_).0, "True", "{type_}");
    }
    assert_eq!(condition(&host, "HostProvisioned"), ("False".into(), "NotClaimed".into()));
    assert!(world.writes().await <= 4, "apply to Available takes at most 4 writes");
    assert_eq!(bmc.first().power(), PowerState::Off, "nobody asked for a change of power");
}

#[tokio::test]
async fn an_order_is_booted_and_a_release_leaves_the_server_tidy() {
    let world = World::new("deploy").await;
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    let host = world.wait_for_state("server-01", "Provisioned").await;
    assert_eq!(condition(&host, "HostProvisioned").0, "True");
    let server = bmc.first();
    assert_eq!(server.power(), PowerState::On);
    assert_eq!(server.booted.as_ref().map(|booted| booted.from.clone()), Some(BootSource::Cd(ISO.into())));

    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.wait_for_state("server-01", "Available").await;
    let server = bmc.first();
    assert_eq!(server.power(), PowerState::Off);
    assert_eq!(server.media(), None);
}

#[tokio::test]
async fn deleting_a_provisioned_host_waits_for_its_consumer_and_then_tidies_up() {
    let world = World::new("delete").await;
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    world.wait_for_state("server-01", "Provisioned").await;
    world.hosts().delete("server-01", &kube::api::DeleteParams::default()).await.unwrap();
    let host = world
        .wait_until("server-01", "wait for the consumer", |host| {
            host.status
                .as_ref()
                .and_then(|status| status.waiting.as_ref())
                .is_some_and(|w| w.reason == "WaitingForConsumerRelease")
        })
        .await;
    assert_eq!(state_of(&host), "Deleting");
    assert_eq!(bmc.first().power(), PowerState::On);
    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.wait_gone("server-01").await;
    let server = bmc.first();
    assert_eq!((server.power(), server.media()), (PowerState::Off, None));
    testkit::wait_for("the session to be closed", crate::world::SOON, async || {
        (bmc.sessions_open() == 0).then_some(())
    })
    .await;
}
