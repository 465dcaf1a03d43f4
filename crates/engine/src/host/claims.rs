//! Whether a claim is accepted, and whether it still holds.

use super::{Author, Claim, Consumer, Inquiry, Request, Whereabouts, pace, step::Scene};
use crate::{
    failure::{Failure, Kind},
    server::{PowerState, Scope},
};

pub(super) const WAITING_FOR_CONSUMER: &str = "WaitingForConsumerRelease";
pub(super) const CONSUMER_GONE: &str = "ConsumerGone";
pub(super) const CHECKING_CONSUMER: &str = "CheckingConsumer";

/// How a claim on the object compares with the claim that we act for.
pub(super) enum Verdict {
    /// They are the same.
    Same,
    /// Ours is gone for good.
    Released,
    /// Ours seems to be gone, but may not be: nothing is done.
    Unclear,
}

impl Scene<'_> {
    /// A claim is accepted together with the first act for it, which saves each of a thousand machines a record of the time in
    /// between. Whoever cannot be looked at is told about, and accepted first.
    pub(super) fn looks_before_accepting(&mut self) -> bool {
        let order = self.goal.order.as_ref().filter(|order| order.closed_gate().is_none());
        let Some(Ok(recipe)) = order.map(|order| &order.recipe) else { return false };
        let scope = recipe.plan(self.goal.boot_mode).look;
        if self.record.fault.is_some() || self.seen(scope).is_some() {
            return false;
        }
        self.look = Some(scope);
        self.again = Some(pace::later(self.now(), pace::LOOK_LIMIT));
        self.undecided = true;
        true
    }

    /// Whether a claim may be accepted; if not, waits. A leader that was deposed may have written it so late that its claimer
    /// is gone: nothing is done for a ghost. Nothing was done so far, so the claim can be taken off in the end.
    pub(super) fn is_claimed_by_the_living(&mut self, claim: &Claim) -> bool {
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

    /// Compares the claim on the object with the one that we act for.
    pub(super) fn claim_verdict(&mut self) -> Verdict {
        let Some(ours) = self.record.anchor.claim.clone() else { return Verdict::Same };
        if self.goal.claim.as_ref().is_some_and(|claim| claim.id == ours.id) {
            return Verdict::Same;
        }
        if self.heed_release(&ours) {
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
                "spec.consumerRef {what}, but {} still exists and is not being deleted, so the server is left running. Put the reference back, delete the consumer, or annotate the host with beskar7.io/release={}, which is the id of the claim.{}",
                ours.consumer,
                ours.id,
                self.stale_release()
            ),
            Whereabouts::Unknown(why) => format!(
                "spec.consumerRef {what}, and whether {} still exists cannot be told ({why}), so the server is left running. Put the reference back, or annotate the host with beskar7.io/release={}, which is the id of the claim.{}",
                ours.consumer,
                ours.id,
                self.stale_release()
            ),
        };
        self.again = Some(again);
        self.object_fault(Failure::new(Kind::ConsumerMismatch, message));
        Verdict::Unclear
    }

    /// Whether the owner ends this claim, which that word then has done.
    pub(super) fn heed_release(&mut self, ours: &Claim) -> bool {
        let asked = self.goal.release.as_ref() == Some(&ours.id);
        if asked {
            self.heeded.push(Request::Release);
        }
        asked
    }

    /// What is said of a word that ends another claim, or none.
    fn stale_release(&self) -> String {
        let stale = self.goal.release.as_ref();
        stale
            .map(|value| format!(" Its present value \"{}\" counts for nothing.", shortened(value)))
            .unwrap_or_default()
    }

    /// Whether the owner wants this adopted host to be provisioned. A name may stand in a manifest that is applied again and again,
    /// so it counts only for a server that is off; the id of the claim counts in any case.
    pub(super) fn is_to_be_provisioned(&self) -> bool {
        let (Some(asked), Some(claim)) = (&self.goal.provision, &self.record.anchor.claim) else { return false };
        let settled = self.record.started.is_none_or(|started| self.now() >= pace::later(started, pace::POWER_AGAIN));
        let is_off = || self.seen(Scope::Power).is_some_and(|seen| seen.power == PowerState::Off);
        claim.id == *asked || (claim.consumer.is_called(asked) && settled && is_off())
    }

    /// Whether the claim holds. If it is gone, begins the release.
    pub(super) fn claim_holds(&mut self) -> bool {
        match self.claim_verdict() {
            Verdict::Same => true,
            Verdict::Unclear => false,
            Verdict::Released => {
                self.release();
                false
            }
        }
    }
}

/// As much of a text of somebody else's as a sentence can bear.
pub(super) fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
