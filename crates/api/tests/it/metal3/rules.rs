//! What an API server refuses, and with which sentence. The cases are those of upstream's admission webhook.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{cluster, host, hosts};

/// `Ok`, or what the API server says. Nothing is stored.
async fn try_create(name: &str, spec: &Value) -> Result<(), String> {
    let dry_run = PostParams { dry_run: true, field_manager: None };
    let created = hosts(cluster().await, "default").create(&dry_run, &host(name, spec)).await;
    created.map(drop).map_err(|error| error.to_string())
}

fn bmc(address: &str) -> Value {
    json!({"bmc": {"address": address}})
}

/// With the MAC address that most schemes ask for.
fn with_mac(address: &str) -> Value {
    json!({"bmc": {"address": address}, "bootMACAddress": "52:54:00:12:34:56"})
}

fn image(image: &Value) -> Value {
    json!({ "image": image })
}

fn volume(volume: &Value) -> Value {
    json!({"raid": {"hardwareRAIDVolumes": [volume]}})
}

#[tokio::test]
async fn what_upstreams_webhook_refuses_is_refused_with_a_sentence() {
    let url = "http://192.0.2.1/os.qcow2";
    let mac_is_needed = "spec.bootMACAddress: Required value: bootMACAddress is needed with this kind of bmc.address";
    let secure_boot = "spec.bootMode: Forbidden: bootMode UEFISecureBoot needs a BMC that speaks Redfish";
    let raid = "spec.raid.hardwareRAIDVolumes: Forbidden: raid.hardwareRAIDVolumes needs a BMC that speaks Redfish";
    let device = "rootDeviceHints.deviceName must be a device such as /dev/sda";
    let volumes = json!([{"level": "1"}]);
    let table = [
        (json!({"online": false, "disablePowerOff": true}), "spec.online: Forbidden: disablePowerOff keeps"),
        (bmc("redfish://192.0.2.10"), mac_is_needed),
        (bmc("REDFISH+HTTP://192.0.2.10"), mac_is_needed),
        (bmc("redfish-uefihttp+https://192.0.2.10"), mac_is_needed),
        (bmc("idrac-redfish:192.0.2.10"), mac_is_needed),
        (bmc("ilo5-redfish://192.0.2.10"), mac_is_needed),
        (bmc("libvirt://192.0.2.10:6230"), mac_is_needed),
        (json!({"inspectionMode": "disabled"}), "bootMACAddress is needed when inspectionMode is disabled"),
        (json!({"bootMACAddress": "52:54:00:12:34:56:"}), "bootMACAddress must be six pairs of hex digits"),
        (json!({"bootMACAddress": "x52:54:00:12:34:56"}), "bootMACAddress must be six pairs of hex digits"),
        (json!({"bootMACAddress": "52:54:00:12:34"}), "spec.bootMACAddress in body should match"),
        (json!({"bootMACAddress": "52-54-00-12-34-56"}), "spec.bootMACAddress in body should match"),
        (json!({"firmware": {}}), "spec.firmware: Forbidden: firmware is not supported any more: remove it"),
        (json!({"firmware": {"sriovEnabled": false}}), "firmware is not supported any more"),
        (json!({"bmc": {"address": "ipmi://192.0.2.10"}, "bootMode": "UEFISecureBoot"}), secure_boot),
        (json!({"bmc": {"address": "192.0.2.10:6230"}, "bootMode": "UEFISecureBoot"}), secure_boot),
        (json!({"bmc": {"address": "bmc-1.example.com"}, "bootMode": "UEFISecureBoot"}), secure_boot),
        (json!({"bmc": {"address": "ipmi://192.0.2.10"}, "raid": {"hardwareRAIDVolumes": volumes}}), raid),
        (json!({"bmc": {"address": "192.0.2.10"}, "raid": {"hardwareRAIDVolumes": volumes}}), raid),
        (
            json!({"raid": {"hardwareRAIDVolumes": volumes, "softwareRAIDVolumes": volumes}}),
            "hardwareRAIDVolumes and softwareRAIDVolumes exclude each other",
        ),
        (
            volume(&json!({"level": "1", "physicalDisks": ["a", "b"]})),
            "spec.raid.hardwareRAIDVolumes[0].controller: Required value: physicalDisks are named as a controller names them",
        ),
        (
            volume(&json!({"level": "1", "controller": "c", "physicalDisks": ["a", "b"], "numberOfPhysicalDisks": 3})),
            "numberOfPhysicalDisks differs from the number of physicalDisks",
        ),
        (json!({"rootDeviceHints": {"deviceName": "sda"}}), device),
        (json!({"rootDeviceHints": {"deviceName": "/sda"}}), device),
        (json!({"rootDeviceHints": {"deviceName": "/dev/disk/by-id/1"}}), device),
        (json!({"rootDeviceHints": {"deviceName": "/dev/disk/by-path/a/b"}}), device),
        (image(&json!({"url": "", "checksum": "abc"})), "image.url must be the URL of an image"),
        (image(&json!({"url": "os.qcow2", "checksum": "abc"})), "image.url must be the URL of an image"),
        (image(&json!({"url": "http://192.0.2.1:x/", "checksum": "abc"})), "image.url must be the URL of an image"),
        (image(&json!({ "url": url })), "spec.image.checksum: Required value: image.checksum is needed, unless"),
        (image(&json!({"url": url, "checksum": "", "format": ""})), "image.checksum is needed"),
        (image(&json!({"url": url, "format": "raw"})), "image.checksum is needed"),
        (image(&json!({"checksum": "abc"})), "spec.image.url: Required value"),
        (image(&json!({"url": url, "checksum": "abc", "format": "iso"})), "Unsupported value: \"iso\""),
        (json!({"online": null}), "spec.online: Required value"),
        (json!({"inspectionMode": "fast"}), "Unsupported value: \"fast\""),
    ];
    for (spec, sentence) in table {
        let said = try_create("host", &spec).await.expect_err(&format!("{spec} was accepted"));
        assert!(said.contains(sentence), "for {spec} the API server says\n{said}\nand not\n{sentence}");
    }
}

