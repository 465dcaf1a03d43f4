//! When to stop: at the first SIGTERM or SIGINT in good order, at the second at once, but for the sessions on BMCs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

/// What the sessions on BMCs get to be ended in, however little time there is.
const LOGOUTS: Duration = Duration::from_secs(2);
/// What a shell reports of a process that a SIGINT ended.
const INTERRUPTED: i32 = 130;

/// Whether a second signal has come.
static ENDS_AT_ONCE: AtomicBool = AtomicBool::new(false);

/// Does the work of a command. Once a second signal has come, the process ends as that decides: it takes the sessions over, so the work
/// may end before they are closed.
pub(crate) async fn until_done<T>(work: impl Future<Output = T>) -> T {
    let done = work.await;
    if ENDS_AT_ONCE.load(Ordering::SeqCst) {
        std::future::pending::<()>().await;
    }
    done
}

/// Cancelled at the first signal. The second one ends the process.
pub(crate) fn token() -> anyhow::Result<CancellationToken> {
    let listen = |kind| signal(kind).context("cannot listen to signals");
    let (terminate, interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let token = CancellationToken::new();
    // It ends with the runtime; nobody needs to wait for it.
    TaskTracker::new().spawn(watch(terminate, interrupt, token.clone()));
    Ok(token)
}

async fn watch(mut terminate: Signal, mut interrupt: Signal, token: CancellationToken) {
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    };
    // Not inside of the macros: they look at their arguments only if the level is logged.
    let first = next().await;
    token.cancel();
    info!("{first}: stopping; a second signal ends at once");
    let second = next().await;
    ENDS_AT_ONCE.store(true, Ordering::SeqCst);
    warn!("{second}: ending at once");
    // BMCs have few sessions and keep a lost one for half an hour.
    bmc::close_all_sessions(LOGOUTS).await;
    std::process::exit(INTERRUPTED);
}
