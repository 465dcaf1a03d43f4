//! How the server says no: `metav1.Status`, in the words that Kubernetes uses.
//!
//! Clients compare `reason` and `code`, people read `message`, and tools read `details.causes`.

use std::collections::HashSet;
use std::fmt;

use http::StatusCode;
use serde_json::{Map, Value, json};

pub use schema::{FieldError, FieldFault};
pub(crate) use schema::{quoted, wrong_type};

/// What a client asked for could not be done.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The HTTP status.
    pub code: StatusCode,
    /// `metav1.StatusReason`; empty is `Unknown`.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// What it is about, and the single causes.
    pub details: Option<Box<Details>>,
    /// `metadata.continue`: how a list whose revision is gone can go on all the same.
    pub continuation: String,
    /// What there was to remark before it failed.
    pub warnings: Vec<String>,
}

/// `metav1.StatusDetails`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// Group of the resource.
    pub group: String,
    /// Resource (or kind, for `Invalid`).
    pub kind: String,
    /// Identity of the object, where it matters.
    pub uid: String,
    /// The single causes.
    pub causes: Vec<Cause>,
    /// When to try again, in seconds; 0 is not said.
    pub retry_after_seconds: u32,
}

/// `metav1.StatusCause`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// `metav1.CauseType`.
    pub reason: String,
    /// A sentence without the field.
    pub message: String,
    /// The path of the field; empty when there is none.
    pub field: String,
}

/// A group with a resource or a kind in it, as it is written in messages: `physicalhosts.infrastructure.cluster.x-k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qualified<'a> {
    /// The group; empty for the core group.
    pub group: &'a str,
    /// The resource or kind.
    pub name: &'a str,
}

impl fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() { f.write_str(self.name) } else { write!(f, "{}.{}", self.name, self.group) }
    }
}

impl Failure {
    /// The same, with remarks.
    pub(crate) fn with_warnings(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
        self
    }

    /// A failure with a reason and a sentence and nothing else.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continuation: String::new(), warnings: Vec::new() }
    }

    fn about(mut self, subject: Qualified<'_>, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: subject.group.to_owned(),
            kind: subject.name.to_owned(),
            ..Details::default()
        }));
        self
    }

    /// The object does not exist.
    pub fn not_found(resource: Qualified<'_>, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{resource} {} not found", quoted(name)))
            .about(resource, name)
    }

    /// The path leads nowhere.
    pub fn no_such_path() -> Self {
        let mut failure =
            Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        failure.details = Some(Box::default());
        failure
    }

    /// The object exists.
    pub fn already_exists(resource: Qualified<'_>, name: &str) -> Self {
        Self::new(StatusCode::CONFLICT, "AlreadyExists", format!("{resource} {name:?} already exists"))
            .about(resource, name)
    }

    /// The object has been changed, or is in a state that forbids this.
    pub fn conflict(resource: Qualified<'_>, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// The object breaks rules; `kind` is the object's kind with its group.
    pub fn invalid(kind: Qualified<'_>, name: &str, errors: &[FieldError]) -> Self {
        let sum = match errors {
            [one] => one.to_string(),
            many => {
                // Kubernetes says each sentence once.
                let mut known = HashSet::new();
                let mut said: Vec<String> = many.iter().map(ToString::to_string).collect();
                said.retain(|sentence| known.insert(sentence.clone()));
                if said.len() == 1 { said.remove(0) } else { format!("[{}]", said.join(", ")) }
            }
        };
        let mut failure =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", format!("{kind} {name:?} is invalid: {sum}"))
                .about(kind, name);
        if let Some(details) = &mut failure.details {
            details.causes = errors.iter().map(Cause::of).collect();
        }
        failure
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The request is understood and refused.
    pub fn forbidden(resource: Qualified<'_>, name: &str, why: impl fmt::Display) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", format!("{resource} {name:?} is forbidden: {why}"))
            .about(resource, name)
    }

    /// The revision asked for is no longer there.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// Something broke here.
    pub fn internal(why: impl fmt::Display) -> Self {
        let mut failure =
            Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", format!("Internal error occurred: {why}"));
        failure.details = Some(Box::new(Details {
            causes: vec![Cause { reason: String::new(), message: why.to_string(), field: String::new() }],
            ..Details::default()
        }));
        failure
    }

    /// The `metav1.Status` object.
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code.as_u16(),
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        if !self.continuation.is_empty() {
            status["metadata"]["continue"] = self.continuation.as_str().into();
        }
        status
    }
}

impl Details {
    fn to_json(&self) -> Value {
        let mut details = Map::new();
        for (key, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            if !text.is_empty() {
                details.insert(key.to_owned(), text.as_str().into());
            }
        }
        if !self.causes.is_empty() {
            details.insert("causes".to_owned(), self.causes.iter().map(Cause::to_json).collect());
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".to_owned(), self.retry_after_seconds.into());
        }
        Value::Object(details)
    }
}

impl Cause {
    fn of(error: &FieldError) -> Self {
        Self { reason: error.reason().to_owned(), message: error.body(), field: error.path.clone() }
    }

    fn to_json(&self) -> Value {
        let mut cause = Map::new();
        for (key, text) in [("reason", &self.reason), ("message", &self.message), ("field", &self.field)] {
            if !text.is_empty() {
                cause.insert(key.to_owned(), text.as_str().into());
            }
        }
        Value::Object(cause)
    }
}
