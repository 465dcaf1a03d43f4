//! PowerEdge with iDRAC9, firmware 6.x.

use std::time::Duration;

use super::{
    Answer, ApplyTime, BiosRules, BootRules, Drive, Etags, Expand, Identity, IfMatch, Login, MediaPlace, MediaRules,
    Messages, Personality, PowerRules, Query, Refusal, SameState, Shape, TaskRules, generic,
};

/// PowerEdge with iDRAC9 6.x: conflicts on a power state that is already so, ejects in its own time, loses its data
/// sources after a reset, and runs out of sessions at eight.
pub fn dell_idrac9() -> Personality {
    let base = generic();
    Personality {
        name: "dell-idrac9",
        identity: Identity {
            vendor: Some("Dell"),
            product: Some("Integrated Dell Remote Access Controller"),
            redfish: "1.13.1",
            oem: Some("Dell"),
            manufacturer: "Dell Inc.",
            models: &["PowerEdge R650", "PowerEdge R750", "PowerEdge R6525"],
            bmc_model: "15G Monolithic",
            bmc_firmware: "6.10.30.00",
            bios: "1.8.2",
            serial_prefix: "F",
            serial_in_sku: true,
        },
        shape: Shape {
            system: "System.Embedded.1",
            manager: "iDRAC.Embedded.1",
            chassis: "System.Embedded.1",
            cpu: "CPU.Socket.{}",
            dimm: "DIMM.Socket.A{}",
            nic: "NIC.Integrated.1-{}-1",
            drive: "Disk.Bay.{}:Enclosure.Internal.0-1",
            storage: "RAID.Integrated.1-1",
            boot_progress: false,
            ..base.shape
        },
        login: Login {
            limit: 8,
            limit_error: Refusal {
                status: 503,
                id: "IDRAC.2.7.RAC0218",
                text: "The maximum number of user sessions is reached.",
            },
            ..base.login
        },
        etags: Etags { in_body: false, if_match: IfMatch::Checked, ..base.etags },
        query: Query { expand: Some(Expand { max_levels: 1, links: true, collections_only: false }), ..base.query },
        power: PowerRules {
            allowable: &[
                "On",
                "ForceOff",
                "ForceRestart",
                "GracefulRestart",
                "GracefulShutdown",
                "PushPowerButton",
                "Nmi",
                "PowerCycle",
            ],
            same_state: SameState::Refused(Refusal {
                status: 409,
                id: "IDRAC.2.7.PSU501",
                text: "Unable to perform the operation because the server is already powered on or off as requested.",
            }),
            restart_starts: false,
            shows_transitions: false,
            blind: Some((
                Duration::from_secs(10),
                Refusal {
                    status: 503,
                    id: "IDRAC.2.7.SYS518",
                    text: "iDRAC is currently unable to display any information because data sources are unavailable.",
                },
            )),
            ..base.power
        },
        boot: BootRules {
            targets: &[
                "None",
                "Pxe",
                "Floppy",
                "Cd",
                "Hdd",
                "BiosSetup",
                "Utilities",
                "UefiTarget",
                "SDCard",
                "UefiHttp",
            ],
            http_uri: false,
            answer: Answer::Message,
            ..base.boot
        },
        bios: BiosRules { apply_time: ApplyTime::Required, mirrors: false },
        media: MediaRules {
            place: MediaPlace::System,
            drives: &[
                Drive { id: "1", types: &["CD", "DVD", "USBStick"] },
                Drive { id: "2", types: &["CD", "DVD", "USBStick"] },
            ],
            eject_lag: Duration::from_secs(4),
            occupied: Refusal {
                status: 500,
                id: "IDRAC.2.7.VRM0012",
                text: "The remote image operation cannot be done because another one is attached or in progress.",
            },
            already_empty: Some(Refusal {
                status: 500,
                id: "IDRAC.2.7.VRM0009",
                text: "Unable to detach the remote image because no image is attached.",
            }),
            ..base.media
        },
        tasks: TaskRules { prefix: "JID_", ..base.tasks },
        messages: Messages {
            base: "Base.1.12",
            code: Some("Base.1.12.GeneralError"),
            summary: "A general error has occurred. See ExtendedInfo for more information",
            single: false,
        },
    }
}
