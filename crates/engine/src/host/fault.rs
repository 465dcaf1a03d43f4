//! What is wrong, since when, and when it is tried again.

use jiff::Timestamp;

use super::{AuthHold, Fault, Origin, pace, step::Scene};
use crate::failure::{Class, Failure, Kind};

impl Scene<'_> {
    pub(super) fn fail(&mut self, origin: Origin, failure: Failure, at: Timestamp) {
        let before = self
            .record
            .fault
            .take()
            .filter(|fault| fault.failure.kind == failure.kind && fault.inputs == self.sight.inputs);
        let count = before.as_ref().map_or(0, |fault| fault.count).saturating_add(1);
        let class = failure.kind.class();
        let next_try = match (class, failure.kind) {
            // An act that is refused where looks are not says nothing about the credentials.
            (Class::Auth, _) if origin == Origin::Look => self.hold(at),
            // Nothing is tried: it is looked at all the time, and told again.
            (_, Kind::BootIgnored) => pace::later(at, pace::boot_reminder(count)),
            _ => pace::later(at, pace::back_off(class, count, self.sight.spread)),
        };
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
        let until = |count| pace::later(at, pace::back_off(Class::Auth, count, self.sight.spread));
        let same = self.record.anchor.hold.as_ref().filter(|hold| hold.inputs == self.sight.inputs);
        // The status was lost, and the same refusal is seen once more: it does not count twice.
        if let Some(hold) = same.filter(|hold| hold.until == until(hold.count)) {
            return hold.until;
        }
        let count = same.map_or(0, |hold| hold.count).saturating_add(1);
        let until = until(count);
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
        let reminder = self.record.wait.as_ref().map_or(self.now(), |wait| wait.deadline);
        self.again = Some(self.again.map_or(reminder, |again| again.min(reminder)));
        self.record.beneath = self.record.fault.take();
        self.record.fault = Some(Fault {
            failure,
            origin: Origin::Object,
            count: 1,
            since,
            last: since,
            next_try: reminder,
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

    pub(super) fn recovered(&mut self) {
        if let Some(fault) = self.record.fault.take() {
            let message = format!("Over: {}", fault.failure.message);
            self.record.note(self.now(), message.clone());
            self.event(false, "Recovered", &message);
        }
    }
}
