//! Recorded trees of real BMCs: the inventory is right, and it is cheap.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use bmc::{Address, Bmc, Client, Credentials, Endpoint, InProcess, Options, RedfishSystem, SystemChoice};
use engine::hardware::Hardware;
use engine::server::{BootProgress, PowerState, Scope, Seen};
use sim::{BmcSpec, Tree};

/// The recording, or `None` with a loud word that the test did not run.
pub(crate) fn recording(name: &str) -> Option<Arc<Tree>> {
    let Some(folder) = std::env::var_os("BESKAR7_CAPTURES") else {
        // Not eprintln: the test runner would swallow it.
        let word = format!(
            "SKIPPED: {name} was not replayed, because BESKAR7_CAPTURES is not set (a folder with recorded trees)"
        );
        let _ = writeln!(std::io::stderr().lock(), "{word}");
        return None;
    };
    let path = PathBuf::from(folder).join(format!("{name}.tar.gz"));
    Some(Arc::new(Tree::open(path).unwrap()))
}

fn replay(tree: &Arc<Tree>) -> (sim::Bmc, Arc<Client>, RedfishSystem) {
    let service = sim::Bmc::replay(tree.clone(), BmcSpec::new(tree.personality()));
    let endpoint = Endpoint {
        address: Address::parse("https://10.0.0.1").unwrap(),
        credentials: Credentials::new("admin", "password"),
        family: None,
    };
    let client = Client::new(endpoint, Arc::new(InProcess::new(service.clone())), Options::default());
    let system = RedfishSystem::new(client.clone(), SystemChoice::Only);
    (service, client, system)
}

async fn register(name: &str, at_most: u64) -> (Seen, Hardware) {
    let tree = recording(name).unwrap();
    let (service, client, system) = replay(&tree);
    let seen = system.look(Scope::Inventory).await.unwrap();
    let requests = service.counters().total();
    eprintln!("{name}: {requests} requests to register and take the inventory");
    assert!(requests <= at_most, "{requests} requests: {:#?}", service.counters().iter().collect::<Vec<_>>());
    client.close().await;
    assert_eq!(service.sessions_open(), 0);
    let hardware = seen.hardware.clone().unwrap();
    (seen, *hardware)
}

#[tokio::test(start_paused = true)]
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn a_dell_r750_is_read_in_at_most_12_requests() {
    let (seen, hardware) = register("dell-r750-idrac9", 12).await;
    assert_eq!(seen.power, PowerState::On);
    assert_eq!(seen.health.rollup.as_deref(), Some("OK"));
    assert_eq!(seen.uuid.as_deref(), Some("4c4c4544-0035-3410-8050-c6c04f314733"));
    assert_eq!(hardware.manufacturer.as_deref(), Some("Dell Inc."));
    assert_eq!(hardware.model.as_deref(), Some("PowerEdge R750"));
    assert_eq!(
        hardware.serial_number.as_deref(),
        Some("F54P1G3"),
        "the service tag, not the serial number of the board"
    );
    assert_eq!(hardware.bios_version.as_deref(), Some("1.8.2"));
    assert_eq!(hardware.bmc.vendor.as_deref(), Some("Dell"));
    assert_eq!(hardware.bmc.firmware_version.as_deref(), Some("6.00.30.00"));
    assert_eq!(hardware.bmc.redfish_version.as_deref(), Some("1.13.1"));
    assert_eq!((hardware.processors.len(), hardware.cores()), (2, 36));
    assert_eq!(hardware.processors[0].threads, Some(36));
    assert_eq!(hardware.processors[0].architecture.as_deref(), Some("x86-64"));
    assert_eq!(hardware.accelerators.len(), 1);
    assert_eq!(hardware.accelerators[0].model.as_deref(), Some("NVIDIA H100 PCIe"));
    assert_eq!((hardware.memory_modules.len(), hardware.memory_mib), (16, 524_288));
    assert_eq!(hardware.drives.len(), 3);
    assert!(
        hardware.drives.iter().all(|drive| drive.capacity_bytes == Some(1_920_383_410_176)),
        "{:?}",
        hardware.drives
    );
    assert!(hardware.drives.iter().all(|drive| drive.media.as_deref() == Some("SSD") && drive.serial_number.is_some()));
    let macs: Vec<&str> = hardware.nics.iter().filter_map(|nic| nic.mac.as_deref()).collect();
    let expected =
        ["70:b5:e8:f0:52:dc", "70:b5:e8:f0:52:dd", "e4:3d:1a:13:27:f0", "e4:3d:1a:13:27:f1", "b8:3f:d2:90:97:c4"];
    assert_eq!(macs, expected);
    assert_eq!(hardware.nics[0].link_up, Some(false));
    assert_eq!(hardware.nics[4].link_up, None);
    assert_eq!(hardware.firmware.len(), 21, "installed firmware only: no Previous-, no Current-");
    assert!(hardware.firmware.iter().any(|f| f.name == "BIOS" && f.version.as_deref() == Some("1.8.2")));
}

