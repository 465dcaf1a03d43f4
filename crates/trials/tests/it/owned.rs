//! Machines that belong to a Machine and a Cluster, on days when those are late, paused or gone. Cluster API itself is stood in
//! for; `tests/real` has the real one.

use std::time::Duration;

use api::beskar7::{Beskar7Machine, PhysicalHost};
use http::StatusCode;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use sim::{Effect, Kind, PowerState};
use testkit::{WebServer, build_menu_iso, wait_for};
use trials::machines::{CLUSTER_API, host_of, iso, told};
use trials::served::{MENU, SERVER, boot_service, config_url, get, image_url};
use trials::story::{HOST, sentence};
use trials::world::{SOON, World, condition, state_of};

use crate::remote::remote;

const BOOTSTRAP: &str = "BootstrapDataReady";
const INFRASTRUCTURE: &str = "InfrastructureReady";

/// A cluster of one machine, and a host for it.
struct Cluster {
    world: World,
    bmc: sim::Bmc,
}

impl Cluster {
    async fn new(prefix: &str) -> Self {
        let world = World::quiet(prefix).await;
        world.cluster().apply_yaml(CLUSTER_API).await;
        let boot = boot_service(&world);
        world.start_operator_with(world.clock(), |config| config.boot = Some(boot));
        let bmc = world.available_host(HOST).await;
        let cluster = Self { world, bmc };
        cluster.pause(false).await;
        cluster
    }

    async fn pause(&self, paused: bool) {
        let cluster = format!(
            "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {{name: c}}\nspec: {{paused: {paused}}}\nstatus: {{infrastructureReady: true}}\n"
        );
        self.world.apply(&cluster).await;
    }

    /// The Machine, with what its bootstrap provider says.
    async fn bootstrap(&self, bootstrap: &Value) {
        let machine = format!(
            "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Machine\nmetadata: {{name: m}}\nspec: {{clusterName: c, infrastructureRef: {{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Beskar7Machine, name: node}}, bootstrap: {bootstrap}}}\n"
        );
        self.world.apply(&machine).await;
    }

    async fn create_machine(&self, spec: Value) {
        let owner = self.api("Machine").get("m").await.unwrap();
        let owner =
            json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "m", "uid": owner.uid() });
        let metadata = json!({
            "name": "node", "labels": { "cluster.x-k8s.io/cluster-name": "c" }, "ownerReferences": [owner],
        });
        let machine = serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap();
        self.world.machines().create(&PostParams::default(), &machine).await.unwrap();
    }

    async fn wait_for(&self, type_: &str, reason: &str) -> Beskar7Machine {
        self.world.wait_for_machine("node", reason, |machine| told(machine, type_).1 == reason).await
    }

    async fn delete(&self, kind: &str, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta1", kind));
        Api::namespaced_with(self.world.admin(), &self.world.namespace, &resource)
    }
}

