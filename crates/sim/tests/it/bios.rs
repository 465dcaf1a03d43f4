use serde_json::json;
use sim::{Timing, personality};

use crate::client::Client;

async fn instant(personality: sim::Personality) -> Client {
    let client = Client::on(personality).await;
    client.bmc.set_timing(Timing::INSTANT);
    client
}

#[tokio::test(start_paused = true)]
async fn attributes_apply_at_the_next_boot() {
    let client = instant(personality::generic()).await;
    let (bios, settings) = ("/redfish/v1/Systems/1/Bios", "/redfish/v1/Systems/1/Bios/Settings");
    client.patch(settings, json!({ "Attributes": { "BootMode": "Bios" } })).await.worked();
    assert_eq!(client.read(settings).await["Attributes"], json!({ "BootMode": "Bios" }));
    assert_eq!(client.read(bios).await["Attributes"]["BootMode"], "Uefi");
    client.reset("ForceRestart").await.worked();
    assert_eq!(client.read(settings).await["Attributes"], json!({}));
    assert_eq!(client.read(bios).await["Attributes"]["BootMode"], "Bios");
}

#[tokio::test(start_paused = true)]
async fn idrac_keeps_attributes_pending_for_ever_without_an_apply_time() {
    let client = instant(personality::dell_idrac9()).await;
    let bios = format!("{}/Bios", client.system().await);
    let settings = format!("{bios}/Settings");
    let value = async || client.read(&bios).await["Attributes"]["BootMode"].take();
    let restart = async || {
        client.reset("ForceRestart").await.worked();
        crate::client::pass(10).await;
    };
    client.patch(&settings, json!({ "Attributes": { "BootMode": "Bios" } })).await.worked();
    restart().await;
    assert_eq!(value().await, "Uefi");
    let order = json!({ "Attributes": {}, "@Redfish.SettingsApplyTime": { "ApplyTime": "OnReset" } });
    let answer = client.patch(&settings, order.clone()).await;
    assert_eq!(answer.status, 202);
    let monitor = answer.header("location");
    assert!(monitor.contains("JID_"));
    assert_eq!(client.get(monitor).await.status, 202);
    client.patch(&settings, order).await.refused(400, "ResourceInUse");
    restart().await;
    assert_eq!(client.get(monitor).await.status, 200);
    assert_eq!(value().await, "Bios");
}

#[tokio::test(start_paused = true)]
async fn xcc_announces_an_apply_time_and_refuses_it() {
    let client = instant(personality::lenovo_xcc()).await;
    let bios = client.read("/redfish/v1/Systems/1/Bios").await;
    assert_eq!(bios["@Redfish.Settings"]["SupportedApplyTimes"][0], "OnReset");
    let settings = "/redfish/v1/Systems/1/Bios/Pending";
    let order = json!({ "Attributes": {}, "@Redfish.SettingsApplyTime": { "ApplyTime": "OnReset" } });
    client.patch(settings, order).await.refused(400, "PropertyUnknown");
}
