//! One server behind a BMC: power, POST, what it boots, and the media in its virtual drives.
//!
//! Nothing here runs by itself. A server only remembers when its next change is due, and [`Server::settle`] plays the
//! changes that are due when somebody looks. A thousand servers at rest therefore cost no timer and no CPU.
//!
//! A server may also have a machine: a process that is switched on and off in its stead, and reports what happens. Then its power is the
//! machine's, and what it boots is not known.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::machine::Link;

/// How long a server takes for its changes of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// From the command until the power is on and POST begins.
    #[serde(with = "crate::seconds")]
    pub power_on: Duration,
    /// From a hard power off until the power is off.
    #[serde(with = "crate::seconds")]
    pub power_off: Duration,
    /// How long the operating system takes to shut down on request.
    #[serde(with = "crate::seconds")]
    pub shutdown: Duration,
    /// Power-on self test, until the boot loader has control.
    #[serde(with = "crate::seconds")]
    pub post: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            power_on: Duration::from_secs(2),
            power_off: Duration::from_secs(3),
            shutdown: Duration::from_secs(20),
            post: Duration::from_mins(1),
        }
    }
}

impl Timing {
    /// Everything happens at once.
    pub const INSTANT: Self =
        Self { power_on: Duration::ZERO, power_off: Duration::ZERO, shutdown: Duration::ZERO, post: Duration::ZERO };
}

/// What an operating system takes from its boot loader until it runs.
const OS_START: Duration = Duration::from_secs(10);

/// `PowerState` of a ComputerSystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PowerState {
    /// The host has power.
    On,
    /// The host has no power.
    Off,
    /// On its way up.
    PoweringOn,
    /// On its way down.
    PoweringOff,
}

impl PowerState {
    /// The Redfish word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
            Self::PoweringOn => "PoweringOn",
            Self::PoweringOff => "PoweringOff",
        }
    }
}

/// `BootSourceOverrideEnabled`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Enabled {
    /// The boot order decides.
    #[default]
    Disabled,
    /// For the next boot only.
    Once,
    /// For every boot.
    Continuous,
}

impl Enabled {
    /// The Redfish word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Once => "Once",
            Self::Continuous => "Continuous",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Disabled, Self::Once, Self::Continuous].into_iter().find(|e| e.as_str() == word)
    }
}

/// `BootSourceOverrideMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// UEFI boot.
    #[default]
    #[serde(rename = "UEFI")]
    Uefi,
    /// BIOS boot.
    Legacy,
}

impl Mode {
    /// The Redfish word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Uefi => "UEFI",
            Self::Legacy => "Legacy",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [Self::Uefi, Self::Legacy].into_iter().find(|m| m.as_str() == word)
    }
}

/// The boot override as the BMC holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Override {
    /// `BootSourceOverrideTarget`; a string, because vendors have words of their own (`UsbCd`).
    pub target: String,
    /// `BootSourceOverrideEnabled`.
    pub enabled: Enabled,
    /// `BootSourceOverrideMode`.
    pub mode: Mode,
    /// `HttpBootUri`.
    pub http_uri: Option<String>,
}

impl Default for Override {
    fn default() -> Self {
        Self { target: "None".to_owned(), enabled: Enabled::Disabled, mode: Mode::Uefi, http_uri: None }
    }
}

/// Where a boot came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum BootSource {
    /// Virtual media, with the URL of its image.
    Cd(String),
    /// The network, by PXE.
    Pxe,
    /// The local disk: also what is left when nothing else can boot.
    Hdd,
    /// The network, by UEFI HTTP, with the URI if one was given.
    UefiHttp(Option<String>),
    /// Anything else that was asked for, by its Redfish word (`BiosSetup`, `Diags`, …).
    Other(String),
}

/// A boot that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booted {
    /// What took control after POST.
    pub from: BootSource,
    /// When.
    pub at: Instant,
}

/// `ResetType` of `#ComputerSystem.Reset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the words of the Redfish schema")]
pub enum ResetType {
    On,
    ForceOn,
    ForceOff,
    GracefulShutdown,
    GracefulRestart,
    ForceRestart,
    PowerCycle,
    FullPowerCycle,
    PushPowerButton,
    Nmi,
}

