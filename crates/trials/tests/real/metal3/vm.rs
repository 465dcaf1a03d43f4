//! A BareMetalHost of a virtual machine behind sushy-tools.

use std::time::Duration;

use serde_json::json;
use testkit::{Sushy, VmLab, WebServer, build_iso, wait_for};
use trials::gate::Gate;
use trials::world::{Hurry, World};

const HOST: &str = "server-01";
/// A kernel under emulation, on a machine that has other things to do.
const BOOTED: Duration = Duration::from_mins(4);

#[tokio::test]
async fn a_virtual_machine_boots_its_live_iso_again_when_its_bare_metal_host_is_rebooted() {
    let world = World::quiet("live").await;
    world.install_metal3().await;
    let operator = world.launch_metal3(&Gate::default(), Hurry::by(4));
    let lab = VmLab::start().await;
    let depot = WebServer::start();
    let image = depot.put("live.iso", build_iso("alive", Some(&depot.guest_url("home"))));
    let boots = || depot.reports().len();

    let bmc = lab.bmc().url().replace("https://", "redfish-virtualmedia://") + &lab.system_path();
    let host = HOST_AND_SECRET
        .replace("PASSWORD", Sushy::PASSWORD)
        .replace("USER", Sushy::USER)
        .replace("ADDRESS", &bmc)
        .replace("BOOT", VmLab::MAC);
    world.apply(&host).await;
    let hardware = world.wait_for_bare_metal_host(HOST, "available").await.status.unwrap().hardware.unwrap();
    assert!(hardware.nics.iter().any(|nic| nic.mac == VmLab::MAC && nic.pxe), "{:?}", hardware.nics);
    assert_eq!(lab.state().await, "shut off", "looking at a server does nothing to it");

    let order = json!({ "online": true, "image": { "url": image, "format": "live-iso" } });
    world.patch_bare_metal_host(HOST, json!({ "spec": order })).await;
    wait_for("the image to boot", BOOTED, async || (boots() == 1).then_some(())).await;
    world.wait_for_bare_metal_host(HOST, "provisioned").await;

    // The guest ignores the request to shut down, so its power is cut.
    world.patch_bare_metal_host(HOST, json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } })).await;
    wait_for("the image to boot again", BOOTED, async || (boots() == 2).then_some(())).await;
    assert_eq!(lab.media().await.len(), 1, "it stays for the next start");

    world.patch_bare_metal_host(HOST, json!({ "spec": { "online": false, "image": null } })).await;
    world.wait_for_bare_metal_host(HOST, "available").await;
    assert_eq!((lab.state().await.as_str(), lab.media().await), ("shut off", Vec::new()));
    assert_eq!(boots(), 2);
    operator.stop().await;
}

const HOST_AND_SECRET: &str = "
apiVersion: v1
kind: Secret
metadata: {name: bmc}
stringData: {username: USER, password: PASSWORD}
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: server-01}
spec:
  online: false
  bootMACAddress: 'BOOT'
  bmc: {address: 'ADDRESS', credentialsName: bmc, disableCertificateVerification: true}
";
