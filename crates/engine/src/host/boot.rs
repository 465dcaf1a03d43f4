//! Whether the system that was ordered has started, and what is done if it has or has not.

use jiff::Timestamp;

use super::{
    Ask, Deed, Disarming, Milestone, Origin, Phase, Undo, pace,
    recipe::{self, After, Plan, Sign},
    step::{Act, Scene},
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{BootOverride, BootProgress, BootTarget, Persistence, PowerState, Scope, Seen},
};

/// What is said of a host whose BMC tells nothing of the boot.
pub const ASSUMED_BOOTED: &str =
    "Boot started, not observed: the BMC reports no boot progress, so what was ordered is assumed to have booted.";

/// Why a server cannot boot what anybody orders: its BMC shows so many virtual CD drives, and tells whether it can boot from the
/// network. `None` if it can, or if nobody knows.
pub fn no_way_to_boot(drives: Option<u32>, network: Option<bool>) -> Option<Failure> {
    let message = "The BMC shows neither a virtual CD drive nor a boot from the network, so the server cannot be booted for anybody, and nothing is done to it. Enable virtual media in the BMC (it may need a licence) and annotate the host with beskar7.io/inspect, or use another host.";
    (drives == Some(0) && network == Some(false)).then(|| Failure::new(Kind::NoBootMethod, message))
}

/// What a look says about a boot that was ordered.
enum Evidence {
    /// The image was booted, as far as this BMC can tell.
    Booted(&'static str),
    /// A system has started, and the override looks unused: something else was booted, or the BMC is wrong.
    Contrary,
    /// This BMC will never say.
    Silence,
}

/// Whether a sign is there.
enum Shown {
    /// Yes; what it says.
    Yes(&'static str),
    /// It may come.
    NotYet,
    /// This server does not give it.
    Never,
}

/// An override that is kept for every later start.
enum Kept {
    /// We set it.
    Ours(BootTarget),
    /// It may be what we set, in the BMC's own word, or somebody else's.
    Unclear(BootTarget),
}

impl Scene<'_> {
    pub(super) fn start(&mut self) {
        self.record.media = None;
        self.record.anchor.milestone = Milestone::Written;
        self.record.assumed_booted = false;
        self.record.disarming = None;
        // A restart that was asked for before this start has come with it; later it would tear the new system down.
        self.record.rebooted.clone_from(&self.goal.reboot);
        self.advance(Phase::Provisioning, "The boot is prepared; powering on.");
        self.act(Deed::PowerOn, vec![Act::PowerOn], Scope::Power);
        self.wait("PoweringOn", "Waiting for the server to power on.", pace::POWER_LIMIT);
    }

    /// From here on the server may run the ordered system, so it is only powered on or watched. Whatever its BMC shows or
    /// does not show, its power is cut for a request of its owner alone.
    pub(super) fn provision(&mut self) {
        if !self.claim_holds() {
            return;
        }
        // Also of a server that its BMC does not show.
        if let Some(sign) = self.told_by_itself() {
            return self.booted(sign);
        }
        let is_ignored = self.has_boot_fault();
        if is_ignored && let Some(Evidence::Booted(sign)) = self.glance().and_then(|seen| self.evidence(seen)) {
            return self.booted(sign);
        }
        if is_ignored && self.has_another_order() {
            return self.prepare_another_order();
        }
        let is_asked = is_ignored && self.goal.reboot.is_some() && self.goal.reboot != self.record.rebooted;
        let is_off = self.glance().is_some_and(|seen| seen.power == PowerState::Off);
        let may_act = is_asked || (is_ignored && is_off);
        if !may_act && self.held_back() {
            return;
        }
        let Some(seen) = self.seen(Scope::Power) else {
            return self.look(Scope::Power, "LookingAtBoot", "Looking whether the server has booted.");
        };
        if is_ignored && seen.power == PowerState::Off {
            // It gets another start, and with it another chance.
            self.drop_act_fault();
        }
        if !self.bring_on(seen, Scope::Power) {
            return;
        }
        if is_asked {
            return self.restart_ignored(seen);
        }
        self.settle();
        match self.evidence(seen) {
            Some(Evidence::Booted(sign)) => self.booted(sign),
            Some(Evidence::Silence) => self.assume_booted(),
            Some(Evidence::Contrary) => {
                let message = "An operating system has started, but the BMC still shows the boot override as unused.";
                let until = pace::later(self.waiting_since("BootOverrideUnused"), pace::OVERRIDE_LAG);
                self.await_boot("BootOverrideUnused", message, until, seen);
            }
            None => {
                let until = pace::later(self.boot_began(), pace::BOOT_LIMIT);
                self.await_boot("Booting", "Waiting for the server to use the boot override.", until, seen);
            }
        }
    }

