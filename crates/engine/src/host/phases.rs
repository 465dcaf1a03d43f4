//! What happens in each phase.

use jiff::Timestamp;

use super::{
    Ask, Author, Claim, Consumer, Deed, Disarming, Inquiry, Milestone, NoteKind, Order, Origin, Phase, Recipe,
    Whereabouts,
    observe::seen_uuid,
    pace,
    power::Manner,
    step::{ADOPTED, Act, Answers, Scene},
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{BootOverride, BootProgress, BootTarget, Media, Persistence, PowerState, Scope, Seen, without_secrets},
};

/// How a claim on the object compares with the claim that we act for.
enum Verdict {
    /// They are the same.
    Same,
    /// Ours is gone for good.
    Released,
    /// Ours seems to be gone, but may not be: nothing is done.
    Unclear,
}

impl Scene<'_> {
    /// Leaves the road: nothing is done to the server until it comes back.
    fn step_aside(&mut self, phase: Phase, message: &str) {
        if self.record.phase != phase {
            self.record.doing = None;
            self.advance(phase, message);
        }
    }

    fn come_back(&mut self) {
        self.record.left = None;
        self.advance(self.record.anchor.phase(self.record.inspected), "Back under management.");
        self.manage();
    }

    pub(super) fn detach(&mut self) {
        self.step_aside(Phase::Detached, "Detached: neither watched nor touched.");
        // Nobody looks any more, so nobody would notice that it is over.
        self.record.fault.take_if(|fault| fault.origin == Origin::Look);
    }

    pub(super) fn park(&mut self) {
        self.step_aside(Phase::Parked, "Under maintenance: watched, not touched.");
        if !self.held_back() {
            self.rest();
        }
    }

    pub(super) fn manage(&mut self) {
        match self.record.phase {
            Phase::Registering | Phase::Inspecting => self.register(),
            Phase::Available => self.available(),
            Phase::Preparing => self.prepare(),
            Phase::Provisioning => self.provision(),
            Phase::Provisioned => self.provisioned(),
            Phase::Deprovisioning => self.deprovision(),
            // Kubernetes knows no way back from a deletion, but a restored backup does.
            Phase::Parked | Phase::Detached | Phase::Deleting => self.come_back(),
        }
    }

    fn register(&mut self) {
        if self.held_back() {
            return;
        }
        let Some(seen) = self.seen(Scope::Inventory) else {
            let (reason, message) = match self.record.phase {
                Phase::Registering => ("Registering", "Making contact with the BMC."),
                _ => ("Inspecting", "Taking the inventory."),
            };
            return self.look(Scope::Inventory, reason, message);
        };
        if self.record.phase == Phase::Registering {
            self.advance(Phase::Inspecting, "The BMC answers.");
        }
        self.take_inventory(seen);
        self.advance(Phase::Available, "The inventory is taken; the host can be claimed.");
        self.available();
    }

    fn take_inventory(&mut self, seen: &Seen) {
        self.record.inspected = true;
        self.record.target = Some(self.sight.target.clone());
        self.record.inspection.clone_from(&self.goal.inspect);
        if let Some(uuid) = seen_uuid(seen) {
            self.record.anchor.uuid = Some(uuid);
        }
        if self.goal.pin_on_first_use && self.record.anchor.pin.is_none() {
            self.record.anchor.pin.clone_from(&seen.certificate);
        }
        self.settle();
    }

    fn available(&mut self) {
        // A server that was replaced is met properly before anybody gets it.
        if self.answers == Answers::Replacement && self.inspect_again() {
            return;
        }
        if let Some(claim) = self.goal.claim.clone() {
            if !self.is_claimed_by_the_living(&claim) {
                return;
            }
            if self.looks_before_accepting() {
                return;
            }
            let message = format!("Claimed by {}.", claim.consumer);
            self.record.anchor.claim = Some(claim);
            self.advance(Phase::Preparing, &message);
            return self.prepare();
        }
        if !self.inspect_again() && self.keep_power() && !self.held_back() {
            self.rest();
        }
    }

    /// A claim is accepted together with the first act for it, which saves each of a thousand machines a record of the time in
    /// between. Whoever cannot be looked at is told about, and accepted first.
    fn looks_before_accepting(&mut self) -> bool {
        let is_ready = self.goal.order.as_ref().is_some_and(|order| order.recipe.is_ok());
        if !is_ready || self.record.fault.is_some() || self.seen(Scope::Boot).is_some() {
            return false;
        }
        self.look = Some(Scope::Boot);
        self.again = Some(pace::later(self.now(), pace::LOOK_LIMIT));
        self.undecided = true;
        true
    }

    /// Whether a claim may be accepted; if not, waits. A leader that was deposed may have written it so late that its claimer
    /// is gone: nothing is done for a ghost. Nothing was done so far, so the claim can be taken off in the end.
    fn is_claimed_by_the_living(&mut self, claim: &Claim) -> bool {
        if self.goal.author == Author::Hand {
            return true;
        }
        if matches!(self.sight.claimer, Whereabouts::Alive | Whereabouts::Unknown(_)) {
            return true;
        }
        if !self.held_back() {
            self.rest();
        }
        let again = pace::later(self.now(), pace::CONSUMER_AGAIN);
        self.again = Some(self.again.map_or(again, |rest| rest.min(again)));
        let consumer = &claim.consumer;
        match self.sight.claimer {
            Whereabouts::Gone => self.refuse_ghost(consumer),
            Whereabouts::Leaving => {
                let message = format!("{consumer} is being deleted: nothing is done for it; waiting for it to let go.");
                self.wait_for_others(WAITING_FOR_CONSUMER, &message);
            }
            _ => {
                self.inquire = Some(Inquiry::Claimer);
                let message = format!("Claimed by {consumer}; looking whether it exists.");
                self.wait_for_others(CHECKING_CONSUMER, &message);
            }
        }
        false
    }

    fn refuse_ghost(&mut self, consumer: &Consumer) {
        if self.now() < pace::later(self.waiting_since(CONSUMER_GONE), pace::GHOST_LIMIT) {
            let message = format!(
                "spec.consumerRef names {consumer}, which does not exist under the id of this claim (annotation beskar7.io/claim-id), so nothing is done. Create it with that id, or remove reference and annotation; else they are taken off."
            );
            return self.wait(CONSUMER_GONE, &message, pace::GHOST_LIMIT);
        }
        let message =
            format!("The claim of {consumer} is taken off: there is no such claimer, and nothing was done for it.");
        self.event(true, "GhostClaim", &message);
        self.unclaim = true;
    }

    /// Takes the inventory again when the owner asks for it, or when it was never taken. Answers whether it is busy with it.
    fn inspect_again(&mut self) -> bool {
        let asked = self.goal.inspect.is_some() && self.goal.inspect != self.record.inspection;
        if self.record.inspected && !asked {
            return false;
        }
        if self.held_back() {
            return true;
        }
        let Some(seen) = self.seen(Scope::Inventory) else {
            self.look(Scope::Inventory, "Inspecting", "Taking the inventory.");
            return true;
        };
        if self.record.anchor.uuid.is_some() {
            self.event(false, "Inspected", "The inventory was taken again.");
        }
        self.take_inventory(seen);
        false
    }

    /// Compares the claim on the object with the one that we act for.
    fn claim_verdict(&mut self) -> Verdict {
        let Some(ours) = self.record.anchor.claim.clone() else { return Verdict::Same };
        if self.goal.claim.as_ref().is_some_and(|claim| claim.id == ours.id) {
            return Verdict::Same;
        }
        if self.goal.release_anyway {
            return Verdict::Released;
        }
        let what = match &self.goal.claim {
            Some(other) => format!("now names {}", other.consumer),
            None => "was removed".to_owned(),
        };
        let again = self.now() + pace::CONSUMER_AGAIN;
        let message = match &self.sight.consumer {
            Whereabouts::Gone | Whereabouts::Leaving => return Verdict::Released,
            Whereabouts::NotLookedUp => {
                self.inquire = Some(Inquiry::Consumer);
                self.again = Some(again);
                self.wait_for_others(
                    CHECKING_CONSUMER,
                    &format!("The claim {what}; looking whether {} still exists.", ours.consumer),
                );
                return Verdict::Unclear;
            }
            Whereabouts::Alive => format!(
                "spec.consumerRef {what}, but {} still exists and is not being deleted, so the server is left running. Put the reference back, delete the consumer, or annotate the host with beskar7.io/release=true.",
                ours.consumer
            ),
            Whereabouts::Unknown(why) => format!(
                "spec.consumerRef {what}, and whether {} still exists cannot be told ({why}), so the server is left running. Put the reference back, or annotate the host with beskar7.io/release=true.",
                ours.consumer
            ),
        };
        self.again = Some(again);
        self.object_fault(Failure::new(Kind::ConsumerMismatch, message));
        Verdict::Unclear
    }

    /// Whether the claim holds. If it is gone, begins the release.
    fn claim_holds(&mut self) -> bool {
        match self.claim_verdict() {
            Verdict::Same => true,
            Verdict::Unclear => false,
            Verdict::Released => {
                self.release();
                false
            }
        }
    }

    fn release(&mut self) {
        self.record.doing = None;
        self.drop_act_fault();
        if self.record.anchor.milestone == Milestone::None {
            self.record.anchor.release();
            self.advance(Phase::Available, "Released before anything was done.");
            return self.available();
        }
        self.record.anchor.milestone = Milestone::Releasing;
        self.advance(Phase::Deprovisioning, "Released; switching off and cleaning up.");
        self.deprovision();
    }

    fn prepare(&mut self) {
        if !self.claim_holds() {
            return;
        }
        let Some(order) = self.goal.order.clone() else {
            // Nothing may start the image of an order that was withdrawn.
            let armed = self.record.anchor.milestone != Milestone::None;
            if armed {
                self.drop_act_fault();
            }
            if (armed || self.keep_power()) && !self.held_back() {
                self.rest();
                self.wait_for_others("WaitingForBootInfo", "Claimed; waiting for spec.bootIsoSource.");
            }
            return;
        };
        self.accept(&order);
        let Recipe::Iso { url } = match order.recipe {
            Ok(recipe) => recipe,
            Err(failure) => return self.object_fault(failure),
        };
        let url = &url;
        if self.held_back() || !self.permitted(Ask::Deploy) {
            return;
        }
        let Some(seen) = self.seen(Scope::Boot) else {
            return self.look(Scope::Boot, "Preparing", "Looking at power, boot override and virtual media.");
        };
        let off = self.bring_off(seen, Manner::Hard, Scope::Boot);
        if !self.acts.is_empty() {
            self.record.anchor.milestone = Milestone::Armed;
        }
        if !off || self.media_may_be_moving(Scope::Boot) {
            return;
        }
        if self.is_prepared(seen, url) {
            self.settle();
            return self.start();
        }
        match self.doing(Deed::PrepareBoot).map(|doing| doing.since) {
            Some(since) if self.now() < pace::later(since, pace::PREPARE_LIMIT) => {
                self.wait_until(
                    "PreparingBoot",
                    "Waiting for the BMC to show the image and the boot override.",
                    pace::later(since, pace::PREPARE_LIMIT),
                );
                self.poll(Scope::Boot, since);
            }
            Some(_) => {
                let at = self.now();
                self.fail(Origin::Act, Failure::new(Kind::NotApplied, not_prepared(seen, url)), at);
                self.held_back();
            }
            None => {
                let mut acts = Vec::new();
                if seen.media.iter().flatten().any(Media::is_occupied) {
                    acts.push(Act::EjectMedia);
                }
                acts.push(Act::InsertMedia { url: url.clone() });
                acts.push(Act::SetBoot(BootOverride::cd_once(self.goal.boot_mode)));
                self.record.anchor.milestone = Milestone::Armed;
                self.act(Deed::PrepareBoot, acts, Scope::Boot);
                self.wait("PreparingBoot", "Inserting the image and arming the boot override.", pace::PREPARE_LIMIT);
            }
        }
    }

    /// Makes an order the one that we carry out. A corrected order is tried at once.
    fn accept(&mut self, order: &Order) {
        if self.record.anchor.deployment.as_deref() != Some(&order.deployment) {
            self.record.anchor.deployment = Some(order.deployment.clone());
            self.record.doing = None;
            self.record.boots = 0;
            self.drop_act_fault();
        }
    }

    /// The image must have been put there by us in this deployment: an image that lies in the drive from before may be
    /// what made an earlier try fail.
    fn is_prepared(&self, seen: &Seen, url: &str) -> bool {
        self.doing(Deed::PrepareBoot).is_some() && shows_image(seen, url) && boots_from_cd(seen)
    }

    fn start(&mut self) {
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

    fn provision(&mut self) {
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
    fn confirm_boot(&mut self) {
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

    fn provisioned(&mut self) {
        if !self.claim_holds() {
            return;
        }
        if self.goal.provision_adopted && self.record.anchor.adopted {
            self.record.anchor.adopted = false;
            self.record.anchor.deployment = None;
            self.record.anchor.milestone = Milestone::None;
            self.advance(Phase::Preparing, "To be provisioned, as the owner asked.");
            return self.prepare();
        }
        self.confirm_boot();
        let ordered = self.goal.order.as_ref().map(|order| order.deployment.as_str());
        if self.record.anchor.adopted {
            self.note(NoteKind::Adopted, ADOPTED);
        } else if ordered != self.record.anchor.deployment.as_deref() {
            self.note(
                NoteKind::OrderChanged,
                "spec.bootIsoSource was changed after the host had been provisioned. Nothing is done about it: only a new claim provisions again.",
            );
        }
        if !self.take_back_override() && !self.inspect_again() && self.keep_power() && !self.held_back() {
            self.rest();
        }
    }

    /// Takes back an override that would boot the image again at every later start, once. Answers whether it is busy with it.
    fn take_back_override(&mut self) -> bool {
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

    fn deprovision(&mut self) {
        if self.held_back() || !self.is_tidy(true) {
            return;
        }
        self.record.anchor.release();
        self.record.anchor.powered_on = false;
        self.record.boots = 0;
        self.record.assumed_booted = false;
        self.record.disarming = None;
        self.advance(Phase::Available, "Switched off and cleaned up; the host can be claimed.");
        self.available();
    }

    /// Whether the server is off and has neither media nor override of ours; if not, does what brings it there.
    fn is_tidy(&mut self, media: bool) -> bool {
        let scope = if media { Scope::Boot } else { Scope::Power };
        let Some(seen) = self.seen(scope) else {
            self.look(scope, "CleaningUp", "Looking at what is left to clean up.");
            return false;
        };
        if !self.bring_off(seen, Manner::Hard, scope) || (media && self.media_may_be_moving(scope)) {
            return false;
        }
        let occupied = seen.media.iter().flatten().any(Media::is_occupied);
        // Where the override is not shown, it is cleared once and believed.
        let armed = seen.boot.as_ref().map_or(self.doing(Deed::CleanUp).is_none(), |boot| !boot.is_clear());
        if !media || (!occupied && !armed) {
            self.record.media = None;
            self.settle();
            return true;
        }
        match self.doing(Deed::CleanUp).map(|doing| doing.since) {
            Some(since) if self.now() < pace::later(since, pace::PREPARE_LIMIT) => {
                self.wait_until(
                    "CleaningUp",
                    "Waiting for the BMC to show empty drives and no boot override.",
                    pace::later(since, pace::PREPARE_LIMIT),
                );
                self.poll(scope, since);
            }
            Some(_) => {
                let what =
                    if occupied { "the image is still in the drive" } else { "the boot override is still armed" };
                let message = format!("The BMC took the order to clean up, but {what}. It is tried again.");
                let at = self.now();
                self.fail(Origin::Act, Failure::new(Kind::NotApplied, message), at);
                self.held_back();
            }
            None => {
                let mut acts = Vec::new();
                if occupied {
                    acts.push(Act::EjectMedia);
                }
                if armed {
                    acts.push(Act::ClearBoot);
                }
                self.act(Deed::CleanUp, acts, scope);
                self.wait("CleaningUp", "Ejecting media and clearing the boot override.", pace::PREPARE_LIMIT);
            }
        }
        false
    }

    /// Parts with the host: leaves the server as tidy as we found it, within bounds. `elsewhere` is where the server was,
    /// if the object does not lead to it any more.
    pub(super) fn farewell(&mut self, elsewhere: Option<&str>) {
        if self.record.phase != Phase::Deleting {
            self.step_aside(Phase::Deleting, "To be forgotten.");
            self.begin_farewell();
        }
        if let Some(claim) = &self.goal.claim {
            let message = format!(
                "Waiting for {} to let go of the host. Remove spec.consumerRef, or annotate the host with beskar7.io/force-delete=true to forget it as it is.",
                claim.consumer
            );
            if elsewhere.is_some() {
                // There is nothing to look at: the server at the new address is not this host's.
                self.again = Some(self.now() + pace::PATIENCE);
            } else if !self.held_back() {
                self.rest();
            }
            return self.wait_for_others(WAITING_FOR_CONSUMER, &message);
        }
        let waited = [WAITING_FOR_CONSUMER, CHECKING_CONSUMER, Kind::ConsumerMismatch.reason()];
        let waited = waited.iter().any(|reason| self.waited_for(reason));
        let verdict = self.claim_verdict();
        let anchor = &mut self.record.anchor;
        let deployed = anchor.milestone != Milestone::None && !anchor.adopted;
        match verdict {
            Verdict::Unclear => return,
            // Found out once, remembered for good.
            Verdict::Released => anchor.claim = None,
            Verdict::Same => {}
        }
        if !deployed && !anchor.powered_on {
            self.finished = true;
            return;
        }
        if let Some(target) = elsewhere {
            self.left_as_it_is(&format!("it was at {target}, and the address was changed."));
            self.finished = true;
            return;
        }
        if deployed {
            anchor.milestone = Milestone::Releasing;
        }
        if waited {
            self.begin_farewell();
        }
        let limit = pace::later(self.record.since, pace::FAREWELL_LIMIT);
        if let Some(fault) = &self.record.fault
            && fault.inputs == self.sight.inputs
            && (fault.count >= pace::FAREWELL_TRIES || self.now() >= limit)
        {
            let why = fault.failure.message.clone();
            self.left_as_it_is(&why);
            self.finished = true;
            return;
        }
        if self.held_back() {
            self.again = self.again.map(|again| again.min(limit));
            return;
        }
        if self.is_tidy(deployed) {
            self.record.anchor.release();
            self.finished = true;
        }
    }

    /// The tries and the time of a farewell count from when it may begin. Refused credentials stay refused.
    fn begin_farewell(&mut self) {
        self.record.since = self.now();
        self.drop_act_fault();
        let now = self.now();
        if let Some(fault) = &mut self.record.fault
            && fault.failure.kind.class() != Class::Auth
        {
            fault.count = 0;
            fault.next_try = now;
        }
    }
}

const WAITING_FOR_CONSUMER: &str = "WaitingForConsumerRelease";
const CONSUMER_GONE: &str = "ConsumerGone";
const CHECKING_CONSUMER: &str = "CheckingConsumer";

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

fn shows_image(seen: &Seen, url: &str) -> bool {
    seen.media
        .iter()
        .flatten()
        .any(|media| media.inserted && media.image.as_deref().is_none_or(|image| image.is_empty() || image == url))
}

fn boots_from_cd(seen: &Seen) -> bool {
    seen.boot.as_ref().is_none_or(|boot| {
        boot.persistence != Persistence::Disabled
            && matches!(boot.target, BootTarget::Cd | BootTarget::Usb | BootTarget::Other(_))
    })
}

fn boots_from_cd_for_ever(seen: &Seen) -> bool {
    let kept = |boot: &BootOverride| boot.persistence == Persistence::Continuous && boot.target == BootTarget::Cd;
    seen.boot.as_ref().is_some_and(kept)
}

fn not_prepared(seen: &Seen, url: &str) -> String {
    if !shows_image(seen, url) {
        return format!(
            "The BMC took the image {}, but does not show it in a drive. Check that the BMC can reach the URL.",
            without_secrets(url)
        );
    }
    "The BMC took the boot override, but does not show it. It is tried again.".to_owned()
}
