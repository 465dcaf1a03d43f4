use http::Method;
use serde_json::json;
use sim::{BootSource, Effect, ResetType, personality};

use crate::client::{Client, pass};

const ISO: &str = "http://images.example/os.iso";

#[tokio::test(start_paused = true)]
async fn a_medium_is_inserted_and_ejected() {
    let client = Client::of(personality::generic()).await;
    client.insert(ISO).await.worked();
    let drive = client.read(&client.cd().await).await;
    assert_eq!(
        (&drive["Image"], &drive["Inserted"], &drive["ConnectedVia"]),
        (&json!(ISO), &json!(true), &json!("URI"))
    );
    assert_eq!(drive["ImageName"], "os.iso");
    assert_eq!(client.bmc.first().media(), Some(ISO));
    client.insert("http://other/b.iso").await.refused(400, "ResourceInUse");
    client.eject().await.worked();
    let drive = client.read(&client.cd().await).await;
    assert_eq!((&drive["Image"], &drive["Inserted"]), (&json!(null), &json!(false)));
    client.eject().await.worked();
}

#[tokio::test(start_paused = true)]
async fn wrong_insertions_are_refused_with_a_reason() {
    let client = Client::of(personality::generic()).await;
    for (body, problem) in [
        (json!({}), "ActionParameterMissing"),
        (json!({ "Image": 7 }), "PropertyValueTypeError"),
        (json!({ "Image": "os.iso" }), "ActionParameterValueFormatError"),
        (json!({ "Image": "gopher://a/os.iso" }), "ActionParameterValueFormatError"),
        (json!({ "Image": ISO, "Colour": "red" }), "ActionParameterUnknown"),
    ] {
        client.insert_with(body).await.refused(400, problem);
    }
    assert_eq!(client.bmc.first().media(), None);
}

#[tokio::test(start_paused = true)]
async fn an_inserted_medium_can_be_left_disconnected() {
    let client = Client::of(personality::generic()).await;
    client.insert_with(json!({ "Image": ISO, "Inserted": false, "WriteProtected": false })).await.worked();
    let drive = client.read(&client.cd().await).await;
    assert_eq!((&drive["Image"], &drive["Inserted"]), (&json!(ISO), &json!(false)));
    assert_eq!(client.bmc.first().media(), None);
}

#[tokio::test(start_paused = true)]
async fn idrac_ejects_in_its_own_time() {
    let client = Client::of(personality::dell_idrac9()).await;
    client.insert(ISO).await.worked();
    client.eject().await.worked();
    assert_eq!(client.read(&client.cd().await).await["Inserted"], true);
    assert_eq!(client.bmc.first().media(), None);
    client.insert(ISO).await.refused(500, "VRM0012");
    pass(4).await;
    assert_eq!(client.read(&client.cd().await).await["Inserted"], false);
    client.eject().await.refused(500, "VRM0009");
    client.insert(ISO).await.worked();
}

#[tokio::test(start_paused = true)]
async fn ilo_has_media_at_the_manager_and_wants_a_body_to_eject() {
    let client = Client::of(personality::hpe_ilo5()).await;
    let drive = client.cd().await;
    assert_eq!(drive, "/redfish/v1/Managers/1/VirtualMedia/2/");
    assert_eq!(client.read(&drive).await["Image"], "");
    client.insert(ISO).await.worked();
    client.insert(ISO).await.refused(400, "MaxVirtualMediaConnectionEstablished");
    let target = format!("{drive}Actions/VirtualMedia.EjectMedia/");
    client.try_send(Method::POST, &target, &[], None).await.unwrap().refused(400, "MalformedJSON");
    client.eject().await.worked();
    client.eject().await.refused(400, "NoVirtualMediaConnectionAvailable");
}

#[tokio::test(start_paused = true)]
async fn xcc_has_no_actions_and_is_patched() {
    let client = Client::of(personality::lenovo_xcc()).await;
    let path = client.cd().await;
    let drive = client.get(&path).await;
    assert_eq!(drive.body.get("Actions"), None);
    assert!(drive.header("allow").contains("PATCH"));
    client.patch(&path, json!({ "Image": ISO })).await.refused(400, "PropertyMissing");
    let body = json!({ "Image": ISO, "Inserted": true, "WriteProtected": true });
    let etag = [("if-match", drive.header("etag"))];
    client.try_send(Method::PATCH, &path, &etag, Some(&body)).await.unwrap().worked();
    client.try_send(Method::PATCH, &path, &etag, Some(&body)).await.unwrap().refused(412, "PreconditionFailed");
    assert_eq!(client.bmc.first().media(), Some(ISO));
    client.patch(&path, json!({ "Image": null, "Inserted": false })).await.worked();
    assert_eq!(client.bmc.first().media(), None);
}

#[tokio::test(start_paused = true)]
async fn supermicro_refuses_parameters_and_queries_and_hides_eject() {
    let client = Client::of(personality::supermicro_x13()).await;
    assert!(client.cd().await.starts_with("/redfish/v1/Managers/1/VirtualMedia/"));
    client.insert_with(json!({ "Image": ISO, "Inserted": true })).await.refused(400, "ActionParameterUnknown");
    client.insert("http://a/os.iso?token=x").await.refused(400, "ActionParameterValueFormatError");
    client.eject().await.refused(404, "ResourceMissingAtURI");
    let answer = client.insert(ISO).await;
    assert_eq!(answer.status, 202);
    let task = &answer.body["Accepted"]["@Message.ExtendedInfo"][0]["MessageArgs"][0];
    assert_eq!(client.read(task.as_str().unwrap()).await["TaskState"], "Running");
    pass(3).await;
    let drive = client.read(&client.cd().await).await;
    assert!(drive["Actions"]["#VirtualMedia.EjectMedia"].is_object());
    client.eject().await.worked();
    pass(3).await;
    let drive = client.read(&client.cd().await).await;
    assert_eq!((&drive["Inserted"], &drive["ImageName"]), (&json!(false), &json!("os.iso")));
    assert!(drive["Actions"]["#VirtualMedia.EjectMedia"].is_null());
}

