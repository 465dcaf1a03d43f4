//! Moments as Go reads them, and its complaints about others.

use jiff::Timestamp;

/// A moment in the form in which Kubernetes writes it: in UTC, to the second or to the microsecond.
pub(super) fn read(text: &str, micro: bool) -> Result<String, String> {
    let layout = if micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let say = |why: String| format!("parsing time {text:?} as {layout:?}: {why}");
    check(text, micro).map_err(|(rest, wanted)| say(format!("cannot parse {rest:?} as {wanted:?}")))?;
    let moment: Timestamp = text.parse().map_err(|_| format!("parsing time {text:?}: {}", out_of_range(text)))?;
    let form = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(moment.strftime(form).to_string())
}

/// Where the text leaves the layout: what is left of it, and which piece of the layout it should be.
fn check(text: &str, micro: bool) -> Result<(), (&str, &'static str)> {
    let mut rest = text;
    for (piece, digits) in [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ] {
        rest = if digits == 0 { rest.strip_prefix(piece) } else { after_digits(rest, digits) }.ok_or((rest, piece))?;
    }
    if micro {
        rest = rest.strip_prefix('.').and_then(|rest| after_digits(rest, 6)).ok_or((rest, ".000000"))?;
    } else if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            rest = &fraction[digits..];
        }
    }
    let end = match rest.strip_prefix('Z') {
        Some(end) => Some(end),
        None => rest
            .strip_prefix(['+', '-'])
            .and_then(|rest| after_digits(rest, 2)?.strip_prefix(':'))
            .and_then(|rest| after_digits(rest, 2)),
    };
    match end {
        Some("") => Ok(()),
        Some(_) | None => Err((rest, "Z07:00")),
    }
}

fn after_digits(text: &str, count: usize) -> Option<&str> {
    text.bytes().take(count).filter(u8::is_ascii_digit).count().eq(&count).then(|| &text[count..])
}

fn out_of_range(text: &str) -> &'static str {
    let number = |from: usize| text.get(from..from + 2).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0);
    match (number(5), number(11), number(14), number(17)) {
        (month, ..) if !(1..=12).contains(&month) => "month out of range",
        (_, 24.., ..) => "hour out of range",
        (_, _, 60.., _) => "minute out of range",
        (_, _, _, 60..) => "second out of range",
        _ => "day out of range",
    }
}
