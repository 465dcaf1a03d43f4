//! Errors of a BMC. Messages say which BMC, what happened and what to do.

use engine::failure::{Failure, Kind};

use crate::error_body::Problem;
use crate::tls::Fingerprint;

/// A failed request or operation. Never contains credentials or tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The address makes no sense.
    #[error("BMC address {address:?} cannot be used: {why}")]
    AddressInvalid {
        /// As it was written, without user name and password.
        address: String,
        /// What to write instead.
        why: String,
    },
    /// The address names a protocol that is not spoken yet.
    #[error(
        "BMC address {address:?}: {scheme}:// is not supported yet; give the address of a Redfish service (https://…)"
    )]
    ProtocolUnsupported {
        /// As it was written, without user name and password.
        address: String,
        /// `ipmi`, `libvirt`, …
        scheme: String,
    },
    /// The CA bundle or pin that was given is no good.
    #[error("the trust settings for the BMC cannot be used: {why}")]
    TrustInvalid {
        /// What is wrong with them.
        why: String,
    },
    /// Nothing answered.
    #[error("{url} cannot be reached: {why}")]
    Unreachable {
        /// The BMC.
        url: String,
        /// How it failed.
        why: String,
    },
    /// A change was sent, and no answer came: only a look shows whether it took effect.
    #[error("{url} did not answer {method} {path}: {why}; the next look shows whether it took effect")]
    ResultUnknown {
        /// The BMC.
        url: String,
        /// `POST`, `PATCH`, …
        method: String,
        /// Of what.
        path: String,
        /// How it failed.
        why: String,
    },
    /// Something answered that is not Redfish.
    #[error("{url} does not speak Redfish: {why}")]
    NotRedfish {
        /// The BMC.
        url: String,
        /// What it answered instead.
        why: String,
    },
    /// The certificate is not trusted.
    #[error("the certificate of {url} is not trusted: {why}. Its fingerprint is {fingerprint}")]
    CertificateUntrusted {
        /// The BMC.
        url: String,
        /// Expired, unknown issuer, wrong name, …
        why: String,
        /// Of the certificate that was shown.
        fingerprint: Fingerprint,
    },
    /// The certificate is not the pinned one.
    #[error(
        "the certificate of {url} has changed: pinned is {pinned}, it now shows {seen}. If the certificate was replaced on purpose, \
         pin the new one (certificateFingerprint: {seen}); if not, someone may be between you and the BMC"
    )]
    CertificateChanged {
        /// The BMC.
        url: String,
        /// What was expected.
        pinned: Fingerprint,
        /// What was shown.
        seen: Fingerprint,
    },
    /// User name or password is wrong.
    #[error(
        "{url} refused the user name and password{said}. Correct the Secret, which is noticed at once; without a change the BMC is \
         asked again only after a long pause, so that the account does not get locked"
    )]
    AuthenticationFailed {
        /// The BMC.
        url: String,
        /// `: ` and its message, or nothing.
        said: String,
    },
    /// The password must be changed first.
    #[error(
        "{url} wants the password to be changed before it does anything else; log in to it, set a new password and update the Secret"
    )]
    PasswordChangeRequired {
        /// The BMC.
        url: String,
    },
    /// The BMC has no session left.
    #[error("{url} has no free session{said}. It will be tried again; close unused sessions of the BMC if this lasts")]
    SessionLimit {
        /// The BMC.
        url: String,
        /// `: ` and its message, or nothing.
        said: String,
    },
    /// The circuit breaker is open.
    #[error("{last}")]
    BreakerOpen {
        /// The last failure: nothing was sent since, so that is what is known.
        last: String,
        /// Its kind.
        kind: Kind,
    },
    /// No such system.
    #[error("{url} has no system {wanted:?}; it has {offered}")]
    SystemNotFound {
        /// The BMC.
        url: String,
        /// The id, URI or UUID that was asked for.
        wanted: String,
        /// What there is.
        offered: String,
    },
    /// No system at all.
    #[error(
        "{url} lists no system, so there is no server to manage: it may be the manager of an enclosure or of a power strip, or still \
         starting. Give the address of the server's own BMC"
    )]
    NoSystem {
        /// The BMC.
        url: String,
    },
    /// Several systems.
    #[error("{url} has several systems, choose one by its id or UUID: {offered}")]
    SystemAmbiguous {
        /// The BMC.
        url: String,
        /// What there is.
        offered: String,
    },
    /// The BMC answered with an error status.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// The BMC lacks a function.
    #[error("{url} cannot {what}")]
    Unsupported {
        /// The BMC.
        url: String,
        /// What it cannot do, and what to do instead.
        what: String,
    },
    /// The BMC did not take the image.
    #[error("{url} did not take the image {image}: {said}")]
    MediaRefused {
        /// The BMC.
        url: String,
        /// Which one, without user name, password and ticket.
        image: String,
        /// The BMC's reason, and what may help.
        said: String,
    },
    /// A task ended badly.
    #[error("{url} could not finish {task}: {said}")]
    TaskFailed {
        /// The BMC.
        url: String,
        /// Its URI.
        task: String,
        /// Its messages.
        said: String,
    },
    /// The answer makes no sense.
    #[error("{url} sent an answer that makes no sense: {why}")]
    BadAnswer {
        /// The BMC and path.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The operation took too long.
    #[error("{url} did not finish {operation} within {seconds} s; last: {last}")]
    TooSlow {
        /// The BMC.
        url: String,
        /// What was tried.
        operation: &'static str,
        /// For how long.
        seconds: u64,
        /// The last thing that went wrong on the way.
        last: String,
        /// Its kind.
        kind: Kind,
    },
    /// The client was closed.
    #[error("the connection to {url} was closed by the operator")]
    Closed {
        /// The BMC.
        url: String,
    },
}

