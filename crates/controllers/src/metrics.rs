//! What is counted, for Prometheus.
//!
//! Labels are words of the program (`&'static str`), apart from namespaces: nothing that grows with the fleet, no names
//! and no addresses of hosts. What can be counted afresh when somebody asks (hosts, who leads, who waits) is, so that it
//! cannot drift.

mod own;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::host::Ask;
use http::Method;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::watch;

use self::own::OwnMetrics;
pub use self::own::{Count, Labels, OwnGauge, OwnMetric};
use crate::brake::Brake;

/// Everything that is counted. Clones count together.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    sources: Arc<Sources>,
    states: Histograms<StateLabels>,
    bmc_requests: Family<RequestLabels, Counter>,
    bmc_request_time: Histograms<VerbLabels>,
    reconciles: Family<ReconcileLabels, Counter>,
    reconcile_time: Histograms<DialectLabels>,
    acts: Family<ActLabels, Counter>,
    faults: Family<FaultLabels, Counter>,
    api_writes: Family<WriteLabels, Counter>,
    registry_refusals: Family<RefusalLabels, Counter>,
    boot_steps: Family<StepLabels, Counter>,
    own: Mutex<OwnMetrics>,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The media type of [`Metrics::text`].
    pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// A registry in which nothing has happened.
    pub fn new() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("beskar7"),
            sources: Arc::default(),
            states: Family::new_with_constructor(state_buckets),
            bmc_requests: Family::default(),
            bmc_request_time: Family::new_with_constructor(request_buckets),
            reconciles: Family::default(),
            reconcile_time: Family::new_with_constructor(reconcile_buckets),
            acts: Family::default(),
            faults: Family::default(),
            api_writes: Family::default(),
            registry_refusals: Family::default(),
            boot_steps: Family::default(),
            own: Mutex::default(),
        };
        inner.register();
        Self(Arc::new(inner))
    }

    /// A host left a state in which it had been for this long.
    pub fn left_state(&self, dialect: &'static str, state: &'static str, after: Duration) {
        self.0.states.get_or_create(&StateLabels { dialect, state }).observe(after.as_secs_f64());
    }

    /// A request was sent to a BMC and took this long; `outcome` is a word of a small fixed set.
    pub fn bmc_request(&self, method: &Method, outcome: &'static str, took: Duration) {
        self.0.bmc_requests.get_or_create(&RequestLabels { verb: verb(method), outcome }).inc();
        self.0.bmc_request_time.get_or_create(&VerbLabels { verb: verb(method) }).observe(took.as_secs_f64());
    }

    /// A host was decided on.
    pub fn reconcile(&self, dialect: &'static str, ok: bool, took: Duration) {
        self.0.reconciles.get_or_create(&ReconcileLabels { dialect, outcome: outcome(ok) }).inc();
        self.0.reconcile_time.get_or_create(&DialectLabels { dialect }).observe(took.as_secs_f64());
    }

    /// An act was performed, or not.
    pub fn act(&self, act: &'static str, ok: bool) {
        self.0.acts.get_or_create(&ActLabels { act, outcome: outcome(ok) }).inc();
    }

    /// A host came into a fault, or met it again.
    pub fn fault(&self, dialect: &'static str, reason: &'static str) {
        self.0.faults.get_or_create(&FaultLabels { dialect, reason }).inc();
    }

    /// The registry for probes refused a request.
    pub fn registry_refused(&self, reason: &'static str) {
        self.0.registry_refusals.get_or_create(&RefusalLabels { reason }).inc();
    }

    /// A server that boots from the network has come so far; `step` is a word of a small fixed set.
    pub fn boot_step(&self, step: &'static str) {
        self.0.boot_steps.get_or_create(&StepLabels { step }).inc();
    }

    /// Something of a host was written to the API server, or should have been.
    pub fn api_write(&self, dialect: &'static str, kind: &'static str, ok: bool) {
        self.0.api_writes.get_or_create(&WriteLabels { dialect, kind, outcome: outcome(ok) }).inc();
    }

    /// Counts the hosts of a dialect by asking for the namespace and state of each whenever somebody wants to know, in
    /// place of whom was asked before. While another replica leads it is not asked: each host is counted once.
    pub fn follow_hosts<F>(&self, dialect: &'static str, states: &'static [&'static str], hosts: F)
    where
        F: Fn() -> Vec<(String, &'static str)> + Send + Sync + 'static,
    {
        self.0.sources.lock().hosts.insert(dialect, Census { words: states, ask: Arc::new(hosts) });
    }

    /// Counts the claims of a dialect in the same way, by their phases. Users know them as machines.
    pub fn follow_claims<F>(&self, dialect: &'static str, phases: &'static [&'static str], claims: F)
    where
        F: Fn() -> Vec<(String, &'static str)> + Send + Sync + 'static,
    {
        self.0.sources.lock().claims.insert(dialect, Census { words: phases, ask: Arc::new(claims) });
    }

    /// Counts the hosts of a dialect in the same way for gauges of its own.
    pub fn follow_gauges<H, F>(&self, gauges: &[OwnGauge<H>], hosts: F)
    where
        H: Send + Sync + 'static,
        F: Fn() -> Vec<Arc<H>> + Send + Sync + 'static,
    {
        let hosts: Arc<dyn Fn() -> Vec<Arc<H>> + Send + Sync> = Arc::new(hosts);
        let mut sources = self.0.sources.lock();
        for gauge in gauges {
            sources.own.insert(gauge.name, own::Census::new(gauge, hosts.clone()));
        }
    }

    /// Counts for metrics of a dialect's own from now on.
    pub fn declare(&self, metrics: &[OwnMetric]) {
        self.own().declare(metrics);
    }

    /// Counts for metrics of a dialect's own.
    pub fn count(&self, counts: &[Count]) {
        let own = self.own();
        for count in counts {
            own.count(count);
        }
    }

    fn own(&self) -> MutexGuard<'_, OwnMetrics> {
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows whether this replica leads.
    pub fn follow_leadership(&self, leading: watch::Receiver<bool>) {
        self.0.sources.lock().leading = Some(leading);
    }

    /// Shows who waits for the fleet brake.
    pub fn follow_brake(&self, brake: Arc<Brake>) {
        self.0.sources.lock().brake = Some(brake);
    }

    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, and our collectors make no errors of their own.
        encode_registry(&mut text, &self.0.registry).ok();
        encode_registry(&mut text, &self.own().registry).ok();
        encode_eof(&mut text).ok();
        text
    }
}

impl bmc::Observer for Metrics {
    fn request(&self, method: &Method, outcome: &'static str, _: Option<u16>, took: Duration) {
        self.bmc_request(method, outcome, took);
    }
}

impl Inner {
    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register_collector(Box::new(Arc::clone(&self.sources)));
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        own.registry.register_collector(Box::new(OwnGauges(Arc::clone(&self.sources))));
        registry.register_with_unit(
            "host_state",
            "How long hosts stayed in a state that they have left",
            Unit::Seconds,
            self.states.clone(),
        );
        registry.register("bmc_requests", "Requests to BMCs, retries included", self.bmc_requests.clone());
        registry.register_with_unit(
            "bmc_request_duration",
            "How long BMCs took to answer",
            Unit::Seconds,
            self.bmc_request_time.clone(),
        );
        registry.register("reconciles", "Decisions on hosts", self.reconciles.clone());
        registry.register_with_unit(
            "reconcile_duration",
            "How long decisions on hosts took",
            Unit::Seconds,
            self.reconcile_time.clone(),
        );
        registry.register("acts", "What was done to servers", self.acts.clone());
        registry.register("faults", "Faults that hosts came into, by reason", self.faults.clone());
        registry.register("api_writes", "Writes of hosts to the API server", self.api_writes.clone());
        let refusals = self.registry_refusals.clone();
        registry.register("registry_refusals", "Requests that the registry for probes refused, by reason", refusals);
        let steps = self.boot_steps.clone();
        registry.register("boot_steps", "How far servers have come that boot from the network", steps);
    }
}

/// What is counted when somebody asks.
#[derive(Default)]
struct Sources(Mutex<SourcesInner>);

#[derive(Default)]
struct SourcesInner {
    hosts: BTreeMap<&'static str, Census>,
    claims: BTreeMap<&'static str, Census>,
    own: BTreeMap<&'static str, own::Census>,
    leading: Option<watch::Receiver<bool>>,
    brake: Option<Arc<Brake>>,
}

/// Whom to ask for the namespace of each object, and for one of these words.
#[derive(Clone)]
struct Census {
    words: &'static [&'static str],
    ask: Arc<dyn Fn() -> Vec<(String, &'static str)> + Send + Sync>,
}

/// By dialect and namespace, how many objects each word says something of.
type Counts = BTreeMap<(&'static str, String), BTreeMap<&'static str, i64>>;

impl Sources {
    fn lock(&self) -> MutexGuard<'_, SourcesInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom to ask; nobody if another replica does.
    fn ask<T: Clone>(&self, of: impl Fn(&SourcesInner) -> &BTreeMap<&'static str, T>) -> Vec<(&'static str, T)> {
        let inner = self.lock();
        if inner.leading.as_ref().is_some_and(|leading| !*leading.borrow()) {
            return Vec::new();
        }
        of(&inner).iter().map(|(name, source)| (*name, source.clone())).collect()
    }

    fn count(&self, of: impl Fn(&SourcesInner) -> &BTreeMap<&'static str, Census>) -> Counts {
        let mut counts = Counts::new();
        for (dialect, census) in self.ask(of) {
            for (namespace, word) in (census.ask)() {
                // A state that the last host has left must read 0: a series that ends keeps its last value for minutes.
                let words = counts
                    .entry((dialect, namespace))
                    .or_insert_with(|| census.words.iter().map(|word| (*word, 0)).collect());
                *words.entry(word).or_default() += 1;
            }
        }
        counts
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut hosts =
            encoder.encode_descriptor("hosts", "Hosts, as the leader sees them now.", None, MetricType::Gauge)?;
        for ((dialect, namespace), states) in self.count(|inner| &inner.hosts) {
            for (state, count) in states {
                let labels = HostLabels { dialect, namespace: namespace.clone(), state };
                gauge(hosts.encode_family(&labels)?, count)?;
            }
        }
        let help = "Machines, as the leader sees them now.";
        let mut claims = encoder.encode_descriptor("machines", help, None, MetricType::Gauge)?;
        for ((dialect, namespace), phases) in self.count(|inner| &inner.claims) {
            for (phase, count) in phases {
                let labels = ClaimLabels { dialect, namespace: namespace.clone(), phase };
                gauge(claims.encode_family(&labels)?, count)?;
            }
        }
        let (leading, load) = {
            let inner = self.lock();
            let leading = inner.leading.as_ref().map(|leading| *leading.borrow());
            // What waited in an earlier term waits with another replica now.
            (leading, inner.brake.as_ref().filter(|_| leading != Some(false)).map(|brake| brake.load()))
        };
        if let Some(leading) = leading {
            let help = "Whether this replica leads.";
            gauge(encoder.encode_descriptor("leader", help, None, MetricType::Gauge)?, leading.into())?;
        }
        let Some(load) = load else { return Ok(()) };
        let help = "Hosts that wait for the fleet brake.";
        let mut waiting = encoder.encode_descriptor("brake_waiting", help, None, MetricType::Gauge)?;
        let kinds = [(Ask::Deploy, load.waiting_to_deploy), (Ask::Disrupt, load.waiting_to_disrupt)];
        for (kind, count) in kinds {
            gauge(waiting.encode_family(&ask(kind))?, i64::try_from(count).unwrap_or(i64::MAX))?;
        }
        let help = "How often a host had to begin to wait for the fleet brake.";
        let mut waits = encoder.encode_descriptor("brake_waits", help, None, MetricType::Counter)?;
        let [disrupt, deploy] = load.waits;
        for (kind, count) in [(Ask::Deploy, deploy), (Ask::Disrupt, disrupt)] {
            ConstCounter::new(count).encode(waits.encode_family(&ask(kind))?)?;
        }
        let help = "Deployments under way.";
        let deploying = encoder.encode_descriptor("deployments", help, None, MetricType::Gauge)?;
        gauge(deploying, i64::try_from(load.deploying).unwrap_or(i64::MAX))?;
        let help = "Whether everything destructive is refused.";
        gauge(encoder.encode_descriptor("frozen", help, None, MetricType::Gauge)?, load.frozen.into())
    }
}

/// The gauges that dialects have beside those of all hosts.
#[derive(Debug)]
struct OwnGauges(Arc<Sources>);

impl Collector for OwnGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.ask(|inner| &inner.own).iter().try_for_each(|(_, census)| census.encode(&mut encoder))
    }
}

fn gauge(encoder: MetricEncoder<'_>, value: i64) -> fmt::Result {
    ConstGauge::new(value).encode(encoder)
}

/// From a second to six hours.
fn state_buckets() -> Histogram {
    Histogram::new([1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0])
}

/// A quick BMC answers in 50 ms, a slow one in half a minute.
fn request_buckets() -> Histogram {
    Histogram::new([0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0])
}

/// Milliseconds are the rule; a second is a reason to look.
fn reconcile_buckets() -> Histogram {
    Histogram::new([0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0])
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HostLabels {
    dialect: &'static str,
    namespace: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClaimLabels {
    dialect: &'static str,
    namespace: String,
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    dialect: &'static str,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    verb: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbLabels {
    verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReconcileLabels {
    dialect: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DialectLabels {
    dialect: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ActLabels {
    act: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FaultLabels {
    dialect: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    step: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    dialect: &'static str,
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AskLabels {
    ask: &'static str,
}

fn ask(ask: Ask) -> AskLabels {
    AskLabels {
        ask: match ask {
            Ask::Disrupt => "Disrupt",
            Ask::Deploy => "Deploy",
        },
    }
}

/// A method can be any word; a label must not.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn outcome(ok: bool) -> &'static str {
    if ok { "ok" } else { "failed" }
}

#[cfg(test)]
mod tests;
