//! Numbers and times as people read and write them.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Reads a duration such as `15s`, `500ms` or `1m30s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<SignedDuration>()
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| "write a number with its unit, such as 15s, 2m or 1m30s".to_owned())
}

/// How long it is from one time to another, in the way of kubectl; nothing for the past.
pub(crate) fn span(from: Timestamp, to: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let seconds = to.duration_since(from).as_secs().max(0);
    let both = |unit: i64, name: &str, smaller: i64, small: &str| match seconds % unit / smaller {
        0 => format!("{}{name}", seconds / unit),
        rest => format!("{}{name}{rest}{small}", seconds / unit),
    };
    if seconds < 2 * MINUTE {
        format!("{seconds}s")
    } else if seconds < 10 * MINUTE {
        both(MINUTE, "m", 1, "s")
    } else if seconds < 3 * HOUR {
        format!("{}m", seconds / MINUTE)
    } else if seconds < 8 * HOUR {
        both(HOUR, "h", MINUTE, "m")
    } else if seconds < 2 * DAY {
        format!("{}h", seconds / HOUR)
    } else if seconds < 8 * DAY {
        both(DAY, "d", HOUR, "h")
    } else {
        format!("{}d", seconds / DAY)
    }
}

/// Sentences may quote what a BMC said: a line break would tear a table, an escape could repaint the terminal.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// A count with its thousands set apart, and the noun in the right number.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", number(count), if count == 1 { "" } else { "s" })
}

/// A number with its thousands set apart.
pub(crate) fn number(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit_only() {
        assert_eq!(duration("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["15", "", "-5s", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_get_coarser_as_they_grow() {
        let start: Timestamp = "2026-11-15T08:00:00Z".parse().unwrap();
        let after = |seconds| span(start, start + SignedDuration::from_secs(seconds));
        for (seconds, text) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (185, "3m5s"),
            (3_600, "60m"),
            (4 * 3_600 + 120, "4h2m"),
            (30 * 3_600, "30h"),
            (3 * 86_400 + 7_200, "3d2h"),
            (400 * 86_400, "400d"),
        ] {
            assert_eq!(after(seconds), text);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(number), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "host"), "1 host");
        assert_eq!(counted(1_000, "host"), "1,000 hosts");
    }
}
