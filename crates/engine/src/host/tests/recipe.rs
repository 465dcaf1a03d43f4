//! What follows from a recipe, whichever it is.

use super::{
    IMAGE, claimed, order_by, pxe,
    server::{Runs, Server},
    world::World,
};
use crate::{
    failure::Kind,
    host::{Anchor, Author, Gate, Goal, Milestone, NetworkProtocol, Payload, Phase, Recipe, Starts, Undo},
    server::{BootOverride, BootTarget, Persistence},
};

fn iso(starts: Starts) -> Recipe {
    Recipe::Iso { url: IMAGE.into(), starts }
}

fn wanting(recipe: Recipe) -> Goal {
    Goal { order: Some(order_by("a", recipe)), ..claimed("a") }
}

fn provisioned_by(recipe: Recipe) -> World {
    let mut world = World::with(wanting(recipe));
    world.run_to(Phase::Provisioned);
    world.run(60);
    world.consumer = crate::host::Presence::Exists;
    world
}

#[test]
fn a_network_boot_sets_the_override_once_and_touches_no_drive() {
    for (protocol, target) in [
        (NetworkProtocol::Pxe, BootTarget::Pxe),
        (NetworkProtocol::Http { uri: Some("http://a/b.efi".into()) }, BootTarget::UefiHttp),
    ] {
        let mut world =
            World::with(wanting(Recipe::Network { protocol, payload: Payload::Site, starts: Starts::First }));
        world.server.media = Some("somebody's".into());
        world.run_to(Phase::Provisioned);
        assert_eq!(world.acts(), ["SetBoot", "PowerOn"]);
        assert_eq!((&world.server.runs, world.server.media.as_deref()), (&Runs::Network, Some("somebody's")));
        assert_eq!(world.anchor().undo, Some(vec![Undo::Boot(target)]));
    }
}

#[test]
fn a_server_without_a_drive_boots_from_the_network() {
    let mut world = World::available();
    world.server.temper.no_drive = true;
    world.goal = wanting(pxe(Starts::First));
    world.run_to(Phase::Provisioned);
    assert_eq!((world.fault(), &world.server.runs), (None, &Runs::Network));
}

#[test]
fn a_release_undoes_what_was_armed_although_the_order_is_withdrawn_and_the_status_lost() {
    for (recipe, acts) in [
        (iso(Starts::First), vec!["PowerOff", "EjectMedia"]),
        (pxe(Starts::First), vec!["PowerOff"]),
        (pxe(Starts::EveryByUs), vec!["PowerOff"]),
    ] {
        let mut world = provisioned_by(recipe.clone());
        world.log.clear();
        world.goal = Goal::default();
        world.consumer = crate::host::Presence::Gone;
        world.status = None;
        world.crash();
        world.run_to(Phase::Available);
        assert_eq!(world.acts(), acts, "{recipe:?}");
        assert!(world.server.is_tidy() && world.anchor().undo.is_none(), "{recipe:?}");
    }
}

#[test]
fn an_override_that_was_armed_and_not_used_is_cleared_by_the_release() {
    let mut world = World::with(wanting(pxe(Starts::First)));
    world.run_until(600, |world| {
        world.anchor().milestone == Milestone::Armed && world.server.boot.target == BootTarget::Pxe
    });
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy());
    assert!(world.acts().contains(&"ClearBoot"), "{:?}", world.acts());
    assert!(!world.acts().contains(&"EjectMedia"), "{:?}", world.acts());
}

#[test]
fn later_starts_boot_the_disk_or_the_same_again_as_ordered() {
    for (recipe, runs) in [
        (iso(Starts::First), Runs::Disk),
        (iso(Starts::EveryByUs), Runs::Image(IMAGE.into())),
        (pxe(Starts::First), Runs::Disk),
        (pxe(Starts::EveryByUs), Runs::Network),
    ] {
        // A restart that somebody asks for, of a server that runs.
        let mut world = provisioned_by(recipe.clone());
        world.goal.reboot = Some("1".into());
        world.run(600);
        assert_eq!((world.server.starts, &world.server.runs), (2, &runs), "restart: {recipe:?}");
        // Power that somebody asks for, of one that is off.
        world.press(false);
        world.goal.online = Some(true);
        world.goal.power_id = Some("2".into());
        world.run(600);
        assert_eq!((world.server.starts, &world.server.runs), (3, &runs), "power: {recipe:?}");
        assert_eq!((world.phase(), world.fault()), (Phase::Provisioned, None), "{recipe:?}");
    }
}

