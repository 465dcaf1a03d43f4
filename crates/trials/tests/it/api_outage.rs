//! The API server goes away and comes back.

use std::time::Duration;

use controllers::leader::Timing;
use controllers::operator::Election;
use serde_json::json;
use testkit::{Cluster, wait_for};
use trials::gate::Gate;
use trials::outage::Outage;
use trials::story::ISO;
use trials::world::{Hurry, SOON, World, claim, is_well, state_of};

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
    let outage = Outage {
        cut: async |cut| if cut { cluster.stop_apiserver() } else { cluster.start_apiserver().await },
        // Long after the lease has run out for everybody. `tests/process` has longer ones.
        long: Duration::from_secs(20),
        // A restart takes its time.
        short: Duration::ZERO,
        power_on: Duration::from_secs(4),
        patience: SOON,
    };
    outage.happens_to(&world, operator).await;
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
