//! Which parts of an image are there.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that neither overlap nor touch, by where they begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extents(BTreeMap<u64, u64>);

impl Extents {
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((&before, &until)) = self.0.range(..=end).next_back() {
            if until < start {
                break;
            }
            self.0.remove(&before);
            start = start.min(before);
            end = end.max(until);
        }
        self.0.insert(start, end);
    }

    /// Where the part ends in which this place is; none if it is in none.
    pub(super) fn end_of(&self, at: u64) -> Option<u64> {
        self.0.range(..=at).next_back().map(|(_, &end)| end).filter(|&end| end > at)
    }

    /// Where the next part begins, from here on.
    pub(super) fn next_from(&self, at: u64) -> Option<u64> {
        self.0.range(at..).next().map(|(&start, _)| start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_that_touch_become_one() {
        let mut extents = Extents::default();
        for range in [10..20, 30..40, 20..30, 50..50, 0..5] {
            extents.insert(range);
        }
        assert_eq!(extents.0, BTreeMap::from([(0, 5), (10, 40)]));
        assert_eq!(
            (extents.end_of(10), extents.end_of(39), extents.end_of(40), extents.end_of(7)),
            (Some(40), Some(40), None, None)
        );
        assert_eq!((extents.next_from(0), extents.next_from(5), extents.next_from(11)), (Some(0), Some(10), None));
    }

    proptest! {
        #[test]
        fn they_are_what_a_bitmap_would_be(ranges in prop::collection::vec((0u64..60, 0u64..20), 0..20)) {
            let (mut extents, mut bitmap) = (Extents::default(), [false; 100]);
            for (start, len) in ranges {
                extents.insert(start..start + len);
                bitmap[usize::try_from(start).unwrap()..usize::try_from(start + len).unwrap()].fill(true);
            }
            for at in 0..100usize {
                let end = (at..100).find(|&place| !bitmap[place]).unwrap_or(100) as u64;
                prop_assert_eq!(extents.end_of(at as u64), bitmap[at].then_some(end));
            }
        }
    }
}