#[test]
fn a_medium_that_went_missing_is_inserted_again_before_the_start_that_needs_it() {
    let mut world = provisioned_by(iso(Starts::EveryByUs));
    world.server.media = None;
    world.goal.reboot = Some("1".into());
    world.run(600);
    assert_eq!(world.server.runs, Runs::Image(IMAGE.into()));
}

#[test]
fn a_start_that_was_not_ours_is_left_as_it_is() {
    let mut world = provisioned_by(pxe(Starts::EveryByUs));
    world.log.clear();
    world.press(false);
    world.press(true);
    world.run(3600);
    assert_eq!((world.acts(), &world.server.runs), (vec![], &Runs::Disk));
}

#[test]
fn an_override_that_the_bmc_keeps_is_turned_to_the_disk_unless_every_start_wants_it() {
    for (recipe, target) in [
        (iso(Starts::First), BootTarget::Hdd),
        (pxe(Starts::First), BootTarget::Hdd),
        (pxe(Starts::EveryByUs), BootTarget::Pxe),
    ] {
        let mut world = World::with(wanting(recipe.clone()));
        world.server.temper.continuous = true;
        world.run_to(Phase::Provisioned);
        world.run(3600);
        assert_eq!(world.server.boot.target, target, "{recipe:?}");
    }
}

#[test]
fn a_kept_override_is_turned_to_the_disk_although_the_order_was_changed_afterwards() {
    let changed = |recipe| wanting(recipe).order;
    for (first, later) in [
        (iso(Starts::First), changed(iso(Starts::EveryByUs))),
        (iso(Starts::First), changed(pxe(Starts::EveryByUs))),
        (pxe(Starts::First), changed(pxe(Starts::EveryByUs))),
        (pxe(Starts::EveryByUs), changed(pxe(Starts::First))),
        (iso(Starts::First), None),
    ] {
        let mut world = World::with(wanting(first.clone()));
        world.server.temper.continuous = true;
        // Nothing is turned yet: the BMC hides the override until the order was changed.
        world.server.temper.silent_boot = true;
        world.run_to(Phase::Provisioned);
        world.consumer = crate::host::Presence::Exists;
        world.log.clear();
        world.goal.order = later.clone();
        world.server.temper.silent_boot = false;
        world.run(3600);
        assert_eq!(
            (world.acts(), &world.server.boot.target),
            (vec!["SetBoot"], &BootTarget::Hdd),
            "{first:?} {later:?}"
        );
        assert_eq!(world.server.starts, 1, "{first:?} {later:?}");
    }
}

#[test]
fn a_kept_override_in_a_word_that_we_did_not_set_is_told_about_once_and_left_alone() {
    for (recipe, word, told) in [
        (iso(Starts::First), BootTarget::Other("UefiBootNext".into()), true),
        (pxe(Starts::First), BootTarget::Other("UefiBootNext".into()), true),
        (iso(Starts::First), BootTarget::Usb, true),
        (pxe(Starts::First), BootTarget::Usb, false),
        (iso(Starts::EveryByUs), BootTarget::Usb, false),
    ] {
        let mut world = World::with(wanting(recipe.clone()));
        world.server.temper.continuous = true;
        world.run_until(60, |world| world.acts().contains(&"PowerOn"));
        world.log.clear();
        world.server.temper.override_word = Some(word.clone());
        world.run_to(Phase::Provisioned);
        world.run(24 * 3600);
        assert_eq!((world.acts(), world.fault(), world.wait()), (vec![], None, None), "{recipe:?} {word:?}");
        let events = world.events.iter().filter(|event| **event == "BootOverrideUnclear").count();
        assert_eq!(events, usize::from(told), "{recipe:?} {word:?}");
        // As soon as the BMC says plainly that it is ours, it is turned.
        world.server.temper.override_word = None;
        world.run(3600);
        let turned = recipe.starts() == Starts::First;
        assert_eq!(world.acts(), if turned { vec!["SetBoot"] } else { vec![] }, "{recipe:?} {word:?}");
        // And the end of the claim clears whatever is there.
        world.server.temper.override_word = Some(word);
        world.goal = Goal::default();
        world.consumer = crate::host::Presence::Gone;
        world.run_to(Phase::Available);
        assert!(world.server.is_tidy(), "{recipe:?}");
    }
}

#[test]
fn an_override_that_somebody_else_set_is_not_taken_back() {
    let mut world = provisioned_by(iso(Starts::First));
    world.log.clear();
    let theirs =
        BootOverride { target: BootTarget::Pxe, persistence: Persistence::Continuous, mode: None, http_uri: None };
    world.server.boot = theirs.clone();
    world.run(3600);
    assert_eq!((world.acts(), &world.server.boot), (vec![], &theirs));
}

