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

/// The types that the operator writes. Others are left as they are.
pub const OURS: [&str; 5] = [READY, RESET, POWERING_ON, WAITING_FOR_POWER_OFF, SANITIZED];

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
    /// PoweringOn: the power is on.
    pub const POWER_ON_CONFIRMED: &str = "PowerOnConfirmed";
    /// WaitingForPowerOff: true.
    pub const WAITING_FOR_POWER_OFF: &str = "WaitingForPowerOff";
    /// WaitingForPowerOff: the power is off.
    pub const POWER_OFF_CONFIRMED: &str = "PowerOffConfirmed";

    /// Sanitized: this version cannot wipe disks.
    pub const DISKS_NOT_WIPED: &str = "DisksNotWiped";

    /// Ready of an Endpoint: it is a BMC, and there is an object for it.
    pub const BMC_CREATED: &str = "BMCCreated";
    /// Ready of an Endpoint: its MAC address is none.
    pub const MAC_ADDRESS_INVALID: &str = "MACAddressInvalid";
    /// Ready of an Endpoint: another one has the same MAC address.
    pub const MAC_ADDRESS_TAKEN: &str = "MACAddressTaken";
    /// Ready of an Endpoint: a BMC of its name belongs to another one.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// Ready of an Endpoint: nothing is known of such devices.
    pub const PREFIX_UNKNOWN: &str = "PrefixUnknown";

    /// Ready of a ServerClaim: no server fits.
    pub const NO_SERVER: &str = "NoServer";
    /// Ready of a ServerClaim: its spec makes no sense.
    pub const CLAIM_INVALID: &str = "ClaimInvalid";
    /// Ready of a ServerClaim: its server is being reserved.
    pub const RESERVING: &str = "Reserving";
    /// Ready of a ServerClaim: its server is booting, or waits for its boot configuration.
    pub const BOOTING: &str = "Booting";
    /// Ready of a ServerClaim: its server runs.
    pub const SERVER_RUNS: &str = "ServerRuns";
    /// Ready of a ServerClaim: its server is off, as it is to be.
    pub const POWERED_OFF: &str = "PoweredOff";
    /// Ready of a ServerClaim: something is wrong with its server.
    pub const SERVER_FAULTY: &str = "ServerFaulty";
    /// Ready of a ServerClaim: its server does not belong to it any more.
    pub const SERVER_LOST: &str = "ServerLost";
    /// Ready of a ServerClaim: its server is being switched off and cleaned up.
    pub const RELEASING: &str = "Releasing";
}
