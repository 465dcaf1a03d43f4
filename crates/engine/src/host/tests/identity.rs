//! Whether it is the right server: duplicates, changed addresses and boards, certificates.

use super::{IMAGE, claimed, ordered, secs, server::Server, world::World};
use crate::{
    failure::Kind,
    host::{Detachment, Goal, Milestone, Phase, Presence, Road},
};

#[test]
fn a_duplicate_gives_way_and_goes_on_when_the_other_is_gone() {
    for mut world in [World::new(Goal::default(), Server::off()), World::available(), World::provisioned()] {
        world.goal.online = Some(false);
        world.rival = Some("default/first".into());
        let looks = world.looks;
        world.run(24 * 3600 - 60);
        assert_eq!(world.fault(), Some(Kind::DuplicateHost));
        assert!(world.record().fault.unwrap().failure.to_string().contains("default/first"));
        assert_eq!((world.acts().len(), world.looks), (0, looks));
        assert_eq!(world.events.iter().filter(|reason| **reason == "DuplicateHost").count(), 1);
        world.rival = None;
        world.goal.online = None;
        world.run(120);
        assert_eq!(world.fault(), None);
        assert_ne!(world.phase(), Phase::Registering);
    }
}

#[test]
fn another_board_behind_the_address_of_a_host_in_use_is_not_touched() {
    let mut world = World::provisioned();
    world.server.uuid = Some("u-2".into());
    world.goal.online = Some(false);
    world.goal.reboot = Some("now".into());
    world.goal.inspect = Some("now".into());
    world.run(6 * 3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(Kind::SystemChanged)));
    assert!(world.record().fault.unwrap().count > 10, "it backs off");
    assert_eq!(world.events, ["SystemChanged"], "and is told once");
    assert_eq!(world.acts(), [""; 0]);
    world.goal = ordered("a", IMAGE);
    world.server.uuid = Some("u-1".into());
    world.run(3600);
    assert_eq!((world.fault(), world.acts().len()), (None, 0));
}

#[test]
fn another_board_is_not_released_or_deleted_either() {
    let mut world = World::provisioned();
    world.server.uuid = Some("u-2".into());
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run(3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Deprovisioning, Some(Kind::SystemChanged)));
    world.goal.road = Road::Delete(crate::host::Deletion::CleanUp);
    world.run(1200);
    assert!(world.finished && world.events.contains(&"LeftAsItIs"));
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn a_replaced_board_of_a_free_host_is_accepted_when_an_inspection_is_asked_for() {
    for goal in [Goal::default(), ordered("a", IMAGE)] {
        let mut world = World::available();
        world.server.uuid = Some("u-2".into());
        world.run(3600);
        assert_eq!(world.fault(), Some(Kind::SystemChanged));
        let asked = world.now;
        world.goal = Goal { inspect: Some("replaced".into()), ..goal };
        world.run(120);
        assert_eq!((world.anchor().uuid.as_deref(), world.fault()), (Some("u-2"), None));
        assert!(world.timeline.iter().any(|moment| moment.at.duration_since(asked) < secs(5)));
    }
}

#[test]
fn an_address_that_is_changed_while_nobody_uses_the_host_is_another_server() {
    let mut world = World::available();
    world.goal.pin_on_first_use = true;
    world.goal.inspect = Some("1".into());
    world.run(60);
    world.target = "elsewhere".into();
    world.inputs = "elsewhere".into();
    world.server = Server::running();
    world.server.uuid = Some("u-2".into());
    world.server.certificate = Some("c-2".into());
    world.run(60);
    let anchor = world.anchor();
    assert_eq!((anchor.uuid.as_deref(), anchor.pin.as_deref()), (Some("u-2"), Some("c-2")));
    assert_eq!((world.phase(), world.record().target.as_deref()), (Phase::Available, Some("elsewhere")));
}

#[test]
fn an_address_that_is_changed_during_maintenance_is_inspected_before_it_is_claimed() {
    let mut world = World::available();
    world.goal.road = Road::Park;
    world.run(60);
    world.target = "elsewhere".into();
    world.inputs = "elsewhere".into();
    world.server.uuid = Some("u-2".into());
    world.server.temper.blind = Some(Kind::Busy);
    world.run(60);
    world.goal = claimed("a");
    world.run(60);
    assert_eq!(world.phase(), Phase::Registering);
    world.server.temper.blind = None;
    world.run(600);
    assert_eq!((world.phase(), world.anchor().uuid.as_deref()), (Phase::Preparing, Some("u-2")));
}

