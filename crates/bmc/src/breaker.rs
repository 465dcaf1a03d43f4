//! The circuit breaker of one BMC: a BMC that keeps failing is left alone for a while.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::failure::Kind;
use tokio::time::Instant;

use crate::error::Error;

const FAILURES_TO_OPEN: u32 = 5;
/// Shorter than the engine's time between two tries, so that each of its tries sends something.
const FIRST_COOL_DOWN: Duration = Duration::from_secs(8);
const LONGEST_COOL_DOWN: Duration = Duration::from_secs(24);

#[derive(Debug)]
pub(crate) struct Breaker {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
    cool_down: Duration,
    probing: bool,
    last: Option<Trouble>,
}

/// The last failure, which is reported while the breaker is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    pub(crate) told: String,
}

impl Trouble {
    pub(crate) fn of(error: &Error) -> Self {
        Self { kind: error.kind(), told: error.to_string() }
    }
}

/// May a request be sent?
#[derive(Debug)]
pub(crate) enum Admission<'a> {
    /// Yes.
    Yes,
    /// After one harmless request has shown that the BMC is back.
    AfterProbe(Probe<'a>),
    /// Not yet.
    No { last: Trouble },
}

/// The right to send the one request that is let through a half-open breaker; given back when dropped.
#[derive(Debug)]
pub(crate) struct Probe<'a>(&'a Breaker);

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.0.state().probing = false;
    }
}

impl Breaker {
    pub(crate) fn new() -> Self {
        let state = State { failures: 0, open_until: None, cool_down: FIRST_COOL_DOWN, probing: false, last: None };
        Self { state: Mutex::new(state) }
    }

    pub(crate) fn admit(&self) -> Admission<'_> {
        let mut state = self.state();
        let Some(until) = state.open_until else { return Admission::Yes };
        let now = Instant::now();
        if now >= until && !state.probing {
            state.probing = true;
            return Admission::AfterProbe(Probe(self));
        }
        let unknown = || Trouble { kind: Kind::BreakerOpen, told: "it keeps failing".into() };
        Admission::No { last: state.last.clone().unwrap_or_else(unknown) }
    }

    /// The BMC answered sensibly.
    pub(crate) fn succeeded(&self) {
        let mut state = self.state();
        state.failures = 0;
        state.open_until = None;
        state.cool_down = FIRST_COOL_DOWN;
        state.last = None;
    }

    /// The BMC failed. `jitter` is between 0 and 1.
    pub(crate) fn failed(&self, last: Trouble, jitter: f64) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        state.last = Some(last);
        let now = Instant::now();
        // While it is open, only a failed probe prolongs it; requests that were already sent do not.
        let may_open = state.open_until.is_none_or(|until| now >= until);
        if state.failures >= FAILURES_TO_OPEN && may_open {
            state.open_until = Some(now + state.cool_down.mul_f64(0.8 + 0.4 * jitter));
            state.cool_down = (state.cool_down * 2).min(LONGEST_COOL_DOWN);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble() -> Trouble {
        Trouble { kind: Kind::Unreachable, told: "boom".into() }
    }

    fn is_open(breaker: &Breaker) -> bool {
        matches!(breaker.admit(), Admission::No { .. })
    }

    #[tokio::test(start_paused = true)]
    async fn opens_after_five_failures_in_a_row_and_lets_one_probe_through() {
        let breaker = Breaker::new();
        for _ in 0..4 {
            breaker.failed(trouble(), 0.5);
        }
        breaker.succeeded();
        for _ in 0..4 {
            breaker.failed(trouble(), 0.5);
        }
        assert!(!is_open(&breaker));
        breaker.failed(trouble(), 0.5);
        assert!(is_open(&breaker));

        tokio::time::advance(Duration::from_secs(9)).await;
        let Admission::AfterProbe(probe) = breaker.admit() else { panic!("half open") };
        assert!(is_open(&breaker), "one probe at a time");
        drop(probe);
        assert!(matches!(breaker.admit(), Admission::AfterProbe(_)), "a cancelled probe is given back");
    }

    #[tokio::test(start_paused = true)]
    async fn the_cool_down_doubles_but_never_outlasts_the_engines_patience() {
        let breaker = Breaker::new();
        for _ in 0..5 {
            breaker.failed(trouble(), 0.5);
        }
        for expected in [8, 16, 24, 24, 24] {
            let Admission::No { last } = breaker.admit() else { panic!("open") };
            assert_eq!(last, trouble(), "what is said does not change");
            tokio::time::advance(Duration::from_secs(expected - 1)).await;
            assert!(is_open(&breaker));
            tokio::time::advance(Duration::from_secs(1)).await;
            let Admission::AfterProbe(_probe) = breaker.admit() else { panic!("half open") };
            breaker.failed(trouble(), 0.5);
        }
        breaker.succeeded();
        assert!(matches!(breaker.admit(), Admission::Yes));
    }
}
