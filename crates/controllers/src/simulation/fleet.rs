//! The servers, and a watchman beside the line to each BMC who sees every change before it is made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::beskar7::names;
use bmc::{Fingerprint, Transport, TransportError};
use bytes::Bytes;
use engine::host::{Anchor, Deed, Milestone, PowerRequest, Record, Since};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use sim::personality::MediaPlace;
use sim::{Bmc, BmcSpec, BootSource, Dropped, Hardware, Kind, Personality, ResetType, Server, Timing};

use super::fate::Life;
use super::play::host;
use crate::dialect::ANCHOR_ANNOTATION;
use crate::hands::Dial;

/// Tells who would be hurt if somebody took the power or the disk of a host's server away.
pub(super) type Tenant = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// All servers by the name of their host, and what was done to them.
#[derive(Clone, Default)]
pub(super) struct Servers {
    places: Arc<BTreeMap<String, Place>>,
    notes: Arc<Mutex<Notes>>,
}

/// Where a server is.
struct Place {
    bmc: Bmc,
    hardware: Hardware,
    /// Its id behind that BMC.
    system: String,
    /// The host of the other server behind that BMC: they share its drives.
    neighbour: Option<String>,
}

#[derive(Default)]
pub(super) struct Notes {
    /// What was changed, in order.
    pub(super) trace: Vec<String>,
    /// Changes that should never have been made.
    pub(super) crimes: Vec<String>,
    /// What the BMC of each host said last of the power while nothing had been done for a machine's claim on it, until something
    /// is done.
    found: BTreeMap<String, String>,
}

/// What placement and the host's own loop see to.
pub(super) const PASSED_OVER: &str = "no machine takes a server that runs although nobody asked for it";

/// Shows a host as the API server has it.
pub(super) type Show = Arc<dyn Fn(&str) -> Option<Arc<Value>> + Send + Sync>;

/// What the watchmen are told.
#[derive(Clone)]
pub(super) struct Informants {
    /// Who would be hurt.
    pub(super) tenant: Tenant,
    /// A host as the API server has it.
    pub(super) host: Show,
    /// Why nobody may do anything to the server of a host, if so.
    pub(super) barred: Tenant,
}

impl Informants {
    /// Know nothing.
    pub(super) fn nobody() -> Self {
        Self { tenant: Arc::new(|_| None), host: Arc::new(|_| None), barred: Arc::new(|_| None) }
    }
}

impl Servers {
    /// Each has a BMC of its own.
    pub(super) fn new(names: &[String], random: &mut fastrand::Rng) -> Self {
        Self::arranged(names.iter().map(std::slice::from_ref), random)
    }

    /// The first two are behind one BMC and share its virtual CD drive.
    pub(super) fn with_neighbours(names: &[String], random: &mut fastrand::Rng) -> Self {
        let (pair, others) = names.split_at(2);
        Self::arranged(std::iter::once(pair).chain(others.iter().map(std::slice::from_ref)), random)
    }

    /// All are behind the BMC of the first, and do at once what they are told to.
    pub(super) fn behind_one(names: &[String], random: &mut fastrand::Rng) -> Self {
        let servers = Self::arranged(std::iter::once(names), random);
        servers.bmc(&names[0]).set_timing(Timing::INSTANT);
        servers
    }

