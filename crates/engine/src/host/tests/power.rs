//! Power policy, restarts, and BMCs that lie, lag or do nothing.

use super::{
    IMAGE, ordered, secs,
    server::{Runs, Server},
    world::{Mishap, World},
};
use crate::{
    failure::{Failure, Kind},
    host::{BmcSight, Deletion, Goal, Neutral, Phase, Presence, Road},
    server::{PowerState, Seen},
};

#[test]
fn the_power_policy_is_followed_and_none_is_none() {
    let none: &[&str] = &[];
    let table = [
        (None, false, none),
        (None, true, none),
        (Some(true), true, none),
        (Some(false), false, none),
        (Some(true), false, &["PowerOn"]),
        (Some(false), true, &["ShutDown"]),
    ];
    for (online, on, expected) in table {
        for claimed in [false, true] {
            let mut world = if claimed { World::provisioned() } else { World::available() };
            world.press(on);
            world.run(120);
            world.goal.online = online;
            world.run(600);
            assert_eq!(world.acts(), expected, "online {online:?}, on {on}, claimed {claimed}");
            assert_eq!(world.server.on, online.unwrap_or(on));
            assert_eq!((world.record().doing, world.fault()), (None, None));
            assert_eq!(world.anchor().powered_on, expected == ["PowerOn"]);
        }
    }
}

#[test]
fn somebody_who_switches_a_server_off_against_its_policy_is_overruled() {
    let mut world = World::provisioned();
    world.goal.online = Some(true);
    world.run(60);
    world.press(false);
    world.run(300);
    assert!(world.server.on);
    assert_eq!(world.acts(), ["PowerOn"]);
}

#[test]
fn a_system_that_does_not_listen_loses_its_power_after_two_minutes() {
    for lacking in [false, true] {
        let mut world = World::provisioned();
        world.server.temper.deaf = true;
        world.server.temper.lacks = lacking.then_some("ShutDown");
        world.goal.online = Some(false);
        world.run(100);
        assert!(world.server.on);
        assert_eq!(world.wait().as_deref(), Some("ShuttingDown"));
        world.run(60);
        assert!(!world.server.on);
        assert_eq!(world.acts(), ["ShutDown", "PowerOff"]);
        assert_eq!(world.fault(), None);
    }
}

#[test]
fn the_brake_is_asked_before_a_shutdown_and_a_restart_and_not_before_power_on() {
    for (online, reboot, on, held) in
        [(Some(false), None, true, true), (None, Some("now"), true, true), (Some(true), None, false, false)]
    {
        let mut world = World::available();
        world.press(on);
        world.run(120);
        world.braked = true;
        world.goal = Goal { online, reboot: reboot.map(str::to_owned), ..Goal::default() };
        world.run(300);
        assert_eq!(world.acts().is_empty(), held);
        assert_eq!(world.wait().as_deref() == Some("FleetBrake"), held);
    }
}

#[test]
fn a_restart_is_carried_out_exactly_once() {
    let mut world = World::provisioned();
    let starts = world.server.starts;
    world.goal.reboot = Some("monday".into());
    world.run(24 * 3600);
    assert_eq!((world.acts(), world.server.starts), (vec!["Restart"], starts + 1));
    world.crash();
    world.run(3600);
    assert_eq!(world.acts(), ["Restart"]);
    world.goal.reboot = Some("tuesday".into());
    world.run(600);
    assert_eq!(world.acts(), ["Restart", "Restart"]);
}

#[test]
fn a_restart_is_never_carried_out_twice_whatever_befalls_the_process() {
    let mishaps = [
        Mishap::AnchorConflict,
        Mishap::StatusConflict,
        Mishap::CrashBeforeStatus,
        Mishap::CrashAfterActs(0),
        Mishap::CrashBeforeLook,
        Mishap::LateSight,
    ];
    for mishap in mishaps {
        for turn in 0..4 {
            let mut world = World::provisioned();
            world.goal.reboot = Some("now".into());
            world.run_with(600, Some((turn, mishap)));
            assert!(world.acts().len() <= 1, "{mishap:?} in turn {turn}: {:?}", world.acts());
        }
    }
}

