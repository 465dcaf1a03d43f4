//! What a step reports, as values. Timers and comparisons use these. [`super::words`] turns them into sentences, with the
//! dialect's names for its fields.

use serde::{Deserialize, Serialize};

use super::{Author, Cause, Consumer, Phase, Since, recipe::Sign, step::Act};
use crate::{
    failure::{Failure, Kind},
    server::{BootProgress, BootTarget, PowerState},
};

/// What a host waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waiting {
    /// Contact with the BMC.
    Registering,
    /// The end of whatever runs on a server that is to be registered.
    ServerOff,
    /// Somebody who wipes the disks of a released server.
    Wiping,
    /// The inventory.
    Inspecting,
    /// A look at the server before it is prepared.
    Preparing,
    /// The BMC to show that the boot is prepared.
    PreparingBoot,
    /// A look at the boot.
    LookingAtBoot,
    /// A look at the power, before it is changed.
    LookingAtPower,
    /// The server to use its boot override.
    Booting,
    /// The server to fetch what it is to boot from the network.
    Fetching,
    /// The BMC to show that the override was used, although a system has started.
    BootOverrideUnused,
    /// A probe to report.
    Probing,
    /// Time for a boot that the BMC reports nothing about.
    SettlingBoot,
    /// The BMC to clear the boot override.
    DisarmingBoot,
    /// Empty drives and no boot override.
    CleaningUp,
    /// Power on.
    PoweringOn,
    /// Power off.
    PoweringOff,
    /// The operating system to shut down.
    ShuttingDown,
    /// The restart that was asked for.
    Restarting,
    /// The BMC to report a stable power state.
    PowerUnsettled,
    /// The BMC to finish the last virtual media action.
    MediaUnsettled,
    /// An order.
    Order,
    /// Another party, which must be ready before the server is booted.
    BootPermission {
        /// Who.
        keeper: String,
    },
    /// The fleet brake.
    FleetBrake {
        /// Its answer; `None` before it was asked. Earlier versions stored a sentence as `why`, which is not read.
        limit: Option<BrakeLimit>,
    },
    /// Whether the claimer exists is being looked up.
    CheckingClaimer {
        /// Who it is.
        consumer: Consumer,
        /// Why it is unknown whether it exists, if so.
        unknown: Option<String>,
    },
    /// Whether the recorded consumer exists is being looked up, because its claim is gone from the object.
    CheckingConsumer {
        /// Who it is.
        consumer: Consumer,
        /// What became of its claim.
        change: ClaimChange,
    },
    /// The claimer does not exist; its claim is removed later.
    ConsumerGone {
        /// Who it would be.
        consumer: Consumer,
    },
    /// The claimer is being deleted and must release the host.
    ConsumerLeaving {
        /// Who it is.
        consumer: Consumer,
    },
    /// The end of a claim on a host that is to be deleted.
    Release {
        /// Who claims; `None` if the host orders for itself.
        consumer: Option<Consumer>,
        /// Who wrote the claim.
        author: Author,
    },
    /// The next try at what failed; the fault says what that is.
    NextTry(Kind),
}

impl Waiting {
    /// Every name but those of faults.
    pub const NAMES: [&str; 27] = [
        "Registering",
        "WaitingForServerOff",
        "WaitingForWipe",
        "Inspecting",
        "Preparing",
        "PreparingBoot",
        "LookingAtBoot",
        "LookingAtPower",
        "Booting",
        "FetchingBoot",
        "BootOverrideUnused",
        "Probing",
        "SettlingBoot",
        "DisarmingBoot",
        "CleaningUp",
        "PoweringOn",
        "PoweringOff",
        "ShuttingDown",
        "Restarting",
        "PowerUnsettled",
        "MediaUnsettled",
        "WaitingForBootInfo",
        "WaitingForBootPermission",
        "FleetBrake",
        "CheckingConsumer",
        "ConsumerGone",
        "WaitingForConsumerRelease",
    ];

