//! What is wrong, since when, and when it is tried again.

use jiff::Timestamp;

use super::{
    AuthHold, Fault, Happening, Origin, Waiting, pace,
    step::{Flow, GO_ON, STOP, Scene},
};
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
            // If looks succeed, a refused act says nothing about the credentials.
            (Class::Auth, _) if origin == Origin::Look => self.hold(at),
            // Nothing is retried: the boot is watched, and a reminder is sent.
            (_, Kind::BootIgnored) => pace::later(at, pace::boot_reminder(count)),
            _ => pace::later(at, pace::back_off(class, count, self.sight.spread)),
        };
        if before.is_none() {
            let what = Happening::Failed(failure.clone());
            self.announce(what.clone());
            self.remember_at(at, what);
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

    /// An act turned out to be impossible.
    pub(super) fn fail_to_act(&mut self, failure: impl Into<Failure>) -> Flow {
        self.fail(Origin::Act, failure.into(), self.now());
        self.wait_out_fault()?;
        STOP
    }

    fn hold(&mut self, at: Timestamp) -> Timestamp {
        let until = |count| pace::later(at, pace::back_off(Class::Auth, count, self.sight.spread));
        let same = self.record.anchor.hold.as_ref().filter(|hold| hold.inputs == self.sight.inputs);
        // After a lost status the same refusal is seen again: it does not count twice.
        if let Some(hold) = same.filter(|hold| hold.until == until(hold.count)) {
            return hold.until;
        }
        let count = same.map_or(0, |hold| hold.count).saturating_add(1);
        let until = until(count);
        self.record.anchor.hold = Some(AuthHold { until, count, inputs: self.sight.inputs.clone() });
        until
    }

    /// The object itself is wrong: nothing is done until it is corrected.
    pub(super) fn object_fault(&mut self, failure: impl Into<Failure>) -> Flow {
        let failure = failure.into();
        let before = self.object_fault_before.take().filter(|fault| fault.failure.kind == failure.kind);
        if before.is_none() {
            self.tell(Happening::Failed(failure.clone()));
        }
        let since = before.map_or(self.now(), |fault| fault.since);
        self.wait_with_reminder(Waiting::NextTry(failure.kind), Happening::StillWrong(failure.clone()));
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
        STOP
    }

    /// Waits for the next try, if there is a fault that keeps us from going on now.
    pub(super) fn wait_out_fault(&mut self) -> Flow {
        let Some(fault) = &self.record.fault else { return GO_ON };
        if self.now() >= fault.next_try || fault.inputs != self.sight.inputs {
            return GO_ON;
        }
        let (kind, next_try, origin) = (fault.failure.kind, fault.next_try, fault.origin);
        self.wait_until(Waiting::NextTry(kind), next_try);
        if origin == Origin::Act {
            self.rest();
        }
        self.again = Some(self.again.map_or(next_try, |again| again.min(next_try)));
        STOP
    }

    pub(super) fn recover(&mut self) {
        if let Some(fault) = self.record.fault.take() {
            self.tell(Happening::Recovered(fault.failure));
        }
    }
}
