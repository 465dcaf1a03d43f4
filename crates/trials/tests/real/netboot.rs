//! Machines that boot from the network what our own boot service serves, with no other boot server.

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use api::beskar7::{Beskar7Machine, PhysicalHost};
use boot::dhcp::Sockets;
use boot::fetch::{Fetcher, Guard, Patience};
use boot::links::Links;
use boot::neighbours::{self, Neighbours};
use boot::tftp;
use bytes::Bytes;
use controllers::depot::{BootConfig, DhcpConfig, NetworkConfig, Reservations, Reserves};
use kube::Api;
use netboot::dhcp::UEFI_LOADER;
use serde_json::json;
use sim::qemu::{Bridge, CardRom, Lab, MachineSpec, Machines, Network};
use sim::{Fleet, FleetSpec, Mode, Parts, PowerState};
use tempfile::TempDir;
use testkit::{WebServer, build_network_boot, part, wait_for, wait_ok};
use tokio::process::Child;
use trials::world::{SOON, World, state_of};

/// A kernel under emulation, on a machine that has other things to do.
const BOOTED: Duration = Duration::from_mins(4);
/// Where Debian's package has iPXE.
const IPXE: &str = "/usr/lib/ipxe";

/// A server on a network with a DHCP server of the site, and the operator with its boot service on the same network.
struct Rack {
    world: World,
    machines: Machines,
    fleet: Fleet,
    kernel: String,
    initrd: String,
    _images: WebServer,
    dhcp: Child,
    _lab: Lab,
    _folder: TempDir,
}

/// Where the DHCP server of the site is, if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    /// On another machine, which knows nothing of boots.
    Elsewhere,
    /// On ours, where it has port 67. It says that there is something to boot.
    Here,
    /// On ours, and it sends iPXE to our scripts by itself: we answer no DHCP.
    DoesItAll,
    /// There is none: our own gives addresses. Another machine has the first one of them, and would like another.
    None,
}

/// Addresses for everybody. The last two options spare iPXE its long wait for an IPv6 router.
const DNSMASQ: &str = "exec dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file --user=root --port=0 --bind-interfaces \
    --no-ping --dhcp-authoritative --dhcp-leasefile=/dev/null --dhcp-range=10.77.0.100,10.77.0.199,255.255.255.0,1h \
    --enable-ra --dhcp-range=fd77::,ra-only,64";

/// Asks for an address until it gets one.
const UDHCPC: &str = "udhcpc -f -q -i site -t 3 -T 1 -A 1 -s /bin/true";

