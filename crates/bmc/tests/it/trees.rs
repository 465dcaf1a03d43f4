//! Trees of vendors of which there is no recording, small but with the facts that matter: the right server is chosen, its
//! inventory is right, and it costs few requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bmc::{Address, Bmc, Client, Credentials, Endpoint, InProcess, Options, RedfishSystem, SystemChoice};
use engine::hardware::{Hardware, Part};
use engine::server::{BootMode, BootOverride, Scope, Seen};
use serde_json::{Value, json};
use sim::{BmcSpec, Tree};

use crate::script::{Asked, Reply, Script};

const ROOT: &str = "/redfish/v1";

/// A tree that grows.
struct Grown(BTreeMap<String, Value>);

fn link(uri: &str) -> Value {
    json!({"@odata.id": uri})
}

impl Grown {
    /// A service of this vendor that announces what it can expand.
    fn new(root: Value, expand: Value) -> Self {
        let mut body = json!({"@odata.id": "/redfish/v1/", "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot", "Id": "RootService",
            "Name": "Root", "RedfishVersion": "1.15.0", "Systems": link("/redfish/v1/Systems"),
            "Managers": link("/redfish/v1/Managers"), "Chassis": link("/redfish/v1/Chassis"),
            "UpdateService": link("/redfish/v1/UpdateService"),
            "SessionService": link("/redfish/v1/SessionService"),
            "Links": {"Sessions": link("/redfish/v1/SessionService/Sessions")},
            "ProtocolFeaturesSupported": {}});
        body["ProtocolFeaturesSupported"]["ExpandQuery"] = expand;
        merge(&mut body, root);
        let mut tree = Self(BTreeMap::from([(ROOT.to_owned(), body)]));
        tree.put(
            "/redfish/v1/UpdateService",
            json!({"FirmwareInventory": link("/redfish/v1/UpdateService/FirmwareInventory")}),
        );
        tree.put("/redfish/v1/SessionService", json!({"Sessions": link("/redfish/v1/SessionService/Sessions")}));
        tree.collection("/redfish/v1/SessionService/Sessions", []);
        tree.collection("/redfish/v1/UpdateService/FirmwareInventory", []);
        tree
    }

    fn put(&mut self, uri: &str, body: Value) {
        let id = uri.rsplit('/').next().unwrap_or_default();
        let mut whole = json!({"@odata.id": uri, "Id": id, "Name": id});
        merge(&mut whole, body);
        self.0.insert(uri.to_owned(), whole);
    }

    fn collection(&mut self, uri: &str, members: impl IntoIterator<Item = (String, Value)>) {
        let mut links = Vec::new();
        for (id, body) in members {
            let member = format!("{uri}/{id}");
            links.push(link(&member));
            self.put(&member, body);
        }
        self.0.insert(
            uri.to_owned(),
            json!({"@odata.id": uri, "Name": "Collection", "Members@odata.count": links.len(), "Members": links}),
        );
    }

    /// Looks at it as a client without prior knowledge, and counts what that costs.
    async fn look(self, scope: Scope) -> (Seen, u64) {
        let tree = Arc::new(Tree::from_resources(self.0).unwrap());
        let service = sim::Bmc::replay(tree.clone(), BmcSpec::new(tree.personality()));
        let endpoint = Endpoint {
            address: Address::parse("https://10.0.0.1").unwrap(),
            credentials: Credentials::new("admin", "password"),
            family: None,
        };
        let client = Client::new(endpoint, Arc::new(InProcess::new(service.clone())), Options::default());
        let seen = RedfishSystem::new(client.clone(), SystemChoice::Only).look(scope).await.unwrap();
        let requests = service.counters().total();
        client.close().await;
        (seen, requests)
    }

    async fn inventory(self) -> (Hardware, u64) {
        let (seen, requests) = self.look(Scope::Inventory).await;
        (*seen.hardware.unwrap(), requests)
    }

    fn script(self, answer: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Script {
        Script::with(|tree| *tree = self.0, answer)
    }
}

fn merge(into: &mut Value, from: Value) {
    if let Value::Object(fields) = from {
        fields.into_iter().for_each(|(name, value)| into[name] = value);
    }
}

fn numbered(count: usize, name: &str, body: impl Fn(usize) -> Value) -> Vec<(String, Value)> {
    (1..=count).map(|at| (format!("{name}{at}"), body(at))).collect()
}

fn macs(hardware: &Hardware) -> Vec<&str> {
    hardware.nics.iter().filter_map(|nic| nic.mac.as_deref()).collect()
}

fn everything(levels: u8) -> Value {
    json!({"ExpandAll": true, "Levels": true, "Links": true, "MaxLevels": levels, "NoLinks": true})
}

fn boot() -> Value {
    json!({"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None", "BootSourceOverrideMode": "UEFI",
        "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Cd", "Hdd"]})
}

