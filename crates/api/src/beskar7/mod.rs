//! Beskar7's own resources, group `infrastructure.cluster.x-k8s.io`.
//!
//! Several generations of Beskar7 used the same group, versions and kinds with different fields. The types here are
//! their union: a manifest of any generation applies, and what one generation lacked is optional.

mod cluster;
pub mod conditions;
mod hardware;
mod host;
mod inspection;
mod inventory;
mod machine;
mod machine_status;
mod mode;
pub mod names;
mod provider_id;
mod references;
mod selector;
pub mod states;
mod status;
mod templates;

pub use cluster::{Beskar7Cluster, Beskar7ClusterSpec, Beskar7ClusterStatus};
pub use hardware::{
    Bmc, Drive, Firmware, HardwareDetails, HardwareStatus, MemoryModule, NetworkInterface, Processor, VirtualMedia,
};
pub use host::{
    BootFormat, BootMode, LocalObjectReference, Maintenance, NetworkBoot, NetworkProtocol, PhysicalHost,
    PhysicalHostSpec, RedfishConnection, RemoteConfig,
};
pub use inspection::{Cpu, Disk, InspectionReport, Memory, Nic};
pub use inventory::Inventory;
pub use machine::{Beskar7Machine, Beskar7MachineSpec, HardwareRequirements, MachineBoot, ReleasePolicy};
pub use machine_status::{Beskar7MachineStatus, HostRefusal, phases};
pub use mode::{Mode, OsFamily, ProvisioningMode};
pub use provider_id::{NotAProviderId, ProviderId};
pub use selector::{HostSelector, SelectorOperator, SelectorRequirement};
pub use status::{Bootstrap, Fault, PhysicalHostStatus, TimelineEntry, Waiting};
pub use templates::{
    Beskar7ClusterTemplate, Beskar7ClusterTemplateResource, Beskar7ClusterTemplateSpec, Beskar7MachineTemplate,
    Beskar7MachineTemplateResource, Beskar7MachineTemplateSpec,
};

/// The API group.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The version that is stored, and that we speak.
pub const VERSION: &str = "v1beta1";
/// The first generation's version: served, of the same shape.
pub const OLD_VERSION: &str = "v1alpha1";
