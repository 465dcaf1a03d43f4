//! Scenes: the whole process under paused time, as in [`super::whole`], but what happens is written down test by test.

pub(crate) mod blades;
mod dialects;
mod ironcore;
mod kinds;
mod logins;
mod media;
mod metal3;
mod owners;
mod placing;
mod slots;

use std::sync::Arc;
use std::time::Duration;

use api::beskar7::{Beskar7Machine, PhysicalHost};
use apiserver::server::{Config as ServerConfig, Server};
use apiserver::store::Store;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::fate::Life;
use super::fleet::{Informants, Servers};
use super::play::host;
use super::whole::wire::Wire;
use crate::brake::BrakeConfig;
use crate::clock::{Clock as _, TokioClock};
use crate::dialects::Dialect;
use crate::metrics::Metrics;
use crate::object::{Object, Reach as _, api};
use crate::operator::{Config, Operator};

pub(super) const NAMESPACE: &str = "lab";
/// Our group.
pub(super) const GROUP: &str = "infrastructure.cluster.x-k8s.io";

/// A small site: an API server, servers and, once it was started, an operator.
pub(super) struct Scene {
    server: Server,
    pub(super) admin: Client,
    pub(super) servers: Servers,
    /// The way of operators to the API server.
    pub(super) wire: Wire,
    clock: TokioClock,
    metrics: Metrics,
    stop: CancellationToken,
    work: JoinSet<()>,
}

impl Scene {
    /// Servers of these names, off, and a host for each; nobody looks after them yet.
    pub(super) async fn open(names: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let scene = Self::with(Servers::new(&names, &mut fastrand::Rng::with_seed(1))).await;
        for name in names {
            scene.add_host(&name, json!({})).await;
        }
        scene
    }

    /// These servers, and no hosts.
    pub(super) async fn with(servers: Servers) -> Self {
        fastrand::seed(1);
        let clock = TokioClock::starting_at("2026-11-16T08:00:00Z".parse().unwrap());
        let server = Server::start(ServerConfig {
            store: Store::memory(),
            clock: apiserver::clock::Clock::new(move || clock.now()),
            seed: 1,
            pki: None,
            tokens: apiserver::auth::StaticTokens::default(),
            build: "beskar7.test".to_owned(),
        })
        .await
        .unwrap();
        let admin = Client::new(server.router(), NAMESPACE);
        let wire = Wire::new(server.router());
        let scene = Self {
            server,
            admin,
            servers,
            wire,
            clock,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            work: JoinSet::new(),
        };
        let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        Api::<Namespace>::all(scene.admin.clone()).create(&PostParams::default(), &namespace).await.unwrap();
        for definition in api::crds() {
            scene.define(&definition).await;
        }
        scene
    }

    /// The host of a server, with its Secret.
    pub(super) async fn add_host(&self, name: &str, spec: Value) {
        self.add_secret(name).await;
        self.add_host_as(name, spec).await;
    }

