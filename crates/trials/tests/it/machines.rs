//! Machines without Cluster API: a manifest, a server, and back.

use std::time::Duration;

use api::beskar7::Beskar7Machine;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use sim::{BootSource, Effect, Kind, PowerState};
use testkit::wait_ok;
use trials::gate::Passage;
use trials::machines::{host_of, iso, told};
use trials::story::{ISO, runs};
use trials::world::{SOON, World, state_of};

#[tokio::test]
async fn a_machine_gets_a_server_and_gives_it_back() {
    let world = World::alone("machine").await;
    let bmc = world.available_host("server-01").await;
    world.create_machine("node-01", iso()).await;
    let machine = world.wait_for_ready("node-01").await;
    let mut writes = world.all_writes();
    // What came too late is written anew, and a look that was too early is told.
    writes.retain(Passage::is_accepted);
    assert!(writes.len() <= 4 + 12, "for the host, an id for the claim, and ten from there on: {writes:#?}");
    assert_eq!(runs(&bmc), Some(BootSource::Cd(ISO.into())));
    let provider = format!("b7://{}/server-01", world.namespace);
    assert_eq!(machine.spec.provider_id.as_deref(), Some(provider.as_str()));
    assert_eq!(host_of(&machine).as_deref(), Some("server-01"));
    assert_eq!(told(&machine, "InfrastructureReady").0, "True");
    assert_eq!(told(&machine, "PhysicalHostAssociated").0, "True");
    assert_eq!(machine.status.as_ref().unwrap().phase.as_deref(), Some("Provisioned"));
    let host = world.host("server-01").await;
    let consumer = host.spec.consumer_ref.clone().unwrap();
    assert_eq!((consumer.kind.as_deref(), consumer.name.as_deref()), (Some("Beskar7Machine"), Some("node-01")));
    assert_eq!(host.annotations()["beskar7.io/claim-id"], machine.annotations()["beskar7.io/claim-id"]);

    world.delete_machine("node-01").await;
    world.wait_for_no_machine("node-01").await;
    let host = world.host("server-01").await;
    assert_eq!(state_of(&host), "Available", "the machine goes when its server is free again, not before");
    assert_eq!(bmc.first().power(), PowerState::Off);
    assert_eq!((host.spec.consumer_ref, host.spec.boot_iso_source), (None, None));
    assert!(host.metadata.annotations.unwrap().contains_key("beskar7.io/released-at"));
}

#[tokio::test]
async fn a_machine_that_nobody_can_serve_says_why_and_is_served_when_somebody_can() {
    let world = World::alone("nobody").await;
    world.available_host("server-01").await;
    let mut spec = iso();
    spec["hardwareRequirements"] = json!({ "minCPUCores": 5000 });
    world.create_machine("greedy", spec).await;
    let waits = |machine: &Beskar7Machine| told(machine, "PhysicalHostAssociated").1 == "WaitingForPhysicalHost";
    let machine = world.wait_for_machine("greedy", "a wait", waits).await;
    let (_, _, message) = told(&machine, "PhysicalHostAssociated");
    assert!(message.contains("The only PhysicalHost") && message.contains("Nearest: server-01 ("), "{message}");

    let mut spec = iso();
    spec["hostSelector"] = json!({ "matchLabels": { "class": "gold" } });
    world.create_machine("choosy", spec).await;
    let machine = world.wait_for_machine("choosy", "a wait", waits).await;
    assert!(told(&machine, "PhysicalHostAssociated").2.contains("not class=gold"), "{machine:?}");
    let label = json!({ "metadata": { "labels": { "class": "gold" } } });
    world.hosts().patch("server-01", &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    world.wait_for_ready("choosy").await;

    world.create_machine("later", json!({ "targetImageURL": "http://images.test/os.raw" })).await;
    let refused = |machine: &Beskar7Machine| told(machine, "InfrastructureReady").1 == "ModeUnsupported";
    let machine = world.wait_for_machine("later", "a refusal", refused).await;
    assert_eq!(machine.status.unwrap().failure_reason.as_deref(), Some("ModeUnsupported"));
}

#[tokio::test]
async fn paused_machines_and_machines_that_move_are_left_alone() {
    let world = World::alone("paused").await;
    let bmc = world.available_host("server-01").await;
    let spec = iso();
    let paused = json!({
        "metadata": { "name": "node", "annotations": { "cluster.x-k8s.io/paused": "" } }, "spec": spec,
    });
    world.machines().create(&PostParams::default(), &serde_json::from_value(paused).unwrap()).await.unwrap();
    let machine = world.wait_for_machine("node", "told", |machine| told(machine, "Paused").0 == "True").await;
    assert_eq!(machine.finalizers(), [""; 0]);
    assert!(world.host("server-01").await.spec.consumer_ref.is_none());
    let resume = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": null } } });
    world.machines().patch("node", &PatchParams::default(), &Patch::Merge(resume)).await.unwrap();
    let machine = world.wait_for_ready("node").await;
    assert_eq!(told(&machine, "Paused").0, "False");

    // clusterctl replaces all annotations by its own before it deletes.
    let moved = json!({ "metadata": { "annotations": null } });
    world.machines().patch("node", &PatchParams::default(), &Patch::Merge(moved)).await.unwrap();
    world.annotate_machine("node", "clusterctl.cluster.x-k8s.io/delete-for-move", "").await;
    world.delete_machine("node").await;
    let finalizers = json!({ "metadata": { "finalizers": null } });
    world.machines().patch("node", &PatchParams::default(), &Patch::Merge(finalizers)).await.unwrap();
    world.wait_for_no_machine("node").await;
    let host = world.host("server-01").await;
    assert!(host.spec.consumer_ref.is_some() && bmc.first().power() == PowerState::On);
}

#[tokio::test]
async fn a_machine_may_be_deleted_at_any_moment() {
    let world = World::alone("hasty").await;
    let bmc = world.available_host("server-00").await;

    // The watch may still show one that is gone: such a one gets no server.
    for round in 0..20 {
        let name = format!("at-once-{round}");
        world.create_machine(&name, iso()).await;
        world.delete_machine(&name).await;
        world.wait_for_no_machine(&name).await;
    }
    world.wait_for_state("server-00", "Available").await;

    let (known, boots) = (bmc.journal().len(), bmc.first().boots);
    bmc.faults().add(Effect::Latency(Duration::from_secs(8)).always().kind(Kind::InsertMedia).times(1));
    world.create_machine("claiming", iso()).await;
    wait_ok("the insertion", SOON, async || {
        let begun = bmc.journal().iter().skip(known).any(|mutation| mutation.kind == Kind::InsertMedia);
        if begun { Ok(()) } else { Err(format!("{:#?}", world.host("server-00").await)) }
    })
    .await;
    world.delete_machine("claiming").await;
    world.wait_for_no_machine("claiming").await;
    let host = world.wait_for_state("server-00", "Available").await;
    assert_eq!(host.spec.consumer_ref, None);
    assert_eq!(bmc.first().power(), PowerState::Off);
    assert_eq!(bmc.first().boots, boots, "what was never wanted any more was not started");
}
