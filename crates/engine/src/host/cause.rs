//! Why something is done to a server: told in the timeline, by an event and in the log.

use super::{Consumer, Deed, Phase, step::Scene};

/// Why something is done to a server, and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The owner asked for this power.
    PowerRequest {
        /// What was asked for.
        online: bool,
    },
    /// Somebody asked for a restart.
    RestartRequest {
        /// The id of the request.
        id: String,
    },
    /// The order of a consumer.
    Deployment {
        /// Who ordered.
        consumer: Consumer,
    },
    /// The end of a claim.
    Release {
        /// Whose claim it was.
        consumer: Option<Consumer>,
    },
    /// The host is deleted.
    Deletion,
}

impl Scene<'_> {
    /// Why something is done now.
    pub(super) fn cause(&self, deed: Deed) -> Cause {
        let consumer = self.record.anchor.claim.as_ref().map(|claim| claim.consumer.clone());
        let deployment = || Cause::Deployment { consumer: consumer.clone().unwrap_or_default() };
        match (self.record.phase, deed) {
            (Phase::Deleting, _) => Cause::Deletion,
            (_, Deed::Restart) => Cause::RestartRequest { id: self.goal.reboot.clone().unwrap_or_default() },
            (Phase::Deprovisioning, _) => Cause::Release { consumer },
            (Phase::Preparing, _) if self.goal.order.is_some() => deployment(),
            (Phase::Provisioning, _) | (_, Deed::PrepareBoot | Deed::DisarmBoot) => deployment(),
            _ => Cause::PowerRequest { online: deed == Deed::PowerOn },
        }
    }
}
