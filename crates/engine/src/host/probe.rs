//! A server that is started to be looked into before it is free: a probe boots from the network, reports, and is switched off again.

use super::{
    Ask, Fault, Finding, Happening, Newcomer, Phase, Probe, Waiting,
    lending::Errand,
    pace,
    step::{Flow, GO_ON, STOP, Scene},
};
use crate::{
    failure::Kind,
    server::{PowerState, Scope, Seen},
};

impl Scene<'_> {
    /// Whether the server is started, or runs, for a probe that is still wanted.
    pub(super) fn is_probing(&self) -> bool {
        self.record.phase == Phase::Inspecting && !self.goal.quarantine && self.wanted_probe().is_some()
    }

    /// Whoever has claimed the server need not wait for a probe.
    fn wanted_probe(&self) -> Option<&Probe> {
        self.goal.probe.as_ref().filter(|_| !self.record.probed && self.goal.claim.is_none())
    }

    /// A server that has just been met is looked into, if that is wanted. Goes on when there is nothing more to do for that.
    pub(super) fn begin_probe(&mut self, seen: &Seen) -> Flow {
        self.record.probed = false;
        let Some(id) = self.wanted_probe().map(|probe| probe.id.clone()) else { return GO_ON };
        self.record.anchor.probe = Some(id);
        self.identify(seen);
        self.probe()
    }

    /// Goes on when the probe has reported and the server is off again, or if none is wanted.
    pub(super) fn probe(&mut self) -> Flow {
        let Some(probe) = self.wanted_probe().cloned() else {
            return if self.record.anchor.probing { self.end_probe() } else { GO_ON };
        };
        if self.has_reported() {
            self.record.probed = true;
            if self.has_probe_fault() {
                self.recover();
            }
            self.tell(Happening::ProbeReported);
            return self.end_probe();
        }
        if self.record.anchor.probe.is_none() {
            self.record.anchor.probe = Some(probe.id.clone());
        }
        self.wait_out_fault()?;
        if self.has_given_up() || self.runs_without_us() {
            self.end_probe()?;
        }
        if self.record.anchor.probing {
            self.watch_for_loss_of_power()?;
        } else {
            let seen = self.look_first(Scope::Power, Waiting::LookingAtPower)?;
            self.leave_newcomer(seen)?;
            if probe.boot.gate.open {
                self.ask_brake(Ask::Deploy)?;
            }
        }
        self.keep_on(Errand::Probe, Some(&probe.boot))?;
        self.await_report()
    }

    /// Whether the system that was started for the probe has reported. A report from before that start is of an earlier one.
    fn has_reported(&self) -> bool {
        let Some(at) = self.sight.probed.filter(|_| self.record.anchor.probing) else { return false };
        self.record.started.is_none_or(|started| pace::later(at, pace::CLOCK_SKEW) >= started)
    }

    pub(super) fn has_probe_fault(&self) -> bool {
        self.record.fault.as_ref().is_some_and(|fault| fault.failure.kind == Kind::ProbeSilent)
    }

    /// Whether what was started has been silent for too long and is to be started again.
    fn has_given_up(&self) -> bool {
        let is_older = |fault: &Fault| self.record.started.is_none_or(|started| started <= fault.last);
        self.record.anchor.probing && self.has_probe_fault() && self.record.fault.as_ref().is_some_and(is_older)
    }

    /// Somebody may use a server that was switched on since it was met.
    fn leave_newcomer(&mut self, seen: &Seen) -> Flow {
        match self.goal.newcomer {
            Newcomer::Register if seen.power != PowerState::Off => {
                self.rest();
                self.wait_for_others(Waiting::ServerOff);
                STOP
            }
            _ => self.meet_newcomer(seen),
        }
    }

    /// A probe that switches its server off, or never gets it on, would be started again and again.
    fn watch_for_loss_of_power(&mut self) -> Flow {
        let is_off = self.glance().is_some_and(|seen| seen.power == PowerState::Off);
        let is_settled = self.record.doing.is_none()
            && self.record.started.is_some_and(|started| self.now() >= pace::later(started, pace::POWER_AGAIN));
        if is_off && is_settled {
            return self.fail_to_act(Finding::ProbeSilent { off: true });
        }
        GO_ON
    }

    fn await_report(&mut self) -> Flow {
        let until = pace::later(self.record.started.unwrap_or(self.record.since), pace::PROBE_LIMIT);
        if self.now() >= until {
            return self.fail_to_act(Finding::ProbeSilent { off: false });
        }
        self.rest();
        self.wait_until(Waiting::Probing, until);
        self.again = Some(self.again.map_or(until, |again| again.min(until)));
        STOP
    }

    /// Goes on when the server is off, and nothing is left of what was done for the probe.
    pub(super) fn end_probe(&mut self) -> Flow {
        self.wait_out_fault()?;
        self.undo_errand()?;
        self.record.started = None;
        GO_ON
    }
}
