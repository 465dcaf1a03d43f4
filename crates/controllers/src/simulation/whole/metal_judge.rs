//! What must hold of BareMetalHosts, by what their users did and what their servers show.

use std::sync::Arc;
use std::time::Duration;

use api::metal3::names;
use api::metal3::states::{self, operational};
use engine::host::{Anchor, Milestone};
use serde_json::Value;
use sim::{BootSource, Enabled, PowerState};

use super::metals::{Metal, Metals, is_held_off, is_to_reboot, rival_of};
use super::stage::Stage;
use super::wire::{Watchman, Write};
use crate::dialect::ANCHOR_ANNOTATION;
use crate::simulation::fleet::{Servers, Show};

/// What was under way when somebody changed a host may go on for so long: a BMC's client gives up within half of it.
const UNDER_WAY: Duration = Duration::from_mins(5);
/// How long it takes until a host is gone that was deleted, also if its BMC is dead.
const DELETION: Duration = Duration::from_mins(20);

impl Stage {
    pub(super) fn judge_metals(&mut self) -> Result<(), String> {
        let mut metals = self.metals.all();
        let mut gone = Vec::new();
        for (name, metal) in metals.iter_mut() {
            let host = (self.show_metal)(name).filter(|host| host["metadata"]["uid"] == *metal.uid);
            let Some(host) = host else {
                if metal.leaving.is_none() {
                    return Err(format!("{name} is gone, and nobody deleted it"));
                }
                gone.push(name.clone());
                continue;
            };
            judge_words(name, &host)?;
            judge_deletion(name, metal, &host)?;
            self.judge_use(name, metal, &host)?;
            let is_detached = host["status"]["operationalStatus"] == operational::DETACHED
                && host["metadata"]["annotations"].get(names::DETACHED).is_some();
            metal.detached = is_detached.then(|| metal.detached.unwrap_or_else(tokio::time::Instant::now));
            let rival = (self.show_metal)(&rival_of(name));
            if rival.is_some_and(|rival| is_in_use(&rival)) && is_in_use(&host) {
                return Err(format!("{name} and its rival both use the server"));
            }
        }
        metals.retain(|name, _| !gone.contains(name));
        Ok(())
    }

    /// A server that runs what was ordered goes on running until somebody gives a reason to stop it.
    fn judge_use(&self, name: &str, metal: &mut Metal, host: &Value) -> Result<(), String> {
        let server = self.servers.server(name);
        let state = host["status"]["provisioning"]["state"].as_str().unwrap_or_default();
        let image = metal.image.clone().map(BootSource::Cd);
        let runs = image.is_some() && server.booted.as_ref().map(|boot| &boot.from) == image.as_ref();
        let runs = runs && server.power() == PowerState::On && !server.in_post();
        if let Some(boots) = metal.settled {
            if !runs || server.boots != boots {
                let booted = &server.booted;
                return Err(format!("{name} ran what was ordered; now it is {:?} with {booted:?}", server.power()));
            }
            if !["", states::PROVISIONED].contains(&state) {
                return Err(format!("{name} runs what was ordered and is shown as {state}"));
            }
            return Ok(());
        }
        let is_shown = state == states::PROVISIONED && host["status"]["provisioning"]["image"]["url"] == json_of(metal);
        let is_asked = metal.online && metal.leaving.is_none() && !is_held_off(host) && !is_to_reboot(host);
        if runs && is_shown && is_asked && metal.stirred.elapsed() > UNDER_WAY {
            metal.settled = Some(server.boots);
        }
        Ok(())
    }

