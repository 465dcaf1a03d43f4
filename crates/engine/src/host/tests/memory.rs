//! What is remembered, lost, brought back, unreadable; and hosts that came to us in use.

use super::{
    IMAGE, OTHER_IMAGE, claim, claimed, order, ordered, secs,
    server::{Runs, Server},
    world::{Mishap, World},
};
use crate::{
    failure::Kind,
    host::{
        Anchor, AuthHold, Author, BrakeLimit, Consumer, Deed, Goal, Milestone, Neutral, Phase, Presence, Proof, Undo,
        Waiting,
    },
    server::{BootTarget, PowerState},
};

#[test]
fn a_status_lost_at_any_time_is_rebuilt_and_the_deployment_goes_on() {
    for after in 0..30 {
        let mut world = World::with(ordered("a", IMAGE));
        for _ in 0..after {
            let next = world.reconcile(Mishap::Nothing);
            world.now = world.now.max(next);
        }
        world.status = None;
        world.consumer = Presence::Exists;
        world.run_to(Phase::Provisioned);
        world.run(60);
        assert_eq!(world.server.runs, Runs::Image(IMAGE.into()), "lost after {after} turns");
        assert_eq!(world.server.starts, 1, "lost after {after} turns");
        assert!(!world.anchor().adopted);
    }
}

#[test]
fn a_wait_for_the_brake_goes_on_if_an_earlier_version_stored_it_as_a_sentence() {
    let mut world = World::with(ordered("a", IMAGE));
    world.braked = true;
    world.run(600);
    let since = world.record().wait.unwrap().since;
    let mut stored = serde_json::to_value(world.record()).unwrap();
    stored["wait"]["what"] = serde_json::json!({"FleetBrake": {"why": "Waiting for the fleet brake: next in queue."}});
    world.status = serde_json::from_value(stored).unwrap();
    assert_eq!(world.record().wait.unwrap().what, Waiting::FleetBrake { limit: None });
    world.run(60);
    let wait = world.record().wait.unwrap();
    assert_eq!((wait.what, wait.since), (Waiting::FleetBrake { limit: Some(BrakeLimit::Frozen) }, since));
}

#[test]
fn a_status_lost_while_releasing_does_not_end_the_release() {
    for after in 0..12 {
        let mut world = World::provisioned();
        world.goal = Goal::default();
        world.consumer = Presence::Gone;
        world.run_to(Phase::Deprovisioning);
        for _ in 0..after {
            let next = world.reconcile(Mishap::Nothing);
            world.now = world.now.max(next);
        }
        world.status = None;
        world.run_to(Phase::Available);
        assert!(world.server.is_tidy(), "lost after {after} turns");
    }
}

#[test]
fn a_provisioned_host_survives_the_loss_of_its_status_untouched() {
    let mut world = World::provisioned();
    world.goal.reboot = Some("monday".into());
    world.run(60);
    assert_eq!(world.acts(), ["Restart"]);
    world.goal.inspect = Some("monday".into());
    world.run(60);
    let anchor = world.annotation.clone();
    for crashed in [false, true] {
        world.status = None;
        if crashed {
            world.crash();
        }
        world.run(3600);
        assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
        assert_eq!(world.annotation, anchor);
        assert_eq!(world.acts(), ["Restart"], "a request that was carried out is not carried out again");
        assert!(world.record().inspected);
        assert_eq!(world.record().power, PowerState::On);
    }
}

#[test]
fn a_move_to_another_cluster_brings_the_anchor_and_nothing_is_done() {
    let old = World::provisioned();
    let mut world = World::new(Goal { reboot: Some("before".into()), ..old.goal.clone() }, old.server.clone());
    world.annotation = old.annotation;
    world.now = old.now;
    world.run(3600);
    assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0));
    assert!(!world.anchor().adopted);
}

#[test]
fn an_annotation_that_somebody_removes_or_brings_back_from_long_ago_is_not_believed() {
    let mut world = World::provisioned();
    let anchor = world.annotation.clone();
    for meddled in [None, world.anchors.first().cloned()] {
        world.annotation = meddled;
        world.run(600);
        assert_eq!(world.annotation, anchor);
        assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0));
    }
}

