//! Types and reasons of conditions.

/// On a BMC: it can be used. Ours on the other kinds.
pub const READY: &str = "Ready";
/// On a BMC: it is being reset.
pub const RESET: &str = "Reset";
/// On a Server: it is being powered on.
pub const POWERING_ON: &str = "PoweringOn";
/// On a Server: its claim is gone, and its power is not off yet.
pub const WAITING_FOR_POWER_OFF: &str = "WaitingForPowerOff";
/// On a ServerBootConfiguration: the server has booted what was prepared, as it says itself.
pub const BOOT_STATE_RECEIVED: &str = "BootStateReceived";
/// Ours, on a Server: the disks were wiped after the last claim.
pub const SANITIZED: &str = "Sanitized";

/// Reasons, by the conditions that use them.
pub mod reasons {
    /// Ready: true.
    pub const CONNECTED: &str = "Connected";
    /// Ready, Reset: the BMC refused user name or password.
    pub const AUTHENTICATION_FAILED: &str = "AuthenticationFailed";
    /// Ready, Reset: the BMC answered with an error of its own.
    pub const INTERNAL_SERVER_ERROR: &str = "InternalServerError";
    /// Ready, Reset: the BMC does not answer.
    pub const CONNECTION_FAILED: &str = "ConnectionFailed";
    /// Ready: whatever else went wrong.
    pub const UNKNOWN_ERROR: &str = "UnknownError";

    /// Reset: somebody asked for it.
    pub const USER_REQUESTED: &str = "UserRequested";
    /// Reset: the BMC answers again.
    pub const RESET_COMPLETE: &str = "ResetComplete";

    /// PoweringOn: true.
    pub const SERVER_POWER_ON: &str = "ServerPowerOn";
    /// WaitingForPowerOff: true.
    pub const WAITING_FOR_POWER_OFF: &str = "WaitingForPowerOff";
    /// WaitingForPowerOff: the power is off.
    pub const POWER_OFF_CONFIRMED: &str = "PowerOffConfirmed";

    /// Sanitized: this version cannot wipe disks.
    pub const DISKS_NOT_WIPED: &str = "DisksNotWiped";
}