impl Rack {
    async fn with(prefix: &str, firmware: Mode, rom: CardRom, site: Site) -> Self {
        let lab = Lab::open(1).unwrap();
        let Network::Bridge(bridge) = lab.network().clone() else { panic!("{:?}", lab.network().limits()) };
        let dhcp = start_site(&lab, site).await;
        let world = World::quiet(prefix).await;
        let key_namespace = world.namespace.clone();
        let answers = site != Site::DoesItAll;
        let open = move || {
            let listener = TcpListener::bind((bridge.address, 8082)).unwrap();
            let sockets = answers.then(|| Sockets::open(Bridge::INTERFACE, site != Site::None).unwrap());
            let reserves = (site == Site::None).then(|| reserves(bridge));
            (listener, sockets, reserves, UdpSocket::bind((bridge.address, 69)).unwrap())
        };
        let (listener, sockets, reserves, requests) = lab.inside(open).unwrap();
        let inside = lab.clone();
        let tftp = tftp::Sockets::opened_by(requests, move || inside.bind_udp((bridge.address, 0).into()));
        if let Some(sockets) = &sockets {
            assert_eq!((sockets.address(), sockets.shares_machine()), (bridge.address, site == Site::Here));
        }
        let loader = std::fs::read(format!("{IPXE}/{UEFI_LOADER}"))
            .unwrap_or_else(|error| panic!("iPXE: {error}: run `make setup`"));
        let network = NetworkConfig {
            files: Arc::new([(UEFI_LOADER.to_owned(), Bytes::from(loader))].into()),
            dhcp: sockets.map(|sockets| DhcpConfig { sockets: Arc::new(vec![sockets]), reserves }),
            tftp: vec![tftp],
        };
        let guard = Guard::allowing(["127.0.0.0/8".parse().unwrap()]);
        let config = BootConfig {
            links: Links::new(&format!("http://{}:8082", bridge.address)).unwrap(),
            listener: Arc::new(listener),
            tls: None,
            fetcher: Fetcher::new(guard, None, Patience::default()).unwrap(),
            network: Some(network),
            key_namespace,
        };
        world.start_operator_with(world.clock(), |operator| {
            operator.cluster_api = false;
            operator.boot = Some(config);
        });

        let folder = tempfile::Builder::new().prefix("netboot-").tempdir().unwrap();
        let fleet = Fleet::new(&FleetSpec { prefix: prefix.to_owned(), parts: Parts::Machine, ..FleetSpec::default() });
        let machines = Machines::start(&fleet, &lab, MachineSpec { firmware, rom }, folder.path()).unwrap();
        let bmc = &fleet.bmcs()[0];
        world.add_bmc(bmc.name(), bmc.clone());
        world.create_secret("bmc", &bmc.credentials().username, &bmc.credentials().password).await;
        world.create_host(bmc.name(), json!({})).await;
        world.wait_for_state(bmc.name(), "Available").await;
        let images = WebServer::start();
        let system = build_network_boot();
        let (kernel, initrd) = (images.put("vmlinuz", system.kernel), images.put("initrd", system.initrd));
        Self { world, machines, fleet, kernel, initrd, _images: images, dhcp, _lab: lab, _folder: folder }
    }

    /// Orders the kernel by hand.
    async fn order(&self, protocol: &str) {
        let network = json!({
            "protocol": protocol,
            "imageURL": self.kernel,
            "format": "Kernel",
            "initrdURLs": [self.initrd],
            "kernelParameters": "console=ttyS0 quiet marker=its-own",
        });
        self.world.patch_spec(self.host(), json!({ "consumerRef": { "name": "me" }, "networkBoot": network })).await;
    }

    fn host(&self) -> &str {
        self.fleet.bmcs()[0].name()
    }

    async fn wait_for_serial(&self, text: &str) {
        wait_ok(&format!("{text:?} on the serial console"), BOOTED, async || {
            let serial = self.machines.serial(0);
            if serial.contains(text) {
                return Ok(());
            }
            let host = self.world.host(self.host()).await;
            let last: String = serial.chars().rev().take(1500).collect::<Vec<_>>().into_iter().rev().collect();
            Err(format!("{}: {:?}\n{last}", state_of(&host), self.world.sessions().await))
        })
        .await;
    }

    async fn until(&self, state: &str) -> PhysicalHost {
        self.world.wait_within(BOOTED, self.host(), state, |host| state_of(host) == state).await
    }

    fn power(&self) -> PowerState {
        self.fleet.bmcs()[0].first().power()
    }

    /// The names of the steps that were recorded of its boot.
    async fn steps(&self) -> Vec<String> {
        let sessions = self.world.sessions().await;
        sessions.into_iter().flat_map(|session| session.spec.steps).map(|step| step.step).collect()
    }
}

/// Inside the lab: the addresses that our own DHCP server gives.
fn reserves(bridge: Bridge) -> Reserves {
    let mask = neighbours::mask(Bridge::INTERFACE, bridge.address).unwrap().unwrap();
    let range = ([10, 77, 0, 100].into(), [10, 77, 0, 199].into());
    Reserves {
        reservations: Reservations::new(range, bridge.address, mask).unwrap(),
        neighbours: Arc::new(Neighbours::open(Bridge::INTERFACE).unwrap()),
    }
}

