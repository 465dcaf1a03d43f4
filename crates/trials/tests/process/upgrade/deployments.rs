//! What was under way or done for a claim when the earlier version stopped: orders, boots, running servers, releases, machines, and the
//! queue of those that wait for a slot.

use std::time::Duration;

use controllers::operator::Config;
use jiff::SignedDuration;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use sim::{BootSource, Effect, Kind, PowerState, Timing};
use testkit::wait_for;
use trials::machines::{host_of, iso, told};
use trials::stored::Situation;
use trials::story::{HOST, ISO, assert_tidy, resets, running_bmc, runs, unclaimed, waits_for};
use trials::world::{EVER, World, anchor, claim, condition, fault_of, instant_bmc, spec, state_of};

use super::{
    HOUR, LATE, MINUTE, alone, assert_goes_on_releasing, assert_runs_the_order, available, frozen, preparing,
    provisioned, releasing_under_frost, since, situation, thaw,
};

#[tokio::test(start_paused = true)]
async fn an_order_that_waits_for_the_fleet_brake_waits_on_and_is_carried_out() {
    let it = Situation { config: frozen, ..situation("frozen") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.patch_spec(HOST, claim("me", ISO)).await;
        world.wait_until(HOST, "the fleet brake", |host| waits_for(host, "FleetBrake")).await;
        tokio::time::sleep(7 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(20 * MINUTE).await;
        assert_eq!(since(&upgrade.host().await), since(upgrade.stored()), "it waits for longer than this process");
        thaw(&upgrade).await;
        upgrade.world.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On"]);
        assert_runs_the_order(&upgrade);
        assert_eq!(anchor(&upgrade.host().await)["deployment"], anchor(upgrade.stored())["deployment"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_being_prepared_is_started_once() {
    let it = situation("preparing");
    it.record(async |world, bmc| {
        preparing(world, bmc).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_eq!((state_of(upgrade.stored()).as_str(), upgrade.bmc.first().power()), ("Claimed", PowerState::Off));
        upgrade.start();
        let host = upgrade.world.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(anchor(&host)["deployment"], anchor(upgrade.stored())["deployment"]);
        let starts: Vec<_> = upgrade.changes().into_iter().filter(|change| change.contains('O')).collect();
        assert_eq!(starts, ["boot Cd Once", "On"]);
        assert_runs_the_order(&upgrade);
    }
}

#[tokio::test(start_paused = true)]
async fn a_boot_that_is_not_told_about_is_assumed_when_it_would_have_been() {
    fn silent() -> sim::Bmc {
        let mut personality = sim::personality::generic();
        personality.boot.once_is_continuous = true;
        personality.shape.boot_progress = false;
        sim::Bmc::new(sim::BmcSpec::new(personality).timing(Timing::INSTANT).power(PowerState::On))
    }
    let it = Situation { bmc: silent, ..situation("settling") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.patch_spec(HOST, claim("me", ISO)).await;
        world.wait_until(HOST, "time to boot", |host| waits_for(host, "SettlingBoot")).await;
        tokio::time::sleep(2 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_eq!(state_of(upgrade.stored()), "Provisioning");
        let deadline = upgrade.stored().status.clone().unwrap().waiting.unwrap().deadline.unwrap().0;
        upgrade.start();
        let host = upgrade.world.wait_for_state(HOST, "Provisioned").await;
        let now = upgrade.world.clock().now();
        assert!(now >= deadline && now <= deadline + LATE, "{deadline} {now}");
        assert_eq!(condition(&host, "HostProvisioned").1, "AssumedBooted");
        tokio::time::sleep(HOUR).await;
        assert_eq!(upgrade.changes(), ["boot Hdd Continuous"], "later starts boot the disk");
        assert_runs_the_order(&upgrade);
    }
}

#[tokio::test(start_paused = true)]
async fn an_override_that_stays_unused_is_told_and_the_server_runs_on() {
    fn keeps() -> sim::Bmc {
        let bmc = running_bmc();
        bmc.faults().add(Effect::KeepsOneTimeBoot.always());
        bmc
    }
    let it = Situation { bmc: keeps, ..situation("override-unused") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.patch_spec(HOST, claim("me", ISO)).await;
        world.wait_until(HOST, "use of the override", |host| waits_for(host, "BootOverrideUnused")).await;
        tokio::time::sleep(2 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let started = upgrade.world.clock().now();
        upgrade.start();
        let host = upgrade.world.wait_for_fault(HOST, "BootIgnored").await;
        // A look at the server comes between, after which this wait begins anew.
        let waited = upgrade.world.clock().now().duration_since(started);
        assert!(waited <= SignedDuration::from_mins(5) + LATE, "{waited}");
        assert_eq!(state_of(&host), "Provisioning");
        tokio::time::sleep(HOUR).await;
        assert_eq!(upgrade.changes(), [""; 0], "the server may run what was ordered");
        upgrade.bmc.faults().clear();
        upgrade.world.annotate(HOST, "beskar7.io/reboot", Some("now")).await;
        upgrade.world.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(runs(&upgrade.bmc), Some(BootSource::Cd(ISO.into())));
    }
}

#[tokio::test(start_paused = true)]
async fn a_boot_that_was_ignored_is_no_reason_to_cut_the_power() {
    fn keeps() -> sim::Bmc {
        let bmc = running_bmc();
        bmc.faults().add(Effect::KeepsOneTimeBoot.always());
        bmc
    }
    let it = Situation { bmc: keeps, ..situation("boot-ignored") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.patch_spec(HOST, claim("me", ISO)).await;
        world.wait_for_fault(HOST, "BootIgnored").await;
        tokio::time::sleep(2 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        assert!(upgrade.logins() > 0, "it was looked at");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provisioned_host_runs_on_and_is_released_when_its_claim_goes() {
    let it = situation("provisioned");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        upgrade.world.release(&upgrade.bmc).await;
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On", "ForceOff"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_began_before_changes_nothing_about_a_running_server() {
    let it = situation("provisioned-outage");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        bmc.faults().add(Effect::Refuse.always());
        world.wait_for_fault(HOST, "Unreachable").await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.bmc.faults().add(Effect::Refuse.always());
        upgrade.assert_rests(HOUR).await;
        upgrade.bmc.faults().clear();
        upgrade.world.wait_until(HOST, "recovery", |host| fault_of(host).is_none()).await;
        assert_eq!(upgrade.changes(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_waits_for_the_fleet_brake_waits_on_and_ends() {
    let it = situation("releasing");
    it.record(async |world, bmc| {
        releasing_under_frost(world, bmc).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_goes_on_releasing(&upgrade).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_in_the_middle_of_its_clean_up_ends_with_the_server_off() {
    let it = situation("cleaning-up");
    it.record(async |world, bmc| {
        provisioned(world, bmc).await;
        bmc.faults().add(Effect::Latency(Duration::from_secs(40)).always().kind(Kind::EjectMedia).times(1));
        world.patch_spec(HOST, unclaimed()).await;
        wait_for("the ejection", EVER, async || bmc.first().media().is_none().then_some(())).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_eq!(state_of(upgrade.stored()), "Deprovisioning");
        upgrade.start();
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_tidy(&upgrade.bmc);
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On", "ForceOff"], "none since");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_booted_from_the_network_runs_on_and_is_released() {
    let it = situation("network");
    it.record(async |world, bmc| {
        available(world, bmc).await;
        let order = json!({ "consumerRef": { "name": "me" }, "networkBoot": { "protocol": "PXE" } });
        world.patch_spec(HOST, order).await;
        world.wait_for_state(HOST, "Provisioned").await;
        tokio::time::sleep(5 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        assert_eq!(runs(&upgrade.bmc), Some(BootSource::Pxe));
        upgrade.assert_rests(HOUR).await;
        upgrade.world.patch_spec(HOST, json!({ "consumerRef": null, "networkBoot": null })).await;
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_tidy(&upgrade.bmc);
    }
}

#[tokio::test(start_paused = true)]
async fn a_live_system_runs_on_and_a_restart_boots_its_image_again() {
    let it = situation("every-start");
    it.record(async |world, bmc| {
        available(world, bmc).await;
        let order = json!({ "consumerRef": { "name": "me" }, "bootIsoSource": ISO, "bootEveryStart": true });
        world.patch_spec(HOST, order).await;
        world.wait_for_state(HOST, "Provisioned").await;
        tokio::time::sleep(5 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.assert_rests(HOUR).await;
        upgrade.world.annotate(HOST, "beskar7.io/reboot", Some("1")).await;
        wait_for("another boot", EVER, async || (upgrade.bmc.first().boots == 2).then_some(())).await;
        assert_eq!(runs(&upgrade.bmc), Some(BootSource::Cd(ISO.into())));
        assert_eq!(upgrade.bmc.first().media(), Some(ISO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_keeps_its_server_and_gives_it_back_when_it_is_deleted() {
    let it = Situation { bmc: || instant_bmc(HOST), ..situation("machine") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        world.create_machine("node", iso()).await;
        world.wait_for_ready("node").await;
        tokio::time::sleep(5 * MINUTE).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let before = upgrade.world.machines().get("node").await.unwrap();
        upgrade.assert_rests(HOUR).await;
        let after = upgrade.world.machines().get("node").await.unwrap();
        assert_eq!((host_of(&after).as_deref(), &after.spec), (Some(HOST), &before.spec));
        assert_eq!(after.annotations()["beskar7.io/claim-id"], before.annotations()["beskar7.io/claim-id"]);
        for type_ in ["Ready", "InfrastructureReady", "PhysicalHostAssociated"] {
            let (before, after) = (told(&before, type_), told(&after, type_));
            assert_eq!((after.0, after.1), (before.0, before.1), "{type_}");
        }
        upgrade.world.delete_machine("node").await;
        upgrade.world.wait_for_no_machine("node").await;
        upgrade.world.wait_for_state(HOST, "Available").await;
        assert_tidy(&upgrade.bmc);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_waits_for_a_server_waits_on_and_gets_one() {
    let it = Situation { bmc: || instant_bmc(HOST), ..situation("machine-waiting") };
    it.record(async |world, _| {
        world.create_machine("node", iso()).await;
        let waits = |machine: &api::beskar7::Beskar7Machine| {
            told(machine, "PhysicalHostAssociated").1 == "WaitingForPhysicalHost"
        };
        world.wait_for_machine("node", "a wait", waits).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let before = upgrade.world.machines().get("node").await.unwrap();
        upgrade.start();
        tokio::time::sleep(10 * MINUTE).await;
        let after = upgrade.world.machines().get("node").await.unwrap();
        assert_eq!(after.annotations()["beskar7.io/claim-id"], before.annotations()["beskar7.io/claim-id"]);
        assert_eq!(told(&after, "PhysicalHostAssociated").1, "WaitingForPhysicalHost");
        upgrade.world.register(&upgrade.bmc, json!({})).await;
        upgrade.world.wait_for_ready("node").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_server_is_being_prepared_gets_that_and_no_other() {
    let it = Situation { bmc: || instant_bmc(HOST), ..situation("machine-preparing") };
    it.record(async |world, bmc| {
        available(world, bmc).await;
        bmc.faults().add(Effect::Latency(Duration::from_secs(40)).always().kind(Kind::InsertMedia).times(1));
        world.create_machine("node", iso()).await;
        wait_for("the insertion", EVER, async || bmc.first().media().map(|_| ())).await;
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        upgrade.world.add_bmc("server-02", instant_bmc("server-02"));
        upgrade.world.create_host("server-02", json!({})).await;
        upgrade.start();
        let machine = upgrade.world.wait_for_ready("node").await;
        assert_eq!(host_of(&machine).as_deref(), Some(HOST));
        assert_runs_the_order(&upgrade);
        assert_eq!(resets(&upgrade.bmc), ["On"]);
        let host = upgrade.host().await;
        assert_eq!(anchor(&host)["deployment"], anchor(upgrade.stored())["deployment"]);
        assert_eq!(upgrade.world.host("server-02").await.spec.consumer_ref, None);
    }
}

fn one_at_a_time(world: &World, config: &mut Config) {
    alone(world, config);
    config.brake.concurrent_deployments = 1;
}

/// Who waits for the slot of the first host, in the order in which they came: not that of their names.
const QUEUE: [&str; 2] = ["server-03", "server-02"];

fn add_queue(world: &World) -> [sim::Bmc; 2] {
    QUEUE.map(|name| world.add_bmc(name, sim::Bmc::new(spec(name).timing(Timing::INSTANT).power(PowerState::On))))
}

#[tokio::test(start_paused = true)]
async fn hosts_that_wait_for_a_deployment_slot_keep_their_place_and_their_wait() {
    let it = Situation { config: one_at_a_time, ..situation("deployment-queue") };
    it.record(async |world, bmc| {
        add_queue(world);
        world.create_secret("bmc", "admin", "password").await;
        for name in QUEUE {
            world.create_host(name, json!({})).await;
            world.wait_for_state(name, "Available").await;
        }
        available(world, bmc).await;
        bmc.faults().add(Effect::Latency(MINUTE).always().kind(Kind::InsertMedia).times(1));
        world.patch_spec(HOST, claim("me", ISO)).await;
        wait_for("the insertion", EVER, async || bmc.first().media().map(drop)).await;
        for name in QUEUE {
            world.patch_spec(name, claim("me", ISO)).await;
            world.wait_until(name, "the fleet brake", |host| waits_for(host, "FleetBrake")).await;
            tokio::time::sleep(Duration::from_secs(15)).await;
        }
        assert_eq!(state_of(&world.host(HOST).await), "Claimed");
        Value::Null
    })
    .await;
    for upgrade in it.upgrades().await {
        let bmcs = add_queue(&upgrade.world);
        let mut waited = Vec::new();
        for name in QUEUE {
            waited.push(since(&upgrade.world.host(name).await));
        }
        assert!(waited.is_sorted());
        // Long enough for whoever would push in.
        upgrade.bmc.faults().add(Effect::SlowPower(Duration::from_secs(45)).always());
        upgrade.start();
        tokio::time::sleep(Duration::from_secs(30)).await;
        for ((name, bmc), waited) in QUEUE.iter().zip(&bmcs).zip(&waited) {
            let host = upgrade.world.host(name).await;
            assert!(waits_for(&host, "FleetBrake"), "{name}: {:?}", host.status);
            assert_eq!(since(&host), *waited, "{name} waits for longer than this process");
            assert!(bmc.journal().is_empty(), "{name}");
        }
        let mut provisioned = Vec::new();
        for name in std::iter::once(HOST).chain(QUEUE) {
            let host = upgrade.world.wait_for_state(name, "Provisioned").await;
            provisioned.push(host.status.unwrap().last_state_transition_time.unwrap().0);
        }
        assert!(provisioned.is_sorted() && provisioned[1] < provisioned[2], "{provisioned:?}");
        assert_runs_the_order(&upgrade);
        assert_eq!(resets(&upgrade.bmc), ["ForceOff", "On"], "once, and not again");
    }
}
