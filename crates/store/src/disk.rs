//! A store on disk: a log of writes, an index of it in memory, and from time to time a copy of that index on disk.
//!
//! Every write is a record at the end of the log ([`record`]), which is a row of files ([`segment`]). The index says
//! where each key's newest record is; values stay on disk. One thread writes ([`writer`]): it takes what is queued,
//! appends it in one piece ([`log`]), syncs once, makes it visible and answers. Opening ([`recover`]) reads the last copy of the
//! index ([`index`]) and the log behind it; what does not read well there was left by a crash, or is damaged ([`damage`]), and
//! then the store is not opened until it is repaired ([`repair`]). Files that are mostly outdated are copied together and
//! removed.
//!
//! Why not an embedded database: redb 4.4 (a copy-on-write B-tree, one sync per commit) was measured beside plain files on
//! one disk, in writes per second, median of interleaved runs, with 1 / 8 / 64 writes per sync. Values of 2 KB: redb 908 /
//! 2,444 / 8,272; overwriting prepared space, which is what this log does, 2,299 / 3,048 / 27,966. Values of 8 KB: 388 /
//! 2,317 / 7,053 and 415 / 3,042 / 22,503. After a crash redb walks its whole file (120 to 180 ms for 10,000 objects; an
//! option avoids that for twice the syncs), and after one failed write, as on a full disk, it refuses reads too until it
//! is opened again. A log has neither problem, and its index costs some 150 bytes of memory per key. Of this store, on a
//! busy machine of two cores: 8 writers get 0.9 to 1.2 times what one thread gets that appends and syncs their bytes
//! together, 64 get 0.55 to 0.75 times; 10,000 objects of 8 KB open in 10 ms (82 ms after a crash with 15 MB of log behind
//! the index, closing included), are scanned in 60 to 100 ms and counted in 0.1 ms, at 14 MB of resident memory.
//! `benches/store.rs` repeats that.

mod damage;
mod folder;
mod index;
mod log;
mod record;
mod recover;
mod repair;
mod segment;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

#[cfg(test)]
pub(super) use self::folder::File;
pub(super) use self::folder::Folder;
pub(super) use self::index::{Index, Place};
#[cfg(test)]
pub(super) use self::repair::repair as repair_folder;
pub use self::repair::{Damaged, Repair};
pub(super) use self::segment::Segments;

use self::folder::{RealFolder, lock, set_aside};
use self::writer::{Job, Writer};
use super::visible::{State, Visible};
use super::{Change, Expect, Limits, Revision, StoreError};

/// How a store on disk behaves.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How much history is kept, in memory.
    pub history: Limits,
    /// How large one file of the log gets at most; while little is live, files are smaller.
    pub segment_bytes: u64,
    /// After so many bytes of log, or as many as are live, the index is copied to disk: what a start after a crash has to
    /// read, and what cannot be cleared away.
    pub checkpoint_bytes: u64,
    /// Outdated records are cleared away when there are more bytes of them than this, and more than live ones. The second
    /// bounds what is written once more for that: at most a byte for each that is cleared away.
    pub garbage_bytes: u64,
}

/// Files and copies of the index for less than this are not worth their syncs: two for each.
const LEAST: u64 = 1 << 20;

impl Options {
    /// How large a file gets when so many bytes are live: a small part of them, since all that is live in a file must fit
    /// on the disk once more before the file can go.
    fn segment_for(&self, live: u64) -> u64 {
        (live / 8).max(LEAST).min(self.segment_bytes)
    }

