//! The one function that decides, and what it answers with.

use jiff::{SignedDuration, Timestamp};

use super::{
    Anchor, Ask, AuthHold, BmcSight, Deed, Doing, Farewell, Fault, Goal, Milestone, Origin, Phase, Record, Road, Sight,
    Wait, pace,
};
use crate::{
    failure::{Class, Failure, Kind},
    server::{BootOverride, PowerState, Scope, Seen},
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
pub struct Step {
    /// The new memory, with the new anchor in it.
    pub record: Record,
    /// What to do now. All of it bears the number `record.acted`.
    pub acts: Vec<Act>,
    /// How deep to look after the acts, or now if there are none.
    pub look: Option<Scope>,
    /// When to take the next step, if nothing happens before.
    pub again: Option<Timestamp>,
    /// A permission that is needed to go on.
    pub ask: Option<Ask>,
    /// Whether the next step needs to know where the recorded consumer is.
    pub inquire: bool,
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

/// A step in the making.
pub(super) struct Scene<'a> {
    pub(super) goal: &'a Goal,
    pub(super) sight: &'a Sight,
    pub(super) record: Record,
    anchor_before: Anchor,
    unreadable: Option<Failure>,
    /// The fault that the object itself caused, as of the last step: it is found anew or it is gone.
    object_fault_before: Option<Fault>,
    wait_before: Option<Wait>,
    wrong_server: bool,
    pub(super) acts: Vec<Act>,
    pub(super) look: Option<Scope>,
    pub(super) again: Option<Timestamp>,
    pub(super) ask: Option<Ask>,
    pub(super) inquire: bool,
    pub(super) finished: bool,
    notes: Vec<Note>,
    events: Vec<Event>,
}

impl<'a> Scene<'a> {
    fn open(goal: &'a Goal, remembered: Remembered, sight: &'a Sight) -> Self {
        let now = sight.now;
        let (anchor, unreadable) = match remembered.anchor {
            Ok(anchor) => (anchor, None),
            Err(failure) => (None, Some(failure)),
        };
        let mut events = Vec::new();
        let mut record = match (anchor, remembered.record) {
            (None, None) if unreadable.is_some() => Record::from_anchor(Anchor::default(), now),
            (None, None) => {
                let record = Record::from_anchor(first_anchor(goal), now);
                if record.anchor.adopted {
                    events.push(Event { warning: false, reason: "Adopted", message: ADOPTED.into() });
                }
                record
            }
            (Some(anchor), None) => Record::from_anchor(anchor, now),
            // The anchor is stored first, so after a crash it is one ahead. One that is behind was brought back by
            // somebody from an old copy of the object, and is not believed.
            (Some(anchor), Some(record)) if anchor.seq > record.anchor.seq => catch_up(record, anchor, now),
            (_, Some(record)) => record,
        };
        // Numbers of acts are never used twice, also not after a lost status: a sight must not look newer than it is.
        record.acted = record.acted.max(sight.bmc.as_ref().map_or(0, |bmc| bmc.after));
        let object_fault_before = record.fault.take_if(|fault| fault.origin == Origin::Object);
        let wait_before = record.wait.take();
        Self {
            goal,
            sight,
            anchor_before: record.anchor.clone(),
            record,
            unreadable,
            object_fault_before,
            wait_before,
            wrong_server: false,
            acts: Vec::new(),
            look: None,
            again: None,
            ask: None,
            inquire: false,
            finished: false,
            notes: Vec::new(),
            events,
        }
    }

    fn play(&mut self) {
        if let Road::Delete(farewell @ (Farewell::Move | Farewell::Force)) = self.goal.road {
            return self.part_at_once(farewell);
        }
        if let Some(failure) = self.unreadable.take() {
            return self.object_fault(failure);
        }
        if self.goal.road == Road::Detach {
            return self.step_aside(Phase::Detached, "Detached: neither watched nor touched.");
        }
        if let Some(rival) = &self.sight.rival {
            return self.give_way(&rival.clone());
        }
        if self.target_changed_under_a_claim() {
            return;
        }
        self.observe();
        if self.awaits_sight() {
            return;
        }
        match self.goal.road {
            Road::Delete(_) => self.farewell(),
            Road::Park => self.park(),
            Road::Manage | Road::Detach => self.manage(),
        }
    }

    fn close(mut self) -> Step {
        if self.object_fault_before.is_some() && self.record.fault.is_none() {
            self.event(false, "Recovered", "What was wrong with the object has been put right.");
        }
        if self.record.anchor != self.anchor_before {
            self.record.anchor.seq = self.anchor_before.seq + 1;
        }
        Step {
            record: self.record,
            acts: self.acts,
            look: self.look,
            again: self.again,
            ask: self.ask,
            inquire: self.inquire,
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
            self.finished = true;
            return;
        }
        self.object_fault(Failure::new(
            Kind::DuplicateHost,
            format!("{rival} names the same BMC and system and was there first. Delete one of the two, or set spec.redfishConnection.systemID if the BMC has several systems."),
        ));
        self.again = Some(self.now() + pace::CONSUMER_AGAIN);
    }

    /// Another address is another server. That is fine for a host that nobody uses, and never for one in use.
    fn target_changed_under_a_claim(&mut self) -> bool {
        let Some(target) = self.record.target.as_ref().filter(|target| **target != self.sight.target) else {
            return false;
        };
        if self.record.anchor.claim.is_some() || self.record.anchor.milestone != Milestone::None {
            let message = format!(
                "This host is in use, but its address was changed from {target} to {}. Nothing is done to either server until the address is put back or the host is released.",
                self.sight.target
            );
            self.object_fault(Failure::new(Kind::SystemChanged, message));
            return true;
        }
        self.record.target = None;
        self.record.inspected = false;
        self.record.fault = None;
        self.record.doing = None;
        self.record.anchor.uuid = None;
        self.record.anchor.pin = None;
        self.record.anchor.powered_on = false;
        if matches!(self.record.phase, Phase::Inspecting | Phase::Available) {
            self.advance(Phase::Registering, "The address was changed: this is another server.");
        }
        false
    }

    /// Takes in what the last look and the last act brought.
    fn observe(&mut self) {
        let Some(bmc) = self.current_sight() else {
            self.restore_hold();
            return;
        };
        let news = self.record.fault.as_ref().is_none_or(|fault| bmc.at > fault.last);
        let outcome = bmc.act.as_ref().filter(|outcome| outcome.number == self.record.acted);
        match &bmc.seen {
            Err(failure) if news => {
                // Whether the act worked cannot be seen; what is seen next decides anew.
                self.record.doing = None;
                self.fail(Origin::Look, failure.clone(), bmc.at);
            }
            Err(_) => {}
            Ok(seen) => {
                if seen.power != PowerState::Unknown {
                    self.record.power = seen.power;
                }
                self.record.anchor.hold = None;
                if news && self.record.fault.as_ref().is_some_and(|fault| fault.origin == Origin::Look) {
                    self.recovered();
                }
                self.check_identity(seen, bmc.at, news);
                match outcome.map(|outcome| &outcome.result) {
                    Some(Err(failure)) if news => self.act_failed(failure, bmc.at),
                    // Nobody knows whether an act was performed that was decided before a crash: decide anew.
                    None if bmc.after >= self.record.acted => self.record.doing = None,
                    _ => {}
                }
            }
        }
    }

    fn act_failed(&mut self, failure: &Failure, at: Timestamp) {
        let refused = !matches!(failure.kind, Kind::Unreachable | Kind::BadAnswer);
        if refused && self.doing(Deed::Restart).is_some() {
            // It did not happen, so the request is still open.
            self.record.rebooted = None;
        }
        self.fail(Origin::Act, failure.clone(), at);
    }

    /// Whether an act was decided and not yet looked at; if so, looks and waits as before.
    fn awaits_sight(&mut self) -> bool {
        let looked = self.current_sight().is_some_and(|bmc| bmc.after >= self.record.acted);
        if looked || self.record.doing.is_none() || self.record.fault.is_some() {
            return false;
        }
        self.record.wait = self.wait_before.take();
        let tidying = matches!(self.record.phase, Phase::Preparing | Phase::Deprovisioning | Phase::Deleting);
        self.look = Some(if tidying { Scope::Boot } else { Scope::Power });
        true
    }

    fn check_identity(&mut self, seen: &Seen, at: Timestamp, news: bool) {
        let (Some(known), Some(shown)) = (&self.record.anchor.uuid, &seen.uuid) else { return };
        if known == shown {
            return;
        }
        let unclaimed = self.record.anchor.claim.is_none() && self.record.anchor.milestone == Milestone::None;
        if unclaimed && self.goal.inspect.is_some() && self.goal.inspect != self.record.inspection {
            self.record.anchor.uuid = Some(shown.clone());
            self.record.inspected = false;
            return;
        }
        self.wrong_server = true;
        if news {
            let message = format!(
                "The BMC now shows a server with UUID {shown}, but this host was registered with {known}. Nothing is done to it. Put the address right; if the board was replaced, ask for an inspection of the released host."
            );
            self.fail(Origin::Look, Failure::new(Kind::SystemChanged, message), at);
        }
    }

    /// A lost status does not lift the hold on refused credentials.
    fn restore_hold(&mut self) {
        let Some(hold) = &self.record.anchor.hold else { return };
        if hold.inputs != self.sight.inputs || self.record.fault.is_some() || self.now() >= hold.until {
            return;
        }
        self.record.fault = Some(Fault {
            failure: Failure::new(
                Kind::AuthenticationFailed,
                "The BMC refused user name or password earlier. Correct the Secret: it is tried again at once.",
            ),
            origin: Origin::Look,
            count: hold.count,
            since: self.now(),
            last: self.now(),
            next_try: hold.until,
            inputs: hold.inputs.clone(),
        });
    }

    // What the phases build with.

    pub(super) fn now(&self) -> Timestamp {
        self.sight.now
    }

    fn current_sight(&self) -> Option<&'a BmcSight> {
        self.sight.bmc.as_ref().filter(|bmc| bmc.inputs == self.sight.inputs)
    }

    /// The last good look since the last act, however long ago.
    pub(super) fn glance(&self) -> Option<&'a Seen> {
        self.current_sight().filter(|bmc| bmc.after >= self.record.acted)?.seen.as_ref().ok()
    }

    /// A good look that may be acted on: since the last act and the last fault, and not long ago.
    pub(super) fn seen(&self, scope: Scope) -> Option<&'a Seen> {
        let bmc = self.current_sight()?;
        let seen = self.glance()?;
        let after_fault = self.record.fault.as_ref().is_none_or(|fault| bmc.at > fault.last);
        let deep = match scope {
            Scope::Power => true,
            Scope::Boot => seen.media.is_some(),
            Scope::Inventory => seen.hardware.is_some(),
        };
        (after_fault && deep && !self.wrong_server && self.now().duration_since(bmc.at) <= pace::SIGHT_AGE)
            .then_some(seen)
    }

    /// Looks now, and waits for it.
    pub(super) fn look(&mut self, scope: Scope, reason: &'static str, message: &str) {
        self.look = Some(scope);
        // We were away, or the look was answered and asked for again: a new wait begins.
        self.wait_before.take_if(|wait| self.sight.now >= wait.deadline);
        self.wait(reason, message, pace::LOOK_LIMIT);
    }

    /// Looks again soon, because something is under way since `since`.
    pub(super) fn poll(&mut self, scope: Scope, since: Timestamp) {
        let elapsed = self.now().duration_since(since);
        let at = self.current_sight().map_or(self.now(), |bmc| bmc.at + pace::poll(elapsed));
        if at <= self.now() {
            self.look = Some(scope);
        } else {
            self.again = Some(at);
        }
    }

    /// Nothing to do: looks from time to time.
    pub(super) fn rest(&mut self) {
        let interval = pace::rest(self.sight.spread);
        match self.current_sight().filter(|bmc| bmc.after >= self.record.acted) {
            Some(bmc) if self.now() < bmc.at + interval => self.again = Some(bmc.at + interval),
            _ => self.look = Some(Scope::Power),
        }
    }

    /// Acts, and looks at what came of it. What is stored with this step is the reason for the act.
    pub(super) fn act(&mut self, deed: Deed, acts: Vec<Act>, scope: Scope) {
        let now = self.now();
        let first = self.record.doing.as_ref().filter(|doing| doing.what == deed).map_or(now, |doing| doing.first);
        self.record.acted += 1;
        self.record.doing = Some(Doing { what: deed, since: now, first });
        let names: Vec<_> = acts.iter().map(Act::name).collect();
        self.record.note(now, names.join(", "));
        self.acts = acts;
        self.look = Some(scope);
    }

    pub(super) fn doing(&self, deed: Deed) -> Option<&Doing> {
        self.record.doing.as_ref().filter(|doing| doing.what == deed)
    }

    /// What was to be reached is reached.
    pub(super) fn settle(&mut self) {
        self.record.doing = None;
        if self.record.fault.as_ref().is_some_and(|fault| fault.origin == Origin::Act) {
            self.recovered();
        }
    }

    pub(super) fn advance(&mut self, phase: Phase, message: &str) {
        self.record.phase = phase;
        self.record.since = self.now();
        self.record.note(self.now(), message);
        self.event(false, phase.as_str(), message);
    }

    pub(super) fn wait(&mut self, reason: &'static str, message: &str, limit: SignedDuration) {
        let before = self.wait_before.as_ref().filter(|wait| wait.reason == reason);
        let since = before.map_or(self.now(), |wait| wait.since);
        self.wait_until(reason, message, since + limit);
    }

    pub(super) fn wait_until(&mut self, reason: &'static str, message: &str, deadline: Timestamp) {
        let before = self.wait_before.as_ref().filter(|wait| wait.reason == reason);
        let since = before.map_or(self.now(), |wait| wait.since);
        self.record.wait = Some(Wait { reason: reason.into(), message: message.into(), since, deadline });
    }

    /// Since when we wait for that.
    pub(super) fn waiting_since(&self, reason: &str) -> Timestamp {
        self.wait_before.as_ref().filter(|wait| wait.reason == reason).map_or(self.now(), |wait| wait.since)
    }

    /// Waits for somebody else. Such a wait cannot fail; it is brought up again from time to time.
    pub(super) fn wait_for_others(&mut self, reason: &'static str, message: &str) {
        let since = self.waiting_since(reason);
        if self.now() >= since + pace::PATIENCE {
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
        let (message, again) = match &self.sight.held {
            Some(held) => (held.message.clone(), held.until),
            None => ("Waiting for the fleet brake.".to_owned(), self.now() + SignedDuration::from_secs(1)),
        };
        self.again = Some(again);
        self.wait_for_others("FleetBrake", &message);
        false
    }

    pub(super) fn fail(&mut self, origin: Origin, failure: Failure, at: Timestamp) {
        let before = self
            .record
            .fault
            .take()
            .filter(|fault| fault.failure.kind == failure.kind && fault.inputs == self.sight.inputs);
        let count = before.as_ref().map_or(0, |fault| fault.count) + 1;
        let class = failure.kind.class();
        let mut next_try = at + pace::back_off(class, count, self.sight.spread);
        if failure.kind == Kind::BootIgnored {
            next_try = at + pace::boot_back_off(count);
        }
        if class == Class::Auth {
            next_try = self.hold(at);
        }
        if before.is_none() {
            self.event(true, failure.kind.reason(), &failure.message);
            self.record.note(at, failure.message.clone());
        }
        if origin == Origin::Act {
            self.record.doing = None;
        }
        self.record.fault = Some(Fault {
            failure,
            origin,
            count,
            since: before.map_or(at, |fault| fault.since),
            last: at,
            next_try,
            inputs: self.sight.inputs.clone(),
        });
    }

    fn hold(&mut self, at: Timestamp) -> Timestamp {
        let same = self.record.anchor.hold.as_ref().filter(|hold| hold.inputs == self.sight.inputs);
        let count = same.map_or(0, |hold| hold.count) + 1;
        let until = at + pace::back_off(Class::Auth, count, self.sight.spread);
        self.record.anchor.hold = Some(AuthHold { until, count, inputs: self.sight.inputs.clone() });
        until
    }

    pub(super) fn object_fault(&mut self, failure: Failure) {
        let before = self.object_fault_before.take().filter(|fault| fault.failure.kind == failure.kind);
        if before.is_none() {
            self.event(true, failure.kind.reason(), &failure.message);
            self.record.note(self.now(), failure.message.clone());
        }
        let since = before.map_or(self.now(), |fault| fault.since);
        self.wait_for_others(failure.kind.reason(), &failure.message);
        self.record.fault = Some(Fault {
            failure,
            origin: Origin::Object,
            count: 1,
            since,
            last: since,
            next_try: since + pace::PATIENCE,
            inputs: self.sight.inputs.clone(),
        });
    }

    /// Whether a fault keeps us from going on now; if so, waits for its next try.
    pub(super) fn held_back(&mut self) -> bool {
        let Some(fault) = &self.record.fault else { return false };
        if self.now() >= fault.next_try || fault.inputs != self.sight.inputs {
            return false;
        }
        let (reason, message, next_try, origin) =
            (fault.failure.kind.reason(), fault.failure.message.clone(), fault.next_try, fault.origin);
        self.wait_until(reason, &message, next_try);
        if origin == Origin::Act {
            self.rest();
        }
        self.again = Some(self.again.map_or(next_try, |again| again.min(next_try)));
        true
    }

    fn recovered(&mut self) {
        if let Some(fault) = self.record.fault.take() {
            let message = format!("Over: {}", fault.failure.message);
            self.record.note(self.now(), message.clone());
            self.event(false, "Recovered", &message);
        }
    }

    pub(super) fn note(&mut self, kind: NoteKind, message: impl Into<String>) {
        self.notes.push(Note { kind, message: message.into() });
    }

    pub(super) fn event(&mut self, warning: bool, reason: &'static str, message: &str) {
        self.events.push(Event { warning, reason, message: message.into() });
    }
}

