//! Whether a claim is accepted, and whether it still holds.

use super::{
    Author, Claim, ClaimChange, Consumer, Finding, Happening, Inquiry, Order, Presence, Request, Waiting, pace,
    step::{Flow, GO_ON, STOP, Scene},
};
use crate::server::{PowerState, Scope};

/// How a claim on the object compares with the claim that we act for.
pub(super) enum Verdict {
    /// They are the same.
    Same,
    /// Ours is gone for good.
    Released,
}

impl Scene<'_> {
    /// A claim is accepted together with the first act for it, which saves one write per machine. If the BMC is unreachable, the
    /// claim is accepted first, and the fault is reported.
    pub(super) fn look_before_accepting(&mut self) -> Flow {
        match self.goal.order.clone().filter(|order| order.closed_gate().is_none()) {
            Some(order) => self.look_without_a_word(&order),
            None => GO_ON,
        }
    }

    /// The same before an order is accepted whose gate was closed until now.
    pub(super) fn look_before_preparing(&mut self, order: &Order) -> Flow {
        if self.record.anchor.deployment.is_some() { GO_ON } else { self.look_without_a_word(order) }
    }

    /// Goes on if there is a recent look, or if something is wrong. Nothing is stored before this one: what is done then is, in a moment.
    fn look_without_a_word(&mut self, order: &Order) -> Flow {
        let Ok(recipe) = &order.recipe else { return GO_ON };
        let scope = recipe.plan(self.goal.boot_mode).look;
        if self.record.fault.is_some() || self.seen(scope).is_some() {
            return GO_ON;
        }
        self.look = Some(scope);
        self.again = Some(pace::later(self.now(), pace::LOOK_LIMIT));
        self.undecided = true;
        STOP
    }

    /// Goes on if a claim may be accepted; otherwise waits. A former leader may have written the claim so late that its claimer
    /// no longer exists. Nothing is done until the claimer is known to exist. Since nothing was done so far, a stale claim can be
    /// removed in the end.
    pub(super) fn check_claimer(&mut self, claim: &Claim) -> Flow {
        if self.goal.author == Author::Hand || self.sight.claimer == Presence::Exists {
            return GO_ON;
        }
        let Some(consumer) = claim.consumer.clone() else { return GO_ON };
        if self.wait_out_fault().is_continue() {
            self.rest();
        }
        let again = pace::later(self.now(), pace::CONSUMER_AGAIN);
        self.again = Some(self.again.map_or(again, |rest| rest.min(again)));
        match &self.sight.claimer {
            Presence::Gone => self.refuse_ghost(consumer),
            Presence::Unknown(why) => {
                self.wait_for_others(Waiting::CheckingClaimer { consumer, unknown: Some(why.clone()) });
            }
            Presence::Leaving => self.wait_for_others(Waiting::ConsumerLeaving { consumer }),
            Presence::Exists | Presence::NotLookedUp => {
                self.inquire = Some(Inquiry::Claimer);
                self.wait_for_others(Waiting::CheckingClaimer { consumer, unknown: None });
            }
        }
        STOP
    }

    fn refuse_ghost(&mut self, consumer: Consumer) {
        let waiting = Waiting::ConsumerGone { consumer };
        if self.now() < pace::later(self.waiting_since(&waiting), pace::GHOST_LIMIT) {
            return self.wait(waiting, pace::GHOST_LIMIT);
        }
        if let Waiting::ConsumerGone { consumer } = waiting {
            self.announce(Happening::GhostClaim { consumer });
        }
        self.unclaim = true;
    }

    /// Compares the claim on the object with the one that we act for. Stops if ours seems to be gone, but may not be.
    pub(super) fn compare_claims(&mut self) -> Flow<Verdict> {
        let Some(ours) = self.record.anchor.claim.clone() else { return Flow::Continue(Verdict::Same) };
        if self.goal.claim.as_ref().is_some_and(|claim| claim.id == ours.id) {
            return Flow::Continue(Verdict::Same);
        }
        if self.heed_release(&ours) {
            return Flow::Continue(Verdict::Released);
        }
        // A host that orders for itself also ends that itself.
        let Some(consumer) = ours.consumer else { return Flow::Continue(Verdict::Released) };
        let change = match &self.goal.claim {
            Some(other) => ClaimChange::Replaced(other.holder()),
            None => ClaimChange::Removed,
        };
        let again = self.now() + pace::CONSUMER_AGAIN;
        let unknown = match &self.sight.consumer {
            Presence::Gone | Presence::Leaving => return Flow::Continue(Verdict::Released),
            Presence::NotLookedUp => {
                self.inquire = Some(Inquiry::Consumer);
                self.again = Some(again);
                self.wait_for_others(Waiting::CheckingConsumer { consumer, change });
                return Flow::Break(());
            }
            Presence::Exists => None,
            Presence::Unknown(why) => Some(why.clone()),
        };
        self.again = Some(again);
        let stale_release = self.goal.release.as_deref().map(shortened);
        self.object_fault(Finding::ConsumerMismatch { change, consumer, claim: ours.id, unknown, stale_release })?;
        Flow::Break(())
    }

    /// Whether the owner ends this claim. If so, the request counts as carried out.
    pub(super) fn heed_release(&mut self, ours: &Claim) -> bool {
        let asked = self.goal.release.as_ref() == Some(&ours.id);
        if asked {
            self.heeded.push(Request::Release);
        }
        asked
    }

    /// Whether the owner wants this adopted host to be provisioned. A name may stand in a manifest that is applied again and again,
    /// so it counts only for a server that is off; the id of the claim counts in any case.
    pub(super) fn is_to_be_provisioned(&self) -> bool {
        let (Some(asked), Some(claim)) = (&self.goal.provision, &self.record.anchor.claim) else { return false };
        let settled = self.record.started.is_none_or(|started| self.now() >= pace::later(started, pace::POWER_AGAIN));
        let is_off = || self.seen(Scope::Power).is_some_and(|seen| seen.power == PowerState::Off);
        claim.id == *asked || (claim.is_of(asked) && settled && is_off())
    }

    /// Goes on if the claim holds. If it is gone, begins the release.
    pub(super) fn keep_to_claim(&mut self) -> Flow {
        match self.compare_claims()? {
            Verdict::Same => GO_ON,
            Verdict::Released => {
                self.release()?;
                STOP
            }
        }
    }
}

/// As much of a foreign text as fits into a sentence.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