    /// Whether it was told that the server has not used the boot override.
    fn has_boot_fault(&self) -> bool {
        self.record.fault.as_ref().is_some_and(|fault| fault.failure.kind == Kind::BootIgnored)
    }

    /// The owner wants a server that has not used its boot override to be restarted: the override is still armed.
    fn restart_ignored(&mut self, seen: &Seen) {
        if self.permitted(Ask::Disrupt) {
            self.drop_act_fault();
            self.restart(seen);
        }
    }

    /// Whether the system that was started for this deployment has fetched its configuration: whoever fetched it before the server
    /// was given power was somebody else. Where it is forgotten when that was, any fetch counts.
    fn has_fetched(&self) -> bool {
        let Some(at) = self.sight.fetched else { return false };
        self.is_rebuilt || self.record.started.is_none_or(|started| pace::later(at, pace::CLOCK_SKEW) >= started)
    }

    /// When the server was started, also if we were away meanwhile.
    fn boot_began(&self) -> Timestamp {
        self.record.started.unwrap_or(self.record.since)
    }

    /// The plan of the current order. One that was withdrawn was booted by its signs all the same.
    fn plan(&self) -> Option<Plan> {
        let recipe = self.goal.order.as_ref()?.recipe.as_ref().ok()?;
        Some(recipe.plan(self.goal.boot_mode))
    }

    fn signs(&self) -> &'static [Sign] {
        self.plan().map_or(recipe::SIGNS, |plan| plan.signs)
    }

