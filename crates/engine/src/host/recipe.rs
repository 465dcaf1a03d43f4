//! How a system gets onto a server, as data. A recipe becomes a [`Plan`], and the phases carry out plans, whether they use a CD
//! or the network.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::{pace, step::Act};
use crate::server::{BootMode, BootOverride, BootTarget, Persistence, Scope, Seen};

/// How a system gets onto a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipe {
    /// Boot an image from the virtual CD drive.
    Iso {
        /// Where the BMC fetches it.
        url: String,
        /// Which starts boot it.
        starts: Starts,
    },
    /// Boot from the network.
    Network {
        /// The protocol of the firmware.
        protocol: NetworkProtocol,
        /// What it gets there.
        payload: Payload,
        /// Which starts boot from there.
        starts: Starts,
    },
}

/// What a server gets that boots from the network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Payload {
    /// Whatever the site's own DHCP and boot servers give it.
    Site,
    /// A script for iPXE.
    Script {
        /// Where it is.
        url: String,
    },
    /// A Linux kernel.
    Kernel {
        /// Where it is.
        url: String,
        /// Where its initial RAM disks are, in this order.
        initrds: Vec<String>,
        /// Its command line.
        parameters: String,
    },
    /// A unified kernel image, or any other EFI program.
    Efi {
        /// Where it is.
        url: String,
        /// Added to the command line that is built into it.
        parameters: String,
    },
}

/// How firmware boots from the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkProtocol {
    /// DHCP and TFTP, or what DHCP says.
    Pxe,
    /// UEFI HTTP boot.
    Http {
        /// What to fetch; if absent, DHCP decides.
        uri: Option<String>,
    },
}

/// Which starts of a server follow its recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Starts {
    /// The first one. Later ones boot the disk.
    #[default]
    First,
    /// Every start that the operator causes: a live system has no disk to boot from.
    EveryByUs,
}

/// What a recipe means for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    /// How deep to look at the server while this is carried out.
    pub(super) look: Scope,
    /// What arms it, in this order.
    pub(super) arm: Vec<Act>,
    /// What shows that it is armed.
    pub(super) armed: Vec<Check>,
    /// What shows that the server has booted it, the best sign first.
    pub(super) signs: &'static [Sign],
    /// If the BMC can show none of these, the boot is assumed after this time.
    pub(super) silence: SignedDuration,
    /// What follows the boot.
    pub(super) after: After,
    /// What a release must undo.
    pub(super) undo: Vec<Undo>,
}

/// Something that shows that a server is armed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Check {
    /// This image is in a drive.
    Image(String),
    /// The next start boots from there.
    Boots(BootTarget),
}

/// Something that shows that the ordered system has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The system has fetched its configuration.
    ConfigFetched,
    /// The server has fetched what it is to boot.
    ImageFetched,
    /// The server has used its boot override.
    OverrideUsed,
    /// The server has left its self test.
    PostOver,
}

/// What follows the boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Later starts boot the disk.
    Disk,
    /// Every start that the operator causes is armed again.
    SameAgain,
}

/// What a release must undo. Stored in the anchor before it is done: the order may be gone by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Undo {
    /// An image is in the virtual CD drive.
    Media,
    /// The boot override was set to this.
    Boot(BootTarget),
}

/// Signs of a boot that others serve, and of one whose order is gone.
pub(super) const SIGNS: &[Sign] = &[Sign::ConfigFetched, Sign::ImageFetched, Sign::OverrideUsed, Sign::PostOver];
/// Signs of a boot that we serve. A used override only shows that the firmware has read it.
const SERVED_SIGNS: &[Sign] = &[Sign::ConfigFetched, Sign::ImageFetched];

impl Recipe {
    pub(super) fn plan(&self, mode: Option<BootMode>) -> Plan {
        let target = self.target();
        let http_uri = match self {
            Self::Network { protocol: NetworkProtocol::Http { uri }, .. } => uri.clone(),
            _ => None,
        };
        let boot = BootOverride { target: target.clone(), persistence: Persistence::Once, mode, http_uri };
        let mut plan = Plan {
            look: Scope::Power,
            arm: Vec::new(),
            armed: Vec::new(),
            signs: if self.is_served() { SERVED_SIGNS } else { SIGNS },
            silence: pace::SETTLE,
            after: match self.starts() {
                Starts::First => After::Disk,
                Starts::EveryByUs => After::SameAgain,
            },
            undo: Vec::new(),
        };
        if let Self::Iso { url, .. } = self {
            plan.look = Scope::Boot;
            plan.arm.extend([Act::EjectMedia, Act::InsertMedia { url: url.clone() }]);
            plan.armed.push(Check::Image(url.clone()));
            plan.undo.push(Undo::Media);
        }
        plan.arm.push(Act::SetBoot(boot));
        plan.armed.push(Check::Boots(target.clone()));
        plan.undo.push(Undo::Boot(target));
        plan
    }

    /// What a release must undo.
    pub fn undo(&self) -> Vec<Undo> {
        self.plan(None).undo
    }

    /// Which starts follow it.
    pub fn starts(&self) -> Starts {
        let (Self::Iso { starts, .. } | Self::Network { starts, .. }) = self;
        *starts
    }

    /// Whether what it boots comes from us, and we learn of it.
    pub(super) fn is_served(&self) -> bool {
        matches!(self, Self::Network { payload, .. } if *payload != Payload::Site)
    }

    fn target(&self) -> BootTarget {
        match self {
            Self::Iso { .. } => BootTarget::Cd,
            Self::Network { protocol: NetworkProtocol::Pxe, .. } => BootTarget::Pxe,
            Self::Network { protocol: NetworkProtocol::Http { .. }, .. } => BootTarget::UefiHttp,
        }
    }
}

impl Plan {
    /// The image that has to be in the drive.
    pub(super) fn image(&self) -> Option<&str> {
        self.armed.iter().find_map(|check| match check {
            Check::Image(url) => Some(url.as_str()),
            Check::Boots(_) => None,
        })
    }

    pub(super) fn is_armed(&self, seen: &Seen) -> bool {
        self.armed.iter().all(|check| check.holds(seen))
    }
}

impl Check {
    pub(super) fn holds(&self, seen: &Seen) -> bool {
        match self {
            Self::Image(url) => seen.media.iter().flatten().any(|media| media.inserted && media.may_hold(url)),
            // If the BMC does not show it, it may be there.
            Self::Boots(target) => seen
                .boot
                .as_ref()
                .is_none_or(|boot| boot.persistence != Persistence::Disabled && may_mean(&boot.target, target)),
        }
    }
}

/// Whether a BMC that shows `shown` may mean `target`: some use names of their own, and a virtual CD drive is a USB device.
pub(super) fn may_mean(shown: &BootTarget, target: &BootTarget) -> bool {
    match shown {
        BootTarget::Other(_) => true,
        BootTarget::Usb => *target == BootTarget::Cd,
        shown => shown == target,
    }
}
