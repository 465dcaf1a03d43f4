//! The operator killed between any two of its effects, and leaders that lose their lease in the middle of an act.

use std::pin::pin;
use std::time::Duration;

use api::beskar7::PhysicalHost;
use controllers::leader::Timing;
use controllers::operator::{Config, Election};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use sim::{BootSource, Effect, Kind, PowerState};
use testkit::wait_for;
use tokio::time::Instant;
use trials::gate::{Gate, Passage, Side};
use trials::story::{HOST, ISO, assert_tidy, running_bmc, runs, unclaimed};
use trials::world::{EVER, Running, World, claim, state_of};

/// A world with one server that runs something of its own, and no operator yet.
async fn world_of_one() -> (World, sim::Bmc) {
    with_a_server(World::quiet_in_process().await).await
}

async fn with_a_server(world: World) -> (World, sim::Bmc) {
    let bmc = running_bmc();
    world.register(&bmc, json!({})).await;
    (world, bmc)
}

async fn provision(world: &World, bmc: &sim::Bmc) {
    world.wait_for_state(HOST, "Available").await;
    assert_eq!(runs(bmc), Some(BootSource::Hdd), "nobody asked for a change");
    world.provision(bmc).await;
    assert_eq!((bmc.first().boots, bmc.first().resets), (1, 2), "off and on, whatever happens: {:?}", bmc.journal());
}

async fn delete(world: &World, bmc: &sim::Bmc) {
    world.hosts().delete(HOST, &DeleteParams::default()).await.unwrap();
    world.wait_for_state(HOST, "Deleting").await;
    assert_eq!((bmc.first().power(), bmc.first().resets), (PowerState::On, 2), "it is still claimed");
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_gone(HOST).await;
    assert_tidy(bmc);
    assert_eq!((bmc.first().boots, bmc.first().resets), (1, 3), "off once more: {:?}", bmc.journal());
}

/// Runs an operator that is killed right after its nth effect, and then another one, while `life` goes on. False if
/// the life was over before.
pub(crate) async fn killed_after(
    effects: usize,
    world: &World,
    change: fn(&mut Config),
    life: impl Future<Output = ()>,
) -> bool {
    let gate = Gate::shutting_after(effects);
    let first = world.launch(&gate, world.clock(), change);
    let mut life = pin!(life);
    tokio::select! {
        () = &mut life => return false,
        () = gate.is_shut() => {}
    }
    first.kill().await;
    world.start_operator_with(world.clock(), change);
    life.await;
    true
}

