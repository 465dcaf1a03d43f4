//! A server as its BMC shows it: power, boot, media. Names follow Redfish.

use serde::{Deserialize, Serialize};

/// Whether the server has power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum PowerState {
    /// Running, or at least powered.
    On,
    /// Standby power only.
    Off,
    /// On its way to `On`.
    PoweringOn,
    /// On its way to `Off`.
    PoweringOff,
    /// Paused by its BMC.
    Paused,
    /// The BMC did not say, or said something unknown.
    #[default]
    Unknown,
}

impl PowerState {
    /// From Redfish's `PowerState`.
    pub fn named(word: &str) -> Self {
        match word {
            "On" => Self::On,
            "Off" => Self::Off,
            "PoweringOn" => Self::PoweringOn,
            "PoweringOff" => Self::PoweringOff,
            "Paused" => Self::Paused,
            // Some BMCs report "Reset", null or no value during a transition.
            _ => Self::Unknown,
        }
    }

    /// Redfish's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::Off => "Off",
            Self::PoweringOn => "PoweringOn",
            Self::PoweringOff => "PoweringOff",
            Self::Paused => "Paused",
            Self::Unknown => "Unknown",
        }
    }
}

/// What to boot from, when the boot order is overridden.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BootTarget {
    /// No override.
    None,
    /// Network, by PXE.
    Pxe,
    /// A CD: here, always the virtual one.
    Cd,
    /// The disk.
    Hdd,
    /// A USB device.
    Usb,
    /// UEFI HTTP boot; the URI comes from here or from DHCP.
    UefiHttp,
    /// The firmware's set-up screen.
    BiosSetup,
    /// Anything else, as the BMC calls it.
    Other(String),
}

impl BootTarget {
    /// Redfish's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "None",
            Self::Pxe => "Pxe",
            Self::Cd => "Cd",
            Self::Hdd => "Hdd",
            Self::Usb => "Usb",
            Self::UefiHttp => "UefiHttp",
            Self::BiosSetup => "BiosSetup",
            Self::Other(word) => word,
        }
    }
}

/// Which firmware boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BootMode {
    /// UEFI.
    #[serde(rename = "UEFI")]
    Uefi,
    /// BIOS.
    Legacy,
}

/// For how long an override is in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Persistence {
    /// Not at all.
    Disabled,
    /// For the next boot.
    Once,
    /// Until it is changed.
    Continuous,
}

/// A boot override: to be set, or as read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootOverride {
    /// From where.
    pub target: BootTarget,
    /// For how long.
    pub persistence: Persistence,
    /// With which firmware; `None` leaves it unchanged, or the BMC does not show it.
    pub mode: Option<BootMode>,
    /// The URI for [`BootTarget::UefiHttp`].
    pub http_uri: Option<String>,
}

impl BootOverride {
    /// Boot from the virtual CD at the next start, and only then.
    pub fn cd_once(mode: Option<BootMode>) -> Self {
        Self { target: BootTarget::Cd, persistence: Persistence::Once, mode, http_uri: None }
    }

    /// Boot from the disk at every start.
    pub fn disk() -> Self {
        Self { target: BootTarget::Hdd, persistence: Persistence::Continuous, mode: None, http_uri: None }
    }

    /// Whether the next boot follows the ordinary boot order (or the disk, where a BMC cannot say "none").
    pub fn is_clear(&self) -> bool {
        self.persistence == Persistence::Disabled || matches!(self.target, BootTarget::None | BootTarget::Hdd)
    }
}

/// How far the boot has come, as the BMC reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum BootProgress {
    /// The BMC does not report it.
    #[default]
    NotReported,
    /// Powered off, or no boot has begun.
    NotStarted,
    /// The firmware's self test is running.
    InPost,
    /// The firmware has started a boot loader, or is about to.
    PostFinished,
    /// The operating system is loading or running.
    OsStarted,
}

/// A virtual CD drive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The BMC's name for the drive.
    pub slot: String,
    /// The image in it.
    pub image: Option<String>,
    /// Whether the server sees it.
    pub inserted: bool,
}

