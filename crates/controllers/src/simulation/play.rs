//! A history: owners, operators' mishaps and BMCs' moods, by the dice of a seed; then calm, and everything must be well.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::beskar7::conditions::ORDER_IN_EFFECT;
use api::beskar7::{PhysicalHost, names};
use api::capi::Condition;
use engine::hardware::Part;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::{self, store::Writer};
use kube::runtime::watcher::Event;
use serde::Deserialize as _;
use serde_json::{Value, json};
use sim::{Credentials, Effect, Fault, Kind, PowerState, ResetType};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::fate::Life;
use super::fleet::{Informants, Servers, Tenant, record, runs_for_its_owner};
use super::model::Model;
use crate::beskar7::PhysicalHosts;
use crate::brake::{Brake, BrakeConfig};
use crate::clock::{Clock as _, TokioClock};
use crate::hands::Hands;
use crate::herald::Herald;
use crate::host::HostLoop;
use crate::metrics::Metrics;
use crate::object::ObjectId;
use crate::vault::Vault;

/// How long things may take to be well once nobody makes trouble: the longest back-off, and then a deployment.
const PATIENCE: Duration = Duration::from_hours(8);
/// How long nothing may be written when all is well.
const REST: Duration = Duration::from_mins(15);
/// How long it may take until the last has been seen: hosts at rest are looked at every few minutes.
const SETTLE: Duration = Duration::from_mins(12);

/// What became of a history.
pub(super) struct Outcome {
    pub(super) trace: Vec<String>,
    pub(super) verdict: Result<(), String>,
    /// How much time went by in it.
    pub(super) spent: Duration,
}

/// Plays the history of a seed.
pub(super) fn play(seed: u64, told: bool) -> Outcome {
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut stage = Stage::new(seed, told);
        let verdict = stage.play().await;
        let trace = std::mem::take(&mut stage.servers.notes().trace);
        Outcome { trace, verdict, spent: stage.started.elapsed() }
    })
}

/// The operator's process.
struct Process {
    life: Life,
    hosts: Arc<HostLoop<PhysicalHosts>>,
    woken: mpsc::UnboundedReceiver<ObjectId>,
    secrets: Writer<PartialObjectMeta<Secret>>,
    stop: CancellationToken,
    /// When each host is looked at next.
    due: BTreeMap<String, Instant>,
    /// What the watch showed, and how it was read.
    known: BTreeMap<String, (Arc<Value>, Arc<PhysicalHost>)>,
}

struct Stage {
    random: fastrand::Rng,
    names: Vec<String>,
    model: Model,
    servers: Servers,
    clock: TokioClock,
    started: Instant,
    process: Process,
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
    ApiFails,
    ApiRivals,
    BmcFault,
    BmcForgets,
    Password,
    ByHand,
    Pause,
    Wait,
}

/// By how often they happen.
const TURNS: [(Turn, u32); 16] = [
    (Turn::Claim, 9),
    (Turn::Release, 5),
    (Turn::ClaimVanishes, 1),
    (Turn::Power, 3),
    (Turn::Delete, 2),
    (Turn::Create, 3),
    (Turn::LoseStatus, 2),
    (Turn::Crash, 8),
    (Turn::ApiFails, 3),
    (Turn::ApiRivals, 3),
    (Turn::BmcFault, 7),
    (Turn::BmcForgets, 1),
    (Turn::Password, 1),
    (Turn::ByHand, 2),
    (Turn::Pause, 2),
    (Turn::Wait, 4),
];

impl Stage {
    fn new(seed: u64, told: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let hosts = [1, 1, 1, 1, 1, 2, 2, 3][random.usize(..8)];
        let names: Vec<String> = (0..hosts).map(|at| format!("server-{at}")).collect();
        let shares = names.len() > 1 && random.bool();
        let servers =
            if shares { Servers::with_neighbours(&names, &mut random) } else { Servers::new(&names, &mut random) };
        let model = Model::default();
        let clock = TokioClock::starting_at("2026-11-16T08:00:00Z".parse().unwrap());
        for name in &names {
            put_secret(&model, name, "password");
            model.put_host(name, servers.host(name));
        }
        let process = Process::start(&names, &model, &servers, clock);
        Self { random, names, model, servers, clock, started: Instant::now(), process, told }
    }

