//! A history of operators, owners, BMCs and an API server; then calm, and everything must be well.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::beskar7::PhysicalHost;
use apiserver::server::{Config as ServerConfig, Server};
use apiserver::store::Store;
use engine::host::Anchor;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{conditions, wait::await_condition};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use sim::{Credentials, PowerState, ResetType};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::wire::{Outage, Wire};
use crate::brake::BrakeConfig;
use crate::clock::{Clock as _, TokioClock};
use crate::dialect::ANCHOR_ANNOTATION;
use crate::leader::Timing;
use crate::metrics::Metrics;
use crate::operator::{Config, Election, Operator};
use crate::simulation::fate::Life;
use crate::simulation::fleet::{Servers, Show};
use crate::simulation::play::{Outcome, effect, host};

/// How long things may take to be well once nobody makes trouble: the longest back-off, and then a deployment.
const PATIENCE: Duration = Duration::from_hours(8);
/// How long nothing may be written when all is well.
const REST: Duration = Duration::from_mins(15);
/// How long it may take until the last has been seen: hosts at rest are looked at every few minutes.
const SETTLE: Duration = Duration::from_mins(12);
const NAMESPACE: &str = "lab";
const PASSWORDS: [&str; 2] = ["password", "changed"];

/// Plays the history of a seed.
pub(super) fn play(seed: u64, told: bool) -> Outcome {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut stage = Stage::new(seed, told).await;
        let verdict = stage.play().await;
        stage.tell(|| "the end".to_owned());
        let trace = std::mem::take(&mut stage.servers.notes().trace);
        Outcome { trace, verdict, spent: stage.started.elapsed() }
    })
}

/// One operator.
struct Process {
    life: Life,
    shutdown: CancellationToken,
    work: JoinSet<()>,
}

/// What the owners know of a host.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Of the object that is there.
    uid: Option<String>,
    leaving: bool,
    claim: Option<String>,
}

struct Stage {
    random: fastrand::Rng,
    names: Vec<String>,
    server: Server,
    /// The way of everybody else to the API server. Nothing happens to it.
    admin: Client,
    wire: Wire,
    show: Show,
    servers: Servers,
    clock: TokioClock,
    started: Instant,
    elects: bool,
    operators: Vec<Process>,
    known: BTreeMap<String, Known>,
    passwords: BTreeMap<String, &'static str>,
    told: bool,
}

/// What may happen.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Claim,
    Release,
    ClaimVanishes,
    Power,
    Delete,
    Create,
    LoseStatus,
    Crash,
    StopInOrder,
    ApiFails,
    ApiCutsWatches,
    ApiRivals,
    BmcFault,
    BmcForgets,
    Password,
    Rotation,
    ByHand,
    Wait,
}

/// By how often they happen.
const TURNS: [(Turn, u32); 18] = [
    (Turn::Claim, 12),
    (Turn::Release, 6),
    (Turn::ClaimVanishes, 1),
    (Turn::Power, 3),
    (Turn::Delete, 3),
    (Turn::Create, 4),
    (Turn::LoseStatus, 2),
    (Turn::Crash, 8),
    (Turn::StopInOrder, 3),
    (Turn::ApiFails, 5),
    (Turn::ApiCutsWatches, 2),
    (Turn::ApiRivals, 3),
    (Turn::BmcFault, 7),
    (Turn::BmcForgets, 1),
    (Turn::Password, 1),
    (Turn::Rotation, 3),
    (Turn::ByHand, 2),
    (Turn::Wait, 4),
];

