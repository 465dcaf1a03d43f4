//! Why something is done to a server. The timeline, an event and the log show it.

use super::{Consumer, Deed, Phase, step::Scene};

/// Why something is done to a server, and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The owner requested this power state.
    PowerRequest {
        /// The requested state.
        online: bool,
    },
    /// Somebody requested a restart.
    RestartRequest {
        /// The id of the request.
        id: String,
    },
    /// The order of a consumer.
    Deployment {
        /// Who ordered, if not the host's owner.
        consumer: Option<Consumer>,
    },
    /// The end of a claim.
    Release {
        /// Whose claim it was.
        consumer: Option<Consumer>,
    },
    /// The host is to be off during maintenance.
    Maintenance,
    /// A probe is to look into the server, or has done so.
    Probe,
    /// Somebody wants the server to stay off for now.
    HeldOff,
    /// The host is being deleted.
    Deletion,
}

impl Cause {
    /// Its stable name, which the log shows.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PowerRequest { .. } => "PowerRequest",
            Self::RestartRequest { .. } => "RestartRequest",
            Self::Deployment { .. } => "Deployment",
            Self::Release { .. } => "Release",
            Self::Maintenance => "Maintenance",
            Self::Probe => "Probe",
            Self::HeldOff => "HeldOff",
            Self::Deletion => "Deletion",
        }
    }
}

impl Scene<'_> {
    /// Why something is done now.
    pub(super) fn cause(&self, deed: Deed) -> Cause {
        let consumer = || self.record.anchor.claim.as_ref().and_then(|claim| claim.consumer.clone());
        let restart = || Cause::RestartRequest { id: self.goal.reboot.clone().unwrap_or_default() };
        match (self.record.phase, deed) {
            (Phase::Deleting, _) => Cause::Deletion,
            (Phase::Parked | Phase::Lent, _) => Cause::Maintenance,
            _ if self.record.anchor.lent => Cause::Maintenance,
            _ if self.record.anchor.probing => Cause::Probe,
            (_, Deed::Restart) => restart(),
            (Phase::Deprovisioning, _) => Cause::Release { consumer: consumer() },
            (Phase::Preparing, _) if self.goal.order.is_some() => Cause::Deployment { consumer: consumer() },
            (Phase::Provisioning, _) | (_, Deed::PrepareBoot | Deed::DisarmBoot) => {
                Cause::Deployment { consumer: consumer() }
            }
            _ if self.record.anchor.restarting.is_some() => restart(),
            _ if deed == Deed::PowerOn => Cause::PowerRequest { online: true },
            _ => match self.held_off() {
                Some(held) if held.lasts => Cause::HeldOff,
                Some(_) => restart(),
                None => Cause::PowerRequest { online: false },
            },
        }
    }
}
