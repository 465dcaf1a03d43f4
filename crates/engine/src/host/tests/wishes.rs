//! What other dialects ask of a host: each wish does what it says, and no more.

use super::{
    IMAGE, claim, claimed, order, order_by, ordered, pxe, secs,
    server::{Runs, Server},
    world::{ITSELF, World},
};
use crate::host::{
    Boot, Claim, Deletion, Detachment, Disks, Gate, Goal, HeldOff, Lasting, Maintenance, Manner, Milestone, Newcomer,
    Order, Phase, Presence, Proof, Request, Restart, Road, Starts,
};

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

    world.goal = Goal { external: true, online: Some(false), power_lasts: Lasting::Always, ..Goal::default() };
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
        for lasting in [Lasting::UntilClaim, Lasting::UntilRelease, Lasting::Always] {
            let mut world = World::provisioned();
            world.goal.online = Some(true);
            world.goal.power_lasts = lasting;
            world.run(300);
            world.log.clear();
            world.goal.held_off = Some(HeldOff { manner, lasts: true, once: false, also_free: false });
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
    world.goal.power_lasts = Lasting::Always;
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

/// What whoever has it for maintenance wants of a server.
fn lend(online: Option<bool>, boot: Option<bool>) -> Maintenance {
    let boot = boot
        .map(|open| Boot { gate: Gate { keeper: "its boot configuration".into(), open }, recipe: pxe(Starts::First) });
    Maintenance { online, boot }
}

#[test]
fn a_lent_server_follows_the_power_that_its_maintenance_wants_and_comes_back() {
    // (wanted of a running server, boot, acts meanwhile, runs meanwhile, acts at the end)
    let table = [
        (lend(None, None), vec![], true, vec![]),
        (lend(Some(true), None), vec![], true, vec![]),
        (lend(Some(false), None), vec!["ShutDown"], false, vec!["SetBoot", "PowerOn"]),
        (
            lend(Some(true), Some(true)),
            vec!["ShutDown", "SetBoot", "PowerOn"],
            true,
            vec!["ShutDown", "SetBoot", "PowerOn"],
        ),
        (lend(Some(true), Some(false)), vec![], true, vec![]),
        (lend(Some(false), Some(true)), vec!["ShutDown"], false, vec!["SetBoot", "PowerOn"]),
    ];
    for (maintenance, meanwhile, runs, after) in table {
        let mut world = World::available();
        let order = order_by("a", pxe(Starts::EveryByUs));
        world.goal = Goal { order: Some(order), online: Some(true), power_lasts: Lasting::Always, ..claimed("a") };
        world.run_to(Phase::Provisioned);
        world.run(600);
        world.log.clear();
        world.goal.road = Road::Lend;
        world.goal.maintenance = maintenance.clone();
        world.run(3600);
        assert_eq!((world.acts(), world.phase(), world.server.on), (meanwhile, Phase::Lent, runs), "{maintenance:?}");
        if maintenance.boot.as_ref().is_some_and(|boot| !boot.gate.open) {
            assert_eq!(world.wait().as_deref(), Some("WaitingForBootPermission"));
        }
        world.log.clear();
        world.goal.road = Road::Manage;
        world.run(3600);
        assert_eq!(
            (world.acts(), world.phase(), world.server.on),
            (after, Phase::Provisioned, true),
            "{maintenance:?}"
        );
        assert!(!world.anchor().lent);
    }
}

#[test]
fn a_free_server_that_was_lent_is_registered_anew_and_off_as_before() {
    for boot in [None, Some(true)] {
        let mut world = World::available();
        world.goal =
            Goal { newcomer: Newcomer::AwaitOff, online: Some(false), power_lasts: Lasting::Always, ..Goal::default() };
        world.goal.road = Road::Lend;
        world.goal.maintenance = lend(Some(true), boot);
        world.run(3600);
        assert_eq!((world.phase(), world.server.on, world.anchor().lent), (Phase::Lent, true, true));
        // Also if the status is lost meanwhile, it runs on.
        world.status = None;
        world.run(3600);
        assert_eq!((world.phase(), world.server.on), (Phase::Lent, true));
        world.goal.road = Road::Manage;
        world.run(3600);
        assert_eq!((world.phase(), world.server.on, world.anchor().undo.clone()), (Phase::Available, false, None));
        assert!(!world.anchor().lent && world.server.is_tidy());
    }
}

#[test]
fn a_server_is_lent_when_nothing_is_under_way() {
    let mut world = World::available();
    world.goal = Goal { road: Road::Lend, maintenance: lend(Some(false), None), ..ordered("a", IMAGE) };
    world.status = None;
    world.goal.road = Road::Manage;
    world.run_to(Phase::Provisioning);
    world.goal.road = Road::Lend;
    world.run_to(Phase::Provisioned);
    assert!(world.server.on);
    world.run_to(Phase::Lent);
    world.run(600);
    assert!(!world.server.on);
}

#[test]
fn a_lent_server_whose_host_is_deleted_is_switched_off_and_tidy() {
    let mut world = World::available();
    world.goal.road = Road::Lend;
    world.goal.maintenance = lend(Some(true), Some(true));
    world.run(3600);
    assert!(world.server.on);
    world.goal.road = Road::Delete(Deletion::CleanUp);
    world.run(3600);
    assert!(world.finished && !world.server.on && world.server.is_tidy());
}

#[test]
fn a_server_whose_disks_must_be_wiped_is_not_free_until_somebody_says_that_they_are() {
    let mut world = World::provisioned();
    world.goal = Goal { disks: Disks::MustBeWiped, ..Goal::default() };
    world.consumer = Presence::Gone;
    world.run(7200);
    assert_eq!((world.phase(), world.wait().as_deref()), (Phase::Deprovisioning, Some("WaitingForWipe")));
    assert_eq!((world.server.on, world.server.is_tidy(), world.anchor().claim.clone()), (false, true, None));
    // It is kept off, and a lost status frees nothing.
    world.press(true);
    world.status = None;
    world.run(7200);
    assert_eq!((world.phase(), world.server.on), (Phase::Deprovisioning, false));
    world.goal.disks = Disks::Wiped;
    world.run_to(Phase::Available);
    assert_eq!(world.goal.disks, Disks::MustBeWiped, "it was said of this release only");
}

#[test]
fn a_power_policy_outlives_claims_and_releases() {
    let mut world = World::available();
    world.goal = Goal { online: Some(true), power_lasts: Lasting::Always, ..ordered("a", IMAGE) };
    world.run_to(Phase::Provisioned);
    world.goal = Goal { online: Some(true), power_lasts: Lasting::Always, ..Goal::default() };
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

#[test]
fn a_claim_that_waits_is_accepted_when_it_waits_no_more_and_stays_accepted() {
    let mut world = World::available();
    world.goal = Goal { claim_waits: true, ..ordered_by_itself() };
    world.run(3600);
    assert_eq!((world.phase(), world.acts()), (Phase::Available, vec![]));
    world.goal.claim_waits = false;
    world.run_to(Phase::Provisioned);
    world.log.clear();
    world.goal.claim_waits = true;
    world.run(3600);
    assert_eq!((world.phase(), world.acts()), (Phase::Provisioned, vec![]));
}

#[test]
fn an_own_order_does_not_hold_up_the_deletion_of_the_host() {
    let mut world = World::available();
    world.goal = ordered_by_itself();
    world.run_to(Phase::Provisioned);
    world.goal.road = Road::Delete(Deletion::CleanUp);
    world.run(600);
    assert!(world.finished && world.server.is_tidy());
}

#[test]
fn a_server_that_is_to_be_off_for_a_moment_comes_back() {
    for (manner, first) in [(Manner::Soft, "ShutDown"), (Manner::Hard, "PowerOff")] {
        for crash in [false, true] {
            let mut world = World::available();
            world.goal = Goal { online: Some(true), power_lasts: Lasting::UntilRelease, ..ordered_by_itself() };
            world.run_to(Phase::Provisioned);
            world.log.clear();
            world.goal.held_off = Some(HeldOff { manner, lasts: false, once: true, also_free: false });
            world.run_until(600, |world| !world.acts().is_empty());
            if crash {
                world.status = None;
                world.crash();
            }
            world.run(1800);
            let mut acts = world.acts();
            acts.dedup();
            assert_eq!(acts, [first, "PowerOn"], "{manner:?} {crash}");
            assert_eq!((world.goal.held_off, world.server.on), (None, true));
            world.run(24 * 3600);
            assert!(world.acts().len() <= 3, "once");
        }
    }
}

#[test]
fn a_moment_off_leaves_a_free_or_switched_off_server_as_it_is() {
    let once = Some(HeldOff { manner: Manner::Hard, lasts: false, once: true, also_free: false });
    let mut world = World::available();
    world.goal = Goal { held_off: once, online: Some(true), power_lasts: Lasting::UntilRelease, ..Goal::default() };
    world.run(600);
    assert_eq!((world.acts(), world.goal.held_off), (vec!["PowerOn"], None), "it was off, so that is done");
    world.log.clear();
    world.goal.held_off = once;
    world.run(3600);
    assert_eq!((world.acts(), world.goal.held_off), (vec![], once), "a free host that runs is not restarted");
    world.goal.held_off = once.map(|held| HeldOff { also_free: true, ..held });
    world.run(3600);
    assert_eq!((world.acts(), world.goal.held_off), (vec!["PowerOff", "PowerOn"], None), "unless that is meant");
}

#[test]
fn a_server_that_may_never_be_off_is_reset_when_it_is_to_be_off_for_a_moment() {
    let mut world = World::available();
    world.goal = Goal { never_off: true, online: Some(true), ..ordered_by_itself() };
    world.run_to(Phase::Provisioned);
    world.log.clear();
    let once = HeldOff { manner: Manner::Hard, lasts: false, once: true, also_free: false };
    world.goal.held_off = Some(once);
    world.run(3600);
    assert_eq!((world.acts(), world.goal.held_off), (vec!["Restart"], None));
    world.goal.held_off = Some(HeldOff { lasts: true, once: false, ..once });
    world.log.clear();
    world.run(3600);
    assert_eq!((world.acts(), world.notes()), (vec![], vec!["NeverOff"]));
}

#[test]
fn a_power_request_may_count_for_the_claimed_host_and_end_with_the_release() {
    let ordered = || Goal { online: Some(true), power_lasts: Lasting::UntilRelease, ..ordered_by_itself() };
    let free = || Goal { online: Some(true), power_lasts: Lasting::UntilRelease, ..Goal::default() };
    let mut world = World::available();
    world.goal = ordered();
    world.run_to(Phase::Provisioned);
    world.press(false);
    world.run(600);
    assert!(world.server.on, "what was asked before the claim counts for it");
    world.goal.online = Some(false);
    world.run(600);
    assert!(!world.server.on);
    world.goal.online = Some(true);
    world.run(600);
    assert!(world.server.on);

    world.goal = free();
    world.run_to(Phase::Available);
    world.run(3600);
    assert!(!world.server.on, "it stays off until somebody asks again");
    world.goal.online = Some(false);
    world.run(60);
    world.goal.online = Some(true);
    world.run(600);
    assert!(world.server.on, "now somebody has");

    world.goal = ordered();
    world.run_to(Phase::Provisioned);
    world.goal = free();
    world.run_to(Phase::Available);
    world.goal = ordered();
    world.run_to(Phase::Provisioned);
    world.press(false);
    world.run(600);
    assert!(world.server.on, "a new order asks for power, too");
}

#[test]
fn a_host_is_detached_when_nothing_is_under_way_or_at_once() {
    for (when, phase) in [(Detachment::AtRest, Phase::Provisioned), (Detachment::AtOnce, Phase::Preparing)] {
        let mut world = World::available();
        world.goal = ordered_by_itself();
        world.run_to(Phase::Preparing);
        world.goal.road = Road::Detach(when);
        world.run(3600);
        assert_eq!((world.phase(), world.record().left), (Phase::Detached, Some(phase)), "{when:?}");
    }
}

#[test]
fn a_detached_host_is_deleted_without_a_look_at_its_server() {
    let deleted = |mut world: World, when| {
        world.log.clear();
        world.goal.road = Road::Delete(Deletion::Detached(when));
        world.run(600);
        assert!(world.finished);
        (world.server.on, world.acts().is_empty(), world.events.contains(&"LeftAsItIs"))
    };
    let provisioned = || {
        let mut world = World::available();
        world.goal = ordered_by_itself();
        world.run_to(Phase::Provisioned);
        world
    };
    let mut detached = provisioned();
    detached.goal.road = Road::Detach(Detachment::AtRest);
    detached.run(60);
    assert_eq!(deleted(detached, Detachment::AtRest), (true, true, true));
    assert_eq!(deleted(provisioned(), Detachment::AtRest), (true, true, true), "it would be detached");
    let mut preparing = World::available();
    preparing.goal = ordered_by_itself();
    preparing.run_until(600, |world| world.status.is_some() && world.anchor().milestone == Milestone::Written);
    assert_eq!(deleted(preparing.clone(), Detachment::AtRest), (false, false, false), "it is cleaned up");
    assert!(deleted(preparing, Detachment::AtOnce).1);
}

#[test]
fn what_another_operator_has_written_down_decides_about_an_unknown_host() {
    let met = |proof, goal: Goal| {
        let mut world = World::new(goal, Server::running());
        world.proof = proof;
        world.run(1800);
        (world.phase(), world.anchor().adopted, world.anchor().external, world.acts().is_empty())
    };

    let table = [
        (Some(Proof::Deployed), ordered_by_itself(), (Phase::Provisioned, false, false, true)),
        (Some(Proof::InUse), ordered_by_itself(), (Phase::Provisioned, true, false, true)),
        (None, ordered_by_itself(), (Phase::Provisioned, true, false, true)),
        (Some(Proof::Free), ordered_by_itself(), (Phase::Provisioned, false, false, false)),
        (Some(Proof::InUse), Goal::default(), (Phase::Provisioned, true, true, true)),
        (None, Goal::default(), (Phase::Available, false, false, true)),
        (Some(Proof::Free), Goal::default(), (Phase::Available, false, false, true)),
        (Some(Proof::Releasing), Goal::default(), (Phase::Available, false, false, false)),
    ];
    for (proof, goal, expected) in table {
        let ordered = goal.claim.is_some();
        assert_eq!(met(proof, goal), expected, "{proof:?}, ordered: {ordered}");
    }
}

#[test]
fn an_adopted_host_learns_later_what_runs_on_it() {
    let adopted = |goal: Goal| {
        let mut world = World::new(goal, Server::running());
        world.proof = Some(Proof::InUse);
        world.run(600);
        assert!(world.anchor().adopted && world.acts().is_empty());
        world
    };
    let mut world = adopted(ordered_by_itself());
    world.proof = Some(Proof::Deployed);
    world.run(600);
    assert!(!world.anchor().adopted && world.acts().is_empty() && world.events.contains(&"TakenOver"));

    let mut world = adopted(Goal::default());
    world.run(3600);
    assert_eq!((world.phase(), world.anchor().external), (Phase::Provisioned, true));
    world.proof = Some(Proof::Free);
    world.run_to(Phase::Available);
    assert!(world.acts().is_empty() && world.server.on, "nothing was asked of its power");

    let mut world = adopted(ordered_by_itself());
    world.runs_for = None;
    world.proof = Some(Proof::Free);
    world.run_until(3600, |world| world.server.runs == Runs::Image(IMAGE.into()));
}

#[test]
fn an_adopted_server_follows_a_power_request_once_it_agrees_with_it() {
    let mut world = World::new(
        Goal { online: Some(true), power_lasts: Lasting::UntilRelease, ..ordered_by_itself() },
        Server::running(),
    );
    world.proof = Some(Proof::Deployed);
    world.run(600);
    world.goal.held_off = Some(HeldOff { manner: Manner::Hard, lasts: true, once: false, also_free: false });
    world.run(600);
    assert!(!world.server.on);
    world.goal.held_off = None;
    world.run(600);
    assert!(world.server.on, "it comes back after it was held off");
}

#[test]
fn a_server_that_runs_is_registered_as_it_is_when_it_is_off_or_after_it_was_switched_off() {
    for (newcomer, acts, waits) in [
        (Newcomer::Register, vec![], false),
        (Newcomer::AwaitOff, vec![], true),
        (Newcomer::SwitchOff, vec!["ShutDown"], false),
    ] {
        let mut world = World::new(Goal { newcomer, ..Goal::default() }, Server::running());
        world.run(3600);
        assert_eq!(world.acts(), acts, "{newcomer:?}");
        if waits {
            assert_eq!((world.phase(), world.wait().as_deref()), (Phase::Registering, Some("WaitingForServerOff")));
            assert!(world.server.on, "nobody switches it off");
            world.server.on = false;
            world.run(300);
        }
        assert_eq!(world.phase(), Phase::Available, "{newcomer:?}");
        // Once it is registered, the server may run as before.
        world.log.clear();
        world.server.on = true;
        world.run(3600);
        assert_eq!((world.acts(), world.phase()), (vec![], Phase::Available));
    }
}

#[test]
fn a_newcomer_that_somebody_has_claimed_is_never_switched_off() {
    let goal = Goal { newcomer: Newcomer::SwitchOff, ..ordered("a", IMAGE) };
    let mut world = World::new(goal, Server::running());
    world.proof = Some(Proof::Free);
    world.run(3600);
    assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("WaitingForServerOff")));
    assert!(world.server.on);
}

