//! What is behind the last good record of the log: nothing, what a crash left of the last batch, or damage.
//!
//! A crash leaves each sector of the last batch written or not, in any order, and space that was not written holds zeros
//! or ends the file: nothing else was ever there. So a record that a crash left unfinished has a sector of zeros in it,
//! or its end is missing at the border of a sector. Whatever else does not read well was changed after it was written.
//! And when a later batch is there, the one before it was acknowledged, whatever its sectors look like.

use super::record::{self, Chain, HEAD, Record};
use super::writer::MOST_JOBS;
use crate::Revision;

/// Disks write this much at once, or nothing of it.
const SECTOR: u64 = 512;
/// Zeros that a record may have in a row: in its lengths and its revision. Keys and values have none.
const ZEROS: usize = 16;

/// What bytes are that do not continue the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing that was ever acknowledged.
    Unfinished,
    /// A whole record with this head, one field of which was changed.
    Mendable([u8; HEAD]),
    /// Acknowledged writes, changed after they were written.
    Damaged(Behind),
}

/// What can be read behind a damaged record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Behind {
    pub(super) records: usize,
    /// The newest revision among them; 0 if there are none.
    pub(super) newest: Revision,
}

/// Judges what follows the last good record: `bytes` is all there is in the file from `offset` on, and the next write
/// should be `next`.
pub(super) fn judge(bytes: &[u8], offset: u64, chain: Chain, next: Revision) -> Rest {
    let Some(last) = bytes.iter().rposition(|byte| *byte != 0) else { return Rest::Unfinished };
    let some_zeros = bytes.len().min(last + 1 + ZEROS);
    if let Some(head) = record::mended_head(&bytes[..some_zeros], chain) {
        return Rest::Mendable(head);
    }
    let mut behind = Behind::default();
    let mut later_batch = false;
    for (record, at, size) in intact(&bytes[..some_zeros], 0) {
        behind.records += 1;
        behind.newest = behind.newest.max(record.revision);
        // Logs of format 1 do not say where a batch begins, but none has more writes than this.
        later_batch |= at > 0 && record::begins_batch(&bytes[at..at + size]);
        later_batch |= record.revision > next + MOST_JOBS as Revision;
    }
    if later_batch || !is_torn(bytes, last + 1, offset) { Rest::Damaged(behind) } else { Rest::Unfinished }
}

/// All whole records in these bytes from there on, wherever they begin: where, and how long they are.
pub(super) fn intact(bytes: &[u8], from: usize) -> impl Iterator<Item = (Record<'_>, usize, usize)> {
    let mut at = from;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            match record::read_first(&bytes[at..]) {
                Some((record, size)) => {
                    at += size;
                    return Some((record, at - size, size));
                }
                None => at += 1,
            }
        }
        None
    })
}

/// Whether the record at the start of these bytes can have been left by a crash. `filled` is where the zeros at the end
/// begin.
fn is_torn(bytes: &[u8], filled: usize, offset: u64) -> bool {
    let to_border = |at: usize| usize::try_from(SECTOR - (offset + at as u64) % SECTOR).unwrap_or(usize::MAX);
    let size = record::length(bytes).unwrap_or(usize::MAX);
    let mut at = 0;
    while at < size.min(filled) {
        let end = at.saturating_add(to_border(at)).min(size);
        if bytes[at..end.min(bytes.len())].iter().all(|byte| *byte == 0) {
            return true;
        }
        at = end;
    }
    // Nothing is missing before the last byte that there is. Is something missing behind it?
    let to_border = to_border(filled - 1) - 1;
    size > filled + to_border && (to_border < ZEROS || filled == bytes.len())
}

#[cfg(test)]
mod tests {
    use super::super::record::Kind;
    use super::*;

    /// A log from byte 300 of its file on: a batch of one, a batch of three, a batch of one.
    fn batches() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut chain, mut begins) = (Vec::new(), Chain(7), Vec::new());
        for (revision, size, first) in [(2, 900, true), (3, 300, true), (4, 1400, false), (5, 10, false), (6, 90, true)]
        {
            begins.push(bytes.len());
            let value = vec![b'x'; size];
            Record { kind: Kind::Put, revision, key: "/a/b", value: &value }.append(&mut bytes, &mut chain, first);
        }
        begins.push(bytes.len());
        (bytes, begins)
    }

    const OFFSET: u64 = 300;

    #[test]
    fn every_way_to_lose_sectors_of_the_last_batch_is_a_crash() {
        let (mut bytes, begins) = batches();
        bytes.truncate(begins[4]);
        let batch = begins[1]..begins[4];
        let whole = bytes.clone();
        let borders: Vec<usize> = (212..bytes.len()).step_by(512).collect();
        let mut starts = vec![batch.start];
        starts.extend(borders.into_iter().filter(|at| batch.contains(at) && *at > batch.start));
        for prepared in [0, 4096] {
            for lost in 1..1_u32 << starts.len() {
                bytes.clone_from(&whole);
                for (n, start) in starts.iter().enumerate().filter(|(n, _)| lost & (1 << n) != 0) {
                    let end = starts.get(n + 1).copied().unwrap_or(batch.end);
                    bytes[*start..end].fill(0);
                }
                bytes.resize(bytes.len() + prepared, 0);
                let mut chain = Chain(7);
                record::read_next(&bytes[..begins[1]], &mut chain).unwrap();
                let mut at = begins[1];
                while let Some(size) = record::length(&bytes[at..])
                    && let Some(record) = bytes.get(at..at + size)
                    && record::read_next(record, &mut chain).is_some()
                {
                    at += size;
                }
                let next = 3 + begins.iter().position(|begin| *begin == at).unwrap_or(1) as Revision - 1;
                let rest = judge(&bytes[at..], OFFSET + at as u64, chain, next);
                assert!(!matches!(rest, Rest::Damaged(_)), "lost {lost:b}, prepared {prepared}: {rest:?} at {at}");
            }
        }
    }

    #[test]
    fn every_changed_byte_is_damage_or_can_be_mended() {
        let (bytes, begins) = batches();
        for prepared in [0, 4096] {
            for at in 0..bytes.len() {
                for change in [0x01, 0x10, 0x80, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] ^= change;
                    changed.resize(changed.len() + prepared, 0);
                    let mut chain = Chain(7);
                    let mut from = 0;
                    for begin in begins.iter().skip(1).take_while(|begin| **begin <= at) {
                        record::read_next(&changed[from..*begin], &mut chain).unwrap();
                        from = *begin;
                    }
                    let rest = judge(&changed[from..], OFFSET + from as u64, chain, 2);
                    assert_ne!(rest, Rest::Unfinished, "byte {at} ^ {change:#x}, prepared {prepared}");
                }
            }
        }
    }

    #[test]
    fn a_lost_sector_before_a_later_batch_is_damage_and_what_follows_is_counted() {
        let (mut bytes, begins) = batches();
        bytes[212..724].fill(0);
        let rest = judge(&bytes, OFFSET, Chain(7), 2);
        assert_eq!(rest, Rest::Damaged(Behind { records: begins.len() - 2, newest: 6 }));
    }
}
