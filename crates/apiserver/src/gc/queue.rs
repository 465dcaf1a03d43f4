//! Who needs attention: each once, never two hands on one object, failures later and later.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(super) struct Queue {
    order: VecDeque<Arc<str>>,
    queued: HashSet<Arc<str>>,
    busy: HashSet<Arc<str>>,
    later: BTreeSet<(Instant, Arc<str>)>,
    failures: HashMap<Arc<str>, u32>,
    /// Their kind, or an owner's, is not served now.
    parked: HashSet<Arc<str>>,
}

impl Queue {
    pub(super) fn add(&mut self, key: Arc<str>) {
        if self.queued.insert(key.clone()) && !self.busy.contains(&key) {
            self.order.push_back(key);
        }
    }

    /// The next one; say [`Queue::done`], [`Queue::retry`] or [`Queue::park`] afterwards.
    pub(super) fn take(&mut self) -> Option<Arc<str>> {
        let now = Instant::now();
        while let Some((_, key)) = self.later.first().filter(|(due, _)| *due <= now).cloned() {
            self.later.pop_first();
            self.add(key);
        }
        let key = self.order.pop_front()?;
        self.queued.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    pub(super) fn done(&mut self, key: &Arc<str>) {
        self.failures.remove(key);
        self.release(key);
    }

    pub(super) fn retry(&mut self, key: &Arc<str>) {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = FIRST_RETRY.saturating_mul(1 << (*failures).min(16)).min(LAST_RETRY);
        *failures += 1;
        self.later.insert((Instant::now() + delay, key.clone()));
        self.release(key);
    }

    /// Until the catalogue changes.
    pub(super) fn park(&mut self, key: &Arc<str>) {
        self.parked.insert(key.clone());
        self.done(key);
    }

    pub(super) fn unpark(&mut self) {
        for key in std::mem::take(&mut self.parked) {
            self.add(key);
        }
    }

    /// Ends when the first retry is due; never if there is none.
    pub(super) fn due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.later.first().map(|(due, _)| *due);
        async move {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    fn release(&mut self, key: &Arc<str>) {
        self.busy.remove(key);
        // Somebody asked for it in the meantime.
        if self.queued.contains(key) {
            self.order.push_back(key.clone());
        }
    }
}
