//! Parting with hosts: tidy where we can, never in the way for ever, and not at all where the object only moves.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::{Value, json};
use sim::{BootSource, Effect, PowerState};
use testkit::wait_for;
use trials::story::{
    HOST, ISO, assert_tidy, assert_untouched, provisioned_world, resets, running_bmc, runs, sentence, unclaimed,
    waits_for, world_with,
};
use trials::world::{EVER, World, claim, instant_bmc, state_of};

async fn delete(world: &World) {
    world.hosts().delete(HOST, &DeleteParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_deleted_while_it_is_provisioned_waits_for_its_consumer_and_is_left_tidy() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::SlowPower(Duration::from_secs(40)).always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    world.wait_for_state(HOST, "Provisioning").await;
    delete(&world).await;
    let host = world.wait_until(HOST, "waiting", |host| waits_for(host, "WaitingForConsumerRelease")).await;
    assert_eq!(state_of(&host), "Deleting");
    let told = host.status.unwrap().waiting.unwrap();
    assert!(told.message.contains("then remove spec.consumerRef and the order") && told.deadline.is_some(), "{told:?}");
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_gone(HOST).await;
    assert_tidy(&bmc);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_deleted_while_it_is_prepared_is_never_started() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::SlowPower(Duration::from_secs(40)).always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    world.wait_until(HOST, "power off", |host| waits_for(host, "PoweringOff")).await;
    delete(&world).await;
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_gone(HOST).await;
    assert_tidy(&bmc);
    assert_eq!((resets(&bmc), bmc.first().boots), (vec!["ForceOff".into()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_dead_does_not_keep_a_host_for_ever() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    bmc.faults().add(Effect::Refuse.always());
    delete(&world).await;
    world.patch_spec(HOST, unclaimed()).await;
    let host = world.wait_until(HOST, "a fault", |host| state_of(host) == "Deleting" && fault(host).is_some()).await;
    assert!(sentence(&host, "RedfishConnectionReady").contains(HOST), "{}", sentence(&host, "RedfishConnectionReady"));
    let gone = async || world.hosts().get_opt(HOST).await.unwrap().is_none().then_some(());
    wait_for("the host to be gone", EVER, gone).await;
    let told = world.wait_for_event("LeftAsItIs").await;
    assert!(told.starts_with("Deleted although the server could not be cleaned up: "), "{told}");
    assert_untouched(&bmc);
}

fn fault(host: &api::beskar7::PhysicalHost) -> Option<&api::beskar7::Fault> {
    host.status.as_ref()?.fault.as_ref()
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_comes_back_during_a_deletion_is_left_tidy_after_all() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    // One look tries four times; a fifth failure would open the breaker, and half a minute is a long time in a hurry.
    bmc.faults().add(Effect::Refuse.always().times(4));
    delete(&world).await;
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_for_event("Unreachable").await;
    world.wait_gone(HOST).await;
    assert_tidy(&bmc);
}

#[tokio::test(start_paused = true)]
async fn a_forced_deletion_forgets_at_once_and_says_so() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    bmc.faults().add(Effect::Hang.always());
    delete(&world).await;
    world.wait_for_state(HOST, "Deleting").await;
    world.annotate(HOST, "beskar7.io/force-delete", Some("true")).await;
    world.wait_gone(HOST).await;
    assert_eq!(world.wait_for_event("ForcedDeletion").await, "Deleted by force; the server was left as it is.");
    assert_untouched(&bmc);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_moves_to_another_cluster_is_let_go_without_a_word_to_its_bmc() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    // As clusterctl does it: pause, copy, annotate, delete.
    world.annotate(HOST, "cluster.x-k8s.io/paused", Some("true")).await;
    world.wait_until(HOST, "the pause", |host| trials::world::condition(host, "Paused").0 == "True").await;
    world.annotate(HOST, "clusterctl.cluster.x-k8s.io/delete-for-move", Some("")).await;
    let settled = bmc.counters().total() - sessions(&bmc);
    delete(&world).await;
    world.wait_gone(HOST).await;
    world.stop_operator().await;
    assert_eq!(bmc.counters().total() - sessions(&bmc), settled, "only the session is ended");
    assert_untouched(&bmc);
}

fn sessions(bmc: &sim::Bmc) -> u64 {
    let counters = bmc.counters();
    counters.iter().filter(|(_, kind, ..)| *kind == sim::Kind::Session).map(|(.., number)| number).sum()
}

#[tokio::test(start_paused = true)]
async fn a_moved_host_is_known_by_its_anchor_in_its_new_cluster() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    let old = world.host(HOST).await;
    world.annotate(HOST, "clusterctl.cluster.x-k8s.io/delete-for-move", Some("")).await;
    world.delete_host(HOST).await;
    // Another namespace would do as well: it arrives without a status, and with another UID.
    let anchor = old.metadata.annotations.unwrap()["beskar7.io/anchor"].clone();
    world.create_annotated_host(HOST, json!({ "beskar7.io/anchor": anchor }), claim("me", ISO)).await;
    let host =
        world.wait_until(HOST, "its status", |host| trials::world::condition(host, "HostInspected").0 == "True").await;
    assert_eq!(state_of(&host), "Provisioned");
    assert_eq!(trials::world::condition(&host, "OrderInEffect").0, "", "it is not adopted, it is ours");
    assert_untouched(&bmc);
    world.release(&bmc).await;
}

/// Registers, follows a power policy if there is one, and deletes; answers which resets there were.
async fn power_after_deletion(first: &World, bmc: sim::Bmc, spec: Value, power: &str) -> Vec<String> {
    let world = first.beside().await;
    world.start_operator();
    world.register(&bmc, spec).await;
    let as_wished = |host: &api::beskar7::PhysicalHost| {
        state_of(host) == "Available" && host.status.as_ref().unwrap().observed_power_state.as_deref() == Some(power)
    };
    world.wait_until(HOST, "available", as_wished).await;
    world.delete_host(HOST).await;
    resets(&bmc)
}

#[tokio::test(start_paused = true)]
async fn only_what_we_switched_on_is_switched_off_by_a_deletion() {
    let (on, off) = (running_bmc(), instant_bmc(HOST));
    let first = World::quiet_in_process().await;
    let (left_on, left_off, was_on, switched) = tokio::join!(
        power_after_deletion(&first, on.clone(), json!({}), "On"),
        power_after_deletion(&first, off.clone(), json!({}), "Off"),
        power_after_deletion(&first, running_bmc(), json!({ "online": true }), "On"),
        power_after_deletion(&first, instant_bmc(HOST), json!({ "online": true }), "On"),
    );
    assert_eq!((left_on, on.first().power()), (vec![], PowerState::On));
    assert_eq!((left_off, off.first().power()), (vec![], PowerState::Off));
    assert!(was_on.is_empty(), "it was on before us: {was_on:?}");
    assert_eq!(switched, ["On", "ForceOff"]);
}

#[tokio::test(start_paused = true)]
async fn an_adopted_host_is_deleted_without_touching_what_we_never_started() {
    let world = World::in_process().await;
    let bmc = running_bmc();
    world.register(&bmc, claim("me", ISO)).await;
    world.wait_for_state(HOST, "Provisioned").await;
    delete(&world).await;
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_gone(HOST).await;
    assert_eq!(runs(&bmc), Some(BootSource::Hdd));
    assert!(bmc.journal().is_empty(), "{:?}", bmc.journal());
}
