//! A server that the operator looks after.
#![expect(unreachable_pub, reason = "KubeSchema derives through a hidden copy of each struct")]
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "an IPv6 address in brackets is no link, and the text is for kubectl"
)]

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::mode::OsFamily;
use super::references::object_reference;
use super::status::PhysicalHostStatus;

/// What the owner of a server says about it.
#[derive(CustomResource, KubeSchema, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "PhysicalHost",
    plural = "physicalhosts",
    shortname = "ph",
    category = "cluster-api",
    category = "beskar7",
    namespaced,
    status = "PhysicalHostStatus",
    derive = "PartialEq",
    doc = "A server, reached through its BMC. Applying one only looks at the server; a claim (consumerRef) with an order (bootIsoSource or networkBoot) boots it.",
    label("cluster.x-k8s.io/v1beta1", "v1beta1"),
    label("cluster.x-k8s.io/v1beta2", "v1beta1"),
    selectable = ".spec.consumerRef.name",
    // So that the boot service sees its own deployments only.
    selectable = ".spec.remoteConfig.osFamily",
    selectable = ".status.health",
    selectable = ".status.state"
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.bootIsoSource) || has(self.consumerRef)")
        .message("bootIsoSource is an order for a claimed host: set consumerRef with it, or remove both")
        .reason(Reason::FieldValueForbidden)
        .field_path(".bootIsoSource"),
    validation = Rule::new("!has(self.networkBoot) || has(self.consumerRef)")
        .message("networkBoot is an order for a claimed host: set consumerRef with it, or remove both")
        .reason(Reason::FieldValueForbidden)
        .field_path(".networkBoot"),
    validation = Rule::new("!has(self.networkBoot) || !has(self.bootIsoSource)")
        .message("the server boots either an ISO (bootIsoSource) or from the network (networkBoot): remove one of the two")
        .reason(Reason::FieldValueForbidden)
        .field_path(".networkBoot"),
    validation = Rule::new("!has(self.remoteConfig) || (has(self.bootIsoSource) && self.bootIsoSource.matches('^https?://'))")
        .message("remoteConfig is written into the ISO on its way to the server: set bootIsoSource with it, to an http or https URL, or remove both")
        .reason(Reason::FieldValueForbidden)
        .field_path(".remoteConfig"),
    validation = Rule::new("!has(oldSelf.consumerRef) || self.redfishConnection.address == oldSelf.redfishConnection.address")
        .message("redfishConnection.address cannot change while the host is claimed, since another address may be another server: release the host first")
        .reason(Reason::FieldValueForbidden)
        .field_path(".redfishConnection.address"),
    // Both ways, or a mistake could not be taken back.
    validation = Rule::new("!has(oldSelf.consumerRef) || (has(self.redfishConnection.systemID) ? self.redfishConnection.systemID : '') == (has(oldSelf.redfishConnection.systemID) ? oldSelf.redfishConnection.systemID : '')")
        .message("redfishConnection.systemID cannot change while the host is claimed, since another system is another server: release the host first")
        .reason(Reason::FieldValueForbidden)
        .field_path(".redfishConnection.systemID")
)]
pub struct PhysicalHostSpec {
    /// How to reach the server's BMC.
    pub redfish_connection: RedfishConnection,

