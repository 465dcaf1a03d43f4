//! A model of everything around the step: the API server, the loop, the hands, and what can befall them. It checks, at
//! every step and every act, what must hold at every step and every act.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    secs,
    server::{Runs, Server, Temper},
    start_of_time,
};
use crate::{
    failure::Kind,
    host::{
        Act, Anchor, Author, BmcSight, BootPlan, BrakeLimit, Deed, Detachment, Disks, Goal, Happening, HeldOff, Hold,
        Inquiry, LastBoot, Lasting, Milestone, Moment, Neutral, Newcomer, Note, Outcome, Payload, Phase, PowerRequest,
        Presence, Proof, Recipe, Record, Remembered, Request, Road, Sight, Starts, Step, Undo, boot_plan, step,
    },
    server::{BootTarget, PowerState, Scope},
};

/// The id of a claim that a host makes for itself.
pub(super) const ITSELF: &str = "itself";

/// What befalls one reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mishap {
    Nothing,
    /// The API server does not take the anchor.
    AnchorConflict,
    /// The process dies with the anchor stored and the status not.
    CrashBeforeStatus,
    /// The API server does not take the status.
    StatusConflict,
    /// The process dies with the status stored and this many acts performed.
    CrashAfterActs(usize),
    /// The process dies before it has looked at what came of the acts.
    CrashBeforeLook,
    /// A look that began before the acts comes in after they were decided.
    LateSight,
}

#[allow(clippy::struct_excessive_bools, reason = "facts that have nothing to do with each other")]
#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) goal: Goal,
    pub(super) server: Server,
    /// The anchor, as stored.
    pub(super) annotation: Option<String>,
    /// The record, as stored.
    pub(super) status: Option<Record>,
    /// What another operator has left of itself in the object.
    pub(super) proof: Option<Proof>,
    pub(super) inputs: String,
    pub(super) target: String,
    pub(super) consumer: Presence,
    pub(super) claimer: Presence,
    pub(super) rival: Option<String>,
    pub(super) fetched: Option<Timestamp>,
    /// The deployment of which the server was last handed all that it boots, when, and after how many starts that we caused.
    pub(super) handed: Option<(String, Timestamp, usize)>,
    /// When a probe has last reported.
    pub(super) probed: Option<Timestamp>,
    /// What runs on the server for a probe says nothing.
    pub(super) silent_probe: bool,
    pub(super) braked: bool,
    pub(super) finished: bool,
    pub(super) sight: Option<BmcSight>,
    pub(super) outcome: Option<Outcome>,
    /// Every act that was performed, also in vain.
    pub(super) log: Vec<Act>,
    /// How often something was stored.
    pub(super) writes: u32,
    pub(super) steps: u32,
    pub(super) looks: u32,
    pub(super) last: Option<Step>,
    pub(super) events: Vec<&'static str>,
    /// What was told by events of power changes.
    pub(super) told: Vec<String>,
    /// Whether the server was switched off to be restarted, before the present step.
    is_restarting: bool,
    /// What was kept for the timeline.
    pub(super) timeline: Vec<Moment>,
    pub(super) anchors: Vec<String>,
    /// The claim whose system runs and must not be hurt.
    pub(super) runs_for: Option<String>,
    /// Whether the end of that claim was ever certain.
    pub(super) may_release: bool,
    /// When somebody pressed the power button.
    pub(super) pressed: Option<Timestamp>,
    restarted: BTreeSet<String>,
    /// The request for power that was there at the last claim or at the end of the last release: it does not count.
    stale: Option<PowerRequest>,
    /// The same from before the present claim.
    stale_before: Option<PowerRequest>,
    /// The claim that outdated it.
    noted_for: Option<String>,
    /// The deployment that the server was last started for.
    pub(super) started: Option<String>,
}

impl World {
    pub(super) fn new(goal: Goal, server: Server) -> Self {
        Self {
            now: start_of_time(),
            goal,
            server,
            annotation: None,
            status: None,
            proof: None,
            inputs: "inputs".into(),
            target: "bmc".into(),
            consumer: Presence::Gone,
            claimer: Presence::Exists,
            rival: None,
            fetched: None,
            handed: None,
            probed: None,
            silent_probe: false,
            braked: false,
            finished: false,
            sight: None,
            outcome: None,
            log: Vec::new(),
            writes: 0,
            steps: 0,
            looks: 0,
            last: None,
            events: Vec::new(),
            told: Vec::new(),
            timeline: Vec::new(),
            is_restarting: false,
            anchors: Vec::new(),
            runs_for: None,
            may_release: false,
            pressed: None,
            restarted: BTreeSet::new(),
            stale: None,
            stale_before: None,
            noted_for: None,
            started: None,
        }
    }