/// An answer with an error status, and the BMC's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{method} {url} was answered with {status}: {problem}")]
pub struct Refusal {
    /// `GET`, `POST`, …
    pub method: String,
    /// What was asked.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The BMC's message.
    pub problem: Problem,
}

impl Error {
    /// Why it failed, in the words of the engine.
    pub fn kind(&self) -> Kind {
        match self {
            Self::AddressInvalid { .. } => Kind::AddressInvalid,
            Self::ProtocolUnsupported { .. } => Kind::ProtocolUnsupported,
            Self::TrustInvalid { .. } => Kind::TrustInvalid,
            Self::Unreachable { .. } | Self::ResultUnknown { .. } => Kind::Unreachable,
            Self::NotRedfish { .. } => Kind::NotRedfish,
            Self::CertificateUntrusted { .. } => Kind::CertificateUntrusted,
            Self::CertificateChanged { .. } => Kind::CertificateChanged,
            Self::AuthenticationFailed { .. } => Kind::AuthenticationFailed,
            Self::PasswordChangeRequired { .. } => Kind::PasswordChangeRequired,
            Self::SessionLimit { .. } => Kind::SessionLimit,
            Self::SystemNotFound { .. } => Kind::SystemNotFound,
            // A BMC that starts lists none for a while, and answers 404.
            Self::NoSystem { .. } => Kind::ResourceMissing,
            Self::SystemAmbiguous { .. } => Kind::SystemAmbiguous,
            Self::Refused(refusal) => refusal.kind(),
            Self::Unsupported { .. } => Kind::Unsupported,
            Self::MediaRefused { .. } => Kind::MediaRefused,
            Self::TaskFailed { .. } => Kind::TaskFailed,
            Self::BadAnswer { .. } => Kind::BadAnswer,
            Self::TooSlow { kind, .. } | Self::BreakerOpen { kind, .. } => *kind,
            Self::Closed { .. } => Kind::Internal,
        }
    }

    /// Whether the BMC lacks or cannot serve just this resource, as opposed to: it could not be asked. Only then may a part be
    /// left out; an outage must not look like a server without disks.
    pub(crate) fn is_about_this_resource(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                !matches!(refusal.status, 401 | 408 | 429 | 502..=504) && !refusal.problem.is_session_limit()
            }
            Self::BadAnswer { .. } | Self::Unsupported { .. } => true,
            _ => false,
        }
    }

    /// Whether the BMC says that it has no such resource. A server failure, or an answer that makes no sense, does not say so: the next
    /// answer may show it.
    pub(crate) fn says_it_is_missing(&self) -> bool {
        match self {
            Self::Refused(refusal) => !refusal.is_server_failure() && self.is_about_this_resource(),
            Self::Unsupported { .. } => true,
            _ => false,
        }
    }

    /// Whether an act that failed like this was certainly not carried out: the BMC understood and refused it, or has no such
    /// function. After any other error, only a look shows it.
    pub fn was_not_performed(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                refusal.method != "GET" && (400..500).contains(&refusal.status) && refusal.status != 408
            }
            Self::Unsupported { .. } => true,
            _ => false,
        }
    }

    /// Whether no request to the BMC can succeed.
    pub(crate) fn is_about_the_bmc(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.status == 401 || refusal.problem.is_session_limit(),
            Self::BadAnswer { .. }
            | Self::Unsupported { .. }
            | Self::Unreachable { .. }
            | Self::TooSlow { .. }
            | Self::ResultUnknown { .. } => false,
            _ => true,
        }
    }

    /// The refusal, when the BMC answered with an error status.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl Refusal {
    /// Why, derived from status and messages.
    pub fn kind(&self) -> Kind {
        if self.problem.is_session_limit() {
            return Kind::SessionLimit;
        }
        match self.status {
            408 | 429 | 502 | 503 | 504 => Kind::Busy,
            // A required resource is missing: a starting BMC shows its tree part by part.
            404 if self.method == "GET" => Kind::ResourceMissing,
            404 | 405 | 501 => Kind::Unsupported,
            500..=599 => Kind::BadAnswer,
            _ if self.problem.is_not_ready() => Kind::Busy,
            _ => Kind::Refused,
        }
    }

    /// Whether the server's fault, not the request's.
    pub(crate) fn is_server_failure(&self) -> bool {
        self.status >= 500 && self.status != 501
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Failure::new(error.kind(), sentence(error))
    }
}

/// An error as a whole sentence. A BMC's message has its own full stop.
fn sentence(error: &Error) -> String {
    let text = error.to_string().replace(".. ", ". ");
    let mut letters = text.chars();
    let mut sentence: String = match letters.next() {
        Some(first) if !text.starts_with("http") => first.to_uppercase().chain(letters).collect(),
        _ => text,
    };
    if !sentence.ends_with(['.', '…']) {
        sentence.push('.');
    }
    sentence
}
