//! ThinkSystem with XCC.

use std::time::Duration;

use super::{
    Answer, ApplyTime, BiosRules, BootRules, Drive, Etags, Expand, Identity, IfMatch, Login, MediaPlace, MediaRules,
    Messages, Monitor, Personality, PowerRules, Query, SameState, Shape, TaskRules, generic,
};

/// ThinkSystem with XCC: virtual media without actions (PATCH), a boot override once or not at all.
pub fn lenovo_xcc() -> Personality {
    let base = generic();
    Personality {
        name: "lenovo-xcc",
        identity: Identity {
            vendor: Some("Lenovo"),
            product: None,
            redfish: "1.15.0",
            oem: Some("Lenovo"),
            manufacturer: "Lenovo",
            models: &["ThinkSystem SR650 V2", "ThinkSystem SR670 V2"],
            bmc_model: "Lenovo XClarity Controller",
            bmc_firmware: "AFBT36N 3.90",
            bios: "AFE126K 1.80",
            serial_prefix: "J",
            serial_in_sku: false,
        },
        shape: Shape {
            system: "1",
            manager: "1",
            chassis: "1",
            cpu: "{}",
            dimm: "{}",
            nic: "NIC{}",
            drive: "Disk.{}",
            storage: "RAID_Slot1",
            bios_settings: "Pending",
            boot_progress: false,
            ..base.shape
        },
        login: Login { timeout: Duration::from_mins(5), shown_timeout: 300, ..base.login },
        etags: Etags { if_match: IfMatch::Checked, ..base.etags },
        query: Query { expand: Some(Expand { max_levels: 2, links: true, collections_only: false }), ..base.query },
        power: PowerRules {
            allowable: &["On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart"],
            same_state: SameState::Accepted,
            shows_transitions: false,
            ..base.power
        },
        boot: BootRules {
            targets: &["None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "Diags", "UefiTarget"],
            enabled: &["Once", "Disabled"],
            http_uri: false,
            answer: Answer::Resource,
            ..base.boot
        },
        bios: BiosRules { apply_time: ApplyTime::Refused, mirrors: true },
        media: MediaRules {
            place: MediaPlace::Manager,
            drives: &[
                Drive { id: "EXT1", types: &["CD", "DVD", "USBStick"] },
                Drive { id: "EXT2", types: &["CD", "DVD", "USBStick"] },
                Drive { id: "RDOC1", types: &["CD", "DVD", "USBStick"] },
            ],
            actions: false,
            must_insert: true,
            schemes: &["http", "https", "nfs", "cifs", "smb"],
            ..base.media
        },
        tasks: TaskRules { monitor: Monitor::DeletesTask, prefix: "", ..base.tasks },
        messages: Messages { base: "Base.1.12", code: Some("Base.1.12.GeneralError"), ..base.messages },
    }
}
