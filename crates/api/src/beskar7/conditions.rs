//! Condition types and reasons of our resources.
//!
//! A failure's own reason (`AuthenticationFailed`, `CertificateChanged`, …) comes from the engine and is used as it is.

/// Summary of the others; what `clusterctl describe` shows.
pub const READY: &str = "Ready";
/// BMC reachable, login accepted, certificate trusted. An outage shows here and nowhere else.
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
/// False if the power differs from `spec.online`, which was set before the host was claimed or released; otherwise absent.
pub const POWER_REQUEST_IN_EFFECT: &str = "PowerRequestInEffect";
/// The boot service could serve the server. Absent on hosts that it has nothing for.
pub const BOOT_SERVED: &str = "BootServed";
/// The server has the interface that bootMacAddress names. Absent on hosts without that field.
pub const BOOT_INTERFACE_FOUND: &str = "BootInterfaceFound";
/// The object is left alone because of the pause annotation or its paused cluster.
pub const PAUSED: &str = "Paused";

/// Of a machine: its server runs what was ordered. Upstream's name for what [`READY`] sums up.
pub const INFRASTRUCTURE_READY: &str = "InfrastructureReady";
/// Of a machine: it has a host.
pub const PHYSICAL_HOST_ASSOCIATED: &str = "PhysicalHostAssociated";
/// Of a machine: its bootstrap data exists.
pub const BOOTSTRAP_DATA_READY: &str = "BootstrapDataReady";

/// Of a machine: its server was seen with the address in staticIP. Absent on machines without that field.
pub const STATIC_IP_IN_EFFECT: &str = "StaticIPInEffect";

/// Of a cluster: the address of its API server is known.
pub const CONTROL_PLANE_ENDPOINT_READY: &str = "ControlPlaneEndpointReady";
/// Of a cluster: its failure domains are known.
pub const FAILURE_DOMAINS_READY: &str = "FailureDomainsReady";

/// All of them. Conditions of other types belong to others.
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

/// Reasons of conditions, apart from those of faults and of images. `docs/reference/conditions.md` explains each.
pub mod reason {
    // Of a host.

    /// The BMC answers.
    pub const CONNECTED: &str = "Connected";
    /// The BMC answers over plain HTTP: the password can be intercepted.
    pub const CONNECTED_WITHOUT_TLS: &str = "ConnectedWithoutTLS";
    /// The BMC has not been reached yet.
    pub const ENROLLING: &str = "Enrolling";
    /// The inventory is being read.
    pub const INSPECTING: &str = "Inspecting";
    /// The inventory was read.
    pub const INSPECTED: &str = "Inspected";
    /// The inventory was read, apart from parts that could not be.
    pub const INSPECTED_IN_PART: &str = "InspectedInPart";
    /// The host can be claimed.
    pub const AVAILABLE: &str = "Available";
    /// The host is claimed.
    pub const CLAIMED: &str = "Claimed";
    /// Nobody has claimed the host, so nothing is ordered.
    pub const NOT_CLAIMED: &str = "NotClaimed";
    /// The host is claimed, and there is no order yet.
    pub const WAITING_FOR_BOOT_INFO: &str = "WaitingForBootInfo";
    /// The order is being carried out.
    pub const PROVISIONING: &str = "Provisioning";
    /// The boot started and was not observed: the BMC reports nothing about it.
    pub const ASSUMED_BOOTED: &str = "AssumedBooted";
    /// The host is being cleaned up after its release.
    pub const DEPROVISIONING: &str = "Deprovisioning";
    /// `spec.maintenance` is set.
    pub const MAINTENANCE: &str = "Maintenance";
    /// Nobody can claim the host until somebody has checked it.
    pub const QUARANTINED: &str = "Quarantined";
    /// The host was claimed and running when it was first seen, and is left as it is.
    pub const ADOPTED: &str = "Adopted";
    /// The order was changed after it had been carried out; only a new claim provisions again.
    pub const ORDER_CHANGED: &str = "OrderChanged";
    /// `spec.online` was set before the host was claimed or released.
    pub const POWER_REQUEST_OUTDATED: &str = "Outdated";
    /// The BMC reports healthy hardware.
    pub const HEALTH_OK: &str = "OK";
    /// The BMC reports a warning about the hardware.
    pub const HEALTH_WARNING: &str = "HealthWarning";
    /// The BMC reports a critical hardware fault.
    pub const HEALTH_CRITICAL: &str = "HealthCritical";
    /// The BMC reports no hardware health.
    pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
    /// The server has the interface with the MAC address in `spec.bootMacAddress`.
    pub const INTERFACE_FOUND: &str = "Found";
    /// No interface of the server has the MAC address in `spec.bootMacAddress`.
    pub const NO_SUCH_INTERFACE: &str = "NoSuchInterface";
    /// The server has fetched its bootstrap data.
    pub const BOOTSTRAP_DATA_FETCHED: &str = "BootstrapDataFetched";
    /// The server has begun to boot from the network.
    pub const NETWORK_BOOT_SERVED: &str = "NetworkBootServed";