#[test]
fn a_restart_that_was_refused_is_tried_again() {
    for on in [true, false] {
        for blind in [None, Some(Kind::Busy)] {
            let mut world = World::available();
            world.press(on);
            world.run(120);
            let starts = world.server.starts;
            world.server.temper.refuses = Some(Kind::Refused);
            world.goal.reboot = Some("now".into());
            world.run_until(60, |world| !world.log.is_empty());
            // The look after the act may fail as well.
            if let (Some(kind), Some(sight)) = (blind, &mut world.sight) {
                sight.seen = Err(Failure::new(kind, "busy"));
            }
            world.run(5);
            assert_eq!(world.fault(), Some(Kind::Refused));
            world.server.temper.refuses = None;
            world.run(600);
            assert_eq!((world.server.starts, world.fault()), (starts + 1, None), "on {on}, blind {blind:?}");
        }
    }
}

#[test]
fn a_restart_that_is_refused_again_and_again_is_given_up() {
    let mut world = World::provisioned();
    world.server.temper.refuses = Some(Kind::Refused);
    world.goal.reboot = Some("now".into());
    world.run(24 * 3600);
    assert_eq!((world.acts().len(), world.fault()), (5, None));
    assert!(world.events.contains(&"RestartRefused"));
    world.server.temper.refuses = None;
    world.run(24 * 3600);
    assert_eq!(world.acts().len(), 5);
    world.goal.reboot = Some("once more".into());
    world.run(600);
    assert_eq!((world.acts().len(), world.fault()), (6, None));
}

#[test]
fn a_restart_whose_fate_is_unknown_is_told_about_and_not_repeated() {
    for kind in [Kind::Unreachable, Kind::Busy, Kind::TaskFailed, Kind::BadAnswer] {
        for blind in [0, 20, 200] {
            let mut world = World::provisioned();
            let starts = world.server.starts;
            world.server.temper.mute = Some(kind);
            world.server.temper.blind_after_act = blind;
            world.goal.reboot = Some("now".into());
            world.run(24 * 3600);
            assert_eq!((world.acts(), world.fault()), (vec!["Restart"], None), "{kind:?} {blind}");
            assert_eq!(world.server.starts, starts + 1);
            assert!(world.events.contains(&"RestartUnconfirmed"), "{:?}", world.events);
        }
    }
}

#[test]
fn a_restart_of_a_server_that_is_off_switches_it_on_unless_it_should_stay_off() {
    let mut world = World::available();
    world.goal.reboot = Some("now".into());
    world.run(300);
    assert!(world.server.on);
    assert_eq!(world.acts(), ["PowerOn"]);

    let mut world = World::available();
    world.goal.online = Some(false);
    world.goal.reboot = Some("now".into());
    world.run(300);
    assert_eq!((world.acts().len(), world.fault()), (0, None));
    assert!(world.events.contains(&"RestartSkipped"));
    assert_eq!(world.record().rebooted.as_deref(), Some("now"));
}

#[test]
fn a_restart_that_was_asked_for_before_an_order_was_started_does_not_follow_it() {
    let mut world = World::available();
    world.goal = Goal { reboot: Some("now".into()), ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    world.run(3600);
    assert!(!world.acts().contains(&"Restart"), "{:?}", world.acts());
    assert_eq!((world.phase(), world.server.starts), (Phase::Provisioned, 1));
}

#[test]
fn a_request_that_is_older_than_our_memory_of_the_host_is_not_carried_out() {
    let mut world = World::new(Goal { reboot: Some("old".into()), ..Goal::default() }, Server::running());
    world.run(300);
    assert_eq!((world.phase(), world.acts().len()), (Phase::Available, 0));
}

#[test]
fn a_bmc_that_reports_the_old_power_for_half_a_minute_is_not_asked_twice() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.lies = 30;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["InsertMedia", "SetBoot", "PowerOn"]);
    assert_eq!(world.fault(), None);
    world.goal = Goal::default();
    world.run(300);
    assert_eq!(world.acts()[3..], ["PowerOff", "EjectMedia"]);
    assert!(world.server.is_tidy());
}

