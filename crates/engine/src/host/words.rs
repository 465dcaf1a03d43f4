//! The sentences that users read. A dialect provides the names of its fields; everything else is the same for all.

use super::{
    Ahead, Author, BrakeLimit, Cause, ClaimChange, Finding, Happening, Neglect, Note, Passage, Since, Waiting, pace,
    recipe::Sign, step::Act,
};
use crate::{
    failure::{Failure, Kind, What},
    server::{BootProgress, without_secrets},
};

/// What a dialect calls the things in these sentences, and how its users request something. Each is part of a sentence.
pub trait Words {
    /// The kind of its hosts.
    fn host_kind(&self) -> &'static str {
        "host"
    }
    /// The field of a host with the claim.
    fn claim(&self) -> &'static str {
        "the claim"
    }
    /// The field of a host with the id of the claim.
    fn claim_id(&self) -> String {
        "the claim's id".to_owned()
    }
    /// The field of a host with the order.
    fn order(&self) -> &'static str {
        "an order"
    }
    /// The field with the power request.
    fn power(&self) -> &'static str {
        "the power request"
    }
    /// The power request with this value.
    fn power_request(&self, online: bool) -> String {
        format!("{}: {online}", self.power())
    }
    /// That the power was requested like this.
    fn power_is(&self, online: bool) -> String {
        format!("{} is {online}", self.power())
    }
    /// What allows a machine to claim a host whose server runs.
    fn claimable_while_running(&self) -> &'static str {
        "that it may be claimed while it runs"
    }
    /// The field that selects one of several systems of a BMC.
    fn system(&self) -> &'static str {
        "the system"
    }
    /// The field of a host with the anchor.
    fn anchor(&self) -> String {
        "the anchor".to_owned()
    }
    /// The field with the restart request.
    fn restart(&self) -> &'static str {
        "the restart request"
    }
    /// The restart request with this id.
    fn restart_request(&self, id: &str) -> String {
        if id.is_empty() {
            format!("restart request ({})", self.restart())
        } else {
            format!("restart request \"{id}\" ({})", self.restart())
        }
    }
    /// How to request a restart.
    fn to_restart(&self) -> String {
        "ask for a restart".to_owned()
    }
    /// How to request another restart.
    fn to_restart_again(&self) -> String {
        "ask for it once more".to_owned()
    }
    /// How to end the claim of this id, even if its claimer exists.
    fn to_release(&self, claim: &str) -> String {
        format!("ask for the release of claim {claim}")
    }
    /// How to provision an adopted host for the claim of this id.
    fn to_provision(&self, claim: &str) -> String {
        format!("ask for it by the id {claim} of the claim")
    }
    /// How to request a new inventory.
    fn to_inspect(&self) -> String {
        "ask for an inspection".to_owned()
    }
    /// What to do about a certificate that is not trusted, as a sentence.
    fn to_trust(&self) -> String {
        "If this really is the BMC, have its certificate trusted.".to_owned()
    }
    /// How to delete a host at once.
    fn to_force_deletion(&self) -> String {
        "ask for its deletion by force".to_owned()
    }
    /// How to renew a power request.
    fn to_ask_for_power(&self, online: bool) -> String {
        format!("ask for power {} again", if online { "on" } else { "off" })
    }
    /// How to say that the disks of a released server are wiped.
    fn to_free_wiped(&self) -> String {
        "say so".to_owned()
    }
}

/// The words of no dialect, for logs and tests.
#[derive(Debug, Clone, Copy)]
pub struct Neutral;

impl Words for Neutral {}

/// The sentence for a host whose BMC reports nothing about the boot.
pub const ASSUMED_BOOTED: &str =
    "Boot started, not observed: the BMC reports no boot progress, so what was ordered is assumed to have booted.";