    async fn play(&mut self) -> Result<(), String> {
        let beginning = Duration::from_secs(self.random.u64(0..120));
        self.run_for(beginning).await;
        for _ in 0..self.random.u32(3..11) {
            let turn = self.draw();
            let name = self.names[self.random.usize(..self.names.len())].clone();
            self.tell(|| format!("{turn:?} {name}"));
            self.turn(turn, &name);
            let seconds = if self.random.bool() { self.random.u64(0..20) } else { self.random.u64(0..400) };
            self.run_for(Duration::from_secs(seconds)).await;
            self.judge()?;
        }
        self.calm_down();
        let deadline = Instant::now() + PATIENCE;
        while let Some(why) = self.unfinished() {
            if Instant::now() > deadline {
                return Err(format!("not well after {} h of calm: {why}", PATIENCE.as_secs() / 3600));
            }
            self.heed_faults();
            self.run_for(Duration::from_secs(15)).await;
            self.judge()?;
        }
        // Whoever waits for a drive looks for it from time to time.
        let waits = self.names.iter().any(|name| self.waits_for_drive(name));
        if self.random.u8(..4) == 0 && !waits { self.rest().await } else { Ok(()) }
    }

    /// Whoever is well is left in peace.
    async fn rest(&mut self) -> Result<(), String> {
        self.run_for(SETTLE).await;
        let (writes, requests) = (self.model.writes(), self.requests());
        self.run_for(REST).await;
        self.judge()?;
        let hosts = self.names.iter().filter(|name| self.model.host(name).is_some()).count() as u64;
        let most = hosts * 3 * REST.as_secs() / 60;
        match (self.model.writes() - writes, self.requests() - requests, self.unfinished()) {
            (.., Some(why)) => Err(format!("it was well, and then no more: {why}")),
            (0, asked, None) if asked <= most => Ok(()),
            (0, asked, None) => Err(format!("{asked} requests to BMCs at rest")),
            (written, ..) => Err(format!("{written} writes at rest, at last {}", self.model.last_write())),
        }
    }

