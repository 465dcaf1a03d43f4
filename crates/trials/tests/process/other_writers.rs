//! Statuses that others write to, too.

use api::beskar7::PhysicalHost;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use trials::story::{HOST, running_bmc, world_with};
use trials::world::World;

const TYPE: &str = "CablingChecked";

/// Has somebody else say these conditions, and no others, without force: whoever else owns one of them is a conflict.
async fn say(world: &World, conditions: Value) {
    let hosts: Api<PhysicalHost> = Api::namespaced(world.admin(), &world.namespace);
    let status = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "PhysicalHost",
        "status": { "conditions": conditions },
    });
    hosts.patch_status(HOST, &PatchParams::apply("cabling"), &Patch::Apply(status)).await.unwrap();
}

fn condition(status: &str) -> Value {
    let reason = format!("Cabling{status}");
    json!([{ "type": TYPE, "status": status, "reason": reason, "lastTransitionTime": "2026-11-17T08:00:00Z" }])
}

/// Has the operator write the status a few times.
async fn go_on(world: &World) {
    world.patch_spec(HOST, json!({ "maintenance": { "reason": "cabling" } })).await;
    world.wait_for_state(HOST, "Maintenance").await;
    world.patch_spec(HOST, json!({ "maintenance": null })).await;
    world.wait_for_state(HOST, "Available").await;
}

/// What the other one says as the host shows it, and how many conditions are ours there.
async fn shown(world: &World) -> (Option<String>, usize) {
    let conditions = world.host(HOST).await.status.unwrap().conditions;
    let theirs = conditions.iter().find(|condition| condition.type_ == TYPE);
    (theirs.map(|condition| condition.status.clone()), conditions.len() - usize::from(theirs.is_some()))
}

#[tokio::test(start_paused = true)]
async fn a_condition_of_somebody_else_stays_as_its_writer_makes_it() {
    let (world, _bmc) = world_with(running_bmc()).await;
    world.wait_for_state(HOST, "Available").await;
    let (_, ours) = shown(&world).await;
    assert!(ours > 3, "{ours}");
    say(&world, condition("True")).await;
    go_on(&world).await;
    assert_eq!(shown(&world).await, (Some("True".to_owned()), ours));
    say(&world, condition("False")).await;
    go_on(&world).await;
    assert_eq!(shown(&world).await, (Some("False".to_owned()), ours));
    say(&world, json!([])).await;
    assert_eq!(shown(&world).await, (None, ours), "nobody else owns it");
    go_on(&world).await;
    assert_eq!(shown(&world).await, (None, ours));
}
