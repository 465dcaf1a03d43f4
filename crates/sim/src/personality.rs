//! How one vendor's BMC differs from another's, as data.
//!
//! The flow of the simulator knows no vendor: every difference is a switch or a text in here, so that a test can take a
//! personality, turn one switch and see what a client makes of it.

#![expect(clippy::struct_excessive_bools, reason = "a personality is a set of switches")]

mod dell;
mod generic;
mod hpe;
mod lenovo;
mod openbmc;
mod supermicro;

use std::time::Duration;

/// Everything that makes a BMC look and behave like one of its vendor.
#[derive(Clone, Debug)]
pub struct Personality {
    /// The name by which it is asked for, such as `dell-idrac9`.
    pub name: &'static str,
    /// What it says about itself.
    pub identity: Identity,
    /// Ids and places of its resources.
    pub shape: Shape,
    /// Sessions and accounts.
    pub login: Login,
    /// ETags.
    pub etags: Etags,
    /// Query parameters.
    pub query: Query,
    /// `#ComputerSystem.Reset`.
    pub power: PowerRules,
    /// The boot override.
    pub boot: BootRules,
    /// BIOS attributes.
    pub bios: BiosRules,
    /// Virtual media.
    pub media: MediaRules,
    /// Tasks.
    pub tasks: TaskRules,
    /// Error bodies.
    pub messages: Messages,
}

/// What a BMC says about itself and its server.
#[derive(Clone, Debug)]
pub struct Identity {
    /// `ServiceRoot.Vendor`.
    pub vendor: Option<&'static str>,
    /// `ServiceRoot.Product`.
    pub product: Option<&'static str>,
    /// `ServiceRoot.RedfishVersion`.
    pub redfish: &'static str,
    /// The key under `Oem`.
    pub oem: Option<&'static str>,
    /// `ComputerSystem.Manufacturer`.
    pub manufacturer: &'static str,
    /// `ComputerSystem.Model`; a fleet has some of each.
    pub models: &'static [&'static str],
    /// `Manager.Model`.
    pub bmc_model: &'static str,
    /// `Manager.FirmwareVersion`.
    pub bmc_firmware: &'static str,
    /// `ComputerSystem.BiosVersion`.
    pub bios: &'static str,
    /// What serial numbers begin with.
    pub serial_prefix: &'static str,
    /// `SKU` is what the label says and `SerialNumber` is the board's.
    pub serial_in_sku: bool,
}

/// How storage is cut into `Storage` resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageShape {
    /// One controller with all drives.
    OneController,
    /// One `Storage` for each drive.
    PerDrive,
}

/// Ids and places of resources. In ids, `{}` stands for a number that counts from 1.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Id of the first ComputerSystem.
    pub system: &'static str,
    /// Id of the Manager.
    pub manager: &'static str,
    /// Id of the Chassis.
    pub chassis: &'static str,
    /// Ids of processors.
    pub cpu: &'static str,
    /// Ids of memory modules.
    pub dimm: &'static str,
    /// Ids of network interfaces.
    pub nic: &'static str,
    /// Ids of drives.
    pub drive: &'static str,
    /// Id of the storage controller, or of each with `{}`.
    pub storage: &'static str,
    /// How drives are distributed.
    pub storage_shape: StorageShape,
    /// Whether there is a `SimpleStorage` too.
    pub simple_storage: bool,
    /// Last part of the BIOS settings' URI.
    pub bios_settings: &'static str,
    /// Links end in a slash.
    pub trailing_slash: bool,
    /// Links to the BIOS are in lower case, and the case of a URI does not matter.
    pub lower_case_bios: bool,
    /// Last part of the system's settings object, to which boot overrides must be written.
    pub system_settings: Option<&'static str>,
    /// HPE's `Oem.Hpe.PostState`.
    pub post_state: bool,
    /// `BootProgress` in the system.
    pub boot_progress: bool,
    /// Link state and speed are unknown, names are empty.
    pub bare_nics: bool,
    /// The system has no link to its network interfaces.
    pub no_nics: bool,
}

