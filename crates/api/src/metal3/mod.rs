//! Metal3's hosts, group `metal3.io`: BareMetalHost and HardwareData, as baremetal-operator v0.13 declares them.
//!
//! Three rules, so that others who speak `metal3.io` notice no difference:
//!
//! * The schemas accept whatever upstream's accept.
//! * Values are written as Go writes them: strings, numbers and lists that are empty are left out, structs never are.
//! * Reading never fails on a value that a schema of any release allows: words are strings, not enums, what is missing
//!   is empty, and a time that cannot be read counts as none.

pub mod conditions;
mod hardware;
mod host;
mod image;
pub mod names;
mod raid;
pub(crate) mod rules;
mod schemas;
pub mod states;
mod status;
mod wire;

pub use hardware::{
    Bios, Cpu, Firmware, HardwareData, HardwareDataSpec, HardwareDetails, HardwareSystemVendor, Lldp, Nic, Storage,
    Vlan,
};
pub use host::{BareMetalHost, BareMetalHostSpec, BmcDetails, FirmwareConfig, SecretReference, Taint};
pub use image::{CustomDeploy, Image};
pub use raid::{HardwareRaidVolume, RaidConfig, RootDeviceHints, SoftwareRaidVolume};
pub use status::{BareMetalHostStatus, CredentialsStatus, OperationHistory, OperationMetric, ProvisionStatus};

pub use crate::condition::Condition;

/// The API group.
pub const GROUP: &str = "metal3.io";
/// The only version.
pub const VERSION: &str = "v1alpha1";