impl Waiting {
    /// The sentence.
    pub fn tell(&self, words: &dyn Words) -> String {
        let text = match self {
            Self::Registering => "Contacting the BMC.",
            Self::Inspecting => "Reading the inventory.",
            Self::Preparing => "Looking at the server before it is prepared.",
            Self::PreparingBoot => "Waiting for the BMC to show that the boot is prepared.",
            Self::LookingAtBoot => "Looking at the server's boot.",
            Self::LookingAtPower => "Looking at the server before changing its power.",
            Self::Booting => "Waiting for the server to use the boot override.",
            Self::Fetching => "Waiting for the server to fetch what it is to boot from the network.",
            Self::BootOverrideUnused => {
                "An operating system has started, but the BMC still shows the boot override as unused."
            }
            Self::Probing => "The server was started to be looked into; waiting for the probe to report.",
            Self::SettlingBoot => {
                "Giving the server time to boot: its BMC reports neither boot progress nor whether the boot override was used."
            }
            Self::DisarmingBoot => {
                "The BMC keeps the boot override and would boot the same again; setting it to the disk."
            }
            Self::CleaningUp => "Ejecting media and clearing the boot override.",
            Self::PoweringOn => "Waiting for the server to power on.",
            Self::PoweringOff => "Waiting for the server to power off.",
            Self::ShuttingDown => "Waiting for the operating system to shut down.",
            Self::Restarting => "Restarting the server, as requested.",
            Self::PowerUnsettled => {
                "Waiting for the BMC to report a stable power state: the power was changed a moment ago."
            }
            Self::MediaUnsettled => {
                "The result of the last virtual media action is not known; waiting for the BMC to finish it."
            }
            Self::NextTry(_) => "Waiting for the next try.",
            Self::FleetBrake { limit: None } => "Waiting for the fleet brake.",
            Self::FleetBrake { limit: Some(limit) } => return limit.tell(),
            Self::Order => return format!("Claimed; waiting for {}.", words.order()),
            Self::ServerOff => {
                "The server runs although nobody has asked for it, so somebody may use it. It is registered once it is off."
            }
            Self::Wiping => {
                return format!(
                    "Powered off and cleaned up; the disks still hold what the last claim left. To free the server, wipe them and {}.",
                    words.to_free_wiped()
                );
            }
            Self::BootPermission { keeper } => {
                return format!("Waiting for {keeper} to be ready before the server is booted.");
            }
            Self::CheckingClaimer { consumer, unknown: None } => {
                return format!("Claimed by {consumer}; checking whether it exists.");
            }
            Self::CheckingClaimer { consumer, unknown: Some(why) } => {
                return format!(
                    "Claimed by {consumer}, but it is unknown whether it exists ({why}), so nothing is done for it yet. It is looked up again every minute."
                );
            }
            Self::CheckingConsumer { consumer, change } => {
                return format!("The claim {}; checking whether {consumer} still exists.", change.told());
            }
            Self::ConsumerGone { consumer } => {
                return format!(
                    "{} names {consumer}, which does not exist under the id of this claim ({}), so nothing is done. Create it with that id, or remove reference and id; otherwise they are removed after {} minutes.",
                    words.claim(),
                    words.claim_id(),
                    pace::GHOST_LIMIT.as_mins()
                );
            }
            Self::ConsumerLeaving { consumer } => {
                return format!(
                    "{consumer} is being deleted: nothing is done for it; waiting for it to release the host."
                );
            }
            Self::Release { consumer: None, .. } => {
                return format!(
                    "Waiting for the order of the host to be removed. Remove {}: the server is then powered off, and the host is removed. To delete the host and leave its server as it is, {}.",
                    words.order(),
                    words.to_force_deletion()
                );
            }
            Self::Release { consumer: Some(consumer), author } => {
                let force = format!("To delete the host and leave its server as it is, {}.", words.to_force_deletion());
                return match author {
                    Author::Claimer => format!(
                        "Waiting for {consumer} to release the host. Delete {consumer}: its server is then powered off, and the host is removed. {force}"
                    ),
                    Author::Hand => format!(
                        "Waiting for {consumer}, which uses the host. If there is such an object, delete it; then remove {} and the order: the server is powered off, and the host is removed. {force}",
                        words.claim()
                    ),
                };
            }
        };
        text.to_owned()
    }
}

impl BrakeLimit {
    /// The sentence.
    pub fn tell(&self) -> String {
        let (ahead, allowed) = match self {
            Self::Frozen => {
                return "The fleet is frozen: nothing is switched off, reset, wiped or deployed (--freeze).".to_owned();
            }
            Self::Disruptions { ahead, per_minute } => (*ahead, power_offs(*per_minute)),
            Self::Deployments { ahead, limit } => (*ahead, deployments(*limit)),
            Self::Slots { used, limit, faulted, holders } => {
                (Ahead::Exactly(0), slots(*used, *limit, *faulted, holders))
            }
        };
        let ahead = match ahead {
            Ahead::Exactly(0) => "next in queue".to_owned(),
            Ahead::Exactly(1) => "1 host is ahead".to_owned(),
            Ahead::Exactly(hosts) => format!("{hosts} hosts are ahead"),
            Ahead::About(hosts) => format!("about {hosts} hosts are ahead"),
        };
        format!("Waiting for the fleet brake: {ahead}; {allowed}.")
    }
}

