//! Bringing the power where it should be, and knowing when it will not go.

use jiff::Timestamp;

use super::{
    Ask, Author, Deed, Milestone, NoteKind, Origin, Phase, Since, pace,
    step::{Act, FLEET_BRAKE, Scene},
};
use crate::{
    failure::{Failure, Kind},
    server::{PowerState, Scope, Seen},
};

/// How to take the power away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Ask the operating system first, cut the power when it does not listen.
    Soft,
    /// Cut it.
    Hard,
}

/// Whether a free server runs although nobody asked for it, so that somebody whom we do not know may use it: a machine gets it only
/// where that is allowed. `online` is what is asked of its power, unless that was asked before its last release.
pub fn runs_unasked(power: PowerState, online: Option<bool>, claimable_while_running: bool) -> bool {
    is_running(power) && online.is_none() && !claimable_while_running
}

/// Whether a free server in this state may be in use.
pub fn is_running(power: PowerState) -> bool {
    matches!(power, PowerState::On | PowerState::PoweringOn | PowerState::Paused)
}

impl Scene<'_> {
    /// Whether a machine's claim found a server that runs although nobody asked for it. If so, says so and does nothing. A claim by
    /// hand names its host, and the owner of an adopted host knows that it runs: both mean it. Once something was done for the claim,
    /// whatever runs is of our doing.
    pub(super) fn is_not_ours_to_stop(&mut self, seen: &Seen) -> bool {
        let anchor = &self.record.anchor;
        let is_meant = self.goal.author == Author::Hand || anchor.adopted || anchor.milestone != Milestone::None;
        // What the claim itself has outdated was asked until then.
        let is_stale = anchor.outdated.as_ref().is_some_and(|outdated| outdated.since == Since::Release);
        let online = self.goal.online.filter(|_| !is_stale);
        if is_meant || !runs_unasked(seen.power, online, self.goal.claimable_while_running) {
            if self.record.fault.as_ref().is_some_and(|fault| fault.failure.kind == Kind::ServerRunning) {
                self.recovered();
            }
            return false;
        }
        let message = "The server runs although nobody asked for it (spec.online is not set), so somebody may use it. No machine takes it, and nothing was done to it. Set spec.online: false to have it switched off, or spec.claimableWhileRunning: true to have it taken as it is.";
        let at = self.now();
        self.fail(Origin::Act, Failure::new(Kind::ServerRunning, message), at);
        self.held_back();
        true
    }

    /// Whether the server is off; if not, does what brings it there. `scope` is how deep to look afterwards.
    pub(super) fn bring_off(&mut self, seen: &Seen, manner: Manner, scope: Scope) -> bool {
        if seen.power == PowerState::Off {
            return !self.may_be_starting(scope);
        }
        if self.in_transit(seen, scope, "PoweringOff", "Waiting for the server to power off.") {
            return false;
        }
        let now = self.now();
        let asked = self.doing(Deed::ShutDown).map(|doing| doing.since);
        let cut = self.doing(Deed::PowerOff).map(|doing| (doing.since, doing.first));
        match (asked, cut) {
            (Some(since), _) if now < pace::later(since, pace::SOFT_LIMIT) => {
                self.wait_until(
                    "ShuttingDown",
                    "Waiting for the operating system to shut down.",
                    pace::later(since, pace::SOFT_LIMIT),
                );
                self.poll(scope, since);
            }
            (_, Some((since, first))) if now < pace::later(since, pace::POWER_AGAIN) => {
                self.wait_until("PoweringOff", "Waiting for the server to power off.", power_deadline(since, first));
                self.poll(scope, since);
            }
            (_, Some((_, first))) if now >= pace::later(first, pace::POWER_LIMIT) => {
                self.power_is_stuck("off", seen.power);
            }
            _ if !self.permitted(Ask::Disrupt) => {}
            (None, None) if manner == Manner::Soft => {
                self.act(Deed::ShutDown, vec![Act::ShutDown], scope);
                self.wait("ShuttingDown", "Waiting for the operating system to shut down.", pace::SOFT_LIMIT);
            }
            _ => {
                self.act(Deed::PowerOff, vec![Act::PowerOff], scope);
                self.wait("PoweringOff", "Waiting for the server to power off.", pace::POWER_LIMIT);
            }
        }
        false
    }

    /// Whether an "off" cannot be believed yet, because we gave the server power a moment ago; if so, waits.
    fn may_be_starting(&mut self, scope: Scope) -> bool {
        let Some(started) = self.record.started else { return false };
        let until = pace::later(started, pace::POWER_AGAIN);
        if self.now() >= until {
            return false;
        }
        let message = "The server was given power a moment ago; waiting for its BMC to be sure about it.";
        self.wait_until("PowerUnsettled", message, until);
        self.poll(scope, started);
        true
    }

    /// Whether the server is on; if not, does what brings it there.
    pub(super) fn bring_on(&mut self, seen: &Seen, scope: Scope) -> bool {
        if matches!(seen.power, PowerState::On | PowerState::Paused) {
            return true;
        }
        if self.in_transit(seen, scope, "PoweringOn", "Waiting for the server to power on.") {
            return false;
        }
        let now = self.now();
        match self.doing(Deed::PowerOn).map(|doing| (doing.since, doing.first)) {
            Some((since, first)) if now < pace::later(since, pace::POWER_AGAIN) => {
                self.wait_until("PoweringOn", "Waiting for the server to power on.", power_deadline(since, first));
                self.poll(scope, since);
            }
            Some((_, first)) if now >= pace::later(first, pace::POWER_LIMIT) => self.power_is_stuck("on", seen.power),
            _ => {
                self.act(Deed::PowerOn, vec![Act::PowerOn], scope);
                self.wait("PoweringOn", "Waiting for the server to power on.", pace::POWER_LIMIT);
            }
        }
        false
    }

    /// A server on its way is given a minute to arrive before it is asked again.
    fn in_transit(&mut self, seen: &Seen, scope: Scope, reason: &'static str, message: &str) -> bool {
        if !matches!(seen.power, PowerState::PoweringOn | PowerState::PoweringOff | PowerState::Unknown) {
            return false;
        }
        let since = self.waiting_since(reason);
        // Who waits for the brake has waited for this before.
        if self.now() >= pace::later(since, pace::POWER_AGAIN) || self.waited_for(FLEET_BRAKE) {
            return false;
        }
        self.wait(reason, message, pace::POWER_LIMIT);
        self.poll(scope, since);
        true
    }

    fn power_is_stuck(&mut self, wanted: &str, power: PowerState) {
        let message = format!(
            "The BMC took the order to power {wanted}, but after {} minutes it still reports {}. Check the server and its BMC.",
            pace::POWER_LIMIT.as_mins(),
            power.as_str()
        );
        let at = self.now();
        self.fail(Origin::Act, Failure::new(Kind::PowerStuck, message), at);
        self.held_back();
    }

    /// Whether the server is to have power. What was asked before the host was claimed or released does not count.
    fn online(&self) -> Option<bool> {
        self.goal.online.filter(|_| self.record.anchor.outdated.is_none())
    }

    /// From now on, what is asked of the power has to be asked anew.
    pub(super) fn outdate_power_request(&mut self, since: Since) {
        self.record.anchor.outdate(self.goal.power_request(), since);
    }

    /// A server that was just switched off for good is not switched on again by a restart that was asked for before.
    pub(super) fn skip_restart(&mut self) {
        if self.goal.reboot.is_some() && self.goal.reboot != self.record.rebooted {
            self.record.rebooted.clone_from(&self.goal.reboot);
            self.event(
                true,
                "RestartSkipped",
                "The host was released and its server is off, so the restart that was requested before (beskar7.io/reboot) was not carried out.",
            );
        }
    }

    /// Says why the power is not as the owner may think that it should be.
    pub(super) fn tell_outdated_request(&mut self) {
        let Some(outdated) = &self.record.anchor.outdated else { return };
        let is_on = matches!(self.record.power, PowerState::On | PowerState::Paused);
        let is_off = self.record.power == PowerState::Off;
        let online = outdated.request.online;
        if self.record.phase == Phase::Deleting || !(if online { is_off } else { is_on }) {
            return;
        }
        let (before, instead) = match outdated.since {
            Since::Claim => ("claimed", "the power is left to whoever uses the host"),
            Since::Release => ("released", "the server stays off until somebody asks for power again"),
        };
        let verb = if online { "on" } else { "off" };
        let message = format!(
            "spec.online: {online} was set before the host was {before} and is not applied: {instead}. To apply it now, run `beskar7 power {verb}` for this host, or give it the annotation beskar7.io/power-request with a new value; `beskar7 power auto` removes spec.online."
        );
        self.note(NoteKind::PowerRequestOutdated, message);
    }

    /// Follows the owner's power policy and restart requests. Answers whether there is nothing left to do.
    pub(super) fn keep_power(&mut self) -> bool {
        let Some(glance) = self.glance() else { return true };
        let restart = self.goal.reboot.is_some() && self.goal.reboot != self.record.rebooted;
        let online = self.online();
        let wrong = match online {
            Some(true) => !matches!(glance.power, PowerState::On | PowerState::Paused),
            Some(false) => glance.power != PowerState::Off,
            None => false,
        };
        if !restart && !wrong {
            self.settle();
            if online == Some(false) {
                self.record.anchor.powered_on = false;
            }
            return true;
        }
        if self.held_back() {
            return false;
        }
        let plan = self.plan_of_later_starts().filter(|_| restart || online == Some(true));
        let scope = plan.as_ref().map_or(Scope::Power, |plan| plan.look);
        let Some(seen) = self.seen(scope) else {
            self.look(scope, "LookingAtPower", "Looking at the server before changing its power.");
            return false;
        };
        if let Some(plan) = plan
            && self.is_to_start(seen, restart)
            && !self.arm(&plan, seen)
        {
            return false;
        }
        if restart {
            return self.restart(seen);
        }
        if online == Some(true) {
            if seen.power == PowerState::Off {
                self.record.anchor.powered_on = true;
            }
            self.bring_on(seen, Scope::Power);
        } else {
            self.bring_off(seen, Manner::Soft, Scope::Power);
        }
        false
    }

    /// Whether a start is about to be caused that has to be armed first.
    fn is_to_start(&self, seen: &Seen, restart: bool) -> bool {
        let stays_off = self.online() == Some(false);
        match seen.power {
            PowerState::Off => self.doing(Deed::PowerOn).is_none() && !stays_off,
            PowerState::On | PowerState::Paused => restart,
            PowerState::PoweringOn | PowerState::PoweringOff | PowerState::Unknown => false,
        }
    }

    /// Carries out a restart request, once: the request is stored as done together with the act. Answers whether there
    /// is nothing to do for it.
    pub(super) fn restart(&mut self, seen: &Seen) -> bool {
        match seen.power {
            PowerState::On | PowerState::Paused => {
                if !self.permitted(Ask::Disrupt) {
                    return false;
                }
                self.record.rebooted.clone_from(&self.goal.reboot);
                self.act(Deed::Restart, vec![Act::Restart], Scope::Power);
                self.wait("Restarting", "Restarting the server, as requested.", pace::POWER_LIMIT);
            }
            PowerState::Off if self.online() != Some(false) => {
                self.record.rebooted.clone_from(&self.goal.reboot);
                self.record.anchor.powered_on = true;
                self.act(Deed::Restart, vec![Act::PowerOn], Scope::Power);
                self.wait("PoweringOn", "Powering the server on, as a restart was requested.", pace::POWER_LIMIT);
            }
            PowerState::Off => {
                self.record.rebooted.clone_from(&self.goal.reboot);
                self.event(
                    true,
                    "RestartSkipped",
                    "The server is off and should stay off (online: false), so it was not restarted.",
                );
                return self.keep_power();
            }
            power => {
                let since = self.waiting_since("PowerUnsettled");
                if self.now() >= pace::later(since, pace::POWER_LIMIT) {
                    let message =
                        format!("A restart was requested, but the BMC reports the power as {}.", power.as_str());
                    let at = self.now();
                    self.fail(Origin::Act, Failure::new(Kind::PowerStuck, message), at);
                    self.held_back();
                    return false;
                }
                self.wait("PowerUnsettled", "Waiting for the power to settle before the restart.", pace::POWER_LIMIT);
                self.poll(Scope::Power, since);
            }
        }
        false
    }
}

/// When an order to change the power that was given at `since`, and for the first time at `first`, is judged.
fn power_deadline(since: Timestamp, first: Timestamp) -> Timestamp {
    pace::later(first, pace::POWER_LIMIT).max(pace::later(since, pace::POWER_AGAIN))
}
