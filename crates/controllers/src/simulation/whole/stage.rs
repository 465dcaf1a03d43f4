//! A history of operators, owners, BMCs and an API server; then calm, and everything must be well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use apiserver::server::{Config as ServerConfig, Server};
use apiserver::store::Store;
use futures::FutureExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::metals::Metals;
use super::owners::Known;
use super::probes::Probes;
use super::racks::Racks;
use super::users::Machine;
use super::wire::Wire;
use super::{judge, metal_judge, rack_judge};
use crate::brake::BrakeConfig;
use crate::clock::{Clock as _, TokioClock};
use crate::dialects::Dialect;
use crate::leader::Timing;
use crate::metrics::Metrics;
use crate::operator::{Config, Election, Operator};
use crate::simulation::fate::Life;
use crate::simulation::fleet::{Informants, Servers, Show, Tenant, asked_power, runs_for_its_owner};
use crate::simulation::play::Outcome;

/// How long things may take to be well once nobody makes trouble: the longest back-off, and then a deployment.
const PATIENCE: Duration = Duration::from_hours(8);
/// How long nothing may be written when all is well.
const REST: Duration = Duration::from_mins(15);
/// How long it may take until the last has been seen: hosts at rest are looked at every few minutes.
const SETTLE: Duration = Duration::from_mins(12);
pub(super) const NAMESPACE: &str = "lab";
/// Group and version of PhysicalHosts and machines, and of BareMetalHosts.
const OURS: (&str, &str) = ("infrastructure.cluster.x-k8s.io", "v1beta1");
const METAL3: (&str, &str) = ("metal3.io", "v1alpha1");
/// How often the servers are looked at.
const JUDGED: Duration = Duration::from_mins(1);
pub(super) const PASSWORDS: [&str; 2] = ["password", "changed"];

/// Plays the history of a seed.
pub(super) fn play(seed: u64, told: bool) -> Outcome {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut stage = Stage::new(seed, told).await;
        let verdict = stage.play().await;
        stage.tell(|| "the end".to_owned());
        let trace = std::mem::take(&mut stage.servers.notes().trace);
        Outcome { trace, verdict, spent: stage.started.elapsed() }
    })
}

/// One operator.
pub(super) struct Process {
    pub(super) life: Life,
    pub(super) shutdown: CancellationToken,
    work: JoinSet<()>,
}

pub(super) struct Stage {
    pub(super) random: fastrand::Rng,
    /// Names of the PhysicalHosts.
    pub(super) names: Vec<String>,
    /// Names of the BareMetalHosts.
    pub(super) metal_names: Vec<String>,
    /// Names of the BMCs that have Servers behind them.
    pub(super) rack_names: Vec<String>,
    /// Names that machines may have: more than there are hosts.
    pub(super) machine_names: Vec<String>,
    server: Server,
    /// The way of everybody else to the API server. Nothing happens to it.
    pub(super) admin: Client,
    pub(super) wire: Wire,
    pub(super) show: Show,
    pub(super) show_machine: Show,
    pub(super) show_metal: Show,
    informants: Informants,
    pub(super) servers: Servers,
    clock: TokioClock,
    pub(super) started: Instant,
    elects: bool,
    pub(super) operators: Vec<Process>,
    pub(super) known: BTreeMap<String, Known>,
    pub(super) machines: BTreeMap<String, Machine>,
    pub(super) metals: Metals,
    /// What is known of claims on Servers.
    pub(super) racks: Racks,
    /// What servers boot before they are free, if they do.
    pub(super) probes: Option<Probes>,
    /// Whether nobody makes trouble any more.
    pub(super) is_calm: bool,
    /// Servers that somebody may have switched on or off since they were last prepared for a deployment.
    pub(super) pressed: BTreeSet<String>,
    /// Servers whose BMC has taken orders without obeying.
    pub(super) misled: BTreeSet<String>,
    pub(super) passwords: BTreeMap<String, &'static str>,
    told: bool,
}

