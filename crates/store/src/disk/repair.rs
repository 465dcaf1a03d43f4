//! Makes a store of what can still be read of a damaged one, and tells what cannot.
//!
//! The repaired store is written behind the damaged files, as new files of the log, and becomes the store when its index
//! replaces the old one: whenever this stops, the store is damaged as before, or repaired.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::damage::intact;
use super::folder::Folder;
use super::index::{self, Index, Place};
use super::record::{self, Chain, Kind, as_u32};
use super::segment::{self, Segment, Segments};
use super::{Trouble, recover, writer};
use crate::Revision;
use crate::visible::State;

/// What a repair found, kept and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repair {
    /// How many objects are in the repaired store.
    pub kept: usize,
    /// The keys of objects that cannot be read any more. They are gone.
    pub lost: Vec<String>,
    /// The revisions of writes that cannot be read any more. What they changed is as it was before.
    pub lost_writes: Vec<RangeInclusive<Revision>>,
    /// Where the log cannot be read.
    pub places: Vec<Damaged>,
    /// The keys of objects that may be outdated or may have been deleted, since the index was lost as well.
    pub uncertain: Vec<String>,
}

/// A stretch of a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged {
    /// The file.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: usize,
    /// The key that was probably written there.
    pub key: Option<String>,
}

/// A write that can be read.
struct Found {
    kind: Kind,
    key: Arc<str>,
    place: Place,
}

/// Repairs the store in a folder that nobody else uses.
pub(crate) fn repair(folder: &Arc<dyn Folder>, segment_bytes: u64) -> Result<Repair, Trouble> {
    if let Err(newer @ Trouble::Newer { .. }) = recover::check_format(&**folder) {
        return Err(newer);
    }
    let ids = recover::segment_ids(&**folder)?;
    let segments = open_all(&**folder, &ids)?;
    let mut repair = Repair::default();
    let (found, damaged) = read_all(&segments)?;
    let known = Known::of(&**folder, &segments)?;
    let newest = newest(&segments, &found, &damaged, known.revision);
    if known.is_certain {
        repair.lost_writes = missing(known.revision + 1, newest.seen, &found);
        repair.places = damaged.into_iter().filter(|(id, damaged)| known.is_behind(*id, damaged)).map(second).collect();
    } else {
        repair.places = damaged.into_iter().map(second).collect();
    }

    let mut index = Index::new();
    let state = replayed(&found, known.revision, known.entries, &segments);
    let last_missing = missing(2, newest.seen, &found).last().map_or(0, |range| *range.end());
    for (key, (revision, what)) in state {
        match what {
            What::Deleted => {}
            What::Lost => repair.lost.push(key.to_string()),
            What::At(place) => {
                if !known.is_certain && revision < last_missing {
                    repair.uncertain.push(key.to_string());
                }
                index.insert(key, place);
            }
        }
    }
    repair.kept = index.len();

    let state = State::Disk { index: Arc::new(index), segments: Arc::new(segments) };
    let first = ids.last().map_or(1, |last| last + 1);
    if let Err(error) = writer::copy(&state, newest.next, folder, segment_bytes, first) {
        for id in recover::segment_ids(&**folder)?.into_iter().filter(|id| *id >= first) {
            folder.remove(&Segment::name(id))?;
        }
        return Err(error.into());
    }
    for id in ids {
        folder.remove(&Segment::name(id))?;
    }
    folder.sync()?;
    Ok(repair)
}

fn second<A, B>((_, second): (A, B)) -> B {
    second
}

/// Opens all files of the log, also those whose head is damaged.
fn open_all(folder: &dyn Folder, ids: &[u32]) -> io::Result<Segments> {
    let mut segments = Segments::new();
    for &id in ids {
        let segment = match Segment::open(folder, id)? {
            Some(segment) => segment,
            None => Segment { id, first: 0, chain: Chain(0), file: folder.open(&Segment::name(id))? },
        };
        segments.insert(id, Arc::new(segment));
    }
    Ok(segments)
}

/// Places that cannot be read, with the numbers of their files.
type Places = Vec<(u32, Damaged)>;

/// Every write that can be read, and where something else is.
fn read_all(segments: &Segments) -> io::Result<(Vec<Found>, Places)> {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let mut following = segments.values().peekable();
    while let Some(segment) = following.next() {
        // What the next file begins with was never acknowledged in this one.
        let stop =
            following.peek().map_or(Revision::MAX, |next| if next.first == 0 { Revision::MAX } else { next.first });
        let bytes = segment.read_from(0)?;
        let filled = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let mut end = segment::HEAD;
        let mut note = |from: usize, to: usize| {
            if from < to {
                let key = record::probable_key(&bytes[from..to]).map(str::to_owned);
                let file = Segment::name(segment.id);
                damaged.push((segment.id, Damaged { file, offset: from as u64, bytes: to - from, key }));
            }
        };
        if segment.first == 0 {
            note(0, segment::HEAD.min(filled));
        }
        for (record, at, size) in intact(&bytes, segment::HEAD) {
            note(end, at);
            end = at + size;
            if record.kind != Kind::Moved && record.revision >= stop {
                break;
            }
            let place = Place { revision: record.revision, segment: segment.id, offset: as_u32(at), len: as_u32(size) };
            found.push(Found { kind: record.kind, key: Arc::from(record.key), place });
        }
        if following.peek().is_none() {
            note(end, filled);
        }
    }
    Ok((found, damaged))
}

