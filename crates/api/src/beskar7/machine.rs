//! A machine of a cluster: what a server is wanted for.
#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host::{BootFormat, BootMode, boot_format};
use super::machine_status::Beskar7MachineStatus;
use super::mode::{OsFamily, ProvisioningMode};
use super::selector::HostSelector;

/// The mode in CEL, as [`Beskar7MachineSpec::mode`] reads it. Only for a spec with an imageURL.
const MODE: &str = "(has(self.provisioningMode) ? self.provisioningMode : (has(self.configURL) && self.configURL != '' ? 'RemoteConfig' : 'PreBakedISO'))";

/// What a machine is to run, and on which server. Either imageURL (an ISO is booted from virtual media) or targetImageURL
/// (an image is written to the disk) must be given.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Beskar7Machine",
    plural = "beskar7machines",
    shortname = "b7m",
    category = "cluster-api",
    category = "beskar7",
    namespaced,
    status = "Beskar7MachineStatus",
    derive = "PartialEq",
    doc = "A machine of a cluster. It claims a free PhysicalHost of its namespace, boots it, and releases it when it is deleted.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    // Here and not in the spec, which templates share: it is about this one machine.
    validation = Rule::new("!has(oldSelf.spec.providerID) || (has(self.spec.providerID) && self.spec.providerID == oldSelf.spec.providerID)")
        .message("providerID names the server that the node runs on and cannot change: delete the machine and create another one")
        .reason(Reason::FieldValueForbidden)
        .field_path(".spec.providerID")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.imageURL) || has(self.targetImageURL)")
        .message("say what the machine is to run: imageURL (an ISO that is booted) or targetImageURL (an image that is written to its disk)")
        .reason(Reason::FieldValueRequired)
        .field_path(".imageURL"),
    validation = Rule::new("!has(self.imageURL) || !(has(self.inspectionImageURL) || has(self.targetImageURL))")
        .message("which of the two ways? imageURL boots an ISO, inspectionImageURL and targetImageURL write an image to the disk: keep one and remove the other")
        .reason(Reason::FieldValueForbidden)
        .field_path(".imageURL"),
    validation = Rule::new("!has(self.imageURL) || !((has(self.configurationURL) && self.configurationURL != '') || has(self.targetImageDigest) || has(self.targetDisk))")
        .message("configurationURL, targetImageDigest and targetDisk belong to targetImageURL and would have no effect with imageURL: remove them; the configuration for imageURL is configURL"),
    validation = Rule::new("!has(self.targetImageURL) || !(has(self.provisioningMode) || (has(self.configURL) && self.configURL != ''))")
        .message("provisioningMode and configURL belong to imageURL and would have no effect with targetImageURL: remove them; the configuration for targetImageURL is configurationURL"),
    validation = Rule::new(format!("!has(self.imageURL) || {MODE} != 'RemoteConfig' || (has(self.osFamily) && self.osFamily in ['kairos', 'talos', 'flatcar', 'LeapMicro'])"))
        .message("RemoteConfig, which a configURL implies, hands the configuration over by a kernel parameter of kairos, talos, flatcar or LeapMicro: set osFamily to one of them, or use PreBakedISO without configURL")
        .field_path(".osFamily"),
    validation = Rule::new(format!(r"!has(self.imageURL) || {MODE} != 'RemoteConfig' || self.imageURL.matches('^https?://')"))
        .message("RemoteConfig, which a configURL implies, changes the ISO on its way to the server: imageURL must then be an http or https URL")
        .field_path(".imageURL"),
    validation = Rule::new("!has(self.provisioningMode) || self.provisioningMode != 'PreBakedISO' || !has(self.configURL) || self.configURL == ''")
        .message("a PreBakedISO brings its configuration with it: remove configURL, or use provisioningMode RemoteConfig")
        .reason(Reason::FieldValueForbidden)
        .field_path(".configURL"),
    validation = Rule::new("!has(self.boot) || (has(self.provisioningMode) && self.provisioningMode in ['PXE', 'iPXE'])")
        .message("boot is about what is booted from the network: set provisioningMode to iPXE or PXE, or remove boot")
        .reason(Reason::FieldValueForbidden)
        .field_path(".boot"),
    validation = Rule::new(r"!has(self.boot) || !has(self.imageURL) || self.imageURL.matches('^https?://')")
        .message("boot has the boot service serve imageURL, which must then be an http or https URL")
        .field_path(".imageURL")
)]
pub struct Beskar7MachineSpec {
    /// The server that the machine runs on, as b7://namespace/host; the same word as in the Node's providerID. Written by
    /// the operator, once.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    #[x_kube(validation = Rule::new("self.matches('^b7://[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$')")
        .message("providerID is written by the operator and has the form b7://namespace/host: leave it out"))]
    pub provider_id: Option<String>,

    /// Which operating system is installed: kairos, talos, flatcar, LeapMicro, ubuntu, rhel, centos, fedora, debian or
    /// opensuse. RemoteConfig knows how to configure the first four; for any other mode it is only a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_family: Option<OsFamily>,

    /// URL of the ISO to boot. PreBakedISO: the BMC must be able to fetch it (http, https, ftp, nfs, cifs or smb).
    /// RemoteConfig: the operator fetches it (http or https) and serves it to the BMC. PXE and iPXE: what the servers of your
    /// own network are to let it boot; it is shown to them on the host, in spec.networkBoot.
    #[serde(default, rename = "imageURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self.matches('^(https?|ftp|nfs|cifs|smb)://[^/\\s]+/\\S*$')")
        .message("imageURL must be the URL of an image, such as http://192.0.2.1/os.iso (http, https, ftp, nfs, cifs or smb)"))]
    pub image_url: Option<String>,

    /// URL of the configuration that the installed system fetches, for RemoteConfig. Left out, it gets the bootstrap data
    /// of its Machine, from the operator.
    #[serde(default, rename = "configURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self == '' || self.matches('^https?://[^/\\s]+(/\\S*)?$')")
        .message("configURL must be an http or https URL, such as https://192.0.2.1/config.yaml"))]
    pub config_url: Option<String>,

    /// How imageURL gets onto the server: PreBakedISO, RemoteConfig, PXE or iPXE. Left out, a configURL means RemoteConfig,
    /// and none means PreBakedISO.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_mode: Option<ProvisioningMode>,

    /// What imageURL is that is booted from the network by PXE or iPXE, and what goes with it. Its presence, also as an empty object, has
    /// the boot service serve it; so does a boot service that answers DHCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<MachineBoot>,

    /// Which firmware boots: UEFI or Legacy. Left out, the server keeps the mode that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_mode: Option<BootMode>,

    /// Whether every later start that the operator causes (a restart request, power) boots the same again, for systems that live
    /// in memory. Left out or false, only the first start does, and later ones boot the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_every_start: Option<bool>,

    /// Where the system comes from that inspects the server and writes targetImageURL to its disk: http or https.
    #[serde(default, rename = "inspectionImageURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self.matches('^https?://[^/\\s]+(/\\S*)?$')")
        .message("inspectionImageURL must be an http or https URL, such as http://192.0.2.1/inspector"))]
    pub inspection_image_url: Option<String>,

    /// URL of the image that is written to the disk: http or https.
    #[serde(default, rename = "targetImageURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self.matches('^https?://[^/\\s]+(/\\S*)?$')")
        .message("targetImageURL must be an http or https URL, such as http://192.0.2.1/os.raw"))]
    pub target_image_url: Option<String>,

    /// URL of the configuration for the system of targetImageURL: http or https.
    #[serde(default, rename = "configurationURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self == '' || self.matches('^https?://[^/\\s]+(/\\S*)?$')")
        .message("configurationURL must be an http or https URL, such as https://192.0.2.1/config.yaml"))]
    pub configuration_url: Option<String>,

    /// SHA-256 of the image of targetImageURL, as sha256: and 64 hex digits. An image that differs is not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    #[x_kube(validation = Rule::new("self.matches('^sha256:[a-f0-9]{64}$')")
        .message("targetImageDigest must be sha256: and 64 hex digits in lower case"))]
    pub target_image_digest: Option<String>,

    /// The disk that the image is written to, such as /dev/disk/by-id/wwn-0x5000c500a1b2c3d4 or nvme0n1. Left out, the
    /// smallest one that is large enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    #[x_kube(validation = Rule::new("self.matches('^[A-Za-z0-9._:/+-]+$')")
        .message("targetDisk must be the name or path of a disk, such as nvme0n1 or /dev/disk/by-id/wwn-0x5000c500a1b2c3d4"))]
    pub target_disk: Option<String>,

    /// The server's address where there is no DHCP, as address::gateway:netmask:dns. Gateway and dns may be left out, the
    /// netmask may be a prefix length: 192.0.2.20::192.0.2.1:24. The address is shown in status.addresses and can become the endpoint of
    /// the cluster. A system that is booted from imageURL does not get it from here: put it into its own configuration, too.
    #[serde(default, rename = "staticIP", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    #[x_kube(validation = Rule::new(r"self.matches('^([0-9]{1,3}\\.){3}[0-9]{1,3}::(([0-9]{1,3}\\.){3}[0-9]{1,3})?:(([0-9]{1,3}\\.){3}[0-9]{1,3}|[0-9]{1,2})(:([0-9]{1,3}\\.){3}[0-9]{1,3})?$')")
        .message("staticIP must have the form address::gateway:netmask:dns, such as 192.0.2.20::192.0.2.1:24 (gateway and dns may be left out)"))]
    pub static_ip: Option<String>,

    /// What the server must have at least. Servers with less are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_requirements: Option<HardwareRequirements>,

    /// Labels that the PhysicalHost must have. Left out, or empty, any host of the namespace will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,

    /// What becomes of the server when the machine is deleted. PowerOff: it is switched off and free for the next one.
    /// Quarantine: it is switched off and kept from others until somebody has looked at it. Left out, PowerOff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_policy: Option<ReleasePolicy>,
}

