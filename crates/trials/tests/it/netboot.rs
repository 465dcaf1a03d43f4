//! Boots from the network that the boot service serves. The tests play the server, which asks as iPXE does.

use std::net::Ipv4Addr;

use api::beskar7::Beskar7Machine;
use serde_json::{Value, json};
use testkit::{WebServer, fetch_from};
use trials::machines::{host_of, told};
use trials::served::{SERVER, network_boot_service};
use trials::story::{HOST, runs};
use trials::world::{World, state_of};

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);
const IGNITION: &str = r#"{"ignition":{"version":"3.4.0"}}"#;

/// The operator, a web server with a kernel, and where the boot service is.
struct Site {
    world: World,
    depot: WebServer,
    boot: String,
}

impl Site {
    async fn start(prefix: &str) -> Self {
        let world = World::quiet(prefix).await;
        let config = network_boot_service(&world);
        let boot = config.links.entrance().replace("/ipxe/boot.ipxe", "");
        world.start_operator_with(world.clock(), |operator| {
            operator.cluster_api = false;
            operator.boot = Some(config);
        });
        let depot = WebServer::start();
        depot.put("vmlinuz", kernel());
        depot.put("initrd", "an initial RAM disk");
        Self { world, depot, boot }
    }

    fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.depot.port())
    }

    fn machine(&self, more: &Value) -> Value {
        let boot = json!({ "initrdURLs": [self.url("initrd")], "kernelParameters": "quiet" });
        let mut spec = json!({ "provisioningMode": "iPXE", "imageURL": self.url("vmlinuz"), "boot": boot });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    }

    /// What a client with this MAC address is told.
    async fn script(&self, mac: &str) -> String {
        let url = format!("{}/ipxe/{mac}/{}", self.boot, "00000000-0000-0000-0000-000000000000");
        String::from_utf8(get(SERVER, &url).await.1).unwrap()
    }

    /// The MAC address of a host, as iPXE writes it.
    async fn mac(&self, host: &str) -> String {
        let hardware = self.world.host(host).await.status.unwrap().hardware_details.unwrap().unpack();
        hardware.nics.iter().find_map(|nic| nic.mac_address.clone()).unwrap().replace(':', "-")
    }

    /// Waits until the server is told to boot its kernel, and answers the script.
    async fn until_served(&self, mac: &str) -> String {
        testkit::wait_for("the server to be told its kernel", trials::world::SOON, async || {
            Some(self.script(mac).await).filter(|script| script.contains("kernel --name"))
        })
        .await
    }
}

fn kernel() -> Vec<u8> {
    let mut kernel = vec![7; 100_000];
    kernel[0x202..0x206].copy_from_slice(b"HdrS");
    kernel
}

async fn get(from: Ipv4Addr, url: &str) -> (u16, Vec<u8>) {
    let answer = fetch_from(from, "GET", url, &[]).await.unwrap();
    (answer.status().as_u16(), answer.body().to_vec())
}

/// The URLs in a script, and the line of the kernel.
fn urls(script: &str) -> Vec<String> {
    let words = script.split([' ', '\n', ';']).filter(|word| word.starts_with("http://") && word.contains("/boot/"));
    words.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_machine_is_ready_when_its_server_has_fetched_all_and_boots_its_disk_afterwards() {
    let site = Site::start("netboot").await;
    let world = &site.world;
    let bmc = world.available_host(HOST).await;
    let mac = site.mac(HOST).await;
    assert!(site.script(&mac).await.contains("boots its disk"), "nothing is ordered for it");

    world
        .create_machine("node-01", site.machine(&json!({ "configURL": "http://c.test/node", "osFamily": "talos" })))
        .await;
    let script = site.until_served(&mac).await;
    assert!(script.contains(" quiet talos.platform=metal talos.config=http://c.test/node "), "{script}");
    assert_eq!(world.host(HOST).await.spec.network_boot.unwrap().initrd_urls, [site.url("initrd")]);
    let parts = urls(&script);
    assert_eq!(parts.len(), 2, "{script}");
    assert_eq!(get(SERVER, &parts[0]).await, (200, kernel()));
    assert!(site.script(&mac).await.contains("kernel --name"), "not all of it was fetched");
    assert_eq!(get(SERVER, &parts[1]).await, (200, b"an initial RAM disk".to_vec()));
    world.wait_for_ready("node-01").await;
    let served = world.host(HOST).await.status.unwrap();
    let served = served.conditions.iter().find(|condition| condition.type_ == "BootServed").unwrap();
    assert_eq!(served.reason, "NetworkBootServed");
    assert!(
        ["asked at ", ", kernel at ", ", initrd-0 at "].iter().all(|said| served.message.contains(said)),
        "{served:?}"
    );
    testkit::wait_for("the next boot to be the disk's", trials::world::SOON, async || {
        site.script(&mac).await.contains("boots its disk").then_some(())
    })
    .await;
    assert_eq!(bmc.first().boots, 1);

    world.delete_machine("node-01").await;
    world.wait_for_no_machine("node-01").await;
    let host = world.wait_for_state(HOST, "Available").await;
    assert_eq!(host.spec.network_boot, None);
    assert_eq!(get(SERVER, &parts[0]).await.0, 404, "a ticket ends with the claim");
    world.wait_for_no_session().await;
    world.stop_operator().await;
}

#[tokio::test]
async fn bootstrap_data_goes_to_the_server_that_was_started_for_it_and_to_one_address() {
    let site = Site::start("netboot-data").await;
    let world = &site.world;
    world.available_host(HOST).await;
    let mac = site.mac(HOST).await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "data" },
        "stringData": { "value": IGNITION, "format": "ignition" },
    });
    world.apply(&secret.to_string()).await;
    let order = json!({
        "consumerRef": { "name": "me" },
        "networkBoot": { "protocol": "PXE", "imageURL": site.url("vmlinuz"), "format": "Kernel" },
        "userDataSecretRef": { "name": "data" },
    });
    world.patch_spec(HOST, order).await;
    let script = site.until_served(&mac).await;
    let config = script.split("ignition.config.url=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(get(SERVER, config).await, (200, IGNITION.as_bytes().to_vec()));
    assert_eq!(get(STRANGER, config).await.0, 404);
    world.wait_for_state(HOST, "Provisioned").await;
    world.stop_operator().await;
}

