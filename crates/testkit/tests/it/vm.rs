use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use testkit::{Sushy, VmLab, WebServer, build_iso};

use crate::redfish::call;

async fn act(lab: &VmLab, method: Method, path: &str, body: Value) {
    let (status, answer) = call(lab.bmc(), Sushy::PASSWORD, method.clone(), path, Some(body)).await;
    assert!(status.is_success(), "{method} {path}: {status} {answer}");
}

/// About ten seconds, most of it in the firmware and the kernel of the guest.
#[tokio::test]
async fn a_server_boots_the_iso_that_redfish_inserted() {
    let lab = VmLab::start().await;
    let depot = WebServer::start();
    let marker = format!("marker-{:016x}", fastrand::u64(..));
    let image = depot.put("boot.iso", build_iso(&marker, Some(&depot.guest_url("home"))));
    assert_eq!(lab.state().await, "shut off");

    let system = lab.system_path();
    let insert = format!("{system}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia");
    act(&lab, Method::POST, &insert, json!({"Image": image})).await;
    let boot = json!({"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}});
    act(&lab, Method::PATCH, &system, boot).await;
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    act(&lab, Method::POST, &reset, json!({"ResetType": "On"})).await;

    lab.wait_for_serial(&format!("booted: {marker}"), Duration::from_mins(5)).await;
    let report = depot.wait_for_report("home", Duration::from_mins(2)).await;
    assert_eq!(report.body, marker);
    assert_eq!(lab.state().await, "running");

    act(&lab, Method::POST, &reset, json!({"ResetType": "ForceOff"})).await;
    assert_eq!(lab.state().await, "shut off");
}