#[test]
fn a_crash_between_any_two_writes_and_acts_of_a_life_is_made_up_for() {
    let mishaps = [
        Mishap::AnchorConflict,
        Mishap::CrashBeforeStatus,
        Mishap::StatusConflict,
        Mishap::CrashAfterActs(0),
        Mishap::CrashAfterActs(1),
        Mishap::CrashAfterActs(2),
        Mishap::CrashBeforeLook,
        Mishap::LateSight,
    ];
    for mishap in mishaps {
        for turn in 0..24 {
            let mut world = World::new(Goal::default(), Server::running());
            world.run_to(Phase::Available);
            world.goal = ordered("a", IMAGE);
            world.run_with(600, Some((turn, mishap)));
            assert_eq!(world.phase(), Phase::Provisioned, "{mishap:?} in turn {turn}");
            assert_eq!(world.server.runs, Runs::Image(IMAGE.into()), "{mishap:?} in turn {turn}");
            world.goal = Goal::default();
            world.run_with(600, Some((turn, mishap)));
            assert_eq!(world.phase(), Phase::Available, "{mishap:?} in turn {turn}");
            assert!(world.server.is_tidy(), "{mishap:?} in turn {turn}");
        }
    }
}

#[test]
fn an_unreadable_anchor_stops_everything_until_it_is_put_right() {
    for garbage in ["", "{", "{}", "null", r#"{"v":2,"milestone":"elsewhere"}"#, r#"{"v":1,"milestone":"elsewhere"}"#] {
        for lost in [false, true] {
            let mut world = World::provisioned();
            let good = world.annotation.replace(garbage.into());
            if lost {
                world.status = None;
            }
            world.goal = Goal { online: Some(false), reboot: Some("now".into()), ..Goal::default() };
            world.consumer = Presence::Gone;
            world.run(48 * 3600);
            assert_eq!(world.fault(), Some(Kind::AnchorUnreadable), "{garbage}");
            assert_eq!(world.annotation.as_deref(), Some(garbage), "not ours to overwrite");
            world.goal = ordered("a", IMAGE);
            world.run(60);
            assert_eq!(world.acts(), [""; 0], "{garbage}");
            world.annotation = good;
            world.run(3600);
            assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None), "{garbage}");
            assert!(!world.anchor().adopted);
            assert_eq!(world.acts(), [""; 0], "{garbage}");
        }
    }
}

#[test]
fn removing_an_unreadable_anchor_after_the_status_was_lost_does_not_make_a_running_node_look_free() {
    for claimed_meanwhile in [false, true] {
        let mut world = World::provisioned();
        world.goal.provision = Some("a".into());
        let goal = world.goal.clone();
        world.annotation = Some("garbage".into());
        world.status = None;
        if claimed_meanwhile {
            world.goal = Goal::default();
            world.run(60);
            world.goal = goal;
        }
        world.run(60);
        world.goal.provision = None;
        world.annotation = None;
        world.run(3600);
        assert_eq!((world.phase(), world.anchor().adopted), (Phase::Provisioned, true));
        assert_eq!(world.acts(), [""; 0]);
    }
}

#[test]
fn a_host_created_in_use_is_adopted_and_left_as_it_is() {
    for server in [Server::running(), Server::off()] {
        let mut world = World::new(ordered("a", IMAGE), server);
        world.consumer = Presence::Exists;
        world.run(24 * 3600);
        assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
        assert_eq!(world.notes(), ["Adopted"]);
        assert_eq!(world.events, ["Adopted"]);
        assert_eq!(world.acts(), [""; 0]);
        assert!(world.anchor().adopted && world.anchor().seq > 0);
        assert!(world.record().inspected);
    }
}

