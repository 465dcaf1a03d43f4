//! The URLs that BMCs and servers are given.

use std::fmt;

use http::Uri;
use http::uri::Scheme;

use crate::ticket::{Purpose, Ticket};

/// Longer ones do not fit into `Image` of some BMCs.
const LIMIT: usize = 255;
/// BMCs distinguish a CD from a disk by the file extension.
const FILE: &str = "boot.iso";
/// Some firmware starts only what has this ending.
const EFI: &str = "boot.efi";
/// Some firmware takes only what has this ending for a script.
const SCRIPT: &str = "boot.ipxe";
const KERNEL: &str = "kernel";
const INITRD: &str = "initrd-";
/// Where scripts are.
const SCRIPTS: &str = "ipxe";
/// The script that every server starts with.
const ENTRANCE: &str = "boot.ipxe";
/// Where boot files are.
const FILES: &str = "files";
/// More initial RAM disks than anybody uses.
pub const INITRDS: usize = 16;
/// Far longer than any id in use.
const DEPLOYMENT_LIMIT: usize = 128;

/// Makes the URLs below the address that BMCs and servers use for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// Without a slash at the end.
    base: String,
}

/// Why there is no URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// A BMC could not use the address.
    #[error("the boot URL {url:?} cannot be used: {why}")]
    BootUrlInvalid {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// BMCs would cut the URL off.
    #[error("a URL of the boot service would have {chars} characters, but BMCs take {LIMIT}; use a shorter boot URL")]
    TooLong {
        /// What it would have.
        chars: usize,
    },
    /// A deployment id that would change the URL's meaning.
    #[error("the deployment id {0:?} cannot be part of a URL")]
    DeploymentInvalid(String),
}

impl Links {
    /// How it is spoken to: `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.base.split_once("://").map_or("http", |(scheme, _)| scheme)
    }

    /// Takes an address such as `https://boot.example:8443` or `http://10.0.0.1/beskar7/`.
    pub fn new(boot_url: &str) -> Result<Self, LinkError> {
        let invalid = |why| Err(LinkError::BootUrlInvalid { url: boot_url.to_owned(), why });
        if boot_url.contains(['?', '#']) {
            return invalid("leave out what follows the path; some BMCs refuse a query");
        }
        // Boot loaders get it unquoted.
        if !boot_url.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'\\`".contains(&byte)) {
            return invalid("only visible ASCII characters are allowed, and no quotes or backslashes");
        }
        let Ok(uri) = boot_url.parse::<Uri>() else { return invalid("it is not a URL") };
        if uri.scheme() != Some(&Scheme::HTTP) && uri.scheme() != Some(&Scheme::HTTPS) {
            return invalid("it must begin with http:// or https://");
        }
        match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => invalid("it must not contain a user name"),
            Some(authority) if authority.host().is_empty() => invalid("it names no host"),
            Some(_) => Ok(Self { base: boot_url.trim_end_matches('/').to_owned() }),
            None => invalid("it names no host"),
        }
    }

    /// Whether BMCs must speak TLS to us.
    pub fn is_https(&self) -> bool {
        self.base.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }

    /// Where the boot image of a deployment is.
    pub fn iso(&self, deployment: &str, ticket: &Ticket) -> Result<String, LinkError> {
        self.link("iso", deployment, &format!("{ticket}/{FILE}"))
    }

    /// Where the bootstrap data of a deployment is.
    pub fn config(&self, deployment: &str, ticket: &Ticket) -> Result<String, LinkError> {
        self.link("config", deployment, &ticket.to_string())
    }

    /// Where a server finds the files of its bootstrap data, as cloud-init's NoCloud looks for them: their names are appended.
    pub fn no_cloud(&self, deployment: &str, ticket: &Ticket) -> Result<String, LinkError> {
        self.link("config", deployment, &format!("{ticket}/"))
    }

    /// Where a server that boots from the network finds this part of it.
    pub fn part(&self, part: Part, deployment: &str, ticket: &Ticket) -> Result<String, LinkError> {
        self.link("boot", deployment, &format!("{ticket}/{part}"))
    }

    /// Where iPXE finds out who it is, and then what to boot.
    pub fn entrance(&self) -> String {
        format!("{}/{SCRIPTS}/{ENTRANCE}", self.base)
    }

    /// Where iPXE finds what the server with this MAC address and UUID boots. Both may be variables of iPXE.
    pub fn script(&self, mac: &str, uuid: &str) -> String {
        format!("{}/{SCRIPTS}/{mac}/{uuid}", self.base)
    }

    /// Where firmware finds a boot file, such as iPXE itself.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{FILES}/{name}", self.base)
    }

    /// Where a probe tells what it has found. It appends `/register` and the like.
    pub fn registry(&self, probe: &str, ticket: &Ticket) -> Result<String, LinkError> {
        self.link("registry", probe, &ticket.to_string())
    }

    fn link(&self, kind: &str, deployment: &str, rest: &str) -> Result<String, LinkError> {
        if !is_id(deployment) {
            return Err(LinkError::DeploymentInvalid(deployment.to_owned()));
        }
        let link = format!("{}/{kind}/{deployment}/{rest}", self.base);
        if link.len() > LIMIT { Err(LinkError::TooLong { chars: link.len() }) } else { Ok(link) }
    }
}