/// ThinkSystem with XCC: GPUs among the processors, drives of the chassis, pending firmware, and the way to itself among the NICs.
fn lenovo() -> Grown {
    let mut tree = Grown::new(json!({"Vendor": "Lenovo", "Oem": {"Lenovo": {}}}), everything(2));
    let system = "/redfish/v1/Systems/1";
    tree.collection("/redfish/v1/Systems", [("1".to_owned(), json!({
        "Manufacturer": "Lenovo", "Model": "ThinkSystem SR670 V2", "SerialNumber": "J100ABCD", "SKU": "7Z22CTO1WW",
        "UUID": "4C4C4544-0035-3410-8050-C6C04F314733", "PowerState": "On", "SystemType": "Physical", "Boot": boot(),
        "ProcessorSummary": {"Count": 10}, "MemorySummary": {"TotalSystemMemoryGiB": 1024},
        "@Redfish.Settings": {"SettingsObject": link("/redfish/v1/Systems/1/Pending")},
        "Processors": link(&format!("{system}/Processors")), "Memory": link(&format!("{system}/Memory")),
        "Storage": link(&format!("{system}/Storage")), "EthernetInterfaces": link(&format!("{system}/EthernetInterfaces")),
        "Links": {"Chassis": [link("/redfish/v1/Chassis/1")], "ManagedBy": [link("/redfish/v1/Managers/1")]},
        "Actions": {"#ComputerSystem.Reset": {"target": format!("{system}/Actions/ComputerSystem.Reset"),
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff"]}}}))]);
    tree.put("/redfish/v1/Systems/1/Pending", json!({}));
    tree.collection(
        "/redfish/v1/Managers",
        [(
            "1".to_owned(),
            json!({"ManagerType": "BMC", "Model": "Lenovo XClarity Controller",
        "FirmwareVersion": "AFBT26O 2.50 2022-11-01"}),
        )],
    );
    tree.collection(&format!("{system}/Processors"), numbered(10, "", |at| match at {
        1 | 2 => json!({"ProcessorType": "CPU", "Manufacturer": "Intel(R) Corporation", "Model": "Intel(R) Xeon(R) Platinum 8358",
            "InstructionSet": "x86-64", "TotalCores": 32, "TotalThreads": 64, "Socket": at}),
        3..=6 => json!({"ProcessorType": "GPU", "Manufacturer": "NVIDIA", "Model": "A100-SXM4-80GB", "TotalCores": null}),
        _ => json!({"Manufacturer": "NVIDIA", "Model": "A100-SXM4-80GB"}),
    }));
    tree.collection(&format!("{system}/Memory"), numbered(32, "", |at| {
        if at % 2 == 0 {
            json!({"CapacityMiB": 0, "Status": {"State": "Absent"}})
        } else {
            json!({"CapacityMiB": 65536, "MemoryDeviceType": "DDR4", "Status": {"State": "Enabled", "Health": "OK"}})
        }
    }));
    for storage in 1..=2 {
        let drives: Vec<Value> =
            (1..=2).map(|at| link(&format!("/redfish/v1/Chassis/1/Drives/Disk.{storage}{at}"))).collect();
        tree.put(&format!("{system}/Storage/RAID_Slot{storage}"), json!({"Drives": drives}));
    }
    let storages = json!({"@odata.id": format!("{system}/Storage"), "Name": "Storages",
        "Members": [link(&format!("{system}/Storage/RAID_Slot1")), link(&format!("{system}/Storage/RAID_Slot2"))]});
    tree.0.insert(format!("{system}/Storage"), storages);
    for id in ["11", "12", "21", "22"] {
        tree.put(
            &format!("/redfish/v1/Chassis/1/Drives/Disk.{id}"),
            json!({"CapacityBytes": 960_197_124_096_u64, "MediaType": "SSD",
            "Protocol": "NVMe", "SerialNumber": format!("S{id}"), "Model": "MZ"}),
        );
    }
    let nics = [
        ("NIC1".to_owned(), json!({"MACAddress": "08:C0:EB:00:00:01", "LinkStatus": "LinkUp", "SpeedMbps": 25000})),
        ("NIC2".to_owned(), json!({"MacAddress": "08C0EB000002", "LinkStatus": null})),
        ("NIC3".to_owned(), json!({"MACAddress": ""})),
        ("ToManager".to_owned(), json!({"MACAddress": "7E:D3:0A:00:00:01"})),
    ];
    tree.collection(&format!("{system}/EthernetInterfaces"), nics);
    tree.collection(
        "/redfish/v1/UpdateService/FirmwareInventory",
        (1..=43).map(|at| match at {
            1 => ("UEFI-Pending".to_owned(), json!({"Version": null})),
            at => (format!("Slot_{at}"), json!({"Version": format!("{at}.0")})),
        }),
    );
    tree.put("/redfish/v1/Chassis/1", json!({"NetworkAdapters": link("/redfish/v1/Chassis/1/NetworkAdapters")}));
    tree.collection("/redfish/v1/Chassis/1/NetworkAdapters", numbered(2, "slot-", |at| {
        let own = format!("/redfish/v1/Chassis/1/NetworkAdapters/slot-{at}");
        json!({"NetworkDeviceFunctions": link(&format!("{own}/NetworkDeviceFunctions")), "Ports": link(&format!("{own}/Ports"))})
    }));
    for at in 1..=2 {
        let own = format!("/redfish/v1/Chassis/1/NetworkAdapters/slot-{at}");
        tree.collection(
            &format!("{own}/NetworkDeviceFunctions"),
            numbered(1, "", |_| json!({"Ethernet": {"MACAddress": null}})),
        );
        tree.collection(
            &format!("{own}/Ports"),
            numbered(2, "", |port| {
                json!({"CurrentSpeedGbps": 100, "LinkStatus": "LinkUp",
                "Ethernet": {"AssociatedMACAddresses": [format!("B8:CE:F6:00:0{at}:0{port}")]}})
            }),
        );
    }
    tree
}

#[tokio::test(start_paused = true)]
async fn lenovo_lists_ten_processors_for_two_cpus_and_eight_gpus() {
    let (hardware, requests) = lenovo().inventory().await;
    assert_eq!((hardware.processors.len(), hardware.cores(), hardware.accelerators.len()), (2, 64, 8));
    assert_eq!(hardware.processors[1].socket.as_deref(), Some("2"), "a number where a text belongs");
    assert_eq!((hardware.memory_modules.len(), hardware.memory_mib), (16, 1_048_576));
    assert_eq!(hardware.drives.len(), 4);
    assert_eq!(macs(&hardware), ["08:c0:eb:00:00:01", "08:c0:eb:00:00:02", "7e:d3:0a:00:00:01"]);
    assert_eq!(hardware.firmware.len(), 42, "what is pending is not installed");
    assert_eq!(hardware.bmc.firmware_version.as_deref(), Some("AFBT26O 2.50 2022-11-01"));
    assert!(requests <= 14, "{requests} requests");
}

#[tokio::test(start_paused = true)]
async fn lenovo_may_list_its_nics_only_as_ports_of_adapters() {
    let mut tree = lenovo();
    let own = json!({"MACAddress": "7E:D3:0A:00:00:01"});
    tree.collection("/redfish/v1/Systems/1/EthernetInterfaces", [("ToManager".to_owned(), own)]);
    let (hardware, requests) = tree.inventory().await;
    let ports =
        ["7e:d3:0a:00:00:01", "b8:ce:f6:00:01:01", "b8:ce:f6:00:01:02", "b8:ce:f6:00:02:01", "b8:ce:f6:00:02:02"];
    assert_eq!(macs(&hardware), ports);
    assert_eq!(hardware.nics[1].speed_mbps, Some(100_000));
    assert!(requests <= 19, "{requests} requests");
}

#[tokio::test(start_paused = true)]
async fn adapters_are_not_asked_without_end() {
    let mut tree = lenovo();
    tree.0.remove("/redfish/v1/Systems/1/EthernetInterfaces");
    tree.collection(
        "/redfish/v1/Chassis/1/NetworkAdapters",
        numbered(
            60,
            "slot-",
            |at| json!({"Ports": link(&format!("/redfish/v1/Chassis/1/NetworkAdapters/slot-{at}/Ports"))}),
        ),
    );
    let (hardware, requests) = tree.inventory().await;
    assert_eq!(hardware.nics.len(), 4);
    assert!(requests <= 36, "{requests} requests");
}

/// SYS-821GE: no vendor in the root, an ActionInfo, drives of a backplane, and a long list of firmware.
fn supermicro() -> Grown {
    let mut tree = Grown::new(json!({"Oem": {"Supermicro": {}}}), everything(2));
    let system = "/redfish/v1/Systems/1";
    tree.collection("/redfish/v1/Systems", [("1".to_owned(), json!({
        "Manufacturer": "Supermicro", "Model": "SYS-821GE-TNHR", "SerialNumber": "S500000X00000001",
        "UUID": "00000000-0000-0000-0000-3CECEF123456", "PowerState": "On", "Boot": boot(),
        "Processors": link(&format!("{system}/Processors")), "Memory": link(&format!("{system}/Memory")),
        "Storage": link(&format!("{system}/Storage")), "EthernetInterfaces": link(&format!("{system}/EthernetInterfaces")),
        "VirtualMedia": link("/redfish/v1/Managers/1/VirtualMedia"),
        "Links": {"Chassis": [link("/redfish/v1/Chassis/1")], "ManagedBy": [link("/redfish/v1/Managers/1")]},
        "Actions": {"#ComputerSystem.Reset": {"target": format!("{system}/Actions/ComputerSystem.Reset"),
            "@Redfish.ActionInfo": format!("{system}/ResetActionInfo")}}}))]);
    tree.put(
        &format!("{system}/ResetActionInfo"),
        json!({"Parameters": [{"Name": "ResetType", "AllowableValues": ["On", "ForceOff"]}]}),
    );
    tree.collection(
        "/redfish/v1/Managers",
        [(
            "1".to_owned(),
            json!({"ManagerType": "BMC", "Model": "ASPEED",
        "FirmwareVersion": "01.01.12", "VirtualMedia": link("/redfish/v1/Managers/1/VirtualMedia")}),
        )],
    );
    tree.collection(
        &format!("{system}/Processors"),
        numbered(2, "CPU", |_| json!({"ProcessorType": "CPU", "TotalCores": 56})),
    );
    tree.collection(
        &format!("{system}/Memory"),
        numbered(32, "DIMM", |_| json!({"CapacityMiB": 65536, "Status": {"State": "Enabled"}})),
    );
    let bays = "/redfish/v1/Chassis/NVMeSSD.0.Group.0.StorageBackplane/Drives";
    let drives: Vec<Value> = (1..=8).map(|at| link(&format!("{bays}/Disk.Bay.{at}"))).collect();
    tree.collection(&format!("{system}/Storage"), [("NVMeSSD".to_owned(), json!({"Drives": drives}))]);
    tree.collection(
        bays,
        numbered(
            8,
            "Disk.Bay.",
            |at| json!({"CapacityBytes": 3_840_755_982_336_u64, "SerialNumber": format!("N{at}")}),
        ),
    );
    tree.collection(
        &format!("{system}/EthernetInterfaces"),
        numbered(12, "", |at| json!({"MACAddress": format!("3CECEF0000{at:02}")})),
    );
    tree.collection("/redfish/v1/UpdateService/FirmwareInventory", numbered(106, "F", |at| json!({"Version": at})));
    tree
}

#[tokio::test(start_paused = true)]
async fn supermicro_lists_106_pieces_of_firmware_in_one_request() {
    let (hardware, requests) = supermicro().inventory().await;
    assert_eq!(hardware.uuid.as_deref(), Some("00000000-0000-0000-0000-3cecef123456"));
    assert_eq!(hardware.bmc.vendor.as_deref(), Some("Supermicro"));
    assert_eq!((hardware.processors.len(), hardware.memory_mib), (2, 2_097_152));
    assert_eq!((hardware.drives.len(), hardware.nics.len(), hardware.firmware.len()), (8, 12, 106));
    assert_eq!(hardware.firmware[0].version.as_deref(), Some("1"));
    assert!(requests <= 14, "{requests} requests");
}

/// GB200: a system that says nothing of itself beside a baseboard that carries CPUs and GPUs, and many chassis.
fn gb200() -> Grown {
    let mut tree = Grown::new(json!({"Vendor": "NVIDIA", "Product": "GB200 NVL"}), everything(6));
    let settings = "/redfish/v1/Systems/System_0/Settings";
    tree.collection("/redfish/v1/Systems", [
        ("HGX_Baseboard_0".to_owned(), json!({"SystemType": "Physical", "PowerState": "On", "Boot": boot(),
            "Processors": link("/redfish/v1/Systems/HGX_Baseboard_0/Processors"),
            "Memory": link("/redfish/v1/Systems/HGX_Baseboard_0/Memory")})),
        ("System_0".to_owned(), json!({"Manufacturer": "", "Model": null, "UUID": "", "PowerState": "On", "SystemType": "Physical",
            "Boot": boot(), "@Redfish.Settings": {"SettingsObject": link(settings)},
            "MemorySummary": {"TotalSystemMemoryGiB": 0}, "Processors": link("/redfish/v1/Systems/System_0/Processors"),
            "Links": {"Chassis": [link("/redfish/v1/Chassis/BMC_0")], "ManagedBy": [link("/redfish/v1/Managers/BMC_0")]}})),
    ]);
    tree.0.insert("/redfish/v1/Systems/System_0/Processors".into(), json!({"Members": null}));
    tree.put(settings, json!({"Boot": boot()}));
    tree.collection(
        "/redfish/v1/Systems/HGX_Baseboard_0/Processors",
        [
            ("CPU_0".to_owned(), json!({"ProcessorType": "CPU", "TotalCores": 72, "InstructionSet": "ARM-A64"})),
            ("CPU_1".to_owned(), json!({"ProcessorType": "CPU", "TotalCores": 72})),
            ("GPU_0".to_owned(), json!({"ProcessorType": "GPU", "Model": "GB200 186GB HBM3e"})),
            ("GPU_1".to_owned(), json!({"ProcessorType": "GPU"})),
        ],
    );
    tree.collection(
        "/redfish/v1/Systems/HGX_Baseboard_0/Memory",
        [
            ("GPU_0_DRAM_0".to_owned(), json!({"CapacityMiB": 190_000})),
            ("ProcessorModule_0_Memory_0".to_owned(), json!({"CapacityMiB": 491_520})),
        ],
    );
    tree.collection(
        "/redfish/v1/Managers",
        [
            (
                "BMC_0".to_owned(),
                json!({"ManagerType": "BMC", "FirmwareVersion": "GB200Nvl-24.10-9", "Model": "OpenBmc"}),
            ),
            ("HGX_BMC_0".to_owned(), json!({"ManagerType": "BMC"})),
        ],
    );
    let mut chassis = vec![
        ("BMC_0".to_owned(), json!({"ChassisType": "Module", "Manufacturer": "NVIDIA"})),
        (
            "Chassis_0".to_owned(),
            json!({"ChassisType": "RackMount", "Manufacturer": "NVIDIA", "Model": "GB200 NVL", "SerialNumber": "1333124000001"}),
        ),
        (
            "CX7_0".to_owned(),
            json!({"ChassisType": "Card", "SerialNumber": "MT1", "NetworkAdapters": link("/redfish/v1/Chassis/CX7_0/NetworkAdapters")}),
        ),
    ];
    chassis.extend(numbered(
        20,
        "HGX_GPU_",
        |at| json!({"ChassisType": "Module", "SerialNumber": format!("G{at}"), "Model": "GPU"}),
    ));
    tree.collection("/redfish/v1/Chassis", chassis);
    let adapter = "/redfish/v1/Chassis/CX7_0/NetworkAdapters";
    tree.collection(adapter, [("CX7".to_owned(), json!({"Ports": link(&format!("{adapter}/CX7/Ports"))}))]);
    tree.collection(
        &format!("{adapter}/CX7/Ports"),
        numbered(2, "", |at| json!({"Ethernet": {"AssociatedMACAddresses": [format!("94:6d:ae:00:00:0{at}"), ""]}})),
    );
    tree
}

#[tokio::test(start_paused = true)]
async fn gb200_is_the_system_that_is_no_baseboard_and_is_known_by_its_chassis() {
    let (hardware, requests) = gb200().inventory().await;
    assert_eq!(hardware.system_id.as_deref(), Some("System_0"));
    assert_eq!(hardware.uuid, None);
    assert_eq!(hardware.manufacturer.as_deref(), Some("NVIDIA"));
    assert_eq!(hardware.model.as_deref(), Some("GB200 NVL"));
    assert_eq!(hardware.serial_number.as_deref(), Some("1333124000001"), "not that of a card");
    assert_eq!((hardware.processors.len(), hardware.cores(), hardware.accelerators.len()), (2, 144, 2));
    assert_eq!(hardware.memory_mib, 491_520, "without the memory of the GPUs");
    assert_eq!(macs(&hardware), ["94:6d:ae:00:00:01", "94:6d:ae:00:00:02"]);
    assert_eq!(hardware.bmc.firmware_version.as_deref(), Some("GB200Nvl-24.10-9"));
    assert!(requests <= 16, "{requests} requests");
}

#[tokio::test(start_paused = true)]
async fn gb200_boots_by_its_settings_object() {
    let script = gb200().script(|_| None);
    script.system().set_boot(&BootOverride::cd_once(Some(BootMode::Uefi))).await.unwrap();
    let changes = script.changes();
    assert_eq!(changes.len(), 1);
    assert!(changes[0].starts_with("PATCH /redfish/v1/Systems/System_0/Settings"), "{changes:?}");
    assert!(!changes[0].contains("BootOrder"));
}

#[tokio::test(start_paused = true)]
async fn a_system_that_is_named_by_its_path_has_its_gpus_too() {
    let script = gb200().script(|_| None);
    let choice = SystemChoice::Named("/redfish/v1/Systems/System_0".into());
    let hardware = RedfishSystem::new(script.client(), choice).look(Scope::Inventory).await.unwrap().hardware.unwrap();
    assert_eq!(hardware.accelerators.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn addresses_that_only_the_boot_options_know_are_taken_from_there() {
    let mut tree = plain(json!({"Boot": {"BootOptions": link("/redfish/v1/Systems/0/BootOptions")}}));
    let path = |mac: &str| json!({"DisplayName": "UEFI PXEv4", "UefiDevicePath": format!("PciRoot(0x0)/MAC({mac},0x1)/IPv4(0.0.0.0)")});
    tree.collection(
        "/redfish/v1/Systems/0/BootOptions",
        [
            ("Boot0001".to_owned(), json!({"DisplayName": "ubuntu", "UefiDevicePath": "HD(1,GPT)/shimx64.efi"})),
            ("Boot0002".to_owned(), path("B83FD2909582")),
            ("Boot0003".to_owned(), path("B83FD2909582")),
            ("Boot0004".to_owned(), path("")),
        ],
    );
    tree.collection("/redfish/v1/Chassis", []);
    let (hardware, _) = tree.inventory().await;
    assert_eq!(macs(&hardware), ["b8:3f:d2:90:95:82"]);
    assert_eq!(hardware.nics[0].id, "Boot0002");
}

/// DGX H100: AMI firmware whose expanded members are fragments.
fn dgx() -> Grown {
    let mut tree =
        Grown::new(json!({"Vendor": "AMI", "Product": "AMI Redfish Server", "Oem": {"Ami": {}}}), everything(5));
    tree.collection("/redfish/v1/Systems", [
        ("DGX".to_owned(), json!({"Manufacturer": "NVIDIA", "Model": "DGXH100", "SerialNumber": "166022300000", "PowerState": "Off",
            "UUID": "2E5E2F92-4D5B-11ED-8000-5CFF35AAAAAA", "Boot": {"BootOrder": ["Boot0001"]},
            "@Redfish.Settings": {"SettingsObject": link("/redfish/v1/Systems/DGX/SD")},
            "Processors": link("/redfish/v1/Systems/DGX/Processors"),
            "Links": {"ManagedBy": [link("/redfish/v1/Managers/BMC")]}})),
        ("HGX_Baseboard_0".to_owned(), json!({"Boot": boot(), "Processors": link("/redfish/v1/Systems/HGX_Baseboard_0/Processors")})),
    ]);
    tree.put("/redfish/v1/Systems/DGX/SD", json!({"Boot": boot()}));
    tree.collection(
        "/redfish/v1/Systems/DGX/Processors",
        numbered(2, "CPU", |_| json!({"ProcessorType": "CPU", "TotalCores": 56})),
    );
    tree.collection(
        "/redfish/v1/Systems/HGX_Baseboard_0/Processors",
        numbered(8, "GPU_SXM_", |_| json!({"ProcessorType": "GPU"})),
    );
    tree.collection("/redfish/v1/Managers", [("BMC".to_owned(), json!({"FirmwareVersion": "23.09.20"}))]);
    tree.collection(
        "/redfish/v1/UpdateService/FirmwareInventory",
        numbered(66, "FW_", |at| json!({"Version": format!("1.{at}")})),
    );
    tree.collection("/redfish/v1/Chassis", []);
    tree
}

/// What AMI makes of `$expand`: members with some of their properties, and never those that name them.
fn fragments(tree: &Grown) -> impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static {
    let tree = tree.0.clone();
    move |asked| {
        let mut body = tree.get(asked.path.strip_suffix("?$expand=.($levels=1)")?)?.clone();
        for member in body.get_mut("Members")?.as_array_mut()? {
            member["Status"] = json!({"State": "Enabled"});
        }
        Some(Reply::json(200, &body))
    }
}

#[tokio::test(start_paused = true)]
async fn dgx_expands_to_fragments_and_is_walked() {
    let tree = dgx();
    let answer = fragments(&tree);
    let script = tree.script(answer);
    let hardware = script.system().look(Scope::Inventory).await.unwrap().hardware.unwrap();
    assert_eq!(hardware.system_id.as_deref(), Some("DGX"));
    assert_eq!((hardware.processors.len(), hardware.cores(), hardware.accelerators.len()), (2, 112, 8));
    assert!(hardware.firmware.is_empty(), "66 requests for versions is too much");
    assert!(script.asked().len() <= 30, "{} requests", script.asked().len());
    assert_eq!(script.asked().iter().filter(|asked| asked.path.contains("expand")).count(), 1, "found out once");
    let (hardware, requests) = dgx().inventory().await;
    assert_eq!((hardware.accelerators.len(), hardware.firmware.len()), (8, 66));
    assert!(requests <= 10, "{requests} requests where it works");
}

#[tokio::test(start_paused = true)]
async fn members_that_lose_their_links_when_expanded_are_read_without() {
    let script = dgx().script(|asked| {
        asked.path.contains("expand").then(|| Reply::json(200, &json!({"Members": [{"Id": "1", "Name": "x"}, {}]})))
    });
    let hardware = script.system().look(Scope::Inventory).await.unwrap().hardware.unwrap();
    assert_eq!((hardware.system_id.as_deref(), hardware.processors.len()), (Some("DGX"), 2));
}

#[tokio::test(start_paused = true)]
async fn dgx_is_itself_while_the_controller_of_its_baseboard_is_away() {
    let script = dgx().script(|asked| asked.path.contains("HGX_Baseboard_0").then(|| Reply::status(503)));
    let system = script.system();
    let seen = system.look(Scope::Inventory).await.unwrap();
    let hardware = seen.hardware.unwrap();
    assert_eq!(hardware.serial_number.as_deref(), Some("166022300000"));
    assert!(hardware.accelerators.is_empty());
    system.set_boot(&BootOverride::cd_once(None)).await.unwrap();
    assert!(script.changes()[0].starts_with("PATCH /redfish/v1/Systems/DGX/SD "), "{:?}", script.changes());
}

#[tokio::test(start_paused = true)]
async fn bluefield_in_nic_mode_has_null_members_and_no_uuid() {
    let mut tree = Grown::new(json!({"Vendor": "Nvidia", "Product": "BlueField-3 DPU"}), everything(6));
    let own = "/redfish/v1/Systems/Bluefield";
    tree.collection("/redfish/v1/Systems", [("Bluefield".to_owned(), json!({"UUID": "", "Manufacturer": "https://www.mellanox.com",
        "Model": "BlueField-3 DPU", "SerialNumber": "MT2251X00001", "SystemType": "DPU", "PowerState": "On",
        "Boot": boot(), "BootProgress": {"LastState": "OEM", "OemLastState": "OsIsRunning"},
        "EthernetInterfaces": link(&format!("{own}/EthernetInterfaces")), "Processors": link(&format!("{own}/Processors")),
        "Memory": link(&format!("{own}/Memory")), "Storage": link(&format!("{own}/Storage")),
        "Links": {"Chassis": [link("/redfish/v1/Chassis/Card1")], "ManagedBy": [link("/redfish/v1/Managers/Bluefield_BMC")]}}))]);
    for part in ["EthernetInterfaces", "Processors", "Memory", "Storage"] {
        tree.0.insert(
            format!("{own}/{part}"),
            json!({"@odata.id": format!("{own}/{part}"), "Name": part, "Members": null}),
        );
    }
    tree.collection("/redfish/v1/Managers", [("Bluefield_BMC".to_owned(), json!({"FirmwareVersion": "BF-24.04-5"}))]);
    let adapters = "/redfish/v1/Chassis/Card1/NetworkAdapters";
    tree.put("/redfish/v1/Chassis/Card1", json!({"NetworkAdapters": link(adapters)}));
    let functions = format!("{adapters}/nvidia_network_adapter/NetworkDeviceFunctions");
    tree.collection(
        adapters,
        [("nvidia_network_adapter".to_owned(), json!({"NetworkDeviceFunctions": link(&functions)}))],
    );
    tree.collection(
        &functions,
        [
            ("eth0f0".to_owned(), json!({"Ethernet": {"MACAddress": "a0:88:c2:00:00:01", "MTUSize": 1500}})),
            ("ib0f1".to_owned(), json!({"InfiniBand": {"NodeGUID": "A088:C203:0000:0002"}})),
        ],
    );
    let (seen, requests) = tree.look(Scope::Inventory).await;
    assert_eq!(seen.uuid, None);
    let hardware = seen.hardware.unwrap();
    assert_eq!(hardware.system_id.as_deref(), Some("Bluefield"));
    assert_eq!(macs(&hardware), ["a0:88:c2:00:00:01"]);
    assert!(requests <= 16, "{requests} requests");
}

/// Any vendor, with a system like this.
fn plain(system: Value) -> Grown {
    let mut tree = Grown::new(json!({}), json!({}));
    tree.collection("/redfish/v1/Systems", [("0".to_owned(), system)]);
    tree
}

#[tokio::test(start_paused = true)]
async fn fujitsu_drives_are_simple_or_in_the_chassis_and_its_managers_may_be_missing() {
    let simple = "/redfish/v1/Systems/0/SimpleStorage";
    let mut tree = plain(json!({"Manufacturer": "FUJITSU", "Model": "PRIMERGY RX2540 M6", "SerialNumber": "N/A",
        "MemorySummary": {"TotalSystemMemoryGiB": "64"}, "SimpleStorage": link(simple),
        "Links": {"Chassis": [link("/redfish/v1/Chassis/0")]}}));
    tree.collection(simple, [("1".to_owned(), json!({"Devices": [{"Name": "Empty", "Status": {"State": "Absent"}}]}))]);
    tree.put(
        "/redfish/v1/Chassis/0",
        json!({"SerialNumber": "YMTD000123", "Links": {"Drives": [link("/redfish/v1/Chassis/0/Drives/1")]}}),
    );
    tree.put("/redfish/v1/Chassis/0/Drives/1", json!({"Model": "MZ7", "CapacityBytes": "480103981056"}));
    let (hardware, _) = tree.inventory().await;
    assert_eq!(hardware.serial_number.as_deref(), Some("YMTD000123"));
    assert_eq!(hardware.model.as_deref(), Some("PRIMERGY RX2540 M6"), "what the system says is kept");
    assert_eq!(hardware.memory_mib, 65536);
    assert_eq!(hardware.drives[0].capacity_bytes, Some(480_103_981_056));
    assert_eq!(hardware.bmc.firmware_version, None);
}

#[tokio::test(start_paused = true)]
async fn cisco_blades_have_neither_interfaces_nor_adapters_and_no_link_to_a_manager() {
    let mut tree = plain(
        json!({"Manufacturer": "Cisco Systems Inc", "Model": "UCSX-210C-M6", "SerialNumber": "FCH1", "Links": {}}),
    );
    tree.collection(
        "/redfish/v1/Managers",
        [
            ("CMC".to_owned(), json!({"ManagerType": "EnclosureManager", "FirmwareVersion": "1"})),
            (
                "CIMC".to_owned(),
                json!({"ManagerType": "ManagementController", "FirmwareVersion": "5.1(1)",
            "Links": {"ManagerForServers": [link("/redfish/v1/Systems/0/")]}}),
            ),
        ],
    );
    tree.collection("/redfish/v1/Chassis", []);
    let (hardware, _) = tree.inventory().await;
    assert!(hardware.nics.is_empty());
    assert_eq!(hardware.bmc.firmware_version.as_deref(), Some("5.1(1)"), "the manager that names the system");
}

#[tokio::test(start_paused = true)]
async fn wrong_types_everywhere_spoil_nothing() {
    let own = "/redfish/v1/Systems/0";
    let odd = [json!(null), json!(7), json!("x"), json!([]), json!({}), json!([null, 1, "x", {}]), json!(true)];
    let names = [
        "Boot",
        "Status",
        "Links",
        "Actions",
        "MemorySummary",
        "ProcessorSummary",
        "BootProgress",
        "UUID",
        "Oem",
        "Manufacturer",
        "SerialNumber",
        "Processors",
        "Memory",
        "Storage",
        "EthernetInterfaces",
        "VirtualMedia",
        "@Redfish.Settings",
    ];
    for value in &odd {
        let mut body = json!({});
        for name in names {
            body[name] = value.clone();
        }
        let mut tree = plain(body);
        tree.collection("/redfish/v1/Managers", []);
        tree.collection("/redfish/v1/Chassis", []);
        let script = tree.script(|_| None);
        for scope in [Scope::Power, Scope::Boot, Scope::Inventory] {
            script.system().look(scope).await.unwrap_or_else(|error| panic!("{value}: {error}"));
        }
        // And in the parts.
        let mut tree = plain(json!({"Processors": link(&format!("{own}/P")), "Memory": link(&format!("{own}/M")),
            "Storage": link(&format!("{own}/S")), "EthernetInterfaces": link(&format!("{own}/E"))}));
        let fields = [
            "ProcessorType",
            "TotalCores",
            "Status",
            "CapacityMiB",
            "Drives",
            "MACAddress",
            "IPv4Addresses",
            "Socket",
            "CapacityBytes",
            "SpeedMbps",
            "Model",
        ];
        for part in ["P", "M", "S", "E"] {
            let mut body = json!({});
            for field in fields {
                body[field] = value.clone();
            }
            tree.collection(&format!("{own}/{part}"), [("1".to_owned(), body)]);
        }
        tree.collection("/redfish/v1/Chassis", []);
        let hardware = tree.script(|_| None).system().look(Scope::Inventory).await.unwrap().hardware.unwrap();
        assert!(hardware.nics.is_empty(), "{value}");
    }
}

/// Without `$expand`, with much to walk.
fn talkative() -> Grown {
    let mut tree = Grown::new(json!({"Vendor": "AMI"}), json!({"NoLinks": false, "Levels": false}));
    let system = "/redfish/v1/Systems/Self";
    tree.collection("/redfish/v1/Systems", [("Self".to_owned(), json!({
        "Manufacturer": "Contoso", "Model": "R1", "PowerState": "On", "Boot": boot(),
        "ProcessorSummary": {"Count": 2, "CoreCount": 64}, "MemorySummary": {"TotalSystemMemoryGiB": 512},
        "Processors": link(&format!("{system}/Processors")), "Memory": link(&format!("{system}/Memory")),
        "Storage": link(&format!("{system}/Storage")), "EthernetInterfaces": link(&format!("{system}/EthernetInterfaces")),
        "Links": {"Chassis": [link("/redfish/v1/Chassis/BMC_Board"), link("/redfish/v1/Chassis/Tray")],
            "ManagedBy": [link("/redfish/v1/Managers/Self")]}}))]);
    tree.collection(
        "/redfish/v1/Chassis",
        [
            ("BMC_Board".to_owned(), json!({"ChassisType": "Module", "SerialNumber": "BOARD-1"})),
            ("Tray".to_owned(), json!({"ChassisType": "Shelf", "SerialNumber": "SHELF-7"})),
        ],
    );
    tree.collection("/redfish/v1/Managers", [("Self".to_owned(), json!({"FirmwareVersion": "12.1"}))]);
    let cpu = |_| json!({"ProcessorType": "CPU", "TotalCores": 32});
    tree.collection(&format!("{system}/Processors"), numbered(2, "CPU", cpu));
    tree.collection(&format!("{system}/Memory"), numbered(24, "DIMM", |_| json!({"CapacityMiB": 32768})));
    let nic = |at| json!({"MACAddress": format!("02:00:00:00:00:0{at}")});
    tree.collection(&format!("{system}/EthernetInterfaces"), numbered(4, "NIC", nic));
    let drives: Vec<Value> = (1..=4).map(|at| link(&format!("{system}/Storage/1/Drives/D{at}"))).collect();
    tree.collection(&format!("{system}/Storage"), [("1".to_owned(), json!({"Drives": drives}))]);
    for at in 1..=4 {
        let drive = json!({"CapacityBytes": 1_000_000, "Model": "M", "SerialNumber": format!("S{at}")});
        tree.put(&format!("{system}/Storage/1/Drives/D{at}"), drive);
    }
    let firmware = "/redfish/v1/UpdateService/FirmwareInventory";
    tree.collection(firmware, numbered(30, "FW", |at| json!({"Version": format!("1.{at}")})));
    tree
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_cannot_be_expanded_is_read_in_at_most_30_requests() {
    let (hardware, requests) = talkative().inventory().await;
    assert!(requests <= 30, "{requests} requests");
    assert_eq!((hardware.cores(), hardware.memory_mib), (64, 524_288), "summed up");
    assert_eq!((hardware.processors.len(), hardware.drives.len(), macs(&hardware).len()), (2, 4, 4));
    assert!(hardware.unread.is_empty(), "what costs too much is not missing");
}

/// The same with so many disks on each of so many controllers.
fn with_disks(controllers: usize, disks: usize) -> Grown {
    let mut tree = talkative();
    let storage = "/redfish/v1/Systems/Self/Storage";
    let drives = |at: usize| -> Vec<Value> {
        (1..=disks).map(|disk| link(&format!("{storage}/C{at}/Drives/D{disk}"))).collect()
    };
    tree.collection(storage, numbered(controllers, "C", |at| json!({"Drives": drives(at)})));
    for at in 1..=controllers {
        for disk in 1..=disks {
            let drive = json!({"CapacityBytes": 1_000_000, "Model": "M", "SerialNumber": format!("S{at}-{disk}")});
            tree.put(&format!("{storage}/C{at}/Drives/D{disk}"), drive);
        }
    }
    tree
}

#[tokio::test(start_paused = true)]
async fn many_disks_that_come_one_by_one_are_read_in_several_looks_of_at_most_30_requests() {
    for (controllers, disks, looks) in [(1, 24, 3), (2, 30, 5), (24, 1, 4)] {
        let script = with_disks(controllers, disks).script(|_| None);
        let system = script.system();
        let (mut before, mut known, mut taken) = (0, 0, 0);
        loop {
            let hardware = system.look(Scope::Inventory).await.unwrap().hardware.unwrap();
            let requests = script.asked().len() - before;
            before += requests;
            taken += 1;
            assert!(requests <= 30, "look {taken} at {controllers} x {disks} disks: {requests} requests");
            assert_eq!((hardware.cores(), hardware.memory_mib, macs(&hardware).len()), (64, 524_288, 4));
            if hardware.unread.is_empty() {
                assert_eq!((hardware.drives.len(), hardware.goes_on), (controllers * disks, false));
                break;
            }
            assert_eq!((hardware.unread.as_slice(), hardware.goes_on), ([Part::Drives].as_slice(), true));
            assert!(hardware.drives.len() >= known && hardware.drives.len() < controllers * disks);
            known = hardware.drives.len();
        }
        assert!(taken > 1 && taken <= looks, "{controllers} x {disks} disks took {taken} looks");

        let again = system.look(Scope::Inventory).await.unwrap().hardware.unwrap();
        assert!(again.goes_on, "what was read for a former inventory is not handed on as new");
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_a_server_is_its_chassis_and_not_that_of_the_bmcs_board() {
    let (hardware, _) = talkative().inventory().await;
    assert_eq!(hardware.serial_number.as_deref(), Some("SHELF-7"));
}
