//! Condition types and reasons of our resources.
//!
//! A failure's own reason (`AuthenticationFailed`, `CertificateChanged`, …) comes from the engine and is used as it is.

/// Summary of the others; what `clusterctl describe` shows.
pub const READY: &str = "Ready";
/// The BMC answers, trusts us and is trusted. An outage shows here and nowhere else.
pub const REDFISH_CONNECTION_READY: &str = "RedfishConnectionReady";
/// The host may be claimed.
pub const HOST_AVAILABLE: &str = "HostAvailable";
/// The hardware is known.
pub const HOST_INSPECTED: &str = "HostInspected";
/// The claim's order has been carried out.
pub const HOST_PROVISIONED: &str = "HostProvisioned";
/// The BMC reports no fault of the hardware.
pub const HARDWARE_HEALTHY: &str = "HardwareHealthy";
/// The server runs what the spec orders now. False on a host that was adopted, or whose order changed afterwards.
pub const ORDER_IN_EFFECT: &str = "OrderInEffect";
/// The power is as `spec.online` says, where somebody said it since the host was claimed or released. Only shown as false.
pub const POWER_REQUEST_IN_EFFECT: &str = "PowerRequestInEffect";
/// What the boot service had for the server could be served. Only said of hosts that it has something for.
pub const BOOT_SERVED: &str = "BootServed";
/// The server has the interface that bootMacAddress names. Only said of hosts with that field.
pub const BOOT_INTERFACE_FOUND: &str = "BootInterfaceFound";
/// The object is left alone because of the pause annotation or its paused cluster.
pub const PAUSED: &str = "Paused";

/// Of a machine: its server runs what was ordered. Upstream's name for what [`READY`] sums up.
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// Of a machine: it has a host.
pub const PHYSICAL_HOST_ASSOCIATED: &str = "PhysicalHostAssociated";
/// Of a machine: its bootstrap data is there, or is not needed.
pub const BOOTSTRAP_DATA_READY: &str = "BootstrapDataReady";

/// Of a machine: its server was seen to have the address that staticIP gives. Only said of machines with that field.
pub const STATIC_IP_IN_EFFECT: &str = "StaticIPInEffect";

/// Of a cluster: it is known where its API server is reached.
pub const CONTROL_PLANE_ENDPOINT_READY: &str = "ControlPlaneEndpointReady";
/// Of a cluster: its failure domains are known.
pub const FAILURE_DOMAINS_READY: &str = "FailureDomainsReady";

/// All of them. Conditions of other types are other people's.
pub const ALL: [&str; 17] = [
    READY,
    REDFISH_CONNECTION_READY,
    HOST_AVAILABLE,
    HOST_INSPECTED,
    HOST_PROVISIONED,
    HARDWARE_HEALTHY,
    ORDER_IN_EFFECT,
    POWER_REQUEST_IN_EFFECT,
    BOOT_SERVED,
    BOOT_INTERFACE_FOUND,
    PAUSED,
    INFRASTRUCTURE_READY,
    PHYSICAL_HOST_ASSOCIATED,
    BOOTSTRAP_DATA_READY,
    STATIC_IP_IN_EFFECT,
    CONTROL_PLANE_ENDPOINT_READY,
    FAILURE_DOMAINS_READY,
];

/// Reasons that upstream used too.
pub mod reason {
    /// The BMC answers, and whoever is on the way reads along.
    pub const CONNECTED_WITHOUT_TLS: &str = "ConnectedWithoutTLS";
    /// The image, its configuration or DHCP has to give the server its address; nobody can tell whether they do.
    pub const LEFT_TO_THE_IMAGE: &str = "LeftToTheImage";
    /// No interface of the server has the MAC address that the host object gives.
    pub const NO_SUCH_INTERFACE: &str = "NoSuchInterface";
    /// `credentialsSecretRef` is empty.
    pub const MISSING_CREDENTIALS: &str = "MissingCredentials";
    /// The Secret could not be read.
    pub const SECRET_GET_FAILED: &str = "SecretGetFailed";
    /// There is no such Secret.
    pub const SECRET_NOT_FOUND: &str = "SecretNotFound";
    /// The Secret lacks a key.
    pub const MISSING_SECRET_DATA: &str = "MissingSecretData";
    /// The BMC could not be spoken to.
    pub const REDFISH_CONNECTION_FAILED: &str = "RedfishConnectionFailed";
    /// The BMC was reached, but did not tell what was asked.
    pub const REDFISH_QUERY_FAILED: &str = "RedfishQueryFailed";
    /// Claimed, and no order yet.
    pub const WAITING_FOR_BOOT_INFO: &str = "WaitingForBootInfo";
    /// The order is being carried out.
    pub const PROVISIONING: &str = "Provisioning";
    /// The ISO could not be inserted, or not be chosen for the next boot.
    pub const SET_BOOT_ISO_FAILED: &str = "SetBootISOFailed";
    /// Network boot could not be chosen for the next boot.
    pub const SET_BOOT_PXE_FAILED: &str = "SetBootPXEFailed";
    /// The server did not power on.
    pub const POWER_ON_FAILED: &str = "PowerOnFailed";
    /// The server did not power off.
    pub const POWER_OFF_FAILED: &str = "PowerOffFailed";
    /// The ISO could not be ejected.
    pub const EJECT_MEDIA_FAILED: &str = "EjectMediaFailed";
    /// `spec.online` was set before the host was claimed or released.
    pub const POWER_REQUEST_OUTDATED: &str = "Outdated";
    /// The host is being cleaned up after its release.
    pub const DEPROVISIONING: &str = "Deprovisioning";
    /// The object is going away.
    pub const DELETING: &str = "Deleting";
    /// The object is to go away, and its consumer still holds it.
    pub const WAITING_FOR_CONSUMER_RELEASE: &str = "WaitingForConsumerRelease";
    /// The inspection failed.
    pub const INSPECTION_FAILED: &str = "InspectionFailed";
    /// The inspection took too long.
    pub const INSPECTION_TIMEOUT: &str = "InspectionTimeout";
    /// `insecureSkipVerify` and a CA bundle contradict each other.
    pub const INSECURE_CA_BUNDLE_CONFLICT: &str = "InsecureCABundleConflict";
    /// The Secret with the CA bundle could not be read.
    pub const CA_BUNDLE_FETCH_FAILED: &str = "CABundleFetchFailed";

