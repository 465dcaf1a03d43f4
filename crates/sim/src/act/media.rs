//! Virtual media: actions, and PATCH where there are none.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{check_headers, done};
use crate::bmc::{Core, State};
use crate::fault::Effect;
use crate::personality::Answer;
use crate::place::Spot;
use crate::reply::{Problem, Reply};
use crate::serve::Asked;
use crate::server::Slot;
use crate::task::{Deferred, Medium};

const INSERT: &str = "VirtualMedia.InsertMedia";
/// The action that enables remote media, below a manager's `Actions/Oem`.
pub(crate) const ENABLE: &str = "AMIVirtualMedia.EnableRMedia";
const KNOWN: &[&str] =
    &["Image", "Inserted", "WriteProtected", "UserName", "Password", "TransferProtocolType", "TransferMethod"];

pub(crate) fn insert(core: &Core, state: &mut State, asked: &Asked<'_>, drive: usize) -> Result<Reply, Problem> {
    check_headers(core, asked)?;
    let fields = asked.object()?;
    let rules = &core.personality.media;
    for name in fields.keys().map(String::as_str) {
        if !KNOWN.contains(&name) || rules.refused_parameters.contains(&name) {
            return Err(Problem::unknown_parameter(INSERT, name));
        }
    }
    let medium = medium(core, &fields)?;
    let place = &core.places.drives[drive];
    let slot = slot(state, place.system, place.slot).ok_or_else(|| Problem::not_found(&asked.path))?;
    if slot.inserted || slot.ejecting.is_some() || state.tasks.inserts(place.system, place.slot) {
        return Err(rules.occupied.into());
    }
    refused(state, asked)?;
    if ignored(state, asked) {
        return Ok(done(core));
    }
    if let Some(time) = core.personality.tasks.media {
        let work = Deferred::Insert(place.system, place.slot, medium);
        return Ok(state.tasks.start("InsertMedia", asked.now, asked.now + time, work, &core.task_names()));
    }
    state.insert(place.system, place.slot, medium);
    Ok(done(core))
}

pub(crate) fn eject(core: &Core, state: &mut State, asked: &Asked<'_>, drive: usize) -> Result<Reply, Problem> {
    check_headers(core, asked)?;
    let rules = &core.personality.media;
    if asked.body.is_empty() {
        if rules.eject_needs_body {
            return Err(Problem::bad_request("MalformedJSON", "The request body submitted was empty."));
        }
    } else {
        asked.object()?;
    }
    let place = &core.places.drives[drive];
    let slot = slot(state, place.system, place.slot).ok_or_else(|| Problem::not_found(&asked.path))?;
    if !slot.inserted && slot.image.is_none() {
        if rules.eject_only_when_inserted {
            return Err(Problem::not_found(&asked.path));
        }
        return rules.already_empty.map_or_else(|| Ok(done(core)), |refusal| Err(refusal.into()));
    }
    if let Some(time) = core.personality.tasks.media {
        let work = Deferred::Eject(place.system, place.slot);
        return Ok(state.tasks.start("EjectMedia", asked.now, asked.now + time, work, &core.task_names()));
    }
    state.eject(place.system, place.slot, asked.now, &core.personality);
    Ok(done(core))
}

/// AMI's `#AMIVirtualMedia.EnableRMedia`, which its manager offers while remote media are disabled.
pub(crate) fn enable_remote_media(core: &Core, state: &mut State, asked: &Asked<'_>) -> Result<Reply, Problem> {
    if state.disabled_remote_media(asked.now, &asked.facts()) != Some(true) {
        return Err(Problem::not_found(&asked.path));
    }
    match asked.object()?.get("RMediaState").and_then(Value::as_str) {
        Some("Enable") => {
            state.faults.enable_remote_media();
            Ok(done(core))
        }
        Some(other) => Err(Problem::parameter_not_in_list(other, "RMediaState", ENABLE)),
        None => Err(Problem::missing_parameter(ENABLE, "RMediaState")),
    }
}