    /// A host in peace: unclaimed, inspected, off.
    pub(super) fn available() -> Self {
        let mut world = Self::new(Goal::default(), Server::off());
        world.run_to(Phase::Available);
        world
    }

    /// The same, and then claimed.
    pub(super) fn with(goal: Goal) -> Self {
        let mut world = Self::available();
        world.goal = goal;
        world
    }

    /// A host that runs what it was ordered to run.
    pub(super) fn provisioned() -> Self {
        let mut world = Self::with(super::ordered("a", super::IMAGE));
        world.run_to(Phase::Provisioned);
        world.run(60);
        assert_eq!(world.server.runs, Runs::Image(super::IMAGE.into()));
        world.consumer = Presence::Exists;
        world.log.clear();
        world.events.clear();
        world
    }

    pub(super) fn record(&self) -> Record {
        self.status.clone().unwrap()
    }

    pub(super) fn anchor(&self) -> Anchor {
        Anchor::parse(self.annotation.as_ref().unwrap()).unwrap()
    }

    pub(super) fn phase(&self) -> Phase {
        self.status.as_ref().unwrap().phase
    }

    /// Claims the host if it is free, and announces that in its anchor, in one write.
    pub(super) fn announce(&mut self, id: &str) {
        let Remembered { anchor, record, .. } = self.remembered();
        let (Ok(Some(anchor)), Some(record)) = (anchor, record) else { return };
        let anchor = anchor.settled(&record.anchor);
        let is_free = record.phase == Phase::Available && !anchor.is_in_use() && self.goal.road == Road::Manage;
        if !is_free || self.goal.claim.is_some() {
            return;
        }
        let ordered = super::ordered(id, super::IMAGE);
        let (Some(claim), Some(order)) = (ordered.claim, ordered.order) else { return };
        let announced = anchor.announcing(
            claim.clone(),
            order.deployment.clone(),
            order.recipe.as_ref().map(Recipe::undo).unwrap_or_default(),
            self.goal.power_request(),
        );
        self.annotation = Some(announced.to_json());
        self.goal.claim = Some(claim);
        self.goal.order = Some(order);
        self.goal.author = Author::Claimer;
        self.goal.release = None;
    }

