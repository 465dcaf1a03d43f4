//! The end of a claim.

use super::{
    IMAGE, OTHER_IMAGE, claimed, ordered,
    server::{Runs, Server},
    world::{Mishap, World},
};
use crate::{
    failure::{Failure, Kind},
    host::{Author, Goal, Milestone, Phase, Presence},
};

#[test]
fn a_claim_ends_when_its_consumer_is_gone_or_going_and_not_before() {
    let unknown = Presence::Unknown("forbidden".into());
    let table = [
        (Presence::Gone, None, true),
        (Presence::Leaving, None, true),
        (Presence::Exists, None, false),
        (unknown.clone(), None, false),
        (Presence::Exists, Some("true"), false),
        (Presence::Exists, Some("machine-a"), false),
        (Presence::Exists, Some("an-older-claim"), false),
        (Presence::Exists, Some("a"), true),
        (unknown, Some("a"), true),
    ];
    for (consumer, release, released) in table {
        let mut world = World::provisioned();
        world.goal = Goal { release: release.map(str::to_owned), ..Goal::default() };
        world.consumer = consumer.clone();
        world.run(600);
        if released {
            assert_eq!((world.phase(), world.fault()), (Phase::Available, None), "{consumer:?}");
            assert!(world.server.is_tidy(), "{consumer:?}");
            // The override is used up and the drive is not empty.
            assert_eq!(world.acts(), ["PowerOff", "EjectMedia"], "{consumer:?}");
            assert_eq!((world.anchor().claim, world.anchor().milestone), (None, Milestone::None));
        } else {
            assert_eq!(
                (world.phase(), world.fault()),
                (Phase::Provisioned, Some(Kind::ConsumerMismatch)),
                "{consumer:?}"
            );
            assert_eq!(world.acts(), [""; 0], "{consumer:?}");
        }
    }
}

#[test]
fn a_reference_that_vanished_by_mistake_and_is_put_back_leaves_no_trace() {
    let mut world = World::provisioned();
    let goal = std::mem::take(&mut world.goal);
    world.run(12 * 3600);
    assert!(world.record().fault.unwrap().failure.to_string().contains("machine-a"));
    world.goal = goal;
    world.run(60);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
    assert_eq!(world.acts(), [""; 0]);
    assert_eq!(world.events, ["ConsumerMismatch", "Recovered"]);
}

#[test]
fn a_vanished_reference_and_an_unreachable_bmc_are_told_once_each() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(600);
    let before = world.record().fault.unwrap();
    world.goal = Goal::default();
    world.run(600);
    assert_eq!(world.events, ["Unreachable", "ConsumerMismatch"]);
    assert_eq!(world.record().beneath, Some(before));
    world.goal = ordered("a", IMAGE);
    world.run(5);
    assert_eq!(world.fault(), Some(Kind::Unreachable));
}

#[test]
fn a_consumer_that_is_deleted_later_ends_the_claim_then() {
    let mut world = World::provisioned();
    world.goal = Goal::default();
    world.run(3600);
    world.consumer = Presence::Leaving;
    world.run(120);
    assert_eq!((world.phase(), world.server.is_tidy()), (Phase::Available, true));
}

#[test]
fn a_claim_that_ends_before_anything_was_done_leaves_the_server_as_it_was() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run_to(Phase::Available);
    world.goal = claimed("a");
    world.run(60);
    world.goal = Goal::default();
    world.run(60);
    assert_eq!((world.phase(), world.acts().len()), (Phase::Available, 0));
    assert_eq!(world.anchor().claim, None);
}

#[test]
fn a_claim_that_is_replaced_by_another_is_cleaned_up_first() {
    let mut world = World::provisioned();
    world.goal = ordered("b", OTHER_IMAGE);
    world.run(600);
    assert_eq!(world.fault(), Some(Kind::ConsumerMismatch));
    world.consumer = Presence::Gone;
    world.run(600);
    assert_eq!(world.phase(), Phase::Provisioned);
    assert_eq!(world.acts(), ["PowerOff", "EjectMedia", "InsertMedia", "SetBoot", "PowerOn"]);
    assert_eq!(world.server.runs, Runs::Image(OTHER_IMAGE.into()));
    assert_eq!(world.anchor().claim.unwrap().id, "b");
}

