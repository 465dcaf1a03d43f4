//! The one function that decides, and what it answers with.

use std::ops::ControlFlow;

use jiff::{SignedDuration, Timestamp};

use super::{
    Anchor, Ask, BmcSight, Cause, Deed, Deletion, Detachment, Doing, Fault, Finding, Goal, Happening, Inquiry,
    Milestone, Moving, Neglect, Note, Origin, OutdatedRequest, Passage, Phase, Recipe, Record, Request, Road, Sight,
    Since, Undo, Wait, Waiting, pace,
};
use crate::{
    failure::{Failure, Kind},
    server::{BootOverride, Scope, Seen},
};

/// Whether a step continues after a part of it, or ends there because the rest has to wait.
pub(super) type Flow<T = ()> = ControlFlow<(), T>;
/// The step continues.
pub(super) const GO_ON: Flow = Flow::Continue(());
/// The step ends here.
pub(super) const STOP: Flow = Flow::Break(());

/// Something to do to a server. Each is idempotent. Whether it worked is shown by the next look, not by the BMC's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Give it power.
    PowerOn,
    /// Ask its operating system to shut down.
    ShutDown,
    /// Cut its power.
    PowerOff,
    /// Restart it, hard.
    Restart,
    /// Put an image into the virtual CD drive.
    InsertMedia {
        /// Where the BMC fetches it.
        url: String,
    },
    /// Empty the virtual CD drives.
    EjectMedia,
    /// Override the boot order.
    SetBoot(BootOverride),
    /// End every override.
    ClearBoot,
}

impl Act {
    /// Its name, for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::PowerOn => "PowerOn",
            Self::ShutDown => "ShutDown",
            Self::PowerOff => "PowerOff",
            Self::Restart => "Restart",
            Self::InsertMedia { .. } => "InsertMedia",
            Self::EjectMedia => "EjectMedia",
            Self::SetBoot(_) => "SetBoot",
            Self::ClearBoot => "ClearBoot",
        }
    }

    /// Whether it changes the power.
    pub fn is_about_power(&self) -> bool {
        matches!(self, Self::PowerOn | Self::ShutDown | Self::PowerOff | Self::Restart)
    }
}

/// What is remembered of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The anchor, or why it cannot be read.
    pub anchor: Result<Option<Anchor>, Failure>,
    /// The record, unless the status was lost.
    pub record: Option<Record>,
    /// What another operator has written down of it. It counts where there is neither anchor nor record, and for a host that was adopted.
    pub proof: Option<Proof>,
}

/// What another operator has written down of a server that we know nothing of. Without it, a host that comes to us with a claim is left as
/// it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing was done for a claim yet: the server may be prepared for one.
    Free,
    /// The server runs what its claim orders now: it is ours to watch, and ours to clean up when the claim ends.
    Deployed,
    /// The server was being cleaned up after a claim: it is ours to go on with that.
    Releasing,
    /// Somebody has looked after the server, and nothing tells what runs on it. It is left as it is, also without a claim.
    InUse,
}

/// What follows. Store `record.anchor`, then `record`, then perform `acts` one after the other, then `look`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "answers that have nothing to do with each other")]
pub struct Step {
    /// The new memory, with the new anchor in it.
    pub record: Record,
    /// What to do now. All of it bears the number `record.acted`.
    pub acts: Vec<Act>,
    /// Why that is done, and who asked for it.
    pub cause: Option<Cause>,
    /// How deep to look after the acts, or now if there are none.
    pub look: Option<Scope>,
    /// When to take the next step, if nothing happens before.
    pub again: Option<Timestamp>,
    /// A permission that is needed to go on.
    pub ask: Option<Ask>,
    /// Whose existence has to be looked up for the next step.
    pub inquire: Option<Inquiry>,
    /// Whether to remove the claim from the object, because its claimer does not exist and nothing was done for it. Then nothing
    /// else is to be done.
    pub unclaim: bool,
    /// Requests that are carried out with this step. They are removed from the object in the same write as the anchor.
    pub heeded: Vec<Request>,
    /// Whether a different server answered than the one that was registered: what was seen is not about this host.
    pub stranger: bool,
    /// Whether the anchor on the object must not be overwritten: it cannot be read, or somebody has edited it.
    pub leave_anchor: bool,
    /// Whether nothing was decided yet, because a look is missing: there is nothing to store.
    pub undecided: bool,
    /// Whether the host is done with: its finalizer can be removed.
    pub finished: bool,
    /// Information for the owner that is neither a fault nor a wait.
    pub notes: Vec<Note>,
    /// What just happened and is worth an event.
    pub events: Vec<Happening>,
    /// What just happened, for the timeline, oldest first.
    pub moments: Vec<Moment>,
}