/// Kills after the first effect, after the second, and so on, each in a life of its own, until there are no more.
/// Answers how many there were.
pub(crate) async fn killed_after_each(once: impl AsyncFn(usize) -> bool) -> usize {
    let mut effects = 1;
    while once(effects).await {
        effects += 1;
    }
    effects - 1
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_effect_between_registration_and_release_the_operator_takes_up_where_it_was() {
    let first = World::quiet_in_process().await;
    let effects = killed_after_each(async |effects| {
        let (world, bmc) = with_a_server(first.beside().await).await;
        let life = async {
            provision(&world, &bmc).await;
            world.release(&bmc).await;
            assert_eq!((bmc.first().boots, bmc.first().resets), (1, 3), "off once more: {:?}", bmc.journal());
        };
        killed_after(effects, &world, |_| {}, life).await
    })
    .await;
    assert!(effects > 20, "anchors, statuses, power off, insert, override, power on, power off, eject: {effects}");
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_effect_of_a_deletion_the_operator_takes_up_where_it_was() {
    let first = World::quiet_in_process().await;
    let effects = killed_after_each(async |effects| {
        let (world, bmc) = with_a_server(first.beside().await).await;
        world.start_operator();
        provision(&world, &bmc).await;
        world.stop_operator().await;
        killed_after(effects, &world, |_| {}, delete(&world, &bmc)).await
    })
    .await;
    assert!(effects > 5, "anchors, statuses, power off, eject, finalizer: {effects}");
}

/// A replica that stands for election.
fn replica(world: &World, identity: &str) -> (Gate, Running) {
    let gate = Gate::default();
    let election = Election {
        namespace: world.namespace.clone(),
        lease: "beskar7.infrastructure.cluster.x-k8s.io".into(),
        identity: identity.into(),
        timing: Timing::default(),
    };
    let running = world.launch(&gate, world.clock(), |config| config.election = Some(election));
    (gate, running)
}

/// Shorter than a BMC's client waits for an answer.
const INSERTION: Duration = Duration::from_secs(40);

/// A world in which the BMC is in the middle of an insertion that takes long, by the order of replica `a`.
async fn in_the_middle_of_an_act() -> (World, sim::Bmc, Gate, Running) {
    let (world, bmc) = world_of_one().await;
    let (gate, a) = replica(&world, "a");
    world.wait_for_state(HOST, "Available").await;
    bmc.faults().add(Effect::Latency(INSERTION).always().kind(Kind::InsertMedia).times(1));
    world.patch_spec(HOST, claim("me", ISO)).await;
    wait_for("the insertion", EVER, async || {
        bmc.journal().iter().any(|mutation| mutation.kind == Kind::InsertMedia).then_some(())
    })
    .await;
    (world, bmc, gate, a)
}

fn assert_booted_once(bmc: &sim::Bmc) {
    let server = bmc.first();
    assert_eq!(runs(bmc), Some(BootSource::Cd(ISO.into())));
    assert_eq!((server.boots, server.resets), (1, 2), "{:?}", bmc.journal());
}

fn to_bmc(gate: &Gate) -> Vec<Passage> {
    gate.seen().into_iter().filter(|passage| passage.to == Side::Bmc).collect()
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_in_an_act_ends_it_before_its_successor_begins() {
    let (world, bmc, gate_of_a, _a) = in_the_middle_of_an_act().await;
    let (gate_of_b, _b) = replica(&world, "b");
    gate_of_a.cut_api();
    provisioned(&world).await;
    assert_booted_once(&bmc);
    let (of_a, of_b) = (to_bmc(&gate_of_a), to_bmc(&gate_of_b));
    let first_of_b = of_b.first().unwrap().at;
    let late: Vec<_> = of_a.iter().filter(|passage| passage.is_effect && passage.at >= first_of_b).collect();
    assert!(late.is_empty(), "the deposed leader went on: {late:?}");
    assert!(!of_a.iter().any(|passage| passage.what.contains("BootSourceOverride")), "the rest of the act: {of_a:?}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_is_taken_in_an_act_ends_it_and_goes_on_when_it_leads_again() {
    let (world, bmc, gate, _a) = in_the_middle_of_an_act().await;
    let leases: Api<Lease> = Api::namespaced(world.admin(), &world.namespace);
    let theft = json!({ "spec": { "holderIdentity": "thief", "leaseDurationSeconds": 15 } });
    let stolen = Instant::now();
    leases
        .patch("beskar7.infrastructure.cluster.x-k8s.io", &PatchParams::default(), &Patch::Merge(theft))
        .await
        .unwrap();
    provisioned(&world).await;
    assert_booted_once(&bmc);
    // The holder learns of it with its next renewal.
    let theirs = stolen + Duration::from_secs(3)..stolen + Duration::from_secs(15);
    let meanwhile: Vec<_> =
        gate.seen().into_iter().filter(|passage| passage.is_effect && theirs.contains(&passage.at)).collect();
    assert!(meanwhile.is_empty(), "{meanwhile:?}");
    let retried = to_bmc(&gate).into_iter().filter(|passage| passage.what.contains("InsertMedia")).count();
    assert_eq!(retried, 2, "the insertion was ended with the term, and tried anew in the next");
}

/// Nobody knows how the insertion ended that was torn off: what the drive shows is believed only minutes later.
async fn provisioned(world: &World) {
    let wanted = |host: &PhysicalHost| state_of(host) == "Provisioned";
    world.wait_until(HOST, "state Provisioned", wanted).await;
}