/// What a path of the boot service requests.
#[derive(Debug, Clone)]
pub struct Asked {
    /// What.
    pub what: What,
    /// Of which deployment, or of which probe.
    pub deployment: String,
    /// By which right.
    pub ticket: Ticket,
}

/// What there is to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The boot image.
    Iso,
    /// The bootstrap data, or a file of it.
    Config(ConfigFile),
    /// A part of what is booted from the network.
    Boot(Part),
    /// Something of the registry.
    Registry(Call),
}

/// A file of bootstrap data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFile {
    /// All of it, for a system that fetches one URL.
    Whole,
    /// The same, as cloud-init calls it.
    UserData,
    /// Who the server is, for cloud-init.
    MetaData,
    /// Nothing, but cloud-init wants to know.
    VendorData,
}

impl ConfigFile {
    fn named(file: &str) -> Option<Self> {
        match file {
            "user-data" => Some(Self::UserData),
            "meta-data" => Some(Self::MetaData),
            "vendor-data" => Some(Self::VendorData),
            _ => None,
        }
    }
}

/// A part of what a server boots from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A script of the user for iPXE.
    Script,
    /// A Linux kernel.
    Kernel,
    /// An initial RAM disk, by its number.
    Initrd(usize),
    /// An EFI program.
    Efi,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script => f.write_str(SCRIPT),
            Self::Kernel => f.write_str(KERNEL),
            Self::Initrd(number) => write!(f, "{INITRD}{number}"),
            Self::Efi => f.write_str(EFI),
        }
    }
}

impl Part {
    fn named(file: &str) -> Option<Self> {
        match file {
            SCRIPT => Some(Self::Script),
            KERNEL => Some(Self::Kernel),
            EFI => Some(Self::Efi),
            _ => {
                let number: usize = file.strip_prefix(INITRD)?.parse().ok()?;
                let part = Self::Initrd(number);
                (number < INITRDS && part.to_string() == file).then_some(part)
            }
        }
    }
}

/// What a path requests that anybody may request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Open {
    /// The script that every server starts with.
    Entrance,
    /// The script of a server.
    Script {
        /// The MAC address that it says it has.
        mac: String,
        /// The UUID that it says it has.
        uuid: String,
    },
    /// A boot file.
    File(String),
}

impl Open {
    /// Reads a path. The part before it does not matter, as for [`Asked::parse`].
    pub fn parse(path: &str) -> Option<Self> {
        let mut segments = path.rsplit('/');
        let (last, before, first) = (segments.next()?, segments.next()?, segments.next());
        match (first, before, last) {
            (Some(_), SCRIPTS, ENTRANCE) => Some(Self::Entrance),
            (Some(_), FILES, name) if !name.is_empty() => Some(Self::File(name.to_owned())),
            (Some(SCRIPTS), mac, uuid) if segments.next().is_some() => {
                Some(Self::Script { mac: mac.to_owned(), uuid: uuid.to_owned() })
            }
            _ => None,
        }
    }
}

/// What a client of the registry wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// Tell what was found in the server.
    Register,
    /// Tell whether the server has booted.
    BootState,
    /// Read what was told of a system.
    System(String),
    /// Forget what was told of a system.
    Delete(String),
}

impl What {
    /// What a ticket must be made for.
    pub fn purpose(&self) -> Purpose {
        match self {
            Self::Iso => Purpose::Iso,
            Self::Config(_) => Purpose::Config,
            Self::Boot(_) => Purpose::Boot,
            Self::Registry(_) => Purpose::Registry,
        }
    }
}

impl Asked {
    /// Reads a path. The part before it does not matter: it is the path of the boot URL, unless a proxy took it off.
    pub fn parse(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.rsplitn(5, '/').collect();
        let (what, ticket, deployment) = match *segments.as_slice() {
            [FILE, ticket, deployment, "iso", _] => (What::Iso, ticket, deployment),
            [ticket, deployment, "config", ..] if segments.len() > 3 => {
                (What::Config(ConfigFile::Whole), ticket, deployment)
            }
            [file, ticket, deployment, "config", _] => (What::Config(ConfigFile::named(file)?), ticket, deployment),
            [file, ticket, deployment, "boot", _] => (What::Boot(Part::named(file)?), ticket, deployment),
            ["register", ticket, probe, "registry", _] => (What::Registry(Call::Register), ticket, probe),
            ["bootstate", ticket, probe, "registry", _] => (What::Registry(Call::BootState), ticket, probe),
            [uuid, call, ticket, probe, before] if before == "registry" || before.ends_with("/registry") => {
                let call = match call {
                    "systems" => Call::System(uuid.to_owned()),
                    "delete" => Call::Delete(uuid.to_owned()),
                    _ => return None,
                };
                (What::Registry(call), ticket, probe)
            }
            _ => return None,
        };
        is_id(deployment).then_some(())?;
        Some(Self { what, deployment: deployment.to_owned(), ticket: ticket.parse().ok()? })
    }
}

