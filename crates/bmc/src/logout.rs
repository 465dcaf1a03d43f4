//! Ends sessions in the background if the owner cannot wait: BMCs have few, and keep a lost one for half an hour.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::future::join_all;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::client::Core;

/// All BMCs that this process uses. A process that must end at once finds its sessions here.
static OPEN: Mutex<Vec<Weak<Core>>> = Mutex::new(Vec::new());
/// Logouts in progress.
static LOGOUTS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

pub(crate) fn remember(core: &Arc<Core>) {
    let mut open = open();
    open.retain(|core| core.strong_count() > 0);
    open.push(Arc::downgrade(core));
}

/// Ends the session of a client that was dropped, for example because the operator lost its lease.
pub(crate) fn in_background(core: &Arc<Core>) {
    let left = core.session.shut(&core.wire);
    if !left.is_session() {
        return;
    }
    if Handle::try_current().is_err() {
        let origin = core.wire.origin();
        tracing::warn!("a session on {origin} was not closed; it occupies a slot until it expires");
        return;
    }
    let core = core.clone();
    LOGOUTS.spawn(async move { left.end(&core.wire).await });
}

/// A logout that [`close_all_sessions`] waits for.
pub(crate) fn tracked<F: Future>(logout: F) -> impl Future<Output = F::Output> {
    LOGOUTS.track_future(logout)
}

/// Ends the sessions of all clients of this process, within `limit`. The clients cannot be used afterwards.
pub async fn close_all_sessions(limit: Duration) {
    let all: Vec<Arc<Core>> = open().iter().filter_map(Weak::upgrade).collect();
    let log_out = async {
        join_all(all.iter().map(|core| core.session.close(&core.wire))).await;
        LOGOUTS.close();
        LOGOUTS.wait().await;
    };
    if tokio::time::timeout(limit, log_out).await.is_err() {
        tracing::warn!("some BMCs did not end their sessions in time; the sessions will expire");
    }
}

fn open() -> MutexGuard<'static, Vec<Weak<Core>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