#[tokio::test]
async fn bootstrap_data_that_is_late_missing_or_deleted_afterwards() {
    let cluster = Cluster::new("late-data").await;
    let (world, depot) = (&cluster.world, WebServer::start());
    let image = depot.put("os.iso", build_menu_iso(MENU));
    cluster.bootstrap(&json!({ "configRef": { "name": "later" } })).await;
    cluster.create_machine(remote(&image, &json!({}))).await;
    cluster.wait_for(INFRASTRUCTURE, "WaitingForBootstrapData").await;
    cluster.bootstrap(&json!({ "dataSecretName": "data" })).await;
    let machine = cluster.wait_for(INFRASTRUCTURE, "BootstrapDataUnavailable").await;
    assert_eq!(told(&machine, BOOTSTRAP).1, "BootstrapDataUnavailable");
    assert_eq!((host_of(&machine), state_of(&world.host(HOST).await)), (None, "Available".to_owned()));

    world.create_bootstrap_data("data", "join").await;
    let config = config_url(&image_url(&cluster.bmc).await).await;
    assert_eq!(get(SERVER, &config).await.body().as_ref(), b"join");
    let machine = world.wait_for_ready("node").await;
    assert_eq!(told(&machine, BOOTSTRAP).0, "True");
    let addressed = |machine: &Beskar7Machine| {
        let status = machine.status.as_ref();
        status.is_some_and(|status| status.addresses.first().is_some_and(|first| first.address == SERVER.to_string()))
    };
    world.wait_for_machine("node", "the address that fetched", addressed).await;

    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(world.admin(), &world.namespace);
    secrets.delete("data", &DeleteParams::default()).await.unwrap();
    assert_eq!(get(SERVER, &config).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let is_told = |host: &api::beskar7::PhysicalHost| condition(host, "BootServed").1 == "BootstrapDataUnavailable";
    let host = world.wait_until(HOST, "to tell what is missing", is_told).await;
    assert_eq!(state_of(&host), "Provisioned", "{}", sentence(&host, "BootServed"));
    let machine = world.machines().get("node").await.unwrap();
    assert_eq!(machine.status.unwrap().ready, Some(true), "what runs goes on running");
}

#[tokio::test]
async fn a_cluster_that_is_paused_in_the_middle_goes_on_where_it_was() {
    let cluster = Cluster::new("paused-midway").await;
    let (world, bmc) = (&cluster.world, &cluster.bmc);
    bmc.faults().add(Effect::Latency(Duration::from_secs(5)).always().kind(Kind::InsertMedia).times(1));
    cluster.bootstrap(&json!({ "dataSecretName": "data" })).await;
    cluster.create_machine(iso()).await;
    wait_for("the insertion", SOON, async || {
        bmc.journal().iter().any(|mutation| mutation.kind == Kind::InsertMedia).then_some(())
    })
    .await;
    cluster.pause(true).await;
    let paused = |machine: &Beskar7Machine| told(machine, "Paused").0 == "True";
    world.wait_for_machine("node", "paused", paused).await;
    world.wait_until(HOST, "to say that it is paused", |host| condition(host, "Paused").0 == "True").await;
    assert_eq!(bmc.first().boots, 0);

    cluster.pause(false).await;
    let machine = world.wait_for_ready("node").await;
    assert_eq!((told(&machine, "Paused").0.as_str(), bmc.first().boots), ("False", 1));
}

#[tokio::test]
async fn a_machine_whose_owners_are_gone_keeps_its_server_until_it_is_deleted() {
    let cluster = Cluster::new("orphan").await;
    let (world, bmc) = (&cluster.world, &cluster.bmc);
    cluster.bootstrap(&json!({ "dataSecretName": "data" })).await;
    cluster.create_machine(iso()).await;
    world.wait_for_ready("node").await;
    // The garbage collector leaves alone whom somebody still owns.
    let host = world.host(HOST).await;
    let keeper = json!({ "apiVersion": PhysicalHost::api_version(&()), "kind": "PhysicalHost", "name": HOST, "uid": host.uid() });
    let owner = json!({ "op": "add", "path": "/metadata/ownerReferences/-", "value": keeper });
    let patch = Patch::<Beskar7Machine>::Json(serde_json::from_value(json!([owner])).unwrap());
    world.machines().patch("node", &PatchParams::default(), &patch).await.unwrap();
    cluster.delete("Machine", "m").await;
    cluster.delete("Cluster", "c").await;
    world.stop_operator().await;
    world.start_operator();
    world.annotate(HOST, "beskar7.io/inspect", Some("again")).await;
    world.wait_for_event("Inspected").await;
    assert_eq!(state_of(&world.host(HOST).await), "Provisioned");
    assert_eq!(bmc.first().power(), PowerState::On);
    assert!(world.machines().get_opt("node").await.unwrap().is_some());
    world.delete_machine("node").await;
    world.wait_for_no_machine("node").await;
    world.wait_for_state(HOST, "Available").await;
    assert_eq!(bmc.first().power(), PowerState::Off);
}

#[tokio::test]
async fn a_move_waits_while_a_server_boots_what_we_serve_and_begins_when_it_has() {
    let cluster = Cluster::new("block-move").await;
    let (world, depot) = (&cluster.world, WebServer::start());
    let image = depot.put("os.iso", build_menu_iso(MENU));
    cluster.bmc.set_timing(sim::Timing { power_on: Duration::from_secs(4), ..sim::Timing::INSTANT });
    world.create_bootstrap_data("data", "join").await;
    cluster.bootstrap(&json!({ "dataSecretName": "data" })).await;
    cluster.create_machine(remote(&image, &json!({}))).await;
    let is_blocked =
        |machine: &Beskar7Machine| machine.annotations().contains_key("clusterctl.cluster.x-k8s.io/block-move");
    world.wait_for_machine("node", "the move to be blocked", is_blocked).await;

    // As clusterctl does before it waits.
    cluster.pause(true).await;
    let config = config_url(&image_url(&cluster.bmc).await).await;
    assert_eq!(get(SERVER, &config).await.body().as_ref(), b"join");
    world.wait_for_machine("node", "the move to begin", |machine| !is_blocked(machine)).await;
    assert_eq!(state_of(&world.host(HOST).await), "Provisioned");
}