    fn requests(&self) -> u64 {
        self.servers.all().map(|bmc| bmc.counters().total()).sum()
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

    fn turn(&mut self, turn: Turn, name: &str) {
        let random = &mut self.random;
        match turn {
            Turn::Claim => {
                // Machines bear the id of their claim; people who claim by hand have none.
                let machine = random.bool().then(|| format!("{:x}", random.u64(..)));
                let consumer = consumers(name)[random.usize(..2) + if machine.is_some() { 2 } else { 0 }].clone();
                let iso = format!("https://192.0.2.1/{}.iso", random.u8(..2));
                let (by_network, every_start) = (random.bool(), random.bool());
                // Whoever claims looks whether the host is free, in the same write.
                let mut claimed = false;
                self.model.edit_host(name, |host| {
                    if host["spec"].get("consumerRef").is_none() && host["metadata"].get("deletionTimestamp").is_none() {
                        claimed = true;
                        host["spec"]["consumerRef"] = json!({"apiVersion": "sim.cluster.x-k8s.io/v1", "kind": "Consumer", "namespace": "lab", "name": consumer});
                        if by_network {
                            host["spec"]["networkBoot"] = json!({"protocol": "PXE"});
                        } else {
                            host["spec"]["bootIsoSource"] = json!(iso);
                        }
                        host["spec"]["bootEveryStart"] = json!(every_start);
                        if let Some(id) = &machine {
                            host["metadata"]["annotations"][names::CLAIM_ID] = json!(id);
                        }
                    }
                });
                if claimed {
                    self.model.put_consumer(&consumer, machine.as_deref());
                }
            }
            Turn::Release => self.release(name),
            Turn::ClaimVanishes => {
                self.model.edit_host(name, unclaim);
            }
            Turn::Power => {
                let wish = [None, Some(true), Some(false)][random.usize(..3)];
                let id = random.bool().then(|| format!("{:x}", random.u64(..)));
                self.servers.ask_power(name);
                self.model.edit_host(name, |host| {
                    match wish {
                        Some(wish) => host["spec"]["online"] = json!(wish),
                        None => drop(host["spec"].as_object_mut().and_then(|spec| spec.remove("online"))),
                    }
                    if let Some(id) = id {
                        host["metadata"]["annotations"][names::POWER_REQUEST] = json!(id);
                    }
                });
            }
            Turn::Delete => {
                let now = self.clock.now().to_string();
                self.model.edit_host(name, |host| {
                    let metadata = host["metadata"].as_object_mut().unwrap();
                    metadata.entry("deletionTimestamp").or_insert(json!(now));
                });
            }
            Turn::Create => self.create(name),
            Turn::LoseStatus => {
                self.model.edit_host(name, |host| drop(host.as_object_mut().unwrap().remove("status")));
            }
            Turn::Crash => self.process.life.condemn(random.u32(..12), random.bool()),
            Turn::ApiFails => self.model.fail_writes(random.u32(1..6), random.bool()),
            Turn::ApiRivals => self.model.interfere(random.u32(1..4)),
            Turn::BmcFault => {
                let fault = if random.u8(..4) == 0 { partial(random) } else { effect(random).always() };
                let fault = fault.lasting(Duration::from_secs(random.u64(1..300)));
                let fault = if random.bool() { fault.times(random.u32(1..6)) } else { fault };
                self.servers.notes().trace.push(format!("  {fault:?}"));
                self.servers.bmc(name).faults().add(fault);
            }
            Turn::BmcForgets => self.servers.bmc(name).drop_sessions(),
            Turn::Password => {
                self.servers.bmc(name).set_credentials(Credentials::new("admin", "changed"));
            }
            Turn::ByHand => {
                let is_on = self.servers.server(name).power() == PowerState::On;
                self.servers.press(name, if is_on { ResetType::ForceOff } else { ResetType::On });
            }
            Turn::Pause => {
                let paused = random.bool();
                if let Some(consumer) = self.consumer(name) {
                    self.model.pause_consumer(&consumer, paused);
                }
            }
            Turn::Wait => {}
        }
    }

    /// A release in good order: the consumer goes, and with it the claim.
    fn release(&self, name: &str) {
        if let Some(consumer) = self.consumer(name) {
            self.model.remove_consumer(&consumer);
            self.model.edit_host(name, unclaim);
        }
    }

    fn consumer(&self, name: &str) -> Option<String> {
        Some(self.model.host(name)?["spec"]["consumerRef"]["name"].as_str()?.to_owned())
    }

    fn create(&self, name: &str) {
        if self.model.host(name).is_none() {
            self.model.put_host(name, self.servers.host(name));
        }
    }

    /// From now on nobody makes trouble, and what only people can repair is repaired.
    fn calm_down(&mut self) {
        self.tell(|| "calm".to_owned());
        self.process.life.spare();
        self.model.calm_down();
        for name in &self.names {
            self.servers.bmc(name).faults().clear();
            self.servers.bmc(name).set_credentials(Credentials::new("admin", "password"));
            put_secret(&self.model, name, "password");
        }
        for name in self.names.clone() {
            let host = self.model.host(&name);
            // Whoever deletes a host that is in use is asked to release it first.
            if host.is_some_and(|host| host["metadata"].get("deletionTimestamp").is_some()) {
                self.release(&name);
            }
            // Consumers whose claim vanished are gone too, in the end.
            for consumer in consumers(&name) {
                if self.consumer(&name).as_ref() == Some(&consumer) {
                    self.model.pause_consumer(&consumer, false);
                } else {
                    self.model.remove_consumer(&consumer);
                }
            }
        }
        self.process.hear_of_secrets(&self.names, &self.model);
    }

    /// A server that did not boot what was ordered is restarted by its owner alone, and only its owner lets a machine have it while
    /// it runs: the messages say how.
    fn heed_faults(&self) {
        for name in &self.names {
            let Some(host) = self.model.host(name) else { continue };
            let asked = host["metadata"]["annotations"].get(names::REBOOT).is_some();
            let fault = &host["status"]["fault"]["reason"];
            if fault == "ServerRunning" && host["spec"]["claimableWhileRunning"] != true {
                self.tell(|| format!("its owner lets a machine have {name}"));
                self.model.edit_host(name, |host| host["spec"]["claimableWhileRunning"] = json!(true));
            }
            if fault == "BootIgnored" && !asked {
                self.tell(|| format!("its owner restarts {name}"));
                self.model
                    .edit_host(name, |host| host["metadata"]["annotations"][names::REBOOT] = json!("by its owner"));
            }
        }
    }

    /// What an inventory lacks without saying so.
    fn silent_gap(&self, name: &str) -> Option<String> {
        let (host, hardware) = (self.model.host(name)?, self.servers.hardware(name));
        let record = record(&host).filter(|record| record.inspected)?;
        let parts = [
            ("processors", usize::from(hardware.cpus), Part::Processors),
            ("memoryModules", usize::from(hardware.dimms), Part::Memory),
            ("drives", hardware.disks.len(), Part::Drives),
            ("nics", hardware.macs.len(), Part::Nics),
        ];
        let is_told = |part| record.unread.as_ref().is_some_and(|unread| unread.parts.contains(&part));
        let silent = parts.into_iter().find(|(list, most, part)| count(&host, list) < *most && !is_told(*part));
        silent
            .map(|(list, ..)| format!("{name} lacks {list} and does not say so: {}", host["status"]["hardwareDetails"]))
    }

    /// Whether the drive of a server is in use by its neighbour, which runs from it.
    fn lends_its_drive(&self, name: &str) -> bool {
        let Some(neighbour) = self.servers.neighbour(name) else { return false };
        // Also one whose order was changed afterwards: what it runs stays in the drive.
        let runs = |host: &Value| runs_from_image(host) || self.servers.runs_from_drive(neighbour);
        self.model.host(neighbour).is_some_and(|host| host["status"]["state"] == "Provisioned" && runs(&host))
    }

    /// Whether a host rightly waits for the drive that it shares.
    fn waits_for_drive(&self, name: &str) -> bool {
        let is_refused = |host: Arc<Value>| host["status"]["fault"]["reason"] == "MediaRefused";
        self.model.host(name).is_some_and(is_refused) && self.lends_its_drive(name)
    }

    /// What is not as it should be yet.
    fn unfinished(&self) -> Option<String> {
        self.names.iter().find_map(|name| {
            let (host, server) = (self.model.host(name), self.servers.server(name));
            let medium = server.media().filter(|_| !self.lends_its_drive(name));
            let Some(host) = host else {
                return medium.map(|media| format!("{name} is gone and left {media} in its drive"));
            };
            if self.waits_for_drive(name) && host["metadata"].get("deletionTimestamp").is_none() {
                return None;
            }
            if let Some(unread) = record(&host).and_then(|record| record.unread) {
                return Some(format!("{name} was read in part only: {unread:?}"));
            }
            let state = host["status"]["state"].as_str().unwrap_or("");
            let claimed = host["spec"].get("consumerRef").is_some();
            let wanted = if claimed { "Provisioned" } else { "Available" };
            let deleted = host["metadata"].get("deletionTimestamp").is_some();
            if deleted || state != wanted {
                let status = |what: &str| host["status"][what].to_string();
                return Some(format!(
                    "{name} is {state}, not {}: fault {}, waiting {}",
                    if deleted { "gone" } else { wanted },
                    status("fault"),
                    status("waiting")
                ));
            }
            if let Some(media) = medium.filter(|_| !claimed) {
                return Some(format!("{name} is free and has {media} in its drive"));
            }
            let is_empty = claimed && runs_from_image(&host) && server.media().is_none();
            is_empty.then(|| format!("{name} is provisioned from an empty drive"))
        })
    }

    fn judge(&self) -> Result<(), String> {
        if let Some(crime) = self.servers.notes().crimes.first() {
            return Err(crime.clone());
        }
        self.names.iter().find_map(|name| self.silent_gap(name)).map_or(Ok(()), Err)
    }

    /// Lets the operator work for so long, and starts it anew whenever it died.
    async fn run_for(&mut self, span: Duration) {
        let end = Instant::now() + span;
        while self.process.work_until(end, &self.model).await.is_err() {
            self.tell(|| "the operator died".to_owned());
            self.process.stop.cancel();
            self.process = Process::start(&self.names, &self.model, &self.servers, self.clock);
        }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.told {
            let at = self.started.elapsed().as_millis();
            self.servers.notes().trace.push(format!("{at:>9} ms {}", what()));
        }
    }
}

/// The process is dead.
struct Died;

impl Process {
    fn start(names: &[String], model: &Model, servers: &Servers, clock: TokioClock) -> Self {
        let (life, stop) = (Life::default(), CancellationToken::new());
        let client = model.client(&life);
        let (wake, woken) = mpsc::unbounded_channel();
        let (known, secrets) = reflector::store();
        let mut vault = Vault::new(client.clone());
        vault.keep(known);
        let clock: Arc<dyn crate::clock::Clock> = Arc::new(clock);
        let metrics = Metrics::default();
        let hosts = model.clone();
        let tenant: Tenant = Arc::new(move |name| {
            hosts.host(name).is_some_and(|host| runs_for_its_owner(&host)).then(|| "its owner".to_owned())
        });
        let hosts = model.clone();
        let informants = Informants { tenant, host: Arc::new(move |name| hosts.host(name)), ..Informants::nobody() };
        let dial = servers.dial(&informants, &life);
        let hands = Hands::new(dial, Arc::new(metrics.clone()), metrics.clone(), clock.clone(), 4, wake, &stop);
        let brake = BrakeConfig { disruptions_per_minute: 2, concurrent_deployments: 2, freeze: false };
        let herald = Arc::new(Herald::new(client.clone()));
        let marks = crate::marks::Marks::new(vault.clone(), Arc::default(), herald.clone(), metrics.clone(), "beskar7");
        let hosts = Arc::new(HostLoop::<PhysicalHosts> {
            herald,
            marks,
            writer: crate::writer::Writer::new(
                client.clone(),
                metrics.clone(),
                "beskar7",
                <PhysicalHosts as crate::dialect::HostDialect>::OURS,
            ),
            client: client.clone(),
            index: Arc::default(),
            dependents: Arc::default(),
            related: crate::relatives::Related::default(),
            companions: crate::companions::Companions::new(client.clone(), metrics.clone(), "beskar7", "beskar7"),
            vault,
            hands,
            brake: Arc::new(Brake::new(brake)),
            clock,
            metrics,
            roster: Arc::default(),
            cluster_api: true,
            depot: None,
            sessions: Arc::default(),
            settings: Arc::default(),
        });
        let due = names.iter().map(|name| (name.clone(), Instant::now())).collect();
        let mut process = Self { life, hosts, woken, secrets, stop, due, known: BTreeMap::new() };
        process.hear_of_secrets(names, model);
        process
    }

