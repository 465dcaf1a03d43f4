use serde_json::json;

use super::*;

fn system(uri: &str, body: serde_json::Value) -> Resource {
    Resource { uri: uri.into(), etag: None, body }
}

#[test]
fn of_several_systems_the_one_that_can_be_told_what_to_boot_is_taken() {
    let boot = json!({"BootSourceOverrideTarget": "None"});
    let host = system("/s/System_0", json!({"Id": "System_0", "Boot": boot, "SystemType": "Physical"}));
    let baseboard = system("/s/HGX_Baseboard_0", json!({"Id": "HGX_Baseboard_0", "SystemType": "Physical"}));
    let dpu = system("/s/DPU", json!({"Id": "DPU", "Boot": boot, "SystemType": "DPU"}));
    assert_eq!(only_bootable(std::slice::from_ref(&baseboard)), Some(0));
    assert_eq!(only_bootable(&[baseboard.clone(), host.clone()]), Some(1));
    assert_eq!(only_bootable(&[dpu.clone(), baseboard.clone(), host.clone()]), Some(2));
    assert_eq!(only_bootable(&[host.clone(), host]), None);
    assert_eq!(only_bootable(&[baseboard.clone(), baseboard]), None);
}

#[test]
fn a_system_is_named_by_id_uuid_or_uri_in_any_case() {
    let found = system("/redfish/v1/Systems/1", json!({"Id": "1", "UUID": "34383350-3131-584D-5133-303230393953"}));
    for name in ["1", "34383350-3131-584d-5133-303230393953", "/redfish/v1/systems/1/"] {
        assert!(is_named(&found, name), "{name}");
    }
    assert!(!is_named(&found, "2"));
}

#[test]
fn ilo_tells_its_post_state_in_an_oem_field() {
    let ilo = quirks::of_family(crate::Family::HpeIlo5);
    let state = |power: &str, post: &str| {
        progress(View(&json!({"PowerState": power, "Oem": {"Hpe": {"PostState": post}}})), ilo)
    };
    assert_eq!(state("On", "InPost"), BootProgress::InPost);
    assert_eq!(state("On", "InPostDiscoveryComplete"), BootProgress::InPost);
    assert_eq!(state("On", "FinishedPost"), BootProgress::PostFinished);
    assert_eq!(state("Off", "PowerOff"), BootProgress::NotStarted);
    assert_eq!(state("On", "Unknown"), BootProgress::Untold);
}

#[test]
fn boot_progress_follows_the_standard_and_bluefield() {
    let book = quirks::of_family(crate::Family::Generic);
    let state = |power: &str, last: &str| {
        progress(View(&json!({"PowerState": power, "BootProgress": {"LastState": last}})), book)
    };
    assert_eq!(state("On", "MemoryInitializationStarted"), BootProgress::InPost);
    assert_eq!(state("On", "OSBootStarted"), BootProgress::PostFinished);
    assert_eq!(state("On", "OSRunning"), BootProgress::OsStarted);
    assert_eq!(state("Off", "OSRunning"), BootProgress::NotStarted);
    let bluefield = json!({"PowerState": "On", "BootProgress": {"LastState": "OEM", "OemLastState": "OsIsRunning"}});
    assert_eq!(progress(View(&bluefield), book), BootProgress::OsStarted);
    assert_eq!(progress(View(&json!({"PowerState": "On"})), book), BootProgress::Untold);
}

#[test]
fn an_odd_power_state_is_unknown_not_off() {
    for body in [json!({}), json!({"PowerState": null}), json!({"PowerState": "Reset"}), json!({"PowerState": 7})] {
        assert_eq!(power_state(View(&body)), PowerState::Unknown);
    }
}
