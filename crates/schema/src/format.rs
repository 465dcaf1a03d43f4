//! The formats of strings that Kubernetes checks. All others are ignored, `int32` and `int64` among them.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::Regex;

/// A format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor,
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
}

impl Format {
    /// By name; dashes do not matter.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "uri" => Self::Uri,
            "email" => Self::Email,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "cidr" => Self::Cidr,
            "mac" => Self::Mac,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "creditcard" => Self::CreditCard,
            "ssn" => Self::Ssn,
            "hexcolor" => Self::HexColor,
            "rgbcolor" => Self::RgbColor,
            "byte" => Self::Byte,
            "password" => Self::Password,
            "date" => Self::Date,
            "duration" => Self::Duration,
            "datetime" => Self::DateTime,
            _ => return None,
        })
    }

    /// Whether the text has this format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            Self::Uri => is_request_uri(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && (is_ipv4_sloppy(text) || is_ipv6_sloppy(text)),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Cidr => is_cidr(text),
            Self::Mac => is_mac(text),
            Self::Uuid => is_uuid(text, None, false),
            Self::Uuid3 => is_uuid(text, Some(b'3'), false),
            Self::Uuid4 => is_uuid(text, Some(b'4'), true),
            Self::Uuid5 => is_uuid(text, Some(b'5'), true),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::CreditCard => is_credit_card(text),
            Self::Ssn => is_ssn(text),
            Self::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            }
            Self::RgbColor => is_rgb_color(text),
            Self::Byte => is_base64(text),
            Self::Password => true,
            Self::Date => is_date(text),
            Self::Duration => is_duration(text),
            Self::DateTime => is_date_time(text),
        }
    }
}

/// `url.ParseRequestURI`: an absolute URI or an absolute path.
pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => after.split_at(after.find('/').unwrap_or(after.len())),
        _ => ("", rest),
    };
    is_authority(authority) && escapes_are_whole(path)
}

/// The scheme, which may be empty, and what follows it; none if the colon stands first.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return None,
            b':' => return Some((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user_fits = user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte));
    if !user_fits || !escapes_are_whole(user) {
        return false;
    }
    let (name, port) = match host.strip_prefix('[') {
        Some(after) => match after.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_fits =
        port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    let name_fits = name
        .bytes()
        .all(|byte| byte >= 0x80 || byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte));
    port_fits && name_fits && escapes_are_whole(name)
}

fn escapes_are_whole(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(index, _)| {
        bytes.get(index + 1..index + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// `mail.ParseAddress`: an address, with a name before it or not.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((name, address)) => {
            let name = name.trim();
            let quoted = name.len() >= 2 && name.starts_with('"') && name.ends_with('"');
            let phrase = name.split_whitespace().all(|word| word.chars().all(|c| is_atext(c) || c == '.'));
            if !quoted && !phrase {
                return false;
            }
            address
        }
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    (quoted || is_dot_atom(local))
        && match literal {
            Some(address) => address.parse::<std::net::IpAddr>().is_ok(),
            None => is_dot_atom(domain),
        }
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atext))
}

fn is_atext(character: char) -> bool {
    !character.is_ascii() || character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character)
}

fn is_hostname(text: &str) -> bool {
    static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let start = r"[a-zA-Z0-9\p{S}\p{L}]";
        let single = format!(r"{start}((-?{start}{{0,62}})?)");
        let dotted =
            format!(r"({start}(([a-zA-Z0-9\-\p{{S}}\p{{L}}]{{0,61}}{start})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}}");
        Regex::new(&format!("^({single}|{dotted})$")).ok()
    });
    text.len() <= 255
        && text.split('.').all(|label| label.len() <= 63)
        && SHAPE.as_ref().is_some_and(|shape| shape.is_match(text))
}

/// Four numbers up to 255; zeros before them are let pass, as Go did once.
fn is_ipv4_sloppy(text: &str) -> bool {
    let mut parts = 0;
    let fits = text.split('.').all(|part| {
        parts += 1;
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.trim_start_matches('0').len() <= 3
            && part.trim_start_matches('0').parse::<u16>().unwrap_or_default() <= 255
    });
    fits && parts == 4
}

fn is_ipv6_sloppy(text: &str) -> bool {
    if text.parse::<Ipv6Addr>().is_ok() {
        return true;
    }
    // An address that ends as an IPv4 address, with zeros before its numbers.
    let Some((before, last)) = text.rsplit_once(':') else { return false };
    is_ipv4_sloppy(last) && format!("{before}:1.1.1.1").parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if is_ipv4_sloppy(address) {
        32
    } else if is_ipv6_sloppy(address) {
        128
    } else {
        return false;
    };
    !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && bits.trim_start_matches('0').len() <= 3
        && bits.trim_start_matches('0').parse::<u16>().unwrap_or_default() <= most
}