    fn arranged<'a>(groups: impl Iterator<Item = &'a [String]>, random: &mut fastrand::Rng) -> Self {
        let mut places = BTreeMap::new();
        for group in groups {
            let mut all = Personality::all();
            all.retain(|personality| group.len() == 1 || personality.media.place != MediaPlace::System);
            let personality = all[random.usize(..all.len())].clone();
            let seconds = |random: &mut fastrand::Rng, most| Duration::from_secs(random.u64(0..=most));
            let timing = Timing {
                power_on: seconds(random, 4),
                power_off: seconds(random, 8),
                shutdown: seconds(random, 40),
                post: seconds(random, 90),
            };
            let seed = random.u64(..);
            let mut hardware = Vec::new();
            for at in (0..).take(group.len()) {
                let mut server = Hardware::invent(&personality, seed, at);
                // What is in it does not matter here, and costs time.
                server.dimms = 1;
                server.disks.truncate(1);
                server.macs.truncate(1);
                hardware.push(server);
            }
            let spec = BmcSpec { name: group[0].clone(), seed, hardware, timing, ..BmcSpec::new(personality) };
            let bmc = Bmc::new(spec.clone());
            for ((name, hardware), server) in group.iter().zip(spec.hardware).zip(bmc.servers()) {
                let neighbour = group.iter().find(|other| *other != name).cloned();
                places.insert(name.clone(), Place { bmc: bmc.clone(), hardware, system: server.id, neighbour });
            }
        }
        Self { places: Arc::new(places), notes: Arc::default() }
    }

    pub(super) fn memory_gib(&self, name: &str) -> u32 {
        self.hardware(name).memory_gib()
    }

    /// What the server of a host is made of.
    pub(super) fn hardware(&self, name: &str) -> &Hardware {
        &self.places[name].hardware
    }

    pub(super) fn bmc(&self, name: &str) -> &Bmc {
        &self.places[name].bmc
    }

    /// The truth about the server of a host.
    pub(super) fn server(&self, name: &str) -> Server {
        let place = &self.places[name];
        place.bmc.server(&place.system).unwrap()
    }

    /// The host whose server shares the drives of this one.
    pub(super) fn neighbour(&self, name: &str) -> Option<&str> {
        self.places[name].neighbour.as_deref()
    }

    /// Whether what a server runs was booted from what is in its drive now.
    pub(super) fn runs_from_drive(&self, name: &str) -> bool {
        let server = self.server(name);
        let medium = server.media().map(|image| BootSource::Cd(image.to_owned()));
        medium.is_some() && server.booted.as_ref().map(|boot| &boot.from) == medium.as_ref()
    }

    /// Somebody in front of the rack.
    pub(super) fn press(&self, name: &str, reset: ResetType) {
        let place = &self.places[name];
        place.bmc.by_hand(&place.system, reset);
    }

    /// Somebody asks for another power, or for none: what was found before does not count any more.
    pub(super) fn ask_power(&self, name: &str) {
        self.notes().found.remove(name);
    }

    /// The host of a server, as its owner describes it.
    pub(super) fn host(&self, name: &str) -> Value {
        let mut host = host(name);
        if self.neighbour(name).is_some() {
            host["spec"]["redfishConnection"]["systemID"] = Value::from(self.places[name].system.as_str());
        }
        host
    }

    /// Each BMC once.
    pub(super) fn all(&self) -> impl Iterator<Item = &Bmc> {
        self.places.iter().filter(|(name, place)| place.bmc.name() == name.as_str()).map(|(_, place)| &place.bmc)
    }

    pub(super) fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }

    /// The lines of one process.
    pub(super) fn dial(&self, informants: &Informants, life: &Life) -> Dial {
        let (servers, informants, life) = (self.clone(), informants.clone(), life.clone());
        Arc::new(move |address, _| {
            let name = address.host().to_owned();
            let line = Line {
                bmc: servers.bmc(&name).clone(),
                name,
                servers: servers.clone(),
                informants: informants.clone(),
                life: life.clone(),
            };
            Ok(Arc::new(line) as Arc<dyn Transport>)
        })
    }
}

struct Line {
    name: String,
    bmc: Bmc,
    servers: Servers,
    informants: Informants,
    life: Life,
}

impl Transport for Line {
    fn send(&self, request: http::Request<Bytes>) -> BoxFuture<'_, Result<http::Response<Bytes>, TransportError>> {
        let work = async move {
            self.look_at(&request);
            let is_look = request.method() == http::Method::GET && self.is_of_server(request.uri().path());
            let answer = self.bmc.call(request).await.map_err(|dropped| match dropped {
                Dropped::Refused => TransportError::Connect(dropped.to_string()),
                Dropped::Reset => TransportError::Broken(dropped.to_string()),
            })?;
            if is_look {
                self.note_power(&answer);
            }
            Ok(answer)
        };
        self.life.effect(work).boxed()
    }

    fn certificate(&self) -> Option<Fingerprint> {
        None
    }
}

impl Line {
    /// A running node belongs to its owner: nobody takes its power or its disk away, whatever happened to us.
    fn look_at(&self, request: &http::Request<Bytes>) {
        if request.method() == http::Method::GET {
            return;
        }
        let kind = Kind::of(request.uri().path());
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let what = match kind {
            Kind::Reset => body["ResetType"].as_str().unwrap_or("Reset").to_owned(),
            Kind::InsertMedia | Kind::EjectMedia => format!("{kind:?}"),
            Kind::System | Kind::SystemSettings | Kind::VirtualMedia | Kind::Bios | Kind::BiosSettings => {
                format!("{} {kind:?}", request.method())
            }
            _ => return,
        };
        let harmless = ["On", "ForceOn"].contains(&what.as_str())
            || matches!(kind, Kind::System | Kind::SystemSettings | Kind::Bios | Kind::BiosSettings);
        let mut notes = self.servers.notes();
        notes.trace.push(format!("  {}: {what}", self.name));
        if let Some(why) = (self.informants.barred)(&self.name) {
            notes.crimes.push(format!("{what} at {}, which is {why}", self.name));
        }
        if !harmless && let Some(tenant) = (self.informants.tenant)(&self.name) {
            notes.crimes.push(format!("{what} at {}, which runs for {tenant}", self.name));
        }
        let ejects = kind == Kind::EjectMedia || (kind == Kind::VirtualMedia && body["Image"].is_null());
        if ejects && let Some(neighbour) = self.neighbour_on_medium() {
            notes.crimes.push(format!("{what} by {}, although {neighbour} runs from what is in the drive", self.name));
        }
        let found_running = notes.found.remove(&self.name).as_deref() == Some("On");
        if kind == Kind::Reset && !harmless && found_running && self.untouched_by_machine().is_some() {
            notes.crimes.push(format!("{what} at {}: {PASSED_OVER}", self.name));
        }
    }

