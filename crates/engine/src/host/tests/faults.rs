//! Faults: how they are told, how long they hold us back, and how they end.

use jiff::SignedDuration;

use super::{
    IMAGE, ordered, secs,
    server::Server,
    world::{Mishap, World},
};
use crate::{
    failure::{Class, Kind},
    host::{Goal, Origin, Phase, Record},
};

fn failing(kind: Kind) -> World {
    let mut world = World::new(Goal::default(), Server::off());
    world.server.temper.blind = Some(kind);
    world.run(2);
    world
}

fn pause(record: &Record) -> SignedDuration {
    let fault = record.fault.as_ref().unwrap();
    fault.next_try.duration_since(fault.last)
}

#[test]
fn every_class_has_its_back_off() {
    let mins = SignedDuration::from_mins;
    let table = [
        (Kind::Unreachable, vec![secs(10), secs(20), secs(40), secs(80)], mins(10)),
        (Kind::Busy, vec![secs(10), secs(20), secs(40), secs(80)], mins(10)),
        (Kind::NotRedfish, vec![mins(1), mins(2), mins(4), mins(8)], mins(30)),
        (Kind::Internal, vec![mins(1), mins(2), mins(4), mins(8)], mins(30)),
        (Kind::ProtocolUnsupported, vec![mins(60), mins(60)], mins(60)),
        (
            Kind::AuthenticationFailed,
            vec![mins(1), mins(10), mins(20), mins(40), mins(80), mins(160), mins(320)],
            mins(360),
        ),
        (Kind::PasswordChangeRequired, vec![mins(1), mins(10), mins(20)], mins(360)),
    ];
    for (kind, expected, most) in table {
        let mut world = failing(kind);
        for (index, expected) in expected.iter().enumerate() {
            let record = world.record();
            assert_eq!(record.fault.as_ref().unwrap().count as usize, index + 1, "{kind:?}");
            assert_eq!(pause(&record), *expected, "{kind:?}");
            let looks = world.looks;
            world.run_until(24 * 3600, |world| world.looks > looks);
            world.reconcile(Mishap::Nothing);
        }
        world.run(7 * 24 * 3600);
        assert_eq!(pause(&world.record()), most, "{kind:?}");
        assert_eq!(world.events, [kind.reason()], "told once");
        assert_eq!(world.phase(), Phase::Registering);
    }
}

#[test]
fn the_next_try_comes_when_it_was_announced_also_at_rest() {
    for mut world in [World::available(), World::provisioned()] {
        world.server.temper.blind = Some(Kind::Unreachable);
        world.run_until(300, |world| world.fault().is_some());
        let next_try = world.record().fault.unwrap().next_try;
        let looks = world.looks;
        world.run_until(300, |world| world.looks > looks);
        assert!(world.now.duration_since(next_try) <= secs(2), "{} after {next_try}", world.now);
    }
}

#[test]
fn a_host_recovers_by_itself_and_says_so() {
    let mut world = failing(Kind::Unreachable);
    world.run(60);
    world.server.temper.blind = None;
    world.run(120);
    assert_eq!((world.phase(), world.fault()), (Phase::Available, None));
    assert_eq!(world.events, ["Unreachable", "Recovered", "Inspecting", "Available"]);
}

#[test]
fn new_inputs_are_tried_at_once() {
    for kind in
        [Kind::AuthenticationFailed, Kind::SecretNotFound, Kind::ProtocolUnsupported, Kind::CertificateUntrusted]
    {
        let mut world = failing(kind);
        world.run(4 * 3600);
        world.server.temper.blind = None;
        world.inputs = "corrected".into();
        world.run(3);
        assert_eq!((world.phase(), world.fault()), (Phase::Available, None), "{kind:?}");
    }
}

#[test]
fn new_inputs_that_fail_as_well_begin_the_count_anew() {
    let mut world = failing(Kind::AuthenticationFailed);
    world.run(4 * 3600);
    world.inputs = "also wrong".into();
    world.run(3);
    let record = world.record();
    assert_eq!((record.fault.as_ref().unwrap().count, pause(&record).as_mins()), (1, 1));
    assert_eq!(world.anchor().hold.unwrap().count, 1);
}

#[test]
fn refused_credentials_are_tried_once_more_after_a_minute_and_then_held_in_the_anchor() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::AuthenticationFailed);
    world.run(240);
    let looks = world.looks;
    let hold = world.anchor().hold.unwrap();
    assert_eq!((hold.count, hold.inputs.as_str()), (2, "inputs"));
    world.run(400);
    assert_eq!(world.looks, looks, "not again within ten minutes");

    // Neither a lost status nor a new process lifts it, nor does it count the same refusal twice.
    world.status = None;
    world.run(5);
    world.crash();
    world.status = None;
    world.run(5);
    assert_eq!(world.looks, looks);
    assert_eq!(world.anchor().hold, Some(hold.clone()));
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(Kind::AuthenticationFailed)));
    assert_eq!(world.record().fault.unwrap().next_try, hold.until);

    world.run(3600);
    assert_eq!(world.anchor().hold.unwrap().count, 4, "after 10 and 20 minutes");
    world.server.temper.blind = None;
    world.run(6 * 3600);
    assert_eq!((world.anchor().hold, world.fault()), (None, None));
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn new_credentials_lift_the_hold_also_after_a_lost_status() {
    let mut world = World::provisioned();
    world.server.temper.blind = Some(Kind::AuthenticationFailed);
    world.run(120);
    world.crash();
    world.status = None;
    world.server.temper.blind = None;
    world.inputs = "corrected".into();
    world.run(5);
    assert_eq!((world.anchor().hold, world.fault()), (None, None));
}

