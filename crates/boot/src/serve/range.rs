//! Which part of an image a request wants. Pure.

use std::ops::Range;

/// What to answer to a `Range`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it: the request has no range, or none that is supported. RFC 9110 allows a server to ignore a range, and several
    /// ranges in one answer are something no BMC needs.
    Whole,
    /// These bytes; at least one.
    Part(Range<u64>),
    /// A range that lies behind the end.
    Nothing,
}

/// Reads a `Range` header.
pub(super) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    match header.and_then(parse) {
        None => Wanted::Whole,
        Some(Asked::Last(0)) => Wanted::Nothing,
        Some(Asked::Last(_)) if size == 0 => Wanted::Nothing,
        Some(Asked::Last(count)) => Wanted::Part(size.saturating_sub(count)..size),
        Some(Asked::From(first, _)) if first >= size => Wanted::Nothing,
        Some(Asked::From(first, last)) => {
            Wanted::Part(first..last.map_or(size, |last| last.saturating_add(1).min(size)))
        }
    }
}

enum Asked {
    From(u64, Option<u64>),
    Last(u64),
}

fn parse(header: &str) -> Option<Asked> {
    let (unit, range) = header.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match (first, last) {
        ("", count) => number(count).map(Asked::Last),
        (first, "") => Some(Asked::From(number(first)?, None)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Asked::From(first, Some(last)))
        }
    }
}

/// Numbers beyond 64 bits are as good as the largest.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_rfc_9110_says() {
        for (header, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=0-99", Wanted::Part(0..100)),
            ("Bytes=10-", Wanted::Part(10..100)),
            ("bytes= 10-19", Wanted::Part(10..20)),
            ("bytes=90-200", Wanted::Part(90..100)),
            ("bytes=99-99999999999999999999999", Wanted::Part(99..100)),
            ("bytes=-5", Wanted::Part(95..100)),
            ("bytes=-500", Wanted::Part(0..100)),
            ("bytes=100-", Wanted::Nothing),
            ("bytes=100-200", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 100), expected, "{header}");
        }
        assert_eq!(wanted(None, 100), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
        assert_eq!(wanted(Some("bytes=-1"), 0), Wanted::Nothing);
    }
}