/// What is said of a host that came to us in use.
pub(super) const ADOPTED: &str = "The host was created with a claim on it, so it is taken to be in use and is left as it is. To have it provisioned, remove the claim and set it again, or annotate the host with beskar7.io/provision=true.";

fn first_anchor(goal: &Goal) -> Anchor {
    let Some(claim) = goal.claim.clone().filter(|_| !goal.provision_adopted) else { return Anchor::default() };
    Anchor {
        claim: Some(claim),
        deployment: goal.order.as_ref().map(|order| order.deployment.clone()),
        milestone: Milestone::Provisioned,
        adopted: true,
        ..Anchor::default()
    }
}

/// The record after a crash between storing the anchor and storing the status.
fn catch_up(mut record: Record, anchor: Anchor, now: Timestamp) -> Record {
    let rebuilt = Record::from_anchor(anchor, now);
    let phase = match rebuilt.phase {
        Phase::Registering if record.inspected => Phase::Available,
        phase => phase,
    };
    match record.phase {
        Phase::Parked | Phase::Detached | Phase::Deleting => record.left = Some(phase),
        Phase::Registering | Phase::Inspecting if phase == Phase::Available => {}
        _ if record.phase != phase => {
            record.phase = phase;
            record.since = now;
            record.doing = None;
        }
        _ => {}
    }
    record.anchor = rebuilt.anchor;
    record
}
