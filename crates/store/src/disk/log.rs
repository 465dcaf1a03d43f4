//! The end of the log: appending to it, durably or not at all.

use std::io;
use std::sync::Arc;

use super::folder::Folder;
use super::index::{End, Place};
use super::record::{Chain, Record, as_u32};
use super::segment::{self, Segment};
use crate::Revision;

/// Space is prepared in steps of this size: overwriting it later needs no change to the file system's own records,
/// which makes a sync about twice as fast.
const PREPARED: usize = 512 << 10;
/// More than this at once is not worth preparing for.
const LARGE: usize = 128 << 10;

#[derive(Debug)]
pub(super) struct Log {
    folder: Arc<dyn Folder>,
    segment: Arc<Segment>,
    segment_bytes: u64,
    /// Where the next record goes.
    offset: u64,
    chain: Chain,
    /// How far the file is filled, with records or with zeros.
    filled: u64,
    /// The file cannot be trusted with more, since a sync failed or what a failed write left could not be removed.
    abandoned: bool,
    /// There was no room to prepare space: the disk is nearly full.
    tight: bool,
}

/// Records that go to the log together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    chain: Option<Chain>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Where a record is within its batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Where the record is when its batch is there.
    pub(super) fn at(self, revision: Revision, segment: u32, offset: u32) -> Place {
        Place { revision, segment, offset: offset + self.start, len: self.len }
    }
}

impl Log {
    pub(super) fn new(folder: Arc<dyn Folder>, segment: Arc<Segment>, segment_bytes: u64, end: End) -> Self {
        let End { offset, chain, .. } = end;
        let mut log =
            Self { folder, segment, segment_bytes, offset, chain, filled: offset, abandoned: false, tight: false };
        log.limit(segment_bytes);
        log
    }

    /// How large a file may get before the next is begun.
    pub(super) fn limit(&mut self, segment_bytes: u64) {
        // Places have 32 bits for the offset.
        self.segment_bytes = segment_bytes.min(2 << 30);
    }

    pub(super) fn end(&self) -> End {
        End { segment: self.segment.id, offset: self.offset, chain: self.chain }
    }

    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Goes on in a new file if this one is full or abandoned. A batch that was begun before continues the chain there.
    pub(super) fn turn(&mut self, next: Revision) -> io::Result<bool> {
        if !self.abandoned && self.offset < self.segment_bytes {
            return Ok(false);
        }
        let segment = Segment::create(&*self.folder, self.segment.id + 1, next, self.chain)?;
        self.trim();
        self.segment = Arc::new(segment);
        self.offset = segment::HEAD as u64;
        self.filled = self.offset;
        self.abandoned = false;
        Ok(true)
    }

    pub(super) fn add(&self, batch: &mut Batch, record: &Record<'_>) -> Span {
        let start = as_u32(batch.bytes.len());
        let begins = batch.chain.is_none();
        record.append(&mut batch.bytes, batch.chain.get_or_insert(self.chain), begins);
        Span { start, len: as_u32(record.size()) }
    }

    /// Appends a batch and syncs. Returns the offset of its beginning; after an error, nothing of it is in the log.
    pub(super) fn append(&mut self, batch: &mut Batch) -> io::Result<u32> {
        if self.abandoned {
            return Err(io::Error::other("the log's last file is abandoned"));
        }
        let offset = u32::try_from(self.offset).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        if let Err(error) = self.write(&mut batch.bytes).and_then(|()| self.sync()) {
            self.rewind();
            return Err(error);
        }
        self.offset += batch.bytes.len() as u64;
        self.chain = batch.chain.unwrap_or(self.chain);
        Ok(offset)
    }

    fn write(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let len = bytes.len();
        let file = &self.segment.file;
        let left = self.segment_bytes.saturating_sub(self.offset + len as u64);
        let prepare = PREPARED.min(usize::try_from(left).unwrap_or(PREPARED));
        if self.offset + len as u64 > self.filled && len < LARGE && prepare > 0 {
            bytes.resize(len + prepare, 0);
            let prepared = file.write_at(self.offset, bytes);
            let filled = self.offset + bytes.len() as u64;
            bytes.truncate(len);
            self.tight = prepared.is_err();
            if prepared.is_ok() {
                self.filled = filled;
                return Ok(());
            }
            // There may still be space for what matters.
            file.set_len(self.offset)?;
            self.filled = self.offset;
        }
        file.write_at(self.offset, bytes)?;
        self.filled = self.filled.max(self.offset + len as u64);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.segment.file.sync();
        // Nobody can say what is in the file's last pages after this.
        self.abandoned |= synced.is_err();
        synced
    }

    /// Whether the disk was nearly full when space was last needed.
    pub(super) fn is_tight(&self) -> bool {
        self.tight
    }

    /// Gives back what was prepared and not used. If that fails, it is only space. True if there was some.
    pub(super) fn trim(&mut self) -> bool {
        let prepared = self.filled > self.offset;
        if prepared {
            let _ = self.segment.file.set_len(self.offset);
            self.filled = self.offset;
        }
        prepared
    }

    /// Removes what a failed append left, so that it does not come back after a crash.
    fn rewind(&mut self) {
        let file = &self.segment.file;
        self.filled = self.offset;
        self.abandoned |= file.set_len(self.offset).and_then(|()| file.sync()).is_err();
    }
}
