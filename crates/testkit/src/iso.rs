//! A tiny operating system on a bootable ISO, which tells that it runs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::parts;
use crate::pki::write;
use crate::scratch::Scratch;

/// What the network card needs. Which of them needs which differs from kernel to kernel.
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

/// Where an image keeps its boot loaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As `grub-mkrescue` makes it: GRUB for BIOS and UEFI, with one configuration in the ISO's own file system.
    Grub,
    /// isolinux for BIOS; for UEFI, GRUB with its configuration in the FAT image that the boot catalogue names.
    IsolinuxAndFat,
}

const GRUB_MENU: &str = "\
set timeout=0
search --no-floppy --set=root --file /vmlinuz
menuentry tiny {
    linux /vmlinuz console=ttyS0 quiet
    initrd /initrd
}
";

/// Started from a CD, GRUB knows the CD and not the FAT image that it came in.
const FIND_FAT: &str = "\
search --no-floppy --set=disc --file /efi.img
loopback fat ($disc)/efi.img
configfile (fat)/EFI/BOOT/grub.cfg
";

/// What GRUB needs to find the ISO and to start a kernel from it.
const GRUB_MODULES: [&str; 11] = [
    "part_gpt",
    "part_msdos",
    "fat",
    "iso9660",
    "linux",
    "normal",
    "configfile",
    "loopback",
    "search",
    "search_fs_file",
    "echo",
];

/// Builds an ISO for BIOS and UEFI. The system on it fetches what the kernel parameter `config_url` leads to, and posts its kernel
/// command line to `report_url/cmdline` and what it fetched to `report_url/data`.
pub fn build_fetching_iso(layout: Layout, report_url: &str) -> Vec<u8> {
    let guest = parts::home("vm");
    let dir = Scratch::new("iso");
    let tree = dir.join("tree");
    std::fs::create_dir_all(&tree).expect("a directory for the image");
    write(&tree.join("initrd"), initrd(&guest, &dir, &script(&fetch_script(report_url))));
    copy(&guest.join("vmlinuz"), &tree.join("vmlinuz"));
    match layout {
        Layout::Grub => {
            std::fs::create_dir_all(tree.join("boot/grub")).expect("a directory for the boot loader");
            write(&tree.join("boot/grub/grub.cfg"), GRUB_MENU);
            let iso = dir.join("boot.iso");
            run(Command::new("grub-mkrescue").arg("-o").arg(&iso).arg(&tree));
            std::fs::read(&iso).expect("the ISO that was just built")
        }
        Layout::IsolinuxAndFat => {
            put_grub_in_fat(&dir, &tree.join("efi.img"));
            let uefi = ["-eltorito-alt-boot", "-e", "efi.img", "-no-emul-boot"];
            isolinux(&dir, &tree, BOOT_MENU, &uefi)
        }
    }
}

fn put_grub_in_fat(dir: &Path, image: &Path) {
    let (loader, menu, early) = (dir.join("BOOTX64.EFI"), dir.join("grub.cfg"), dir.join("early.cfg"));
    write(&early, FIND_FAT);
    let mut grub = Command::new("grub-mkimage");
    grub.args(["-O", "x86_64-efi", "-p", "/EFI/BOOT", "-c"]).arg(&early).arg("-o").arg(&loader);
    run(grub.args(GRUB_MODULES));
    write(&menu, GRUB_MENU);
    run(Command::new("mkfs.fat").arg("-C").arg(image).arg("4096"));
    run(Command::new("mmd").arg("-i").arg(image).args(["::/EFI", "::/EFI/BOOT"]));
    run(Command::new("mcopy").arg("-i").arg(image).args([&loader, &menu]).arg("::/EFI/BOOT/"));
}

/// Builds an ISO for BIOS machines, in about a second, and returns its bytes.
///
/// The system on it prints `marker` on the serial console. With `report_url` it also posts the marker there, from
/// the fixed address that QEMU's user-mode network expects (see [`WebServer::guest_url`](crate::WebServer::guest_url)).
/// Then it stays up until somebody powers it off.
pub fn build_iso(marker: &str, report_url: Option<&str>) -> Vec<u8> {
    let guest = parts::home("vm");
    let dir = Scratch::new("iso");
    let tree = dir.join("tree");
    std::fs::create_dir_all(&tree).expect("a directory for the image");
    write(&tree.join("initrd"), initrd(&guest, &dir, &init_script(marker, report_url)));
    copy(&guest.join("vmlinuz"), &tree.join("vmlinuz"));
    isolinux(&dir, &tree, BOOT_MENU, &[])
}

/// What a server boots from the network.
#[derive(Debug, Clone)]
pub struct NetworkBoot {
    /// Its kernel.
    pub kernel: Vec<u8>,
    /// Its initial file system.
    pub initrd: Vec<u8>,
}

