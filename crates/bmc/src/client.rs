//! One BMC and our manners towards it: one session, retries for reads, care with changes.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Method;
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

use crate::address::Address;
use crate::credentials::Credentials;
use crate::error::Error;
use crate::logout;
use crate::observer::Observer;
use crate::quirks::Family;
use crate::resource::Resource;
use crate::retry::{self, NOT_READY, READS};
use crate::service::{self, Service};
use crate::session::{Pass, Session, Verdict};
use crate::tls::Fingerprint;
use crate::transport::{Transport, TransportError};
use crate::wire::{Answer, Ask, ROOT, Wire, WireError};

/// How long anybody waits for the end of a session.
const CLOSING: Duration = Duration::from_secs(10);

/// A BMC and the credentials for it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where.
    pub address: Address,
    /// Credentials.
    pub credentials: Credentials,
    /// The firmware family, if the user sets it.
    pub family: Option<Family>,
}

/// What is handed in from outside.
pub struct Options {
    /// Is called for every request.
    pub observer: Arc<dyn Observer>,
    /// The seed of all jitter.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { observer: Arc::new(()), seed: 0 }
    }
}

/// One BMC: session, manners and what is known of it. Shared by all systems behind it.
///
/// Must be [closed](Client::close) before it is dropped: BMCs have few sessions. If it is dropped without that, it ends its
/// session in the background.
pub struct Client {
    core: Arc<Core>,
    family: Option<Family>,
    /// Logins run to their end even when the caller is cancelled; otherwise a session could be lost.
    logins: TaskTracker,
}

pub(crate) struct Core {
    pub(crate) wire: Wire,
    pub(crate) session: Session,
    service: OnceCell<Service>,
    /// Servers that share a drive take turns in looking what is in it and filling it.
    media: tokio::sync::Mutex<()>,
}

/// How much a read matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Nothing goes without it.
    Needed,
    /// It may be missing or broken.
    Optional,
    /// There is another way to the same goal: no second try after a refusal.
    Attempt,
}

impl Client {
    /// Nothing is sent before the first operation.
    pub fn new(endpoint: Endpoint, transport: Arc<dyn Transport>, options: Options) -> Arc<Self> {
        let Endpoint { address, credentials, family } = endpoint;
        let wire = Wire::new(address, credentials, transport, options.observer, options.seed);
        let core = Arc::new(Core {
            wire,
            session: Session::new(),
            service: OnceCell::new(),
            media: tokio::sync::Mutex::default(),
        });
        logout::remember(&core);
        Arc::new(Self { core, family, logins: TaskTracker::new() })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        self.core.wire.address()
    }

    /// The certificate that it showed last.
    pub fn certificate(&self) -> Option<Fingerprint> {
        self.core.wire.transport().certificate()
    }

    /// Ends the session; later requests fail. Takes ten seconds at most: a login in progress ends its session by itself, also
    /// when it comes later.
    pub async fn close(&self) {
        tokio::time::timeout(CLOSING, self.core.session.close(&self.core.wire)).await.ok();
    }

    /// Lets credentials that the BMC refused be tried once more. By itself the client never does that; its owner may, after a
    /// hold that is long enough for no account to be locked.
    pub fn pardon(&self) {
        self.core.session.pardon();
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.core.wire
    }

    pub(crate) fn origin(&self) -> &str {
        self.core.wire.origin()
    }