#[test]
fn a_host_that_another_operator_has_deployed_is_taken_over_as_it_is_and_cleaned_up_in_the_end() {
    let mut world = World::new(ordered("a", IMAGE), Server::running());
    (world.consumer, world.proof) = (Presence::Exists, Some(Proof::Deployed));
    world.run(24 * 3600);
    assert_eq!((world.phase(), world.fault(), world.notes()), (Phase::Provisioned, None, vec![]));
    assert_eq!((world.events.clone(), world.acts()), (vec!["TakenOver"], vec![]));
    let anchor = world.anchor();
    assert_eq!((anchor.adopted, anchor.claim_id(), anchor.milestone), (false, "a", Milestone::Provisioned));

    // What it was booted from is not known: whatever there may be of it is taken back.
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run(600);
    assert_eq!(world.phase(), Phase::Available);
    assert!(world.server.is_tidy());
}

#[test]
fn a_claimed_host_of_which_another_operator_says_that_nothing_was_done_is_provisioned() {
    let mut world = World::new(ordered("a", IMAGE), Server::off());
    (world.consumer, world.proof) = (Presence::Exists, Some(Proof::Free));
    world.run_to(Phase::Provisioned);
    assert_eq!((world.server.runs.clone(), world.anchor().adopted), (Runs::Image(IMAGE.into()), false));
}

#[test]
fn what_another_operator_says_counts_for_nothing_where_we_know_ourselves() {
    for proof in [Proof::Free, Proof::Deployed, Proof::Releasing, Proof::InUse] {
        let mut world = World::provisioned();
        for lost in [|world: &mut World| world.status = None, |world: &mut World| world.annotation = None] {
            world.proof = Some(proof);
            lost(&mut world);
            world.run(3600);
            assert_eq!((world.phase(), world.anchor().adopted), (Phase::Provisioned, false), "{proof:?}");
            assert_eq!(world.acts(), [""; 0]);
        }
    }
}

#[test]
fn an_adopted_host_is_provisioned_when_its_owner_says_so_once() {
    let mut world = World::new(ordered("a", IMAGE), Server::running());
    world.consumer = Presence::Exists;
    world.run(60);
    world.goal.provision = Some("a".into());
    world.run(600);
    assert_eq!((world.phase(), world.anchor().adopted), (Phase::Provisioned, false));
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
    assert_eq!(world.goal.provision, None, "heeded once");
    world.log.clear();
    world.status = None;
    world.run(3600);
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn an_old_wish_to_be_provisioned_does_not_reinstall_a_running_server() {
    for (value, off) in
        [("true", false), ("true", true), ("b", true), ("machine-a", false), ("default/machine-a", false)]
    {
        let server = if off { Server::off() } else { Server::running() };
        let mut world = World::new(Goal { provision: Some(value.into()), ..ordered("a", IMAGE) }, server);
        world.consumer = Presence::Exists;
        world.run(24 * 3600);
        assert_eq!(
            (world.phase(), world.anchor().adopted, world.acts().len()),
            (Phase::Provisioned, true, 0),
            "{value}"
        );
        let note = &world.last.as_ref().unwrap().notes[0].tell(&Neutral);
        assert!(note.contains("by the id a of the claim") && note.contains(value), "{note}");
    }
}

#[test]
fn an_adopted_host_whose_claim_is_unclear_is_not_provisioned() {
    let mut world = World::new(ordered("a", IMAGE), Server::running());
    world.consumer = Presence::Exists;
    world.run(60);
    world.goal = Goal { provision: Some("a".into()), ..ordered("b", IMAGE) };
    world.run(600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(Kind::ConsumerMismatch)));
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn a_host_created_with_a_claim_and_the_wish_to_be_provisioned_is_provisioned() {
    let table: [(&str, Server, &[&str]); 3] = [
        ("a", Server::running(), &["PowerOff", "InsertMedia", "SetBoot", "PowerOn"]),
        ("a", Server::off(), &["InsertMedia", "SetBoot", "PowerOn"]),
        // Whoever writes a manifest does not know the id.
        ("machine-a", Server::off(), &["InsertMedia", "SetBoot", "PowerOn"]),
    ];
    for (value, server, acts) in table {
        let mut world = World::new(Goal { provision: Some(value.into()), ..ordered("a", IMAGE) }, server);
        world.run_until(600, |world| world.status.is_some() && world.acts().contains(&"PowerOn"));
        world.run_to(Phase::Provisioned);
        assert!(!world.anchor().adopted);
        assert_eq!(world.acts(), acts, "{value}");
        assert_eq!(world.goal.provision, None, "{value}");
    }
}

#[test]
fn a_released_adopted_host_is_switched_off_like_any_other() {
    let mut world = World::new(ordered("a", IMAGE), Server::running());
    world.run(60);
    world.goal = Goal::default();
    world.run(600);
    assert_eq!((world.phase(), world.anchor().adopted), (Phase::Available, false));
    assert!(world.server.is_tidy());
}

#[test]
fn who_edits_the_phase_in_a_status_does_not_make_a_running_node_look_free() {
    for phase in Phase::ALL {
        let mut world = World::provisioned();
        let mut record = world.record();
        record.phase = phase;
        record.left = Some(Phase::Available);
        world.status = Some(record);
        world.run(600);
        assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0), "{phase:?}");
    }
}

