//! Spans of time as people like to read them.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago a moment in an object was: `5m`, `<unknown>` if there is none.
pub(crate) fn age(moment: &Value, now: Timestamp) -> String {
    match moment.as_str() {
        None | Some("") => "<unknown>".to_owned(),
        Some(text) => text.parse().map_or_else(|_| "<invalid>".to_owned(), |then| since(then, now)),
    }
}

/// How long ago that was.
fn since(then: Timestamp, now: Timestamp) -> String {
    let nanoseconds = now.as_nanosecond() - then.as_nanosecond();
    // Towards zero, as Go does it: clocks may differ by less than two seconds.
    i64::try_from(nanoseconds / 1_000_000_000).map_or_else(|_| "<invalid>".to_owned(), human)
}

/// A number of seconds in about three digits, as `kubectl` shows ages.
fn human(seconds: i64) -> String {
    let two = |many: i64, of: &str, rest: i64, unit: &str| {
        if rest == 0 { format!("{many}{of}") } else { format!("{many}{of}{rest}{unit}") }
    };
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_as_in_kubectl() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 59, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (48 * HOUR, "2d"),
            (49 * HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR + 364 * DAY, "8y"),
        ] {
            assert_eq!(human(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn an_age_needs_a_moment() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(age(&"2026-01-01T00:04:50.5Z".into(), now), "5m9s");
        assert_eq!(age(&"2026-01-01T00:10:01.9Z".into(), now), "0s");
        assert_eq!(age(&"2026-01-01T00:10:02Z".into(), now), "<invalid>");
        assert_eq!(age(&Value::Null, now), "<unknown>");
        assert_eq!(age(&"yesterday".into(), now), "<invalid>");
    }
}
