//! Wall time, passed in.
//!
//! Wall time is only for what people read (status, events, lease times). Durations and deadlines are measured with
//! [`tokio::time::Instant`], which no administrator can set back.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time of day.
pub trait Clock: Debug + Send + Sync + 'static {
    /// The time of day, now.
    fn now(&self) -> Timestamp;

    /// How long to sleep until that much of this clock's time has passed. Only clocks that run faster than real time override it.
    fn pause(&self, span: SignedDuration) -> Duration {
        if span.is_negative() { Duration::ZERO } else { span.unsigned_abs() }
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        self.as_ref().now()
    }

    fn pause(&self, span: SignedDuration) -> Duration {
        self.as_ref().pause(span)
    }
}

/// The clock of the machine we run on.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    // All other code gets a Clock; only this one reads the system time.
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and then follows tokio's time, also when that is paused or advanced: for tests and
/// simulated fleets.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    start: Timestamp,
    started: Instant,
}

impl TokioClock {
    /// A clock that shows `start` now.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { start, started: Instant::now() }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.started.elapsed())
            .ok()
            .and_then(|elapsed| self.start.checked_add(elapsed).ok())
            .unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_test_clock_follows_paused_time() {
        let clock = TokioClock::starting_at("2026-11-15T08:00:00Z".parse().unwrap());
        tokio::time::sleep(Duration::from_hours(25)).await;
        assert_eq!(clock.now().to_string(), "2026-11-16T09:00:00Z");
    }

    #[tokio::test]
    async fn the_system_clock_shows_this_century() {
        assert!(SystemClock.now() > "2026-01-01T00:00:00Z".parse().unwrap());
    }
}
