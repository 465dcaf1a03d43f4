//! The way of a request through a BMC: faults, login, then reading or acting.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, ETAG, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::act;
use crate::bmc::{Core, Dropped, Source, State};
use crate::fault::{Effect, Facts, FaultBody, failing};
use crate::journal::{Mutation, Outcome};
use crate::kind::{Kind, Verb};
use crate::personality::IfMatch;
use crate::place::{ROOT, Spot};
use crate::query::{self, Params};
use crate::reply::{Problem, Reply};
use crate::task::Names;

const NOT_READY: &str =
    "The operation cannot be completed because the data sources are not available. Retry in some seconds.";

/// How a request will end.
#[derive(Debug)]
pub(crate) enum End {
    Answer(Box<Response<Bytes>>),
    Drop(Dropped),
    Hang,
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) wait: Duration,
    pub(crate) end: End,
}

/// A request as the BMC reads it.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) verb: Verb,
    /// Decoded, without a slash at the end.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    pub(crate) params: Params,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a Bytes,
    pub(crate) now: Instant,
}

impl<'a> Asked<'a> {
    fn new(request: &'a Request<Bytes>, now: Instant) -> Self {
        let decoded = query::decode(request.uri().path());
        let path = decoded.trim_end_matches('/').to_owned();
        Self {
            verb: Verb::from(request.method()),
            kind: Kind::of(&path),
            path,
            params: Params::parse(request.uri().query()),
            headers: request.headers(),
            body: request.body(),
            now,
        }
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts { verb: self.verb, path: &self.path, kind: self.kind }
    }

    /// The body as an object.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, Problem> {
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(fields)) => Ok(fields),
            _ => Err(Problem::bad_request(
                "MalformedJSON",
                "The request body submitted was malformed JSON and could not be parsed by the receiving service.",
            )),
        }
    }

    fn header(&self, name: &http::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|v| v.to_str().ok())
    }
}

/// What a BMC may make of a good body.
fn disfigure(state: &mut State, asked: &Asked<'_>, body: &mut Bytes) {
    let mut has =
        |wanted: &Effect| state.trouble(asked.now, &asked.facts(), |effect| (effect == wanted).then_some(())).is_some();
    let (repeats, turns) = (has(&Effect::RepeatsMembers), has(&Effect::TurnsUuid));
    let garbles = has(&Effect::Garbles);
    if (repeats || turns)
        && let Ok(mut value) = serde_json::from_slice::<Value>(body)
    {
        if turns {
            turn_uuids(&mut value);
        }
        if let Some(members) = value.get_mut("Members").and_then(Value::as_array_mut).filter(|_| repeats) {
            members.extend(members.first().cloned());
        }
        *body = value.to_string().into();
    }
    if garbles && let Some(rest) = body.strip_prefix(b"{").filter(|rest| !rest.starts_with(b"}")) {
        *body = [&b"\xef\xbb\xbf{\"Location\":\"M\xfcnchen\","[..], rest].concat().into();
    }
}

/// Of a system, or of the systems that are expanded in a collection.
fn turn_uuids(body: &mut Value) {
    for member in body.get_mut("Members").and_then(Value::as_array_mut).into_iter().flatten() {
        turn_uuids(member);
    }
    let is_system = body["@odata.type"].as_str().is_some_and(|kind| kind.contains("ComputerSystem."));
    let Some(uuid) = body["UUID"].as_str().filter(|uuid| is_system && uuid.len() == 36) else { return };
    let turned = |group: &str| (0..group.len()).step_by(2).rev().map(|at| &group[at..at + 2]).collect::<String>();
    let groups: Vec<&str> = uuid.splitn(4, '-').collect();
    if let [low, mid, high, rest] = groups.as_slice() {
        body["UUID"] = json!([turned(low), turned(mid), turned(high), (*rest).to_owned()].join("-"));
    }
}

