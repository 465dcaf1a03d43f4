//! One type to another, and the parts of times.

use std::borrow::Cow;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::functions::Fun;
use super::time;
use super::value::{Evaluated, Fault, Val, type_name};

fn impossible(value: &Val<'_>, to: &str) -> Fault {
    Fault::new(format!("type conversion error from '{}' to '{to}'", type_name(&value.type_of())))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(super) fn to_int<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    Ok(Val::Int(match value {
        Val::Int(number) => *number,
        Val::Uint(number) => i64::try_from(*number).map_err(|_| overflow())?,
        Val::Double(number) if *number > -(2f64.powi(63)) && *number < 2f64.powi(63) => *number as i64,
        Val::Double(_) => return Err(overflow()),
        Val::Text(text) => text.parse().map_err(|_| impossible(value, "int"))?,
        Val::Timestamp(timestamp) => timestamp.as_second(),
        Val::Duration(nanos) => *nanos,
        _ => return Err(Fault::no_such_overload()),
    }))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(super) fn to_uint<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    let overflow = || Fault::new("unsigned integer overflow");
    Ok(Val::Uint(match value {
        Val::Uint(number) => *number,
        Val::Int(number) => u64::try_from(*number).map_err(|_| overflow())?,
        Val::Double(number) if *number >= 0.0 && *number < 2f64.powi(64) => *number as u64,
        Val::Double(_) => return Err(overflow()),
        Val::Text(text) => text.parse().map_err(|_| impossible(value, "uint"))?,
        _ => return Err(Fault::no_such_overload()),
    }))
}

#[expect(clippy::cast_precision_loss, reason = "a double is what was asked for")]
pub(super) fn to_double<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    Ok(Val::Double(match value {
        Val::Double(number) => *number,
        Val::Int(number) => *number as f64,
        Val::Uint(number) => *number as f64,
        Val::Text(text) => text.parse().map_err(|_| impossible(value, "double"))?,
        _ => return Err(Fault::no_such_overload()),
    }))
}

pub(super) fn to_text<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    Ok(match value {
        Val::Text(_) => value.clone(),
        Val::Bytes(bytes) => Val::text(
            String::from_utf8(bytes.to_vec())
                .map_err(|_| Fault::new("invalid UTF-8 in bytes, cannot convert to string"))?,
        ),
        Val::Bool(_)
        | Val::Int(_)
        | Val::Uint(_)
        | Val::Double(_)
        | Val::Timestamp(_)
        | Val::Duration(_)
        | Val::Ip(_)
        | Val::Cidr(_) => Val::text(show(value)),
        _ => return Err(Fault::no_such_overload()),
    })
}

/// A value as people read it.
pub(super) fn show(value: &Val<'_>) -> String {
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(flag) => flag.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Double(number) => show_double(*number),
        Val::Text(text) => text.to_string(),
        Val::Timestamp(timestamp) => timestamp.to_string(),
        Val::Duration(nanos) => time::show_duration(*nanos),
        Val::Ip(ip) => ip.to_string(),
        Val::Cidr(cidr) => cidr.to_string(),
        other => type_name(&other.type_of()).to_owned(),
    }
}

/// As Go's `strconv.FormatFloat(x, 'g', -1, 64)`.
pub(super) fn show_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..21).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

pub(super) fn to_bytes<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    match value {
        Val::Bytes(_) => Ok(value.clone()),
        Val::Text(text) => Ok(Val::Bytes(Cow::Owned(text.as_bytes().to_vec()))),
        _ => Err(Fault::no_such_overload()),
    }
}

pub(super) fn to_bool<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    match value {
        Val::Bool(_) => Ok(value.clone()),
        Val::Text(text) => match text.as_ref() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Val::Bool(false)),
            _ => Err(impossible(value, "bool")),
        },
        _ => Err(Fault::no_such_overload()),
    }
}

pub(super) fn to_timestamp<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    Ok(Val::Timestamp(match value {
        Val::Timestamp(timestamp) => *timestamp,
        Val::Int(seconds) => Timestamp::from_second(*seconds)
            .ok()
            .filter(|timestamp| time::in_range(*timestamp))
            .ok_or_else(out_of_range)?,
        Val::Text(text) => time::parse_timestamp(text).ok_or_else(|| impossible(value, "google.protobuf.Timestamp"))?,
        _ => return Err(Fault::no_such_overload()),
    }))
}