    /// Names of waits for somebody else: a person, a consumer, the fleet brake. Nothing but a reminder comes at their deadline.
    pub const FOR_OTHERS: [&str; 7] = [
        "WaitingForServerOff",
        "WaitingForWipe",
        "WaitingForBootInfo",
        "WaitingForBootPermission",
        "FleetBrake",
        "CheckingConsumer",
        "WaitingForConsumerRelease",
    ];

    /// Its stable name, which users see. The time of a wait is counted per name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Registering => "Registering",
            Self::ServerOff => "WaitingForServerOff",
            Self::Wiping => "WaitingForWipe",
            Self::Inspecting => "Inspecting",
            Self::Preparing => "Preparing",
            Self::PreparingBoot => "PreparingBoot",
            Self::LookingAtBoot => "LookingAtBoot",
            Self::LookingAtPower => "LookingAtPower",
            Self::Booting => "Booting",
            Self::Fetching => "FetchingBoot",
            Self::BootOverrideUnused => "BootOverrideUnused",
            Self::Probing => "Probing",
            Self::SettlingBoot => "SettlingBoot",
            Self::DisarmingBoot => "DisarmingBoot",
            Self::CleaningUp => "CleaningUp",
            Self::PoweringOn => "PoweringOn",
            Self::PoweringOff => "PoweringOff",
            Self::ShuttingDown => "ShuttingDown",
            Self::Restarting => "Restarting",
            Self::PowerUnsettled => "PowerUnsettled",
            Self::MediaUnsettled => "MediaUnsettled",
            Self::Order => "WaitingForBootInfo",
            Self::BootPermission { .. } => "WaitingForBootPermission",
            Self::FleetBrake { .. } => "FleetBrake",
            Self::CheckingClaimer { .. } | Self::CheckingConsumer { .. } => "CheckingConsumer",
            Self::ConsumerGone { .. } => "ConsumerGone",
            Self::ConsumerLeaving { .. } | Self::Release { .. } => "WaitingForConsumerRelease",
            Self::NextTry(kind) => kind.reason(),
        }
    }

    /// Whether both have the same name, whatever their details.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.name() == other.name()
    }

    /// What an earlier version stored under this name. The next step fills in the details.
    pub(super) fn named(name: &str) -> Option<Self> {
        let consumer = Consumer::default;
        let named = [
            Self::Registering,
            Self::ServerOff,
            Self::Wiping,
            Self::Inspecting,
            Self::Preparing,
            Self::PreparingBoot,
            Self::LookingAtBoot,
            Self::LookingAtPower,
            Self::Booting,
            Self::Fetching,
            Self::BootOverrideUnused,
            Self::Probing,
            Self::SettlingBoot,
            Self::DisarmingBoot,
            Self::CleaningUp,
            Self::PoweringOn,
            Self::PoweringOff,
            Self::ShuttingDown,
            Self::Restarting,
            Self::PowerUnsettled,
            Self::MediaUnsettled,
            Self::Order,
            Self::BootPermission { keeper: String::new() },
            Self::FleetBrake { limit: None },
            Self::CheckingClaimer { consumer: consumer(), unknown: None },
            Self::ConsumerGone { consumer: consumer() },
            Self::ConsumerLeaving { consumer: consumer() },
        ];
        let fault = || Kind::named(name).map(Self::NextTry);
        named.into_iter().find(|waiting| waiting.name() == name).or_else(fault)
    }
}

/// Why the fleet brake does not let a host go on now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrakeLimit {
    /// The operator is configured to do nothing destructive.
    Frozen,
    /// Power-offs, resets and wipes per minute.
    Disruptions {
        /// How many hosts go first.
        ahead: Ahead,
        /// How many are allowed in a minute.
        per_minute: u32,
    },
    /// Deployments at the same time, for a host that is not the next.
    Deployments {
        /// How many hosts go first.
        ahead: Ahead,
        /// How many are allowed.
        limit: usize,
    },
    /// Deployments at the same time, for the host that is the next.
    Slots {
        /// How many are in progress.
        used: usize,
        /// How many are allowed.
        limit: usize,
        /// How many of those in progress are in fault.
        faulted: usize,
        /// Some of the hosts that are being deployed, those in fault first.
        holders: Vec<String>,
    },
}

