//! Whether the ordered system has started: evidence, and servers that ignore the boot override.

use jiff::SignedDuration;

use super::{
    IMAGE, OTHER_IMAGE, order, ordered, secs,
    server::{Runs, no_override},
    world::{Mishap, World},
};
use crate::{
    failure::{Failure, Kind},
    host::{BmcSight, Milestone, NoteKind, Order, Phase},
    server::{BootOverride, BootProgress, BootTarget, Persistence, PowerState, Seen},
};

fn provisioning() -> World {
    let mut world = World::with(ordered("a", IMAGE));
    world.run_to(Phase::Provisioning);
    world.log.clear();
    world
}

#[test]
fn provisioned_needs_evidence() {
    let once = Some(BootOverride::cd_once(None));
    let kept = Some(BootOverride { persistence: Persistence::Continuous, ..BootOverride::cd_once(None) });
    let disk = Some(BootOverride { target: BootTarget::Hdd, ..BootOverride::cd_once(None) });
    let used = Some(no_override());
    let (on, off) = (PowerState::On, PowerState::Off);
    let table = [
        ("override used", on, &used, BootProgress::Untold, true),
        ("override used, self test running", on, &used, BootProgress::InPost, true),
        ("override turned to the disk", on, &disk, BootProgress::OsStarted, true),
        ("override still armed", on, &once, BootProgress::Untold, false),
        ("override still armed, self test running", on, &once, BootProgress::InPost, false),
        ("override still armed, system started", on, &once, BootProgress::OsStarted, false),
        ("override kept by the BMC", on, &kept, BootProgress::Untold, true),
        ("override kept by the BMC, self test running", on, &kept, BootProgress::InPost, false),
        ("override kept by the BMC, system started", on, &kept, BootProgress::OsStarted, true),
        ("no override shown", on, &None, BootProgress::Untold, true),
        ("no override shown, self test running", on, &None, BootProgress::InPost, false),
        ("no override shown, not started", on, &None, BootProgress::NotStarted, false),
        ("no override shown, self test over", on, &None, BootProgress::PostFinished, true),
        ("off", off, &used, BootProgress::NotStarted, false),
        ("on its way", PowerState::PoweringOn, &used, BootProgress::Untold, false),
        ("unknown", PowerState::Unknown, &used, BootProgress::Untold, false),
        ("paused", PowerState::Paused, &used, BootProgress::Untold, true),
    ];
    for (name, power, boot, progress, booted) in table {
        let mut world = provisioning();
        world.pass(5);
        let seen = Seen { power, boot: boot.clone(), progress, ..Seen::default() };
        let (after, act) = (world.record().acted, world.outcome.clone());
        world.sight = Some(BmcSight { at: world.now, after, inputs: world.inputs.clone(), act, seen: Ok(seen) });
        let next = world.decide();
        assert_eq!(next.record.phase == Phase::Provisioned, booted, "{name}");
        assert_eq!(next.record.anchor.milestone == Milestone::Provisioned, booted, "{name}");
        assert_eq!(next.acts, [], "{name}");
    }
}

#[test]
fn a_bmc_that_keeps_the_override_or_shows_none_gets_there_too() {
    for kept in [true, false] {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.continuous = kept;
        world.server.temper.silent_boot = !kept;
        world.run_to(Phase::Provisioned);
        world.run(60);
        assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
        assert_eq!(world.server.starts, 1);
    }
}

#[test]
fn a_server_that_ignores_the_override_is_started_again_from_cold() {
    for silent in [false, true] {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.ignores = 2;
        world.server.temper.silent_progress = silent;
        world.run_to(Phase::Provisioned);
        let again = ["PowerOff", "EjectMedia", "InsertMedia", "SetBoot", "PowerOn"];
        let expected: Vec<_> = ["InsertMedia", "SetBoot", "PowerOn"].into_iter().chain(again).chain(again).collect();
        assert_eq!(world.acts(), expected);
        assert_eq!(world.server.starts, 3);
        assert_eq!(world.fault(), None);
        world.run(60);
        assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
    }
}

#[test]
fn after_three_ignored_starts_it_is_a_fault_with_growing_back_off() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 6;
    let mut pauses = Vec::new();
    for starts in 3..=5 {
        world.run_until(48 * 3600, |world| {
            world.server.starts == starts
                && world.fault() == Some(Kind::BootIgnored)
                && world.record().doing.is_none()
                && world.record().fault.is_some_and(|fault| fault.next_try > world.now)
        });
        let fault = world.record().fault.unwrap();
        assert_eq!(world.phase(), Phase::Provisioning);
        pauses.push(fault.next_try.duration_since(fault.last));
        // A BMC that cannot be reached for a while does not make us start the server more often.
        world.server.temper.blind = Some(Kind::Unreachable);
        world.run(200);
        world.server.temper.blind = None;
        world.run(700);
    }
    assert_eq!(pauses, [10, 20, 40].map(SignedDuration::from_mins));
    world.run_to(Phase::Provisioned);
    assert_eq!((world.server.starts, world.fault()), (7, None));
    assert!(world.events.contains(&"Recovered"));
}

#[test]
fn a_late_success_is_recognised_without_another_start() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 3;
    world.run_until(48 * 3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.server.boot = no_override();
    world.run(200);
    assert_eq!((world.phase(), world.fault(), world.server.starts), (Phase::Provisioned, None, 3));
}

#[test]
fn an_order_changed_after_ignored_starts_is_tried_at_once() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 3;
    world.run_until(48 * 3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.goal.order = Some(order("a", OTHER_IMAGE));
    world.run(180);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
    assert_eq!(world.server.runs, Runs::Image(OTHER_IMAGE.into()));
}

