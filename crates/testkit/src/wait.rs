//! Waiting for a condition, with a deadline and a name for what was waited for.

use std::convert::Infallible;
use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// Asks `probe` again and again until it answers `Some`; panics with `what` when `timeout` has passed.
pub async fn wait_for<T>(what: &str, timeout: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    poll(timeout, async || probe().await.ok_or(None::<Infallible>))
        .await
        .unwrap_or_else(|_| panic!("waited {timeout:?} for {what}"))
}

/// Like [`wait_for`], for probes that can say why not yet: the last such answer is part of the panic message.
pub async fn wait_ok<T, E: Display>(what: &str, timeout: Duration, mut probe: impl AsyncFnMut() -> Result<T, E>) -> T {
    match poll(timeout, async || probe().await.map_err(Some)).await {
        Ok(found) => found,
        Err(Some(last)) => panic!("waited {timeout:?} for {what}; last answer: {last}"),
        Err(None) => panic!("waited {timeout:?} for {what}; no answer at all"),
    }
}

/// A probe that hangs counts as "not yet", so the deadline holds for it too.
async fn poll<T, E>(timeout: Duration, mut probe: impl AsyncFnMut() -> Result<T, Option<E>>) -> Result<T, Option<E>> {
    let deadline = Instant::now() + timeout;
    let mut pause = FIRST_PAUSE;
    let mut last = None;
    loop {
        match timeout_at(deadline, probe()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(why)) => last = why.or(last),
            Err(_) => return Err(last),
        }
        if Instant::now() + pause > deadline {
            return Err(last);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
