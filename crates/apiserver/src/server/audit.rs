//! A line in the log for each request that changes something, or tries to: who, what, and what became of it.

use http::StatusCode;
use http::request::Parts;
use tracing::Level;

use super::dispatch::Asked;
use crate::auth;
use crate::request::path::Target;

/// By this name the lines are asked for: `--log-level info,apiserver::audit=debug`.
const TARGET: &str = "apiserver::audit";

#[derive(Debug)]
pub(super) struct Write {
    verb: &'static str,
    target: Target,
    user: String,
}

impl Write {
    /// `None` for what only reads, and if nobody wants to know.
    pub(super) fn of(asked: &Asked, head: &Parts) -> Option<Self> {
        if !tracing::enabled!(target: TARGET, Level::DEBUG) {
            return None;
        }
        let (verb, target) = asked.write()?;
        Some(Self { verb, target: target.clone(), user: auth::caller(&head.extensions).name.clone() })
    }

    pub(super) fn log(self, code: StatusCode) {
        let Self { verb, target, user } = self;
        tracing::debug!(
            target: TARGET,
            verb,
            group = target.group,
            resource = target.plural,
            subresource = target.subresource.unwrap_or_default(),
            namespace = target.namespace.unwrap_or_default(),
            name = target.name.unwrap_or_default(),
            user,
            code = code.as_u16(),
            "write"
        );
    }
}