/// Something that happened, for the timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// The phase that the host was in from then on.
    pub phase: Phase,
    /// What.
    pub what: Happening,
}

/// Decides what follows from what is wanted, remembered and seen. Total and pure.
pub fn step(goal: &Goal, remembered: Remembered, sight: &Sight) -> Step {
    let mut scene = Scene::open(goal, remembered, sight);
    // Wherever the step ended, its result is in the scene.
    let (Flow::Continue(()) | Flow::Break(())) = scene.play();
    scene.close()
}

/// Which server was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// The one that was registered, as far as we can tell.
    Registered,
    /// Another one.
    Another,
    /// Another one, and the owner has requested an inspection.
    Replacement,
}

/// A step in the making.
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct Scene<'a> {
    pub(super) goal: &'a Goal,
    pub(super) sight: &'a Sight,
    pub(super) record: Record,
    pub(super) proof: Option<Proof>,
    anchor_before: Anchor,
    unreadable: Option<Failure>,
    /// The fault of the object as of the last step. It is found again in this step, or it is over.
    pub(super) object_fault_before: Option<Fault>,
    pub(super) wait_before: Option<Wait>,
    /// Whether the record was lost, and is rebuilt from the anchor in this step.
    pub(super) is_rebuilt: bool,
    pub(super) answers: Answers,
    pub(super) acts: Vec<Act>,
    /// Whether the next start follows the recipe.
    pub(super) is_armed: bool,
    cause: Option<Cause>,
    pub(super) look: Option<Scope>,
    pub(super) again: Option<Timestamp>,
    pub(super) ask: Option<Ask>,
    pub(super) inquire: Option<Inquiry>,
    pub(super) unclaim: bool,
    pub(super) heeded: Vec<Request>,
    pub(super) undecided: bool,
    pub(super) finished: bool,
    notes: Vec<Note>,
    events: Vec<Happening>,
    moments: Vec<Moment>,
}

impl<'a> Scene<'a> {
    fn open(goal: &'a Goal, remembered: Remembered, sight: &'a Sight) -> Self {
        let now = sight.now;
        let lost = remembered.record.is_none();
        let (anchor, unreadable) = match remembered.anchor {
            Ok(anchor) => (anchor, None),
            Err(failure) => (None, Some(failure)),
        };
        let edited = anchor.as_ref().zip(remembered.record.as_ref());
        let edited = edited.and_then(|(anchor, record)| anchor.contradicts(&record.anchor));
        let anchor = anchor.filter(|_| edited.is_none()).map(|anchor| match &remembered.record {
            Some(record) => anchor.settled(&record.anchor),
            None => anchor,
        });
        let unreadable = unreadable.or(edited);
        let unknown = anchor.is_none() && lost;
        let mut record = match (anchor, remembered.record) {
            (anchor, None) => Record::from_anchor(anchor.unwrap_or_default(), now),
            // The anchor is stored first, so after a crash it is one ahead. An older one was restored from an old copy of the
            // object and is ignored.
            (Some(anchor), Some(record)) if anchor.seq > record.anchor.seq => catch_up(record, anchor),
            (_, Some(record)) => record,
        };
        let anchor_before = record.anchor.clone();
        let mut events = Vec::new();
        if unreadable.is_some() && record.anchor.seq == 0 {
            // Nothing is known yet. Whatever happens to the annotation, a host in use must not look free.
            record.anchor = adopted_anchor(goal, None).unwrap_or(record.anchor);
        } else if unknown && let Some(adopted) = adopted_anchor(goal, remembered.proof) {
            record.anchor = adopted;
            // It may have been given power a moment ago.
            record.started = Some(now);
            let claim = record.anchor.claim_id().to_owned();
            let is_ours = !record.anchor.adopted;
            events.push(if is_ours { Happening::TakenOver { claim } } else { Happening::Adopted { claim } });
        } else if record.anchor.adopted && unreadable.is_none() && record.anchor.heed_proof(goal, remembered.proof, now)
        {
            record.doing = None;
            let claim = record.anchor.claim_id().to_owned();
            events.push(Happening::TakenOver { claim });
        }
        if lost {
            // Whether the restart was carried out is not known. A missing restart does less harm than a second one. But a server
            // that was switched off for it is switched on again.
            record.rebooted = goal.reboot.clone().filter(|_| record.anchor.restarting != goal.reboot);
        }
        record.anchor.forget_other_requests(goal.power_request().as_ref());
        record.align(now);
        record.bound_times(now);
        // Numbers of acts are never used twice, even after a lost status: a sight must not look newer than it is.
        record.acted = record.acted.max(sight.bmc.as_ref().map_or(0, |bmc| bmc.after));
        let object_fault_before = record.fault.take_if(|fault| fault.origin == Origin::Object);
        if record.fault.is_none() {
            record.fault = record.beneath.take();
        }
        let wait_before = record.wait.take();
        Self {
            goal,
            sight,
            proof: remembered.proof,
            anchor_before,
            record,
            unreadable,
            object_fault_before,
            wait_before,
            is_rebuilt: lost,
            answers: Answers::Registered,
            acts: Vec::new(),
            is_armed: false,
            cause: None,
            look: None,
            again: None,
            ask: None,
            inquire: None,
            unclaim: false,
            heeded: Vec::new(),
            undecided: false,
            finished: false,
            notes: Vec::new(),
            events,
            moments: Vec::new(),
        }
    }