    /// Names of the acts that were performed.
    pub(super) fn acts(&self) -> Vec<&'static str> {
        self.log.iter().map(Act::name).collect()
    }

    pub(super) fn fault(&self) -> Option<Kind> {
        self.status.as_ref()?.fault.as_ref().map(|fault| fault.failure.kind)
    }

    /// What is waited for.
    pub(super) fn wait(&self) -> Option<String> {
        self.status.as_ref()?.wait.as_ref().map(|wait| wait.what.name().to_owned())
    }

    pub(super) fn notes(&self) -> Vec<&'static str> {
        self.last.iter().flat_map(|step| &step.notes).map(Note::name).collect()
    }

    pub(super) fn remembered(&self) -> Remembered {
        let anchor = self.annotation.as_deref().map(Anchor::parse).transpose();
        Remembered { anchor, record: self.status.clone(), proof: self.proof }
    }

    pub(super) fn sight_now(&self) -> Sight {
        Sight {
            now: self.now,
            inputs: self.inputs.clone(),
            target: self.target.clone(),
            bmc: self.sight.clone(),
            consumer: Presence::NotLookedUp,
            claimer: Presence::NotLookedUp,
            rival: self.rival.clone(),
            granted: Vec::new(),
            fetched: self.fetched,
            handed: self.handed_now(),
            probed: self.probed,
            hold: None,
            spread: 0,
        }
    }

    /// When the server was handed what it boots in its present deployment.
    fn handed_now(&self) -> Option<Timestamp> {
        let anchor = known_anchor(&self.remembered())?;
        let (_, at, _) = self.handed.as_ref().filter(|(of, ..)| Some(of) == anchor.deployment.as_ref())?;
        Some(*at)
    }

    /// The boot service answers a server that asks the network what to boot.
    fn let_boot_service_answer(&mut self, anchor: &Anchor) {
        if !std::mem::take(&mut self.server.asks) {
            return;
        }
        let begun = self.status.as_ref().and_then(|record| record.boot_begun);
        let last = LastBoot { begun, handed: self.handed_now() };
        match boot_plan(anchor, &self.goal, last, self.now) {
            BootPlan::Network(Payload::Site) => {}
            BootPlan::Network(_) => {
                let starts = self.log.iter().filter(|act| matches!(act, Act::PowerOn | Act::Restart)).count();
                let deployment = anchor.deployment.clone().expect("served without a deployment");
                assert!(anchor.milestone >= Milestone::Written, "served before the server was started for it");
                if let Some((_, _, before)) = self.handed.as_ref().filter(|(of, ..)| *of == deployment) {
                    assert!(starts > *before, "an installed server is installed again");
                }
                self.handed = Some((deployment, self.now, starts));
                self.server.runs = Runs::Network;
            }
            // The site's own servers answer what we are silent about.
            _ if !self.is_served() => {}
            BootPlan::Disk | BootPlan::Medium | BootPlan::Nothing => self.server.runs = Runs::Disk,
        }
    }

    fn is_served(&self) -> bool {
        let recipe = self.goal.order.as_ref().and_then(|order| order.recipe.as_ref().ok());
        recipe.is_some_and(Recipe::is_served)
    }

    /// Steps as the loop does: questions are answered, nothing is stored yet.
    pub(super) fn decide(&mut self) -> Step {
        let remembered = self.remembered();
        let mut sight = self.sight_now();
        let mut next = step(&self.goal, remembered.clone(), &sight);
        for _ in 0..6 {
            if next.inquire == Some(Inquiry::Consumer) && sight.consumer == Presence::NotLookedUp {
                sight.consumer = self.consumer.clone();
            } else if next.inquire == Some(Inquiry::Claimer) && sight.claimer == Presence::NotLookedUp {
                sight.claimer = self.claimer.clone();
            } else if let Some(ask) = next.ask.filter(|_| sight.hold.is_none()) {
                if self.braked {
                    sight.hold = Some(Hold { limit: BrakeLimit::Frozen, until: self.now + secs(30) });
                } else {
                    sight.granted.push(ask);
                }
            } else {
                break;
            }
            next = step(&self.goal, remembered.clone(), &sight);
        }
        self.steps += 1;
        self.note_certainties();
        self.check_step(&remembered, &sight, &next);
        next
    }

    /// Whether the server is to have power, by what was asked since the last claim or release.
    pub(super) fn asked_power(&self) -> Option<bool> {
        let held_off = self.held_off().filter(|_| !self.goal.never_off).map(|_| false);
        held_off.or(self.goal.online.filter(|_| self.stale.is_none() || self.stale != self.goal.power_request()))
    }

    /// The request to keep the server off, if it counts now.
    fn held_off(&self) -> Option<HeldOff> {
        let is_provisioned = self.status.as_ref().is_some_and(|record| record.phase == Phase::Provisioned);
        self.goal.held_off.filter(|held| held.also_free || is_provisioned)
    }

    /// Nobody knows any more what was asked before what.
    pub(super) fn forget_requests(&mut self) {
        (self.stale, self.stale_before, self.noted_for) = (None, None, None);
    }

    /// Keeps in mind which requests were made before a claim or a release.
    fn note_requests(&mut self, before: &Anchor, after: &Anchor) {
        let id = |anchor: &Anchor| anchor.claim.as_ref().map(|claim| claim.id.clone());
        let request = self.goal.power_request();
        let releasing = |anchor: &Anchor| anchor.milestone == Milestone::Releasing;
        if before.uuid.is_some() && after.uuid.is_none() {
            self.forget_requests();
        } else if (releasing(before) && !releasing(after)) || (before.claim.is_some() && id(before) != id(after)) {
            let untouched = before.milestone == Milestone::None;
            self.stale = if untouched { self.stale_before.clone() } else { request.clone() };
            self.noted_for = None;
        }
        // A crash came before the status was stored: what was accepted then was not.
        let stored = self.remembered().anchor.ok().flatten().as_ref().and_then(id);
        if stored.is_some() && stored == self.noted_for && before.claim.is_none() && after.claim.is_none() {
            self.stale = self.stale_before.take();
            self.noted_for = None;
        }
        // Or the same claim is accepted at once again.
        let is_noted = self.noted_for == id(after) && self.stale == request;
        if after.claim.is_some() && id(before) != id(after) && !is_noted {
            self.stale_before.clone_from(&self.stale);
            if self.goal.power_lasts == Lasting::UntilClaim {
                self.stale = request;
            }
            self.noted_for = id(after);
        }
        if self.goal.power_lasts == Lasting::UntilRelease && after.milestone == Milestone::Written {
            self.forget_requests();
        }
    }

    /// Keeps in mind what the step may rely on later.
    fn note_certainties(&mut self) {
        let request = self.goal.power_request();
        self.stale.take_if(|stale| request.as_ref() != Some(stale));
        self.stale_before.take_if(|stale| request.as_ref() != Some(stale));
        let Some(ours) = &self.runs_for else { return };
        let named = self.goal.claim.as_ref().map(|claim| &claim.id);
        let certain = ours == ITSELF
            || self.goal.release.as_ref() == Some(ours)
            || matches!(self.consumer, Presence::Gone | Presence::Leaving);
        let ends_itself = ours == ITSELF && matches!(self.goal.road, Road::Delete(_));
        if ends_itself || (named != Some(ours) && certain) {
            self.may_release = true;
        }
    }

    fn check_step(&self, remembered: &Remembered, sight: &Sight, next: &Step) {
        let record = &next.record;
        if let Some(wait) = &record.wait {
            assert!(wait.deadline > wait.since, "a wait without a deadline: {wait:?}");
        }
        let resting = record.phase == Phase::Detached;
        let moves = !next.acts.is_empty() || next.look.is_some() || next.again.is_some();
        assert!(moves || resting || next.finished, "stuck: {next:?}");
        if let Some(again) = next.again {
            assert!(again > sight.now && again <= sight.now + secs(25 * 3600), "again at {again}, now {}", sight.now);
        }

        let before = remembered.record.as_ref();
        assert_eq!(next.cause.is_some(), !next.acts.is_empty(), "acted without a cause");
        if !next.acts.is_empty() {
            let bmc = sight.bmc.as_ref().expect("acted without a sight");
            assert!(bmc.after >= before.map_or(0, |before| before.acted), "acted on a sight older than the last act");
            assert!(bmc.seen.is_ok() && bmc.inputs == sight.inputs, "acted on a failed look");
            assert!(record.acted > bmc.after && record.acted > before.map_or(0, |before| before.acted));
            assert!(next.look.is_some(), "acted without looking at what came of it");
            assert!(record.wait.is_some(), "acted without waiting for what comes of it");
            assert!(
                !matches!(self.goal.road, Road::Park | Road::Detach(Detachment::AtOnce))
                    && record.phase != Phase::Quarantined,
                "acted on a host that is parked, detached or in quarantine"
            );
            assert_eq!(record.target.as_ref(), Some(&sight.target), "acted on a server at another address");
            let shown = bmc.seen.as_ref().ok().and_then(|seen| seen.uuid.as_ref());
            assert_eq!(shown, record.anchor.uuid.as_ref().or(shown), "acted on another server");
            assert_eq!(sight.rival, None, "acted on another host's server");
        }
        if next.finished {
            assert!(matches!(self.goal.road, Road::Delete(_)), "finished without a deletion");
            return;
        }
        let bound = |record: &Record| record.anchor.claim.as_ref().map(|claim| claim.id.clone());
        let accepted = bound(record).filter(|id| before.is_some() && before.and_then(bound).as_ref() != Some(id));
        if accepted.is_some_and(|id| id != ITSELF)
            && self.goal.author == Author::Claimer
            && !record.anchor.adopted
            && remembered.anchor == Ok(before.map(|before| before.anchor.clone()))
        {
            assert_eq!(self.claimer, Presence::Exists, "accepted a ghost's claim");
        }
        self.check_stop(remembered, sight, next);
        if next.unclaim {
            assert!(
                self.goal.author == Author::Claimer && self.claimer == Presence::Gone,
                "took off the claim of the living"
            );
            assert_eq!((bound(record), record.anchor.milestone), (None, Milestone::None), "took off a claim in use");
            assert_eq!(next.acts, []);
            return;
        }
        let readable = match &remembered.anchor {
            Ok(_) if !next.leave_anchor => Ok(Some(record.anchor.clone())),
            left => left.clone(),
        };
        let once_more =
            step(&self.goal, Remembered { anchor: readable, record: Some(record.clone()), proof: self.proof }, sight);
        assert_eq!(once_more.acts, [], "the same step twice acts twice");
        // Whether another server may be accepted is looked into before a release, so that takes two steps.
        let shown = sight.bmc.as_ref().and_then(|bmc| bmc.seen.as_ref().ok()?.uuid.clone());
        let is_known = shown.is_none() || record.anchor.uuid.is_none() || shown == record.anchor.uuid;
        // So does setting a host aside that has come to rest.
        if is_known && !matches!(self.goal.road, Road::Detach(Detachment::AtRest) | Road::ParkOff | Road::Lend) {
            assert_eq!(&once_more.record, record, "the same step twice changes the record");
        }
        check_retry(remembered, next);
    }

    /// A machine's claim never cuts the power of a server that was found running although nobody asked for it.
    fn check_stop(&self, remembered: &Remembered, sight: &Sight, next: &Step) {
        let known = known_anchor(remembered);
        let is_begun = known.as_ref().is_some_and(|anchor| anchor.milestone != Milestone::None || anchor.adopted)
            || next.heeded.contains(&Request::Provision);
        let is_machines = self.goal.claim.is_some() && self.goal.author == Author::Claimer;
        let is_for_maintenance = matches!(self.goal.road, Road::ParkOff | Road::Lend) || next.record.anchor.lent;
        let is_for_more = is_for_maintenance || next.record.anchor.restarting.is_some();
        if is_begun
            || is_for_more
            || !is_machines
            || !next.acts.iter().any(|act| matches!(act, Act::PowerOff | Act::ShutDown))
        {
            return;
        }
        // What the claim outdated was asked until then, also if the claim was stored and nothing came of it yet.
        let stored = remembered.anchor.iter().flatten().any(|anchor| anchor.claim.is_some());
        let is_bound = stored || known.is_some_and(|anchor| anchor.claim.is_some());
        let stale = if is_bound { &self.stale_before } else { &self.stale };
        let asked = self.goal.online.filter(|_| stale.is_none() || *stale != self.goal.power_request());
        let asked = asked.or(self.held_off().map(|_| false));
        let shown = sight.bmc.as_ref().and_then(|bmc| Some(bmc.seen.as_ref().ok()?.power));
        let runs = matches!(shown, Some(PowerState::On | PowerState::PoweringOn | PowerState::Paused));
        assert!(
            !runs || asked.is_some() || self.goal.claimable_while_running,
            "a machine's claim cuts the power of a server that nobody asked for: {next:#?}"
        );
    }

    /// One turn of the loop, and of the hands if they are needed. Answers when to come back.
    pub(super) fn reconcile(&mut self, mishap: Mishap) -> Timestamp {
        let soon = self.now + secs(1);
        if self.finished {
            return soon;
        }
        let before = known_anchor(&self.remembered()).unwrap_or_default();
        self.let_boot_service_answer(&before);
        self.let_probe_report(&before);
        let next = self.decide();
        self.last = Some(next.clone());
        self.events.extend(next.events.iter().map(Happening::name));
        self.timeline.extend(next.moments.iter().cloned());
        let is_power = |reason| ["PowerOn", "ShutDown", "PowerOff", "Restart"].contains(&reason);
        let changes = next.events.iter().filter(|event| is_power(event.name()));
        self.told.extend(changes.map(|event| event.tell(&Neutral)));
        if next.finished {
            self.finished = true;
            return soon;
        }
        if next.unclaim {
            self.goal = Goal { claim: None, order: None, author: Author::Hand, ..self.goal.clone() };
            return soon;
        }
        if next.undecided {
            return self.carry_out(&next, mishap, soon);
        }
        let text = next.record.anchor.to_json();
        if !next.leave_anchor && (self.annotation.as_ref() != Some(&text) || !next.heeded.is_empty()) {
            if mishap == Mishap::AnchorConflict {
                return soon;
            }
            assert!(text.len() <= 4096, "the anchor grew to {} bytes", text.len());
            assert_eq!(
                Anchor::parse(&text).as_ref(),
                Ok(&next.record.anchor),
                "the anchor does not survive being stored"
            );
            self.note_requests(&before, &next.record.anchor);
            for heeded in &next.heeded {
                match heeded {
                    Request::Release => self.goal.release = None,
                    Request::Provision => self.goal.provision = None,
                    // PhysicalHosts keep them, and tell them from new ones by their ids.
                    Request::Inspect | Request::Restart => {}
                    Request::Wiped => self.goal.disks = Disks::MustBeWiped,
                    Request::OffOnce => {
                        let held_off = self.goal.held_off.take();
                        self.goal.held_off =
                            held_off.map(|held| HeldOff { once: false, ..held }).filter(|held| held.lasts);
                    }
                }
            }
            self.anchors.push(text.clone());
            self.annotation = Some(text);
            self.writes += 1;
        }
        if mishap == Mishap::CrashBeforeStatus {
            self.crash();
            return soon;
        }
        self.check_release(&next);
        if self.status.as_ref() != Some(&next.record) {
            if mishap == Mishap::StatusConflict {
                return soon;
            }
            let target = |record: Option<&Record>| record.and_then(|record| record.target.clone());
            let (before, after) = (target(self.status.as_ref()), target(Some(&next.record)));
            if before.is_some() && after.is_some() && before != after {
                // Another server: what was left at the former address stays there.
                self.server.empty();
            }
            let text = serde_json::to_string(&next.record).unwrap();
            self.status = serde_json::from_str(&text).unwrap();
            assert_eq!(self.status.as_ref(), Some(&next.record), "the record does not survive being stored");
            self.writes += 1;
        }
        self.is_restarting = before.restarting.is_some();
        self.note_milestone(&next);
        self.carry_out(&next, mishap, soon)
    }

    /// What was booted for a probe reports once, as soon as it runs.
    fn let_probe_report(&mut self, anchor: &Anchor) {
        if anchor.probing && self.server.runs == Runs::Network && !self.silent_probe {
            self.probed.get_or_insert(self.now);
        } else if !anchor.probing {
            self.probed = None;
        }
    }

    /// A release ends with the server off, without our media and without our override.
    fn check_release(&self, next: &Step) {
        let releasing = |record: &Record| record.anchor.milestone == Milestone::Releasing;
        let before =
            self.remembered().record.filter(releasing).filter(|before| before.target.as_ref() == Some(&self.target));
        let unseen = self.pressed.is_some_and(|at| self.now.duration_since(at) < secs(60));
        // What is not shown cannot be told from what is not there.
        let seen = self.sight.as_ref().and_then(|bmc| bmc.seen.as_ref().ok());
        let hidden = seen.is_some_and(|seen| seen.boot.is_none() || seen.media.as_ref().is_some_and(Vec::is_empty));
        if before.is_some() && !releasing(&next.record) && !unseen && !hidden && !self.goal.never_off {
            assert!(self.server.is_tidy(), "released untidily: {:#?} {:#?}", next.record, self.server);
        }
    }

    fn note_milestone(&mut self, next: &Step) {
        let anchor = &next.record.anchor;
        let id = anchor.claim.as_ref().map(|claim| claim.id.clone());
        // Whoever orders something else, and then the same again, has given up what was started.
        let is_another = anchor.milestone == Milestone::Armed && anchor.deployment != self.started;
        if is_another || matches!(anchor.milestone, Milestone::None | Milestone::Releasing) {
            self.started = None;
        }
        match anchor.milestone {
            Milestone::Provisioned if self.runs_for != id => {
                self.runs_for = id;
                self.may_release = false;
            }
            Milestone::None | Milestone::Armed | Milestone::Written => self.runs_for = None,
            Milestone::Provisioned | Milestone::Releasing => {}
        }
    }

    fn carry_out(&mut self, next: &Step, mishap: Mishap, soon: Timestamp) -> Timestamp {
        let Some(scope) = next.look else { return next.again.unwrap_or(soon + secs(3600)) };
        if mishap == Mishap::LateSight && !next.acts.is_empty() {
            self.look(scope, next.record.acted - 1);
            assert_eq!(self.decide().acts, [], "acted on a sight older than the last act");
        }
        let mut result = Ok(());
        for (index, act) in next.acts.iter().enumerate() {
            if mishap == Mishap::CrashAfterActs(index) {
                self.crash();
                return soon;
            }
            self.check_act(act, next.record.acted);
            self.log.push(act.clone());
            self.pass(1);
            result = self.server.perform(act, self.now);
            let is_done = result.is_ok() || self.server.temper.mute.is_some_and(|_| self.server.temper.obeys(act));
            let is_reset = next.heeded.contains(&Request::OffOnce);
            if let (true, Some(id), true) =
                (is_done && !is_reset, &self.goal.reboot, next.record.doing_is(Deed::Restart))
            {
                assert!(self.restarted.insert(id.clone()), "restarted twice for one request");
            }
            if *act == Act::PowerOn && next.record.anchor.milestone == Milestone::Written {
                self.started.clone_from(&next.record.anchor.deployment);
            }
            if result.is_err() {
                break;
            }
        }
        if !next.acts.is_empty() {
            let not_performed =
                result.as_ref().is_err_and(|failure| matches!(failure.kind, Kind::Refused | Kind::Unsupported));
            self.outcome = Some(Outcome { number: next.record.acted, result, not_performed });
        }
        if mishap == Mishap::CrashBeforeLook {
            self.crash();
            return soon;
        }
        self.pass(1);
        self.look(scope, next.record.acted);
        self.now
    }

    /// No act without its stored reason.
    fn check_act(&self, act: &Act, number: u64) {
        let record = self.record();
        let (anchor, goal) = (&record.anchor, &self.goal);
        assert_eq!(record.acted, number, "acted under a number that is not stored");
        let deed = record.doing.as_ref().expect("acted without a stored reason").what;
        let stored = self.annotation.as_deref().map(Anchor::parse);
        assert_eq!(stored, Some(Ok(anchor.clone())), "acted with an anchor that is not stored");
        let releasing = anchor.milestone == Milestone::Releasing;
        let armed = anchor.milestone == Milestone::Armed && record.phase == Phase::Preparing;
        let farewell = record.phase == Phase::Deleting && matches!(goal.road, Road::Delete(_));
        let is_reset = self.last.as_ref().is_some_and(|last| last.heeded.contains(&Request::OffOnce)) && goal.never_off;
        let order = goal.order.as_ref().and_then(|order| order.recipe.as_ref().ok());
        let online = self.asked_power();
        let again =
            record.phase == Phase::Provisioned && order.is_some_and(|recipe| recipe.starts() == Starts::EveryByUs);
        let unserved = record.phase == Phase::Provisioning && order.is_some_and(Recipe::is_served);
        let preparing = deed == Deed::PrepareBoot && (armed || again || unserved);
        let ordered = order.map(|recipe| recipe.plan(goal.boot_mode).arm).unwrap_or_default();
        let undo = anchor.undo();
        let disarming = deed == Deed::DisarmBoot && record.phase == Phase::Provisioned && !anchor.adopted;
        let is_restarting = anchor.restarting.is_some();
        let probe = goal.probe.as_ref().filter(|_| goal.claim.is_none());
        let probes = anchor.probing && record.phase == Phase::Inspecting && !record.probed && !goal.quarantine;
        let arms_probe = probe
            .filter(|probe| probes && probe.boot.gate.open)
            .is_some_and(|probe| deed == Deed::PrepareBoot && probe.boot.recipe.plan(goal.boot_mode).arm.contains(act));
        let is_new = matches!(record.phase, Phase::Registering | Phase::Inspecting) && goal.claim.is_none();
        let newcomer = is_new && goal.newcomer == Newcomer::SwitchOff;
        let lends = goal.road == Road::Lend && record.phase == Phase::Lent;
        let wanted = if lends { goal.maintenance.online } else { None };
        let boot = goal.maintenance.boot.as_ref().filter(|boot| lends && wanted == Some(true) && boot.gate.open);
        let arms_lent = boot.is_some_and(|boot| {
            deed == Deed::PrepareBoot && anchor.lent && boot.recipe.plan(goal.boot_mode).arm.contains(act)
        });
        // What runs makes way for what is to be booted for the maintenance, and that for what was there before.
        let is_returned = (anchor.lent && goal.road != Road::Lend) || anchor.probing;
        let makes_way = (boot.is_some() && !anchor.lent) || is_returned || wanted == Some(false);
        let to_be_off = online == Some(false) || is_restarting || goal.road == Road::ParkOff || newcomer || makes_way;
        assert!(
            !(goal.never_off && matches!(act, Act::ShutDown | Act::PowerOff)),
            "{act:?} although the server may never be switched off: {record:#?}"
        );
        assert!(!anchor.external || act.is_about_power(), "{act:?} on a server that others look after: {record:#?}");
        let reason = match act {
            Act::ShutDown => {
                let gentle = goal.gentle_release && (releasing || (farewell && anchor.powered_on));
                deed == Deed::ShutDown && (to_be_off || gentle)
            }
            Act::Restart => {
                let asked = is_reset || (goal.reboot.is_some() && record.rebooted == goal.reboot);
                (deed == Deed::Restart && asked)
                    || (deed == Deed::PowerOn && anchor.milestone == Milestone::Written && goal.never_off)
            }
            Act::PowerOff => {
                deed == Deed::PowerOff && (releasing || armed || to_be_off || (farewell && anchor.powered_on))
            }
            Act::PowerOn => {
                let restarts = (goal.reboot.is_some() && record.rebooted == goal.reboot) || self.is_restarting;
                let is_lent = (anchor.lent && wanted == Some(true)) || (probes && probe.is_some());
                let wanted = online == Some(true) || restarts || is_lent;
                matches!(deed, Deed::PowerOn | Deed::Restart)
                    && (anchor.milestone == Milestone::Written || (wanted && !releasing && !armed))
            }
            _ if arms_lent || arms_probe => true,
            Act::InsertMedia { .. } => preparing && ordered.contains(act) && undo.contains(&Undo::Media),
            Act::SetBoot(wish) if wish.target == BootTarget::Hdd => disarming,
            Act::SetBoot(wish) => preparing && ordered.contains(act) && undo.contains(&Undo::Boot(wish.target.clone())),
            Act::EjectMedia => {
                preparing || (deed == Deed::CleanUp && (releasing || is_returned) && undo.contains(&Undo::Media))
            }
            Act::ClearBoot => (deed == Deed::CleanUp && (releasing || is_returned)) || disarming,
        };
        assert!(reason, "{act:?} for {deed:?} without its reason: {record:#?} {goal:#?}");
        if armed && matches!(act, Act::PowerOff | Act::EjectMedia) {
            let runs_it =
                matches!(self.server.runs, Runs::Image(_) | Runs::Network) && self.started == anchor.deployment;
            assert!(!runs_it, "{act:?} although the server runs what it was started for: {record:#?}");
        }
        if self.runs_for.is_some() && !self.may_release {
            let asked = match act {
                _ if arms_lent => true,
                Act::ShutDown | Act::PowerOff => to_be_off,
                Act::Restart => goal.reboot.is_some() || is_reset,
                Act::PowerOn => true,
                Act::ClearBoot => disarming || is_returned,
                Act::SetBoot(_) => disarming || again,
                Act::InsertMedia { .. } => again,
                Act::EjectMedia => again && (!self.server.on || goal.never_off),
            };
            assert!(asked, "{act:?} hurts a running node: {record:#?}");
        }
    }

    fn look(&mut self, scope: Scope, after: u64) {
        self.looks += 1;
        let seen = self.server.look(scope, self.now);
        let (act, inputs) = (self.outcome.clone(), self.inputs.clone());
        self.sight = Some(BmcSight { at: self.now, after, inputs, act, seen });
    }

    pub(super) fn crash(&mut self) {
        self.sight = None;
        self.outcome = None;
    }

    /// Somebody at the console.
    pub(super) fn press(&mut self, on: bool) {
        self.server.press(on, self.now);
        self.pressed = Some(self.now);
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += secs(seconds);
        self.server.tick(self.now);
    }

    /// Runs the loop for that long.
    pub(super) fn run(&mut self, seconds: i64) {
        self.run_with(seconds, None);
    }

    /// Runs the loop, with a mishap in one of its turns.
    pub(super) fn run_with(&mut self, seconds: i64, mishap: Option<(u32, Mishap)>) {
        let end = self.now + secs(seconds);
        let mut turn = 0;
        while !self.finished {
            let mishap = mishap.filter(|(when, _)| *when == turn).map_or(Mishap::Nothing, |(_, mishap)| mishap);
            let next = self.reconcile(mishap);
            turn += 1;
            assert!(i64::from(turn) < 60 + seconds * 3, "a busy loop: {:#?}", self.last);
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.server.tick(self.now);
        }
        self.now = self.now.max(end);
        self.server.tick(self.now);
    }

    /// Runs the loop until that holds, for so many seconds at most.
    pub(super) fn run_until(&mut self, seconds: i64, done: impl Fn(&Self) -> bool) {
        let end = self.now + secs(seconds);
        while !done(self) {
            assert!(self.now < end && !self.finished, "never came: {:#?} {:#?}", self.last, self.server);
            let next = self.reconcile(Mishap::Nothing);
            self.now = self.now.max(next);
            self.server.tick(self.now);
        }
    }

    pub(super) fn run_to(&mut self, phase: Phase) {
        self.run_until(24 * 3600, |world| world.status.is_some() && world.phase() == phase);
    }

    /// Everything around the engine is well again.
    pub(super) fn heal(&mut self) {
        let lies = self.server.temper.lies;
        self.server.temper = Temper { lies, ..Temper::good() };
        self.braked = false;
        self.rival = None;
        if self.remembered().anchor.is_err() {
            self.annotation = self.anchors.last().cloned();
        }
        let Remembered { anchor, record, .. } = self.remembered();
        let anchor = record.as_ref().map(|record| record.anchor.clone()).or(anchor.ok().flatten());
        if let Some(target) = record.and_then(|record| record.target) {
            self.target = target;
        }
        if let Some(uuid) = anchor.and_then(|anchor| anchor.uuid) {
            self.server.uuid = Some(uuid);
        }
    }
}