#[tokio::test(start_paused = true)]
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn an_hpe_dl385_is_read_in_at_most_28_requests() {
    let (seen, hardware) = register("hpe-dl385-ilo5", 28).await;
    assert_eq!(seen.progress, BootProgress::PostFinished);
    assert_eq!(seen.health.health.as_deref(), Some("Critical"));
    assert_eq!(hardware.manufacturer.as_deref(), Some("HPE"));
    assert_eq!(hardware.serial_number.as_deref(), Some("MXQ302099S"));
    assert_eq!(hardware.sku.as_deref(), Some("P38411-B21"));
    assert_eq!(hardware.uuid.as_deref(), Some("34383350-3131-584d-5133-303230393953"));
    assert_eq!(hardware.bios_version.as_deref(), Some("A42 v2.60 (08/11/2022)"));
    assert_eq!(hardware.bmc.firmware_version.as_deref(), Some("iLO 5 v2.72"));
    assert_eq!((hardware.processors.len(), hardware.cores()), (2, 128));
    assert_eq!(hardware.processors[0].model.as_deref(), Some("AMD EPYC 7763 64-Core Processor"));
    assert_eq!((hardware.memory_modules.len(), hardware.memory_mib), (16, 1_048_576));
    assert_eq!(hardware.drives.len(), 18);
    let nvme = hardware.drives.iter().filter(|drive| drive.protocol.as_deref() == Some("NVMe")).count();
    assert_eq!(nvme, 16);
    assert!(hardware.drives.iter().all(|drive| drive.capacity_bytes > Some(400_000_000_000)), "{:?}", hardware.drives);
    let macs: Vec<&str> = hardware.nics.iter().filter_map(|nic| nic.mac.as_deref()).collect();
    assert_eq!(macs.len(), 7);
    assert!(macs.contains(&"b8:3f:d2:d7:f7:4a"));
    assert_eq!(hardware.firmware.len(), 48);
}

#[tokio::test(start_paused = true)]
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn a_stock_openbmc_without_expand_is_walked() {
    let (seen, hardware) = register("openbmc-stock", 16).await;
    assert_eq!(seen.power, PowerState::Off);
    assert_eq!(seen.progress, BootProgress::NotStarted);
    assert_eq!(hardware.system_id.as_deref(), Some("system"));
    assert_eq!(hardware.bmc.model.as_deref(), Some("OpenBmc"));
    assert_eq!(hardware.bmc.firmware_version.as_deref(), Some("2.15.0-dev-686-g100c36de90"));
    assert_eq!(hardware.firmware.len(), 1);
    assert!(hardware.processors.is_empty() && hardware.drives.is_empty() && hardware.nics.is_empty());
    assert_eq!(hardware.memory_mib, 0);
}

#[tokio::test(start_paused = true)]
#[ignore = "needs recordings: BESKAR7_CAPTURES"]
async fn booting_an_iso_on_recorded_servers_takes_at_most_8_requests() {
    for name in ["dell-r750-idrac9", "hpe-dl385-ilo5"] {
        let tree = recording(name).unwrap();
        let (service, client, system) = replay(&tree);
        system.look(Scope::Inventory).await.unwrap();
        system.power_off(bmc::Manner::Hard).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_mins(1)).await;
        let before = system.look(Scope::Boot).await.unwrap();
        assert_eq!(before.power, PowerState::Off);
        assert!(before.media.unwrap().iter().all(|media| !media.is_occupied()));

        service.reset_counters();
        system.insert_media("http://10.0.0.9/boot.iso").await.unwrap();
        system.set_boot(&engine::server::BootOverride::cd_once(Some(engine::server::BootMode::Uefi))).await.unwrap();
        let armed = system.look(Scope::Boot).await.unwrap();
        assert_eq!(armed.boot.unwrap().target, engine::server::BootTarget::Cd);
        assert!(armed.media.unwrap().iter().any(|media| media.image.as_deref() == Some("http://10.0.0.9/boot.iso")));
        system.power_on().await.unwrap();
        let seen = system.look(Scope::Power).await.unwrap();
        assert!(matches!(seen.power, PowerState::On | PowerState::PoweringOn | PowerState::Off));
        let requests = service.counters().total();
        eprintln!("{name}: {requests} requests to boot an ISO, once known");
        assert!(requests <= 8, "{requests}: {:#?}", service.counters().iter().collect::<Vec<_>>());

        service.reset_counters();
        system.look(Scope::Power).await.unwrap();
        assert_eq!(service.counters().total(), 1, "at rest, one request");
        client.close().await;
    }
}