fn power_offs(per_minute: u32) -> String {
    match per_minute {
        0 => "no power-offs are allowed (--max-disruptions-per-minute=0)".to_owned(),
        1 => "1 power-off per minute is allowed (--max-disruptions-per-minute)".to_owned(),
        _ => format!("{per_minute} power-offs per minute are allowed (--max-disruptions-per-minute)"),
    }
}

fn deployments(limit: usize) -> String {
    match limit {
        0 => "no deployments are allowed (--max-deployments=0)".to_owned(),
        1 => "1 deployment at a time is allowed (--max-deployments)".to_owned(),
        _ => format!("{limit} deployments at a time are allowed (--max-deployments)"),
    }
}

fn slots(used: usize, limit: usize, faulted: usize, holders: &[String]) -> String {
    let by_faulted = match faulted {
        0 => String::new(),
        1 => ", 1 by a faulted host".to_owned(),
        _ => format!(", {faulted} by faulted hosts"),
    };
    let more = match used.saturating_sub(holders.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{used} of {limit} deployment slots used{by_faulted}: {}{more} (--max-deployments)", holders.join(", "))
}

impl ClaimChange {
    fn told(&self) -> String {
        match self {
            Self::Removed => "was removed".to_owned(),
            Self::Replaced(other) => format!("now names {other}"),
        }
    }
}

impl Failure {
    /// The sentence.
    pub fn tell(&self, words: &dyn Words) -> String {
        match &self.what {
            // What to do about it is a matter of the object's fields.
            What::Told(message) => match self.kind {
                Kind::CertificateUntrusted => format!("{message} {}", words.to_trust()),
                Kind::SystemNotFound | Kind::SystemAmbiguous => {
                    format!("{message} The system is chosen by {}.", words.system())
                }
                _ => message.clone(),
            },
            What::Found(finding) => finding.tell(words),
        }
    }
}

impl Finding {
    fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::AnchorChecksum => edited("its checksum does not match", words),
            Self::AnchorWentBack { shown, reached } => edited(
                &format!("it says \"{shown}\", but this deployment has already reached \"{reached}\""),
                words,
            ),
            Self::NoBootMethod => format!(
                "The BMC shows neither a virtual CD drive nor network boot, so the server cannot be booted, and nothing is done to it. Enable virtual media in the BMC (it may need a licence) and {}, or use another host.",
                words.to_inspect()
            ),
            Self::NoVirtualMedia { disabled: true } => "Remote media are disabled in the settings of the BMC (RMediaStatus), so it shows no virtual CD drive, and nothing is done to the server. Enable them there, boot the server from the network, or use another host.".to_owned(),
            Self::NoVirtualMedia { disabled: false } => "The BMC shows no virtual CD drive that could take an image, so nothing is done to the server. Enable virtual media in the BMC (it may need a licence), boot it from the network, or use another host.".to_owned(),
            Self::ServerRunning => format!(
                "The server runs although nobody asked for it ({} is not set), so somebody may use it. No machine claims it, and nothing was done to it. Set {} to switch it off, or {} to let machines claim it as it is.",
                words.power(),
                words.power_request(false),
                words.claimable_while_running()
            ),
            Self::BootIgnored { progress } => not_booted(*progress, words),
            Self::NotFetched => format!(
                "The server was started {} minutes ago and has not fetched what it is to boot from the network. Nothing is done to a server that may still do so. Check its console, whether it boots from the network on an interface that the boot service reaches, and which DHCP server answers it. To have it started from the network again, {}, or remove the claim.",
                pace::BOOT_LIMIT.as_mins(),
                words.to_restart()
            ),
            Self::ProbeSilent { off: false } => format!(
                "The server was started for a probe, which has not reported within {} minutes. Check its console, what the network boots it with, and that it can reach the boot service. A report that comes late counts; at the next try the server is started again.",
                pace::PROBE_LIMIT.as_mins()
            ),
            Self::ProbeSilent { off: true } => {
                "The server was started for a probe and was found off before the probe had reported. Check what the network boots it with. It is tried again.".to_owned()
            }
            Self::PowerStuck { on, shown } => format!(
                "The BMC accepted the command to power {}, but after {} minutes it still reports {}. Check the server and its BMC.",
                if *on { "on" } else { "off" },
                pace::POWER_LIMIT.as_mins(),
                shown.as_str()
            ),
            Self::RestartStuck { shown } => {
                format!("A restart was requested, but the BMC reports the power as {}.", shown.as_str())
            }
            Self::ImageNotShown { image } => format!(
                "The BMC accepted the image {image}, but does not show it in a drive. Check that the BMC can reach the URL."
            ),
            Self::OverrideNotShown => {
                "The BMC accepted the boot override, but does not show it. It is tried again.".to_owned()
            }
            Self::NotCleanedUp { image } => {
                let what = if *image { "the image is still in the drive" } else { "the boot override is still armed" };
                format!("The BMC accepted the commands to clean up, but {what}. It is tried again.")
            }
            Self::DriveTaken { slot, image } => format!(
                "The virtual CD drive {slot} serves several servers and holds {}, which this host did not insert. It is not ejected, because another server may run from it, and nothing was done to this server. Release the host that uses the drive, or eject the image by hand.",
                image.as_deref().unwrap_or("an image")
            ),
            Self::SchemeRefused { schemes, image, scheme } => {
                let taken = schemes.join(" or ");
                format!(
                    "The BMC takes images by {taken} only, and {image} is offered by {scheme}. Nothing was done to the server. Offer the image by {taken}."
                )
            }
            Self::AddressChanged { from, to, claim } => format!(
                "This host is in use, but its address was changed from {from} to {to}. Nothing is done to either server. Put the address back; or remove the claim and {}: that leaves the old server as it is.",
                words.to_release(claim)
            ),
            Self::AnotherServer { shown, registered } => format!(
                "The BMC now shows a server with UUID {shown}, but this host was registered with {registered}. Nothing is done to it. Correct the address; if the board was replaced, request an inspection of the released host."
            ),
            Self::RefusedEarlier => {
                "The BMC refused user name or password earlier. Correct the Secret: it is tried again at once.".to_owned()
            }
            Self::DuplicateHost { rival } => format!(
                "{rival} is already registered for this BMC and system. Delete one of the two, or set {} if the BMC has several systems.",
                words.system()
            ),
            Self::ConsumerMismatch { change, consumer, claim, unknown, stale_release } => {
                let (field, change) = (words.claim(), change.told());
                let (why, or) = match unknown {
                    None => (format!("but {consumer} still exists and is not being deleted"), "delete the consumer, or "),
                    Some(why) => (format!("and it is unknown whether {consumer} still exists ({why})"), "or "),
                };
                let stale = stale_release
                    .as_ref()
                    .map(|value| format!(" Its present value \"{value}\" counts for nothing."))
                    .unwrap_or_default();
                format!(
                    "{field} {change}, {why}, so the server is left running. Put the reference back, {or}{}.{stale}",
                    words.to_release(claim)
                )
            }
        }
    }
}

