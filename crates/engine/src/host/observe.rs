//! Evaluating what was seen, and checking that it is the right server.

use jiff::Timestamp;

use super::{
    BmcSight, Deed, Fault, Finding, Happening, Neglect, Origin, Outcome, Passage, Phase, Road, Unread, Waiting, pace,
    step::{Answers, Flow, GO_ON, STOP, Scene},
};
use crate::{
    failure::{Class, Failure, Kind},
    hardware::is_same_uuid,
    server::{Media, PowerState, Scope, Seen},
};

impl Scene<'_> {
    /// A changed address means another server. For a host that nobody uses, that is allowed; for a host in use, returns its
    /// former address.
    pub(super) fn former_target(&mut self) -> Option<String> {
        let target = self.record.target.clone().filter(|target| *target != self.sight.target)?;
        let anchor = &self.record.anchor;
        let used = anchor.is_in_use();
        let claimed = self.goal.claim.as_ref().map(|claim| &claim.id);
        let held = anchor.claim.as_ref().is_some_and(|ours| claimed == Some(&ours.id));
        let ours = anchor.claim.clone();
        let may_let_go = !held && !matches!(self.goal.road, Road::Delete(_));
        if used && !(may_let_go && ours.is_none_or(|ours| self.heed_release(&ours))) {
            return Some(target);
        }
        if used {
            self.record.anchor.release(self.now());
            self.leave_as_it_is(Neglect::Unreachable(target));
        }
        self.meet_another_server(Passage::AnotherAddress);
        None
    }

    fn meet_another_server(&mut self, why: Passage) {
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
        // Whatever the former server was lent for, this one was not.
        self.record.anchor.take_back();
        self.record.anchor.outdated = None;
        if !self.record.phase.is_aside() && self.record.phase != Phase::Registering {
            self.advance(Phase::Registering, why);
        }
    }

    /// The host is in use, and its address was changed.
    pub(super) fn lose_sight_of(&mut self, target: &str) -> Flow {
        if matches!(self.goal.road, Road::Delete(_)) {
            return self.delete(Some(target));
        }
        let claim = self.record.anchor.claim_id().to_owned();
        let (from, to) = (target.to_owned(), self.sight.target.clone());
        self.object_fault(Finding::AddressChanged { from, to, claim })
    }

    /// Evaluates the last look and the result of the last act.
    pub(super) fn observe(&mut self) {
        let Some(bmc) = self.latest_sight() else {
            self.restore_hold();
            return;
        };
        let news = self.is_news(bmc);
        let outcome = bmc.act.as_ref().filter(|outcome| outcome.number == self.record.acted);
        let seen = bmc.seen.as_ref().map_err(Clone::clone).and_then(|seen| self.check_identity(seen).map(|()| seen));
        match seen {
            // The act is not forgotten: the next good look shows its effect.
            Err(failure) if news && !self.may_be_catching_up(bmc) => self.fail(Origin::Look, failure, bmc.at),
            Err(_) => {}
            Ok(seen) => {
                let is_under_way = self.record.phase == Phase::Inspecting || self.record.anchor.is_on_errand();
                if self.answers == Answers::Replacement && is_under_way {
                    // What was begun with the former server is not finished with this one.
                    self.meet_another_server(Passage::Replaced);
                }
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
                    self.recover();
                }
                if self.media_have_come_to_rest(bmc, seen) {
                    self.record.media = None;
                }
                match outcome {
                    // Every later sight repeats the outcome, but it counts once.
                    Some(Outcome { result: Err(failure), not_performed, .. }) if self.record.doing.is_some() => {
                        self.act_failed(failure, *not_performed, bmc.at);
                    }
                    Some(_) => {}
                    // Whether an act that was decided before a crash was performed is unknown: decide again.
                    None => self.record.doing = None,
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

    /// Remembers which parts of the inventory could not be read, until they are.
    fn take_in_gaps(&mut self, seen: &Seen, at: Timestamp) {
        let Some(hardware) = &seen.hardware else { return };
        if hardware.unread.is_empty() {
            self.record.unread = None;
            return;
        }
        let tries = match &self.record.unread {
            // The same sight is evaluated more than once.
            Some(unread) if unread.last == at => return,
            Some(unread) if hardware.goes_on => unread.tries,
            Some(unread) => unread.tries.saturating_add(1),
            None => 1,
        };
        self.record.unread = Some(Unread { parts: hardware.unread.clone(), tries, last: at });
    }

    /// How deep to look at rest: includes the inventory if parts of it are missing.
    pub(super) fn scope_at_rest(&self) -> Scope {
        let unread = self.record.unread.as_ref().filter(|_| self.record.inspected);
        let is_due =
            unread.is_some_and(|unread| self.now() >= pace::later(unread.last, pace::unread_again(unread.tries)));
        if is_due { Scope::Inventory } else { Scope::Power }
    }

    /// Whether the last act on media has taken full effect: it was performed, and the drives are as it should leave them, even if
    /// nobody wants that any more.
    fn media_have_come_to_rest(&self, bmc: &BmcSight, seen: &Seen) -> bool {
        let Some(moving) = &self.record.media else { return false };
        let Some(outcome) = bmc.act.as_ref().filter(|outcome| Some(outcome.number) == moving.act) else { return false };
        let shown = seen.media.as_ref().map(|drives| drives.iter().any(Media::is_occupied));
        outcome.result.is_ok() && shown == Some(moving.inserts)
    }

    /// Waits if what the drives show may be outdated. BMCs insert and eject in the background and report late, so the drives are
    /// trusted once the last act is known to be complete, or after some time.
    pub(super) fn let_media_settle(&mut self, scope: Scope) -> Flow {
        let Some(since) = self.record.media.as_ref().map(|moving| moving.since) else { return GO_ON };
        let until = pace::later(since, pace::MEDIA_LIMIT);
        let ordered = self.doing(Deed::PrepareBoot).or(self.doing(Deed::CleanUp)).is_some();
        let outcome = self.latest_sight().and_then(|bmc| bmc.act.as_ref());
        let performed = outcome.is_some_and(|act| act.number == self.record.acted && act.result.is_ok());
        if (ordered && performed) || self.now() >= until {
            return GO_ON;
        }
        self.wait_until(Waiting::MediaUnsettled, until);
        self.poll(scope, since);
        STOP
    }

    /// Whether a look failed only because the BMC is busy with the last act: an iDRAC cannot be read for some time after media or
    /// power were changed.
    fn may_be_catching_up(&self, bmc: &BmcSight) -> bool {
        let Some(doing) = self.record.doing.as_ref().filter(|_| self.record.fault.is_none()) else { return false };
        let is_passing = |failure: &Failure| matches!(failure.kind.class(), Class::Transient | Class::Throttled);
        bmc.seen.as_ref().is_err_and(is_passing) && bmc.at < pace::later(doing.since, pace::READ_AGAIN)
    }

    fn act_failed(&mut self, failure: &Failure, not_performed: bool, at: Timestamp) {
        // Not every BMC or system supports a shutdown. The power is cut when the time for it is up.
        if self.doing(Deed::ShutDown).is_some() && !failure.kind.is_about_reaching_the_bmc() {
            return;
        }
        // A BMC without virtual media or boot override has nothing to clean up. The next look decides.
        let nothing_is_left = self.glance().is_some_and(|seen| {
            let mut drives = seen.media.iter().flatten();
            seen.boot.is_none() && seen.media.is_some() && !drives.any(Media::is_occupied)
        });
        if self.doing(Deed::CleanUp).is_some() && (failure.kind == Kind::Unsupported || nothing_is_left) {
            return;
        }
        // The next look decides here, too: it is tried again in another way, which does not disturb the node.
        if self.doing(Deed::DisarmBoot).is_some() {
            return;
        }
        if self.doing(Deed::Restart).is_some() && !self.reopen_restart(failure, not_performed) {
            return;
        }
        if was_refused(failure) {
            self.record.media = None;
        }
        if failure.kind == Kind::MediaRefused {
            // What is in a shared drive now is not the image that was about to be inserted.
            self.record.anchor.image = None;
        }
        self.fail(Origin::Act, failure.clone(), at);
    }

    /// Whether a failed restart request is still open: the restart certainly did not happen, and was not refused too often.
    /// Otherwise it may have happened, and a second one would do harm.
    fn reopen_restart(&mut self, failure: &Failure, not_performed: bool) -> bool {
        let refusals = self.record.fault.as_ref().filter(|fault| fault.failure.kind == failure.kind);
        let refusals = refusals.map_or(0, |fault| fault.count).saturating_add(1);
        if not_performed && refusals < pace::RESTART_TRIES {
            self.record.rebooted = None;
            return true;
        }
        self.tell(if not_performed {
            Happening::RestartRefused { times: refusals, failure: failure.clone() }
        } else {
            Happening::RestartUnconfirmed(failure.clone())
        });
        self.record.doing = None;
        self.drop_act_fault();
        false
    }

    /// Looks and waits as before, if an act was decided and not yet looked at.
    pub(super) fn await_sight(&mut self) -> Flow {
        let Some(since) = self.record.doing.as_ref().map(|doing| doing.since) else { return GO_ON };
        let is_seen = self.latest_sight().map(|bmc| !self.may_be_catching_up(bmc));
        if is_seen == Some(true) {
            return GO_ON;
        }
        self.record.wait = self.wait_before.take();
        let scope = self.scope_of_doing();
        if is_seen.is_none() {
            self.look = Some(scope);
        } else {
            self.poll(scope, since);
        }
        STOP
    }

    /// How deep to look at what came of the last act.
    fn scope_of_doing(&self) -> Scope {
        let tidying = matches!(self.record.phase, Phase::Preparing | Phase::Deprovisioning | Phase::Deleting);
        if tidying || self.doing(Deed::PrepareBoot).is_some() { self.scope_of_undo() } else { Scope::Power }
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
        let registered = known.clone();
        self.answers = Answers::Another;
        Err(Finding::AnotherServer { shown, registered }.into())
    }

    /// A lost status does not lift the hold on refused credentials.
    fn restore_hold(&mut self) {
        let Some(hold) = &self.record.anchor.hold else { return };
        if hold.inputs != self.sight.inputs || self.record.fault.is_some() || self.now() >= hold.until {
            return;
        }
        self.record.fault = Some(Fault {
            failure: Finding::RefusedEarlier.into(),
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

/// UUID of the server that was seen. It is stored in the anchor, which limits its size.
pub(super) fn seen_uuid(seen: &Seen) -> Option<String> {
    seen.uuid.as_ref().map(|uuid| uuid.chars().take(64).collect())
}
