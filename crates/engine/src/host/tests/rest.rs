//! A fleet at rest: what it costs, and what it still does.

use jiff::{SignedDuration, Timestamp};

use super::{IMAGE, claimed, ordered, secs, server::Server, world::World};
use crate::{
    failure::Kind,
    hardware::Part,
    host::{Detachment, Goal, Phase, Presence, Road, Turn, pace},
    server::Scope,
};

/// Runs a day and answers how often something was stored and looked at.
fn a_day(mut world: World) -> (u32, u32) {
    world.run(1200);
    let (writes, looks) = (world.writes, world.looks);
    world.run(23 * 3600);
    (world.writes - writes, world.looks - looks)
}

#[test]
fn a_fleet_at_rest_costs_no_write_and_less_than_a_look_a_minute() {
    let parked = |road| {
        let mut world = World::provisioned();
        world.goal.road = road;
        world
    };
    let mut online = World::provisioned();
    online.goal.online = Some(true);
    let mut changed = World::provisioned();
    changed.goal.order = None;
    let table = vec![
        ("available", World::available()),
        ("waiting for an order", World::with(claimed("a"))),
        ("provisioned", World::provisioned()),
        ("kept on", online),
        ("order changed", changed),
        ("adopted", World::new(ordered("a", IMAGE), Server::running())),
        ("parked", parked(Road::Park)),
        ("detached", parked(Road::Detach(Detachment::AtOnce))),
        ("deletion waits for the consumer", parked(Road::Delete(crate::host::Deletion::CleanUp))),
    ];
    for (name, world) in table {
        let (writes, looks) = a_day(world);
        assert_eq!(writes, 0, "{name}");
        assert!(looks <= 23 * 60, "{name}: {looks} looks");
        assert!(looks >= 23 * 33 || name == "detached", "{name}: {looks} looks");
    }
}

#[test]
fn what_is_wrong_with_an_object_costs_no_write_until_something_changes() {
    let mut torn = World::provisioned();
    torn.goal = Goal::default();
    let mut duplicate = World::available();
    duplicate.rival = Some("default/first".into());
    let mut garbled = World::provisioned();
    garbled.annotation = Some("garbage".into());
    let mut elsewhere = World::provisioned();
    elsewhere.target = "elsewhere".into();
    #[allow(clippy::useless_vec, reason = "an array of worlds is too large for the stack")]
    for world in vec![torn, duplicate, garbled, elsewhere] {
        let (writes, looks) = a_day(world);
        assert_eq!((writes, looks), (0, 0));
    }
}

#[test]
fn a_fault_costs_one_write_per_try() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::Unreachable);
    let (writes, looks) = a_day(world);
    assert!(writes <= looks, "{writes} writes for {looks} looks");
    assert!(looks <= 23 * 6 + 1, "{looks} looks");
}

#[test]
fn servers_behind_one_bmc_take_turns_so_that_it_is_asked_as_often_as_for_one() {
    let start: Timestamp = "2026-11-18T08:00:00Z".parse().unwrap();
    for (of, looks) in [(2, 160), (4, 160), (6, 160), (60, 1440)] {
        let mut all = Vec::new();
        for place in 0..of {
            let mut at = start;
            let spread = u8::try_from(place * 97 % 256).unwrap();
            loop {
                let next = pace::rest(at, Some(Turn { place, of }), spread);
                assert!(next > at, "{next}");
                at = next;
                if at > start + SignedDuration::from_hours(4) {
                    break;
                }
                all.push(at);
            }
        }
        all.sort();
        assert!(all.len().abs_diff(looks) <= of as usize, "{of} servers: {} looks", all.len());
        let gap = all.windows(2).map(|pair| pair[1].duration_since(pair[0])).max().unwrap();
        assert!(gap <= secs(200), "{of} servers: no look for {gap}");
    }
    let mut world = World::available();
    world.goal.turn = Some(Turn { place: 1, of: 4 });
    let (writes, looks) = a_day(world);
    assert_eq!((writes, looks), (0, 230));
}

#[test]
fn a_look_at_rest_is_one_read() {
    let mut world = World::provisioned();
    world.run_until(600, |world| world.last.as_ref().is_some_and(|step| step.look.is_some()));
    assert_eq!(world.last.as_ref().unwrap().look, Some(Scope::Power));
}

#[test]
fn waits_for_others_are_brought_up_again_once_a_day() {
    let mut world = World::with(claimed("a"));
    world.run(3 * 24 * 3600 + 600);
    assert_eq!(world.events.iter().filter(|reason| **reason == "StillWaiting").count(), 3);
    let wait = world.record().wait.unwrap();
    assert!(wait.deadline > world.now && wait.deadline.duration_since(wait.since) == secs(24 * 3600));
}

