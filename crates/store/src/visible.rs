//! What readers see: the newest state, the history that led there and who waits for more. It changes in one step, so a
//! list and a watch from its revision fit together.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;
use tokio::sync::Notify;

use super::disk::{Index, Segments};
use super::history::{History, Limits};
use super::stored::Stored;
use super::{Entry, Event, Revision, Scan, StoreError};

/// All keys at the newest revision. Cheap to clone; a clone does not change.
#[derive(Debug, Clone)]
pub(super) enum State {
    Memory(Arc<BTreeMap<String, (Revision, Bytes)>>),
    Disk { index: Arc<Index>, segments: Arc<Segments> },
}

/// What visits an entry and says whether to go on.
pub(super) type Visit<'a> = dyn FnMut(&str, Revision, &Stored) -> ControlFlow<()> + 'a;

#[derive(Debug)]
pub(super) struct Visible {
    now: RwLock<Now>,
    /// The newest revision once more, for those who need nothing else.
    newest: AtomicU64,
}

#[derive(Debug)]
struct Now {
    state: State,
    history: History,
    readers: HashMap<u64, Arc<Reader>>,
    readers_so_far: u64,
}

/// Someone who watches. `pending` changes only under the lock, so that it and the history always fit together.
#[derive(Debug)]
pub(super) struct Reader {
    id: u64,
    prefix: String,
    /// The first event under the prefix that was not handed out yet; 0 if there is none.
    pending: AtomicU64,
    news: Notify,
}

impl Visible {
    pub(super) fn new(state: State, revision: Revision, limits: Limits) -> Self {
        let history = History::beginning_at(revision, limits);
        let now = Now { state, history, readers: HashMap::new(), readers_so_far: 0 };
        Self { now: RwLock::new(now), newest: AtomicU64::new(revision) }
    }

    pub(super) fn newest(&self) -> Revision {
        self.newest.load(Ordering::Acquire)
    }

    pub(super) fn oldest(&self) -> Revision {
        self.read().history.oldest()
    }

    pub(super) fn compact(&self, to: Revision) {
        self.write().history.compact(to);
    }

