//! Whether the system that was ordered has started, and what is done if it has or has not.

use jiff::Timestamp;

use super::{
    Deed, Disarming, Milestone, Origin, Phase, pace,
    step::{Act, Scene},
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{BootOverride, BootProgress, BootTarget, Persistence, PowerState, Scope, Seen},
};

/// What is said of a host whose BMC tells nothing of the boot.
pub const ASSUMED_BOOTED: &str = "The server is on and has had time to boot. Its BMC tells neither how far it has come nor whether the boot override was used, so it is taken to run the image.";

/// What a look says about a boot that was ordered.
enum Evidence {
    /// The image was booted, as far as this BMC can tell.
    Booted(&'static str),
    /// Something else was booted, by the look of it.
    Contrary,
    /// This BMC will never say.
    Silence,
}

impl Scene<'_> {
    pub(super) fn start(&mut self) {
        self.record.media = None;
        self.record.anchor.milestone = Milestone::Written;
        self.record.boots = self.record.boots.saturating_add(1);
        self.record.assumed_booted = false;
        self.record.disarming = None;
        // A restart that was asked for before this start has come with it; later it would tear the new system down.
        self.record.rebooted.clone_from(&self.goal.reboot);
        self.advance(Phase::Provisioning, "The image is in the drive; powering on.");
        self.act(Deed::PowerOn, vec![Act::PowerOn], Scope::Power);
        self.wait("PoweringOn", "Waiting for the server to power on.", pace::POWER_LIMIT);
    }

    pub(super) fn provision(&mut self) {
        if !self.claim_holds() {
            return;
        }
        if self.sight.fetched {
            return self.booted("The system that was booted has fetched its configuration.");
        }
        // Once it was started anew, it has not yet ignored that.
        let ignored = self.record.fault.as_ref().is_some_and(|fault| {
            fault.failure.kind == Kind::BootIgnored && self.record.started.is_none_or(|started| started <= fault.last)
        });
        if ignored && let Some(Evidence::Booted(sign)) = self.glance().and_then(|seen| self.evidence(seen)) {
            return self.booted(sign);
        }
        if ignored && self.order_was_changed() {
            return self
                .prepare_again("The server had ignored the boot override, and the order was changed: trying that.");
        }
        if self.held_back() {
            return;
        }
        let Some(seen) = self.seen(Scope::Power) else {
            return self.look(Scope::Power, "LookingAtBoot", "Looking whether the server has booted the image.");
        };
        if ignored {
            return self.prepare_again("Preparing once more, after the server had ignored the boot override.");
        }
        if !self.bring_on(seen, Scope::Power) {
            return;
        }
        self.settle();
        match self.evidence(seen) {
            Some(Evidence::Booted(sign)) => self.booted(sign),
            Some(Evidence::Contrary) => {
                let message = "A system has started, but the boot override still looks unused.";
                let until = pace::later(self.waiting_since("BootOverrideUnused"), pace::OVERRIDE_LAG);
                self.await_boot("BootOverrideUnused", message, until);
            }
            Some(Evidence::Silence) => self.assume_booted(),
            None => {
                let until = pace::later(self.boot_began(), pace::BOOT_LIMIT);
                self.await_boot("Booting", "Waiting for the server to use the boot override.", until);
            }
        }
    }

    /// When the server was started, also if we were away meanwhile.
    fn boot_began(&self) -> Timestamp {
        self.record.started.unwrap_or(self.record.since)
    }

    /// `None` as long as it is too early to say.
    fn evidence(&self, seen: &Seen) -> Option<Evidence> {
        if !matches!(seen.power, PowerState::On | PowerState::Paused) {
            return None;
        }
        // A BMC that answers "once" with "continuous", or shows no override, will never show it as used.
        let cannot_be_used_up = seen.boot.as_ref().is_none_or(|boot| boot.persistence == Persistence::Continuous);
        match (&seen.boot, seen.progress) {
            (Some(boot), _) if boot.is_clear() => {
                Some(Evidence::Booted("The server is on and has used the boot override."))
            }
            (_, BootProgress::Untold) if cannot_be_used_up => Some(Evidence::Silence),
            (_, BootProgress::PostFinished | BootProgress::OsStarted) if cannot_be_used_up => {
                let is_of_this_boot = self.now() >= pace::later(self.boot_began(), pace::PROGRESS_LAG);
                is_of_this_boot.then_some(Evidence::Booted("The server is on and has left POST, as its BMC tells."))
            }
            (_, BootProgress::OsStarted) if !cannot_be_used_up => Some(Evidence::Contrary),
            _ => None,
        }
    }

