//! The command line of a machine: one start of QEMU is one boot.

use crate::hardware::Hardware;
use crate::personality::Personality;
use crate::server::{Mode, Override};

use super::network::{CARDS, tap};
use super::tools::{OVMF_CODE, QEMU};

/// Files of a machine, in its folder, which is QEMU's working directory.
pub(super) const DISK: &str = "disk.raw";
pub(super) const VARS: &str = "vars.fd";
pub(super) const SERIAL: &str = "serial.log";

/// The drive's name, by which its medium is changed.
pub(super) const DRIVE: &str = "cd0";

/// What a network card boots with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardRom {
    /// The iPXE that comes with QEMU. It is the only one where the firmware is BIOS.
    #[default]
    Ipxe,
    /// The firmware's own PXE and HTTP clients, as real servers have.
    Firmware,
}

/// What is tried first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum First {
    Disk,
    Cd,
    Network,
    /// UEFI HTTP, with the URL unless DHCP is to give one.
    Http(Option<String>),
}

/// One boot: its firmware, and what it tries first. After that come the disk and the network cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Boot {
    pub(super) firmware: Mode,
    pub(super) first: First,
}

impl Boot {
    /// By the override that the firmware obeys, if any. `media_target` is the word that boots virtual media.
    pub(super) fn new(obeyed: Option<Override>, media_target: &str, native: Mode) -> Self {
        let Some(obeyed) = obeyed else { return Self { firmware: native, first: First::Disk } };
        let first = match obeyed.target.as_str() {
            target if target == media_target => First::Cd,
            "Pxe" => First::Network,
            "UefiHttp" if obeyed.mode == Mode::Uefi => First::Http(obeyed.http_uri),
            // It has no other devices.
            _ => First::Disk,
        };
        Self { firmware: obeyed.mode, first }
    }
}

/// What does not change from boot to boot.
#[derive(Debug)]
pub(super) struct Chassis {
    pub(super) name: String,
    pub(super) manufacturer: &'static str,
    pub(super) hardware: Hardware,
    pub(super) rom: CardRom,
    /// Number of the machine on the bridge; `None` for QEMU's user network.
    pub(super) on_bridge: Option<u32>,
}

impl Chassis {
    pub(super) fn new(
        name: String,
        personality: &Personality,
        hardware: Hardware,
        rom: CardRom,
        on_bridge: Option<u32>,
    ) -> Self {
        Self { name, manufacturer: personality.identity.manufacturer, hardware, rom, on_bridge }
    }

    /// QEMU with its arguments. QMP is on its standard input and output.
    pub(super) fn command(&self, boot: &Boot, medium: Option<&str>) -> (&'static str, Vec<String>) {
        let mut line = Line::default();
        let hardware = &self.hardware;
        line.add("-name", escape(&self.name));
        // Never KVM: where /dev/kvm exists it may not work. Without graphics, a BIOS writes to the serial console.
        line.add("-machine", "q35,graphics=off").add("-accel", "tcg,thread=multi").add("-cpu", "max").add("-smp", "1");
        line.add("-m", format!("{}G", hardware.memory_gib()));
        line.add("-uuid", &hardware.uuid);
        line.add(
            "-smbios",
            format!(
                "type=1,manufacturer={},product={},serial={},uuid={}",
                escape(self.manufacturer),
                escape(hardware.model),
                escape(&hardware.serial),
                hardware.uuid
            ),
        );
        line.alone("-nodefaults").alone("-no-user-config").add("-display", "none");
        // A reboot is the next start.
        line.alone("-no-reboot").add("-boot", "strict=on");
        line.add("-chardev", format!("file,id=serial,path={SERIAL},append=on")).add("-serial", "chardev:serial");
        line.add("-chardev", "stdio,id=qmp,signal=off").add("-mon", "chardev=qmp,mode=control");
        if boot.firmware == Mode::Uefi {
            line.add("-drive", format!("if=pflash,format=raw,unit=0,readonly=on,file={OVMF_CODE}"));
            line.add("-drive", format!("if=pflash,format=raw,unit=1,file={VARS}"));
        }
        let order = Order::of(&boot.first);
        line.add("-drive", format!("if=none,id=disk,format=raw,discard=unmap,file={DISK}"));
        let serial = hardware.disks.first().map(|disk| escape(&disk.serial)).unwrap_or_default();
        line.add("-device", format!("virtio-blk-pci,drive=disk,serial={serial},bootindex={}", order.disk));
        line.add_drive(&order, medium);
        self.add_cards(&mut line, &order, boot);
        (QEMU, line.0)
    }

    fn add_cards(&self, line: &mut Line, order: &Order, boot: &Boot) {
        let is_http = matches!(boot.first, First::Http(_));
        // iPXE would take an HTTP boot for itself, and do something else.
        let is_bare = boot.firmware == Mode::Uefi && (is_http || self.rom == CardRom::Firmware);
        let rom = if is_bare { ",romfile=" } else { "" };
        for (card, mac) in self.hardware.macs.iter().enumerate().take(CARDS) {
            match self.on_bridge {
                Some(machine) => {
                    let tap = tap(machine, card);
                    line.add("-netdev", format!("tap,id=net{card},ifname={tap},script=no,downscript=no"));
                }
                None => {
                    line.add("-netdev", format!("user,id=net{card}"));
                }
            }
            let index = order.cards + card;
            line.add("-device", format!("virtio-net-pci,netdev=net{card},mac={mac},bootindex={index}{rom}"));
        }
        if is_http {
            for version in ["IPv4", "IPv6"] {
                line.add("-fw_cfg", format!("name=opt/org.tianocore/{version}PXESupport,string=n"));
            }
        }
    }
}

/// Boot indices; the lowest is tried first.
struct Order {
    disk: usize,
    cd: Option<usize>,
    /// Of the first card; the others follow.
    cards: usize,
}

impl Order {
    fn of(first: &First) -> Self {
        match first {
            First::Disk => Self { disk: 1, cd: None, cards: 2 },
            First::Cd => Self { disk: 2, cd: Some(1), cards: 3 },
            First::Network | First::Http(_) => Self { disk: 1 + CARDS, cd: None, cards: 1 },
        }
    }
}

#[derive(Default)]
struct Line(Vec<String>);

impl Line {
    fn add(&mut self, flag: &str, value: impl Into<String>) -> &mut Self {
        self.0.extend([flag.to_owned(), value.into()]);
        self
    }

    fn add_drive(&mut self, order: &Order, medium: Option<&str>) {
        let index = order.cd.map(|index| format!(",bootindex={index}")).unwrap_or_default();
        let mut drive = format!("ide-cd,id={DRIVE}{index}");
        if let Some(file) = medium {
            let file = escape(file);
            self.add("-drive", format!("if=none,id=medium,media=cdrom,format=raw,readonly=on,file={file}"));
            drive += ",drive=medium";
        }
        self.add("-device", drive);
    }

    fn alone(&mut self, flag: &str) -> &mut Self {
        self.0.push(flag.to_owned());
        self
    }
}

/// In QEMU's lists of options a comma ends a value, unless there are two.
fn escape(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
