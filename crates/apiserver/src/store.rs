//! Where objects are: ordered keys, one revision for all of them, a history to watch.
//!
//! The store knows bytes, not JSON. Every write concerns one key, states what it expects to find there, and gets the
//! next revision. Its bytes are rendered when that revision is known, because objects carry it.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;

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

/// The store.
#[derive(Debug, Clone)]
pub struct Store {}

impl Store {
    /// A store that lives as long as the process: for tests.
    pub fn memory() -> Self {
        Self {}
    }

    /// The newest revision.
    pub fn revision(&self) -> Revision {
        1
    }

    /// What a key holds now.
    pub fn get(&self, _key: &str) -> Result<Option<Entry>, StoreError> {
        Ok(None)
    }

    /// Visits entries in the order of their keys until told to stop; returns the revision of what was seen.
    pub fn scan(
        &self,
        _scan: Scan<'_>,
        _visit: &mut dyn FnMut(&str, Revision, &Bytes) -> ControlFlow<()>,
    ) -> Result<Revision, StoreError> {
        Ok(1)
    }

    /// Counts entries as [`Store::scan`] would visit them, without reading them.
    pub fn count(&self, _scan: Scan<'_>) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Writes one key. When this returns `Ok`, the write is durable and visible.
    pub async fn write(&self, _key: &str, _expect: Expect, _change: Change) -> Result<Revision, StoreError> {
        Err(StoreError::Full)
    }

    /// Everything that happens under a prefix after a revision.
    pub fn watch(&self, _prefix: &str, _after: Revision) -> Result<Watch, StoreError> {
        Ok(Watch {})
    }
}

/// Events under a prefix, in order, none left out.
#[derive(Debug)]
pub struct Watch {}

impl Watch {
    /// The next event. A reader that is so slow that the history was compacted under it gets `Compacted`. Cancel safe.
    pub async fn next(&mut self) -> Result<Arc<Event>, StoreError> {
        std::future::pending().await
    }

    /// Everything up to this revision has been handed out: what a bookmark may say.
    pub fn revision(&self) -> Revision {
        1
    }
}
