//! Where objects are: ordered keys, one revision for all of them, a history to watch.
//!
//! The store knows bytes, not JSON. Every write concerns one key, states what it expects to find there, and gets the
//! next revision. Its bytes are rendered when that revision is known, because objects carry it.

mod disk;
mod history;
mod memory;
mod stored;
#[cfg(test)]
mod tests;
mod visible;
mod watch;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use self::disk::Disk;
pub use self::disk::{Damaged, OpenError, Options, Repair};
pub use self::history::Limits;
use self::memory::Memory;
pub use self::stored::Stored;
use self::visible::Visible;
pub use self::watch::Watch;

/// Counts writes. The store begins at 1; 0 is "none".
pub type Revision = u64;

/// Makes the bytes of an object once its revision is known.
pub type Render = Box<dyn FnOnce(Revision) -> Bytes + Send>;

/// What is stored under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The revision of its last write.
    pub revision: Revision,
    /// The bytes.
    pub value: Bytes,
}

/// What a write expects to find under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Absent,
    /// Exactly what was written with this revision.
    Revision(Revision),
}

/// What a write does.
pub enum Change {
    /// Stores the bytes.
    Put(Render),
    /// Removes the key; the bytes are the object's last words, for those who watch.
    Delete(Render),
}

/// Something that happened.
#[derive(Debug, Clone)]
pub struct Event {
    /// When.
    pub revision: Revision,
    /// Where.
    pub key: String,
    /// The new bytes; for a deletion the last words.
    pub value: Bytes,
    /// The bytes before; `None` if the key was not there.
    pub before: Option<Bytes>,
    /// The revision of the bytes before; 0 if the key was not there.
    pub before_revision: Revision,
    /// Whether the key is gone now.
    pub deleted: bool,
}

/// Why the store said no.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The key holds something else than the write expected: this.
    #[error("the key holds another revision than expected")]
    Mismatch(Option<Entry>),
    /// The history does not go back that far any more.
    #[error("revision {asked} is compacted: the history begins after {oldest}")]
    Compacted {
        /// What was asked for.
        asked: Revision,
        /// The oldest revision that can still be asked for.
        oldest: Revision,
    },
    /// That has not happened yet.
    #[error("revision {asked} is in the future: the store is at {current}")]
    Future {
        /// What was asked for.
        asked: Revision,
        /// The newest revision.
        current: Revision,
    },
    /// The disk is full: nothing was written, reads go on.
    #[error("the disk is full")]
    Full,
    /// The disk failed otherwise.
    #[error("the store failed: {0}")]
    Io(String),
}

/// A stretch of keys, at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// Keys that begin with this.
    pub prefix: &'a str,
    /// Only keys greater than this.
    pub after: Option<&'a str>,
    /// As it was at this revision; `None` is now.
    pub at: Option<Revision>,
}

/// The store. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    visible: Arc<Visible>,
    writer: Writer,
}

#[derive(Debug, Clone)]
enum Writer {
    Memory(Arc<Memory>),
    Disk(Arc<Disk>),
}

impl Store {
    /// A store that lives as long as the process: for tests. Its writes never wait.
    pub fn memory() -> Self {
        Self::memory_with(Limits::default())
    }

    /// A store that lives as long as the process and remembers this much history.
    pub fn memory_with(limits: Limits) -> Self {
        let visible = Arc::new(Visible::new(visible::State::empty(), 1, limits));
        Self { writer: Writer::Memory(Arc::new(Memory::new(visible.clone()))), visible }
    }

