//! Power: commands are sent without waiting for their effect; after a refusal, the present power state is checked.

use std::time::Duration;

use engine::server::PowerState;
use serde_json::json;

use crate::Manner;
use crate::client::Care;
use crate::error::Error;
use crate::resource::View;
use crate::system::{Known, RedfishSystem, power_state};

/// iDRAC10 refuses power on for up to a minute after power off.
const TRIES: u32 = 7;
const PAUSE: Duration = Duration::from_secs(10);

/// Everything that Redfish can do to a system's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the words of the standard")]
pub enum ResetType {
    On,
    ForceOff,
    GracefulShutdown,
    GracefulRestart,
    ForceRestart,
    Nmi,
    ForceOn,
    PushPowerButton,
    PowerCycle,
    Suspend,
    Pause,
    Resume,
    FullPowerCycle,
}

impl ResetType {
    /// Redfish's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "On",
            Self::ForceOff => "ForceOff",
            Self::GracefulShutdown => "GracefulShutdown",
            Self::GracefulRestart => "GracefulRestart",
            Self::ForceRestart => "ForceRestart",
            Self::Nmi => "Nmi",
            Self::ForceOn => "ForceOn",
            Self::PushPowerButton => "PushPowerButton",
            Self::PowerCycle => "PowerCycle",
            Self::Suspend => "Suspend",
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::FullPowerCycle => "FullPowerCycle",
        }
    }
}

/// Where to send a reset, and which kinds are allowed.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResetAction {
    target: String,
    /// Empty when the BMC does not say: then everything is tried.
    allowed: Vec<String>,
    info: Option<String>,
}

impl ResetAction {
    pub(crate) fn learn(&mut self, system: &str, view: View<'_>) {
        self.target = view
            .link("/Actions/#ComputerSystem.Reset/target")
            .unwrap_or_else(|| format!("{}/Actions/ComputerSystem.Reset", system.trim_end_matches('/')));
        let inline = view.texts("/Actions/#ComputerSystem.Reset/ResetType@Redfish.AllowableValues");
        if !inline.is_empty() {
            self.allowed = inline;
        }
        self.info = view.link("/Actions/#ComputerSystem.Reset/@Redfish.ActionInfo");
    }
}

/// The goal of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    On,
    Off,
    Restart,
    /// Something that the power state does not show.
    Other,
}

impl Goal {
    fn is_reached(self, power: PowerState) -> bool {
        match self {
            Self::On => matches!(power, PowerState::On | PowerState::PoweringOn | PowerState::Paused),
            Self::Off => matches!(power, PowerState::Off | PowerState::PoweringOff),
            Self::Restart | Self::Other => false,
        }
    }
}

const ON: &[ResetType] = &[ResetType::On, ResetType::ForceOn, ResetType::PushPowerButton];

impl RedfishSystem {
    pub(crate) async fn switch_on(&self) -> Result<(), Error> {
        self.reset_by(ON, Goal::On, "be powered on").await
    }

    pub(crate) async fn switch_off(&self, manner: Manner) -> Result<(), Error> {
        let (chain, what): (&[_], _) = match manner {
            Manner::Hard => (&[ResetType::ForceOff, ResetType::PushPowerButton], "be powered off"),
            Manner::Soft => {
                (&[ResetType::GracefulShutdown, ResetType::PushPowerButton], "be shut down softly; power it off hard")
            }
        };
        self.reset_by(chain, Goal::Off, what).await
    }

    pub(crate) async fn start_over(&self, manner: Manner) -> Result<(), Error> {
        let (chain, what): (&[_], _) = match manner {
            Manner::Hard => {
                (&[ResetType::ForceRestart, ResetType::PowerCycle], "be restarted in one step; power it off, then on")
            }
            Manner::Soft => (&[ResetType::GracefulRestart], "be restarted softly; restart it hard"),
        };
        self.reset_by(chain, Goal::Restart, what).await
    }

    /// Sends a reset of exactly this kind.
    pub async fn reset(&self, kind: ResetType) -> Result<(), Error> {
        let what = format!("be reset by {}", kind.as_str());
        Box::pin(self.bounded("resetting the server", self.reset_by(&[kind], Goal::Other, &what))).await
    }

