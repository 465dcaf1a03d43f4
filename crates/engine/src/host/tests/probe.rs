//! Servers that are looked into by a probe before they are free.

use super::{
    claimed, probe, probed, secs,
    server::{Runs, Server},
    world::World,
};
use crate::{
    failure::Kind,
    host::{Goal, Maintenance, Newcomer, Phase, Presence, Road},
};

fn world() -> World {
    World::new(probed("first"), Server::off())
}

/// The probe runs and has said nothing yet.
fn silent() -> World {
    let mut world = world();
    world.silent_probe = true;
    world.run(300);
    assert_eq!((world.phase(), world.wait().as_deref()), (Phase::Inspecting, Some("Probing")));
    assert_eq!((&world.server.runs, world.anchor().probing), (&Runs::Network, true));
    world
}

#[test]
fn a_new_server_boots_its_probe_reports_and_is_off_and_free_afterwards() {
    let mut world = world();
    world.run_to(Phase::Available);
    assert_eq!(world.acts(), ["SetBoot", "PowerOn", "ShutDown"]);
    assert!(world.server.is_tidy() && world.record().probed);
    let anchor = world.anchor();
    assert_eq!(
        (anchor.probe.as_deref(), anchor.probing, anchor.powered_on, anchor.undo),
        (Some("first"), false, false, None)
    );
    assert!(world.told.iter().all(|told| told.contains("probe of the server")), "{:?}", world.told);
    world.run(7200);
    assert_eq!(world.acts().len(), 3, "once");
}

#[test]
fn nothing_is_started_before_the_gate_opens() {
    let mut world = world();
    world.goal.probe = Some(probe("first", false));
    world.run(7200);
    assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("WaitingForBootPermission")));
    world.goal.probe = Some(probe("first", true));
    world.run_to(Phase::Available);
}

#[test]
fn a_server_that_runs_is_not_started_for_a_probe() {
    for newcomer in [Newcomer::AwaitOff, Newcomer::Register] {
        let mut world = World::new(Goal { newcomer, ..probed("first") }, Server::running());
        world.run(7200);
        assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("WaitingForServerOff")), "{newcomer:?}");
        world.press(false);
        world.run_to(Phase::Available);
    }
    let mut world = World::new(Goal { newcomer: Newcomer::SwitchOff, ..probed("first") }, Server::running());
    world.run_to(Phase::Available);
    assert_eq!(world.acts(), ["ShutDown", "SetBoot", "PowerOn", "ShutDown"]);
}

#[test]
fn somebody_who_switches_the_server_on_before_the_probe_is_left_alone() {
    let mut world = world();
    world.goal.probe = Some(probe("first", false));
    world.run(300);
    world.press(true);
    world.goal.probe = Some(probe("first", true));
    world.run(7200);
    // What was set on an older look is undone, and the power is left alone.
    assert_eq!((world.acts(), world.wait().as_deref()), (vec!["SetBoot", "ClearBoot"], Some("WaitingForServerOff")));
    assert!(world.server.on && world.server.boot.is_clear() && !world.anchor().probing);
}

#[test]
fn a_probe_that_never_reports_is_a_fault_and_is_started_again_at_growing_intervals() {
    let mut world = silent();
    world.run(1800);
    assert_eq!(world.fault(), Some(Kind::ProbeSilent));
    world.log.clear();
    world.run(24 * 3600);
    assert_eq!(world.fault(), Some(Kind::ProbeSilent));
    let starts = world.acts().iter().filter(|act| **act == "PowerOn").count();
    assert!((20..=48).contains(&starts), "{starts}");
    world.silent_probe = false;
    world.run_to(Phase::Available);
    assert!(world.fault().is_none() && world.server.is_tidy());
}

#[test]
fn a_report_that_comes_late_counts() {
    let mut world = silent();
    world.run_until(3600, |world| world.fault() == Some(Kind::ProbeSilent));
    world.log.clear();
    world.silent_probe = false;
    world.run_to(Phase::Available);
    assert_eq!(world.acts(), ["ShutDown"], "it was not started again");
    assert_eq!(world.fault(), None);
}

#[test]
fn a_probe_whose_server_loses_power_is_tried_again() {
    let mut world = silent();
    world.press(false);
    world.run_until(600, |world| world.fault() == Some(Kind::ProbeSilent));
    world.silent_probe = false;
    world.run_to(Phase::Available);
    assert_eq!(world.fault(), None);
}

#[test]
fn a_report_of_an_earlier_start_does_not_count() {
    let mut world = world();
    world.silent_probe = true;
    world.run_until(600, |world| world.status.is_some() && world.anchor().probing);
    world.probed = Some(world.now - secs(3600));
    world.run(600);
    assert_eq!((world.phase(), world.record().probed), (Phase::Inspecting, false));
}

#[test]
fn a_claim_ends_a_probe_and_gets_the_server() {
    let mut world = silent();
    world.goal = Goal { claim: claimed("a").claim, ..world.goal.clone() };
    world.log.clear();
    world.run(1200);
    assert_eq!((world.acts(), world.server.on, world.anchor().probing), (vec!["ShutDown"], false, false));
    assert_eq!(world.phase(), Phase::Preparing);
}

#[test]
fn a_lost_status_ends_a_probe_and_begins_another() {
    let mut world = silent();
    world.status = None;
    world.goal.probe = Some(probe("second", true));
    world.silent_probe = false;
    world.run_to(Phase::Available);
    assert_eq!(world.anchor().probe.as_deref(), Some("second"));
    assert!(world.server.is_tidy());
}

#[test]
fn a_probe_that_is_not_wanted_any_more_is_switched_off() {
    let mut world = silent();
    world.goal.probe = None;
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy() && !world.anchor().probing);
}

#[test]
fn a_deleted_host_switches_its_probe_off() {
    let mut world = silent();
    world.goal.road = Road::Delete(crate::host::Deletion::CleanUp);
    world.consumer = Presence::Gone;
    world.run(3600);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn a_server_whose_probe_does_not_report_may_be_what_needs_maintenance() {
    let mut world = silent();
    world.goal.road = Road::Lend;
    world.goal.maintenance = Maintenance { online: Some(false), boot: None };
    world.run(600);
    assert_eq!(world.phase(), Phase::Inspecting, "it may still report");
    world.run(1800);
    assert_eq!((world.phase(), world.server.on, world.fault()), (Phase::Lent, false, None));
    world.silent_probe = false;
    world.goal.road = Road::Manage;
    world.goal.probe = Some(probe("second", true));
    world.run_to(Phase::Available);
    assert_eq!(world.anchor().probe.as_deref(), Some("second"));
}

#[test]
fn a_frozen_fleet_starts_no_probe() {
    let mut world = world();
    world.braked = true;
    world.run(3600);
    assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("FleetBrake")));
}

#[test]
fn a_server_that_is_replaced_while_its_probe_runs_is_left_alone_and_looked_into_itself() {
    let mut world = silent();
    world.log.clear();
    world.server.uuid = Some("u-2".into());
    world.run(600);
    assert_eq!((world.acts(), world.fault()), (vec![], Some(Kind::SystemChanged)));
    // Its owner says that this was intended. It runs, so somebody may use it.
    world.goal.inspect = Some("replaced".into());
    world.run(3600);
    assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("WaitingForServerOff")));
    world.press(false);
    world.silent_probe = false;
    world.run_to(Phase::Available);
    assert_eq!(world.anchor().uuid.as_deref(), Some("u-2"));
}
