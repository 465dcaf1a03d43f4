//! What runs for each machine: it takes orders from its server, starts and ends QEMU, and reports what happens.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::command::{Boot, Chassis, DRIVE, First, VARS};
use super::media::{Drive, Lost};
use super::network::Lab;
use super::process::{End, Process};
use super::vars::Vars;
use crate::bmc::Core;
use crate::machine::{Order, Orders};
use crate::server::{Mode, PowerState};

#[derive(Debug)]
pub(super) struct Actor {
    pub(super) core: Weak<Core>,
    /// Index of the server.
    pub(super) server: usize,
    pub(super) orders: Orders,
    pub(super) chassis: Chassis,
    pub(super) native: Mode,
    pub(super) lab: Lab,
    pub(super) folder: PathBuf,
    pub(super) drive: Drive,
    pub(super) stop: CancellationToken,
}

/// What follows a boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Off,
    Again,
}

impl Actor {
    /// Ends when it is told to stop, or when the BMC is gone.
    pub(super) async fn run(mut self) {
        while let Some(order) = self.next_order().await {
            match order {
                Order::On | Order::Restart | Order::ShutDownAndStart => {
                    self.report(PowerState::PoweringOn);
                    while self.boot().await == Then::Again {}
                    self.report(PowerState::Off);
                }
                // It went off by itself in the meantime.
                Order::Off | Order::ShutDown | Order::Nmi => self.report(PowerState::Off),
                Order::Medium(url) => self.drive.load(url),
            }
        }
    }

    async fn next_order(&mut self) -> Option<Order> {
        loop {
            tokio::select! {
                order = self.orders.recv() => {
                    let (order, extra) = order?;
                    wait(extra).await;
                    return Some(order);
                }
                fetched = self.drive.fetched() => self.note(fetched),
                () = self.stop.cancelled() => return None,
            }
        }
    }

    /// From the start of the firmware to the end of what it started.
    async fn boot(&mut self) -> Then {
        if !self.has_medium().await {
            return Then::Off;
        }
        let Some(core) = self.core.upgrade() else { return Then::Off };
        let obeyed = core.begin_boot(self.server);
        let boot = Boot::new(obeyed, core.personality.boot.media_target, self.native);
        drop(core);
        let name = &self.chassis.name;
        let mut process = match self.start(&boot).await {
            Ok(process) => process,
            Err(error) => {
                warn!(machine = name, %error, "QEMU does not start");
                return Then::Off;
            }
        };
        info!(machine = name, firmware = boot.firmware.as_str(), first = ?boot.first, "the machine boots");
        self.report(PowerState::On);
        let mut then = Then::Off;
        loop {
            tokio::select! {
                end = process.end() => {
                    info!(machine = self.chassis.name, ?end, "the machine has stopped");
                    return match end {
                        End::Reboot => Then::Again,
                        End::Off => then,
                        End::Failed(_) => Then::Off,
                    };
                }
                fetched = self.drive.fetched() => {
                    self.note(fetched);
                    self.show_medium(&mut process).await;
                }
                () = self.stop.cancelled() => {
                    process.kill().await;
                    return Then::Off;
                }
                order = self.orders.recv() => {
                    let Some((order, extra)) = order else { return Then::Off };
                    wait(extra).await;
                    match order {
                        Order::On => {}
                        Order::Off => {
                            process.kill().await;
                            return Then::Off;
                        }
                        Order::Restart => {
                            process.kill().await;
                            return Then::Again;
                        }
                        Order::ShutDown => {
                            then = Then::Off;
                            process.ask("system_powerdown", None).await;
                        }
                        Order::ShutDownAndStart => {
                            then = Then::Again;
                            process.ask("system_powerdown", None).await;
                        }
                        Order::Nmi => process.ask("inject-nmi", None).await,
                        Order::Medium(url) => {
                            self.drive.load(url);
                            self.show_medium(&mut process).await;
                        }
                    }
                }
            }
        }
    }

    /// Waits until the image is complete that is on its way: firmware looks only once. False if the power is cut before.
    async fn has_medium(&mut self) -> bool {
        while self.drive.is_fetching() {
            tokio::select! {
                fetched = self.drive.fetched() => self.note(fetched),
                () = self.stop.cancelled() => return false,
                order = self.orders.recv() => match order {
                    Some((Order::Medium(url), _)) => self.drive.load(url),
                    None | Some((Order::Off | Order::ShutDown, _)) => return false,
                    Some(_) => {}
                },
            }
        }
        true
    }

    async fn start(&self, boot: &Boot) -> io::Result<Process> {
        if boot.firmware == Mode::Uefi {
            let url = match &boot.first {
                First::Http(url) => url.as_deref(),
                _ => None,
            };
            prepare_vars(&self.folder.join(VARS), url).await?;
        }
        let command = self.chassis.command(boot, self.drive.file());
        Process::start(&self.chassis.name, &self.lab, &self.folder, command).await
    }

    /// The machine sees what is in the drive.
    async fn show_medium(&self, process: &mut Process) {
        match self.drive.file() {
            Some(file) => {
                let arguments = json!({
                    "id": DRIVE, "filename": file, "format": "raw", "read-only-mode": "read-only", "force": true,
                });
                process.ask("blockdev-change-medium", Some(arguments)).await;
            }
            None => process.ask("eject", Some(json!({ "id": DRIVE, "force": true }))).await,
        }
    }

    fn note(&self, fetched: Result<(), Lost>) {
        let Err(lost) = fetched else { return };
        warn!(machine = self.chassis.name, url = lost.url, error = %lost.why, "the image cannot be fetched: the drive is empty");
        if let Some(core) = self.core.upgrade() {
            core.lose_medium(self.server, &lost.url);
        }
    }

    fn report(&self, power: PowerState) {
        if let Some(core) = self.core.upgrade() {
            core.report(self.server, power);
        }
    }
}

async fn wait(extra: Duration) {
    if !extra.is_zero() {
        sleep(extra).await;
    }
}

/// What is written is what firmware finds when it starts; it writes into the same file while it runs.
async fn prepare_vars(file: &Path, url: Option<&str>) -> io::Result<()> {
    let before = tokio::fs::read(file).await?;
    let mut vars = Vars::read(before.clone()).map_err(io::Error::other)?;
    vars.forget_devices();
    vars.boot_next(url);
    let after = vars.write().map_err(io::Error::other)?;
    if after == before { Ok(()) } else { tokio::fs::write(file, after).await }
}
