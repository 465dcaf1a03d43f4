//! What other dialects ask of a host: each wish does what it says, and no more.

use super::{
    IMAGE, claim, order, ordered, secs,
    server::{Runs, Server},
    world::{ITSELF, World},
};
use crate::host::{Claim, Deletion, Goal, Manner, Milestone, Phase, Presence, Restart, Road};

/// A host that ordered for itself.
fn ordered_by_itself() -> Goal {
    let claim = Claim { id: ITSELF.into(), consumer: None };
    Goal { claim: Some(claim), order: Some(order(ITSELF, IMAGE)), ..Goal::default() }
}

#[test]
fn an_order_without_a_consumer_is_carried_out_and_ends_when_the_object_says_so() {
    let mut world = World::available();
    world.goal = ordered_by_itself();
    // Whoever is looked up is nobody that matters here.
    world.consumer = Presence::Exists;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy());
}

#[test]
fn a_host_that_others_look_after_follows_its_power_only() {
    let mut world = World::new(Goal::default(), Server::off());
    world.server.on = true;
    world.server.runs = Runs::Disk;
    world.goal = Goal { external: true, ..Goal::default() };
    world.run_to(Phase::Provisioned);
    assert!(world.anchor().external && world.anchor().claim.is_none());
    world.run(3600);
    assert_eq!((world.acts(), world.server.on), (vec![], true), "nothing is asked of its power");

    // A claim and an order are for nothing as long as others look after it.
    world.goal = Goal { external: true, ..ordered("a", IMAGE) };
    world.run(3600);
    assert_eq!(world.acts(), [""; 0]);

    world.goal = Goal { external: true, online: Some(false), power_is_policy: true, ..Goal::default() };
    world.run(600);
    assert!(!world.server.on);
    world.goal.online = Some(true);
    world.run(600);
    assert!(world.server.on);
    world.goal.reboot = Some("now".into());
    world.run(600);
    assert_eq!(world.acts().last(), Some(&"Restart"));

    // It is forgotten without a word, also if it was us who gave it power.
    let mut deleted = world.clone();
    deleted.log.clear();
    deleted.goal.road = Road::Delete(Deletion::CleanUp);
    deleted.run(600);
    assert!(deleted.finished && deleted.server.on && deleted.acts().is_empty());

    // Ours again: met anew, and left as it is.
    world.log.clear();
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert_eq!((world.acts().len(), world.server.on, world.anchor().external), (0, true, false));
}

#[test]
fn a_host_in_use_is_not_given_to_others() {
    let mut world = World::provisioned();
    world.goal.external = true;
    world.run(3600);
    assert!(!world.anchor().external && world.acts().is_empty());
}

#[test]
fn a_server_is_held_off_for_as_long_as_somebody_wants_it() {
    for (manner, first) in [(Manner::Soft, "ShutDown"), (Manner::Hard, "PowerOff")] {
        for policy in [true, false] {
            let mut world = World::provisioned();
            world.goal.online = Some(true);
            world.goal.power_is_policy = policy;
            world.run(300);
            world.log.clear();
            world.goal.held_off = Some(manner);
            world.goal.reboot = Some("while it is held".into());
            world.run(1800);
            assert_eq!(world.acts(), [first], "{manner:?}");
            assert!(!world.server.on);
            world.goal.held_off = None;
            world.run(600);
            assert_eq!(world.acts(), [first, "PowerOn"], "on again, and not restarted on top of that");
            assert_eq!(world.server.runs, Runs::Disk, "the node comes back");
        }
    }
}

#[test]
fn a_restart_is_a_reset_or_off_then_on() {
    for (restart, acts) in [
        (Restart::Reset, vec!["Restart"]),
        (Restart::OffThenOn(Manner::Soft), vec!["ShutDown", "PowerOn"]),
        (Restart::OffThenOn(Manner::Hard), vec!["PowerOff", "PowerOn"]),
    ] {
        for crash in [false, true] {
            let mut world = World::provisioned();
            world.goal.restart = restart;
            world.goal.reboot = Some("now".into());
            world.run_until(600, |world| !world.acts().is_empty());
            if crash {
                // The second half is not forgotten, whatever is.
                world.status = None;
                world.crash();
            }
            world.run(1800);
            if restart != Restart::Reset || !crash {
                // Who has forgotten that it was asked to shut down is asked once more.
                let mut done = world.acts();
                done.dedup();
                assert_eq!(done, acts, "{restart:?} {crash}");
            }
            assert!(world.server.on && world.anchor().restarting.is_none(), "{restart:?} {crash}");
            world.run(24 * 3600);
            assert!(world.acts().len() <= 3, "once");
        }
    }
}