#[test]
fn a_former_leader_whose_clock_was_fast_does_not_make_us_wait_for_it() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.slow = 20;
    world.now += secs(3 * 24 * 3600);
    world.run_to(Phase::Provisioning);
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(5);
    world.server.temper.blind = None;
    world.crash();
    world.now -= secs(3 * 24 * 3600);
    let old = std::mem::replace(&mut world.server, Server::off());
    (world.server.media, world.server.boot) = (old.media, old.boot);
    world.run(7 * 3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
}

#[test]
fn an_anchor_of_the_longest_names_fits_into_its_annotation() {
    let long = |length| "x".repeat(length);
    let mut claim = claim(&long(64));
    claim.consumer =
        Some(Consumer { api_version: long(253 + 63), kind: long(63), namespace: long(63), name: long(253) });
    let mut world = World::available();
    world.goal = Goal { claim: Some(claim), pin_on_first_use: true, ..ordered("a", IMAGE) };
    world.server.uuid = Some(long(100_000));
    world.server.certificate = Some(long(64));
    world.annotation = None;
    world.status = None;
    world.run(600);
    let mut anchor = world.anchor();
    assert_eq!(anchor.uuid.as_ref().map(String::len), Some(64));
    anchor.deployment = Some(long(64));
    anchor.hold = Some(AuthHold { until: world.now, count: u32::MAX, inputs: long(64) });
    anchor.seq = u64::MAX;
    let text = anchor.to_json();
    assert!(text.len() <= 4096, "{}", text.len());
    assert_eq!(Anchor::parse(&text), Ok(anchor));
    // The same server is still the same, although only the beginning of its UUID is known.
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None));
}