    fn play(&mut self) -> Flow {
        if let Road::Delete(manner) = self.goal.road
            && self.is_to_be_forgotten(manner)
        {
            return self.forget_at_once(manner);
        }
        if let Some(failure) = self.unreadable.clone() {
            return self.object_fault(failure);
        }
        if let Road::Detach(when) = self.goal.road
            && self.may_detach(when)
        {
            return self.detach();
        }
        if let Some(rival) = &self.sight.rival {
            return self.give_way(&rival.clone());
        }
        if let Some(target) = self.former_target() {
            return self.lose_sight_of(&target);
        }
        self.observe();
        self.await_sight()?;
        match self.goal.road {
            Road::Delete(_) => self.delete(None),
            Road::Park => self.park(false),
            Road::ParkOff if self.is_at_rest() => self.park(true),
            Road::Lend if self.is_at_rest() => self.lend(),
            Road::Manage | Road::ParkOff | Road::Lend | Road::Detach(_) => self.manage(),
        }
    }

    fn close(mut self) -> Step {
        if self.object_fault_before.is_some() && self.record.fault.is_none() {
            self.events.push(Happening::ObjectPutRight);
        }
        if self.record.phase.is_aside() {
            self.record.left = Some(self.record.anchor.phase(self.record.inspected));
        }
        if self.record.anchor != self.anchor_before && self.unreadable.is_none() {
            self.record.anchor.seq = self.anchor_before.seq.saturating_add(1);
            self.record.anchor.version = Anchor::VERSION;
        }
        self.tell_outdated_request();
        // A look that is never answered is taken again: its process may be gone.
        if self.look.is_some() && self.again.is_none() {
            self.again = Some(pace::later(self.now(), pace::LOOK_LIMIT));
        }
        // What has happened so far must be stored, or it would happen again.
        let undecided = self.undecided && self.events.is_empty() && self.record.anchor == self.anchor_before;
        Step {
            record: self.record,
            acts: self.acts,
            cause: self.cause,
            look: self.look,
            again: self.again,
            ask: self.ask,
            inquire: self.inquire,
            unclaim: self.unclaim,
            heeded: self.heeded,
            stranger: self.answers == Answers::Another,
            leave_anchor: self.unreadable.is_some(),
            undecided,
            finished: self.finished,
            notes: self.notes,
            events: self.events,
            moments: self.moments,
        }
    }

    /// Whether the host is deleted without a look at its server.
    fn is_to_be_forgotten(&self, manner: Deletion) -> bool {
        match manner {
            Deletion::Move | Deletion::Force => true,
            Deletion::Detached(when) => self.may_detach(when),
            Deletion::CleanUp => false,
        }
    }

    /// Whether nothing is under way that keeps the host from being detached.
    fn may_detach(&self, when: Detachment) -> bool {
        let phase = self.record.phase;
        when == Detachment::AtOnce || matches!(phase, Phase::Available | Phase::Provisioned | Phase::Detached)
    }

    fn forget_at_once(&mut self, manner: Deletion) -> Flow {
        match manner {
            Deletion::Force => self.events.push(Happening::ForcedDeletion),
            Deletion::Detached(_) if self.record.anchor.is_in_use() || self.record.anchor.powered_on => {
                self.leave_as_it_is(Neglect::Detached);
            }
            Deletion::Detached(_) | Deletion::Move | Deletion::CleanUp => {}
        }
        self.finished = true;
        STOP
    }

