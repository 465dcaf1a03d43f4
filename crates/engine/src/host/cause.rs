//! Why something is done to a server: told in the timeline, by an event and in the log.

use std::fmt;

use super::{
    Consumer, Deed, Phase,
    step::{Act, Scene},
};
use crate::server::without_secrets;

/// Why something is done to a server, and who asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The owner asked for it by `spec.online`.
    PowerRequest {
        /// What it says.
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

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PowerRequest { online } => write!(f, "spec.online is {online}"),
            Self::RestartRequest { id } => write!(f, "restart request \"{id}\" (beskar7.io/reboot)"),
            Self::Deployment { consumer } => write!(f, "deployment for {consumer}"),
            Self::Release { consumer: Some(consumer) } => write!(f, "release by {consumer}"),
            Self::Release { consumer: None } => f.write_str("release of the host"),
            Self::Deletion => f.write_str("deletion of the host"),
        }
    }
}

impl Act {
    /// What is done, as the beginning of a sentence or the middle of one.
    fn told(&self) -> String {
        match self {
            Self::PowerOn => "powering on".to_owned(),
            Self::ShutDown => "asking the operating system to shut down".to_owned(),
            Self::PowerOff => "powering off".to_owned(),
            Self::Restart => "restarting".to_owned(),
            Self::InsertMedia { url } => format!("inserting the image {}", without_secrets(url)),
            Self::EjectMedia => "ejecting virtual media".to_owned(),
            Self::SetBoot(wish) => format!("setting the boot override to {:?}", wish.target),
            Self::ClearBoot => "clearing the boot override".to_owned(),
        }
    }

    /// Whether it changes the power.
    pub(super) fn is_about_power(&self) -> bool {
        matches!(self, Self::PowerOn | Self::ShutDown | Self::PowerOff | Self::Restart)
    }
}

/// What is done and why, in a sentence.
pub(super) fn told(acts: &[Act], cause: &Cause) -> String {
    let all: Vec<_> = acts.iter().map(Act::told).collect();
    let all = all.join(", ");
    let mut letters = all.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}; cause: {cause}.", letters.as_str())
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
