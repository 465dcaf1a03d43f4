//! What can go wrong between the operator and a server. A status shows these as reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::{Finding, Neutral};

/// Why something failed: a closed set, used as condition reason, event reason and metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The address cannot be parsed or has a scheme we do not know.
    AddressInvalid,
    /// The address names a protocol that is not supported yet (`ipmi://`).
    ProtocolUnsupported,
    /// The Secret with the credentials does not exist.
    SecretNotFound,
    /// The Secret could not be read.
    SecretUnreadable,
    /// The Secret exists but lacks a key, or the key is empty.
    MissingSecretData,
    /// The CA bundle or certificate pin that was given cannot be used.
    TrustInvalid,
    /// Nothing answers: connection refused, name unknown, time-out, dropped connection.
    Unreachable,
    /// Something answers, but it is not a Redfish service.
    NotRedfish,
    /// The certificate is not trusted.
    CertificateUntrusted,
    /// The certificate is not the pinned one.
    CertificateChanged,
    /// The BMC refused user name and password.
    AuthenticationFailed,
    /// The BMC demands a new password before anything else.
    PasswordChangeRequired,
    /// The BMC has no free session.
    SessionLimit,
    /// The BMC asks to try again later (503, 429, "not ready").
    Busy,
    /// The BMC keeps failing; the circuit breaker is open.
    BreakerOpen,
    /// The BMC has no system with that id or UUID, or no system at all.
    SystemNotFound,
    /// The BMC answers 404 for a resource that must exist: it is starting, or its firmware has moved the resource.
    ResourceMissing,
    /// The BMC has several systems, and none was chosen.
    SystemAmbiguous,
    /// A different server answers than the one that was registered.
    SystemChanged,
    /// The BMC understood the request and refused it.
    Refused,
    /// The BMC has no such function.
    Unsupported,
    /// The BMC accepted the request, but reading back shows no change.
    NotApplied,
    /// The server has no virtual CD drive that could take an image.
    NoVirtualMedia,
    /// The server can be booted neither from an image nor from the network.
    NoBootMethod,
    /// The server runs although nobody asked for it, so a machine may not claim it.
    ServerRunning,
    /// The BMC could not use the image.
    MediaRefused,
    /// The BMC accepted the request as a task, and the task failed.
    TaskFailed,
    /// The BMC sent an answer that makes no sense.
    BadAnswer,
    /// The power did not change in time.
    PowerStuck,
    /// The server did not boot what it was told to boot.
    BootIgnored,
    /// The server was started for a probe, which has not reported.
    ProbeSilent,
    /// The order is invalid.
    OrderInvalid,
    /// The order needs the boot service, and `--boot-url` is not set.
    BootUrlMissing,
    /// Another host object names the same BMC and system.
    DuplicateHost,
    /// The consumer reference was removed or changed while the recorded consumer still exists.
    ConsumerMismatch,
    /// What we stored with the object cannot be read, or was written by a newer version of this program.
    AnchorUnreadable,
    /// Somebody has edited what we stored with the object.
    AnchorEdited,
    /// A bug in this program.
    Internal,
}

