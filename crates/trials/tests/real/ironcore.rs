//! Servers behind a BMC and a virtual machine that we did not write.

use std::sync::Arc;
use std::time::Duration;

use api::ironcore::ServerBootConfiguration;
use controllers::dialect::Settings;
use controllers::ironcore::MacPrefixes;
use serde_json::{Value, json};
use testkit::{Cluster, MockBmc, Sushy, VmLab, build_network_boot, wait_for};
use trials::ironcore::{Objects as _, PREFIXES, condition_of, ironcore};
use trials::world::{Hurry, SOON, World};

/// A kernel under emulation, on a machine that has other things to do.
const BOOTED: Duration = Duration::from_mins(4);

/// A cluster of one's own, because Servers have no namespace. It ends with the process, as the shared one does.
pub(crate) async fn quiet_world(prefix: &str) -> World {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
    let world = World::quiet_on(cluster, prefix).await;
    world.install_ironcore().await;
    world
}

#[tokio::test]
async fn metal_operators_own_mock_bmc_is_discovered_claimed_powered_and_released() {
    let world = quiet_world("mock").await;
    let mock = MockBmc::start().await;
    let prefixes = PREFIXES
        .replace("port: 443", &format!("port: {}\n  protocolScheme: http", mock.port()))
        .replace("admin", "foo");
    let mut settings = Settings::default();
    settings.ironcore.prefixes = MacPrefixes::parse(&prefixes).unwrap();
    // Its server runs at first.
    settings.ironcore.enforce_first_boot = true;
    world.start_operator_with(Hurry::by(4), |config| {
        ironcore(config);
        config.settings = Arc::new(settings);
    });
    assert_eq!(mock.system().await["PowerState"], "On");
    let spec = json!({ "macAddress": "23:11:8A:33:CF:EA", "ip": "127.0.0.1" });
    world.endpoints().make(json!({ "name": "mock" }), json!({ "spec": spec })).await;

    let server = world.until_server("mock-system-0", "Available").await;
    assert_eq!(mock.system().await["PowerState"], "Off");
    assert_eq!(server["spec"]["systemUUID"], MockBmc::UUID);
    let status = &server["status"];
    assert_eq!(
        (&status["manufacturer"], &status["model"], &status["serialNumber"], &status["powerState"]),
        (&json!("Contoso"), &json!("3500"), &json!("437XR1138R2"), &json!("Off"))
    );
    assert!(!status["processors"].as_array().unwrap().is_empty(), "{status:#}");
    let bmc = world.bmc_objects().show("mock").await;
    assert_eq!(condition_of(&bmc, "Ready")["reason"], "Connected");
    assert_eq!((&bmc["status"]["state"], &bmc["status"]["ip"]), (&json!("Enabled"), &json!("127.0.0.1")));

    world.claim_server("node", json!({})).await;
    world.provide("node", "Ready").await;
    // It says that a system runs, and never uses up the order to boot from the network: that is told, and nothing more is done.
    let claim = world.until_ready(world.server_claims(), "node", "ServerFaulty").await;
    let told = condition_of(&claim, "Ready")["message"].as_str().unwrap().to_owned();
    assert!(told.contains("still shows the boot override as unused"), "{told}");
    assert_eq!(claim["status"]["phase"], "Bound");
    let system = mock.system().await;
    assert_eq!((&system["PowerState"], &system["Boot"]["BootSourceOverrideTarget"]), (&json!("On"), &json!("Pxe")));

    world.server_claims().remove("node").await;
    world.until_gone(world.server_claims(), "node").await;
    world.until_server("mock-system-0", "Available").await;
    let system = mock.system().await;
    assert_eq!(
        (&system["PowerState"], &system["Boot"]["BootSourceOverrideEnabled"]),
        (&json!("Off"), &json!("Disabled"))
    );
    world.stop_operator().await;
}

