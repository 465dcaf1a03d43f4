//! What lives, laid over a resource as the tree has it.

use serde_json::{Value, json};

use crate::act;
use crate::bmc::{Core, Source, State};
use crate::fault::Effect;
use crate::kind::Kind;
use crate::place::Spot;
use crate::serve::Asked;
use crate::server::{PowerState, Slot};

impl Core {
    /// The resource at this path as it is now.
    pub(crate) fn body(&self, state: &mut State, asked: &Asked<'_>, path: &str, spot: Spot) -> Option<Value> {
        let mut body = match &self.source {
            Source::Built(built) => built.get(path),
            Source::Recorded(tree) => tree.get(path),
        }?;
        // Not the request's: an expanded body has parts of other kinds.
        let kind = if spot == Spot::Still { Kind::of(path) } else { Kind::Other };
        match spot {
            Spot::System(index) => self.lay_system(state, asked, index, &mut body),
            Spot::Settings(index) => lay_boot(state, asked, index, &mut body),
            Spot::Drive(index) => self.lay_drive(state, asked, index, &mut body),
            Spot::Sessions => {
                let sessions = &state.desk.sessions;
                body["Members@odata.count"] = json!(sessions.len());
                body["Members"] = sessions
                    .iter()
                    .map(|s| json!({ "@odata.id": format!("{}/{}", self.places.sessions, s.id) }))
                    .collect();
            }
            Spot::Still if matches!(kind, Kind::Bios | Kind::BiosSettings) => {
                self.lay_bios(state, path, kind == Kind::BiosSettings, &mut body);
            }
            Spot::Still if matches!(kind, Kind::Manager | Kind::VirtualMediaCollection) => {
                lay_disabled_media(state, asked, path, kind, &mut body);
            }
            Spot::Tasks => body = state.tasks.collection(body, &self.task_names()),
            Spot::Still if kind == Kind::Systems => self.lay_present(state, &mut body),
            _ => {}
        }
        Some(body)
    }

