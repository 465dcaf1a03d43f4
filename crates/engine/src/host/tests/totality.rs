//! Whatever a status, an annotation or a clock says, the step answers: no panic, no dead end, no act without a look.
//!
//! Strategies of whole structs are boxed: unboxed, the value tree of a record holds those of all its parts, is handed on by value
//! through every layer of proptest, and without optimisation overflows the stack of a test's thread.

use jiff::Timestamp;
use proptest::{option::of, prelude::*, test_runner::Config};

use super::{IMAGE, claim, order, start_of_time};
use crate::{
    failure::{Failure, Kind},
    hardware::{Hardware, Part},
    host::{
        Ahead, Anchor, Ask, AuthHold, Author, BmcSight, BrakeLimit, Deed, Deletion, Detachment, Disarming, Doing,
        Fault, Goal, Milestone, Moving, Origin, Outcome, OutdatedRequest, Phase, PowerRequest, Presence, Proof, Record,
        Remembered, Road, Sight, Since, Turn, Unread, Wait, Waiting, step,
    },
    server::{BootOverride, BootProgress, BootTarget, Media, Persistence, PowerState, Seen},
};

fn time() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        8 => (-40..0_i64).prop_map(|at| start_of_time() + jiff::SignedDuration::from_secs(at)),
        4 => (-100_000..100_000_i64).prop_map(|at| start_of_time() + jiff::SignedDuration::from_secs(at)),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..4_u64, 1 => Just(u64::MAX)]
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0..8_u32, 1 => Just(u32::MAX)]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Unreachable,
        Kind::Busy,
        Kind::AuthenticationFailed,
        Kind::Refused,
        Kind::Unsupported,
        Kind::BootIgnored,
        Kind::ServerRunning,
        Kind::SystemChanged,
        Kind::PowerStuck,
        Kind::ConsumerMismatch,
        Kind::AnchorUnreadable,
        Kind::Internal,
    ])
}

fn failure() -> impl Strategy<Value = Failure> {
    kind().prop_map(|kind| Failure::new(kind, "no"))
}

fn inputs() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["one".to_owned(), "two".to_owned()])
}

fn phase() -> impl Strategy<Value = Phase> {
    prop::sample::select(Phase::ALL.to_vec())
}

fn milestone() -> impl Strategy<Value = Milestone> {
    prop::sample::select(vec![
        Milestone::None,
        Milestone::Armed,
        Milestone::Written,
        Milestone::Provisioned,
        Milestone::Releasing,
    ])
}

fn id() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b"])
}

fn anchor() -> BoxedStrategy<Anchor> {
    let hold = (time(), count(), inputs()).prop_map(|(until, count, inputs)| AuthHold { until, count, inputs });
    (number(), of(id()), of(id()), milestone(), any::<bool>(), any::<bool>(), of(id()), of(hold))
        .prop_map(|(seq, claimed, deployment, milestone, adopted, powered_on, uuid, hold)| Anchor {
            seq,
            claim: claimed.map(claim),
            deployment: deployment.map(|id| order(id, IMAGE).deployment),
            milestone,
            adopted,
            powered_on,
            uuid: uuid.map(str::to_owned),
            hold,
            outdated: seq.is_multiple_of(3).then_some(OutdatedRequest {
                request: PowerRequest { online: powered_on, id: None },
                since: if adopted { Since::Claim } else { Since::Release },
            }),
            ..Anchor::default()
        })
        .boxed()
}

fn fault() -> BoxedStrategy<Fault> {
    let origin = prop::sample::select(vec![Origin::Look, Origin::Act, Origin::Object]);
    (failure(), origin, count(), time(), time(), time(), inputs())
        .prop_map(|(failure, origin, count, since, last, next_try, inputs)| Fault {
            failure,
            origin,
            count,
            since,
            last,
            next_try,
            inputs,
        })
        .boxed()
}

