//! Parting with a host.

use super::{
    IMAGE, claimed, ordered, secs,
    server::{Runs, Server},
    world::{Mishap, World},
};
use crate::{
    failure::Kind,
    host::{Author, Deletion, Detachment, Goal, Milestone, Neutral, Phase, Presence, Road},
};

const TIDY: Road = Road::Delete(Deletion::CleanUp);

fn deleted(mut world: World, farewell: Deletion) -> World {
    world.goal = Goal { road: Road::Delete(farewell), ..Goal::default() };
    world.consumer = Presence::Gone;
    world
}

#[test]
fn a_host_that_we_did_nothing_to_is_forgotten_at_once() {
    for server in [Server::off(), Server::running()] {
        let fresh = World::new(Goal::default(), server.clone());
        let mut available = World::new(Goal::default(), server.clone());
        available.run_to(Phase::Available);
        let mut dead = World::new(Goal::default(), server);
        dead.server.temper.blind = Some(Kind::Unreachable);
        dead.run(60);
        for world in [fresh, available, dead] {
            let mut world = deleted(world, Deletion::CleanUp);
            world.run(5);
            assert!(world.finished);
            assert_eq!(world.acts(), [""; 0]);
        }
    }
}

#[test]
fn a_provisioned_host_is_switched_off_and_cleaned_up_first() {
    let mut world = deleted(World::provisioned(), Deletion::CleanUp);
    world.run(300);
    assert!(world.finished && world.server.is_tidy());
    assert_eq!(world.acts(), ["PowerOff", "EjectMedia"]);
}

#[test]
fn a_deletion_that_nobody_went_on_with_for_long_is_tried_once_more() {
    // The host was paused, or the operator was down; the BMC answers again, or it does not.
    for answers in [true, false] {
        let mut world = World::provisioned();
        world.server.temper.blind = Some(Kind::Unreachable);
        let mut world = deleted(world, Deletion::CleanUp);
        world.run(120);
        assert!(!world.finished && world.last.as_ref().unwrap().record.fault.is_some());
        world.now += secs(3600);
        world.server.temper.blind = Some(Kind::Unreachable).filter(|_| !answers);
        world.run(300);
        assert_eq!((world.finished, world.server.is_tidy()), (true, answers), "{:#?}", world.last);
    }
}

#[test]
fn a_deletion_at_any_moment_of_a_deployment_ends_tidy() {
    for turn in 0..30 {
        let mut world = World::with(ordered("a", IMAGE));
        for _ in 0..turn {
            let next = world.reconcile(Mishap::Nothing);
            world.now = world.now.max(next);
        }
        let mut world = deleted(world, Deletion::CleanUp);
        world.run(600);
        assert!(world.finished && world.server.is_tidy(), "after {turn} turns: {:#?}", world.last);
    }
}

#[test]
fn a_deletion_waits_for_the_consumer_and_leaves_the_node_running() {
    let mut world = World::provisioned();
    world.goal.road = TIDY;
    world.run(48 * 3600);
    assert_eq!(world.wait().as_deref(), Some("WaitingForConsumerRelease"));
    assert_eq!((world.phase(), world.finished, world.acts().len()), (Phase::Deleting, false, 0));
    world.goal.claim = None;
    world.run(3600);
    assert_eq!((world.fault(), world.finished, world.acts().len()), (Some(Kind::ConsumerMismatch), false, 0));
    world.consumer = Presence::Leaving;
    world.run(300);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn a_hiccup_after_a_long_wait_for_the_consumer_does_not_end_the_tidying() {
    let mut world = World::provisioned();
    world.goal.road = TIDY;
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(7200);
    world.goal.claim = None;
    world.consumer = Presence::Gone;
    world.run(60);
    assert!(!world.finished);
    world.server.temper.blind = None;
    world.run(300);
    assert!(world.finished && world.server.is_tidy(), "{:?}", world.server);
}

#[test]
fn refused_credentials_are_not_tried_while_a_deletion_waits_for_the_consumer() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::AuthenticationFailed);
    world.run(120);
    let looks = world.looks;
    world.goal.road = TIDY;
    world.run(300);
    assert_eq!(world.looks, looks);
}