fn edited(how: &str, words: &dyn Words) -> String {
    let anchor = words.anchor();
    format!(
        "The data that the operator stores in {anchor} of this host was edited: {how}. Nothing is done to the server. Restore it, or remove it: it is then rebuilt from the status."
    )
}

/// The sentence for a server that was not seen to boot what was ordered.
fn not_booted(progress: BootProgress, words: &dyn Words) -> String {
    let minutes = pace::BOOT_LIMIT.as_mins();
    let shown = match progress {
        BootProgress::OsStarted => {
            "The BMC reports that an operating system runs, but still shows the boot override as unused".to_owned()
        }
        BootProgress::PostFinished => {
            "The BMC reports that POST is over, but still shows the boot override as unused".to_owned()
        }
        BootProgress::InPost => format!("The server is still in POST {minutes} minutes after power-on"),
        BootProgress::NotStarted | BootProgress::NotReported => {
            format!("The BMC still shows the boot override as unused {minutes} minutes after power-on")
        }
    };
    format!(
        "{shown}, so it is not known whether the server booted what was ordered. Nothing is done to a server that may run it. Check its console. If it runs, clear the boot override in the BMC; if not, check its boot settings and {} to restart it, or remove the claim.",
        words.to_restart()
    )
}

impl Happening {
    /// The sentence.
    pub fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::Entered(_, passage) => passage.tell(),
            Self::Adopted { claim } => adopted(claim, words),
            Self::TakenOver { claim } => format!(
                "Another operator has recorded that the server runs what claim {claim} ordered. It is taken over as it is: from now on it is watched, and cleaned up when the claim ends."
            ),
            Self::Acting { acts, cause, again } => acting(acts, cause, *again, words),
            Self::Failed(failure) | Self::StillWrong(failure) => failure.tell(words),
            Self::Recovered(failure) => format!("Recovered from {}.", failure.kind.reason()),
            Self::ObjectPutRight => "The object was corrected.".to_owned(),
            Self::StillWaiting(waiting) => waiting.tell(words),
            Self::InspectedAgain => "The inventory was read again.".to_owned(),
            Self::ProbeReported => "The probe has reported; powering off.".to_owned(),
            Self::AssumedBooted => Passage::AssumedBooted.tell(),
            Self::LeftPost => "The BMC now reports that the server has left POST.".to_owned(),
            Self::OverrideLetGo => "The boot override was cleared: the next start boots the disk.".to_owned(),
            Self::OverrideKept { target, refusal } => {
                let said = refusal.as_ref().map(|refusal| format!(" (it says: {})", refusal.tell(words)));
                format!(
                    "The BMC keeps the boot override {} and did not accept Hdd instead in {} tries{}. The next restart of the server would boot from there again: set the override by hand.",
                    target.as_str(),
                    pace::DISARM_TRIES,
                    said.unwrap_or_default()
                )
            }
            Self::OverrideUnclear { target } => format!(
                "The BMC shows the boot override {}, which it keeps for every start and which the operator did not set under this name. It may be how this BMC shows the boot that was ordered, or somebody else's setting, so it is left as it is. If the next restart should boot the disk, clear the override in the BMC.",
                target.as_str()
            ),
            Self::RestartSkipped { released: true } => format!(
                "The host was released and its server is off, so the restart that was requested before ({}) was not carried out.",
                words.restart()
            ),
            Self::RestartSkipped { released: false } => format!(
                "The server is off and should stay off ({}), so it was not restarted.",
                words.power_request(false)
            ),
            Self::RestartRefused { times, failure } => format!(
                "The BMC refused to restart the server {times} times ({}). To try again, {}.",
                failure.tell(words),
                words.to_restart_again()
            ),
            Self::RestartUnconfirmed(failure) => format!(
                "The BMC did not confirm the restart ({}). It may have happened, so it is not repeated. If the server did not restart, {}.",
                failure.tell(words),
                words.to_restart_again()
            ),
            Self::GhostClaim { consumer } => {
                format!("Removed the stale claim of {consumer}, which does not exist. Nothing was done for it.")
            }
            Self::LeftAsItIs(neglect) => {
                format!("Deleted although the server could not be cleaned up: {}", neglect.tell(words))
            }
            Self::ForcedDeletion => "Deleted by force; the server was left as it is.".to_owned(),
        }
    }
}

