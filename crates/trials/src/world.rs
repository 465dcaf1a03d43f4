//! One operator, one namespace, and as many pretend BMCs as a test wants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::beskar7::PhysicalHost;
use bmc::{Fingerprint, Https, InProcess, Transport, TransportError, Trust};
use bytes::Bytes;
use controllers::brake::BrakeConfig;
use controllers::clock::Clock;
use controllers::dialects::Dialect;
use controllers::hands::Dial;
use controllers::metrics::Metrics;
use controllers::operator::{Config, Operator};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use testkit::{Cluster, wait_for};
use tokio::time::Instant;

use crate::bed::{Bed, Process};
use crate::gate::{Gate, Passage};
pub use crate::hurry::Hurry;
pub use crate::running::Running;

/// Longer than anything that should happen takes on a busy machine.
pub const SOON: Duration = Duration::from_mins(2);
/// Longer than anything that should happen takes where time costs nothing: the longest back-offs are below an hour.
pub const EVER: Duration = Duration::from_hours(2);

/// How often a condition is looked at: the first time, and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A namespace with an operator in it.
pub struct World {
    /// The namespace.
    pub namespace: String,
    bmcs: Bmcs,
    certificates: Certificates,
    running: Mutex<Option<Running>>,
    /// Of all operators that were ever started.
    gates: Mutex<Vec<Gate>>,
    // Dropped last: an operator ends before its API server.
    bed: Bed,
}

type Bmcs = Arc<Mutex<HashMap<String, sim::Bmc>>>;
type Certificates = Arc<Mutex<HashMap<String, Fingerprint>>>;

impl World {
    /// A namespace of the shared cluster, in which the operator runs.
    pub async fn new(prefix: &str) -> Self {
        let world = Self::quiet(prefix).await;
        world.start_operator();
        world
    }

    /// A namespace of the shared cluster, in which nobody acts yet.
    pub async fn quiet(prefix: &str) -> Self {
        Self::quiet_on(Cluster::shared().await, prefix).await
    }

    /// The same on a cluster of one's own.
    pub async fn quiet_on(cluster: &'static Cluster, prefix: &str) -> Self {
        let (bed, namespace) = Bed::on(cluster, prefix).await;
        Self::of(bed, namespace)
    }

    /// The same BMCs, and a namespace of the same name on another cluster, in which nobody acts yet.
    pub async fn quiet_beside_on(&self, cluster: &'static Cluster) -> Self {
        let bed = Bed::named_on(cluster, &self.namespace).await;
        Self { bmcs: self.bmcs.clone(), ..Self::of(bed, self.namespace.clone()) }
    }

    /// A world in this process and in the time of this runtime, in which the operator runs.
    pub async fn in_process() -> Self {
        let world = Self::quiet_in_process().await;
        world.start_operator();
        world
    }

    /// A world in this process and in the time of this runtime, in which nobody acts yet.
    pub async fn quiet_in_process() -> Self {
        let (bed, namespace) = Bed::in_process().await;
        Self::of(bed, namespace)
    }

    /// Another namespace of the same API server in this process, in which nobody acts yet.
    pub async fn beside(&self) -> Self {
        let (bed, namespace) = self.bed.beside().await;
        Self::of(bed, namespace)
    }

    /// A world in this process with a namespace of that name, at that time, in which nobody acts yet.
    pub(crate) async fn quiet_in_process_at(begin: Option<Timestamp>, namespace: &str) -> Self {
        Self::of(Bed::in_process_at(begin, namespace).await, namespace.to_owned())
    }

    /// What is behind a world in process.
    pub(crate) fn process(&self) -> &Process {
        match &self.bed {
            Bed::Cluster { .. } => panic!("the store of a cluster is its own"),
            Bed::Process(process) => process,
        }
    }

    fn of(bed: Bed, namespace: String) -> Self {
        let (bmcs, certificates) = (Bmcs::default(), Certificates::default());
        Self { namespace, bmcs, certificates, running: Mutex::default(), gates: Mutex::default(), bed }
    }

