//! RemoteConfig on virtual machines: the BMC is sushy-tools, the images are made by GRUB's and isolinux' own tools, and the system
//! that boots follows its kernel parameter.

use std::time::Duration;

use serde_json::json;
use testkit::{Firmware, Layout, VmLab, WebServer, build_fetching_iso, wait_for};
use trials::served::boot_service;
use trials::world::{World, claim, condition, state_of};

use crate::{PATIENCE, register};

const HOST: &str = "server-01";
/// A kernel under emulation, on a machine that has other things to do.
const BOOTED: Duration = Duration::from_mins(4);

#[tokio::test]
async fn a_bios_machine_boots_all_layouts_and_fetches_its_bootstrap_data() {
    boot_all_layouts("remote-bios", Firmware::Bios).await;
}

#[tokio::test]
async fn a_uefi_machine_boots_all_layouts_and_fetches_its_bootstrap_data() {
    boot_all_layouts("remote-uefi", Firmware::Uefi).await;
}

async fn boot_all_layouts(prefix: &str, firmware: Firmware) {
    let world = World::quiet(prefix).await;
    let boot = boot_service(&world);
    world.start_operator_with(world.clock(), |config| config.boot = Some(boot));
    let lab = VmLab::with(firmware).await;
    register(&world, HOST, lab.bmc(), VmLab::SYSTEM, json!({})).await;
    for layout in [Layout::Grub, Layout::IsolinuxAndFat] {
        let depot = WebServer::start();
        let image = depot.put("os.iso", build_fetching_iso(layout, &depot.guest_url("home")));
        let secret =
            format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: data}}\nstringData: {{value: '{layout:?}'}}\n");
        world.apply(&secret).await;
        let mut order = claim("me", &image);
        order["remoteConfig"] = json!({ "osFamily": "kairos" });
        order["userDataSecretRef"] = json!({ "name": "data" });
        world.patch_spec(HOST, order).await;

        let line = depot.wait_for_report("home/cmdline", BOOTED).await.body;
        assert!(line.contains(" quiet config_url=http://127.0.0.1:"), "{layout:?}: {line}");
        assert_eq!(depot.wait_for_report("home/data", BOOTED).await.body, format!("{layout:?}"));
        let is_served = |host: &api::beskar7::PhysicalHost| {
            state_of(host) == "Provisioned" && condition(host, "BootServed").1 == "BootstrapDataFetched"
        };
        world.wait_within(PATIENCE, HOST, "that it was served", is_served).await;

        let released =
            json!({ "consumerRef": null, "bootIsoSource": null, "remoteConfig": null, "userDataSecretRef": null });
        world.patch_spec(HOST, released).await;
        world.wait_within(PATIENCE, HOST, "state Available", |host| state_of(host) == "Available").await;
        wait_for("the machine to be off", PATIENCE, async || (lab.state().await == "shut off").then_some(())).await;
    }
    world.stop_operator().await;
}