/// How many hosts are ahead in a queue. Rounded, because it is stored in every waiting host: a number that changes at each look would
/// be a write at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ahead {
    /// So many.
    Exactly(usize),
    /// More than that, in the same ten, hundred or thousand.
    About(usize),
}

impl Ahead {
    /// So many, rounded down unless they are few.
    pub fn rounded(hosts: usize) -> Self {
        match hosts {
            0..=10 => Self::Exactly(hosts),
            11..=100 => Self::About(hosts / 10 * 10),
            101..=1000 => Self::About(hosts / 100 * 100),
            _ => Self::About(hosts / 1000 * 1000),
        }
    }
}

/// What happened to the claim on the object that we act for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimChange {
    /// It was removed.
    Removed,
    /// It was replaced by somebody else's.
    Replaced(String),
}

/// Something wrong that the engine itself has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finding {
    /// The anchor was edited: its checksum does not match.
    AnchorChecksum,
    /// The anchor was edited: a milestone was taken back.
    AnchorWentBack {
        /// What it says.
        shown: String,
        /// What the deployment had reached.
        reached: String,
    },
    /// The server cannot be booted at all.
    NoBootMethod,
    /// The BMC shows no virtual CD drive.
    NoVirtualMedia {
        /// Whether that is because remote media are disabled in its settings.
        disabled: bool,
    },
    /// The server runs although nobody asked for it.
    ServerRunning,
    /// The server was not seen to boot what was ordered.
    BootIgnored {
        /// How far the boot has come, as the BMC reports it.
        progress: BootProgress,
    },
    /// The server has not fetched what it is to boot from the network.
    NotFetched,
    /// The server was started for a probe, which has not reported.
    ProbeSilent {
        /// Whether the server was found off.
        off: bool,
    },
    /// The power did not change as commanded.
    PowerStuck {
        /// Whether it was to be on.
        on: bool,
        /// What the BMC reports.
        shown: PowerState,
    },
    /// The power does not settle, so that a restart cannot be ordered.
    RestartStuck {
        /// What the BMC reports.
        shown: PowerState,
    },
    /// The BMC accepted an image and does not show it.
    ImageNotShown {
        /// Where the image is, without secrets.
        image: String,
    },
    /// The BMC accepted a boot override and does not show it.
    OverrideNotShown,
    /// The BMC accepted the commands to clean up, and something is left.
    NotCleanedUp {
        /// Whether that is the image; otherwise it is the boot override.
        image: bool,
    },
    /// A shared drive holds another server's image.
    DriveTaken {
        /// The drive.
        slot: String,
        /// What it holds, without secrets.
        image: Option<String>,
    },
    /// The BMC does not support the scheme of the image URL.
    SchemeRefused {
        /// What it takes.
        schemes: Vec<String>,
        /// Where the image is, without secrets.
        image: String,
        /// How it is offered.
        scheme: String,
    },
    /// The address of a host in use was changed.
    AddressChanged {
        /// The former address.
        from: String,
        /// The new address.
        to: String,
        /// The id of the claim.
        claim: String,
    },
    /// A different server answers than the one that was registered.
    AnotherServer {
        /// The UUID that it shows.
        shown: String,
        /// The UUID that was registered.
        registered: String,
    },
    /// The credentials were refused before the status was lost.
    RefusedEarlier,
    /// Another object names the same server.
    DuplicateHost {
        /// Which.
        rival: String,
    },
    /// The claim changed while its consumer exists, or may exist.
    ConsumerMismatch {
        /// What became of the claim.
        change: ClaimChange,
        /// The recorded consumer.
        consumer: Consumer,
        /// The id of its claim.
        claim: String,
        /// Why it is unknown whether it exists; `None` if it does.
        unknown: Option<String>,
        /// A request to release that names another claim.
        stale_release: Option<String>,
    },
}