#[test]
fn each_deployment_follows_a_time_of_its_own_at_which_the_server_became_free() {
    let mut world = World::provisioned();
    let registered = world.anchor().free_since.expect("noted at registration");
    world.goal = ordered("b", OTHER_IMAGE);
    world.consumer = Presence::Gone;
    world.run_until(600, |world| world.anchor().free_since != Some(registered));
    // The order that was given together with the release may have the old deployment's id.
    assert_eq!((world.anchor().claim, world.anchor().deployment), (None, None));
    assert_eq!(world.acts(), ["PowerOff", "EjectMedia"]);
    let released = world.anchor().free_since.unwrap();
    assert!(released > registered);
    world.run(600);
    assert_eq!((world.phase(), world.anchor().free_since), (Phase::Provisioned, Some(released)));
}

#[test]
fn a_recreated_consumer_of_the_same_name_is_another_claim() {
    let mut world = World::provisioned();
    world.goal.claim.as_mut().unwrap().id = "a-again".into();
    world.consumer = Presence::Gone;
    world.run(600);
    assert_eq!(world.phase(), Phase::Provisioned);
    assert!(world.acts().contains(&"PowerOff"));
}

#[test]
fn a_release_ends_tidy_from_wherever_it_begins() {
    let turns = |world: &World| world.steps;
    let mut world = World::with(ordered("a", IMAGE));
    let before = turns(&world);
    world.run_to(Phase::Provisioned);
    let most = turns(&world) - before;
    for lies in [0, 28] {
        for turn in 0..=most {
            let mut world = World::new(Goal::default(), Server::running());
            world.server.temper.lies = lies;
            world.run_to(Phase::Available);
            world.goal = ordered("a", IMAGE);
            for _ in 0..turn {
                let next = world.reconcile(Mishap::Nothing);
                world.now = world.now.max(next);
            }
            world.goal = Goal::default();
            world.run(600);
            assert_eq!(world.phase(), Phase::Available, "after {turn} turns");
            let untouched = world.log.is_empty();
            assert!(
                untouched || world.server.is_tidy(),
                "after {turn} turns with lies of {lies} s: {:?}",
                world.server
            );
        }
    }
}

#[test]
fn a_bmc_that_shows_no_override_is_told_to_clear_it_all_the_same() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.silent_boot = true;
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy());
}

#[test]
fn a_bmc_without_boot_override_does_not_hold_up_a_release() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.silent_boot = true;
    world.server.temper.lacks = Some("ClearBoot");
    world.run_until(60, |world| world.acts().contains(&"InsertMedia"));
    world.server.boot = super::server::no_override();
    world.goal = Goal::default();
    world.run(600);
    assert_eq!((world.phase(), world.fault()), (Phase::Available, None));
    assert!(world.server.media.is_none());
}

#[test]
fn a_release_that_fails_goes_on_until_it_succeeds() {
    for kind in [Kind::Unreachable, Kind::Refused, Kind::Busy] {
        let mut world = World::provisioned();
        world.goal = Goal::default();
        world.consumer = Presence::Gone;
        world.server.temper.refuses = Some(kind);
        world.run(3 * 3600);
        assert_eq!((world.phase(), world.fault()), (Phase::Deprovisioning, Some(kind)));
        world.server.temper.refuses = None;
        world.run(3600);
        assert_eq!((world.phase(), world.fault()), (Phase::Available, None));
        assert!(world.server.is_tidy());
    }
}

#[test]
fn a_release_is_not_undone_by_a_claim_that_comes_back() {
    let mut world = World::provisioned();
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run_to(Phase::Deprovisioning);
    world.goal = ordered("a", IMAGE);
    world.run(600);
    assert_eq!(world.phase(), Phase::Provisioned);
    assert_eq!(world.acts(), ["PowerOff", "EjectMedia", "InsertMedia", "SetBoot", "PowerOn"]);
}

#[test]
fn that_we_switched_the_server_on_outlives_a_claim_that_did_nothing() {
    let mut world = World::available();
    world.goal.online = Some(true);
    world.run(60);
    world.goal.claim = claimed("a").claim;
    world.run(60);
    world.goal.claim = None;
    world.run(60);
    assert!(world.anchor().powered_on);
}

#[test]
fn a_release_takes_the_faults_of_its_deployment_along() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.ignores = 3;
    world.run_until(48 * 3600, |world| world.fault() == Some(Kind::BootIgnored));
    world.goal = Goal::default();
    world.run(120);
    assert_eq!((world.phase(), world.fault()), (Phase::Available, None));
}

