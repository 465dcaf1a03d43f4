//! Names of fields and annotations in sentences about a PhysicalHost.

use api::beskar7::names;
use engine::host::Words;

use crate::dialect::ANCHOR_ANNOTATION;

/// The words of PhysicalHosts.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostWords;

impl Words for HostWords {
    fn host_kind(&self) -> &'static str {
        "PhysicalHost"
    }

    fn claim(&self) -> &'static str {
        "spec.consumerRef"
    }

    fn claim_id(&self) -> String {
        format!("annotation {}", names::CLAIM_ID)
    }

    fn order(&self) -> &'static str {
        "spec.bootIsoSource or spec.networkBoot"
    }

    fn power(&self) -> &'static str {
        "spec.online"
    }

    fn claimable_while_running(&self) -> &'static str {
        "spec.claimableWhileRunning: true"
    }

    fn system(&self) -> &'static str {
        "spec.redfishConnection.systemID"
    }

    fn anchor(&self) -> String {
        format!("the annotation {ANCHOR_ANNOTATION}")
    }

    fn restart(&self) -> &'static str {
        names::REBOOT
    }

    fn to_restart(&self) -> String {
        format!("annotate the host with {}", names::REBOOT)
    }

    fn to_restart_again(&self) -> String {
        format!("annotate the host with {} and another text", names::REBOOT)
    }

    fn to_release(&self, claim: &str) -> String {
        format!("annotate the host with {}={claim}, which is the id of the claim", names::RELEASE)
    }

    fn to_provision(&self, claim: &str) -> String {
        format!("annotate the host with {}={claim}, which is the id of the claim", names::PROVISION)
    }

    fn to_inspect(&self) -> String {
        format!("annotate the host with {}", names::INSPECT)
    }

    fn to_trust(&self) -> String {
        "Give a CA bundle (spec.redfishConnection.caBundleSecretRef) or, if this really is your BMC, pin the certificate: put that fingerprint into spec.redfishConnection.certificateFingerprint.".to_owned()
    }

    fn to_force_deletion(&self) -> String {
        format!("annotate it with {}=true", names::FORCE_DELETE)
    }

    fn to_ask_for_power(&self, online: bool) -> String {
        format!(
            "run `beskar7 power {}` for this host, or give it the annotation {} with a new value; `beskar7 power auto` removes spec.online",
            if online { "on" } else { "off" },
            names::POWER_REQUEST
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use engine::failure::{Failure, Kind};
    use engine::host::{
        Act, Ahead, Asked, Author, BrakeLimit, Cause, ClaimChange, Consumer, Finding, Happening, Neglect, Note,
        Passage, Phase, Sign, Since, Waiting,
    };
    use engine::server::{BootProgress, BootTarget, PowerState};

    use super::*;

    fn consumer() -> Consumer {
        Consumer {
            api_version: "infrastructure.cluster.x-k8s.io/v1beta1".into(),
            kind: "Beskar7Machine".into(),
            namespace: "lab".into(),
            name: "node-1".into(),
        }
    }

    fn told() -> Failure {
        Failure::new(Kind::Unreachable, "https://192.0.2.10 cannot be reached: connection refused.")
    }

    fn waits() -> Vec<Waiting> {
        let consumer = consumer;
        let mut all = vec![
            Waiting::Registering,
            Waiting::ServerOff,
            Waiting::Wiping,
            Waiting::Inspecting,
            Waiting::Preparing,
            Waiting::PreparingBoot,
            Waiting::LookingAtBoot,
            Waiting::LookingAtPower,
            Waiting::Booting,
            Waiting::Fetching,
            Waiting::BootOverrideUnused,
            Waiting::Probing,
            Waiting::SettlingBoot,
            Waiting::DisarmingBoot,
            Waiting::CleaningUp,
            Waiting::PoweringOn,
            Waiting::PoweringOff,
            Waiting::ShuttingDown,
            Waiting::Restarting,
            Waiting::PowerUnsettled,
            Waiting::MediaUnsettled,
            Waiting::Order,
            Waiting::BootPermission { keeper: "the boot operator".into() },
            Waiting::FleetBrake { limit: None },
            Waiting::CheckingClaimer { consumer: consumer(), unknown: None },
            Waiting::CheckingClaimer { consumer: consumer(), unknown: Some("forbidden".into()) },
            Waiting::CheckingConsumer { consumer: consumer(), change: ClaimChange::Removed },
            Waiting::CheckingConsumer {
                consumer: consumer(),
                change: ClaimChange::Replaced("Beskar7Machine lab/node-2".into()),
            },
            Waiting::ConsumerGone { consumer: consumer() },
            Waiting::ConsumerLeaving { consumer: consumer() },
            Waiting::Release { consumer: Some(consumer()), author: Author::Claimer },
            Waiting::Release { consumer: Some(consumer()), author: Author::Hand },
            Waiting::Release { consumer: None, author: Author::Hand },
        ];
        all.extend(brake_limits().into_iter().map(|limit| Waiting::FleetBrake { limit: Some(limit) }));
        all
    }

    fn brake_limits() -> Vec<BrakeLimit> {
        let disruptions = |ahead, per_minute| BrakeLimit::Disruptions { ahead: Ahead::rounded(ahead), per_minute };
        let deployments = |ahead, limit| BrakeLimit::Deployments { ahead: Ahead::rounded(ahead), limit };
        let slots = |used, faulted, holders: &[&str]| BrakeLimit::Slots {
            used,
            limit: used,
            faulted,
            holders: holders.iter().map(|&holder| holder.to_owned()).collect(),
        };
        vec![
            BrakeLimit::Frozen,
            disruptions(0, 0),
            disruptions(0, 1),
            disruptions(1, 10),
            disruptions(10, 10),
            disruptions(11, 10),
            disruptions(199, 10),
            disruptions(1999, 10),
            deployments(0, 0),
            deployments(2, 1),
            deployments(25, 20),
            slots(1, 0, &["lab/server-1"]),
            slots(3, 1, &["lab/server-3", "lab/server-1", "lab/server-2"]),
            slots(20, 2, &["lab/server-3", "lab/server-4", "lab/server-1"]),
        ]
    }

    fn findings() -> Vec<Finding> {
        let mismatch = |unknown: Option<&str>, stale: Option<&str>| Finding::ConsumerMismatch {
            change: ClaimChange::Removed,
            consumer: consumer(),
            claim: "id-1".into(),
            unknown: unknown.map(str::to_owned),
            stale_release: stale.map(str::to_owned),
        };
        let mut all = vec![
            Finding::AnchorChecksum,
            Finding::AnchorWentBack { shown: "armed".into(), reached: "provisioned".into() },
            Finding::NoBootMethod,
            Finding::NoVirtualMedia { disabled: false },
            Finding::NoVirtualMedia { disabled: true },
            Finding::ServerRunning,
            Finding::ProbeSilent { off: false },
            Finding::ProbeSilent { off: true },
            Finding::PowerStuck { on: true, shown: PowerState::Off },
            Finding::PowerStuck { on: false, shown: PowerState::On },
            Finding::RestartStuck { shown: PowerState::PoweringOn },
            Finding::ImageNotShown { image: "https://images/os.iso".into() },
            Finding::OverrideNotShown,
            Finding::NotCleanedUp { image: true },
            Finding::NotCleanedUp { image: false },
            Finding::DriveTaken { slot: "CD1".into(), image: Some("https://images/other.iso".into()) },
            Finding::SchemeRefused {
                schemes: vec!["cifs".into(), "https".into()],
                image: "http://images/os.iso".into(),
                scheme: "http".into(),
            },
            Finding::AddressChanged { from: "https://a".into(), to: "https://b".into(), claim: "id-1".into() },
            Finding::AnotherServer { shown: "u-2".into(), registered: "u-1".into() },
            Finding::RefusedEarlier,
            Finding::DuplicateHost { rival: "lab/server-2".into() },
            mismatch(None, None),
            mismatch(Some("forbidden"), Some("yes")),
        ];
        let progress = [
            BootProgress::NotReported,
            BootProgress::NotStarted,
            BootProgress::InPost,
            BootProgress::PostFinished,
            BootProgress::OsStarted,
        ];
        all.extend(progress.map(|progress| Finding::BootIgnored { progress }));
        all.push(Finding::NotFetched);
        all
    }

    fn passages() -> Vec<(Phase, Passage)> {
        vec![
            (Phase::Registering, Passage::AnotherAddress),
            (Phase::Registering, Passage::Replaced),
            (Phase::Inspecting, Passage::BmcAnswers),
            (Phase::Available, Passage::InventoryTaken { claimable: true }),
            (Phase::Available, Passage::InventoryTaken { claimable: false }),
            (Phase::Preparing, Passage::Claimed("Beskar7Machine lab/node-1".into())),
            (Phase::Preparing, Passage::OwnerAsked),
            (Phase::Preparing, Passage::AnotherOrder),
            (Phase::Provisioning, Passage::BootPrepared),
            (Phase::Provisioned, Passage::Booted(Sign::ConfigFetched)),
            (Phase::Provisioned, Passage::Booted(Sign::ImageFetched)),
            (Phase::Provisioned, Passage::Booted(Sign::OverrideUsed)),
            (Phase::Provisioned, Passage::Booted(Sign::PostOver)),
            (Phase::Provisioned, Passage::AssumedBooted),
            (Phase::Deprovisioning, Passage::Released),
            (Phase::Available, Passage::ReleasedUntouched),
            (Phase::Available, Passage::CleanedUp { off: true }),
            (Phase::Available, Passage::CleanedUp { off: false }),
            (Phase::Provisioned, Passage::External),
            (Phase::Detached, Passage::Detached),
            (Phase::Parked, Passage::Parked),
            (Phase::Lent, Passage::Lent),
            (Phase::Quarantined, Passage::Quarantined),
            (Phase::Deleting, Passage::Deleted),
            (Phase::Available, Passage::Back),
        ]
    }

    fn happenings() -> Vec<Happening> {
        let acting = |act: Act, cause: Cause, again: bool| Happening::Acting { acts: vec![act], cause, again };
        let deployment = || Cause::Deployment { consumer: Some(consumer()) };
        let prepare = vec![
            Act::EjectMedia,
            Act::InsertMedia { url: "https://user:word@images/os.iso?ticket=1".into() },
            Act::SetBoot(engine::server::BootOverride::disk()),
            Act::ClearBoot,
        ];
        vec![
            acting(Act::PowerOn, Cause::PowerRequest { online: true }, false),
            acting(Act::Restart, Cause::RestartRequest { id: "monday".into() }, false),
            acting(Act::PowerOff, deployment(), true),
            acting(Act::ShutDown, Cause::Release { consumer: Some(consumer()) }, false),
            acting(Act::PowerOff, Cause::Release { consumer: None }, false),
            acting(Act::PowerOff, Cause::Deletion, false),
            acting(Act::ShutDown, Cause::Maintenance, false),
            acting(Act::PowerOn, Cause::Probe, false),
            acting(Act::PowerOff, Cause::HeldOff, false),
            acting(Act::PowerOn, Cause::Deployment { consumer: None }, false),
            Happening::Acting { acts: prepare, cause: deployment(), again: false },
            Happening::Adopted { claim: "id-1".into() },
            Happening::TakenOver { claim: "id-1".into() },
            Happening::Failed(told()),
            Happening::Recovered(told()),
            Happening::ObjectPutRight,
            Happening::StillWaiting(Waiting::Order),
            Happening::StillWrong(Finding::DuplicateHost { rival: "lab/server-2".into() }.into()),
            Happening::InspectedAgain,
            Happening::ProbeReported,
            Happening::AssumedBooted,
            Happening::LeftPost,
            Happening::OverrideLetGo,
            Happening::OverrideKept { target: BootTarget::Cd, refusal: None },
            Happening::OverrideKept { target: BootTarget::Pxe, refusal: Some(told()) },
            Happening::OverrideUnclear { target: BootTarget::Other("UefiBootNext".into()) },
            Happening::RestartSkipped { released: true },
            Happening::RestartSkipped { released: false },
            Happening::RestartRefused { times: 3, failure: told() },
            Happening::RestartUnconfirmed(told()),
            Happening::GhostClaim { consumer: consumer() },
            Happening::LeftAsItIs(Neglect::Rival("lab/server-2".into())),
            Happening::LeftAsItIs(Neglect::AddressChanged("https://a".into())),
            Happening::LeftAsItIs(Neglect::Unreachable("https://a".into())),
            Happening::LeftAsItIs(Neglect::Failed(told())),
            Happening::ForcedDeletion,
        ]
    }

    fn notes() -> Vec<Note> {
        let asked = |text: &str, counts_when_off| Some(Asked { text: text.into(), counts_when_off });
        vec![
            Note::Adopted { claim: "id-1".into(), asked: None },
            Note::Adopted { claim: "id-1".into(), asked: asked("true", false) },
            Note::Adopted { claim: "id-1".into(), asked: asked("node-1", true) },
            Note::OrderChanged,
            Note::NeverOff,
            Note::PowerRequestOutdated { online: true, since: Since::Release },
            Note::PowerRequestOutdated { online: false, since: Since::Claim },
        ]
    }

    /// Every sentence that users of PhysicalHosts may read, in one file for review.
    #[test]
    fn every_sentence_about_a_physical_host_is_as_it_was_reviewed() {
        let mut text = String::new();
        let mut section = |title: &str, lines: Vec<(&str, String)>| {
            writeln!(text, "# {title}").unwrap();
            for (name, line) in lines {
                writeln!(text, "{name}: {line}").unwrap();
            }
        };
        section("Waits", waits().iter().map(|wait| (wait.name(), wait.tell(&HostWords))).collect());
        let failures = findings().into_iter().map(Failure::from);
        section("Faults", failures.map(|failure| (failure.kind.reason(), failure.tell(&HostWords))).collect());
        let entered = passages().into_iter().map(|(phase, why)| Happening::Entered(phase, why));
        let events: Vec<_> = entered.chain(happenings()).collect();
        section("Events", events.iter().map(|event| (event.name(), event.tell(&HostWords))).collect());
        section("Notes", notes().iter().map(|note| (note.name(), note.tell(&HostWords))).collect());

        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/beskar7/sentences.txt");
        if std::env::var_os("BESKAR7_BLESS").is_some() {
            std::fs::write(file, &text).unwrap();
        }
        let reviewed = std::fs::read_to_string(file).unwrap_or_default();
        assert!(reviewed == text, "the sentences have changed; see the diff after BESKAR7_BLESS=1:\n{text}");
    }

    #[test]
    fn every_wait_is_listed_by_its_name() {
        let named: std::collections::BTreeSet<_> = waits().iter().map(Waiting::name).collect();
        assert_eq!(named, Waiting::NAMES.into_iter().collect());
    }
}
