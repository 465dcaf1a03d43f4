//! What keeps an image out of a drive is found out before anything is done: drives that servers share, and schemes.

use super::{
    IMAGE, OTHER_IMAGE, ordered,
    server::Runs,
    world::{Mishap, World},
};
use crate::{
    failure::Kind,
    host::{Act, Goal, Phase, Presence},
};

fn sharing() -> World {
    let mut world = World::available();
    world.server.temper.shares_drives = true;
    world
}

#[test]
fn a_drive_that_holds_another_servers_image_is_refused_before_anything_is_done() {
    let mut world = sharing();
    world.server.media = Some(OTHER_IMAGE.into());
    world.goal = ordered("a", IMAGE);
    world.log.clear();
    world.run(600);
    assert!(world.log.is_empty(), "{:?}", world.log);
    let fault = world.record().fault.unwrap();
    assert_eq!(fault.failure.kind, Kind::MediaRefused);
    assert!(fault.failure.to_string().contains("other.iso"), "{}", fault.failure);
    world.server.media = None;
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.media.as_deref(), Some(IMAGE));
}

#[test]
fn a_release_ejects_our_own_image_from_a_shared_drive() {
    let mut world = sharing();
    world.goal = ordered("a", IMAGE);
    world.run_to(Phase::Provisioned);
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run_to(Phase::Available);
    assert_eq!(world.server.media, None);
    assert_eq!(world.anchor().image, None);
}

#[test]
fn a_release_leaves_another_servers_image_in_a_shared_drive() {
    let mut world = sharing();
    world.goal = ordered("a", IMAGE);
    world.run_to(Phase::Provisioned);
    world.server.media = Some(OTHER_IMAGE.into());
    world.log.clear();
    world.goal = Goal::default();
    world.consumer = Presence::Gone;
    world.run_to(Phase::Available);
    assert_eq!(world.server.media.as_deref(), Some(OTHER_IMAGE));
    assert!(!world.log.contains(&Act::EjectMedia));
}

#[test]
fn a_drive_that_holds_the_same_image_for_another_server_is_not_emptied() {
    let mut world = sharing();
    world.server.media = Some(IMAGE.into());
    world.goal = ordered("a", IMAGE);
    world.log.clear();
    world.run(3600);
    assert!(world.log.is_empty(), "{:?}", world.log);
    assert_eq!((world.fault(), world.server.media.as_deref()), (Some(Kind::MediaRefused), Some(IMAGE)));
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert_eq!(world.server.media.as_deref(), Some(IMAGE));
}

#[test]
fn an_image_that_was_inserted_just_before_a_crash_is_known_as_ours() {
    for odd_names in [false, true] {
        for status_is_lost in [false, true] {
            for is_released in [false, true] {
                let case = format!("odd names {odd_names}, status lost {status_is_lost}, released {is_released}");
                let mut world = sharing();
                world.server.temper.odd_names = odd_names;
                world.goal = ordered("a", IMAGE);
                while world.server.media.is_none() {
                    let inserts = world.decide().acts.iter().any(|act| matches!(act, Act::InsertMedia { .. }));
                    let next = world.reconcile(if inserts { Mishap::CrashBeforeLook } else { Mishap::Nothing });
                    world.now = world.now.max(next);
                    world.server.tick(world.now);
                }
                if status_is_lost {
                    world.status = None;
                }
                if is_released {
                    world.goal = Goal::default();
                    world.run_to(Phase::Available);
                    assert_eq!(world.server.media, None, "{case}");
                } else {
                    world.run_to(Phase::Provisioned);
                    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()), "{case}");
                    assert!(!world.acts().contains(&"EjectMedia"), "{case}: {:?}", world.acts());
                }
            }
        }
    }
}

#[test]
fn an_image_that_was_refused_is_not_ours_when_a_neighbour_inserts_the_same() {
    let mut world = sharing();
    world.server.temper.fails = Some(("InsertMedia", Kind::MediaRefused));
    world.goal = ordered("a", IMAGE);
    world.run_until(600, |world| world.fault() == Some(Kind::MediaRefused));
    world.server.temper.fails = None;
    world.server.media = Some(IMAGE.into());
    world.server.is_neighbours = true;
    world.log.clear();
    world.run(3600);
    assert!(world.log.is_empty(), "{:?}", world.log);
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert_eq!(world.server.media.as_deref(), Some(IMAGE));
}

#[test]
fn disabled_remote_media_are_told_before_anything_is_done() {
    let mut world = World::available();
    world.server.temper.media_disabled = true;
    world.goal = ordered("a", IMAGE);
    world.log.clear();
    world.run(600);
    assert!(world.log.is_empty(), "{:?}", world.log);
    let fault = world.record().fault.unwrap();
    assert_eq!(fault.failure.kind, Kind::NoVirtualMedia);
    assert!(fault.failure.to_string().contains("RMediaStatus"), "{}", fault.failure);
    assert!(!fault.failure.to_string().contains("licence"), "{}", fault.failure);
    world.server.temper.media_disabled = false;
    world.run_to(Phase::Provisioned);
}

#[test]
fn a_bmc_that_takes_https_only_is_told_about_before_anything_is_done() {
    let mut world = World::available();
    world.server.temper.image_schemes = vec!["cifs".into(), "https".into()];
    world.goal = ordered("a", "http://images.example/node.iso");
    world.log.clear();
    world.run(600);
    assert!(world.log.is_empty(), "{:?}", world.log);
    let fault = world.record().fault.unwrap();
    assert_eq!(fault.failure.kind, Kind::MediaRefused);
    assert!(fault.failure.to_string().contains("cifs or https"), "{}", fault.failure);
    world.goal = ordered("b", IMAGE);
    world.goal.claim = ordered("a", IMAGE).claim;
    world.run_to(Phase::Provisioned);
}