impl Media {
    /// Whether something must be ejected before the drive is empty.
    pub fn is_occupied(&self) -> bool {
        self.inserted || self.image.as_deref().is_some_and(|image| !image.is_empty())
    }

    /// Whether the image in the drive may be the one of this URL. Few BMCs show the URL unchanged: they add a port, drop the
    /// scheme or the query, or show the file name alone. A text that is no name at all matches every URL.
    pub fn may_hold(&self, url: &str) -> bool {
        let shown = self.image.as_deref().unwrap_or_default().trim();
        let is_name = shown.contains('/') || shown.contains('\\') || shown.contains('.');
        if !is_name || shown == url {
            return true;
        }
        let (shown_host, shown_path) = host_and_path(shown);
        let (_, path) = host_and_path(url);
        let mut pairs = shown_path.iter().rev().zip(path.iter().rev());
        let ends_alike = pairs.all(|(shown, ours)| shown.eq_ignore_ascii_case(ours));
        // A BMC that shows the host shows the whole path.
        ends_alike && shown_path.len() <= path.len() && (!shown_host || shown_path.len() == path.len())
    }
}

/// Whether a shown image names a host, and the parts of its path.
fn host_and_path(image: &str) -> (bool, Vec<&str>) {
    let rest = image.split(['?', '#']).next().unwrap_or_default();
    let (has_scheme, rest) = rest
        .split_once("://")
        .map_or((rest.starts_with("//") || rest.starts_with("\\\\"), rest), |(_, rest)| (true, rest));
    let mut parts: Vec<&str> = rest.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    // Without a scheme, a first part with a port or a dot is a host, unless it is all there is or the path begins with a slash.
    let is_host = |part: &&str| part.contains([':', '.', '@']);
    let has_host = has_scheme || (parts.len() > 1 && !rest.starts_with('/') && parts.first().is_some_and(is_host));
    if has_host {
        parts.remove(0);
    }
    (has_host, parts)
}

/// Health of the server, in Redfish's words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Health {
    /// `OK`, `Warning` or `Critical`: of the system itself.
    pub health: Option<String>,
    /// The same, of the system and all its parts.
    pub rollup: Option<String>,
    /// `Enabled`, `StandbyOffline`, …
    pub state: Option<String>,
}

/// How deep to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// One read: power, health, boot override, boot progress.
    Power,
    /// The same and the virtual CD drives.
    Boot,
    /// The same and what the server is made of.
    Inventory,
    /// The BMC itself, and which systems are behind it: nothing is read of a particular server.
    Service,
}

/// What was read from a server at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Power.
    pub power: PowerState,
    /// Health.
    pub health: Health,
    /// The boot override; `None` where the BMC shows none.
    pub boot: Option<BootOverride>,
    /// How far a boot has come.
    pub progress: BootProgress,
    /// Virtual CD drives; `None` when this look did not include them.
    pub media: Option<Vec<Media>>,
    /// Whether there are no drives because remote media are disabled in the BMC's settings.
    #[serde(default)]
    pub media_disabled: bool,
    /// Whether other servers use these drives too: one of them may run from the image in a drive.
    #[serde(default)]
    pub shares_drives: bool,
    /// The only schemes by which the BMC fetches images, such as `https`; empty if it states none.
    #[serde(default)]
    pub image_schemes: Vec<String>,
    /// What the server is made of; `None` when this look did not include it.
    pub hardware: Option<Box<crate::hardware::Hardware>>,
    /// SMBIOS UUID of the system that answered, lower case: tells one server from another behind the same address.
    pub uuid: Option<String>,
    /// SHA-256 of the certificate that the BMC showed, in lower-case hex; `None` over plain HTTP.
    pub certificate: Option<String>,
    /// The BMC itself and which systems are behind it; `None` unless the look was one at the BMC ([`Scope::Service`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Box<Service>>,
}

/// A BMC and which systems are behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Service {
    /// The BMC comes first, then what else manages something there, such as an enclosure manager. Empty if the BMC does not
    /// describe itself. Of a long list, only the beginning.
    pub managers: Vec<Manager>,
    /// All systems behind it, in its own order, which may change from look to look: tell them apart by UUID (see
    /// [`is_same_uuid`](crate::hardware::is_same_uuid)). Empty for an enclosure, and for a while on a BMC that is starting.
    pub systems: Vec<ListedSystem>,
}