#[test]
fn what_we_switched_on_for_its_policy_is_forgotten_once_a_release_switched_it_off() {
    let mut world = World::provisioned();
    world.goal.online = Some(true);
    world.press(false);
    world.run(300);
    assert!(world.anchor().powered_on);
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run(300);
    assert_eq!((world.phase(), world.anchor().powered_on), (Phase::Available, false));
}

#[test]
fn a_release_waits_for_an_insertion_only_as_long_as_nobody_knows_what_becomes_of_it() {
    // How long the BMC takes in the background, whether the process dies, and how long the release takes.
    let table = [
        ("done when it was answered", 0, false, 0..30),
        ("still under way when it was answered", 40, false, 40..120),
        ("answered to a process that died", 0, true, 180..240),
        ("still under way when the process died", 40, true, 180..240),
    ];
    for (name, slow, dies, expected) in table {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.slow_media = slow;
        world.run_until(60, |world| world.acts().contains(&"SetBoot"));
        if dies {
            world.crash();
        }
        world.goal = Goal::default();
        let released = world.now;
        world.run_until(600, |world| world.phase() == Phase::Available);
        let took = world.record().since.duration_since(released).as_secs();
        assert!(expected.contains(&took), "{name}: {took} s");
        world.run(300);
        assert!(world.server.is_tidy(), "{name}: {:?}", world.server);
        assert_eq!(world.server.starts, 0, "{name}");
    }
}

#[test]
fn how_an_insertion_ended_is_also_known_when_its_reason_is_gone() {
    // One that failed may have put the image into the drive before it did: that is waited for.
    let refusal = || Err(Failure::new(Kind::Refused, "No.".to_owned()));
    for (result, phase) in [(Ok(()), Phase::Available), (refusal(), Phase::Deprovisioning)] {
        let mut world = World::with(ordered("a", IMAGE));
        world.run_until(60, |world| world.acts().contains(&"SetBoot"));
        world.status.as_mut().unwrap().doing = None;
        world.outcome.as_mut().unwrap().result = result;
        world.sight.as_mut().unwrap().act.clone_from(&world.outcome);
        world.goal = Goal::default();
        world.run(30);
        assert_eq!((world.phase(), world.fault()), (phase, None), "{:?}", world.wait());
        world.run(240);
        assert_eq!(world.phase(), Phase::Available, "{:?}", world.wait());
        assert!(world.server.is_tidy());
    }
}

#[test]
fn a_claim_is_accepted_once_its_claimer_is_known_to_be_there() {
    let table = [
        (Author::Claimer, Presence::Exists, true, None),
        (Author::Claimer, Presence::Unknown("forbidden".into()), false, Some("CheckingConsumer")),
        (Author::Claimer, Presence::Gone, false, Some("ConsumerGone")),
        (Author::Claimer, Presence::Leaving, false, Some("WaitingForConsumerRelease")),
        (Author::Hand, Presence::Gone, true, None),
    ];
    for (author, claimer, accepted, wait) in table {
        let mut world = World::with(Goal { author, online: Some(true), ..ordered("a", IMAGE) });
        world.server = Server::running();
        world.claimer = claimer.clone();
        world.run(550);
        assert_eq!(world.phase() == Phase::Provisioned, accepted, "{claimer:?}");
        assert_eq!(world.anchor().claim.is_some(), accepted, "{claimer:?}");
        assert!(accepted || world.log.is_empty(), "{claimer:?}: {:?}", world.log);
        assert_eq!(world.wait().as_deref(), wait, "{claimer:?}");
    }
}

#[test]
fn a_ghosts_claim_is_taken_off_after_a_while_and_the_host_is_free() {
    let mut world = World::with(Goal { author: Author::Claimer, ..ordered("a", IMAGE) });
    world.claimer = Presence::Gone;
    for _ in 0..3 {
        world.run(180);
        world.crash();
        assert!(world.goal.claim.is_some());
    }
    let writes = world.writes;
    world.run(120);
    assert_eq!((world.goal.claim.clone(), world.phase(), world.wait()), (None, Phase::Available, None));
    assert_eq!(world.events.iter().filter(|event| **event == "GhostClaim").count(), 1);
    assert_eq!((world.acts(), world.writes - writes), (vec![], 1), "only that it does not wait any more");
    world.goal = Goal { author: Author::Claimer, ..ordered("b", IMAGE) };
    world.claimer = Presence::Exists;
    world.run_to(Phase::Provisioned);
}

