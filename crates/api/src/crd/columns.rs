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

/// What `kubectl get mep` shows: as upstream's, like those of the other kinds of metal-operator.
pub(super) const ENDPOINT: &[Column] = &[
    column("MACAddress", ".spec.macAddress", "MAC address of the device"),
    column("IP", ".spec.ip", "IP address of the device"),
    AGE,
];

/// What `kubectl get bmcs` shows.
pub(super) const BMC: &[Column] = &[
    column("MACAddress", ".status.macAddress", "MAC address of the BMC"),
    column("IP", ".status.ip", "IP address of the BMC"),
    column("Model", ".status.model", "Model of the BMC"),
    wider("SKU", ".status.sku", "Part number of the BMC"),
    wider("SerialNumber", ".status.serialNumber", "Serial number of the BMC"),
    wider("FirmwareVersion", ".status.firmwareVersion", "Version of the BMC's firmware"),
    column("State", ".status.state", "State of the BMC, in the words of Redfish"),
    column("PowerState", ".status.powerState", "Power of the BMC"),
    AGE,
];

/// What `kubectl get bmcsec` shows.
pub(super) const BMC_SECRET: &[Column] = &[AGE];

/// What `kubectl get srv` shows.
pub(super) const SERVER: &[Column] = &[
    column("SystemUUID", ".spec.systemUUID", "UUID of the server"),
    column("Manufacturer", ".status.manufacturer", "Maker of the server"),
    column("Model", ".status.model", "Model of the server"),
    column("Memory", ".status.totalSystemMemory", "Memory of the server"),
    wider("SKU", ".status.sku", "Stock keeping unit of the server"),
    wider("SerialNumber", ".status.serialNumber", "Serial number of the server"),
    column("PowerState", ".status.powerState", "Power, as the BMC reports it"),
    wider("IndicatorLED", ".status.indicatorLED", "The indicator light"),
    column("State", ".status.state", "Where the server is in its life"),
    Column { type_: "boolean", ..wider("Unclaimable", ".spec.unclaimable", "Whether no claim gets the server") },
    AGE,
];

/// What `kubectl get scl` shows.
pub(super) const SERVER_CLAIM: &[Column] = &[
    column("Server", ".spec.serverRef.name", "The server that the claim has or wants"),
    column("Ignition", ".spec.ignitionSecretRef.name", "The Secret with the Ignition configuration"),
    column("Image", ".spec.image", "The image that the server boots"),
    column("Phase", ".status.phase", "Whether the claim has a server"),
    AGE,
];

/// What `kubectl get sbc` shows.
pub(super) const SERVER_BOOT_CONFIGURATION: &[Column] = &[
    column("ServerRef", ".spec.serverRef.name", "The server that boots"),
    column("Image", ".spec.image", "The image that it boots"),
    column("IgnitionRef", ".spec.ignitionSecretRef.name", "The Secret with the Ignition configuration"),
    column("State", ".status.state", "Whether the boot has been prepared"),
    AGE,
];

/// What `kubectl get sm` shows. Upstream's own code writes another annotation than the one that is shown as the reason.
pub(super) const SERVER_MAINTENANCE: &[Column] = &[
    column("Server", ".spec.serverRef.name", "The server"),
    column("Policy", ".spec.policy", "Whether the owner of a claim must agree"),
    column("BootConfiguration", ".spec.serverBootConfigurationTemplate.name", "What the server boots"),
    column("Reason", r".metadata.annotations.metal\.ironcore\.dev\/reason", "Why"),
    column("State", ".status.state", "Whether the server is under maintenance"),
    Column { type_: "integer", ..column("Priority", ".spec.priority", "The highest comes first") },
    AGE,
];

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
    /// Shown only with `-o wide` unless it is 0.
    priority: i32,
}

const fn column(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", path, description, priority: 0 }
}

const fn wide(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { priority: 1, ..column(name, path, description) }
}

/// As [`wide`], with upstream's number.
const fn wider(name: &'static str, path: &'static str, description: &'static str) -> Column {
    Column { priority: 100, ..column(name, path, description) }
}

impl Column {
    pub(super) fn definition(&self) -> CustomResourceColumnDefinition {
        CustomResourceColumnDefinition {
            name: self.name.to_owned(),
            type_: self.type_.to_owned(),
            json_path: self.path.to_owned(),
            description: Some(self.description.to_owned()),
            priority: (self.priority > 0).then_some(self.priority),
            format: None,
        }
    }
}