/// Makes a system that a [`VmLab`](crate::VmLab) on a network boots. It prints its kernel command line on the serial console, and what the
/// kernel parameter `ignition.config.url` leads to. It ignores requests to shut down.
pub fn build_network_boot() -> NetworkBoot {
    let guest = parts::home("vm");
    let dir = Scratch::new("netboot");
    let initrd = initrd(&guest, &dir, &script(&ignition_script()));
    NetworkBoot { kernel: std::fs::read(guest.join("vmlinuz")).expect("the kernel of the guest"), initrd }
}

fn ignition_script() -> String {
    format!(
        "{network}
/bin/busybox mkdir /proc
/bin/busybox mount -t proc proc /proc
line=$(/bin/busybox cat /proc/cmdline)
echo \"cmdline: $line\"
for word in $line; do
    case $word in ignition.config.url=*) url=${{word#ignition.config.url=}} ;; esac
done
until /bin/busybox wget -q -O /data \"$url\"; do
    /bin/busybox sleep 0.5
done
echo \"ignition: $(/bin/busybox cat /data)\"",
        network = network("10.77.0.50/24"),
    )
}

/// Builds an ISO with nothing on it but isolinux and this menu: small, and of no use to a machine.
pub fn build_menu_iso(menu: &str) -> Vec<u8> {
    let dir = Scratch::new("iso");
    let tree = dir.join("tree");
    std::fs::create_dir_all(&tree).expect("a directory for the image");
    isolinux(&dir, &tree, menu, &[])
}

/// Makes a tree bootable by BIOS machines, and by what else the options are for.
fn isolinux(dir: &Path, tree: &Path, menu: &str, options: &[&str]) -> Vec<u8> {
    std::fs::create_dir_all(tree.join("isolinux")).expect("a directory for the boot loader");
    copy(Path::new("/usr/lib/ISOLINUX/isolinux.bin"), &tree.join("isolinux/isolinux.bin"));
    copy(Path::new("/usr/lib/syslinux/modules/bios/ldlinux.c32"), &tree.join("isolinux/ldlinux.c32"));
    write(&tree.join("isolinux/isolinux.cfg"), menu);

    let iso = dir.join("boot.iso");
    let mut xorriso = Command::new("xorriso");
    xorriso
        .args(["-as", "mkisofs", "-quiet", "-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat"])
        .args(["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table"])
        .args(options)
        .arg("-o")
        .args([iso.as_path(), tree]);
    run(&mut xorriso);
    std::fs::read(&iso).expect("the ISO that was just built")
}

/// Tells that it runs, and whom it may concern.
fn init_script(marker: &str, report_url: Option<&str>) -> String {
    let report = report_url.map(|url| report_script(marker, url)).unwrap_or_default();
    script(&format!("echo 'booted: {marker}'\n{report}"))
}

/// Busybox with a script as init; everything else is the kernel.
fn script(body: &str) -> String {
    // Were init to end, the kernel would panic.
    format!(
        "#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/ttyS0 >/dev/ttyS0 2>&1
{body}
while :; do /bin/busybox sleep 3600; done
"
    )
}

/// The address in the kernel parameter is one of the host's loopback. It is reached through the network card, by calling the
/// service itself a proxy.
fn fetch_script(report_url: &str) -> String {
    format!(
        "{network}
/bin/busybox mkdir /proc
/bin/busybox mount -t proc proc /proc
line=$(/bin/busybox cat /proc/cmdline)
for word in $line; do
    case $word in config_url=*) url=${{word#config_url=}} ;; esac
done
host=${{url#http://}}
host=${{host%%/*}}
until http_proxy=http://10.0.2.2:${{host##*:}}/ /bin/busybox wget -q -O /data \"$url\"; do
    /bin/busybox sleep 0.5
done
until /bin/busybox wget -q -O /dev/null --post-data \"$line\" '{report_url}/cmdline'; do
    /bin/busybox sleep 0.2
done
until /bin/busybox wget -q -O /dev/null --post-file /data '{report_url}/data'; do
    /bin/busybox sleep 0.2
done
echo 'reported'",
        network = network(USER_MODE),
    )
}

/// The address that QEMU's user-mode network expects.
const USER_MODE: &str = "10.0.2.15/24";

/// Brings up the network card with that address. A module that comes before one that it
/// needs is taken in a later round.
fn network(address: &str) -> String {
    format!(
        "until /bin/busybox ip link show eth0 >/dev/null 2>&1; do
    for module in {modules}; do
        /bin/busybox insmod /modules/$module.ko 2>/dev/null
    done
done
/bin/busybox ip addr add {address} dev eth0
/bin/busybox ip link set eth0 up",
        modules = MODULES.join(" "),
    )
}

fn report_script(marker: &str, url: &str) -> String {
    format!(
        "{network}
until /bin/busybox wget -q -O /dev/null --post-data '{marker}' '{url}'; do
    /bin/busybox sleep 0.2
done
echo 'reported: {marker}'",
        network = network(USER_MODE),
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
