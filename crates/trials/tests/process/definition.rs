//! A definition of PhysicalHosts that is of another version than the operator, and drops what that remembers.

use std::time::Duration;

use kube::ResourceExt as _;
use serde_json::json;
use trials::story::{HOST, ISO, resets, running_bmc};
use trials::world::{World, claim, state_of};

/// Longer than the operator needs to notice another definition.
const NOTICED: Duration = Duration::from_mins(3);

#[tokio::test(start_paused = true)]
async fn nothing_is_done_to_hosts_whose_definition_drops_the_record_until_it_is_replaced() {
    let world = World::quiet_in_process().await;
    world.install_definition_without_record().await;
    let bmc = running_bmc();
    world.register(&bmc, claim("me", ISO)).await;
    world.start_operator();
    let told = world.wait_for_event("RecordNotKept").await;
    for words in ["physicalhosts.infrastructure.cluster.x-k8s.io drops status.record", "beskar7 crds | kubectl apply"] {
        assert!(told.contains(words), "{told}");
    }
    tokio::time::sleep(NOTICED).await;
    let host = world.host(HOST).await;
    assert_eq!((host.status.as_ref(), host.annotations().len(), host.finalizers().len()), (None, 0, 0));
    assert_eq!((bmc.counters().total(), world.writes()), (0, 0), "it is not even looked at");
    assert_eq!(world.events(HOST).await, ["RecordNotKept"], "told once");

    world.install_own_definition().await;
    world.wait_for_state(HOST, "Provisioned").await;
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_replaced_by_an_older_one_stops_the_operator_until_it_is_put_back() {
    let world = World::in_process().await;
    let bmc = running_bmc();
    world.register(&bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
    world.install_definition_without_record().await;
    world.wait_for_event("RecordNotKept").await;
    let writes = world.writes();
    world.patch_spec(HOST, claim("me", ISO)).await;
    tokio::time::sleep(NOTICED).await;
    assert_eq!((world.writes(), resets(&bmc).len()), (writes, 0));

    world.install_own_definition().await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((state_of(&host).as_str(), resets(&bmc).join(" ")), ("Provisioned", "ForceOff On".to_owned()));
}
