//! What an API server refuses, and with which sentence: the rules of upstream's admission webhook that a CRD can express.
//!
//! What a rule cannot see, or what would cost an API server too much for strings of any length, is told in the status:
//! values of annotations and what they contradict, Secrets of other namespaces, and whether the host in `spec.bmc.address` is a DNS name or an
//! IP address.
//!
//! Rules of a part are not asked when that part stays as it is, so a host that was stored before there were rules can always be
//! finished, paused and deleted. Those of the whole object are asked at every write, also of a status: they compare with
//! what was there before.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::ValidationRule;

/// A rule, and what is said to whoever breaks it.
struct Rule {
    holds_if: &'static str,
    message: &'static str,
    /// The field that is to blame; relative to where the rule stands.
    field: Option<&'static str>,
    /// What is wrong with it, in the API server's word.
    reason: &'static str,
    /// Whether `oldSelf` is an optional, so that the rule is asked at creation, too.
    at_creation: bool,
}

const fn invalid(field: &'static str, holds_if: &'static str, message: &'static str) -> Rule {
    Rule { holds_if, message, field: Some(field), reason: "FieldValueInvalid", at_creation: false }
}

const fn forbidden(field: &'static str, holds_if: &'static str, message: &'static str) -> Rule {
    Rule { reason: "FieldValueForbidden", ..invalid(field, holds_if, message) }
}

const fn required(field: &'static str, holds_if: &'static str, message: &'static str) -> Rule {
    Rule { reason: "FieldValueRequired", ..invalid(field, holds_if, message) }
}

// The cost of a rule is estimated for the longest strings that a request can hold, as upstream's schema sets no limits. What comes
// out of an optional counts as unlimited: it is only compared with a constant here.

/// Rules of the whole object.
pub(crate) fn of_object() -> Vec<ValidationRule> {
    definitions(OBJECT)
}

/// Rules of `spec`.
pub(crate) fn of_spec() -> Vec<ValidationRule> {
    definitions(SPEC)
}

/// Rules of `spec.raid`.
pub(crate) fn of_raid() -> Vec<ValidationRule> {
    definitions(RAID)
}

/// Rules of each of `spec.raid.hardwareRAIDVolumes`.
pub(crate) fn of_hardware_raid_volume() -> Vec<ValidationRule> {
    definitions(HARDWARE_RAID_VOLUME)
}

const OBJECT: &[Rule] = &[
    // Names have no capitals.
    Rule {
        holds_if: "oldSelf.hasValue() || !self.metadata.name.matches('^([0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32})$')",
        message: "metadata.name must not be a UUID: choose a name such as server-01",
        field: None,
        reason: "FieldValueForbidden",
        at_creation: true,
    },
    forbidden(
        ".spec.bmc.address",
        "oldSelf.?spec.?bmc.?address.orValue('') == '' || (has(self.spec) && has(self.spec.bmc) && self.spec.bmc.address == oldSelf.spec.bmc.address) || self.?status.?provisioning.?state.orValue('') == 'registering' || self.?status.?operationalStatus.orValue('') == 'detached'",
        "bmc.address cannot change now, since another address may be another server: it can while the host is registering, or detached (annotation baremetalhost.metal3.io/detached)",
    ),
    forbidden(
        ".spec.bootMACAddress",
        "oldSelf.?spec.?bootMACAddress.orValue('') == '' || (has(self.spec) && has(self.spec.bootMACAddress) && self.spec.bootMACAddress.lowerAscii() == oldSelf.spec.bootMACAddress.lowerAscii())",
        "bootMACAddress cannot change once it is set, since it tells which server this is: delete the host and create it again",
    ),
    forbidden(
        ".spec.externallyProvisioned",
        "!oldSelf.?spec.?externallyProvisioned.orValue(false) || self.?spec.?externallyProvisioned.orValue(false)",
        "externallyProvisioned cannot be taken back: delete the host and create it again",
    ),
    forbidden(
        ".spec.externallyProvisioned",
        "!self.?spec.?externallyProvisioned.orValue(false) || oldSelf.?spec.?externallyProvisioned.orValue(false) || self.?status.?provisioning.?state.orValue('') == 'available'",
        "externallyProvisioned can be set when a host is created, or while it is available",
    ),
];

