//! Maintenance and detaching.

use super::{
    IMAGE, claimed, ordered,
    server::{Runs, Server},
    world::World,
};
use crate::{
    failure::Kind,
    host::{Detachment, Goal, Phase, Presence, Road},
    server::PowerState,
};

fn in_phase(phase: Phase) -> World {
    let mut world = match phase {
        Phase::Registering => {
            let mut world = World::new(Goal::default(), Server::off());
            world.server.temper.blind = Some(Kind::Busy);
            world
        }
        Phase::Available => World::available(),
        Phase::Preparing => World::with(claimed("a")),
        Phase::Provisioning => World::with(ordered("a", IMAGE)),
        _ => World::provisioned(),
    };
    if phase == Phase::Deprovisioning {
        world.goal = Goal::default();
        world.consumer = Presence::Gone;
    }
    world.run_to(phase);
    world.log.clear();
    world
}

const PHASES: [Phase; 6] = [
    Phase::Registering,
    Phase::Available,
    Phase::Preparing,
    Phase::Provisioning,
    Phase::Provisioned,
    Phase::Deprovisioning,
];

#[test]
fn a_host_leaves_the_road_from_every_phase_and_comes_back_to_it() {
    for (road, aside) in [(Road::Park, Phase::Parked), (Road::Detach(Detachment::AtOnce), Phase::Detached)] {
        for phase in PHASES {
            let mut world = in_phase(phase);
            world.goal.road = road;
            world.goal.online = Some(false);
            world.goal.reboot = Some("soon".into());
            world.run(3600);
            assert_eq!((world.phase(), world.record().left), (aside, Some(phase)), "{phase:?}");
            assert_eq!(world.acts(), [""; 0], "{phase:?}");

            world.goal = Goal { road: Road::Manage, online: None, reboot: None, ..world.goal.clone() };
            world.server.temper.blind = None;
            let back = world.decide();
            assert!(back.record.left.is_none());
            world.run(1800);
            let expected = match phase {
                Phase::Registering | Phase::Available | Phase::Deprovisioning => Phase::Available,
                Phase::Preparing => Phase::Preparing,
                _ => Phase::Provisioned,
            };
            assert_eq!(world.phase(), expected, "{phase:?}");
            assert_eq!(
                world.server.starts,
                u32::from(expected == Phase::Provisioned || phase == Phase::Deprovisioning),
                "{phase:?}"
            );
        }
    }
}

#[test]
fn a_parked_host_is_watched_and_a_detached_one_is_not() {
    for (road, watched) in [(Road::Park, true), (Road::Detach(Detachment::AtOnce), false)] {
        let mut world = World::provisioned();
        world.goal.road = road;
        world.run(300);
        let looks = world.looks;
        world.press(false);
        world.run(3600);
        assert_eq!(world.looks > looks, watched);
        assert_eq!(world.record().power == PowerState::Off, watched);
        let last = world.last.as_ref().unwrap();
        assert_eq!(last.look.is_some() || last.again.is_some(), watched);
        assert_eq!(world.acts(), [""; 0]);
    }
}

#[test]
fn a_parked_host_tells_of_an_outage_and_a_detached_one_forgets_it() {
    let mut world = World::provisioned();
    world.goal.road = Road::Park;
    world.server.temper.blind = Some(Kind::Unreachable);
    world.run(600);
    assert_eq!((world.phase(), world.fault()), (Phase::Parked, Some(Kind::Unreachable)));
    world.goal.road = Road::Detach(Detachment::AtOnce);
    world.run(60);
    assert_eq!((world.phase(), world.fault()), (Phase::Detached, None));
}

#[test]
fn a_host_goes_from_maintenance_to_detached_and_home() {
    let mut world = World::provisioned();
    for road in [Road::Park, Road::Detach(Detachment::AtOnce), Road::Park, Road::Manage] {
        world.goal.road = road;
        world.run(300);
    }
    assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0));
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn a_claim_that_ended_during_maintenance_is_released_afterwards() {
    let mut world = World::provisioned();
    world.goal = Goal { road: Road::Park, ..Goal::default() };
    world.consumer = Presence::Gone;
    world.run(600);
    assert_eq!(world.acts(), [""; 0]);
    world.goal.road = Road::Manage;
    world.run(600);
    assert_eq!((world.phase(), world.server.is_tidy()), (Phase::Available, true));
}

#[test]
fn a_parked_host_whose_status_is_lost_stays_parked() {
    let mut world = World::provisioned();
    world.goal.road = Road::Park;
    world.run(60);
    world.status = None;
    world.run(600);
    assert_eq!((world.phase(), world.record().left), (Phase::Parked, Some(Phase::Provisioned)));
    world.goal.road = Road::Manage;
    world.run(600);
    assert_eq!((world.phase(), world.acts().len()), (Phase::Provisioned, 0));
}
