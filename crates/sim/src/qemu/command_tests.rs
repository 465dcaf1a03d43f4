//! Command lines as they are, and what differs from boot to boot.

use super::*;
use crate::personality::generic;
use crate::server::Enabled;

fn chassis() -> Chassis {
    let personality = generic();
    let hardware = Hardware {
        uuid: "11111111-2222-4333-8444-555555555555".to_owned(),
        serial: "SIM,1".to_owned(),
        ..Hardware::of_machine(&personality, 1, 0)
    };
    Chassis::new("sim-000".to_owned(), &personality, hardware, CardRom::Ipxe, Some(4))
}

fn line(boot: &Boot, medium: Option<&str>) -> String {
    let (program, arguments) = chassis().command(boot, medium);
    // One flag a line.
    format!("{program} {}", arguments.join(" ")).replace(" -", "\n-")
}

fn of(target: &str, mode: Mode) -> Boot {
    let uri = Some("http://10.77.0.1/a.efi".to_owned());
    let order = Override { target: target.to_owned(), enabled: Enabled::Once, mode, http_uri: uri };
    Boot::new(Some(order), "Cd", Mode::Uefi)
}

#[test]
fn a_machine_boots_its_disk_by_uefi() {
    let model = chassis().hardware.model;
    let disk = chassis().hardware.disks[0].serial.clone();
    let expected = format!(
        "qemu-system-x86_64
-name sim-000
-machine q35,graphics=off
-accel tcg,thread=multi
-cpu max
-smp 1
-m 1G
-uuid 11111111-2222-4333-8444-555555555555
-smbios type=1,manufacturer=Contoso,product={model},serial=SIM,,1,uuid=11111111-2222-4333-8444-555555555555
-nodefaults
-no-user-config
-display none
-no-reboot
-boot strict=on
-chardev file,id=serial,path=serial.log,append=on
-serial chardev:serial
-chardev stdio,id=qmp,signal=off
-mon chardev=qmp,mode=control
-drive if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd
-drive if=pflash,format=raw,unit=1,file=vars.fd
-drive if=none,id=disk,format=raw,discard=unmap,file=disk.raw
-device virtio-blk-pci,drive=disk,serial={disk},bootindex=1
-device ide-cd,id=cd0
-netdev tap,id=net0,ifname=tap4n0,script=no,downscript=no
-device virtio-net-pci,netdev=net0,mac=02:01:00:00:00:00,bootindex=2
-netdev tap,id=net1,ifname=tap4n1,script=no,downscript=no
-device virtio-net-pci,netdev=net1,mac=02:01:00:00:00:01,bootindex=3"
    );
    assert_eq!(line(&Boot::new(None, "Cd", Mode::Uefi), None), expected);
}

#[test]
fn an_override_goes_first_and_the_others_follow() {
    let cd = line(&of("Cd", Mode::Legacy), Some("medium-1.iso"));
    assert!(!cd.contains("pflash"), "{cd}");
    assert!(cd.contains("file=medium-1.iso\n-device ide-cd,id=cd0,bootindex=1,drive=medium\n"), "{cd}");
    assert!(cd.contains("serial=D") && cd.contains(",bootindex=2\n"), "{cd}");

    let network = line(&of("Pxe", Mode::Legacy), None);
    assert!(network.contains("mac=02:01:00:00:00:00,bootindex=1\n"), "{network}");
    assert!(network.contains("mac=02:01:00:00:00:01,bootindex=2"), "{network}");
    assert!(network.lines().any(|line| line.contains("virtio-blk") && line.ends_with(",bootindex=3")), "{network}");
}

#[test]
fn an_http_boot_is_the_firmwares_own() {
    let http = line(&of("UefiHttp", Mode::Uefi), None);
    assert_eq!(http.matches(",romfile=").count(), 2, "{http}");
    assert!(http.contains("-fw_cfg name=opt/org.tianocore/IPv4PXESupport,string=n"), "{http}");
    // BIOS has none.
    assert_eq!(of("UefiHttp", Mode::Legacy).first, First::Disk);
}

#[test]
fn cards_without_ipxe_leave_the_network_boot_to_uefi_and_never_to_bios() {
    let bare = Chassis { rom: CardRom::Firmware, ..chassis() };
    let line = |mode| bare.command(&of("Pxe", mode), None).1.join(" ");
    assert_eq!(line(Mode::Uefi).matches(",romfile=").count(), 2);
    assert!(!line(Mode::Legacy).contains("romfile"));
}

#[test]
fn every_vendors_word_for_virtual_media_boots_the_drive() {
    let order = |target: &str| Override { target: target.to_owned(), enabled: Enabled::Once, ..Override::default() };
    for personality in Personality::all() {
        let word = personality.boot.media_target;
        assert_eq!(Boot::new(Some(order(word)), word, Mode::Uefi).first, First::Cd, "{}", personality.name);
    }
    assert_eq!(Boot::new(Some(order("BiosSetup")), "Cd", Mode::Uefi).first, First::Disk);
}
