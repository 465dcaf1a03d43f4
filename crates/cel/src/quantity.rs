//! Quantities: `1Gi`, `500m`, `2e3`.

use std::cmp::Ordering;

const NANO: i128 = 1_000_000_000;
/// Kubernetes cuts what is bigger.
const MOST: i128 = (i64::MAX as i128) * NANO;

/// A quantity in billionths; smaller parts are rounded away from zero, as Kubernetes does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quantity(i128);

pub(super) const WRONG: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Quantity {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let nanos = match scale(suffix)? {
            Scale::Binary(bits) => digits(whole, fraction, 0, 1i128 << bits),
            Scale::Decimal(exponent) => digits(whole, fraction, exponent, 1),
        };
        let nanos = nanos.min(MOST);
        Some(Self(if negative { -nanos } else { nanos }))
    }

    pub(super) fn of(whole: i64) -> Self {
        Self(i128::from(whole) * NANO)
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }

    pub(super) fn sign(self) -> i64 {
        i64::try_from(self.0.signum()).unwrap_or_default()
    }

    pub(super) fn as_integer(self) -> Option<i64> {
        if self.0 % NANO == 0 { i64::try_from(self.0 / NANO).ok() } else { None }
    }

    #[expect(clippy::cast_precision_loss, reason = "approximate by its name")]
    pub(super) fn as_float(self) -> f64 {
        let (whole, fraction) = (self.0 / NANO, self.0 % NANO);
        whole as f64 + fraction as f64 / NANO as f64
    }

    pub(super) fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    pub(super) fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

enum Scale {
    Binary(u32),
    Decimal(i32),
}

fn scale(suffix: &str) -> Option<Scale> {
    Some(match suffix {
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "" => Scale::Decimal(0),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        exponent => Scale::Decimal(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

/// `whole.fraction × 10^exponent × factor` in billionths, rounded up, cut where it cannot be held.
fn digits(whole: &str, fraction: &str, exponent: i32, factor: i128) -> i128 {
    let mut mantissa: i128 = 0;
    let mut dropped = 0i32;
    let mut rest = false;
    // Digits past what fits only matter for rounding.
    for digit in whole.bytes().chain(fraction.bytes()).map(|digit| i128::from(digit - b'0')) {
        match mantissa.checked_mul(10).and_then(|so_far| so_far.checked_add(digit)) {
            Some(more) if more < i128::MAX / (1 << 61) && dropped == 0 => mantissa = more,
            _ => {
                dropped = dropped.saturating_add(1);
                rest |= digit != 0;
            }
        }
    }
    let fraction = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let power = exponent.saturating_sub(fraction).saturating_add(dropped).saturating_add(9);
    let mut value = mantissa.saturating_mul(factor);
    if power >= 0 {
        for _ in 0..power.min(64) {
            value = value.saturating_mul(10);
        }
        return value;
    }
    let mut inexact = rest;
    for _ in 0..power.saturating_neg() {
        if value == 0 {
            break;
        }
        inexact |= value % 10 != 0;
        value /= 10;
    }
    value + i128::from(inexact)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities() {
        for (text, integer) in [
            ("1", Some(1)),
            ("1Gi", Some(1 << 30)),
            ("0.5Ki", Some(512)),
            ("1500m", None),
            ("1000m", Some(1)),
            ("2e3", Some(2000)),
            ("2E-1", None),
            ("-5k", Some(-5000)),
            ("1E", Some(1_000_000_000_000_000_000)),
            ("99999999999999999999", Some(i64::MAX)),
            ("1e1000000000", Some(i64::MAX)),
            ("0", Some(0)),
            (".5", None),
        ] {
            assert_eq!(Quantity::parse(text).map(Quantity::as_integer), Some(integer), "{text}");
        }
        for text in ["", "a", "1x", "1..2", "-", ".", "1 ", "1KI", "é"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
        let half = Quantity::parse("500m").unwrap_or(Quantity(0));
        assert!((half.as_float() - 0.5).abs() < f64::EPSILON);
        assert_eq!(Quantity::of(1).sub(half).compare(&half), Ordering::Equal);
        assert_eq!(Quantity::parse("0.1n"), Some(Quantity(1)));
    }
}