#[test]
fn a_restart_that_is_taken_back_halfway_does_not_leave_the_server_off() {
    let mut world = World::provisioned();
    world.goal.restart = Restart::OffThenOn(Manner::Hard);
    world.goal.reboot = Some("now".into());
    world.run_until(600, |world| !world.server.on);
    world.goal.reboot = None;
    world.run(1800);
    assert!(world.server.on && world.anchor().restarting.is_none(), "{:?} {:#?}", world.acts(), world.record());
}

#[test]
fn a_server_that_may_never_be_switched_off_is_restarted_instead() {
    let never_off = |goal: Goal| Goal { never_off: true, ..goal };
    let mut world = World::available();
    world.press(true);
    world.pass(120);
    world.goal = never_off(ordered("a", IMAGE));
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
    assert!(!world.acts().iter().any(|act| ["PowerOff", "ShutDown"].contains(act)), "{:?}", world.acts());
    assert!(world.acts().contains(&"Restart"));

    world.log.clear();
    world.goal.online = Some(false);
    world.goal.power_is_policy = true;
    world.run(3600);
    assert_eq!((world.acts(), world.notes()), (vec![], vec!["NeverOff"]));
    world.goal.online = None;
    world.goal.restart = Restart::OffThenOn(Manner::Hard);
    world.goal.reboot = Some("now".into());
    world.run(600);
    assert_eq!(world.acts(), ["Restart"]);

    world.log.clear();
    world.goal = never_off(Goal::default());
    world.consumer = Presence::Gone;
    world.run_to(Phase::Available);
    assert!(world.server.on, "released without a power-off");
    assert!(!world.acts().contains(&"PowerOff"));
}

#[test]
fn a_host_without_inventory_is_met_by_a_look_at_its_power() {
    let mut world = World::new(Goal::default(), Server::off());
    world.goal.without_inventory = true;
    world.run_to(Phase::Available);
    assert!(world.record().bare);
    world.goal = Goal { without_inventory: true, ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    // Whoever wants it later gets it.
    world.goal.without_inventory = false;
    world.run(600);
    assert!(!world.record().bare);
}

#[test]
fn maintenance_may_want_the_server_off() {
    let mut world = World::provisioned();
    world.goal.road = Road::ParkOff;
    world.run(1800);
    assert_eq!((world.phase(), world.acts(), world.server.on), (Phase::Parked, vec!["ShutDown"], false));
    world.press(true);
    world.run(1800);
    assert!(!world.server.on, "it is kept off");
    world.goal.road = Road::Park;
    world.log.clear();
    world.press(true);
    world.run(1800);
    assert_eq!((world.acts(), world.server.on), (vec![], true), "watched, not touched");
    world.goal.road = Road::Manage;
    world.run(600);
    assert_eq!((world.phase(), world.acts()), (Phase::Provisioned, vec![]));
}

#[test]
fn a_power_policy_outlives_claims_and_releases() {
    let mut world = World::available();
    world.goal = Goal { online: Some(true), power_is_policy: true, ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    world.goal = Goal { online: Some(true), power_is_policy: true, ..Goal::default() };
    world.consumer = Presence::Gone;
    world.run_to(Phase::Available);
    assert!(world.acts().contains(&"PowerOff"), "a release switches the server off");
    world.run(600);
    assert!(world.server.on && world.server.runs == Runs::Disk, "and then the policy goes on");
    world.goal.online = Some(false);
    world.run(600);
    assert!(!world.server.on);
}

#[test]
fn quarantine_begins_when_nobody_uses_the_host_any_more() {
    for mut world in [World::new(Goal::default(), Server::off()), World::available()] {
        world.goal.quarantine = true;
        world.run(3600);
        assert_eq!((world.phase(), world.acts()), (Phase::Quarantined, vec![]));
        world.goal = Goal { quarantine: true, ..ordered("a", IMAGE) };
        world.run(3600);
        assert_eq!((world.phase(), world.anchor().milestone), (Phase::Quarantined, Milestone::None), "nobody gets it");
        world.goal.quarantine = false;
        world.run_to(Phase::Provisioned);
    }
    let mut world = World::provisioned();
    world.goal.quarantine = true;
    world.run(3600);
    assert_eq!((world.phase(), world.acts()), (Phase::Provisioned, vec![]), "who uses it is not disturbed");
    world.goal.claim = None;
    world.goal.order = None;
    world.consumer = Presence::Gone;
    world.run_to(Phase::Quarantined);
    assert!(world.server.is_tidy(), "it is cleaned up first");
    let since = world.now;
    world.goal.claim = Some(claim("b"));
    world.run(3600);
    assert!(world.phase() == Phase::Quarantined && world.now >= since + secs(3600));
}