#[tokio::test(start_paused = true)]
async fn openbmc_wants_https_and_its_monitor_answers_once() {
    let client = Client::of(personality::openbmc()).await;
    client.insert(ISO).await.refused(400, "ActionParameterValueFormatError");
    let body = json!({ "Image": "https://a/os.iso", "Inserted": false });
    client.insert_with(body).await.refused(400, "ActionParameterValueNotInList");
    let answer = client.insert("https://a/os.iso").await;
    let monitor = answer.header("location").to_owned();
    assert_eq!(client.get(&monitor).await.status, 202);
    assert_eq!(client.bmc.first().media(), None);
    pass(5).await;
    assert_eq!(client.get(&monitor).await.status, 204);
    assert_eq!(client.get(&monitor).await.status, 404);
    assert_eq!(client.bmc.first().media(), Some("https://a/os.iso"));
}

#[tokio::test(start_paused = true)]
async fn xcc_deletes_a_finished_task_when_its_monitor_is_read() {
    let mut personality = personality::lenovo_xcc();
    personality.tasks.power = Some(std::time::Duration::from_secs(1));
    let client = Client::of(personality).await;
    let monitor = client.reset("On").await.header("location").to_owned();
    pass(1).await;
    assert_eq!(client.get(&monitor).await.status, 200);
    assert_eq!(client.read("/redfish/v1/TaskService/Tasks").await["Members@odata.count"], 0);
}

#[tokio::test(start_paused = true)]
async fn some_need_the_transfer_protocol() {
    let mut nokia = personality::generic();
    nokia.media.required_parameters = &["TransferProtocolType"];
    let client = Client::of(nokia).await;
    let answer = client.insert(ISO).await;
    answer.refused(400, "ActionParameterMissing");
    let info = &answer.body["error"]["@Message.ExtendedInfo"][0];
    assert_eq!(info["RelatedProperties"][0], "#/TransferProtocolType");
    client.insert_with(json!({ "Image": ISO, "TransferProtocolType": "HTTP" })).await.worked();
}

#[tokio::test(start_paused = true)]
async fn servers_behind_one_manager_boot_from_its_drive_and_it_takes_one_image() {
    for (personality, mode) in [(personality::hpe_ilo5(), None), (personality::supermicro_x13(), Some("UEFI"))] {
        let (name, target) = (personality.name, personality.boot.media_target);
        let client = Client::new(sim::Bmc::new(sim::BmcSpec::new(personality).systems(2))).await;
        client.insert(ISO).await.worked();
        assert!(!client.insert("https://192.0.2.1/other.iso").await.status.is_success(), "{name}");
        pass(60).await;
        let second = client.bmc.servers()[1].id.clone();
        let system = format!("/redfish/v1/Systems/{second}");
        let mut boot = json!({ "BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once" });
        if let Some(mode) = mode {
            boot["BootSourceOverrideMode"] = json!(mode);
        }
        client.patch(&system, json!({ "Boot": boot })).await.worked();
        client.bmc.by_hand(&second, ResetType::On);
        pass(300).await;
        let servers = client.bmc.servers();
        assert_eq!([servers[0].media(), servers[1].media()], [Some(ISO), Some(ISO)], "{name}");
        assert_eq!(servers[1].last_boot.as_ref().unwrap().from, BootSource::Cd(ISO.to_owned()), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn disabled_remote_media_show_no_drives_until_somebody_enables_them() {
    let client = Client::of(personality::supermicro_x13()).await;
    let drive = client.read(&client.cd().await).await;
    let insert = drive["Actions"]["#VirtualMedia.InsertMedia"]["target"].as_str().unwrap();
    client.bmc.faults().add(Effect::RemoteMediaDisabled { offers_action: true }.always());
    let manager = client.read("/redfish/v1/Managers/1").await;
    assert_eq!(manager["Oem"]["Ami"]["VirtualMedia"]["RMediaStatus"], "Disabled");
    let drives = "/redfish/v1/Managers/1/VirtualMedia";
    assert_eq!(client.read(drives).await["Members"], json!([]));
    client.post(insert, json!({ "Image": ISO })).await.refused(400, "GeneralError");
    let target = manager["Actions"]["Oem"]["#AMIVirtualMedia.EnableRMedia"]["target"].as_str().unwrap();
    client.post(target, json!({})).await.refused(400, "ActionParameterMissing");
    client.post(target, json!({ "RMediaState": "Enable" })).await.worked();
    assert_ne!(client.read(drives).await["Members"], json!([]));
    assert!(client.read("/redfish/v1/Managers/1").await["Oem"]["Ami"].is_null());
    client.insert(ISO).await.worked();

    // Nobody disables what is in use.
    pass(60).await;
    client.bmc.faults().add(Effect::RemoteMediaDisabled { offers_action: false }.always());
    assert_ne!(client.read(drives).await["Members"], json!([]));
}