#[test]
fn an_off_is_not_believed_right_after_we_gave_power() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.lies = 30;
    world.run_until(60, |world| world.acts().contains(&"PowerOn"));
    world.goal = Goal::default();
    world.run(3);
    assert_eq!(world.wait().as_deref(), Some("PowerUnsettled"));
    world.run(300);
    assert_eq!(world.phase(), Phase::Available);
    assert!(world.server.is_tidy(), "{:?}", world.server);
}

#[test]
fn power_that_does_not_change_is_asked_for_again_and_then_a_fault() {
    let mut world = World::available();
    world.server.temper.stuck = true;
    world.goal.online = Some(true);
    let before = world.now;
    world.run_until(900, |world| world.fault() == Some(Kind::PowerStuck));
    let took = world.now.duration_since(before);
    assert!((secs(300)..secs(400)).contains(&took), "{took}");
    assert_eq!(world.acts().len(), 5, "once a minute");
    assert!(world.record().fault.unwrap().failure.to_string().contains("power on"));
    world.server.temper.stuck = false;
    world.run(300);
    assert!(world.server.on);
    assert_eq!(world.fault(), None);
}

#[test]
fn a_running_deployment_survives_a_stuck_power_button() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run_to(Phase::Available);
    world.server.temper.stuck = true;
    world.goal = ordered("a", IMAGE);
    world.run(1800);
    assert_eq!((world.phase(), world.fault()), (Phase::Preparing, Some(Kind::PowerStuck)));
    world.server.temper.stuck = false;
    world.run_to(Phase::Provisioned);
    world.run(60);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn slow_servers_that_say_so_are_given_time() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.slow = 50;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.acts(), ["InsertMedia", "SetBoot", "PowerOn"]);
}

fn shown(world: &mut World, power: PowerState) {
    let (after, act, inputs) = (world.record().acted, world.outcome.clone(), world.inputs.clone());
    let seen = Seen { power, uuid: world.server.uuid.clone(), media: Some(Vec::new()), ..Seen::default() };
    world.sight = Some(BmcSight { at: world.now, after, inputs, act, seen: Ok(seen) });
}

#[test]
fn a_paused_server_counts_as_on() {
    let mut world = World::provisioned();
    world.goal.online = Some(true);
    shown(&mut world, PowerState::Paused);
    let next = world.decide();
    assert_eq!((next.acts.len(), next.record.wait), (0, None));
    assert!(next.again.is_some());
}

#[test]
fn a_bmc_that_never_tells_the_power_gets_a_sentence_for_a_restart_request() {
    let mut world = World::provisioned();
    world.goal.reboot = Some("now".into());
    for _ in 0..400 {
        shown(&mut world, PowerState::Unknown);
        let next = world.decide();
        assert_eq!(next.acts, []);
        world.status = Some(next.record);
        world.pass(1);
    }
    assert_eq!(world.fault(), Some(Kind::PowerStuck));
    assert_eq!(world.record().power, PowerState::On, "what was last seen is kept");
    world.run(300);
    assert_eq!((world.acts(), world.fault()), (vec!["Restart"], None));
}

#[test]
fn a_provisioned_host_that_should_be_off_is_shut_down_and_stays_provisioned() {
    let mut world = World::provisioned();
    world.goal.online = Some(false);
    world.run(600);
    assert_eq!((world.phase(), world.server.on), (Phase::Provisioned, false));
    world.consumer = Presence::Gone;
    world.goal = Goal::default();
    world.run(300);
    assert_eq!((world.phase(), world.server.is_tidy()), (Phase::Available, true));
}

