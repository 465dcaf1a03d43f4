//! A definition of PhysicalHosts that is of another version than the operator.

use serde_json::json;
use testkit::Cluster;
use trials::world::{World, instant_bmc};

#[tokio::test]
async fn hosts_whose_definition_drops_the_record_are_told_about_and_taken_up_when_it_is_replaced() {
    let cluster = Box::leak(Box::new(Cluster::start().await));
    let world = World::quiet_on(cluster, "definition").await;
    world.install_definition_without_record().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "password").await;
    world.create_host("server-01", json!({})).await;
    world.start_operator();
    world.wait_for_event_of("server-01", "RecordNotKept").await;
    assert_eq!(bmc.counters().total(), 0);
    world.install_own_definition().await;
    world.wait_for_state("server-01", "Available").await;
    world.stop_operator().await;
}