#[test]
fn an_inspection_is_taken_again_once_when_asked_for() {
    for mut world in [World::available(), World::provisioned()] {
        world.goal.inspect = Some("again".into());
        world.run(300);
        assert_eq!(world.record().inspection.as_deref(), Some("again"));
        assert_eq!(world.events.iter().filter(|reason| **reason == "Inspected").count(), 1);
        assert_eq!(world.acts(), [""; 0]);
        let looks = world.looks;
        world.run(60);
        assert_eq!(world.looks, looks);
    }
}

#[test]
fn an_inspection_that_fails_is_tried_again_and_hurts_nobody() {
    let mut world = World::provisioned();
    world.goal.inspect = Some("again".into());
    world.server.temper.blind = Some(Kind::BadAnswer);
    world.run(600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(Kind::BadAnswer)));
    world.server.temper.blind = None;
    world.run(700);
    assert_eq!((world.fault(), world.record().inspection.as_deref()), (None, Some("again")));
}

#[test]
fn power_that_changes_by_itself_is_noticed_with_one_write() {
    let mut world = World::provisioned();
    world.consumer = Presence::Exists;
    world.run(300);
    let writes = world.writes;
    world.press(false);
    world.run(600);
    assert_eq!((world.writes - writes, world.acts().len()), (1, 0));
}

#[test]
fn parts_of_the_inventory_that_could_not_be_read_are_read_later() {
    let mut world = World::new(Goal::default(), Server::off());
    world.server.temper.unread = vec![Part::Firmware];
    world.run_to(Phase::Available);
    let unread = world.record().unread.unwrap();
    assert_eq!((unread.parts, unread.tries), (vec![Part::Firmware], 1));
    world.run(4 * 60);
    assert_eq!(world.record().unread.unwrap().tries, 1, "not at once");
    world.run(4 * 60);
    assert_eq!(world.record().unread.unwrap().tries, 2);
    world.server.temper.unread.clear();
    world.run(15 * 60);
    assert_eq!(world.record().unread, None);
    assert_eq!(world.fault(), None);
}

#[test]
fn a_look_that_nobody_answers_is_asked_for_again_within_minutes() {
    let parked = || {
        let mut world = World::provisioned();
        world.goal.road = Road::Park;
        world
    };
    let table = vec![
        ("new", World::new(Goal::default(), Server::running())),
        ("available", World::available()),
        ("ordered", World::with(ordered("a", IMAGE))),
        ("provisioned", World::provisioned()),
        ("parked", parked()),
    ];
    for (name, mut world) in table {
        // Whoever was to look is gone, and with it all that it had seen.
        world.sight = None;
        for _ in 0..3 {
            let next = world.decide();
            assert!(next.look.is_some() && next.acts.is_empty(), "{name}: {next:#?}");
            let again = next.again.unwrap_or_else(|| panic!("{name}: nobody asks again"));
            assert!(again > world.now && again <= world.now + secs(300), "{name}: {again}");
            world.now = again;
        }
    }
}

#[test]
fn an_inventory_that_takes_several_looks_is_gone_on_with_every_five_minutes() {
    let mut world = World::new(Goal::default(), Server::off());
    world.server.temper.unread = vec![Part::Drives];
    world.server.temper.goes_on = true;
    world.run_to(Phase::Available);
    for _ in 0..6 {
        let before = world.record().unread.unwrap().last;
        world.run(6 * 60);
        let unread = world.record().unread.unwrap();
        assert!(unread.last > before && unread.tries == 1, "it is not put off later and later: {unread:?}");
    }
}

#[test]
fn a_wait_for_the_brake_goes_on_counting_although_the_server_is_looked_at_meanwhile() {
    let mut world = World::provisioned();
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.braked = true;
    world.run_until(600, |world| world.wait().as_deref() == Some("FleetBrake"));
    let since = world.record().wait.unwrap().since;
    for _ in 0..20 {
        world.run(120);
        let wait = world.record().wait.unwrap();
        assert_eq!((wait.what.name(), wait.since), ("FleetBrake", since));
    }
}

#[test]
fn a_wait_for_the_override_goes_on_counting_after_a_restart_of_the_operator() {
    let mut world = World::available();
    world.server.temper.shows_used_override = true;
    world.goal = ordered("a", IMAGE);
    world.run_until(3600, |world| world.wait().as_deref() == Some("BootOverrideUnused"));
    let since = world.record().wait.unwrap().since;
    world.run(120);
    world.crash();
    world.run_until(3600, |world| world.fault() == Some(Kind::BootIgnored));
    assert!(world.now.duration_since(since) < secs(400), "{} after {since}", world.now);
}