impl Record {
    fn doing_is(&self, deed: Deed) -> bool {
        self.doing.as_ref().is_some_and(|doing| doing.what == deed)
    }
}

/// The anchor that counts. A claim that is only announced is none yet.
fn known_anchor(remembered: &Remembered) -> Option<Anchor> {
    let recorded = remembered.record.as_ref().map(|record| record.anchor.clone());
    let stored = remembered.anchor.clone().ok().flatten().map(|anchor| match &recorded {
        Some(recorded) => anchor.settled(recorded),
        None => anchor,
    });
    // The last of those that are equal: an annotation that is not ahead of the status is not believed.
    stored.into_iter().chain(recorded).max_by_key(|anchor| anchor.seq)
}

/// A deployment never goes back.
fn check_retry(remembered: &Remembered, next: &Step) {
    let Some(before) = &remembered.record else { return };
    let anchored = remembered.anchor.clone().ok().flatten().filter(|anchor| anchor.seq > before.anchor.seq);
    let before = anchored.unwrap_or_else(|| before.anchor.clone());
    let after = &next.record.anchor;
    let id = |anchor: &Anchor| anchor.claim.as_ref().map(|claim| claim.id.clone());
    if id(&before) != id(after) || before.adopted {
        return;
    }
    assert!(
        before.milestone != Milestone::Provisioned || after.milestone >= Milestone::Provisioned,
        "a running node is provisioned again"
    );
    assert!(
        before.milestone != Milestone::Written
            || after.milestone >= Milestone::Written
            || before.deployment != after.deployment,
        "a deployment that was started is begun anew"
    );
}