#[test]
fn a_server_that_is_on_its_way_for_ever_and_a_brake_that_holds_do_not_take_turns() {
    let mut world = World::provisioned();
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.braked = true;
    for second in 0..600 {
        shown(&mut world, PowerState::PoweringOff);
        let next = world.decide();
        assert_eq!(next.acts, []);
        let wait = next.record.wait.as_ref().map(|wait| wait.what.name());
        let expected = if second < 60 { "PoweringOff" } else { "FleetBrake" };
        assert_eq!(wait, Some(expected), "after {second} s");
        world.annotation = Some(next.record.anchor.to_json());
        world.status = Some(next.record);
        world.pass(1);
    }
}

#[test]
fn a_power_request_from_before_a_claim_does_not_touch_the_claimed_server() {
    for ordered_at_once in [true, false] {
        let mut world = World::available();
        world.goal.online = Some(false);
        world.run(120);
        let order = ordered("a", IMAGE);
        world.goal = Goal { online: Some(false), claim: order.claim, ..Goal::default() };
        if !ordered_at_once {
            world.press(true);
            world.run(300);
            assert_eq!(
                (world.acts().len(), world.server.on),
                (0, true),
                "the policy of a free host is not that of its user"
            );
        }
        world.goal.order = order.order;
        world.run_to(Phase::Provisioned);
        world.consumer = Presence::Exists;
        world.run(3600);
        assert!(world.server.on);
        assert_eq!(world.notes(), ["PowerRequestOutdated"]);
        let note = &world.last.as_ref().unwrap().notes[0].tell(&Neutral);
        assert!(note.contains("the power request: false was set before the host was claimed"), "{note}");
        assert!(note.contains("ask for power off again"), "{note}");
        // Neither a lost status nor a move to another cluster brings it into effect.
        world.status = None;
        world.crash();
        world.run(3600);
        assert!(world.server.on);

        world.goal.power_id = Some("now".into());
        world.run(300);
        assert!(!world.server.on, "the same words with a new id are a new request");
        assert_eq!((world.notes(), world.anchor().outdated), (vec![], None));
    }
}

#[test]
fn a_released_server_stays_off_until_somebody_asks_after_the_release() {
    for (asked_in_claim, lost) in [(false, false), (true, false), (false, true)] {
        let mut world = World::available();
        if !asked_in_claim {
            world.goal.online = Some(true);
            world.run(60);
        }
        let online = world.goal.online;
        world.goal = Goal { online, ..ordered("a", IMAGE) };
        world.run_to(Phase::Provisioned);
        world.goal.online = Some(true);
        world.run(60);
        world.goal = Goal { online: Some(true), reboot: Some("in the claim".into()), ..Goal::default() };
        world.run_to(Phase::Available);
        if lost {
            world.status = None;
            world.crash();
        }
        world.log.clear();
        world.run(24 * 3600);
        assert_eq!(
            (world.acts().len(), world.server.on),
            (0, false),
            "asked in the claim {asked_in_claim}, lost {lost}"
        );
        assert_eq!(world.notes(), ["PowerRequestOutdated"]);
        let note = &world.last.as_ref().unwrap().notes[0].tell(&Neutral);
        assert!(note.contains("the power request: true was set before the host was released"), "{note}");

        // A claim that comes to nothing is no request either.
        world.goal.claim = ordered("b", IMAGE).claim;
        world.run(60);
        world.goal.claim = None;
        world.run(600);
        assert_eq!((world.phase(), world.server.on), (Phase::Available, false));

        world.goal.online = None;
        world.run(60);
        world.goal.online = Some(true);
        world.run(300);
        assert_eq!((world.acts(), world.notes()), (vec!["PowerOn"], vec![]));
    }
}