#[test]
fn a_dead_bmc_does_not_block_a_deletion_for_ever() {
    for kind in
        [Kind::Unreachable, Kind::BreakerOpen, Kind::AuthenticationFailed, Kind::SecretNotFound, Kind::Unsupported]
    {
        let mut world = deleted(World::provisioned(), Deletion::CleanUp);
        world.server.temper.blind = Some(kind);
        let (before, looks) = (world.now, world.looks);
        while !world.finished && world.now < before + secs(3600) {
            world.run(5);
        }
        let took = world.now.duration_since(before);
        assert!(world.finished && took <= secs(620), "{kind:?}: {took}");
        assert!(world.looks - looks <= 6, "{kind:?}: {} looks", world.looks - looks);
        assert!(world.events.contains(&"LeftAsItIs"), "{kind:?}");
        assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
    }
}

#[test]
fn a_bmc_that_refuses_to_tidy_does_not_block_a_deletion_for_ever() {
    let mut world = deleted(World::provisioned(), Deletion::CleanUp);
    world.server.temper.stuck = true;
    world.run(1200);
    assert!(world.finished && world.events.contains(&"LeftAsItIs"));
}

#[test]
fn a_power_off_that_nobody_went_on_with_for_long_is_sent_once_more() {
    for obeys in [true, false] {
        let mut world = deleted(World::provisioned(), Deletion::CleanUp);
        world.server.temper.stuck = true;
        world.run(90);
        assert!(!world.finished && world.acts().contains(&"PowerOff"));
        let sent = world.acts().len();
        world.now += secs(3600);
        world.server.temper.stuck = !obeys;
        world.run(300);
        assert!(world.finished && world.acts()[sent..].contains(&"PowerOff"), "{:#?}", world.last);
        assert_eq!(world.server.is_tidy(), obeys, "{:?}", world.acts());
    }
}

#[test]
fn a_bmc_that_was_dead_long_before_the_deletion_gets_its_tries_too() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(6 * 3600);
    let mut world = deleted(world, Deletion::CleanUp);
    world.run(30);
    assert!(!world.finished);
    world.server.temper.blind = None;
    world.run(300);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn a_corrected_secret_is_tried_also_in_a_deletion() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::AuthenticationFailed);
    world.run(48 * 3600);
    let mut world = deleted(world, Deletion::CleanUp);
    world.server.temper.blind = None;
    world.inputs = "corrected".into();
    world.run(300);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn an_adopted_host_is_left_as_it_is() {
    let mut world = World::new(ordered("a", IMAGE), Server::running());
    world.run(60);
    let mut world = deleted(world, Deletion::CleanUp);
    world.run(60);
    assert!(world.finished);
    assert_eq!((world.server.runs, world.log.len()), (Runs::Disk, 0));
}

#[test]
fn what_we_switched_on_is_switched_off_and_its_media_are_not_ours() {
    let mut world = World::available();
    world.server.media = Some("https://elsewhere.example/rescue.iso".into());
    world.goal.online = Some(true);
    world.run(60);
    assert!(world.server.on);
    let mut world = deleted(world, Deletion::CleanUp);
    world.run(120);
    assert!(world.finished && !world.server.on);
    assert_eq!(world.acts(), ["PowerOn", "PowerOff"]);
    assert!(world.server.media.is_some());
}

#[test]
fn what_others_switched_on_after_we_had_switched_it_off_stays_on() {
    let mut world = World::available();
    world.goal.online = Some(true);
    world.run(120);
    world.goal.online = Some(false);
    world.run(300);
    world.goal.online = None;
    world.press(true);
    world.run(300);
    let mut world = deleted(world, Deletion::CleanUp);
    world.run(120);
    assert!(world.finished && world.server.on);
}

#[test]
fn force_and_move_do_nothing_to_the_server() {
    for farewell in [Deletion::Force, Deletion::Move] {
        for garbled in [false, true] {
            let mut world = World::provisioned();
            if garbled {
                world.annotation = Some("garbage".into());
            }
            world.goal.road = Road::Delete(farewell);
            world.reconcile(Mishap::Nothing);
            assert!(world.finished);
            assert_eq!(world.acts(), [""; 0]);
            assert_eq!(world.events.contains(&"ForcedDeletion"), farewell == Deletion::Force);
        }
    }
}

