//! What must hold: at every moment, and when everything has calmed down.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::beskar7::{names, states};
use engine::host::{Anchor, Milestone, Since};
use serde_json::Value;
use sim::{BootSource, Enabled, PowerState};

use super::owners::Known;
use super::stage::Stage;
use super::users::{Home, Machine};
use super::wire::{Watchman, Write};
use crate::dialect::ANCHOR_ANNOTATION;
use crate::simulation::fleet::{PASSED_OVER, Servers, Show, asked_power};
use crate::simulation::play::runs_from_image;

impl Stage {
    /// Whether somebody was hurt, lost, or given to somebody else.
    pub(super) fn judge(&mut self) -> Result<(), String> {
        if let Some(crime) = self.servers.notes().crimes.first() {
            return Err(crime.clone());
        }
        self.judge_hosts()?;
        self.judge_machines()?;
        self.judge_metals()?;
        self.judge_racks()
    }

    fn judge_hosts(&mut self) -> Result<(), String> {
        for (name, known) in &mut self.known {
            let Some(uid) = &known.uid else { continue };
            let Some(host) = (self.show)(name) else {
                if !known.leaving || known.claim.is_some() {
                    return Err(format!("{name} was lost: {known:?}"));
                }
                *known = Known::default();
                continue;
            };
            let by_hand = host["spec"]["consumerRef"]["kind"] != "Beskar7Machine";
            let claim = host["spec"]["consumerRef"]["name"].as_str().filter(|_| by_hand);
            if host["metadata"]["uid"] != uid.as_str() || claim != known.claim.as_deref() {
                return Err(format!("{name} is not as its owners know it: {known:?} {host}"));
            }
            let is_armed = anchor(&host).is_some_and(|anchor| anchor.milestone == Milestone::Armed);
            // A claim that is only announced may yet be refused.
            let is_accepted = host["status"]["state"] != states::AVAILABLE;
            if is_armed && is_accepted && asked_power(&host) != Some(false) {
                // Whatever somebody did to its power, it is switched off now, and then on or released.
                self.pressed.remove(name);
            }
        }
        Ok(())
    }

    fn judge_machines(&mut self) -> Result<(), String> {
        let (mut homes, mut ids) = (BTreeMap::new(), BTreeMap::new());
        let mut machines = std::mem::take(&mut self.machines);
        for name in &self.machine_names {
            let Some(machine) = machines.get_mut(name) else { continue };
            let object = (self.show_machine)(name).filter(|object| object["metadata"]["uid"] == *machine.uid);
            let Some(object) = object else {
                if !machine.leaving {
                    return Err(format!("{name} is gone, and nobody deleted it"));
                }
                machines.remove(name);
                continue;
            };
            let provider = object["spec"]["providerID"].as_str();
            match (&machine.home, provider) {
                (Some(home), provider) if provider != Some(&home.provider) => {
                    return Err(format!("{name} had the providerID {} and now has {provider:?}", home.provider));
                }
                (None, Some(provider)) => {
                    let host = (self.show)(host_of(provider)).unwrap_or_default();
                    let image = image_on(&host).to_owned();
                    machine.home = Some(Home { provider: provider.to_owned(), boots: None, image });
                }
                _ => {}
            }
            let id = annotation(&object, names::CLAIM_ID);
            if let Some(other) = id.and_then(|id| ids.insert(id.to_owned(), name)) {
                return Err(format!("{name} and {other} claim under the same id"));
            }
            if machine.leaving || machine.robbed {
                continue;
            }
            if let Some(other) = provider.and_then(|provider| homes.insert(provider.to_owned(), name)) {
                return Err(format!("{name} and {other} both have {}", provider.unwrap_or_default()));
            }
            self.judge_home(name, machine, id)?;
        }
        self.machines = machines;
        Ok(())
    }

