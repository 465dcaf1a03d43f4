//! Whether the system that was ordered has started, and what is done if it has or has not.

use jiff::Timestamp;

use super::{
    Ask, Deed, Disarming, Milestone, Origin, Phase, pace,
    step::{Act, Scene},
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{BootOverride, BootProgress, BootTarget, Persistence, PowerState, Scope, Seen},
};

/// What is said of a host whose BMC tells nothing of the boot.
pub const ASSUMED_BOOTED: &str =
    "Boot started, not observed: the BMC reports no boot progress, so the image is assumed to have booted.";

/// Why a server cannot boot what anybody orders: its BMC shows so many virtual CD drives, which are the only way so far. `None` if
/// it can.
pub fn no_way_to_boot(drives: usize) -> Option<Failure> {
    let message = "The BMC shows no virtual CD drive that could take an image, so the server cannot be booted for anybody, and nothing is done to it. Enable virtual media in the BMC (it may need a licence) and annotate the host with beskar7.io/inspect, or use another host.";
    (drives == 0).then(|| Failure::new(Kind::NoVirtualMedia, message))
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

impl Scene<'_> {
    pub(super) fn start(&mut self) {
        self.record.media = None;
        self.record.anchor.milestone = Milestone::Written;
        self.record.assumed_booted = false;
        self.record.disarming = None;
        // A restart that was asked for before this start has come with it; later it would tear the new system down.
        self.record.rebooted.clone_from(&self.goal.reboot);
        self.advance(Phase::Provisioning, "The image is in the drive; powering on.");
        self.act(Deed::PowerOn, vec![Act::PowerOn], Scope::Power);
        self.wait("PoweringOn", "Waiting for the server to power on.", pace::POWER_LIMIT);
    }

    /// From here on the server may run the ordered system, so it is only powered on or watched. Whatever its BMC shows or
    /// does not show, its power is cut for a request of its owner alone.
    pub(super) fn provision(&mut self) {
        if !self.claim_holds() {
            return;
        }
        if self.has_fetched() {
            return self.booted("The system that was booted has fetched its configuration.");
        }
        let is_ignored = self.has_boot_fault();
        if is_ignored && let Some(Evidence::Booted(sign)) = self.glance().and_then(|seen| self.evidence(seen)) {
            return self.booted(sign);
        }
        if is_ignored && self.order_was_changed() {
            return self.prepare_another_order();
        }
        let is_asked = is_ignored && self.goal.reboot.is_some() && self.goal.reboot != self.record.rebooted;
        let is_off = self.glance().is_some_and(|seen| seen.power == PowerState::Off);
        let may_act = is_asked || (is_ignored && is_off);
        if !may_act && self.held_back() {
            return;
        }
        let Some(seen) = self.seen(Scope::Power) else {
            return self.look(Scope::Power, "LookingAtBoot", "Looking whether the server has booted the image.");
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
        self.advance(Phase::Provisioned, sign);
        self.provisioned();
    }

    fn await_boot(&mut self, reason: &'static str, message: &str, until: Timestamp, seen: &Seen) {
        if self.now() < until && !self.has_boot_fault() {
            self.wait_until(reason, message, until);
            return self.poll(Scope::Power, self.waiting_since(reason));
        }
        if self.order_was_changed() {
            return self.prepare_another_order();
        }
        let at = self.now();
        self.fail(Origin::Act, Failure::new(Kind::BootIgnored, not_booted(seen)), at);
        self.held_back();
    }

    /// Whether another order is given than the one that we carry out.
    fn order_was_changed(&self) -> bool {
        let deployment = self.record.anchor.deployment.as_deref();
        self.goal.order.as_ref().is_some_and(|order| Some(order.deployment.as_str()) != deployment)
    }

    /// Another order is another deployment: its owner gave up the one that was not seen to boot.
    fn prepare_another_order(&mut self) {
        let message = "The server was not seen to boot the image, and the order was changed: preparing the new one.";
        self.record.anchor.milestone = Milestone::Armed;
        self.record.doing = None;
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
        "{shown}, so it is not known whether the server booted the image. Nothing is done to a server that may run it. Check its console. If it runs the image, clear the boot override in the BMC; if not, check its boot settings and annotate the host with beskar7.io/reboot to restart it, or remove the claim."
    )
}

fn minutes() -> i64 {
    pace::BOOT_LIMIT.as_mins()
}

fn boots_from_cd_for_ever(seen: &Seen) -> bool {
    let kept = |boot: &BootOverride| boot.persistence == Persistence::Continuous && boot.target == BootTarget::Cd;
    seen.boot.as_ref().is_some_and(kept)
}