    fn give_way(&mut self, rival: &str) -> Flow {
        if matches!(self.goal.road, Road::Delete(_)) {
            if self.record.anchor.milestone != Milestone::None && !self.record.anchor.adopted {
                self.leave_as_it_is(Neglect::Rival(rival.to_owned()));
            }
            self.finished = true;
            return STOP;
        }
        self.again = Some(self.now() + pace::CONSUMER_AGAIN);
        self.object_fault(Finding::DuplicateHost { rival: rival.to_owned() })
    }

    // Building blocks of the phases.

    /// Whether the server became free in this very step. Derived from the time, so that repeating the step gives the same result.
    pub(super) fn has_just_become_free(&self) -> bool {
        self.record.anchor.free_since == Some(self.now())
    }

    pub(super) fn now(&self) -> Timestamp {
        self.sight.now
    }

    fn current_sight(&self) -> Option<&'a BmcSight> {
        self.sight.bmc.as_ref().filter(|bmc| bmc.inputs == self.sight.inputs)
    }

    /// The last look, if it was taken since the last act.
    pub(super) fn latest_sight(&self) -> Option<&'a BmcSight> {
        self.current_sight().filter(|bmc| bmc.after >= self.record.acted)
    }

    /// Whether a look is newer than the present fault.
    pub(super) fn is_news(&self, bmc: &BmcSight) -> bool {
        self.record.fault.as_ref().is_none_or(|fault| fault.inputs != bmc.inputs || bmc.at > fault.last)
    }

    /// The last good look since the last act, however long ago.
    pub(super) fn glance(&self) -> Option<&'a Seen> {
        self.latest_sight().filter(|_| self.answers != Answers::Another)?.seen.as_ref().ok()
    }

    /// A good look that may be acted on: since the last act and the last fault, and not long ago.
    pub(super) fn seen(&self, scope: Scope) -> Option<&'a Seen> {
        let bmc = self.latest_sight()?;
        let seen = self.glance()?;
        let deep = match scope {
            Scope::Power => true,
            Scope::Boot => seen.media.is_some(),
            Scope::Inventory => seen.hardware.is_some(),
            Scope::Service => seen.service.is_some(),
        };
        (deep && self.is_news(bmc) && self.now().duration_since(bmc.at) <= pace::SIGHT_AGE).then_some(seen)
    }

    /// What was seen of the server, if it is recent enough to act on; otherwise looks, and waits for that.
    pub(super) fn look_first(&mut self, scope: Scope, waiting: Waiting) -> Flow<&'a Seen> {
        if let Some(seen) = self.seen(scope) {
            return Flow::Continue(seen);
        }
        self.look(scope, waiting);
        Flow::Break(())
    }

    /// Looks now, and waits for it.
    fn look(&mut self, scope: Scope, waiting: Waiting) {
        self.look = Some(scope);
        if self.keep_waiting_for_fault() || self.keep_waiting_through_look() {
            return;
        }
        // The operator was down, or the look was answered and requested again: a new wait begins.
        self.wait_before.take_if(|wait| self.sight.now >= pace::later(wait.since, pace::LOOK_LIMIT));
        self.wait(waiting, pace::LOOK_LIMIT);
    }

    /// Looks again soon, because something has been in progress since `since`.
    pub(super) fn poll(&mut self, scope: Scope, since: Timestamp) {
        let elapsed = self.now().duration_since(since);
        let at = self.current_sight().map_or(self.now(), |bmc| pace::later(bmc.at, pace::poll(elapsed)));
        if at <= self.now() {
            self.look = Some(scope);
        } else {
            self.again = Some(at);
        }
    }

    /// Nothing to do: looks from time to time.
    pub(super) fn rest(&mut self) {
        let next = |last| pace::rest(last, self.goal.turn, self.sight.spread);
        match self.latest_sight().filter(|bmc| bmc.seen.is_ok()).map(|bmc| next(bmc.at)) {
            Some(next) if self.now() < next => self.again = Some(next),
            _ => {
                self.look = Some(self.scope_at_rest());
                self.keep_waiting_for_fault();
            }
        }
    }

    /// This look interrupts a wait for somebody else: the time of that wait continues to count.
    fn keep_waiting_through_look(&mut self) -> bool {
        let outlasts = |wait: &mut Wait| matches!(wait.what, Waiting::FleetBrake { .. } | Waiting::BootOverrideUnused);
        let now = self.now();
        let waited = self.wait_before.take_if(|wait| outlasts(wait) && now < wait.deadline);
        let waits = waited.is_some();
        if waits {
            self.record.wait = waited;
        }
        waits
    }

    /// A try at its announced time is no news; its result is.
    fn keep_waiting_for_fault(&mut self) -> bool {
        let next_try = self.record.fault.as_ref().map(|fault| Waiting::NextTry(fault.failure.kind));
        let waited = next_try.is_some_and(|next_try| self.waited_for(&next_try));
        if waited && self.record.wait.is_none() {
            self.record.wait = self.wait_before.take();
        }
        waited
    }

    /// Acts, and looks at the effect. What is stored with this step explains the act.
    pub(super) fn act(&mut self, deed: Deed, acts: Vec<Act>, scope: Scope) {
        let now = self.now();
        let is_first = self.doing(deed).is_none();
        let first = self.doing(deed).map_or(now, |doing| doing.first);
        self.record.acted = self.record.acted.saturating_add(1);
        self.record.doing = Some(Doing { what: deed, since: now, first });
        if acts.iter().any(|act| matches!(act, Act::PowerOn | Act::Restart)) {
            self.record.started = Some(now);
            // An act that is repeated is still about the same start.
            if is_first || self.is_armed {
                self.record.boot_begun = self.is_armed.then_some(now);
            }
        } else if acts.contains(&Act::PowerOff) {
            self.record.started = None;
        }
        let inserts = acts.iter().any(|act| matches!(act, Act::InsertMedia { .. }));
        if inserts || acts.contains(&Act::EjectMedia) {
            self.record.media = Some(Moving { since: now, act: Some(self.record.acted), inserts });
        }
        let cause = self.cause(deed);
        let what = Happening::Acting { acts: acts.clone(), cause: cause.clone(), again: !is_first };
        if is_first && acts.iter().any(Act::is_about_power) {
            self.events.push(what.clone());
        }
        self.remember(what);
        self.cause = Some(cause);
        self.acts = acts;
        self.look = Some(scope);
    }

    pub(super) fn doing(&self, deed: Deed) -> Option<&Doing> {
        self.record.doing.as_ref().filter(|doing| doing.what == deed)
    }

    /// The goal of the act is reached. The fault of an ignored boot ends only when a boot is not ignored, and that of a silent probe when
    /// one reports.
    pub(super) fn settle(&mut self) {
        self.record.doing = None;
        let outlasts = |kind| matches!(kind, Kind::BootIgnored | Kind::ProbeSilent);
        let act = |fault: &Fault| fault.origin == Origin::Act && !outlasts(fault.failure.kind);
        if self.record.fault.as_ref().is_some_and(act) {
            self.recover();
        }
    }

    /// Drops a fault in acting, because something else is to be done.
    pub(super) fn drop_act_fault(&mut self) {
        self.record.fault.take_if(|fault| fault.origin == Origin::Act);
    }

    pub(super) fn advance(&mut self, phase: Phase, why: Passage) {
        self.record.phase = phase;
        self.record.since = self.now();
        self.tell(Happening::Entered(phase, why));
    }

    pub(super) fn wait(&mut self, what: Waiting, limit: SignedDuration) {
        let deadline = pace::later(self.waiting_since(&what), limit);
        self.wait_until(what, deadline);
    }

    pub(super) fn wait_until(&mut self, what: Waiting, deadline: Timestamp) {
        let since = self.waiting_since(&what);
        self.record.wait = Some(Wait { what, since, deadline });
    }

    /// Since when the host waits for that.
    pub(super) fn waiting_since(&self, what: &Waiting) -> Timestamp {
        self.wait_before.as_ref().filter(|wait| wait.what.is_like(what)).map_or(self.now(), |wait| wait.since)
    }

    /// Whether the last step waited for that.
    pub(super) fn waited_for(&self, what: &Waiting) -> bool {
        self.wait_before.as_ref().is_some_and(|wait| wait.what.is_like(what))
    }

    /// Waits for somebody else. Such a wait cannot fail; a reminder is sent from time to time.
    pub(super) fn wait_for_others(&mut self, what: Waiting) {
        debug_assert!(Waiting::FOR_OTHERS.contains(&what.name()), "{}", what.name());
        self.wait_with_reminder(what.clone(), Happening::StillWaiting(what));
    }

    /// Waits for somebody else, and sends a reminder from time to time.
    pub(super) fn wait_with_reminder(&mut self, what: Waiting, reminder: Happening) {
        if self.now() >= pace::later(self.waiting_since(&what), pace::PATIENCE) {
            self.wait_before = None;
            self.events.push(reminder);
        }
        self.wait(what, pace::PATIENCE);
    }

    /// Goes on if the fleet brake allows it; otherwise waits for it.
    pub(super) fn ask_brake(&mut self, ask: Ask) -> Flow {
        if self.sight.granted.contains(&ask) {
            return GO_ON;
        }
        self.ask = Some(ask);
        let soon = self.now() + SignedDuration::from_secs(1);
        let hold = self.sight.hold.as_ref();
        self.again = Some(hold.map_or(soon, |hold| hold.until.max(soon)));
        self.wait_for_others(Waiting::FleetBrake { limit: hold.map(|hold| hold.limit.clone()) });
        STOP
    }

    /// The host is deleted without having been cleaned up.
    pub(super) fn leave_as_it_is(&mut self, why: Neglect) {
        self.events.push(Happening::LeftAsItIs(why));
    }

    pub(super) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    /// Sends an event, and adds it to the timeline.
    pub(super) fn tell(&mut self, what: Happening) {
        self.events.push(what.clone());
        self.remember(what);
    }

    /// Sends an event.
    pub(super) fn announce(&mut self, what: Happening) {
        self.events.push(what);
    }

    /// Adds an entry to the timeline.
    pub(super) fn remember(&mut self, what: Happening) {
        self.remember_at(self.now(), what);
    }

    /// Adds an entry with that time.
    pub(super) fn remember_at(&mut self, at: Timestamp, what: Happening) {
        self.moments.push(Moment { at, phase: self.record.phase, what });
    }
}