    /// A machine that has a server keeps it, and its system runs until it is deleted.
    fn judge_home(&self, name: &str, machine: &mut Machine, id: Option<&str>) -> Result<(), String> {
        let Some(home) = &mut machine.home else { return Ok(()) };
        let host_name = host_of(&home.provider);
        let host = (self.show)(host_name).ok_or_else(|| format!("{name} runs on {host_name}, which is gone"))?;
        if id.is_none() || annotation(&host, names::CLAIM_ID) != id {
            return Err(format!("{name} ({id:?}) runs on {host_name}, which does not bear its claim: {host}"));
        }
        if image_on(&host) != home.image || !machine.images.contains(&home.image) {
            return Err(format!("{name} runs on {host_name}, which was given another image: {}", host["spec"]));
        }
        let server = self.servers.server(host_name);
        if self.pressed.contains(host_name) {
            home.boots = None;
        } else if server.power() != PowerState::On {
            return Err(format!("{name} runs on {host_name}, which is {:?}", server.power()));
        } else if !server.in_post() {
            let boots = *home.boots.get_or_insert(server.boots);
            if boots != server.boots {
                return Err(format!("{name} runs on {host_name}, which was started again"));
            }
        }
        Ok(())
    }

    /// What is not as it should be yet.
    pub(super) fn unfinished(&self) -> Option<String> {
        let hosts = self.names.iter().find_map(|name| self.unfinished_host(name));
        let hosts = hosts.or_else(|| self.metal_names.iter().find_map(|name| self.unfinished_metal(name)));
        let hosts = hosts.or_else(|| self.unfinished_rack());
        hosts.or_else(|| self.machines.iter().find_map(|(name, machine)| self.unfinished_machine(name, machine)))
    }

    fn unfinished_host(&self, name: &str) -> Option<String> {
        let (host, server) = ((self.show)(name), self.servers.server(name));
        let Some(host) = host else {
            return server.media().map(|media| format!("{name} is gone and left {media} in its drive"));
        };
        let state = host["status"]["state"].as_str().unwrap_or("");
        let claimed = host["spec"].get("consumerRef").is_some();
        let is_barred = annotation(&host, names::QUARANTINE).is_some();
        let wanted: &[&str] = match (claimed, is_barred) {
            (true, false) => &["Provisioned"],
            // Claimed by hand just before it was barred: that claim waits.
            (true, true) => &["Provisioned", "Quarantined"],
            (false, false) => &["Available"],
            (false, true) => &["Quarantined"],
        };
        if host["metadata"].get("deletionTimestamp").is_some() {
            return Some(format!("{name} is {state}, not gone: {}", host["status"]));
        }
        if !wanted.contains(&state) {
            return Some(format!("{name} is {state}, not {}: {}", wanted[0], host["status"]));
        }
        if let Some(why) = self.stray_claim(name, &host) {
            return Some(why);
        }
        if state == "Provisioned" {
            let is_empty = runs_from_image(&host) && server.media().is_none() && !is_adopted(&host);
            return is_empty.then(|| format!("{name} is provisioned from an empty drive"));
        }
        if let Some(media) = server.media() {
            return Some(format!("{name} is free and has {media} in its drive"));
        }
        if server.boot.enabled != Enabled::Disabled {
            return Some(format!("{name} is free and has the boot override {:?}", server.boot));
        }
        let may_be_on = self.pressed.contains(name) || asked_power(&host) == Some(true);
        (!may_be_on && server.power() != PowerState::Off)
            .then(|| format!("{name} is free and its server is {:?}", server.power()))
    }

    /// A claim of nobody, on a host or in its memory.
    fn stray_claim(&self, name: &str, host: &Value) -> Option<String> {
        let id = annotation(host, names::CLAIM_ID);
        let consumer = &host["spec"]["consumerRef"];
        let bearer = (consumer["kind"] == "Beskar7Machine").then(|| consumer["name"].as_str().unwrap_or_default());
        let borne = bearer.and_then(|bearer| (self.show_machine)(bearer));
        let borne = borne.as_ref().and_then(|machine| annotation(machine, names::CLAIM_ID));
        if id != borne || bearer.is_some() != borne.is_some() {
            return Some(format!("{name} bears the claim {id:?} of {consumer}, which bears {borne:?}"));
        }
        let remembered = anchor(host).and_then(|anchor| anchor.claim);
        let remembered = remembered.and_then(|claim| claim.consumer).filter(|other| consumer["name"] != *other.name);
        remembered.map(|other| format!("{name} still acts for {other}"))
    }