    pub(super) fn unfinished_metal(&self, name: &str) -> Option<String> {
        if let Some(rival) = (self.show_metal)(&rival_of(name)) {
            return Some(format!("{} is still there: {}", rival_of(name), rival["status"]));
        }
        let (host, server) = ((self.show_metal)(name)?, self.servers.server(name));
        let metal = self.metals.all().get(name).cloned()?;
        let (status, state) = (&host["status"], host["status"]["provisioning"]["state"].as_str().unwrap_or_default());
        let wrong = |what: &str| Some(format!("{name} {what}: {} {status} {:?}", host["spec"], server.power()));
        if metal.leaving.is_some() {
            return wrong("was deleted and is still there");
        }
        if status["operationalStatus"] != operational::OK || status["errorMessage"] != "" || status["errorCount"] != 0 {
            return wrong("is not well");
        }
        let is_certain = !self.pressed.contains(name) && !self.misled.contains(name);
        let (runs, is_off) = (server.power() == PowerState::On, server.power() == PowerState::Off);
        let url = &status["provisioning"]["image"]["url"];
        match (&metal.image, metal.online && !is_held_off(&host)) {
            (Some(image), online) if state == states::PROVISIONED => {
                let booted = server.booted.as_ref().map(|boot| &boot.from);
                if *url != image.as_str() {
                    wrong("runs another image")
                } else if online != runs || online == is_off {
                    wrong("has the wrong power")
                } else if online && is_to_reboot(&host) {
                    wrong("was not rebooted")
                } else if online && metal.owed_boot.is_some_and(|boots| server.boots <= boots) {
                    wrong("was not booted again")
                } else if online && is_certain && booted != Some(&BootSource::Cd(image.clone())) {
                    wrong(&format!("has booted {booted:?}"))
                } else {
                    None
                }
            }
            (Some(_), _) if metal.online || state != states::AVAILABLE => wrong("is not provisioned"),
            (None, _) if state != states::AVAILABLE => wrong("is not available"),
            (_, _) if !metal.found_media && server.media().is_some() => wrong("is free and has an image in its drive"),
            (_, _) if is_certain && server.boot.enabled != Enabled::Disabled => wrong("is free with a boot override"),
            (_, _) if !metal.online && is_certain && !is_off => wrong("is free and runs"),
            _ => None,
        }
    }
}

fn json_of(metal: &Metal) -> Value {
    Value::from(metal.image.clone().unwrap_or_default())
}

fn judge_deletion(name: &str, metal: &Metal, host: &Value) -> Result<(), String> {
    let is_kept = metal.paused.is_some() || host["metadata"]["annotations"].get(names::DETACHED).is_some();
    let is_late = metal.leaving.is_some_and(|since| since.elapsed() > DELETION);
    if is_late && !is_kept {
        return Err(format!("{name} was deleted long ago and is still there: {}", host["status"]));
    }
    Ok(())
}

/// The words of a status agree with each other.
fn judge_words(name: &str, host: &Value) -> Result<(), String> {
    let status = &host["status"];
    let text = |field: &str| status[field].as_str().unwrap_or_default();
    let is_wrong = !text("errorType").is_empty();
    let shows_error = text("operationalStatus") == operational::ERROR;
    let is_detached = text("operationalStatus") == operational::DETACHED;
    let count = status["errorCount"].as_i64().unwrap_or_default();
    if is_wrong == text("errorMessage").is_empty()
        || (shows_error != is_wrong && !is_detached)
        || is_wrong != (count > 0)
    {
        return Err(format!("{name} shows an error in part: {status}"));
    }
    Ok(())
}

/// Whether anything was done to its server that a release must undo.
fn is_in_use(host: &Value) -> bool {
    let text = host["metadata"]["annotations"][ANCHOR_ANNOTATION].as_str();
    text.and_then(|text| Anchor::parse(text).ok()).is_some_and(|anchor| anchor.milestone != Milestone::None)
}

/// Why nobody may do anything to a server now.
pub(super) fn barred(metals: &Metals, name: &str) -> Option<String> {
    let metals = metals.all();
    let metal = metals.get(name)?;
    let is_over = |since: tokio::time::Instant| since.elapsed() > UNDER_WAY;
    let paused = metal.paused.is_some_and(is_over).then_some("paused");
    paused.or(metal.detached.is_some_and(is_over).then_some("detached")).map(str::to_owned)
}

/// Who would be hurt if the server of a host were stopped.
pub(super) fn tenant(metals: &Metals, name: &str) -> Option<String> {
    metals.all().get(name)?.settled.map(|_| "its owner".to_owned())
}

/// Sees what is written to hosts: nothing, if they are paused.
pub(super) fn watchman_of_pauses(show: Show, servers: Servers) -> Watchman {
    Arc::new(move |write: &Write<'_>| {
        if write.plural != "baremetalhosts" {
            return;
        }
        let Some(host) = show(write.name) else { return };
        let version = &write.patch["metadata"]["resourceVersion"];
        let counts = version.is_null() || *version == host["metadata"]["resourceVersion"];
        if counts && host["metadata"]["annotations"].get(names::PAUSED).is_some() {
            servers.notes().crimes.push(format!("{} is paused and gets {}", write.name, write.patch));
        }
    })
}
