//! The one function that decides, and what it answers with.

use jiff::{SignedDuration, Timestamp};

use super::{
    Anchor, Ask, BmcSight, Cause, Deed, Doing, Farewell, Fault, Goal, Inquiry, Milestone, Moving, Origin,
    OutdatedRequest, Phase, Record, Request, Road, Sight, Since, Wait, cause::told, pace,
};
use crate::{
    failure::{Failure, Kind},
    server::{BootOverride, Scope, Seen},
};

/// Something to do to a server. Each is idempotent; whether it worked is seen at the next look, not by its answer.
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
}

/// What is remembered of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The anchor, or why it cannot be read.
    pub anchor: Result<Option<Anchor>, Failure>,
    /// The record, unless the status was lost.
    pub record: Option<Record>,
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
    /// Whose whereabouts the next step needs to know.
    pub inquire: Option<Inquiry>,
    /// Whether the claim on the object is to be taken off: its claimer does not exist, and nothing was done for it. Then
    /// nothing else is to be done.
    pub unclaim: bool,
    /// Requests that are carried out with this step: they are taken off the object together with storing the anchor.
    pub heeded: Vec<Request>,
    /// Whether another server answered than the one that was registered: nothing of it is this host's.
    pub stranger: bool,
    /// Whether the anchor on the object is not ours to overwrite: it cannot be read, or somebody has edited it.
    pub leave_anchor: bool,
    /// Whether nothing was decided yet, for want of a look: there is nothing to store.
    pub undecided: bool,
    /// Whether the host can be forgotten.
    pub finished: bool,
    /// Things the owner should know that are neither fault nor wait.
    pub notes: Vec<Note>,
    /// What just happened.
    pub events: Vec<Event>,
}

/// Something the owner should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub kind: NoteKind,
    /// The sentence.
    pub message: String,
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// The host came to us in use and is left as it is.
    Adopted,
    /// The order was changed after it had been carried out.
    OrderChanged,
    /// The power is not as spec.online says, which was said before the host was claimed or released.
    PowerRequestOutdated,
}

/// Something that just happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a warning.
    pub warning: bool,
    /// CamelCase reason.
    pub reason: &'static str,
    /// The sentence.
    pub message: String,
}

/// Decides what follows from what is wanted, remembered and seen. Total and pure.
pub fn step(goal: &Goal, remembered: Remembered, sight: &Sight) -> Step {
    let mut scene = Scene::open(goal, remembered, sight);
    scene.play();
    scene.close()
}

/// Which server was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// The one that was registered, as far as we can tell.
    Registered,
    /// Another one.
    Another,
    /// Another one, and the owner wants it to be inspected.
    Replacement,
}

