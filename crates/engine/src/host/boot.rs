//! Whether the ordered system has started, and what follows.

use jiff::Timestamp;

use super::{
    Ask, Deed, Disarming, Finding, Happening, Lasting, Milestone, Passage, Phase, Undo, Waiting, pace,
    recipe::{self, After, Plan, Recipe, Sign},
    step::{Act, Flow, GO_ON, STOP, Scene},
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{BootOverride, BootProgress, BootTarget, Persistence, PowerState, Scope, Seen},
};

/// Why a server cannot be booted at all, given how many virtual CD drives its BMC shows and whether it can boot from the network.
/// `None` if it can, or if that is not known.
pub fn no_way_to_boot(drives: Option<u32>, network: Option<bool>) -> Option<Failure> {
    (drives == Some(0) && network == Some(false)).then(|| Finding::NoBootMethod.into())
}

/// What a look shows about an ordered boot.
enum Evidence {
    /// The ordered system was booted, as this sign shows.
    Booted(Sign),
    /// A system has started, and the override looks unused: something else was booted, or the BMC is wrong.
    Contrary,
    /// The BMC will never show it.
    Silence,
}

/// Whether a sign of the boot was seen.
enum Shown {
    /// Yes.
    Yes,
    /// It may come.
    NotYet,
    /// This server never shows it.
    Never,
}

/// An override that is kept for every later start.
enum Kept {
    /// We set it.
    Ours(BootTarget),
    /// It may be what we set, under the BMC's own name, or somebody else's.
    Unclear(BootTarget),
}

