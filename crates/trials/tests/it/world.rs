//! One operator, one namespace, and as many pretend BMCs as a test wants.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use api::beskar7::PhysicalHost;
use bmc::{Https, InProcess};
use controllers::brake::BrakeConfig;
use controllers::clock::{Clock, SystemClock};
use controllers::hands::Dial;
use controllers::metrics::Metrics;
use controllers::operator::{Config, Operator};
use k8s_openapi::api::core::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::{Account, AuditWrite, Cluster, wait_for};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::gate::Gate;

/// Longer than anything that should happen takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_mins(2);

/// A clock that runs faster than the world, so that a test need not wait ten minutes for a back-off. Only what the engine
/// measures runs faster; BMCs and their client keep their own time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hurry {
    start: jiff::Timestamp,
    started: tokio::time::Instant,
    factor: i32,
}

impl Hurry {
    /// A clock of which `factor` seconds pass in each second.
    pub(crate) fn by(factor: i32) -> Self {
        Self { factor, ..Self::from(SystemClock.now()) }
    }

    /// A clock that shows `start` now and is in no hurry.
    pub(crate) fn from(start: jiff::Timestamp) -> Self {
        Self { start, started: tokio::time::Instant::now(), factor: 1 }
    }
}

impl Clock for Hurry {
    fn now(&self) -> jiff::Timestamp {
        let elapsed = jiff::SignedDuration::try_from(self.started.elapsed()).unwrap();
        self.start + elapsed * self.factor
    }

    fn pause(&self, span: jiff::SignedDuration) -> Duration {
        (span.max(jiff::SignedDuration::ZERO) / self.factor).unsigned_abs()
    }
}

/// The role that we ship for an operator of one namespace.
const ROLES: &str = concat!(
    include_str!("../../../../config/rbac/namespaced/role.yaml"),
    "\n---\n",
    include_str!("../../../../config/rbac/namespaced/role_binding.yaml"),
);

/// A namespace with an operator in it.
pub(crate) struct World {
    pub(crate) cluster: &'static Cluster,
    pub(crate) namespace: String,
    account: Account,
    bmcs: Bmcs,
    running: Mutex<Option<Running>>,
}

type Bmcs = Arc<Mutex<HashMap<String, sim::Bmc>>>;

impl World {
    /// A namespace in which the operator runs.
    pub(crate) async fn new(prefix: &str) -> Self {
        let world = Self::quiet(prefix).await;
        world.start_operator();
        world
    }

    /// A namespace in which nobody acts yet.
    pub(crate) async fn quiet(prefix: &str) -> Self {
        Self::quiet_on(Cluster::shared().await, prefix).await
    }

    /// The same on a cluster of one's own.
    pub(crate) async fn quiet_on(cluster: &'static Cluster, prefix: &str) -> Self {
        cluster.apply_yaml(&api::crds_yaml()).await;
        let namespace = cluster.namespace(prefix).await;
        let roles = ROLES.replace("beskar7-system", &namespace);
        let account = cluster.service_account(&namespace, "beskar7", &roles).await;
        Self { cluster, namespace, account, bmcs: Bmcs::default(), running: Mutex::default() }
    }

    /// Starts the operator, with BMCs that are reached in process by the name they were added under, and all others by TLS.
    pub(crate) fn start_operator(&self) {
        self.start_operator_with(SystemClock, |_| {});
    }

    /// Starts the operator with another clock and configuration.
    pub(crate) fn start_operator_with(&self, clock: impl Clock, change: impl FnOnce(&mut Config)) {
        let running = self.launch(Gate::default(), clock, change);
        *self.running.lock().unwrap() = Some(running);
    }

    /// Starts one more operator, behind a gate, and hands it to the test.
    pub(crate) fn launch(&self, gate: Gate, clock: impl Clock, change: impl FnOnce(&mut Config)) -> Running {
        let mut config = Config {
            namespace: Some(self.namespace.clone()),
            watch_filter: None,
            election: None,
            metrics_address: None,
            probe_address: None,
            brake: BrakeConfig { disruptions_per_minute: 600, ..BrakeConfig::default() },
            bmcs_at_once: 16,
            cluster_api: true,
            boot: None,
        };
        change(&mut config);
        let runtime = Running::runtime(&self.namespace);
        let operator = {
            // A client belongs to the runtime in which it is made.
            let _inside = runtime.enter();
            Operator {
                client: gate.client(self.account.client()),
                config,
                dial: dial(self.bmcs.clone(), gate),
                clock: Arc::new(clock),
                metrics: Metrics::default(),
            }
        };
        let (stop, metrics) = (CancellationToken::new(), operator.metrics.clone());
        let task = runtime.spawn({
            let stop = stop.clone();
            async move { operator.run(stop).await.unwrap() }
        });
        Running { runtime: Some(runtime), stop, task: Some(task), metrics, thread: self.namespace.clone() }
    }

