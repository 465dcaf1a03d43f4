//! What keeps an image out of a drive is found out before anything is done: drives that servers share, and schemes.

use super::{IMAGE, OTHER_IMAGE, ordered, world::World};
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
