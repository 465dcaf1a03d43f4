//! What a server may boot now. Everything that serves servers asks this first: DHCP, TFTP, HTTP and scripts only carry it out.

use jiff::{SignedDuration, Timestamp};

use super::{Anchor, Goal, Milestone, Payload, Recipe, pace};

/// What a server may boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootPlan<'a> {
    /// Nothing: its order was withdrawn, or it is not to run yet, or it is being released.
    Nothing,
    /// What is on its disk.
    Disk,
    /// The image in its virtual CD drive. That stays readable until the release: an installer reads it long after the boot.
    Medium,
    /// This, from the network.
    Network(&'a Payload),
}

/// The last start of a server that was to follow its recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastBoot {
    /// When the operator caused it; `None` if that is not known, or if its last start was not to follow the recipe.
    pub begun: Option<Timestamp>,
    /// When the server was last handed all that it was to boot in this deployment.
    pub handed: Option<Timestamp>,
}

/// A server may be in its self test for so long before it asks for anything. One that asks later was started by somebody else.
const ASKS_WITHIN: SignedDuration = SignedDuration::from_mins(60);

/// What a server may boot now.
///
/// From the network it gets what was ordered once for each start that the operator causes for it. A server that asks again has restarted
/// by itself: an installer does that when it is done, and then the disk is to be booted.
pub fn boot_plan<'a>(anchor: &Anchor, goal: &'a Goal, last: LastBoot, now: Timestamp) -> BootPlan<'a> {
    if anchor.lent {
        return goal.maintenance.boot.as_ref().map_or(BootPlan::Nothing, |boot| of_recipe(&boot.recipe));
    }
    if anchor.probing {
        return goal.probe.as_ref().map_or(BootPlan::Nothing, |probe| of_recipe(&probe.boot.recipe));
    }
    let is_current =
        |deployment: &str| anchor.milestone == Milestone::None || anchor.deployment.as_deref() == Some(deployment);
    let order = goal.order.as_ref().filter(|order| goal.claim.is_some() && is_current(&order.deployment));
    let recipe = order.and_then(|order| order.recipe.as_ref().ok());
    match (anchor.milestone, recipe) {
        (Milestone::Provisioned, _) if anchor.adopted => BootPlan::Disk,
        // What asks for an order before it was started was not started for it.
        (Milestone::Releasing, _)
        | (Milestone::Armed | Milestone::Written, None)
        | (Milestone::None | Milestone::Armed, Some(Recipe::Network { .. })) => BootPlan::Nothing,
        (_, Some(Recipe::Iso { .. })) => BootPlan::Medium,
        (Milestone::Written, Some(Recipe::Network { payload, .. })) if !last.is_over() => BootPlan::Network(payload),
        (Milestone::Provisioned, Some(Recipe::Network { payload, .. })) if last.is_under_way(now) => {
            BootPlan::Network(payload)
        }
        (Milestone::None | Milestone::Provisioned, None)
        | (Milestone::Written | Milestone::Provisioned, Some(Recipe::Network { .. })) => BootPlan::Disk,
    }
}

fn of_recipe(recipe: &Recipe) -> BootPlan<'_> {
    match recipe {
        Recipe::Iso { .. } => BootPlan::Medium,
        Recipe::Network { payload, .. } => BootPlan::Network(payload),
    }
}

impl LastBoot {
    /// Whether the server has got all that it was to boot. If the start is not known, the hand-over may have been that of this start.
    fn is_over(self) -> bool {
        self.handed.is_some_and(|handed| self.begun.is_none_or(|begun| pace::later(handed, pace::CLOCK_SKEW) >= begun))
    }

    /// Whether the server was started a while ago and has not got it yet.
    fn is_under_way(self, now: Timestamp) -> bool {
        !self.is_over() && self.begun.is_some_and(|begun| now < pace::later(begun, ASKS_WITHIN))
    }
}