    /// The turn of one server with drives that others share.
    pub(crate) async fn media_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.core.media.lock().await
    }

    pub(crate) fn family(&self) -> Option<Family> {
        self.family
    }

    /// The service root; read once.
    pub(crate) async fn service(&self) -> Result<&Service, Error> {
        self.core.service.get_or_try_init(|| self.read_root()).await
    }

    async fn read_root(&self) -> Result<Service, Error> {
        let wire = &self.core.wire;
        // Unauthenticated by the standard: a wrong address is found out without sending a password there.
        let ask = Ask::get(ROOT);
        let mut answer = self.persist(Care::Needed, || wire.exchange(&ask)).await?;
        if matches!(answer.status, 401 | 403) {
            answer = self.persist(Care::Needed, || self.authorised(&ask)).await?;
        }
        let not_redfish = |why: String| Error::NotRedfish { url: wire.origin().to_owned(), why };
        if !answer.is_success() {
            let refusal = wire.refusal(&Method::GET, &answer);
            let is_passing = answer.status >= 500 || matches!(answer.status, 401 | 403 | 408 | 429);
            return Err(if is_passing {
                refusal
            } else {
                not_redfish(format!("/redfish/v1/ is answered with {}: {}", answer.status, wire.problem(&answer)))
            });
        }
        let resource = wire.resource(&answer).map_err(|_| {
            not_redfish(format!("what it answers at /redfish/v1/ is not JSON ({})", wire.problem(&answer)))
        })?;
        Service::read(wire.origin(), &resource.body)
    }

    /// Reads a resource.
    pub(crate) fn get<'a>(&'a self, path: &'a str, care: Care) -> BoxFuture<'a, Result<Resource, Error>> {
        // Boxed here and in `change`: an inventory holds many of these at once.
        Box::pin(async move {
            self.service().await?;
            let ask = Ask { optional: care != Care::Needed, ..Ask::get(path) };
            let answer = self.persist(care, || self.authorised(&ask)).await?;
            if !answer.is_success() {
                return Err(self.core.wire.refusal(&Method::GET, &answer));
            }
            self.core.wire.resource(&answer)
        })
    }

    /// One read of a task monitor: its status matters more than its body.
    pub(crate) async fn peek(&self, path: &str) -> Result<Answer, Error> {
        let ask = Ask { optional: true, ..Ask::get(path) };
        Box::pin(self.persist(Care::Optional, || self.authorised(&ask))).await
    }

    /// Sends an action.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Answer, Error> {
        self.act(path, body, true).await
    }

    /// Sends an action once: the caller knows better when to repeat it.
    pub(crate) async fn post_once(&self, path: &str, body: &Value) -> Result<Answer, Error> {
        self.act(path, body, false).await
    }

    /// Without If-Match, which iDRAC10 refuses. If the BMC requires it (Huawei), with the ETag of the resource that has the
    /// action.
    async fn act(&self, path: &str, body: &Value, is_patient: bool) -> Result<Answer, Error> {
        let error = match Box::pin(self.change(Ask::with_body(Method::POST, path, body), is_patient)).await {
            Err(error) if error.refusal().is_some_and(|refusal| matches!(refusal.status, 412 | 428)) => error,
            other => return other,
        };
        let Some((resource, _)) = path.split_once("/Actions/") else { return Err(error) };
        let fresh = self.get(resource, Care::Optional).await.ok().and_then(|resource| resource.etag);
        let etag = fresh.as_deref().and_then(tidy_etag).unwrap_or_else(|| "*".into());
        let ask = Ask { if_match: Some(&etag), ..Ask::with_body(Method::POST, path, body) };
        Box::pin(self.change(ask, is_patient)).await
    }

    /// Changes a resource, and finds the form of If-Match that this BMC takes.
    pub(crate) async fn patch(&self, path: &str, body: &Value, etag: Option<&str>) -> Result<Answer, Error> {
        let mut ladder = EtagLadder::new(etag);
        loop {
            let if_match = ladder.current.clone();
            let ask = Ask { if_match: if_match.as_deref(), ..Ask::with_body(Method::PATCH, path, body) };
            let error = match Box::pin(self.change(ask, true)).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let Some(refusal) = error.refusal() else { return Err(error) };
            let missing = refusal.status == 428 || refusal.problem.has("PreconditionHeaderMissing");
            if refusal.status != 412 && !missing {
                return Err(error);
            }
            if !ladder.was_refreshed {
                let fresh = self.get(path, Care::Optional).await.ok().and_then(|resource| resource.etag);
                ladder.refresh(fresh.as_deref());
            }
            if !ladder.climb(missing) {
                return Err(error);
            }
        }
    }

    /// Sends a change. It is repeated only when it was certainly not carried out.
    async fn change(&self, ask: Ask<'_>, is_patient: bool) -> Result<Answer, Error> {
        self.service().await?;
        let wire = &self.core.wire;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let answer = match self.authorised(&ask).await {
                Ok(answer) => answer,
                Err(WireError::Transport(error))
                    if error.was_not_sent() && error.is_transient() && attempt < READS.tries =>
                {
                    tokio::time::sleep(READS.ceiling(attempt).mul_f64(wire.dice.roll())).await;
                    continue;
                }
                Err(WireError::Transport(error)) if !error.was_not_sent() && error.is_transient() => {
                    return Err(Error::ResultUnknown {
                        url: self.origin().to_owned(),
                        method: ask.method.to_string(),
                        path: ask.path.to_owned(),
                        why: error.to_string(),
                    });
                }
                Err(error) => return Err(wire.explain(error)),
            };
            if answer.is_success() {
                return Ok(answer);
            }
            let refusal = wire.refusal(&ask.method, &answer);
            wire.note_trouble(refusal.kind(), refusal.to_string());
            let after = retry::retry_after(&answer.headers);
            let not_ready = refusal.refusal().is_some_and(|refusal| refusal.problem.is_not_ready());
            let throttled = answer.status == 429 || (answer.status == 503 && after.is_some());
            if !is_patient || !(not_ready || throttled) || attempt >= NOT_READY.tries {
                return Err(refusal);
            }
            let wait = after.unwrap_or_else(|| NOT_READY.ceiling(attempt).mul_f64(0.8 + 0.2 * wire.dice.roll()));
            tracing::debug!(path = ask.path, ?wait, "{} is not ready: {refusal}", wire.origin());
            tokio::time::sleep(wait).await;
        }
    }

    /// Repeats a read while that is worth it. An answer may still be a refusal.
    async fn persist<F>(&self, care: Care, mut send: impl FnMut() -> F) -> Result<Answer, Error>
    where
        F: Future<Output = Result<Answer, WireError>>,
    {
        let wire = &self.core.wire;
        let mut attempt = 0;
        loop {
            attempt += 1;
            let outcome = send().await;
            let (tries, after) = match &outcome {
                Ok(answer) => (tries_for(answer, care, || wire.problem(answer)), retry::retry_after(&answer.headers)),
                // There is another way, and this request may be what the BMC cannot handle.
                Err(WireError::Transport(TransportError::TimedOut(_))) if care != Care::Needed => (1, None),
                Err(WireError::Transport(error)) if error.is_transient() && care == Care::Optional => (2, None),
                Err(WireError::Transport(error)) if error.is_transient() => (READS.tries, None),
                Err(_) => (1, None),
            };
            if attempt >= tries {
                return outcome.map_err(|error| wire.explain(error));
            }
            let wait = after.unwrap_or_else(|| READS.ceiling(attempt).mul_f64(wire.dice.roll()));
            tokio::time::sleep(wait).await;
        }
    }

    /// One exchange with a pass shown; logs in again once when the session was no good.
    async fn authorised(&self, ask: &Ask<'_>) -> Result<Answer, WireError> {
        let mut is_repeated = false;
        loop {
            let pass = self.pass().await?;
            let ask = Ask { authorisation: Some(pass.header.clone()), ..ask.clone() };
            let answer = self.core.wire.exchange(&ask).await?;
            match self.core.session.judge(&self.core.wire, &pass, &answer, is_repeated).await? {
                Verdict::Accept => return Ok(answer),
                Verdict::Again => is_repeated = true,
            }
        }
    }

    async fn pass(&self) -> Result<Pass, WireError> {
        let core = &self.core;
        // Twice: another request may have been refused between our login and our look at its result.
        for _ in 0..2 {
            if let Some(pass) = core.session.pass(&core.wire)? {
                return Ok(pass);
            }
            let core = self.core.clone();
            let login = self.logins.spawn(async move {
                let sessions = match core.service.get() {
                    Some(service) => service.sessions.as_deref(),
                    None => Some(service::SESSIONS),
                };
                core.session.log_in(&core.wire, sessions).await
            });
            match login.await {
                Ok(outcome) => outcome?,
                Err(_) => return Err(Error::Closed { url: self.origin().to_owned() }.into()),
            }
        }
        Err(Error::BadAnswer { url: self.origin().to_owned(), why: "it ends each session at once".into() }.into())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        logout::in_background(&self.core);
    }
}