/// Sessions and accounts.
#[derive(Clone, Debug)]
pub struct Login {
    /// How many sessions may be open.
    pub limit: usize,
    /// What it answers to one more.
    pub limit_error: Refusal,
    /// How long a session lives without a request.
    pub timeout: Duration,
    /// `SessionService.SessionTimeout` as it is shown; iLO shows minutes.
    pub shown_timeout: u64,
    /// HTTP Basic is accepted.
    pub basic: bool,
    /// Failed logins in a row that lock the account, and for how long.
    pub lockout: Option<(u32, Duration)>,
    /// A connection that was idle for this long is reset when it is used again, which only sockets can show.
    pub forgets_connections: Option<Duration>,
}

/// What is done with `If-Match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMatch {
    /// Not looked at.
    Ignored,
    /// 412 when it does not match.
    Checked,
    /// As RFC 9110 has it: a weak one never matches.
    CheckedStrong,
    /// 428 without it.
    Required,
}

/// ETags.
#[derive(Clone, Debug)]
pub struct Etags {
    /// They are sent at all.
    pub sent: bool,
    /// They are weak.
    pub weak: bool,
    /// Resources carry `@odata.etag`.
    pub in_body: bool,
    /// On PATCH and DELETE.
    pub if_match: IfMatch,
    /// An action with `If-Match` gets 412.
    pub refused_on_actions: bool,
}

/// `ExpandQuery` as announced.
#[derive(Clone, Copy, Debug)]
pub struct Expand {
    /// `MaxLevels`.
    pub max_levels: u8,
    /// `~` and `*` work, not only `.`.
    pub links: bool,
    /// It works on collections only; elsewhere the parameter is ignored.
    pub collections_only: bool,
}

/// Query parameters.
#[derive(Clone, Debug)]
pub struct Query {
    /// `$expand`, if announced.
    pub expand: Option<Expand>,
    /// `only`.
    pub only: bool,
    /// Members of a collection before `Members@odata.nextLink` begins.
    pub page_size: Option<usize>,
}

/// What happens when power is already as asked for.
#[derive(Clone, Copy, Debug)]
pub enum SameState {
    /// 2xx, and nothing happens.
    Accepted,
    /// Refused so.
    Refused(Refusal),
}

/// `#ComputerSystem.Reset`.
#[derive(Clone, Debug)]
pub struct PowerRules {
    /// Allowable `ResetType`s.
    pub allowable: &'static [&'static str],
    /// They are found in an ActionInfo resource, not inline.
    pub action_info: bool,
    /// On when on, off when off.
    pub same_state: SameState,
    /// A restart of a server that is off powers it on; else it is refused like [`PowerRules::same_state`].
    pub restart_starts: bool,
    /// `PoweringOn` and `PoweringOff` are shown.
    pub shows_transitions: bool,
    /// For this long after a power command the next one is refused.
    pub busy: Option<(Duration, Refusal)>,
    /// For this long after power went off, `On` is refused with 409.
    pub rest_after_off: Option<Duration>,
    /// For this long after a power command, inventory is refused.
    pub blind: Option<(Duration, Refusal)>,
    /// How long the BMC is away after `#Manager.Reset`.
    pub bmc_restart: Duration,
    /// Answer to an action that worked, also of virtual media.
    pub answer: Answer,
}

/// What is done with `BootSourceOverrideMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeRule {
    /// There is no such property.
    Absent,
    /// Shown, not writable.
    ReadOnly,
    /// Writable.
    Writable,
}

/// The boot override.
#[derive(Clone, Debug)]
pub struct BootRules {
    /// Allowable targets.
    pub targets: &'static [&'static str],
    /// The target that boots virtual media.
    pub media_target: &'static str,
    /// Allowable values of `BootSourceOverrideEnabled`.
    pub enabled: &'static [&'static str],
    /// `Once` is taken and kept as `Continuous`.
    pub once_is_continuous: bool,
    /// `BootSourceOverrideMode`.
    pub mode: ModeRule,
    /// `HttpBootUri` exists.
    pub http_uri: bool,
    /// A PATCH without `Enabled` makes it Once, and one without `Mode` makes it Legacy.
    pub forgets_what_is_not_sent: bool,
    /// A PATCH without target, enabled and mode is refused.
    pub needs_all: bool,
    /// `Enabled` is refused while the target is None.
    pub enabled_needs_target: bool,
    /// During POST a PATCH is refused with this.
    pub refused_in_post: Option<Refusal>,
    /// Answer to a PATCH that worked.
    pub answer: Answer,
}

/// Answer to a request that worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 204.
    NoContent,
    /// 200 with `@Message.ExtendedInfo`.
    Message,
    /// 200 with the resource; 204 to an action.
    Resource,
}