/// What a server must have at least.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HardwareRequirements {
    /// Cores of all processors together.
    #[serde(default, rename = "minCPUCores", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_cpu_cores: Option<u32>,
    /// Memory in GB.
    #[serde(default, rename = "minMemoryGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_memory_gb: Option<u32>,
    /// Size in GB of at least one disk; several small ones do not add up.
    #[serde(default, rename = "minDiskGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_disk_gb: Option<u32>,
}

/// What becomes of the server when the machine is deleted. PowerOff: it is switched off and free for the next one.
/// Quarantine: it is switched off and kept from others until somebody has looked at it. Left out, PowerOff.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ReleasePolicy {
    /// Switched off, and free for the next one.
    #[default]
    PowerOff,
    /// Switched off, and kept from others.
    Quarantine,
}
/// What is booted from the network, and what goes with it.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.initrdURLs) || !has(self.format) || self.format == 'Kernel'")
        .message("initrdURLs belong to a Linux kernel: set format to Kernel, or remove them")
        .reason(Reason::FieldValueForbidden)
        .field_path(".initrdURLs"),
    validation = Rule::new("!has(self.kernelParameters) || !has(self.format) || self.format != 'Script'")
        .message("a script has the kernel parameters in it: remove kernelParameters, or set format to Kernel or EFI")
        .reason(Reason::FieldValueForbidden)
        .field_path(".kernelParameters")
)]
pub struct MachineBoot {
    /// What imageURL is: Script (for iPXE), Kernel (Linux) or EFI (a unified kernel image or another EFI program). Left out, a URL
    /// that ends in .ipxe is a script, one that ends in .efi is an EFI program, and any other is a kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "boot_format")]
    pub format: Option<BootFormat>,

    /// URLs of the initial RAM disks of a Linux kernel, http or https, in the order in which they are loaded.
    #[serde(default, rename = "initrdURLs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 2048)), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = Rule::new(r"self.all(url, url.matches('^https?://[^/\\s]+(/\\S*)?$'))")
        .message("initrdURLs must be http or https URLs, such as http://192.0.2.1/initrd.img"))]
    pub initrd_urls: Vec<String>,

    /// Parameters of the Linux kernel. BESKAR7_CONFIG_URL in them is replaced by the URL of the configuration; without that word, the
    /// parameter that osFamily needs is added. To an EFI program they are handed after its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1536))]
    #[x_kube(validation = Rule::new(r"self.matches('^[^[:cntrl:]]*$') && !self.matches('(^| )(&&|[|][|])( |$)')")
        .message("kernelParameters must be one line without control characters, and without the words && and ||, which iPXE would obey"))]
    pub kernel_parameters: Option<String>,
}