#[test]
fn a_gentle_release_lets_the_system_shut_down_and_cuts_the_power_if_it_does_not() {
    for (deaf, gentle, acts) in
        [(false, true, vec!["ShutDown"]), (true, true, vec!["ShutDown", "PowerOff"]), (false, false, vec!["PowerOff"])]
    {
        let mut world = World::provisioned();
        world.server.temper.deaf = deaf;
        world.log.clear();
        world.goal = Goal { gentle_release: gentle, ..Goal::default() };
        world.consumer = Presence::Gone;
        world.run_to(Phase::Available);
        let mut power = world.acts();
        power.retain(|act| matches!(*act, "ShutDown" | "PowerOff"));
        assert_eq!(power, acts, "deaf {deaf}, gentle {gentle}");
        assert!(world.server.is_tidy());
    }
}

#[test]
fn a_later_start_waits_for_the_gate_if_it_boots_the_same_again() {
    let gate = |open| Some(Gate { keeper: "the boot provider".into(), open });
    for starts in [Starts::First, Starts::EveryByUs] {
        let mut world = World::available();
        let order = Order { gate: gate(true), ..order_by("a", pxe(starts)) };
        world.goal = Goal { order: Some(order), online: Some(true), power_lasts: Lasting::Always, ..claimed("a") };
        world.run_to(Phase::Provisioned);
        world.goal.online = Some(false);
        world.run(600);
        assert!(!world.server.on);
        world.log.clear();
        world.goal.order.as_mut().unwrap().gate = gate(false);
        world.goal.online = Some(true);
        world.run(3600);
        if starts == Starts::EveryByUs {
            assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("WaitingForBootPermission")));
            world.goal.order.as_mut().unwrap().gate = gate(true);
            world.run(600);
            assert_eq!((world.acts(), &world.server.runs), (vec!["SetBoot", "PowerOn"], &Runs::Network));
        } else {
            assert_eq!(world.acts(), ["PowerOn"], "it boots its disk");
        }
        // A server that runs is left alone, whatever becomes of the gate.
        world.log.clear();
        world.goal.order.as_mut().unwrap().gate = gate(false);
        world.run(3600);
        assert_eq!((world.acts(), world.server.on, world.wait()), (vec![], true, None));
    }
}

