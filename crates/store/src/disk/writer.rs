//! The thread that writes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::folder::Folder;
use super::index::{self, End, Index, Place};
use super::log::{Batch, Log, Span};
use super::record::{Chain, Kind, Record};
use super::segment::{self, Segment, Segments};
use super::{Options, is_full, recover, refusal};
use crate::visible::{State, Visible};
use crate::{Change, Entry, Event, Expect, Revision, Scan, StoreError};

/// A write that waits for its turn.
pub(super) struct Job {
    pub(super) key: String,
    pub(super) expect: Expect,
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Result<Revision, StoreError>>,
}

/// What is synced together is bounded, so that the first of many writers does not wait for all of them.
pub(super) const MOST_JOBS: usize = 256;
const MOST_BYTES: usize = 4 << 20;
/// Those who were answered together mostly come again together; it is worth waiting this long for the next of them,
/// since a sync takes longer.
const GATHERING: Duration = Duration::from_micros(100);
/// How much is moved out of an outdated file along with other writes.
const MOVED_AT_ONCE: usize = 256 << 10;
/// After a copy of the index failed, the next is tried when there is this much more log.
const PATIENCE: u64 = 1 << 20;

pub(super) struct Writer {
    folder: Arc<dyn Folder>,
    visible: Arc<Visible>,
    options: Options,
    log: Log,
    usage: Usage,
    /// How many writes the last batch had.
    last_jobs: usize,
    /// Where the log ended when the index was copied to disk.
    copied: End,
    /// How much log there is since, and how much there must be before the next copy, if one failed.
    since_copied: u64,
    copy_after: u64,
    moving: Option<Moving>,
    /// Writing failed; nothing is moved until a write succeeds.
    resting: bool,
    /// The disk was full; whatever can be cleared away is, however little it is.
    pressed: bool,
}

/// How much of each file is live.
#[derive(Debug, Default)]
struct Usage {
    live: BTreeMap<u32, u64>,
    total: BTreeMap<u32, u64>,
    /// Files with a record that cannot be read.
    stuck: HashSet<u32>,
}

/// Clearing a file away: the keys that may still be in it.
struct Moving {
    segment: u32,
    keys: Vec<Arc<str>>,
}

/// What a batch leaves in each key, or that it is gone.
type Puts = Vec<(Arc<str>, Option<(Revision, Span)>)>;