impl Finding {
    /// What kind of failure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::AnchorChecksum | Self::AnchorWentBack { .. } => Kind::AnchorEdited,
            Self::NoBootMethod => Kind::NoBootMethod,
            Self::NoVirtualMedia { .. } => Kind::NoVirtualMedia,
            Self::ServerRunning => Kind::ServerRunning,
            Self::BootIgnored { .. } | Self::NotFetched => Kind::BootIgnored,
            Self::ProbeSilent { .. } => Kind::ProbeSilent,
            Self::PowerStuck { .. } | Self::RestartStuck { .. } => Kind::PowerStuck,
            Self::ImageNotShown { .. } | Self::OverrideNotShown | Self::NotCleanedUp { .. } => Kind::NotApplied,
            Self::DriveTaken { .. } | Self::SchemeRefused { .. } => Kind::MediaRefused,
            Self::AddressChanged { .. } | Self::AnotherServer { .. } => Kind::SystemChanged,
            Self::RefusedEarlier => Kind::AuthenticationFailed,
            Self::DuplicateHost { .. } => Kind::DuplicateHost,
            Self::ConsumerMismatch { .. } => Kind::ConsumerMismatch,
        }
    }
}

/// Something that just happened: for the timeline, for an event, or for both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// The host entered a phase.
    Entered(Phase, Passage),
    /// The host was adopted in use.
    Adopted {
        /// The id of the claim on it.
        claim: String,
    },
    /// The host came to us in use, and another operator has written down that its server runs what was ordered.
    TakenOver {
        /// The id of the claim on it.
        claim: String,
    },
    /// Something is done to the server.
    Acting {
        /// What.
        acts: Vec<Act>,
        /// Why.
        cause: Cause,
        /// Whether the same was tried before.
        again: bool,
    },
    /// Something went wrong.
    Failed(Failure),
    /// What went wrong is over.
    Recovered(Failure),
    /// The object was corrected.
    ObjectPutRight,
    /// The host still waits for somebody else.
    StillWaiting(Waiting),
    /// Something is still wrong that somebody has to correct.
    StillWrong(Failure),
    /// The inventory was taken again.
    InspectedAgain,
    /// The probe has reported.
    ProbeReported,
    /// The boot was assumed.
    AssumedBooted,
    /// The BMC reports later that the server has left POST.
    LeftPost,
    /// A boot override that the BMC had kept is cleared.
    OverrideLetGo,
    /// The BMC keeps a boot override that could not be cleared.
    OverrideKept {
        /// The override.
        target: BootTarget,
        /// The BMC's refusal.
        refusal: Option<Failure>,
    },
    /// The BMC keeps a boot override that may be ours or somebody else's.
    OverrideUnclear {
        /// The override.
        target: BootTarget,
    },
    /// A requested restart is not carried out.
    RestartSkipped {
        /// Whether that is because the host was released; otherwise the server should stay off.
        released: bool,
    },
    /// The BMC refused a restart too often.
    RestartRefused {
        /// How often.
        times: u32,
        /// How.
        failure: Failure,
    },
    /// The BMC did not confirm a restart.
    RestartUnconfirmed(Failure),
    /// A claim whose claimer does not exist is removed.
    GhostClaim {
        /// Who it would be.
        consumer: Consumer,
    },
    /// The host is deleted, and its server was not cleaned up.
    LeftAsItIs(Neglect),
    /// The host is deleted by force.
    ForcedDeletion,
}