impl ResetType {
    /// The Redfish word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::ForceOn => "ForceOn",
            Self::ForceOff => "ForceOff",
            Self::GracefulShutdown => "GracefulShutdown",
            Self::GracefulRestart => "GracefulRestart",
            Self::ForceRestart => "ForceRestart",
            Self::PowerCycle => "PowerCycle",
            Self::FullPowerCycle => "FullPowerCycle",
            Self::PushPowerButton => "PushPowerButton",
            Self::Nmi => "Nmi",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        [
            Self::On,
            Self::ForceOn,
            Self::ForceOff,
            Self::GracefulShutdown,
            Self::GracefulRestart,
            Self::ForceRestart,
            Self::PowerCycle,
            Self::FullPowerCycle,
            Self::PushPowerButton,
            Self::Nmi,
        ]
        .into_iter()
        .find(|r| r.as_str() == word)
    }
}

/// One virtual drive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// URL of the image.
    pub image: Option<String>,
    /// Whether the host sees a medium.
    pub inserted: bool,
    /// As the last insertion asked for.
    pub write_protected: bool,
    /// Whether a CD can be in it, which is what an override to `Cd` boots.
    pub bootable: bool,
    /// The name that some BMCs keep showing after an eject.
    pub image_name: Option<String>,
    /// An eject that was accepted, and the time until which the old state is still reported.
    #[serde(skip)]
    pub(crate) ejecting: Option<(Instant, String)>,
}

/// What the running system does when it is asked to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guest {
    /// It shuts down.
    #[default]
    Obeys,
    /// It ignores the request (no ACPI daemon, an installer, a hang).
    Ignores,
}

/// How the firmware handles a one-time override.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Once {
    /// It is used up and obeyed.
    Obeyed,
    /// It is used up, and the disk boots.
    Consumed,
    /// It stays armed, and the disk boots.
    Kept,
}

/// What a change of power ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Off,
    PowerOn,
    Post,
}

/// What gives a server its power and its boots.
#[derive(Clone, Debug)]
enum Body {
    /// Time: what is due happens.
    Timed(Phase),
    /// A machine, which is told what to do and reports what happens.
    Machine(Link),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Off,
    PoweringOn {
        until: Instant,
    },
    Post {
        until: Instant,
        /// The override target as firmware read it when POST began; `None` is the boot order.
        latched: Option<String>,
    },
    Running,
    /// The guest is shutting down by itself: still `On`.
    ShuttingDown {
        until: Instant,
        then: Then,
    },
    /// The power is being cut.
    PoweringOff {
        until: Instant,
        then: Then,
    },
}

impl Phase {
    fn power(&self) -> PowerState {
        match self {
            Self::Off => PowerState::Off,
            Self::PoweringOn { .. } => PowerState::PoweringOn,
            Self::PoweringOff { .. } => PowerState::PoweringOff,
            Self::Post { .. } | Self::Running | Self::ShuttingDown { .. } => PowerState::On,
        }
    }
}

/// The state of one server. Tests see the real state through [`crate::Bmc::server`], whatever the BMC reports.
#[derive(Clone, Debug)]
pub struct Server {
    /// `Id` of the ComputerSystem.
    pub id: String,
    /// The override that the BMC holds.
    pub boot: Override,
    /// The one-time override that was used last, unless another was set since.
    pub used_override: Option<Override>,
    /// The virtual drives, in the order of their resources.
    pub slots: Vec<Slot>,
    /// What runs now; `None` while the server is off or in POST, and always where a machine runs.
    pub booted: Option<Booted>,
    /// What it booted last, also when it is off now.
    pub last_boot: Option<Booted>,
    /// Number of boots; of a machine, how often its firmware has started.
    pub boots: u32,
    /// Number of resets that the BMC carried out: every change of power or restart that it was told to do.
    pub resets: u32,
    /// Non-maskable interrupts.
    pub nmis: u32,
    /// How the operating system reacts to a shutdown request.
    pub guest: Guest,
    /// Delays.
    pub timing: Timing,
    /// The override target that boots virtual media; `Cd`, but `UsbCd` on some.
    pub(crate) media_target: &'static str,
    /// Its drives are those of the first server behind the same manager.
    pub(crate) borrows_drives: bool,
    /// When the last power command was carried out.
    pub(crate) commanded_at: Option<Instant>,
    /// When power last went on or off, and what it was before.
    pub(crate) turned: Option<(Instant, PowerState)>,
    body: Body,
}

impl Server {
    pub(crate) fn new(id: String, power: PowerState, slots: Vec<Slot>, timing: Timing, now: Instant) -> Self {
        let mut server = Self {
            id,
            boot: Override::default(),
            used_override: None,
            slots,
            booted: None,
            last_boot: None,
            boots: 0,
            resets: 0,
            nmis: 0,
            guest: Guest::Obeys,
            timing,
            media_target: "Cd",
            borrows_drives: false,
            commanded_at: None,
            turned: None,
            body: Body::Timed(Phase::Off),
        };
        if matches!(power, PowerState::On | PowerState::PoweringOn) {
            server.body = Body::Timed(Phase::Running);
            server.booted = Some(Booted { from: BootSource::Hdd, at: now });
            server.last_boot.clone_from(&server.booted);
        }
        server
    }

