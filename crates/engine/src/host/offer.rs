//! Whether a host can be claimed, and who has it, from its stored objects alone.

use super::{Anchor, Claim, Goal, Milestone, Phase, Road, is_running, runs_unasked};
use crate::{failure::Kind, server::PowerState};

/// What is known of a host without looking at its server.
#[derive(Debug, Clone, Copy)]
pub struct Overview<'a> {
    /// What is wanted of it.
    pub goal: &'a Goal,
    /// Its anchor, without a claim that was only announced.
    pub anchor: Option<&'a Anchor>,
    /// Its phase; `None` before the first look.
    pub phase: Option<Phase>,
    /// What is wrong with it.
    pub fault: Option<Kind>,
    /// Power, as it was last seen.
    pub power: PowerState,
    /// Whether nothing may be done to it now.
    pub paused: bool,
}

/// Whether a host can be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Free,
    /// Somebody has claimed it.
    Claimed(Claim),
    /// Its server runs although nobody asked for it, so somebody may use it.
    Running,
    /// It is being deleted.
    Deleting,
    /// It is in quarantine.
    Quarantined,
    /// Nothing may be done to it now.
    Paused,
    /// It is under maintenance or detached.
    Aside,
    /// Something is wrong with it.
    Faulty(Kind),
    /// Its server is being switched off.
    SwitchingOff,
    /// It is in this other phase; `None` before the first look.
    NotReady(Option<Phase>),
}

/// A claim on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The claim.
    pub claim: Claim,
    /// Whether it is on the object.
    pub claimed: bool,
    /// Whether something is or was done to the server for it.
    pub bound: bool,
}

impl Overview<'_> {
    /// Whether it can be claimed.
    pub fn availability(&self) -> Availability {
        let goal = self.goal;
        if let Some(claim) = &goal.claim {
            return Availability::Claimed(claim.clone());
        }
        if matches!(goal.road, Road::Delete(_)) {
            return Availability::Deleting;
        }
        if goal.quarantine {
            return Availability::Quarantined;
        }
        if self.paused {
            return Availability::Paused;
        }
        if let Some(kind) = self.fault {
            return Availability::Faulty(kind);
        }
        if goal.road != Road::Manage {
            return Availability::Aside;
        }
        let in_use = self.anchor.is_some_and(Anchor::is_in_use) || goal.external;
        if self.phase != Some(Phase::Available) || in_use {
            return Availability::NotReady(self.phase);
        }
        // What was asked before the last release does not count.
        let online = goal.online.filter(|_| self.anchor.is_none_or(|anchor| anchor.outdated.is_none()));
        let held_off = goal.held_off.filter(|held| held.also_free).map(|_| false);
        let online = held_off.or(online);
        if runs_unasked(self.power, online, goal.claimable_while_running) {
            return Availability::Running;
        }
        if is_running(self.power) && online == Some(false) {
            return Availability::SwitchingOff;
        }
        Availability::Free
    }

    /// The claim on the object, and the claim that we act for if that is another one.
    pub fn holdings(&self) -> Vec<Holding> {
        let bound = self.anchor.and_then(|anchor| anchor.claim.as_ref());
        let is_bound = |claim: &Claim| bound.is_some_and(|bound| bound.id == claim.id);
        let claimed = self.goal.claim.as_ref();
        let other = bound.filter(|bound| claimed.is_none_or(|claimed| claimed.id != bound.id));
        let mut all: Vec<_> = claimed
            .map(|claim| Holding { claim: claim.clone(), claimed: true, bound: is_bound(claim) })
            .into_iter()
            .collect();
        all.extend(other.map(|claim| Holding { claim: claim.clone(), claimed: false, bound: true }));
        all
    }
}

impl Anchor {
    /// What the id of a deployment is made from: claim, order, and when the server became free for it. A claim written by hand
    /// has the same text each time, and tickets of an earlier deployment must not be valid for a later one.
    pub fn words_of_deployment(anchor: Option<&Self>, words: &str) -> String {
        match anchor.and_then(|anchor| anchor.free_since) {
            Some(since) => format!("{words} since {since}"),
            None => words.to_owned(),
        }
    }

    /// Whether the server may run what this deployment orders. That is stored before it is powered on, so an earlier request
    /// cannot come from the server.
    pub fn may_run(&self, deployment: &str) -> bool {
        let may_run = matches!(self.milestone, Milestone::Written | Milestone::Provisioned);
        may_run && self.deployment.as_deref() == Some(deployment)
    }
}