async fn start_site(lab: &Lab, site: Site) -> Child {
    let run = |program: &str, script: &str| {
        let script = script.to_owned();
        let words = if program == "unshare" { vec!["--net", "--", "sh", "-ec"] } else { vec!["-ec"] };
        lab.run_in(program, move |command| {
            command.args(words).arg(script).stderr(std::process::Stdio::null());
        })
        .unwrap()
    };
    match site {
        Site::DoesItAll => run(
            "sh",
            &format!(
                "{DNSMASQ} --interface={} --dhcp-match=set:ipxe,175 --dhcp-boot=tag:ipxe,http://10.77.0.1:8082/ipxe/boot.ipxe",
                Bridge::INTERFACE
            ),
        ),
        Site::Here => run("sh", &format!("{DNSMASQ} --interface={} --dhcp-option=60,PXEClient", Bridge::INTERFACE)),
        Site::Elsewhere | Site::None => {
            let (address, program) = match site {
                Site::None => ("10.77.0.100", format!("exec {} {UDHCPC}", part("vm").join("busybox").display())),
                _ => ("10.77.0.2", format!("{DNSMASQ} --interface=site")),
            };
            let server = run(
                "unshare",
                &format!(
                    "until ip link show site 2>/dev/null; do sleep 0.1; done; ip link set lo up; ip addr add {address}/24 dev site
                     ip addr add fd77::2/64 dev site nodad; ip link set site up; {program}"
                ),
            );
            let pid = server.id().unwrap();
            let mut cable = run(
                "sh",
                &format!(
                    "until [ \"$(readlink /proc/{pid}/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do sleep 0.1; done
                     ip link add cable type veth peer name site netns {pid}; ip link set cable master {} up",
                    Bridge::INTERFACE
                ),
            );
            assert!(cable.wait().await.unwrap().success());
            server
        }
    }
}

#[tokio::test]
async fn a_machine_boots_its_kernel_from_the_network_beside_the_sites_dhcp_server_and_is_off_after_its_release() {
    let rack = Rack::with("bios", Mode::Legacy, CardRom::Ipxe, Site::Elsewhere).await;
    let machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "Beskar7Machine",
        "metadata": { "name": "node" },
        "spec": {
            "provisioningMode": "iPXE",
            "bootMode": "Legacy",
            "imageURL": rack.kernel,
            "boot": { "initrdURLs": [rack.initrd], "kernelParameters": "console=ttyS0 quiet marker=its-own" },
        },
    });
    rack.world.apply(&machine.to_string()).await;
    rack.wait_for_serial("marker=its-own").await;
    let host = rack.until("Provisioned").await;
    assert_eq!(rack.power(), PowerState::On);
    assert!(serde_json::to_string(&host.status).unwrap().contains("fetched what it is to boot from the network"));
    assert_eq!(rack.steps().await, ["offered", "asked", "kernel", "initrd-0"]);

    let machines: Api<Beskar7Machine> = Api::namespaced(rack.world.admin(), &rack.world.namespace);
    machines.delete("node", &kube::api::DeleteParams::default()).await.unwrap();
    rack.until("Available").await;
    wait_for("the machine to be off", SOON, async || (rack.power() == PowerState::Off).then_some(())).await;
    rack.world.wait_for_no_session().await;
    rack.world.stop_operator().await;
}