    /// The power as it is.
    pub fn power(&self) -> PowerState {
        match &self.body {
            Body::Timed(phase) => phase.power(),
            Body::Machine(link) => link.power(),
        }
    }

    /// Whether the power-on self test is known to be running.
    pub fn in_post(&self) -> bool {
        matches!(self.body, Body::Timed(Phase::Post { .. }))
    }

    /// The image in the drive that an override to virtual media would boot.
    pub fn media(&self) -> Option<&str> {
        medium(&self.slots)
    }

    /// `BootProgress.LastState`, if it is known.
    pub(crate) fn boot_progress(&self, now: Instant) -> Option<&'static str> {
        Some(match (&self.body, &self.booted) {
            (Body::Machine(link), _) => return (link.power() == PowerState::Off).then_some("None"),
            (Body::Timed(Phase::Post { .. }), _) => "SystemHardwareInitializationComplete",
            (Body::Timed(Phase::Running | Phase::ShuttingDown { .. }), Some(booted)) => {
                // A server whose delays are all nothing is up at once.
                let start = OS_START.min(self.timing.post);
                if now < booted.at + start { "OSBootStarted" } else { "OSRunning" }
            }
            _ => "None",
        })
    }

    /// HPE's `PostState`.
    pub(crate) fn post_state(&self, now: Instant) -> &'static str {
        match &self.body {
            Body::Machine(link) if link.power() == PowerState::On => "Unknown",
            Body::Timed(Phase::Post { until, .. }) => {
                let rest = until.saturating_duration_since(now);
                if rest > self.timing.post / 2 { "InPost" } else { "InPostDiscoveryComplete" }
            }
            Body::Timed(Phase::Running | Phase::ShuttingDown { .. }) => "FinishedPost",
            Body::Timed(_) | Body::Machine(_) => "PowerOff",
        }
    }

    /// Plays every change that is due. `once` is asked, with the time at which POST begins, what the firmware makes of a
    /// one-time override this time.
    pub(crate) fn settle(&mut self, now: Instant, once: &mut dyn FnMut(Instant) -> Once) {
        while let Body::Timed(phase) = &mut self.body {
            match *phase {
                Phase::PoweringOn { until } if until <= now => {
                    self.turned = Some((until, PowerState::Off));
                    self.begin_post(until, once);
                }
                Phase::Post { until, ref mut latched } if until <= now => {
                    let latched = latched.take();
                    self.boot_now(latched.as_deref(), until);
                }
                Phase::ShuttingDown { until, then } if until <= now => match then {
                    Then::Post => self.begin_post(until, once),
                    Then::Off | Then::PowerOn => *phase = Phase::PoweringOff { until, then },
                },
                Phase::PoweringOff { until, then } if until <= now => {
                    self.turned = Some((until, PowerState::On));
                    self.booted = None;
                    *phase = match then {
                        Then::Off => Phase::Off,
                        Then::PowerOn | Then::Post => Phase::PoweringOn { until: until + self.timing.power_on },
                    };
                }
                _ => break,
            }
        }
        if let Body::Machine(link) = &mut self.body {
            link.load(medium(&self.slots));
        }
        for slot in &mut self.slots {
            if slot.ejecting.as_ref().is_some_and(|(until, _)| *until <= now) {
                slot.ejecting = None;
            }
        }
    }

    fn begin_post(&mut self, at: Instant, once: &mut dyn FnMut(Instant) -> Once) {
        self.booted = None;
        let latched = self.latch(at, once).map(|taken| taken.target);
        self.body = Body::Timed(Phase::Post { until: at + self.timing.post, latched });
    }

    /// The override that firmware obeys in the boot that begins now; a one-time override is used up by that.
    fn latch(&mut self, at: Instant, once: &mut dyn FnMut(Instant) -> Once) -> Option<Override> {
        match self.boot.enabled {
            Enabled::Disabled => None,
            Enabled::Continuous => Some(self.boot.clone()),
            Enabled::Once => match once(at) {
                Once::Kept => None,
                taken => {
                    let used = self.boot.clone();
                    self.used_override = Some(used.clone());
                    "None".clone_into(&mut self.boot.target);
                    self.boot.enabled = Enabled::Disabled;
                    (taken == Once::Obeyed).then_some(used)
                }
            },
        }
    }

    fn boot_now(&mut self, latched: Option<&str>, at: Instant) {
        let from = match latched {
            None | Some("None" | "Hdd") => BootSource::Hdd,
            Some(target) if target == self.media_target => {
                self.media().map_or(BootSource::Hdd, |image| BootSource::Cd(image.to_owned()))
            }
            // A physical drive, which these servers do not have.
            Some("Cd" | "UsbCd" | "Floppy" | "Usb") => BootSource::Hdd,
            Some("Pxe") => BootSource::Pxe,
            Some("UefiHttp") => BootSource::UefiHttp(self.boot.http_uri.clone()),
            Some(other) => BootSource::Other(other.to_owned()),
        };
        self.boots += 1;
        self.booted = Some(Booted { from, at });
        self.last_boot.clone_from(&self.booted);
        self.body = Body::Timed(Phase::Running);
    }

    /// Carries out a reset that was accepted; `extra` is what a slow power control adds. The caller has settled before.
    pub(crate) fn reset(&mut self, kind: ResetType, now: Instant, extra: Duration) {
        let off = self.power() == PowerState::Off;
        if kind == ResetType::Nmi {
            self.nmis += u32::from(!off);
        }
        let done = match &mut self.body {
            Body::Timed(phase) => match phase.after(kind, self.guest, &self.timing, now, extra) {
                Some(next) => {
                    *phase = next;
                    true
                }
                None => false,
            },
            Body::Machine(link) => link.reset(kind, self.guest, extra),
        };
        if done {
            self.resets += 1;
            self.commanded_at = Some(now);
        }
    }

    /// Its power and its boots are a machine's from now on. `native` is the firmware that it boots with unless told otherwise.
    pub(crate) fn connect(&mut self, mut link: Link, native: Mode) {
        if self.power() != PowerState::Off {
            link.reset(ResetType::On, self.guest, Duration::ZERO);
        }
        self.boot.mode = native;
        self.booted = None;
        self.last_boot = None;
        self.body = Body::Machine(link);
    }

    /// A machine's firmware starts: this is the override that it obeys.
    pub(crate) fn begin_boot(&mut self, at: Instant, once: &mut dyn FnMut(Instant) -> Once) -> Option<Override> {
        self.boots += 1;
        self.latch(at, once)
    }

    /// A machine's power is so now.
    pub(crate) fn report(&mut self, power: PowerState, at: Instant) {
        let Body::Machine(link) = &mut self.body else { return };
        let before = link.report(power);
        let has_turned = matches!(
            (before, power),
            (PowerState::Off | PowerState::PoweringOn, PowerState::On)
                | (PowerState::On | PowerState::PoweringOff, PowerState::Off)
        );
        if has_turned {
            let before = if power == PowerState::On { PowerState::Off } else { PowerState::On };
            self.turned = Some((at, before));
        }
    }
}