    /// After how many bytes of log the index is copied when so many bytes are live. The index is a fraction of what is
    /// live, so copying it costs a fraction of what was written since.
    fn checkpoint_for(&self, live: u64) -> u64 {
        live.max(LEAST).min(self.checkpoint_bytes)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { history: Limits::default(), segment_bytes: 32 << 20, checkpoint_bytes: 16 << 20, garbage_bytes: 4 << 20 }
    }
}

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("the data folder {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// A newer version wrote it. Nothing was touched.
    #[error("the data folder {} was written by a newer version (format {found}, this one knows up to {known}): use that version, or another folder", .folder.display())]
    Newer {
        /// The folder.
        folder: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// Files are missing or their content is not what was written.
    #[error("the data folder {} is damaged: {what}", .folder.display())]
    Damaged {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The disk, or a permission.
    #[error("the data folder {} cannot be opened: {source}", .folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What went wrong while opening, before it is told which folder it was about.
#[derive(Debug)]
pub(super) enum Trouble {
    Newer { found: u32 },
    Damaged(String),
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Trouble {
    fn with(self, folder: &Path) -> OpenError {
        let folder = folder.to_owned();
        match self {
            Self::Newer { found } => OpenError::Newer { folder, found, known: recover::FORMAT },
            Self::Damaged(what) => OpenError::Damaged { folder, what },
            Self::Io(source) => OpenError::Io { folder, source },
        }
    }
}

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Disk {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Opens or creates the store in a folder of the file system.
pub(super) fn open(path: &Path, options: Options) -> Result<(Arc<Visible>, Disk), OpenError> {
    let io = |source| OpenError::Io { folder: path.to_owned(), source };
    let folder = RealFolder::at(path).map_err(io)?;
    // Asked before anything is made in the folder, and again when nobody else can change it.
    recover::check_format(&folder).map_err(|trouble| trouble.with(path))?;
    let lock = lock(path).map_err(io)?.ok_or_else(|| OpenError::InUse(path.to_owned()))?;
    open_folder(Arc::new(folder), options, lock).map_err(|trouble| trouble.with(path))
}

/// Opens or creates the store in a folder that nobody else uses as long as `lock` lives.
pub(super) fn open_folder(
    folder: Arc<dyn Folder>,
    options: Options,
    lock: impl Send + 'static,
) -> Result<(Arc<Visible>, Disk), Trouble> {
    let recovered = recover::recover(&*folder)?;
    let revision = recovered.revision;
    let (index, segments) = (Arc::new(recovered.index), Arc::new(recovered.segments));
    let state = State::Disk { index: index.clone(), segments: segments.clone() };
    let visible = Arc::new(Visible::new(state, revision, options.history));
    let writer = Writer::new(folder, visible.clone(), options, recovered.copied, recovered.end, &segments, &index)?;
    drop((index, segments));
    let (jobs, queue) = mpsc::channel();
    let thread = std::thread::Builder::new().name("store".into()).spawn(move || {
        writer.run(&queue);
        drop(lock);
    })?;
    Ok((visible, Disk { jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) }))
}

/// What would be seen if the store in a folder were opened, and the newest revision.
#[cfg(test)]
pub(super) fn look(folder: &dyn Folder) -> Result<(State, Revision), Trouble> {
    let recovered = recover::recover(folder)?;
    let (index, segments) = (Arc::new(recovered.index), Arc::new(recovered.segments));
    Ok((State::Disk { index, segments }, recovered.revision))
}

/// Writes a state into a new folder, as a store that can be opened.
pub(super) fn backup(state: &State, revision: Revision, to: &Path) -> io::Result<()> {
    let folder: Arc<dyn Folder> = Arc::new(RealFolder::at(to)?);
    if !folder.list()?.is_empty() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} is not empty", to.display())));
    }
    writer::copy(state, revision, &folder, Options::default().segment_bytes, 1)
}

/// Repairs the store in a folder of the file system. The damaged files are kept in a folder beside it, which is returned;
/// `None` if nothing is damaged.
pub(super) fn repair(path: &Path) -> Result<Option<(Repair, PathBuf)>, OpenError> {
    let io = |source| OpenError::Io { folder: path.to_owned(), source };
    if !path.is_dir() {
        return Err(io(io::ErrorKind::NotFound.into()));
    }
    let folder = RealFolder::at(path).map_err(io)?;
    let _lock = lock(path).map_err(io)?.ok_or_else(|| OpenError::InUse(path.to_owned()))?;
    match recover::recover(&folder) {
        Ok(recovered) => {
            let (index, segments) = (Arc::new(recovered.index), Arc::new(recovered.segments));
            if unreadable(&State::Disk { index, segments }).is_empty() {
                return Ok(None);
            }
        }
        Err(Trouble::Damaged(_)) => {}
        Err(trouble) => return Err(trouble.with(path)),
    }
    let aside = set_aside(path).map_err(io)?;
    let folder: Arc<dyn Folder> = Arc::new(folder);
    let repaired = repair::repair(&folder, Options::default().segment_bytes).map_err(|trouble| trouble.with(path))?;
    Ok(Some((repaired, aside)))
}

/// So many values are read by two threads.
const MANY: usize = 1_000;

/// Reads every value, and tells which are not what was written.
pub(super) fn unreadable(state: &State) -> Vec<String> {
    let State::Disk { index, segments } = state else { return Vec::new() };
    let mut places: Vec<(&Arc<str>, Place)> = index.iter().map(|(key, place)| (key, *place)).collect();
    places.sort_unstable_by_key(|(_, place)| (place.segment, place.offset));
    let read = |places: &[(&Arc<str>, Place)]| -> Vec<String> {
        let failed = places.iter().filter_map(|(key, place)| place.read(segments, key).err());
        failed.map(|error| error.to_string()).collect()
    };
    if places.len() < MANY {
        return read(&places);
    }
    let (first, second) = places.split_at(places.len() / 2);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| read(first));
        let second = read(second);
        let mut all = first.join().unwrap_or_else(|_| vec!["reading the store failed".to_owned()]);
        all.extend(second);
        all
    })
}

impl Disk {
    pub(super) async fn write(&self, key: &str, expect: Expect, change: Change) -> Result<Revision, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Job { key: key.to_owned(), expect, change, reply };
        let sent = held(&self.jobs).as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            return Err(StoreError::Io("the store is closed".into()));
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Io("the write was given up".into())))
    }

    /// Ends the thread when it has done what is queued, and waits for that.
    pub(super) fn close(&self) {
        drop(held(&self.jobs).take());
        let thread = held(&self.thread).take();
        // The last owner may be a closure that the thread itself runs.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id())
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes the store panicked");
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the store says about a disk's error.
pub(super) fn refusal(error: &io::Error) -> StoreError {
    if is_full(error) { StoreError::Full } else { StoreError::Io(error.to_string()) }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}
