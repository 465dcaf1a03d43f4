//! Machines without Cluster API: a manifest, a server, and back.

use api::beskar7::{Beskar7Machine, PhysicalHost};
use controllers::clock::SystemClock;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::{BootSource, Effect, PowerState};
use testkit::wait_for;

use crate::story::{ISO, runs};
use crate::world::{SOON, World, state_of};

impl World {
    /// A namespace with an operator that knows no Cluster API.
    async fn alone(prefix: &str) -> Self {
        let world = Self::quiet(prefix).await;
        world.start_alone();
        world
    }

    pub(crate) fn start_alone(&self) {
        self.start_operator_with(SystemClock, |config| config.cluster_api = false);
    }

    pub(crate) fn machines(&self) -> Api<Beskar7Machine> {
        Api::namespaced(self.cluster.admin(), &self.namespace)
    }

    pub(crate) async fn create_machine(&self, name: &str, spec: Value) -> Beskar7Machine {
        let machine = json!({ "metadata": { "name": name }, "spec": spec });
        let machine = serde_json::from_value(machine).unwrap();
        self.machines().create(&PostParams::default(), &machine).await.unwrap()
    }

    pub(crate) async fn wait_for_machine(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&Beskar7Machine) -> bool,
    ) -> Beskar7Machine {
        let machines = self.machines();
        let deadline = tokio::time::Instant::now() + SOON;
        loop {
            let machine = machines.get(name).await.unwrap();
            if wanted(&machine) {
                return machine;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{name}: {what} did not come true: {}",
                serde_json::to_string_pretty(&machine).unwrap()
            );
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn wait_for_ready(&self, name: &str) -> Beskar7Machine {
        self.wait_for_machine(name, "ready", |machine| {
            machine.status.as_ref().is_some_and(|status| status.ready == Some(true))
        })
        .await
    }

    pub(crate) async fn delete_machine(&self, name: &str) {
        self.machines().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn wait_for_no_machine(&self, name: &str) {
        let machines = self.machines();
        wait_for(&format!("{name} to be gone"), SOON, async || {
            machines.get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    async fn annotate_machine(&self, name: &str, annotation: &str, value: &str) {
        let patch = json!({ "metadata": { "annotations": { annotation: value } } });
        self.machines().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}

pub(crate) fn iso() -> Value {
    json!({ "osFamily": "kairos", "imageURL": ISO, "provisioningMode": "PreBakedISO" })
}

pub(crate) fn told(machine: &Beskar7Machine, type_: &str) -> (String, String, String) {
    let condition = machine.status.as_ref().and_then(|status| status.condition(type_)).cloned();
    condition.map(|it| (it.status, it.reason, it.message)).unwrap_or_default()
}

pub(crate) fn host_of(machine: &Beskar7Machine) -> Option<String> {
    machine.status.as_ref().and_then(|status| status.host_ref.as_ref()).map(|host| host.name.clone())
}

#[tokio::test]
async fn a_machine_gets_a_server_and_gives_it_back() {
    let world = World::alone("machine").await;
    let bmc = world.available_host("server-01").await;
    let before = world.settled_writes().await.len();
    world.create_machine("node-01", iso()).await;
    let machine = world.wait_for_ready("node-01").await;
    let mut writes = world.all_writes().await.split_off(before);
    // What came too late is written anew, and a look that was too early is told.
    writes.retain(|write| write.code < 300);
    assert!(writes.len() <= 12, "an id for the claim, and ten from there on: {writes:#?}");
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
async fn a_recreated_namesake_gets_a_clean_server_of_its_own() {
    let world = World::alone("again").await;
    let bmc = world.available_host("server-01").await;
    world.create_machine("node", iso()).await;
    let first = world.wait_for_ready("node").await;
    world.delete_machine("node").await;
    world.wait_for_no_machine("node").await;
    world.create_machine("node", iso()).await;
    let second = world.wait_for_ready("node").await;
    assert_ne!(first.annotations()["beskar7.io/claim-id"], second.annotations()["beskar7.io/claim-id"]);
    assert_eq!(bmc.first().boots, 2);
}

#[tokio::test]
async fn a_dead_bmc_keeps_a_deleted_machine_until_somebody_forces_it_and_the_host_is_kept_from_others() {
    let world = World::alone("dead").await;
    let bmc = world.available_host("server-01").await;
    world.create_machine("node", iso()).await;
    world.wait_for_ready("node").await;
    bmc.faults().add(Effect::Refuse.always());
    world.delete_machine("node").await;
    let failed = |machine: &Beskar7Machine| told(machine, "InfrastructureReady").1 == "ReleasePhysicalHostFailed";
    let machine = world.wait_for_machine("node", "told", failed).await;
    assert!(told(&machine, "InfrastructureReady").2.contains("beskar7.io/force-release=true"), "{machine:?}");

    world.annotate_machine("node", "beskar7.io/force-release", "true").await;
    world.wait_for_no_machine("node").await;
    let host = world.host("server-01").await;
    assert!(host.annotations()["beskar7.io/quarantine"].contains("by force"), "{:?}", host.annotations());

    bmc.faults().clear();
    world.stop_operator().await;
    world.start_alone();
    let parked = |host: &PhysicalHost| state_of(host) == "Quarantined";
    world.wait_until("server-01", "quarantine after the clean-up", parked).await;
    assert_eq!(bmc.first().power(), PowerState::Off, "it was cleaned up when that became possible");
    world.create_machine("next", iso()).await;
    let waits = |machine: &Beskar7Machine| told(machine, "PhysicalHostAssociated").2.contains("Quarantined");
    world.wait_for_machine("next", "to be told", waits).await;
    world.annotate("server-01", "beskar7.io/quarantine", None).await;
    world.wait_for_ready("next").await;
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