fn medium(slots: &[Slot]) -> Option<&str> {
    slots.iter().find(|slot| slot.bootable && slot.inserted).and_then(|slot| slot.image.as_deref())
}

impl Phase {
    /// The phase that a reset leads to; `None` if nothing happens.
    fn after(&self, kind: ResetType, guest: Guest, timing: &Timing, now: Instant, extra: Duration) -> Option<Self> {
        let cut = |then| Self::PoweringOff { until: now + timing.power_off + extra, then };
        let up = Self::PoweringOn { until: now + timing.power_on + extra };
        // A guest is only asked when one runs; during POST the button is wired to the power.
        let polite = |then| match (self, guest) {
            (Self::Running, Guest::Obeys) => Some(Self::ShuttingDown { until: now + timing.shutdown + extra, then }),
            (Self::Post { .. } | Self::PoweringOn { .. }, _) => Some(cut(then)),
            _ => None,
        };
        let off = *self == Self::Off;
        match kind {
            ResetType::Nmi => None,
            ResetType::ForceOff | ResetType::GracefulShutdown if off => None,
            _ if off => Some(up),
            // A power-on during shutdown: it shuts down first.
            ResetType::On | ResetType::ForceOn => match *self {
                Self::PoweringOff { until, .. } => Some(Self::PoweringOff { until, then: Then::PowerOn }),
                _ => None,
            },
            ResetType::ForceOff => Some(cut(Then::Off)),
            ResetType::GracefulShutdown | ResetType::PushPowerButton => polite(Then::Off),
            ResetType::GracefulRestart => polite(Then::Post),
            // The power stays on; the reset line is pulled.
            ResetType::ForceRestart => Some(Self::ShuttingDown { until: now + extra, then: Then::Post }),
            ResetType::PowerCycle | ResetType::FullPowerCycle => Some(cut(Then::PowerOn)),
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
