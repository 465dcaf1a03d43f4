//! Rewritten images in a virtual machine, up to a kernel that shows its command line. About ten seconds each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use boot::iso::Firmware;

use crate::lab::{ISOLINUX, Lab, PLAIN, run};

const INIT: &str = "#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
exec >/dev/ttyS0 2>&1
echo \"cmdline: $(/bin/busybox cat /proc/cmdline) :end\"
/bin/busybox poweroff -f
";

/// Kernel and initrd of a system that says what it was started with, and switches itself off.
fn put_system(lab: &Lab) {
    let guest = testkit::part("vm");
    let root = lab.path("initrd");
    for folder in ["bin", "dev", "proc"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::copy(guest.join("busybox"), root.join("bin/busybox")).unwrap();
    fs::write(root.join("init"), INIT).unwrap();
    fs::set_permissions(root.join("init"), fs::Permissions::from_mode(0o755)).unwrap();
    let archive = format!("find . | cpio --quiet -o -H newc >{}", lab.path("tree/initrd").display());
    run(Command::new("sh").args(["-c", &archive]).current_dir(&root));
    fs::copy(guest.join("vmlinuz"), lab.path("tree/vmlinuz")).unwrap();
}

/// Boots the image as a CD, and returns the command line that the kernel got.
async fn boot(lab: &Lab, iso: &Path, firmware: Firmware) -> String {
    let serial = lab.path("serial.log");
    let mut qemu = tokio::process::Command::new("qemu-system-x86_64");
    qemu.args([
        "-machine",
        "q35",
        "-accel",
        "tcg",
        "-cpu",
        "max",
        "-smp",
        "1",
        "-m",
        "512",
        "-nodefaults",
        "-no-reboot",
    ])
    .args(["-display", "none", "-serial", &format!("file:{}", serial.display())])
    .args(["-drive", &format!("media=cdrom,format=raw,readonly=on,file={}", iso.display())]);
    if firmware == Firmware::Uefi {
        let variables = lab.path("vars.fd");
        fs::copy("/usr/share/OVMF/OVMF_VARS_4M.fd", &variables).expect("ovmf comes with `make setup`");
        qemu.args(["-drive", "if=pflash,format=raw,unit=0,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"])
            .args(["-drive", &format!("if=pflash,format=raw,unit=1,file={}", variables.display())]);
    }
    let mut child = qemu.stdin(Stdio::null()).kill_on_drop(true).spawn().expect("QEMU comes with `make setup`");
    let ended = tokio::time::timeout(Duration::from_mins(5), child.wait()).await;
    let said = String::from_utf8_lossy(&fs::read(&serial).unwrap_or_default()).into_owned();
    assert!(ended.is_ok(), "the machine did not come up: {said}");
    let line = said.split("cmdline: ").nth(1).and_then(|rest| rest.split(" :end").next());
    line.unwrap_or_else(|| panic!("no command line in: {said}")).to_owned()
}

/// GRUB's own tool makes it: a hybrid image for both firmwares. The menu is too long to stay where it is.
#[tokio::test]
async fn an_image_of_grub_boots_with_the_parameters_on_bios_and_uefi() {
    let lab = Lab::new();
    put_system(&lab);
    let entry = "menuentry x {\nlinux /vmlinuz console=ttyS0 quiet\ninitrd /initrd\n}\n";
    lab.put("boot/grub/grub.cfg", format!("set timeout=0\n{}", entry.repeat(32)));
    let iso = lab.path("original.iso");
    run(Command::new("grub-mkrescue").arg("-o").arg(&iso).arg(lab.path("tree")));
    let rewritten = lab.rewrite(&iso).await.unwrap();
    assert_eq!(rewritten.edited(), [("/boot/grub/grub.cfg".to_owned(), 32)]);
    assert!(rewritten.plan.size() > fs::metadata(&iso).unwrap().len(), "the menu has moved");
    for firmware in [Firmware::Bios, Firmware::Uefi] {
        assert!(rewritten.plan.covers(firmware), "{firmware:?}");
        let line = boot(&lab, &rewritten.after, firmware).await;
        assert_eq!(line, format!("BOOT_IMAGE=/vmlinuz console=ttyS0 quiet {PLAIN}"), "{firmware:?}");
    }
}

#[tokio::test]
async fn an_image_of_isolinux_boots_with_the_parameters() {
    let lab = Lab::new();
    put_system(&lab);
    lab.put_isolinux("default a\nlabel a\n  kernel /vmlinuz\n  append initrd=/initrd console=ttyS0 quiet --- x\n");
    let module = fs::read("/usr/lib/syslinux/modules/bios/ldlinux.c32").expect("syslinux comes with `make setup`");
    lab.put("isolinux/ldlinux.c32", module);
    let iso = lab.build(&[ISOLINUX]);
    let rewritten = lab.rewrite(&iso).await.unwrap();
    let line = boot(&lab, &rewritten.after, Firmware::Bios).await;
    assert_eq!(line, format!("BOOT_IMAGE=/vmlinuz initrd=/initrd console=ttyS0 quiet {PLAIN} --- x"));
}
