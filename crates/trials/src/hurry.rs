//! A clock for tests on a cluster, where time cannot be paused.

use std::time::Duration;

use controllers::clock::{Clock, SystemClock};

/// A clock that runs faster than the world, so that a test need not wait ten minutes for a back-off. Only what the engine
/// measures runs faster; BMCs and their client keep their own time.
#[derive(Debug, Clone, Copy)]
pub struct Hurry {
    start: jiff::Timestamp,
    started: tokio::time::Instant,
    factor: i32,
}

impl Hurry {
    /// A clock of which `factor` seconds pass in each second.
    pub fn by(factor: i32) -> Self {
        Self { factor, ..Self::from(SystemClock.now()) }
    }

    /// A clock that shows `start` now and is in no hurry.
    pub fn from(start: jiff::Timestamp) -> Self {
        Self { start, started: tokio::time::Instant::now(), factor: 1 }
    }
}

impl Clock for Hurry {
    fn now(&self) -> jiff::Timestamp {
        let elapsed = jiff::SignedDuration::try_from(self.started.elapsed()).unwrap();
        self.start + elapsed * self.factor
    }

    fn pause(&self, span: jiff::SignedDuration) -> Duration {
        (span.max(jiff::SignedDuration::ZERO) / self.factor).unsigned_abs()
    }
}
