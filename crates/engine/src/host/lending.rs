//! A server that is lent for maintenance, or started for a probe: its power follows that, and what was done for it is undone in the end.

use super::{
    Boot, Deed, Manner, Milestone, Passage, Phase, Undo, Waiting,
    step::{Flow, GO_ON, STOP, Scene},
};
use crate::server::{PowerState, Scope};

/// What a server is started for although nobody has ordered what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// Somebody has it for maintenance.
    Maintenance,
    /// A probe looks into it.
    Probe,
}

impl Scene<'_> {
    /// Whether nothing is under way that must not be interrupted. A server that was started and does not do what it was started
    /// for may be what needs maintenance.
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
            // The status was lost, or the probe does not report.
            Phase::Registering | Phase::Inspecting => anchor.lent || self.has_probe_fault(),
            Phase::Deprovisioning | Phase::Deleting => false,
        }
    }

    pub(super) fn lend(&mut self) -> Flow {
        if self.record.phase != Phase::Lent {
            if self.has_probe_fault() {
                self.drop_act_fault();
            }
            self.step_aside(Phase::Lent, Passage::Lent);
            // The server may be another one afterwards.
            self.record.inspected = false;
        }
        match self.goal.maintenance.online {
            Some(true) => self.keep_on(Errand::Maintenance, self.goal.maintenance.boot.as_ref())?,
            Some(false) => self.keep_off(Manner::Soft)?,
            None => {}
        }
        self.only_watch()
    }

    /// Switches the server on if it is off, or if it runs something else than it is to boot.
    pub(super) fn keep_on(&mut self, errand: Errand, boot: Option<&Boot>) -> Flow {
        let Some(glance) = self.glance() else { return GO_ON };
        // What runs already is not what whoever has it wants to run.
        let is_to_boot = boot.is_some() && !self.record.anchor.is_lent(errand) && !self.goal.never_off;
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
            self.record.anchor.lend(errand, plan.as_ref().map_or(&[], |plan| &plan.undo));
            if is_to_boot {
                // Whatever was seen or reported before is about an earlier start.
                self.record.started = Some(self.now());
                self.record.anchor.powered_on = false;
            }
            if let Some(plan) = plan {
                self.arm(&plan, seen)?;
            }
            self.record.anchor.powered_on = true;
        }
        self.bring_on(seen, Scope::Power)?;
        STOP
    }

    /// Goes on when what was done for a maintenance is undone: whatever runs, nobody else has ordered it.
    pub(super) fn take_back_lent(&mut self) -> Flow {
        self.wait_out_fault()?;
        self.undo_errand()
    }

    /// Whether somebody else has switched the server on that was about to be started for a probe: they may use it.
    pub(super) fn runs_without_us(&self) -> bool {
        let anchor = &self.record.anchor;
        let is_off = self.glance().is_none_or(|seen| seen.power == PowerState::Off);
        anchor.probing && !anchor.powered_on && !is_off
    }

    pub(super) fn undo_errand(&mut self) -> Flow {
        let mut undo = self.record.anchor.undo();
        if self.runs_without_us() {
            self.undo(&undo)?;
            self.record.anchor.take_back();
            return GO_ON;
        }
        // An image that the claim has ordered stays where it is.
        if self.record.anchor.is_in_use() {
            undo.retain(|undo| matches!(undo, Undo::Boot(_)));
        }
        self.bring_off_and_undo(&undo, Manner::Soft)?;
        self.record.anchor.take_back();
        GO_ON
    }
}