    /// The cluster that this world is on. There is none in process.
    pub fn cluster(&self) -> &'static Cluster {
        match &self.bed {
            Bed::Cluster { cluster, .. } => cluster,
            Bed::Process(_) => panic!("a world in process has no cluster"),
        }
    }

    /// A client that may do everything.
    pub fn admin(&self) -> Client {
        self.bed.admin()
    }

    /// The time of whoever is in no hurry.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.bed.clock()
    }

    /// Applies every document of `yaml`; those without a namespace go to this world's.
    pub async fn apply(&self, yaml: &str) {
        self.bed.apply(&self.namespace, yaml).await;
    }

    /// Longer than anything that should happen takes.
    pub(crate) fn patience(&self) -> Duration {
        match &self.bed {
            Bed::Cluster { .. } => SOON,
            Bed::Process(_) => EVER,
        }
    }

    /// Starts the operator, with BMCs that are reached in process by the name they were added under, and all others by TLS.
    pub fn start_operator(&self) {
        self.start_operator_with(self.clock(), |_| {});
    }

    /// Starts the operator with another clock and configuration.
    pub fn start_operator_with(&self, clock: impl Clock, change: impl FnOnce(&mut Config)) {
        let running = self.launch(&Gate::default(), clock, change);
        *self.running.lock().unwrap() = Some(running);
    }

    /// Starts one more operator, behind a gate, and hands it to the test.
    pub fn launch(&self, gate: &Gate, clock: impl Clock, change: impl FnOnce(&mut Config)) -> Running {
        let mut config = Config {
            dialects: vec![Dialect::Beskar7],
            namespace: Some(self.namespace.clone()),
            watch_filter: None,
            election: None,
            metrics_address: None,
            probe_address: None,
            brake: BrakeConfig { disruptions_per_minute: 600, ..BrakeConfig::default() },
            bmcs_at_once: 16,
            settings: Arc::default(),
            cluster_api: true,
            boot: None,
        };
        change(&mut config);
        self.launch_configured(gate, Arc::new(clock), config)
    }

    fn launch_configured(&self, gate: &Gate, clock: Arc<dyn Clock>, config: Config) -> Running {
        self.gates.lock().unwrap().push(gate.clone());
        let operator = || Operator {
            client: gate.client(self.bed.client()),
            config,
            dial: dial(self.bmcs.clone(), self.certificates.clone(), gate.clone()),
            clock,
            metrics: Metrics::default(),
        };
        match &self.bed {
            Bed::Cluster { .. } => Running::on_thread(&self.namespace, gate.clone(), operator),
            Bed::Process(_) => Running::here(gate.clone(), operator()),
        }
    }

    /// Stops the operator as SIGTERM does.
    pub async fn stop_operator(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some(running) = running {
            running.stop().await;
        }
    }

    /// Stops the operator as SIGKILL does: wherever it is, without a word to anybody.
    pub async fn kill_operator(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some(running) = running {
            running.kill().await;
        }
    }

    /// What the operator's `/metrics` shows.
    pub fn metrics(&self) -> String {
        self.running.lock().unwrap().as_ref().map(Running::metrics).unwrap_or_default()
    }

    /// Adds a BMC that answers at `https://NAME`.
    pub fn add_bmc(&self, name: &str, bmc: sim::Bmc) -> sim::Bmc {
        self.bmcs.lock().unwrap().insert(name.to_owned(), bmc.clone());
        bmc
    }

    /// Has the BMC of that name show a certificate from now on, and answers its fingerprint.
    pub fn show_certificate(&self, name: &str, certificate: &str) -> Fingerprint {
        let fingerprint = Fingerprint::of(certificate.as_bytes());
        self.certificates.lock().unwrap().insert(name.to_owned(), fingerprint);
        fingerprint
    }

    /// The BMC of that name.
    pub fn bmc(&self, name: &str) -> sim::Bmc {
        self.bmcs.lock().unwrap()[name].clone()
    }

    /// All BMCs, by name.
    pub fn bmcs(&self) -> HashMap<String, sim::Bmc> {
        self.bmcs.lock().unwrap().clone()
    }

    /// Creates the Secret that hosts use unless they say otherwise.
    pub async fn create_secret(&self, name: &str, username: &str, password: &str) {
        let yaml = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{username: {username}, password: {password}}}\n"
        );
        self.apply(&yaml).await;
    }

    /// Creates a host with this spec, on top of an address and a Secret.
    pub async fn create_host(&self, name: &str, spec: Value) -> PhysicalHost {
        self.create_annotated_host(name, json!({}), spec).await
    }

    /// The same with annotations.
    pub async fn create_annotated_host(&self, name: &str, annotations: Value, spec: Value) -> PhysicalHost {
        let mut host = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "PhysicalHost",
            "metadata": { "name": name, "namespace": self.namespace, "annotations": annotations },
            "spec": { "redfishConnection": { "address": format!("https://{name}"), "credentialsSecretRef": "bmc" } },
        });
        json_patch_merge(&mut host["spec"], &spec);
        self.hosts().create(&kube::api::PostParams::default(), &serde_json::from_value(host).unwrap()).await.unwrap()
    }

    /// Adds a BMC without delays, its Secret, and a host of the same name; waits until it is available.
    pub async fn available_host(&self, name: &str) -> sim::Bmc {
        let bmc = self.add_bmc(name, instant_bmc(name));
        self.create_secret("bmc", "admin", "password").await;
        self.create_host(name, json!({})).await;
        self.wait_for_state(name, "Available").await;
        bmc
    }

    /// Changes a host's spec by a merge patch.
    pub async fn patch_spec(&self, name: &str, spec: Value) -> PhysicalHost {
        self.patch(name, json!({ "spec": spec })).await
    }

    /// Annotates a host.
    pub async fn annotate(&self, name: &str, annotation: &str, value: Option<&str>) {
        self.patch(name, json!({ "metadata": { "annotations": { annotation: value } } })).await;
    }

    async fn patch(&self, name: &str, patch: Value) -> PhysicalHost {
        self.hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Empties a host's status, as somebody with an editor might who tries again when the operator was faster.
    pub async fn wipe_status(&self, name: &str) {
        let hosts = self.hosts();
        wait_for(&format!("the status of {name} to be wiped"), self.patience(), async || {
            let mut host = hosts.get(name).await.unwrap();
            host.status = None;
            match hosts.replace_status(name, &kube::api::PostParams::default(), &host).await {
                Ok(wiped) => {
                    assert_eq!(wiped.status, None);
                    Some(())
                }
                Err(kube::Error::Api(refusal)) if refusal.code == 409 => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }

    /// The host as it is now.
    pub async fn host(&self, name: &str) -> PhysicalHost {
        self.hosts().get(name).await.unwrap()
    }

    /// Hosts, as their admin sees them.
    pub fn hosts(&self) -> Api<PhysicalHost> {
        Api::namespaced(self.admin(), &self.namespace)
    }

    /// Waits until the host is as `wanted` says; on time-out, shows what it is instead.
    pub async fn wait_until(&self, name: &str, what: &str, wanted: impl Fn(&PhysicalHost) -> bool) -> PhysicalHost {
        self.wait_within(self.patience(), name, what, wanted).await
    }

    /// The same, for what takes longer.
    pub async fn wait_within(
        &self,
        timeout: Duration,
        name: &str,
        what: &str,
        wanted: impl Fn(&PhysicalHost) -> bool,
    ) -> PhysicalHost {
        let hosts = self.hosts();
        let began = Instant::now();
        loop {
            let host = hosts.get(name).await.unwrap();
            if wanted(&host) {
                return host;
            }
            if began.elapsed() > timeout {
                let status = serde_json::to_string_pretty(&host.status).unwrap();
                panic!(
                    "{name}: {what} did not come true within {timeout:?}; annotations {:?}, status {status}",
                    host.annotations()
                );
            }
            self.pause_since(began).await;
        }
    }

    /// Sleeps until it is worthwhile to look again. Nobody waits for long in real time, where looking often pays.
    pub(crate) async fn pause_since(&self, began: Instant) {
        let pause = match &self.bed {
            Bed::Cluster { .. } => FIRST_PAUSE,
            Bed::Process(_) => (began.elapsed() / 20).clamp(FIRST_PAUSE, LONGEST_PAUSE),
        };
        tokio::time::sleep(pause).await;
    }

    /// Waits for a state.
    pub async fn wait_for_state(&self, name: &str, state: &str) -> PhysicalHost {
        self.wait_until(name, &format!("state {state}"), |host| state_of(host) == state).await
    }

    /// Waits for a fault of that reason.
    pub async fn wait_for_fault(&self, name: &str, reason: &str) -> PhysicalHost {
        let wanted = |host: &PhysicalHost| fault_of(host) == Some(reason.to_owned());
        self.wait_until(name, &format!("fault {reason}"), wanted).await
    }

    /// Deletes a host and waits until it is gone.
    pub async fn delete_host(&self, name: &str) {
        self.hosts().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
        self.wait_gone(name).await;
    }

    /// Waits until a host is gone.
    pub async fn wait_gone(&self, name: &str) {
        let hosts = self.hosts();
        wait_for(&format!("{name} to be gone"), self.patience(), async || {
            hosts.get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// How many writes to the API server operators of this world have asked for, without events and leases.
    pub fn writes(&self) -> usize {
        self.all_writes().len()
    }

    /// These writes, those of the first operator first.
    pub fn all_writes(&self) -> Vec<Passage> {
        let gates = self.gates.lock().unwrap();
        gates.iter().flat_map(Gate::seen).filter(Passage::is_write).collect()
    }

    /// Waits for an event about an object, which may outlive it, and answers its sentence.
    pub async fn wait_for_event_of(&self, name: &str, reason: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.admin(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={name},reason={reason}"));
        wait_for(&format!("the event {reason} of {name}"), self.patience(), async || {
            events.list(&about).await.unwrap().items.into_iter().find_map(|event| event.message)
        })
        .await
    }

    /// Reasons of the events about an object.
    pub async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.admin(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        events.list(&about).await.unwrap().items.into_iter().filter_map(|event| event.reason).collect()
    }
}

/// A generic BMC without delays whose server differs from that of every other name.
pub fn instant_bmc(name: &str) -> sim::Bmc {
    sim::Bmc::new(spec(name).timing(sim::Timing::INSTANT))
}

/// The plan of a generic BMC whose server differs from that of every other name.
pub fn spec(name: &str) -> sim::BmcSpec {
    let mut spec = sim::BmcSpec::new(sim::personality::generic());
    let seed = name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
    spec.hardware = vec![sim::Hardware::invent(&spec.personality, seed, 0)];
    spec
}

/// What a host's status says of its state.
pub fn state_of(host: &PhysicalHost) -> String {
    host.status.as_ref().and_then(|status| status.state.clone()).unwrap_or_default()
}

/// What is never forgotten about a host; null before anything was stored.
pub fn anchor(host: &PhysicalHost) -> Value {
    host.annotations().get("beskar7.io/anchor").map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

/// The reason of a host's fault.
pub fn fault_of(host: &PhysicalHost) -> Option<String> {
    Some(host.status.as_ref()?.fault.as_ref()?.reason.clone())
}

/// Asserts that the host's user is told: a fault of that reason, and everywhere the same sentence with these words in it.
pub fn assert_told(host: &PhysicalHost, reason: &str, words: &[&str]) {
    let status = host.status.clone().unwrap_or_default();
    let fault = status.fault.clone().unwrap_or_else(|| panic!("no fault: {status:?}"));
    assert_eq!(fault.reason, reason, "{}", fault.message);
    for word in words {
        assert!(fault.message.contains(word), "{word:?} is not in {:?}", fault.message);
    }
    assert_eq!(status.error_message.as_deref(), Some(fault.message.as_str()));
    let ready = status.condition("Ready").cloned().unwrap_or_else(|| panic!("not Ready: {status:?}"));
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", reason));
    assert_eq!(ready.message, fault.message);
}

/// Whether a host shows no trace of trouble.
pub fn is_well(host: &PhysicalHost) -> bool {
    let untroubled =
        host.status.as_ref().is_some_and(|status| status.fault.is_none() && status.error_message.is_none());
    untroubled && ["Ready", "RedfishConnectionReady"].iter().all(|type_| condition(host, type_).0 == "True")
}

/// Status and reason of a condition.
pub fn condition(host: &PhysicalHost, type_: &str) -> (String, String) {
    let condition = host.status.as_ref().and_then(|status| status.condition(type_));
    condition.map(|condition| (condition.status.clone(), condition.reason.clone())).unwrap_or_default()
}

/// A claim by somebody of that name, and an order.
pub fn claim(consumer: &str, iso: &str) -> Value {
    json!({ "consumerRef": { "name": consumer }, "bootIsoSource": iso })
}

fn dial(bmcs: Bmcs, certificates: Certificates, gate: Gate) -> Dial {
    Arc::new(move |address, trust| {
        let bmc = bmcs.lock().unwrap().get(address.host()).cloned();
        let name = address.host().to_owned();
        let Some(bmc) = bmc else { return Ok(gate.transport(&name, Arc::new(Https::new(address, trust)?))) };
        let (shown, certificates) = (name.clone(), certificates.clone());
        let show = move || certificates.lock().unwrap().get(&shown).copied();
        let way = Certified { inner: InProcess::new(bmc), show: Box::new(show), trust: trust.clone() };
        Ok(gate.transport(&name, Arc::new(way)))
    })
}

/// A BMC in this process that shows a certificate, if it has one. Pins are checked as TLS does; nothing else is.
struct Certified {
    inner: InProcess<sim::Bmc, sim::Dropped>,
    show: Box<dyn Fn() -> Option<Fingerprint> + Send + Sync>,
    trust: Trust,
}

impl Transport for Certified {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        match (&self.trust, (self.show)()) {
            (Trust::Pin(pinned), Some(seen)) if *pinned != seen => {
                std::future::ready(Err(TransportError::Changed { pinned: *pinned, seen })).boxed()
            }
            _ => self.inner.send(request),
        }
    }

    fn certificate(&self) -> Option<Fingerprint> {
        (self.show)()
    }
}

fn json_patch_merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                json_patch_merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}
