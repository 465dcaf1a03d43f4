//! A server that the operator looks after, in Metal3's words.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::image::{CustomDeploy, Image};
use super::raid::{RaidConfig, RootDeviceHints};
use super::schemas;
use super::status::BareMetalHostStatus;
use super::wire::{absent_is_empty, is_false};

/// What the owner of a server says about it.
#[derive(CustomResource, JsonSchema, Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[kube(
    group = "metal3.io",
    version = "v1alpha1",
    kind = "BareMetalHost",
    plural = "baremetalhosts",
    shortname = "bmh",
    shortname = "bmhost",
    namespaced,
    status = "BareMetalHostStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A server, reached through its BMC, as Metal3 describes it.",
    label("clusterctl.cluster.x-k8s.io", "")
)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
#[schemars(extend("required" = ["online"]))]
pub struct BareMetalHostSpec {
    /// Never acted on, by nobody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,

    /// How to reach the server's BMC. Left out, the host is unmanaged.
    #[serde(skip_serializing_if = "BmcDetails::is_unset")]
    pub bmc: BmcDetails,

    /// How disks are joined before the server is provisioned. Left out, what is configured stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidConfig>,

    /// Firmware settings that nothing supports any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareConfig>,

    /// Name of a hardware profile, which only chooses a default root device. Deprecated: use rootDeviceHints.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hardware_profile: String,

    /// Which disk gets the image. Left out, the hardware profile's: /dev/sda, normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,

    /// Which firmware boots: UEFI, UEFISecureBoot or legacy. Left out, UEFI.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schemas::boot_mode")]
    pub boot_mode: String,

    /// MAC address of the interface that the server is provisioned over; not that of the BMC. Once set, it cannot change.
    #[serde(rename = "bootMACAddress", skip_serializing_if = "String::is_empty")]
    #[schemars(extend("pattern" = schemas::MAC_PATTERN))]
    pub boot_mac_address: String,

    /// Whether the server is to be powered on. Nothing is provisioned while it is not.
    pub online: bool,

    /// Who uses the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::object_reference")]
    pub consumer_ref: Option<ObjectReference>,

    /// What the server is provisioned with. Setting it starts that, and removing it or changing its URL ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,

    /// Secret with the user data, for the config drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,

    /// Secret in the host's namespace with the network configuration of the agent, and of the system if networkData is left out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preprovisioning_network_data_name: String,

    /// Secret with the network configuration of the system, for the config drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,

    /// Secret with the metadata of the host, for the config drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,

    /// A text for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,

    /// The server was provisioned by somebody else: only its power is looked after. It can be set when the host is created or
    /// available, and not be taken back.
    #[serde(skip_serializing_if = "is_false")]
    pub externally_provisioned: bool,

    /// Whether disks are cleaned before and after a deployment: metadata (partition tables and the like) or disabled. Left out,
    /// metadata.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["metadata", "disabled"]))]
    pub automated_cleaning_mode: String,

    /// A deployment that a site's own boot agent knows how to do, in place of image. Setting it starts that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,

    /// Architecture of the processors, such as x86_64 or aarch64. Left out, the inspection tells.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,

    /// The server is never powered off; it is rebooted in place of that.
    #[serde(skip_serializing_if = "is_false")]
    pub disable_power_off: bool,

    /// How the server is inspected: agent, or disabled for not at all. Left out, agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["disabled", "agent"]))]
    pub inspection_mode: String,
}

/// How to reach a BMC.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["address", "credentialsName"]))]
pub struct BmcDetails {
    /// URL of the BMC. Its scheme tells how the server boots, such as redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1.
    pub address: String,
    /// Secret in the host's namespace with the keys username and password.
    pub credentials_name: String,
    /// Accept any certificate of the BMC. Whoever sits between can then read the password.
    #[serde(skip_serializing_if = "is_false")]
    pub disable_certificate_verification: bool,
}

impl BmcDetails {
    /// Whether nothing is said about the BMC.
    pub fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

/// A Secret.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// Name of the Secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its namespace: the host's own, or left out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Firmware settings that nothing supports any more.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FirmwareConfig {
    /// Virtualization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtualization_enabled: Option<bool>,
    /// Several threads on each core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simultaneous_multithreading_enabled: Option<bool>,
    /// Virtual functions of PCI devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sriov_enabled: Option<bool>,
}

/// A taint of a node.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["effect", "key"]))]
pub struct Taint {
    /// Key of the taint.
    pub key: String,
    /// Its value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What becomes of pods that do not tolerate it.
    pub effect: String,
    /// When it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schemas::date_time")]
    pub time_added: Option<String>,
}

absent_is_empty!(BareMetalHostSpec);