#[test]
fn a_restart_request_is_told_as_heeded_when_it_is_carried_out() {
    for restart in [Restart::Reset, Restart::OffThenOn(Manner::Hard)] {
        let mut world = World::provisioned();
        world.goal.restart = restart;
        world.goal.reboot = Some("now".into());
        let is_heeded = |world: &World| world.last.as_ref().is_some_and(|step| step.heeded.contains(&Request::Restart));
        world.run_until(600, is_heeded);
        // Whoever takes the request off now does not undo it.
        world.goal.reboot = None;
        world.run(1800);
        assert!(world.server.on && world.anchor().restarting.is_none(), "{restart:?}");
        assert_eq!(world.acts().len(), if restart == Restart::Reset { 1 } else { 2 }, "{:?}", world.acts());
    }
}

#[test]
fn a_server_that_waits_for_its_gate_is_not_started_but_may_be_switched_off() {
    let gate = |open| Some(Gate { keeper: "the boot provider".into(), open });
    for online in [None, Some(true), Some(false)] {
        let mut world = World::available();
        let order = Order { gate: gate(false), ..order_by("a", pxe(Starts::EveryByUs)) };
        world.goal = Goal { order: Some(order), online, power_lasts: Lasting::Always, ..claimed("a") };
        world.run(3600);
        assert_eq!((world.acts(), world.phase()), (vec![], Phase::Preparing), "{online:?}");
        assert_eq!(world.wait().as_deref(), Some("WaitingForBootPermission"));
        if online == Some(false) {
            world.server.on = true;
            world.run(3600);
            assert!(!world.server.on);
        }
    }
}