pub(super) fn to_duration<'a>(value: &Val<'a>) -> Evaluated<Val<'a>> {
    Ok(Val::Duration(match value {
        Val::Duration(nanos) | Val::Int(nanos) => *nanos,
        Val::Text(text) => time::parse_duration(text).ok_or_else(|| impossible(value, "google.protobuf.Duration"))?,
        _ => return Err(Fault::no_such_overload()),
    }))
}

fn overflow() -> Fault {
    Fault::new("integer overflow")
}

fn out_of_range() -> Fault {
    Fault::new("timestamp overflow")
}

pub(super) fn time_arithmetic<'a>(fun: Fun, a: &Val<'a>, b: &Val<'a>) -> Evaluated<Val<'a>> {
    let shifted = |timestamp: &Timestamp, nanos: i64| {
        timestamp
            .checked_add(SignedDuration::from_nanos(nanos))
            .ok()
            .filter(|timestamp| time::in_range(*timestamp))
            .map(Val::Timestamp)
            .ok_or_else(out_of_range)
    };
    let overflow = || Fault::new("duration overflow");
    match (fun, a, b) {
        (Fun::Add, Val::Timestamp(timestamp), Val::Duration(nanos))
        | (Fun::Add, Val::Duration(nanos), Val::Timestamp(timestamp)) => shifted(timestamp, *nanos),
        (Fun::Subtract, Val::Timestamp(timestamp), Val::Duration(nanos)) => {
            shifted(timestamp, nanos.checked_neg().ok_or_else(overflow)?)
        }
        (Fun::Subtract, Val::Timestamp(a), Val::Timestamp(b)) => {
            let nanos = i64::try_from(a.as_nanosecond() - b.as_nanosecond()).map_err(|_| overflow())?;
            Ok(Val::Duration(nanos))
        }
        (Fun::Add, Val::Duration(a), Val::Duration(b)) => a.checked_add(*b).map(Val::Duration).ok_or_else(overflow),
        (Fun::Subtract, Val::Duration(a), Val::Duration(b)) => {
            a.checked_sub(*b).map(Val::Duration).ok_or_else(overflow)
        }
        _ => Err(Fault::no_such_overload()),
    }
}

/// `getHours()` and its kin; counted from zero where JavaScript counts from zero.
pub(super) fn part_of_time<'a>(fun: Fun, of: &Val<'a>, zone: Option<&Val<'a>>) -> Evaluated<Val<'a>> {
    let timestamp = match of {
        Val::Timestamp(timestamp) => *timestamp,
        Val::Duration(nanos) => {
            return Ok(Val::Int(match fun {
                Fun::Hours => nanos / 3_600_000_000_000,
                Fun::Minutes => nanos / 60_000_000_000,
                Fun::Seconds => nanos / 1_000_000_000,
                Fun::Milliseconds => nanos / 1_000_000 % 1_000,
                _ => return Err(Fault::no_such_overload()),
            }));
        }
        _ => return Err(Fault::no_such_overload()),
    };
    let zone = match zone {
        None => TimeZone::UTC,
        Some(Val::Text(name)) => time::zone(name).ok_or_else(|| Fault::new(format!("unknown time zone {name}")))?,
        Some(_) => return Err(Fault::no_such_overload()),
    };
    let local = timestamp.to_zoned(zone);
    Ok(Val::Int(match fun {
        Fun::FullYear => local.year().into(),
        Fun::Month => i64::from(local.month()) - 1,
        Fun::Date => local.day().into(),
        Fun::DayOfMonth => i64::from(local.day()) - 1,
        Fun::DayOfWeek => local.weekday().to_sunday_zero_offset().into(),
        Fun::DayOfYear => i64::from(local.day_of_year()) - 1,
        Fun::Hours => local.hour().into(),
        Fun::Minutes => local.minute().into(),
        Fun::Seconds => local.second().into(),
        Fun::Milliseconds => local.millisecond().into(),
        _ => return Err(Fault::no_such_overload()),
    }))
}