/// What is done with `@Redfish.SettingsApplyTime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyTime {
    /// Nothing: changes apply at the next boot.
    Ignored,
    /// Without it changes are stored and never applied; with it there is a task until the next boot.
    Required,
    /// It is an unknown property.
    Refused,
}

/// BIOS attributes.
#[derive(Clone, Debug)]
pub struct BiosRules {
    /// When changes apply.
    pub apply_time: ApplyTime,
    /// The settings show all attributes, not only those that wait.
    pub mirrors: bool,
}

/// Where virtual media are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaPlace {
    /// Under the system.
    System,
    /// Under the manager.
    Manager,
    /// Under the manager, and the system links there.
    ManagerLinkedFromSystem,
}

/// One virtual drive.
#[derive(Clone, Copy, Debug)]
pub struct Drive {
    /// Its id.
    pub id: &'static str,
    /// `MediaTypes`.
    pub types: &'static [&'static str],
}

/// Virtual media.
#[derive(Clone, Debug)]
pub struct MediaRules {
    /// Where they are.
    pub place: MediaPlace,
    /// The drives.
    pub drives: &'static [Drive],
    /// InsertMedia and EjectMedia exist; else the resource is PATCHed.
    pub actions: bool,
    /// EjectMedia exists only while something is inserted.
    pub eject_only_when_inserted: bool,
    /// EjectMedia without a body is refused.
    pub eject_needs_body: bool,
    /// After an eject the old state is shown for this long, and an insertion fails.
    pub eject_lag: Duration,
    /// `ImageName` stays after an eject.
    pub name_stays: bool,
    /// An empty drive shows `""` and not null.
    pub empty_image: bool,
    /// Parameters of InsertMedia that are refused.
    pub refused_parameters: &'static [&'static str],
    /// Parameters of InsertMedia without which it is refused.
    pub required_parameters: &'static [&'static str],
    /// `Inserted: false` is refused.
    pub must_insert: bool,
    /// Schemes of image URLs.
    pub schemes: &'static [&'static str],
    /// InsertMedia lists the protocols that go with them.
    pub lists_protocols: bool,
    /// URLs with `?`, `&` or `=` are refused.
    pub refuses_queries: bool,
    /// What an insertion into a full drive gets.
    pub occupied: Refusal,
    /// What an eject of an empty drive gets; `None` is success.
    pub already_empty: Option<Refusal>,
}

/// What becomes of the monitor of a task that has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Monitor {
    /// It answers 200 with the task.
    Stays,
    /// It answers 204 once, and 404 from then on.
    Once,
    /// Reading it deletes the task too.
    DeletesTask,
}

/// Tasks.
#[derive(Clone, Debug)]
pub struct TaskRules {
    /// InsertMedia and EjectMedia answer 202 and take this long.
    pub media: Option<Duration>,
    /// Reset answers 202, and its task takes this long.
    pub power: Option<Duration>,
    /// What the monitor does at the end.
    pub monitor: Monitor,
    /// What task ids begin with.
    pub prefix: &'static str,
    /// The 202 body is no Task: its URI is hidden in the arguments of a message.
    pub hidden_in_message: bool,
    /// Finished tasks are forgotten after this.
    pub kept: Duration,
}

/// A refusal with its own status and message.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Message id: with its registry, or a bare name of the Base registry.
    pub id: &'static str,
    /// The text.
    pub text: &'static str,
}

/// Error bodies.
#[derive(Clone, Debug)]
pub struct Messages {
    /// Registry prefix with version, such as `Base.1.12`.
    pub base: &'static str,
    /// `error.code`; `None` leaves it out.
    pub code: Option<&'static str>,
    /// `error.message`.
    pub summary: &'static str,
    /// `@Message.ExtendedInfo` is one object and not an array.
    pub single: bool,
}

impl Personality {
    /// All that are built in.
    pub fn all() -> Vec<Self> {
        vec![generic(), dell_idrac9(), hpe_ilo5(), openbmc(), supermicro_x13(), lenovo_xcc()]
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|p| p.name == name)
    }
}

pub use dell::dell_idrac9;
pub use generic::generic;
pub use hpe::hpe_ilo5;
pub use lenovo::lenovo_xcc;
pub use openbmc::openbmc;
pub use supermicro::supermicro_x13;