impl Passage {
    /// The sentence.
    pub fn tell(&self) -> String {
        let text = match self {
            Self::AnotherAddress => "The address was changed: this is another server.",
            Self::Replaced => {
                "Another server answers, and an inspection was requested: it is registered in place of the former one."
            }
            Self::BmcAnswers => "The BMC answers.",
            Self::InventoryTaken { claimable: true } => "The inventory is taken; the host can be claimed.",
            Self::InventoryTaken { claimable: false } => "The inventory is taken.",
            Self::Claimed(holder) => return format!("Claimed by {holder}."),
            Self::External => "Somebody else manages the system on it: only its power is managed here.",
            Self::OwnerAsked => "To be provisioned, as the owner asked.",
            Self::AnotherOrder => {
                "The server was not seen to boot what was ordered, and the order was changed: preparing the new one."
            }
            Self::BootPrepared => "The boot is prepared; powering on.",
            Self::Booted(Sign::ConfigFetched) => "The system that was booted has fetched its configuration.",
            Self::Booted(Sign::ImageFetched) => "The server has fetched what it is to boot from the network.",
            Self::Booted(Sign::OverrideUsed) => "The server is on and has used the boot override.",
            Self::Booted(Sign::PostOver) => "The server is on, and its BMC reports that it has left POST.",
            Self::AssumedBooted => ASSUMED_BOOTED,
            Self::Released => "Released; powering off and cleaning up.",
            Self::ReleasedUntouched => "Released before anything was done.",
            Self::CleanedUp { off: true } => {
                "Powered off and cleaned up (no virtual media, no boot override); the disks were not wiped. The host can be claimed."
            }
            Self::CleanedUp { off: false } => {
                "Cleaned up (no virtual media, no boot override) without powering off; the disks were not wiped. The host can be claimed."
            }
            Self::Detached => "Detached: neither watched nor changed.",
            Self::Parked => "Under maintenance: watched, not changed.",
            Self::Lent => "Under maintenance: only its power follows what was requested for that.",
            Self::Quarantined => "In quarantine: nobody can claim the host; watched, not changed.",
            Self::Deleted => "The host object is being deleted.",
            Self::Back => "Back under management.",
        };
        text.to_owned()
    }
}

