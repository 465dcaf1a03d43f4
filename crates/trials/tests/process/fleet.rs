//! Many hosts: the fleet brake, and what a fleet at rest costs.

use std::time::Duration;

use api::beskar7::PhysicalHost;
use controllers::brake::BrakeConfig;
use controllers::clock::Clock as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use serde_json::json;
use sim::{BootSource, Effect, PowerState};
use testkit::wait_for;
use trials::story::{ISO, runs, unclaimed, waits_for};
use trials::world::{EVER, World, claim, fault_of, spec, state_of};

/// Hosts with servers that run something of their own, all available.
async fn fleet(world: &World, size: usize) -> Vec<(String, sim::Bmc)> {
    world.create_secret("bmc", "admin", "password").await;
    join_all((0..size).map(async |number| {
        let name = format!("server-{number:02}");
        let bmc = sim::Bmc::new(spec(&name).timing(sim::Timing::INSTANT).power(PowerState::On));
        world.add_bmc(&name, bmc.clone());
        world.create_host(&name, json!({})).await;
        world.wait_for_state(&name, "Available").await;
        (name, bmc)
    }))
    .await
}

async fn claim_all(world: &World, fleet: &[(String, sim::Bmc)]) {
    join_all(fleet.iter().map(async |(name, _)| world.patch_spec(name, claim("me", ISO)).await)).await;
}

async fn wait_for_all(world: &World, fleet: &[(String, sim::Bmc)], state: &str) {
    join_all(fleet.iter().map(async |(name, _)| world.wait_for_state(name, state).await)).await;
}

fn braked(change: impl FnOnce(&mut BrakeConfig)) -> impl FnOnce(&mut controllers::operator::Config) {
    |config| change(&mut config.brake)
}