#[tokio::test]
async fn a_claimed_virtual_machine_boots_what_the_sites_boot_provider_serves_and_is_off_after_its_release() {
    let world = quiet_world("netboot").await;
    let lab = VmLab::with_network_boot().await;
    let system = build_network_boot();
    lab.publish("kernel", &system.kernel);
    lab.publish("initrd", &system.initrd);
    lab.publish("boot.ipxe", format!("#!ipxe\nchain {}/ipxe/${{uuid}}\n", VmLab::SITE));
    world.start_operator_with(Hurry::by(4), ironcore);

    let data = json!({ "stringData": { "username": Sushy::USER, "password": Sushy::PASSWORD } });
    world.bmc_secrets().make(json!({ "name": "vm" }), data).await;
    let trust = format!("sha256:{}", lab.bmc().fingerprint());
    let port: u16 = lab.bmc().url().rsplit(':').next().unwrap().parse().unwrap();
    let spec = json!({
        "access": { "ip": "127.0.0.1" },
        "bmcSecretRef": { "name": "vm" },
        "protocol": { "name": "Redfish", "port": port, "scheme": "https" },
    });
    let metadata = json!({ "name": "vm", "annotations": { "beskar7.io/bmc-trust": trust } });
    world.bmc_objects().make(metadata, json!({ "spec": spec })).await;
    let server = world.until_server("vm-system-0", "Available").await;
    assert_eq!(server["spec"]["systemUUID"], VmLab::SYSTEM);
    assert_eq!(server["status"]["networkInterfaces"][0]["macAddress"], VmLab::MAC);
    assert_eq!(lab.state().await, "shut off", "looking at a server does nothing to it");

    let ignition = r#"{"ignition":{"version":"3.4.0"}}"#;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "node" }, "stringData": { "ignition": ignition } });
    world.apply(&secret.to_string()).await;
    world.claim_server("node", json!({ "image": "site/os:1", "ignitionSecretRef": { "name": "node" } })).await;
    provide(&world, &lab, "node", ignition).await;

    let url = format!("ignition.config.url={}/ignition/{}", VmLab::SITE, VmLab::SYSTEM);
    lab.wait_for_serial(&format!("{url} image=site/os:1"), BOOTED).await;
    lab.wait_for_serial(&format!("ignition: {ignition}"), BOOTED).await;
    assert_eq!(lab.state().await, "running");
    world.until_ready(world.server_claims(), "node", "ServerRuns").await;

    // The guest ignores the request to shut down, so its power is cut.
    world.server_claims().remove("node").await;
    world.until_gone(world.server_claims(), "node").await;
    world.until_server("vm-system-0", "Available").await;
    wait_for("the machine to be off", SOON, async || (lab.state().await == "shut off").then_some(())).await;
    world.stop_operator().await;
}

/// As a boot provider does: what the server is to boot is there when the boot configuration is called ready.
async fn provide(world: &World, lab: &VmLab, name: &str, ignition: &str) {
    let configurations: kube::Api<ServerBootConfiguration> = world.boot_configurations();
    let is_pending = |shown: &Value| shown["status"]["state"] == "Pending";
    let wanted = world.until(configurations.clone(), name, "Pending", is_pending).await;
    let server = world.servers().show(wanted["spec"]["serverRef"]["name"].as_str().unwrap()).await;
    let uuid = server["spec"]["systemUUID"].as_str().unwrap();
    let image = wanted["spec"]["image"].as_str().unwrap();
    lab.publish(&format!("ignition/{uuid}"), ignition);
    let site = VmLab::SITE;
    lab.publish(
        &format!("ipxe/{uuid}"),
        format!(
            "#!ipxe\nkernel {site}/kernel initrd=initrd console=ttyS0 quiet ignition.config.url={site}/ignition/{uuid} image={image}\ninitrd {site}/initrd\nboot\n"
        ),
    );
    configurations.edit_status(name, json!({ "state": "Ready" })).await;
}
