//! The annotation by which users ask for something to be done to a Server once.

use api::ironcore::Server;
use api::ironcore::names::{self, operations};
use engine::host::{HeldOff, Manner, Phase, Record, Restart};
use engine::server::PowerState;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use crate::dialect::{News, Outcome};

fn asked(server: &Server) -> Option<&str> {
    server.annotations().get(names::OPERATION).map(String::as_str)
}

/// How the server is to be restarted.
pub(super) fn restart(server: &Server) -> Option<Restart> {
    match asked(server)? {
        operations::GRACEFUL_RESTART_SERVER => Some(Restart::OffThenOn(Manner::Soft)),
        operations::HARD_RESTART_SERVER => Some(Restart::Reset),
        operations::POWER_CYCLE_SERVER => Some(Restart::OffThenOn(Manner::Hard)),
        _ => None,
    }
}

/// Distinguishes a restart request from the last one that was carried out. The annotation was removed then, so one that is there is new,
/// whatever it says. The id stays the same until the request is carried out.
pub(super) fn restart_id(server: &Server, record: Option<&Record>) -> Option<String> {
    restart(server)?;
    let (asked, last) = (asked(server)?, record.and_then(|record| record.rebooted.as_deref()));
    Some(if last == Some(asked) { format!("{asked} again") } else { asked.to_owned() })
}

/// Whether its power is to be cut once.
pub(super) fn cut(server: &Server) -> Option<HeldOff> {
    let is_asked = asked(server) == Some(operations::FORCE_OFF_SERVER);
    is_asked.then_some(HeldOff { manner: Manner::Hard, lasts: false, once: true, also_free: true })
}

/// Whether somebody asks for the server to be parked.
pub(super) fn parks(server: &Server) -> bool {
    asked(server) == Some(operations::PARK)
}

/// Whether a server is parked, and not to be unparked.
pub(super) fn is_parked(server: &Server) -> bool {
    server.annotations().contains_key(names::PARKED) && asked(server) != Some(operations::UNPARK)
}

/// What becomes of the annotation.
enum Fate {
    /// It stays: what it asks for is being done, or has to wait.
    Stays,
    /// It is taken off without a word.
    Done,
    /// The server is parked now.
    Parked,
    /// The server is looked after again.
    Unparked,
    /// It is taken off, and somebody is told why.
    Refused(&'static str, String),
}

fn fate(outcome: &Outcome<'_, Server>) -> Option<Fate> {
    let (server, record) = (outcome.host, &outcome.step.record);
    let asked = asked(server)?;
    let is_marked = server.annotations().contains_key(names::PARKED);
    let is_power = restart(server).is_some() || cut(server).is_some();
    Some(match asked {
        operations::PARK if is_marked => Fate::Done,
        operations::PARK => {
            let is_off = record.phase == Phase::Parked && record.power == PowerState::Off;
            if is_off && outcome.step.acts.is_empty() { Fate::Parked } else { Fate::Stays }
        }
        operations::UNPARK if is_marked => Fate::Unparked,
        operations::UNPARK => Fate::Done,
        _ if is_power && is_marked => Fate::Refused(
            "ParkedOperationDropped",
            format!(
                "The annotation {} asked for {asked}. It was removed: nothing is done to a parked server.",
                names::OPERATION
            ),
        ),
        _ if is_power => Fate::Stays,
        operations::ALLOW_IN_PROGRESS_DELETE => Fate::Stays,
        operations::FORCE_ON_SERVER => Fate::Refused(
            "UnsupportedOperation",
            format!(
                "The annotation {} asked for {asked}. It was removed: the power of a server follows spec.power of its ServerClaim.",
                names::OPERATION
            ),
        ),
        other => Fate::Refused(
            "UnsupportedOperation",
            format!("The annotation {} is {other:?}, which is not supported. It was removed.", names::OPERATION),
        ),
    })
}

/// What users are told.
pub(super) fn events(outcome: &Outcome<'_, Server>) -> Vec<News> {
    let (warning, reason, message) = match fate(outcome) {
        Some(Fate::Parked) => (false, "Parked", "The server is off, and left alone until it is unparked.".to_owned()),
        Some(Fate::Unparked) => (false, "Unparking", "The server is looked after again.".to_owned()),
        Some(Fate::Refused(reason, message)) => (true, reason, message),
        Some(Fate::Stays | Fate::Done) | None => return Vec::new(),
    };
    vec![News { warning, reason: reason.to_owned(), message }]
}

/// The annotations that change: what was done is taken off, and that a server is parked outlives its status.
pub(super) fn follow(outcome: &Outcome<'_, Server>, annotations: &mut Map<String, Value>) {
    let Some(fate) = fate(outcome) else { return };
    match fate {
        Fate::Stays => return,
        Fate::Parked => {
            annotations.insert(names::PARKED.to_owned(), json!("true"));
        }
        Fate::Unparked => {
            annotations.insert(names::PARKED.to_owned(), Value::Null);
        }
        Fate::Done | Fate::Refused(..) => {}
    }
    annotations.insert(names::OPERATION.to_owned(), Value::Null);
}