#[tokio::test]
async fn uefi_loads_ipxe_by_tftp_where_the_sites_dhcp_server_is_on_our_machine_and_boots_its_disk_afterwards() {
    let rack = Rack::with("uefi", Mode::Uefi, CardRom::Firmware, Site::Here).await;
    let ignition = r#"{"ignition":{"version":"3.4.0"}}"#;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "data" },
        "stringData": { "value": ignition, "format": "ignition" },
    });
    rack.world.apply(&secret.to_string()).await;
    rack.world
        .patch_spec(
            rack.host(),
            json!({
                "consumerRef": { "name": "me" },
                "bootMode": "UEFI",
                "networkBoot": {
                    "protocol": "PXE",
                    "imageURL": rack.kernel,
                    "format": "Kernel",
                    "initrdURLs": [rack.initrd],
                    "kernelParameters": "console=ttyS0 quiet",
                },
                "userDataSecretRef": { "name": "data" },
            }),
        )
        .await;
    rack.wait_for_serial(&format!("ignition: {ignition}")).await;
    rack.until("Provisioned").await;
    // The whole machine restarts, as after an installation, and asks the network again: it is to boot what is on its disk.
    let before = rack.steps().await;
    let bmc = &rack.fleet.bmcs()[0];
    assert!(bmc.by_hand(&bmc.first().id, sim::ResetType::ForceRestart));
    // Its firmware says that nobody tells it what to load.
    rack.wait_for_serial("PXE-E").await;
    assert_eq!(rack.steps().await, before, "nothing was handed out again");
    rack.world
        .patch_spec(rack.host(), json!({ "consumerRef": null, "networkBoot": null, "userDataSecretRef": null }))
        .await;
    rack.until("Available").await;
    rack.world.stop_operator().await;
}

#[tokio::test]
async fn uefi_boots_by_http_beside_the_sites_dhcp_server() {
    let rack = Rack::with("uefi-http", Mode::Uefi, CardRom::Firmware, Site::Elsewhere).await;
    rack.order("HTTP").await;
    rack.wait_for_serial("marker=its-own").await;
    rack.until("Provisioned").await;
    assert_eq!(rack.steps().await, ["offered", "asked", "kernel", "initrd-0"]);
    rack.world.stop_operator().await;
}

#[tokio::test]
async fn a_dhcp_server_of_the_site_that_does_it_all_sends_machines_to_the_boot_service() {
    let rack = Rack::with("does-all", Mode::Legacy, CardRom::Ipxe, Site::DoesItAll).await;
    rack.order("PXE").await;
    rack.wait_for_serial("marker=its-own").await;
    rack.until("Provisioned").await;
    assert_eq!(rack.steps().await, ["asked", "kernel", "initrd-0"]);
    rack.world.stop_operator().await;
}

#[tokio::test]
async fn a_known_host_gets_a_free_address_and_boots_where_the_site_has_no_dhcp_server_and_nobody_else_gets_one() {
    let mut rack = Rack::with("reserved", Mode::Uefi, CardRom::Firmware, Site::None).await;
    // The first address is in use: that was found out by ARP.
    let reserved = Some("10.77.0.101");
    let has_address = |host: &PhysicalHost| host.status.as_ref().unwrap().boot_address.as_deref() == reserved;
    rack.world.wait_within(SOON, rack.host(), "its address", has_address).await;
    let order = json!({
        "consumerRef": { "name": "me" },
        "bootMode": "UEFI",
        "networkBoot": {
            "protocol": "PXE",
            "imageURL": rack.kernel,
            "format": "Kernel",
            "initrdURLs": [rack.initrd],
            "kernelParameters": "console=ttyS0 quiet marker=reserved",
        },
    });
    rack.world.patch_spec(rack.host(), order).await;
    rack.wait_for_serial("marker=reserved").await;
    let host = rack.until("Provisioned").await;
    assert!(has_address(&host), "it keeps it");
    let sessions = rack.world.sessions().await;
    let fetched = sessions.iter().flat_map(|session| &session.spec.steps).find(|step| step.step == "kernel").unwrap();
    assert_eq!(Some(fetched.by.as_str()), reserved);
    assert!(rack.dhcp.try_wait().unwrap().is_none(), "the stranger still asks");
    rack.world.patch_spec(rack.host(), json!({ "consumerRef": null, "networkBoot": null })).await;
    let host = rack.until("Available").await;
    assert!(has_address(&host), "an address is the host's for as long as there is the host");
    rack.world.stop_operator().await;
}
