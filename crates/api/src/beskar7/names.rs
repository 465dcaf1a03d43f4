//! Finalizers, annotations and labels on a PhysicalHost.

/// Finalizer on a PhysicalHost; the same word as upstream's, so that either can finish what the other began.
pub const HOST_FINALIZER: &str = "physicalhost.infrastructure.cluster.x-k8s.io";
/// Field manager of everything that the operator applies.
pub const FIELD_MANAGER: &str = "beskar7";

/// Annotation that the operator writes: the few facts that protect a running server and must outlive the status.
pub const ANCHOR: &str = "beskar7.io/anchor";
/// Annotation that a claimer writes together with `consumerRef`: the claim's random id, which survives a move.
pub const CLAIM_ID: &str = "beskar7.io/claim-id";
/// Annotation for users: `true` removes a deleted host although its BMC cannot be reached or its consumer still lives.
pub const FORCE_DELETE: &str = "beskar7.io/force-delete";
/// Annotation for users: a new value (any text: it is the request's id) asks for one reboot.
pub const REBOOT: &str = "beskar7.io/reboot";
/// Annotation for users: a new value (any text: it is the request's id) asks for one new look at the hardware.
pub const INSPECT: &str = "beskar7.io/inspect";
/// Annotation for users: `true` releases a host whose `consumerRef` was removed although the consumer lives.
pub const RELEASE: &str = "beskar7.io/release";
/// Annotation for users: `true` has a host that was adopted as it runs provisioned after all.
pub const PROVISION: &str = "beskar7.io/provision";
