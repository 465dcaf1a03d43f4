//! OpenBMC as upstream builds it (bmcweb).

use std::time::Duration;

use super::{
    Answer, BootRules, Drive, Etags, Identity, IfMatch, MediaPlace, MediaRules, Messages, Monitor, Personality,
    PowerRules, Query, Refusal, Shape, TaskRules, generic,
};

/// Upstream OpenBMC: no `$expand`, images by https only, a task's monitor that answers once.
pub fn openbmc() -> Personality {
    let base = generic();
    Personality {
        name: "openbmc",
        identity: Identity {
            vendor: None,
            product: None,
            redfish: "1.17.0",
            oem: None,
            manufacturer: "OpenBMC Project",
            models: &["Reference"],
            bmc_model: "OpenBmc",
            bmc_firmware: "2.15.0-dev",
            bios: "edk2-stable",
            serial_prefix: "OB",
            serial_in_sku: false,
        },
        shape: Shape {
            system: "system",
            manager: "bmc",
            chassis: "chassis",
            cpu: "cpu{}",
            dimm: "dimm{}",
            nic: "eth{}",
            drive: "drive{}",
            storage: "1",
            simple_storage: false,
            ..base.shape
        },
        etags: Etags { in_body: false, if_match: IfMatch::Ignored, ..base.etags },
        query: Query { expand: None, only: true, page_size: None },
        power: PowerRules {
            allowable: &[
                "ForceOff",
                "PowerCycle",
                "Nmi",
                "GracefulShutdown",
                "On",
                "ForceOn",
                "GracefulRestart",
                "ForceRestart",
            ],
            action_info: true,
            ..base.power
        },
        boot: BootRules {
            targets: &["None", "Pxe", "Hdd", "Cd", "Diags", "BiosSetup", "Usb"],
            http_uri: false,
            answer: Answer::NoContent,
            ..base.boot
        },
        media: MediaRules {
            place: MediaPlace::Manager,
            drives: &[Drive { id: "Slot_0", types: &["CD", "USBStick"] }, Drive { id: "Slot_1", types: &["USBStick"] }],
            must_insert: true,
            schemes: &["https", "smb"],
            occupied: Refusal {
                status: 409,
                id: "ResourceInUse",
                text: "The change to the requested resource failed because the resource is in use or in transition.",
            },
            ..base.media
        },
        tasks: TaskRules { media: Some(Duration::from_secs(5)), monitor: Monitor::Once, prefix: "", ..base.tasks },
        messages: Messages { base: "Base.1.13", code: Some("Base.1.13.GeneralError"), ..base.messages },
        ..base
    }
}
