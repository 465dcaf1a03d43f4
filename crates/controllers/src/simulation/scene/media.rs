//! What users see of a BMC whose settings keep images out.

use serde_json::json;
use sim::{BootSource, Effect, Kind};

use super::{Scene, condition};

const ISO: &str = "https://192.0.2.1/os.iso";

/// A server whose BMC has remote media disabled, and somebody who claims it by hand.
async fn claimed_without_remote_media(offers_action: bool) -> Scene {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.servers.bmc("server-0").faults().add(Effect::RemoteMediaDisabled { offers_action }.always());
    scene.start(|_| {});
    scene.until_state("server-0", "Available").await;
    let consumer = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "lab", "name": "by-hand"});
    scene.edit_host("server-0", json!({"spec": {"consumerRef": consumer, "bootIsoSource": ISO}})).await;
    scene
}

#[tokio::test(start_paused = true)]
async fn disabled_remote_media_are_enabled_when_an_image_is_to_be_inserted() {
    let scene = claimed_without_remote_media(true).await;
    scene.until_state("server-0", "Provisioned").await;
    let bmc = scene.servers.bmc("server-0");
    let enabled = bmc.journal().iter().filter(|change| change.path.ends_with("AMIVirtualMedia.EnableRMedia")).count();
    assert_eq!(enabled, 1);
    assert_eq!(scene.servers.server("server-0").last_boot.map(|boot| boot.from), Some(BootSource::Cd(ISO.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn disabled_remote_media_that_only_a_person_can_enable_are_told_about_and_nothing_is_done() {
    let scene = claimed_without_remote_media(false).await;
    let is_refused = |scene: &Scene| scene.host("server-0")["status"]["fault"]["reason"] == "NoVirtualMedia";
    scene.until("refused", is_refused).await;
    let host = scene.host("server-0");
    let told = condition(&host, "Ready")["message"].as_str().unwrap_or_default().to_owned();
    assert!(told.contains("disabled in the settings of the BMC (RMediaStatus)"), "{told}");
    assert!(told.contains("Enable them there") && !told.contains("licence"), "{told}");
    let changes = scene.servers.bmc("server-0").journal();
    assert!(changes.iter().all(|change| change.kind == Kind::Sessions), "{changes:?}");

    // Somebody enables them in the settings.
    scene.servers.bmc("server-0").faults().clear();
    scene.until_state("server-0", "Provisioned").await;
}