#[test]
fn a_duplicate_is_forgotten_without_touching_the_other_ones_server() {
    let mut world = World::provisioned();
    world.rival = Some("default/first".into());
    world.run(60);
    assert_eq!(world.fault(), Some(Kind::DuplicateHost));
    let mut world = deleted(world, Deletion::CleanUp);
    world.run(60);
    assert!(world.finished && world.events.contains(&"LeftAsItIs"));
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn a_deletion_after_the_address_was_changed_leaves_both_servers_alone() {
    let mut world = World::provisioned();
    world.target = "elsewhere".into();
    world.inputs = "elsewhere".into();
    world.server.temper.blind = Some(Kind::AuthenticationFailed);
    world.goal.road = TIDY;
    let looks = world.looks;
    world.run(600);
    assert_eq!(world.looks, looks, "not ours to look at");
    assert_eq!((world.finished, world.wait().as_deref()), (false, Some("WaitingForConsumerRelease")));
    let mut world = deleted(world, Deletion::CleanUp);
    world.run(60);
    assert!(world.finished && world.events.contains(&"LeftAsItIs"));
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn a_parked_or_detached_host_can_be_deleted() {
    for road in [Road::Park, Road::Detach(Detachment::AtOnce)] {
        let mut world = World::provisioned();
        world.goal.road = road;
        world.run(300);
        let mut world = deleted(world, Deletion::CleanUp);
        world.run(300);
        assert!(world.finished && world.server.is_tidy());
    }
}

#[test]
fn a_host_that_comes_back_from_a_deletion_is_where_it_was() {
    for detour in [Road::Manage, Road::Park, Road::Detach(Detachment::AtOnce)] {
        let mut world = World::provisioned();
        world.goal.road = TIDY;
        world.run(300);
        world.goal.road = detour;
        world.run(300);
        world.goal.road = Road::Manage;
        world.run(300);
        assert_eq!((world.phase(), world.anchor().milestone), (Phase::Provisioned, Milestone::Provisioned));
        assert_eq!(world.acts(), [""; 0]);
    }
}

#[test]
fn a_claim_without_an_order_is_waited_for_and_then_nothing_is_done() {
    let mut world = World::with(claimed("a"));
    world.run(60);
    world.goal.road = TIDY;
    world.run(600);
    assert!(!world.finished);
    world.goal.claim = None;
    world.run(60);
    assert!(world.finished);
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn the_brake_holds_a_deletion_too() {
    let mut world = deleted(World::provisioned(), Deletion::CleanUp);
    world.braked = true;
    world.run(3600);
    assert_eq!((world.finished, world.wait().as_deref()), (false, Some("FleetBrake")));
    world.braked = false;
    world.run(300);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn a_claim_is_kept_in_mind_until_the_server_of_a_deleted_host_is_off() {
    let mut world = World::provisioned();
    world.goal.road = TIDY;
    world.run(60);
    world.goal.claim = None;
    world.goal.order = None;
    world.consumer = Presence::Leaving;
    world.server.temper.slow = 30;
    world.run_until(60, |world| world.acts().contains(&"PowerOff"));
    assert!(world.server.on && world.anchor().claim.is_some(), "its machine waits for that");
    // What was found out is not forgotten, also if nobody can be asked any more.
    world.consumer = Presence::Unknown("forbidden".into());
    world.run(600);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn a_deleted_host_in_use_says_what_lets_it_go() {
    for (author, advice) in
        [(Author::Claimer, "Delete Beskar7Machine default/machine-a"), (Author::Hand, "then remove the claim")]
    {
        let mut world = World::provisioned();
        world.goal.author = author;
        world.goal.road = TIDY;
        world.run(60);
        let wait = world.record().wait.unwrap();
        assert_eq!(wait.what.name(), "WaitingForConsumerRelease");
        let told = wait.what.tell(&Neutral);
        assert!(told.contains(advice), "{told}");
    }
}
