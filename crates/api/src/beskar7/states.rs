//! The words of `status.state`. The schema has no enum, since generations differ: we write the first set and can read
//! both.

/// The BMC has not been reached yet.
pub const ENROLLING: &str = "Enrolling";
/// The hardware is being looked at.
pub const INSPECTING: &str = "Inspecting";
/// Free to be claimed.
pub const AVAILABLE: &str = "Available";
/// Claimed, and being made ready for its order, or waiting for one.
pub const CLAIMED: &str = "Claimed";
/// The order is being carried out.
pub const PROVISIONING: &str = "Provisioning";
/// The order has been carried out; the server belongs to its consumer.
pub const PROVISIONED: &str = "Provisioned";
/// Released: being powered off and cleaned up.
pub const DEPROVISIONING: &str = "Deprovisioning";
/// Left alone because `spec.maintenance` says so.
pub const MAINTENANCE: &str = "Maintenance";
/// Kept from everybody by the annotation `beskar7.io/quarantine`.
pub const QUARANTINED: &str = "Quarantined";
/// A fault on a host that nobody claimed. A claimed host keeps its state.
pub const ERROR: &str = "Error";
/// The object is going away.
pub const DELETING: &str = "Deleting";

/// v0.4's word for [`CLAIMED`].
pub const IN_USE: &str = "InUse";
/// The second generation's state between inspection and [`READY`]; here [`PROVISIONING`].
pub const DEPLOYING: &str = "Deploying";
/// v0.4's word for [`PROVISIONED`].
pub const READY: &str = "Ready";
/// Written by nobody, declared by all.
pub const UNKNOWN: &str = "Unknown";

/// All words that we write, in the order of a life.
pub const ALL: [&str; 11] = [
    ENROLLING,
    INSPECTING,
    AVAILABLE,
    CLAIMED,
    PROVISIONING,
    PROVISIONED,
    DEPROVISIONING,
    MAINTENANCE,
    QUARANTINED,
    ERROR,
    DELETING,
];