    /// Where the BMC tells nothing of the boot, time has to do.
    fn assume_booted(&mut self) {
        let until = pace::later(self.boot_began(), pace::SETTLE);
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
        self.record.boots = 0;
        self.advance(Phase::Provisioned, sign);
        self.provisioned();
    }

    fn await_boot(&mut self, reason: &'static str, message: &str, until: Timestamp) {
        if self.now() < until {
            self.wait_until(reason, message, until);
            return self.poll(Scope::Power, self.waiting_since(reason));
        }
        if self.record.boots < pace::BOOT_TRIES || self.order_was_changed() {
            return self.prepare_again("The server did not use the boot override; trying again from a cold start.");
        }
        let message = format!(
            "The server was started {} times to boot from the virtual CD and did not use the boot override. Check the BMC's firmware and the server's boot settings; it is tried again later.",
            self.record.boots
        );
        let at = self.now();
        self.fail(Origin::Act, Failure::new(Kind::BootIgnored, message), at);
        self.held_back();
    }

    /// Whether another order is given than the one that we carry out.
    fn order_was_changed(&self) -> bool {
        let deployment = self.record.anchor.deployment.as_deref();
        self.goal.order.as_ref().is_some_and(|order| Some(order.deployment.as_str()) != deployment)
    }

    fn prepare_again(&mut self, message: &str) {
        self.record.anchor.milestone = Milestone::Armed;
        self.record.doing = None;
        self.event(true, "BootIgnored", message);
        self.advance(Phase::Preparing, message);
        self.prepare();
    }

    /// Takes back an override that would boot the image again at every later start, once. Answers whether it is busy with it.
    pub(super) fn take_back_override(&mut self) -> bool {
        let is_over = self.record.disarming.as_ref().is_some_and(|disarming| disarming.over);
        let Some(seen) = self.glance().filter(|_| !is_over && !self.record.anchor.adopted) else { return false };
        if boots_from_cd_for_ever(seen) {
            return self.disarm_boot();
        }
        if let Some(disarming) = &mut self.record.disarming {
            disarming.over = true;
            self.record.note(self.now(), "The BMC lets go of the boot override: the next start boots the disk.");
        }
        false
    }

    fn disarm_boot(&mut self) -> bool {
        const REASON: &str = "DisarmingBoot";
        let message = "The BMC keeps the boot override and would boot the image again; turning it to the disk.";
        let tries = self.record.disarming.as_ref().map_or(0, |disarming| disarming.tries);
        if let Some(last) = self.record.disarming.as_ref().map(|disarming| disarming.last) {
            let until = pace::later(last, pace::back_off(Class::Rejected, tries, self.sight.spread));
            if self.now() < until {
                self.wait_until(REASON, message, until);
                return false;
            }
        }
        if tries >= pace::DISARM_TRIES {
            self.give_up_disarming();
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

    fn give_up_disarming(&mut self) {
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let refusal = outcome.filter(|act| act.number == self.record.acted).and_then(|act| act.result.as_ref().err());
        let said = refusal.map(|refusal| format!(" (it says: {})", refusal.message)).unwrap_or_default();
        let message = format!(
            "The BMC keeps the boot override Cd and did not take Hdd instead in {} tries{said}. The next restart of the server would boot the image again: set the override by hand, or remove the image from the drive.",
            pace::DISARM_TRIES
        );
        if let Some(disarming) = &mut self.record.disarming {
            disarming.over = true;
        }
        self.event(true, "BootOverrideKept", &message);
        self.record.note(self.now(), message);
    }
}

fn boots_from_cd_for_ever(seen: &Seen) -> bool {
    let kept = |boot: &BootOverride| boot.persistence == Persistence::Continuous && boot.target == BootTarget::Cd;
    seen.boot.as_ref().is_some_and(kept)
}