    /// Who holds the host: normally written by the Beskar7Machine that claims it. Its presence is the claim, its removal
    /// the release: the server is then powered off, its virtual media is ejected, and it becomes available again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_reference")]
    #[x_kube(validation = Rule::new("has(self.name) && self.name != ''")
        .message("consumerRef needs the name of the object that holds the host")
        .reason(Reason::FieldValueRequired))]
    pub consumer_ref: Option<ObjectReference>,

    /// URL of an ISO that the server is to boot from virtual media, once. The BMC must be able to fetch it. It acts only
    /// together with consumerRef, and once per claim: changing it on a provisioned host sets a condition and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self.matches('^(https?|ftp|nfs|cifs|smb)://[^/\\s]+/\\S*$')")
        .message("bootIsoSource must be the URL of an image that the BMC can fetch, such as http://192.0.2.1/os.iso (http, https, ftp, nfs, cifs or smb)"))]
    pub boot_iso_source: Option<String>,

    /// How the system on the ISO finds its configuration: the operator serves the ISO to the BMC, with a kernel parameter
    /// written into it. Part of the order, and needs a bootIsoSource with http or https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_config: Option<RemoteConfig>,

    /// Boots the server from the network, where DHCP and web servers of the site answer. It acts only together with
    /// consumerRef, and once per claim, as bootIsoSource does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_boot: Option<NetworkBoot>,

    /// Whether every later start that the operator causes (a restart request, power) boots the same again, for systems that live
    /// in memory. Left out or false, only the first start does, and later ones boot the disk. Part of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_every_start: Option<bool>,

    /// Secret in the host's namespace with the bootstrap data (keys value and format) that is served to this server, and to
    /// no other, while it is being provisioned. Normally written by the Beskar7Machine that claims the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object_reference")]
    #[x_kube(validation = Rule::new("has(self.name) && self.name != ''")
        .message("userDataSecretRef needs the name of a Secret")
        .reason(Reason::FieldValueRequired))]
    pub user_data_secret_ref: Option<ObjectReference>,

    /// MAC address of the interface that the server boots from over the network. It is compared with the inventory, and the condition BootInterfaceFound is false if the server has no such interface: it may be
    /// another server than you meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 17))]
    #[x_kube(validation = Rule::new("self.matches('^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$')")
        .message("bootMacAddress must be six pairs of hex digits, such as 52:54:00:12:34:56"))]
    pub boot_mac_address: Option<String>,

    /// Which firmware boots: UEFI or Legacy. Left out, the server keeps the mode that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "boot_mode")]
    pub boot_mode: Option<BootMode>,

    /// Which firmware boots bootIsoSource, where that differs from bootMode: UEFI or Legacy. Part of the order: written by the
    /// Beskar7Machine that claims the host, and removed at the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "boot_mode")]
    pub boot_iso_mode: Option<BootMode>,

    /// Whether the server is to be powered on. Left out, the power is left alone. What was set before the host was claimed does not
    /// apply to the claimed host, and after a release the server stays off until this field or the annotation
    /// beskar7.io/power-request is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub online: Option<bool>,

    /// Whether a Beskar7Machine may take the host while its server runs although nobody asked for it (online is left out). The
    /// server's power is then cut. Left out or false, such a host is passed over; a claim by hand takes it in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimable_while_running: Option<bool>,

    /// Its presence, also as an empty object, parks the host: nothing is done to the server, and nobody can claim it,
    /// until it is removed. An object and not a flag, so that it can say why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<Maintenance>,
}