    /// The store in a folder, which is made if it is not there. One process at a time can have it.
    ///
    /// History is not kept: right after this only the newest revision can be asked for.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        let (visible, disk) = disk::open(folder, options)?;
        Ok(Self { visible, writer: Writer::Disk(Arc::new(disk)) })
    }

    /// Makes a store of what can still be read in a damaged one. The damaged files are kept in a folder beside it, whose path
    /// is returned; `None` if nothing is damaged. Blocks.
    pub fn repair(folder: &Path) -> Result<Option<(Repair, PathBuf)>, OpenError> {
        disk::repair(folder)
    }

    /// Reads every value, and tells which of them are not what was written any more, and where they are. Opening a store
    /// reads only what is not in its index. Blocks for about 20 ms for 100 MB that the system has in memory.
    pub fn unreadable(&self) -> Vec<String> {
        disk::unreadable(&self.visible.state())
    }

    /// Writes the store as it is now into another folder, which must be empty or not there. That folder can be opened.
    /// Others read and write meanwhile. Blocks.
    pub fn backup(&self, to: &Path) -> io::Result<()> {
        let (state, revision) = self.visible.snapshot();
        disk::backup(&state, revision, to)
    }

    /// Finishes what is queued, refuses more, and lets go of the folder. Dropping the last clone does the same. Blocks
    /// for some milliseconds.
    pub fn close(&self) {
        if let Writer::Disk(disk) = &self.writer {
            disk.close();
        }
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        self.visible.newest()
    }

    /// The oldest revision that can still be asked for, by a scan or a watch.
    pub fn compacted(&self) -> Revision {
        self.visible.oldest()
    }

    /// Forgets what led to this revision, so that it is the oldest that can be asked for. Limits do this on their own.
    pub fn compact(&self, to: Revision) {
        self.visible.compact(to);
    }

    /// What a key holds now.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.visible.get(key)
    }

    /// Visits entries in the order of their keys until told to stop; returns the revision of what was seen.
    pub fn scan(
        &self,
        scan: Scan<'_>,
        visit: &mut dyn FnMut(&str, Revision, &Bytes) -> ControlFlow<()>,
    ) -> Result<Revision, StoreError> {
        let mut failed = None;
        let revision = self.find(scan, &mut |key, revision, stored| match stored.read() {
            Ok(bytes) => visit(key, revision, &bytes),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(revision), Err)
    }

    /// The same, but what is visited is only read by those who want to.
    pub fn find(
        &self,
        scan: Scan<'_>,
        visit: &mut dyn FnMut(&str, Revision, &Stored) -> ControlFlow<()>,
    ) -> Result<Revision, StoreError> {
        self.visible.scan(scan, visit)
    }

    /// Counts entries as [`Store::scan`] would visit them, without reading them.
    pub fn count(&self, scan: Scan<'_>) -> Result<u64, StoreError> {
        self.visible.count(scan)
    }

    /// Writes one key. When this returns `Ok`, the write is durable and visible.
    ///
    /// The bytes are rendered exactly once, and only if the write is going to be tried with them. Who stops waiting for
    /// the answer does not stop the write.
    pub async fn write(&self, key: &str, expect: Expect, change: Change) -> Result<Revision, StoreError> {
        match &self.writer {
            Writer::Memory(memory) => memory.write(key, expect, change),
            Writer::Disk(disk) => disk.write(key, expect, change).await,
        }
    }

    /// Everything that happens under a prefix after a revision.
    pub fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        Watch::begin(self.visible.clone(), prefix, after)
    }
}

impl Expect {
    fn agrees(self, found: Option<Revision>) -> bool {
        match self {
            Self::Absent => found.is_none(),
            Self::Revision(revision) => found == Some(revision),
        }
    }
}

impl Change {
    /// What happens when this is done to a key that holds `found`, or why it cannot.
    fn happen(self, expect: Expect, key: &str, found: Option<Entry>, revision: Revision) -> Result<Event, StoreError> {
        let deletes_nothing = matches!(self, Self::Delete(_)) && found.is_none();
        if deletes_nothing || !expect.agrees(found.as_ref().map(|entry| entry.revision)) {
            return Err(StoreError::Mismatch(found));
        }
        let (deleted, render) = match self {
            Self::Put(render) => (false, render),
            Self::Delete(render) => (true, render),
        };
        let before_revision = found.as_ref().map_or(0, |entry| entry.revision);
        let before = found.map(|entry| entry.value);
        Ok(Event { revision, key: key.to_owned(), value: render(revision), before, before_revision, deleted })
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Put(_) => "Put",
            Self::Delete(_) => "Delete",
        })
    }
}
