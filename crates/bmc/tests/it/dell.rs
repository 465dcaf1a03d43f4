//! Dell's own ways: the virtual CD that is booted by attributes of the manager, and drives in two places.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bmc::Bmc;
use engine::failure::Kind;
use engine::server::{BootMode, BootOverride, BootTarget, Persistence, Scope};
use serde_json::{Value, json};

use crate::script::{Reply, SLOT, SYSTEM, Script};

const MANAGER: &str = "/redfish/v1/Managers/1";
const ATTRIBUTES: &str = "/redfish/v1/Managers/1/Oem/Dell/DellAttributes/iDRAC.Embedded.1";

struct Idrac {
    script: Script,
    /// `ServerBoot.1.FirstBootDevice`.
    device: Arc<Mutex<Value>>,
}

fn idrac(model: &str, firmware: &str, processor: &str) -> Idrac {
    idrac_with(model, firmware, processor, |_| {})
}

fn idrac_with(
    model: &str,
    firmware: &str,
    processor: &str,
    change: impl FnOnce(&mut BTreeMap<String, Value>),
) -> Idrac {
    let device = Arc::new(Mutex::new(json!("Normal")));
    let shown = device.clone();
    let script = Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["Vendor"] = json!("Dell");
            tree.get_mut(SYSTEM).unwrap()["ProcessorSummary"] = json!({"Model": processor});
            let manager = tree.get_mut(MANAGER).unwrap();
            manager["Model"] = json!(model);
            manager["FirmwareVersion"] = json!(firmware);
            manager["Links"] = json!({"Oem": {"Dell": {"DellAttributes": [
                {"@odata.id": "/redfish/v1/Managers/1/Oem/Dell/DellAttributes/System.Embedded.1"}, {"@odata.id": ATTRIBUTES}]}}});
            change(tree);
        },
        move |asked| {
            if asked.path != ATTRIBUTES {
                return None;
            }
            let mut device = shown.lock().unwrap();
            if asked.method == "PATCH" {
                *device = asked.body["Attributes"]["ServerBoot.1.FirstBootDevice"].clone();
                return Some(Reply::status(200));
            }
            let values = json!({"ServerBoot.1.BootOnce": "Enabled", "ServerBoot.1.FirstBootDevice": *device});
            Some(Reply::json(200, &json!({"Id": "iDRAC.Embedded.1", "Attributes": values})))
        },
    );
    Idrac { script, device }
}

fn attributes(once: &str, device: &str) -> String {
    let values = json!({"ServerBoot.1.BootOnce": once, "ServerBoot.1.FirstBootDevice": device});
    format!("PATCH {ATTRIBUTES} {}", json!({"Attributes": values}))
}

#[tokio::test(start_paused = true)]
async fn idrac10_and_old_idrac9_boot_the_virtual_cd_by_attributes() {
    let (intel, amd) = ("Intel(R) Xeon(R) Gold 6354", "AMD EPYC 7763 64-Core Processor");
    for (model, firmware, processor) in [
        ("17G Monolithic", "1.20.25.00", intel),
        ("14G Monolithic", "4.22.00.00", intel),
        ("15G Monolithic", "5.10.50.00", amd),
    ] {
        let Idrac { script, device } = idrac(model, firmware, processor);
        let system = script.system();
        system.look(Scope::Boot).await.unwrap();
        script.forget();
        system.set_boot(&BootOverride::cd_once(Some(BootMode::Uefi))).await.unwrap();
        assert_eq!(script.changes(), [attributes("Enabled", "VCD-DVD")], "{firmware}");
        for scope in [Scope::Boot, Scope::Power] {
            let armed = system.look(scope).await.unwrap().boot.unwrap();
            assert_eq!((armed.target.clone(), armed.persistence), (BootTarget::Cd, Persistence::Once), "{firmware}");
            assert!(!armed.is_clear());
        }
        // It is used up by the boot.
        *device.lock().unwrap() = json!("Normal");
        assert!(system.look(Scope::Power).await.unwrap().boot.unwrap().is_clear());
        script.forget();
        system.look(Scope::Power).await.unwrap();
        assert_eq!(script.asked().len(), 1, "at rest, one request");
    }
}

#[tokio::test(start_paused = true)]
async fn a_virtual_cd_that_was_armed_before_a_restart_is_seen_and_cleared() {
    let Idrac { script, device } = idrac("17G Monolithic", "1.20.25.00", "Intel");
    *device.lock().unwrap() = json!("VCD-DVD");
    let system = script.system();
    assert_eq!(system.look(Scope::Power).await.unwrap().boot.unwrap().target, BootTarget::Cd);
    system.clear_boot().await.unwrap();
    assert_eq!(script.changes(), [attributes("Disabled", "Normal")], "nothing else is armed");
    assert!(system.look(Scope::Boot).await.unwrap().boot.unwrap().is_clear());
    script.forget();
    system.clear_boot().await.unwrap();
    assert!(script.changes().is_empty(), "nothing is armed");
}

#[tokio::test(start_paused = true)]
async fn what_is_armed_by_the_override_on_an_idrac10_is_cleared_there() {
    let Idrac { script, .. } = idrac("17G Monolithic", "1.20.25.00", "Intel");
    let pxe = BootOverride { target: BootTarget::Pxe, ..BootOverride::cd_once(None) };
    script.system().set_boot(&pxe).await.unwrap();
    assert!(script.changes()[0].starts_with(&format!("PATCH {SYSTEM} ")), "only the CD is special");
    let armed = Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["Vendor"] = json!("Dell");
            tree.get_mut(MANAGER).unwrap()["Model"] = json!("17G Monolithic");
            tree.get_mut(SYSTEM).unwrap()["Boot"]["BootSourceOverrideTarget"] = json!("Pxe");
            tree.get_mut(SYSTEM).unwrap()["Boot"]["BootSourceOverrideEnabled"] = json!("Once");
        },
        |_| None,
    );
    armed.system().clear_boot().await.unwrap();
    assert!(armed.changes()[0].contains("Disabled"), "{:?}", armed.changes());
}

