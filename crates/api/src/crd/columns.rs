//! What `kubectl get` shows.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceColumnDefinition;

/// What `kubectl get ph` shows: one line that tells whether a server needs somebody, and with `-o wide` what it is and
/// what ails it. State, Ready and Age are upstream's. The sentence comes last, since it is long.
pub(super) const PHYSICAL_HOST: &[Column] = &[
    column("State", ".status.state", "Where the host is in its life"),
    column("Ready", READY, "Whether the BMC answers, the hardware is known and nothing is wrong"),
    column("Power", ".status.observedPowerState", "Power, as the BMC reports it"),
    column("Health", ".status.health", "Health of the server and all its parts"),
    column("Fault", ".status.fault.reason", "What is wrong, in a word"),
    column("Consumer", ".spec.consumerRef.name", "Who holds the host"),
    AGE,
    wide("Address", ".spec.redfishConnection.address", "Address of the BMC"),
    wide("Model", ".status.hardwareDetails.model", "Model of the server"),
    wide("Serial", ".status.hardwareDetails.serialNumber", "Serial number of the server"),
    wide("Hardware", ".status.hardwareDetails.summary", "Cores, memory and disks"),
    wide("Message", ".status.errorMessage", "What is wrong, in a sentence"),
];

/// What `kubectl get b7m` shows: whose machine it is, how far it is and on which host, and with `-o wide` why it is not
/// further.
pub(super) const MACHINE: &[Column] = &[
    column("Cluster", CLUSTER_NAME, "The cluster that the machine belongs to"),
    // The label that upstream showed here is written by nobody.
    column("Machine", r#".metadata.ownerReferences[?(@.kind=="Machine")].name"#, "The Machine that owns it"),
    column("Phase", ".status.phase", "Where the machine is in its life"),
    column("Ready", READY, "Whether the machine has been provisioned and its server runs"),
    column("Host", ".status.hostRef.name", "The PhysicalHost that it has claimed"),
    AGE,
    wide("ProviderID", ".spec.providerID", "The server, as the Node names it"),
    wide("Message", r#".status.conditions[?(@.type=="Ready")].message"#, "Why it is not ready, in a sentence"),
];

/// What `kubectl get b7c` shows.
pub(super) const CLUSTER: &[Column] = &[
    column("Cluster", CLUSTER_NAME, "The cluster that it belongs to"),
    column("Ready", READY, "Whether the infrastructure is there"),
    column("Endpoint", ".spec.controlPlaneEndpoint.host", "Where the cluster's API server is reached"),
    AGE,
    wide("Message", r#".status.conditions[?(@.type=="Ready")].message"#, "Why it is not ready, in a sentence"),
];

/// What `kubectl get b7mt` and `b7ct` show.
pub(super) const TEMPLATE: &[Column] = &[column("Cluster", CLUSTER_NAME, "The cluster that it belongs to"), AGE];

/// What `kubectl get bootsessions` shows.
pub(super) const BOOT_SESSION: &[Column] = &[
    column("Host", ".spec.host", "The host that is being provisioned"),
    column("FetchedBy", ".spec.fetched.by", "Who fetched the bootstrap data"),
    column("Problem", ".spec.problem.reason", "What went wrong last"),
    AGE,
    wide("Message", ".spec.problem.message", "What went wrong last, in a sentence"),
];

/// What `kubectl get bmh` shows: as upstream's, in its order.
pub(super) const BARE_METAL_HOST: &[Column] = &[
    wide("Status", ".status.operationalStatus", "Whether all is well"),
    column("State", ".status.provisioning.state", "Where the host is in its life"),
    column("Consumer", ".spec.consumerRef.name", "Who uses the host"),
    wide("BMC", ".spec.bmc.address", "Address of the BMC"),
    column("Online", ".spec.online", "Whether the server is to be powered on"),
    column("Error", ".status.errorType", "What kind of thing went wrong"),
    AGE,
];

/// What `kubectl get hd` shows: as upstream's.
pub(super) const HARDWARE_DATA: &[Column] = &[AGE];

/// The Ready condition: what status.ready says once stays said, whatever becomes of the object.
const READY: &str = r#".status.conditions[?(@.type=="Ready")].status"#;
const CLUSTER_NAME: &str = r".metadata.labels.cluster\.x-k8s\.io/cluster-name";
const AGE: Column =
    Column { type_: "date", ..column("Age", ".metadata.creationTimestamp", "When the object was created") };

/// One column of `kubectl get`.
pub(super) struct Column {
    name: &'static str,
    type_: &'static str,
    path: &'static str,
    description: &'static str,
    /// Shown only with `-o wide`.
    wide: bool,
}

const fn column(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", path, description, wide: false }
}

const fn wide(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { wide: true, ..column(name, path, description) }
}

impl Column {
    pub(super) fn definition(&self) -> CustomResourceColumnDefinition {
        CustomResourceColumnDefinition {
            name: self.name.to_owned(),
            type_: self.type_.to_owned(),
            json_path: self.path.to_owned(),
            description: Some(self.description.to_owned()),
            priority: self.wide.then_some(1),
            format: None,
        }
    }
}
