//! metal-operator's kinds: devices become servers, and servers are claimed, booted and released.

mod claims;
mod discovery;
mod figures;
mod input;
mod maintenance;
mod parking;
mod probe;
mod safety;

use std::sync::Arc;
use std::time::Duration;

use api::ironcore::{Bmc, BmcSecret, Endpoint, Server, ServerBootConfiguration, ServerClaim};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sim::PowerState;

use super::{NAMESPACE, Scene, condition};
use crate::depot::BootConfig;
use crate::dialect::Settings;
use crate::dialects::Dialect;
use crate::ironcore::MacPrefixes;
use crate::object::{Object, api};

const PREFIXES: &str = "macPrefixes:
- macPrefix: '23:11'
  manufacturer: Foo
  protocol: Redfish
  port: 443
  type: bmc
  defaultCredentials:
  - username: root
    password: calvin
  - username: admin
    password: password
- macPrefix: '24'
  protocol: Redfish
  port: 443
  type: bmc
  defaultCredentials:
  - username: root
    password: calvin
  - username: admin
    password: guess
";

/// Servers, the kinds of metal-operator and nobody who looks after them.
async fn prepared(servers: &[&str]) -> Scene {
    let scene = Scene::open(servers).await;
    for definition in ::api::crd::ironcore_crds() {
        scene.define(&definition).await;
    }
    for name in servers {
        scene.hosts().delete(name, &DeleteParams::default()).await.unwrap();
    }
    scene
}

fn start(scene: &mut Scene) {
    start_with(scene, |_| {});
}

fn start_with(scene: &mut Scene, change: impl FnOnce(&mut crate::ironcore::Settings)) {
    start_as(scene, vec![Dialect::Beskar7, Dialect::IronCore], None, change);
}

fn start_as(
    scene: &mut Scene,
    dialects: Vec<Dialect>,
    boot: Option<BootConfig>,
    change: impl FnOnce(&mut crate::ironcore::Settings),
) {
    let mut settings = Settings::default();
    settings.ironcore.prefixes = MacPrefixes::parse(PREFIXES).unwrap();
    change(&mut settings.ironcore);
    scene.start(|config| {
        config.namespace = None;
        config.dialects = dialects;
        config.boot = boot;
        config.settings = Arc::new(settings);
    });
}

/// The same with an operator.
async fn site(servers: &[&str]) -> Scene {
    let mut scene = prepared(servers).await;
    start(&mut scene);
    scene
}

/// A site whose servers are available, each behind a BMC of its name.
async fn available(servers: &[&str]) -> Scene {
    let scene = site(servers).await;
    for name in servers {
        scene.add_bmc(name).await;
    }
    for name in servers {
        scene.until_server(&of(name), "Available").await;
    }
    scene
}

/// The Server of the only system behind a BMC.
fn of(bmc: &str) -> String {
    format!("{bmc}-system-0")
}

impl Scene {
    async fn make<K: Object>(&self, metadata: Value, fields: Value) {
        let mut object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata});
        crate::dialect::merge(&mut object, &fields);
        let object = serde_json::from_value(object).unwrap();
        api::<K>(&self.admin, Some(NAMESPACE)).create(&PostParams::default(), &object).await.unwrap();
    }

    async fn add_bmc_secret(&self, name: &str) {
        let data = json!({"stringData": {"username": "admin", "password": "password"}});
        self.make::<BmcSecret>(json!({"name": name}), data).await;
    }

    /// A BMC with its BMCSecret.
    async fn add_bmc(&self, name: &str) {
        self.add_bmc_secret(name).await;
        self.add_bmc_as(name, json!({})).await;
    }

    async fn add_bmc_as(&self, name: &str, change: Value) {
        let mut spec = json!({
            "access": {"ip": name, "macAddress": "23:11:8a:33:cf:ea"},
            "bmcSecretRef": {"name": name},
            "protocol": {"name": "Redfish", "port": 443},
        });
        crate::dialect::merge(&mut spec, &change);
        self.make::<Bmc>(json!({"name": name}), json!({"spec": spec})).await;
    }

    async fn add_endpoint(&self, name: &str, mac: &str) {
        self.make::<Endpoint>(json!({"name": name}), json!({"spec": {"macAddress": mac, "ip": "server-0"}})).await;
    }

    async fn claim(&self, name: &str, change: Value) {
        let mut spec = json!({"power": "On", "image": "registry.example/os:1"});
        crate::dialect::merge(&mut spec, &change);
        self.make::<ServerClaim>(json!({"name": name}), json!({"spec": spec})).await;
    }

    async fn drop_object<K: Object>(&self, name: &str) {
        api::<K>(&self.admin, Some(NAMESPACE)).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The boot provider says something of a boot configuration.
    async fn provide(&self, name: &str, state: &str) {
        self.until(&format!("boot configuration {name}"), |scene| {
            scene.object::<ServerBootConfiguration>(name)["status"]["state"] == "Pending"
        })
        .await;
        self.write_status_of::<ServerBootConfiguration>(name, json!({"state": state})).await;
    }

    async fn write_status_of<K: Object>(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        api::<K>(&self.admin, Some(NAMESPACE)).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn until_of<K: Object>(&self, name: &str, pointer: &str, value: &str) -> Duration {
        let started = tokio::time::Instant::now();
        loop {
            let shown = self.object::<K>(name);
            if shown.pointer(pointer).and_then(Value::as_str) == Some(value) {
                return started.elapsed();
            }
            assert!(started.elapsed() < Duration::from_mins(20), "{pointer} of {name} is not {value}:\n{shown:#}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn until_server(&self, name: &str, state: &str) -> Duration {
        self.until_of::<Server>(name, "/status/state", state).await
    }

    async fn until_bound(&self, name: &str) -> Duration {
        self.until_of::<ServerClaim>(name, "/status/phase", "Bound").await
    }

    /// Waits until the condition Ready of an object has this reason, and answers with its message.
    async fn until_ready<K: Object>(&self, name: &str, reason: &str) -> String {
        let started = tokio::time::Instant::now();
        loop {
            let shown = self.object::<K>(name);
            let ready = condition(&shown, "Ready");
            if ready["reason"] == reason {
                return ready["message"].as_str().unwrap_or_default().to_owned();
            }
            assert!(started.elapsed() < Duration::from_mins(20), "{name} is not {reason}:\n{shown:#}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn until_power(&self, server: &str, power: PowerState) -> Duration {
        self.until(&format!("{server} is {power:?}"), |scene| scene.power(server) == power).await
    }

    /// What was done to a server.
    fn done(&self, server: &str) -> Vec<String> {
        let of_server = format!("  {server}: ");
        let trace = self.servers.notes().trace.clone();
        trace.into_iter().filter(|line| line.starts_with(&of_server)).collect()
    }

    /// A claim whose server runs.
    async fn booted(&self, claim: &str) {
        self.claim(claim, json!({})).await;
        self.provide(claim, "Ready").await;
        self.until_ready::<ServerClaim>(claim, "ServerRuns").await;
    }
}
