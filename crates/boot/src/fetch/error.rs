//! Why an image cannot be read, and what to do.

use std::net::IpAddr;
use std::time::Duration;

use engine::failure::Class;
use http::StatusCode;

use crate::iso::SourceError;

/// Why an image cannot be read. Never contains the query of a URL: it may be a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL is invalid.
    #[error("the URL of the ISO cannot be used: {why}")]
    UrlInvalid {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The CA certificates that were given cannot be used.
    #[error("the CA certificates for image servers cannot be used: {why}")]
    TrustInvalid {
        /// What is wrong with them.
        why: String,
    },
    /// The server has an address that we do not go to.
    #[error(
        "the image is not read from {host}: {address} is {what}; to allow it, start the operator with \
         --boot-allow-networks (BESKAR7_BOOT_ALLOW_NETWORKS) and its network"
    )]
    Forbidden {
        /// The name in the URL.
        host: String,
        /// What it means.
        address: IpAddr,
        /// Why it is forbidden.
        what: &'static str,
    },
    /// A redirect that is not followed.
    #[error("{origin} redirects the image to a URL that is not followed: {why}")]
    RedirectRefused {
        /// Who sends.
        origin: String,
        /// Why not.
        why: &'static str,
    },
    /// Nothing answers.
    #[error("the server of the image, {origin}, cannot be reached: {why}")]
    Unreachable {
        /// The server.
        origin: String,
        /// What happened.
        why: String,
    },
    /// The certificate is not trusted.
    #[error("the server of the image, {origin}, is not trusted: {why}")]
    Untrusted {
        /// The server.
        origin: String,
        /// What is wrong with its certificate.
        why: String,
    },
    /// The server refuses.
    #[error("{origin} answers {status} for the image")]
    Refused {
        /// The server.
        origin: String,
        /// What it says.
        status: StatusCode,
    },
    /// The server only gives whole files.
    #[error(
        "{origin} does not serve parts of files (HTTP range requests); put the image on a server that does, such as nginx"
    )]
    NoRanges {
        /// The server.
        origin: String,
    },
    /// The server does not say how long the image is.
    #[error("{origin} does not send the length of the image; put it on a server that does, such as nginx")]
    NoLength {
        /// The server.
        origin: String,
    },
    /// No image is that long.
    #[error("{origin} reports {bytes} bytes for the image, which is too large; check the file")]
    TooLarge {
        /// The server.
        origin: String,
        /// What it says.
        bytes: u64,
    },
    /// Reading the first megabytes of the image took too long.
    #[error("{origin} sends the image too slowly: its boot configuration was not read within {} s", within.as_secs())]
    TooSlow {
        /// The server.
        origin: String,
        /// How long it had.
        within: Duration,
    },
    /// It is another image now.
    #[error("the image at {origin} was replaced while it was being read; reading starts again with the new one")]
    Changed {
        /// The server.
        origin: String,
    },
    /// The answer stopped in the middle.
    #[error("the answer of {origin} broke off: {why}")]
    Broken {
        /// The server.
        origin: String,
        /// What happened.
        why: String,
    },
}

impl FetchError {
    /// How to treat it.
    pub fn class(&self) -> Class {
        match self {
            Self::Unreachable { .. } | Self::TooSlow { .. } | Self::Changed { .. } | Self::Broken { .. } => {
                Class::Transient
            }
            Self::Refused { status, .. } => match *status {
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Class::Throttled,
                StatusCode::REQUEST_TIMEOUT => Class::Transient,
                status if status.is_server_error() => Class::Transient,
                _ => Class::Rejected,
            },
            Self::NoRanges { .. } | Self::NoLength { .. } => Class::Unsupported,
            Self::UrlInvalid { .. }
            | Self::TrustInvalid { .. }
            | Self::Forbidden { .. }
            | Self::RedirectRefused { .. }
            | Self::TooLarge { .. }
            | Self::Untrusted { .. } => Class::Rejected,
        }
    }

    /// The CamelCase word that users see.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UrlInvalid { .. } => "IsoUrlInvalid",
            Self::TrustInvalid { .. } => "TrustInvalid",
            Self::Forbidden { .. } => "IsoAddressForbidden",
            Self::RedirectRefused { .. } => "IsoRedirectRefused",
            Self::Unreachable { .. } => "IsoServerUnreachable",
            Self::Untrusted { .. } => "IsoServerUntrusted",
            Self::Refused { status: StatusCode::NOT_FOUND | StatusCode::GONE, .. } => "IsoNotFound",
            Self::Refused { .. } => "IsoServerRefused",
            Self::NoRanges { .. } => "IsoServerWithoutRanges",
            Self::NoLength { .. } => "IsoServerWithoutLength",
            Self::TooLarge { .. } => "IsoTooLarge",
            Self::TooSlow { .. } => "IsoServerTooSlow",
            Self::Changed { .. } => "IsoChanged",
            Self::Broken { .. } => "IsoUnreadable",
        }
    }

    /// Whether it may work later, without anybody's help.
    pub fn is_transient(&self) -> bool {
        matches!(self.class(), Class::Transient | Class::Throttled)
    }
}

impl From<FetchError> for SourceError {
    fn from(error: FetchError) -> Self {
        Self { why: error.to_string(), transient: error.is_transient() }
    }
}
