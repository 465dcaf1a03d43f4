//! `#ComputerSystem.Reset`.

use http::StatusCode;
use serde_json::Value;

use super::{check_headers, done};
use crate::bmc::{Core, State};
use crate::fault::Effect;
use crate::personality::SameState;
use crate::reply::{Problem, Reply};
use crate::serve::Asked;
use crate::server::{PowerState, ResetType};
use crate::task::Deferred;

const ACTION: &str = "ComputerSystem.Reset";

pub(crate) fn reset(core: &Core, state: &mut State, asked: &Asked<'_>, system: usize) -> Result<Reply, Problem> {
    check_headers(core, asked)?;
    let fields = asked.object()?;
    if let Some(unknown) = fields.keys().find(|name| *name != "ResetType" && !name.starts_with('@')) {
        return Err(Problem::unknown_parameter(ACTION, unknown));
    }
    let word = fields.get("ResetType").ok_or_else(|| Problem::missing_parameter(ACTION, "ResetType"))?;
    let word = word.as_str().ok_or_else(|| Problem::wrong_type(word, "ResetType"))?;
    let place = &core.places.systems[system];
    let allowed = place.reset_types.is_empty() || place.reset_types.iter().any(|t| t == word);
    let kind = ResetType::parse(word)
        .filter(|_| allowed)
        .ok_or_else(|| Problem::parameter_not_in_list(word, "ResetType", ACTION))?;

    check_timing(core, state, asked, system, kind)?;
    let rules = &core.personality.power;
    let power = state.servers[system].power();
    if useless(power, kind, rules.restart_starts) {
        return match rules.same_state {
            SameState::Accepted => Ok(done(core)),
            SameState::Refused(refusal) => Err(refusal.into()),
        };
    }
    let ignored = state.trouble(asked.now, &asked.facts(), |e| matches!(e, Effect::IgnoresReset).then_some(()));
    if ignored.is_none() {
        let slow = state.trouble(asked.now, &asked.facts(), |e| match e {
            Effect::SlowPower(extra) => Some(*extra),
            _ => None,
        });
        state.servers[system].reset(kind, asked.now, slow.unwrap_or_default());
    }
    Ok(match core.personality.tasks.power {
        Some(time) => state.tasks.start("Reset", asked.now, asked.now + time, Deferred::Nothing, &core.task_names()),
        None => done(core),
    })
}

/// Refusals that pass by themselves.
fn check_timing(
    core: &Core,
    state: &mut State,
    asked: &Asked<'_>,
    system: usize,
    kind: ResetType,
) -> Result<(), Problem> {
    let rules = &core.personality.power;
    let server = &state.servers[system];
    if let Some((period, refusal)) = rules.busy
        && server.commanded_at.is_some_and(|at| asked.now < at + period)
    {
        return Err(refusal.into());
    }
    let went_off = server.turned.filter(|(_, before)| *before == PowerState::On).map(|(at, _)| at);
    let conflict = || {
        let word = Value::from(kind.as_str());
        Err(Problem::new(
            StatusCode::CONFLICT,
            "ActionParameterValueConflict",
            format!("The parameter ResetType with the value {word} conflicts with the present state of the resource."),
        )
        .args(&["ResetType", kind.as_str()])
        .about("#/ResetType"))
    };
    let starts = matches!(kind, ResetType::On | ResetType::ForceOn);
    if starts && went_off.zip(rules.rest_after_off).is_some_and(|(at, period)| asked.now < at + period) {
        return conflict();
    }
    let rest = state.trouble(asked.now, &asked.facts(), |e| match e {
        Effect::RestAfterOff(period) => went_off.filter(|at| asked.now < *at + *period),
        _ => None,
    });
    if rest.is_some() { conflict() } else { Ok(()) }
}

/// Whether the server is already what it would become, or is off and cannot be restarted.
fn useless(power: PowerState, kind: ResetType, restart_starts: bool) -> bool {
    match kind {
        ResetType::On | ResetType::ForceOn => matches!(power, PowerState::On | PowerState::PoweringOn),
        ResetType::ForceOff | ResetType::GracefulShutdown | ResetType::Nmi => power == PowerState::Off,
        ResetType::ForceRestart | ResetType::GracefulRestart | ResetType::PowerCycle | ResetType::FullPowerCycle => {
            power == PowerState::Off && !restart_starts
        }
        ResetType::PushPowerButton => false,
    }
}