    /// As the watch of Secrets does.
    fn hear_of_secrets(&mut self, names: &[String], model: &Model) {
        self.secrets.apply_watcher_event(&Event::Init);
        for secret in names.iter().filter_map(|name| model.secret(name)) {
            let secret: PartialObjectMeta<Secret> =
                serde_json::from_value(json!({"metadata": secret["metadata"]})).unwrap();
            self.secrets.apply_watcher_event(&Event::InitApply(secret));
        }
        self.secrets.apply_watcher_event(&Event::InitDone);
        for name in names {
            self.due.insert(name.clone(), Instant::now());
        }
    }

    /// As the watch of hosts does.
    fn read(&mut self, name: &str, object: &Arc<Value>) -> Arc<PhysicalHost> {
        if let Some((seen, host)) = self.known.get(name)
            && Arc::ptr_eq(seen, object)
        {
            return host.clone();
        }
        let host = Arc::new(PhysicalHost::deserialize(object.as_ref()).unwrap());
        self.forget(name, Some(&ObjectId::of(host.as_ref())));
        self.hosts.index.put::<PhysicalHosts>(&crate::dialect::View::alone(&host));
        self.hosts.welcome(&ObjectId::of(host.as_ref()));
        self.known.insert(name.to_owned(), (object.clone(), host.clone()));
        host
    }

