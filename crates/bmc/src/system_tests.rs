use serde_json::json;

use super::*;

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
    assert_eq!(state("On", "Unknown"), BootProgress::NotReported);
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
    assert_eq!(progress(View(&json!({"PowerState": "On"})), book), BootProgress::NotReported);
}

#[test]
fn an_odd_power_state_is_unknown_not_off() {
    for body in [json!({}), json!({"PowerState": null}), json!({"PowerState": "Reset"}), json!({"PowerState": 7})] {
        assert_eq!(power_state(View(&body)), PowerState::Unknown);
    }
}
