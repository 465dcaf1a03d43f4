//! What happens in each phase.

use jiff::{SignedDuration, Timestamp};

use super::{
    Ask, Asked, Deed, Disks, Finding, Happening, Manner, Milestone, Neglect, Newcomer, Note, Order, Origin, Passage,
    Phase, Request, Since, Undo, Wait, Waiting,
    boot::no_way_to_boot,
    claims::{Verdict, shortened},
    is_running,
    observe::seen_uuid,
    pace,
    recipe::{Check, Plan},
    step::{Act, Answers, Flow, GO_ON, Proof, STOP, Scene},
};
use crate::{
    failure::{Class, Kind},
    server::{Media, PowerState, Scope, Seen, without_secrets},
};

impl Scene<'_> {
    /// Sets the host aside: nothing is done to the server until it is managed again.
    pub(super) fn step_aside(&mut self, phase: Phase, why: Passage) {
        if self.record.phase != phase {
            self.record.doing = None;
            self.advance(phase, why);
        }
    }

    fn come_back(&mut self) -> Flow {
        self.record.left = None;
        self.advance(self.record.anchor.phase(self.record.inspected), Passage::Back);
        self.manage()
    }

    pub(super) fn detach(&mut self) -> Flow {
        self.step_aside(Phase::Detached, Passage::Detached);
        // There are no more looks, so its end would not be noticed.
        self.record.fault.take_if(|fault| fault.origin == Origin::Look);
        STOP
    }

    pub(super) fn park(&mut self, off: bool) -> Flow {
        self.step_aside(Phase::Parked, Passage::Parked);
        if off {
            self.keep_off(Manner::Soft)?;
        }
        self.only_watch()
    }

    fn quarantine(&mut self) -> Flow {
        self.step_aside(Phase::Quarantined, Passage::Quarantined);
        self.only_watch()
    }

    /// There is nothing to do: looks from time to time.
    pub(super) fn only_watch(&mut self) -> Flow {
        self.wait_out_fault()?;
        self.rest();
        STOP
    }

    pub(super) fn manage(&mut self) -> Flow {
        if self.record.anchor.lent {
            self.take_back_lent()?;
        }
        if self.record.anchor.probing && !self.is_probing() {
            self.end_probe()?;
        }
        // A host in use is cleaned up before it goes into quarantine.
        if self.goal.quarantine && !self.record.anchor.is_in_use() {
            return self.quarantine();
        }
        match self.record.phase {
            Phase::Registering | Phase::Inspecting => self.register(),
            Phase::Available => self.await_claim(),
            Phase::Preparing => self.prepare(),
            Phase::Provisioning => self.provision(),
            Phase::Provisioned => self.keep_provisioned(),
            Phase::Deprovisioning => self.deprovision(),
            // Kubernetes cannot undo a deletion, but a restored backup can.
            Phase::Parked | Phase::Lent | Phase::Quarantined | Phase::Detached | Phase::Deleting => self.come_back(),
        }
    }

    fn register(&mut self) -> Flow {
        let is_new = self.record.phase == Phase::Registering;
        if !is_new {
            self.probe()?;
        }
        self.wait_out_fault()?;
        let waiting = if is_new { Waiting::Registering } else { Waiting::Inspecting };
        let seen = self.look_first(self.scope_of_inventory(), waiting)?;
        if is_new {
            if self.record.anchor.free_since.is_none() {
                self.meet_newcomer(seen)?;
            }
            self.advance(Phase::Inspecting, Passage::BmcAnswers);
            self.begin_probe(seen)?;
        }
        self.take_inventory(seen);
        let hardware = seen.hardware.as_deref();
        let drives = seen.media.as_ref().map(|drives| u32::try_from(drives.len()).unwrap_or(u32::MAX));
        let useless = no_way_to_boot(drives, hardware.and_then(|hardware| hardware.network_boot));
        self.advance(Phase::Available, Passage::InventoryTaken { claimable: useless.is_none() });
        if let Some(failure) = useless {
            self.tell(Happening::Failed(failure));
        }
        self.await_claim()
    }

    /// Goes on if a server may be registered in the state that it is in.
    pub(super) fn meet_newcomer(&mut self, seen: &Seen) -> Flow {
        // Whoever has claimed it may use it already: its status may be all that was lost.
        let may_switch_off = self.goal.newcomer == Newcomer::SwitchOff && self.goal.claim.is_none();
        match self.goal.newcomer {
            Newcomer::SwitchOff if may_switch_off && seen.power != PowerState::Off => {
                self.bring_off(seen, Manner::Soft, self.scope_of_inventory())
            }
            Newcomer::AwaitOff | Newcomer::SwitchOff if is_running(seen.power) => {
                self.rest();
                self.wait_for_others(Waiting::ServerOff);
                STOP
            }
            Newcomer::Register | Newcomer::AwaitOff | Newcomer::SwitchOff => GO_ON,
        }
    }

    fn take_inventory(&mut self, seen: &Seen) {
        self.record.inspected = true;
        self.record.bare = seen.hardware.is_none();
        if self.goal.inspect.is_some() {
            self.heeded.push(Request::Inspect);
        }
        self.record.inspection.clone_from(&self.goal.inspect);
        self.identify(seen);
        if self.record.anchor.free_since.is_none() && !self.record.anchor.is_in_use() {
            self.record.anchor.free_since = Some(self.now());
        }
        self.settle();
    }

    /// Remembers which server this is: nothing is done to another one.
    pub(super) fn identify(&mut self, seen: &Seen) {
        self.record.target = Some(self.sight.target.clone());
        if let Some(uuid) = seen_uuid(seen) {
            self.record.anchor.uuid = Some(uuid);
        }
        if self.goal.pin_on_first_use && self.record.anchor.pin.is_none() {
            self.record.anchor.pin.clone_from(&seen.certificate);
        }
    }

    /// How deep to look at a new server.
    fn scope_of_inventory(&self) -> Scope {
        if self.goal.without_inventory || self.goal.external { Scope::Power } else { Scope::Inventory }
    }

    /// Notes that somebody else manages the system of this host.
    fn leave_to_others(&mut self) -> Flow {
        self.record.anchor.milestone = Milestone::Provisioned;
        self.record.anchor.adopted = true;
        self.record.anchor.external = true;
        self.advance(Phase::Provisioned, Passage::External);
        self.watch_over_provisioned()
    }

    /// The host is managed again: it is registered as if it were new, and nothing is done to its server.
    fn take_back(&mut self) -> Flow {
        self.record.anchor.release(self.now());
        self.record.anchor.powered_on = false;
        self.record.inspected = false;
        self.advance(Phase::Registering, Passage::Back);
        self.register()
    }

    fn await_claim(&mut self) -> Flow {
        if self.goal.quarantine {
            return self.quarantine();
        }
        if self.goal.external {
            return self.leave_to_others();
        }
        // A replaced server is registered and inspected before anybody can claim it.
        if self.answers == Answers::Replacement {
            self.inspect_again()?;
        }
        let Some(claim) = self.goal.claim.clone().filter(|_| !self.goal.claim_waits) else {
            self.inspect_again()?;
            self.keep_power()?;
            return self.only_watch();
        };
        self.check_claimer(&claim)?;
        // The order still has the id of an earlier deployment: a new id is made from what is stored now.
        if self.has_just_become_free() {
            self.again = Some(pace::later(self.now(), SignedDuration::from_secs(1)));
            return STOP;
        }
        self.look_before_accepting()?;
        // A request that ended an earlier claim of the same id does not end this one.
        self.heed_release(&claim);
        let claimed = Passage::Claimed(claim.holder());
        self.record.anchor.claim = Some(claim);
        self.outdate_power_request(Since::Claim);
        self.advance(Phase::Preparing, claimed);
        self.prepare()
    }

    /// Reads the inventory if the owner requests it, or if it was never read. Goes on when that is done.
    fn inspect_again(&mut self) -> Flow {
        let asked = self.goal.inspect.is_some() && self.goal.inspect != self.record.inspection;
        let is_owed = self.record.bare && self.scope_of_inventory() == Scope::Inventory;
        if self.record.inspected && !asked && !is_owed {
            return GO_ON;
        }
        self.wait_out_fault()?;
        let seen = self.look_first(self.scope_of_inventory(), Waiting::Inspecting)?;
        if self.record.anchor.uuid.is_some() {
            self.announce(Happening::InspectedAgain);
        }
        self.take_inventory(seen);
        GO_ON
    }

    pub(super) fn release(&mut self) -> Flow {
        self.record.doing = None;
        self.drop_act_fault();
        self.try_at_once();
        if self.record.anchor.milestone == Milestone::None {
            self.record.anchor.release(self.now());
            self.advance(Phase::Available, Passage::ReleasedUntouched);
            return self.await_claim();
        }
        self.record.anchor.milestone = Milestone::Releasing;
        self.advance(Phase::Deprovisioning, Passage::Released);
        self.deprovision()
    }

    pub(super) fn prepare(&mut self) -> Flow {
        self.keep_to_claim()?;
        let Some(order) = self.goal.order.clone() else { return self.await_order(Waiting::Order) };
        if let Some(gate) = order.closed_gate() {
            return self.await_order(Waiting::BootPermission { keeper: gate.keeper.clone() });
        }
        self.look_before_preparing(&order)?;
        self.accept(&order);
        let plan = match order.recipe {
            Ok(recipe) => recipe.plan(self.goal.boot_mode),
            Err(failure) => return self.object_fault(failure),
        };
        self.wait_out_fault()?;
        self.ask_brake(Ask::Deploy)?;
        let seen = self.look_first(plan.look, Waiting::Preparing)?;
        self.refuse_unfit(&plan, seen)?;
        // A server that may never be switched off is armed while it runs, and then restarted.
        let may_run = self.goal.never_off && seen.power != PowerState::Off;
        if may_run {
            self.ask_brake(Ask::Disrupt)?;
        }
        let off = if may_run { GO_ON } else { self.bring_off(seen, Manner::Hard, plan.look) };
        if off.is_continue() && self.arm(&plan, seen).is_continue() {
            return self.start(may_run);
        }
        if !self.acts.is_empty() {
            // From now on the server is being prepared for its order.
            self.record.anchor.arm(&plan.undo);
        }
        STOP
    }

    /// Claimed, and there is nothing to boot yet.
    fn await_order(&mut self, waiting: Waiting) -> Flow {
        // Nothing may boot what was armed for a withdrawn order, nor anything else before the gate opens.
        let is_gated = matches!(waiting, Waiting::BootPermission { .. });
        if self.record.anchor.milestone == Milestone::None && !(is_gated && self.is_to_be_on()) {
            self.keep_power()?;
        } else {
            self.drop_act_fault();
        }
        self.wait_out_fault()?;
        self.rest();
        self.wait_for_others(waiting);
        STOP
    }

    /// Stops if a look shows that this server cannot carry out the plan: nothing is done to it then.
    fn refuse_unfit(&mut self, plan: &Plan, seen: &Seen) -> Flow {
        if let Some(url) = plan.image() {
            if seen.media.as_ref().is_some_and(Vec::is_empty) {
                return self.fail_to_act(Finding::NoVirtualMedia { disabled: seen.media_disabled });
            }
            self.check_scheme(seen, url)?;
            self.leave_drive_of_others(seen, url)?;
        }
        self.leave_running_server(seen)
    }

    /// Goes on if the next start follows the plan; if not, arms it. Image and override must have been set for this try: an image
    /// left in the drive may have made an earlier try fail.
    pub(super) fn arm(&mut self, plan: &Plan, seen: &Seen) -> Flow {
        if plan.image().is_some() {
            self.let_media_settle(plan.look)?;
        }
        match self.doing(Deed::PrepareBoot).map(|doing| doing.since) {
            Some(_) if plan.is_armed(seen) => {
                self.settle();
                self.is_armed = true;
                return GO_ON;
            }
            Some(since) if self.now() < pace::later(since, pace::PREPARE_LIMIT) => {
                self.wait_until(Waiting::PreparingBoot, pace::later(since, pace::PREPARE_LIMIT));
                self.poll(plan.look, since);
            }
            Some(_) => self.fail_to_act(not_armed(seen, plan))?,
            None => {
                let acts = self.acts_that_arm(plan, seen);
                if let Some(Act::InsertMedia { url }) = acts.iter().find(|act| matches!(act, Act::InsertMedia { .. })) {
                    self.claim_drive(url, seen);
                }
                self.act(Deed::PrepareBoot, acts, plan.look);
                self.wait(Waiting::PreparingBoot, pace::PREPARE_LIMIT);
            }
        }
        STOP
    }

    /// The acts of a plan that are still to be done. A server that runs may run from the image in its drive: that is not ejected,
    /// and the image of its own deployment can stay. Our image in a shared drive stays, too: another server may use it.
    fn acts_that_arm(&self, plan: &Plan, seen: &Seen) -> Vec<Act> {
        let may_eject = (seen.power == PowerState::Off || self.goal.never_off)
            && seen.media.iter().flatten().any(Media::is_occupied);
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

    /// Starts to carry out an order. A corrected order is tried at once.
    fn accept(&mut self, order: &Order) {
        if self.record.anchor.deployment.as_deref() != Some(&order.deployment) {
            self.record.anchor.deployment = Some(order.deployment.clone());
            self.record.doing = None;
            self.drop_act_fault();
        }
    }

    pub(super) fn keep_provisioned(&mut self) -> Flow {
        self.keep_to_claim()?;
        self.watch_over_provisioned()
    }

    /// What is done for a server that runs what was ordered, or what it was adopted with.
    pub(super) fn watch_over_provisioned(&mut self) -> Flow {
        if self.record.anchor.external && !self.goal.external && self.proof != Some(Proof::InUse) {
            return self.take_back();
        }
        if self.record.anchor.adopted && self.is_to_be_provisioned() {
            self.heeded.push(Request::Provision);
            // It stays adopted until something is done to it: who requested this knew that it may run.
            self.record.anchor.deployment = None;
            self.record.anchor.milestone = Milestone::None;
            self.advance(Phase::Preparing, Passage::OwnerAsked);
            return self.prepare();
        }
        self.confirm_boot();
        let ordered = self.goal.order.as_ref().map(|order| order.deployment.as_str());
        if self.record.anchor.external {
            // Nothing was ordered here.
        } else if self.record.anchor.adopted {
            let note = self.note_on_adoption();
            self.note(note);
        } else if ordered != self.record.anchor.deployment.as_deref() {
            self.note(Note::OrderChanged);
        }
        self.take_back_override()?;
        self.inspect_again()?;
        self.keep_power()?;
        self.only_watch()
    }

    fn note_on_adoption(&self) -> Note {
        let claim = self.record.anchor.claim.as_ref();
        let asked = self
            .goal
            .provision
            .as_deref()
            .zip(claim)
            .map(|(text, claim)| Asked { text: shortened(text), counts_when_off: claim.is_of(text) });
        Note::Adopted { claim: self.record.anchor.claim_id().to_owned(), asked }
    }

    fn deprovision(&mut self) -> Flow {
        self.wait_out_fault()?;
        self.tidy_up()?;
        match self.goal.disks {
            Disks::Kept => {}
            Disks::Wiped => self.heeded.push(Request::Wiped),
            Disks::MustBeWiped => {
                // Whoever had it need not wait for that.
                self.record.anchor.claim = None;
                self.rest();
                self.wait_for_others(Waiting::Wiping);
                return STOP;
            }
        }
        self.record.anchor.release(self.now());
        let off = self.record.power == PowerState::Off;
        self.record.anchor.powered_on = false;
        self.outdate_power_request(Since::Release);
        self.skip_restart();
        self.record.assumed_booted = false;
        self.record.disarming = None;
        self.advance(Phase::Available, Passage::CleanedUp { off });
        self.await_claim()
    }

    /// How deep to look to see what a release must undo.
    pub(super) fn scope_of_undo(&self) -> Scope {
        scope_of(&self.record.anchor.undo())
    }

    /// Goes on if the server is off and has neither our media nor our override; if not, cleans up.
    fn tidy_up(&mut self) -> Flow {
        if self.runs_without_us() {
            return self.undo(&self.record.anchor.undo());
        }
        let manner = if self.goal.gentle_release { Manner::Soft } else { Manner::Hard };
        self.bring_off_and_undo(&self.record.anchor.undo(), manner)
    }

    /// Goes on if the server is off and nothing of this is left; if not, switches it off and undoes it.
    pub(super) fn bring_off_and_undo(&mut self, undo: &[Undo], manner: Manner) -> Flow {
        let scope = scope_of(undo);
        let seen = self.look_first(scope, Waiting::CleaningUp)?;
        if !self.goal.never_off {
            self.bring_off(seen, manner, scope)?;
        }
        self.undo(undo)
    }

    /// Goes on if nothing of this is left; if not, undoes it. The power stays as it is.
    pub(super) fn undo(&mut self, undo: &[Undo]) -> Flow {
        let (media, boot) = (undo.contains(&Undo::Media), undo.iter().any(|undo| matches!(undo, Undo::Boot(_))));
        let scope = scope_of(undo);
        let seen = self.look_first(scope, Waiting::CleaningUp)?;
        if media {
            self.let_media_settle(scope)?;
        }
        let occupied = media && self.holds_our_image(seen);
        // If the BMC shows no override, it is cleared once, and the result is not checked.
        let armed = boot && seen.boot.as_ref().map_or(self.doing(Deed::CleanUp).is_none(), |boot| !boot.is_clear());
        if !occupied && !armed {
            self.record.media = None;
            self.settle();
            return GO_ON;
        }
        match self.doing(Deed::CleanUp).map(|doing| doing.since) {
            Some(since) if self.now() < pace::later(since, pace::PREPARE_LIMIT) => {
                self.wait_until(Waiting::CleaningUp, pace::later(since, pace::PREPARE_LIMIT));
                self.poll(scope, since);
            }
            Some(_) => self.fail_to_act(Finding::NotCleanedUp { image: occupied })?,
            None => {
                let mut acts = Vec::new();
                if occupied {
                    acts.push(Act::EjectMedia);
                }
                if armed {
                    acts.push(Act::ClearBoot);
                }
                self.act(Deed::CleanUp, acts, scope);
                self.wait(Waiting::CleaningUp, pace::PREPARE_LIMIT);
            }
        }
        STOP
    }

    /// Deletes the host: cleans the server up first, with a limit on tries and time. `elsewhere` is the former address of the
    /// server, if the object names another one now.
    pub(super) fn delete(&mut self, elsewhere: Option<&str>) -> Flow {
        if self.record.phase != Phase::Deleting {
            self.step_aside(Phase::Deleting, Passage::Deleted);
            self.begin_deletion();
        }
        // A host that orders for itself ends that itself.
        if let Some(claim) = self.goal.claim.as_ref().filter(|claim| claim.consumer.is_some()) {
            let waiting = Waiting::Release { consumer: claim.consumer.clone(), author: self.goal.author };
            if elsewhere.is_some() {
                // There is nothing to read: the server at the new address is another one.
                self.again = Some(self.now() + pace::PATIENCE);
            } else if self.wait_out_fault().is_continue() {
                self.rest();
            }
            self.wait_for_others(waiting);
            return STOP;
        }
        let has_waited = self.has_waited_for_consumer();
        // Found once, remembered.
        let released = self.record.anchor.milestone == Milestone::Releasing;
        let verdict = if released { Verdict::Released } else { self.compare_claims()? };
        let anchor = &mut self.record.anchor;
        let deployed = anchor.milestone != Milestone::None && !anchor.adopted;
        // The claimer waits for this: its machine must not be gone before its server is off.
        if matches!(verdict, Verdict::Released) && !deployed {
            anchor.claim = None;
        }
        let is_ours = anchor.powered_on || anchor.is_on_errand();
        if !deployed && (!is_ours || anchor.external) {
            self.finished = true;
            return STOP;
        }
        if let Some(target) = elsewhere {
            self.leave_as_it_is(Neglect::AddressChanged(target.to_owned()));
            self.finished = true;
            return STOP;
        }
        if deployed {
            anchor.milestone = Milestone::Releasing;
        }
        if has_waited {
            self.begin_deletion();
        }
        let limit = pace::later(self.record.since, pace::DELETION_LIMIT);
        self.end_failed_deletion(limit)?;
        if self.wait_out_fault().is_break() {
            self.again = self.again.map(|again| again.min(limit));
            return STOP;
        }
        if self.tidy_up().is_break() {
            return self.end_failed_deletion(limit);
        }
        self.record.anchor.release(self.now());
        self.finished = true;
        STOP
    }

    /// Ends a deletion that has failed too often or for too long. A try that is overdue comes first: the host was paused, or the
    /// operator was down.
    fn end_failed_deletion(&mut self, limit: Timestamp) -> Flow {
        let Some(fault) = self.record.fault.as_ref().filter(|fault| fault.inputs == self.sight.inputs) else {
            return GO_ON;
        };
        let is_overdue = fault.next_try <= self.now() && fault.last < limit;
        if fault.count < pace::DELETION_TRIES && (self.now() < limit || is_overdue) {
            return GO_ON;
        }
        let failure = fault.failure.clone();
        self.leave_as_it_is(Neglect::Failed(failure));
        (self.record.wait, self.look, self.again) = (None, None, None);
        self.finished = true;
        STOP
    }

    /// Whether the last step waited for a decision about the claim.
    fn has_waited_for_consumer(&self) -> bool {
        let is_about_consumer = |wait: &Wait| match wait.what {
            Waiting::CheckingClaimer { .. }
            | Waiting::CheckingConsumer { .. }
            | Waiting::ConsumerLeaving { .. }
            | Waiting::Release { .. } => true,
            Waiting::NextTry(kind) => kind == Kind::ConsumerMismatch,
            _ => false,
        };
        self.wait_before.as_ref().is_some_and(is_about_consumer)
    }

    /// Tries and time of a deletion count from when it may begin. Refused credentials stay refused.
    fn begin_deletion(&mut self) {
        self.record.since = self.now();
        self.drop_act_fault();
        self.try_at_once();
    }

    /// The host is to be released or deleted: the BMC is asked at once, without waiting for the next try.
    fn try_at_once(&mut self) {
        let now = self.now();
        if let Some(fault) = &mut self.record.fault
            && fault.failure.kind.class() != Class::Auth
        {
            fault.count = 0;
            // A failure at this very moment would count as old and be retried without a pause.
            let pause = SignedDuration::from_secs(i64::from(fault.last >= now));
            fault.next_try = now + pause;
        }
    }
}

fn scope_of(undo: &[Undo]) -> Scope {
    if undo.contains(&Undo::Media) { Scope::Boot } else { Scope::Power }
}

fn not_armed(seen: &Seen, plan: &Plan) -> Finding {
    match plan.armed.iter().find(|check| !check.holds(seen)) {
        Some(Check::Image(url)) => Finding::ImageNotShown { image: without_secrets(url) },
        _ => Finding::OverrideNotShown,
    }
}