impl Scene<'_> {
    /// Starts the server by its plan; one that runs is restarted.
    pub(super) fn start(&mut self, runs: bool) -> Flow {
        self.record.media = None;
        self.record.anchor.milestone = Milestone::Written;
        self.record.assumed_booted = false;
        self.record.disarming = None;
        // This start fulfils a restart that was requested before; a later restart would interrupt the new system.
        self.heed_restart();
        if self.goal.power_lasts == Lasting::UntilRelease {
            self.record.anchor.outdated = None;
        }
        self.advance(Phase::Provisioning, Passage::BootPrepared);
        let act = if runs { Act::Restart } else { Act::PowerOn };
        self.act(Deed::PowerOn, vec![act], Scope::Power);
        self.wait(Waiting::PoweringOn, pace::POWER_LIMIT);
        STOP
    }

    /// From here on the server may run the ordered system, so it is only powered on or watched. Its power is cut only if its
    /// owner requests it, whatever the BMC shows.
    pub(super) fn provision(&mut self) -> Flow {
        self.keep_to_claim()?;
        // Also if the BMC cannot be read.
        if let Some(sign) = self.told_by_itself() {
            return self.pass_as_booted(Passage::Booted(sign));
        }
        let is_ignored = self.has_boot_fault();
        if is_ignored && let Some(Evidence::Booted(sign)) = self.glance().and_then(|seen| self.evidence(seen)) {
            return self.pass_as_booted(Passage::Booted(sign));
        }
        if is_ignored && self.has_another_order() {
            return self.prepare_another_order();
        }
        let is_asked = is_ignored && self.is_restart_asked();
        let is_off = self.glance().is_some_and(|seen| seen.power == PowerState::Off);
        if !(is_asked || (is_ignored && is_off)) {
            self.wait_out_fault()?;
        }
        let seen = self.look_first(Scope::Power, Waiting::LookingAtBoot)?;
        if is_ignored && seen.power == PowerState::Off {
            // The next start may boot it.
            self.drop_act_fault();
        }
        if seen.power == PowerState::Off && self.doing(Deed::PowerOn).is_none() {
            self.arm_again(seen)?;
        }
        self.bring_on(seen, Scope::Power)?;
        if is_asked {
            return self.restart_ignored(seen);
        }
        self.settle();
        match self.evidence(seen) {
            Some(Evidence::Booted(sign)) => self.pass_as_booted(Passage::Booted(sign)),
            Some(Evidence::Silence) => self.assume_booted(),
            Some(Evidence::Contrary) => {
                let until = pace::later(self.waiting_since(&Waiting::BootOverrideUnused), pace::OVERRIDE_LAG);
                self.await_boot(Waiting::BootOverrideUnused, until, seen)
            }
            None => {
                let until = pace::later(self.boot_began(), pace::BOOT_LIMIT);
                let waiting = if self.is_served() { Waiting::Fetching } else { Waiting::Booting };
                self.await_boot(waiting, until, seen)
            }
        }
    }

    /// Whether it was reported that the server has not used the boot override.
    pub(super) fn has_boot_fault(&self) -> bool {
        self.record.fault.as_ref().is_some_and(|fault| fault.failure.kind == Kind::BootIgnored)
    }

    /// The owner wants a server that was not seen to boot what was ordered to be restarted.
    fn restart_ignored(&mut self, seen: &Seen) -> Flow {
        self.ask_brake(Ask::Disrupt)?;
        self.arm_again(seen)?;
        self.drop_act_fault();
        self.restart(seen)
    }

    /// Whether that is of the start of this deployment: a fetch before the server was given power came from somebody else. If that time
    /// is not known, any fetch counts.
    fn is_of_this_start(&self, fetched: Option<Timestamp>) -> bool {
        let Some(at) = fetched else { return false };
        self.is_rebuilt || self.record.started.is_none_or(|started| pace::later(at, pace::CLOCK_SKEW) >= started)
    }

    /// When the server was started, also if the operator was down meanwhile.
    fn boot_began(&self) -> Timestamp {
        self.record.started.unwrap_or(self.record.since)
    }

    /// The plan of the current order. A withdrawn order is judged by the same signs.
    fn plan(&self) -> Option<Plan> {
        let recipe = self.goal.order.as_ref()?.recipe.as_ref().ok()?;
        Some(recipe.plan(self.goal.boot_mode))
    }

    fn signs(&self) -> &'static [Sign] {
        self.plan().map_or(recipe::SIGNS, |plan| plan.signs)
    }

    /// Goes on when the next start boots from the network. A server that has fetched nothing may have used up its override all the same;
    /// one that boots something else has its override until it is used.
    fn arm_again(&mut self, seen: &Seen) -> Flow {
        match self.plan().filter(|_| self.is_served() && !self.order_was_changed()) {
            Some(plan) => self.arm(&plan, seen),
            None => GO_ON,
        }
    }

    /// Whether the server fetches from us what it boots.
    fn is_served(&self) -> bool {
        let order = self.goal.order.as_ref();
        order.and_then(|order| order.recipe.as_ref().ok()).is_some_and(Recipe::is_served)
    }

    /// What the server itself has shown of its boot, whatever its BMC tells.
    fn told_by_itself(&self) -> Option<Sign> {
        let is_told = |sign: &Sign| match sign {
            Sign::ConfigFetched => self.is_of_this_start(self.sight.fetched),
            Sign::ImageFetched => self.is_of_this_start(self.sight.handed),
            Sign::OverrideUsed | Sign::PostOver => false,
        };
        self.signs().iter().copied().find(is_told)
    }

    /// What the best sign shows that this server can give. `None` if it is too early.
    fn evidence(&self, seen: &Seen) -> Option<Evidence> {
        if !matches!(seen.power, PowerState::On | PowerState::Paused) {
            return None;
        }
        for sign in self.signs() {
            match self.look_for(*sign, seen) {
                Shown::Yes => return Some(Evidence::Booted(*sign)),
                Shown::NotYet if seen.progress == BootProgress::OsStarted && *sign == Sign::OverrideUsed => {
                    return Some(Evidence::Contrary);
                }
                Shown::NotYet => return None,
                Shown::Never => {}
            }
        }
        Some(Evidence::Silence)
    }

    fn look_for(&self, sign: Sign, seen: &Seen) -> Shown {
        match sign {
            // The server was asked before its BMC.
            Sign::ImageFetched if self.is_served() => Shown::NotYet,
            Sign::ConfigFetched | Sign::ImageFetched => Shown::Never,
            Sign::OverrideUsed => match &seen.boot {
                Some(boot) if boot.is_clear() => Shown::Yes,
                Some(boot) if boot.persistence != Persistence::Continuous => Shown::NotYet,
                // A BMC that answers "once" with "continuous", or shows no override, will never show it as used.
                _ => Shown::Never,
            },
            Sign::PostOver => match seen.progress {
                BootProgress::NotReported => Shown::Never,
                BootProgress::PostFinished | BootProgress::OsStarted
                    if self.now() >= pace::later(self.boot_began(), pace::PROGRESS_LAG) =>
                {
                    Shown::Yes
                }
                _ => Shown::NotYet,
            },
        }
    }

    /// If the BMC reports nothing about the boot, it is assumed after some time.
    fn assume_booted(&mut self) -> Flow {
        let silence = self.plan().map_or(pace::SETTLE, |plan| plan.silence);
        let until = pace::later(self.boot_began(), silence);
        if self.now() < until {
            self.wait_until(Waiting::SettlingBoot, until);
            self.poll(Scope::Power, self.boot_began());
            return STOP;
        }
        self.record.assumed_booted = true;
        self.announce(Happening::AssumedBooted);
        self.pass_as_booted(Passage::AssumedBooted)
    }

    /// The BMC may report later what was assumed.
    pub(super) fn confirm_boot(&mut self) {
        let told = |seen: &Seen| matches!(seen.progress, BootProgress::PostFinished | BootProgress::OsStarted);
        if self.record.assumed_booted && self.glance().is_some_and(told) {
            self.record.assumed_booted = false;
            self.remember(Happening::LeftPost);
        }
    }

    fn pass_as_booted(&mut self, why: Passage) -> Flow {
        self.settle();
        if self.record.fault.is_some() {
            self.recover();
        }
        self.record.anchor.milestone = Milestone::Provisioned;
        self.advance(Phase::Provisioned, why);
        self.watch_over_provisioned()
    }

    fn await_boot(&mut self, waiting: Waiting, until: Timestamp, seen: &Seen) -> Flow {
        if self.now() < until && !self.has_boot_fault() {
            let since = self.waiting_since(&waiting);
            self.wait_until(waiting, until);
            self.poll(Scope::Power, since);
            return STOP;
        }
        if self.has_another_order() {
            return self.prepare_another_order();
        }
        self.fail_to_act(if self.is_served() {
            Finding::NotFetched
        } else {
            Finding::BootIgnored { progress: seen.progress }
        })
    }

    /// Whether another order may be carried out now.
    fn has_another_order(&self) -> bool {
        let is_open = self.goal.order.as_ref().is_some_and(|order| order.closed_gate().is_none());
        is_open && self.order_was_changed()
    }

    /// Whether the order differs from the one that is being carried out.
    fn order_was_changed(&self) -> bool {
        let deployment = self.record.anchor.deployment.as_deref();
        self.goal.order.as_ref().is_some_and(|order| Some(order.deployment.as_str()) != deployment)
    }

    /// A new order is a new deployment: its owner gave up the one that was not seen to boot.
    fn prepare_another_order(&mut self) -> Flow {
        self.record.anchor.milestone = Milestone::Armed;
        self.record.doing = None;
        self.advance(Phase::Preparing, Passage::AnotherOrder);
        self.prepare()
    }

    /// The plan that arms the later starts caused by the operator, if there is one.
    pub(super) fn plan_of_later_starts(&self) -> Option<Plan> {
        let anchor = &self.record.anchor;
        let is_current = self.record.phase == Phase::Provisioned && !anchor.adopted && !self.order_was_changed();
        self.plan().filter(|plan| plan.after == After::SameAgain && is_current)
    }

    /// Who must be ready before such a start, if somebody is not: the server would boot something else.
    pub(super) fn closed_gate_of_later_starts(&self) -> Option<String> {
        self.plan_of_later_starts()?;
        self.goal.order.as_ref()?.closed_gate().map(|gate| gate.keeper.clone())
    }

    /// Clears an override that would boot the same again at every later start. Done once.
    pub(super) fn take_back_override(&mut self) -> Flow {
        let (tries, is_over) = self.record.disarming.as_ref().map_or((0, false), |it| (it.tries, it.over));
        let is_same_again = self.plan().is_some_and(|plan| plan.after == After::SameAgain);
        let is_wanted = is_same_again && !self.order_was_changed();
        if (is_over && tries > 0) || is_wanted || self.record.anchor.adopted {
            return GO_ON;
        }
        let Some(seen) = self.glance() else { return GO_ON };
        match self.kept_override(seen) {
            Some(Kept::Ours(target)) => return self.disarm_boot(&target),
            Some(Kept::Unclear(target)) if !is_over => self.leave_unclear_override(target),
            None if tries > 0 => self.end_disarming(),
            Some(Kept::Unclear(_)) | None => {}
        }
        GO_ON
    }

    fn end_disarming(&mut self) {
        if let Some(disarming) = &mut self.record.disarming {
            disarming.over = true;
            self.remember(Happening::OverrideLetGo);
        }
    }

    /// The override that the BMC keeps and that may boot the same again at every later start.
    fn kept_override(&self, seen: &Seen) -> Option<Kept> {
        let shown =
            seen.boot.as_ref().filter(|boot| boot.persistence == Persistence::Continuous && !boot.is_clear())?;
        let armed = self.record.anchor.undo().into_iter().filter_map(|undo| match undo {
            Undo::Boot(target) => Some(target),
            Undo::Media => None,
        });
        let armed: Vec<_> = armed.collect();
        let target = shown.target.clone();
        if armed.contains(&target) {
            return Some(Kept::Ours(target));
        }
        armed.iter().any(|ours| recipe::may_mean(&target, ours)).then_some(Kept::Unclear(target))
    }

    /// An override that somebody else may have set is left as it is.
    fn leave_unclear_override(&mut self, target: BootTarget) {
        let tries = self.record.disarming.as_ref().map_or(0, |disarming| disarming.tries);
        self.record.disarming = Some(Disarming { tries, last: self.now(), over: true });
        self.tell(Happening::OverrideUnclear { target });
    }

    fn disarm_boot(&mut self, kept: &BootTarget) -> Flow {
        let tries = self.record.disarming.as_ref().map_or(0, |disarming| disarming.tries);
        if let Some(last) = self.record.disarming.as_ref().map(|disarming| disarming.last) {
            let until = pace::later(last, pace::back_off(Class::Rejected, tries, self.sight.spread));
            if self.now() < until {
                self.wait_until(Waiting::DisarmingBoot, until);
                return GO_ON;
            }
        }
        if tries >= pace::DISARM_TRIES {
            self.give_up_disarming(kept);
            return GO_ON;
        }
        if self.record.fault.is_some() {
            return GO_ON;
        }
        self.look_first(Scope::Power, Waiting::LookingAtBoot)?;
        // If the override cannot be set to the disk, it can perhaps be cleared. A first try may have ended with its process.
        let act = if tries < 2 { Act::SetBoot(BootOverride::disk()) } else { Act::ClearBoot };
        let now = self.now();
        self.record.disarming = Some(Disarming { tries: tries.saturating_add(1), last: now, over: false });
        self.act(Deed::DisarmBoot, vec![act], Scope::Boot);
        let until = pace::later(now, pace::back_off(Class::Rejected, 1, self.sight.spread));
        self.wait_until(Waiting::DisarmingBoot, until);
        STOP
    }

    fn give_up_disarming(&mut self, kept: &BootTarget) {
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let refusal = outcome.filter(|act| act.number == self.record.acted).and_then(|act| act.result.clone().err());
        if let Some(disarming) = &mut self.record.disarming {
            disarming.over = true;
        }
        self.tell(Happening::OverrideKept { target: kept.clone(), refusal });
    }
}
