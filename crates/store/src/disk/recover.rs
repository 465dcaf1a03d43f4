//! Opening: the copy of the index, and what the log says since.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::Trouble;
use super::damage::{self, Behind, Rest};
use super::folder::Folder;
use super::index::{self, Checkpoint, End, Index, Place};
use super::record::{Chain, Kind, as_u32};
use super::segment::{self, Records, Segment, Segments};
use crate::Revision;

/// The format that this version writes. Raise it when an older version would misread the folder.
pub(super) const FORMAT: u32 = 2;
const FORMAT_FILE: &str = "format";
const FORMAT_NEXT: &str = "format.new";

pub(super) struct Recovered {
    pub(super) revision: Revision,
    pub(super) index: Index,
    pub(super) segments: Segments,
    /// Where the log ended when the index was copied to disk.
    pub(super) copied: End,
    pub(super) end: End,
}

/// Whether this version may use the folder. Only looks. The format, if there is a store in it.
pub(super) fn check_format(folder: &dyn Folder) -> Result<Option<u32>, Trouble> {
    let file = match folder.open(FORMAT_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = [0; 64];
    let read = file.read_at(0, &mut text)?;
    let text = text.get(..read).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
    match text.strip_prefix("beskar7 store ").and_then(|number| number.trim_end().parse().ok()) {
        Some(known @ 1..=FORMAT) => Ok(Some(known)),
        Some(found) => Err(Trouble::Newer { found }),
        None => Err(Trouble::Damaged(format!("the file {FORMAT_FILE} does not say which format this is"))),
    }
}

pub(super) fn recover(folder: &dyn Folder) -> Result<Recovered, Trouble> {
    let ids = segment_ids(folder)?;
    let format = check_format(folder)?;
    if format.is_none() {
        if !ids.is_empty() {
            return Err(Trouble::Damaged(format!("the file {FORMAT_FILE} is missing")));
        }
        write_format(folder)?;
    }
    let checkpoint = index::load(folder)?;
    let mut segments = open_segments(folder, &ids, checkpoint.as_ref())?;
    let Checkpoint { mut revision, end: copied, mut index } = match checkpoint {
        Some(checkpoint) => checkpoint,
        None => beginning(folder, &mut segments)?,
    };
    let end = replay(&segments, copied, &mut revision, &mut index)?;
    drop_the_rest(&segments, end)?;
    remove_unused(folder, &mut segments, copied.segment, &index)?;
    if let Some((key, _)) = index.iter().find(|(_, place)| !segments.contains_key(&place.segment)) {
        return Err(Trouble::Damaged(format!("the file that holds {key} is missing")));
    }
    if format.is_some_and(|format| format < FORMAT) {
        write_format(folder)?;
    }
    Ok(Recovered { revision, index, segments, copied, end })
}

/// The name appears when the content is there, so that a crash leaves no empty file.
pub(super) fn write_format(folder: &dyn Folder) -> io::Result<()> {
    let file = folder.create(FORMAT_NEXT)?;
    file.write_at(0, format!("beskar7 store {FORMAT}\n").as_bytes())?;
    file.sync()?;
    folder.rename(FORMAT_NEXT, FORMAT_FILE)?;
    folder.sync()
}

pub(super) fn segment_ids(folder: &dyn Folder) -> io::Result<Vec<u32>> {
    let mut ids: Vec<u32> = folder.list()?.iter().filter_map(|name| Segment::id(name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

fn open_segments(folder: &dyn Folder, ids: &[u32], checkpoint: Option<&Checkpoint>) -> Result<Segments, Trouble> {
    let needed = checkpoint.map_or(1, |checkpoint| checkpoint.end.segment);
    let mut segments = Segments::new();
    for &id in ids {
        match Segment::open(folder, id)? {
            Some(segment) => drop(segments.insert(id, Arc::new(segment))),
            // A crash while it was made: nothing is in it.
            None if Some(&id) == ids.last()
                && (id > needed || checkpoint.is_none())
                && Segment::is_unmade(folder, id)? =>
            {
                folder.remove(&Segment::name(id))?;
            }
            None => return Err(Trouble::Damaged(format!("the head of {} is not whole", Segment::name(id)))),
        }
    }
    match segments.range(needed..).next() {
        Some((&id, _)) if id == needed => Ok(segments),
        None if checkpoint.is_none() => Ok(segments),
        _ => Err(Trouble::Damaged(format!("the file {} is missing", Segment::name(needed)))),
    }
}

/// A store in which nothing was written yet, or of which the index was never copied.
fn beginning(folder: &dyn Folder, segments: &mut Segments) -> io::Result<Checkpoint> {
    if segments.is_empty() {
        segments.insert(1, Arc::new(Segment::create(folder, 1, 2, Chain(0))?));
    }
    let end = End { segment: 1, offset: segment::HEAD as u64, chain: Chain(0) };
    Ok(Checkpoint { revision: 1, end, index: Index::new() })
}

/// Follows the log from there; returns where it really ends.
fn replay(segments: &Segments, from: End, revision: &mut Revision, index: &mut Index) -> Result<End, Trouble> {
    let mut end = from;
    let mut following = segments.range(from.segment..).peekable();
    while let Some((&id, segment)) = following.next() {
        if id != from.segment {
            if segment.first != *revision + 1 || segment.chain != end.chain {
                let what = format!("writes are missing before the first in {}", Segment::name(id));
                return Err(Trouble::Damaged(what));
            }
            end = End { segment: id, offset: segment::HEAD as u64, chain: segment.chain };
        }
        let next = following.peek().map(|(_, next)| &***next);
        end = replay_one(segment, end, next, revision, index)?;
    }
    Ok(end)
}

/// Follows the log through one file. What the next file begins with was never acknowledged in this one.
fn replay_one(
    segment: &Segment,
    mut end: End,
    next: Option<&Segment>,
    revision: &mut Revision,
    index: &mut Index,
) -> Result<End, Trouble> {
    let name = Segment::name(segment.id);
    let mut records = Records::of(&*segment.file, end.offset, end.chain);
    while next.is_none_or(|next| next.first != *revision + 1 || next.chain != end.chain) {
        let Some((record, offset, len)) = records.next()? else {
            let rest = segment.read_from(end.offset)?;
            match damage::judge(&rest, end.offset, end.chain, *revision + 1) {
                Rest::Unfinished if next.is_none() => break,
                Rest::Mendable(head) => {
                    tracing::warn!(file = name, offset = end.offset, "a damaged record was mended; check the disk");
                    segment.file.write_at(end.offset, &head)?;
                    segment.file.sync()?;
                    records = Records::of(&*segment.file, end.offset, end.chain);
                    continue;
                }
                Rest::Unfinished => return Err(damaged(&name, end.offset, Behind::default(), next)),
                Rest::Damaged(behind) => return Err(damaged(&name, end.offset, behind, next)),
            }
        };
        let out_of_order = |what: &str| Trouble::Damaged(format!("{what} in {name} at byte {offset}"));
        let place = Place {
            revision: record.revision,
            segment: segment.id,
            offset: u32::try_from(offset).map_err(|_| out_of_order("a record is too far"))?,
            len: as_u32(len),
        };
        match record.kind {
            Kind::Put | Kind::Delete if record.revision != *revision + 1 => {
                return Err(out_of_order("a write is out of order"));
            }
            Kind::Put => drop(index.insert(Arc::from(record.key), place)),
            Kind::Delete => drop(index.remove(record.key)),
            Kind::Moved => {
                if let Some(known) = index.get_mut(record.key).filter(|known| known.revision == record.revision) {
                    *known = place;
                }
            }
        }
        *revision = (*revision).max(record.revision);
        end = End { segment: segment.id, offset: records.offset, chain: records.chain };
    }
    Ok(end)
}

fn damaged(name: &str, offset: u64, behind: Behind, next: Option<&Segment>) -> Trouble {
    let readable = match behind {
        Behind { records: 0, .. } => "nothing can be read behind it in this file".to_owned(),
        Behind { records, newest } => {
            let follow = if records == 1 { "intact record follows" } else { "intact records follow" };
            format!("{records} {follow} in this file, up to revision {newest}")
        }
    };
    let more = next.map_or(String::new(), |next| format!(", and more files from {} on", Segment::name(next.id)));
    Trouble::Damaged(format!("{name} at byte {offset} is not what was written; {readable}{more}"))
}

/// What is behind the end was not acknowledged. It goes away, so that it can never continue the log by accident.
fn drop_the_rest(segments: &Segments, end: End) -> Result<(), Trouble> {
    let Some(segment) = segments.get(&end.segment) else {
        return Err(Trouble::Damaged(format!("the file {} is missing", Segment::name(end.segment))));
    };
    match segment.file.len()? {
        len if len < end.offset => Err(Trouble::Damaged(format!("{} is too short", Segment::name(end.segment)))),
        len if len == end.offset => Ok(()),
        _ => {
            segment.file.set_len(end.offset)?;
            Ok(segment.file.sync()?)
        }
    }
}

/// Files that were cleared away but not removed yet. Those behind the copy of the index are needed to follow the log.
fn remove_unused(folder: &dyn Folder, segments: &mut Segments, copied: u32, index: &Index) -> io::Result<()> {
    let used: HashSet<u32> = index.values().map(|place| place.segment).collect();
    let unused: Vec<u32> = segments.range(..copied).map(|(id, _)| *id).filter(|id| !used.contains(id)).collect();
    for id in unused {
        folder.remove(&Segment::name(id))?;
        segments.remove(&id);
    }
    Ok(())
}
