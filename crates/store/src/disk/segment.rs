//! The files of the log. Each knows the first revision that was written to it, so what the one before has from there
//! on was never acknowledged.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use super::folder::{File, Folder};
use super::index::Place;
use super::record::{self, Chain, u32_at, u64_at};
use crate::Revision;

/// Files by number. Cheap to clone.
pub(crate) type Segments = BTreeMap<u32, Arc<Segment>>;

#[derive(Debug)]
pub(crate) struct Segment {
    pub(super) id: u32,
    pub(super) first: Revision,
    pub(super) chain: Chain,
    pub(super) file: Arc<dyn File>,
}

const MAGIC: &[u8; 8] = b"b7 log 1";
pub(super) const HEAD: usize = 28;

impl Segment {
    pub(super) fn name(id: u32) -> String {
        format!("log-{id:010}")
    }

    pub(super) fn id(name: &str) -> Option<u32> {
        name.strip_prefix("log-")?.parse().ok()
    }

    /// Makes an empty one, durably.
    pub(super) fn create(folder: &dyn Folder, id: u32, first: Revision, chain: Chain) -> io::Result<Self> {
        let file = folder.create(&Self::name(id))?;
        let mut head = MAGIC.to_vec();
        head.extend(id.to_le_bytes());
        head.extend(first.to_le_bytes());
        head.extend(chain.0.to_le_bytes());
        head.extend(crc32fast::hash(&head).to_le_bytes());
        let made = file.write_at(0, &head).and_then(|()| file.sync()).and_then(|()| folder.sync());
        if let Err(error) = made {
            // It may take the last space there is; the error that matters is the first.
            let _ = folder.remove(&Self::name(id));
            return Err(error);
        }
        Ok(Self { id, first, chain, file })
    }

    /// Opens one; `None` if its head is not whole, as after a crash while it was made.
    pub(super) fn open(folder: &dyn Folder, id: u32) -> io::Result<Option<Self>> {
        let file = folder.open(&Self::name(id))?;
        let mut head = [0; HEAD];
        file.read_at(0, &mut head)?;
        let whole = head.starts_with(MAGIC)
            && u32_at(&head, 8) == Some(id)
            && u32_at(&head, 24) == Some(crc32fast::hash(&head[..24]));
        let (Some(first), Some(chain)) = (u64_at(&head, 12), u32_at(&head, 20)) else { return Ok(None) };
        Ok(whole.then_some(Self { id, first, chain: Chain(chain), file }))
    }

    /// Whether a crash came before its head was durable. Heads are durable before anything else is written.
    pub(super) fn is_unmade(folder: &dyn Folder, id: u32) -> io::Result<bool> {
        let file = folder.open(&Self::name(id))?;
        Ok(file.len()? < HEAD as u64 || read_from(&*file, 0)?.iter().all(|byte| *byte == 0))
    }

    /// All its bytes from an offset on.
    pub(super) fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        read_from(&*self.file, offset)
    }
}

fn read_from(file: &dyn File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(file.len()?.saturating_sub(offset)).unwrap_or(usize::MAX)];
    let read = file.read_at(offset, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

impl Place {
    /// How long the record is: a little more than its value.
    pub(crate) fn size(self) -> usize {
        self.len as usize
    }

    /// The key and the revision of the record that is here, if it is whole.
    pub(super) fn find(self, segments: &Segments) -> Option<(Arc<str>, Revision)> {
        let segment = segments.get(&self.segment)?;
        // A damaged entry may claim any length.
        if u64::from(self.offset) + u64::from(self.len) > segment.file.len().ok()? {
            return None;
        }
        let bytes = self.bytes(segments).ok()?;
        record::read(&bytes).map(|record| (Arc::from(record.key), record.revision))
    }

    fn bytes(self, segments: &Segments) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; self.len as usize];
        let read = match segments.get(&self.segment) {
            Some(segment) => segment.file.read_at(self.offset.into(), &mut bytes)?,
            None => 0,
        };
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The value of the key whose record is here.
    pub(crate) fn read(self, segments: &Segments, key: &str) -> io::Result<Bytes> {
        let bytes = self.bytes(segments)?;
        let found = record::read(&bytes);
        if found.is_some_and(|record| record.key == key && record.revision == self.revision) {
            Ok(Bytes::from(bytes).slice(record::value_at(key)..))
        } else {
            let (file, offset) = (Segment::name(self.segment), self.offset);
            let what = format!("the record of {key} in {file} at {offset} is not what was written");
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        }
    }
}

/// Reads the records of a segment one after the other.
pub(super) struct Records<'a> {
    file: &'a dyn File,
    /// Where the next record begins.
    pub(super) offset: u64,
    pub(super) chain: Chain,
    window: Vec<u8>,
    window_offset: u64,
}

const WINDOW: usize = 1 << 20;

impl<'a> Records<'a> {
    pub(super) fn of(file: &'a dyn File, offset: u64, chain: Chain) -> Self {
        Self { file, offset, chain, window: Vec::new(), window_offset: offset }
    }

    /// The next record, its offset and its size, if one continues the log.
    pub(super) fn next(&mut self) -> io::Result<Option<(record::Record<'_>, u64, usize)>> {
        self.see(record::HEAD)?;
        let Some(size) = record::length(self.rest()) else { return Ok(None) };
        if self.rest().len() < size && self.offset + size as u64 > self.file.len()? {
            return Ok(None);
        }
        self.see(size)?;
        let (offset, start) = (self.offset, self.start());
        let Some(bytes) = self.window.get(start..start + size) else { return Ok(None) };
        let Some(record) = record::read_next(bytes, &mut self.chain) else { return Ok(None) };
        self.offset += size as u64;
        Ok(Some((record, offset, size)))
    }

    /// Has at least this much of what comes next in the window, if the file has it.
    fn see(&mut self, size: usize) -> io::Result<()> {
        if self.rest().len() < size {
            self.window.resize(size.max(WINDOW), 0);
            let read = self.file.read_at(self.offset, &mut self.window)?;
            self.window.truncate(read);
            self.window_offset = self.offset;
        }
        Ok(())
    }

    fn start(&self) -> usize {
        usize::try_from(self.offset - self.window_offset).unwrap_or(usize::MAX)
    }

    fn rest(&self) -> &[u8] {
        self.window.get(self.start()..).unwrap_or_default()
    }
}
