//! BareMetalHost and HardwareData as Rust types: written as Go writes them, and read whatever they say.

use api::metal3::{BareMetalHost, BareMetalHostSpec, BareMetalHostStatus, HardwareData, HardwareDetails, RaidConfig};
use serde_json::{Value, json};

#[test]
fn an_empty_status_has_what_go_never_leaves_out() {
    let never = json!({"start": null, "end": null});
    let expected = json!({
        "operationalStatus": "",
        "provisioning": {"state": "", "ID": "", "image": {"url": ""}},
        "goodCredentials": {},
        "triedCredentials": {},
        "errorMessage": "",
        "poweredOn": false,
        "operationHistory": {"register": never, "inspect": never, "provision": never, "deprovision": never},
        "errorCount": 0,
    });
    assert_eq!(serde_json::to_value(BareMetalHostStatus::default()).unwrap(), expected);
    assert_eq!(serde_json::from_value::<BareMetalHostStatus>(json!({})).unwrap(), BareMetalHostStatus::default());
}

#[test]
fn the_status_of_go_is_kept() {
    let status = json!({
        "operationalStatus": "OK",
        "lastUpdated": "2026-08-20T10:00:00Z",
        "hardwareProfile": "unknown",
        "hardware": {
            "systemVendor": {"manufacturer": "QEMU", "productName": "Standard PC"},
            "firmware": {"bios": {"date": "04/01/2014"}},
            "ramMebibytes": 8192,
            "nics": [{"name": "eth0", "mac": "52:54:00:12:34:56", "ip": "192.0.2.5", "pxe": true}],
            "storage": [{"name": "/dev/sda", "rotational": true, "type": "HDD", "sizeBytes": 53_687_091_200_i64}],
            "cpu": {"arch": "x86_64", "clockMegahertz": 2095.078, "flags": ["aes"], "count": 4},
            "hostname": "node-0",
        },
        "provisioning": {
            "state": "provisioned",
            "ID": "8a0e6a4e-0b5a-4c0e-9f0a-3b1f6c2d9e11",
            "image": {"url": "http://192.0.2.1/os.qcow2", "checksum": "http://192.0.2.1/os.sha256", "format": "qcow2"},
            "rootDeviceHints": {"deviceName": "/dev/sda"},
            "bootMode": "UEFI",
            "raid": {"hardwareRAIDVolumes": null, "softwareRAIDVolumes": []},
        },
        "goodCredentials": {"credentials": {"name": "bmc", "namespace": "metal3"}, "credentialsVersion": "1234"},
        "triedCredentials": {"credentials": {"name": "bmc", "namespace": "metal3"}, "credentialsVersion": "1234"},
        "errorMessage": "",
        "poweredOn": true,
        "operationHistory": {
            "register": {"start": "2026-08-20T09:00:00Z", "end": "2026-08-20T09:00:30Z"},
            "inspect": {"start": "2026-08-20T09:00:30Z", "end": "2026-08-20T09:10:00Z"},
            "provision": {"start": "2026-08-20T09:20:00Z", "end": null},
            "deprovision": {"start": null, "end": null},
        },
        "errorCount": 0,
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2026-08-20T10:00:00Z",
            "reason": "Provisioned",
            "message": "",
        }],
    });
    let typed: BareMetalHostStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), status);
    // Go's order too, for the annotation.
    let text = serde_json::to_string(&typed).unwrap();
    let places =
        ["operationalStatus", "hardwareProfile", "goodCredentials", "errorMessage", "errorCount", "conditions"]
            .map(|field| text.find(field).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn no_value_makes_an_object_unreadable() {
    let odd = json!({
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": "odd"},
        "spec": {
            "online": true,
            "bootMode": "coreboot",
            "inspectionMode": "fast",
            "automatedCleaningMode": "full",
            "image": {"url": "", "checksumType": "crc32", "format": ""},
            "bmc": {"address": "redfish://192.0.2.1"},
            "taints": [{"key": "a", "effect": "NoFit", "timeAdded": "2026-08-20T10:00"}],
            "networkInterfaces": [{"name": "eth0"}],
        },
        "status": {
            "operationalStatus": "resting",
            "errorType": "detach error",
            "lastUpdated": "2026-08-20T10:00",
            "provisioningFailCount": 3,
            "provisioning": {"state": "rebuilding", "bootMode": "x", "extra": {}},
            "hardware": {"cpu": {"clockMegahertz": 3000}, "storage": [{"type": "TAPE"}]},
            "operationHistory": {"register": {"start": "yesterday"}},
            "conditions": [{"type": "Ready", "status": "Maybe", "lastTransitionTime": "2026-08-20"}, {}],
        },
    });
    let host: BareMetalHost = serde_json::from_value(odd).unwrap();
    let status = host.status.unwrap();
    assert_eq!(status.operational_status, "resting");
    assert_eq!((status.last_updated, status.operation_history.register.start), (None, None));
    assert_eq!(status.conditions.len(), 2);
}

#[test]
fn objects_without_a_spec_are_read_as_empty() {
    let bare = |kind: &str| json!({"apiVersion": "metal3.io/v1alpha1", "kind": kind, "metadata": {"name": "bare"}});
    let host: BareMetalHost = serde_json::from_value(bare("BareMetalHost")).unwrap();
    assert_eq!((host.spec, host.status), (BareMetalHostSpec::default(), None));
    let data: HardwareData = serde_json::from_value(bare("HardwareData")).unwrap();
    assert_eq!(data.spec.hardware, None);
    let spec = BareMetalHostSpec { online: true, ..BareMetalHostSpec::default() };
    assert_eq!(serde_json::to_value(BareMetalHost::new("on", spec)).unwrap()["spec"], json!({"online": true}));
}

#[test]
fn empty_hardware_and_raid_are_written_as_go_writes_them() {
    assert_eq!(
        serde_json::to_value(HardwareDetails::default()).unwrap(),
        json!({"systemVendor": {}, "firmware": {"bios": {}}, "cpu": {}})
    );
    assert_eq!(
        serde_json::to_value(RaidConfig::default()).unwrap(),
        json!({"hardwareRAIDVolumes": null, "softwareRAIDVolumes": null})
    );
    let speeds = [(3000.0, json!(3000)), (2095.078, json!(2095.078))];
    for (megahertz, written) in speeds {
        let mut details = HardwareDetails::default();
        details.cpu.clock_megahertz = megahertz;
        assert_eq!(serde_json::to_value(details).unwrap()["cpu"], json!({"clockMegahertz": written}));
    }
    assert_eq!(serde_json::to_value(HardwareDetails::default()).unwrap()["nics"], Value::Null);
}