fn is_id(deployment: &str) -> bool {
    (1..=DEPLOYMENT_LIMIT).contains(&deployment.len())
        && deployment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "00112233445566778899aabbccddeeff";

    fn ticket() -> Ticket {
        TICKET.parse().unwrap()
    }

    #[test]
    fn links_look_as_bmcs_like_them() {
        let links = Links::new("https://boot.example:8443/").unwrap();
        assert!(links.is_https());
        assert_eq!(links.iso("d1", &ticket()).unwrap(), format!("https://boot.example:8443/iso/d1/{TICKET}/boot.iso"));
        assert_eq!(links.config("d1", &ticket()).unwrap(), format!("https://boot.example:8443/config/d1/{TICKET}"));
        assert!(!Links::new("http://[fd00::1]:8080/b7").unwrap().is_https());
    }

    #[test]
    fn a_link_that_a_bmc_would_cut_off_is_refused() {
        let iso = |path: usize| Links::new(&format!("http://b/{}", "x".repeat(path))).unwrap().iso("d1", &ticket());
        let fits = LIMIT - iso(0).unwrap().len() - 1;
        assert_eq!(iso(fits).unwrap().len(), 255);
        assert_eq!(iso(fits + 1), Err(LinkError::TooLong { chars: 256 }));
    }

    #[test]
    fn addresses_that_no_bmc_could_use_are_refused() {
        for url in [
            "",
            "boot.example",
            "/boot",
            "ftp://boot.example",
            "http://",
            "http://user:secret@boot.example",
            "http://boot.example/?a=b",
            "http://boot.example/#a",
            "http://boot.example/a b",
            "http://boot.example/a'b",
        ] {
            assert!(matches!(Links::new(url), Err(LinkError::BootUrlInvalid { .. })), "{url}");
        }
        let links = Links::new("http://b").unwrap();
        for deployment in ["", "a/b", "..", "a b", "ä", "a%2f", &"a".repeat(129)] {
            let refused = LinkError::DeploymentInvalid(deployment.to_owned());
            assert_eq!(links.iso(deployment, &ticket()), Err(refused.clone()));
            assert_eq!(links.config(deployment, &ticket()), Err(refused));
        }
    }

    #[test]
    fn our_own_links_are_understood_with_and_without_the_path_of_the_boot_url() {
        for base in ["http://b", "http://b/b7/deep"] {
            let links = Links::new(base).unwrap();
            for (link, purpose) in [
                (links.iso("d-1", &ticket()).unwrap(), Purpose::Iso),
                (links.config("d-1", &ticket()).unwrap(), Purpose::Config),
            ] {
                let asked = Asked::parse(link.strip_prefix("http://b").unwrap()).unwrap();
                assert_eq!((asked.what.purpose(), asked.deployment.as_str()), (purpose, "d-1"));
                assert_eq!(asked.ticket.to_string(), TICKET);
            }
            let registry = links.registry("p-1", &ticket()).unwrap();
            for (rest, call) in [
                ("register", Call::Register),
                ("bootstate", Call::BootState),
                ("systems/38947555", Call::System("38947555".to_owned())),
                ("delete/38947555", Call::Delete("38947555".to_owned())),
            ] {
                let asked = Asked::parse(&format!("{}/{rest}", registry.strip_prefix("http://b").unwrap())).unwrap();
                assert_eq!((asked.what, asked.deployment.as_str()), (What::Registry(call), "p-1"));
                assert_eq!(asked.ticket.to_string(), TICKET);
            }
        }
    }

    #[test]
    fn other_paths_are_nobodys() {
        for path in [
            "",
            "/",
            "/iso",
            &format!("iso/d1/{TICKET}/boot.iso"),
            &format!("/iso/d1/{TICKET}"),
            &format!("/iso/d1/{TICKET}/other.iso"),
            &format!("/iso/d1/{TICKET}/boot.iso/"),
            &format!("/config/d1/{TICKET}/boot.iso"),
            &format!("/config/d1/{TICKET}/"),
            &format!("/config//{TICKET}"),
            "/config/d1/0011",
            &format!("/config/../{TICKET}"),
            &format!("/registry/p1/{TICKET}"),
            &format!("/registry/p1/{TICKET}/"),
            &format!("/registry/p1/{TICKET}/other"),
            &format!("/registry/p1/{TICKET}/systems"),
            &format!("/registry/p1/{TICKET}/systems/a/b"),
            &format!("/registry/p1/{TICKET}/register/a"),
            &format!("/iso/p1/{TICKET}/register"),
            &format!("/aregistry/p1/{TICKET}/systems/a"),
            "/registry/p1/0011/register",
        ] {
            assert!(Asked::parse(path).is_none(), "{path}");
        }
    }
}
