//! Logging in once, staying logged in, and always logging out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, LOCATION};
use tokio::time::Instant;

use crate::error::Error;
use crate::logout;
use crate::resource::{View, path_of};
use crate::wire::{Answer, Ask, Wire, WireError};

const X_AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// iDRAC needs minutes to free a session; asking faster only fills its log.
const SESSION_LIMIT_HOLD: Duration = Duration::from_mins(1);
/// Where Basic was only a way out, a session is tried again after this.
const BASIC_FOR_NOW: Duration = Duration::from_mins(10);
const LOGOUT_TIMEOUT: Duration = Duration::from_secs(10);
const LOGOUT_TRIES: u32 = 3;
const LOGOUT_AGAIN: Duration = Duration::from_secs(1);

/// How we are known to the BMC at the moment.
pub(crate) enum Standing {
    Unknown,
    Token {
        token: HeaderValue,
        uri: Option<String>,
    },
    /// No sessions on this BMC, or none left; try again at `until`.
    Basic {
        until: Option<Instant>,
        because_of_limit: bool,
    },
    /// The credentials are wrong: not a single further try with them.
    Refused(Error),
    TryLater {
        until: Instant,
        error: Error,
    },
    Closed,
}

/// The session of one client.
pub(crate) struct Session {
    state: Mutex<State>,
    logging_in: tokio::sync::Mutex<()>,
    /// Falling back to Basic after a session had worked would let an attacker take the better protection away.
    had_one: AtomicBool,
    /// A 403 that survived a new login is about rights; no more logins because of it.
    forbidden_is_final: AtomicBool,
}

struct State {
    generation: u64,
    standing: Standing,
}

/// What a request shows to be let in.
#[derive(Clone)]
pub(crate) struct Pass {
    pub(crate) header: (HeaderName, HeaderValue),
    generation: u64,
    is_token: bool,
}

