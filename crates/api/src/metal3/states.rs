//! The words of `status.provisioning.state`, `status.operationalStatus` and `status.errorType`.

/// Nothing has been done yet.
pub const NONE: &str = "";
/// No BMC is given.
pub const UNMANAGED: &str = "unmanaged";
/// The BMC has not been reached yet.
pub const REGISTERING: &str = "registering";
/// Written by old releases only.
pub const MATCH_PROFILE: &str = "match profile";
/// RAID and firmware are being configured.
pub const PREPARING: &str = "preparing";
/// Old releases' word for [`AVAILABLE`].
pub const READY: &str = "ready";
/// Free to be provisioned.
pub const AVAILABLE: &str = "available";
/// An image is being deployed.
pub const PROVISIONING: &str = "provisioning";
/// An image has been deployed.
pub const PROVISIONED: &str = "provisioned";
/// Somebody else has provisioned the server.
pub const EXTERNALLY_PROVISIONED: &str = "externally provisioned";
/// The image is being removed.
pub const DEPROVISIONING: &str = "deprovisioning";
/// The hardware is being looked at.
pub const INSPECTING: &str = "inspecting";
/// The server is being powered off because the object is going away.
pub const POWERING_OFF_BEFORE_DELETE: &str = "powering off before delete";
/// The object is going away.
pub const DELETING: &str = "deleting";

/// All states.
pub const ALL: [&str; 14] = [
    NONE,
    UNMANAGED,
    REGISTERING,
    MATCH_PROFILE,
    PREPARING,
    READY,
    AVAILABLE,
    PROVISIONING,
    PROVISIONED,
    EXTERNALLY_PROVISIONED,
    DEPROVISIONING,
    INSPECTING,
    POWERING_OFF_BEFORE_DELETE,
    DELETING,
];

/// Values of `status.operationalStatus`; empty if nothing is known yet.
pub mod operational {
    /// All is well.
    pub const OK: &str = "OK";
    /// No BMC is given.
    pub const DISCOVERED: &str = "discovered";
    /// Something is wrong: see `status.errorType` and `status.errorMessage`.
    pub const ERROR: &str = "error";
    /// Waits because many hosts are busy.
    pub const DELAYED: &str = "delayed";
    /// Left alone because of the annotation `baremetalhost.metal3.io/detached`.
    pub const DETACHED: &str = "detached";
    /// Firmware of a provisioned host is being changed.
    pub const SERVICING: &str = "servicing";
}

/// Values of `status.errorType`. Upstream's code knows `detach error` too, which its schema refuses.
pub mod error_types {
    /// The BMC of a provisioned host cannot be used.
    pub const PROVISIONED_REGISTRATION: &str = "provisioned registration error";
    /// The BMC cannot be used.
    pub const REGISTRATION: &str = "registration error";
    /// The hardware could not be looked at.
    pub const INSPECTION: &str = "inspection error";
    /// RAID or firmware could not be configured.
    pub const PREPARATION: &str = "preparation error";
    /// An image could not be deployed or removed.
    pub const PROVISIONING: &str = "provisioning error";
    /// The power could not be changed.
    pub const POWER_MANAGEMENT: &str = "power management error";
    /// Firmware of a provisioned host could not be changed.
    pub const SERVICING: &str = "servicing error";
}
