//! Things to boot.

use std::path::Path;
use std::process::Command;

/// Writes a text to the serial port and powers the machine off, in real mode: `mov si, text; next: lodsb; test al, al; jz off;
/// mov dx, 0x3f8; out dx, al; jmp next; off: mov dx, 0x604; mov ax, 0x2000; out dx, ax; stop: hlt; jmp stop`. Port 0x604 is the power
/// management of QEMU's q35.
pub(crate) fn boot_sector(text: &str) -> Vec<u8> {
    let code = b"\xbe\x1c\x7c\xac\x84\xc0\x74\x06\xba\xf8\x03\xee\xeb\xf5\xba\x04\x06\xb8\x00\x20\xef\xf4\xeb\xfd";
    let mut sector = code.to_vec();
    sector.resize(0x1c, 0);
    sector.extend(text.as_bytes());
    sector.resize(510, 0);
    sector.extend([0x55, 0xaa]);
    sector
}

/// Commands of GRUB on a CD for BIOS and UEFI.
pub(crate) fn iso(commands: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    std::fs::create_dir_all(tree.join("boot/grub")).unwrap();
    std::fs::write(tree.join("boot/grub/grub.cfg"), on_serial(commands)).unwrap();
    let iso = dir.path().join("boot.iso");
    run(Command::new("grub-mkrescue").arg("-o").arg(&iso).arg(&tree), &iso)
}

/// Commands of GRUB in one file for UEFI.
pub(crate) fn efi(commands: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (menu, efi) = (dir.path().join("grub.cfg"), dir.path().join("boot.efi"));
    std::fs::write(&menu, on_serial(commands)).unwrap();
    let mut grub = Command::new("grub-mkimage");
    grub.args(["-O", "x86_64-efi", "-p", "/", "-c"]).arg(&menu).arg("-o").arg(&efi);
    run(grub.args(["normal", "echo", "serial", "terminal", "halt", "reboot"]), &efi)
}

fn on_serial(commands: &str) -> String {
    format!("serial --unit=0\nterminal_output serial\n{commands}\n")
}

fn run(command: &mut Command, made: &Path) -> Vec<u8> {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?} ({error}): run `make setup`"));
    assert!(output.status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(made).unwrap()
}