/// How to treat a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Goes away by itself; try again with back-off.
    Transient,
    /// The BMC asks for time.
    Throttled,
    /// Trying again may lock an account: wait for new credentials, or for a long time.
    Auth,
    /// Only a change of the object, a Secret or the BMC helps: retry seldom.
    Rejected,
    /// Will never work on this BMC.
    Unsupported,
    /// A bug in this program.
    Bug,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 38] = [
        Self::AddressInvalid,
        Self::ProtocolUnsupported,
        Self::SecretNotFound,
        Self::SecretUnreadable,
        Self::MissingSecretData,
        Self::TrustInvalid,
        Self::Unreachable,
        Self::NotRedfish,
        Self::CertificateUntrusted,
        Self::CertificateChanged,
        Self::AuthenticationFailed,
        Self::PasswordChangeRequired,
        Self::SessionLimit,
        Self::Busy,
        Self::BreakerOpen,
        Self::SystemNotFound,
        Self::ResourceMissing,
        Self::SystemAmbiguous,
        Self::SystemChanged,
        Self::Refused,
        Self::Unsupported,
        Self::NotApplied,
        Self::NoVirtualMedia,
        Self::NoBootMethod,
        Self::ServerRunning,
        Self::MediaRefused,
        Self::TaskFailed,
        Self::BadAnswer,
        Self::PowerStuck,
        Self::BootIgnored,
        Self::ProbeSilent,
        Self::OrderInvalid,
        Self::BootUrlMissing,
        Self::DuplicateHost,
        Self::ConsumerMismatch,
        Self::AnchorUnreadable,
        Self::AnchorEdited,
        Self::Internal,
    ];

    /// The kind with this reason.
    pub fn named(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// How to treat it.
    pub fn class(self) -> Class {
        match self {
            Self::Unreachable
            | Self::ResourceMissing
            | Self::SecretUnreadable
            | Self::NotApplied
            | Self::TaskFailed
            | Self::BadAnswer
            | Self::PowerStuck
            | Self::BootIgnored => Class::Transient,
            Self::SessionLimit | Self::Busy | Self::BreakerOpen => Class::Throttled,
            Self::AuthenticationFailed | Self::PasswordChangeRequired => Class::Auth,
            Self::AddressInvalid
            | Self::SecretNotFound
            | Self::MissingSecretData
            | Self::TrustInvalid
            | Self::NotRedfish
            | Self::CertificateUntrusted
            | Self::CertificateChanged
            | Self::SystemNotFound
            | Self::SystemAmbiguous
            | Self::SystemChanged
            | Self::Refused
            | Self::NoVirtualMedia
            | Self::NoBootMethod
            | Self::ServerRunning
            | Self::MediaRefused
            | Self::ProbeSilent
            | Self::OrderInvalid
            | Self::BootUrlMissing
            | Self::DuplicateHost
            | Self::ConsumerMismatch
            | Self::AnchorUnreadable
            | Self::AnchorEdited => Class::Rejected,
            Self::ProtocolUnsupported | Self::Unsupported => Class::Unsupported,
            Self::Internal => Class::Bug,
        }
    }

    /// Whether the BMC could not be reached or logged in to, as opposed to a request that failed.
    pub fn is_about_reaching_the_bmc(self) -> bool {
        matches!(
            self,
            Self::AddressInvalid
                | Self::ProtocolUnsupported
                | Self::SecretNotFound
                | Self::SecretUnreadable
                | Self::MissingSecretData
                | Self::TrustInvalid
                | Self::Unreachable
                | Self::ResourceMissing
                | Self::NotRedfish
                | Self::CertificateUntrusted
                | Self::CertificateChanged
                | Self::AuthenticationFailed
                | Self::PasswordChangeRequired
                | Self::SessionLimit
                | Self::Busy
                | Self::BreakerOpen
        )
    }

    /// Whether this server cannot serve its claim while another one may. Counts only before the server was started.
    pub fn refuses_claim(self) -> bool {
        matches!(self, Self::NoVirtualMedia | Self::ServerRunning | Self::MediaRefused | Self::Unsupported)
    }

    /// The reason that users see.
    pub fn reason(self) -> &'static str {
        match self {
            Self::AddressInvalid => "AddressInvalid",
            Self::ProtocolUnsupported => "ProtocolUnsupported",
            Self::SecretNotFound => "SecretNotFound",
            Self::SecretUnreadable => "SecretGetFailed",
            Self::MissingSecretData => "MissingSecretData",
            Self::TrustInvalid => "TrustInvalid",
            Self::Unreachable => "Unreachable",
            Self::NotRedfish => "NotRedfish",
            Self::CertificateUntrusted => "CertificateUntrusted",
            Self::CertificateChanged => "CertificateChanged",
            Self::AuthenticationFailed => "AuthenticationFailed",
            Self::PasswordChangeRequired => "PasswordChangeRequired",
            Self::SessionLimit => "SessionLimit",
            Self::Busy => "Busy",
            Self::BreakerOpen => "BreakerOpen",
            Self::SystemNotFound => "SystemNotFound",
            Self::ResourceMissing => "ResourceMissing",
            Self::SystemAmbiguous => "SystemAmbiguous",
            Self::SystemChanged => "SystemChanged",
            Self::Refused => "Refused",
            Self::Unsupported => "Unsupported",
            Self::NotApplied => "NotApplied",
            Self::NoVirtualMedia => "NoVirtualMedia",
            Self::NoBootMethod => "NoBootMethod",
            Self::ServerRunning => "ServerRunning",
            Self::MediaRefused => "MediaRefused",
            Self::TaskFailed => "TaskFailed",
            Self::BadAnswer => "BadAnswer",
            Self::PowerStuck => "PowerStuck",
            Self::BootIgnored => "BootIgnored",
            Self::ProbeSilent => "ProbeSilent",
            Self::OrderInvalid => "OrderInvalid",
            Self::BootUrlMissing => "BootURLMissing",
            Self::DuplicateHost => "DuplicateHost",
            Self::ConsumerMismatch => "ConsumerMismatch",
            Self::AnchorUnreadable => "AnchorUnreadable",
            Self::AnchorEdited => "AnchorEdited",
            Self::Internal => "Internal",
        }
    }
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its kind. Timers and comparisons use this, never the sentence.
    pub kind: Kind,
    /// What exactly.
    #[serde(flatten)]
    pub what: What,
}

/// What exactly went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// The sentence of the part that noticed it: what happened to what, and what to do. Never contains credentials.
    #[serde(rename = "message")]
    Told(String),
    /// Found by the engine itself.
    #[serde(rename = "finding")]
    Found(Box<Finding>),
}

impl Failure {
    /// A failure of that kind, with that sentence.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, what: What::Told(message.into()) }
    }
}

impl From<Finding> for Failure {
    fn from(finding: Finding) -> Self {
        Self { kind: finding.kind(), what: What::Found(Box::new(finding)) }
    }
}

/// In the words of no dialect.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tell(&Neutral))
    }
}

impl std::error::Error for Failure {}