impl Stage {
    async fn new(seed: u64, told: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let names: Vec<String> = (0..random.u32(2..7)).map(|at| format!("server-{at}")).collect();
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
        let objects = server.api().clone();
        let show: Show = Arc::new(move |name| {
            let served = objects.served("infrastructure.cluster.x-k8s.io", "v1beta1", "physicalhosts").ok()?;
            objects.get(&served, NAMESPACE, name).ok().map(Arc::new)
        });
        let servers = Servers::new(&names, &mut random);
        let (wire, elects) = (Wire::new(server.router()), random.bool());
        let mut stage = Self {
            random,
            passwords: names.iter().map(|name| (name.clone(), PASSWORDS[0])).collect(),
            names,
            server,
            admin,
            wire,
            show,
            servers,
            clock,
            started: Instant::now(),
            elects,
            operators: Vec::new(),
            known: BTreeMap::new(),
            told,
        };
        for name in stage.names.clone() {
            stage.put_secret(&name).await;
            stage.create(&name).await;
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
                namespace: Some(NAMESPACE.to_owned()),
                watch_filter: None,
                election,
                metrics_address: None,
                probe_address: None,
                brake: BrakeConfig { disruptions_per_minute: 2, concurrent_deployments: 2, freeze: false },
                bmcs_at_once: 4,
                cluster_api: false,
                boot: None,
            },
            dial: self.servers.dial(&self.show, &life),
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
        let beginning = Duration::from_secs(self.random.u64(0..120));
        self.run_for(beginning).await?;
        for _ in 0..self.random.u32(5..20) {
            let turn = self.draw();
            let name = self.names[self.random.usize(..self.names.len())].clone();
            self.tell(|| format!("{turn:?} {name}"));
            self.turn(turn, &name).await?;
            let seconds = if self.random.bool() { self.random.u64(0..20) } else { self.random.u64(0..400) };
            self.run_for(Duration::from_secs(seconds)).await?;
        }
        self.calm_down().await;
        let deadline = Instant::now() + PATIENCE;
        while let Some(why) = self.unfinished() {
            if Instant::now() > deadline {
                return Err(format!("not well after {} h of calm: {why}", PATIENCE.as_secs() / 3600));
            }
            self.run_for(Duration::from_secs(15)).await?;
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

    fn versions(&self) -> Vec<Option<Value>> {
        let version = |name: &String| Some((self.show)(name)?["metadata"]["resourceVersion"].clone());
        self.names.iter().map(version).collect()
    }

    fn draw(&mut self) -> Turn {
        let all: u32 = TURNS.iter().map(|(_, weight)| weight).sum();
        let mut dice = self.random.u32(..all);
        for (turn, weight) in TURNS {
            match dice.checked_sub(weight) {
                Some(rest) => dice = rest,
                None => return turn,
            }
        }
        Turn::Wait
    }

    async fn turn(&mut self, turn: Turn, name: &str) -> Result<(), String> {
        match turn {
            Turn::Claim => return self.claim(name).await,
            Turn::Release => self.release(name).await,
            Turn::ClaimVanishes => self.unclaim(name).await,
            Turn::Power => {
                let wish = [Value::Null, json!(true), json!(false)][self.random.usize(..3)].clone();
                self.edit(name, json!({"spec": {"online": wish}})).await;
            }
            Turn::Delete => self.delete(name).await,
            Turn::Create => self.create(name).await,
            Turn::LoseStatus => {
                let lost = Patch::Merge(json!({"status": null}));
                self.hosts().patch_status(name, &PatchParams::default(), &lost).await.ok();
            }
            Turn::Crash => {
                let at = self.random.usize(..self.operators.len());
                let (effects, it_happens) = (self.random.u32(..12), self.random.bool());
                self.operators[at].life.condemn(effects, it_happens);
            }
            Turn::StopInOrder => {
                let at = self.random.usize(..self.operators.len());
                self.operators[at].shutdown.cancel();
            }
            Turn::ApiFails => {
                let outage = [Outage::Refused, Outage::Unavailable, Outage::AnswerLost][self.random.usize(..3)];
                let most = if self.random.bool() { 6 } else { 90 };
                let seconds = self.random.u64(1..most);
                self.tell(|| format!("  {outage:?} for {seconds} s"));
                self.wire.fail_until(Instant::now() + Duration::from_secs(seconds), outage);
                if self.random.bool() {
                    self.wire.cut_watches();
                }
            }
            Turn::ApiCutsWatches => self.wire.cut_watches(),
            Turn::ApiRivals => self.wire.interfere(self.random.u32(1..4)),
            Turn::BmcFault => {
                let fault = effect(&mut self.random).always().lasting(Duration::from_secs(self.random.u64(1..300)));
                let fault = if self.random.bool() { fault.times(self.random.u32(1..6)) } else { fault };
                self.tell(|| format!("  {fault:?}"));
                self.servers.bmc(name).faults().add(fault);
            }
            Turn::BmcForgets => self.servers.bmc(name).drop_sessions(),
            Turn::Password => self.change_password(name),
            Turn::Rotation => {
                self.change_password(name);
                let seconds = self.random.u64(0..30);
                self.run_for(Duration::from_secs(seconds)).await?;
                self.put_secret(name).await;
            }
            Turn::ByHand => {
                let bmc = self.servers.bmc(name);
                let reset = if bmc.first().power() == PowerState::On { ResetType::ForceOff } else { ResetType::On };
                let id = bmc.first().id.clone();
                bmc.by_hand(&id, reset);
            }
            Turn::Wait => {}
        }
        Ok(())
    }

    // What owners do.

    fn hosts(&self) -> Api<PhysicalHost> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    fn consumers(&self) -> Api<ConfigMap> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Two who want the same host look whether it is free, and write what they saw with their name in it.
    async fn claim(&mut self, name: &str) -> Result<(), String> {
        let iso = format!("https://192.0.2.1/{}.iso", self.random.u8(..2));
        let at = self.started.elapsed().as_millis();
        let (hosts, consumers) = (self.hosts(), self.consumers());
        let try_it = async |consumer: String| {
            let mut host = hosts.get(name).await.ok()?;
            if host.spec.consumer_ref.is_some() || host.metadata.deletion_timestamp.is_some() {
                return None;
            }
            let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": consumer}})).unwrap();
            consumers.create(&PostParams::default(), &object).await.unwrap();
            let claim = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": NAMESPACE, "name": consumer});
            host.spec.consumer_ref = serde_json::from_value(claim).unwrap();
            host.spec.boot_iso_source = Some(iso.clone());
            tokio::task::yield_now().await;
            if hosts.replace(name, &PostParams::default(), &host).await.is_ok() {
                return Some(consumer);
            }
            consumers.delete(&consumer, &DeleteParams::default()).await.unwrap();
            None
        };
        let (one, other) = tokio::join!(try_it(format!("{name}-node-{at}-a")), try_it(format!("{name}-node-{at}-b")));
        let known = self.known.entry(name.to_owned()).or_default();
        match (one, other) {
            (Some(one), Some(other)) => Err(format!("{name} was claimed by {one} and by {other}")),
            (Some(new), None) | (None, Some(new)) => match known.claim.replace(new.clone()) {
                Some(old) => Err(format!("{name} was claimed by {new} although {old} has it")),
                None => Ok(()),
            },
            (None, None) => Ok(()),
        }
    }

    /// A release in good order: the consumer goes, and with it the claim.
    async fn release(&mut self, name: &str) {
        if let Some(claim) = self.known[name].claim.clone() {
            self.consumers().delete(&claim, &DeleteParams::default()).await.ok();
            self.unclaim(name).await;
        }
    }

    async fn unclaim(&mut self, name: &str) {
        // Before: the operator may be quick.
        self.known.entry(name.to_owned()).or_default().claim = None;
        self.edit(name, json!({"spec": {"consumerRef": null, "bootIsoSource": null}})).await;
    }

    async fn edit(&self, name: &str, patch: Value) {
        let edited = self.hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        if let Err(error) = edited {
            assert!(matches!(&error, kube::Error::Api(status) if status.code == 404), "{error}");
        }
    }

    async fn delete(&mut self, name: &str) {
        if self.hosts().delete(name, &DeleteParams::default()).await.is_ok() {
            let known = self.known.entry(name.to_owned()).or_default();
            known.leaving = true;
            // No operator has met it yet, so nothing held it.
            if (self.show)(name).is_none() {
                *known = Known::default();
            }
        }
    }

    async fn create(&mut self, name: &str) {
        if (self.show)(name).is_none() {
            let object = serde_json::from_value(host(name)).unwrap();
            let host = self.hosts().create(&PostParams::default(), &object).await.unwrap();
            self.known.insert(name.to_owned(), Known { uid: host.uid(), ..Known::default() });
        }
    }

    fn change_password(&mut self, name: &str) {
        let password = PASSWORDS[self.random.usize(..2)];
        self.passwords.insert(name.to_owned(), password);
        self.servers.bmc(name).set_credentials(Credentials::new("admin", password));
    }

    /// Writes down the password that the BMC has.
    async fn put_secret(&self, name: &str) {
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"username": "admin", "password": self.passwords[name]}});
        secrets.patch(name, &PatchParams::apply("owner").force(), &Patch::Apply(secret)).await.unwrap();
    }

    /// From now on nobody makes trouble, and what only people can repair is repaired.
    async fn calm_down(&mut self) {
        self.tell(|| "calm".to_owned());
        self.wire.calm_down();
        for operator in &self.operators {
            operator.life.spare();
        }
        for name in self.names.clone() {
            self.servers.bmc(&name).faults().clear();
            self.put_secret(&name).await;
            // Whoever deletes a host that is in use is asked to release it first.
            if self.known[&name].leaving {
                self.release(&name).await;
            }
        }
        // Consumers whose claim vanished are gone too, in the end.
        for consumer in self.consumers().list_metadata(&kube::api::ListParams::default()).await.unwrap() {
            let name = consumer.name_any();
            if !self.known.values().any(|known| known.claim.as_ref() == Some(&name)) {
                self.consumers().delete(&name, &DeleteParams::default()).await.ok();
            }
        }
    }

    // What must hold.

    /// What is not as it should be yet.
    fn unfinished(&self) -> Option<String> {
        self.names.iter().find_map(|name| {
            let (host, server) = ((self.show)(name), self.servers.bmc(name).first());
            let Some(host) = host else {
                return server.media().map(|media| format!("{name} is gone and left {media} in its drive"));
            };
            let state = host["status"]["state"].as_str().unwrap_or("");
            let claimed = host["spec"].get("consumerRef").is_some();
            let wanted = if claimed { "Provisioned" } else { "Available" };
            let deleted = host["metadata"].get("deletionTimestamp").is_some();
            if deleted || state != wanted {
                let wanted = if deleted { "gone" } else { wanted };
                return Some(format!("{name} is {state}, not {wanted}: {}", host["status"]));
            }
            match (claimed, server.media()) {
                (false, Some(media)) => Some(format!("{name} is free and has {media} in its drive")),
                (true, None) if !is_adopted(&host) => Some(format!("{name} is provisioned from an empty drive")),
                _ => None,
            }
        })
    }

    /// Whether a host was hurt, lost, or given to somebody else.
    fn judge(&mut self) -> Result<(), String> {
        if let Some(crime) = self.servers.notes().crimes.first() {
            return Err(crime.clone());
        }
        for (name, known) in &mut self.known {
            let Some(uid) = &known.uid else { continue };
            let Some(host) = (self.show)(name) else {
                if !known.leaving || known.claim.is_some() {
                    return Err(format!("{name} was lost: {known:?}"));
                }
                *known = Known::default();
                continue;
            };
            let claim = host["spec"]["consumerRef"]["name"].as_str();
            if host["metadata"]["uid"] != uid.as_str() || claim != known.claim.as_deref() {
                return Err(format!("{name} is not as its owners know it: {known:?} {host}"));
            }
        }
        Ok(())
    }

    /// Lets the operators work for so long, and starts those anew that died or stopped.
    async fn run_for(&mut self, span: Duration) -> Result<(), String> {
        let end = Instant::now() + span;
        loop {
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
            let first = tokio::time::timeout_at(end, futures::future::select_all(ended)).await;
            let Ok((how, at)) = first.map(|(how, at, _)| (how, at)) else { return self.judge() };
            let how = how.map_err(|why| format!("an operator panicked: {why}"))?;
            self.tell(|| format!("operator {at} {how}"));
            let pause = Duration::from_secs(self.random.u64(0..30));
            // Its lease and what it was about are left as they are; what it had begun never ends.
            self.operators[at].life.die();
            self.operators[at] = self.start(at, pause);
            self.judge()?;
        }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
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

/// Whether it was claimed before an operator had met it.
fn is_adopted(host: &Value) -> bool {
    let anchor = host["metadata"]["annotations"][ANCHOR_ANNOTATION].as_str().and_then(|text| Anchor::parse(text).ok());
    anchor.is_some_and(|anchor| anchor.adopted)
}

/// Our CRDs, and a namespace for all.
async fn furnish(client: &Client) {
    let namespace: Namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in api::crds() {
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        await_condition(definitions.clone(), &definition.name_any(), conditions::is_crd_established()).await.unwrap();
    }
}
