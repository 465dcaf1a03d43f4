//! A server that runs although nobody asked for it may be in use: no machine's claim cuts its power.

use super::{
    IMAGE, ordered,
    server::{Runs, Server},
    world::World,
};
use crate::{
    failure::Kind,
    host::{Author, Goal, Milestone, Phase, Presence, runs_unasked},
    server::PowerState,
};

fn by_machine(goal: Goal) -> Goal {
    Goal { author: Author::Claimer, ..goal }
}

/// A free host whose server is switched on after the last look at it.
fn switched_on() -> World {
    let mut world = World::available();
    world.press(true);
    world
}

fn assert_left_alone(world: &World, what: &str) {
    assert_eq!((world.phase(), world.fault()), (Phase::Preparing, Some(Kind::ServerRunning)), "{what}");
    assert_eq!((world.acts().len(), world.anchor().milestone), (0, Milestone::None), "{what}");
    assert!(world.server.on, "{what}");
}

#[test]
fn a_machine_is_refused_by_a_server_that_was_switched_on_after_the_last_look() {
    assert!(Kind::ServerRunning.refuses_claim());
    let mut world = switched_on();
    world.goal = by_machine(ordered("a", IMAGE));
    world.run(600);
    assert_left_alone(&world, "at once");
    let told = world.record().fault.unwrap().failure.to_string();
    assert!(told.contains("the power request: false") && told.contains("may be claimed while it runs"), "{told}");

    // The machine takes another host, and this one is as free as before.
    world.goal = Goal { release: Some("a".into()), ..Goal::default() };
    world.consumer = Presence::Exists;
    world.run_to(Phase::Available);
    world.run(600);
    assert_eq!((world.acts().len(), world.fault(), world.server.on), (0, None, true));
}

#[test]
fn only_who_means_it_takes_a_server_that_runs() {
    let machine = || by_machine(ordered("a", IMAGE));
    let cases = [
        ("a machine", machine(), false),
        ("a claim by hand", ordered("a", IMAGE), true),
        ("a machine where that is allowed", Goal { claimable_while_running: true, ..machine() }, true),
        ("a machine, and the owner wants it on", Goal { online: Some(true), ..machine() }, true),
        ("a machine, and the owner wants it off", Goal { online: Some(false), ..machine() }, true),
    ];
    for (who, goal, is_taken) in cases {
        let mut world = switched_on();
        world.goal = goal;
        if is_taken {
            world.run_to(Phase::Provisioned);
            assert_eq!(world.acts().first(), Some(&"PowerOff"), "{who}");
        } else {
            world.run(6 * 3600);
            assert_left_alone(&world, who);
        }
    }
}

#[test]
fn what_was_asked_before_the_last_release_was_not_asked() {
    let mut world = World::available();
    world.goal = Goal { online: Some(true), ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    world.goal = Goal { online: Some(true), ..Goal::default() };
    world.consumer = Presence::Gone;
    world.run_to(Phase::Available);
    world.press(true);
    world.log.clear();
    world.goal = by_machine(Goal { online: Some(true), ..ordered("b", IMAGE) });
    world.run(600);
    assert_left_alone(&world, "asked before the release");
    world.goal.power_id = Some("again".into());
    world.run_to(Phase::Provisioned);
}

#[test]
fn a_server_that_is_switched_on_while_its_claim_waits_is_left_alone() {
    let mut world = World::with(by_machine(ordered("a", IMAGE)));
    world.braked = true;
    world.run(300);
    world.press(true);
    world.braked = false;
    world.run(600);
    assert_left_alone(&world, "switched on while the fleet was frozen");
    // Whoever used it is done.
    world.press(false);
    world.run_to(Phase::Provisioned);
    assert_eq!(world.fault(), None);
}

#[test]
fn a_deployment_that_has_begun_is_never_refused() {
    let mut world = World::with(by_machine(ordered("a", IMAGE)));
    world.run_until(60, |world| world.anchor().milestone == Milestone::Armed);
    // Somebody switches it on, and the operator starts again without knowing of it.
    world.press(true);
    world.crash();
    world.status = None;
    world.run_to(Phase::Provisioned);
    world.run(120);
    assert_eq!((world.fault(), &world.server.runs), (None, &Runs::Image(IMAGE.into())));
}

#[test]
fn the_owner_of_an_adopted_host_may_have_it_provisioned_while_it_runs() {
    let mut world = World::new(by_machine(ordered("a", IMAGE)), Server::running());
    world.run_to(Phase::Provisioned);
    world.goal.provision = Some("a".into());
    world.braked = true;
    world.run(300);
    assert_eq!((world.phase(), world.goal.provision.clone()), (Phase::Preparing, None), "heeded, and it waits");
    world.crash();
    world.status = None;
    world.braked = false;
    world.run_to(Phase::Provisioned);
    assert_eq!((world.acts().first(), world.anchor().adopted), (Some(&"PowerOff"), false));
}

#[test]
fn which_servers_run_although_nobody_asked() {
    use PowerState::{Off, On, Paused, PoweringOff, PoweringOn, Unknown};
    for power in [On, PoweringOn, Paused] {
        assert!(runs_unasked(power, None, false), "{power:?}");
        assert!(!runs_unasked(power, None, true), "{power:?}, and it is allowed");
        assert!(!runs_unasked(power, Some(true), false) && !runs_unasked(power, Some(false), false), "{power:?}");
    }
    for power in [Off, PoweringOff, Unknown] {
        assert!(!runs_unasked(power, None, false), "{power:?}");
    }
}
