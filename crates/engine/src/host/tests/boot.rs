//! Whether the ordered system has started: evidence, and servers that ignore the boot override.

use super::{
    IMAGE, OTHER_IMAGE, order, ordered, secs,
    server::{Runs, no_override},
    world::{Mishap, World},
};
use crate::{
    failure::{Failure, Kind},
    host::{Act, BmcSight, Goal, Milestone, Neutral, Order, Phase, Presence},
    server::{BootOverride, BootProgress, BootTarget, Persistence, PowerState, Seen},
};

fn provisioning() -> World {
    let mut world = World::with(ordered("a", IMAGE));
    world.run_to(Phase::Provisioning);
    world.log.clear();
    world
}

/// What a look so many seconds after power-on leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Waits(&'static str),
    Booted,
    Assumed,
}

#[test]
fn provisioned_needs_evidence() {
    use Verdict::{Assumed, Booted, Waits};
    let once = Some(BootOverride::cd_once(None));
    let kept = Some(BootOverride { persistence: Persistence::Continuous, ..BootOverride::cd_once(None) });
    let disk = Some(BootOverride { target: BootTarget::Hdd, ..BootOverride::cd_once(None) });
    let used = Some(no_override());
    let (on, off) = (PowerState::On, PowerState::Off);
    let (booting, settling) = (Waits("Booting"), Waits("SettlingBoot"));
    let table = [
        ("override used", 5, on, &used, BootProgress::NotReported, Booted),
        ("override used, self test running", 5, on, &used, BootProgress::InPost, Booted),
        ("override turned to the disk", 5, on, &disk, BootProgress::OsStarted, Booted),
        ("override still armed", 5, on, &once, BootProgress::NotReported, booting),
        ("override still armed for long", 600, on, &once, BootProgress::NotReported, booting),
        ("override still armed, self test running", 600, on, &once, BootProgress::InPost, booting),
        ("override still armed, system started", 5, on, &once, BootProgress::OsStarted, Waits("BootOverrideUnused")),
        ("override kept by the BMC", 5, on, &kept, BootProgress::NotReported, settling),
        ("override kept by the BMC, nearly settled", 299, on, &kept, BootProgress::NotReported, settling),
        ("override kept by the BMC, settled", 300, on, &kept, BootProgress::NotReported, Assumed),
        ("override kept by the BMC, self test running", 600, on, &kept, BootProgress::InPost, booting),
        ("override kept by the BMC, system started too soon", 29, on, &kept, BootProgress::OsStarted, booting),
        ("override kept by the BMC, system started", 30, on, &kept, BootProgress::OsStarted, Booted),
        ("no override shown", 5, on, &None, BootProgress::NotReported, settling),
        ("no override shown, settled", 300, on, &None, BootProgress::NotReported, Assumed),
        ("no override shown, self test running", 600, on, &None, BootProgress::InPost, booting),
        ("no override shown, not started", 600, on, &None, BootProgress::NotStarted, booting),
        ("no override shown, self test over", 30, on, &None, BootProgress::PostFinished, Booted),
        ("off", 5, off, &used, BootProgress::NotStarted, Waits("PoweringOn")),
        ("on its way", 5, PowerState::PoweringOn, &used, BootProgress::NotReported, Waits("PoweringOn")),
        ("unknown", 5, PowerState::Unknown, &used, BootProgress::NotReported, Waits("PoweringOn")),
        ("paused", 5, PowerState::Paused, &used, BootProgress::NotReported, Booted),
        ("paused, settled", 300, PowerState::Paused, &None, BootProgress::NotReported, Assumed),
    ];
    for (name, after_start, power, boot, progress, verdict) in table {
        let mut world = provisioning();
        world.now = world.record().started.unwrap() + secs(after_start);
        let uuid = world.server.uuid.clone();
        let seen = Seen { power, boot: boot.clone(), progress, uuid, ..Seen::default() };
        let (after, act) = (world.record().acted, world.outcome.clone());
        world.sight = Some(BmcSight { at: world.now, after, inputs: world.inputs.clone(), act, seen: Ok(seen) });
        let next = world.decide();
        let booted = matches!(verdict, Booted | Assumed);
        assert_eq!(next.record.phase == Phase::Provisioned, booted, "{name}");
        assert_eq!(next.record.anchor.milestone == Milestone::Provisioned, booted, "{name}");
        assert_eq!(next.record.assumed_booted, verdict == Assumed, "{name}");
        let told = next.events.iter().any(|event| event.name() == "AssumedBooted");
        assert_eq!(told, verdict == Assumed, "{name}");
        if let Waits(reason) = verdict {
            assert_eq!(next.record.wait.map(|wait| wait.what.name()), Some(reason), "{name}");
        }
        assert!(booted || next.acts.is_empty(), "{name}");
    }
}

