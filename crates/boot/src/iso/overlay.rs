//! Replaced ranges of an image, and how they mix with the original bytes. Pure.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;

/// An image of which some ranges are replaced, and which may be longer than the original.
///
/// Replacements are in order, do not touch each other, and cover all that lies behind the end of the original.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Overlay {
    size: u64,
    replaced: Vec<Replacement>,
}

#[derive(Clone, PartialEq, Eq)]
struct Replacement {
    offset: u64,
    bytes: Bytes,
}

/// A part of the rewritten image.
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// The same bytes as in the original, at the same place.
    Original(Range<u64>),
    /// Our bytes.
    Replaced(Bytes),
}

impl Overlay {
    /// From ranges that do not overlap; those that touch become one.
    pub(crate) fn new(size: u64, mut ranges: Vec<(u64, Vec<u8>)>) -> Self {
        ranges.sort_unstable_by_key(|(offset, _)| *offset);
        let mut joined: Vec<(u64, Vec<u8>)> = Vec::new();
        for (offset, bytes) in ranges {
            match joined.last_mut() {
                Some((start, before)) if *start + before.len() as u64 == offset => before.extend(bytes),
                _ => joined.push((offset, bytes)),
            }
        }
        let replaced = joined.into_iter().filter(|(_, bytes)| !bytes.is_empty());
        Self { size, replaced: replaced.map(|(offset, bytes)| Replacement { offset, bytes: bytes.into() }).collect() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes are ours.
    pub(crate) fn weight(&self) -> usize {
        self.replaced.iter().map(|replacement| replacement.bytes.len()).sum()
    }

    /// The parts that make up a range, in order. What lies beyond the end of the image is omitted.
    pub(crate) fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        let end = range.end.min(self.size);
        let mut at = range.start;
        let mut pieces = Vec::new();
        let first = self.replaced.partition_point(|replacement| replacement.range().end <= at);
        for replacement in self.replaced.iter().skip(first) {
            let Range { start: ours, end: ours_end } = replacement.range();
            if ours >= end || at >= end {
                break;
            }
            if at < ours {
                pieces.push(Piece::Original(at..ours));
                at = ours;
            }
            let until = ours_end.min(end);
            pieces.push(Piece::Replaced(replacement.slice(at..until)));
            at = until;
        }
        if at < end {
            pieces.push(Piece::Original(at..end));
        }
        pieces
    }
}

impl Replacement {
    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes.len() as u64
    }

    /// A part of it, by its place in the image.
    fn slice(&self, range: Range<u64>) -> Bytes {
        let inside = |at: u64| usize::try_from(at - self.offset).unwrap_or(usize::MAX).min(self.bytes.len());
        self.bytes.slice(inside(range.start)..inside(range.end))
    }
}

/// Places only: the bytes contain parameters, which may be tickets.
impl fmt::Debug for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self.replaced.iter().map(Replacement::range).collect();
        f.debug_struct("Overlay").field("size", &self.size).field("replaced", &ranges).finish()
    }
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Original(range) => write!(f, "Original({range:?})"),
            Self::Replaced(bytes) => write!(f, "Replaced({} bytes)", bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An original, replacements of it, and a size that these reach.
    type Case = (Vec<u8>, Vec<(u64, Vec<u8>)>, u64);

    fn cases() -> impl Strategy<Value = Case> {
        let gaps = prop::collection::vec((0_u64..9, prop::collection::vec(any::<u8>(), 0..9)), 0..9);
        (prop::collection::vec(any::<u8>(), 0..80), gaps).prop_map(|(original, gaps)| {
            let mut ranges = Vec::new();
            let (size, mut at) = (original.len() as u64, 0);
            for (gap, bytes) in gaps {
                let offset = (at + gap).min(size.max(at));
                at = offset + bytes.len() as u64;
                ranges.push((offset, bytes));
            }
            (original, ranges, size.max(at))
        })
    }

    fn materialise(original: &[u8], ranges: &[(u64, Vec<u8>)], size: u64) -> Vec<u8> {
        let mut image = original.to_vec();
        image.resize(usize::try_from(size).unwrap(), 0);
        for (offset, bytes) in ranges {
            let offset = usize::try_from(*offset).unwrap();
            image[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        image
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_range_reads_as_if_the_whole_image_had_been_written(
            (original, ranges, size) in cases(), start in 0_u64..160, len in 0_u64..160,
        ) {
            let image = materialise(&original, &ranges, size);
            let overlay = Overlay::new(size, ranges);
            let mut read = Vec::new();
            for piece in overlay.pieces(start..start + len) {
                match piece {
                    Piece::Original(range) => {
                        prop_assert!(range.start < range.end && range.end <= original.len() as u64);
                        read.extend(&original[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]);
                    }
                    Piece::Replaced(bytes) => read.extend(bytes),
                }
            }
            let clamp = |at: u64| usize::try_from(at.min(size)).unwrap();
            prop_assert_eq!(&read, &image[clamp(start)..clamp(start + len)]);
        }
    }

    #[test]
    fn debug_output_shows_no_bytes() {
        let overlay = Overlay::new(9, vec![(2, b"ticket".to_vec())]);
        assert_eq!(
            format!("{overlay:?} {:?}", overlay.pieces(3..5)),
            "Overlay { size: 9, replaced: [2..8] } [Replaced(2 bytes)]"
        );
    }
}
