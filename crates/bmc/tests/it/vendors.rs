//! One test for each behaviour of a vendor that we know of: what is sent, and what is made of the answer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bmc::{Bmc, Manner};
use engine::failure::Kind;
use engine::server::{BootMode, BootOverride, BootTarget, Persistence, Scope};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::script::{Asked, RESET, Reply, SLOT, SYSTEM, Script};

const IMAGE: &str = "http://h/a.iso";

/// A plain server whose firmware is of this vendor.
fn vendor(
    name: &'static str,
    change: impl FnOnce(&mut BTreeMap<String, Value>),
    answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
) -> Script {
    Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["Vendor"] = json!(name);
            change(tree);
        },
        answer,
    )
}

fn no_change(_: &mut BTreeMap<String, Value>) {}

fn patched(body: &Value) -> String {
    format!("PATCH {SYSTEM} {}", json!({"Boot": body}))
}

fn insert(body: &Value) -> String {
    format!("POST {SLOT}/Actions/VirtualMedia.InsertMedia {body}")
}

fn cd_once() -> BootOverride {
    BootOverride::cd_once(Some(BootMode::Uefi))
}

async fn boot_changes(script: &Script, wish: &BootOverride) -> Vec<String> {
    script.forget();
    script.system().set_boot(wish).await.unwrap();
    script.changes()
}

#[tokio::test(start_paused = true)]
async fn by_the_book_target_and_enabled_are_sent_and_the_mode_when_wished() {
    let script = Script::new(|_| None);
    let full = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"});
    assert_eq!(boot_changes(&script, &cd_once()).await, [patched(&full)]);
    let minimal = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"});
    assert_eq!(boot_changes(&script, &BootOverride::cd_once(None)).await, [patched(&minimal)]);
    // A BMC that shows no mode is not sent one.
    let script = Script::with(
        |tree| drop(tree.get_mut(SYSTEM).unwrap()["Boot"].as_object_mut().unwrap().remove("BootSourceOverrideMode")),
        |_| None,
    );
    assert_eq!(boot_changes(&script, &cd_once()).await, [patched(&minimal)]);
}

#[tokio::test(start_paused = true)]
async fn ilo_is_never_sent_the_mode_and_clears_with_pxe() {
    let script = vendor("HPE", no_change, |_| None);
    let minimal = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"});
    assert_eq!(boot_changes(&script, &cd_once()).await, [patched(&minimal)]);
    script.forget();
    script.system().clear_boot().await.unwrap();
    assert_eq!(
        script.changes(),
        [patched(&json!({"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Disabled"}))]
    );
}

#[tokio::test(start_paused = true)]
async fn supermicro_is_always_sent_the_mode_and_calls_the_cd_usbcd() {
    let script = Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["Oem"] = json!({"Supermicro": {}});
            tree.get_mut(SYSTEM).unwrap()["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"] =
                json!(["None", "Pxe", "Cd", "UsbCd", "Hdd"]);
        },
        |_| None,
    );
    let sent = json!({"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"});
    assert_eq!(boot_changes(&script, &BootOverride::cd_once(None)).await, [patched(&sent)]);

    // Grace boards list no UsbCd.
    let grace = Script::with(|tree| tree.get_mut("/redfish/v1").unwrap()["Oem"] = json!({"Supermicro": {}}), |_| None);
    assert!(boot_changes(&grace, &cd_once()).await[0].contains("\"Cd\""));
}

#[tokio::test(start_paused = true)]
async fn supermicro_shows_usbcd_where_we_say_cd() {
    let script = Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["Oem"] = json!({"Supermicro": {}});
            tree.get_mut(SYSTEM).unwrap()["Boot"] =
                json!({"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once"});
        },
        |_| None,
    );
    assert_eq!(script.system().look(Scope::Power).await.unwrap().boot.unwrap().target, BootTarget::Cd);
}

