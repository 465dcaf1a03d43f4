use http::Method;
use serde_json::json;
use sim::{BootSource, Enabled, Mode, personality};

use crate::client::{Client, pass};

const ISO: &str = "https://images.example/os.iso";

#[tokio::test(start_paused = true)]
async fn an_iso_is_booted_once() {
    for personality in sim::Personality::all() {
        let name = personality.name;
        let target = personality.boot.media_target;
        let patched = !personality.media.actions;
        let client = Client::of(personality).await;
        if patched {
            client.patch(&client.cd().await, json!({ "Image": ISO, "Inserted": true })).await.worked();
        } else {
            client.insert(ISO).await.worked();
        }
        pass(10).await;
        let mode = if name == "supermicro-x13" { json!("UEFI") } else { json!(null) };
        let mut boot = json!({ "BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once" });
        if mode.is_string() {
            boot["BootSourceOverrideMode"] = mode;
        }
        client.boot(boot).await.worked();
        let shown = client.read(&client.system().await).await["Boot"].take();
        assert_eq!(shown["BootSourceOverrideTarget"], target, "{name}");
        assert_eq!(shown["BootSourceOverrideEnabled"], "Once", "{name}");
        client.reset("On").await.worked();
        pass(62).await;
        assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::Cd(ISO.into()), "{name}");
        let shown = client.read(&client.system().await).await["Boot"].take();
        assert_eq!(shown["BootSourceOverrideEnabled"], "Disabled", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_overrides_are_refused_with_a_reason() {
    let client = Client::of(personality::generic()).await;
    for (boot, problem) in [
        (json!({ "BootSourceOverrideTarget": "Tape" }), "PropertyValueNotInList"),
        (json!({ "BootSourceOverrideEnabled": "Twice" }), "PropertyValueNotInList"),
        (json!({ "BootSourceOverrideMode": "Both" }), "PropertyValueNotInList"),
        (json!({ "BootSourceOverrideTarget": 1 }), "PropertyValueTypeError"),
        (json!({ "Bootx": 1 }), "PropertyUnknown"),
    ] {
        client.boot(boot).await.refused(400, problem);
    }
    let system = client.system().await;
    client.patch(&system, json!({ "PowerState": "On" })).await.refused(400, "PropertyNotWritable");
    client.patch(&system, json!({ "Colour": "red" })).await.refused(400, "PropertyUnknown");
    assert_eq!(client.bmc.first().boot, sim::Override::default());
}

#[tokio::test(start_paused = true)]
async fn http_boot_takes_a_uri_where_the_property_exists() {
    let client = Client::of(personality::generic()).await;
    let boot = json!({ "BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideEnabled": "Once",
        "HttpBootUri": "http://boot/ipxe.efi" });
    client.boot(boot.clone()).await.worked();
    client.reset("On").await.worked();
    pass(62).await;
    assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::UefiHttp(Some("http://boot/ipxe.efi".into())));
    Client::of(personality::dell_idrac9()).await.boot(boot).await.refused(400, "PropertyUnknown");
}

#[tokio::test(start_paused = true)]
async fn ilo_refuses_during_post_and_a_mode_and_enabled_without_a_target() {
    let client = Client::of(personality::hpe_ilo5()).await;
    let pxe = json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" });
    client.boot(json!({ "BootSourceOverrideMode": "UEFI" })).await.refused(400, "PropertyNotWritable");
    client.boot(json!({ "BootSourceOverrideEnabled": "Disabled" })).await.refused(400, "PropertyValueConflict");
    client.boot(json!({ "BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "Pxe" })).await.worked();
    client.boot(pxe.clone()).await.worked();
    client.reset("On").await.worked();
    pass(10).await;
    client.boot(pxe.clone()).await.refused(400, "UnableToModifyDuringSystemPOST");
    pass(60).await;
    client.boot(pxe).await.worked();
}

#[tokio::test(start_paused = true)]
async fn supermicro_forgets_what_is_not_sent_and_boots_media_as_usbcd() {
    let client = Client::of(personality::supermicro_x13()).await;
    client
        .boot(json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous",
        "BootSourceOverrideMode": "UEFI" }))
        .await
        .worked();
    client.boot(json!({ "BootSourceOverrideTarget": "Cd" })).await.worked();
    let boot = client.bmc.first().boot;
    assert_eq!((boot.enabled, boot.mode), (Enabled::Once, Mode::Legacy));
    client.insert(ISO).await.worked();
    pass(5).await;
    client.reset("On").await.worked();
    pass(62).await;
    assert_eq!(client.bmc.first().booted.unwrap().from, BootSource::Hdd);
}

#[tokio::test(start_paused = true)]
async fn ami_wants_all_three_and_a_precondition() {
    let mut ami = personality::generic();
    ami.boot.needs_all = true;
    ami.etags.if_match = personality::IfMatch::Required;
    let client = Client::of(ami).await;
    let system = client.system().await;
    let all = json!({ "Boot": { "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once",
        "BootSourceOverrideMode": "UEFI" } });
    client.patch(&system, all.clone()).await.refused(428, "PreconditionRequired");
    let part = json!({ "Boot": { "BootSourceOverrideTarget": "Pxe" } });
    let any = [("if-match", "*")];
    client.try_send(Method::PATCH, &system, &any, Some(&part)).await.unwrap().refused(400, "PropertyMissing");
    client.try_send(Method::PATCH, &system, &any, Some(&all)).await.unwrap().worked();
}

#[tokio::test(start_paused = true)]
async fn xcc_knows_no_continuous() {
    let client = Client::of(personality::lenovo_xcc()).await;
    let boot = json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous" });
    client.boot(boot).await.refused(400, "PropertyValueNotInList");
}

#[tokio::test(start_paused = true)]
async fn a_settings_object_takes_the_override_instead_of_the_system() {
    let mut personality = personality::generic();
    personality.shape.system_settings = Some("Settings");
    let client = Client::of(personality).await;
    let pxe = json!({ "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" });
    client.boot(pxe.clone()).await.refused(400, "PropertyNotWritable");
    let system = client.read(&client.system().await).await;
    let settings = system["@Redfish.Settings"]["SettingsObject"]["@odata.id"].as_str().unwrap();
    let before = client.get(settings).await.worked();
    let etag = before.header("etag");
    let body = json!({ "Boot": pxe });
    client.try_send(Method::PATCH, settings, &[("if-match", etag)], Some(&body)).await.unwrap().worked();
    assert_eq!(client.read(settings).await["Boot"]["BootSourceOverrideTarget"], "Pxe");
    assert_eq!(client.bmc.first().boot.target, "Pxe");
}

#[tokio::test(start_paused = true)]
async fn an_etag_that_is_old_fails_and_a_weak_one_can_be_refused() {
    let client = Client::of(personality::hpe_ilo5()).await;
    let system = client.system().await;
    let first = client.get(&system).await;
    let etag = first.header("etag").to_owned();
    assert!(etag.starts_with("W/\""));
    assert_eq!(first.body["@odata.etag"], etag);
    let body = json!({ "Boot": { "BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once" } });
    let with = |etag: &str| [("if-match", etag.to_owned())];
    let patch = async |etag: &str| {
        let [(name, value)] = with(etag);
        client.try_send(Method::PATCH, &system, &[(name, &value)], Some(&body)).await.unwrap()
    };
    patch(&etag).await.worked();
    patch(&etag).await.refused(412, "PreconditionFailed");

    let mut strict = personality::hpe_ilo5();
    strict.etags.if_match = personality::IfMatch::CheckedStrong;
    let client = Client::of(strict).await;
    let etag = client.get(&system).await.header("etag").to_owned();
    let patch =
        async |etag: &str| client.try_send(Method::PATCH, &system, &[("if-match", etag)], Some(&body)).await.unwrap();
    patch(&etag).await.refused(412, "PreconditionFailed");
    patch(etag.trim_start_matches("W/")).await.worked();
}