fn doing() -> impl Strategy<Value = Doing> {
    let deeds = [
        Deed::PowerOn,
        Deed::ShutDown,
        Deed::PowerOff,
        Deed::Restart,
        Deed::PrepareBoot,
        Deed::CleanUp,
        Deed::DisarmBoot,
    ];
    (prop::sample::select(deeds.to_vec()), time(), time()).prop_map(|(what, since, first)| Doing { what, since, first })
}

fn wait() -> impl Strategy<Value = Wait> {
    let what = [
        Waiting::PoweringOn,
        Waiting::PoweringOff,
        Waiting::Booting,
        Waiting::PowerUnsettled,
        Waiting::FleetBrake { limit: None },
        Waiting::FleetBrake { limit: Some(BrakeLimit::Disruptions { ahead: Ahead::About(10), per_minute: 5 }) },
        Waiting::BootOverrideUnused,
        Waiting::Inspecting,
        Waiting::NextTry(Kind::ConsumerMismatch),
    ];
    (prop::sample::select(what.to_vec()), time(), time()).prop_map(|(what, since, deadline)| Wait {
        what,
        since,
        deadline,
    })
}

fn power() -> impl Strategy<Value = PowerState> {
    prop::sample::select(vec![
        PowerState::On,
        PowerState::Off,
        PowerState::PoweringOn,
        PowerState::PoweringOff,
        PowerState::Paused,
        PowerState::Unknown,
    ])
}

fn record() -> BoxedStrategy<Record> {
    let first = (phase(), time(), of(phase()), anchor(), any::<bool>(), number(), of(doing()));
    let disarming = (count(), time(), any::<bool>()).prop_map(|(tries, last, over)| Disarming { tries, last, over });
    let moving = (time(), of(number()), any::<bool>()).prop_map(|(since, act, inserts)| Moving { since, act, inserts });
    let second =
        ((of(time()), of(moving), of(disarming)), power(), of(wait()), of(fault()), of(fault()), of(id()), count());
    (first, second)
        .prop_map(
            |(
                (phase, since, left, anchor, inspected, acted, doing),
                ((started, media, disarming), power, wait, fault, beneath, id, tries),
            )| {
                Record {
                    phase,
                    since,
                    left,
                    anchor,
                    target: id.map(str::to_owned),
                    inspected,
                    probed: tries % 2 == 1,
                    boot_begun: started.filter(|_| inspected),
                    bare: !inspected,
                    unread: left.map(|_| Unread { parts: vec![Part::Drives], tries, last: since }),
                    acted,
                    doing,
                    started,
                    assumed_booted: inspected,
                    disarming,
                    media,
                    power,
                    wait,
                    fault,
                    beneath,
                    rebooted: id.map(str::to_owned),
                    inspection: id.map(str::to_owned),
                }
            },
        )
        .boxed()
}

fn seen() -> BoxedStrategy<Seen> {
    let persistence = prop::sample::select(vec![Persistence::Disabled, Persistence::Once, Persistence::Continuous]);
    let target = prop::sample::select(vec![BootTarget::None, BootTarget::Cd, BootTarget::Hdd]);
    let boot = (target, persistence).prop_map(|(target, persistence)| BootOverride {
        target,
        persistence,
        mode: None,
        http_uri: None,
    });
    let progress = prop::sample::select(vec![BootProgress::NotReported, BootProgress::InPost, BootProgress::OsStarted]);
    let media = of(id()).prop_map(|image| {
        vec![Media { slot: "Cd".into(), inserted: image.is_some(), image: image.map(str::to_owned) }]
    });
    (power(), of(boot), progress, of(media), any::<bool>(), of(id()))
        .prop_map(|(power, boot, progress, media, hardware, uuid)| Seen {
            power,
            boot,
            progress,
            media,
            hardware: hardware.then(|| Box::new(Hardware::default())),
            uuid: uuid.map(str::to_owned),
            ..Seen::default()
        })
        .boxed()
}