/// A BMC or another management controller, in Redfish's words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Manager {
    /// The last part of its URI, unless it states another one.
    pub id: String,
    /// Lower case.
    pub uuid: Option<String>,
    /// Who made it.
    pub manufacturer: Option<String>,
    /// Such as `iLO 5`.
    pub model: Option<String>,
    /// Its own, not the server's.
    pub serial_number: Option<String>,
    /// Its own, not the server's.
    pub part_number: Option<String>,
    /// As the vendor writes it.
    pub firmware_version: Option<String>,
    /// `Enabled`, `Starting`, …
    pub state: Option<String>,
    /// `On`, `Off`, …
    pub power_state: Option<String>,
    /// When it last started, as it states that.
    pub last_reset: Option<String>,
}

/// A system as the BMC lists it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListedSystem {
    /// Where it is on the BMC, such as `/redfish/v1/Systems/1`.
    pub uri: String,
    /// The last part of its URI, unless it states another one.
    pub id: String,
    /// SMBIOS UUID, lower case.
    pub uuid: Option<String>,
    /// Whether its boot can be overridden: a server, and not merely a part of one.
    pub bootable: bool,
}

/// A URL may carry a password or a ticket: host and file name are enough to recognise it.
pub fn without_secrets(image: &str) -> String {
    let (scheme, rest) = image.split_once("://").unwrap_or(("", image));
    let path_and_host = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = path_and_host.split_once('/').unwrap_or((path_and_host, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    match path.rsplit_once('/') {
        Some((_, file)) => format!("{scheme}://{host}/…/{file}"),
        None => format!("{scheme}://{host}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_recognised_however_the_bmc_shows_its_url() {
        let url = "https://images.example/iso/d-1/ticket/boot.iso?x=y";
        let drive = |image: &str| Media { slot: "Cd".into(), image: Some(image.into()), inserted: true };
        for shown in [
            url,
            "https://images.example/iso/d-1/ticket/boot.iso",
            "https://images.example:443/iso/d-1/ticket/boot.iso?x=y",
            "images.example:443/iso/d-1/ticket/boot.iso",
            "images.example/iso/d-1/ticket/boot.iso",
            "//10.0.0.1/iso/d-1/ticket/boot.iso",
            "/iso/d-1/ticket/boot.iso",
            "ticket/boot.iso",
            "boot.iso",
            "BOOT.ISO",
            "",
            "Connected",
        ] {
            assert!(drive(shown).may_hold(url), "{shown}");
        }
        for shown in [
            "https://images.example/iso/d-2/other/boot.iso",
            "images.example:443/iso/d-2/other/boot.iso",
            "https://images.example/boot.iso",
            "/iso/d-2/ticket/boot.iso",
            "other.iso",
        ] {
            assert!(!drive(shown).may_hold(url), "{shown}");
        }
        assert!(Media { slot: "Cd".into(), image: None, inserted: true }.may_hold(url));
    }

    #[test]
    fn a_look_at_a_server_is_stored_without_a_word_of_the_bmc() {
        let stored = serde_json::to_value(Seen::default()).unwrap();
        assert_eq!(stored.get("service"), None);
        assert_eq!(serde_json::from_value::<Seen>(stored).unwrap(), Seen::default());
        let service = Service { systems: vec![ListedSystem::default()], ..Service::default() };
        let seen = Seen { service: Some(Box::new(service)), ..Seen::default() };
        assert_eq!(serde_json::from_value::<Seen>(serde_json::to_value(&seen).unwrap()).unwrap(), seen);
    }

    #[test]
    fn a_url_is_told_without_password_and_ticket() {
        assert_eq!(without_secrets("http://u:p@h:8080/t/SECRET/a.iso?x=y"), "http://h:8080/…/a.iso");
        assert_eq!(without_secrets("https://h/a.iso"), "https://h/a.iso");
        assert_eq!(without_secrets("nonsense"), "://nonsense/");
    }
}
