//! What happens in each phase.

use jiff::SignedDuration;

use super::{
    Ask, Author, Claim, Deed, Milestone, NoteKind, Order, Origin, Phase, Request, Since, Undo,
    boot::no_way_to_boot,
    claims::{CHECKING_CONSUMER, Verdict, WAITING_FOR_CONSUMER, shortened},
    observe::seen_uuid,
    pace,
    power::Manner,
    recipe::{Check, Plan},
    step::{Act, Answers, Scene, adopted_note},
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{Media, PowerState, Scope, Seen, without_secrets},
};

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

    pub(super) fn quarantine(&mut self) {
        self.step_aside(Phase::Quarantined, "In quarantine: nobody can claim the host; watched, not touched.");
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
            Phase::Parked | Phase::Quarantined | Phase::Detached | Phase::Deleting => self.come_back(),
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
        let hardware = seen.hardware.as_deref();
        let drives = seen.media.as_ref().map(|drives| u32::try_from(drives.len()).unwrap_or(u32::MAX));
        match no_way_to_boot(drives, hardware.and_then(|hardware| hardware.network_boot)) {
            None => self.advance(Phase::Available, "The inventory is taken; the host can be claimed."),
            Some(failure) => {
                self.advance(Phase::Available, "The inventory is taken.");
                self.event(true, failure.kind.reason(), &failure.message);
                self.record.note(self.now(), failure.message);
            }
        }
        self.available();
    }

    fn take_inventory(&mut self, seen: &Seen) {
        self.record.inspected = true;
        self.record.target = Some(self.sight.target.clone());
        self.record.inspection.clone_from(&self.goal.inspect);
        if let Some(uuid) = seen_uuid(seen) {
            self.record.anchor.uuid = Some(uuid);
        }
        if self.record.anchor.free_since.is_none() && !self.record.anchor.is_in_use() {
            self.record.anchor.free_since = Some(self.now());
        }
        if self.goal.pin_on_first_use && self.record.anchor.pin.is_none() {
            self.record.anchor.pin.clone_from(&seen.certificate);
        }
        self.settle();
    }

    pub(super) fn available(&mut self) {
        // A server that was replaced is met properly before anybody gets it.
        if self.answers == Answers::Replacement && self.inspect_again() {
            return;
        }
        if let Some(claim) = self.goal.claim.clone() {
            if !self.claimer_exists(&claim) {
                return;
            }
            // The order that we were given has the id of a deployment before that: it is made anew from what is stored now.
            if self.has_just_become_free() {
                self.again = Some(pace::later(self.now(), SignedDuration::from_secs(1)));
                return;
            }
            if self.looks_before_accepting() {
                return;
            }
            let message = format!("Claimed by {}.", claim.consumer);
            // Whatever ended an earlier claim of the same id does not end this one.
            self.heed_release(&claim);
            self.record.anchor.claim = Some(claim);
            self.outdate_power_request(Since::Claim);
            self.advance(Phase::Preparing, &message);
            return self.prepare();
        }
        if !self.inspect_again() && self.keep_power() && !self.held_back() {
            self.rest();
        }
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

    pub(super) fn release(&mut self) {
        self.record.doing = None;
        self.drop_act_fault();
        self.try_at_once();
        if self.record.anchor.milestone == Milestone::None {
            self.record.anchor.release(self.now());
            self.advance(Phase::Available, "Released before anything was done.");
            return self.available();
        }
        self.record.anchor.milestone = Milestone::Releasing;
        self.advance(Phase::Deprovisioning, "Released; switching off and cleaning up.");
        self.deprovision();
    }

    pub(super) fn prepare(&mut self) {
        if !self.claim_holds() {
            return;
        }
        let Some(order) = self.goal.order.clone() else {
            return self
                .await_order("WaitingForBootInfo", "Claimed; waiting for spec.bootIsoSource or spec.networkBoot.");
        };
        if let Some(gate) = order.closed_gate() {
            let message = format!("Claimed; waiting for {} to be ready before the server is booted.", gate.keeper);
            return self.await_order("WaitingForBootPermission", &message);
        }
        self.accept(&order);
        let plan = match order.recipe {
            Ok(recipe) => recipe.plan(self.goal.boot_mode),
            Err(failure) => return self.object_fault(failure),
        };
        if self.held_back() || !self.permitted(Ask::Deploy) {
            return;
        }
        let Some(seen) = self.seen(plan.look) else {
            return self.look(plan.look, "Preparing", "Looking at the server before it is prepared.");
        };
        if self.is_refused(&plan, seen) {
            return;
        }
        let off = self.bring_off(seen, Manner::Hard, plan.look);
        if off && self.arm(&plan, seen) {
            return self.start();
        }
        if !self.acts.is_empty() {
            // From now on the server is prepared for its order, whatever it was used for.
            self.record.anchor.arm(&plan.undo);
        }
    }

    /// Claimed, and there is nothing that may be booted.
    fn await_order(&mut self, reason: &'static str, message: &str) {
        // Nothing may start what was armed for an order that was withdrawn.
        let armed = self.record.anchor.milestone != Milestone::None;
        if armed {
            self.drop_act_fault();
        }
        if (armed || self.keep_power()) && !self.held_back() {
            self.rest();
            self.wait_for_others(reason, message);
        }
    }

    /// Whether this server cannot carry out the plan, as far as a look tells. If so, says so and does nothing.
    fn is_refused(&mut self, plan: &Plan, seen: &Seen) -> bool {
        plan.image().is_some_and(|url| self.is_image_refused(url, seen)) || self.is_not_ours_to_stop(seen)
    }

    fn is_image_refused(&mut self, url: &str, seen: &Seen) -> bool {
        if let Some(refusal) = refusal(seen) {
            let at = self.now();
            self.fail(Origin::Act, refusal, at);
            self.held_back();
            return true;
        }
        self.scheme_is_refused(seen, url) || self.drive_is_anothers(seen, url)
    }

    /// Whether the next start follows the plan; if not, does what brings it there. What is there must have been put there by us just
    /// now: an image that lies in the drive from before may be what made an earlier try fail.
    pub(super) fn arm(&mut self, plan: &Plan, seen: &Seen) -> bool {
        if plan.image().is_some() && self.media_may_be_moving(plan.look) {
            return false;
        }
        match self.doing(Deed::PrepareBoot).map(|doing| doing.since) {
            Some(_) if plan.is_armed(seen) => {
                self.settle();
                return true;
            }
            Some(since) if self.now() < pace::later(since, pace::PREPARE_LIMIT) => {
                self.wait_until(
                    "PreparingBoot",
                    "Waiting for the BMC to show that the boot is prepared.",
                    pace::later(since, pace::PREPARE_LIMIT),
                );
                self.poll(plan.look, since);
            }
            Some(_) => {
                let at = self.now();
                self.fail(Origin::Act, Failure::new(Kind::NotApplied, not_armed(seen, plan)), at);
                self.held_back();
            }
            None => {
                let acts = self.acts_that_arm(plan, seen);
                if let Some(Act::InsertMedia { url }) = acts.iter().find(|act| matches!(act, Act::InsertMedia { .. })) {
                    self.claim_drive(url, seen);
                }
                self.act(Deed::PrepareBoot, acts, plan.look);
                self.wait("PreparingBoot", "Preparing the boot.", pace::PREPARE_LIMIT);
            }
        }
        false
    }

    /// What has to be done of a plan. A server that runs may run from what is in its drive: that is not ejected, and the image of
    /// its own deployment can stay. So does ours in a drive that servers share: should it be another's after all, it is not ejected.
    fn acts_that_arm(&self, plan: &Plan, seen: &Seen) -> Vec<Act> {
        let may_eject = seen.power == PowerState::Off && seen.media.iter().flatten().any(Media::is_occupied);
        let is_there = |check: &Check| matches!(check, Check::Image(_)) && check.holds(seen);
        let may_stay = self.record.phase == Phase::Provisioned || seen.shares_drives;
        let stays = may_stay && plan.armed.iter().any(is_there);
        let is_due = |act: &Act| match act {
            Act::EjectMedia => may_eject && !stays,
            Act::InsertMedia { .. } => !stays,
            _ => true,
        };
        plan.arm.iter().filter(|act| is_due(act)).cloned().collect()
    }

    /// Makes an order the one that we carry out. A corrected order is tried at once.
    fn accept(&mut self, order: &Order) {
        if self.record.anchor.deployment.as_deref() != Some(&order.deployment) {
            self.record.anchor.deployment = Some(order.deployment.clone());
            self.record.doing = None;
            self.drop_act_fault();
        }
    }

    pub(super) fn provisioned(&mut self) {
        if !self.claim_holds() {
            return;
        }
        if self.record.anchor.adopted && self.is_to_be_provisioned() {
            self.heeded.push(Request::Provision);
            // It stays adopted until something is done to it: whoever asked for this knew that it may run.
            self.record.anchor.deployment = None;
            self.record.anchor.milestone = Milestone::None;
            self.advance(Phase::Preparing, "To be provisioned, as the owner asked.");
            return self.prepare();
        }
        self.confirm_boot();
        let ordered = self.goal.order.as_ref().map(|order| order.deployment.as_str());
        if self.record.anchor.adopted {
            let message = self.adopted_note();
            self.note(NoteKind::Adopted, message);
        } else if ordered != self.record.anchor.deployment.as_deref() {
            self.note(
                NoteKind::OrderChanged,
                "The order (spec.bootIsoSource or spec.networkBoot) was changed after the host had been provisioned. Nothing is done about it: only a new claim provisions again.",
            );
        }
        if !self.take_back_override() && !self.inspect_again() && self.keep_power() && !self.held_back() {
            self.rest();
        }
    }

    fn adopted_note(&self) -> String {
        let message = adopted_note(&self.record.anchor);
        let (Some(asked), Some(claim)) = (&self.goal.provision, &self.record.anchor.claim) else { return message };
        let is_called = claim.consumer.is_called(asked);
        let counts = if is_called { "counts once the server was seen off" } else { "counts for nothing" };
        format!("{message} Its present value \"{}\" {counts}.", shortened(asked))
    }

    fn deprovision(&mut self) {
        if self.held_back() || !self.is_tidy() {
            return;
        }
        self.record.anchor.release(self.now());
        self.record.anchor.powered_on = false;
        self.outdate_power_request(Since::Release);
        self.skip_restart();
        self.record.assumed_booted = false;
        self.record.disarming = None;
        self.advance(Phase::Available, "Switched off and cleaned up; the host can be claimed.");
        self.available();
    }

    /// How deep one has to look to see what a release must undo.
    pub(super) fn scope_of_undo(&self) -> Scope {
        if self.record.anchor.undo().contains(&Undo::Media) { Scope::Boot } else { Scope::Power }
    }

    /// Whether the server is off and has neither media nor override of ours; if not, does what brings it there.
    fn is_tidy(&mut self) -> bool {
        let undo = self.record.anchor.undo();
        let (media, boot) = (undo.contains(&Undo::Media), undo.iter().any(|undo| matches!(undo, Undo::Boot(_))));
        let scope = self.scope_of_undo();
        let Some(seen) = self.seen(scope) else {
            self.look(scope, "CleaningUp", "Looking at what is left to clean up.");
            return false;
        };
        if !self.bring_off(seen, Manner::Hard, scope) || (media && self.media_may_be_moving(scope)) {
            return false;
        }
        let occupied = media && self.holds_our_image(seen);
        // Where no override is shown, it is cleared once, and whatever comes of that, it is believed.
        let armed = boot && seen.boot.as_ref().map_or(self.doing(Deed::CleanUp).is_none(), |boot| !boot.is_clear());
        if !occupied && !armed {
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
            let message = awaits_release(claim, self.goal.author);
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
        // Found out once, remembered for good.
        let released = self.record.anchor.milestone == Milestone::Releasing;
        let verdict = if released { Verdict::Released } else { self.claim_verdict() };
        let anchor = &mut self.record.anchor;
        let deployed = anchor.milestone != Milestone::None && !anchor.adopted;
        match verdict {
            Verdict::Unclear => return,
            // Whoever claimed waits for the end of it: its machine must not be gone before its server is off.
            Verdict::Released if deployed => {}
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
        if self.is_tidy() {
            self.record.anchor.release(self.now());
            self.finished = true;
        }
    }

    /// The tries and the time of a farewell count from when it may begin. Refused credentials stay refused.
    fn begin_farewell(&mut self) {
        self.record.since = self.now();
        self.drop_act_fault();
        self.try_at_once();
    }

    /// Somebody wants the server to be let go of: the BMC is asked now, however long ago it failed.
    fn try_at_once(&mut self) {
        let now = self.now();
        if let Some(fault) = &mut self.record.fault
            && fault.failure.kind.class() != Class::Auth
        {
            fault.count = 0;
            // What fails at this very moment would be no news, and tried again and again without a pause.
            let pause = SignedDuration::from_secs(i64::from(fault.last >= now));
            fault.next_try = now + pause;
        }
    }
}

/// What has to be done before a host that is deleted can go.
fn awaits_release(claim: &Claim, author: Author) -> String {
    let consumer = &claim.consumer;
    let force = "To forget the host and leave its server as it is, annotate it with beskar7.io/force-delete=true.";
    match author {
        Author::Claimer => format!(
            "Waiting for {consumer} to let go of the host. Delete {consumer}: its server is then powered off, and the host is removed. {force}"
        ),
        Author::Hand => format!(
            "Waiting for {consumer}, which uses the host. If there is such an object, delete it; then remove spec.consumerRef: the server is powered off, and the host is removed. {force}"
        ),
    }
}

/// Why this server cannot take an image, as far as its first look tells: nothing is done to it then.
fn refusal(seen: &Seen) -> Option<Failure> {
    let message = "The BMC shows no virtual CD drive that could take an image, so nothing is done to the server. Enable virtual media in the BMC (it may need a licence), boot it from the network, or use another host.";
    let disabled = "Remote media are disabled in the settings of the BMC (RMediaStatus), so it shows no virtual CD drive, and nothing is done to the server. Enable them there, boot the server from the network, or use another host.";
    let has_none = seen.media.as_ref().is_some_and(Vec::is_empty);
    let message = if seen.media_disabled { disabled } else { message };
    has_none.then(|| Failure::new(Kind::NoVirtualMedia, message))
}

fn not_armed(seen: &Seen, plan: &Plan) -> String {
    match plan.armed.iter().find(|check| !check.holds(seen)) {
        Some(Check::Image(url)) => format!(
            "The BMC took the image {}, but does not show it in a drive. Check that the BMC can reach the URL.",
            without_secrets(url)
        ),
        _ => "The BMC took the boot override, but does not show it. It is tried again.".to_owned(),
    }
}