    pub(super) fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let now = self.read();
        let Some(revision) = now.state.revision(key) else { return Ok(None) };
        // What was written lately need not be read from disk.
        if let Some(event) = now.history.at(revision) {
            return Ok(Some(Entry { key: key.to_owned(), revision, value: event.value.clone() }));
        }
        let state = now.state.clone();
        drop(now);
        state.get(key)
    }

    pub(super) fn state(&self) -> State {
        self.read().state.clone()
    }

    /// The newest state and its revision.
    pub(super) fn snapshot(&self) -> (State, Revision) {
        let now = self.read();
        (now.state.clone(), now.history.newest())
    }

    pub(super) fn scan(&self, scan: Scan<'_>, visit: &mut Visit<'_>) -> Result<Revision, StoreError> {
        let (state, undo, revision) = self.moment(scan)?;
        undo.visit(&state, scan, visit);
        Ok(revision)
    }

    pub(super) fn count(&self, scan: Scan<'_>) -> Result<u64, StoreError> {
        let (state, undo, _) = self.moment(scan)?;
        Ok(undo.count(&state, scan))
    }

    /// The newest state, what to undo in it to be where the scan wants to be, and when that was.
    fn moment(&self, scan: Scan<'_>) -> Result<(State, Undo, Revision), StoreError> {
        let now = self.read();
        let at = scan.at.unwrap_or_else(|| now.history.newest());
        let events = now.history.after(at)?.filter(|event| scan.covers(&event.key)).cloned().collect();
        let state = now.state.clone();
        drop(now);
        Ok((state, Undo::of(events), at))
    }

    /// Makes events visible, together with the state that they lead to, and wakes who waits for them.
    pub(super) fn publish(&self, events: Vec<Arc<Event>>, lead_to: impl FnOnce(&mut State)) {
        let mut now = self.write();
        lead_to(&mut now.state);
        let mut woken = Vec::new();
        for event in events {
            for reader in now.readers.values() {
                if reader.pending.load(Ordering::Relaxed) == 0 && event.key.starts_with(&reader.prefix) {
                    reader.pending.store(event.revision, Ordering::Relaxed);
                    woken.push(reader.clone());
                }
            }
            now.history.push(event);
        }
        self.newest.store(now.history.newest(), Ordering::Release);
        drop(now);
        for reader in woken {
            reader.news.notify_one();
        }
    }

    pub(super) fn join(&self, prefix: &str, after: Revision) -> Result<Arc<Reader>, StoreError> {
        let mut now = self.write();
        let pending = now.history.next_under(prefix, after)?.unwrap_or(0);
        now.readers_so_far += 1;
        let id = now.readers_so_far;
        let reader =
            Arc::new(Reader { id, prefix: prefix.to_owned(), pending: AtomicU64::new(pending), news: Notify::new() });
        now.readers.insert(id, reader.clone());
        Ok(reader)
    }

    pub(super) fn leave(&self, reader: &Reader) {
        self.write().readers.remove(&reader.id);
    }

    /// Hands the reader's next event out, if it has happened. Only one task may do this for a reader.
    pub(super) fn take(&self, reader: &Reader) -> Option<Result<Arc<Event>, StoreError>> {
        let pending = reader.pending.load(Ordering::Relaxed);
        if pending == 0 {
            return None;
        }
        let now = self.read();
        let Some(event) = now.history.at(pending).cloned() else {
            return Some(Err(StoreError::Compacted { asked: pending - 1, oldest: now.history.oldest() }));
        };
        match now.history.next_under(&reader.prefix, pending) {
            Ok(next) => reader.pending.store(next.unwrap_or(0), Ordering::Relaxed),
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(event))
    }

    /// Everything under the reader's prefix up to this revision was handed out.
    pub(super) fn handed_out(&self, reader: &Reader) -> Revision {
        let now = self.read();
        match reader.pending.load(Ordering::Relaxed) {
            0 => now.history.newest(),
            pending => pending - 1,
        }
    }

    #[cfg(test)]
    pub(super) fn watching(&self) -> usize {
        self.read().readers.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Now> {
        self.now.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Now> {
        self.now.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Scan<'_> {
    fn covers(&self, key: &str) -> bool {
        key.starts_with(self.prefix) && self.after.is_none_or(|after| key > after)
    }

    /// Where in the order of keys it begins. It ends with the first key that lacks the prefix.
    fn start(&self) -> Bound<&str> {
        match self.after {
            Some(after) if after >= self.prefix => Bound::Excluded(after),
            _ => Bound::Included(self.prefix),
        }
    }
}

impl State {
    pub(super) fn empty() -> Self {
        Self::Memory(Arc::default())
    }

    fn revision(&self, key: &str) -> Option<Revision> {
        match self {
            Self::Memory(entries) => entries.get(key).map(|(revision, _)| *revision),
            Self::Disk { index, .. } => index.get(key).map(|place| place.revision),
        }
    }

    fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let found = match self {
            Self::Memory(entries) => entries.get(key).cloned(),
            Self::Disk { index, segments } => match index.get(key) {
                Some(place) => Some((place.revision, Stored::on_disk(key.into(), *place, segments).read()?)),
                None => None,
            },
        };
        Ok(found.map(|(revision, value)| Entry { key: key.to_owned(), revision, value }))
    }

    pub(super) fn visit(&self, scan: Scan<'_>, visit: &mut Visit<'_>) {
        let range = (scan.start(), Bound::Unbounded);
        match self {
            Self::Memory(entries) => {
                for (key, (revision, value)) in entries.range::<str, _>(range) {
                    if !key.starts_with(scan.prefix) || visit(key, *revision, &value.clone().into()).is_break() {
                        break;
                    }
                }
            }
            Self::Disk { index, segments } => {
                for (key, place) in index.range::<str, _>(range) {
                    let stored = Stored::on_disk(key.clone(), *place, segments);
                    if !key.starts_with(scan.prefix) || visit(key, place.revision, &stored).is_break() {
                        break;
                    }
                }
            }
        }
    }

    fn visit_keys(&self, scan: Scan<'_>, visit: &mut dyn FnMut(&str)) {
        let range = (scan.start(), Bound::Unbounded);
        let covered = |key: &&str| key.starts_with(scan.prefix);
        match self {
            Self::Memory(entries) => {
                entries.range::<str, _>(range).map(|(key, _)| key.as_str()).take_while(covered).for_each(visit);
            }
            Self::Disk { index, .. } => {
                index.range::<str, _>(range).map(|(key, _)| &**key).take_while(covered).for_each(visit);
            }
        }
    }
}

/// What keys held before some events: the first event of a key tells.
struct Undo(BTreeMap<String, Option<(Revision, Bytes)>>);

impl Undo {
    fn of(events: Vec<Arc<Event>>) -> Self {
        let mut undo = BTreeMap::new();
        for event in events {
            undo.entry(event.key.clone())
                .or_insert_with(|| event.before.clone().map(|value| (event.before_revision, value)));
        }
        Self(undo)
    }

    fn visit(self, state: &State, scan: Scan<'_>, visit: &mut Visit<'_>) {
        if self.0.is_empty() {
            return state.visit(scan, visit);
        }
        let mut undo = self.0.into_iter().peekable();
        let mut stopped = false;
        state.visit(scan, &mut |key, revision, value| {
            let mut go_on = || {
                let mut replaced = false;
                while let Some((earlier, before)) = undo.next_if(|(undone, _)| undone.as_str() <= key) {
                    replaced |= earlier == key;
                    if let Some((revision, value)) = before {
                        visit(&earlier, revision, &value.into())?;
                    }
                }
                if replaced { ControlFlow::Continue(()) } else { visit(key, revision, value) }
            };
            let flow = go_on();
            stopped = flow.is_break();
            flow
        });
        if !stopped {
            for (key, before) in undo {
                if let Some((revision, value)) = before
                    && visit(&key, revision, &value.into()).is_break()
                {
                    break;
                }
            }
        }
    }

    fn count(&self, state: &State, scan: Scan<'_>) -> u64 {
        let mut count = self.0.values().flatten().count() as u64;
        state.visit_keys(scan, &mut |key| count += u64::from(!self.0.contains_key(key)));
        count
    }
}
