//! What can go wrong between us and a server, in words that a status can show.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::{Finding, Neutral};

/// Why something failed: a closed set, used as condition reason, event reason and metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// The address cannot be parsed or has a scheme we do not know.
    AddressInvalid,
    /// The address names a protocol that is recognised but not spoken yet (`ipmi://`).
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
    /// The certificate is another one than the pinned one.
    CertificateChanged,
    /// The BMC refused user name and password.
    AuthenticationFailed,
    /// The BMC demands a new password before anything else.
    PasswordChangeRequired,
    /// The BMC has no session left for us.
    SessionLimit,
    /// The BMC asks us to come back later (503, 429, "not ready").
    Busy,
    /// The BMC keeps failing; the circuit breaker is open.
    BreakerOpen,
    /// No system of that id or UUID, or none at all.
    SystemNotFound,
    /// A part of the BMC's tree that must be there is answered with 404: the BMC is starting, or its firmware has moved it.
    ResourceMissing,
    /// Several systems, and none was chosen.
    SystemAmbiguous,
    /// Another server answers at the address than the one that was registered.
    SystemChanged,
    /// The BMC understood and said no.
    Refused,
    /// The BMC has no such function.
    Unsupported,
    /// The BMC said yes, but reading back shows otherwise.
    NotApplied,
    /// The server has no virtual CD drive that could take an image.
    NoVirtualMedia,
    /// The server can be booted neither from an image nor from the network.
    NoBootMethod,
    /// The server runs although nobody asked for it, and a machine may not take it then.
    ServerRunning,
    /// The BMC could not use the image.
    MediaRefused,
    /// A task ended badly.
    TaskFailed,
    /// The BMC answered something that makes no sense.
    BadAnswer,
    /// The power did not change in time.
    PowerStuck,
    /// The server did not boot what it was told to boot.
    BootIgnored,
    /// The order cannot be carried out as it stands.
    OrderInvalid,
    /// The order needs the boot service, and nobody said where it is reached.
    BootUrlMissing,
    /// Another host object names the same BMC and system.
    DuplicateHost,
    /// The consumer reference vanished or changed while the recorded consumer still exists.
    ConsumerMismatch,
    /// What we stored with the object cannot be read, or was written by a newer version of this program.
    AnchorUnreadable,
    /// Somebody has edited what we stored with the object.
    AnchorEdited,
    /// A mistake of ours.
    Internal,
}

/// How to treat a failure: what a retry is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Goes away by itself; try again with back-off.
    Transient,
    /// The other side asks for time.
    Throttled,
    /// Trying again may lock an account; wait for new credentials, or very long.
    Auth,
    /// Only a change of the object, a Secret or the BMC helps; look again seldom.
    Rejected,
    /// Will never work on this BMC.
    Unsupported,
    /// Ours to mend.
    Bug,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 37] = [
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
        Self::OrderInvalid,
        Self::BootUrlMissing,
        Self::DuplicateHost,
        Self::ConsumerMismatch,
        Self::AnchorUnreadable,
        Self::AnchorEdited,
        Self::Internal,
    ];

    /// The kind that users see under this word.
    pub fn named(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// What a retry is worth.
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

    /// Whether this says that we could not speak to the BMC at all, as opposed to: we spoke, and it did not work.
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

    /// Whether a server that has not been started yet says by this that it cannot serve its claim, and another one may.
    pub fn refuses_claim(self) -> bool {
        matches!(self, Self::NoVirtualMedia | Self::ServerRunning | Self::MediaRefused | Self::Unsupported)
    }

    /// The CamelCase word that users see.
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
    /// What kind of thing: timers and comparisons hang on it.
    pub kind: Kind,
    /// What exactly.
    #[serde(flatten)]
    pub what: What,
}

/// What exactly went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// A sentence of whoever noticed it: which thing, what happened, what to do. Never contains credentials.
    #[serde(rename = "message")]
    Told(String),
    /// The engine found it out itself.
    #[serde(rename = "finding")]
    Found(Box<Finding>),
}

impl Failure {
    /// A failure of that kind, told by that sentence.
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
