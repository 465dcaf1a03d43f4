//! Beskar7's own resources, group `infrastructure.cluster.x-k8s.io`.
//!
//! Several generations of Beskar7 used the same group, versions and kinds with different fields. The types here are
//! their union: a manifest of any generation applies, and what one generation lacked is optional.

pub mod conditions;
mod hardware;
mod host;
mod inspection;
mod inventory;
pub mod names;
mod references;
pub mod states;
mod status;

pub use hardware::{Bmc, Drive, Firmware, HardwareDetails, HardwareStatus, MemoryModule, NetworkInterface, Processor};
pub use host::{BootMode, LocalObjectReference, Maintenance, PhysicalHost, PhysicalHostSpec, RedfishConnection};
pub use inspection::{Cpu, Disk, InspectionReport, Memory, Nic};
pub use inventory::Inventory;
pub use status::{Bootstrap, Fault, PhysicalHostStatus, TimelineEntry, Waiting};

/// The API group.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The version that is stored, and that we speak.
pub const VERSION: &str = "v1beta1";
/// The first generation's version: served, of the same shape.
pub const OLD_VERSION: &str = "v1alpha1";