    pub(super) async fn add_secret(&self, name: &str) {
        let secret = json!({"metadata": {"name": name}, "stringData": {"username": "admin", "password": "password"}});
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), NAMESPACE);
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }

    pub(super) async fn add_host_as(&self, name: &str, spec: Value) {
        let mut object = host(name);
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        self.hosts().create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    pub(super) async fn define(&self, definition: &CustomResourceDefinition) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.admin.clone());
        definitions.create(&PostParams::default(), definition).await.unwrap();
        await_condition(definitions, &definition.name_any(), conditions::is_crd_established()).await.unwrap();
    }

    /// A kind that anybody may have defined, in one version and of any content.
    pub(super) async fn define_kind(&self, group: &str, version: &str, kind: &str) {
        let plural = format!("{}s", kind.to_lowercase());
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({
            "metadata": {"name": format!("{plural}.{group}"), "annotations": {"api-approved.kubernetes.io": "unapproved"}},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
            },
        });
        self.define(&serde_json::from_value(definition).unwrap()).await;
    }

    /// Starts an operator without an election.
    pub(super) fn start(&mut self, configure: impl FnOnce(&mut Config)) {
        let mut config = Config {
            dialects: vec![Dialect::Beskar7],
            namespace: Some(NAMESPACE.to_owned()),
            watch_filter: None,
            election: None,
            metrics_address: None,
            probe_address: None,
            brake: BrakeConfig { disruptions_per_minute: 600, concurrent_deployments: 20, freeze: false },
            bmcs_at_once: 16,
            cluster_api: false,
            boot: None,
            settings: Arc::default(),
        };
        configure(&mut config);
        let nobody = Informants::nobody();
        let operator = Operator {
            client: crate::api_client::bounded(self.wire.client(&Life::default())),
            config,
            dial: self.servers.dial(&nobody, &Life::default()),
            clock: Arc::new(self.clock),
            metrics: self.metrics.clone(),
        };
        let stop = self.stop.clone();
        self.work.spawn(async move { operator.run(stop).await.unwrap() });
    }

    /// Stops all operators, as a restart begins.
    pub(super) async fn stop(&mut self) {
        std::mem::take(&mut self.stop).cancel();
        while self.work.join_next().await.is_some() {}
    }

    pub(super) fn hosts(&self) -> Api<PhysicalHost> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(super) fn machines(&self) -> Api<Beskar7Machine> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    pub(super) fn objects(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.admin.clone(), NAMESPACE, &resource)
    }

    pub(super) async fn create_machine(&self, name: &str, spec: Value) {
        self.create_machine_as(json!({"name": name}), spec).await;
    }

    pub(super) async fn create_machine_as(&self, metadata: Value, spec: Value) {
        let machine = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        self.machines().create(&PostParams::default(), &machine).await.unwrap();
    }

    pub(super) async fn delete_machine(&self, name: &str) {
        self.machines().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn edit_host(&self, name: &str, patch: Value) {
        self.hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(super) async fn edit_machine(&self, name: &str, patch: Value) {
        self.machines().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Changes an object of any kind, in the scene's namespace if it has one.
    async fn edit<K: Object>(&self, name: &str, patch: Value) {
        let objects = api::<K>(&self.admin, Some(NAMESPACE));
        objects.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// An object of any kind as the API server shows it, or nothing.
    fn object<K: Object>(&self, name: &str) -> Value {
        let served = self.server.api().served(&K::group(&()), &K::version(&()), &K::plural(&())).unwrap();
        let namespace = if K::Scope::HAS_NAMESPACES { NAMESPACE } else { "" };
        self.server.api().get(&served, namespace, name).unwrap_or_default()
    }

    /// What events with this reason say, in all namespaces.
    async fn events_of(&self, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::all(self.admin.clone());
        let all = events.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).filter_map(|event| event.note).collect()
    }

    /// Whether a server has power.
    fn power(&self, name: &str) -> sim::PowerState {
        self.servers.server(name).power()
    }

    /// What the server has booted last, and when.
    fn last_boot(&self, name: &str) -> Option<sim::Booted> {
        self.servers.server(name).last_boot
    }

    /// A host as the API server shows it, or nothing.
    pub(super) fn host(&self, name: &str) -> Value {
        self.show("physicalhosts", name)
    }

    /// A machine as the API server shows it, or nothing.
    pub(super) fn machine(&self, name: &str) -> Value {
        self.show("beskar7machines", name)
    }

    fn show(&self, plural: &str, name: &str) -> Value {
        let served = self.server.api().served(GROUP, "v1beta1", plural).unwrap();
        self.server.api().get(&served, NAMESPACE, name).unwrap_or_default()
    }

    /// Waits until it is so, for ten minutes at most, and tells how long it took.
    pub(super) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> Duration {
        let started = tokio::time::Instant::now();
        while !is_so(self) {
            assert!(started.elapsed() < Duration::from_mins(10), "not after ten minutes: {what}\n{}", self.told());
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        started.elapsed()
    }

    /// Waits until a host is in a state.
    pub(super) async fn until_state(&self, name: &str, state: &str) -> Duration {
        self.until(&format!("{name} is {state}"), |scene| scene.host(name)["status"]["state"] == state).await
    }

    /// Waits until a condition of a machine has this reason, and answers with its message.
    pub(super) async fn until_told(&self, machine: &str, type_: &str, reason: &str) -> String {
        let what = format!("{type_} of {machine} is {reason}");
        self.until(&what, |scene| condition(&scene.machine(machine), type_)["reason"] == reason).await;
        condition(&self.machine(machine), type_)["message"].as_str().unwrap_or_default().to_owned()
    }

    fn told(&self) -> String {
        let plurals = ["physicalhosts", "beskar7machines"].into_iter();
        let names =
            self.servers.all().map(|bmc| bmc.name().to_owned()).chain(["node", "node-0", "node-1"].map(str::to_owned));
        let names: Vec<_> = names.collect();
        plurals
            .flat_map(|plural| names.iter().map(move |name| (plural, name)))
            .map(|(plural, name)| format!("{plural} {name}: {}", self.show(plural, name)))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.stop.cancel();
        self.server.api().stop();
    }
}

/// A condition of an object, or nothing.
pub(super) fn condition(object: &Value, type_: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}
