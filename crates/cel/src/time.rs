//! Timestamps and durations as Go and the schemas write them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};

/// The first and last second that a timestamp of the language can be.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

pub(super) fn in_range(timestamp: Timestamp) -> bool {
    (FIRST..=LAST).contains(&timestamp.as_second())
}

/// RFC 3339.
pub(super) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let zoned = bytes.last()?.eq_ignore_ascii_case(&b'z')
        || text.len() > 6
            && matches!(bytes.get(text.len() - 6), Some(b'+' | b'-'))
            && bytes.get(text.len() - 3) == Some(&b':');
    if !zoned || !matches!(bytes.get(10), Some(b'T' | b't')) || bytes.get(16) != Some(&b':') {
        return None;
    }
    text.parse::<Timestamp>().ok().filter(|timestamp| in_range(*timestamp))
}

pub(super) fn parse_date(text: &str) -> Option<Timestamp> {
    if text.len() != 10 {
        return None;
    }
    let date: Date = text.parse().ok()?;
    date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// A time zone: `UTC`, an offset such as `-01:30`, or a name of the database.
pub(super) fn zone(text: &str) -> Option<TimeZone> {
    if text.is_empty() || text == "UTC" {
        return Some(TimeZone::UTC);
    }
    if let Some((hours, minutes)) = text.split_once(':') {
        let minutes: i32 = minutes.parse().ok()?;
        let negative = hours.starts_with('-');
        let hours: i32 = hours.trim_start_matches('+').parse().ok()?;
        let minutes = if negative { -minutes } else { minutes };
        let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
        return Offset::from_seconds(seconds).ok().map(TimeZone::fixed);
    }
    TimeZone::get(text).ok()
}

/// A duration as Go writes it, in nanoseconds: `1h30m`, `-1.5s`, `0`.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos: i128 = 0;
    let mut rest = rest;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let (whole, after) = rest.split_at(digits);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => {
                let digits = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
                after.split_at(digits)
            }
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_length = after.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_length);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        nanos = nanos.checked_add(whole.checked_mul(unit)?)?;
        let mut scale = unit;
        for digit in fraction.bytes() {
            scale /= 10;
            nanos = nanos.checked_add(i128::from(digit - b'0') * scale)?;
        }
        rest = after;
    }
    i64::try_from(if negative { -nanos } else { nanos }).ok()
}

/// A duration as schemas take it: Go's, or words such as `3 days`, or a number of nanoseconds.
pub(super) fn parse_schema_duration(text: &str) -> Option<i64> {
    if let Some(nanos) = parse_duration(text) {
        return Some(nanos);
    }
    let mut total: i64 = 0;
    let mut found = false;
    let mut rest = text.trim();
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        if digits == 0 {
            return None;
        }
        let number: i64 = rest.get(..digits)?.parse().ok()?;
        let after = rest.get(digits..)?.trim_start();
        let letters = after.find(|letter: char| !letter.is_alphabetic()).unwrap_or(after.len());
        let unit: i64 = match after.get(..letters)? {
            "ns" | "nano" | "nanos" => 1,
            "us" | "µs" | "micro" | "micros" | "microsec" | "microsecs" => 1_000,
            "ms" | "milli" | "millis" | "millisec" | "millisecs" => 1_000_000,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
            "d" | "day" | "days" => 86_400_000_000_000,
            "w" | "wk" | "wks" | "week" | "weeks" => 604_800_000_000_000,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        found = true;
        rest = after.get(letters..)?.trim_start_matches([' ', ',']);
    }
    found.then_some(total)
}

/// A duration as `string()` shows it: seconds.
pub(super) fn show_duration(nanos: i64) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", nanos.unsigned_abs()) } else { ("", nanos.unsigned_abs()) };
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if fraction == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{fraction:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("5s", Some(5_000_000_000)),
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            (".5ms", Some(500_000)),
            ("100us", Some(100_000)),
            ("5", None),
            ("5q", None),
            ("", None),
            ("-", None),
            ("s", None),
            ("99999999999h", None),
        ] {
            assert_eq!(parse_duration(text), nanos, "{text}");
        }
        assert_eq!(parse_schema_duration("3 days"), Some(259_200_000_000_000));
        assert_eq!(show_duration(-1_500_000_000), "-1.5s");
        assert_eq!(show_duration(5_400_000_000_000), "5400s");
    }

    #[test]
    fn timestamps_need_a_zone_and_a_year_that_exists() {
        for (text, good) in [
            ("2020-01-01T00:00:00Z", true),
            ("2020-01-01T00:00:00.123456789+01:30", true),
            ("2020-01-01T00:00:00", false),
            ("2020-01-01", false),
            ("xx", false),
            ("", false),
            ("é", false),
        ] {
            assert_eq!(parse_timestamp(text).is_some(), good, "{text}");
        }
    }
}