#[tokio::test]
async fn what_cannot_be_booted_is_told_before_a_server_is_claimed() {
    let site = Site::start("netboot-bad").await;
    let world = &site.world;
    let bmc = world.available_host(HOST).await;
    site.depot.put("page", "<html>Not found</html>".repeat(100));
    let cases = [
        ("gone", json!({ "imageURL": site.url("gone") }), "IsoNotFound", "404"),
        (
            "page",
            json!({ "imageURL": site.url("page") }),
            "BootImageInvalid",
            "sent a web page in place of a Linux kernel",
        ),
        (
            "initrd",
            json!({ "boot": { "initrdURLs": [site.url("page")] } }),
            "BootImageInvalid",
            "in place of an initial RAM disk",
        ),
        ("script", json!({ "boot": { "format": "Script" } }), "BootImageInvalid", "set format to Kernel"),
    ];
    for (name, more, reason, sentence) in cases {
        world.create_machine(name, site.machine(&more)).await;
        let is_told = |machine: &Beskar7Machine| told(machine, "InfrastructureReady").1 == reason;
        let machine = world.wait_for_machine(name, reason, is_told).await;
        let message = told(&machine, "InfrastructureReady").2;
        assert!(message.contains(sentence), "{message}");
        assert_eq!(host_of(&machine), None);
        world.delete_machine(name).await;
        world.wait_for_no_machine(name).await;
    }
    assert_eq!(state_of(&world.host(HOST).await), "Available");
    assert_eq!((bmc.first().boots, runs(&bmc)), (0, None));

    // What the order itself does not say is told by the host, which does nothing.
    let order = json!({
        "consumerRef": { "name": "me" },
        "networkBoot": { "protocol": "PXE", "imageURL": site.url("vmlinuz"), "format": "Kernel", "configURL": "http://c.test/x" },
    });
    world.patch_spec(HOST, order).await;
    world
        .wait_until(HOST, "the order to be refused", |host| {
            serde_json::to_string(&host.status).unwrap().contains("spec.networkBoot.configURL cannot be handed over")
        })
        .await;
    assert_eq!(bmc.first().boots, 0);
    world.stop_operator().await;
}

#[tokio::test]
async fn nobody_else_is_told_anything_and_a_service_without_network_boot_says_what_to_do() {
    let site = Site::start("netboot-nobody").await;
    site.world.available_host(HOST).await;
    for mac in ["52-54-00-00-00-01", "", "..", "$(reboot)", "ff-ff-ff-ff-ff-ff"] {
        let script = site.script(mac).await;
        assert!(!script.contains("kernel") && !script.contains("chain"), "{mac:?}: {script}");
    }
    site.world.stop_operator().await;
    // The operator is started without --network-boot.
    site.world.start_serving();
    site.world.create_machine("node-01", site.machine(&json!({}))).await;
    let is_told = |machine: &Beskar7Machine| told(machine, "InfrastructureReady").2.contains("--network-boot");
    site.world.wait_for_machine("node-01", "what to do", is_told).await;
    site.world.stop_operator().await;
}
