//! Machines on bad days: operators killed at any moment, too few hosts, owners that change their minds.

use std::collections::BTreeSet;
use std::time::Duration;

use api::beskar7::{Beskar7Machine, PhysicalHost};
use controllers::leader::Timing;
use futures::future::join_all;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;
use sim::{Effect, PowerState};
use testkit::wait_for;
use tokio::time::Instant;
use trials::gate::Gate;
use trials::machines::{host_of, iso, told};
use trials::story::ISO;
use trials::world::{EVER, World, anchor, condition, instant_bmc, state_of};

use crate::crash::{killed_after, killed_after_each};

/// A quiet world with so many hosts, registered but not looked at.
async fn hosts(count: usize) -> World {
    hosts_in(World::quiet_in_process().await, count).await
}

async fn hosts_in(world: World, count: usize) -> World {
    world.create_secret("bmc", "admin", "password").await;
    join_all((0..count).map(async |number| {
        let name = format!("server-{number:02}");
        world.add_bmc(&name, instant_bmc(&name));
        world.create_host(&name, json!({})).await;
    }))
    .await;
    world
}

/// The life of a machine: it gets one of two servers, which boots once, and gives it back.
async fn life(world: &World) {
    world.create_machine("node", iso()).await;
    let machine = world.wait_for_ready("node").await;
    let host = host_of(&machine).unwrap();
    let claimed = claimed_hosts(world).await;
    assert_eq!(claimed, BTreeSet::from([host.clone()]), "one machine, one server");
    assert_eq!(world.bmc(&host).first().boots, 1, "{:?}", world.bmc(&host).journal());
    world.delete_machine("node").await;
    world.wait_for_no_machine("node").await;
    for name in ["server-00", "server-01"] {
        world.wait_for_state(name, "Available").await;
        assert_eq!(world.bmc(name).first().power(), PowerState::Off);
    }
    let boots: u32 = ["server-00", "server-01"].iter().map(|name| world.bmc(name).first().boots).sum();
    assert_eq!(boots, 1, "no other server was started");
}