impl Core {
    /// Decides how a request ends, and carries it out. What a client sees later, after a wait, has happened now.
    pub(crate) fn take(&self, request: &Request<Bytes>, now: Instant) -> Plan {
        let asked = Asked::new(request, now);
        let mut state = self.state(now);
        let state = &mut *state;
        let late = state.trouble(now, &asked.facts(), |e| match e {
            Effect::Latency(late) => Some(*late),
            _ => None,
        });
        let end = self.end(state, &asked);
        // What takes no time has happened before the answer.
        state.settle(now, &self.personality);
        let outcome = match &end {
            End::Answer(response) => Outcome::Status(response.status().as_u16()),
            End::Drop(_) => Outcome::Dropped,
            End::Hang => Outcome::Hung,
        };
        state.counters.count(asked.verb, asked.kind, outcome);
        if !asked.verb.reads() && !matches!(asked.kind, Kind::Sessions | Kind::Session) {
            state.changed_at = Some(now);
            state.journal.push(Mutation {
                at: now,
                verb: asked.verb,
                kind: asked.kind,
                path: request.uri().path().to_owned(),
                body: shown(asked.body),
                outcome,
            });
        }
        Plan { wait: state.latency + late.unwrap_or_default(), end }
    }

    fn end(&self, state: &mut State, asked: &Asked<'_>) -> End {
        let rules = &self.personality.messages;
        let answer = |reply: Reply| End::Answer(Box::new(reply.into_response(asked.verb != Verb::Head)));
        if state.away_until.is_some_and(|until| asked.now < until) {
            return End::Drop(Dropped::Refused);
        }
        let changed = state.changed_at;
        let is_closed = asked.verb.reads() && !matches!(asked.kind, Kind::Root | Kind::Versions);
        let trouble = state.trouble(asked.now, &asked.facts(), |e| match e {
            Effect::Unreadable(period) if is_closed && changed.is_some_and(|at| asked.now < at + *period) => {
                Some(answer(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "SYS518", NOT_READY).into_reply(rules)))
            }
            Effect::Refuse => Some(End::Drop(Dropped::Refused)),
            Effect::Drop => Some(End::Drop(Dropped::Reset)),
            Effect::Hang => Some(End::Hang),
            Effect::Status { code, body: FaultBody::Token } => {
                let token = asked.headers.get("X-Auth-Token").and_then(|token| token.to_str().ok()).unwrap_or_default();
                let body = FaultBody::Text(format!("The token {token} cannot be used for this."));
                Some(answer(failing(*code, &body, rules)))
            }
            Effect::Status { code, body } => Some(answer(failing(*code, body, rules))),
            Effect::Unauthorized if !matches!(asked.kind, Kind::Root | Kind::Versions) => {
                Some(answer(failing(401, &FaultBody::Redfish, rules)))
            }
            _ => None,
        });
        if let Some(end) = trouble {
            return end;
        }
        let reply = self.reply(state, asked).unwrap_or_else(|problem| problem.into_reply(rules));
        let end = state.trouble(asked.now, &asked.facts(), |e| match e {
            Effect::DropAnswer => Some(End::Drop(Dropped::Reset)),
            Effect::StatusAfter { code, body } => Some(answer(failing(*code, body, rules))),
            _ => None,
        });
        if let Some(end) = end {
            return end;
        }
        let mut response = reply.into_response(asked.verb != Verb::Head);
        if asked.verb == Verb::Get && response.status() == StatusCode::OK {
            disfigure(state, asked, response.body_mut());
        }
        End::Answer(Box::new(response))
    }

    fn reply(&self, state: &mut State, asked: &Asked<'_>) -> Result<Reply, Problem> {
        let login = &self.personality.login;
        state.desk.expire(asked.now, login.timeout);
        let spot = self.places.find(&asked.path, self.personality.tasks.prefix);
        let public = matches!(asked.kind, Kind::Versions | Kind::Root);
        let opening = spot == Spot::Sessions && asked.verb == Verb::Post;
        // A client that sends an old token with a new login is refused, as on real BMCs.
        if !public && (!opening || asked.headers.contains_key("X-Auth-Token")) {
            state.desk.admits(asked.headers, asked.now, login)?;
        }
        if self.is_of_absent_system(state, &asked.path) {
            return Err(Problem::not_found(&asked.path));
        }
        match (asked.verb, spot) {
            (Verb::Get | Verb::Head, Spot::Task(_) | Spot::Monitor(_)) => self.read_task(state, asked, spot),
            (Verb::Get | Verb::Head, Spot::Session(id)) => {
                let known = state.desk.sessions.iter().any(|s| s.id == id);
                if known { Ok(Reply::ok(self.session(state, id))) } else { Err(Problem::not_found(&asked.path)) }
            }
            (Verb::Get | Verb::Head, _) => self.read(state, asked, spot),
            (Verb::Post, Spot::Sessions) => self.open_session(state, asked),
            (Verb::Delete, Spot::Session(id)) if state.desk.close(id) => Ok(Reply::empty(StatusCode::NO_CONTENT)),
            (Verb::Delete, Spot::Task(number)) => state.tasks.delete(number, &self.task_names()),
            (Verb::Post, Spot::Reset(system)) => act::reset(self, state, asked, system),
            (Verb::Post, Spot::Insert(drive)) => act::insert(self, state, asked, drive),
            (Verb::Post, Spot::Eject(drive)) => act::eject(self, state, asked, drive),
            (Verb::Post, Spot::Still) if asked.path.ends_with(act::ENABLE) => {
                act::enable_remote_media(self, state, asked)
            }
            (Verb::Post, Spot::ManagerReset) => Ok(self.restart(state, asked.now)),
            (Verb::Patch, Spot::System(system)) => {
                self.check_precondition(state, asked, spot)?;
                act::patch_system(self, state, asked, system, false)
            }
            (Verb::Patch, Spot::Settings(system)) => {
                self.check_precondition(state, asked, spot)?;
                act::patch_system(self, state, asked, system, true)
            }
            (Verb::Patch, Spot::Drive(drive)) if self.places.drives[drive].patched => {
                self.check_precondition(state, asked, spot)?;
                act::patch_drive(self, state, asked, drive)
            }
            (Verb::Patch, Spot::Still) if asked.kind == Kind::BiosSettings => {
                self.body(state, asked, &asked.path, spot).ok_or_else(|| Problem::not_found(&asked.path))?;
                self.check_precondition(state, asked, spot)?;
                act::patch_bios(self, state, asked)
            }
            _ => Err(self.wrong_method(state, asked, spot)),
        }
    }

    fn wrong_method(&self, state: &mut State, asked: &Asked<'_>, spot: Spot) -> Problem {
        match spot {
            Spot::Reset(_) | Spot::Insert(_) | Spot::Eject(_) | Spot::ManagerReset => Problem::not_allowed("POST"),
            Spot::Session(_) | Spot::Monitor(_) | Spot::Task(_) => Problem::not_found(&asked.path),
            _ if self.body(state, asked, &asked.path, spot).is_some() => Problem::not_allowed(self.allowed(spot)),
            _ => Problem::not_found(&asked.path),
        }
    }

    fn allowed(&self, spot: Spot) -> &'static str {
        match spot {
            Spot::System(_) | Spot::Settings(_) => "GET, HEAD, PATCH",
            Spot::Drive(drive) if self.places.drives[drive].patched => "GET, HEAD, PATCH",
            Spot::Sessions => "GET, HEAD, POST",
            _ => "GET, HEAD",
        }
    }

    fn read(&self, state: &mut State, asked: &Asked<'_>, spot: Spot) -> Result<Reply, Problem> {
        if asked.kind == Kind::Versions {
            return Ok(Reply::ok(json!({ "v1": format!("{ROOT}/") })));
        }
        if matches!(spot, Spot::Reset(_) | Spot::Insert(_) | Spot::Eject(_) | Spot::ManagerReset) {
            return Err(Problem::not_allowed("POST"));
        }
        if asked.kind.is_inventory()
            && let Some((period, refusal)) = self.personality.power.blind
            && state.servers.iter().any(|s| s.commanded_at.is_some_and(|at| asked.now < at + period))
        {
            return Err(refusal.into());
        }
        // Most of a recorded tree is served as it was recorded, byte by byte.
        let lists_present = asked.kind == Kind::Systems && state.present.is_some();
        let still = spot == Spot::Still && !matches!(asked.kind, Kind::Bios | Kind::BiosSettings) && !lists_present;
        if let (Source::Recorded(tree), true, true) = (&self.source, still, asked.params.is_empty()) {
            let (bytes, etag) = tree.raw(&asked.path).ok_or_else(|| Problem::not_found(&asked.path))?;
            let reply = Reply::raw(StatusCode::OK, bytes, "application/json;charset=utf-8");
            return Ok(self.tagged(asked, reply, etag).header(ALLOW, "GET, HEAD"));
        }
        let body = self.body(state, asked, &asked.path, spot).ok_or_else(|| Problem::not_found(&asked.path))?;
        let (mut body, changed) =
            query::apply(body, &asked.path, &asked.params, &self.personality.query, &mut |link| {
                let path = link.trim_end_matches('/');
                let spot = self.places.find(path, self.personality.tasks.prefix);
                let mut body = self.body(state, asked, path, spot)?;
                self.stamp(&mut body, spot);
                Some(body)
            })?;
        let etag = self.stamp(&mut body, spot).filter(|_| !changed);
        Ok(self.tagged(asked, Reply::ok(body), etag).header(ALLOW, self.allowed(spot)))
    }

    fn tagged(&self, asked: &Asked<'_>, reply: Reply, etag: Option<String>) -> Reply {
        let Some(etag) = etag.filter(|_| self.personality.etags.sent) else { return reply };
        let reply = if asked.header(&IF_NONE_MATCH).is_some_and(|known| known == etag || known == "*") {
            Reply::empty(StatusCode::NOT_MODIFIED)
        } else {
            reply
        };
        reply.header(ETAG, etag)
    }

    /// The ETag of a body, which is written into it where bodies carry it.
    fn stamp(&self, body: &mut Value, spot: Spot) -> Option<String> {
        let recorded = body.get("@odata.etag").and_then(Value::as_str).map(str::to_owned);
        if spot == Spot::Still && recorded.is_some() {
            return recorded;
        }
        let rules = &self.personality.etags;
        if !rules.sent {
            return None;
        }
        let in_body = match self.source {
            Source::Built(_) => rules.in_body,
            Source::Recorded(_) => recorded.is_some(),
        };
        let weak = recorded.map_or(rules.weak, |etag| etag.starts_with("W/"));
        if let Some(fields) = body.as_object_mut() {
            fields.remove("@odata.etag");
        }
        let etag = format!("{}\"{:08X}\"", if weak { "W/" } else { "" }, fingerprint(body));
        if in_body {
            body["@odata.etag"] = json!(etag);
        }
        Some(etag)
    }

    fn check_precondition(&self, state: &mut State, asked: &Asked<'_>, spot: Spot) -> Result<(), Problem> {
        let failed = || {
            Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "PreconditionFailed",
                "The ETag supplied did not match the ETag required to change this resource.",
            )
        };
        let given = asked.header(&IF_MATCH);
        let mut current = || {
            let mut body = self.body(state, asked, &asked.path, spot)?;
            self.stamp(&mut body, spot)
        };
        match (self.personality.etags.if_match, given) {
            (IfMatch::Ignored, _) | (_, Some("*")) | (IfMatch::Checked | IfMatch::CheckedStrong, None) => Ok(()),
            (IfMatch::Required, None) => Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                "PreconditionRequired",
                "A precondition header or annotation is required to change this resource.",
            )),
            (IfMatch::CheckedStrong, Some(given)) => {
                // Weak tags never match, and the strong form of our weak one does.
                let current = current().map(|etag| etag.trim_start_matches("W/").to_owned());
                if current.as_deref() == Some(given) { Ok(()) } else { Err(failed()) }
            }
            (IfMatch::Checked | IfMatch::Required, Some(given)) => {
                if current().as_deref() == Some(given) {
                    Ok(())
                } else {
                    Err(failed())
                }
            }
        }
    }

    fn open_session(&self, state: &mut State, asked: &Asked<'_>) -> Result<Reply, Problem> {
        let fields = asked.object()?;
        let text = |name: &str| {
            let missing = || {
                let text = format!("The property {name} is a required property and must be included in the request.");
                Problem::bad_request("PropertyMissing", text).args(&[name]).about(format!("#/{name}"))
            };
            fields.get(name).and_then(Value::as_str).ok_or_else(missing)
        };
        let rules = &self.personality.login;
        let limit = state.trouble(asked.now, &asked.facts(), |e| match e {
            Effect::SessionLimit(limit) => Some(*limit),
            _ => None,
        });
        let limit = limit.unwrap_or(rules.limit);
        let (username, password) = (text("UserName")?, text("Password")?);
        let (id, token) = state.desk.open(username, password, asked.now, limit, rules, &mut state.rng)?;
        Ok(Reply::json(StatusCode::CREATED, self.session(state, id))
            .header(http::HeaderName::from_static("x-auth-token"), token)
            .header(LOCATION, format!("{}/{id}", self.places.sessions)))
    }

    pub(crate) fn session(&self, state: &State, id: u32) -> Value {
        json!({
            "@odata.id": format!("{}/{id}", self.places.sessions),
            "@odata.type": "#Session.v1_3_0.Session",
            "Id": id.to_string(),
            "Name": "User Session",
            "UserName": state.desk.credentials.username,
        })
    }

    fn read_task(&self, state: &mut State, asked: &Asked<'_>, spot: Spot) -> Result<Reply, Problem> {
        if state.trouble(asked.now, &asked.facts(), |e| matches!(e, Effect::LosesTasks).then_some(())).is_some() {
            return Err(Problem::not_found(&asked.path));
        }
        let names = self.task_names();
        match spot {
            Spot::Task(number) => state.tasks.get(number, asked.now, &names).or_else(|problem| match &self.source {
                // A task of the recording.
                Source::Recorded(tree) => tree.get(&asked.path).map(Reply::ok).ok_or(problem),
                Source::Built(_) => Err(problem),
            }),
            Spot::Monitor(number) => state.tasks.monitor(number, asked.now, &names),
            _ => Err(Problem::not_found(&asked.path)),
        }
    }

    pub(crate) fn task_names(&self) -> Names<'_> {
        Names { places: &self.places, rules: &self.personality.tasks }
    }

    /// `#Manager.Reset`: the servers do not notice, the sessions are gone.
    fn restart(&self, state: &mut State, now: Instant) -> Reply {
        state.away_until = Some(now + self.personality.power.bmc_restart);
        state.desk.sessions.clear();
        Reply::empty(StatusCode::NO_CONTENT)
    }
}

