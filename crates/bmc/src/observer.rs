//! Observes every request, for metrics.

use std::time::Duration;

use http::Method;

/// Is called for each exchange with a BMC, retries included.
pub trait Observer: Send + Sync {
    /// One request was sent, and answered or given up after that time. `outcome` is one of a small fixed set, fit for a metric label: `ok`, `unauthorized`, `refused`,
    /// `failed`, `busy`, `unreachable`, `timeout`, `untrusted`, `garbled`.
    fn request(&self, method: &Method, outcome: &'static str, status: Option<u16>, took: Duration);
}

impl Observer for () {
    fn request(&self, _: &Method, _: &'static str, _: Option<u16>, _: Duration) {}
}
