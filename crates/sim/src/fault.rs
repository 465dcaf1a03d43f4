//! Fault injection by rules, which can be changed while the BMC runs.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::kind::{Kind, Verb};
use crate::reply::{Problem, Reply};
use crate::server::PowerState;

/// A rule: which requests, how often, what happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct Fault {
    /// Which requests; by default all.
    pub when: When,
    /// How often, by default always.
    pub limit: Limit,
    /// What happens.
    pub effect: Effect,
}

/// Which requests a fault is for. What is not set matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The method.
    pub method: Option<Verb>,
    /// The path, with `*` for any number of characters; the case does not matter.
    pub path: Option<String>,
    /// The kind of resource or action.
    pub kind: Option<Kind>,
}

/// How often and how long a fault happens. What is not set does not limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit {
    /// So many times.
    pub times: Option<u32>,
    /// With this probability, from the BMC's own seed.
    pub probability: Option<f64>,
    /// For this long from the moment it is added.
    pub duration: Option<Duration>,
}

/// A fault as it is written in JSON: flat, and without room for a misspelt condition, which would match everything.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<Verb>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    times: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::seconds::option")]
    duration: Option<Duration>,
    effect: Effect,
}

impl From<Flat> for Fault {
    fn from(flat: Flat) -> Self {
        Self {
            when: When { method: flat.method, path: flat.path, kind: flat.kind },
            limit: Limit { times: flat.times, probability: flat.probability, duration: flat.duration },
            effect: flat.effect,
        }
    }
}

impl From<Fault> for Flat {
    fn from(fault: Fault) -> Self {
        let Fault { when, limit, effect } = fault;
        Self {
            method: when.method,
            path: when.path,
            kind: when.kind,
            times: limit.times,
            probability: limit.probability,
            duration: limit.duration,
            effect,
        }
    }
}

/// The body of a failing answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultBody {
    /// A Redfish error.
    #[default]
    Redfish,
    /// The page of a web server that lost its back end.
    Html,
    /// This text.
    Text(String),
    /// This JSON, valid or not.
    Json(String),
    /// A sentence that quotes the token of the session.
    Token,
    /// Nothing.
    Empty,
}

/// How the image in a drive is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageName {
    /// `host:443/path`: with a port, without a scheme.
    WithPort,
    /// The last part of the path.
    FileName,
}