/// Without actions: an image and `Inserted` insert, a null image ejects.
pub(crate) fn patch_drive(core: &Core, state: &mut State, asked: &Asked<'_>, drive: usize) -> Result<Reply, Problem> {
    let fields = asked.object()?;
    let place = &core.places.drives[drive];
    let known = |name: &str| KNOWN.contains(&name) || name.starts_with('@');
    if let Some(unknown) = fields.keys().find(|name| !known(name)) {
        return Err(Problem::unknown_property(unknown));
    }
    let slot = slot(state, place.system, place.slot).ok_or_else(|| Problem::not_found(&asked.path))?;
    let ejects = fields.get("Image").is_some_and(|i| i.is_null() || i == "")
        || (fields.get("Image").is_none() && fields.get("Inserted") == Some(&Value::Bool(false)));
    if ejects {
        state.eject(place.system, place.slot, asked.now, &core.personality);
    } else {
        if core.personality.media.must_insert && fields.get("Inserted") != Some(&Value::Bool(true)) {
            let text = "The property Inserted is a required property and must be included in the request.";
            return Err(Problem::bad_request("PropertyMissing", text).args(&["Inserted"]).about("#/Inserted"));
        }
        if slot.inserted {
            return Err(core.personality.media.occupied.into());
        }
        let medium = medium(core, &fields)?;
        refused(state, asked)?;
        if !ignored(state, asked) {
            state.insert(place.system, place.slot, medium);
        }
    }
    Ok(match core.personality.boot.answer {
        Answer::Resource => core
            .body(state, asked, &asked.path, Spot::Drive(drive))
            .map_or_else(|| Reply::empty(StatusCode::NO_CONTENT), Reply::ok),
        _ => done(core),
    })
}

fn slot(state: &State, system: usize, slot: usize) -> Option<&Slot> {
    state.servers.get(system).and_then(|s| s.slots.get(slot))
}

/// What was asked for, if this BMC can do it.
fn medium(core: &Core, fields: &Map<String, Value>) -> Result<Medium, Problem> {
    let rules = &core.personality.media;
    let missing = |name: &str| Problem::missing_parameter(INSERT, name);
    let image = fields.get("Image").ok_or_else(|| missing("Image"))?;
    let image = image.as_str().ok_or_else(|| Problem::wrong_type(image, "Image"))?;
    if let Some(name) = rules.required_parameters.iter().find(|name| !fields.contains_key(**name)) {
        return Err(missing(name));
    }
    let scheme = image.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let wrong = |why: &str| {
        let text = format!("The value '{image}' for the parameter Image is of a format that is not accepted: {why}.");
        Problem::bad_request("ActionParameterValueFormatError", text).args(&[image, "Image", INSERT]).about("#/Image")
    };
    if !scheme.is_some_and(|scheme| rules.schemes.contains(&scheme.as_str())) {
        return Err(wrong(&format!("the scheme must be one of {}", rules.schemes.join(", "))));
    }
    if rules.refuses_queries && image.contains(['?', '&', '=']) {
        return Err(wrong("a query is not supported"));
    }
    let flag = |name: &str, default: bool| match fields.get(name) {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(Problem::wrong_type(other, name)),
    };
    let inserted = flag("Inserted", true)?;
    if rules.must_insert && !inserted {
        return Err(Problem::parameter_not_in_list("false", "Inserted", INSERT));
    }
    Ok(Medium { image: image.to_owned(), inserted, write_protected: flag("WriteProtected", true)? })
}

fn refused(state: &mut State, asked: &Asked<'_>) -> Result<(), Problem> {
    if state.disabled_remote_media(asked.now, &asked.facts()).is_some() {
        return Err(Problem::bad_request("GeneralError", "Remote media support is disabled.").about("#/Image"));
    }
    let message = state.trouble(asked.now, &asked.facts(), |e| match e {
        Effect::RefusesMedia(message) => Some(message.clone()),
        _ => None,
    });
    message.map_or(Ok(()), |message| Err(Problem::bad_request("GeneralError", message).about("#/Image")))
}

fn ignored(state: &mut State, asked: &Asked<'_>) -> bool {
    state.trouble(asked.now, &asked.facts(), |e| matches!(e, Effect::IgnoresMedia).then_some(())).is_some()
}
