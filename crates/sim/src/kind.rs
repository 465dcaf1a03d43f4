//! What a request is about, from its path alone, so that recorded and built trees are counted alike.

use std::fmt;

use http::Method;
use serde::{Deserialize, Serialize};

/// HTTP methods that a BMC knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the words of HTTP")]
pub enum Verb {
    Get,
    Head,
    Post,
    Patch,
    Put,
    Delete,
    Other,
}

impl Verb {
    pub(crate) const fn reads(self) -> bool {
        matches!(self, Self::Get | Self::Head)
    }

    /// As in the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Other => "OTHER",
        }
    }
}

impl From<&Method> for Verb {
    fn from(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            Method::PATCH => Self::Patch,
            Method::PUT => Self::Put,
            Method::DELETE => Self::Delete,
            _ => Self::Other,
        }
    }
}

/// The kind of resource or action that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the words of the Redfish schema; a plural or `Collection` is the collection")]
pub enum Kind {
    Versions,
    Root,
    SessionService,
    Sessions,
    Session,
    AccountService,
    Accounts,
    Account,
    Systems,
    System,
    SystemSettings,
    Processors,
    Processor,
    MemoryCollection,
    Memory,
    StorageCollection,
    Storage,
    Drive,
    SimpleStorageCollection,
    SimpleStorage,
    EthernetInterfaces,
    EthernetInterface,
    Bios,
    BiosSettings,
    BootOptions,
    BootOption,
    VirtualMediaCollection,
    VirtualMedia,
    Managers,
    Manager,
    ChassisCollection,
    Chassis,
    UpdateService,
    FirmwareInventory,
    Firmware,
    TaskService,
    Tasks,
    Task,
    TaskMonitor,
    ActionInfo,
    /// `#ComputerSystem.Reset`.
    Reset,
    /// `#Manager.Reset`.
    ManagerReset,
    InsertMedia,
    EjectMedia,
    OtherAction,
    Other,
}

/// Collections by the last part of their path, with the kind of their members.
const COLLECTIONS: &[(&str, Kind, Kind)] = &[
    ("sessions", Kind::Sessions, Kind::Session),
    ("accounts", Kind::Accounts, Kind::Account),
    ("systems", Kind::Systems, Kind::System),
    ("processors", Kind::Processors, Kind::Processor),
    ("memory", Kind::MemoryCollection, Kind::Memory),
    ("storage", Kind::StorageCollection, Kind::Storage),
    ("drives", Kind::Other, Kind::Drive),
    ("simplestorage", Kind::SimpleStorageCollection, Kind::SimpleStorage),
    ("ethernetinterfaces", Kind::EthernetInterfaces, Kind::EthernetInterface),
    ("bootoptions", Kind::BootOptions, Kind::BootOption),
    ("virtualmedia", Kind::VirtualMediaCollection, Kind::VirtualMedia),
    ("managers", Kind::Managers, Kind::Manager),
    ("chassis", Kind::ChassisCollection, Kind::Chassis),
    ("firmwareinventory", Kind::FirmwareInventory, Kind::Firmware),
    ("tasks", Kind::Tasks, Kind::Task),
    ("taskmonitors", Kind::Other, Kind::TaskMonitor),
];

impl Kind {
    /// The kind that this path names; the case of the path does not matter.
    pub fn of(path: &str) -> Self {
        let lower = path.to_ascii_lowercase();
        let parts: Vec<&str> = lower.split('/').filter(|p| !p.is_empty()).collect();
        let Some((&last, before)) = parts.split_last() else { return Self::Other };
        let parent = before.last().copied().unwrap_or_default();
        match (parent, last) {
            ("", "redfish") => return Self::Versions,
            ("redfish", "v1") => return Self::Root,
            ("v1", "sessionservice") => return Self::SessionService,
            ("v1", "accountservice") => return Self::AccountService,
            ("v1", "updateservice") => return Self::UpdateService,
            ("v1", "taskservice") => return Self::TaskService,
            ("bios", "settings" | "sd" | "pending") => return Self::BiosSettings,
            (_, "bios") => return Self::Bios,
            _ => {}
        }
        if parts.contains(&"actions") {
            return match last {
                "computersystem.reset" => Self::Reset,
                "manager.reset" => Self::ManagerReset,
                "virtualmedia.insertmedia" => Self::InsertMedia,
                "virtualmedia.ejectmedia" => Self::EjectMedia,
                _ => Self::OtherAction,
            };
        }
        if last.ends_with("actioninfo") {
            return Self::ActionInfo;
        }
        // Members first: a chassis, a manager and a system may all be called the same.
        if let Some((_, _, member)) = COLLECTIONS.iter().find(|(name, ..)| *name == parent) {
            return *member;
        }
        if let Some((_, collection, _)) = COLLECTIONS.iter().find(|(name, ..)| *name == last) {
            return *collection;
        }
        let grandparent = before.len().checked_sub(2).and_then(|i| before.get(i)).copied();
        if grandparent == Some("systems") && matches!(last, "settings" | "sd" | "pending") {
            return Self::SystemSettings;
        }
        Self::Other
    }

    /// What a server is made of, as opposed to what it is doing.
    pub(crate) const fn is_inventory(self) -> bool {
        matches!(
            self,
            Self::Processors
                | Self::Processor
                | Self::MemoryCollection
                | Self::Memory
                | Self::StorageCollection
                | Self::Storage
                | Self::Drive
                | Self::SimpleStorageCollection
                | Self::SimpleStorage
                | Self::EthernetInterfaces
                | Self::EthernetInterface
                | Self::Bios
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn paths_of_several_vendors_are_told_apart() {
        for (path, kind) in [
            ("/redfish", Kind::Versions),
            ("/redfish/v1", Kind::Root),
            ("/redfish/v1/", Kind::Root),
            ("/redfish/v1/Systems", Kind::Systems),
            ("/redfish/v1/Systems/System.Embedded.1", Kind::System),
            ("/redfish/v1/Systems/system/Settings", Kind::SystemSettings),
            ("/redfish/v1/systems/1/bios/settings/", Kind::BiosSettings),
            ("/redfish/v1/Systems/1/Memory", Kind::MemoryCollection),
            ("/redfish/v1/Systems/1/Memory/DIMM1", Kind::Memory),
            ("/redfish/v1/Systems/S/Storage/CPU.1/Drives/Disk.Bay.0", Kind::Drive),
            ("/redfish/v1/Chassis/chassis", Kind::Chassis),
            ("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", Kind::Reset),
            ("/redfish/v1/Managers/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia", Kind::InsertMedia),
            ("/redfish/v1/SessionService/Sessions/7", Kind::Session),
            ("/redfish/v1/TaskService/TaskMonitors/JID_1", Kind::TaskMonitor),
            ("/redfish/v1/Systems/system/ResetActionInfo", Kind::ActionInfo),
        ] {
            assert_eq!(Kind::of(path), kind, "{path}");
        }
    }
}