#[tokio::test(start_paused = true)]
async fn ami_is_sent_all_three_and_keeps_the_future_elsewhere() {
    let script = vendor(
        "AMI",
        |tree| drop(tree.get_mut(SYSTEM).unwrap()["Boot"].as_object_mut().unwrap().remove("BootSourceOverrideMode")),
        |asked| (asked.is("PATCH", SYSTEM)).then(|| Reply::error(400, "Ami.1.0.OperationSupportedInFutureStateURI")),
    );
    let sent = json!({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"});
    let future = format!("PATCH {SYSTEM}/SD {}", json!({"Boot": sent}));
    assert_eq!(boot_changes(&script, &BootOverride::cd_once(None)).await, [patched(&sent), future]);
}

#[tokio::test(start_paused = true)]
async fn ami_wants_if_match_and_an_expand_that_does_not_work_is_tried_once() {
    let script = vendor(
        "AMI",
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["ProtocolFeaturesSupported"] =
                json!({"ExpandQuery": {"NoLinks": true}});
        },
        |asked| {
            (asked.method == "PATCH" && asked.header("if-match").is_none())
                .then(|| Reply::error(428, "Ami.1.0.PreconditionHeaderMissing"))
        },
    );
    script.system().set_boot(&cd_once()).await.unwrap();
    assert_eq!(script.asked().pop().unwrap().header("if-match"), Some("*"));
    let expands = script.asked().iter().filter(|asked| asked.path.contains("expand")).count();
    assert_eq!(expands, 1);
}

#[tokio::test(start_paused = true)]
async fn settings_objects_take_the_boot_properties_that_they_hold() {
    let settings = "/redfish/v1/Systems/1/Settings";
    let script = Script::with(
        |tree| {
            let system = tree.get_mut(SYSTEM).unwrap();
            system["@Redfish.Settings"] = json!({"SettingsObject": {"@odata.id": settings}});
            system["Boot"].as_object_mut().unwrap().remove("BootSourceOverrideTarget@Redfish.AllowableValues");
            tree.insert(
                settings.into(),
                json!({"@odata.etag": "\"s1\"", "Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once",
                    "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Cd"]}}),
            );
        },
        |_| None,
    );
    let there = json!({"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}});
    let here = patched(&json!({"BootSourceOverrideMode": "UEFI"}));
    assert_eq!(boot_changes(&script, &cd_once()).await, [format!("PATCH {settings} {there}"), here]);
    let patch = script.asked().into_iter().find(|asked| asked.is("PATCH", settings)).unwrap();
    assert_eq!(patch.header("if-match"), Some("\"s1\""), "under its own ETag");
    let seen = script.system().look(Scope::Boot).await.unwrap();
    assert_eq!(seen.boot.unwrap().target, BootTarget::Cd, "what waits there counts as set");
    let error = script.system().set_boot(&BootOverride { target: BootTarget::Pxe, ..cd_once() }).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported, "allowable values may stand only there");
}

#[tokio::test(start_paused = true)]
async fn lenovo_se450_has_a_settings_object_without_boot() {
    let script = vendor(
        "Lenovo",
        |tree| {
            tree.get_mut(SYSTEM).unwrap()["@Redfish.Settings"] =
                json!({"SettingsObject": {"@odata.id": "/redfish/v1/Systems/1/Pending"}});
            tree.insert("/redfish/v1/Systems/1/Pending".into(), json!({"Id": "Pending"}));
        },
        |_| None,
    );
    let sent = boot_changes(&script, &cd_once()).await;
    assert_eq!(sent.len(), 1);
    assert!(sent[0].starts_with(&format!("PATCH {SYSTEM} ")));
}

#[tokio::test(start_paused = true)]
async fn lenovo_knows_no_continuous_and_gets_once() {
    let script = vendor("Lenovo", no_change, |asked| {
        (asked.method == "PATCH" && asked.body["Boot"]["BootSourceOverrideEnabled"] == "Continuous")
            .then(|| Reply::error(400, "Base.1.12.PropertyValueNotInList"))
    });
    let wish = BootOverride { persistence: Persistence::Continuous, ..BootOverride::cd_once(None) };
    assert!(boot_changes(&script, &wish).await.pop().unwrap().contains("Once"));
}

