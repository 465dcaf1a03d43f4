//! Power.

/// Everything that Redfish can do to a system's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResetType {
    /// Power on.
    On,
}
