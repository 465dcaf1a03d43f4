//! The words of statuses and specs.

/// Values of `status.state` of a Server.
pub mod server {
    /// Nothing has been done yet.
    pub const INITIAL: &str = "Initial";
    /// The hardware is being looked at.
    pub const DISCOVERY: &str = "Discovery";
    /// Free to be claimed.
    pub const AVAILABLE: &str = "Available";
    /// A claim has it.
    pub const RESERVED: &str = "Reserved";
    /// Ours: its claim is gone, and what was done for it is being undone. Upstream stays Reserved.
    pub const CLEANUP: &str = "Cleanup";
    /// Its claim is gone, and the reclaim policy is Retain.
    pub const RELEASED: &str = "Released";
    /// A ServerMaintenance has it.
    pub const MAINTENANCE: &str = "Maintenance";
    /// Powered off and left alone, as [`super::super::names::operations::PARK`] asks for.
    pub const PARKED: &str = "Parked";
    /// Something is wrong. Upstream never writes it.
    pub const ERROR: &str = "Error";

    /// All states.
    pub const ALL: [&str; 9] = [INITIAL, DISCOVERY, AVAILABLE, RESERVED, CLEANUP, RELEASED, MAINTENANCE, PARKED, ERROR];
}

/// Values of `status.state` of a BMC. Others are Redfish's own words.
pub mod bmc {
    /// The BMC works.
    pub const ENABLED: &str = "Enabled";
    /// The BMC does not work. Upstream never writes it.
    pub const ERROR: &str = "Error";
    /// The BMC has not been reached yet, or is being reset.
    pub const PENDING: &str = "Pending";
}

/// Values of `status.phase` of a ServerClaim.
pub mod claim {
    /// It has a server.
    pub const BOUND: &str = "Bound";
    /// It has none.
    pub const UNBOUND: &str = "Unbound";
}

/// Values of `status.state` of a ServerBootConfiguration.
pub mod boot {
    /// The boot has not been prepared yet.
    pub const PENDING: &str = "Pending";
    /// The server can boot.
    pub const READY: &str = "Ready";
    /// The boot cannot be prepared.
    pub const ERROR: &str = "Error";
}

/// Values of `status.state` of a ServerMaintenance.
pub mod maintenance {
    /// The server is not free for it yet.
    pub const PENDING: &str = "Pending";
    /// The server is under maintenance.
    pub const IN_MAINTENANCE: &str = "InMaintenance";
    /// The server cannot boot what it should.
    pub const FAILED: &str = "Failed";
}

/// Values of power in specs and statuses.
pub mod power {
    /// On.
    pub const ON: &str = "On";
    /// Off.
    pub const OFF: &str = "Off";
    /// Being powered on.
    pub const POWERING_ON: &str = "PoweringOn";
    /// Being powered off.
    pub const POWERING_OFF: &str = "PoweringOff";
    /// Paused.
    pub const PAUSED: &str = "Paused";
    /// The BMC does not tell.
    pub const UNKNOWN: &str = "Unknown";
}

/// Values of indicator lights in specs and statuses.
pub mod led {
    /// The BMC does not tell.
    pub const UNKNOWN: &str = "Unknown";
    /// Lit.
    pub const LIT: &str = "Lit";
    /// Blinking.
    pub const BLINKING: &str = "Blinking";
    /// Off.
    pub const OFF: &str = "Off";
}

/// Values of `spec.reclaimPolicy` of a Server.
pub mod reclaim {
    /// It becomes Available.
    pub const RECYCLE: &str = "Recycle";
    /// It stays Released.
    pub const RETAIN: &str = "Retain";
}

/// Values of `spec.policy` of a ServerMaintenance.
pub mod policy {
    /// The owner of the claim must agree.
    pub const OWNER_APPROVAL: &str = "OwnerApproval";
    /// At once.
    pub const ENFORCED: &str = "Enforced";
}

/// Values of `spec.enforcementMode` of a ServerReadinessRule.
pub mod enforcement {
    /// Until a server has the conditions for the first time.
    pub const BOOTSTRAP_ONLY: &str = "BootstrapOnly";
    /// Whenever a server does not have the conditions.
    pub const CONTINUOUS: &str = "Continuous";
}

/// Values of `effect` of taints and tolerations, and of `operator` of tolerations.
pub mod taint {
    /// Claims that do not tolerate it do not get the server.
    pub const NO_BIND: &str = "NoBind";
    /// A bound claim that does not tolerate it loses the server.
    pub const EVICT: &str = "Evict";
    /// The value must be the same.
    pub const EQUAL: &str = "Equal";
    /// Any value will do.
    pub const EXISTS: &str = "Exists";
}

/// Values of `spec.protocol.name` that anybody supports.
pub mod protocol {
    /// Redfish.
    pub const REDFISH: &str = "Redfish";
    /// Upstream's word for a pretended BMC.
    pub const REDFISH_LOCAL: &str = "RedfishLocal";
    /// Upstream's word for a pretended BMC whose BIOS attributes are its own.
    pub const REDFISH_WITH_REGISTRY_PATCH: &str = "RedfishWithRegistryPatch";
}