#[test]
fn an_act_that_fails_is_tried_again_in_its_time_however_often_we_look_meanwhile() {
    for kind in [Kind::Refused, Kind::Busy, Kind::Unsupported, Kind::AuthenticationFailed] {
        let mut world = World::available();
        world.goal.online = Some(true);
        world.server.temper.refuses = Some(kind);
        world.run(12 * 3600);
        let record = world.record();
        let fault = record.fault.as_ref().unwrap();
        assert_eq!((fault.failure.kind, fault.origin), (kind, Origin::Act));
        assert_eq!(fault.count as usize, world.acts().len(), "{kind:?}: every try counts, and nothing else");
        let least = match kind.class() {
            Class::Auth => 6,
            Class::Unsupported => 11,
            Class::Rejected => 20,
            _ => 60,
        };
        assert!(world.acts().len() >= least, "{kind:?}: {} tries", world.acts().len());
        world.server.temper.refuses = None;
        world.run(7 * 3600);
        assert!(world.server.on);
        assert_eq!(world.fault(), None);
    }
}

#[test]
fn the_watch_goes_on_while_an_act_waits_for_its_next_try() {
    let mut world = World::available();
    world.goal.online = Some(true);
    world.server.temper.refuses = Some(Kind::Unsupported);
    world.run(300);
    world.press(true);
    world.run(200);
    assert_eq!(world.fault(), None, "what the act was for is reached");
}

#[test]
fn one_failure_after_another_is_told_each_time() {
    let mut world = failing(Kind::Unreachable);
    world.server.temper.blind = Some(Kind::Busy);
    world.run(60);
    assert_eq!(world.events, ["Unreachable", "Busy"]);
    assert_eq!(world.record().fault.unwrap().origin, Origin::Look);
}

#[test]
fn a_failed_look_after_an_act_does_not_forget_what_was_done() {
    let mut world = World::with(ordered("a", IMAGE));
    world.run_until(60, |world| world.acts().contains(&"SetBoot"));
    world.sight.as_mut().unwrap().seen = Err(crate::failure::Failure::new(Kind::Busy, "busy"));
    world.run(300);
    assert_eq!(world.phase(), Phase::Provisioned);
    assert_eq!(world.acts(), ["InsertMedia", "SetBoot", "PowerOn"]);
}

#[test]
fn a_bmc_that_cannot_be_read_after_every_change_is_waited_for() {
    for blind in [6, 30, 50, 90, 400] {
        let mut world = World::available();
        world.server.media = Some("https://images.example/left-over.iso".into());
        world.server.on = true;
        world.server.temper.blind_after_act = blind;
        world.goal = ordered("a", IMAGE);
        world.run_to(Phase::Provisioned);
        let once = ["PowerOff", "EjectMedia", "InsertMedia", "SetBoot", "PowerOn"];
        assert_eq!(world.acts(), once, "blind for {blind} s");
        // What passes within a minute is nobody's business.
        assert_eq!(world.events.contains(&"Busy"), blind > 60, "blind for {blind} s");
        world.goal = Goal::default();
        world.run_to(Phase::Available);
        assert_eq!(world.acts()[5..], ["PowerOff", "EjectMedia"], "blind for {blind} s");
        assert!(world.server.is_tidy());
    }
}

#[test]
fn back_off_grows_while_a_bmc_stays_unreadable_after_an_act() {
    let mut world = World::available();
    world.goal.online = Some(true);
    world.run_until(60, |world| !world.log.is_empty());
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(24 * 3600);
    assert_eq!(pause(&world.record()), SignedDuration::from_mins(10));
    assert_eq!(world.acts(), ["PowerOn"]);
}

#[test]
fn hosts_are_spread_in_time() {
    use crate::host::pace;
    let last: jiff::Timestamp = "2026-11-18T08:00:00Z".parse().unwrap();
    assert_eq!(pace::rest(last, None, 0), last + secs(72));
    assert_eq!(pace::rest(last, None, 255), last + secs(108));
    assert_eq!(pace::back_off(Class::Transient, 1, 255), secs(12));
    assert_eq!(pace::back_off(Class::Transient, u32::MAX, 0), secs(600));
    assert_eq!(pace::boot_reminder(u32::MAX), secs(6 * 3600));
}

#[test]
fn a_fault_in_the_same_instant_as_new_inputs_does_not_spin() {
    let mut world = failing(Kind::Unreachable);
    let fault = world.record().fault.unwrap();
    world.inputs = "corrected".into();
    world.server.temper.blind = None;
    let seen = world.server.look(crate::server::Scope::Inventory, world.now);
    let sight = world.sight.as_mut().unwrap();
    (sight.at, sight.inputs, sight.seen) = (fault.last, "corrected".into(), seen);
    assert_eq!(world.decide().record.phase, Phase::Available);
}
