//! Where each key's value is, in memory; and a copy of that on disk, so that a start need not read the whole log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::Trouble;
use super::folder::Folder;
use super::record::{Chain, as_u32, u32_at, u64_at};
use crate::Revision;

/// The newest record of every key.
pub(crate) type Index = BTreeMap<Arc<str>, Place>;

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) revision: Revision,
    pub(super) segment: u32,
    pub(super) offset: u32,
    pub(super) len: u32,
}

/// How far the log goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) segment: u32,
    pub(super) offset: u64,
    pub(super) chain: Chain,
}

/// The index as it was when the log ended there.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) revision: Revision,
    pub(super) end: End,
    pub(super) index: Index,
}

const NAME: &str = "index";
const NEXT: &str = "index.new";
const MAGIC: &[u8; 8] = b"b7 idx 1";

/// Replaces the copy on disk, durably and at once: whenever this stops, the old one or the new one is there.
pub(super) fn save(folder: &dyn Folder, revision: Revision, end: End, index: &Index) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(revision.to_le_bytes());
    bytes.extend(end.segment.to_le_bytes());
    bytes.extend(end.offset.to_le_bytes());
    bytes.extend(end.chain.0.to_le_bytes());
    bytes.extend((index.len() as u64).to_le_bytes());
    for (key, place) in index {
        bytes.extend(as_u32(key.len()).to_le_bytes());
        bytes.extend(key.as_bytes());
        bytes.extend(place.revision.to_le_bytes());
        bytes.extend(place.segment.to_le_bytes());
        bytes.extend(place.offset.to_le_bytes());
        bytes.extend(place.len.to_le_bytes());
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());

    let saved = folder.create(NEXT).and_then(|file| {
        file.write_at(0, &bytes)?;
        file.sync()
    });
    if let Err(error) = saved {
        // It may take the last space there is; the error that matters is the first.
        let _ = folder.remove(NEXT);
        return Err(error);
    }
    folder.rename(NEXT, NAME)?;
    folder.sync()
}

/// The copy on disk, if there is one.
pub(super) fn load(folder: &dyn Folder) -> Result<Option<Checkpoint>, Trouble> {
    let Some(bytes) = read(folder)? else { return Ok(None) };
    let whole = bytes.split_last_chunk().filter(|(bytes, check)| u32::from_le_bytes(**check) == crc32fast::hash(bytes));
    match whole.and_then(|(bytes, _)| decode(bytes)) {
        Some(checkpoint) => Ok(Some(checkpoint)),
        None => Err(Trouble::Damaged(format!("the file {NAME} is not what was written"))),
    }
}

/// The entries of a copy that is damaged, if they can be told apart. Some of them are wrong.
pub(super) fn load_unchecked(folder: &dyn Folder) -> io::Result<Option<Index>> {
    let bytes = read(folder)?.unwrap_or_default();
    let decoded = bytes.split_last_chunk::<4>().and_then(|(bytes, _)| decode(bytes));
    Ok(decoded.map(|checkpoint| checkpoint.index))
}

fn read(folder: &dyn Folder) -> io::Result<Option<Vec<u8>>> {
    let file = match folder.open(NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(usize::MAX)];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(Some(bytes))
}

fn decode(bytes: &[u8]) -> Option<Checkpoint> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut take = |count: usize| {
        let (taken, left) = rest.split_at_checked(count)?;
        rest = left;
        Some(taken)
    };
    let revision = u64_at(take(8)?, 0)?;
    let end = End { segment: u32_at(take(4)?, 0)?, offset: u64_at(take(8)?, 0)?, chain: Chain(u32_at(take(4)?, 0)?) };
    let count = u64_at(take(8)?, 0)?;
    let mut entry = || {
        let key_len = u32_at(take(4)?, 0)? as usize;
        let key = std::str::from_utf8(take(key_len)?).ok()?;
        let place = Place {
            revision: u64_at(take(8)?, 0)?,
            segment: u32_at(take(4)?, 0)?,
            offset: u32_at(take(4)?, 0)?,
            len: u32_at(take(4)?, 0)?,
        };
        Some((Arc::from(key), place))
    };
    let index = (0..count).map(|_| entry()).collect::<Option<Index>>()?;
    rest.is_empty().then_some(Checkpoint { revision, end, index })
}