/// Waits for something that is costly to look at, and takes minutes.
async fn wait_for_fleet(what: &str, probe: impl AsyncFn() -> Result<(), String>) {
    let began = Instant::now();
    while let Err(why) = probe().await {
        assert!(began.elapsed() < EVER, "waited for {what}; last answer: {why}");
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
}

async fn claimed_hosts(world: &World) -> BTreeSet<String> {
    let hosts = world.hosts().list(&ListParams::default()).await.unwrap().items;
    hosts.iter().filter(|host| host.spec.consumer_ref.is_some()).map(kube::ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_effect_of_a_machines_life_the_operator_takes_up_where_it_was() {
    let first = World::quiet_in_process().await;
    let most = killed_after_each(async |effects| {
        let world = hosts_in(first.beside().await, 2).await;
        killed_after(effects, &world, |config| config.cluster_api = false, life(&world)).await
    })
    .await;
    assert!(most > 10, "a life has more effects than {most}");
}

#[tokio::test(start_paused = true)]
async fn fifty_machines_race_for_thirty_hosts_and_the_leader_is_killed_in_the_middle() {
    let world = hosts(30).await;
    let replica = |identity: &str, gate: &Gate| {
        let election = controllers::operator::Election {
            namespace: world.namespace.clone(),
            lease: "beskar7".into(),
            identity: identity.into(),
            timing: Timing::default(),
        };
        world.launch(gate, world.clock(), |config| {
            config.cluster_api = false;
            config.election = Some(election);
        })
    };
    let gate = Gate::default();
    let first = replica("a", &gate);
    world.wait_for_state("server-00", "Available").await;
    let second = replica("b", &Gate::default());
    join_all((0..30).map(async |number| world.wait_for_state(&format!("server-{number:02}"), "Available").await)).await;
    // Ids for all, and the claims of some.
    gate.shut_after(65);
    join_all((0..50).map(async |number| world.create_machine(&format!("node-{number:02}"), iso()).await)).await;
    gate.is_shut().await;
    first.kill().await;
    let claimed = claimed_hosts(&world).await.len();
    assert!((1..30).contains(&claimed), "{claimed} hosts were claimed when the leader was killed");

    wait_for_fleet("thirty machines to be ready and twenty to be told", async || {
        let machines = world.machines().list(&ListParams::default()).await.unwrap().items;
        let ready = machines.iter().filter(|machine| is_ready(machine)).count();
        let told =
            machines.iter().filter(|machine| told(machine, "PhysicalHostAssociated").1 == "WaitingForPhysicalHost");
        let told = told.count();
        if (ready, told) == (30, 20) { Ok(()) } else { Err(format!("{ready} are ready, {told} were told")) }
    })
    .await;
    let machines = world.machines().list(&ListParams::default()).await.unwrap().items;
    let taken: Vec<_> = machines.iter().filter_map(host_of).collect();
    assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 30, "{taken:?}");
    for number in 0..30 {
        let bmc = world.bmc(&format!("server-{number:02}"));
        assert_eq!(bmc.first().boots, 1, "server-{number:02}: {:?}", bmc.journal());
    }

    // Whoever waits gets what somebody gives back.
    let done: Vec<_> =
        machines.iter().filter(|machine| is_ready(machine)).take(5).map(kube::ResourceExt::name_any).collect();
    join_all(done.iter().map(async |name| world.delete_machine(name).await)).await;
    wait_for_fleet("thirty machines to be ready again", async || {
        let machines = world.machines().list(&ListParams::default()).await.unwrap().items;
        let ready = machines.iter().filter(|machine| is_ready(machine)).count();
        if ready == 30 && machines.len() == 45 { Ok(()) } else { Err(format!("{ready} of {}", machines.len())) }
    })
    .await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_machine_that_is_gone_starts_nothing_and_makes_way_for_its_namesake() {
    let world = hosts(1).await;
    // The claim is given ten minutes.
    world.start_operator_with(world.clock(), |config| config.cluster_api = false);
    let bmc = world.bmc("server-00");
    world.wait_for_state("server-00", "Available").await;
    let ghost = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": "node",
    });
    world.annotate("server-00", "beskar7.io/claim-id", Some("of-old")).await;
    world.patch_spec("server-00", json!({ "consumerRef": ghost, "bootIsoSource": "http://images.test/os.iso" })).await;
    let is_refused = |host: &PhysicalHost| condition(host, "HostAvailable") == ("False".into(), "ConsumerGone".into());
    let host = world.wait_until("server-00", "a refusal", is_refused).await;
    assert_eq!(state_of(&host), "Available");
    let waiting = host.status.unwrap().waiting.unwrap();
    assert!(waiting.message.contains("node, which does not exist"), "{}", waiting.message);

    // One of the same name is another one: it waits for its turn.
    world.create_machine("node", iso()).await;
    let is_over = |host: &PhysicalHost| {
        let is_over = host.annotations().get("beskar7.io/claim-id").is_none_or(|claim| claim != "of-old");
        assert!(is_over || bmc.first().boots == 0, "nothing is started for a ghost");
        is_over
    };
    world.wait_until("server-00", "the end of that claim", is_over).await;
    world.wait_for_ready("node").await;
    assert_eq!(bmc.first().boots, 1, "{:?}", bmc.journal());
    world.wait_for_event_of("server-00", "GhostClaim").await;
}

/// A deposed leader leaves the claim of a machine on a second server, whose loop has accepted it or not.
async fn a_second_server_is_given_back(accepted: bool) {
    let world = hosts(2).await;
    let start_frozen = || {
        world.start_operator_with(world.clock(), |config| {
            config.cluster_api = false;
            config.brake.freeze = true;
        });
    };
    start_frozen();
    for name in ["server-00", "server-01"] {
        world.wait_for_state(name, "Available").await;
    }
    world.create_machine("node", iso()).await;
    let first = wait_for("a claim", EVER, async || claimed_hosts(&world).await.pop_first()).await;
    let host = world.wait_until(&first, "the claim accepted", |host| anchor(host).get("claim").is_some()).await;
    world.stop_operator().await;
    let second = if first == "server-00" { "server-01" } else { "server-00" };
    if accepted {
        let mut accepting = anchor(&world.host(second).await);
        accepting["claim"] = anchor(&host)["claim"].clone();
        accepting["seq"] = json!(accepting["seq"].as_u64().unwrap() + 1);
        world.annotate(second, "beskar7.io/anchor", Some(&accepting.to_string())).await;
    }
    world.annotate(second, "beskar7.io/claim-id", Some(&host.annotations()["beskar7.io/claim-id"])).await;
    let order = json!({ "consumerRef": host.spec.consumer_ref, "bootIsoSource": host.spec.boot_iso_source });
    world.patch_spec(second, order).await;

    start_frozen();
    wait_for("one claim to be left", EVER, async || (claimed_hosts(&world).await.len() == 1).then_some(())).await;
    world.stop_operator().await;
    world.start_alone();
    let kept = host_of(&world.wait_for_ready("node").await).unwrap();
    assert_eq!(claimed_hosts(&world).await, BTreeSet::from([kept.clone()]));
    for name in ["server-00", "server-01"] {
        assert_eq!(world.bmc(name).first().boots, u32::from(name == kept), "{name}");
    }
    let other = if kept == "server-00" { "server-01" } else { "server-00" };
    world.wait_for_state(other, "Available").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_a_deposed_leader_left_on_a_second_server_is_taken_off_before_that_starts() {
    a_second_server_is_given_back(false).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_a_second_server_has_accepted_is_taken_off_before_that_starts() {
    a_second_server_is_given_back(true).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_goes_asks_for_a_claim_that_the_watch_has_not_shown_yet() {
    let world = hosts(1).await;
    let gate = Gate::default();
    let operator = world.launch(&gate, world.clock(), |config| config.cluster_api = false);
    world.wait_for_state("server-00", "Available").await;
    let mut spec = iso();
    spec["hostSelector"] = json!({ "matchLabels": { "class": "gold" } });
    world.create_machine("node", spec).await;
    let waits = |machine: &Beskar7Machine| told(machine, "PhysicalHostAssociated").1 == "WaitingForPhysicalHost";
    let machine = world.wait_for_machine("node", "a wait", waits).await;

    // The last write of a deposed leader.
    gate.veil(Some("physicalhosts"));
    let claim = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": "node",
        "namespace": world.namespace, "uid": machine.uid(),
    });
    world.annotate("server-00", "beskar7.io/claim-id", Some(&machine.annotations()["beskar7.io/claim-id"])).await;
    world.patch_spec("server-00", json!({ "consumerRef": claim, "bootIsoSource": ISO })).await;
    let before = gate.seen().len();
    world.delete_machine("node").await;
    wait_for("the machine to ask, and to ask again", EVER, async || {
        let asked = gate.seen().split_off(before).into_iter().filter(|seen| seen.what.ends_with("/physicalhosts"));
        (asked.count() >= 2).then_some(())
    })
    .await;
    assert!(world.machines().get_opt("node").await.unwrap().is_some(), "its server would be lost");

    gate.veil(None);
    world.wait_for_no_machine("node").await;
    assert_eq!(claimed_hosts(&world).await, BTreeSet::new());
    world.wait_for_state("server-00", "Available").await;
    operator.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_dies_after_the_claim_is_told_about_and_goes_on_when_it_is_back() {
    let world = hosts(1).await;
    world.start_alone();
    let bmc = world.bmc("server-00");
    world.wait_for_state("server-00", "Available").await;
    bmc.faults().add(Effect::Refuse.always());
    world.create_machine("node", iso()).await;
    let told_so = |machine: &Beskar7Machine| {
        let (status, reason, message) = told(machine, "InfrastructureReady");
        status == "False" && reason == "Unreachable" && message.contains("server-00")
    };
    world.wait_for_machine("node", "to be told", told_so).await;
    bmc.faults().clear();
    world.wait_for_ready("node").await;
    assert_eq!(state_of(&world.host("server-00").await), "Provisioned");
}

fn is_ready(machine: &Beskar7Machine) -> bool {
    machine.status.as_ref().is_some_and(|status| status.ready == Some(true))
}
