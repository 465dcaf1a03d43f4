//! From the first look to the power button: registering, inspecting, claims, orders, preparing.

use super::{
    IMAGE, OTHER_IMAGE, claimed, order, ordered, secs,
    server::{Runs, Server},
    world::{Mishap, World},
};
use crate::{
    failure::Kind,
    host::{Act, Ask, BrakeLimit, Goal, Milestone, Neutral, Phase, Road, Waiting, step},
    server::{BootMode, Scope},
};

#[test]
fn a_new_host_is_available_after_one_look_and_four_writes() {
    let mut world = World::new(Goal::default(), Server::off());
    world.reconcile(Mishap::Nothing);
    assert_eq!(world.phase(), Phase::Registering);
    assert_eq!(world.last.as_ref().unwrap().look, Some(Scope::Inventory));
    world.reconcile(Mishap::Nothing);
    assert_eq!(world.phase(), Phase::Available);
    assert!(world.record().inspected);
    assert_eq!(world.record().target.as_deref(), Some("bmc"));
    assert_eq!(world.anchor().uuid.as_deref(), Some("u-1"));
    assert_eq!((world.looks, world.writes), (1, 4));
    assert_eq!(world.events, ["Inspecting", "Available"]);
}

#[test]
fn a_running_server_that_nobody_claims_keeps_running() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run(24 * 3600);
    assert_eq!(world.phase(), Phase::Available);
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn a_claim_without_an_order_waits_for_one() {
    let mut world = World::with(claimed("a"));
    world.run(600);
    assert_eq!(world.phase(), Phase::Preparing);
    assert_eq!(world.wait().as_deref(), Some("WaitingForBootInfo"));
    assert_eq!(world.anchor().milestone, Milestone::None);
    assert_eq!(world.acts(), [""; 0]);
    world.goal.order = Some(order("a", IMAGE));
    world.run_to(Phase::Provisioned);
}

#[test]
fn a_host_that_is_claimed_before_its_first_look_is_provisioned_and_not_adopted() {
    let mut world = World::new(Goal::default(), Server::off());
    world.reconcile(Mishap::Nothing);
    world.goal = ordered("a", IMAGE);
    world.run_to(Phase::Provisioned);
    assert!(!world.anchor().adopted);
}

#[test]
fn a_server_that_is_off_gets_the_image_then_the_override_then_power() {
    let mut world = World::with(ordered("a", IMAGE));
    world.goal.boot_mode = Some(BootMode::Uefi);
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["InsertMedia", "SetBoot", "PowerOn"]);
    assert_eq!(world.log[0], Act::InsertMedia { url: IMAGE.into() });
    let Act::SetBoot(wish) = &world.log[1] else { panic!("{:?}", world.log) };
    assert_eq!(wish.mode, Some(BootMode::Uefi));
    world.run(60);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn a_running_server_is_switched_off_hard_before_it_is_prepared() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run_to(Phase::Available);
    world.goal = ordered("a", IMAGE);
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["PowerOff", "InsertMedia", "SetBoot", "PowerOn"]);
}

#[test]
fn an_image_that_lies_in_the_drive_is_ejected_even_if_it_is_the_same() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.media = Some(IMAGE.into());
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["EjectMedia", "InsertMedia", "SetBoot", "PowerOn"]);
}