impl Stage {
    async fn new(seed: u64, told: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let (names, metal_names, rack_names) = draw_fleet(&mut random);
        let clock = TokioClock::starting_at("2026-11-16T08:00:00Z".parse().unwrap());
        let server = Server::start(ServerConfig {
            store: Store::memory(),
            clock: apiserver::clock::Clock::new(move || clock.now()),
            seed,
            pki: None,
            tokens: apiserver::auth::StaticTokens::default(),
            build: "beskar7.test".to_owned(),
        })
        .await
        .unwrap();
        let admin = Client::new(server.router(), NAMESPACE);
        furnish(&admin).await;
        let machine_names: Vec<String> =
            (0..names.len().max(rack_names.len()) + 2).map(|at| format!("node-{at}")).collect();
        let (show, show_machine) = (show(&server, OURS, "physicalhosts"), show(&server, OURS, "beskar7machines"));
        let show_metal = self::show(&server, METAL3, "baremetalhosts");
        let (metals, racks) = (Metals::default(), Racks::default());
        let tenant = tenant(show.clone(), show_machine.clone(), machine_names.clone(), metals.clone(), racks.clone());
        let bars = metals.clone();
        let barred: Tenant = Arc::new(move |name| metal_judge::barred(&bars, name));
        let informants = Informants { tenant, host: show.clone(), barred };
        let servers = Servers::new(&[names.clone(), metal_names.clone(), rack_names.clone()].concat(), &mut random);
        let watchmen = [
            judge::watchman_of_claims(show.clone(), servers.clone()),
            metal_judge::watchman_of_pauses(show_metal.clone(), servers.clone()),
        ];
        let (wire, elects) = (Wire::new(server.router()).watched_by(watchmen), random.bool());
        let probes = (!rack_names.is_empty() && random.bool()).then(|| Probes::draw(&mut random));
        let mut stage = Self {
            random,
            passwords: names
                .iter()
                .chain(&metal_names)
                .chain(&rack_names)
                .map(|name| (name.clone(), PASSWORDS[0]))
                .collect(),
            names,
            metal_names,
            rack_names,
            machine_names,
            server,
            admin,
            wire,
            show,
            show_machine,
            show_metal,
            informants,
            servers,
            clock,
            started: Instant::now(),
            elects,
            operators: Vec::new(),
            known: BTreeMap::new(),
            machines: BTreeMap::new(),
            metals,
            racks,
            probes,
            is_calm: false,
            pressed: BTreeSet::new(),
            misled: BTreeSet::new(),
            told,
        };
        for name in stage.names.clone() {
            stage.put_secret(&name).await;
            stage.create(&name).await;
        }
        for name in stage.metal_names.clone() {
            stage.put_secret(&name).await;
            stage.create_metal(&name).await;
        }
        for name in stage.rack_names.clone() {
            stage.put_bmc_secret(&name).await;
            stage.create_rack(&name).await;
        }
        for at in 0..=usize::from(elects) {
            let operator = stage.start(at, Duration::ZERO);
            stage.operators.push(operator);
        }
        stage
    }

    /// Starts an operator, after a while.
    fn start(&self, at: usize, pause: Duration) -> Process {
        let (life, shutdown) = (Life::default(), CancellationToken::new());
        let election = self.elects.then(|| Election {
            namespace: NAMESPACE.to_owned(),
            lease: "beskar7".to_owned(),
            identity: format!("operator-{at}-{}", self.started.elapsed().as_millis()),
            timing: Timing::default(),
        });
        let operator = Operator {
            client: self.wire.client(&life),
            config: Config {
                dialects: vec![Dialect::Beskar7, Dialect::Metal3, Dialect::IronCore],
                // BMCs and Servers have none.
                namespace: self.rack_names.is_empty().then(|| NAMESPACE.to_owned()),
                watch_filter: None,
                election,
                metrics_address: None,
                probe_address: None,
                brake: BrakeConfig { disruptions_per_minute: 2, concurrent_deployments: 2, freeze: false },
                bmcs_at_once: 4,
                cluster_api: false,
                boot: self.probes.as_ref().map(Probes::boot),
                settings: self.probes.as_ref().map(Probes::settings).unwrap_or_default(),
            },
            dial: self.servers.dial(&self.informants, &life),
            clock: Arc::new(self.clock),
            metrics: Metrics::default(),
        };
        let mut work = JoinSet::new();
        let stop = shutdown.clone();
        work.spawn(async move {
            tokio::time::sleep(pause).await;
            operator.run(stop).await.unwrap();
        });
        Process { life, shutdown, work }
    }

    async fn play(&mut self) -> Result<(), String> {
        for at in 0..self.random.usize(..=self.names.len()) {
            self.create_machine(&format!("node-{at}")).await?;
        }
        for at in 0..self.random.usize(..=self.rack_names.len()) {
            self.claim_server(&format!("node-{at}")).await;
        }
        let beginning = Duration::from_secs(self.random.u64(0..120));
        self.run_for(beginning).await?;
        for _ in 0..self.random.u32(5..17) {
            let turn = self.draw();
            let (name, machine) = self.draw_subjects(turn);
            self.tell(|| format!("{turn:?} {name} {machine}"));
            self.turn(turn, &name, &machine).await?;
            let seconds = if self.random.bool() { self.random.u64(0..20) } else { self.random.u64(0..400) };
            self.run_for(Duration::from_secs(seconds)).await?;
        }
        self.calm_down().await;
        let deadline = Instant::now() + PATIENCE;
        while let Some(why) = self.unfinished() {
            if Instant::now() > deadline {
                return Err(format!("not well after {} h of calm: {why}", PATIENCE.as_secs() / 3600));
            }
            self.run_for(Duration::from_secs(30)).await?;
        }
        self.rest().await
    }