#[test]
fn a_bmc_that_tells_nothing_better_gets_five_minutes_and_one_that_does_is_believed() {
    // Whether the override is kept or not shown at all, and whether the BMC tells how far the boot has come.
    for (kept, told) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.continuous = kept;
        world.server.temper.silent_boot = !kept;
        world.server.temper.silent_progress = !told;
        world.server.temper.post = 60;
        world.run_until(60, |world| world.acts().contains(&"PowerOn"));
        let started = world.record().started.unwrap();
        world.run_to(Phase::Provisioned);
        let took = world.record().since.duration_since(started);
        let limits = if told { secs(60)..secs(90) } else { secs(300)..secs(330) };
        assert!(limits.contains(&took), "{kept} {told}: {took}");
        assert_eq!(world.record().assumed_booted, !told);
        assert_eq!(world.events.contains(&"AssumedBooted"), !told);
        // It is remembered, also by the next process.
        world.crash();
        world.run(3600);
        assert_eq!((world.phase(), world.record().assumed_booted), (Phase::Provisioned, !told));
        assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
        assert_eq!(world.server.starts, 1);
        world.goal = Goal::default();
        world.run(600);
        assert_eq!((world.phase(), world.record().assumed_booted), (Phase::Available, false));
    }
}

#[test]
fn what_was_assumed_about_a_boot_is_known_once_the_bmc_tells_it() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.silent_boot = true;
    world.server.temper.silent_progress = true;
    world.run_to(Phase::Provisioned);
    assert!(world.record().assumed_booted);
    world.server.temper.silent_progress = false;
    world.run(200);
    assert_eq!((world.phase(), world.record().assumed_booted), (Phase::Provisioned, false));
}

#[test]
fn the_time_to_settle_is_counted_from_the_start_also_by_a_process_that_was_away() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.silent_boot = true;
    world.server.temper.silent_progress = true;
    world.run_to(Phase::Provisioning);
    let started = world.now;
    while world.phase() == Phase::Provisioning && world.now < started + secs(3600) {
        world.run(50);
        world.crash();
    }
    assert!(world.now.duration_since(started) < secs(400), "took {}", world.now.duration_since(started));
    assert_eq!(world.phase(), Phase::Provisioned);
}

/// A host that was provisioned by a BMC that keeps every override.
fn kept() -> World {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.continuous = true;
    world.run_until(60, |world| world.acts().contains(&"PowerOn"));
    world.log.clear();
    world.run_until(600, |world| world.server.runs == Runs::Image(IMAGE.into()));
    world
}

#[test]
fn an_override_that_the_bmc_keeps_is_turned_to_the_disk_once_and_nothing_else_is_touched() {
    for silent in [false, true] {
        let mut world = kept();
        world.server.temper.silent_progress = silent;
        world.run(3600);
        assert_eq!(world.log, [Act::SetBoot(BootOverride::disk())], "silent: {silent}");
        assert_eq!((world.server.boot.target.clone(), world.server.starts), (BootTarget::Hdd, 1));
        assert_eq!((world.phase(), world.fault(), world.wait()), (Phase::Provisioned, None, None));
        assert_eq!(world.server.media.as_deref(), Some(IMAGE));
        // Whoever restarts it gets the disk, and an override that somebody sets later is not ours to take back.
        world.goal.reboot = Some("monday".into());
        world.run(600);
        assert_eq!((&world.server.runs, world.server.starts), (&Runs::Disk, 2));
        world.server.boot = BootOverride { persistence: Persistence::Continuous, ..BootOverride::cd_once(None) };
        world.run(3600);
        assert_eq!(world.acts(), ["SetBoot", "Restart"]);
        world.consumer = Presence::Gone;
        world.goal = Goal::default();
        world.run_to(Phase::Available);
        assert!(world.server.is_tidy());
    }
}

#[test]
fn an_override_that_the_bmc_keeps_is_turned_to_the_disk_also_after_a_crash_or_a_lost_status() {
    for acts in [0, 1] {
        for status_is_lost in [false, true] {
            let mut world = kept();
            while world.phase() != Phase::Provisioned {
                let next = world.reconcile(Mishap::CrashAfterActs(acts));
                world.now = world.now.max(next);
            }
            world.crash();
            if status_is_lost {
                world.status = None;
            }
            world.run(600);
            assert_eq!(world.phase(), Phase::Provisioned);
            assert_eq!((world.server.boot.target.clone(), world.server.starts), (BootTarget::Hdd, 1));
            assert!(world.log.iter().all(|act| *act == Act::SetBoot(BootOverride::disk())), "{:?}", world.log);
            assert!(world.log.len() <= 1 + acts, "{:?}", world.log);
        }
    }
}

