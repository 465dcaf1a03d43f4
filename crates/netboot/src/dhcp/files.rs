//! What is offered to whom.

use std::fmt;
use std::net::Ipv4Addr;

use super::architecture::Architecture;
use super::asker::{Asker, Feature, Features};
use super::request::Request;

/// iPXE for BIOS, which uses the firmware's driver of the network card.
pub const BIOS_LOADER: &str = "undionly.kpxe";
/// iPXE for UEFI, which uses the firmware's driver of the network card it was loaded from.
pub const UEFI_LOADER: &str = "snponly.efi";
/// iPXE for UEFI with drivers of its own, for firmware whose driver is broken.
pub const FULL_UEFI_LOADER: &str = "ipxe.efi";
/// All names that DHCP can advertise by itself. TFTP and HTTP have to serve each.
pub const LOADERS: [&str; 3] = [BIOS_LOADER, UEFI_LOADER, FULL_UEFI_LOADER];

/// What a host may boot, for each way of booting. A way that is missing cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The TFTP server.
    pub tftp: Ipv4Addr,
    /// Name of the file for BIOS, on the TFTP server.
    pub bios: Option<String>,
    /// Name of the file for UEFI, on the TFTP server.
    pub uefi: Option<String>,
    /// URL of the EFI program for UEFI HTTP boot. With an address in it: firmware uses names only if the DHCP offer has DNS.
    pub http: Option<String>,
    /// URL of the script for iPXE.
    pub script: Option<String>,
}

/// What a client is told to boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootFile {
    /// A file of a TFTP server.
    Tftp {
        /// The address of the server.
        server: Ipv4Addr,
        /// The name of the file.
        name: String,
    },
    /// A URL.
    Url(String),
}

/// Why a client is told nothing to boot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoBoot {
    /// The caller has nothing for this host.
    #[error("there is nothing for this host to boot")]
    NothingToBoot,
    /// An installed system renews its lease.
    #[error("it did not ask for a file to boot")]
    NotNetworkBoot,
    /// We have no files for it.
    #[error("{0} cannot be booted over the network here")]
    NotServed(Architecture),
    /// It could be anything.
    #[error("it did not say its architecture (option 93)")]
    NoArchitecture,
    /// A stripped iPXE, as in the ROM of a network card.
    #[error("its iPXE can read no {0} URLs")]
    IpxeLacks(&'static str),
    /// The caller has no file for this way of booting.
    #[error("no {0} is configured")]
    Missing(&'static str),
    /// Firmware would cut it.
    #[error("{what} is {length} bytes long, and only {limit} fit into a DHCP message")]
    TooLong {
        /// What does not fit.
        what: &'static str,
        /// Its length.
        length: usize,
        /// What fits.
        limit: usize,
    },
    /// The client set the limit.
    #[error("the file to boot does not fit into the {0} bytes that the client accepts")]
    NoRoom(usize),
    /// It has to ask for another one before it can boot.
    #[error("its IP address was refused")]
    AddressRefused,
}

impl Files {
    /// Name fields end with a zero byte.
    const NAME_LIMIT: usize = 127;
    /// Firmware does not put an option together from pieces.
    const URL_LIMIT: usize = 255;

    /// What this client boots.
    pub fn for_client(&self, request: &Request) -> Result<BootFile, NoBoot> {
        use Architecture::{Bios, HttpX64, UefiX64, UefiX64As9};
        match (&request.asker, request.architecture()) {
            (Asker::Other, _) => Err(NoBoot::NotNetworkBoot),
            (Asker::Ipxe(_), Some(other)) if !other.is_served() => Err(NoBoot::NotServed(other)),
            (Asker::Ipxe(features), _) => self.script(features),
            (Asker::PxeFirmware, Some(Bios)) => self.tftp(self.bios.as_deref(), "file for BIOS"),
            (Asker::PxeFirmware, Some(UefiX64 | UefiX64As9)) => self.tftp(self.uefi.as_deref(), "file for UEFI"),
            // Some firmware gives the number of PXE for both.
            (Asker::HttpFirmware, Some(HttpX64 | UefiX64 | UefiX64As9)) => {
                url(self.http.as_deref(), "URL for UEFI HTTP boot")
            }
            (_, Some(other)) => Err(NoBoot::NotServed(other)),
            (_, None) => Err(NoBoot::NoArchitecture),
        }
    }

    fn script(&self, features: &Features) -> Result<BootFile, NoBoot> {
        let file = url(self.script.as_deref(), "iPXE script")?;
        let (scheme, feature) = match &file {
            BootFile::Url(url) if url.starts_with("https:") => ("https", Feature::Https),
            BootFile::Url(_) | BootFile::Tftp { .. } => ("http", Feature::Http),
        };
        if features.is_empty() || features.has(feature) { Ok(file) } else { Err(NoBoot::IpxeLacks(scheme)) }
    }

    fn tftp(&self, name: Option<&str>, what: &'static str) -> Result<BootFile, NoBoot> {
        let name = within(name, what, Self::NAME_LIMIT)?;
        Ok(BootFile::Tftp { server: self.tftp, name })
    }
}

fn url(url: Option<&str>, what: &'static str) -> Result<BootFile, NoBoot> {
    within(url, what, Files::URL_LIMIT).map(BootFile::Url)
}

fn within(text: Option<&str>, what: &'static str, limit: usize) -> Result<String, NoBoot> {
    let text = text.filter(|text| !text.is_empty()).ok_or(NoBoot::Missing(what))?;
    if text.len() > limit {
        return Err(NoBoot::TooLong { what, length: text.len(), limit });
    }
    Ok(text.to_owned())
}

impl fmt::Display for BootFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tftp { server, name } => write!(f, "{name} by TFTP from {server}"),
            Self::Url(url) => f.write_str(url),
        }
    }
}
