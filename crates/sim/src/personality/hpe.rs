//! ProLiant Gen10 with iLO 5.

use std::time::Duration;

use super::{
    Answer, ApplyTime, BiosRules, BootRules, Drive, Etags, Expand, Identity, Login, MediaPlace, MediaRules, Messages,
    ModeRule, Personality, PowerRules, Query, Refusal, SameState, Shape, StorageShape, generic,
};

/// ProLiant Gen10 with iLO 5: weak ETags, refusals during POST and right after a power change, one `Storage` for each
/// drive, links in lower case or with a slash at the end.
pub fn hpe_ilo5() -> Personality {
    let base = generic();
    Personality {
        name: "hpe-ilo5",
        identity: Identity {
            vendor: Some("HPE"),
            product: Some("ProLiant DL385 Gen10 Plus v2"),
            redfish: "1.6.0",
            oem: Some("Hpe"),
            manufacturer: "HPE",
            models: &["ProLiant DL385 Gen10 Plus v2", "ProLiant DL360 Gen10"],
            bmc_model: "iLO 5",
            bmc_firmware: "iLO 5 v2.72",
            bios: "A42 v2.60 (08/11/2022)",
            serial_prefix: "MXQ",
            serial_in_sku: false,
        },
        shape: Shape {
            system: "1",
            manager: "1",
            chassis: "1",
            cpu: "{}",
            dimm: "proc1dimm{}",
            nic: "{}",
            drive: "{}",
            storage: "DE00A{}00",
            storage_shape: StorageShape::PerDrive,
            bios_settings: "settings",
            trailing_slash: true,
            lower_case_bios: true,
            post_state: true,
            boot_progress: false,
            bare_nics: true,
            ..base.shape
        },
        login: Login {
            limit: 13,
            limit_error: Refusal { id: "SessionLimitExceeded", ..base.login.limit_error },
            shown_timeout: 30,
            forgets_connections: Some(Duration::from_secs(30)),
            ..base.login
        },
        etags: Etags { weak: true, ..base.etags },
        query: Query { expand: Some(Expand { max_levels: 1, links: false, collections_only: true }), ..base.query },
        power: PowerRules {
            allowable: &[
                "On",
                "ForceOff",
                "GracefulShutdown",
                "ForceRestart",
                "Nmi",
                "PushPowerButton",
                "GracefulRestart",
            ],
            same_state: SameState::Refused(WRONG_STATE),
            restart_starts: false,
            shows_transitions: false,
            busy: Some((Duration::from_secs(3), WRONG_STATE)),
            answer: Answer::Message,
            ..base.power
        },
        boot: BootRules {
            targets: &[
                "None",
                "Cd",
                "Hdd",
                "Usb",
                "SDCard",
                "Utilities",
                "Diags",
                "BiosSetup",
                "Pxe",
                "UefiShell",
                "UefiHttp",
                "UefiTarget",
            ],
            mode: ModeRule::ReadOnly,
            http_uri: false,
            enabled_needs_target: true,
            refused_in_post: Some(Refusal {
                status: 400,
                id: "iLO.2.14.UnableToModifyDuringSystemPOST",
                text: "The value of the property cannot be changed while the computer system BIOS is in POST.",
            }),
            answer: Answer::Message,
            ..base.boot
        },
        bios: BiosRules { apply_time: ApplyTime::Ignored, mirrors: true },
        media: MediaRules {
            place: MediaPlace::Manager,
            drives: &[Drive { id: "1", types: &["Floppy", "USBStick"] }, Drive { id: "2", types: &["CD", "DVD"] }],
            eject_needs_body: true,
            empty_image: true,
            schemes: &["http", "https"],
            occupied: Refusal {
                status: 400,
                id: "iLO.2.14.MaxVirtualMediaConnectionEstablished",
                text: "No more Virtual Media connections are available, because the maximum number of connections are \
                       already established.",
            },
            already_empty: Some(Refusal {
                status: 400,
                id: "iLO.2.14.NoVirtualMediaConnectionAvailable",
                text: "No Virtual Media connections exist.",
            }),
            ..base.media
        },
        messages: Messages {
            base: "Base.1.4",
            code: Some("iLO.0.10.ExtendedInfo"),
            summary: "See @Message.ExtendedInfo for more information.",
            single: false,
        },
        ..base
    }
}

const WRONG_STATE: Refusal = Refusal {
    status: 400,
    id: "iLO.2.14.InvalidOperationForSystemState",
    text: "The operation was not successful due to the current power state (for example, attempting to turn the power \
           off when it is already off).",
};
