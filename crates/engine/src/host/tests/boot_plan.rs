//! What a server may boot, from all that is known of it.

use jiff::Timestamp;

use super::{
    IMAGE, OTHER_IMAGE, claimed, kernel, order_by, probe, pxe, secs, server::Runs, start_of_time, world::World,
};
use crate::{
    failure::Kind,
    host::{
        Anchor, Boot, BootPlan, Gate, Goal, LastBoot, Maintenance, Milestone, Payload, Phase, Presence, Recipe, Starts,
        boot_plan,
    },
};

const MILESTONES: [Milestone; 5] =
    [Milestone::None, Milestone::Armed, Milestone::Written, Milestone::Provisioned, Milestone::Releasing];

fn iso(starts: Starts) -> Recipe {
    Recipe::Iso { url: IMAGE.into(), starts }
}

fn wanting(recipe: Recipe) -> Goal {
    Goal { order: Some(order_by("a", recipe)), ..claimed("a") }
}

fn payload(recipe: &Recipe) -> BootPlan<'_> {
    let Recipe::Network { payload, .. } = recipe else { panic!("{recipe:?}") };
    BootPlan::Network(payload)
}

fn ago(minutes: i64) -> Timestamp {
    start_of_time() - secs(minutes * 60)
}

fn anchor(goal: &Goal, milestone: Milestone) -> Anchor {
    let deployment = goal.order.as_ref().map(|order| order.deployment.clone());
    Anchor { milestone, deployment, claim: goal.claim.clone(), ..Anchor::default() }
}

#[test]
fn what_a_server_may_boot_follows_from_anchor_and_goal() {
    use BootPlan::{Disk, Medium, Nothing};
    let (once, always) = (kernel(Starts::First), kernel(Starts::EveryByUs));
    let (site, other) = (pxe(Starts::First), Recipe::Iso { url: OTHER_IMAGE.into(), starts: Starts::First });
    let table = [
        // Recipe that is ordered: at none, armed, written, provisioned, releasing.
        (None, [Disk, Nothing, Nothing, Disk, Nothing]),
        (Some(iso(Starts::First)), [Medium, Medium, Medium, Medium, Nothing]),
        (Some(once.clone()), [Nothing, Nothing, payload(&once), Disk, Nothing]),
        (Some(always.clone()), [Nothing, Nothing, payload(&always), Disk, Nothing]),
        (Some(site.clone()), [Nothing, Nothing, payload(&site), Disk, Nothing]),
    ];
    let plan = |anchor: &Anchor, goal: &Goal, expected: BootPlan<'_>| {
        let found = boot_plan(anchor, goal, LastBoot::default(), start_of_time());
        assert_eq!(found, expected, "{anchor:?} {goal:?}");
    };
    for (recipe, expected) in table {
        let goal = recipe.map_or_else(|| claimed("a"), wanting);
        for (milestone, expected) in MILESTONES.into_iter().zip(expected) {
            plan(&anchor(&goal, milestone), &goal, expected);
            // The order was changed since, or the claim is gone: it is not served any more.
            let is_begun = milestone != Milestone::None;
            let changed = wanting(other.clone());
            let stale = boot_plan(&anchor(&goal, milestone), &changed, LastBoot::default(), start_of_time());
            assert!(!is_begun || matches!(stale, Nothing | Disk), "{milestone:?}: {stale:?}");
            let unclaimed = Goal { claim: None, ..goal.clone() };
            let free = boot_plan(&anchor(&goal, milestone), &unclaimed, LastBoot::default(), start_of_time());
            assert!(matches!(free, Nothing | Disk), "{milestone:?}: {free:?}");
        }
        plan(&Anchor { milestone: Milestone::Provisioned, adopted: true, ..Anchor::default() }, &goal, Disk);
    }
}

#[test]
fn from_the_network_a_server_gets_what_was_ordered_once_for_each_start() {
    let recipe = kernel(Starts::First);
    let goal = wanting(recipe.clone());
    let (it, disk) = (payload(&recipe), BootPlan::Disk);
    let table = [
        // When the start for the order began, when all was handed over: what it gets when written, and when provisioned.
        (None, None, it, disk),
        (Some(ago(1)), None, it, it),
        (Some(ago(59)), None, it, it),
        (Some(ago(61)), None, it, disk),
        (Some(ago(5)), Some(ago(1)), disk, disk),
        // A hand-over of the start before, in one deployment.
        (Some(ago(5)), Some(ago(30)), it, it),
        // Nobody knows when it was started.
        (None, Some(ago(1)), disk, disk),
        // The clocks of two replicas differ.
        (Some(ago(0)), Some(start_of_time() - secs(5)), disk, disk),
    ];
    for (begun, handed, written, provisioned) in table {
        for (milestone, expected) in [(Milestone::Written, written), (Milestone::Provisioned, provisioned)] {
            let found = boot_plan(&anchor(&goal, milestone), &goal, LastBoot { begun, handed }, start_of_time());
            assert_eq!(found, expected, "begun {begun:?}, handed {handed:?}, {milestone:?}");
        }
    }
}

