//! Taking in what was seen, and making sure that it was the right server.

use jiff::Timestamp;

use super::{
    BmcSight, Deed, Fault, Origin, Phase, Road, Unread, pace,
    step::{Answers, Scene},
};
use crate::{
    failure::{Failure, Kind},
    hardware::is_same_uuid,
    server::{Media, PowerState, Scope, Seen},
};

impl Scene<'_> {
    /// Another address is another server. That is fine for a host that nobody uses; for one in use, answers where it was.
    pub(super) fn former_target(&mut self) -> Option<String> {
        let target = self.record.target.clone().filter(|target| *target != self.sight.target)?;
        let anchor = &self.record.anchor;
        let used = anchor.is_in_use();
        let claimed = self.goal.claim.as_ref().map(|claim| &claim.id);
        let held = anchor.claim.as_ref().is_some_and(|ours| claimed == Some(&ours.id));
        if used && (held || !self.goal.release_anyway || matches!(self.goal.road, Road::Delete(_))) {
            return Some(target);
        }
        if used {
            self.record.anchor.release();
            self.left_as_it_is(&format!("the server at {target} cannot be reached under the new address."));
        }
        self.meet_another_server();
        None
    }

    fn meet_another_server(&mut self) {
        self.record.target = None;
        self.record.inspected = false;
        self.record.unread = None;
        self.record.fault = None;
        self.record.doing = None;
        self.record.started = None;
        self.record.media = None;
        self.record.power = PowerState::Unknown;
        self.record.anchor.uuid = None;
        self.record.anchor.pin = None;
        self.record.anchor.powered_on = false;
        if !self.record.phase.is_aside() && self.record.phase != Phase::Registering {
            self.advance(Phase::Registering, "The address was changed: this is another server.");
        }
    }

    /// The host is in use, but the server that we know is not where the object says.
    pub(super) fn lost_sight_of(&mut self, target: &str) {
        if matches!(self.goal.road, Road::Delete(_)) {
            return self.farewell(Some(target));
        }
        let message = format!(
            "This host is in use, but its address was changed from {target} to {}. Nothing is done to either server. Put the address back; or remove the claim and annotate the host with beskar7.io/release=true, which leaves the old server as it is.",
            self.sight.target
        );
        self.object_fault(Failure::new(Kind::SystemChanged, message));
    }

    /// Takes in what the last look and the last act brought.
    pub(super) fn observe(&mut self) {
        let Some(bmc) = self.latest_sight() else {
            self.restore_hold();
            return;
        };
        let news = self.is_news(bmc);
        let outcome = bmc.act.as_ref().filter(|outcome| outcome.number == self.record.acted);
        let refusal = outcome.and_then(|outcome| outcome.result.as_ref().err());
        let seen = bmc.seen.as_ref().map_err(Clone::clone).and_then(|seen| self.check_identity(seen).map(|()| seen));
        match seen {
            Err(failure) if news => {
                if let Some(refusal) = refusal {
                    self.reopen_restart(refusal);
                }
                // Whether the act worked cannot be seen; what is seen next decides anew.
                self.record.doing = None;
                self.fail(Origin::Look, failure, bmc.at);
            }
            Err(_) => {}
            Ok(seen) => {
                if seen.power != PowerState::Unknown {
                    self.record.power = seen.power;
                }
                self.record.anchor.hold = None;
                self.renew_pin(seen);
                self.take_in_gaps(seen, bmc.at);
                if self.record.target.is_none() {
                    self.record.target = Some(self.sight.target.clone());
                }
                if news && self.record.fault.as_ref().is_some_and(|fault| fault.origin == Origin::Look) {
                    self.recovered();
                }
                if self.media_have_come_to_rest(bmc, seen) {
                    self.record.media = None;
                }
                match (outcome, refusal) {
                    // The outcome is told again with every later sight, but it was an act's only once.
                    (_, Some(refusal)) if self.record.doing.is_some() => self.act_failed(refusal, bmc.at),
                    // Nobody knows whether an act was performed that was decided before a crash: decide anew.
                    (None, _) => self.record.doing = None,
                    _ => {}
                }
            }
        }
    }

    /// A certificate that was accepted by another rule than the pin (the owner pasted its fingerprint) is the pin from now on.
    fn renew_pin(&mut self, seen: &Seen) {
        if self.goal.pin_on_first_use && self.record.anchor.pin.is_some() && seen.certificate.is_some() {
            self.record.anchor.pin.clone_from(&seen.certificate);
        }
    }

    /// Which parts of the inventory could not be read is remembered until they are.
    fn take_in_gaps(&mut self, seen: &Seen, at: Timestamp) {
        let Some(hardware) = &seen.hardware else { return };
        if hardware.unread.is_empty() {
            self.record.unread = None;
            return;
        }
        let tries = match &self.record.unread {
            // A sight is met more than once.
            Some(unread) if unread.last == at => return,
            Some(unread) => unread.tries.saturating_add(1),
            None => 1,
        };
        self.record.unread = Some(Unread { parts: hardware.unread.clone(), tries, last: at });
    }

    /// How deep to look from time to time: also at the inventory, if parts of it are still missing.
    pub(super) fn scope_at_rest(&self) -> Scope {
        let unread = self.record.unread.as_ref().filter(|_| self.record.inspected);
        let is_due =
            unread.is_some_and(|unread| self.now() >= pace::later(unread.last, pace::unread_again(unread.tries)));
        if is_due { Scope::Inventory } else { Scope::Power }
    }

    /// Whether nothing of the last act with media is still to come: it was performed, and the drives are as it should leave
    /// them. Also if it was for something that nobody wants any more.
    fn media_have_come_to_rest(&self, bmc: &BmcSight, seen: &Seen) -> bool {
        let Some(moving) = &self.record.media else { return false };
        let Some(outcome) = bmc.act.as_ref().filter(|outcome| Some(outcome.number) == moving.act) else { return false };
        let shown = seen.media.as_ref().map(|drives| drives.iter().any(Media::is_occupied));
        outcome.result.is_ok() && shown == Some(moving.inserts)
    }

    /// Whether what the drives show cannot be believed yet; if so, waits. Media come and go in the background and are
    /// reported late, so it can be when it is known that what we ordered was carried out, or when time has passed.
    pub(super) fn media_may_be_moving(&mut self, scope: Scope) -> bool {
        let Some(since) = self.record.media.as_ref().map(|moving| moving.since) else { return false };
        let until = pace::later(since, pace::MEDIA_LIMIT);
        let ordered = self.doing(Deed::PrepareBoot).or(self.doing(Deed::CleanUp)).is_some();
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let performed = outcome.is_some_and(|act| act.number == self.record.acted && act.result.is_ok());
        if (ordered && performed) || self.now() >= until {
            return false;
        }
        let message = "Nobody knows how the last act with virtual media ended; waiting for the BMC to be done with it.";
        self.wait_until("MediaUnsettled", message, until);
        self.poll(scope, since);
        true
    }

    fn act_failed(&mut self, failure: &Failure, at: Timestamp) {
        // Not every BMC or system can be asked to shut down. The power is cut when the time for it is up.
        if self.doing(Deed::ShutDown).is_some() && !failure.kind.is_about_reaching_the_bmc() {
            return;
        }
        // A BMC without virtual media or boot override has none to clean up. What is seen decides.
        if self.doing(Deed::CleanUp).is_some() && failure.kind == Kind::Unsupported {
            return;
        }
        // What is seen decides about this one as well: it is tried again in another way, and the node is none the worse.
        if self.doing(Deed::DisarmBoot).is_some() {
            return;
        }
        self.reopen_restart(failure);
        if was_refused(failure) {
            self.record.media = None;
        }
        self.fail(Origin::Act, failure.clone(), at);
    }

    /// A restart that was refused did not happen, so the request is still open.
    fn reopen_restart(&mut self, failure: &Failure) {
        if was_refused(failure) && self.doing(Deed::Restart).is_some() {
            self.record.rebooted = None;
        }
    }

    /// Whether an act was decided and not yet looked at; if so, looks and waits as before.
    pub(super) fn awaits_sight(&mut self) -> bool {
        if self.latest_sight().is_some() || self.record.doing.is_none() {
            return false;
        }
        self.record.wait = self.wait_before.take();
        let tidying = matches!(self.record.phase, Phase::Preparing | Phase::Deprovisioning | Phase::Deleting);
        self.look = Some(if tidying { Scope::Boot } else { Scope::Power });
        true
    }

    fn check_identity(&mut self, seen: &Seen) -> Result<(), Failure> {
        let (Some(known), Some(shown)) = (&self.record.anchor.uuid, seen_uuid(seen)) else { return Ok(()) };
        // A new BIOS may show it in the other byte order.
        if *known == shown || is_same_uuid(known, &shown) {
            return Ok(());
        }
        if !self.record.anchor.is_in_use() && self.goal.inspect.is_some() && self.goal.inspect != self.record.inspection
        {
            self.answers = Answers::Replacement;
            self.record.fault.take_if(|fault| fault.failure.kind == Kind::SystemChanged);
            return Ok(());
        }
        let message = format!(
            "The BMC now shows a server with UUID {shown}, but this host was registered with {known}. Nothing is done to it. Put the address right; if the board was replaced, ask for an inspection of the released host."
        );
        self.answers = Answers::Another;
        Err(Failure::new(Kind::SystemChanged, message))
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
}

/// Whether an act that failed like this did not happen.
fn was_refused(failure: &Failure) -> bool {
    !matches!(failure.kind, Kind::Unreachable | Kind::BadAnswer)
}

/// UUID of the server that was seen. It goes into the anchor, so whatever a BMC says must fit there.
pub(super) fn seen_uuid(seen: &Seen) -> Option<String> {
    seen.uuid.as_ref().map(|uuid| uuid.chars().take(64).collect())
}