#[test]
fn a_claimer_that_comes_later_than_its_claim_gets_the_host() {
    let mut world = World::with(Goal { author: Author::Claimer, ..ordered("a", IMAGE) });
    world.claimer = Presence::Gone;
    world.run(300);
    world.claimer = Presence::Exists;
    world.run(300);
    assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 3));
}

#[test]
fn what_is_done_for_a_claim_goes_on_whatever_is_said_of_its_claimer_later() {
    let mut world = World::with(Goal { author: Author::Claimer, ..ordered("a", IMAGE) });
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.claimer = Presence::Gone;
    world.run_to(Phase::Provisioned);
    world.run(24 * 3600);
    assert_eq!((world.phase(), world.server.starts, world.goal.claim.is_some()), (Phase::Provisioned, 1, true));
}

#[test]
fn a_ghosts_claim_on_a_host_in_use_waits_for_the_former_consumer_and_is_then_refused() {
    let mut world = World::provisioned();
    world.goal = Goal { author: Author::Claimer, ..ordered("ghost", OTHER_IMAGE) };
    world.claimer = Presence::Gone;
    world.run(600);
    assert_eq!((world.fault(), world.acts().len()), (Some(Kind::ConsumerMismatch), 0));
    world.consumer = Presence::Gone;
    world.run(300);
    assert_eq!((world.phase(), world.wait().as_deref()), (Phase::Available, Some("ConsumerGone")));
    assert!(world.server.is_tidy());
    assert_eq!(world.server.starts, 1, "never switched on for a ghost");
}

#[test]
fn a_word_that_ended_a_claim_is_taken_off_and_does_not_end_the_next_one() {
    let mut world = World::provisioned();
    world.goal = Goal { release: Some("a".into()), ..Goal::default() };
    world.run(600);
    assert_eq!((world.phase(), world.goal.release.as_deref()), (Phase::Available, None));
    // The same manifest is applied again, before the same consumer claims again by hand.
    world.goal = Goal { release: Some("a".into()), ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    assert_eq!(world.goal.release, None, "it was there before the claim");
    world.log.clear();
    world.goal = Goal::default();
    world.run(600);
    assert_eq!((world.fault(), world.acts().len()), (Some(Kind::ConsumerMismatch), 0));
}

#[test]
fn a_word_that_ends_no_claim_of_this_host_is_told_to_count_for_nothing() {
    let mut world = World::provisioned();
    world.goal = Goal { release: Some("true".into()), ..Goal::default() };
    world.run(60);
    let told = world.record().fault.unwrap().failure.to_string();
    assert!(told.contains("ask for the release of claim a"), "{told}");
    assert!(told.contains("value \"true\" counts for nothing"), "{told}");
}

#[test]
fn a_release_asks_a_bmc_at_once_that_had_failed_before() {
    for kind in [Kind::Unsupported, Kind::Unreachable, Kind::SystemNotFound] {
        let mut world = World::provisioned();
        world.server.temper.blind = Some(kind);
        world.run(4 * 3600);
        world.server.temper.blind = None;
        world.goal = Goal::default();
        world.consumer = Presence::Gone;
        world.run(120);
        assert_eq!((world.phase(), world.fault()), (Phase::Available, None), "{kind:?}");
    }
}

#[test]
fn a_release_ends_where_no_boot_override_is_shown() {
    let kinds = [Kind::Refused, Kind::BadAnswer, Kind::Unsupported];
    for refuses in [None].into_iter().chain(kinds.map(|kind| Some(("ClearBoot", kind)))) {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.silent_boot = true;
        world.run_to(Phase::Provisioned);
        world.log.clear();
        world.server.temper.fails = refuses;
        world.goal = Goal::default();
        world.run(600);
        assert_eq!(world.acts(), ["PowerOff", "EjectMedia", "ClearBoot"]);
        assert_eq!((world.phase(), world.fault()), (Phase::Available, None));
    }
}

#[test]
fn a_release_at_the_very_moment_of_a_failure_is_not_tried_again_without_a_pause() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run_until(3600, |world| world.fault() == Some(Kind::Unreachable));
    let moment = world.record().fault.unwrap().last;
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.now = moment;
    world.reconcile(Mishap::Nothing);
    assert_eq!(world.phase(), Phase::Deprovisioning);
    // If a look has followed, it took no time at all, and failed.
    world.now = moment;
    world.sight.as_mut().unwrap().at = moment;
    let next = world.decide();
    assert!(next.look.is_none() && next.again.is_some_and(|again| again > moment), "{next:?}");
}