/// What a host that waits is waiting for, in a sentence.
fn waiting(host: &PhysicalHost) -> String {
    host.status.as_ref().and_then(|status| status.waiting.clone()).map(|waiting| waiting.message).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn ten_hosts_that_are_released_at_once_go_one_by_one_and_say_so() {
    let world = World::in_process().await;
    let fleet = fleet(&world, 10).await;
    claim_all(&world, &fleet).await;
    wait_for_all(&world, &fleet, "Provisioned").await;
    world.stop_operator().await;

    world.start_operator_with(world.clock(), braked(|brake| brake.disruptions_per_minute = 3));
    join_all(fleet.iter().map(async |(name, _)| world.patch_spec(name, unclaimed()).await)).await;
    wait_for("all but the first to wait", EVER, async || {
        let hosts = world.hosts().list(&kube::api::ListParams::default()).await.unwrap().items;
        let held: Vec<_> = hosts.iter().filter(|host| waits_for(host, "FleetBrake")).collect();
        for host in &held {
            let told = waiting(host);
            assert!(told.starts_with("Waiting for the fleet brake: "), "{told}");
            assert!(told.ends_with("3 power-offs per minute are allowed (--max-disruptions-per-minute)."), "{told}");
            assert_eq!(state_of(host), "Deprovisioning");
        }
        (held.len() >= 8).then_some(())
    })
    .await;
    let off = fleet.iter().filter(|(_, bmc)| bmc.first().power() == PowerState::Off).count();
    assert!((1..=2).contains(&off), "one at once and one every 20 s, not {off}");

    // Whoever is stopped while a BMC ejects a medium leaves a wait of minutes behind.
    wait_for("nobody to be in the middle of it", EVER, async || {
        let hosts = world.hosts().list(&kube::api::ListParams::default()).await.unwrap().items;
        hosts.iter().all(|host| state_of(host) == "Available" || waits_for(host, "FleetBrake")).then_some(())
    })
    .await;
    world.stop_operator().await;
    world.start_operator();
    wait_for_all(&world, &fleet, "Available").await;
    assert!(fleet.iter().all(|(_, bmc)| bmc.first().power() == PowerState::Off && bmc.first().resets == 3));
}

#[tokio::test(start_paused = true)]
async fn a_frozen_fleet_runs_on_until_it_is_thawed() {
    let world = World::quiet_in_process().await;
    world.start_operator_with(world.clock(), braked(|brake| brake.freeze = true));
    let fleet = fleet(&world, 2).await;
    claim_all(&world, &fleet).await;
    for (name, bmc) in &fleet {
        let host = world.wait_until(name, "held", |host| waits_for(host, "FleetBrake")).await;
        assert!(waiting(&host).contains("--freeze"), "{}", waiting(&host));
        assert!(bmc.journal().is_empty() && runs(bmc) == Some(BootSource::Hdd));
    }
    world.stop_operator().await;
    world.start_operator();
    wait_for_all(&world, &fleet, "Provisioned").await;
}

#[tokio::test(start_paused = true)]
async fn only_so_many_are_provisioned_at_the_same_time() {
    let world = World::quiet_in_process().await;
    world.start_operator_with(world.clock(), braked(|brake| brake.concurrent_deployments = 2));
    let fleet = fleet(&world, 4).await;
    for (_, bmc) in &fleet {
        bmc.faults().add(Effect::SlowPower(Duration::from_secs(6)).always());
    }
    claim_all(&world, &fleet).await;
    wait_for("two to go and two to wait", EVER, async || {
        let hosts = world.hosts().list(&kube::api::ListParams::default()).await.unwrap().items;
        let held: Vec<_> = hosts.iter().filter(|host| waits_for(host, "FleetBrake")).map(waiting).collect();
        let is_told = |held: &String| {
            held.contains("2 of 2 deployment slots used: ") || held.contains("2 deployments at a time are allowed")
        };
        assert!(held.iter().all(|held| is_told(held) && held.ends_with("(--max-deployments).")), "{held:?}");
        let gone = fleet.iter().filter(|(_, bmc)| !bmc.journal().is_empty()).count();
        assert!(gone <= 2, "{gone} at once");
        (held.len() == 2 && gone == 2).then_some(())
    })
    .await;
    wait_for_all(&world, &fleet, "Provisioned").await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_at_rest_costs_no_write_and_less_than_one_request_per_host_and_minute() {
    let world = World::quiet_in_process().await;
    let clock = world.clock();
    world.start_operator();
    let fleet = fleet(&world, 4).await;
    claim_all(&world, &fleet[..2]).await;
    wait_for_all(&world, &fleet[..2], "Provisioned").await;
    // What the last steps set off has come to rest when everybody was looked at without a change.
    let looked = async |times: u64| {
        for (_, bmc) in &fleet {
            bmc.reset_counters();
        }
        wait_for("looks", EVER, async || fleet.iter().all(|(_, bmc)| bmc.counters().total() >= times).then_some(()))
            .await;
    };
    looked(1).await;
    let (writes, began) = (world.writes(), clock.now());
    looked(5).await;
    let minutes = clock.now().duration_since(began).as_secs_f64() / 60.0;
    for (name, bmc) in &fleet {
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let requests = bmc.counters().total() as f64;
        assert!(requests <= minutes.ceil(), "{name}: {requests} in {minutes} minutes");
    }
    assert_eq!(world.writes(), writes, "nothing changed, so nothing is written");
}

/// Names of hosts, and the fault or wait in which each of them is stuck.
const TROUBLES: [(&str, &str); 7] = [
    ("without-secret", "SecretNotFound"),
    ("wrong-password", "AuthenticationFailed"),
    ("dead", "Unreachable"),
    ("refuses-image", "MediaRefused"),
    ("orphaned", "ConsumerMismatch"),
    ("from-the-future", "AnchorUnreadable"),
    ("braked", "FleetBrake"),
];

#[tokio::test(start_paused = true)]
async fn hosts_in_trouble_are_not_busy_with_it() {
    let world = World::quiet_in_process().await;
    world.start_operator_with(world.clock(), braked(|brake| brake.disruptions_per_minute = 0));
    world.create_secret("bmc", "admin", "password").await;
    world.create_secret("guess", "admin", "guess").await;
    let config_maps: Api<ConfigMap> = Api::namespaced(world.admin(), &world.namespace);
    let consumer = serde_json::from_value(json!({ "metadata": { "name": "mine" } })).unwrap();
    config_maps.create(&PostParams::default(), &consumer).await.unwrap();
    let bmcs = TROUBLES.map(|(name, _)| {
        let power = if name == "braked" { PowerState::On } else { PowerState::Off };
        world.add_bmc(name, sim::Bmc::new(spec(name).timing(sim::Timing::INSTANT).power(power)))
    });
    let [_, _, dead, refuses, ..] = &bmcs;
    dead.faults().add(Effect::Refuse.always());
    refuses.faults().add(Effect::RefusesMedia("No.".into()).always());
    for (name, _) in TROUBLES {
        let secret = match name {
            "without-secret" => "nowhere",
            "wrong-password" => "guess",
            _ => "bmc",
        };
        world.create_host(name, json!({ "redfishConnection": { "credentialsSecretRef": secret } })).await;
    }
    for name in ["refuses-image", "orphaned", "from-the-future", "braked"] {
        world.wait_for_state(name, "Available").await;
        let consumer = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "mine" });
        world.patch_spec(name, json!({ "consumerRef": consumer, "bootIsoSource": ISO })).await;
    }
    for name in ["orphaned", "from-the-future"] {
        world.wait_for_state(name, "Provisioned").await;
    }
    world.patch_spec("orphaned", unclaimed()).await;
    world.annotate("from-the-future", "beskar7.io/anchor", Some(r#"{"v":99}"#)).await;
    for (name, trouble) in TROUBLES {
        let is_in_it =
            |host: &PhysicalHost| fault_of(host).is_some_and(|fault| fault == trouble) || waits_for(host, trouble);
        world.wait_until(name, trouble, is_in_it).await;
    }

    let requests = || bmcs.iter().map(|bmc| bmc.counters().total()).sum::<u64>();
    let (requests_before, reconciles_before) = (requests(), reconciles(&world));
    let writes_before = world.writes();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (requests, reconciles) = (requests() - requests_before, reconciles(&world) - reconciles_before);
    let writes = world.writes() - writes_before;
    assert!(
        requests <= 12 && reconciles <= 25 && writes <= 10,
        "{requests} requests, {reconciles} reconciles, {writes} writes"
    );
}

fn reconciles(world: &World) -> u64 {
    let text = world.metrics();
    let counters = text.lines().filter(|line| line.starts_with("beskar7_reconciles_total"));
    counters.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
