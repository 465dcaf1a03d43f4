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
static LEAVING: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

pub(crate) fn remember(core: &Arc<Core>) {
    let mut open = open();
    open.retain(|core| core.strong_count() > 0);
    open.push(Arc::downgrade(core));
}

/// Ends the session of a client that was dropped, as work is that lost its lease.
pub(crate) fn part(core: &Arc<Core>) {
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
    LEAVING.spawn(async move { left.end(&core.wire).await });
}

/// A logout that a farewell waits for.
pub(crate) fn counted<F: Future>(logout: F) -> impl Future<Output = F::Output> {
    LEAVING.track_future(logout)
}

/// Ends the sessions of all clients of this process, as far as that is done within `limit`. They are of no use afterwards.
pub async fn farewell(limit: Duration) {
    let all: Vec<Arc<Core>> = open().iter().filter_map(Weak::upgrade).collect();
    let leave = async {
        join_all(all.iter().map(|core| core.session.close(&core.wire))).await;
        LEAVING.close();
        LEAVING.wait().await;
    };
    if tokio::time::timeout(limit, leave).await.is_err() {
        tracing::warn!("some BMCs did not end their sessions in time; they time them out");
    }
}

fn open() -> MutexGuard<'static, Vec<Weak<Core>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}