#[test]
fn where_the_disk_cannot_be_named_the_override_is_ended() {
    let mut world = kept();
    world.server.temper.lacks = Some("SetBoot");
    world.run(600);
    assert_eq!(world.acts(), ["SetBoot", "SetBoot", "ClearBoot"]);
    assert_eq!((world.phase(), world.fault(), world.server.boot.is_clear()), (Phase::Provisioned, None, true));
    assert!(!world.events.contains(&"BootOverrideKept"));
}

#[test]
fn a_bmc_that_does_not_let_go_of_the_override_is_told_about_after_four_tries_and_the_host_stays_provisioned() {
    for kind in [Kind::Refused, Kind::Unsupported, Kind::Unreachable] {
        let mut world = kept();
        world.server.temper.refuses = Some(kind);
        world.run(24 * 3600);
        assert_eq!(world.acts(), ["SetBoot", "SetBoot", "ClearBoot", "ClearBoot"], "{kind:?}");
        assert_eq!((world.phase(), world.fault(), world.wait()), (Phase::Provisioned, None, None), "{kind:?}");
        assert_eq!(world.events.iter().filter(|event| **event == "BootOverrideKept").count(), 1, "{kind:?}");
        let told = world.timeline.last().unwrap().what.tell(&Neutral);
        assert!(told.contains("4 tries") && told.contains("the act failed"), "{told}");
        // The power policy goes on.
        world.server.temper.refuses = None;
        world.goal.online = Some(false);
        world.run(600);
        assert!(!world.server.on);
    }
}

/// A server that booted its disk, and left the override as it was.
fn ignored() -> World {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 1;
    world.run_until(3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.log.clear();
    world
}

#[test]
fn a_running_server_is_never_cut_because_its_bmc_goes_on_showing_the_override() {
    for silent in [false, true] {
        for crashes in [false, true] {
            let mut world = World::with(ordered("a", IMAGE));
            world.server.temper.shows_used_override = true;
            world.server.temper.silent_progress = silent;
            world.run_to(Phase::Provisioning);
            for _ in 0..48 {
                world.run(1800);
                if crashes {
                    world.crash();
                    world.status = None;
                }
            }
            world.run(1800);
            assert_eq!((world.phase(), world.fault()), (Phase::Provisioning, Some(Kind::BootIgnored)));
            assert_eq!((world.acts(), world.server.starts), (vec!["InsertMedia", "SetBoot", "PowerOn"], 1));
            assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
            let told = world.record().fault.unwrap().failure.to_string();
            assert!(told.contains("clear the boot override") && told.contains("ask for a restart"), "{told}");
            // Its owner has looked at the console.
            world.server.temper.shows_used_override = false;
            world.run(200);
            assert_eq!((world.phase(), world.fault(), world.server.starts), (Phase::Provisioned, None, 1));
        }
    }
}

#[test]
fn a_server_that_is_not_seen_to_use_the_override_is_told_about_and_left_alone() {
    for silent in [false, true] {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.ignores = 1;
        world.server.temper.silent_progress = silent;
        world.run_until(3600, |world| world.fault() == Some(Kind::BootIgnored));
        world.run(7 * 24 * 3600);
        assert_eq!((world.acts(), world.server.starts), (vec!["InsertMedia", "SetBoot", "PowerOn"], 1));
        assert_eq!((world.phase(), world.fault()), (Phase::Provisioning, Some(Kind::BootIgnored)));
        assert_eq!(world.wait().as_deref(), Some("BootIgnored"));
        assert_eq!(world.events.iter().filter(|event| **event == "BootIgnored").count(), 1, "told once");
    }
}

#[test]
fn a_server_that_ignored_the_override_is_restarted_once_when_its_owner_asks() {
    let mut world = ignored();
    world.braked = true;
    world.goal.reboot = Some("monday".into());
    world.run(300);
    assert_eq!((world.acts().len(), world.wait().as_deref()), (0, Some("FleetBrake")));
    world.braked = false;
    world.run_to(Phase::Provisioned);
    world.run(600);
    assert_eq!((world.acts(), world.server.starts), (vec!["Restart"], 2));
    assert_eq!((world.server.runs.clone(), world.fault()), (Runs::Image(IMAGE.into()), None));
}

#[test]
fn a_server_that_ignored_the_override_and_was_switched_off_gets_power_again() {
    let mut world = ignored();
    world.press(false);
    world.run_to(Phase::Provisioned);
    assert_eq!((world.acts(), world.server.starts, world.fault()), (vec!["PowerOn"], 2, None));
}

#[test]
fn a_late_success_is_recognised_without_another_start() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 1;
    world.run_until(48 * 3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.server.boot = no_override();
    world.run(200);
    assert_eq!((world.phase(), world.fault(), world.server.starts), (Phase::Provisioned, None, 1));
    assert!(world.events.contains(&"Recovered"));
}

#[test]
fn an_order_changed_after_an_ignored_start_is_tried_at_once() {
    let mut world = ignored();
    world.goal.order = Some(order("a", OTHER_IMAGE));
    world.run(180);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
    assert_eq!(world.server.runs, Runs::Image(OTHER_IMAGE.into()));
}

#[test]
fn an_order_changed_during_a_start_is_tried_when_that_start_was_ignored() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 1;
    world.run_to(Phase::Provisioning);
    world.goal.order = Some(order("a", OTHER_IMAGE));
    world.run_to(Phase::Provisioned);
    assert_eq!((world.server.starts, world.server.runs.clone()), (2, Runs::Image(OTHER_IMAGE.into())));
}

