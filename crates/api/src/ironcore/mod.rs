//! The kinds of IronCore's metal-operator, group `metal.ironcore.dev`, as its v0.7 declares them: Endpoint, BMC, BMCSecret, Server,
//! ServerClaim, ServerBootConfiguration, ServerMaintenance and ServerReadinessRule.
//!
//! Three rules, so that others who speak `metal.ironcore.dev` notice no difference:
//!
//! * The schemas accept whatever upstream's accept, but for what an API server must refuse to keep conditions of several writers apart:
//!   two conditions of one type.
//! * Values are written as an API server stores what Go writes: what is empty is left out where Go leaves it out, and where Go writes null.
//! * Reading never fails on a value that a schema of any release allows: words are strings, not enums, what is missing is empty, numbers
//!   may be larger than their format says (API servers do not check it), and a time that cannot be read counts as none.

mod bmc;
mod boot_configuration;
mod claim;
pub mod conditions;
mod endpoint;
mod inventory;
mod maintenance;
pub mod names;
mod quantity;
mod readiness;
mod references;
pub(crate) mod rules;
mod schemas;
mod secret;
mod server;
pub mod states;
mod taints;

pub use bmc::{Bmc, BmcSpec, BmcStatus, ConsoleProtocol, InlineEndpoint, Protocol};
pub use boot_configuration::{ServerBootConfiguration, ServerBootConfigurationSpec, ServerBootConfigurationStatus};
pub use claim::{ServerClaim, ServerClaimSpec, ServerClaimStatus};
pub use endpoint::{Endpoint, EndpointSpec, EndpointStatus};
pub use inventory::{LldpNeighbor, NetworkInterface, Processor, Storage, StorageDrive, StorageVolume};
pub use maintenance::{
    ServerBootConfigurationTemplate, ServerMaintenance, ServerMaintenanceSpec, ServerMaintenanceStatus,
};
pub use readiness::{ConditionRequirement, ServerReadinessRule, ServerReadinessRuleSpec, ServerReadinessRuleStatus};
pub use references::{LocalObjectReference, ObjectReference, ServerClaimReference};
pub use secret::BmcSecret;
pub use server::{BmcAccess, BootOrder, Server, ServerSpec, ServerStatus};
pub use taints::{Taint, Toleration};

pub use crate::condition::Condition;

/// The API group.
pub const GROUP: &str = "metal.ironcore.dev";
/// The only version.
pub const VERSION: &str = "v1alpha1";