/// What the copy of the index says.
struct Known {
    entries: Index,
    /// The entries are complete up to this revision.
    revision: Revision,
    end: (u32, u64),
    /// Whether everything that was deleted until then is known to be.
    is_certain: bool,
}

impl Known {
    fn of(folder: &dyn Folder, segments: &Segments) -> Result<Self, Trouble> {
        Ok(match index::load(folder) {
            Ok(Some(checkpoint)) => Self {
                entries: checkpoint.index,
                revision: checkpoint.revision,
                end: (checkpoint.end.segment, checkpoint.end.offset),
                is_certain: true,
            },
            // Files are only ever removed when there is an index that does not need them.
            Ok(None) => Self { is_certain: segments.keys().copied().eq(1..=as_u32(segments.len())), ..Self::nothing() },
            Err(Trouble::Damaged(_)) => match index::load_unchecked(folder)? {
                Some(entries) => Self::from_damaged(entries, segments),
                None => Self::nothing(),
            },
            Err(trouble) => return Err(trouble),
        })
    }

    fn nothing() -> Self {
        Self { entries: Index::new(), revision: 1, end: (0, 0), is_certain: false }
    }

    /// An entry is believed when the record where it leads is one: the record itself tells its key and its revision.
    fn from_damaged(entries: Index, segments: &Segments) -> Self {
        let mut believed = Index::new();
        for (key, mut place) in entries {
            match place.find(segments) {
                Some((found, revision)) => {
                    place.revision = revision;
                    believed.insert(found, place);
                }
                None => drop(believed.insert(key, place)),
            }
        }
        let readable = believed.iter().filter(|(key, place)| place.read(segments, key).is_ok());
        let revision = readable.map(|(_, place)| place.revision).max().unwrap_or(1);
        Self { entries: believed, revision, end: (0, 0), is_certain: true }
    }

    fn is_behind(&self, id: u32, damaged: &Damaged) -> bool {
        (id, damaged.offset) >= self.end
    }
}

/// The newest revision that was seen, and one that is surely newer than all that ever was.
struct Newest {
    seen: Revision,
    next: Revision,
}

fn newest(segments: &Segments, found: &[Found], damaged: &[(u32, Damaged)], known: Revision) -> Newest {
    let in_records = found.iter().map(|found| found.place.revision).max().unwrap_or(1);
    let in_heads = segments.values().map(|segment| segment.first.saturating_sub(1)).max().unwrap_or(1);
    let seen = known.max(in_records).max(in_heads);
    let unreadable: usize = damaged.iter().map(|(_, damaged)| damaged.bytes / record::LEAST + 1).sum();
    Newest { seen, next: seen + unreadable as Revision }
}

/// The revisions in this range that no record tells about.
fn missing(from: Revision, to: Revision, found: &[Found]) -> Vec<RangeInclusive<Revision>> {
    let mut seen: BTreeSet<Revision> = found.iter().map(|found| found.place.revision).collect();
    seen.insert(to + 1);
    let mut next = from;
    let mut missing = Vec::new();
    for revision in seen.range(from..=to + 1) {
        if *revision > next {
            missing.push(next..=revision - 1);
        }
        next = revision + 1;
    }
    missing
}

/// What became of a key.
enum What {
    At(Place),
    Deleted,
    Lost,
}

/// What the index knew, and what was written since.
fn replayed(
    found: &[Found],
    known: Revision,
    entries: Index,
    segments: &Segments,
) -> BTreeMap<Arc<str>, (Revision, What)> {
    let copies = found.iter().filter(|found| found.kind != Kind::Delete);
    let copies: HashMap<(&str, Revision), Place> =
        copies.map(|found| ((&*found.key, found.place.revision), found.place)).collect();
    let mut state: BTreeMap<Arc<str>, (Revision, What)> = BTreeMap::new();
    for (key, place) in entries {
        let what = if place.read(segments, &key).is_ok() {
            What::At(place)
        } else {
            copies.get(&(&*key, place.revision)).map_or(What::Lost, |place| What::At(*place))
        };
        state.insert(key, (place.revision, what));
    }
    for Found { kind, key, place } in found.iter().filter(|found| found.place.revision > known) {
        let what = if *kind == Kind::Delete { What::Deleted } else { What::At(*place) };
        match state.get(key) {
            Some((revision, _)) if *revision > place.revision => {}
            Some((revision, What::Deleted)) if *revision == place.revision => {}
            _ => drop(state.insert(key.clone(), (place.revision, what))),
        }
    }
    state
}
