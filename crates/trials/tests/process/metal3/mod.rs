//! BareMetalHosts on bad days.

mod orders;
mod states;

use std::time::Duration;

use api::metal3::BareMetalHost;
use controllers::dialects::Dialect;
use controllers::operator::Config;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::{BootSource, PowerState, Timing};
use tokio::time::Instant;
use trials::story::{HOST, ISO, assert_tidy, runs};
use trials::world::{EVER, World, spec};

use crate::crash::{killed_after, killed_after_each};

const REBOOT: &str = "reboot.metal3.io";

/// The configuration of an operator that looks after BareMetalHosts.
fn metal3(config: &mut Config) {
    config.dialects = vec![Dialect::Metal3];
    config.cluster_api = false;
}

/// An API server that knows BareMetalHosts, without any.
async fn quiet_world() -> World {
    let world = World::quiet_in_process().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.admin());
    for definition in api::crd::metal3_crds() {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let name = definition.name_any();
        await_condition(definitions.clone(), &name, conditions::is_crd_established()).await.unwrap();
    }
    world
}

/// A server and the BareMetalHost that describes it.
struct Site {
    world: World,
    bmc: sim::Bmc,
    /// What it is about, for whoever reads of a failure.
    about: String,
}

impl Site {
    /// A server that is off, with its Secret, and without a host.
    async fn beside(world: &World, timing: Timing) -> Self {
        let world = world.beside().await;
        let bmc = world.add_bmc(HOST, sim::Bmc::new(spec(HOST).timing(timing)));
        world.create_secret("bmc", "admin", "password").await;
        Self { world, bmc, about: String::new() }
    }

    fn start_operator(&self) {
        self.world.start_operator_with(self.world.clock(), metal3);
    }

    fn hosts(&self) -> Api<BareMetalHost> {
        Api::namespaced(self.world.admin(), &self.world.namespace)
    }

    async fn create(&self, change: Value) {
        let bmc = json!({
            "address": format!("redfish-virtualmedia://{HOST}"),
            "credentialsName": "bmc",
            "disableCertificateVerification": true,
        });
        let mut spec = json!({ "online": false, "bmc": bmc });
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let host = serde_json::from_value(json!({ "metadata": { "name": HOST }, "spec": spec })).unwrap();
        self.hosts().create(&PostParams::default(), &host).await.unwrap();
    }

    async fn edit(&self, patch: Value) {
        self.hosts().patch(HOST, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn set(&self, spec: Value) {
        self.edit(json!({ "spec": spec })).await;
    }

    async fn annotate(&self, name: &str, value: Option<&str>) {
        self.edit(json!({ "metadata": { "annotations": { name: value } } })).await;
    }

    async fn delete(&self) {
        self.hosts().delete(HOST, &DeleteParams::default()).await.unwrap();
    }

    /// The host as it is shown, or nothing.
    async fn shown(&self) -> Value {
        serde_json::to_value(self.hosts().get_opt(HOST).await.unwrap()).unwrap()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Duration {
        let began = Instant::now();
        loop {
            let host = self.shown().await;
            if is_so(&host) {
                return began.elapsed();
            }
            assert!(began.elapsed() < EVER, "{}: waited for {what}: {host:#} {:?}", self.about, self.bmc.journal());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn until_state(&self, state: &str) -> Duration {
        self.until(state, |host| host["status"]["provisioning"]["state"] == state).await
    }

    async fn until_error(&self, error_type: &str) -> Duration {
        self.until(error_type, |host| host["status"]["errorType"] == error_type).await
    }

    async fn until_gone(&self) -> Duration {
        self.until("gone", Value::is_null).await
    }

    /// Waits until the host is in a state without an error.
    async fn until_well(&self, state: &str) {
        let is_well = |host: &Value| {
            let status = &host["status"];
            status["provisioning"]["state"] == state
                && status["operationalStatus"] == "OK"
                && (&status["errorMessage"], &status["errorType"], &status["errorCount"])
                    == (&json!(""), &Value::Null, &json!(0))
        };
        self.until(&format!("{state} and well"), is_well).await;
    }

    /// Waits until the server runs from that image.
    async fn until_running(&self, image: &str) {
        self.until_well("provisioned").await;
        self.until("its image", |host| host["status"]["provisioning"]["image"]["url"] == image).await;
        let booted = BootSource::Cd(image.to_owned());
        self.until("the boot", |_| runs(&self.bmc).as_ref() == Some(&booted) && !self.bmc.first().in_post()).await;
        assert_eq!((self.bmc.first().power(), self.bmc.first().media()), (PowerState::On, Some(image)));
    }

    async fn until_free(&self) {
        self.until_well("available").await;
        assert_tidy(&self.bmc);
    }

    /// What was done to the server and to the object so far.
    async fn writes(&self) -> (usize, Value) {
        (self.bmc.journal().len(), self.shown().await["metadata"]["resourceVersion"].clone())
    }
}

fn live(url: &str) -> Value {
    json!({ "online": true, "image": { "url": url, "format": "live-iso" } })
}

/// As Cluster API's provider withdraws an order.
fn withdrawn() -> Value {
    json!({ "image": null, "userData": null, "metaData": null, "networkData": null, "online": false })
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_effect_of_a_bare_metal_hosts_life_the_operator_takes_up_where_it_was() {
    let first = quiet_world().await;
    let effects = killed_after_each(async |effects| {
        let site = Site::beside(&first, Timing::INSTANT).await;
        site.create(json!({})).await;
        let life = async {
            site.until_free().await;
            site.set(live(ISO)).await;
            site.until_running(ISO).await;
            assert_eq!(site.bmc.first().boots, 1, "{:?}", site.bmc.journal());
            site.annotate(REBOOT, Some("")).await;
            site.until("the reboot", |host| host["metadata"]["annotations"].get(REBOOT).is_none()).await;
            site.until("the second boot", |_| site.bmc.first().boots > 1).await;
            site.until_running(ISO).await;
            site.set(withdrawn()).await;
            site.until_free().await;
            assert_eq!(site.bmc.first().boots, 2, "one reboot, whatever happens: {:?}", site.bmc.journal());
            site.delete().await;
            site.until_gone().await;
            assert_tidy(&site.bmc);
            assert_eq!(site.bmc.first().boots, 2, "{:?}", site.bmc.journal());
        };
        killed_after(effects, &site.world, metal3, life).await
    })
    .await;
    assert!(effects > 30, "anchors, statuses, Secret, inventory, insert, override, power: {effects}");
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_bmc_is_dead_is_deleted_within_fifteen_minutes() {
    let world = quiet_world().await;
    for (order, state) in
        [(json!({}), "available"), (json!({ "online": true }), "available"), (live(ISO), "provisioned")]
    {
        for is_known in [true, false] {
            let site = Site::beside(&world, Timing::INSTANT).await;
            site.start_operator();
            site.create(order.clone()).await;
            site.until_well(state).await;
            site.until("its power", |host| host["status"]["poweredOn"] == order["online"].as_bool().unwrap_or(false))
                .await;
            site.bmc.faults().add(sim::Effect::Refuse.always());
            if is_known {
                site.until("an error", |host| host["status"]["operationalStatus"] == "error").await;
            }
            site.delete().await;
            let took = site.until_gone().await;
            assert!(took < Duration::from_mins(15), "{state} with {order}: {took:?}");
            site.world.stop_operator().await;
        }
    }
}