    /// Whether a path leads to a system that is not there.
    pub(crate) fn is_of_absent_system(&self, state: &State, path: &str) -> bool {
        let Some(present) = &state.present else { return false };
        let is_below = |place: &str| {
            let rest =
                path.get(..place.len()).filter(|start| start.eq_ignore_ascii_case(place)).map(|_| &path[place.len()..]);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let of = self.places.systems.iter().position(|system| is_below(&system.path));
        of.is_some_and(|system| !present.contains(&system))
    }

    /// The collection has the systems that are there, in their order.
    fn lay_present(&self, state: &State, body: &mut Value) {
        let Some(present) = &state.present else { return };
        let all = body["Members"].as_array().cloned().unwrap_or_default();
        let leads_to = |member: &Value, path: &str| {
            member["@odata.id"].as_str().is_some_and(|link| link.trim_end_matches('/').eq_ignore_ascii_case(path))
        };
        let listed = present.iter().filter_map(|index| self.places.systems.get(*index));
        let members: Vec<_> =
            listed.filter_map(|system| all.iter().find(|member| leads_to(member, &system.path)).cloned()).collect();
        body["Members@odata.count"] = json!(members.len());
        body["Members"] = members.into();
    }

    fn lay_system(&self, state: &mut State, asked: &Asked<'_>, index: usize, body: &mut Value) {
        if body.get("PowerState").is_some() {
            body["PowerState"] = self.shown_power(state, asked, index);
        }
        let server = &state.servers[index];
        if body["BootProgress"].is_object() {
            match server.boot_progress(asked.now) {
                Some(progress) => body["BootProgress"]["LastState"] = json!(progress),
                // Nothing is better than a guess, on which clients would act.
                None => body["BootProgress"] = json!({}),
            }
        }
        if body["Oem"]["Hpe"]["PostState"].is_string() {
            body["Oem"]["Hpe"]["PostState"] = json!(server.post_state(asked.now));
        }
        if let Some(health) = &state.health
            && body["Status"].is_object()
        {
            body["Status"]["Health"] = json!(health);
            body["Status"]["HealthRollup"] = json!(health);
        }
        lay_boot(state, asked, index, body);
    }

    fn shown_power(&self, state: &mut State, asked: &Asked<'_>, index: usize) -> Value {
        let (truth, turned) = (state.servers[index].power(), state.servers[index].turned);
        let now = asked.now;
        let lie = state.trouble(now, &asked.facts(), |e| match e {
            Effect::LyingPower(power) => Some(json!(power)),
            Effect::NoPower => Some(Value::Null),
            Effect::StalePower(period) => {
                turned.filter(|(at, _)| now < *at + *period).map(|(_, before)| json!(before.as_str()))
            }
            _ => None,
        });
        lie.unwrap_or_else(|| {
            let shown = match truth {
                PowerState::PoweringOn if !self.personality.power.shows_transitions => PowerState::Off,
                PowerState::PoweringOff if !self.personality.power.shows_transitions => PowerState::On,
                power => power,
            };
            json!(shown.as_str())
        })
    }

    fn lay_drive(&self, state: &mut State, asked: &Asked<'_>, index: usize, body: &mut Value) {
        let place = &self.places.drives[index];
        let (name, none) = (
            state.trouble(asked.now, &asked.facts(), |e| match e {
                Effect::ShowsImage(name) => Some(*name),
                _ => None,
            }),
            state.trouble(asked.now, &asked.facts(), |e| matches!(e, Effect::ShowsNone).then_some(())),
        );
        let rules = &self.personality.media;
        let Some(slot) = state.servers.get(place.system).and_then(|s| s.slots.get(place.slot)) else { return };
        // An eject in progress looks as if nothing had happened yet.
        let leaving = slot.ejecting.as_ref().map(|(_, image)| Slot {
            image_name: image.rsplit('/').next().map(str::to_owned),
            image: Some(image.clone()),
            inserted: true,
            ..slot.clone()
        });
        let shown = leaving.as_ref().unwrap_or(slot);
        let empty = match none {
            Some(()) => json!("None"),
            None if rules.empty_image => json!(""),
            None => Value::Null,
        };
        let named = |image: &String| name.map_or_else(|| json!(image), |name| json!(name.of(image)));
        body["Image"] = shown.image.as_ref().map_or(empty, named);
        body["Inserted"] = json!(shown.inserted);
        body["ConnectedVia"] = json!(if shown.inserted { "URI" } else { "NotConnected" });
        body["WriteProtected"] = json!(shown.write_protected);
        if body.get("ImageName").is_some() {
            body["ImageName"] = json!(shown.image_name);
        }
        if let Some(actions) = body.get_mut("Actions").and_then(Value::as_object_mut) {
            const EJECT: &str = "#VirtualMedia.EjectMedia";
            if rules.eject_only_when_inserted && !shown.inserted {
                actions.remove(EJECT);
            } else if shown.inserted
                && !actions.contains_key(EJECT)
                && let Some(target) = &place.eject
            {
                actions.insert(EJECT.to_owned(), json!({ "target": target }));
            }
        }
    }
}

/// Remote media that are disabled, as AMI's managers show it.
fn lay_disabled_media(state: &mut State, asked: &Asked<'_>, path: &str, kind: Kind, body: &mut Value) {
    let Some(offers_action) = state.disabled_remote_media(asked.now, &asked.facts()) else { return };
    if kind == Kind::VirtualMediaCollection {
        body["Members"] = json!([]);
        body["Members@odata.count"] = json!(0);
        return;
    }
    body["Oem"]["Ami"]["VirtualMedia"]["RMediaStatus"] = json!("Disabled");
    if offers_action {
        let target = format!("{path}/Actions/Oem/{}", act::ENABLE);
        body["Actions"]["Oem"][format!("#{}", act::ENABLE)] = json!({ "target": target });
    }
}

/// Only properties that the tree has, so that a BMC without a mode stays without.
fn lay_boot(state: &mut State, asked: &Asked<'_>, index: usize, body: &mut Value) {
    let used = state.servers[index].used_override.clone();
    let shown = state.trouble(asked.now, &asked.facts(), |e| match e {
        Effect::ShowsUsedOverride => used.clone(),
        _ => None,
    });
    let set = shown.as_ref().unwrap_or(&state.servers[index].boot);
    let Some(boot) = body.get_mut("Boot").and_then(Value::as_object_mut) else { return };
    for (name, value) in [
        ("BootSourceOverrideTarget", json!(set.target)),
        ("BootSourceOverrideEnabled", json!(set.enabled.as_str())),
        ("BootSourceOverrideMode", json!(set.mode.as_str())),
        ("HttpBootUri", json!(set.http_uri)),
    ] {
        if let Some(field) = boot.get_mut(name) {
            *field = value;
        }
    }
}
