//! PATCH of a ComputerSystem: the boot override.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::bmc::{Core, State};
use crate::fault::Effect;
use crate::personality::{Answer, ModeRule};
use crate::place::Spot;
use crate::reply::{Problem, Reply};
use crate::serve::Asked;
use crate::server::{Enabled, Mode, Override};

/// Properties of a system that can be written without effect.
const IDLE: &[&str] = &["AssetTag", "HostName", "IndicatorLED", "LocationIndicatorActive", "PowerRestorePolicy", "Oem"];
const READ_ONLY: &[&str] = &["PowerState", "Id", "UUID", "SerialNumber", "Status", "Model", "Manufacturer", "SKU"];
/// Properties of `Boot` that can be written without effect.
const IDLE_BOOT: &[&str] = &["BootOrder", "BootNext", "UefiTargetBootSourceOverride", "StopBootOnFault"];

/// `to_settings`: it was sent to the settings object.
pub(crate) fn patch_system(
    core: &Core,
    state: &mut State,
    asked: &Asked<'_>,
    system: usize,
    to_settings: bool,
) -> Result<Reply, Problem> {
    let fields = asked.object()?;
    for name in fields.keys() {
        match name.as_str() {
            name if name == "Boot" || name.starts_with('@') || IDLE.contains(&name) => {}
            name if READ_ONLY.contains(&name) => return Err(Problem::not_writable(name)),
            name => return Err(Problem::unknown_property(name)),
        }
    }
    if let Some(boot) = fields.get("Boot") {
        let place = &core.places.systems[system];
        if !place.boot {
            return Err(Problem::unknown_property("Boot"));
        }
        if place.settings.is_some() && !to_settings {
            return Err(Problem::not_writable("Boot"));
        }
        let boot = boot.as_object().ok_or_else(|| Problem::wrong_type(boot, "Boot"))?;
        if let Some(refusal) = core.personality.boot.refused_in_post
            && state.servers[system].in_post()
        {
            return Err(refusal.into());
        }
        let set = change(core, boot, system, &state.servers[system].boot)?;
        let ignored =
            state.trouble(asked.now, &asked.facts(), |e| matches!(e, Effect::IgnoresBootOverride).then_some(()));
        if ignored.is_none() {
            state.servers[system].boot = set;
            state.servers[system].used_override = None;
        }
    }
    let spot = if to_settings { Spot::Settings(system) } else { Spot::System(system) };
    Ok(match core.personality.boot.answer {
        Answer::NoContent => Reply::empty(StatusCode::NO_CONTENT),
        Answer::Message => Reply::success(&core.personality.messages),
        Answer::Resource => {
            core.body(state, asked, &asked.path, spot).map_or_else(|| Reply::empty(StatusCode::NO_CONTENT), Reply::ok)
        }
    })
}

/// The override as it becomes.
fn change(core: &Core, boot: &Map<String, Value>, system: usize, before: &Override) -> Result<Override, Problem> {
    let rules = &core.personality.boot;
    let mut set = before.clone();
    let text = |name: &str| match boot.get(name) {
        None => Ok(None),
        Some(Value::String(word)) => Ok(Some(word.as_str())),
        Some(other) => Err(Problem::wrong_type(other, &format!("Boot/{name}"))),
    };
    for name in boot.keys().map(String::as_str) {
        match name {
            "BootSourceOverrideTarget" | "BootSourceOverrideEnabled" | "BootSourceOverrideMode" => {}
            "HttpBootUri" if rules.http_uri => {}
            name if name.contains('@') || IDLE_BOOT.contains(&name) => {}
            name => return Err(Problem::unknown_property(&format!("Boot/{name}"))),
        }
    }
    let target = text("BootSourceOverrideTarget")?;
    let enabled = text("BootSourceOverrideEnabled")?;
    let mode = text("BootSourceOverrideMode")?;
    if rules.needs_all && (target.is_none() || enabled.is_none() || mode.is_none()) {
        let name = "BootSourceOverrideTarget, BootSourceOverrideEnabled and BootSourceOverrideMode";
        return Err(Problem::bad_request("PropertyMissing", format!("{name} are required properties.")));
    }
    if let Some(word) = target {
        let targets = &core.places.systems[system].boot_targets;
        if !targets.is_empty() && !targets.iter().any(|t| t == word) {
            return Err(Problem::not_in_list(word, "Boot/BootSourceOverrideTarget"));
        }
        word.clone_into(&mut set.target);
    }
    if let Some(word) = mode {
        match rules.mode {
            ModeRule::Absent => return Err(Problem::unknown_property("Boot/BootSourceOverrideMode")),
            ModeRule::ReadOnly => return Err(Problem::not_writable("Boot/BootSourceOverrideMode")),
            ModeRule::Writable => {
                let wrong = || Problem::not_in_list(word, "Boot/BootSourceOverrideMode");
                set.mode = Mode::parse(word).ok_or_else(wrong)?;
            }
        }
    }
    if let Some(word) = enabled {
        let parsed = Enabled::parse(word).filter(|_| rules.enabled.contains(&word));
        set.enabled = parsed.ok_or_else(|| Problem::not_in_list(word, "Boot/BootSourceOverrideEnabled"))?;
        if rules.enabled_needs_target && set.target == "None" {
            let text = "The property BootSourceOverrideEnabled could not be written because its value would conflict \
                        with the value of the property BootSourceOverrideTarget.";
            return Err(Problem::bad_request("PropertyValueConflict", text)
                .args(&["BootSourceOverrideEnabled", "BootSourceOverrideTarget"])
                .about("#/Boot/BootSourceOverrideEnabled"));
        }
    }
    if rules.once_is_continuous && set.enabled == Enabled::Once {
        set.enabled = Enabled::Continuous;
    }
    if rules.forgets_what_is_not_sent && target.is_some() {
        if enabled.is_none() {
            set.enabled = Enabled::Once;
        }
        if mode.is_none() {
            set.mode = Mode::Legacy;
        }
    }
    match boot.get("HttpBootUri") {
        None => {}
        Some(Value::Null) => set.http_uri = None,
        Some(Value::String(uri)) => set.http_uri = Some(uri.clone()).filter(|uri| !uri.is_empty()),
        Some(other) => return Err(Problem::wrong_type(other, "Boot/HttpBootUri")),
    }
    Ok(set)
}
