//! Which program in the client asks: its firmware, iPXE or an operating system (options 60, 77 and 175).

use std::collections::BTreeSet;

use super::options::{ETHERBOOT, Options, USER_CLASS, VENDOR_CLASS};

/// The program that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asker {
    /// iPXE or a relative: it gets a script, and never once more the loader that it may itself have come from.
    Ipxe(Features),
    /// The PXE code in the firmware, which reads files by TFTP.
    PxeFirmware,
    /// The HTTP boot code in UEFI firmware.
    HttpFirmware,
    /// Anything that does not boot from the network, such as an installed system.
    Other,
}

/// What an iPXE can do, from option 175. Empty if it did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features(BTreeSet<u8>);

/// A feature that decides what an iPXE can boot. There are more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Reads http:// URLs.
    Http = 0x13,
    /// Reads https:// URLs.
    Https = 0x14,
    /// Reads from TFTP servers.
    Tftp = 0x15,
    /// Resolves host names.
    Dns = 0x17,
    /// Boots Linux kernels from BIOS.
    BzImage = 0x18,
    /// Starts EFI programs.
    Efi = 0x24,
    /// Uses tagged VLANs.
    Vlan = 0x26,
}

impl Asker {
    pub(super) fn of(options: &Options) -> Self {
        let class = options.bytes(VENDOR_CLASS).unwrap_or_default();
        // Scripts can change the user class, but not option 175.
        let features = options.bytes(ETHERBOOT).and_then(Features::read);
        if let Some(features) = features {
            return Self::Ipxe(features);
        }
        match options.bytes(USER_CLASS) {
            Some(user) if says_ipxe(user) => Self::Ipxe(Features::default()),
            _ if class.starts_with(b"PXEClient") => Self::PxeFirmware,
            _ if class.starts_with(b"HTTPClient") => Self::HttpFirmware,
            _ => Self::Other,
        }
    }

    /// Whether it wants something to boot.
    pub fn boots(&self) -> bool {
        *self != Self::Other
    }
}

impl Features {
    fn read(value: &[u8]) -> Option<Self> {
        Options::within(value).map(|options| Self(options.codes().collect())).filter(|features| !features.0.is_empty())
    }

    /// Whether it said that it can do this.
    pub fn has(&self, feature: Feature) -> bool {
        self.0.contains(&(feature as u8))
    }

    /// Whether it said nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What it said, in words.
    pub fn names(&self) -> Vec<&'static str> {
        Feature::ALL.into_iter().filter(|feature| self.has(*feature)).map(Feature::name).collect()
    }
}

impl Feature {
    const ALL: [Self; 7] = [Self::Http, Self::Https, Self::Tftp, Self::Dns, Self::BzImage, Self::Efi, Self::Vlan];

    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Tftp => "tftp",
            Self::Dns => "dns",
            Self::BzImage => "bzImage",
            Self::Efi => "efi",
            Self::Vlan => "vlan",
        }
    }
}

/// As a plain string, which is what iPXE sends, or in a list with lengths, which is what RFC 3004 says.
fn says_ipxe(user: &[u8]) -> bool {
    const NAME: &[u8] = b"iPXE";
    if user == NAME {
        return true;
    }
    let (mut rest, mut found) = (user, false);
    while let [length, tail @ ..] = rest {
        let Some((class, tail)) = tail.split_at_checked(usize::from(*length)) else { return false };
        found |= class == NAME;
        rest = tail;
    }
    found
}