/// `net.ParseMAC`: 6, 8 or 20 bytes, in pairs with colons or dashes, or in fours with dots.
fn is_mac(text: &str) -> bool {
    let pairs = |separator| {
        let mut count = 0;
        let fits = text.split(separator).all(|pair| {
            count += 1;
            pair.len() == 2 && pair.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        fits && matches!(count, 6 | 8 | 20)
    };
    let fours = || {
        let mut count = 0;
        let fits = text.split('.').all(|four| {
            count += 1;
            four.len() == 4 && four.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        fits && matches!(count, 3 | 4 | 10)
    };
    pairs(':') || pairs('-') || fours()
}

/// 8-4-4-4-12 hexadecimal digits, where each dash may be missing.
fn is_uuid(text: &str, version: Option<u8>, variant: bool) -> bool {
    let mut rest = text.as_bytes();
    for (index, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        let special = match index {
            2 => version.is_none_or(|version| group[0] == version),
            3 => !variant || matches!(group[0].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b'),
            _ => true,
        };
        if !special || !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// The digits of an ISBN without blanks and dashes.
fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|byte| *byte != b'-' && !byte.is_ascii_whitespace()).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 10 {
        return false;
    }
    let mut sum = 0;
    for (weight, digit) in (1_u32..).zip(&digits) {
        sum += weight
            * match digit {
                b'0'..=b'9' => u32::from(digit - b'0'),
                b'X' if weight == 10 => 10,
                _ => return false,
            };
    }
    sum % 11 == 0
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    digits.len() == 13
        && digits.iter().all(u8::is_ascii_digit)
        && digits
            .iter()
            .zip([1, 3].into_iter().cycle())
            .map(|(digit, weight)| u32::from(digit - b'0') * weight)
            .sum::<u32>()
            % 10
            == 0
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|character| character.to_digit(10)).collect();
    let starts = |prefix: &[u32]| digits.starts_with(prefix);
    let second = digits.get(1).copied().unwrap_or_default();
    let third = digits.get(2).copied().unwrap_or_default();
    let known = match digits.len() {
        13 => starts(&[4]),
        14 => starts(&[3, 6]) || starts(&[3, 8]) || (starts(&[3, 0]) && third <= 5),
        15 => starts(&[3, 4]) || starts(&[3, 7]) || starts(&[2, 1, 3, 1]) || starts(&[1, 8, 0, 0]),
        16 => {
            starts(&[4])
                || starts(&[3, 5])
                || (starts(&[5]) && (1..=5).contains(&second))
                || starts(&[6, 0, 1, 1])
                || starts(&[6, 5])
        }
        _ => false,
    };
    let sum: u32 = (0_usize..)
        .zip(digits.iter().rev())
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => *digit,
            (_, doubled) if doubled >= 10 => doubled % 10 + 1,
            (_, doubled) => doubled,
        })
        .sum();
    known && sum.is_multiple_of(10)
}

/// Eleven characters: `ddd-dd-dddd`, with blanks for dashes or not.
fn is_ssn(text: &str) -> bool {
    text.len() == 11
        && text.bytes().enumerate().all(|(index, byte)| match index {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|text| text.strip_suffix(')')) else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    parts.len() == 3
        && parts.iter().all(|part| {
            !part.is_empty()
                && (*part == "0" || !part.starts_with('0'))
                && part.bytes().all(|byte| byte.is_ascii_digit())
                && part.parse::<u8>().is_ok()
        })
}

/// Base64 with padding; the empty text is none.
fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let unpadded = text.trim_end_matches('=').as_bytes();
    !bytes.is_empty()
        && bytes.len().is_multiple_of(4)
        && bytes.len() - unpadded.len() <= 2
        && unpadded.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |range: std::ops::Range<usize>| {
        let digits = bytes.get(range)?;
        digits.iter().try_fold(0_u16, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u16::from(digit - b'0')))
    };
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else { return false };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time).is_some()
}

/// `hh:mm:ss`, a fraction or not, `z` or an offset.
fn is_time(text: &str) -> Option<()> {
    let bytes = text.as_bytes();
    let two = |at: usize, most: u8| -> Option<()> {
        let digits = bytes.get(at..at + 2)?;
        let fits = digits.iter().all(u8::is_ascii_digit) && (digits[0] - b'0') * 10 + digits[1] - b'0' <= most;
        fits.then_some(())
    };
    two(0, 23)?;
    two(3, 59)?;
    two(6, 59)?;
    if bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let rest = text.get(8..)?;
    let zone_start = rest.rfind(['z', '+', '-'])?;
    let (fraction, zone) = rest.split_at(zone_start);
    // Whatever stands before the digits of a fraction is let pass.
    let mut fraction = fraction.chars();
    if fraction.next().is_some() {
        let digits = fraction.as_str();
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
    }
    let zone = zone.as_bytes();
    let offset =
        zone.len() == 6 && zone[3] == b':' && [zone[1], zone[2], zone[4], zone[5]].iter().all(u8::is_ascii_digit);
    (zone == b"z" || offset).then_some(())
}

/// `1h30m` as Go has it, or numbers with units as people write them: `3 days`.
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || has_amount(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (amount, after) = rest.split_at(number);
        let unit = after.len() - after.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.').len();
        let (unit, after) = after.split_at(unit);
        let amount_fits = amount.bytes().any(|byte| byte.is_ascii_digit()) && amount.matches('.').count() <= 1;
        if !amount_fits || !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        rest = after;
    }
    true
}

/// Whether somewhere in the text a number has a unit of time.
fn has_amount(text: &str) -> bool {
    const EXACT: [&str; 12] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", ""];
    const BEGINNINGS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit());
        let word = after.trim_start();
        let end = word.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(word.len());
        let unit = word[..end].to_lowercase();
        if !unit.is_empty()
            && (EXACT.contains(&unit.as_str()) || BEGINNINGS.iter().any(|beginning| unit.starts_with(beginning)))
        {
            return true;
        }
        rest = &word[end..];
    }
    false
}