#[test]
fn nothing_is_armed_or_cut_before_the_gate_opens() {
    let mut world = World::new(Goal::default(), Server::running());
    world.run_to(Phase::Available);
    world.goal = wanting(pxe(Starts::First));
    let gate = |open| Some(Gate { keeper: "the boot operator".into(), open });
    world.goal.order.as_mut().unwrap().gate = gate(false);
    world.run(3600);
    assert_eq!((world.acts(), world.wait().as_deref()), (vec![], Some("WaitingForBootPermission")));
    assert!(world.server.on);
    world.goal.order.as_mut().unwrap().gate = gate(true);
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.runs, Runs::Network);
}

#[test]
fn a_claim_that_waits_for_others_is_accepted_as_it_was_announced_and_costs_a_write_for_each_fact() {
    let mut world = World::available();
    let free = world.anchor();
    let gate = |open| Some(Gate { keeper: "the boot operator".into(), open });
    world.goal = Goal { author: Author::Hand, ..wanting(pxe(Starts::First)) };
    world.goal.order.as_mut().unwrap().gate = gate(false);
    let announced = free.announcing_claim(world.goal.claim.clone().unwrap(), None);
    assert_eq!(announced.clone().settled(&free), free, "nothing was done for it");
    world.annotation = Some(announced.to_json());
    let before = world.writes;
    world.run(600);
    assert_eq!((world.phase(), world.anchor()), (Phase::Preparing, announced));
    assert_eq!(world.writes, before + 1, "the status alone");

    // The look before the first act is not stored.
    world.goal.order.as_mut().unwrap().gate = gate(true);
    world.run_until(600, |world| !world.log.is_empty());
    assert_eq!(world.writes, before + 1 + 2, "anchor and status");
    world.run_to(Phase::Provisioned);
}

#[test]
fn another_recipe_for_the_same_claim_is_undone_together_with_the_first() {
    let mut world = World::with(wanting(iso(Starts::First)));
    world.server.temper.fails = Some(("SetBoot", Kind::Refused));
    world.run(60);
    assert_eq!(world.server.media.as_deref(), Some(IMAGE));
    world.server.temper.fails = None;
    world.goal = wanting(pxe(Starts::First));
    world.run_to(Phase::Provisioned);
    assert_eq!(world.server.runs, Runs::Network);
    world.goal = Goal::default();
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy());
}

#[test]
fn an_anchor_of_format_1_is_read_and_undone_as_the_cd_boot_that_it_was() {
    let mut world = provisioned_by(iso(Starts::First));
    let old = "{\"v\":1,\"seq\":7,\"claim\":{\"id\":\"a\",\"consumer\":{\"apiVersion\":\"\",\"kind\":\"\",\"namespace\":\"\",\"name\":\"m\"}},\"deployment\":\"d\",\"milestone\":\"provisioned\",\"uuid\":\"u-1\"}";
    let anchor = Anchor::parse(old).unwrap();
    assert_eq!(anchor.undo(), [Undo::Media, Undo::Boot(BootTarget::Cd)]);
    let old = anchor.to_json();
    world.annotation = Some(old.clone());
    world.status = None;
    world.crash();
    world.run(600);
    assert_eq!(world.annotation, Some(old), "nothing is written because of the format alone");
    world.goal = Goal::default();
    world.consumer = crate::host::Presence::Gone;
    world.run_to(Phase::Available);
    assert!(world.server.is_tidy());
    assert_eq!(world.anchor().version, 2);
}

#[test]
fn another_order_behind_a_closed_gate_does_not_take_the_place_of_one_that_was_started() {
    let mut world = World::with(wanting(iso(Starts::First)));
    world.server.temper.ignores = 1;
    world.run_until(3600, |world| world.fault() == Some(Kind::BootIgnored));
    let started = world.anchor().deployment;
    world.goal = wanting(pxe(Starts::First));
    world.goal.order.as_mut().unwrap().gate = Some(Gate { keeper: "the boot operator".into(), open: false });
    world.run(3600);
    assert_eq!((world.phase(), world.anchor().deployment), (Phase::Provisioning, started));
}

#[test]
fn a_system_that_runs_from_its_medium_keeps_it_when_its_next_start_is_armed() {
    let mut world = provisioned_by(iso(Starts::EveryByUs));
    world.log.clear();
    world.goal.reboot = Some("1".into());
    world.run(600);
    assert_eq!(world.acts(), ["SetBoot", "Restart"]);
}
