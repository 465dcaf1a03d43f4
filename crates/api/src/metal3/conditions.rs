//! Types and reasons of a BareMetalHost's conditions.

/// The BMC can be used.
pub const MANAGEABLE: &str = "Manageable";
/// The host can be provisioned now.
pub const AVAILABLE_FOR_PROVISIONING: &str = "AvailableForProvisioning";
/// The host has been provisioned.
pub const PROVISIONED: &str = "Provisioned";
/// The host has been provisioned and nothing is wrong.
pub const READY: &str = "Ready";
/// Something is being done to the host.
pub const PROGRESSING: &str = "Progressing";
/// The BMC reports no problem of the hardware.
pub const HEALTHY: &str = "Healthy";

/// Ours: the disks were cleaned when the host was deprovisioned.
pub const DISKS_CLEANED: &str = "DisksCleaned";
/// Ours: there is something to know that is not an error. Left out if there is nothing.
pub const NOTICE: &str = "Notice";

/// All types that we write.
pub const ALL: [&str; 8] =
    [MANAGEABLE, AVAILABLE_FOR_PROVISIONING, PROVISIONED, READY, PROGRESSING, HEALTHY, DISKS_CLEANED, NOTICE];

/// Reasons, by the conditions that use them.
pub mod reasons {
    /// Manageable: true.
    pub const MANAGEABLE: &str = "Manageable";
    /// Manageable: no BMC is given.
    pub const NOT_MANAGED: &str = "NotManaged";
    /// Manageable, Progressing: the BMC has not been reached yet.
    pub const REGISTERING: &str = "Registering";
    /// Manageable: the BMC cannot be used.
    pub const REGISTRATION_FAILED: &str = "RegistrationFailed";
    /// Manageable: the server has no power.
    pub const POWER_FAILURE: &str = "PowerFailure";

    /// AvailableForProvisioning: true.
    pub const AVAILABLE: &str = "Available";
    /// AvailableForProvisioning: false.
    pub const NOT_AVAILABLE: &str = "NotAvailable";

    /// Provisioned, Ready: true.
    pub const PROVISIONED: &str = "Provisioned";
    /// Provisioned, Ready: false.
    pub const NOT_PROVISIONED: &str = "NotProvisioned";
    /// Ready: something is wrong.
    pub const ERROR: &str = "Error";
    /// Ready: firmware is being changed.
    pub const SERVICING: &str = "Servicing";
    /// Ready, Progressing: the host is detached.
    pub const DETACHED: &str = "Detached";

    /// Progressing: false.
    pub const NOT_PROGRESSING: &str = "NotProgressing";
    /// Progressing: the hardware is being looked at.
    pub const INSPECTING: &str = "Inspecting";
    /// Progressing: RAID and firmware are being configured.
    pub const PREPARING: &str = "Preparing";
    /// Progressing: an image is being deployed.
    pub const PROVISIONING: &str = "Provisioning";
    /// Progressing: the image is being removed.
    pub const DEPROVISIONING: &str = "Deprovisioning";
    /// Progressing: the server is being powered off because the object is going away.
    pub const POWERING_OFF_BEFORE_DELETE: &str = "PoweringOffBeforeDelete";
    /// Progressing: the object is going away.
    pub const DELETING: &str = "Deleting";

    /// DisksCleaned: this version cannot clean disks.
    pub const NOT_SUPPORTED: &str = "NotSupported";

    /// Healthy: true.
    pub const HEALTHY: &str = "Healthy";
    /// Healthy: the BMC reports warnings.
    pub const WARNING: &str = "Warning";
    /// Healthy: the BMC reports a critical problem.
    pub const CRITICAL_ERROR: &str = "CriticalError";
    /// Healthy: the BMC does not tell.
    pub const UNKNOWN: &str = "Unknown";
}
