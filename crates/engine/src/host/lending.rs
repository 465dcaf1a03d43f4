//! A server that is lent for maintenance: its power follows whoever has it, and what was done for that is undone in the end.

use super::{
    Deed, Manner, Milestone, Passage, Phase, Undo, Waiting,
    step::{Flow, GO_ON, STOP, Scene},
};
use crate::server::{PowerState, Scope};

impl Scene<'_> {
    /// Whether nothing is under way that must not be interrupted. A server that was started for its order and does not boot it may be
    /// what needs maintenance.
    pub(super) fn is_at_rest(&self) -> bool {
        let anchor = &self.record.anchor;
        match self.record.phase {
            Phase::Available
            | Phase::Provisioned
            | Phase::Parked
            | Phase::Lent
            | Phase::Quarantined
            | Phase::Detached => true,
            Phase::Preparing => anchor.milestone == Milestone::None || anchor.lent,
            Phase::Provisioning => self.has_boot_fault() || anchor.lent,
            // The status was lost.
            Phase::Registering | Phase::Inspecting => anchor.lent,
            Phase::Deprovisioning | Phase::Deleting => false,
        }
    }

    pub(super) fn lend(&mut self) -> Flow {
        if self.record.phase != Phase::Lent {
            self.step_aside(Phase::Lent, Passage::Lent);
            // The server may be another one afterwards.
            self.record.inspected = false;
        }
        match self.goal.maintenance.online {
            Some(true) => self.keep_on()?,
            Some(false) => self.keep_off(Manner::Soft)?,
            None => {}
        }
        self.only_watch()
    }

    /// Switches the server on if it is off, or if it runs something else than it is to boot.
    fn keep_on(&mut self) -> Flow {
        let Some(glance) = self.glance() else { return GO_ON };
        let boot = self.goal.maintenance.boot.as_ref();
        // What runs already is not what whoever has it wants to run.
        let is_to_boot = boot.is_some() && !self.record.anchor.lent && !self.goal.never_off;
        if glance.power.is_on() && !is_to_boot {
            self.settle();
            return GO_ON;
        }
        self.wait_out_fault()?;
        if let Some(gate) = boot.map(|boot| &boot.gate).filter(|gate| !gate.open && self.doing(Deed::PowerOn).is_none())
        {
            let keeper = gate.keeper.clone();
            self.rest();
            self.wait_for_others(Waiting::BootPermission { keeper });
            return STOP;
        }
        let plan = boot.map(|boot| boot.recipe.plan(self.goal.boot_mode));
        let scope = plan.as_ref().map_or(Scope::Power, |plan| plan.look);
        let seen = self.look_first(scope, Waiting::LookingAtPower)?;
        if is_to_boot {
            self.bring_off(seen, Manner::Soft, scope)?;
        }
        if seen.power == PowerState::Off && self.doing(Deed::PowerOn).is_none() {
            self.record.anchor.lend(plan.as_ref().map_or(&[], |plan| &plan.undo));
            self.record.anchor.powered_on = true;
            if let Some(plan) = plan {
                self.arm(&plan, seen)?;
            }
        }
        self.bring_on(seen, Scope::Power)?;
        STOP
    }

    /// Goes on when what was done for a maintenance is undone: whatever runs, nobody else has ordered it.
    pub(super) fn take_back_lent(&mut self) -> Flow {
        self.wait_out_fault()?;
        let mut undo = self.record.anchor.undo();
        // An image that the claim has ordered stays where it is.
        if self.record.anchor.is_in_use() {
            undo.retain(|undo| matches!(undo, Undo::Boot(_)));
        }
        self.bring_off_and_undo(&undo, Manner::Soft)?;
        self.record.anchor.take_back();
        self.record.anchor.powered_on = false;
        GO_ON
    }
}