    // Of a machine or a cluster.

    /// The machine has claimed a host.
    pub const ASSOCIATED: &str = "Associated";
    /// No host is free that fits.
    pub const WAITING_FOR_PHYSICAL_HOST: &str = "WaitingForPhysicalHost";
    /// The image is being checked.
    pub const LOOKING_AT_IMAGE: &str = "LookingAtImage";
    /// The machine's host is not provisioned yet.
    pub const PHYSICAL_HOST_NOT_READY: &str = "PhysicalHostNotReady";
    /// The machine's host could not be released yet.
    pub const RELEASE_PHYSICAL_HOST_FAILED: &str = "ReleasePhysicalHostFailed";
    /// The Secret with the bootstrap data does not exist, or has no `value`.
    pub const BOOTSTRAP_DATA_UNAVAILABLE: &str = "BootstrapDataUnavailable";
    /// The mode of the machine is not supported.
    pub const MODE_UNSUPPORTED: &str = "ModeUnsupported";
    /// The machine was provisioned, and its server is off.
    pub const POWERED_OFF: &str = "PoweredOff";
    /// The host of `spec.providerID` is gone, or claimed by somebody else.
    pub const HOST_LOST: &str = "HostLost";
    /// The server was seen with the address in `spec.staticIP`.
    pub const ADDRESS_SEEN: &str = "Seen";
    /// The server was not seen with the address in `spec.staticIP`: image, configuration or DHCP have to set it.
    pub const LEFT_TO_THE_IMAGE: &str = "LeftToTheImage";
    /// Cluster API is not installed, so nobody owns the machine or cluster.
    pub const CLUSTER_API_MISSING: &str = "ClusterAPIMissing";
    /// The endpoint or the failure domains of the cluster are known.
    pub const KNOWN: &str = "Known";
    /// The endpoint of the cluster is not known yet.
    pub const CONTROL_PLANE_ENDPOINT_NOT_SET: &str = "ControlPlaneEndpointNotSet";
    /// The control plane provider needs `spec.controlPlaneEndpoint` before it creates a machine.
    pub const ENDPOINT_REQUIRED: &str = "EndpointRequired";
    /// No host has a failure domain label.
    pub const NO_FAILURE_DOMAINS: &str = "NoFailureDomains";

    // Of several kinds; most are Cluster API's own words.

    /// Nothing is missing.
    pub const READY: &str = "Ready";
    /// The order has been carried out.
    pub const PROVISIONED: &str = "Provisioned";
    /// The object is being deleted.
    pub const DELETING: &str = "Deleting";
    /// The object or its Cluster is paused.
    pub const PAUSED: &str = "Paused";
    /// Neither the object nor its Cluster is paused.
    pub const NOT_PAUSED: &str = "NotPaused";
    /// No Machine or Cluster owns the object yet.
    pub const WAITING_FOR_OWNER: &str = "WaitingForOwner";
    /// The infrastructure of the cluster is not ready yet.
    pub const WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY: &str = "WaitingForClusterInfrastructureReady";
    /// The Machine does not name its bootstrap Secret yet.
    pub const WAITING_FOR_BOOTSTRAP_DATA: &str = "WaitingForBootstrapData";
}
