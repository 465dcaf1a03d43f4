//! Simulated BMCs whose servers are QEMU machines, which really boot. What they boot is tiny: a boot sector, an iPXE script, a GRUB with
//! a menu. QEMU, OVMF, dnsmasq and GRUB come with `make setup`; the network needs root.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests, which clippy does not see as tests")]

mod bench;
mod payload;

use std::time::Duration;

use serde_json::json;
use sim::{BootSource, Enabled, Mode, PowerState};
use tokio::time::{sleep, timeout};

use bench::Bench;

#[tokio::test]
async fn power_is_that_of_a_process() {
    let bench = Bench::start(Mode::Legacy);
    assert_eq!(bench.power().await, PowerState::Off);
    assert_eq!(bench.processes(), 0);

    bench.reset("On").await;
    bench.until_serial("SeaBIOS").await;
    assert_eq!(bench.power().await, PowerState::On);
    assert_eq!(bench.processes(), 1);

    // It is the same machine for whoever asks the BMC and for whoever asks the machine.
    let system = bench.get("/redfish/v1/Systems/1").await;
    let command = bench.command_line();
    assert!(command.contains(system["UUID"].as_str().unwrap()), "{command}");
    assert!(command.contains(system["SerialNumber"].as_str().unwrap()), "{command}");
    let cards = bench.get("/redfish/v1/Systems/1/EthernetInterfaces?$expand=.").await;
    let cards = cards["Members"].as_array().unwrap();
    assert_eq!(cards.len(), 2, "{cards:?}");
    for card in cards {
        assert!(command.contains(card["MACAddress"].as_str().unwrap()), "{card} {command}");
    }
    // How far it has booted is not known.
    assert_eq!(system["BootProgress"], json!({}), "{system}");

    bench.reset("ForceRestart").await;
    bench.until("a second boot", |server| server.boots == 2).await;
    bench.until("power On again", |server| server.power() == PowerState::On).await;
    assert_eq!(bench.processes(), 1);

    bench.reset("ForceOff").await;
    bench.until("power Off", |server| server.power() == PowerState::Off).await;
    assert_eq!(bench.processes(), 0);

    bench.reset("On").await;
    bench.until("power On", |server| server.power() == PowerState::On).await;
    let name = bench.drop_all();
    let gone = async {
        while bench::processes(&name) > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), gone).await.unwrap_or_else(|_| panic!("the machine has outlived its server"));
}

#[tokio::test]
async fn a_one_time_network_boot_is_used_up_and_the_guests_own_reboot_boots_the_disk() {
    let mut bench = Bench::start(Mode::Legacy);
    bench.start_dhcp();
    bench.put_on_disk(&payload::boot_sector("this is the disk"));
    bench.publish("boot.ipxe", "#!ipxe\necho this is the network\nsleep 1\nreboot\n");

    bench.order("Pxe", "Legacy", None).await;
    bench.reset("On").await;
    bench.until_serial("this is the network").await;
    assert_eq!(bench.server().boot.enabled, Enabled::Disabled);
    assert_eq!(bench.server().used_override.unwrap().target, "Pxe");

    bench.until_serial("this is the disk").await;
    // The boot sector powers the machine off.
    bench.until("power Off", |server| server.power() == PowerState::Off).await;
    assert_eq!(bench.server().boots, 2);
    assert_eq!(bench.server().resets, 1, "only one reset was asked for");
    assert_eq!(bench.fetched("/boot.ipxe"), 1);
    bench.stop().await;
}

#[tokio::test]
async fn virtual_media_boot_by_bios_and_by_uefi() {
    let bench = Bench::start(Mode::Uefi);
    bench.publish("boot.iso", payload::iso("echo this is the CD\nhalt"));
    for (mode, boots) in [("Legacy", 1), ("UEFI", 2)] {
        bench.insert("boot.iso").await;
        bench.order("Cd", mode, None).await;
        bench.reset("On").await;
        bench.until("a boot", |server| server.boots == boots).await;
        bench.until("the guest to power itself off", |server| server.power() == PowerState::Off).await;
        assert_eq!(bench.serial().matches("this is the CD").count(), boots as usize, "{mode}: {}", bench.serial());
        bench.eject().await;
    }
    // What runs is not known, and nothing is claimed.
    assert_eq!(bench.server().last_boot.map(|boot| boot.from), None::<BootSource>);
    bench.stop().await;
}

#[tokio::test]
async fn a_medium_can_be_changed_while_the_machine_runs_and_one_that_cannot_be_fetched_is_not_there() {
    let mut bench = Bench::start(Mode::Legacy);
    bench.insert("nothing.iso").await;
    bench.until("an empty drive", |server| server.media().is_none()).await;

    bench.start_dhcp();
    bench.publish("boot.ipxe", "#!ipxe\necho waiting\nprompt\n");
    bench.order("Pxe", "Legacy", None).await;
    bench.reset("On").await;
    bench.until_serial("waiting").await;
    bench.publish("late.iso", payload::iso("echo this came late\nhalt"));
    bench.insert("late.iso").await;
    bench.until_fetched("/late.iso").await;
    bench.order("Cd", "Legacy", None).await;
    bench.reset("ForceRestart").await;
    bench.until_serial("this came late").await;
    bench.until("power Off", |server| server.power() == PowerState::Off).await;
    bench.stop().await;
}

#[tokio::test]
async fn a_uefi_http_uri_boots_once() {
    let mut bench = Bench::start(Mode::Uefi);
    bench.start_dhcp();
    bench.publish("once.efi", payload::efi("echo this is HTTP\nreboot"));
    bench.publish("boot.ipxe", "#!ipxe\nprompt\n");
    bench.order("UefiHttp", "UEFI", Some(&bench.url("once.efi"))).await;
    bench.reset("On").await;
    bench.until_serial("this is HTTP").await;
    bench.until("the guest's own reboot", |server| server.boots == 2).await;
    // The disk is empty, so the network comes next: by iPXE again.
    bench.until_fetched("/boot.ipxe").await;
    assert_eq!(bench.fetched("/once.efi"), 1);
    bench.reset("ForceOff").await;
    bench.until("power Off", |server| server.power() == PowerState::Off).await;
    bench.stop().await;
}

#[tokio::test]
async fn uefi_http_without_a_uri_boots_what_dhcp_names() {
    let mut bench = Bench::start(Mode::Uefi);
    bench.start_dhcp();
    bench.publish("dhcp.efi", payload::efi("echo this is what DHCP named\nhalt"));
    bench.order("UefiHttp", "UEFI", None).await;
    bench.reset("On").await;
    bench.until_serial("this is what DHCP named").await;
    bench.until("power Off", |server| server.power() == PowerState::Off).await;
    bench.stop().await;
}