#[test]
fn a_server_that_comes_back_from_maintenance_after_an_ignored_start_is_not_cut_either() {
    let mut world = ignored();
    world.goal.road = crate::host::Road::Park;
    world.run(3600);
    world.goal.road = crate::host::Road::Manage;
    world.run(3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioning, Some(Kind::BootIgnored)));
    assert_eq!((world.acts().len(), world.server.starts), (0, 1));
}

#[test]
fn contrary_evidence_counts_from_when_the_system_started_not_from_power_on() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.post = 900;
    world.server.temper.ignores = 1;
    world.run_until(3600, |world| world.server.runs == Runs::Disk);
    let started = world.now;
    world.run_until(3600, |world| world.fault().is_some());
    assert!(world.now.duration_since(started) >= secs(300), "the BMC had no time to notice");
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
    while world.fault().is_none() && world.now < started + secs(3600) {
        world.run(290);
        world.crash();
    }
    assert_eq!(world.fault(), Some(Kind::BootIgnored));
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
        assert_eq!(world.notes(), ["OrderChanged"]);
        assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0));
        world.goal.order = Some(super::order("a", IMAGE));
        world.run(10);
        assert_eq!(world.notes(), [""; 0]);
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
fn that_a_boot_was_ignored_is_told_until_one_is_not() {
    let mut world = ignored();
    world.server.temper.ignores = 1;
    world.goal.reboot = Some("monday".into());
    world.run_until(3600, |world| world.server.starts == 2);
    world.run_until(3600, |world| world.fault() == Some(Kind::BootIgnored));
    assert!(!world.events.contains(&"Recovered"));
    world.goal.reboot = Some("tuesday".into());
    world.run_to(Phase::Provisioned);
    assert_eq!((world.fault(), world.server.starts), (None, 3));
}

#[test]
fn a_system_that_fetched_its_configuration_has_booted_whatever_the_bmc_shows() {
    let mut world = provisioning();
    world.pass(5);
    let kept = Seen { power: PowerState::On, boot: Some(BootOverride::cd_once(None)), ..Seen::default() };
    let (after, act) = (world.record().acted, world.outcome.clone());
    world.sight = Some(BmcSight { at: world.now, after, inputs: world.inputs.clone(), act, seen: Ok(kept) });
    assert_eq!(world.decide().record.phase, Phase::Provisioning);
    world.fetched = Some(world.now);
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

#[test]
fn a_configuration_that_was_fetched_before_the_server_had_power_is_no_sign_of_its_boot() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.post = 600;
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.fetched = Some(world.now - secs(60));
    world.run(120);
    assert_eq!((world.phase(), world.server.on), (Phase::Provisioning, true));
    // Also after a crash; the right server is seen to boot in the end.
    world.crash();
    world.run(120);
    assert_eq!(world.phase(), Phase::Provisioning);
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn a_configuration_that_was_fetched_counts_also_when_the_start_is_forgotten() {
    let mut world = provisioning();
    world.server.temper.post = 6000;
    world.run(60);
    world.fetched = Some(world.now);
    world.crash();
    world.status = None;
    world.run(5);
    assert_eq!(world.phase(), Phase::Provisioned);
}