#[test]
fn what_is_asked_during_a_claim_counts_until_the_release() {
    let mut world = World::available();
    world.goal = Goal { online: Some(true), ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    world.consumer = Presence::Exists;
    world.goal.online = Some(false);
    world.run(300);
    assert_eq!((world.phase(), world.server.on), (Phase::Provisioned, false));
    world.goal.online = Some(true);
    world.run(300);
    assert!(world.server.on);
}

#[test]
fn the_policy_of_a_free_host_goes_on_after_a_claim_that_came_to_nothing() {
    let mut world = World::available();
    world.goal.online = Some(true);
    world.run(60);
    world.goal.claim = ordered("a", IMAGE).claim;
    world.run(60);
    world.goal.claim = None;
    world.press(false);
    world.run(300);
    assert!(world.server.on);
    assert_eq!(world.anchor().outdated, None);
}

#[test]
fn an_adopted_server_is_not_switched_off_by_a_request_that_came_with_it() {
    let mut world = World::new(Goal { online: Some(false), ..ordered("a", IMAGE) }, Server::running());
    world.consumer = Presence::Exists;
    world.run(3600);
    assert_eq!((world.phase(), world.acts().len(), world.server.on), (Phase::Provisioned, 0, true));
    world.goal.power_id = Some("now".into());
    world.run(300);
    assert!(!world.server.on);
}

#[test]
fn another_address_is_another_server_and_follows_the_policy() {
    let mut world = World::provisioned();
    world.consumer = Presence::Gone;
    world.goal = Goal { online: Some(true), ..Goal::default() };
    world.run_to(Phase::Available);
    world.run(300);
    assert!(!world.server.on);
    (world.target, world.inputs) = ("elsewhere".into(), "elsewhere".into());
    world.server = Server::off();
    world.server.uuid = Some("u-2".into());
    world.run(300);
    assert!(world.server.on);
}

#[test]
fn every_power_change_names_its_cause_in_the_timeline_and_by_one_event() {
    let mut world = World::available();
    let story = |world: &mut World, goal: Goal, seconds: i64| -> Vec<String> {
        world.goal = goal;
        world.told.clear();
        world.run(seconds);
        let told = std::mem::take(&mut world.told);
        for message in &told {
            assert!(world.timeline.iter().any(|moment| moment.what.tell(&Neutral) == *message), "{message}");
        }
        told
    };
    let on = Goal { online: Some(true), ..Goal::default() };
    assert_eq!(story(&mut world, on.clone(), 300), ["Powering on; cause: the power request is true."]);
    assert_eq!(
        story(&mut world, Goal { reboot: Some("monday".into()), ..on.clone() }, 300),
        ["Restarting; cause: restart request \"monday\" (the restart request)."]
    );
    let order = Goal { online: Some(true), reboot: Some("monday".into()), ..ordered("a", IMAGE) };
    assert_eq!(
        story(&mut world, order.clone(), 600),
        [
            "Powering off; cause: deployment for Beskar7Machine default/machine-a.",
            "Powering on; cause: deployment for Beskar7Machine default/machine-a."
        ]
    );
    assert_eq!(
        story(&mut world, Goal { online: Some(false), ..order.clone() }, 300),
        ["Asking the operating system to shut down; cause: the power request is false."]
    );
    assert_eq!(story(&mut world, Goal { online: None, reboot: Some("now".into()), ..order }, 300).len(), 1);
    assert_eq!(
        story(&mut world, Goal::default(), 600),
        ["Powering off; cause: release by Beskar7Machine default/machine-a."]
    );
    story(&mut world, on.clone(), 300);
    assert_eq!(
        story(&mut world, Goal { road: Road::Delete(Deletion::CleanUp), ..on }, 60),
        ["Powering off; cause: deletion of the host."]
    );
}

#[test]
fn power_that_is_asked_for_again_and_again_is_one_event() {
    let mut world = World::available();
    world.server.temper.stuck = true;
    world.goal.online = Some(true);
    world.run(290);
    assert!(world.acts().len() > 2);
    assert_eq!(world.told, ["Powering on; cause: the power request is true."]);
}
