//! PATCH of the BIOS settings.

use serde_json::Value;

use super::done;
use crate::bios::Pending;
use crate::bmc::{Core, State};
use crate::personality::ApplyTime;
use crate::reply::{Problem, Reply};
use crate::serve::Asked;

const APPLY_TIME: &str = "@Redfish.SettingsApplyTime";

pub(crate) fn patch_bios(core: &Core, state: &mut State, asked: &Asked<'_>) -> Result<Reply, Problem> {
    let fields = asked.object()?;
    let rules = &core.personality.bios;
    if let Some(unknown) = fields.keys().find(|name| *name != "Attributes" && *name != APPLY_TIME) {
        return Err(Problem::unknown_property(unknown));
    }
    let time = fields.get(APPLY_TIME).and_then(|t| t["ApplyTime"].as_str());
    if rules.apply_time == ApplyTime::Refused && fields.contains_key(APPLY_TIME) {
        return Err(Problem::unknown_property(APPLY_TIME));
    }
    if let Some(time) = time.filter(|time| *time != "OnReset") {
        return Err(Problem::not_in_list(time, &format!("{APPLY_TIME}/ApplyTime")));
    }
    let attributes = match fields.get("Attributes") {
        Some(Value::Object(attributes)) => attributes.clone(),
        Some(other) => return Err(Problem::wrong_type(other, "Attributes")),
        None => return Err(Problem::bad_request("PropertyMissing", "The property Attributes is required.")),
    };
    let system = core.bios_owner(&asked.path).ok_or_else(|| Problem::not_found(&asked.path))?;
    let boots = state.servers[system].boots;
    let bios = state.bios.entry(system).or_default();
    // One job at a time: the next waits for a boot.
    if bios.pending.as_ref().is_some_and(|p| p.task.is_some()) {
        let text = "The change to the requested resource failed because the resource is in use or in transition.";
        return Err(Problem::bad_request("ResourceInUse", text));
    }
    let mut waiting = bios.pending.take().map(|p| p.attributes).unwrap_or_default();
    waiting.extend(attributes);
    let ordered = rules.apply_time != ApplyTime::Required || time.is_some();
    let (task, reply) = if rules.apply_time == ApplyTime::Required && ordered {
        let (task, reply) = state.tasks.start_waiting("BIOS configuration", asked.now, &core.task_names());
        (Some(task), reply)
    } else {
        (None, done(core))
    };
    bios.pending = Some(Pending { attributes: waiting, boots: ordered.then_some(boots), task });
    Ok(reply)
}