    /// As the watch of hosts does when one is gone, or another has taken its name.
    fn forget(&mut self, name: &str, new: Option<&ObjectId>) {
        let old = self.known.remove(name).map(|(_, host)| ObjectId::of(host.as_ref()));
        if let Some(old) = old.filter(|old| new != Some(old)) {
            self.hosts.index.remove(&old);
            self.hosts.forget(&old);
        }
    }

    /// As kube's controller does, but one host after the other and in an order that follows from the seed.
    async fn work_until(&mut self, end: Instant, model: &Model) -> Result<(), Died> {
        loop {
            for name in model.changed() {
                self.due.insert(name, Instant::now());
            }
            while let Ok(key) = self.woken.try_recv() {
                self.due.insert(key.name, Instant::now());
            }
            if self.life.is_dead() {
                return Err(Died);
            }
            let next = self.due.iter().min_by_key(|(_, at)| **at).map(|(name, at)| (name.clone(), *at));
            let until = next.as_ref().map_or(end, |(_, at)| (*at).min(end));
            if until > Instant::now() {
                let woken = self.life.survive(tokio::time::timeout_at(until, self.woken.recv())).await.ok_or(Died)?;
                if let Ok(Some(key)) = woken {
                    self.due.insert(key.name, Instant::now());
                } else if until == end {
                    return Ok(());
                }
                continue;
            }
            match next {
                Some((name, at)) if at <= Instant::now() => self.reconcile(&name, model).await?,
                _ => return Ok(()),
            }
        }
    }