    /// Whoever is well is left in peace.
    async fn rest(&mut self) -> Result<(), String> {
        self.run_for(SETTLE).await?;
        let (writes, versions) = (self.wire.writes(), self.versions());
        self.run_for(REST).await?;
        if let Some(why) = self.unfinished() {
            return Err(format!("it was well, and then no more: {why}"));
        }
        if self.wire.writes() != writes || self.versions() != versions {
            return Err(format!("{} writes at rest, at last {}", self.wire.writes() - writes, self.wire.last_write()));
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn versions(&self) -> Vec<Option<Value>> {
        let version = |object: Arc<Value>| object["metadata"]["resourceVersion"].clone();
        let hosts = self.names.iter().map(|name| (self.show)(name).map(version));
        let metals = self.metal_names.iter().map(|name| (self.show_metal)(name).map(version));
        let hosts = hosts.chain(metals);
        hosts.chain(self.machine_names.iter().map(|name| (self.show_machine)(name).map(version))).collect()
    }

    /// Lets the operators work for so long, and starts those anew that died or stopped.
    pub(super) async fn run_for(&mut self, span: Duration) -> Result<(), String> {
        let end = Instant::now() + span;
        loop {
            self.provide().await;
            self.report_probes().await;
            let next = end.min(Instant::now() + JUDGED);
            let ended = self.operators.iter_mut().map(|operator| {
                async {
                    tokio::select! {
                        () = operator.life.end() => Ok("died"),
                        ended = operator.work.join_next() => match ended {
                            Some(Err(error)) if error.is_panic() => Err(error.to_string()),
                            _ => Ok("stopped"),
                        },
                    }
                }
                .boxed_local()
            });
            let first = tokio::time::timeout_at(next, futures::future::select_all(ended)).await;
            let Ok((how, at)) = first.map(|(how, at, _)| (how, at)) else {
                self.judge()?;
                if next == end {
                    return Ok(());
                }
                continue;
            };
            let how = how.map_err(|why| format!("an operator panicked: {why}"))?;
            self.tell(|| format!("operator {at} {how}"));
            let pause = Duration::from_secs(self.random.u64(0..30));
            // Its lease and what it was about are left as they are; what it had begun never ends.
            self.operators[at].life.die();
            self.operators[at] = self.start(at, pause);
            self.judge()?;
        }
    }

    /// The objects of the API server.
    pub(super) fn objects(&self) -> &apiserver::verbs::Api {
        self.server.api()
    }

    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        if self.told {
            let at = self.started.elapsed().as_millis();
            self.servers.notes().trace.push(format!("{at:>9} ms {}", what()));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.server.api().stop();
    }
}

/// Two to four servers in all.
fn draw_fleet(random: &mut fastrand::Rng) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (hosts, metals, racks) = match random.u8(..5) {
        0 => (random.u32(2..5), 0, 0),
        1 => (0, random.u32(2..4), 0),
        2 => (0, 0, random.u32(2..4)),
        3 => (random.u32(1..3), random.u32(1..3), 0),
        _ => (random.u32(0..2), random.u32(0..2), random.u32(1..3)),
    };
    let named = |count: u32, word: &str| (0..count).map(|at| format!("{word}-{at}")).collect();
    (named(hosts, "server"), named(metals, "metal"), named(racks, "rack"))
}

fn show(server: &Server, (group, version): (&'static str, &'static str), plural: &'static str) -> Show {
    let objects = server.api().clone();
    Arc::new(move |name| {
        let served = objects.served(group, version, plural).ok()?;
        objects.get(&served, NAMESPACE, name).ok().map(Arc::new)
    })
}

/// Who runs on a host: whoever its anchor names, and also every machine that was named after it, whatever the host says.
fn tenant(host: Show, machine: Show, machines: Vec<String>, metals: Metals, racks: Racks) -> Tenant {
    Arc::new(move |name| {
        if let Some(tenant) = metal_judge::tenant(&metals, name) {
            return Some(tenant);
        }
        if let Some(tenant) = rack_judge::tenant(&racks, name) {
            return Some(tenant);
        }
        let host = host(name)?;
        if runs_for_its_owner(&host) {
            return Some("its owner".to_owned());
        }
        let provider = format!("b7://{NAMESPACE}/{name}");
        let runs_here = |machine: &Value| {
            machine["spec"]["providerID"] == *provider && machine["metadata"].get("deletionTimestamp").is_none()
        };
        let of_machine = || machines.iter().find(|name| machine(name).is_some_and(|machine| runs_here(&machine)));
        if asked_power(&host) == Some(false) { None } else { of_machine().cloned() }
    })
}

/// Our CRDs, and a namespace for all.
async fn furnish(client: &Client) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let dialects = api::crd::metal3_crds().into_iter().chain(api::crd::ironcore_crds());
    for definition in api::crds().into_iter().chain(dialects) {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        await_condition(definitions.clone(), &definition.name_any(), conditions::is_crd_established()).await.unwrap();
    }
}
