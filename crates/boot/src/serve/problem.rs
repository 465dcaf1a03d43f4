//! What can go wrong while serving, in words that a condition can show.

use std::net::IpAddr;

use engine::failure::Class;

use super::Unavailable;
use super::gate::{Gate, OPEN_FOR};
use crate::fetch::FetchError;
use crate::iso::IsoError;
use crate::kind::WrongKind;

/// Why something was not served although the ticket was valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The image cannot be rewritten.
    #[error(transparent)]
    Iso(#[from] IsoError),
    /// The image cannot be read.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The bootstrap data does not exist, or the fetch cannot be recorded.
    #[error("bootstrap data cannot be served: {0}")]
    Bootstrap(Unavailable),
    /// Another address was first.
    #[error(
        "bootstrap data was refused to {from}, because {first} had fetched it before; if {first} is not the host, its secrets are \
         known to somebody else: release the host and replace them"
    )]
    OtherAddress {
        /// The address that fetched it.
        first: IpAddr,
        /// The address of this request.
        from: IpAddr,
    },
    /// It has been too long.
    #[error(
        "bootstrap data was refused to {from}: it can be fetched again for {} minutes after the first time, which have passed",
        OPEN_FOR.as_secs() / 60
    )]
    Closed {
        /// The address of the request.
        from: IpAddr,
    },
    /// The server cannot have asked.
    #[error(
        "bootstrap data was refused to {from}: the server was not powered on yet for this deployment, so the request did not come from it. \
         The address of the bootstrap data is in the boot image, whose address is in the BMC's log; find out who {from} is"
    )]
    TooEarly {
        /// The address of the request.
        from: IpAddr,
    },
    /// What is to be booted is something else than it was ordered as.
    #[error(transparent)]
    Kind(#[from] WrongKind),
    /// No URL of ours is short enough, or the kernel would not take the parameter.
    #[error("what is to be booted cannot be told to the server: {0}")]
    Untellable(String),
    /// Ours to mend.
    #[error("preparing the ISO failed because of a bug in the operator; see its log")]
    Internal,
}

impl Problem {
    /// The problem for a request that the gate refuses.
    pub(super) fn of_gate(gate: Gate, from: IpAddr) -> Option<Self> {
        match gate {
            Gate::First | Gate::Again => None,
            Gate::OtherAddress { first } => Some(Self::OtherAddress { first, from }),
            Gate::Closed => Some(Self::Closed { from }),
            Gate::TooEarly => Some(Self::TooEarly { from }),
        }
    }

    /// How to treat it.
    pub fn class(&self) -> Class {
        match self {
            Self::Iso(error) => error.class(),
            Self::Fetch(error) => error.class(),
            // A replica may learn a moment late that the server was powered on.
            Self::Bootstrap(_) | Self::TooEarly { .. } => Class::Transient,
            Self::OtherAddress { .. } | Self::Closed { .. } | Self::Kind(_) | Self::Untellable(_) => Class::Rejected,
            Self::Internal => Class::Bug,
        }
    }

    /// The CamelCase word that users see.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Iso(error) => error.reason(),
            Self::Fetch(error) => error.reason(),
            Self::Bootstrap(_) => "BootstrapDataUnavailable",
            Self::OtherAddress { .. } => "BootstrapDataSecondAddress",
            Self::Closed { .. } => "BootstrapDataClosed",
            Self::TooEarly { .. } => "BootstrapDataTooEarly",
            Self::Kind(_) => "BootImageInvalid",
            Self::Untellable(_) => "BootParametersInvalid",
            Self::Internal => "InternalError",
        }
    }

    /// Whether it may work later, without anybody's help.
    pub fn is_transient(&self) -> bool {
        matches!(self.class(), Class::Transient | Class::Throttled)
    }
}