    async fn reconcile(&mut self, name: &str, model: &Model) -> Result<(), Died> {
        self.due.remove(name);
        let Some(object) = model.host(name) else {
            self.forget(name, None);
            return Ok(());
        };
        let host = self.read(name, &object);
        let decided = self.life.survive(self.hosts.decide(host)).await.ok_or(Died)?;
        let again = match decided {
            Ok(again) => again,
            Err(error) => Some(error.pause()),
        };
        if let Some(again) = again {
            self.due.insert(name.to_owned(), Instant::now() + again);
        }
        Ok(())
    }
}

pub(super) fn host(name: &str) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "PhysicalHost",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": {"redfishConnection": {"address": format!("https://{name}"), "credentialsSecretRef": name}},
    })
}

fn put_secret(model: &Model, name: &str, password: &str) {
    let data = json!({"username": "YWRtaW4=", "password": if password == "password" { "cGFzc3dvcmQ=" } else { "Y2hhbmdlZA==" }});
    model.put_secret(
        name,
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "lab"}, "data": data}),
    );
}

/// Whether what runs was booted from the image that is ordered.
pub(super) fn runs_from_image(host: &Value) -> bool {
    let conditions = host["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_other = conditions.iter().any(|it| it["type"] == ORDER_IN_EFFECT && it["status"] == Condition::FALSE);
    host["spec"].get("bootIsoSource").is_some() && !is_other
}

/// How many there are of a part in the inventory of a host.
fn count(host: &Value, part: &str) -> usize {
    host["status"]["hardwareDetails"][part].as_array().map_or(0, Vec::len)
}

/// Who may claim a host: two people by hand, and two machines.
fn consumers(host: &str) -> [String; 4] {
    ["node-0", "node-1", "machine-0", "machine-1"].map(|name| format!("{host}-{name}"))
}

fn unclaim(host: &mut Value) {
    host["metadata"]["annotations"].as_object_mut().map(|annotations| annotations.remove(names::CLAIM_ID));
    let spec = host["spec"].as_object_mut().unwrap();
    spec.remove("consumerRef");
    spec.remove("bootIsoSource");
    spec.remove("networkBoot");
    spec.remove("bootEveryStart");
}

/// What an inventory can be taken without.
const PARTS: [Kind; 6] = [
    Kind::Processors,
    Kind::MemoryCollection,
    Kind::StorageCollection,
    Kind::EthernetInterfaces,
    Kind::FirmwareInventory,
    Kind::Manager,
];

/// One part of a server cannot be read.
fn partial(random: &mut fastrand::Rng) -> Fault {
    let effect = match random.u32(..5) {
        0 => Effect::Latency(Duration::from_secs(random.u64(1..90))),
        1 => Effect::Status { code: 503, body: sim::FaultBody::default() },
        2 => Effect::Status { code: 500, body: sim::FaultBody::Html },
        3 => Effect::Drop,
        _ => Effect::Hang,
    };
    effect.always().kind(PARTS[random.usize(..PARTS.len())])
}

pub(super) fn effect(random: &mut fastrand::Rng) -> Effect {
    let span = Duration::from_secs(random.u64(1..90));
    match random.u32(..24) {
        0 => Effect::Latency(span),
        1 => Effect::Status { code: 503, body: sim::FaultBody::default() },
        2 => Effect::Refuse,
        3 => Effect::Drop,
        4 => Effect::DropAnswer,
        5 => Effect::Hang,
        6 => Effect::SessionLimit(0),
        7 => Effect::StalePower(span),
        8 => Effect::NoPower,
        9 => Effect::RestAfterOff(span),
        10 => Effect::SlowPower(span),
        11 => Effect::IgnoresReset,
        12 => Effect::IgnoresBootOverride,
        13 => Effect::ShowsUsedOverride,
        14 => Effect::Unreadable(span),
        15 => Effect::StatusAfter { code: 503, body: sim::FaultBody::default() },
        16 => Effect::ShowsImage(sim::ImageName::WithPort),
        17 => Effect::ShowsNone,
        18 => Effect::RefusesMedia("no licence".to_owned()),
        19 => Effect::Garbles,
        20 => Effect::RepeatsMembers,
        21 => Effect::TurnsUuid,
        22 => Effect::RemoteMediaDisabled { offers_action: random.bool() },
        _ => Effect::IgnoresMedia,
    }
}

#[cfg(test)]
mod tests;
