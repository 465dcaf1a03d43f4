//! Changing the power, and noticing when it does not change.

use jiff::Timestamp;

use super::{
    Ask, Author, Deed, Finding, Happening, HeldOff, Lasting, Manner, Milestone, Note, OutdatedRequest, Phase, Request,
    Restart, Since, Waiting, pace,
    step::{Act, Flow, GO_ON, STOP, Scene},
};
use crate::{
    failure::Kind,
    server::{PowerState, Scope, Seen},
};

/// Whether a free server runs although nobody asked for it. Somebody may use it, so a machine may claim it only where that is
/// allowed. `online` is the power request, unless it was made before the last release.
pub fn runs_unasked(power: PowerState, online: Option<bool>, claimable_while_running: bool) -> bool {
    is_running(power) && online.is_none() && !claimable_while_running
}

/// Whether a free server in this state may be in use.
pub fn is_running(power: PowerState) -> bool {
    matches!(power, PowerState::On | PowerState::PoweringOn | PowerState::Paused)
}

impl Scene<'_> {
    /// Stops if a machine's claim found a server that runs although nobody asked for it. A claim by hand names its host, and the
    /// owner of an adopted host knows that it runs: both are intended. Once something was done for the claim, the operator has
    /// started what runs.
    pub(super) fn leave_running_server(&mut self, seen: &Seen) -> Flow {
        let anchor = &self.record.anchor;
        let is_meant = self.goal.author == Author::Hand || anchor.adopted || anchor.milestone != Milestone::None;
        // A request that the claim itself outdated was valid until then.
        let is_stale = anchor.outdated.as_ref().is_some_and(|outdated| outdated.since == Since::Release);
        let held_off = self.held_off().map(|_| false);
        let online = held_off.or(self.goal.online.filter(|_| !is_stale));
        if is_meant || !runs_unasked(seen.power, online, self.goal.claimable_while_running) {
            if self.record.fault.as_ref().is_some_and(|fault| fault.failure.kind == Kind::ServerRunning) {
                self.recover();
            }
            return GO_ON;
        }
        self.fail_to_act(Finding::ServerRunning)
    }

    /// Goes on if the server is off; if not, switches it off. `scope` is how deep to look afterwards.
    pub(super) fn bring_off(&mut self, seen: &Seen, manner: Manner, scope: Scope) -> Flow {
        if seen.power == PowerState::Off {
            // It was seen on before it was asked to shut down, so "off" is not from before its start.
            return if self.doing(Deed::ShutDown).is_some() { GO_ON } else { self.let_power_settle(scope) };
        }
        self.let_power_arrive(seen, scope, Waiting::PoweringOff)?;
        let now = self.now();
        let asked = self.doing(Deed::ShutDown).map(|doing| doing.since);
        let cut = self.doing(Deed::PowerOff).map(|doing| (doing.since, doing.first));
        match (asked, cut) {
            (Some(since), _) if now < pace::later(since, pace::SOFT_LIMIT) => {
                self.wait_until(Waiting::ShuttingDown, pace::later(since, pace::SOFT_LIMIT));
                self.poll(scope, since);
            }
            (_, Some((since, first))) if now < pace::later(since, pace::POWER_AGAIN) => {
                self.wait_until(Waiting::PoweringOff, power_deadline(since, first));
                self.poll(scope, since);
            }
            (_, Some((since, first))) if has_failed(since, first, now) => {
                self.fail_to_act(Finding::PowerStuck { on: false, shown: seen.power })?;
            }
            _ => {
                self.ask_brake(Ask::Disrupt)?;
                if (asked, cut) == (None, None) && manner == Manner::Soft {
                    self.act(Deed::ShutDown, vec![Act::ShutDown], scope);
                    self.wait(Waiting::ShuttingDown, pace::SOFT_LIMIT);
                } else {
                    self.act(Deed::PowerOff, vec![Act::PowerOff], scope);
                    self.wait(Waiting::PoweringOff, pace::POWER_LIMIT);
                }
            }
        }
        STOP
    }

    /// Waits if "off" may be outdated, because the server was given power a moment ago.
    fn let_power_settle(&mut self, scope: Scope) -> Flow {
        let Some(started) = self.record.started else { return GO_ON };
        let until = pace::later(started, pace::POWER_AGAIN);
        if self.now() >= until {
            return GO_ON;
        }
        self.wait_until(Waiting::PowerUnsettled, until);
        self.poll(scope, started);
        STOP
    }

    /// Goes on if the server is on; if not, switches it on.
    pub(super) fn bring_on(&mut self, seen: &Seen, scope: Scope) -> Flow {
        if seen.power.is_on() {
            return GO_ON;
        }
        self.let_power_arrive(seen, scope, Waiting::PoweringOn)?;
        let now = self.now();
        match self.doing(Deed::PowerOn).map(|doing| (doing.since, doing.first)) {
            Some((since, first)) if now < pace::later(since, pace::POWER_AGAIN) => {
                self.wait_until(Waiting::PoweringOn, power_deadline(since, first));
                self.poll(scope, since);
            }
            Some((since, first)) if has_failed(since, first, now) => {
                self.fail_to_act(Finding::PowerStuck { on: true, shown: seen.power })?;
            }
            _ => {
                self.act(Deed::PowerOn, vec![Act::PowerOn], scope);
                self.wait(Waiting::PoweringOn, pace::POWER_LIMIT);
            }
        }
        STOP
    }

    /// A power transition gets a minute before the command is sent again.
    fn let_power_arrive(&mut self, seen: &Seen, scope: Scope, waiting: Waiting) -> Flow {
        if !matches!(seen.power, PowerState::PoweringOn | PowerState::PoweringOff | PowerState::Unknown) {
            return GO_ON;
        }
        let since = self.waiting_since(&waiting);
        // A host that waits for the brake has waited for this before.
        let has_waited = self.waited_for(&Waiting::FleetBrake { limit: None });
        if has_waited || self.now() >= pace::later(since, pace::POWER_AGAIN) {
            return GO_ON;
        }
        self.wait(waiting, pace::POWER_LIMIT);
        self.poll(scope, since);
        STOP
    }

    /// Whether the server is to have power. A request from before the host was claimed or released does not count, and a request
    /// to keep it off comes first.
    fn online(&self) -> Option<bool> {
        if self.held_off().is_some() && !self.goal.never_off {
            return Some(false);
        }
        self.goal.online.filter(|_| self.record.anchor.outdated.is_none())
    }

    /// Whether somebody wants the server to have power.
    pub(super) fn is_to_be_on(&self) -> bool {
        self.online() == Some(true)
    }

    /// The request to keep it off, if it counts now.
    pub(super) fn held_off(&self) -> Option<HeldOff> {
        self.goal.held_off.filter(|held| held.also_free || self.record.phase == Phase::Provisioned)
    }

    /// A request to be off for a moment is carried out once the server was seen off. The power request then switches it on again.
    fn heed_off_once(&mut self, glance: &Seen) -> Flow {
        if glance.power == PowerState::Off && self.goal.held_off.is_some_and(|held| held.once) {
            let seen = self.look_first(Scope::Power, Waiting::LookingAtPower)?;
            if seen.power == PowerState::Off {
                self.heeded.push(Request::OffOnce);
            }
        }
        GO_ON
    }

    /// A request that agrees with what the server does cannot change anything by counting from now on.
    fn renew_power_request(&mut self, glance: &Seen) {
        let agrees = |outdated: &mut OutdatedRequest| {
            outdated.since == Since::Claim && outdated.request.online == glance.power.is_on()
        };
        if self.goal.power_lasts == Lasting::UntilRelease {
            self.record.anchor.outdated.take_if(agrees);
        }
    }

    /// Switches off a server that is to be off, unless it may never be switched off.
    pub(super) fn keep_off(&mut self, manner: Manner) -> Flow {
        let Some(glance) = self.glance() else { return GO_ON };
        if glance.power == PowerState::Off {
            self.settle();
            return GO_ON;
        }
        if self.goal.never_off {
            self.note(Note::NeverOff);
            return GO_ON;
        }
        self.wait_out_fault()?;
        let seen = self.look_first(Scope::Power, Waiting::LookingAtPower)?;
        self.bring_off(seen, manner, Scope::Power)?;
        STOP
    }

    /// From now on, only a new power request counts.
    pub(super) fn outdate_power_request(&mut self, since: Since) {
        if since == Since::Release || self.goal.power_lasts == Lasting::UntilClaim {
            self.record.anchor.outdate(self.goal.power_request(), since);
        }
    }

    /// A server that was switched off on release is not switched on again by an earlier restart request.
    pub(super) fn skip_restart(&mut self) {
        if self.is_restart_asked() {
            self.heed_restart();
            self.announce(Happening::RestartSkipped { released: true });
        }
    }

    /// Notes why the power differs from the owner's request.
    pub(super) fn tell_outdated_request(&mut self) {
        let Some(outdated) = &self.record.anchor.outdated else { return };
        let (online, since) = (outdated.request.online, outdated.since);
        let differs = if online { self.record.power == PowerState::Off } else { self.record.power.is_on() };
        if differs && self.record.phase != Phase::Deleting {
            self.note(Note::PowerRequestOutdated { online, since });
        }
    }

    /// Follows the owner's power policy and restart requests. Goes on if there is nothing left to do for them.
    pub(super) fn keep_power(&mut self) -> Flow {
        let Some(glance) = self.glance() else { return GO_ON };
        self.renew_power_request(glance);
        self.heed_off_once(glance)?;
        // A restart that has begun is finished even if the request is withdrawn: nobody asked for a server that stays off.
        let restart = self.is_restart_asked() || self.record.anchor.restarting.is_some();
        let (online, held_off) = (self.online(), self.held_off());
        if self.goal.never_off && held_off.is_some_and(|held| held.lasts) {
            self.note(Note::NeverOff);
        }
        if online == Some(false) && (!restart || held_off.is_some()) {
            self.keep_off(held_off.map_or(Manner::Soft, |held| held.manner))?;
            // When it may run again it is started anyway, which fulfils the restart request.
            if restart {
                self.heed_restart();
                self.record.anchor.restarting = None;
            }
            if !self.goal.never_off {
                self.record.anchor.powered_on = false;
            }
            return GO_ON;
        }
        if !restart && (online.is_none() || glance.power.is_on()) {
            self.settle();
            return GO_ON;
        }
        self.wait_out_fault()?;
        let starts = restart || glance.power == PowerState::Off;
        if let Some(keeper) = self.closed_gate_of_later_starts().filter(|_| starts) {
            self.rest();
            self.wait_for_others(Waiting::BootPermission { keeper });
            return STOP;
        }
        let plan = self.plan_of_later_starts().filter(|_| restart || online == Some(true));
        let scope = plan.as_ref().map_or(Scope::Power, |plan| plan.look);
        let seen = self.look_first(scope, Waiting::LookingAtPower)?;
        if let Some(plan) = plan
            && self.is_to_start(seen, restart)
        {
            self.arm(&plan, seen)?;
        }
        if restart {
            return self.restart(seen);
        }
        if seen.power == PowerState::Off {
            self.record.anchor.powered_on = true;
        }
        self.bring_on(seen, Scope::Power)?;
        STOP
    }

    /// Whether the next act starts the server and has to be armed first.
    fn is_to_start(&self, seen: &Seen, restart: bool) -> bool {
        let stays_off = self.online() == Some(false);
        match seen.power {
            PowerState::Off => self.doing(Deed::PowerOn).is_none() && !stays_off,
            PowerState::On | PowerState::Paused => {
                restart && (self.goal.restart == Restart::Reset || self.goal.never_off)
            }
            PowerState::PoweringOn | PowerState::PoweringOff | PowerState::Unknown => false,
        }
    }

    /// The restart request is carried out, or counts as such.
    pub(super) fn heed_restart(&mut self) {
        if self.goal.reboot.is_some() && self.goal.reboot != self.record.rebooted {
            self.heeded.push(Request::Restart);
        }
        self.record.rebooted.clone_from(&self.goal.reboot);
    }

    /// Whether there is a restart request that was not carried out.
    pub(super) fn is_restart_asked(&self) -> bool {
        let is_new = self.goal.reboot.is_some() && self.goal.reboot != self.record.rebooted;
        is_new || self.is_to_be_reset()
    }

    /// Whether the server is to be off for a moment, but may never be switched off.
    fn is_to_be_reset(&self) -> bool {
        let runs = self.glance().is_some_and(|seen| seen.power != PowerState::Off);
        self.goal.never_off && runs && self.held_off().is_some_and(|held| held.once)
    }

    /// Carries out a restart request, once: the request is stored as done together with the act.
    pub(super) fn restart(&mut self, seen: &Seen) -> Flow {
        match seen.power {
            PowerState::On | PowerState::Paused => {
                let manner = match self.goal.restart {
                    Restart::OffThenOn(manner) => Some(manner),
                    Restart::Reset => self.record.anchor.restarting.as_ref().map(|_| Manner::Hard),
                };
                if let Some(manner) = manner.filter(|_| !self.goal.never_off) {
                    return self.switch_off_to_restart(seen, manner);
                }
                self.record.anchor.restarting = None;
                if !self.is_restart_asked() {
                    return self.keep_power();
                }
                self.ask_brake(Ask::Disrupt)?;
                self.heed_restart();
                if self.is_to_be_reset() {
                    self.heeded.push(Request::OffOnce);
                }
                self.act(Deed::Restart, vec![Act::Restart], Scope::Power);
                self.wait(Waiting::Restarting, pace::POWER_LIMIT);
            }
            PowerState::Off if self.online() != Some(false) => {
                self.heed_restart();
                self.record.anchor.powered_on = true;
                self.record.anchor.restarting = None;
                self.act(Deed::Restart, vec![Act::PowerOn], Scope::Power);
                self.wait(Waiting::PoweringOn, pace::POWER_LIMIT);
            }
            PowerState::Off => {
                self.heed_restart();
                self.record.anchor.restarting = None;
                self.announce(Happening::RestartSkipped { released: false });
                return self.keep_power();
            }
            _ if self.record.anchor.restarting.is_some() => self.bring_off(seen, Manner::Hard, Scope::Power)?,
            shown => {
                let since = self.waiting_since(&Waiting::PowerUnsettled);
                if self.now() >= pace::later(since, pace::POWER_LIMIT) {
                    return self.fail_to_act(Finding::RestartStuck { shown });
                }
                self.wait(Waiting::PowerUnsettled, pace::POWER_LIMIT);
                self.poll(Scope::Power, since);
            }
        }
        STOP
    }
}