impl Writer {
    pub(super) fn new(
        folder: Arc<dyn Folder>,
        visible: Arc<Visible>,
        options: Options,
        copied: End,
        end: End,
        segments: &Segments,
        index: &Index,
    ) -> io::Result<Self> {
        let Some(last) = segments.get(&end.segment) else { return Err(io::ErrorKind::NotFound.into()) };
        let mut usage = Usage::default();
        for (id, segment) in segments {
            usage.total.insert(*id, segment.file.len()?);
        }
        for place in index.values() {
            usage.add(*place);
        }
        let since_copied = segments.range(copied.segment..).map(|(id, _)| usage.total.get(id)).sum::<Option<u64>>();
        let since_copied = since_copied.unwrap_or(0).saturating_sub(copied.offset);
        let log = Log::new(folder.clone(), last.clone(), options.segment_bytes, end);
        Ok(Self {
            folder,
            visible,
            options,
            log,
            usage,
            last_jobs: 0,
            copied,
            since_copied,
            copy_after: 0,
            moving: None,
            resting: false,
            pressed: false,
        })
    }

    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        loop {
            let first = if self.has_something_to_move() {
                match jobs.try_recv() {
                    Ok(job) => Some(job),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => break,
                }
            } else {
                match jobs.recv() {
                    Ok(job) => Some(job),
                    Err(_) => break,
                }
            };
            self.commit(first, jobs);
            let due = self.since_copied >= self.options.checkpoint_for(self.usage.sums().0).max(self.copy_after);
            if due || self.pressed && self.would_be_outdated() {
                self.copy_index();
            }
            self.remove_outdated();
        }
        self.log.trim();
        if self.since_copied > 0 {
            self.copy_index();
        }
        self.remove_outdated();
    }

    /// Does a batch: all of it becomes durable, visible and answered, or none of it.
    fn commit(&mut self, first: Option<Job>, jobs: &Receiver<Job>) {
        self.log.limit(self.options.segment_for(self.usage.sums().0));
        let turned = self.turn();
        let mut attempt = Attempt::new(&self.visible, &self.log);
        let mut next = first;
        while let Some(job) = next {
            attempt.try_one(job);
            let full = attempt.jobs() >= MOST_JOBS || attempt.batch.len() >= MOST_BYTES;
            next = if full {
                None
            } else if attempt.jobs() < self.last_jobs {
                jobs.recv_timeout(GATHERING).ok()
            } else {
                jobs.try_recv().ok()
            };
        }
        self.last_jobs = attempt.jobs();
        let Attempt { mut batch, mut puts, events, replies, .. } = attempt;
        let mut written = turned.and_then(|()| {
            self.moving_along(&mut batch, &mut puts);
            if batch.is_empty() { Ok(0) } else { self.log.append(&mut batch) }
        });
        let mut hopeless = true;
        if written.as_ref().is_err_and(is_full) {
            self.pressed = true;
            hopeless = !self.make_room();
            if !hopeless && !batch.is_empty() {
                written = self.turn().and_then(|()| self.log.append(&mut batch));
            }
        }
        match written {
            Ok(offset) => {
                self.resting &= replies.is_empty();
                self.since_copied += batch.len() as u64;
                self.publish(offset, puts, events);
                for (reply, outcome) in replies {
                    answer(reply, outcome.done());
                }
                // What is needed to clear something away must fit as well.
                if self.log.is_tight() {
                    self.pressed = true;
                    self.make_room();
                }
            }
            Err(error) => {
                tracing::error!(%error, "writing the store failed");
                self.moving = None;
                self.resting = hopeless;
                for (reply, outcome) in replies {
                    answer(reply, outcome.undone(&error));
                }
            }
        }
    }

    fn publish(&mut self, offset: u32, puts: Puts, events: Vec<Arc<Event>>) {
        if puts.is_empty() {
            return;
        }
        let id = self.log.segment().id;
        self.usage.total.insert(id, self.log.end().offset);
        let usage = &mut self.usage;
        self.visible.publish(events, |state| {
            let State::Disk { index, .. } = state else { return };
            let index = Arc::make_mut(index);
            for (key, put) in puts {
                let before = match put {
                    Some((revision, span)) => {
                        let place = span.at(revision, id, offset);
                        usage.add(place);
                        index.insert(key, place)
                    }
                    None => index.remove(&key),
                };
                if let Some(place) = before {
                    usage.subtract(place);
                }
            }
        });
    }

    /// Adds some records of the file that is being cleared away to a batch.
    fn moving_along(&mut self, batch: &mut Batch, puts: &mut Puts) {
        if self.moving.is_none() && self.has_something_to_move() {
            self.moving = self.begin_to_move();
        }
        let Some(moving) = &mut self.moving else { return };
        let State::Disk { index, segments } = self.visible.state() else { return };
        // Two records of one key in a batch would be one too many.
        let busy: HashSet<Arc<str>> = puts.iter().map(|(key, _)| key.clone()).collect();
        let limit = batch.len() + MOVED_AT_ONCE;
        while batch.len() < limit {
            let Some(key) = moving.keys.pop() else { break };
            let Some(place) = index.get(&key).filter(|place| place.segment == moving.segment) else { continue };
            if busy.contains(&key) {
                continue;
            }
            match place.read(&segments, &key) {
                Ok(value) => {
                    let record = Record { kind: Kind::Moved, revision: place.revision, key: &key, value: &value };
                    let span = self.log.add(batch, &record);
                    puts.push((key, Some((place.revision, span))));
                }
                Err(error) => {
                    tracing::error!(%error, "a record cannot be moved; its file stays");
                    self.usage.stuck.insert(moving.segment);
                }
            }
        }
        if moving.keys.is_empty() {
            self.moving = None;
        }
    }

    fn has_something_to_move(&mut self) -> bool {
        let (live, garbage) = self.usage.sums();
        let wasteful = garbage > self.options.garbage_bytes && garbage > live;
        if !wasteful && !self.pressed {
            return self.moving.is_some() && !self.resting;
        }
        let candidate = self.usage.most_outdated(self.log.end().segment).is_some();
        self.pressed &= candidate || self.moving.is_some() || self.would_be_outdated();
        !self.resting && (self.moving.is_some() || candidate)
    }

    /// Whether files could be removed if only the index were copied.
    fn would_be_outdated(&self) -> bool {
        !self.usage.outdated(self.log.end().segment).is_empty()
    }

    /// Goes on in a new file if this one is full or abandoned.
    fn turn(&mut self) -> io::Result<()> {
        if self.log.turn(self.visible.newest() + 1)? {
            let segment = self.log.segment().clone();
            self.usage.total.insert(segment.id, segment::HEAD as u64);
            self.visible.publish(Vec::new(), |state| {
                if let State::Disk { segments, .. } = state {
                    Arc::make_mut(segments).insert(segment.id, segment);
                }
            });
        }
        Ok(())
    }

    /// Gives back what a full disk can give: space that was prepared, and files in which nothing is live. True if that
    /// changed anything.
    fn make_room(&mut self) -> bool {
        let mut room = self.log.trim();
        if self.would_be_outdated() {
            self.copy_index();
            room |= !self.usage.outdated(self.copied.segment).is_empty();
            self.remove_outdated();
        }
        let in_use = self.log.end();
        if self.usage.is_mostly_outdated(in_use.segment) {
            // Once it is not in use any more, it can be cleared away.
            self.log.limit(in_use.offset);
            match self.turn() {
                Ok(()) => room = true,
                Err(error) => tracing::warn!(%error, "the disk is full: the log cannot go on in a new file"),
            }
        }
        room
    }

    fn begin_to_move(&mut self) -> Option<Moving> {
        let segment = self.usage.most_outdated(self.log.end().segment)?;
        let State::Disk { index, .. } = self.visible.state() else { return None };
        let here = index.iter().filter(|(_, place)| place.segment == segment);
        let keys: Vec<_> = here.map(|(key, _)| key.clone()).collect();
        if keys.is_empty() {
            // It would be tried again and again.
            self.usage.stuck.insert(segment);
        }
        Some(Moving { segment, keys })
    }

    fn copy_index(&mut self) {
        let State::Disk { index, .. } = self.visible.state() else { return };
        let end = self.log.end();
        match index::save(&*self.folder, self.visible.newest(), end, &index) {
            Ok(()) => {
                self.copied = end;
                self.since_copied = 0;
                self.copy_after = 0;
            }
            Err(error) => {
                tracing::warn!(%error, "the index could not be copied to disk; the next start reads more of the log");
                self.copy_after = self.since_copied + PATIENCE;
            }
        }
    }

    /// Removes files in which nothing is live. Those behind the copy of the index are needed to follow the log.
    fn remove_outdated(&mut self) {
        let outdated: Vec<u32> = self.usage.outdated(self.copied.segment);
        for id in outdated {
            if let Err(error) = self.folder.remove(&Segment::name(id)) {
                tracing::warn!(%error, file = Segment::name(id), "an outdated file could not be removed");
            }
            self.usage.forget(id);
            self.visible.publish(Vec::new(), |state| {
                if let State::Disk { segments, .. } = state {
                    Arc::make_mut(segments).remove(&id);
                }
            });
        }
    }
}