/// A step in the making.
#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
pub(super) struct Scene<'a> {
    pub(super) goal: &'a Goal,
    pub(super) sight: &'a Sight,
    pub(super) record: Record,
    anchor_before: Anchor,
    unreadable: Option<Failure>,
    /// The fault that the object itself caused, as of the last step: it is found anew or it is gone.
    pub(super) object_fault_before: Option<Fault>,
    pub(super) wait_before: Option<Wait>,
    /// Whether the record was lost, and is rebuilt from the anchor in this step.
    pub(super) is_rebuilt: bool,
    pub(super) answers: Answers,
    pub(super) acts: Vec<Act>,
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
    events: Vec<Event>,
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
            // The anchor is stored first, so after a crash it is one ahead. One that is behind was brought back by
            // somebody from an old copy of the object, and is not believed.
            (Some(anchor), Some(record)) if anchor.seq > record.anchor.seq => catch_up(record, anchor),
            (_, Some(record)) => record,
        };
        let anchor_before = record.anchor.clone();
        let mut events = Vec::new();
        if unreadable.is_some() && record.anchor.seq == 0 {
            // We know nothing yet. Whatever becomes of the annotation, a host in use must not pass for a free one.
            record.anchor = adopted_anchor(goal).unwrap_or(record.anchor);
        } else if unknown && let Some(adopted) = adopted_anchor(goal) {
            record.anchor = adopted;
            // For all we know it was given power a moment ago.
            record.started = Some(now);
            events.push(Event { warning: false, reason: "Adopted", message: adopted_note(&record.anchor) });
        }
        if lost {
            // Whether it was carried out is forgotten. A restart that does not come hurts less than a second one.
            record.rebooted.clone_from(&goal.reboot);
        }
        record.anchor.forget_other_requests(goal.power_request().as_ref());
        record.align(now);
        record.bound_times(now);
        // Numbers of acts are never used twice, also not after a lost status: a sight must not look newer than it is.
        record.acted = record.acted.max(sight.bmc.as_ref().map_or(0, |bmc| bmc.after));
        let object_fault_before = record.fault.take_if(|fault| fault.origin == Origin::Object);
        if record.fault.is_none() {
            record.fault = record.beneath.take();
        }
        let wait_before = record.wait.take();
        Self {
            goal,
            sight,
            anchor_before,
            record,
            unreadable,
            object_fault_before,
            wait_before,
            is_rebuilt: lost,
            answers: Answers::Registered,
            acts: Vec::new(),
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
        }
    }

    fn play(&mut self) {
        if let Road::Delete(farewell @ (Farewell::Move | Farewell::Force)) = self.goal.road {
            return self.part_at_once(farewell);
        }
        if let Some(failure) = self.unreadable.clone() {
            return self.object_fault(failure);
        }
        if self.goal.road == Road::Detach {
            return self.detach();
        }
        if let Some(rival) = &self.sight.rival {
            return self.give_way(&rival.clone());
        }
        if let Some(target) = self.former_target() {
            return self.lost_sight_of(&target);
        }
        self.observe();
        if self.awaits_sight() {
            return;
        }
        match self.goal.road {
            Road::Delete(_) => self.farewell(None),
            Road::Park => self.park(),
            Road::Quarantine => self.quarantine(),
            Road::Manage | Road::Detach => self.manage(),
        }
    }

    fn close(mut self) -> Step {
        if self.object_fault_before.is_some() && self.record.fault.is_none() {
            self.event(false, "Recovered", "What was wrong with the object has been put right.");
        }
        if self.record.phase.is_aside() {
            self.record.left = Some(self.record.anchor.phase(self.record.inspected));
        }
        if self.record.anchor != self.anchor_before && self.unreadable.is_none() {
            self.record.anchor.seq = self.anchor_before.seq.saturating_add(1);
            self.record.anchor.version = Anchor::VERSION;
        }
        self.tell_outdated_request();
        // A look that is never answered is taken again: the one who took it may be gone.
        if self.look.is_some() && self.again.is_none() {
            self.again = Some(pace::later(self.now(), pace::LOOK_LIMIT));
        }
        // What has happened on the way to here must be stored, or it would happen again.
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
        }
    }

    fn part_at_once(&mut self, farewell: Farewell) {
        if farewell == Farewell::Force {
            self.event(true, "ForcedDeletion", "Forgotten by force; the server was left as it is.");
        }
        self.finished = true;
    }

    fn give_way(&mut self, rival: &str) {
        if matches!(self.goal.road, Road::Delete(_)) {
            if self.record.anchor.milestone != Milestone::None && !self.record.anchor.adopted {
                self.left_as_it_is(&format!("{rival} names the same one and was there first."));
            }
            self.finished = true;
            return;
        }
        self.again = Some(self.now() + pace::CONSUMER_AGAIN);
        self.object_fault(Failure::new(
            Kind::DuplicateHost,
            format!("{rival} names the same BMC and system and was there first. Delete one of the two, or set spec.redfishConnection.systemID if the BMC has several systems."),
        ));
    }

    // What the phases build with.

    /// Whether the server became free in this very step. Told by the time, so that the same step answers the same again.
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
        };
        (deep && self.is_news(bmc) && self.now().duration_since(bmc.at) <= pace::SIGHT_AGE).then_some(seen)
    }

    /// Looks now, and waits for it.
    pub(super) fn look(&mut self, scope: Scope, reason: &'static str, message: &str) {
        self.look = Some(scope);
        if self.keep_waiting_for_fault() {
            return;
        }
        // We were away, or the look was answered and asked for again: a new wait begins.
        self.wait_before.take_if(|wait| self.sight.now >= pace::later(wait.since, pace::LOOK_LIMIT));
        self.wait(reason, message, pace::LOOK_LIMIT);
    }

    /// Looks again soon, because something is under way since `since`.
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
        let interval = pace::rest(self.sight.spread);
        match self.latest_sight().filter(|bmc| bmc.seen.is_ok()).map(|bmc| pace::later(bmc.at, interval)) {
            Some(next) if self.now() < next => self.again = Some(next),
            _ => {
                self.look = Some(self.scope_at_rest());
                self.keep_waiting_for_fault();
            }
        }
    }

    /// A try that comes when it was announced is nothing new to tell: what it brings is.
    fn keep_waiting_for_fault(&mut self) -> bool {
        let reason = self.record.fault.as_ref().map(|fault| fault.failure.kind.reason());
        let waited = reason.is_some_and(|reason| self.waited_for(reason));
        if waited && self.record.wait.is_none() {
            self.record.wait = self.wait_before.take();
        }
        waited
    }

    /// Acts, and looks at what came of it. What is stored with this step is the reason for the act.
    pub(super) fn act(&mut self, deed: Deed, acts: Vec<Act>, scope: Scope) {
        let now = self.now();
        let is_first = self.doing(deed).is_none();
        let first = self.doing(deed).map_or(now, |doing| doing.first);
        self.record.acted = self.record.acted.saturating_add(1);
        self.record.doing = Some(Doing { what: deed, since: now, first });
        if acts.iter().any(|act| matches!(act, Act::PowerOn | Act::Restart)) {
            self.record.started = Some(now);
        } else if acts.contains(&Act::PowerOff) {
            self.record.started = None;
        }
        let inserts = acts.iter().any(|act| matches!(act, Act::InsertMedia { .. }));
        if inserts || acts.contains(&Act::EjectMedia) {
            self.record.media = Some(Moving { since: now, act: Some(self.record.acted), inserts });
        }
        let cause = self.cause(deed);
        let message = told(&acts, &cause);
        if let Some(act) = acts.iter().find(|act| act.is_about_power() && is_first) {
            self.event(false, act.name(), &message);
        }
        self.record.note(now, message);
        self.cause = Some(cause);
        self.acts = acts;
        self.look = Some(scope);
    }

    pub(super) fn doing(&self, deed: Deed) -> Option<&Doing> {
        self.record.doing.as_ref().filter(|doing| doing.what == deed)
    }

    /// What was to be reached is reached. That a boot was ignored is over only when one is not.
    pub(super) fn settle(&mut self) {
        self.record.doing = None;
        let act = |fault: &Fault| fault.origin == Origin::Act && fault.failure.kind != Kind::BootIgnored;
        if self.record.fault.as_ref().is_some_and(act) {
            self.recovered();
        }
    }

    /// The fault in acting is of no interest any more, because something else is to be done.
    pub(super) fn drop_act_fault(&mut self) {
        self.record.fault.take_if(|fault| fault.origin == Origin::Act);
    }

    pub(super) fn advance(&mut self, phase: Phase, message: &str) {
        self.record.phase = phase;
        self.record.since = self.now();
        self.record.note(self.now(), message);
        self.event(false, phase.as_str(), message);
    }

    pub(super) fn wait(&mut self, reason: &'static str, message: &str, limit: SignedDuration) {
        let since = self.waiting_since(reason);
        self.wait_until(reason, message, pace::later(since, limit));
    }

    pub(super) fn wait_until(&mut self, reason: &'static str, message: &str, deadline: Timestamp) {
        let since = self.waiting_since(reason);
        self.record.wait = Some(Wait { reason: reason.into(), message: message.into(), since, deadline });
    }

    /// Since when we wait for that.
    pub(super) fn waiting_since(&self, reason: &str) -> Timestamp {
        if self.waited_for(reason) {
            self.wait_before.as_ref().map_or(self.now(), |wait| wait.since)
        } else {
            self.now()
        }
    }

    /// Whether the last step waited for that.
    pub(super) fn waited_for(&self, reason: &str) -> bool {
        self.wait_before.as_ref().is_some_and(|wait| wait.reason == reason)
    }

    /// Waits for somebody else. Such a wait cannot fail; it is brought up again from time to time.
    pub(super) fn wait_for_others(&mut self, reason: &'static str, message: &str) {
        let since = self.waiting_since(reason);
        if self.now() >= pace::later(since, pace::PATIENCE) {
            self.wait_before = None;
            self.event(true, "StillWaiting", message);
        }
        self.wait(reason, message, pace::PATIENCE);
    }

    /// Whether the fleet brake lets us; if not, waits for it.
    pub(super) fn permitted(&mut self, ask: Ask) -> bool {
        if self.sight.granted.contains(&ask) {
            return true;
        }
        self.ask = Some(ask);
        let soon = self.now() + SignedDuration::from_secs(1);
        let (message, again) = match &self.sight.held {
            Some(held) => (held.message.clone(), held.until.max(soon)),
            None => ("Waiting for the fleet brake.".to_owned(), soon),
        };
        self.again = Some(again);
        self.wait_for_others(FLEET_BRAKE, &message);
        false
    }

    /// The host is let go of without having been cleaned up.
    pub(super) fn left_as_it_is(&mut self, why: &str) {
        let message = format!("Forgotten although the server could not be cleaned up: {why}");
        self.event(true, "LeftAsItIs", &message);
    }

    pub(super) fn note(&mut self, kind: NoteKind, message: impl Into<String>) {
        self.notes.push(Note { kind, message: message.into() });
    }

    pub(super) fn event(&mut self, warning: bool, reason: &'static str, message: &str) {
        self.events.push(Event { warning, reason, message: message.into() });
    }
}

/// What a step waits for that the fleet brake holds.
pub(super) const FLEET_BRAKE: &str = "FleetBrake";

/// What is said of a host that came to us in use.
pub(super) fn adopted_note(anchor: &Anchor) -> String {
    let id = anchor.claim.as_ref().map_or("", |claim| claim.id.as_str());
    format!(
        "The host was created with a claim on it, so it is taken to be in use and is left as it is. To have it provisioned, annotate the host with beskar7.io/provision={id}, which is the id of the claim."
    )
}

/// The anchor of a host in use of which we know nothing.
fn adopted_anchor(goal: &Goal) -> Option<Anchor> {
    let claim = goal.claim.clone()?;
    Some(Anchor {
        claim: Some(claim),
        deployment: goal.order.as_ref().map(|order| order.deployment.clone()),
        milestone: Milestone::Provisioned,
        adopted: true,
        // Nobody knows when it was made, so it turns nobody's server off.
        outdated: goal.power_request().map(|request| OutdatedRequest { request, since: Since::Claim }),
        ..Anchor::default()
    })
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
