//! When to try again, and how long to wait before.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;

/// How often, and how long to wait in between.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) tries: u32,
    pub(crate) base: Duration,
    pub(crate) cap: Duration,
}

/// Reads: full jitter, so that a thousand clients of one switch that came back do not ask at once.
pub(crate) const READS: Backoff = Backoff { tries: 4, base: Duration::from_secs(1), cap: Duration::from_secs(15) };

/// Mutations that a BMC was not ready for: a POST takes minutes, so these start slower and are not jittered to nothing.
pub(crate) const NOT_READY: Backoff = Backoff { tries: 6, base: Duration::from_secs(5), cap: Duration::from_secs(30) };

/// A BMC that asks for more than a minute is asked again by the engine, not by us.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

impl Backoff {
    /// The longest wait after the `attempt`-th try (from 1).
    pub(crate) fn ceiling(self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(16);
        self.base.saturating_mul(1 << doublings).min(self.cap)
    }
}

/// The jitter of one client; seeded from outside.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<fastrand::Rng>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }

    /// Between 0 and 1.
    pub(crate) fn roll(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }
}

/// The time in `Retry-After`: seconds, or a date that is compared with the BMC's own clock.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if let Ok(seconds) = text.parse::<u64>() {
        Duration::from_secs(seconds)
    } else {
        let then = http_date(text)?;
        let now = http_date(headers.get(DATE)?.to_str().ok()?)?;
        Duration::try_from(then.duration_since(now)).unwrap_or_default()
    };
    Some(wait.min(LONGEST_RETRY_AFTER))
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn retry_after_is_read_in_both_forms_and_bounded() {
        assert_eq!(retry_after(&headers(&[("retry-after", "7")])), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&headers(&[("retry-after", "9999")])), Some(Duration::from_mins(1)));
        let dated = [("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:28:20 GMT")];
        assert_eq!(retry_after(&headers(&dated)), Some(Duration::from_secs(20)));
        let past = [("date", "Wed, 21 Oct 2015 07:28:00 GMT"), ("retry-after", "Wed, 21 Oct 2015 07:27:20 GMT")];
        assert_eq!(retry_after(&headers(&past)), Some(Duration::ZERO));
        assert_eq!(retry_after(&headers(&[("retry-after", "soon")])), None);
        assert_eq!(retry_after(&headers(&[])), None);
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let seconds: Vec<u64> = (1..=6).map(|attempt| READS.ceiling(attempt).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 15, 15]);
    }
}