/// A body for the journal, without passwords.
fn shown(body: &[u8]) -> String {
    match serde_json::from_slice::<Map<String, Value>>(body) {
        Ok(mut fields) if fields.contains_key("Password") => {
            fields.insert("Password".to_owned(), json!("***"));
            Value::Object(fields).to_string()
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// FNV-1a over the structure.
fn fingerprint(value: &Value) -> u32 {
    fn mix(hash: u64, bytes: &[u8]) -> u64 {
        bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
    }
    fn walk(hash: u64, value: &Value) -> u64 {
        match value {
            Value::Null => mix(hash, b"null"),
            Value::Bool(yes) => mix(hash, if *yes { b"true" } else { b"false" }),
            Value::Number(number) => mix(hash, number.to_string().as_bytes()),
            Value::String(text) => mix(mix(hash, text.as_bytes()), b"\0"),
            Value::Array(items) => mix(items.iter().fold(mix(hash, b"["), walk), b"]"),
            Value::Object(fields) => {
                let inside = |hash, (name, value): (&String, &Value)| walk(mix(hash, name.as_bytes()), value);
                mix(fields.iter().fold(mix(hash, b"{"), inside), b"}")
            }
        }
    }
    let hash = walk(0xcbf2_9ce4_8422_2325, value);
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or_default()
}
