//! Finalizers and annotations of our resources.

/// Finalizer on a PhysicalHost; the same word as upstream's, so that either can finish what the other began.
pub const HOST_FINALIZER: &str = "physicalhost.infrastructure.cluster.x-k8s.io";
/// Finalizer on a Beskar7Machine; upstream's word too.
pub const MACHINE_FINALIZER: &str = "beskar7machine.infrastructure.cluster.x-k8s.io";
/// Finalizer on a Beskar7Cluster; upstream's word too.
pub const CLUSTER_FINALIZER: &str = "beskar7cluster.infrastructure.cluster.x-k8s.io";
/// Field manager of everything that the operator applies.
pub const FIELD_MANAGER: &str = "beskar7";

/// Annotation that the operator writes: the few facts that protect a running server and must outlive the status.
pub const ANCHOR: &str = "beskar7.io/anchor";
/// Annotation that a claimer writes together with `consumerRef`: the claim's random id, which survives a move.
pub const CLAIM_ID: &str = "beskar7.io/claim-id";
/// Annotation that the operator writes on a host: when it was last released, in RFC 3339. Hosts that rested longest are
/// claimed first.
pub const RELEASED_AT: &str = "beskar7.io/released-at";
/// Annotation on a host, written by the operator or a user: nobody may claim it until the annotation is removed. Its value
/// says why.
pub const QUARANTINE: &str = "beskar7.io/quarantine";
/// Annotation for users, on a machine: `true` lets a deleted machine go although its server could not be switched off. The
/// host is then in quarantine.
pub const FORCE_RELEASE: &str = "beskar7.io/force-release";
/// Upstream's word for [`FORCE_RELEASE`].
pub const UPSTREAM_FORCE_RELEASE: &str = "infrastructure.cluster.x-k8s.io/force-release";
/// Annotation for users: `true` removes a deleted host although its BMC cannot be reached or its consumer still lives.
pub const FORCE_DELETE: &str = "beskar7.io/force-delete";
/// Annotation for users: a new value (any text: it is the request's id) asks for one reboot.
pub const REBOOT: &str = "beskar7.io/reboot";
/// Annotation for users: a new value (any text: it is the request's id) makes `spec.online` a new request. One that was made before
/// the host was claimed or released does not count any more.
pub const POWER_REQUEST: &str = "beskar7.io/power-request";
/// Annotation for users: a new value (any text: it is the request's id) asks for one new look at the hardware.
pub const INSPECT: &str = "beskar7.io/inspect";
/// Annotation for users and claimers: the id of a claim. Releases a host whose `consumerRef` was removed although the consumer of that
/// claim lives. Removed once heeded.
pub const RELEASE: &str = "beskar7.io/release";
/// Annotation for users: the id of a claim. Has a host that was adopted for it as it runs provisioned after all. The consumer's name does
/// as well if the server is off. Removed once heeded.
pub const PROVISION: &str = "beskar7.io/provision";
/// Annotation that the operator writes on a host: which machines its machine is spread among.
pub const CLAIM_GROUP: &str = "beskar7.io/claim-group";
/// Label for users, on a host: the rack that it is in. Machines of one cluster and role are spread over racks.
pub const RACK_LABEL: &str = "topology.beskar7.io/rack";
/// Label for users, on a host: the failure domain that it is in.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// In bootstrap data that is served by us, stands for the provider id of the server that fetches it.
pub const PROVIDER_ID_WORD: &str = "BESKAR7_PROVIDER_ID";
