//! What happened lately: a ring of events, where an event's place is its revision.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Event, Revision, StoreError};

/// How much history is kept: events are forgotten, oldest first, when there are too many or they are too big, but some
/// are always kept so that a few large objects cannot make every watch fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// More events than this are not kept.
    pub events: usize,
    /// More bytes than this are not kept, ...
    pub bytes: usize,
    /// ... unless there would be fewer events than this, ...
    pub least_events: usize,
    /// ... and then up to this many bytes.
    pub most_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 20_000, bytes: 16 << 20, least_events: 1_000, most_bytes: 64 << 20 }
    }
}

/// The ring. `events[i]` has revision `oldest + 1 + i`.
#[derive(Debug)]
pub(super) struct History {
    events: VecDeque<Remembered>,
    oldest: Revision,
    bytes: usize,
    limits: Limits,
}

#[derive(Debug)]
struct Remembered {
    event: Arc<Event>,
    /// What forgetting it gives back.
    bytes: usize,
}

/// The event itself, its place in the ring and the allocations' own needs, roughly.
const OVERHEAD: usize = 160;

impl History {
    pub(super) fn beginning_at(revision: Revision, limits: Limits) -> Self {
        Self { events: VecDeque::new(), oldest: revision, bytes: 0, limits }
    }

    pub(super) fn oldest(&self) -> Revision {
        self.oldest
    }

    pub(super) fn newest(&self) -> Revision {
        self.oldest + self.events.len() as Revision
    }

    /// The event with this revision, if it is remembered.
    pub(super) fn at(&self, revision: Revision) -> Option<&Arc<Event>> {
        let place = usize::try_from(revision.checked_sub(self.oldest + 1)?).ok()?;
        Some(&self.events.get(place)?.event)
    }

    /// All events after a revision, oldest first.
    pub(super) fn after(&self, revision: Revision) -> Result<impl Iterator<Item = &Arc<Event>>, StoreError> {
        if revision < self.oldest {
            return Err(StoreError::Compacted { asked: revision, oldest: self.oldest });
        }
        if revision > self.newest() {
            return Err(StoreError::Future { asked: revision, current: self.newest() });
        }
        let known = usize::try_from(revision - self.oldest).unwrap_or(usize::MAX).min(self.events.len());
        Ok(self.events.range(known..).map(|remembered| &remembered.event))
    }

    /// The first event under a prefix after a revision that is remembered.
    pub(super) fn next_under(&self, prefix: &str, after: Revision) -> Result<Option<Revision>, StoreError> {
        Ok(self.after(after)?.find(|event| event.key.starts_with(prefix)).map(|event| event.revision))
    }

    /// Remembers an event, and forgets what is over the limits.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        debug_assert_eq!(event.revision, self.newest() + 1, "one revision per write");
        // Bytes that an earlier event brought are the same bytes.
        let before = if self.at(event.before_revision).is_some() { None } else { event.before.as_ref() };
        let bytes = OVERHEAD + event.key.len() + event.value.len() + before.map_or(0, bytes::Bytes::len);
        self.bytes += bytes;
        self.events.push_back(Remembered { event, bytes });
        while self.is_too_much() {
            self.forget_one();
        }
    }

    /// Forgets everything up to this revision.
    pub(super) fn compact(&mut self, to: Revision) {
        while self.oldest < to && !self.events.is_empty() {
            self.forget_one();
        }
    }

    fn is_too_much(&self) -> bool {
        let Limits { events, bytes, least_events, most_bytes } = self.limits;
        let count = self.events.len();
        (count > events || self.bytes > bytes) && (count > least_events || self.bytes > most_bytes)
    }

    fn forget_one(&mut self) {
        if let Some(forgotten) = self.events.pop_front() {
            self.oldest += 1;
            self.bytes -= forgotten.bytes;
        }
    }
}