/// The anchor of a host of which nothing is known, if it is or may be in use.
fn adopted_anchor(goal: &Goal, proof: Option<Proof>) -> Option<Anchor> {
    let external = goal.claim.is_none() && proof == Some(Proof::InUse);
    let releasing = proof == Some(Proof::Releasing);
    if proof == Some(Proof::Free) || (goal.claim.is_none() && !external && !releasing) {
        return None;
    }
    let mut anchor = Anchor {
        claim: goal.claim.clone().filter(|_| !releasing),
        deployment: goal.order.as_ref().map(|order| order.deployment.clone()).filter(|_| !releasing),
        milestone: Milestone::Provisioned,
        adopted: true,
        external,
        // When it was made is unknown, so it must not switch the server off.
        outdated: goal.power_request().map(|request| OutdatedRequest { request, since: Since::Claim }),
        ..Anchor::default()
    };
    match proof {
        Some(Proof::Deployed) => anchor.take_over(&undo_of(goal)),
        Some(Proof::Releasing) => {
            anchor.take_over(&undo_of(goal));
            anchor.milestone = Milestone::Releasing;
        }
        Some(Proof::Free | Proof::InUse) | None => {}
    }
    Some(anchor)
}

/// What an order leaves behind that is carried out now. What was done for it is not known in every detail, and later starts may boot
/// the same again.
fn undo_of(goal: &Goal) -> Vec<Undo> {
    let recipe = goal.order.as_ref().and_then(|order| order.recipe.as_ref().ok());
    recipe.map(Recipe::undo).unwrap_or_default()
}

impl Anchor {
    /// An adopted host learns what runs on its server. Answers whether that changes anything.
    fn heed_proof(&mut self, goal: &Goal, proof: Option<Proof>, now: Timestamp) -> bool {
        let is_same = self.claim.is_some() && self.claim == goal.claim;
        match proof {
            Some(Proof::Free) if !goal.external => self.release(now),
            Some(Proof::Deployed) if is_same => self.take_over(&undo_of(goal)),
            Some(Proof::Releasing) if !goal.external => {
                self.take_over(&undo_of(goal));
                (self.claim, self.deployment, self.external) = (None, None, false);
                self.milestone = Milestone::Releasing;
            }
            _ => return false,
        }
        true
    }
}

/// The record after a crash between storing the anchor and storing the status.
fn catch_up(mut record: Record, anchor: Anchor) -> Record {
    let same = anchor.claim == record.anchor.claim && anchor.deployment == record.anchor.deployment;
    if !same {
        record.fault.take_if(|fault| fault.origin == Origin::Act);
    }
    // What was decided together with this anchor was not performed.
    record.doing = None;
    record.anchor = anchor;
    record
}