    async fn reset_by(&self, chain: &[ResetType], mut goal: Goal, what: &str) -> Result<(), Error> {
        let known = self.ready_to_act().await?;
        let allowed = self.allowed_resets(&known).await;
        let is_allowed = |kind: &ResetType| allowed.is_empty() || allowed.iter().any(|word| word == kind.as_str());
        let mut chain: Vec<ResetType> = chain.iter().copied().filter(is_allowed).collect();
        let mut last = None;
        let mut attempt = 0;
        while let Some(&kind) = chain.first() {
            // The button toggles: it is only pressed when the server is surely on the wrong side.
            if kind == ResetType::PushPowerButton {
                let power = self.read_power().await?;
                if goal.is_reached(power) {
                    return Ok(());
                }
                if !matches!(power, PowerState::On | PowerState::Off) {
                    break;
                }
            }
            attempt += 1;
            let error = match self.client.post_once(&known.reset.target, &json!({"ResetType": kind.as_str()})).await {
                Ok(answer) => return self.client.follow(answer).await,
                Err(error) => error,
            };
            let Some(refusal) = error.refusal().cloned() else { return Err(error) };
            // Dell answers 409 and iLO 400 when the server is there already.
            let power = self.read_power().await?;
            if goal.is_reached(power) {
                return Ok(());
            }
            // It failed while carrying it out, so the act may have taken effect: do not send it again.
            if goal == Goal::Restart && power != PowerState::Off && refusal.is_server_failure() {
                return Err(error);
            }
            if goal == Goal::Restart && power == PowerState::Off {
                goal = Goal::On;
                chain = ON.iter().copied().filter(is_allowed).collect();
                last = Some(error);
                continue;
            }
            let too_early =
                refusal.problem.is_not_ready() || known.quirks.power_conflicts.iter().any(|id| refusal.problem.has(id));
            if too_early && attempt < TRIES {
                last = Some(error);
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            let unknown_kind = [
                "ActionParameterValueNotInList",
                "ActionParameterNotSupported",
                "ActionParameterValueFormatError",
                "PropertyValueNotInList",
            ];
            if !unknown_kind.iter().any(|id| refusal.problem.has(id)) && refusal.status != 501 {
                return Err(error);
            }
            last = Some(error);
            chain.remove(0);
        }
        Err(last.unwrap_or_else(|| {
            let offers = if allowed.is_empty() { "no reset".to_owned() } else { allowed.join(", ") };
            self.unsupported(format!("let the server {what} (it offers {offers})"))
        }))
    }

    /// Inline, or in a resource of its own; nothing means that the BMC does not say.
    pub(crate) async fn allowed_resets(&self, known: &Known) -> Vec<String> {
        let (Some(info), true) = (&known.reset.info, known.reset.allowed.is_empty()) else {
            return known.reset.allowed.clone();
        };
        let Ok(info) = self.client.get(info, Care::Optional).await else { return Vec::new() };
        let allowed = info
            .view()
            .list("/Parameters")
            .iter()
            .map(View)
            .find(|parameter| parameter.text("/Name").as_deref() == Some("ResetType"))
            .map(|parameter| parameter.texts("/AllowableValues"))
            .unwrap_or_default();
        self.update(|known| known.reset.allowed.clone_from(&allowed));
        allowed
    }

    async fn read_power(&self) -> Result<PowerState, Error> {
        let (_, system) = self.read_system().await?;
        Ok(power_state(system.view()))
    }

    pub(crate) async fn reset_manager(&self) -> Result<(), Error> {
        let known = match self.known() {
            Some(known) => known,
            None => self.read_system().await?.0,
        };
        let manager = self.read_manager(&known).await?;
        let view = manager.view();
        let target = view
            .link("/Actions/#Manager.Reset/target")
            .ok_or_else(|| self.unsupported("restart its BMC; use its web page or IPMI"))?;
        let allowed = view.texts("/Actions/#Manager.Reset/ResetType@Redfish.AllowableValues");
        let kind = ["GracefulRestart", "ForceRestart"]
            .into_iter()
            .find(|kind| allowed.is_empty() || allowed.iter().any(|word| word == kind))
            .unwrap_or("GracefulRestart");
        match self.client.post_once(&target, &json!({"ResetType": kind})).await {
            // It answered a moment ago; that it no longer does is the effect of the act.
            Ok(_) | Err(Error::Unreachable { .. } | Error::ResultUnknown { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
