//! Simulated servers that really boot: the flags, and the machines while they run.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ValueEnum;
use sim::qemu::{Bridge, Lab, MachineSpec, Machines, Network, enter_user_namespace};
use sim::{Fleet, Mode, Parts};
use tempfile::TempDir;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Machines")]
pub(crate) struct MachineArgs {
    /// Give each server a QEMU machine that really boots, without KVM; for at most 16 servers
    #[arg(long)]
    qemu: bool,
    /// Firmware of the machines, unless a boot override says otherwise
    #[arg(long, value_name = "FIRMWARE", default_value = "uefi", requires = "qemu")]
    qemu_firmware: Firmware,
    /// Folder for their disks, UEFI variables and serial logs, which are kept; without it they go when the servers do
    #[arg(long, value_name = "DIR", requires = "qemu")]
    qemu_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Firmware {
    Uefi,
    Bios,
}

impl MachineArgs {
    pub(crate) fn is_wanted(&self) -> bool {
        self.qemu
    }

    /// What the servers are made of.
    pub(crate) fn parts(&self) -> Parts {
        if self.qemu { Parts::Machine } else { Parts::Rack }
    }

    /// To be called before anything else is done: it may start the program anew.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        if self.qemu {
            enter_user_namespace().context("--qemu")?;
        }
        Ok(())
    }

    /// The network of the machines, if the servers are to have some.
    pub(crate) fn lab(&self, fleet: &Fleet) -> anyhow::Result<Option<Lab>> {
        if !self.qemu {
            return Ok(None);
        }
        let servers: usize = fleet.bmcs().iter().map(|bmc| bmc.servers().len()).sum();
        Lab::open(u32::try_from(servers).unwrap_or(u32::MAX)).context("--qemu").map(Some)
    }

    /// Gives the servers their machines: in `folder`, unless another one was given.
    pub(crate) fn start(&self, fleet: &Fleet, lab: Lab, folder: Option<&Path>) -> anyhow::Result<Running> {
        let (folder, removed) = if let Some(folder) = self.qemu_dir.as_deref().or(folder) {
            (std::path::absolute(folder).context("--qemu-dir")?, None)
        } else {
            let folder = TempDir::with_prefix("beskar7-").context("cannot make a folder: name one with --qemu-dir")?;
            (folder.path().to_owned(), Some(folder))
        };
        let firmware = match self.qemu_firmware {
            Firmware::Uefi => Mode::Uefi,
            Firmware::Bios => Mode::Legacy,
        };
        let spec = MachineSpec { firmware, ..MachineSpec::default() };
        let machines = Machines::start(fleet, &lab, spec, &folder).context("--qemu")?;
        Ok(Running { machines, lab, folder, removed })
    }
}

/// Machines, until they are stopped or dropped.
pub(crate) struct Running {
    machines: Machines,
    lab: Lab,
    folder: PathBuf,
    removed: Option<TempDir>,
}

impl Running {
    /// Where they are, for those who want to watch.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![format!("  serial:  tail -F {}/*/serial.log", self.folder.display())];
        match self.lab.network() {
            Network::Bridge(Bridge { address, prefix_length }) => {
                lines.push(format!("  network: {address}/{prefix_length} on {}", Bridge::INTERFACE));
                lines.extend(self.lab.entry().map(|entry| format!("           {entry} ip neighbour")));
            }
            user @ Network::User { .. } => {
                lines.extend(user.limits().map(|limits| format!("  network: {limits}")));
            }
        }
        lines.join("\n")
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.machines.stop().await;
        let Some(folder) = self.removed else { return Ok(()) };
        folder.close().with_context(|| format!("cannot remove {}, which is no longer needed", self.folder.display()))
    }
}
