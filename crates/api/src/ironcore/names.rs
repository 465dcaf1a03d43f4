//! Finalizers, labels and annotations that metal-operator shares with others.

/// Finalizer on an Endpoint.
pub const ENDPOINT_FINALIZER: &str = "metal.ironcore.dev/endpoint";
/// Finalizer on a BMC.
pub const BMC_FINALIZER: &str = "metal.ironcore.dev/bmc";
/// Finalizer on a Server.
pub const SERVER_FINALIZER: &str = "metal.ironcore.dev/server";
/// Finalizer on a ServerClaim.
pub const SERVER_CLAIM_FINALIZER: &str = "metal.ironcore.dev/serverclaim";
/// Finalizer on a ServerMaintenance.
pub const SERVER_MAINTENANCE_FINALIZER: &str = "metal.ironcore.dev/servermaintenance";
/// Finalizer on a ServerReadinessRule.
pub const SERVER_READINESS_RULE_FINALIZER: &str = "readiness.metal.ironcore.dev/cleanup-taints";

/// Annotation for users, on every kind: something to do, or to leave undone; one of [`operations`]. Removed once done.
pub const OPERATION: &str = "metal.ironcore.dev/operation";
/// Annotation that the operator writes on a Server that is parked.
pub const PARKED: &str = "metal.ironcore.dev/parked";
/// Annotation on a ServerBootConfiguration that nobody claimed: it is the operator's own, for discovery.
pub const TYPE: &str = "metal.ironcore.dev/type";
/// Value of [`TYPE`].
pub const TYPE_INTERNAL: &str = "Internal";
/// Annotation beside [`TYPE`], for boot providers.
pub const IS_DEFAULT_OS_IMAGE: &str = "metal.ironcore.dev/is-default-os-image";
/// Begin of an annotation that the operator writes on a Server: the rule behind it, for BootstrapOnly, has been fulfilled once.
pub const BOOTSTRAP_COMPLETED_PREFIX: &str = "readiness.metal.ironcore.dev/bootstrap-completed-";

/// Label that the operator writes on a ServerClaim: somebody needs its server for maintenance.
pub const MAINTENANCE_NEEDED_LABEL: &str = "metal.ironcore.dev/maintenance-needed";
/// Label for users, on a ServerClaim: its server may be taken for maintenance now. Any value counts.
pub const MAINTENANCE_APPROVED_LABEL: &str = "metal.ironcore.dev/maintenance-approved";
/// Annotation for users, on a ServerMaintenance: why, in a sentence.
pub const MAINTENANCE_REASON: &str = "metal.ironcore.dev/maintenance-reason";

/// Annotation for users, on a ServerClaim: [`BOOT_FIRST`] boots the network at the first start only. Ours: upstream boots it at each.
pub const BOOT: &str = "beskar7.io/boot";
/// Value of [`BOOT`].
pub const BOOT_FIRST: &str = "first";

/// Key of the user name in a BMCSecret.
pub const USERNAME_KEY: &str = "username";
/// Key of the password in a BMCSecret.
pub const PASSWORD_KEY: &str = "password";
/// Key of the configuration in an Ignition Secret.
pub const IGNITION_KEY: &str = "ignition";
/// Key of the configuration's format in an Ignition Secret.
pub const IGNITION_FORMAT_KEY: &str = "format";
/// Value of [`IGNITION_FORMAT_KEY`] for Butane, which others translate. What else it says, the configuration is passed on as it is.
pub const IGNITION_FORMAT_BUTANE: &str = "fcos";

/// Values of [`OPERATION`].
pub mod operations {
    /// On every kind: nothing is done to the object. Stays until it is removed.
    pub const IGNORE: &str = "ignore";
    /// As [`IGNORE`], written by the owner of the object.
    pub const IGNORE_PROPAGATED: &str = "ignore-propagated";
    /// On a Server: power it off and leave it alone.
    pub const PARK: &str = "park";
    /// On a Server: look after it again.
    pub const UNPARK: &str = "unpark";
    /// On a Server: restart it, and let its system shut down first.
    pub const GRACEFUL_RESTART_SERVER: &str = "graceful-restart-server";
    /// On a Server: reset it.
    pub const HARD_RESTART_SERVER: &str = "hard-restart-server";
    /// On a Server: cut its power and give it back.
    pub const POWER_CYCLE_SERVER: &str = "power-cycle-server";
    /// On a Server: cut its power.
    pub const FORCE_OFF_SERVER: &str = "force-off-server";
    /// On a Server: power it on.
    pub const FORCE_ON_SERVER: &str = "force-on-server";
    /// On a BMC: restart the BMC.
    pub const GRACEFUL_RESTART_BMC: &str = "graceful-restart-bmc";
    /// On a Server under maintenance: it may be deleted all the same.
    pub const ALLOW_IN_PROGRESS_DELETE: &str = "allow-in-progress-delete";
}
