//! Servers that really boot: QEMU machines behind simulated BMCs.
//!
//! [`Machines::start`] gives every server of a [`Fleet`] a machine, in a [`Lab`], which is their network. From then on the server's power is
//! the machine's: switched on, a QEMU process runs; a guest that powers itself off is seen as Off. One start of QEMU is one boot, also when
//! the guest reboots, so that the boot override and the medium of that boot are simply on its command line, and a one-time override is used
//! up by it. How far a boot has come is not known, so the BMC says nothing of it.
//!
//! Machines are emulated, never virtualised by KVM, and have one processor, 1 GiB of memory, a disk of 1 GiB and two network cards.

mod actor;
mod command;
mod error;
mod media;
mod network;
mod process;
mod tools;
mod vars;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fleet::Fleet;
use crate::hardware::Hardware;
use crate::server::Mode;

pub use command::CardRom;
pub use error::QemuError;
pub use network::{Bridge, Lab, MOST_MACHINES, Network, enter_user_namespace};

use actor::Actor;
use command::{Chassis, DISK, SERIAL, VARS};
use media::Drive;

/// How machines are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Firmware with which they boot unless an override says otherwise.
    pub firmware: Mode,
    /// What their network cards boot with.
    pub rom: CardRom,
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self { firmware: Mode::Uefi, rom: CardRom::Ipxe }
    }
}

/// The machines of a fleet. They end when this is dropped.
#[derive(Debug)]
pub struct Machines {
    actors: JoinSet<()>,
    stop: CancellationToken,
    folders: Vec<PathBuf>,
}

impl Machines {
    /// Gives each server of a fleet a machine, with a folder of its own below `folder`. Servers that are on are started. What is in the
    /// folders from earlier, such as disks, stays.
    pub fn start(fleet: &Fleet, lab: &Lab, spec: MachineSpec, folder: &Path) -> Result<Self, QemuError> {
        tools::check()?;
        let mut plans = Vec::new();
        for bmc in fleet.bmcs() {
            let hardware = bmc.hardware().ok_or_else(|| QemuError::Recorded { bmc: bmc.name().to_owned() })?;
            plans.extend(hardware.iter().enumerate().map(|(server, hardware)| (bmc, server, hardware.clone())));
        }
        let asked = u32::try_from(plans.len()).unwrap_or(u32::MAX);
        if asked > lab.machines() {
            return Err(QemuError::TooMany { asked, most: lab.machines() });
        }
        let mut machines = Self { actors: JoinSet::new(), stop: CancellationToken::new(), folders: Vec::new() };
        for (number, (bmc, server, hardware)) in (0..).zip(plans) {
            let name = match bmc.servers().as_slice() {
                [_] => bmc.name().to_owned(),
                servers => format!("{}-{}", bmc.name(), servers.get(server).map_or("", |server| server.id.as_str())),
            };
            let folder = folder.join(&name);
            furnish(&folder, &hardware)?;
            let on_bridge = matches!(lab.network(), Network::Bridge(_)).then_some(number);
            let actor = Actor {
                core: Arc::downgrade(&bmc.0),
                server,
                orders: bmc.connect(server, spec.firmware),
                chassis: Chassis::new(name, bmc.personality(), hardware, spec.rom, on_bridge),
                native: spec.firmware,
                lab: lab.clone(),
                folder: folder.clone(),
                drive: Drive::new(lab.clone(), folder.clone()),
                stop: machines.stop.clone(),
            };
            machines.actors.spawn(actor.run());
            machines.folders.push(folder);
        }
        Ok(machines)
    }

    /// Where the files of each machine are: `serial.log`, `disk.raw`, `vars.fd` and `qemu.log`.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// All that a machine has written to its serial console, by its number.
    pub fn serial(&self, number: usize) -> String {
        let bytes = self.folders.get(number).and_then(|folder| fs::read(folder.join(SERIAL)).ok());
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }

    /// Ends all of them, as when the power fails, and waits until they have ended.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.actors.join_next().await.is_some() {}
    }
}

/// What a machine finds when it is switched on for the first time: an empty disk, and firmware that nobody has set up.
fn furnish(folder: &Path, hardware: &Hardware) -> Result<(), QemuError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |why| QemuError::Folder { path, why }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let disk = folder.join(DISK);
    if !disk.exists() {
        let bytes = hardware.disks.first().map_or(0, |disk| disk.bytes);
        fs::File::create(&disk).and_then(|file| file.set_len(bytes)).map_err(failed(&disk))?;
    }
    let vars = folder.join(VARS);
    if !vars.exists() {
        fs::copy(tools::OVMF_VARS, &vars).map_err(failed(&vars))?;
    }
    Ok(())
}
