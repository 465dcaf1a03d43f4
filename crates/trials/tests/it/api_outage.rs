//! The API server goes away and comes back.

use std::time::Duration;

use controllers::leader::Timing;
use controllers::operator::Election;
use serde_json::json;
use sim::{PowerState, Timing as Delays};
use testkit::{Cluster, wait_for};
use trials::gate::Gate;
use trials::world::{Hurry, SOON, World, claim, is_well, spec, state_of};

const ISO: &str = "http://images.test/os.iso";

/// Long enough for a busy machine to renew in, short enough to wait for.
const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(6),
    renew_deadline: Duration::from_secs(4),
    retry_period: Duration::from_millis(500),
    jitter: 1.2,
};

/// The whole cluster, not one namespace: the way most people run it.
const EVERYWHERE: &str = concat!(
    include_str!("../../../../config/rbac/leader_election_role.yaml"),
    "\n---\n",
    include_str!("../../../../config/rbac/role.yaml"),
    "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: beskar7-leader-election}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: beskar7-leader-election}
subjects: [{kind: ServiceAccount, name: beskar7}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: beskar7-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: beskar7-manager}
subjects: [{kind: ServiceAccount, name: beskar7, namespace: beskar7-system}]
"
);

/// Long after the lease has run out for everybody. `tests/process` has longer ones.
const OUTAGE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn an_operator_outlives_its_api_server_and_nothing_happens_to_servers() {
    // Tests hand worlds around that live as long as the process; so must their cluster.
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
    let world = World::quiet_on(cluster, "outage").await;
    cluster.apply_yaml_in(&world.namespace, &EVERYWHERE.replace("beskar7-system", &world.namespace)).await;
    let election = Election {
        namespace: world.namespace.clone(),
        lease: "beskar7.infrastructure.cluster.x-k8s.io".into(),
        identity: "only".into(),
        timing: TIMING,
    };
    let operator = world.launch(&Gate::default(), Hurry::by(10), |config| {
        config.namespace = None;
        config.election = Some(election);
    });
    let idle = world.available_host("idle").await;
    let running = world.available_host("running").await;
    world.patch_spec("running", claim("me", ISO)).await;
    world.wait_for_state("running", "Provisioned").await;
    // A server that takes its time: its order is under way when the API server goes.
    let delays = Delays { power_on: Duration::from_secs(4), ..Delays::INSTANT };
    let starting = world.add_bmc("starting", sim::Bmc::new(spec("starting").timing(delays)));
    world.create_host("starting", json!({})).await;
    world.wait_for_state("starting", "Available").await;
    world.patch_spec("starting", claim("me", ISO)).await;
    wait_for("the order to be under way", SOON, async || (starting.first().resets == 1).then_some(())).await;
    let bmcs = [&idle, &running, &starting];
    let truth = || bmcs.map(|bmc| (bmc.first().resets, bmc.first().boots, bmc.journal().len()));
    let before = truth();

    cluster.stop_apiserver();
    let all_sessions = |count: usize| bmcs.iter().all(|bmc| bmc.sessions_open() == count).then_some(());
    wait_for("the lease to be lost and all sessions closed", SOON, async || all_sessions(0)).await;
    for bmc in bmcs {
        bmc.reset_counters();
    }
    tokio::time::sleep(OUTAGE).await;
    assert_eq!(bmcs.map(|bmc| bmc.counters().total()), [0; 3], "who does not lead does not ask");
    wait_for("the server to have started", SOON, async || (starting.first().boots == 1).then_some(())).await;

    cluster.start_apiserver().await;
    let host = world.wait_for_state("starting", "Provisioned").await;
    assert!(is_well(&host), "{:?}", host.status);
    wait_for("all to be looked at again", SOON, async || all_sessions(1)).await;
    let after = truth();
    assert_eq!((after[0], after[1]), (before[0], before[1]), "nothing was done to the others");
    assert_eq!((after[2].0, starting.first().power()), (1, PowerState::On), "{:?}", starting.journal());
    for (name, state) in [("idle", "Available"), ("running", "Provisioned")] {
        let host = world.host(name).await;
        assert!(is_well(&host) && state_of(&host) == state, "{:?}", host.status);
    }

    // A restart that is over before the lease runs out; and work goes on.
    cluster.stop_apiserver();
    cluster.start_apiserver().await;
    world.patch_spec("idle", claim("me", ISO)).await;
    world.wait_for_state("idle", "Provisioned").await;
    world.patch_spec("running", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.wait_for_state("running", "Available").await;
    assert_eq!((running.first().power(), running.first().media()), (PowerState::Off, None));
    operator.stop().await;
    assert_eq!(all_sessions(0), Some(()));
}

#[tokio::test]
async fn without_an_election_the_operator_waits_for_its_api_server_too() {
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
    let world = World::quiet_on(cluster, "outage").await;
    world.start_operator_with(Hurry::by(20), |_| {});
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    world.wait_for_state("server-01", "Provisioned").await;
    let (resets, journal) = (bmc.first().resets, bmc.journal().len());
    let writes = accepted_writes(&world);

    cluster.stop_apiserver();
    bmc.reset_counters();
    // Watching goes on, acting does not: what cannot be stored is not done.
    wait_for("looks", SOON, async || (bmc.counters().reads() >= 3).then_some(())).await;
    assert!(bmc.by_hand(&bmc.first().id, sim::ResetType::ForceOff));
    let reads = bmc.counters().reads();
    wait_for("one more look", SOON, async || (bmc.counters().reads() > reads).then_some(())).await;
    assert_eq!(bmc.journal().len(), journal);
    cluster.start_apiserver().await;
    world
        .wait_until("server-01", "the power to be shown", |host| {
            host.status.as_ref().is_some_and(|status| status.observed_power_state.as_deref() == Some("Off"))
        })
        .await;
    let host = world.host("server-01").await;
    assert!(is_well(&host) && state_of(&host) == "Provisioned", "{:?}", host.status);
    assert_eq!((bmc.first().resets, bmc.journal().len()), (resets + 1, journal), "only by hand");
    assert!(accepted_writes(&world) <= writes + 3, "no flood of what could not be written");
    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.wait_for_state("server-01", "Available").await;
    world.stop_operator().await;
    assert_eq!(bmc.sessions_open(), 0);
}

/// A server that has just started knows no roles yet and refuses.
fn accepted_writes(world: &World) -> usize {
    world.all_writes().iter().filter(|write| write.is_accepted()).count()
}