    /// Stops the operator as SIGTERM does.
    pub(crate) async fn stop_operator(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some(running) = running {
            running.stop().await;
        }
    }

    /// Stops the operator as SIGKILL does: wherever it is, without a word to anybody.
    pub(crate) async fn kill_operator(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some(running) = running {
            running.kill().await;
        }
    }

    /// What the operator's `/metrics` shows.
    pub(crate) fn metrics(&self) -> String {
        self.running.lock().unwrap().as_ref().map(|running| running.metrics.text()).unwrap_or_default()
    }

    /// Adds a BMC that answers at `https://NAME`.
    pub(crate) fn add_bmc(&self, name: &str, bmc: sim::Bmc) -> sim::Bmc {
        self.bmcs.lock().unwrap().insert(name.to_owned(), bmc.clone());
        bmc
    }

    /// The BMC of that name.
    pub(crate) fn bmc(&self, name: &str) -> sim::Bmc {
        self.bmcs.lock().unwrap()[name].clone()
    }

    /// Creates the Secret that hosts use unless they say otherwise.
    pub(crate) async fn create_secret(&self, name: &str, username: &str, password: &str) {
        let yaml = format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{username: {username}, password: {password}}}\n"
        );
        self.cluster.apply_yaml_in(&self.namespace, &yaml).await;
    }

    /// Creates a host with this spec, on top of an address and a Secret.
    pub(crate) async fn create_host(&self, name: &str, spec: Value) -> PhysicalHost {
        self.create_annotated_host(name, json!({}), spec).await
    }

    /// The same with annotations.
    pub(crate) async fn create_annotated_host(&self, name: &str, annotations: Value, spec: Value) -> PhysicalHost {
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
    pub(crate) async fn available_host(&self, name: &str) -> sim::Bmc {
        let bmc = self.add_bmc(name, instant_bmc(name));
        self.create_secret("bmc", "admin", "password").await;
        self.create_host(name, json!({})).await;
        self.wait_for_state(name, "Available").await;
        bmc
    }

    /// Changes a host's spec by a merge patch.
    pub(crate) async fn patch_spec(&self, name: &str, spec: Value) -> PhysicalHost {
        self.patch(name, json!({ "spec": spec })).await
    }

    /// Annotates a host.
    pub(crate) async fn annotate(&self, name: &str, annotation: &str, value: Option<&str>) {
        self.patch(name, json!({ "metadata": { "annotations": { annotation: value } } })).await;
    }

    async fn patch(&self, name: &str, patch: Value) -> PhysicalHost {
        self.hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// Empties a host's status, as somebody with an editor might who tries again when the operator was faster.
    pub(crate) async fn wipe_status(&self, name: &str) {
        let hosts = self.hosts();
        wait_for(&format!("the status of {name} to be wiped"), SOON, async || {
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
    pub(crate) async fn host(&self, name: &str) -> PhysicalHost {
        self.hosts().get(name).await.unwrap()
    }

    /// Hosts, as their admin sees them.
    pub(crate) fn hosts(&self) -> Api<PhysicalHost> {
        Api::namespaced(self.cluster.admin(), &self.namespace)
    }

    /// Waits until the host is as `wanted` says; on time-out, shows what it is instead.
    pub(crate) async fn wait_until(
        &self,
        name: &str,
        what: &str,
        wanted: impl Fn(&PhysicalHost) -> bool,
    ) -> PhysicalHost {
        self.wait_within(SOON, name, what, wanted).await
    }

    /// The same, for what takes longer.
    pub(crate) async fn wait_within(
        &self,
        timeout: Duration,
        name: &str,
        what: &str,
        wanted: impl Fn(&PhysicalHost) -> bool,
    ) -> PhysicalHost {
        let hosts = self.hosts();
        let deadline = tokio::time::Instant::now() + timeout;
        loop {
            let host = hosts.get(name).await.unwrap();
            if wanted(&host) {
                return host;
            }
            if tokio::time::Instant::now() > deadline {
                let status = serde_json::to_string_pretty(&host.status).unwrap();
                panic!(
                    "{name}: {what} did not come true within {timeout:?}; annotations {:?}, status {status}",
                    host.annotations()
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a state.
    pub(crate) async fn wait_for_state(&self, name: &str, state: &str) -> PhysicalHost {
        self.wait_until(name, &format!("state {state}"), |host| state_of(host) == state).await
    }

    /// Waits for a fault of that reason.
    pub(crate) async fn wait_for_fault(&self, name: &str, reason: &str) -> PhysicalHost {
        let wanted = |host: &PhysicalHost| fault_of(host) == Some(reason.to_owned());
        self.wait_until(name, &format!("fault {reason}"), wanted).await
    }

    /// Deletes a host and waits until it is gone.
    pub(crate) async fn delete_host(&self, name: &str) {
        self.hosts().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
        self.wait_gone(name).await;
    }

    /// Waits until a host is gone.
    pub(crate) async fn wait_gone(&self, name: &str) {
        let hosts = self.hosts();
        wait_for(&format!("{name} to be gone"), SOON, async || {
            hosts.get_opt(name).await.unwrap().is_none().then_some(())
        })
        .await;
    }

    /// Writes to the API server by this world's operator, without events and leases.
    pub(crate) async fn writes(&self) -> usize {
        self.all_writes().await.len()
    }

    pub(crate) async fn all_writes(&self) -> Vec<AuditWrite> {
        self.cluster.writes(self.account.user(), &["events", "leases"]).await
    }

    /// All writes, once no more come.
    pub(crate) async fn settled_writes(&self) -> Vec<AuditWrite> {
        let mut before = self.all_writes().await;
        wait_for("no more writes", SOON, async || {
            let now = self.all_writes().await;
            let settled = now.len() == before.len();
            before.clone_from(&now);
            settled.then_some(now)
        })
        .await
    }

    /// Waits for an event about an object, which may outlive it, and answers its sentence.
    pub(crate) async fn wait_for_event_of(&self, name: &str, reason: &str) -> String {
        let events: Api<Event> = Api::namespaced(self.cluster.admin(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={name},reason={reason}"));
        wait_for(&format!("the event {reason} of {name}"), SOON, async || {
            events.list(&about).await.unwrap().items.into_iter().find_map(|event| event.message)
        })
        .await
    }

    /// Reasons of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.cluster.admin(), &self.namespace);
        let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
        events.list(&about).await.unwrap().items.into_iter().filter_map(|event| event.reason).collect()
    }
}

/// An operator in a runtime of its own: when that is gone, so is everything that the operator had begun.
pub(crate) struct Running {
    runtime: Option<Runtime>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
    metrics: Metrics,
    thread: String,
}

/// Names of threads on which something panicked.
static PANICKED: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Running {
    fn runtime(thread: &str) -> Runtime {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                PANICKED.lock().unwrap().extend(std::thread::current().name().map(str::to_owned));
                usual(panic);
            }));
        });
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().thread_name(thread).build().unwrap()
    }

    /// Stops it as SIGTERM does.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }

    /// Stops it as SIGKILL does. When this returns, nothing of it runs any more.
    pub(crate) async fn kill(mut self) {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(SOON)).await.unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        let panicked = PANICKED.lock().unwrap().contains(&self.thread);
        assert!(std::thread::panicking() || !panicked, "something in the operator panicked");
    }
}

/// A generic BMC without delays whose server differs from that of every other name.
pub(crate) fn instant_bmc(name: &str) -> sim::Bmc {
    sim::Bmc::new(spec(name).timing(sim::Timing::INSTANT))
}

/// The plan of a generic BMC whose server differs from that of every other name.
pub(crate) fn spec(name: &str) -> sim::BmcSpec {
    let mut spec = sim::BmcSpec::new(sim::personality::generic());
    let seed = name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(byte.into()));
    spec.hardware = vec![sim::Hardware::invent(&spec.personality, seed, 0)];
    spec
}

/// What a host's status says of its state.
pub(crate) fn state_of(host: &PhysicalHost) -> String {
    host.status.as_ref().and_then(|status| status.state.clone()).unwrap_or_default()
}

/// The reason of a host's fault.
/// What is never forgotten about a host; null before anything was stored.
pub(crate) fn anchor(host: &PhysicalHost) -> Value {
    host.annotations().get("beskar7.io/anchor").map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

pub(crate) fn fault_of(host: &PhysicalHost) -> Option<String> {
    Some(host.status.as_ref()?.fault.as_ref()?.reason.clone())
}

/// Asserts that the host's user is told: a fault of that reason, and everywhere the same sentence with these words in it.
pub(crate) fn assert_told(host: &PhysicalHost, reason: &str, words: &[&str]) {
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
pub(crate) fn is_well(host: &PhysicalHost) -> bool {
    let untroubled =
        host.status.as_ref().is_some_and(|status| status.fault.is_none() && status.error_message.is_none());
    untroubled && ["Ready", "RedfishConnectionReady"].iter().all(|type_| condition(host, type_).0 == "True")
}

/// Status and reason of a condition.
pub(crate) fn condition(host: &PhysicalHost, type_: &str) -> (String, String) {
    let condition = host.status.as_ref().and_then(|status| status.condition(type_));
    condition.map(|condition| (condition.status.clone(), condition.reason.clone())).unwrap_or_default()
}

/// A claim by somebody of that name, and an order.
pub(crate) fn claim(consumer: &str, iso: &str) -> Value {
    json!({ "consumerRef": { "name": consumer }, "bootIsoSource": iso })
}

fn dial(bmcs: Bmcs, gate: Gate) -> Dial {
    Arc::new(move |address, trust| {
        let bmc = bmcs.lock().unwrap().get(address.host()).cloned();
        Ok(gate.transport(match bmc {
            Some(bmc) => Arc::new(InProcess::new(bmc)),
            None => Arc::new(Https::new(address, trust)?),
        }))
    })
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