#[tokio::test]
async fn names_that_are_uuids_are_refused() {
    for name in ["4c4c4544-0047-5010-8037-b2c04f4d4c32", "4c4c4544004750108037b2c04f4d4c32"] {
        let said = try_create(name, &json!({})).await.unwrap_err();
        assert!(said.contains("metadata.name must not be a UUID: choose a name such as server-01"), "{said}");
    }
    for name in ["4c4c4544-0047-5010-8037-b2c04f4d4c3", "n-4c4c4544-0047-5010-8037-b2c04f4d4c32", "server-01.example"] {
        try_create(name, &json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn what_upstream_accepts_is_accepted() {
    let volumes = json!([{"level": "1"}]);
    let mac = "52:54:00:12:34:56";
    let mut accepted = vec![
        json!({}),
        json!({"bmc": null}),
        json!({"bmc": {"address": "", "credentialsName": ""}}),
        json!({"online": false}),
        json!({"online": false, "disablePowerOff": false}),
        json!({"disablePowerOff": true}),
        json!({"inspectionMode": "disabled", "bootMACAddress": mac}),
        json!({"inspectionMode": "disabled", "bmc": null}),
        json!({"inspectionMode": "agent"}),
        json!({"bootMACAddress": "52:54:00:12:34:56:78:9A"}),
        json!({"bootMACAddress": vec!["ab"; 20].join(":")}),
        json!({"bootMACAddress": "x52:54:00:12:34:56", "bmc": null}),
        json!({"firmware": {"sriovEnabled": true}, "bmc": null}),
        json!({"bootMode": "UEFISecureBoot"}),
        json!({"bootMode": "UEFISecureBoot", "bmc": null}),
        json!({"bootMode": "legacy", "bmc": {"address": "ipmi://192.0.2.10"}}),
        json!({"raid": {}}),
        json!({"raid": {"hardwareRAIDVolumes": null, "softwareRAIDVolumes": null}}),
        json!({"raid": {"hardwareRAIDVolumes": [], "softwareRAIDVolumes": volumes}}),
        json!({"raid": {"hardwareRAIDVolumes": [], "softwareRAIDVolumes": []}, "bmc": {"address": "ipmi://192.0.2.10"}}),
        json!({"raid": {"softwareRAIDVolumes": volumes}, "bmc": {"address": "ipmi://192.0.2.10"}}),
        volume(&json!({"level": "5+0", "physicalDisks": []})),
        volume(&json!({"level": "1", "numberOfPhysicalDisks": 2})),
        volume(&json!({"level": "1", "controller": "c", "physicalDisks": ["a", "b"]})),
        volume(&json!({"level": "1", "controller": "c", "physicalDisks": ["a", "b"], "numberOfPhysicalDisks": 2})),
        json!({"userData": {"name": "data", "namespace": "elsewhere"}, "networkData": {}, "metaData": {"name": "m"}}),
        json!({"consumerRef": {}, "customDeploy": {"method": "install"}, "hardwareProfile": "no such profile"}),
        json!({"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "2026-08-20T10:00:00Z"}]}),
        json!({"description": "x".repeat(5000), "architecture": "riscv64", "preprovisioningNetworkDataName": "n"}),
    ];
    for scheme in ["redfish", "redfish-virtualmedia", "redfish-uefihttp"].into_iter().chain([
        "idrac-redfish",
        "idrac-virtualmedia",
        "ilo5-redfish",
        "ilo5-virtualmedia",
    ]) {
        for suffix in ["", "+http", "+https"] {
            for rest in
                ["://192.0.2.10", ":192.0.2.10", "://[2001:db8::10]:8443/redfish/v1/Systems/1", "://u:p@h/?a=b#c"]
            {
                accepted.push(with_mac(&format!("{scheme}{suffix}{rest}")));
            }
        }
    }
    for address in ["redfish-virtualmedia://bmc", "Redfish-VirtualMedia+HTTP://bmc", "idrac-virtualmedia:bmc"] {
        accepted.push(bmc(address));
    }
    for address in ["ipmi://192.0.2.10", "ipmi:192.0.2.10:6230", "192.0.2.10", "192.0.2.10:6230", "[2001:db8::10]:6230"]
    {
        accepted.push(bmc(address));
        accepted.push(with_mac(address));
    }
    accepted.extend([bmc("bmc-1.example.com"), bmc("0bmc:6230"), with_mac("LIBVIRT://192.0.2.10:6230/?abc=def")]);
    for name in ["", "/dev/sda", "/dev/nvme0n1", "/dev/disk/by-path/pci-0000:01:00.0-scsi-0:2:0:0", "/dev/"] {
        accepted.push(json!({"rootDeviceHints": {"deviceName": name, "minSizeGigabytes": 0}}));
    }
    accepted.extend(
        [
            json!({"url": "http://192.0.2.1/os.qcow2", "checksum": "97830b21ed272a3d854615beb54cf004"}),
            json!({"url": "http://192.0.2.1/os.raw", "checksum": "http://192.0.2.1/sums", "checksumType": "auto", "format": "raw"}),
            json!({"url": "http://192.0.2.1/os", "checksum": "abc", "format": ""}),
            json!({"url": "http://192.0.2.1/os.iso", "format": "live-iso"}),
            json!({"url": "oci://registry.example/os:v1", "ociAuthSecretName": "registry"}),
            json!({"url": "OCI://registry.example/os:v1"}),
            json!({"url": "oci://registry.example/os:v1", "checksum": "abc"}),
            json!({"url": "/os.qcow2", "checksum": "abc"}),
            json!({"url": "os:qcow2", "checksum": "abc"}),
            json!({"url": "gopher://192.0.2.1/os", "checksum": "abc", "checksumType": "md5", "format": "vmdk"}),
        ]
        .iter()
        .map(image),
    );
    for spec in accepted {
        try_create("host", &spec).await.unwrap_or_else(|said| panic!("{spec} was refused: {said}"));
    }
}

/// A stored host, and what becomes of changes to it.
struct Stored {
    hosts: kube::Api<kube::api::DynamicObject>,
}

impl Stored {
    async fn new(spec: &Value) -> Self {
        let cluster = cluster().await;
        let hosts = hosts(cluster, &cluster.namespace("metal3").await);
        hosts.create(&PostParams::default(), &host("host", spec)).await.unwrap();
        Self { hosts }
    }

    async fn change(&self, spec: Value) -> Result<(), String> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let changed = self.hosts.patch("host", &PatchParams::default(), &patch).await;
        changed.map(drop).map_err(|error| error.to_string())
    }

    async fn refuses(&self, spec: Value, sentence: &str) {
        let said = self.change(spec.clone()).await.expect_err(&format!("{spec} was accepted"));
        assert!(said.contains(sentence), "for {spec} the API server says\n{said}\nand not\n{sentence}");
    }

    /// Writes the status that a host has in such a state.
    async fn is(&self, state: &str, operational_status: &str) {
        let status = api::metal3::BareMetalHostStatus {
            operational_status: operational_status.to_owned(),
            provisioning: api::metal3::ProvisionStatus {
                state: state.to_owned(),
                ..api::metal3::ProvisionStatus::default()
            },
            ..api::metal3::BareMetalHostStatus::default()
        };
        let patch = json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "status": status});
        let params = PatchParams::apply("tests").force();
        self.hosts.patch_status("host", &params, &Patch::Apply(patch)).await.unwrap();
    }
}

#[tokio::test]
async fn the_address_changes_only_while_registering_or_detached() {
    let stored = Stored::new(&json!({})).await;
    let to = |number: u8| bmc(&format!("redfish-virtualmedia://192.0.2.{number}"));
    let sentence = "spec.bmc.address: Forbidden: bmc.address cannot change now";
    stored.refuses(to(11), sentence).await;
    for state in ["", "unmanaged", "inspecting", "preparing", "available", "provisioned", "deprovisioning"] {
        stored.is(state, "OK").await;
        stored.refuses(to(11), sentence).await;
        stored.refuses(json!({"bmc": null}), sentence).await;
    }
    stored.is("registering", "error").await;
    stored.change(to(12)).await.unwrap();
    stored.is("provisioned", "detached").await;
    stored.change(to(13)).await.unwrap();
    stored.is("provisioned", "OK").await;
    stored.change(json!({"bmc": {"credentialsName": "rotated"}})).await.expect("credentials may always be rotated");
    stored.change(json!({"bmc": {"disableCertificateVerification": true}})).await.unwrap();

    let without = Stored::new(&json!({"bmc": null})).await;
    without.is("unmanaged", "discovered").await;
    without.change(json!({"bmc": {"address": "ipmi://192.0.2.1", "credentialsName": "bmc"}})).await.unwrap();
}

#[tokio::test]
async fn the_mac_address_is_set_once() {
    let stored = Stored::new(&json!({})).await;
    stored.is("provisioned", "OK").await;
    stored.change(json!({"bootMACAddress": "52:54:00:AB:cd:ef"})).await.unwrap();
    stored.change(json!({"bootMACAddress": "52:54:00:ab:CD:ef"})).await.expect("it is the same address");
    let sentence = "spec.bootMACAddress: Forbidden: bootMACAddress cannot change once it is set";
    stored.refuses(json!({"bootMACAddress": "52:54:00:ab:cd:00"}), sentence).await;
    stored.refuses(json!({"bootMACAddress": null}), sentence).await;
    stored.is("registering", "OK").await;
    stored.refuses(json!({"bootMACAddress": null}), sentence).await;
}

#[tokio::test]
async fn externally_provisioned_is_set_when_available_and_kept() {
    let stored = Stored::new(&json!({})).await;
    let set = json!({"externallyProvisioned": true});
    let too_late = "externallyProvisioned can be set when a host is created, or while it is available";
    stored.refuses(set.clone(), too_late).await;
    for state in ["registering", "ready", "provisioned"] {
        stored.is(state, "OK").await;
        stored.refuses(set.clone(), too_late).await;
    }
    stored.is("available", "OK").await;
    stored.change(set).await.unwrap();
    stored.is("externally provisioned", "OK").await;
    for off in [json!(false), Value::Null] {
        let sentence = "spec.externallyProvisioned: Forbidden: externallyProvisioned cannot be taken back";
        stored.refuses(json!({ "externallyProvisioned": off }), sentence).await;
    }
    stored.change(json!({"online": false})).await.unwrap();
    Stored::new(&json!({"externallyProvisioned": true})).await;
}

#[tokio::test]
async fn what_is_left_out_gets_upstreams_defaults() {
    let stored = Stored::new(&json!({})).await;
    let patch = json!({"status": {"operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "provisioning": {"state": "", "ID": ""}}});
    let host = stored.hosts.patch_status("host", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    assert_eq!(host.data["spec"]["automatedCleaningMode"], "metadata");
    assert_eq!(host.data["status"]["errorCount"], 0);
}