#[tokio::test(start_paused = true)]
async fn newer_idrac9_boots_the_virtual_cd_by_the_book() {
    for (firmware, processor) in [("4.40.10.00", "Intel(R) Xeon(R)"), ("6.00.30.00", "AMD EPYC"), ("7.10.30.00", "")] {
        let Idrac { script, .. } = idrac("15G Monolithic", firmware, processor);
        let system = script.system();
        system.set_boot(&BootOverride::cd_once(None)).await.unwrap();
        system.look(Scope::Boot).await.unwrap();
        assert!(script.changes()[0].starts_with(&format!("PATCH {SYSTEM} ")), "{firmware}");
        assert!(script.asked().iter().all(|asked| asked.path != ATTRIBUTES), "{firmware}");
    }
}

#[tokio::test(start_paused = true)]
async fn idrac8_says_that_it_cannot() {
    let Idrac { script, .. } = idrac("13G Monolithic", "2.80.80.80", "Intel");
    let error = script.system().set_boot(&BootOverride::cd_once(None)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("iDRAC8") && error.to_string().contains("network"), "{error}");
    assert!(script.changes().is_empty());
}

/// A server with an image in its own drive, and another one in that of its manager.
fn two_places(servers: &Value) -> Script {
    let own = "/redfish/v1/Systems/1/VirtualMedia";
    Script::with(
        |tree| {
            tree.get_mut("/redfish/v1").unwrap()["Vendor"] = json!("Dell");
            tree.get_mut(SYSTEM).unwrap()["VirtualMedia"] = json!({"@odata.id": own});
            tree.get_mut(MANAGER).unwrap()["Links"] = json!({"ManagerForServers": servers});
            let mut first = tree[SLOT].clone();
            first["@odata.id"] = json!(format!("{own}/1"));
            first["Id"] = json!("1");
            first["Image"] = json!("http://h/new.iso");
            first["Inserted"] = json!(true);
            first["Actions"]["#VirtualMedia.EjectMedia"]["target"] = json!(format!("{own}/1/Eject"));
            tree.insert(format!("{own}/1"), first);
            tree.insert(own.into(), json!({"Members": [{"@odata.id": format!("{own}/1")}]}));
            tree.get_mut(SLOT).unwrap()["Inserted"] = json!(true);
            tree.get_mut(SLOT).unwrap()["Image"] = json!("http://h/left-behind.iso");
        },
        |_| None,
    )
}

#[tokio::test(start_paused = true)]
async fn idrac6_has_drives_in_two_places_and_both_are_emptied() {
    let script = two_places(&json!([{"@odata.id": SYSTEM}]));
    script.system().eject_media().await.unwrap();
    let old = format!("POST {SLOT}/Actions/VirtualMedia.EjectMedia {{}}");
    assert_eq!(script.changes(), ["POST /redfish/v1/Systems/1/VirtualMedia/1/Eject {}".to_owned(), old]);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_drive_of_a_manager_of_several_servers_is_left_in_there() {
    let script = two_places(&json!([{"@odata.id": SYSTEM}, {"@odata.id": "/redfish/v1/Systems/2"}]));
    script.system().eject_media().await.unwrap();
    assert_eq!(script.changes(), ["POST /redfish/v1/Systems/1/VirtualMedia/1/Eject {}"]);
}

#[tokio::test(start_paused = true)]
async fn drives_that_could_not_be_listed_once_are_found_later() {
    let is_down = Arc::new(Mutex::new(true));
    let down = is_down.clone();
    let script = Script::with(
        |tree| tree.get_mut(SLOT).unwrap()["Image"] = json!("http://h/a.iso"),
        move |asked| (asked.path.ends_with("/VirtualMedia") && *down.lock().unwrap()).then(|| Reply::status(500)),
    );
    let system = script.system();
    assert_eq!(system.look(Scope::Boot).await.unwrap().media.unwrap().len(), 0);
    *is_down.lock().unwrap() = false;
    assert_eq!(system.look(Scope::Boot).await.unwrap().media.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idrac10_boots_an_iso_in_8_requests_although_it_is_looked_at_in_three_places() {
    let settings = "/redfish/v1/Systems/1/Settings";
    let Idrac { script, device } = idrac_with("17G Monolithic", "1.20.25.00", "Intel", |tree| {
        tree.get_mut(SYSTEM).unwrap()["@Redfish.Settings"] = json!({"SettingsObject": {"@odata.id": settings}});
        tree.insert(
            settings.into(),
            json!({"Boot": {"BootSourceOverrideTarget": "None", "BootSourceOverrideEnabled": "Disabled"}}),
        );
        let mut slot = tree[SLOT].clone();
        slot["Id"] = json!("1");
        tree.insert(SLOT.into(), slot);
    });
    let system = script.system();
    system.look(Scope::Boot).await.unwrap();
    script.forget();
    system.insert_media("http://h/a.iso").await.unwrap();
    system.set_boot(&BootOverride::cd_once(Some(BootMode::Uefi))).await.unwrap();
    assert_eq!(system.look(Scope::Boot).await.unwrap().boot.unwrap().target, BootTarget::Cd);
    system.power_on().await.unwrap();
    *device.lock().unwrap() = json!("Normal");
    assert!(system.look(Scope::Power).await.unwrap().boot.unwrap().is_clear());
    let asked: Vec<String> = script.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect();
    assert!(asked.len() <= 8, "{asked:#?}");
}