    fn unfinished_machine(&self, name: &str, machine: &Machine) -> Option<String> {
        let object = (self.show_machine)(name)?;
        if machine.leaving {
            return Some(format!("{name} was deleted and is still there: {}", object["status"]));
        }
        let hosts = || self.names.iter().filter_map(|host| Some((host, (self.show)(host)?)));
        let id = annotation(&object, names::CLAIM_ID);
        let bears = |host: &Value| id.is_some() && annotation(host, names::CLAIM_ID) == id;
        let borne: Vec<_> = hosts().filter(|(_, host)| bears(host)).collect();
        let Some((host_name, host)) = borne.first() else {
            let free = hosts().find(|(host_name, host)| is_free(host) && self.fits(machine, host_name));
            return free
                .map(|(free, _)| format!("{name} has no host although {free} is free and fits: {}", object["status"]));
        };
        if borne.len() > 1 {
            return Some(format!(
                "{name} bears its claim on {:?}",
                borne.iter().map(|(name, _)| name).collect::<Vec<_>>()
            ));
        }
        if !self.fits(machine, host_name) {
            return Some(format!("{name} has {host_name}, which does not fit"));
        }
        let home = object["spec"]["providerID"].as_str().map(host_of);
        if home != Some(host_name.as_str()) || object["status"]["ready"] != true {
            return Some(format!("{name} has {host_name} and is not ready: {}", object["status"]));
        }
        let server = self.servers.server(host_name);
        let booted = server.last_boot.map(|boot| boot.from);
        if is_adopted(host) {
            return Some(format!("{host_name} was adopted for {name}, which nobody had started"));
        }
        let certain = !self.pressed.contains(host_name.as_str()) && !self.misled.contains(host_name.as_str());
        let image = image_on(host);
        let by_network = host["spec"].get("networkBoot").is_some();
        let ordered = if by_network { BootSource::Pxe } else { BootSource::Cd(image.to_owned()) };
        (certain && booted != Some(ordered))
            .then(|| format!("{name} was given {image} and {host_name} has booted {booted:?}"))
    }
}

/// What a host is ordered to run.
fn image_on(host: &Value) -> &str {
    let spec = &host["spec"];
    spec["bootIsoSource"].as_str().or(spec["networkBoot"]["imageURL"].as_str()).unwrap_or_default()
}

/// The host that a provider id names.
fn host_of(provider: &str) -> &str {
    provider.rsplit('/').next().unwrap_or_default()
}

/// Whether anybody may claim it.
fn is_free(host: &Arc<Value>) -> bool {
    host["spec"].get("consumerRef").is_none()
        && host["status"]["state"] == "Available"
        && host["status"].get("fault").is_none()
        && annotation(host, names::QUARANTINE).is_none()
        && !runs_unasked(host)
}

/// Whether machines pass it over because somebody we do not know may use it.
fn runs_unasked(host: &Value) -> bool {
    let runs = host["status"]["observedPowerState"] == "On";
    // What was asked before the last release does not count any more.
    let outdated = anchor(host).and_then(|anchor| anchor.outdated);
    let is_stale = asked_power(host).is_none() && outdated.is_some_and(|outdated| outdated.since == Since::Release);
    let is_asked = host["spec"]["online"] == true && !is_stale;
    runs && !is_asked && host["spec"]["claimableWhileRunning"] != true
}

/// Sees machines claim, and what was known of the host in that moment: a claim is written on exactly what was looked at.
pub(super) fn watchman_of_claims(show: Show, servers: Servers) -> Watchman {
    Arc::new(move |&Write { name, patch, plural }| {
        let Some(host) = show(name).filter(|_| plural == "physicalhosts") else { return };
        let machine = &patch["spec"]["consumerRef"]["name"];
        let is_current = patch["metadata"]["resourceVersion"] == host["metadata"]["resourceVersion"];
        if machine.is_string() && is_current && runs_unasked(&host) {
            servers.notes().crimes.push(format!("{machine} claims {name}: {PASSED_OVER}"));
        }
    })
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][name].as_str()
}

fn anchor(host: &Value) -> Option<Anchor> {
    annotation(host, ANCHOR_ANNOTATION).and_then(|text| Anchor::parse(text).ok())
}

/// Whether it was claimed before an operator had met it.
fn is_adopted(host: &Value) -> bool {
    anchor(host).is_some_and(|anchor| anchor.adopted)
}