fn tries_for(answer: &Answer, care: Care, problem: impl Fn() -> crate::error_body::Problem) -> u32 {
    let tries = match (answer.status, care) {
        (408 | 429 | 503, _) => READS.tries,
        (..400 | 501, _) | (500..600, Care::Attempt) => return 1,
        (500 | 502 | 504, Care::Optional) => 2,
        (500 | 502 | 504, _) => READS.tries,
        _ if problem().is_not_ready() => READS.tries,
        _ => return 1,
    };
    // A BMC without sessions is not helped by another request.
    if problem().is_session_limit() { 1 } else { tries }
}

/// The forms of If-Match, from what the standard wants to what some firmware takes.
struct EtagLadder {
    current: Option<String>,
    fresh: Option<String>,
    was_refreshed: bool,
    tried: Vec<Option<String>>,
}

impl EtagLadder {
    fn new(etag: Option<&str>) -> Self {
        Self { current: etag.and_then(tidy_etag), fresh: None, was_refreshed: false, tried: Vec::new() }
    }

    fn refresh(&mut self, etag: Option<&str>) {
        self.fresh = etag.and_then(tidy_etag);
        self.was_refreshed = true;
    }

    /// Goes to the next form that was not tried yet.
    fn climb(&mut self, missing: bool) -> bool {
        self.tried.push(self.current.clone());
        let fresh = self.fresh.clone();
        let strong = fresh.as_deref().and_then(|etag| etag.strip_prefix("W/")).map(str::to_owned);
        let any = Some("*".to_owned());
        // Where the header is mandatory (AMI, Huawei) leaving it away is no rung.
        let rungs = if missing { [fresh, strong, any.clone(), any] } else { [fresh, strong, None, any] };
        match rungs.into_iter().find(|rung| !self.tried.contains(rung)) {
            Some(next) => {
                self.current = next;
                true
            }
            None => false,
        }
    }
}

/// An empty ETag is none; and some firmware quotes its ETags twice.
fn tidy_etag(etag: &str) -> Option<String> {
    let etag = etag.trim();
    let once = etag.replace("\"\"", "\"");
    (!etag.is_empty() && once != "\"" && once != "W/\"").then_some(once)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rungs(etag: &str, fresh: Option<&str>, missing: bool) -> Vec<Option<String>> {
        let mut ladder = EtagLadder::new(Some(etag));
        let mut rungs = vec![ladder.current.clone()];
        ladder.refresh(fresh);
        while ladder.climb(missing) {
            rungs.push(ladder.current.clone());
        }
        rungs
    }

    #[test]
    fn the_etag_ladder_goes_from_fresh_over_strong_to_none_and_any() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            rungs("W/\"1\"", Some("W/\"2\""), false),
            [some("W/\"1\""), some("W/\"2\""), some("\"2\""), None, some("*")]
        );
        assert_eq!(rungs("\"1\"", Some("\"1\""), false), [some("\"1\""), None, some("*")]);
        assert_eq!(rungs("", None, true), [None, some("*")]);
        assert_eq!(rungs("\"\"7\"\"", None, false), [some("\"7\""), None, some("*")]);
    }
}