/// What to do after an answer.
pub(crate) enum Verdict {
    Accept,
    /// The session was no good: log in again and repeat the request, once.
    Again,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State { generation: 0, standing: Standing::Unknown }),
            logging_in: tokio::sync::Mutex::new(()),
            had_one: AtomicBool::new(false),
            forbidden_is_final: AtomicBool::new(false),
        }
    }

    /// The pass that is at hand: `Ok(None)` when a login is needed.
    pub(crate) fn pass(&self, wire: &Wire) -> Result<Option<Pass>, Error> {
        let state = self.state();
        let generation = state.generation;
        match &state.standing {
            Standing::Token { token, .. } => {
                Ok(Some(Pass { header: (X_AUTH_TOKEN, token.clone()), generation, is_token: true }))
            }
            Standing::Basic { until, .. } if until.is_none_or(|until| Instant::now() < until) => {
                let value = wire.credentials().basic().ok_or_else(|| Error::AuthenticationFailed {
                    url: wire.origin().to_owned(),
                    said: ": they cannot be sent as HTTP Basic".into(),
                })?;
                Ok(Some(Pass { header: (AUTHORIZATION, value), generation, is_token: false }))
            }
            Standing::Refused(error) => Err(error.clone()),
            Standing::TryLater { until, error } if Instant::now() < *until => Err(error.clone()),
            Standing::Closed => Err(Error::Closed { url: wire.origin().to_owned() }),
            Standing::Unknown | Standing::Basic { .. } | Standing::TryLater { .. } => Ok(None),
        }
    }

    /// Logs in, unless someone else just did.
    pub(crate) async fn log_in(&self, wire: &Wire, sessions: Option<&str>) -> Result<(), WireError> {
        let _turn = self.logging_in.lock().await;
        if self.pass(wire)?.is_some() {
            return Ok(());
        }
        let Some(sessions) = sessions else {
            return self.settle(wire, Standing::Basic { until: None, because_of_limit: false }).await;
        };
        let body = wire.credentials().login_body();
        let answer = match wire.exchange(&Ask::with_body(Method::POST, sessions, &body)).await {
            // It may have opened a session that we do not know of; each further try might open one more.
            Err(WireError::Transport(error)) if !error.was_not_sent() => {
                return Err(wire.explain(WireError::Transport(error)).into());
            }
            other => other?,
        };
        let standing = self.judge_login(wire, &answer);
        let verdict = match &standing {
            Standing::Refused(error) | Standing::TryLater { error, .. } => Err(error.clone().into()),
            Standing::Unknown => Err(wire.refusal(&Method::POST, &answer).into()),
            _ => Ok(()),
        };
        self.settle(wire, standing).await?;
        verdict
    }

    /// Takes up a new standing. If all was closed meanwhile, it is ended at once.
    async fn settle(&self, wire: &Wire, standing: Standing) -> Result<(), WireError> {
        let late = {
            let mut state = self.state();
            if matches!(state.standing, Standing::Closed) {
                Some(standing)
            } else {
                state.generation += 1;
                state.standing = standing;
                None
            }
        };
        let Some(standing) = late else { return Ok(()) };
        standing.end(wire).await;
        Err(Error::Closed { url: wire.origin().to_owned() }.into())
    }

    fn judge_login(&self, wire: &Wire, answer: &Answer) -> Standing {
        let url = || wire.origin().to_owned();
        if answer.is_success() {
            let Some(token) = answer.headers.get(X_AUTH_TOKEN) else {
                tracing::debug!("{} answered a login without a token; using Basic authentication", wire.origin());
                return Standing::Basic { until: None, because_of_limit: false };
            };
            // A copy: a clone would keep all that was read together with it.
            let mut token = HeaderValue::from_bytes(token.as_bytes()).unwrap_or_else(|_| token.clone());
            token.set_sensitive(true);
            wire.learn_token(&token);
            let body = answer.json().unwrap_or_default();
            let body = View(&body);
            // Under any host name in there: a session that cannot be found again cannot be ended.
            let uri = answer
                .header(LOCATION)
                .and_then(path_of)
                .or_else(|| body.link(""))
                .or_else(|| body.text("/Id").map(|id| format!("{}/{id}", answer.path.trim_end_matches('/'))));
            self.had_one.store(true, Ordering::Relaxed);
            return Standing::Token { token, uri };
        }
        let problem = wire.problem(answer);
        let said = || format!(": {problem}");
        if problem.wants_new_password() {
            return Standing::Refused(Error::PasswordChangeRequired { url: url() });
        }
        let basic_is_allowed = !self.had_one.load(Ordering::Relaxed);
        if problem.is_session_limit() {
            return if basic_is_allowed && !self.is_basic_because_of_limit() {
                Standing::Basic { until: Some(Instant::now() + BASIC_FOR_NOW), because_of_limit: true }
            } else {
                Standing::TryLater {
                    until: Instant::now() + SESSION_LIMIT_HOLD,
                    error: Error::SessionLimit { url: url(), said: said() },
                }
            };
        }
        match answer.status {
            401 | 403 => Standing::Refused(Error::AuthenticationFailed { url: url(), said: said() }),
            // Not ready is not the same as: knows no sessions.
            408 | 429 | 502 | 503 | 504 => Standing::Unknown,
            _ if !basic_is_allowed => Standing::Unknown,
            500 => Standing::Basic { until: Some(Instant::now() + BASIC_FOR_NOW), because_of_limit: false },
            _ => Standing::Basic { until: None, because_of_limit: false },
        }
    }

    /// Judges the answer to a request that showed this pass.
    pub(crate) async fn judge(
        &self,
        wire: &Wire,
        pass: &Pass,
        answer: &Answer,
        is_repeated: bool,
    ) -> Result<Verdict, Error> {
        if !matches!(answer.status, 401 | 403) {
            return Ok(Verdict::Accept);
        }
        let url = || wire.origin().to_owned();
        let problem = wire.problem(answer);
        if problem.wants_new_password() {
            return Err(self.refuse(pass, Error::PasswordChangeRequired { url: url() }));
        }
        let is_about_rights =
            problem.is_about_rights() || self.forbidden_is_final.load(Ordering::Relaxed) || !pass.is_token;
        if answer.status == 403 && is_about_rights {
            return Ok(Verdict::Accept);
        }
        if !pass.is_token {
            if self.is_basic_because_of_limit() {
                let error =
                    Error::SessionLimit { url: url(), said: ", and it does not let us in without one either".into() };
                self.replace(
                    pass,
                    Standing::TryLater { until: Instant::now() + SESSION_LIMIT_HOLD, error: error.clone() },
                );
                return Err(error);
            }
            return Err(self.refuse(pass, Error::AuthenticationFailed { url: url(), said: format!(": {problem}") }));
        }
        if is_repeated {
            if answer.status == 403 {
                self.forbidden_is_final.store(true, Ordering::Relaxed);
                return Ok(Verdict::Accept);
            }
            return Err(Error::BadAnswer {
                url: url(),
                why: "it accepts the login and then refuses the session".into(),
            });
        }
        let old = self.replace(pass, Standing::Unknown);
        // A 401 means that the session is gone; after a 403 it may well live on.
        if let Some(old) = old.filter(|_| answer.status == 403) {
            // Boxed: it is rare, and part of every request otherwise.
            Box::pin(old.end(wire)).await;
        }
        Ok(Verdict::Again)
    }

    /// Ends the session and lets no further request through. Waits for a login in progress, which has its turn until it has ended
    /// its own session.
    pub(crate) async fn close(&self, wire: &Wire) {
        let left = self.shut(wire);
        let logged_in = async { drop(self.logging_in.lock().await) };
        logout::tracked(async { futures::join!(left.end(wire), logged_in) }).await;
    }

    /// Lets no further request through, and returns the session; the caller ends it. A login in progress ends its own session.
    pub(crate) fn shut(&self, wire: &Wire) -> Standing {
        wire.close();
        let mut state = self.state();
        state.generation += 1;
        std::mem::replace(&mut state.standing, Standing::Closed)
    }

    /// Lets credentials that were refused be tried once more.
    pub(crate) fn pardon(&self) {
        let mut state = self.state();
        if matches!(state.standing, Standing::Refused(_)) {
            state.generation += 1;
            state.standing = Standing::Unknown;
        }
    }

    fn refuse(&self, pass: &Pass, error: Error) -> Error {
        self.replace(pass, Standing::Refused(error.clone()));
        error
    }

    /// Replaces the standing that the pass came from, unless someone has done so already.
    fn replace(&self, pass: &Pass, standing: Standing) -> Option<Standing> {
        let mut state = self.state();
        if state.generation != pass.generation || matches!(state.standing, Standing::Closed) {
            return None;
        }
        state.generation += 1;
        Some(std::mem::replace(&mut state.standing, standing))
    }

    fn is_basic_because_of_limit(&self) -> bool {
        matches!(self.state().standing, Standing::Basic { because_of_limit: true, .. })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    pub(crate) fn is_session(&self) -> bool {
        matches!(self, Self::Token { .. })
    }

    /// Ends the session, if this is one. If the BMC is busy or drops the connection, it is tried again: ending a session twice
    /// does no harm.
    pub(crate) async fn end(self, wire: &Wire) {
        let Self::Token { token, uri: Some(uri) } = self else { return };
        let ask = Ask { method: Method::DELETE, authorisation: Some((X_AUTH_TOKEN, token)), ..Ask::get(&uri) };
        let ask_again = async {
            for _ in 0..LOGOUT_TRIES {
                match wire.exchange_anyway(&ask).await {
                    Ok(answer) if answer.status < 500 && !matches!(answer.status, 408 | 429) => {
                        return answer.is_success() || matches!(answer.status, 401 | 404);
                    }
                    _ => tokio::time::sleep(LOGOUT_AGAIN).await,
                }
            }
            false
        };
        if !tokio::time::timeout(LOGOUT_TIMEOUT, ask_again).await.unwrap_or(false) {
            tracing::debug!("cannot close the session on {}; it will expire", wire.origin());
        }
    }
}