impl Scene<'_> {
    /// The first half of a restart. That the second half is due is stored before the power is cut.
    fn switch_off_to_restart(&mut self, seen: &Seen, manner: Manner) -> Flow {
        let before = self.record.anchor.restarting.clone();
        if self.is_restart_asked() {
            self.record.anchor.restarting.clone_from(&self.goal.reboot);
        }
        let off = self.bring_off(seen, manner, Scope::Power);
        // Nothing has begun while it waits for permission.
        if self.acts.is_empty() && self.doing(Deed::ShutDown).or(self.doing(Deed::PowerOff)).is_none() {
            self.record.anchor.restarting = before;
        }
        off?;
        STOP
    }
}

impl PowerState {
    /// Whether the server runs.
    pub(super) fn is_on(self) -> bool {
        matches!(self, Self::On | Self::Paused)
    }
}

/// Whether a power command has failed that was sent at `since`, and for the first time at `first`. If the last one was sent long ago,
/// nobody went on with it, because the host was paused or the operator was down: it is sent once more.
fn has_failed(since: Timestamp, first: Timestamp, now: Timestamp) -> bool {
    now >= pace::later(first, pace::POWER_LIMIT) && now < pace::later(since, pace::POWER_LIMIT)
}

/// When a power command has to show its effect. It was sent at `since`, and for the first time at `first`.
fn power_deadline(since: Timestamp, first: Timestamp) -> Timestamp {
    pace::later(first, pace::POWER_LIMIT).max(pace::later(since, pace::POWER_AGAIN))
}