    /// Nobody owns a machine or a cluster, because Cluster API is not installed.
    pub const CLUSTER_API_MISSING: &str = "ClusterAPIMissing";
    /// A machine has not got a host yet: none is free that fits.
    pub const WAITING_FOR_PHYSICAL_HOST: &str = "WaitingForPhysicalHost";
    /// A machine's host could not be claimed; it is tried again.
    pub const PHYSICAL_HOST_ASSOCIATION_FAILED: &str = "PhysicalHostAssociationFailed";
    /// A machine's host is not provisioned yet.
    pub const PHYSICAL_HOST_NOT_READY: &str = "PhysicalHostNotReady";
    /// Something is wrong with a machine's host.
    pub const PHYSICAL_HOST_ERROR: &str = "PhysicalHostError";
    /// A machine's host could not be released yet.
    pub const RELEASE_PHYSICAL_HOST_FAILED: &str = "ReleasePhysicalHostFailed";
    /// The Secret that the Machine names cannot be read, or has no `value`.
    pub const BOOTSTRAP_DATA_UNAVAILABLE: &str = "BootstrapDataUnavailable";
    /// No host has what `hardwareRequirements` ask for.
    pub const HARDWARE_REQUIREMENTS_NOT_MET: &str = "HardwareRequirementsNotMet";
    /// Writing the image to the disk failed.
    pub const DEPLOYMENT_FAILED: &str = "DeploymentFailed";
    /// Writing the image to the disk took too long.
    pub const DEPLOYMENT_TIMED_OUT: &str = "DeploymentTimedOut";
    /// A cluster's endpoint is not known yet.
    pub const CONTROL_PLANE_ENDPOINT_NOT_SET: &str = "ControlPlaneEndpointNotSet";
    /// No host has a label that makes a failure domain.
    pub const NO_FAILURE_DOMAINS: &str = "NoFailureDomains";

    // Cluster API's own words.

    /// All is well.
    pub const READY: &str = "Ready";
    /// The machine has been provisioned.
    pub const PROVISIONED: &str = "Provisioned";
    /// No Machine owns the object yet.
    pub const WAITING_FOR_OWNER: &str = "WaitingForOwner";
    /// The cluster's infrastructure is not ready yet.
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
    /// The Machine does not name its bootstrap Secret yet.
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
    /// The first control-plane machine is not up yet.
    pub const WAITING_FOR_CONTROL_PLANE_INITIALIZED: &str = "WaitingForControlPlaneInitialized";

    // From here on ours.

    /// The control plane provider needs `spec.controlPlaneEndpoint` before it makes a machine.
    pub const ENDPOINT_REQUIRED: &str = "EndpointRequired";
    /// The mode needs the network boot service, which is not there.
    pub const MODE_UNSUPPORTED: &str = "ModeUnsupported";
    /// `--boot-url` is not set, so nothing can be served to BMCs and servers.
    pub const BOOT_URL_MISSING: &str = "BootURLMissing";
    /// `spec.providerID` is none of ours.
    pub const INVALID_PROVIDER_ID: &str = "InvalidProviderID";
    /// The host of `spec.providerID` is gone, or belongs to somebody else.
    pub const HOST_LOST: &str = "HostLost";
    /// No host carries this machine's claim any more.
    pub const RELEASED: &str = "Released";
    /// The bootstrap data is not needed: the image brings its configuration, or configURL names it.
    pub const NOT_NEEDED: &str = "NotNeeded";

    /// The BMC has not been reached yet.
    pub const ENROLLING: &str = "Enrolling";
    /// The hardware is being looked at.
    pub const INSPECTING: &str = "Inspecting";
    /// The hardware is known, but for parts that could not be read.
    pub const INSPECTED_IN_PART: &str = "InspectedInPart";
    /// Somebody has claimed the host.
    pub const CLAIMED: &str = "Claimed";
    /// Nobody has claimed the host, so nothing is ordered.
    pub const NOT_CLAIMED: &str = "NotClaimed";
    /// `spec.maintenance` is set.
    pub const MAINTENANCE: &str = "Maintenance";
    /// The host is kept from everybody until somebody has looked at it.
    pub const QUARANTINED: &str = "Quarantined";
    /// The host was claimed and running when we first saw it, and is left as it is.
    pub const ADOPTED: &str = "Adopted";
    /// The host counts as provisioned because it has had time to boot; its BMC tells nothing better.
    pub const ASSUMED_BOOTED: &str = "AssumedBooted";
    /// The order changed after it was carried out; only a new claim provisions again.
    pub const ORDER_CHANGED: &str = "OrderChanged";
    /// The BMC reports a warning.
    pub const HEALTH_WARNING: &str = "HealthWarning";
    /// The BMC reports a critical fault.
    pub const HEALTH_CRITICAL: &str = "HealthCritical";
    /// The BMC does not tell how the hardware is.
    pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
    /// The pause annotation is set.
    pub const PAUSED: &str = "Paused";
    /// Nothing is paused.
    pub const NOT_PAUSED: &str = "NotPaused";
    /// A destructive act waits for its turn: the fleet brake is on.
    pub const BRAKED: &str = "Braked";
}
