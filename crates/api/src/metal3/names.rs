//! Finalizers, annotations and labels that Metal3 shares with others.

/// Finalizer on a BareMetalHost.
pub const HOST_FINALIZER: &str = "baremetalhost.metal3.io";
/// Finalizer on a Secret that a host uses.
pub const SECRET_FINALIZER: &str = "baremetalhost.metal3.io/secret";
/// Finalizer on a HardwareData.
pub const HARDWARE_DATA_FINALIZER: &str = "baremetalhost.metal3.io/hardwareData";

/// Label on Secrets that hosts use.
pub const ENVIRONMENT_LABEL: &str = "environment.metal3.io";
/// Its value.
pub const ENVIRONMENT_LABEL_VALUE: &str = "baremetal";

/// Annotation for users, on a host: nothing is done to it, and its status is not written either. Any value counts.
pub const PAUSED: &str = "baremetalhost.metal3.io/paused";
/// Value of [`PAUSED`] that Cluster API's provider writes.
pub const PAUSED_BY_CAPM3: &str = "metal3.io/capm3";
/// Annotation for users, on a host: it is left alone. Any value counts; JSON may say more: `deleteAction` (`delay` or `delete`)
/// and `force`.
pub const DETACHED: &str = "baremetalhost.metal3.io/detached";
/// Annotation on a host that was moved here: the status that it had, as JSON.
pub const STATUS: &str = "baremetalhost.metal3.io/status";
/// Annotation for users, on a host: one reboot. With `/` and a word of one's own behind it, the server is held off until that
/// annotation is removed. The value is empty, or JSON: `mode` (`hard` or `soft`) and `force`.
pub const REBOOT: &str = "reboot.metal3.io";
/// Value of `mode` in [`REBOOT`].
pub const REBOOT_HARD: &str = "hard";
/// Value of `mode` in [`REBOOT`].
pub const REBOOT_SOFT: &str = "soft";
/// Annotation for users, on a host: with an empty value, one new inspection; with [`INSPECT_DISABLED`], none at all.
pub const INSPECT: &str = "inspect.metal3.io";
/// Value of [`INSPECT`].
pub const INSPECT_DISABLED: &str = "disabled";
/// Annotation for users, on a host that is not inspected: what the server is made of, as JSON.
pub const HARDWARE_DETAILS: &str = "inspect.metal3.io/hardwaredetails";