impl ImageName {
    /// What is shown for this image.
    pub(crate) fn of(self, image: &str) -> String {
        let (scheme, rest) = image.split_once("://").unwrap_or(("http", image));
        let port = if scheme == "https" { ":443/" } else { ":80/" };
        match self {
            Self::WithPort => rest.replacen('/', port, 1),
            Self::FileName => rest.rsplit('/').next().unwrap_or_default().to_owned(),
        }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// The answer comes late.
    Latency(#[serde(with = "crate::seconds")] Duration),
    /// The request is not carried out and this is the answer.
    Status {
        /// HTTP status.
        code: u16,
        /// Its body.
        #[serde(default)]
        body: FaultBody,
    },
    /// The request is carried out, but this is the answer.
    StatusAfter {
        /// HTTP status.
        code: u16,
        /// Its body.
        #[serde(default)]
        body: FaultBody,
    },
    /// For this long after a change (power, boot, media), nothing but the service root can be read: iDRAC's SYS518.
    Unreadable(#[serde(with = "crate::seconds")] Duration),
    /// The connection is refused; nothing was sent.
    Refuse,
    /// The connection is dropped and the request not carried out.
    Drop,
    /// The request is carried out, and then the connection is dropped.
    DropAnswer,
    /// No answer, ever.
    Hang,
    /// 401 to everything but the service root.
    Unauthorized,
    /// As many sessions and no more.
    SessionLimit(usize),
    /// After power went on or off, the old state is reported for this long.
    StalePower(#[serde(with = "crate::seconds")] Duration),
    /// This power state is reported, whatever it is.
    LyingPower(PowerState),
    /// `PowerState` is null.
    NoPower,
    /// For this long after power went off, power commands get 409.
    RestAfterOff(#[serde(with = "crate::seconds")] Duration),
    /// Power changes take so much longer.
    SlowPower(#[serde(with = "crate::seconds")] Duration),
    /// Resets are accepted and not carried out.
    IgnoresReset,
    /// Boot overrides are accepted and not stored.
    IgnoresBootOverride,
    /// A one-time override is consumed, but the disk boots.
    IgnoresOneTimeBoot,
    /// A one-time override stays armed, but the disk boots.
    KeepsOneTimeBoot,
    /// A one-time override is obeyed, and goes on being shown as armed.
    ShowsUsedOverride,
    /// The image in a drive is not shown as it was given.
    ShowsImage(ImageName),
    /// An empty drive shows the word `None` as its image, as AMI's do.
    ShowsNone,
    /// InsertMedia is refused with this message.
    RefusesMedia(String),
    /// InsertMedia is accepted and nothing is inserted.
    IgnoresMedia,
    /// Remote media are disabled in the BMC's settings, as on AMI's: its manager says so, and while nothing is inserted it shows
    /// no drives and refuses images. Ends when they are enabled by the action.
    RemoteMediaDisabled {
        /// The manager offers the action that enables them; else somebody has to do it in the settings.
        offers_action: bool,
    },
    /// Tasks and their monitors are 404.
    LosesTasks,
    /// Bodies begin with a byte order mark and contain a text that is no UTF-8.
    Garbles,
    /// Collections list their first member twice.
    RepeatsMembers,
    /// Systems show their UUID in the other byte order, as after an update of their BIOS.
    TurnsUuid,
}

impl Effect {
    /// Everywhere and always.
    pub fn always(self) -> Fault {
        Fault { when: When::default(), limit: Limit::default(), effect: self }
    }
}

impl Fault {
    /// Only so many times.
    pub fn times(mut self, times: u32) -> Self {
        self.limit.times = Some(times);
        self
    }

    /// Only with this probability.
    pub fn probability(mut self, probability: f64) -> Self {
        self.limit.probability = Some(probability);
        self
    }

    /// Only for this long.
    pub fn lasting(mut self, duration: Duration) -> Self {
        self.limit.duration = Some(duration);
        self
    }

    /// Only for this method.
    pub fn method(mut self, verb: Verb) -> Self {
        self.when.method = Some(verb);
        self
    }

    /// Only for paths that match; `*` stands for any number of characters.
    pub fn path(mut self, glob: impl Into<String>) -> Self {
        self.when.path = Some(glob.into());
        self
    }

    /// Only for this kind of resource or action.
    pub fn kind(mut self, kind: Kind) -> Self {
        self.when.kind = Some(kind);
        self
    }
}

/// Names a fault that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FaultId(pub u64);

/// What a rule is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) verb: Verb,
    pub(crate) path: &'a str,
    pub(crate) kind: Kind,
}

impl When {
    fn matches(&self, facts: &Facts<'_>) -> bool {
        self.method.is_none_or(|verb| verb == facts.verb)
            && self.kind.is_none_or(|kind| kind == facts.kind)
            && self.path.as_deref().is_none_or(|glob| glob_matches(glob.as_bytes(), facts.path.as_bytes()))
    }
}

fn glob_matches(glob: &[u8], text: &[u8]) -> bool {
    match glob.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|i| glob_matches(rest, &text[i..])),
        Some((letter, rest)) => text
            .split_first()
            .is_some_and(|(first, text)| first.eq_ignore_ascii_case(letter) && glob_matches(rest, text)),
    }
}

#[derive(Debug)]
struct Active {
    id: FaultId,
    fault: Fault,
    since: Instant,
    fired: u32,
}

impl Active {
    fn holds(&self, at: Instant) -> bool {
        self.fault.limit.times.is_none_or(|times| self.fired < times)
            && self.fault.limit.duration.is_none_or(|duration| at < self.since + duration)
    }
}

/// The faults of one BMC.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    active: Vec<Active>,
    next: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault, now: Instant) -> FaultId {
        self.next += 1;
        let id = FaultId(self.next);
        self.active.push(Active { id, fault, since: now, fired: 0 });
        id
    }

    pub(crate) fn remove(&mut self, id: FaultId) -> bool {
        let before = self.active.len();
        self.active.retain(|a| a.id != id);
        self.active.len() < before
    }

    pub(crate) fn clear(&mut self) {
        self.active.clear();
    }

    /// Somebody has enabled remote media.
    pub(crate) fn enable_remote_media(&mut self) {
        self.active.retain(|active| !matches!(active.fault.effect, Effect::RemoteMediaDisabled { .. }));
    }

    pub(crate) fn list(&self) -> Vec<(FaultId, Fault)> {
        self.active.iter().map(|a| (a.id, a.fault.clone())).collect()
    }

    /// The first fault that holds now and of which `pick` wants something. It counts as fired.
    /// Without facts the rule's own conditions are not asked: the firmware acts, not a request.
    pub(crate) fn fires<T>(
        &mut self,
        at: Instant,
        facts: Option<&Facts<'_>>,
        rng: &mut fastrand::Rng,
        pick: impl Fn(&Effect) -> Option<T>,
    ) -> Option<T> {
        for active in &mut self.active {
            let Some(found) = pick(&active.fault.effect) else { continue };
            if !active.holds(at) || facts.is_some_and(|facts| !active.fault.when.matches(facts)) {
                continue;
            }
            if active.fault.limit.probability.is_some_and(|p| rng.f64() >= p) {
                continue;
            }
            active.fired += 1;
            return Some(found);
        }
        None
    }
}

/// The answer of a [`Effect::Status`].
pub(crate) fn failing(code: u16, body: &FaultBody, rules: &crate::personality::Messages) -> Reply {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match body {
        FaultBody::Redfish => {
            let (id, text) = match code {
                503 => {
                    ("ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 10 seconds.")
                }
                401 => ("NoValidSession", "There is no valid session established with the implementation."),
                404 => ("ResourceMissingAtURI", "The resource at the URI was not found."),
                500..=599 => ("InternalError", "The request failed due to an internal service error."),
                _ => ("GeneralError", "A general error has occurred."),
            };
            Problem::new(status, id, text).into_reply(rules)
        }
        FaultBody::Html => Reply::raw(
            status,
            Bytes::from(format!(
                "<!DOCTYPE html><html><head><title>{status}</title></head><body><h1>{status}</h1>\
                 <p>The proxy server did not receive a timely response from the upstream server.</p></body></html>"
            )),
            "text/html",
        ),
        FaultBody::Text(text) => Reply::raw(status, Bytes::from(text.clone()), "text/plain"),
        FaultBody::Json(text) => Reply::raw(status, Bytes::from(text.clone()), "application/json"),
        // Whose token it is only the request knows.
        FaultBody::Token | FaultBody::Empty => Reply::empty(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_number_of_characters() {
        for (glob, text, yes) in [
            ("/redfish/v1/Systems/*", "/redfish/v1/Systems/1/Processors", true),
            ("*/Systems/*", "/redfish/v1/systems/1", true),
            ("*Reset", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", true),
            ("/redfish/v1", "/redfish/v1/Systems", false),
            ("*", "", true),
        ] {
            assert_eq!(glob_matches(glob.as_bytes(), text.as_bytes()), yes, "{glob} {text}");
        }
    }

    #[test]
    fn a_rule_reads_as_json() {
        let text = r#"{"kind":"Reset","method":"POST","times":2,"effect":{"Status":{"code":503,"body":"Html"}}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        let status = Effect::Status { code: 503, body: FaultBody::Html };
        assert_eq!(fault, status.always().kind(Kind::Reset).method(Verb::Post).times(2));
        let text = r#"{"duration":30,"effect":{"StalePower":30}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        let seconds = Duration::from_secs(30);
        assert_eq!(fault, Effect::StalePower(seconds).always().lasting(seconds));
        assert_eq!(serde_json::from_str::<Fault>(&serde_json::to_string(&fault).unwrap()).unwrap(), fault);
        let misspelt = r#"{"knd":"Reset","effect":"Drop"}"#;
        assert!(serde_json::from_str::<Fault>(misspelt).is_err());
    }
}
