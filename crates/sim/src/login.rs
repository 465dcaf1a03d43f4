//! Credentials and sessions.

use std::time::Duration;

use base64::Engine as _;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::personality::Login;
use crate::reply::Problem;

/// What a client must present.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Account name.
    pub username: String,
    /// Password.
    pub password: String,
}

impl Credentials {
    /// Both parts.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: username.into(), password: password.into() }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u32,
    pub(crate) token: String,
    used: Instant,
}

/// Logins and sessions of the BMC.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) credentials: Credentials,
    pub(crate) sessions: Vec<Session>,
    next_id: u32,
    failures: u32,
    locked_until: Option<Instant>,
}

impl Desk {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials, sessions: Vec::new(), next_id: 1, failures: 0, locked_until: None }
    }

    pub(crate) fn expire(&mut self, now: Instant, timeout: Duration) {
        self.sessions.retain(|s| now < s.used + timeout);
    }

    /// Whether these headers authenticate. An unknown token is refused, whatever else is sent.
    pub(crate) fn admits(&mut self, headers: &HeaderMap, now: Instant, rules: &Login) -> Result<(), Problem> {
        if let Some(token) = headers.get("X-Auth-Token") {
            let session = self.sessions.iter_mut().find(|s| s.token.as_bytes() == token.as_bytes());
            let session = session.ok_or_else(no_session)?;
            session.used = now;
            return Ok(());
        }
        let basic = headers
            .get(http::header::AUTHORIZATION)
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.strip_prefix("Basic "))
            .and_then(|v| base64::engine::general_purpose::STANDARD.decode(v.trim()).ok())
            .and_then(|v| String::from_utf8(v).ok());
        match basic.as_deref().and_then(|pair| pair.split_once(':')) {
            Some((username, password)) if rules.basic => self.check(username, password, now, rules),
            _ => Err(no_session()),
        }
    }

    fn check(&mut self, username: &str, password: &str, now: Instant, rules: &Login) -> Result<(), Problem> {
        if self.locked_until.is_some_and(|until| now < until) {
            return Err(wrong_password());
        }
        if self.credentials.username == username && self.credentials.password == password {
            self.failures = 0;
            self.locked_until = None;
            return Ok(());
        }
        self.failures += 1;
        if let Some((limit, period)) = rules.lockout
            && self.failures >= limit
        {
            self.failures = 0;
            self.locked_until = Some(now + period);
        }
        Err(wrong_password())
    }

    /// Opens a session: its id and token.
    pub(crate) fn open(
        &mut self,
        username: &str,
        password: &str,
        now: Instant,
        limit: usize,
        rules: &Login,
        rng: &mut fastrand::Rng,
    ) -> Result<(u32, String), Problem> {
        self.check(username, password, now, rules)?;
        if self.sessions.len() >= limit {
            return Err(rules.limit_error.into());
        }
        let id = self.next_id;
        self.next_id += 1;
        let token = format!("{:032x}", rng.u128(..));
        self.sessions.push(Session { id, token: token.clone(), used: now });
        Ok((id, token))
    }

    pub(crate) fn close(&mut self, id: u32) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|s| s.id != id);
        self.sessions.len() < before
    }
}

fn no_session() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "NoValidSession",
        "There is no valid session established with the implementation.",
    )
}

fn wrong_password() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "ResourceAtUriUnauthorized",
        "While accessing the resource, the service received an authorization error: invalid username or password.",
    )
}