#[tokio::test(start_paused = true)]
async fn whoever_knows_nothing_but_continuous_gets_that() {
    let script = Script::new(|asked| {
        (asked.method == "PATCH" && asked.body["Boot"]["BootSourceOverrideEnabled"] == "Once")
            .then(|| Reply::error(400, "Base.1.12.PropertyValueNotInList"))
    });
    assert!(boot_changes(&script, &cd_once()).await.pop().unwrap().contains("Continuous"));
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_is_refused_is_left_away() {
    let script = Script::new(|asked| {
        (asked.body["Boot"].get("BootSourceOverrideMode").is_some())
            .then(|| Reply::error(400, "Base.1.8.PropertyNotWritable"))
    });
    let sent = boot_changes(&script, &cd_once()).await;
    assert_eq!(sent.len(), 2);
    assert!(!sent[1].contains("Mode"));
}

#[tokio::test(start_paused = true)]
async fn uefi_http_with_a_uri_is_sent_or_its_refusal_explained() {
    let wish = BootOverride {
        target: BootTarget::UefiHttp,
        http_uri: Some("http://h/ipxe.efi".into()),
        ..BootOverride::cd_once(None)
    };
    let script = Script::new(|_| None);
    let sent = json!({"BootSourceOverrideTarget": "UefiHttp", "BootSourceOverrideEnabled": "Once", "HttpBootUri": "http://h/ipxe.efi"});
    assert_eq!(boot_changes(&script, &wish).await, [patched(&sent)]);
    let script = Script::new(|asked| {
        let info =
            json!([{"MessageId": "Base.1.8.PropertyUnknown", "Message": "Unknown.", "MessageArgs": ["HttpBootUri"]}]);
        (asked.method == "PATCH").then(|| Reply::json(400, &json!({"error": {"@Message.ExtendedInfo": info}})))
    });
    let error = script.system().set_boot(&wish).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("DHCP"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn sushy_cannot_clear_and_gets_the_disk() {
    let disk = patched(&json!({"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"}));
    let script = Script::with(|tree| tree.get_mut(SYSTEM).unwrap()["Manufacturer"] = json!("Sushy Emulator"), |_| None);
    script.system().clear_boot().await.unwrap();
    assert_eq!(script.changes().first(), Some(&disk));
    // Whatever else refuses Disabled ends there too.
    let script = Script::new(|asked| {
        (asked.body["Boot"]["BootSourceOverrideEnabled"] == "Disabled").then(|| Reply::text(400, "no"))
    });
    script.system().clear_boot().await.unwrap();
    assert_eq!(script.changes().pop().unwrap(), disk);
}

#[tokio::test(start_paused = true)]
async fn an_override_that_is_wished_away_is_cleared() {
    let script = Script::new(|_| None);
    let wish =
        BootOverride { target: BootTarget::None, persistence: Persistence::Disabled, mode: None, http_uri: None };
    let sent = patched(&json!({"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}));
    assert_eq!(boot_changes(&script, &wish).await, [sent]);
}

#[tokio::test(start_paused = true)]
async fn idrac10_refuses_power_on_for_a_minute_after_power_off() {
    let model = |tree: &mut BTreeMap<String, Value>| {
        tree.get_mut("/redfish/v1/Managers/1").unwrap()["Model"] = json!("17G Monolithic");
    };
    let left = AtomicUsize::new(5);
    let conflict = move |asked: &Asked| {
        let hit = asked.path == RESET
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        hit.then(|| Reply::error(409, "Base.1.12.ActionParameterValueConflict"))
    };
    let script = vendor("Dell", model, conflict);
    let begin = Instant::now();
    script.system().power_on().await.unwrap();
    assert_eq!(begin.elapsed().as_secs(), 50);
    // Elsewhere a conflict is a conflict.
    let script =
        Script::new(|asked| (asked.path == RESET).then(|| Reply::error(409, "Base.1.12.ActionParameterValueConflict")));
    assert_eq!(script.system().power_on().await.unwrap_err().kind(), Kind::Refused);
    assert_eq!(script.count("POST", RESET), 1);
}

#[tokio::test(start_paused = true)]
async fn dell_says_409_and_ilo_400_when_the_server_is_there_already() {
    for (status, id) in [(409, "IDRAC.2.8.PSU501"), (400, "iLO.2.14.InvalidOperationForSystemState")] {
        let script = Script::new(move |asked| (asked.path == RESET).then(|| Reply::error(status, id)));
        let begin = Instant::now();
        script.system().power_off(Manner::Hard).await.unwrap();
        assert!(begin.elapsed().as_secs() < 1, "no waiting when it is there");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_a_server_that_is_off_powers_it_on() {
    let script =
        Script::new(|asked| (asked.body["ResetType"] == "ForceRestart").then(|| Reply::error(409, "IDRAC.2.8.PSU502")));
    script.system().restart(Manner::Hard).await.unwrap();
    assert_eq!(script.changes().pop().unwrap(), format!("POST {RESET} {}", json!({"ResetType": "On"})));
}

#[tokio::test(start_paused = true)]
async fn allowable_values_decide_and_what_is_missing_is_told() {
    let allow = |values: &'static [&'static str]| {
        Script::with(
            move |tree| {
                tree.get_mut(SYSTEM).unwrap()["Actions"]["#ComputerSystem.Reset"]["ResetType@Redfish.AllowableValues"] =
                    json!(values);
            },
            |_| None,
        )
    };
    let script = allow(&["ForceOn", "PowerCycle", "PushPowerButton"]);
    script.system().power_on().await.unwrap();
    script.system().restart(Manner::Hard).await.unwrap();
    assert_eq!(
        script.changes(),
        [
            format!("POST {RESET} {}", json!({"ResetType": "ForceOn"})),
            format!("POST {RESET} {}", json!({"ResetType": "PowerCycle"}))
        ]
    );
    // The button is not pressed on a server that is off when it should be off.
    script.forget();
    script.system().power_off(Manner::Hard).await.unwrap();
    assert!(script.changes().is_empty());
    let error = allow(&["On"]).system().restart(Manner::Soft).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("restart it hard"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn supermicro_and_openbmc_keep_allowable_values_in_an_action_info() {
    let info = "/redfish/v1/Systems/1/ResetActionInfo";
    let script = Script::with(
        |tree| {
            tree.get_mut(SYSTEM).unwrap()["Actions"]["#ComputerSystem.Reset"] =
                json!({"target": RESET, "@Redfish.ActionInfo": info});
            tree.insert(
                info.into(),
                json!({"Parameters": [{"Name": "Other"}, {"Name": "ResetType", "AllowableValues": ["ForceOn"]}]}),
            );
        },
        |_| None,
    );
    let system = script.system();
    system.power_on().await.unwrap();
    system.power_on().await.unwrap();
    assert!(script.changes().iter().all(|change| change.contains("ForceOn")));
    assert_eq!(script.count("GET", info), 1, "asked once");
}

#[tokio::test(start_paused = true)]
async fn an_insertion_is_the_image_alone() {
    let script = Script::new(|_| None);
    script.system().insert_media(IMAGE).await.unwrap();
    assert_eq!(script.changes(), [insert(&json!({"Image": IMAGE}))], "Supermicro X11 and X12 refuse anything more");
}

#[tokio::test(start_paused = true)]
async fn nokia_and_xfusion_miss_the_transfer_protocol() {
    let info = json!([{"MessageId": "Base.1.8.ActionParameterMissing", "Message": "x", "RelatedProperties": ["#/TransferProtocolType"]}]);
    for body in [
        json!({"error": {"@Message.ExtendedInfo": info}}),
        json!({"error": {"code": "Base.1.8.GeneralError", "message": "no"}}),
    ] {
        let script = Script::new(move |asked| {
            (asked.path.ends_with("InsertMedia") && asked.body.get("TransferProtocolType").is_none())
                .then(|| Reply::json(400, &body))
        });
        script.system().insert_media(IMAGE).await.unwrap();
        assert_eq!(script.changes().pop().unwrap(), insert(&json!({"Image": IMAGE, "TransferProtocolType": "HTTP"})));
    }
}

#[tokio::test(start_paused = true)]
async fn dgx_wants_credentials_with_the_image() {
    let script = vendor("AMI", |tree| tree.get_mut(SYSTEM).unwrap()["Model"] = json!("DGXH100"), |_| None);
    script.system().insert_media(IMAGE).await.unwrap();
    assert_eq!(script.changes(), [insert(&json!({"Image": IMAGE, "UserName": "none", "Password": "none"}))]);
}

#[tokio::test(start_paused = true)]
async fn lenovo_takes_media_by_patch() {
    let script =
        vendor("Lenovo", |tree| drop(tree.get_mut(SLOT).unwrap().as_object_mut().unwrap().remove("Actions")), |_| None);
    let system = script.system();
    system.insert_media(IMAGE).await.unwrap();
    let put = json!({"Image": IMAGE, "Inserted": true, "WriteProtected": true});
    assert_eq!(script.changes(), [format!("PATCH {SLOT} {put}")]);
    let script = vendor(
        "Lenovo",
        |tree| {
            let slot = tree.get_mut(SLOT).unwrap();
            slot.as_object_mut().unwrap().remove("Actions");
            slot["Image"] = json!(IMAGE);
        },
        |_| None,
    );
    script.system().eject_media().await.unwrap();
    assert_eq!(script.changes(), [format!("PATCH {SLOT} {}", json!({"Image": null, "Inserted": false}))]);
}

#[tokio::test(start_paused = true)]
async fn ilo_wants_an_empty_object_to_eject_and_what_is_in_the_drive_goes_first() {
    let script = Script::with(
        |tree| {
            tree.get_mut(SLOT).unwrap()["Image"] = json!("http://h/old.iso");
            tree.get_mut(SLOT).unwrap()["Inserted"] = json!(true);
        },
        |_| None,
    );
    script.system().insert_media(IMAGE).await.unwrap();
    assert_eq!(
        script.changes(),
        [format!("POST {SLOT}/Actions/VirtualMedia.EjectMedia {{}}"), insert(&json!({"Image": IMAGE}))]
    );
}

#[tokio::test(start_paused = true)]
async fn idrac_still_ejecting_answers_500_and_is_asked_again() {
    let left = AtomicUsize::new(2);
    let script = Script::new(move |asked| {
        let hit = asked.path.ends_with("InsertMedia")
            && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        hit.then(|| Reply::error(500, "IDRAC.2.8.RAC0720"))
    });
    script.system().insert_media(IMAGE).await.unwrap();
    assert_eq!(script.changes().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_refused_is_told_in_the_bmcs_words_without_the_ticket() {
    let script = Script::new(|asked| {
        let said = json!([{"MessageId": "IDRAC.2.8.RAC0904", "Message": format!("Unable to locate {}.", asked.body["Image"].as_str().unwrap_or_default())}]);
        asked
            .path
            .ends_with("InsertMedia")
            .then(|| Reply::json(400, &json!({"error": {"@Message.ExtendedInfo": said}})))
    });
    let error = script.system().insert_media("http://u:p@h/TICKET/a.iso?x=1").await.unwrap_err();
    assert_eq!(error.kind(), Kind::MediaRefused);
    let told = format!("{error} {error:?}");
    assert!(told.contains("Unable to locate http://h/…/a.iso") && told.contains("query"), "{told}");
    assert!(!told.contains("TICKET") && !told.contains("u:p"), "{told}");
    assert_eq!(script.changes().len(), 1, "a reason is a reason: no other form is tried");
}

#[tokio::test(start_paused = true)]
async fn cisco_reserves_drives_and_the_next_one_is_tried() {
    let other = "/redfish/v1/Managers/1/VirtualMedia/CD2";
    let script = Script::with(
        |tree| {
            let mut slot = tree[SLOT].clone();
            slot["@odata.id"] = json!(other);
            slot["Id"] = json!("CD2");
            slot["Actions"]["#VirtualMedia.InsertMedia"]["target"] = json!(format!("{other}/Insert"));
            tree.insert(other.into(), slot);
            tree.get_mut("/redfish/v1/Managers/1/VirtualMedia").unwrap()["Members"]
                .as_array_mut()
                .unwrap()
                .push(json!({"@odata.id": other}));
        },
        |asked| (asked.is("POST", &format!("{SLOT}/Actions/VirtualMedia.InsertMedia"))).then(|| Reply::status(405)),
    );
    script.system().insert_media(IMAGE).await.unwrap();
    assert!(script.changes().pop().unwrap().starts_with(&format!("POST {other}/Insert")));
}

#[tokio::test(start_paused = true)]
async fn a_bmc_without_drives_says_so_only_when_asked_to_insert() {
    let script = Script::with(|tree| drop(tree.remove("/redfish/v1/Managers/1/VirtualMedia")), |_| None);
    let system = script.system();
    assert_eq!(system.look(Scope::Boot).await.unwrap().media, Some(Vec::new()));
    system.eject_media().await.unwrap();
    assert_eq!(system.insert_media(IMAGE).await.unwrap_err().kind(), Kind::Unsupported);
}

#[tokio::test(start_paused = true)]
async fn huawei_names_its_managers_differently() {
    let script = Script::with(
        |tree| tree.get_mut(SYSTEM).unwrap()["Links"] = json!({"Managers": [{"@odata.id": "/redfish/v1/Managers/1"}]}),
        |_| None,
    );
    script.system().reset_bmc().await.unwrap();
    assert_eq!(script.changes().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_name_the_family() {
    let script = Script::new(|_| None);
    let endpoint = bmc::Endpoint {
        address: bmc::Address::parse("bmc.test").unwrap(),
        credentials: bmc::Credentials::new("a", "b"),
        family: Some("hpe-ilo5".parse().unwrap()),
    };
    let client =
        bmc::Client::new(endpoint, std::sync::Arc::new(bmc::InProcess::new(script.clone())), bmc::Options::default());
    bmc::RedfishSystem::new(client, bmc::SystemChoice::Only).clear_boot().await.unwrap();
    assert!(script.changes()[0].contains("Pxe"));
}

#[tokio::test(start_paused = true)]
async fn sushy_lacks_half_of_what_it_links() {
    let script = Script::with(
        |tree| {
            let system = tree.get_mut(SYSTEM).unwrap();
            for (part, path) in [
                ("Processors", "p"),
                ("Memory", "m"),
                ("Storage", "s"),
                ("SimpleStorage", "ss"),
                ("EthernetInterfaces", "e"),
            ] {
                system[part] = json!({"@odata.id": format!("/{path}")});
            }
            system["Manufacturer"] = json!("Sushy Emulator");
            system["MemorySummary"] = json!({"TotalSystemMemoryGiB": 1.5});
            system["ProcessorSummary"] = json!({"Count": 2});
            system["Boot"]["HttpBootUri"] = json!("None");
            tree.get_mut("/redfish/v1").unwrap()["UpdateService"] = json!({"@odata.id": "/u"});
            tree.insert("/u".into(), json!({"FirmwareInventory": {"@odata.id": "/f"}}));
            tree.insert("/e".into(), json!({"Members": [{"@odata.id": "/e/1"}, {"@odata.id": "/e/2"}]}));
            tree.insert("/e/1".into(), json!({"Id": "1", "MACAddress": "52:54:00:AA:BB:CC"}));
            tree.insert("/e/2".into(), json!({"Id": "2", "MACAddress": ""}));
        },
        |asked| match asked.path.as_str() {
            "/p" | "/ss" => Some(Reply::status(501)),
            "/s" => Some(Reply::text(500, "Storage is not here")),
            _ => None,
        },
    );
    let system = script.system();
    for _ in 0..3 {
        let seen = system.look(Scope::Inventory).await.unwrap();
        assert_eq!(seen.boot.unwrap().http_uri, None);
        let hardware = seen.hardware.unwrap();
        assert_eq!(hardware.memory_mib, 1536);
        assert_eq!(hardware.processors.len(), 2);
        assert_eq!(hardware.nics.len(), 1);
        assert_eq!(hardware.nics[0].mac.as_deref(), Some("52:54:00:aa:bb:cc"));
        assert!(hardware.unread.is_empty(), "what it lacks cannot be read later either: {:?}", hardware.unread);
    }
}

#[tokio::test(start_paused = true)]
async fn gb200_is_identified_by_its_chassis_and_its_nics_by_their_adapters() {
    let script = Script::with(
        |tree| {
            let system = tree.get_mut(SYSTEM).unwrap();
            system.as_object_mut().unwrap().remove("Manufacturer");
            system["Links"]["Chassis"] = json!([{"@odata.id": "/c"}]);
            tree.insert("/c".into(), json!({"Manufacturer": "NVIDIA", "Model": "GB200 NVL", "SerialNumber": "S1", "NetworkAdapters": {"@odata.id": "/c/n"}}));
            tree.insert("/c/n".into(), json!({"Members": [{"@odata.id": "/c/n/1"}]}));
            tree.insert("/c/n/1".into(), json!({"@odata.id": "/c/n/1", "Id": "1", "Ports": {"@odata.id": "/c/n/1/p"}}));
            tree.insert("/c/n/1/p".into(), json!({"Members": [{"@odata.id": "/c/n/1/p/0"}]}));
            tree.insert(
                "/c/n/1/p/0".into(),
                json!({"Id": "0", "Ethernet": {"AssociatedMACAddresses": ["AA:BB:CC:DD:EE:FF"]}}),
            );
        },
        |_| None,
    );
    let hardware = script.system().look(Scope::Inventory).await.unwrap().hardware.unwrap();
    assert_eq!(hardware.serial_number.as_deref(), Some("S1"));
    assert_eq!(hardware.nics[0].mac.as_deref(), Some("aa:bb:cc:dd:ee:ff"));
}

#[tokio::test(start_paused = true)]
async fn drives_and_systems_that_moved_are_found_again() {
    let moved = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let has_moved = moved.clone();
    let other = "/redfish/v1/Managers/1/VirtualMedia/New";
    let script = Script::with(
        |tree| {
            let mut slot = tree[SLOT].clone();
            slot["@odata.id"] = json!(other);
            slot["Id"] = json!("New");
            tree.insert(other.into(), slot);
        },
        move |asked| {
            if !has_moved.load(Ordering::Relaxed) {
                return None;
            }
            match asked.path.as_str() {
                SLOT => Some(Reply::status(404)),
                "/redfish/v1/Managers/1/VirtualMedia" => {
                    Some(Reply::json(200, &json!({"Members": [{"@odata.id": other}]})))
                }
                _ => None,
            }
        },
    );
    let system = script.system();
    let slot = |seen: engine::server::Seen| seen.media.unwrap()[0].slot.clone();
    assert_eq!(slot(system.look(Scope::Boot).await.unwrap()), "CD");
    moved.store(true, Ordering::Relaxed);
    assert_eq!(slot(system.look(Scope::Boot).await.unwrap()), "New");
}

#[tokio::test(start_paused = true)]
async fn openbmc_says_in_use_when_something_is_in_the_drive_that_we_do_not_know_of() {
    let is_full = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let full = is_full.clone();
    let script = Script::new(move |asked| {
        if asked.path.ends_with("EjectMedia") {
            full.store(false, Ordering::Relaxed);
        }
        if !full.load(Ordering::Relaxed) {
            return None;
        }
        match asked.path.as_str() {
            SLOT => Some(Reply::json(
                200,
                &json!({"@odata.id": SLOT, "Id": "CD", "MediaTypes": ["CD"], "Image": "http://h/other.iso", "Inserted": true,
                    "Actions": {"#VirtualMedia.InsertMedia": {"target": format!("{SLOT}/Actions/VirtualMedia.InsertMedia")},
                        "#VirtualMedia.EjectMedia": {"target": format!("{SLOT}/Actions/VirtualMedia.EjectMedia")}}}),
            )),
            path if path.ends_with("InsertMedia") => Some(Reply::error(409, "Base.1.13.ResourceInUse")),
            _ => None,
        }
    });
    let system = script.system();
    system.look(Scope::Boot).await.unwrap();
    is_full.store(true, Ordering::Relaxed);
    let begin = Instant::now();
    system.insert_media(IMAGE).await.unwrap();
    assert!(begin.elapsed().as_secs() < 1, "it is looked at, not waited for");
}

#[tokio::test(start_paused = true)]
async fn xfusion_and_nokia_are_sent_the_protocol_at_once() {
    for name in ["xFusion", "Nokia"] {
        let script = vendor(name, no_change, |_| None);
        script.system().insert_media("https://h/a.iso").await.unwrap();
        assert_eq!(script.changes(), [insert(&json!({"Image": "https://h/a.iso", "TransferProtocolType": "HTTPS"}))]);
    }
}

#[tokio::test(start_paused = true)]
async fn dell_keeps_the_service_tag_in_the_sku_and_old_firmware_in_the_list() {
    let script = vendor(
        "Dell",
        |tree| {
            let system = tree.get_mut(SYSTEM).unwrap();
            system["SKU"] = json!("F54P1G3");
            system["SerialNumber"] = json!("CNIVC0014M0388");
            tree.get_mut("/redfish/v1").unwrap()["UpdateService"] = json!({"@odata.id": "/u"});
            tree.insert("/u".into(), json!({"FirmwareInventory": {"@odata.id": "/f"}}));
            let ids = [
                "Installed-159-1.8.2__BIOS.Setup.1-1",
                "Previous-159-1.2.4__BIOS.Setup.1-1",
                "Current-159-1.8.2__BIOS.Setup.1-1",
            ];
            let links: Vec<Value> = ids.iter().map(|id| json!({"@odata.id": format!("/f/{id}")})).collect();
            tree.insert("/f".into(), json!({"Members": links}));
            for id in ids {
                tree.insert(format!("/f/{id}"), json!({"Id": id, "Name": "BIOS", "Version": id}));
            }
        },
        |_| None,
    );
    let hardware = script.system().look(Scope::Inventory).await.unwrap().hardware.unwrap();
    assert_eq!(hardware.serial_number.as_deref(), Some("F54P1G3"));
    assert_eq!(hardware.firmware.len(), 1);
    assert_eq!(
        script.asked().iter().filter(|asked| asked.path.starts_with("/f/")).count(),
        1,
        "others are not even read"
    );
}

/// MegaRAC as it is delivered: images from afar are switched off, and there are no drives until they are on.
fn megarac(action: bool) -> Script {
    const MANAGER: &str = "/redfish/v1/Managers/1";
    const ENABLE: &str = "/redfish/v1/Managers/1/Actions/Oem/AMIVirtualMedia.EnableRMedia";
    let is_on = std::sync::atomic::AtomicBool::new(false);
    Script::new(move |asked| {
        if asked.is("POST", ENABLE) {
            is_on.store(true, std::sync::atomic::Ordering::Relaxed);
            return Some(Reply::status(200));
        }
        let is_on = is_on.load(std::sync::atomic::Ordering::Relaxed);
        let status = if is_on { "Enabled" } else { "Disabled" };
        let mut manager = json!({"@odata.id": MANAGER, "Id": "1", "Oem": {"Ami": {"VirtualMedia": {"RMediaStatus": status}}},
            "VirtualMedia": {"@odata.id": format!("{MANAGER}/VirtualMedia")}});
        if action {
            manager["Actions"]["Oem"]["#AMIVirtualMedia.EnableRMedia"]["target"] = json!(ENABLE);
        }
        match asked.path.as_str() {
            MANAGER => Some(Reply::json(200, &manager)),
            "/redfish/v1/Managers/1/VirtualMedia" if !is_on => Some(Reply::json(200, &json!({"Members": []}))),
            _ => None,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn ami_gets_its_remote_media_switched_on_when_an_image_is_to_be_inserted() {
    let script = megarac(true);
    let system = script.system();
    let seen = system.look(Scope::Boot).await.unwrap();
    assert_eq!(seen.media.unwrap().len(), 1, "there will be a drive");
    assert!(script.changes().is_empty(), "a look changes nothing");
    system.insert_media("https://images.example.com/a.iso").await.unwrap();
    let changes = script.changes();
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert!(changes[0].contains("EnableRMedia") && changes[0].contains(r#"{"RMediaState":"Enable"}"#), "{changes:?}");
    assert!(changes[1].contains("InsertMedia"), "{changes:?}");
}

#[tokio::test(start_paused = true)]
async fn remote_media_that_cannot_be_switched_on_are_said_to_be_off_and_no_licence_to_be_missing() {
    let script = megarac(false);
    let error = script.system().insert_media("https://images.example.com/a.iso").await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("switched off") && told.contains("RMediaStatus") && !told.contains("licence"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_drive_that_lists_https_and_not_http_says_so_before_anything_is_inserted() {
    let https = vec!["cifs".to_owned(), "https".to_owned()];
    for (listed, told) in [
        (json!(["CIFS", "HTTPS"]), https),
        (json!(["HTTP", "HTTPS"]), Vec::new()),
        (json!(["CIFS", "NFS"]), Vec::new()),
        (json!(null), Vec::new()),
    ] {
        let script = Script::with(
            |tree| {
                let slot = tree.get_mut(SLOT).unwrap();
                let action = &mut slot["Actions"]["#VirtualMedia.InsertMedia"];
                action["TransferProtocolType@Redfish.AllowableValues"] = listed.clone();
            },
            |_| None,
        );
        let seen = script.system().look(Scope::Boot).await.unwrap();
        assert_eq!(seen.image_schemes, told, "{listed}");
    }
}