#[test]
fn an_address_that_is_changed_under_a_claim_stops_everything() {
    let mut world = World::provisioned();
    world.target = "elsewhere".into();
    world.inputs = "elsewhere".into();
    world.goal.online = Some(false);
    world.run(12 * 3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(Kind::SystemChanged)));
    // Also a release waits: the server that is to be switched off is not there.
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run(3600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, Some(Kind::SystemChanged)));
    assert_eq!(world.acts(), [""; 0]);
    world.target = "bmc".into();
    world.inputs = "inputs".into();
    world.run(600);
    assert_eq!((world.phase(), world.server.is_tidy()), (Phase::Available, true));
}

#[test]
fn a_changed_address_is_accepted_when_the_owner_says_release() {
    let mut world = World::provisioned();
    world.target = "elsewhere".into();
    world.inputs = "elsewhere".into();
    world.server = Server::running();
    world.server.uuid = Some("u-2".into());
    world.goal.release = Some("a".into());
    world.run(600);
    assert_eq!(world.fault(), Some(Kind::SystemChanged), "the claim still stands");
    world.goal.claim = None;
    world.goal.order = None;
    world.run(600);
    assert_eq!((world.phase(), world.fault()), (Phase::Available, None));
    assert_eq!((world.anchor().milestone, world.anchor().uuid.as_deref()), (Milestone::None, Some("u-2")));
    assert!(world.events.contains(&"LeftAsItIs"));
    assert_eq!(world.acts(), [""; 0]);
}

#[test]
fn a_certificate_is_pinned_on_first_use_only_where_that_is_wanted() {
    for wanted in [false, true] {
        let mut world = World::new(Goal { pin_on_first_use: wanted, ..Goal::default() }, Server::off());
        world.run_to(Phase::Available);
        assert_eq!(world.anchor().pin.as_deref(), wanted.then_some("c-1"));
        world.status = None;
        world.run(120);
        assert_eq!(world.anchor().pin.as_deref(), wanted.then_some("c-1"), "it outlives the status");
        // The transport lets no other certificate pass, unless the owner gave a rule that goes before the pin.
        world.server.certificate = Some("c-2".into());
        world.run(120);
        assert_eq!(world.anchor().pin.as_deref(), wanted.then_some("c-2"), "what was accepted by that is the pin");
    }
}

#[test]
fn a_lost_status_does_not_make_us_forget_which_server_it_was() {
    let mut world = World::provisioned();
    world.status = None;
    world.run(60);
    assert_eq!(world.record().target.as_deref(), Some("bmc"));
    world.target = "elsewhere".into();
    world.run(60);
    assert_eq!(world.fault(), Some(Kind::SystemChanged));
}

#[test]
fn a_changed_address_is_accepted_also_on_the_way_back_from_maintenance() {
    for road in [Road::Park, Road::Detach(Detachment::AtOnce)] {
        let mut world = World::provisioned();
        world.goal.road = road;
        world.run(60);
        world.goal = Goal { release: Some("a".into()), ..claimed("b") };
        world.target = "elsewhere".into();
        let next = world.decide();
        assert_eq!((next.record.phase, next.record.left), (Phase::Registering, None));
        world.run(300);
        assert_eq!(world.phase(), Phase::Preparing);
        assert_eq!(world.acts(), [""; 0]);
    }
}

#[test]
fn a_uuid_in_the_other_byte_order_is_the_same_server() {
    let mut world = World::available();
    world.server.uuid = Some("4c4c4544-0042-3510-8053-b2c04f4c5232".into());
    world.goal.inspect = Some("replaced".into());
    world.run(600);
    assert_eq!(world.record().fault, None);
    world.server.uuid = Some("44454c4c-4200-1035-8053-b2c04f4c5232".into());
    world.run(600);
    assert_eq!((world.phase(), world.record().fault), (Phase::Available, None));
}