/// How to reach a BMC.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.insecureSkipVerify) || !self.insecureSkipVerify || !has(self.caBundleSecretRef)")
        .message("insecureSkipVerify: true accepts any certificate, so caBundleSecretRef would have no effect: remove one of the two")
        .field_path(".caBundleSecretRef"),
    validation = Rule::new("!has(self.insecureSkipVerify) || !self.insecureSkipVerify || !has(self.certificateFingerprint)")
        .message("insecureSkipVerify: true accepts any certificate, so certificateFingerprint would have no effect: remove one of the two")
        .field_path(".certificateFingerprint"),
    validation = Rule::new("!has(self.insecureSkipVerify) || !self.insecureSkipVerify || !has(self.trustOnFirstUse) || !self.trustOnFirstUse")
        .message("insecureSkipVerify: true accepts any certificate, so trustOnFirstUse would have no effect: remove one of the two")
        .field_path(".trustOnFirstUse")
)]
pub struct RedfishConnection {
    /// Where the BMC's Redfish service is: a URL such as https://192.0.2.10 or https://[2001:db8::10]:8443, or only the
    /// host, for which https is assumed. It cannot change while the host is claimed.
    #[schemars(length(max = 1024))]
    #[x_kube(
        validation = Rule::new(r"self.matches('^\\S+$')")
            .message("address must be the URL of the BMC, such as https://192.0.2.10, without spaces"),
        validation = Rule::new("!self.matches('^([A-Za-z0-9+.-]+://)?[^/]*@')")
            .message("address must not carry a user name or password: put them into the Secret that credentialsSecretRef names")
    )]
    pub address: String,

    /// Name of a Secret in the host's namespace with the keys username and password. It may be changed at any time.
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')")
        .message("credentialsSecretRef must be the name of a Secret in the host's namespace"))]
    pub credentials_secret_ref: String,

    /// Accept any certificate of the BMC. Whoever sits between can then read the password: prefer certificateFingerprint,
    /// which needs no CA either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insecure_skip_verify: Option<bool>,

    /// Secret in the host's namespace whose key ca.crt (or tls.crt) holds the certificate authorities to trust, in place of
    /// the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle_secret_ref: Option<LocalObjectReference>,

    /// SHA-256 of the one certificate to accept, as hex with or without colons. When a certificate is not trusted, the
    /// RedfishConnectionReady condition shows the value to put here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 102))]
    #[x_kube(validation = Rule::new("self.matches('^([Ss][Hh][Aa]256:)?([0-9A-Fa-f]{64}|([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2})$')")
        .message("certificateFingerprint must be a SHA-256 fingerprint: 64 hex digits, with or without colons"))]
    pub certificate_fingerprint: Option<String>,

    /// Accept the first certificate that the BMC shows and only that one from then on. A certificateFingerprint takes
    /// precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_on_first_use: Option<bool>,

    /// Which system, for a BMC that has several (blades, multi-node chassis): its Redfish id or its UUID. It cannot
    /// change while the host is claimed.
    #[serde(default, rename = "systemID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    #[x_kube(validation = Rule::new(r"self.matches('^\\S+$')")
        .message("systemID must be a Redfish id or a UUID, without spaces; leave it out if the BMC has one system"))]
    pub system_id: Option<String>,

    /// Vendor family whose quirks to assume, such as dell, hpe, lenovo, supermicro or generic. Left out, the BMC is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = Rule::new(r"self.matches('^\\S+$')")
        .message("vendor must be one word, such as dell; leave it out to have the BMC asked"))]
    pub vendor: Option<String>,
}

/// How the system on an ISO finds its configuration.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteConfig {
    /// The system on the ISO, which decides about the kernel parameter: kairos, talos, flatcar or LeapMicro.
    #[x_kube(validation = Rule::new("self in ['kairos', 'talos', 'flatcar', 'LeapMicro']")
        .message("osFamily must be one whose kernel parameter is known: kairos, talos, flatcar or LeapMicro"))]
    pub os_family: OsFamily,

    /// URL of the configuration, http or https. Left out, the bootstrap data of userDataSecretRef is served.
    #[serde(default, rename = "configURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self.matches('^https?://[^/\\s]+(/\\S*)?$')")
        .message("configURL must be an http or https URL, such as https://192.0.2.1/config.yaml"))]
    pub config_url: Option<String>,
}

/// A boot from the network.
#[derive(KubeSchema, Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.url) || self.protocol == 'HTTP'")
        .message("url is fetched by the firmware by UEFI HTTP boot: set protocol to HTTP, or remove url")
        .reason(Reason::FieldValueForbidden)
        .field_path(".url"),
    validation = Rule::new("!(has(self.format) || has(self.initrdURLs) || has(self.kernelParameters)) || (has(self.imageURL) && self.imageURL.matches('^https?://'))")
        .message("format, initrdURLs and kernelParameters have the boot service serve imageURL, which must then be an http or https URL")
        .reason(Reason::FieldValueRequired)
        .field_path(".imageURL"),
    validation = Rule::new("!has(self.url) || !has(self.format)")
        .message("url is fetched by the firmware from your own server, and format has the boot service serve imageURL: keep one and remove the other")
        .reason(Reason::FieldValueForbidden)
        .field_path(".format"),
    validation = Rule::new("!has(self.initrdURLs) || !has(self.format) || self.format == 'Kernel'")
        .message("initrdURLs belong to a Linux kernel: set format to Kernel, or remove them")
        .reason(Reason::FieldValueForbidden)
        .field_path(".initrdURLs"),
    validation = Rule::new("!has(self.kernelParameters) || !has(self.format) || self.format != 'Script'")
        .message("a script has the kernel parameters in it: remove kernelParameters, or set format to Kernel or EFI")
        .reason(Reason::FieldValueForbidden)
        .field_path(".kernelParameters")
)]
pub struct NetworkBoot {
    /// How the firmware boots: PXE (DHCP, then TFTP or what DHCP says; also iPXE) or HTTP (UEFI HTTP boot).
    #[schemars(schema_with = "network_protocol")]
    pub protocol: NetworkProtocol,