fn sight() -> BoxedStrategy<Sight> {
    let outcome = (number(), prop_oneof![Just(Ok(())), failure().prop_map(Err)], any::<bool>())
        .prop_map(|(number, result, not_performed)| Outcome { number, result, not_performed });
    let seen = prop_oneof![3 => seen().prop_map(Ok), 1 => failure().prop_map(Err)];
    let bmc = (time(), number(), inputs(), of(outcome), seen).prop_map(|(at, after, inputs, act, seen)| BmcSight {
        at,
        after,
        inputs,
        act,
        seen,
    });
    let consumer = prop::sample::select(vec![
        Presence::NotLookedUp,
        Presence::Exists,
        Presence::Leaving,
        Presence::Gone,
        Presence::Unknown("why".into()),
    ]);
    (of(bmc), inputs(), id(), (consumer.clone(), consumer), any::<[bool; 4]>(), any::<u8>())
        .prop_map(|(bmc, inputs, target, (consumer, claimer), [granted, fetched, handed, probed], spread)| Sight {
            now: start_of_time(),
            inputs,
            target: target.into(),
            bmc,
            consumer,
            claimer,
            rival: None,
            granted: if granted { vec![Ask::Deploy, Ask::Disrupt] } else { Vec::new() },
            fetched: fetched.then(start_of_time),
            handed: handed.then(start_of_time),
            probed: probed.then(start_of_time),
            hold: None,
            spread,
        })
        .boxed()
}

fn goal() -> BoxedStrategy<Goal> {
    let road = prop::sample::select(vec![
        Road::Manage,
        Road::Manage,
        Road::Park,
        Road::ParkOff,
        Road::Lend,
        Road::Detach(Detachment::AtOnce),
        Road::Detach(Detachment::AtRest),
        Road::Delete(Deletion::Detached(Detachment::AtRest)),
        Road::Delete(Deletion::Detached(Detachment::AtOnce)),
        Road::Delete(Deletion::CleanUp),
        Road::Delete(Deletion::Force),
    ]);
    (road, of(id()), any::<bool>(), of(any::<bool>()), of(id()), of(id()), of(id()), of(id()))
        .prop_map(|(road, claimed, ordered, online, reboot, inspect, release, provision)| Goal {
            road,
            claim: claimed.map(claim),
            author: if release == provision { Author::Hand } else { Author::Claimer },
            order: claimed.filter(|_| ordered).map(|id| order(id, IMAGE)),
            online,
            claimable_while_running: reboot == inspect,
            probe: inspect.map(|id| super::probe(id, release == reboot)),
            turn: (reboot == release).then_some(Turn { place: u32::MAX, of: u32::MAX }),
            reboot: reboot.map(str::to_owned),
            inspect: inspect.map(str::to_owned),
            release: release.map(str::to_owned),
            provision: provision.map(str::to_owned),
            ..Goal::default()
        })
        .boxed()
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, cases: super::history::cases(2500), ..Config::default() })]

    #[test]
    fn whatever_it_is_given_the_step_answers(goal in goal(), anchor in of(anchor()), record in of(record()), sight in sight(), proof in of(prop_oneof![Just(Proof::Free), Just(Proof::Deployed)])) {
        let deadline = record.as_ref().and_then(|record| record.wait.as_ref()).map(|wait| wait.deadline);
        let remembered = Remembered { anchor: Ok(anchor), record, proof };
        let next = step(&goal, remembered, &sight);
        let moves = !next.acts.is_empty() || next.look.is_some() || next.again.is_some();
        prop_assert!(moves || next.finished || next.record.phase == Phase::Detached, "stuck: {next:#?}");
        prop_assert!(next.look.is_none() || next.again.is_some(), "a look that is lost is never taken again: {next:#?}");
        prop_assert!(next.again.is_none_or(|again| again > sight.now || next.inquire.is_some()), "again at {:?}", next.again);
        if let Some(wait) = &next.record.wait {
            prop_assert!(wait.since <= sight.now, "{wait:?}");
            prop_assert!(wait.deadline > wait.since || Some(wait.deadline) == deadline, "{wait:?}");
        }
        prop_assert!(next.acts.is_empty() || sight.bmc.is_some_and(|bmc| bmc.seen.is_ok() && bmc.inputs == sight.inputs));
        let text = serde_json::to_string(&next.record).unwrap();
        prop_assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), next.record);
    }
}