#[test]
fn what_the_anchor_says_is_stable_on_the_wire() {
    let anchor = Anchor {
        seq: 7,
        claim: Some(claim("a")),
        deployment: Some("d".into()),
        milestone: Milestone::Written,
        undo: Some(vec![Undo::Media, Undo::Boot(BootTarget::Cd)]),
        uuid: Some("u".into()),
        ..Anchor::default()
    };
    let text = r#"{"v":2,"seq":7,"claim":{"id":"a","consumer":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Beskar7Machine","namespace":"default","name":"machine-a"}},"deployment":"d","milestone":"written","undo":["media",{"boot":"Cd"}],"uuid":"u"}"#;
    let stored = anchor.to_json();
    assert_eq!(stored.rsplit_once(",\"sum\"").unwrap().0, text.strip_suffix('}').unwrap());
    assert_eq!(Anchor::parse(&stored), Ok(anchor.clone()));
    assert_eq!(Anchor::parse(text), Ok(anchor), "without a checksum, as older versions wrote it");
    let empty = Anchor { version: 1, ..Anchor::default() };
    assert_eq!(empty.to_json(), r#"{"v":1,"seq":0,"sum":"28c23a2c847ca515"}"#);
    let newer = Anchor::parse(r#"{"v":3}"#).unwrap_err();
    assert!(newer.kind == Kind::AnchorUnreadable && newer.to_string().contains("format 3"), "{newer}");
}

#[test]
fn a_lost_status_of_a_claimed_host_that_waits_for_an_order_changes_nothing() {
    let mut world = World::with(claimed("a"));
    world.run(60);
    world.status = None;
    world.run(600);
    assert_eq!(world.phase(), Phase::Preparing);
    assert_eq!((world.wait().as_deref(), world.acts().len()), (Some("WaitingForBootInfo"), 0));
}

#[test]
fn an_anchor_that_was_unreadable_for_a_while_is_believed_again_even_a_young_one() {
    let mut world = World::new(Goal::default(), Server::off());
    world.reconcile(Mishap::Nothing);
    world.goal = ordered("a", IMAGE);
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    assert_eq!((world.anchor().seq, world.anchor().milestone), (2, Milestone::Armed));
    let good = world.annotation.replace("garbage".into());
    world.status = None;
    world.run(60);
    world.annotation = good;
    world.run(300);
    assert_eq!((world.phase(), world.anchor().adopted), (Phase::Provisioned, false));
}

#[test]
fn an_act_that_was_lost_with_its_process_is_made_up_for_as_soon_as_that_is_safe() {
    // A BMC may still be at it with media, and then what it shows means nothing.
    for (deed, act, wait) in [(Deed::PrepareBoot, "InsertMedia", 185), (Deed::PowerOn, "PowerOn", 5)] {
        let mut world = World::with(ordered("a", IMAGE));
        world.run_until(60, |world| deed == Deed::PrepareBoot || world.acts().contains(&"SetBoot"));
        crash_in(&mut world, deed, 0);
        assert!(!world.acts().contains(&act));
        world.run(wait);
        assert!(world.acts().contains(&act), "{:?}", world.acts());
        assert_eq!(world.fault(), None);
    }
}

#[test]
fn an_image_that_was_still_on_its_way_into_the_drive_when_all_was_lost_is_ejected_in_the_end() {
    for status_is_lost in [false, true] {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.slow_media = 60;
        crash_in(&mut world, Deed::PrepareBoot, 1);
        assert_eq!(world.acts(), ["InsertMedia"]);
        world.goal = Goal::default();
        if status_is_lost {
            world.status = None;
        }
        world.run_to(Phase::Available);
        world.run(300);
        assert!(world.server.is_tidy(), "{:?}", world.server);
    }
}

#[test]
fn an_image_that_is_still_on_its_way_out_of_the_drive_is_not_taken_for_the_one_to_boot() {
    for status_is_lost in [false, true] {
        let mut world = World::with(ordered("a", IMAGE));
        crash_in(&mut world, Deed::PrepareBoot, 2);
        world.server.temper.slow_media = 60;
        world.run_until(300, |world| world.record().doing.is_none());
        crash_in(&mut world, Deed::PrepareBoot, 1);
        assert_eq!(world.acts(), ["InsertMedia", "SetBoot", "EjectMedia"]);
        world.server.temper.slow_media = 0;
        if status_is_lost {
            world.status = None;
            world.consumer = Presence::Exists;
        }
        world.run_to(Phase::Provisioned);
        world.run(60);
        assert_eq!((&world.server.runs, world.server.starts), (&Runs::Image(IMAGE.into()), 1));
    }
}

/// Lets the process die when it was at that, and had done so much of it.
fn crash_in(world: &mut World, deed: Deed, acts: usize) {
    while world.record().doing.is_none_or(|doing| doing.what != deed) {
        let next = world.reconcile(Mishap::CrashAfterActs(acts));
        world.now = world.now.max(next);
    }
    world.crash();
}

#[test]
fn a_conflict_does_not_make_the_image_of_an_order_pass_for_that_of_the_next() {
    let mut world = World::with(ordered("a", IMAGE));
    world.server.temper.nameless_media = true;
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.goal.order = Some(order("a", OTHER_IMAGE));
    world.reconcile(Mishap::StatusConflict);
    world.run_to(Phase::Provisioned);
    world.run(60);
    assert_eq!(world.server.runs, Runs::Image(OTHER_IMAGE.into()));
}

#[test]
fn an_off_is_not_believed_either_when_we_forgot_that_we_gave_power() {
    for releasing in [false, true] {
        let mut world = World::with(ordered("a", IMAGE));
        world.server.temper.lies = 30;
        world.run_until(60, |world| world.acts().contains(&"PowerOn"));
        if releasing {
            world.goal = Goal::default();
            world.reconcile(Mishap::Nothing);
            assert_eq!(world.phase(), Phase::Deprovisioning);
        }
        world.status = None;
        world.goal = Goal::default();
        world.run(300);
        assert_eq!(world.phase(), Phase::Available);
        assert!(world.server.is_tidy(), "{:?}", world.server);
    }
}

/// An anchor as somebody leaves it who changes the milestone by hand, and the number as well or not.
fn edited(anchor: &Anchor, milestone: Milestone, seq: u64, sum: bool) -> String {
    if sum {
        return Anchor { seq, milestone, ..anchor.clone() }.to_json();
    }
    let (from, to) = (anchor.milestone.as_str(), milestone.as_str());
    let text = anchor.to_json().replace(&format!("\"{from}\""), &format!("\"{to}\""));
    text.replace(&format!("\"seq\":{}", anchor.seq), &format!("\"seq\":{seq}"))
}

#[test]
fn an_edited_anchor_does_not_bring_a_running_server_back_to_where_it_may_be_switched_off() {
    for milestone in [Milestone::Armed, Milestone::Written] {
        for (ahead, sum, lost) in
            [(0, true, false), (1, true, false), (9, true, false), (1, false, false), (1, false, true)]
        {
            let mut world = World::provisioned();
            let good = world.anchor();
            let text = edited(&good, milestone, good.seq + ahead, sum);
            world.annotation = Some(text.clone());
            if lost {
                world.status = None;
            }
            world.crash();
            world.goal.online = Some(false);
            world.run(6 * 3600);
            let shown = format!("{milestone:?}, {ahead} ahead, with checksum {sum}, status lost {lost}");
            assert_eq!((world.fault(), world.acts().len()), (Some(Kind::AnchorEdited), 0), "{shown}");
            let told = world.record().fault.unwrap().failure.to_string();
            assert!(told.contains("the anchor") && told.contains("remove it"), "{told}");
            assert_eq!(world.annotation, Some(text), "not ours to overwrite");

            world.goal = ordered("a", IMAGE);
            world.annotation = None;
            world.run(600);
            assert_eq!((world.phase(), world.fault(), world.acts().len()), (Phase::Provisioned, None, 0), "{shown}");
            assert!(world.server.on, "{shown}");
        }
    }
}

#[test]
fn an_anchor_that_goes_back_from_written_is_not_believed() {
    for milestone in [Milestone::None, Milestone::Armed] {
        for ahead in [0, 1] {
            let mut world = World::with(ordered("a", IMAGE));
            world.run_to(Phase::Provisioning);
            let (good, acts) = (world.anchor(), world.acts().len());
            world.annotation = Some(edited(&good, milestone, good.seq + ahead, true));
            world.consumer = Presence::Exists;
            world.run(3600);
            let shown = format!("{milestone:?}, {ahead} ahead");
            assert_eq!((world.fault(), world.acts().len()), (Some(Kind::AnchorEdited), acts), "{shown}");
            assert_eq!(world.server.starts, 1, "{shown}");
            // As the message says.
            world.annotation = None;
            world.run_to(Phase::Provisioned);
            world.run(60);
            assert_eq!((world.server.starts, world.fault()), (1, None), "{shown}");
        }
    }
}

#[test]
fn an_anchor_contradicts_what_is_known_only_if_it_goes_back_within_a_deployment_that_may_run() {
    use Milestone::{Armed, None, Provisioned, Releasing, Written};
    let anchor = |milestone, deployment: &str, adopted| Anchor {
        claim: Some(claim("a")),
        deployment: Some(deployment.into()),
        milestone,
        adopted,
        seq: 7,
        ..Anchor::default()
    };
    let all = [None, Armed, Written, Provisioned, Releasing];
    for known in all {
        for shown in all {
            let goes_back = shown < known && known >= Written;
            let contradicts = |shown: &Anchor, adopted| shown.contradicts(&anchor(known, "d", adopted)).is_some();
            assert_eq!(contradicts(&anchor(shown, "d", false), false), goes_back, "{known:?} to {shown:?}");
            assert!(!contradicts(&anchor(shown, "d", false), true), "adopted, {known:?} to {shown:?}");
            assert!(!contradicts(&anchor(shown, "e", false), false), "another deployment");
            assert!(!contradicts(&Anchor { seq: 6, ..anchor(shown, "d", false) }, false), "an old copy");
        }
    }
}

#[test]
fn an_announced_claim_is_accepted_with_the_anchor_that_it_brought() {
    for online in [None, Some(false)] {
        let mut world = World::with(Goal { online, ..Goal::default() });
        world.run(60);
        world.announce("a");
        let (announced, writes) = (world.annotation.clone(), world.writes);
        assert_eq!(world.anchor().milestone, Milestone::Armed);
        world.run_until(60, |world| world.acts().contains(&"InsertMedia"));
        assert_eq!((world.annotation.clone(), world.writes), (announced, writes + 1), "only the status is written");
        world.run_to(Phase::Provisioned);
        assert_eq!((world.server.runs.clone(), world.server.starts), (Runs::Image(IMAGE.into()), 1));
    }
}

#[test]
fn nothing_is_done_for_an_announced_claim_of_a_ghost() {
    let mut world = World::with(Goal::default());
    world.run(60);
    world.announce("a");
    world.claimer = Presence::Gone;
    world.run(3600);
    assert_eq!((world.phase(), world.goal.claim.clone()), (Phase::Available, None));
    assert_eq!((world.acts(), world.anchor().is_in_use()), (Vec::new(), false));
}

#[test]
fn an_announced_claim_that_is_taken_off_leaves_the_server_as_it_was() {
    let mut world = World::with(Goal { online: Some(true), ..Goal::default() });
    world.run(300);
    let acts = world.acts();
    world.announce("a");
    world.goal = Goal { online: Some(true), ..Goal::default() };
    world.consumer = Presence::Gone;
    world.run(600);
    assert!(world.phase() == Phase::Available && world.server.on);
    assert_eq!((world.acts(), world.anchor().is_in_use()), (acts, false));
}

#[test]
fn an_armed_host_whose_status_is_older_than_one_step_is_not_taken_for_free() {
    let mut world = World::with(Goal::default());
    world.run(60);
    let old = world.status.clone();
    world.goal = ordered("a", IMAGE);
    world.run_until(60, |world| world.acts().contains(&"InsertMedia"));
    let anchor = Anchor { seq: world.anchor().seq + 1, ..world.anchor() };
    world.annotation = Some(anchor.to_json());
    world.status = old;
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run_to(Phase::Deprovisioning);
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy());
}

#[test]
fn a_request_for_power_counts_although_the_claim_after_it_was_announced_on_an_old_annotation() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run(28);
    world.annotation = Some("{\"v\":99}".into());
    world.run(4);
    world.annotation = world.anchors.first().cloned();
    world.goal.online = Some(true);
    world.announce("a");
    world.run_to(Phase::Provisioned);
    assert_eq!(world.fault(), None);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn a_request_for_power_counts_although_the_claim_after_it_was_accepted_and_lost_in_a_crash() {
    let mut world = World::with(Goal { author: Author::Claimer, ..ordered("a", IMAGE) });
    world.press(true);
    world.goal.online = Some(true);
    world.status = None;
    world.run_with(3, Some((1, Mishap::CrashBeforeStatus)));
    world.run_to(Phase::Provisioned);
    assert_eq!(world.fault(), None);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}