/// A batch in the making: each write is checked against what those before it would leave.
struct Attempt<'a> {
    visible: &'a Visible,
    log: &'a Log,
    newest: Revision,
    batch: Batch,
    /// What keys of this batch hold after it, so far.
    held: HashMap<Arc<str>, Option<Entry>>,
    puts: Puts,
    events: Vec<Arc<Event>>,
    replies: Vec<(oneshot::Sender<Result<Revision, StoreError>>, Outcome)>,
}

enum Outcome {
    Written(Revision),
    Refused(StoreError),
    /// Refused because of a write in the same batch.
    RefusedIfWritten(StoreError),
}

impl Outcome {
    fn done(self) -> Result<Revision, StoreError> {
        match self {
            Self::Written(revision) => Ok(revision),
            Self::Refused(refused) | Self::RefusedIfWritten(refused) => Err(refused),
        }
    }

    fn undone(self, error: &io::Error) -> Result<Revision, StoreError> {
        match self {
            Self::Refused(refused) => Err(refused),
            Self::Written(_) | Self::RefusedIfWritten(_) => Err(refusal(error)),
        }
    }
}

impl<'a> Attempt<'a> {
    fn new(visible: &'a Visible, log: &'a Log) -> Self {
        let newest = visible.newest();
        let (batch, held) = (Batch::default(), HashMap::new());
        Self { visible, log, newest, batch, held, puts: Vec::new(), events: Vec::new(), replies: Vec::new() }
    }

    fn jobs(&self) -> usize {
        self.replies.len()
    }

    fn try_one(&mut self, job: Job) {
        let Job { key, expect, change, reply } = job;
        let held = self.held.get(key.as_str());
        let in_this_batch = held.is_some();
        let found = held.cloned().map_or_else(|| self.visible.get(&key), Ok);
        let revision = self.newest + 1;
        let happened = found.and_then(|found| {
            // Bytes are rendered by others; their bugs must not stop everyone's writes.
            catch_unwind(AssertUnwindSafe(|| change.happen(expect, &key, found, revision)))
                .unwrap_or_else(|_| Err(StoreError::Io("the object could not be rendered".into())))
        });
        let outcome = match happened {
            Ok(event) => {
                self.take(event);
                Outcome::Written(revision)
            }
            Err(refused) if in_this_batch => Outcome::RefusedIfWritten(refused),
            Err(refused) => Outcome::Refused(refused),
        };
        self.replies.push((reply, outcome));
    }