    /// What UEFI HTTP boot fetches: http or https. Left out, DHCP says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    #[x_kube(validation = Rule::new(r"self.matches('^https?://[^/\\s]+(/\\S*)?$')")
        .message("url must be an http or https URL, such as http://192.0.2.1/boot.efi"))]
    pub url: Option<String>,

    /// What the server is to run. The boot service serves it if format is set, or if it answers DHCP; else it is for your own boot
    /// servers. Written by the Beskar7Machine that claims the host.
    #[serde(default, rename = "imageURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub image_url: Option<String>,

    /// The configuration of that system, likewise.
    #[serde(default, rename = "configURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub config_url: Option<String>,

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

    /// The system that is booted, which decides how it is told where its configuration is: kairos, talos, flatcar or LeapMicro by a
    /// parameter of their own, any other by NoCloud or Ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_family: Option<OsFamily>,
}

impl NetworkBoot {
    /// A boot of something that your own servers know.
    pub fn new(protocol: NetworkProtocol, image_url: Option<String>) -> Self {
        Self {
            protocol,
            url: None,
            image_url,
            config_url: None,
            format: None,
            initrd_urls: Vec::new(),
            kernel_parameters: None,
            os_family: None,
        }
    }
}

/// What is booted from the network.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BootFormat {
    /// A script for iPXE.
    Script,
    /// A Linux kernel.
    Kernel,
    /// A unified kernel image or another EFI program.
    #[serde(rename = "EFI")]
    Efi,
}

impl BootFormat {
    /// What a URL without a format stands for.
    pub fn of(url: &str) -> Self {
        let path = url.split(['?', '#']).next().unwrap_or(url);
        match path.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).as_deref() {
            Some("ipxe") => Self::Script,
            Some("efi") => Self::Efi,
            _ => Self::Kernel,
        }
    }
}

/// How firmware boots from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkProtocol {
    /// DHCP, then TFTP or what DHCP says.
    #[serde(rename = "PXE")]
    Pxe,
    /// UEFI HTTP boot.
    #[serde(rename = "HTTP")]
    Http,
}

/// Another object in the same namespace.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// That, and why, a host is left alone.
#[derive(JsonSchema, Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Maintenance {
    /// Why, for whoever looks next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,
}

/// Which firmware boots: UEFI or Legacy. Left out, the server keeps the mode that it is in.
#[derive(JsonSchema, Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BootMode {
    /// UEFI.
    #[serde(rename = "UEFI")]
    Uefi,
    /// BIOS.
    Legacy,
}

/// An optional enum would show its type's text in `kubectl explain`, not that of the field.
fn network_protocol(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["PXE", "HTTP"] })
}

/// Likewise.
pub(super) fn boot_format(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["Script", "Kernel", "EFI"] })
}

fn boot_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["UEFI", "Legacy"] })
}

impl RedfishConnection {
    /// The pinned fingerprint as the engine writes it: 64 lower-case hex digits.
    pub fn pin(&self) -> Option<String> {
        let given = self.certificate_fingerprint.as_deref()?;
        let digits = match given.split_at_checked("sha256:".len()) {
            Some((prefix, digits)) if prefix.eq_ignore_ascii_case("sha256:") => digits,
            _ => given,
        };
        Some(digits.chars().filter(|c| *c != ':').map(|c| c.to_ascii_lowercase()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_read_in_all_ways_of_writing_it() {
        let digits = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        for given in [digits.clone(), digits.to_uppercase(), colons.clone(), format!("SHA256:{colons}")] {
            let connection = RedfishConnection { certificate_fingerprint: Some(given), ..RedfishConnection::default() };
            assert_eq!(connection.pin().as_deref(), Some(digits.as_str()));
        }
        assert_eq!(RedfishConnection::default().pin(), None);
    }
}