    /// What the started system itself has told.
    fn told_by_itself(&self) -> Option<&'static str> {
        let counts = self.signs().contains(&Sign::ConfigFetched) && self.has_fetched();
        counts.then_some("The system that was booted has fetched its configuration.")
    }

    /// What the best sign says that this server will ever give. `None` as long as it is too early to say.
    fn evidence(&self, seen: &Seen) -> Option<Evidence> {
        if !matches!(seen.power, PowerState::On | PowerState::Paused) {
            return None;
        }
        for sign in self.signs() {
            match self.look_for(*sign, seen) {
                Shown::Yes(message) => return Some(Evidence::Booted(message)),
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
            Sign::ConfigFetched => self.told_by_itself().map_or(Shown::Never, Shown::Yes),
            Sign::OverrideUsed => match &seen.boot {
                Some(boot) if boot.is_clear() => Shown::Yes("The server is on and has used the boot override."),
                Some(boot) if boot.persistence != Persistence::Continuous => Shown::NotYet,
                // A BMC that answers "once" with "continuous", or shows no override, will never show it as used.
                _ => Shown::Never,
            },
            Sign::PostOver => match seen.progress {
                BootProgress::Untold => Shown::Never,
                BootProgress::PostFinished | BootProgress::OsStarted
                    if self.now() >= pace::later(self.boot_began(), pace::PROGRESS_LAG) =>
                {
                    Shown::Yes("The server is on and has left POST, as its BMC tells.")
                }
                _ => Shown::NotYet,
            },
        }
    }

    /// Where the BMC tells nothing of the boot, time has to do.
    fn assume_booted(&mut self) {
        let silence = self.plan().map_or(pace::SETTLE, |plan| plan.silence);
        let until = pace::later(self.boot_began(), silence);
        if self.now() < until {
            let message = "Giving the server time to boot: its BMC tells neither how far it has come nor whether the boot override was used.";
            self.wait_until("SettlingBoot", message, until);
            return self.poll(Scope::Power, self.boot_began());
        }
        self.record.assumed_booted = true;
        self.event(false, "AssumedBooted", ASSUMED_BOOTED);
        self.booted(ASSUMED_BOOTED);
    }

    /// What was assumed may be told later.
    pub(super) fn confirm_boot(&mut self) {
        let told = |seen: &Seen| matches!(seen.progress, BootProgress::PostFinished | BootProgress::OsStarted);
        if self.record.assumed_booted && self.glance().is_some_and(told) {
            self.record.assumed_booted = false;
            self.record.note(self.now(), "The BMC tells now that the server has left POST.");
        }
    }

    fn booted(&mut self, sign: &str) {
        self.settle();
        if self.record.fault.is_some() {
            self.recovered();
        }
        self.record.anchor.milestone = Milestone::Provisioned;
        self.advance(Phase::Provisioned, sign);
        self.provisioned();
    }

    fn await_boot(&mut self, reason: &'static str, message: &str, until: Timestamp, seen: &Seen) {
        if self.now() < until && !self.has_boot_fault() {
            self.wait_until(reason, message, until);
            return self.poll(Scope::Power, self.waiting_since(reason));
        }
        if self.has_another_order() {
            return self.prepare_another_order();
        }
        let at = self.now();
        self.fail(Origin::Act, Failure::new(Kind::BootIgnored, not_booted(seen)), at);
        self.held_back();
    }

    /// Whether another order may be carried out now.
    fn has_another_order(&self) -> bool {
        let is_open = self.goal.order.as_ref().is_some_and(|order| order.closed_gate().is_none());
        is_open && self.order_was_changed()
    }

    /// Whether another order is given than the one that we carry out.
    fn order_was_changed(&self) -> bool {
        let deployment = self.record.anchor.deployment.as_deref();
        self.goal.order.as_ref().is_some_and(|order| Some(order.deployment.as_str()) != deployment)
    }

    /// Another order is another deployment: its owner gave up the one that was not seen to boot.
    fn prepare_another_order(&mut self) {
        let message =
            "The server was not seen to boot what was ordered, and the order was changed: preparing the new one.";
        self.record.anchor.milestone = Milestone::Armed;
        self.record.doing = None;
        self.advance(Phase::Preparing, message);
        self.prepare();
    }

    /// The plan by which a start is armed that we cause later on, if it is.
    pub(super) fn plan_of_later_starts(&self) -> Option<Plan> {
        let anchor = &self.record.anchor;
        let is_current = self.record.phase == Phase::Provisioned && !anchor.adopted && !self.order_was_changed();
        let is_open = self.goal.order.as_ref().is_some_and(|order| order.closed_gate().is_none());
        self.plan().filter(|plan| plan.after == After::SameAgain && is_current && is_open)
    }

    /// Takes back an override that would boot the same again at every later start, once. Answers whether it is busy with it.
    pub(super) fn take_back_override(&mut self) -> bool {
        let (tries, is_over) = self.record.disarming.as_ref().map_or((0, false), |it| (it.tries, it.over));
        let is_same_again = self.plan().is_some_and(|plan| plan.after == After::SameAgain);
        let is_wanted = is_same_again && !self.order_was_changed();
        if (is_over && tries > 0) || is_wanted || self.record.anchor.adopted {
            return false;
        }
        let Some(seen) = self.glance() else { return false };
        match self.kept_override(seen) {
            Some(Kept::Ours(target)) => return self.disarm_boot(&target),
            Some(Kept::Unclear(target)) if !is_over => self.tell_of_unclear_override(&target),
            Some(Kept::Unclear(_)) => {}
            None if tries > 0 => self.override_is_gone(),
            None => {}
        }
        false
    }

    fn override_is_gone(&mut self) {
        if let Some(disarming) = &mut self.record.disarming {
            disarming.over = true;
            self.record.note(self.now(), "The BMC lets go of the boot override: the next start boots the disk.");
        }
    }

    /// What the BMC keeps that may boot the same again at every later start.
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

    /// Nothing is done about an override that may be somebody's wish.
    fn tell_of_unclear_override(&mut self, kept: &BootTarget) {
        let message = format!(
            "The BMC shows the boot override {}, which it keeps for every start and which Beskar7 did not set in these words. It may be how this BMC shows the boot that was ordered, or somebody else's setting, so it is left as it is. If the next restart should boot the disk, clear the override in the BMC.",
            kept.as_str()
        );
        let tries = self.record.disarming.as_ref().map_or(0, |disarming| disarming.tries);
        self.record.disarming = Some(Disarming { tries, last: self.now(), over: true });
        self.event(true, "BootOverrideUnclear", &message);
        self.record.note(self.now(), message);
    }

    fn disarm_boot(&mut self, kept: &BootTarget) -> bool {
        const REASON: &str = "DisarmingBoot";
        let message = "The BMC keeps the boot override and would boot the same again; turning it to the disk.";
        let tries = self.record.disarming.as_ref().map_or(0, |disarming| disarming.tries);
        if let Some(last) = self.record.disarming.as_ref().map(|disarming| disarming.last) {
            let until = pace::later(last, pace::back_off(Class::Rejected, tries, self.sight.spread));
            if self.now() < until {
                self.wait_until(REASON, message, until);
                return false;
            }
        }
        if tries >= pace::DISARM_TRIES {
            self.give_up_disarming(kept);
            return false;
        }
        if self.record.fault.is_some() {
            return false;
        }
        if self.seen(Scope::Power).is_none() {
            self.look(Scope::Power, "LookingAtBoot", "Looking at the boot override before turning it to the disk.");
            return true;
        }
        // Where the disk cannot be named, the override can perhaps be ended. A first try may have died with its process.
        let act = if tries < 2 { Act::SetBoot(BootOverride::disk()) } else { Act::ClearBoot };
        let now = self.now();
        self.record.disarming = Some(Disarming { tries: tries.saturating_add(1), last: now, over: false });
        self.act(Deed::DisarmBoot, vec![act], Scope::Boot);
        self.wait_until(REASON, message, pace::later(now, pace::back_off(Class::Rejected, 1, self.sight.spread)));
        true
    }

    fn give_up_disarming(&mut self, kept: &BootTarget) {
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let refusal = outcome.filter(|act| act.number == self.record.acted).and_then(|act| act.result.as_ref().err());
        let said = refusal.map(|refusal| format!(" (it says: {})", refusal.message)).unwrap_or_default();
        let message = format!(
            "The BMC keeps the boot override {} and did not take Hdd instead in {} tries{said}. The next restart of the server would boot from there again: set the override by hand.",
            kept.as_str(),
            pace::DISARM_TRIES
        );
        if let Some(disarming) = &mut self.record.disarming {
            disarming.over = true;
        }
        self.event(true, "BootOverrideKept", &message);
        self.record.note(self.now(), message);
    }
}

/// What is told of a server that was not seen to boot the image.
fn not_booted(seen: &Seen) -> String {
    let shown = match seen.progress {
        BootProgress::OsStarted => {
            "The BMC reports that an operating system runs, but still shows the boot override as unused".to_owned()
        }
        BootProgress::PostFinished => {
            "The BMC reports that POST is over, but still shows the boot override as unused".to_owned()
        }
        BootProgress::InPost => format!("The server is still in POST {} minutes after power-on", minutes()),
        BootProgress::NotStarted | BootProgress::Untold => {
            format!("The BMC still shows the boot override as unused {} minutes after power-on", minutes())
        }
    };
    format!(
        "{shown}, so it is not known whether the server booted what was ordered. Nothing is done to a server that may run it. Check its console. If it runs, clear the boot override in the BMC; if not, check its boot settings and annotate the host with beskar7.io/reboot to restart it, or remove the claim."
    )
}

fn minutes() -> i64 {
    pace::BOOT_LIMIT.as_mins()
}
