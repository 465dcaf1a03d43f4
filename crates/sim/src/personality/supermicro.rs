//! Supermicro X13.

use std::time::Duration;

use super::{
    Answer, BootRules, Drive, Etags, Expand, Identity, IfMatch, Login, MediaPlace, MediaRules, Messages, ModeRule,
    Personality, PowerRules, Query, Shape, TaskRules, generic,
};

/// Supermicro X13: no vendor in the root, virtual media boots as `UsbCd`, and what a boot PATCH leaves out reverts.
pub fn supermicro_x13() -> Personality {
    let base = generic();
    Personality {
        name: "supermicro-x13",
        identity: Identity {
            vendor: None,
            product: None,
            redfish: "1.11.0",
            oem: Some("Supermicro"),
            manufacturer: "Supermicro",
            models: &["SYS-621C-TN12R", "SYS-821GE-TNHR"],
            bmc_model: "ASPEED",
            bmc_firmware: "01.03.18",
            bios: "1.4b",
            serial_prefix: "S",
            serial_in_sku: false,
        },
        shape: Shape {
            system: "1",
            manager: "1",
            chassis: "1",
            cpu: "{}",
            dimm: "{}",
            nic: "{}",
            drive: "Disk.Bay.{}",
            storage: "HA-RAID",
            bios_settings: "SD",
            boot_progress: false,
            ..base.shape
        },
        login: Login {
            timeout: Duration::from_mins(5),
            shown_timeout: 300,
            lockout: Some((3, Duration::from_secs(30))),
            ..base.login
        },
        etags: Etags { if_match: IfMatch::Checked, ..base.etags },
        query: Query { expand: Some(Expand { max_levels: 2, links: true, collections_only: false }), ..base.query },
        power: PowerRules {
            allowable: &[
                "On",
                "ForceOff",
                "GracefulShutdown",
                "GracefulRestart",
                "ForceRestart",
                "Nmi",
                "ForceOn",
                "PowerCycle",
            ],
            action_info: true,
            shows_transitions: false,
            ..base.power
        },
        boot: BootRules {
            targets: &["None", "Pxe", "Floppy", "Cd", "Usb", "Hdd", "BiosSetup", "UsbCd", "UefiBootNext", "UefiHttp"],
            media_target: "UsbCd",
            mode: ModeRule::Writable,
            http_uri: false,
            forgets_what_is_not_sent: true,
            answer: Answer::Message,
            ..base.boot
        },
        bios: base.bios,
        media: MediaRules {
            place: MediaPlace::ManagerLinkedFromSystem,
            drives: &[Drive { id: "VirtualMedia1", types: &["CD", "DVD"] }],
            eject_only_when_inserted: true,
            name_stays: true,
            refused_parameters: &["Inserted", "WriteProtected"],
            schemes: &["http", "https", "smb"],
            refuses_queries: true,
            ..base.media
        },
        tasks: TaskRules { media: Some(Duration::from_secs(3)), prefix: "", hidden_in_message: true, ..base.tasks },
        messages: Messages { base: "Base.1.12", code: Some("Base.v1_12_0.GeneralError"), ..base.messages },
    }
}
