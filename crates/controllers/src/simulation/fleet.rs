//! The servers, and a watchman beside the line to each BMC who sees every change before it is made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::beskar7::names;
use bmc::{Fingerprint, Transport, TransportError};
use bytes::Bytes;
use engine::host::{Anchor, Milestone, PowerRequest, Since};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::Value;
use sim::{Bmc, BmcSpec, Dropped, Hardware, Kind, Personality, Timing};

use super::fate::Life;
use crate::dialect::ANCHOR_ANNOTATION;
use crate::hands::Dial;

/// Tells who would be hurt if somebody took the power or the disk of a host's server away.
pub(super) type Tenant = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// All BMCs by the name of their host, and what was done to them.
#[derive(Clone, Default)]
pub(super) struct Servers {
    bmcs: Arc<BTreeMap<String, Bmc>>,
    /// What each has of memory.
    memory_gib: Arc<BTreeMap<String, u32>>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
pub(super) struct Notes {
    /// What was changed, in order.
    pub(super) trace: Vec<String>,
    /// Changes that should never have been made.
    pub(super) crimes: Vec<String>,
    /// What the BMC of each host said last of the power while nothing had been done for the claim on it.
    found: BTreeMap<String, String>,
}

/// Shows a host as the API server has it.
pub(super) type Show = Arc<dyn Fn(&str) -> Option<Arc<Value>> + Send + Sync>;

/// What the watchmen are told.
#[derive(Clone)]
pub(super) struct Informants {
    /// Who would be hurt.
    pub(super) tenant: Tenant,
    /// A host as the API server has it.
    pub(super) host: Show,
}

impl Servers {
    pub(super) fn new(names: &[String], random: &mut fastrand::Rng) -> Self {
        let all = Personality::all();
        let mut memory_gib = BTreeMap::new();
        let bmcs = names.iter().map(|name| {
            let personality = all[random.usize(..all.len())].clone();
            let seconds = |random: &mut fastrand::Rng, most| Duration::from_secs(random.u64(0..=most));
            let timing = Timing {
                power_on: seconds(random, 4),
                power_off: seconds(random, 8),
                shutdown: seconds(random, 40),
                post: seconds(random, 90),
            };
            let seed = random.u64(..);
            let mut hardware = Hardware::invent(&personality, seed, 0);
            // What is in it does not matter here, and costs time.
            hardware.dimms = 1;
            hardware.disks.truncate(1);
            hardware.macs.truncate(1);
            memory_gib.insert(name.clone(), hardware.memory_gib());
            let hardware = vec![hardware];
            let spec = BmcSpec { name: name.clone(), seed, hardware, timing, ..BmcSpec::new(personality) };
            (name.clone(), Bmc::new(spec))
        });
        let bmcs = Arc::new(bmcs.collect());
        Self { bmcs, memory_gib: Arc::new(memory_gib), notes: Arc::default() }
    }

    pub(super) fn memory_gib(&self, name: &str) -> u32 {
        self.memory_gib[name]
    }

    pub(super) fn bmc(&self, name: &str) -> &Bmc {
        &self.bmcs[name]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Bmc> {
        self.bmcs.values()
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
                bmc: servers.bmcs[&name].clone(),
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
            let is_look = request.method() == http::Method::GET && Kind::of(request.uri().path()) == Kind::System;
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
        if !harmless && let Some(tenant) = (self.informants.tenant)(&self.name) {
            notes.crimes.push(format!("{what} at {}, which runs for {tenant}", self.name));
        }
        let found = notes.found.remove(&self.name);
        if kind == Kind::Reset && !harmless && found.as_deref() == Some("On") {
            notes.crimes.push(format!("{what} at {}, which ran although nobody asked for it", self.name));
        }
    }

    /// Remembers what a machine was shown of a server that it may not take while it runs, as long as nothing was done for it.
    fn note_power(&self, answer: &http::Response<Bytes>) {
        let host = (self.informants.host)(&self.name).filter(|host| is_claimed_and_unasked(host));
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        let shown = body["PowerState"].as_str().filter(|_| host.is_some()).map(str::to_owned);
        let mut notes = self.servers.notes();
        match shown {
            Some(shown) => drop(notes.found.insert(self.name.clone(), shown)),
            None => drop(notes.found.remove(&self.name)),
        }
    }
}

/// Whether a machine has claimed the host, nothing was done for that, and nobody has asked for power or allowed to cut it.
fn is_claimed_and_unasked(host: &Value) -> bool {
    let anchor = host["metadata"]["annotations"][ANCHOR_ANNOTATION].as_str().and_then(|text| Anchor::parse(text).ok());
    let is_stale = |anchor: &Anchor| anchor.outdated.as_ref().is_some_and(|outdated| outdated.since == Since::Release);
    let is_asked = host["spec"]["online"].is_boolean() && !anchor.as_ref().is_some_and(is_stale);
    host["spec"]["consumerRef"]["kind"] == "Beskar7Machine"
        && anchor.is_none_or(|anchor| anchor.milestone == Milestone::None && !anchor.adopted)
        && host["spec"]["claimableWhileRunning"] != true
        && !is_asked
}

/// Whether the host's system runs, its claim stands, and nobody asked to stop it.
pub(super) fn runs_for_its_owner(host: &Value) -> bool {
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
