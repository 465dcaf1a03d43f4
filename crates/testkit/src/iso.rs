//! A tiny operating system on a bootable ISO, which tells that it runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::parts;
use crate::pki::write;
use crate::scratch::Scratch;

/// In the order in which the kernel takes them.
const MODULES: [&str; 8] = [
    "virtio",
    "virtio_ring",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "failover",
    "net_failover",
    "virtio_net",
];

const BOOT_MENU: &str = "\
DEFAULT tiny
LABEL tiny
  KERNEL /vmlinuz
  INITRD /initrd
  APPEND console=ttyS0 quiet
";

/// Builds an ISO for BIOS machines, in about a second, and returns its bytes.
///
/// The system on it prints `marker` on the serial console. With `report_url` it also posts the marker there, from
/// the fixed address that QEMU's user-mode network expects (see [`Depot::guest_url`](crate::Depot::guest_url)).
/// Then it stays up until somebody powers it off.
pub fn build_iso(marker: &str, report_url: Option<&str>) -> Vec<u8> {
    let guest = parts::home("vm");
    let dir = Scratch::new("iso");
    let tree = dir.join("tree");
    std::fs::create_dir_all(tree.join("isolinux")).expect("a directory for the boot loader");
    write(&tree.join("initrd"), initrd(&guest, &dir, &init_script(marker, report_url)));
    copy(&guest.join("vmlinuz"), &tree.join("vmlinuz"));
    copy(Path::new("/usr/lib/ISOLINUX/isolinux.bin"), &tree.join("isolinux/isolinux.bin"));
    copy(Path::new("/usr/lib/syslinux/modules/bios/ldlinux.c32"), &tree.join("isolinux/ldlinux.c32"));
    write(&tree.join("isolinux/isolinux.cfg"), BOOT_MENU);

    let iso = dir.join("boot.iso");
    let mut xorriso = Command::new("xorriso");
    xorriso
        .args(["-as", "mkisofs", "-quiet", "-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat"])
        .args(["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "-o"])
        .args([&iso, &tree]);
    run(&mut xorriso);
    std::fs::read(&iso).expect("the ISO that was just built")
}

/// Busybox with a script as init; everything else is the kernel.
fn init_script(marker: &str, report_url: Option<&str>) -> String {
    let report = report_url.map(|url| report_script(marker, url)).unwrap_or_default();
    // Were init to end, the kernel would panic.
    format!(
        "#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
echo 'booted: {marker}'
{report}
while :; do /bin/busybox sleep 3600; done
"
    )
}

fn report_script(marker: &str, url: &str) -> String {
    format!(
        "for module in {modules}; do
    /bin/busybox insmod /modules/$module.ko
done
/bin/busybox ip addr add 10.0.2.15/24 dev eth0
/bin/busybox ip link set eth0 up
until /bin/busybox wget -q -O /dev/null --post-data '{marker}' '{url}'; do
    /bin/busybox sleep 0.2
done
echo 'reported: {marker}'",
        modules = MODULES.join(" "),
    )
}

fn initrd(guest: &Path, dir: &Path, init: &str) -> Vec<u8> {
    let root = dir.join("initrd");
    for folder in ["bin", "dev", "modules"] {
        std::fs::create_dir_all(root.join(folder)).expect("a directory of the guest");
    }
    copy(&guest.join("busybox"), &root.join("bin/busybox"));
    for module in MODULES {
        let file = format!("modules/{module}.ko");
        copy(&guest.join(&file), &root.join(&file));
    }
    write(&root.join("init"), init);
    std::fs::set_permissions(root.join("init"), Permissions::from_mode(0o755)).expect("init can be executed");
    run(Command::new("sh").args(["-c", "find . | cpio --quiet -o -H newc"]).current_dir(&root))
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {command:?} ({error}): run `make setup`"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn copy(from: &Path, to: &Path) {
    std::fs::copy(from, to)
        .unwrap_or_else(|error| panic!("cannot copy {} ({error}): run `make setup`", from.display()));
}