const SPEC: &[Rule] = &[
    forbidden(
        ".online",
        "self.online || !self.?disablePowerOff.orValue(false)",
        "disablePowerOff keeps the server from being powered off: set online to true, or remove disablePowerOff",
    ),
    invalid(
        ".rootDeviceHints.deviceName",
        "self.?rootDeviceHints.?deviceName.orValue('') == '' || self.rootDeviceHints.deviceName.matches('^/dev/(disk/by-path/)?[^/]*$')",
        "rootDeviceHints.deviceName must be a device such as /dev/sda, or its link in /dev/disk/by-path",
    ),
    invalid(
        ".image.url",
        "!has(self.image) || isURL(self.image.url)",
        "image.url must be the URL of an image, such as http://192.0.2.1/os.qcow2; to provision nothing, remove image",
    ),
    required(
        ".image.checksum",
        "!has(self.image) || self.image.?checksum.orValue('') != '' || self.image.?format.orValue('') == 'live-iso' || self.image.url.matches('^(?i)oci://')",
        "image.checksum is needed, unless format is live-iso or url begins with oci://",
    ),
    forbidden(
        ".firmware",
        "!has(self.firmware) || self.?bmc.?address.orValue('') == ''",
        "firmware is not supported any more: remove it",
    ),
    invalid(
        ".bootMACAddress",
        "self.?bootMACAddress.orValue('') == '' || self.?bmc.?address.orValue('') == '' || self.bootMACAddress.matches('^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}((:[0-9A-Fa-f]{2}){2}|(:[0-9A-Fa-f]{2}){14})?$')",
        "bootMACAddress must be six pairs of hex digits, such as 52:54:00:12:34:56, and nothing else",
    ),
    required(
        ".bootMACAddress",
        "self.?bootMACAddress.orValue('') != '' || !has(self.bmc) || !self.bmc.address.matches('^(?i)(libvirt|(redfish(-uefihttp)?|(idrac|ilo5)-redfish)([+]https?)?):')",
        "bootMACAddress is needed with this kind of bmc.address: set it, or boot from virtual media (redfish-virtualmedia)",
    ),
    required(
        ".bootMACAddress",
        "self.?bootMACAddress.orValue('') != '' || self.?bmc.?address.orValue('') == '' || self.?inspectionMode.orValue('') != 'disabled'",
        "bootMACAddress is needed when inspectionMode is disabled",
    ),
    forbidden(
        ".bootMode",
        "self.?bootMode.orValue('') != 'UEFISecureBoot' || !has(self.bmc) || !self.bmc.address.matches('^(?i)((ipmi|libvirt):|[^:]+$|[0-9.]+:[0-9]+$)')",
        "bootMode UEFISecureBoot needs a BMC that speaks Redfish: write bmc.address as redfish-virtualmedia://<host>, or choose UEFI",
    ),
    forbidden(
        ".raid.hardwareRAIDVolumes",
        "self.?raid.?hardwareRAIDVolumes.orValue([]).size() == 0 || !has(self.bmc) || !self.bmc.address.matches('^(?i)((ipmi|libvirt):|[^:]+$|[0-9.]+:[0-9]+$)')",
        "raid.hardwareRAIDVolumes needs a BMC that speaks Redfish: write bmc.address as redfish-virtualmedia://<host>, or remove the volumes",
    ),
];

const RAID: &[Rule] = &[forbidden(
    ".softwareRAIDVolumes",
    "self.?hardwareRAIDVolumes.orValue([]).size() == 0 || self.?softwareRAIDVolumes.orValue([]).size() == 0",
    "hardwareRAIDVolumes and softwareRAIDVolumes exclude each other: remove one of the two",
)];

const HARDWARE_RAID_VOLUME: &[Rule] = &[
    required(
        ".controller",
        "self.?physicalDisks.orValue([]).size() == 0 || self.?controller.orValue('') != ''",
        "physicalDisks are named as a controller names them: set controller, too",
    ),
    invalid(
        ".numberOfPhysicalDisks",
        "self.?physicalDisks.orValue([]).size() == 0 || !has(self.numberOfPhysicalDisks) || self.numberOfPhysicalDisks == self.physicalDisks.size()",
        "numberOfPhysicalDisks differs from the number of physicalDisks: correct it, or leave it out",
    ),
];

fn definitions(rules: &[Rule]) -> Vec<ValidationRule> {
    let definition = |rule: &Rule| ValidationRule {
        rule: rule.holds_if.to_owned(),
        message: Some(rule.message.to_owned()),
        field_path: rule.field.map(str::to_owned),
        reason: Some(rule.reason.to_owned()),
        optional_old_self: rule.at_creation.then_some(true),
        ..ValidationRule::default()
    };
    rules.iter().map(definition).collect()
}