#[test]
fn an_order_changed_while_the_last_start_is_ignored_is_tried_at_once() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 3;
    world.run_until(3600, |world| world.server.starts == 3);
    world.goal.order = Some(order("a", OTHER_IMAGE));
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.starts, 4);
    assert!(!world.record().timeline.iter().any(|moment| moment.message.contains("started 3 times")));
}

#[test]
fn a_server_that_comes_back_from_maintenance_after_ignored_starts_is_tried_at_once() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 3;
    world.run_until(48 * 3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.goal.road = crate::host::Road::Park;
    world.run(3600);
    world.goal.road = crate::host::Road::Manage;
    world.run(180);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
}

#[test]
fn contrary_evidence_counts_from_when_the_system_started_not_from_power_on() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.post = 900;
    world.server.temper.ignores = 1;
    world.run_until(3600, |world| world.server.runs == Runs::Disk);
    let started = world.now;
    world.log.clear();
    world.run_until(3600, |world| !world.log.is_empty());
    assert!(world.now.duration_since(started) >= secs(60), "the BMC had no time to notice");
}

#[test]
fn big_servers_may_take_a_quarter_of_an_hour_to_post() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.post = 900;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.starts, 1);
}

#[test]
fn an_outage_or_a_crash_while_booting_changes_nothing() {
    let mut world = provisioning();
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(1800);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioning, Some(Kind::Unreachable)));
    world.crash();
    world.server.temper.blind = None;
    world.run_to(Phase::Provisioned);
    assert_eq!((world.server.starts, world.acts().len()), (1, 0));
}

#[test]
fn a_process_that_keeps_dying_does_not_put_off_the_end_of_the_wait() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 1;
    world.server.temper.silent_progress = true;
    world.run_to(Phase::Provisioning);
    let started = world.now;
    while world.server.starts < 2 && world.now < started + secs(3600) {
        world.run(290);
        world.crash();
    }
    assert!(world.now.duration_since(started) < secs(1700), "took {}", world.now.duration_since(started));
}

#[test]
fn a_server_that_is_switched_off_while_booting_is_switched_on_again() {
    let mut world = provisioning();
    world.run_until(60, |world| world.server.on);
    world.press(false);
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["PowerOn"]);
}

#[test]
fn power_on_that_was_decided_but_not_performed_is_made_up_for() {
    let mut world = World::with(ordered("a", IMAGE));
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.reconcile(Mishap::CrashAfterActs(0));
    assert_eq!((world.phase(), world.server.starts), (Phase::Provisioning, 0));
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.starts, 1);
}

#[test]
fn a_changed_or_removed_order_on_a_provisioned_host_is_only_noted() {
    for order in [Some(order("a", OTHER_IMAGE)), None] {
        let mut world = World::provisioned();
        world.goal.order = order;
        world.run(24 * 3600);
        assert_eq!(world.notes(), [NoteKind::OrderChanged]);
        assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0));
        world.goal.order = Some(super::order("a", IMAGE));
        world.run(10);
        assert_eq!(world.notes(), []);
    }
}

#[test]
fn an_outage_does_not_reboot_a_provisioned_host() {
    for kind in [Kind::Unreachable, Kind::AuthenticationFailed, Kind::CertificateChanged, Kind::BadAnswer, Kind::Busy] {
        let mut world = World::provisioned();
        world.goal.online = Some(true);
        world.server.temper.blind = Some(kind);
        world.run(12 * 3600);
        assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(kind)));
        world.server.temper.blind = None;
        world.run(8 * 3600);
        assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
        assert_eq!(world.acts(), [""; 0]);
    }
}

#[test]
fn that_boots_were_ignored_is_told_until_one_is_not() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 3;
    world.run_until(48 * 3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.run_until(48 * 3600, |world| world.server.starts == 4);
    assert_eq!(world.fault(), Some(Kind::BootIgnored));
    assert!(!world.events.contains(&"Recovered"));
    world.run_to(Phase::Provisioned);
    assert_eq!((world.fault(), world.server.starts), (None, 4));
    assert!(world.events.contains(&"Recovered"));
}

#[test]
fn a_system_that_fetched_its_configuration_has_booted_whatever_the_bmc_shows() {
    let mut world = provisioning();
    world.pass(5);
    let kept = Seen { power: PowerState::On, boot: Some(BootOverride::cd_once(None)), ..Seen::default() };
    let (after, act) = (world.record().acted, world.outcome.clone());
    world.sight = Some(BmcSight { at: world.now, after, inputs: world.inputs.clone(), act, seen: Ok(kept) });
    assert_eq!(world.decide().record.phase, Phase::Provisioning);
    world.fetched = true;
    assert_eq!(world.decide().record.phase, Phase::Provisioned);
}

#[test]
fn an_order_that_cannot_be_served_is_a_fault_and_nothing_is_done() {
    let mut world = World::with(ordered("a", IMAGE));
    let why = || Failure::new(Kind::BootUrlMissing, "Nobody said where.");
    world.goal.order = Some(Order { recipe: Err(why()), ..order("a", IMAGE) });
    world.run(600);
    assert_eq!(world.record().fault.as_ref().map(|fault| fault.failure.clone()), Some(why()));
    assert_eq!((world.record().phase, world.record().anchor.milestone), (Phase::Preparing, Milestone::None));
    assert!(world.log.is_empty(), "{:?}", world.log);

    world.goal.order = Some(order("a", IMAGE));
    world.run_to(Phase::Provisioned);
    assert_eq!(world.record().fault, None);
}
