//! Servers on bad days.

mod life;
mod systems;
mod vanished;

use std::time::Duration;

use api::ironcore::{Server, ServerBootConfiguration, ServerClaim};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::{BmcSpec, BootSource, Enabled, PowerState, Timing};
use trials::ironcore::{Objects as _, condition_of, ironcore};
use trials::story::{resets, runs};
use trials::world::{World, spec};

/// The only BMC, and the name at which it is reached.
const BMC: &str = "bmc";
/// Its first Server.
const SERVER: &str = "bmc-system-0";
/// A claim.
const NODE: &str = "node";

/// An API server that knows metal-operator's kinds, without any.
async fn quiet_world() -> World {
    let world = World::quiet_in_process().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.admin());
    for definition in api::crd::ironcore_crds() {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let name = definition.name_any();
        await_condition(definitions.clone(), &name, conditions::is_crd_established()).await.unwrap();
    }
    world
}

/// A BMC, and what is known of it on the API server.
struct Site {
    world: World,
    bmc: sim::Bmc,
}

impl Site {
    /// A BMC with one server that is off; nobody knows of it yet.
    fn at(world: World, timing: Timing) -> Self {
        Self::with(world, spec(BMC).timing(timing))
    }

    fn with(world: World, spec: BmcSpec) -> Self {
        let bmc = world.add_bmc(BMC, sim::Bmc::new(spec));
        Self { world, bmc }
    }

    /// The same with an operator, when the server is available.
    async fn available(timing: Timing) -> Self {
        let site = Self::at(quiet_world().await, timing);
        site.start_operator();
        site.add_endpoint().await;
        site.world.until_server(SERVER, "Available").await;
        site
    }

    /// The BMC is found on the management network.
    async fn add_endpoint(&self) {
        let spec = json!({ "macAddress": "23:11:8a:33:cf:ea", "ip": BMC });
        self.world.endpoints().make(json!({ "name": BMC }), json!({ "spec": spec })).await;
    }

    /// The same when a claim has the server, which runs.
    async fn in_use() -> Self {
        let site = Self::available(Timing::INSTANT).await;
        site.boot(NODE).await;
        site
    }

    fn start_operator(&self) {
        self.world.start_operator_with(self.world.clock(), ironcore);
    }

    fn servers(&self) -> Api<Server> {
        self.world.servers()
    }

    fn claims(&self) -> Api<ServerClaim> {
        self.world.server_claims()
    }

    fn boot_configurations(&self) -> Api<ServerBootConfiguration> {
        self.world.boot_configurations()
    }

    /// Claims a server, and lets it boot.
    async fn boot(&self, claim: &str) {
        self.world.claim_server(claim, json!({})).await;
        self.world.provide(claim, "Ready").await;
        self.world.until_ready(self.claims(), claim, "ServerRuns").await;
    }

    async fn until_bound(&self, claim: &str) -> Value {
        self.world.until(self.claims(), claim, "Bound", |claim| claim["status"]["phase"] == "Bound").await
    }

    /// Waits until the first server is free again.
    async fn until_free(&self) {
        let server = self.world.until_server(SERVER, "Available").await;
        let told = self.told();
        for gone in ["serverClaimRef", "bootConfigurationRef", "power"] {
            assert_eq!(server["spec"][gone], Value::Null, "{gone}: {told}");
        }
        assert_eq!(condition_of(&server, "Ready")["status"], "True", "{told}");
        let first = self.bmc.first();
        assert_eq!((first.power(), first.boot.enabled), (PowerState::Off, Enabled::Disabled), "{told}");
    }

    /// The first server was started once, from the network, and nobody has touched its power since.
    #[track_caller]
    fn assert_untouched(&self, what: &str) {
        let told = self.told();
        assert_eq!(
            (self.bmc.first().power(), runs(&self.bmc)),
            (PowerState::On, Some(BootSource::Pxe)),
            "{what}: {told}"
        );
        assert_eq!(resets(&self.bmc), ["On"], "{what}: {told}");
    }

    /// What was done to the BMC, for whoever reads of a failure.
    fn told(&self) -> String {
        format!("{:?}", self.bmc.journal())
    }
}

/// Longer than anything goes on that was begun.
const LONG: Duration = Duration::from_hours(1);