    fn take(&mut self, event: Event) {
        self.newest = event.revision;
        let key: Arc<str> = Arc::from(event.key.as_str());
        let (kind, value) = if event.deleted { (Kind::Delete, &b""[..]) } else { (Kind::Put, &event.value[..]) };
        let record = Record { kind, revision: event.revision, key: &key, value };
        let span = self.log.add(&mut self.batch, &record);
        let entry = Entry { key: event.key.clone(), revision: event.revision, value: event.value.clone() };
        self.held.insert(key.clone(), (!event.deleted).then_some(entry));
        self.puts.push((key, (!event.deleted).then_some((event.revision, span))));
        self.events.push(Arc::new(event));
    }
}

fn answer(reply: oneshot::Sender<Result<Revision, StoreError>>, answer: Result<Revision, StoreError>) {
    // Who stopped waiting does not want to know.
    let _ = reply.send(answer);
}

impl Usage {
    fn add(&mut self, place: Place) {
        *self.live.entry(place.segment).or_default() += u64::from(place.len);
    }

    fn subtract(&mut self, place: Place) {
        let live = self.live.entry(place.segment).or_default();
        *live = live.saturating_sub(place.len.into());
    }

    fn live(&self, id: u32) -> u64 {
        self.live.get(&id).copied().unwrap_or(0)
    }

    /// Live bytes, and all others.
    fn sums(&self) -> (u64, u64) {
        let live = self.live.values().sum();
        (live, self.total.values().sum::<u64>().saturating_sub(live))
    }

    /// The file from which moving the rest away gains most, if it gains enough; the one in use is not it.
    fn most_outdated(&self, in_use: u32) -> Option<u32> {
        let sealed = self.total.range(..in_use).filter(|(id, _)| !self.stuck.contains(id));
        let candidates = sealed.map(|(id, total)| (total.saturating_sub(self.live(*id)), *id));
        let (_, id) = candidates.filter(|(garbage, id)| (1..=*garbage).contains(&self.live(*id))).max()?;
        Some(id)
    }

    fn is_mostly_outdated(&self, id: u32) -> bool {
        let total = self.total.get(&id).copied().unwrap_or(0);
        total > 2 * self.live(id) + segment::HEAD as u64
    }

    fn outdated(&self, before: u32) -> Vec<u32> {
        self.total.range(..before).map(|(id, _)| *id).filter(|id| self.live(*id) == 0).collect()
    }

    fn forget(&mut self, id: u32) {
        self.live.remove(&id);
        self.total.remove(&id);
    }
}

/// Writes a state into a folder, as a store of its own whose files begin with this number. In an empty folder it is one
/// when its format is written, at the end.
pub(super) fn copy(
    state: &State,
    revision: Revision,
    folder: &Arc<dyn Folder>,
    segment_bytes: u64,
    first: u32,
) -> io::Result<()> {
    let end = End { segment: first, offset: segment::HEAD as u64, chain: Chain(0) };
    let first = Arc::new(Segment::create(&**folder, first, revision + 1, Chain(0))?);
    let mut log = Log::new(folder.clone(), first, segment_bytes, end);
    let mut index = Index::new();
    let mut batch = Batch::default();
    let mut spans = Vec::new();
    let mut flush = |log: &mut Log, batch: &mut Batch, spans: &mut Vec<(Arc<str>, Revision, Span)>| {
        let offset = log.append(batch)?;
        let segment = log.segment().id;
        index.extend(spans.drain(..).map(|(key, revision, span)| (key, span.at(revision, segment, offset))));
        *batch = Batch::default();
        log.turn(revision + 1)
    };
    let mut written = Ok(false);
    state.visit(Scan { prefix: "", after: None, at: None }, &mut |key, revision, stored| {
        match stored.read() {
            Ok(value) => {
                let span = log.add(&mut batch, &Record { kind: Kind::Moved, revision, key, value: &value });
                spans.push((Arc::from(key), revision, span));
            }
            Err(error) => written = Err(io::Error::other(error)),
        }
        if written.is_ok() && batch.len() >= MOST_BYTES {
            written = flush(&mut log, &mut batch, &mut spans);
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    if !batch.is_empty() {
        flush(&mut log, &mut batch, &mut spans)?;
    }
    log.trim();
    index::save(&**folder, revision, log.end(), &index)?;
    recover::write_format(&**folder)
}