impl Neglect {
    fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::Rival(rival) => format!("{rival} is registered for the same server."),
            Self::AddressChanged(target) => format!("it was at {target}, and the address was changed."),
            Self::Unreachable(target) => format!("the server at {target} cannot be reached under the new address."),
            Self::Failed(failure) => failure.tell(words),
            Self::Detached => "it was detached.".to_owned(),
        }
    }
}

impl Note {
    /// The sentence.
    pub fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::Adopted { claim, asked } => {
                let asked = asked.as_ref().map(|asked| {
                    let counts = if asked.counts_when_off {
                        "counts once the server was seen off"
                    } else {
                        "counts for nothing"
                    };
                    format!(" Its present value \"{}\" {counts}.", asked.text)
                });
                format!("{}{}", adopted(claim, words), asked.unwrap_or_default())
            }
            Self::OrderChanged => format!(
                "The order ({}) was changed after the host had been provisioned. Nothing is done about it: only a new claim provisions again.",
                words.order()
            ),
            Self::NeverOff => "The server should be off, but it may never be switched off: it is left on.".to_owned(),
            Self::PowerRequestOutdated { online, since } => {
                let (before, instead) = match since {
                    Since::Claim => ("claimed", "the power is left to the user of the host"),
                    Since::Release => ("released", "the server stays off until somebody requests power again"),
                };
                format!(
                    "{} was set before the host was {before} and is not applied: {instead}. To apply it now, {}.",
                    words.power_request(*online),
                    words.to_ask_for_power(*online)
                )
            }
        }
    }
}

/// The sentence for an adopted host.
fn adopted(claim: &str, words: &dyn Words) -> String {
    format!(
        "The host was created with a claim on it, so it is taken to be in use and is left as it is. To have it provisioned, {}.",
        words.to_provision(claim)
    )
}

impl Cause {
    /// Why, and who asked.
    pub fn tell(&self, words: &dyn Words) -> String {
        match self {
            Self::PowerRequest { online } => words.power_is(*online),
            Self::RestartRequest { id } => words.restart_request(id),
            Self::Deployment { consumer: Some(consumer) } => format!("deployment for {consumer}"),
            Self::Deployment { consumer: None } => "deployment for the host's owner".to_owned(),
            Self::Maintenance => "maintenance of the host".to_owned(),
            Self::Probe => "probe of the server".to_owned(),
            Self::HeldOff => "request to keep the server off".to_owned(),
            Self::Release { consumer: Some(consumer) } => format!("release by {consumer}"),
            Self::Release { consumer: None } => "release of the host".to_owned(),
            Self::Deletion => "deletion of the host".to_owned(),
        }
    }
}

fn acting(acts: &[Act], cause: &Cause, again: bool, words: &dyn Words) -> String {
    let all = acts.iter().map(act).collect::<Vec<_>>().join(", ");
    let mut letters = all.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let again = if again { " again" } else { "" };
    format!("{first}{}{again}; cause: {}.", letters.as_str(), cause.tell(words))
}

/// What is done, as the middle of a sentence.
fn act(act: &Act) -> String {
    match act {
        Act::PowerOn => "powering on".to_owned(),
        Act::ShutDown => "asking the operating system to shut down".to_owned(),
        Act::PowerOff => "powering off".to_owned(),
        Act::Restart => "restarting".to_owned(),
        Act::InsertMedia { url } => format!("inserting the image {}", without_secrets(url)),
        Act::EjectMedia => "ejecting virtual media".to_owned(),
        Act::SetBoot(wish) => format!("setting the boot override to {}", wish.target.as_str()),
        Act::ClearBoot => "clearing the boot override".to_owned(),
    }
}