impl Happening {
    /// Its stable name, which users see. Dialects replace the names of phases.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Entered(phase, _) => phase.as_str(),
            Self::Adopted { .. } => "Adopted",
            Self::TakenOver { .. } => "TakenOver",
            Self::Acting { acts, .. } => acts.iter().find(|act| act.is_about_power()).map_or("Acting", Act::name),
            Self::Failed(failure) => failure.kind.reason(),
            Self::Recovered(_) | Self::ObjectPutRight => "Recovered",
            Self::StillWaiting(_) | Self::StillWrong(_) => "StillWaiting",
            Self::InspectedAgain => "Inspected",
            Self::ProbeReported => "ProbeReported",
            Self::AssumedBooted => "AssumedBooted",
            Self::LeftPost => "LeftPost",
            Self::OverrideLetGo => "BootOverrideLetGo",
            Self::OverrideKept { .. } => "BootOverrideKept",
            Self::OverrideUnclear { .. } => "BootOverrideUnclear",
            Self::RestartSkipped { .. } => "RestartSkipped",
            Self::RestartRefused { .. } => "RestartRefused",
            Self::RestartUnconfirmed(_) => "RestartUnconfirmed",
            Self::GhostClaim { .. } => "GhostClaim",
            Self::LeftAsItIs(_) => "LeftAsItIs",
            Self::ForcedDeletion => "ForcedDeletion",
        }
    }

    /// Whether it is a warning.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Failed(_)
            | Self::StillWaiting(_)
            | Self::StillWrong(_)
            | Self::OverrideKept { .. }
            | Self::OverrideUnclear { .. }
            | Self::RestartSkipped { .. }
            | Self::RestartRefused { .. }
            | Self::RestartUnconfirmed(_)
            | Self::GhostClaim { .. }
            | Self::LeftAsItIs(_)
            | Self::ForcedDeletion => true,
            Self::Entered(..)
            | Self::Adopted { .. }
            | Self::TakenOver { .. }
            | Self::Acting { .. }
            | Self::Recovered(_)
            | Self::ObjectPutRight
            | Self::InspectedAgain
            | Self::ProbeReported
            | Self::AssumedBooted
            | Self::LeftPost
            | Self::OverrideLetGo => false,
        }
    }
}

/// Why a host entered a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Passage {
    /// Its address was changed: this is another server.
    AnotherAddress,
    /// Another server answers, and the owner has requested an inspection.
    Replaced,
    /// Its BMC answers.
    BmcAnswers,
    /// Its inventory is taken.
    InventoryTaken {
        /// Whether it can be claimed.
        claimable: bool,
    },
    /// It was claimed by this consumer.
    Claimed(String),
    /// Its owner wants an adopted host to be provisioned.
    OwnerAsked,
    /// A new order was given after one that was not seen to boot.
    AnotherOrder,
    /// Its boot is prepared.
    BootPrepared,
    /// It has booted, as this sign shows.
    Booted(Sign),
    /// It is assumed to have booted.
    AssumedBooted,
    /// Its system is managed by somebody else.
    External,
    /// It was released.
    Released,
    /// It was released before anything was done.
    ReleasedUntouched,
    /// It is cleaned up.
    CleanedUp {
        /// Whether it is off, too.
        off: bool,
    },
    /// It is detached.
    Detached,
    /// It is under maintenance.
    Parked,
    /// It is lent for maintenance.
    Lent,
    /// It is in quarantine.
    Quarantined,
    /// It is being deleted.
    Deleted,
    /// It is managed again.
    Back,
}

/// Why a server was not cleaned up before its host was deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Neglect {
    /// Another object names the same server.
    Rival(String),
    /// The address was changed; the server was at this one.
    AddressChanged(String),
    /// The owner released the host after its address was changed; the server was at this one.
    Unreachable(String),
    /// Cleaning up failed.
    Failed(Failure),
    /// The host was detached.
    Detached,
}

/// Information for the owner that is neither a fault nor a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The host was adopted in use and is left as it is.
    Adopted {
        /// The id of the claim on it.
        claim: String,
        /// A request to provision it that does not count now.
        asked: Option<Asked>,
    },
    /// The order was changed after it had been carried out.
    OrderChanged,
    /// The server should be off, but may never be switched off.
    NeverOff,
    /// The power differs from the owner's request, which was made before the host was claimed or released.
    PowerRequestOutdated {
        /// What the request says.
        online: bool,
        /// What came after it.
        since: Since,
    },
}

impl Note {
    /// Its stable name, which users see.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Adopted { .. } => "Adopted",
            Self::OrderChanged => "OrderChanged",
            Self::NeverOff => "NeverOff",
            Self::PowerRequestOutdated { .. } => "PowerRequestOutdated",
        }
    }
}

/// A request that does not count now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its words.
    pub text: String,
    /// Whether it counts once the server was seen off.
    pub counts_when_off: bool,
}