#[test]
fn a_system_in_memory_is_handed_out_again_only_for_a_start_that_we_cause() {
    let mut world = World::with(wanting(kernel(Starts::EveryByUs)));
    world.server.temper.network_first = true;
    world.run_to(Phase::Provisioned);
    world.consumer = Presence::Exists;
    world.run(60);
    world.press(false);
    world.press(true);
    world.run(300);
    assert_eq!(world.server.runs, Runs::Disk, "somebody else has started it");
    world.goal.reboot = Some("1".into());
    world.run(600);
    assert_eq!((world.phase(), world.fault(), &world.server.runs), (Phase::Provisioned, None, &Runs::Network));
}

#[test]
fn who_lends_or_probes_a_server_decides_what_it_boots() {
    let boot = |recipe: &Recipe| Boot { gate: Gate { keeper: "somebody".into(), open: true }, recipe: recipe.clone() };
    let (recipe, ordered) = (kernel(Starts::First), wanting(iso(Starts::First)));
    let lent = Anchor { lent: true, ..anchor(&ordered, Milestone::Provisioned) };
    let plan =
        |anchor: &Anchor, goal: &Goal| format!("{:?}", boot_plan(anchor, goal, LastBoot::default(), start_of_time()));
    assert_eq!(plan(&lent, &ordered), "Nothing");
    let maintained = Goal { maintenance: Maintenance { boot: Some(boot(&recipe)), online: Some(true) }, ..ordered };
    assert_eq!(plan(&lent, &maintained), format!("{:?}", payload(&recipe)));
    let probing = Anchor { probing: true, ..Anchor::default() };
    assert_eq!(plan(&probing, &Goal::default()), "Nothing");
    let goal = Goal { probe: Some(probe("p", true)), ..Goal::default() };
    assert_eq!(plan(&probing, &goal), format!("{:?}", BootPlan::Network(&Payload::Site)));
}

#[test]
fn a_served_server_is_provisioned_when_it_has_fetched_all_and_boots_its_disk_afterwards() {
    let mut world = World::with(wanting(kernel(Starts::First)));
    world.server.temper.network_first = true;
    world.run_to(Phase::Provisioned);
    assert_eq!((world.acts(), &world.server.runs), (vec!["SetBoot", "PowerOn"], &Runs::Network));
    world.consumer = Presence::Exists;
    // The installer restarts it, and it asks the network again.
    world.press(false);
    world.press(true);
    world.run(300);
    assert_eq!((world.phase(), &world.server.runs), (Phase::Provisioned, &Runs::Disk));
    // Also if everything but the anchor is lost.
    world.status = None;
    world.handed = None;
    world.press(false);
    world.press(true);
    world.run(300);
    assert_eq!((world.phase(), &world.server.runs), (Phase::Provisioned, &Runs::Disk));
}

#[test]
fn a_served_server_that_asks_for_nothing_is_reported_and_started_from_the_network_again_when_asked() {
    let mut world = World::with(wanting(kernel(Starts::First)));
    // The firmware uses up its override and boots the disk all the same.
    world.server.temper.ignores = 1;
    world.run_until(600, |world| world.phase() == Phase::Provisioning);
    world.run_until(600, |world| world.server.runs == Runs::Disk);
    world.server.boot = super::server::no_override();
    world.run(600);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioning, None), "a used override is no sign of this boot");
    world.run(1200);
    assert_eq!((world.phase(), world.fault()), (Phase::Provisioning, Some(Kind::BootIgnored)));
    world.goal.reboot = Some("1".into());
    world.run_to(Phase::Provisioned);
    assert_eq!((world.acts(), world.fault()), (vec!["SetBoot", "PowerOn", "SetBoot", "Restart"], None));
    assert_eq!(world.server.runs, Runs::Network);
}

#[test]
fn a_served_server_that_loses_power_before_it_has_fetched_anything_is_started_from_the_network_again() {
    let mut world = World::with(wanting(kernel(Starts::First)));
    world.server.temper.post = 600;
    world.run_until(600, |world| world.phase() == Phase::Provisioning && world.server.on);
    world.run(300);
    world.server.boot = super::server::no_override();
    world.press(false);
    world.run_to(Phase::Provisioned);
    assert_eq!((world.acts(), &world.server.runs), (vec!["SetBoot", "PowerOn", "SetBoot", "PowerOn"], &Runs::Network));
}