    /// Whether this is the resource of the server itself, not that of its neighbour.
    fn is_of_server(&self, path: &str) -> bool {
        Kind::of(path) == Kind::System && path.trim_end_matches('/').ends_with(&self.servers.places[&self.name].system)
    }

    /// Another host whose server runs for its owner from what is in the drive that the two share.
    fn neighbour_on_medium(&self) -> Option<&str> {
        let neighbour = self.servers.neighbour(&self.name)?;
        (self.servers.runs_from_drive(neighbour) && (self.informants.tenant)(neighbour).is_some()).then_some(neighbour)
    }

    /// Remembers the power that was shown after a machine had claimed a server that it may not take while it runs, until something is
    /// done for that machine. Who acts may look once more, so later looks change nothing.
    fn note_power(&self, answer: &http::Response<Bytes>) {
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        let untouched = self.untouched_by_machine();
        let mut notes = self.servers.notes();
        match (untouched, body["PowerState"].as_str()) {
            (Some(true), Some(shown)) => drop(notes.found.insert(self.name.clone(), shown.to_owned())),
            (Some(_), _) => {}
            (None, _) => drop(notes.found.remove(&self.name)),
        }
    }

    fn untouched_by_machine(&self) -> Option<bool> {
        let host = (self.informants.host)(&self.name)?;
        untouched_by_machine(&host)
    }
}

/// Whether nothing was done yet for the machine that has claimed the host. `None` if no machine has, or if it may take a running
/// server: somebody has asked for power, or allowed to cut it.
fn untouched_by_machine(host: &Value) -> Option<bool> {
    let annotations = &host["metadata"]["annotations"];
    let anchor = annotations[ANCHOR_ANNOTATION].as_str().and_then(|text| Anchor::parse(text).ok());
    // A machine announces its claim in the anchor; nothing was done for it before the status says so, too.
    let anchor = match (anchor, record(host)) {
        (Some(anchor), Some(record)) => Some(anchor.settled(&record.anchor)),
        (anchor, _) => anchor,
    };
    let is_stale = |anchor: &Anchor| anchor.outdated.as_ref().is_some_and(|outdated| outdated.since == Since::Release);
    let is_asked = host["spec"]["online"].is_boolean() && !anchor.as_ref().is_some_and(is_stale);
    let may_cut = is_asked || host["spec"]["claimableWhileRunning"] == true;
    // Who claims by hand names the server, and means it.
    let is_machines = host["spec"].get("consumerRef").is_some() && annotations[names::CLAIM_ID].is_string();
    let is_untouched = anchor.is_none_or(|anchor| anchor.milestone == Milestone::None && !anchor.adopted);
    (is_machines && !may_cut).then_some(is_untouched)
}

/// What the operator remembers of a host in its status.
pub(super) fn record(host: &Value) -> Option<Record> {
    serde_json::from_str(host["status"]["record"].as_str()?).ok()
}

/// Whether the host is being restarted because its owner asked for it.
fn restarts_as_asked(host: &Value) -> bool {
    let Some(record) = record(host) else { return false };
    let asked = host["metadata"]["annotations"][names::REBOOT].as_str();
    let restarts = record.doing.is_some_and(|doing| doing.what == Deed::Restart);
    restarts && asked.is_some() && record.rebooted.as_deref() == asked
}

/// Whether the host's system runs, its claim stands, and nobody asked to stop or to restart it.
pub(super) fn runs_for_its_owner(host: &Value) -> bool {
    if restarts_as_asked(host) {
        return false;
    }
    let anchor = host["metadata"]["annotations"][ANCHOR_ANNOTATION].as_str().and_then(|text| Anchor::parse(text).ok());
    let Some(Anchor { claim: Some(claim), milestone: Milestone::Provisioned, .. }) = anchor else { return false };
    let claimed = claim.consumer.is_some_and(|consumer| host["spec"]["consumerRef"]["name"] == consumer.name.as_str());
    claimed && asked_power(host) != Some(false) && host["metadata"].get("deletionTimestamp").is_none()
}

/// What the owner has asked of the power since the host was claimed or released.
pub(super) fn asked_power(host: &Value) -> Option<bool> {
    let anchor = host["metadata"]["annotations"][ANCHOR_ANNOTATION].as_str().and_then(|text| Anchor::parse(text).ok());
    let id = host["metadata"]["annotations"][names::POWER_REQUEST].as_str();
    let online = host["spec"]["online"].as_bool()?;
    let request = PowerRequest { online, id: id.map(str::to_owned) };
    let is_outdated = anchor.and_then(|anchor| anchor.outdated).is_some_and(|outdated| outdated.request == request);
    (!is_outdated).then_some(online)
}