#[test]
fn milestones_are_stored_before_what_they_announce() {
    let mut world = World::with(ordered("a", IMAGE));
    let mut seen = Vec::new();
    while world.anchors.last().is_none_or(|text| !text.contains("provisioned")) {
        world.reconcile(Mishap::Nothing);
        let entry = (world.anchor().milestone, world.log.last().map(Act::name));
        if seen.last() != Some(&entry) {
            seen.push(entry);
        }
        world.pass(1);
    }
    let expected = [
        (Milestone::None, None),
        (Milestone::Armed, Some("SetBoot")),
        (Milestone::Written, Some("PowerOn")),
        (Milestone::Provisioned, Some("PowerOn")),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn the_brake_is_asked_for_a_deployment_and_for_a_running_server() {
    for (server, expected) in [(Server::off(), None), (Server::running(), Some(Ask::Disrupt))] {
        let mut world = World::new(Goal::default(), server);
        world.run_to(Phase::Available);
        world.goal = ordered("a", IMAGE);
        let mut sight = world.sight_now();
        sight.now = sight.bmc.as_ref().unwrap().at + secs(1);
        let first = step(&world.goal, world.remembered(), &sight);
        assert_eq!((first.ask, first.acts.len()), (Some(Ask::Deploy), 0));
        sight.granted.push(Ask::Deploy);
        let second = step(&world.goal, world.remembered(), &sight);
        assert_eq!(second.ask, expected);
        assert_eq!(second.acts.is_empty(), expected.is_some());
    }
}

#[test]
fn what_the_brake_holds_waits_and_says_so() {
    let mut world = World::with(ordered("a", IMAGE));
    world.braked = true;
    world.run(3600);
    assert_eq!(world.acts(), [""; 0]);
    let wait = world.record().wait.unwrap();
    assert_eq!(wait.what, Waiting::FleetBrake { limit: Some(BrakeLimit::Frozen) });
    assert_eq!(
        wait.what.tell(&Neutral),
        "The fleet is frozen: nothing is switched off, reset, wiped or deployed (--freeze)."
    );
    world.braked = false;
    world.run_to(Phase::Provisioned);
}

#[test]
fn a_claim_that_ends_while_the_brake_holds_leaves_the_server_as_it_was() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run_to(Phase::Available);
    world.goal = ordered("a", IMAGE);
    world.braked = true;
    world.run(60);
    world.goal = Goal::default();
    world.run(600);
    assert_eq!(world.phase(), Phase::Available);
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn an_image_that_the_bmc_refuses_is_tried_again_and_a_corrected_order_at_once() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.refuses = Some(Kind::MediaRefused);
    world.run_until(600, |world| world.fault() == Some(Kind::MediaRefused));
    let fault = world.record().fault.unwrap();
    assert_eq!(fault.next_try.duration_since(fault.last).as_secs(), 60);
    world.run(24 * 3600);
    assert_eq!(world.phase(), Phase::Preparing);
    let count = world.record().fault.unwrap().count;
    // 1, 2, 4, … 30 minutes: about fifty tries a day.
    assert!((45..60).contains(&count), "{count} tries");
    assert_eq!(world.acts().len(), usize::try_from(count).unwrap(), "every try counts, and nothing else");

    world.server.temper.refuses = None;
    world.goal.order = Some(order("a", OTHER_IMAGE));
    let before = world.now;
    world.run_to(Phase::Provisioned);
    assert!(world.now.duration_since(before).as_secs() < 120);
    assert_eq!(world.fault(), None);
    world.run(60);
    assert_eq!(world.server.runs, Runs::Image(OTHER_IMAGE.into()));
}

#[test]
fn a_corrected_order_is_tried_at_once_also_after_a_crash_between_anchor_and_status() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.refuses = Some(Kind::MediaRefused);
    world.run(3600);
    world.server.temper.refuses = None;
    world.goal.order = Some(order("a", OTHER_IMAGE));
    world.reconcile(Mishap::CrashBeforeStatus);
    let before = world.now;
    world.run_to(Phase::Provisioned);
    assert!(world.now.duration_since(before).as_secs() < 120);
}

#[test]
fn an_image_that_the_bmc_does_not_show_is_a_fault_and_tried_again() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.hides_media = true;
    world.run_until(600, |world| world.fault() == Some(Kind::NotApplied));
    assert_eq!(world.phase(), Phase::Preparing);
    world.server.temper.hides_media = false;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.fault(), None);
}

#[test]
fn the_image_of_a_withdrawn_order_is_not_started_by_the_power_policy() {
    let mut world = World::with(ordered("a", IMAGE));
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.goal.order = None;
    world.goal.online = Some(true);
    world.run(3600);
    assert_eq!(world.phase(), Phase::Preparing);
    assert!(!world.server.on);
    assert_eq!(world.wait().as_deref(), Some("WaitingForBootInfo"));
}

#[test]
fn somebody_who_powers_the_server_on_meanwhile_is_overruled() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.slow = 10;
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.press(true);
    world.run_to(Phase::Provisioned);
    world.run(60);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn a_withdrawn_order_takes_its_faults_along() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.refuses = Some(Kind::Unsupported);
    world.run_until(60, |world| world.fault() == Some(Kind::Unsupported));
    world.goal.order = None;
    world.run(60);
    assert_eq!((world.phase(), world.fault()), (Phase::Preparing, None));
}

#[test]
fn a_host_that_was_claimed_before_anybody_looked_at_it_is_met_first() {
    let mut world = World::new(Goal { road: Road::Park, ..Goal::default() }, Server::off());
    world.run(60);
    world.goal = ordered("a", IMAGE);
    world.run_to(Phase::Provisioned);
    assert!(world.record().inspected);
}

#[test]
fn a_server_without_a_virtual_cd_drive_is_refused_before_anything_is_done_to_it() {
    let mut world = World::new(Goal::default(), Server::running());
    world.server.temper.no_drive = true;
    world.run_to(Phase::Available);
    assert!(!world.events.contains(&"NoBootMethod"), "the network may do: {:?}", world.events);
    world.goal = ordered("a", IMAGE);
    world.run(6 * 3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Preparing, Some(Kind::NoVirtualMedia)));
    assert!(Kind::NoVirtualMedia.refuses_claim());
    assert_eq!((world.acts().len(), world.record().anchor.milestone), (0, Milestone::None));
    assert!(world.server.on);
    // A BMC that had just started shows its drives later.
    world.server.temper.no_drive = false;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.fault(), None);
}

#[test]
fn a_server_without_a_way_to_boot_is_told_about_when_it_is_inspected() {
    let mut world = World::new(Goal::default(), Server::running());
    world.server.temper.no_drive = true;
    world.server.temper.no_network = true;
    world.run_to(Phase::Available);
    assert!(world.events.contains(&"NoBootMethod"), "{:?}", world.events);
}

#[test]
fn an_image_is_recognised_by_the_end_of_its_path() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.odd_names = true;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["InsertMedia", "SetBoot", "PowerOn"]);
    world.run(60);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}
