//! Which connections are open, so that there are not too many: whoever comes when all places are taken gets the place of
//! the one that has been idle for longest, or else of the one that has been served for longest, which is a watch. So nobody
//! can keep others out by holding on to all places.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    connections: HashMap<u64, Known>,
    /// Counts what happens; what happened earlier has the smaller number.
    clock: u64,
    /// How many had to leave that were not idle.
    cut_off: u64,
}

#[derive(Debug)]
struct Known {
    /// How many requests it has that are not answered to the end.
    requests: usize,
    /// Since when it has been idle or at work.
    since: u64,
    leave: CancellationToken,
}

/// A connection that has a place. Dropping it gives the place back.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    all: Arc<Connections>,
    leave: CancellationToken,
}

/// A request is being answered. Until this is dropped the connection is not idle.
#[derive(Debug)]
pub(super) struct AtWork {
    id: u64,
    all: Arc<Connections>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    /// A place for a new connection.
    pub(super) fn admit(self: &Arc<Self>) -> Connection {
        let mut open = self.open();
        if open.connections.len() >= self.most {
            let all = open.connections.iter();
            let longest = all.min_by_key(|(_, known)| (known.requests > 0, known.since)).map(|(id, _)| *id);
            if let Some(known) = longest.and_then(|id| open.connections.remove(&id)) {
                known.leave.cancel();
                if known.requests > 0 {
                    open.cut_off += 1;
                    // The first tells what is going on; a flood of them would tell no more.
                    if open.cut_off % 1_000 == 1 {
                        let (limit, cut_off) = (self.most, open.cut_off);
                        tracing::warn!(
                            limit,
                            cut_off,
                            "too many connections: those that were served for longest are closed"
                        );
                    }
                }
            }
        }
        let id = open.tick();
        let leave = CancellationToken::new();
        open.connections.insert(id, Known { requests: 0, since: id, leave: leave.clone() });
        Connection { id, all: Arc::clone(self), leave }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Connection {
    /// Waits until somebody else gets its place.
    pub(super) fn must_leave(&self) -> WaitForCancellationFuture<'_> {
        self.leave.cancelled()
    }

    /// A request has come.
    pub(super) fn at_work(&self) -> AtWork {
        let mut open = self.all.open();
        let now = open.tick();
        if let Some(known) = open.connections.get_mut(&self.id) {
            known.requests += 1;
            known.since = now;
        }
        drop(open);
        AtWork { id: self.id, all: Arc::clone(&self.all) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.all.open().connections.remove(&self.id);
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut open = self.all.open();
        let now = open.tick();
        if let Some(known) = open.connections.get_mut(&self.id) {
            known.requests = known.requests.saturating_sub(1);
            known.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_been_idle_for_longest_makes_room_first_and_then_the_oldest_watch() {
        let all = Arc::new(Connections::new(3));
        let [first, second, third] = [(); 3].map(|()| all.admit());
        let watching = first.at_work();
        drop(second.at_work());
        let fourth = all.admit();
        assert!(third.leave.is_cancelled(), "it has never done anything");
        assert!(!first.leave.is_cancelled() && !second.leave.is_cancelled());
        let answering = [second.at_work(), fourth.at_work()];
        let fifth = all.admit();
        assert!(first.leave.is_cancelled(), "nobody is idle, and it has been watching for longest");
        assert!(!second.leave.is_cancelled() && !fourth.leave.is_cancelled());
        drop((answering, watching, first, third));
        assert_eq!(all.open().connections.len(), 3);
        drop((second, fourth, fifth));
        assert_eq!(all.open().connections.len(), 0);
    }
}
