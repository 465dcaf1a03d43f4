//! One version of one image, as far as it is on disk.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use rustix::io::{ReadWriteFlags, preadv2};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::task::spawn_blocking;

use super::extents::Extents;
use crate::fetch::FetchError;

/// What is fetched at least: BMCs ask for little, and mostly for what follows next.
const RUN_AT_LEAST: u64 = 256 * 1024;
/// The maximum that is fetched for a reader that may disconnect at any time.
const RUN_AT_MOST: u64 = 16 * 1024 * 1024;
/// How much of one image is fetched at once. Readers of other places wait for their turn: fifty of them must be no fifty
/// connections to the user's server.
const RUNS_AT_ONCE: usize = 8;

/// One version of an image. The file has no name: it is gone when the process ends.
#[derive(Debug)]
pub(crate) struct Stored {
    file: Arc<File>,
    size: u64,
    progress: Mutex<Progress>,
    turns: Semaphore,
}

#[derive(Debug, Default)]
struct Progress {
    have: Extents,
    runs: Vec<(Range<u64>, watch::Receiver<Going>)>,
    /// The disk is full, or broken: nothing more is written.
    given_up: bool,
}

/// How far a run is.
#[derive(Debug, Clone)]
pub(crate) struct Going {
    at: u64,
    failed: Option<FetchError>,
}

/// A part that is being fetched. When it is dropped, another reader may start again.
#[derive(Debug)]
pub(crate) struct Run {
    stored: Arc<Stored>,
    range: Range<u64>,
    at: u64,
    going: watch::Sender<Going>,
}

/// Where a place of the image is to be had.
pub(crate) enum Found {
    /// On disk, up to there.
    Here(u64),
    /// It is being fetched.
    Coming(watch::Receiver<Going>),
    /// Nobody fetches it: the caller does, for all readers.
    Missing(Run),
    /// It will not come to the disk.
    Nowhere,
}

impl Stored {
    pub(super) fn new(file: File, size: u64) -> Self {
        Self { file: Arc::new(file), size, progress: Mutex::default(), turns: Semaphore::new(RUNS_AT_ONCE) }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Looks for the beginning of a requested range.
    pub(crate) fn find(self: &Arc<Self>, wanted: &Range<u64>) -> Found {
        let mut progress = self.progress();
        if let Some(until) = progress.have.end_of(wanted.start) {
            return Found::Here(until);
        }
        if let Some((_, going)) = progress.runs.iter().find(|(range, _)| range.contains(&wanted.start)) {
            return Found::Coming(going.clone());
        }
        if progress.given_up {
            return Found::Nowhere;
        }
        let range = wanted.start..progress.end_of_run(wanted, self.size);
        let (going, seen) = watch::channel(Going { at: range.start, failed: None });
        progress.runs.push((range.clone(), seen));
        Found::Missing(Run { stored: self.clone(), at: range.start, range, going })
    }

    /// Reads at least one byte into a buffer, and makes it as long as that.
    pub(crate) async fn read(&self, at: u64, mut buffer: BytesMut) -> io::Result<BytesMut> {
        // What is in memory is copied at once: a thread would cost more than the copy. A slow disk is read in another thread.
        let now = preadv2(&self.file, &mut [IoSliceMut::new(&mut buffer)], at, ReadWriteFlags::NOWAIT);
        let read = match now {
            Ok(read) if read > 0 => read,
            _ => {
                let file = self.file.clone();
                let reading = spawn_blocking(move || file.read_at(&mut buffer, at).map(|read| (read, buffer)));
                let read;
                (read, buffer) = reading.await.map_err(io::Error::other)??;
                read
            }
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.truncate(read);
        Ok(buffer)
    }

    /// Waits for a turn to ask the user's server.
    pub(crate) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// From now on nothing is written, and what cannot be read counts as missing.
    pub(crate) fn give_up(&self, error: &io::Error) {
        let mut progress = self.progress();
        if !progress.given_up {
            tracing::warn!(%error, "cannot cache an ISO on disk; reading it from its server");
        }
        progress.given_up = true;
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// Up to what others have or fetch, and not for ever.
    fn end_of_run(&self, wanted: &Range<u64>, size: u64) -> u64 {
        let at = wanted.start;
        let others = self.runs.iter().map(|(range, _)| range.start).filter(|start| *start > at);
        let end = wanted.end.clamp(at + RUN_AT_LEAST, at + RUN_AT_MOST).min(size);
        others.chain(self.have.next_from(at)).fold(end, u64::min)
    }
}

impl Run {
    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    pub(crate) fn store(&self) -> Arc<Stored> {
        self.stored.clone()
    }

    /// Adds what came next. False if the disk does not take it.
    pub(crate) async fn add(&mut self, pieces: Vec<Bytes>) -> bool {
        let (file, at) = (self.stored.file.clone(), self.at);
        let written = spawn_blocking(move || write_all(&file, at, &pieces)).await;
        match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(end) => {
                self.stored.progress().have.insert(at..end);
                self.at = end;
                self.going.send_modify(|going| going.at = end);
                true
            }
            Err(error) => {
                self.stored.give_up(&error);
                false
            }
        }
    }

    /// Tells all waiting readers why nothing more comes.
    pub(crate) fn fail(self, error: FetchError) {
        self.going.send_modify(|going| going.failed = Some(error));
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // Before the sender is dropped: a reader that wakes up must not find this run again.
        self.stored.progress().runs.retain(|(range, _)| *range != self.range);
    }
}

/// Returns where it has come to.
fn write_all(file: &File, mut at: u64, pieces: &[Bytes]) -> io::Result<u64> {
    for piece in pieces {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(at)
}

/// Waits until a place has come, or will not come by this run.
pub(crate) async fn arrival(mut going: watch::Receiver<Going>, at: u64) -> Result<(), FetchError> {
    let seen = going.wait_for(|going| going.at > at || going.failed.is_some()).await;
    match seen.as_deref() {
        Ok(Going { at: come, failed: Some(error) }) if *come <= at => Err(error.clone()),
        _ => Ok(()),
    }
}
