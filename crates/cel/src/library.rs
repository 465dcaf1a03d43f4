//! What functions do with their arguments. Costs are counted by the caller.

use std::borrow::Cow;
use std::cmp::Ordering;

use regex::Regex;

use super::convert;
use super::formats::NamedFormat;
use super::functions::Fun;
use super::net::{Cidr, Ip};
use super::quantity::{self, Quantity};
use super::strings;
use super::url::Url;
use super::value::{Entries, Evaluated, Fault, Val, Work};

pub(super) use super::convert::show;

/// No list that an expression makes is longer; concatenation is cheap to ask for.
const LONGEST_LIST: usize = 1_000_000;

pub(super) fn call<'a>(fun: Fun, args: &[Val<'a>], work: &Work) -> Evaluated<Val<'a>> {
    let wrong = Fault::no_such_overload;
    Ok(match (fun, args) {
        (Fun::Not, [Val::Bool(flag)]) => Val::Bool(!flag),
        (Fun::Less, [a, b]) => Val::Bool(compared(a, b)? == Some(Ordering::Less)),
        (Fun::LessEquals, [a, b]) => Val::Bool(compared(a, b)?.is_some_and(Ordering::is_le)),
        (Fun::Greater, [a, b]) => Val::Bool(compared(a, b)? == Some(Ordering::Greater)),
        (Fun::GreaterEquals, [a, b]) => Val::Bool(compared(a, b)?.is_some_and(Ordering::is_ge)),
        (Fun::Add | Fun::Subtract | Fun::Multiply | Fun::Divide | Fun::Modulo, [a, b]) => arithmetic(fun, a, b)?,
        (Fun::Negate, [Val::Int(number)]) => Val::Int(number.checked_neg().ok_or_else(overflow)?),
        (Fun::Negate, [Val::Double(number)]) => Val::Double(-number),
        (Fun::Index, [of, index]) => match of {
            Val::Optional(None) => Val::NONE,
            Val::Optional(Some(inner)) => match at(inner, index) {
                Ok(Some(value)) => Val::some(value),
                Ok(None) => Val::NONE,
                Err(fault) => return Err(fault),
            },
            of => at(of, index)?.ok_or_else(|| match of.list_len() {
                Some(_) => Fault::new(format!("index out of bounds: {}", show(index))),
                None => Fault::new(format!("no such key: {}", show(index))),
            })?,
        },
        (Fun::OptionalIndex, [Val::Optional(None), _]) | (Fun::OptionalNone, []) => Val::NONE,
        (Fun::OptionalIndex, [Val::Optional(Some(inner)), index]) => at(inner, index)?.map_or(Val::NONE, Val::some),
        (Fun::OptionalIndex, [of, index]) => at(of, index)?.map_or(Val::NONE, Val::some),

        (Fun::ToInt, [value]) => convert::to_int(value)?,
        (Fun::ToUint, [value]) => convert::to_uint(value)?,
        (Fun::ToDouble, [value]) => convert::to_double(value)?,
        (Fun::ToText, [value]) => convert::to_text(value)?,
        (Fun::ToBytes, [value]) => convert::to_bytes(value)?,
        (Fun::ToBool, [value]) => convert::to_bool(value)?,
        (Fun::ToTimestamp, [value]) => convert::to_timestamp(value)?,
        (Fun::ToDuration, [value]) => convert::to_duration(value)?,
        (Fun::ToDyn, [value]) => value.clone(),
        (Fun::TypeOf, [value]) => Val::Type(value.type_of()),
        (
            Fun::FullYear
            | Fun::Month
            | Fun::Date
            | Fun::DayOfMonth
            | Fun::DayOfWeek
            | Fun::DayOfYear
            | Fun::Hours
            | Fun::Minutes
            | Fun::Seconds
            | Fun::Milliseconds,
            [of, zone @ ..],
        ) => convert::part_of_time(fun, of, zone.first())?,

        (Fun::Size, [of]) => int(of.size().ok_or_else(wrong)?),
        (Fun::Contains, [Val::Text(text), Val::Text(part)]) => Val::Bool(text.contains(part.as_ref())),
        (Fun::StartsWith, [Val::Text(text), Val::Text(part)]) => Val::Bool(text.starts_with(part.as_ref())),
        (Fun::EndsWith, [Val::Text(text), Val::Text(part)]) => Val::Bool(text.ends_with(part.as_ref())),
        (Fun::IndexOf | Fun::LastIndexOf, [Val::Text(text), Val::Text(part), from @ ..]) => {
            strings::index_of(text, part, from.first(), fun == Fun::LastIndexOf)?
        }
        (
            Fun::CharAt | Fun::LowerAscii | Fun::UpperAscii | Fun::Replace | Fun::Split | Fun::Substring | Fun::Trim,
            [Val::Text(text), rest @ ..],
        ) => strings::call(fun, text, rest)?,
        (Fun::Quote, [Val::Text(text)]) => Val::text(strings::quoted(text)),
        (Fun::Format, [Val::Text(text), items]) => Val::text(super::format::format(text, &items.items()?)?),
        (Fun::Join, [list, between @ ..]) => strings::join(list, between.first())?,

        (Fun::IndexOf, [list, value]) => index_in(list, value, work, false)?,
        (Fun::LastIndexOf, [list, value]) => index_in(list, value, work, true)?,
        (Fun::IsSorted, [list]) => {
            let items = list.items()?;
            let sorted = items.windows(2).all(|two| match two {
                [a, b] => a.compare(b).is_none_or(Ordering::is_le),
                _ => true,
            });
            Val::Bool(sorted)
        }
        (Fun::Sum, [list]) => sum(&list.items()?)?,
        (Fun::Min, [list]) => extreme(list.items()?, Ordering::Less, "min")?,
        (Fun::Max, [list]) => extreme(list.items()?, Ordering::Greater, "max")?,
        (Fun::First, [list]) => list.item(0).transpose()?.map_or(Val::NONE, Val::some),
        (Fun::Last, [list]) => {
            let length = list.list_len().ok_or_else(wrong)?;
            length.checked_sub(1).and_then(|last| list.item(last)).transpose()?.map_or(Val::NONE, Val::some)
        }
        (Fun::SetsContains, [a, b]) => Val::Bool(a.has_all(b, work)?),
        (Fun::SetsEquivalent, [a, b]) => Val::Bool(a.has_all(b, work)? && b.has_all(a, work)?),
        (Fun::SetsIntersects, [a, b]) => {
            let mut any = false;
            for item in b.items()? {
                any = any || a.has(&item, work)?;
            }
            Val::Bool(any)
        }

        (Fun::OptionalOf, [value]) => Val::some(value.clone()),
        (Fun::OptionalOfNonZero, [value]) => {
            if is_zero(value) {
                Val::NONE
            } else {
                Val::some(value.clone())
            }
        }
        (Fun::HasValue, [Val::Optional(inner)]) => Val::Bool(inner.is_some()),
        (Fun::Value, [Val::Optional(inner)]) => {
            inner.as_ref().ok_or_else(|| Fault::new("optional.none() dereference"))?.as_ref().clone()
        }
        (Fun::Unwrap, [list]) => {
            let mut items = Vec::new();
            for item in list.items()? {
                match item {
                    Val::Optional(inner) => items.extend(inner.map(|inner| inner.as_ref().clone())),
                    _ => return Err(wrong()),
                }
            }
            Val::list(items)
        }

        (Fun::Url, [Val::Text(text)]) => Val::Url(
            Url::parse(text)
                .map_err(|why| Fault::new(format!("URL parse error during conversion from string: {why}")))?
                .into(),
        ),
        (Fun::IsUrl, [Val::Text(text)]) => Val::Bool(Url::parse(text).is_ok()),
        (Fun::Scheme, [Val::Url(url)]) => Val::text(url.scheme.clone()),
        (Fun::Host, [Val::Url(url)]) => Val::text(url.host.clone()),
        (Fun::Hostname, [Val::Url(url)]) => Val::text(url.hostname().to_owned()),
        (Fun::Port, [Val::Url(url)]) => Val::text(url.port().to_owned()),
        (Fun::EscapedPath, [Val::Url(url)]) => Val::text(url.escaped_path()),
        (Fun::Query, [Val::Url(url)]) => {
            let mut entries = Entries::default();
            for (key, values) in url.parameters() {
                entries.insert(Val::text(key), Val::list(values.into_iter().map(Val::text).collect()));
            }
            Val::Map(entries.into())
        }

        (Fun::Ip, [Val::Text(text)]) => Val::Ip(Ip::parse(text).map_err(Fault::new)?),
        (Fun::IsIp, [Val::Text(text)]) => Val::Bool(Ip::parse(text).is_ok()),
        (Fun::IpIsCanonical, [Val::Text(text)]) => {
            Val::Bool(Ip::parse(text).map_err(Fault::new)?.to_string() == text.as_ref())
        }
        (Fun::Family, [Val::Ip(ip)]) => Val::Int(ip.family()),
        (Fun::IsUnspecified, [Val::Ip(ip)]) => Val::Bool(ip.0.is_unspecified()),
        (Fun::IsLoopback, [Val::Ip(ip)]) => Val::Bool(ip.0.is_loopback()),
        (Fun::IsLinkLocalMulticast, [Val::Ip(ip)]) => Val::Bool(ip.is_link_local_multicast()),
        (Fun::IsLinkLocalUnicast, [Val::Ip(ip)]) => Val::Bool(ip.is_link_local_unicast()),
        (Fun::IsGlobalUnicast, [Val::Ip(ip)]) => Val::Bool(ip.is_global_unicast()),
        (Fun::Cidr, [Val::Text(text)]) => Val::Cidr(Cidr::parse(text).map_err(Fault::new)?),
        (Fun::IsCidr, [Val::Text(text)]) => Val::Bool(Cidr::parse(text).is_ok()),
        (Fun::ContainsIp, [Val::Cidr(cidr), Val::Ip(ip)]) => Val::Bool(cidr.contains_ip(*ip)),
        (Fun::ContainsIp, [Val::Cidr(cidr), Val::Text(text)]) => {
            Val::Bool(cidr.contains_ip(Ip::parse(text).map_err(Fault::new)?))
        }
        (Fun::ContainsCidr, [Val::Cidr(cidr), Val::Cidr(other)]) => Val::Bool(cidr.contains_cidr(*other)),
        (Fun::ContainsCidr, [Val::Cidr(cidr), Val::Text(text)]) => {
            Val::Bool(cidr.contains_cidr(Cidr::parse(text).map_err(Fault::new)?))
        }
        (Fun::CidrIp | Fun::Ip, [Val::Cidr(cidr)]) => Val::Ip(cidr.ip()),
        (Fun::Masked, [Val::Cidr(cidr)]) => Val::Cidr(cidr.masked()),
        (Fun::PrefixLength, [Val::Cidr(cidr)]) => Val::Int(cidr.prefix_length()),

        (Fun::Quantity, [Val::Text(text)]) => {
            Val::Quantity(Quantity::parse(text).ok_or_else(|| Fault::new(quantity::WRONG))?)
        }
        (Fun::IsQuantity, [Val::Text(text)]) => Val::Bool(Quantity::parse(text).is_some()),
        (Fun::Sign, [Val::Quantity(quantity)]) => Val::Int(quantity.sign()),
        (Fun::IsGreaterThan, [Val::Quantity(a), Val::Quantity(b)]) => Val::Bool(a.compare(b).is_gt()),
        (Fun::IsLessThan, [Val::Quantity(a), Val::Quantity(b)]) => Val::Bool(a.compare(b).is_lt()),
        (Fun::CompareTo, [Val::Quantity(a), Val::Quantity(b)]) => Val::Int(a.compare(b) as i64),
        (Fun::AsApproximateFloat, [Val::Quantity(quantity)]) => Val::Double(quantity.as_float()),
        (Fun::AsInteger, [Val::Quantity(quantity)]) => {
            Val::Int(quantity.as_integer().ok_or_else(|| Fault::new("cannot convert value to integer"))?)
        }
        (Fun::IsInteger, [Val::Quantity(quantity)]) => Val::Bool(quantity.as_integer().is_some()),
        (Fun::AddQuantity, [Val::Quantity(a), Val::Quantity(b)]) => Val::Quantity(a.add(*b)),
        (Fun::AddQuantity, [Val::Quantity(a), Val::Int(b)]) => Val::Quantity(a.add(Quantity::of(*b))),
        (Fun::SubQuantity, [Val::Quantity(a), Val::Quantity(b)]) => Val::Quantity(a.sub(*b)),
        (Fun::SubQuantity, [Val::Quantity(a), Val::Int(b)]) => Val::Quantity(a.sub(Quantity::of(*b))),

        (Fun::NamedFormat, [Val::Text(name)]) => {
            NamedFormat::named(name).map_or(Val::NONE, |format| Val::some(Val::NamedFormat(format)))
        }
        (Fun::FormatOf(format), []) => Val::NamedFormat(format),
        (Fun::Validate, [Val::NamedFormat(format), Val::Text(text)]) => {
            let reasons = format.validate(text);
            if reasons.is_empty() {
                Val::NONE
            } else {
                Val::some(Val::list(reasons.into_iter().map(Val::text).collect()))
            }
        }
        _ => return Err(wrong()),
    })
}

pub(super) fn is_in<'a>(value: &Val<'a>, within: &Val<'a>, work: &Work) -> Evaluated<Val<'a>> {
    match within {
        Val::Map(_) | Val::JsonMap(..) => Ok(Val::Bool(within.entry(value).is_some())),
        _ => within.has(value, work).map(Val::Bool),
    }
}

pub(super) fn search<'a>(fun: Fun, regex: &Regex, text: &str, most: Option<&Val<'a>>) -> Evaluated<Val<'a>> {
    match (fun, most) {
        (Fun::Matches, _) => Ok(Val::Bool(regex.is_match(text))),
        (Fun::Find, _) => Ok(Val::text(regex.find(text).map_or("", |found| found.as_str()).to_owned())),
        (_, None | Some(Val::Int(_))) => {
            let most = match most {
                Some(Val::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let found = regex.find_iter(text).take(most).map(|found| Val::text(found.as_str().to_owned()));
            Ok(Val::list(found.collect()))
        }
        _ => Err(Fault::no_such_overload()),
    }
}

pub(super) fn int<'a>(count: usize) -> Val<'a> {
    Val::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn overflow() -> Fault {
    Fault::new("integer overflow")
}

/// The order of two values of types that have one; `Ok(None)` is a number that is none.
fn compared(a: &Val<'_>, b: &Val<'_>) -> Evaluated<Option<Ordering>> {
    match (a, b) {
        (Val::Int(_) | Val::Uint(_) | Val::Double(_), Val::Int(_) | Val::Uint(_) | Val::Double(_)) => Ok(a.compare(b)),
        _ => a.compare(b).map(Some).ok_or_else(Fault::no_such_overload),
    }
}

/// An item or an entry; `Ok(None)` if it is not there.
fn at<'a>(of: &Val<'a>, index: &Val<'a>) -> Evaluated<Option<Val<'a>>> {
    if of.list_len().is_some() {
        let index = match index {
            Val::Int(index) => usize::try_from(*index).ok(),
            Val::Uint(index) => usize::try_from(*index).ok(),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and not negative")]
            Val::Double(index) if index.fract() == 0.0 && *index >= 0.0 => Some(*index as usize),
            _ => return Err(Fault::new(format!("unsupported index type '{}' in list", index.type_of()))),
        };
        return index.and_then(|index| of.item(index)).transpose();
    }
    match of {
        Val::Map(_) | Val::JsonMap(..) => of.entry(index).transpose(),
        _ => Err(Fault::no_such_overload()),
    }
}

fn arithmetic<'a>(fun: Fun, a: &Val<'a>, b: &Val<'a>) -> Evaluated<Val<'a>> {
    let by_zero = || Fault::new(if fun == Fun::Modulo { "modulus by zero" } else { "division by zero" });
    Ok(match (a, b) {
        (Val::Int(a), Val::Int(b)) => Val::Int(
            match fun {
                Fun::Add => a.checked_add(*b),
                Fun::Subtract => a.checked_sub(*b),
                Fun::Multiply => a.checked_mul(*b),
                _ if *b == 0 => return Err(by_zero()),
                Fun::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            }
            .ok_or_else(overflow)?,
        ),
        (Val::Uint(a), Val::Uint(b)) => Val::Uint(
            match fun {
                Fun::Add => a.checked_add(*b),
                Fun::Subtract => a.checked_sub(*b),
                Fun::Multiply => a.checked_mul(*b),
                _ if *b == 0 => return Err(by_zero()),
                Fun::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            }
            .ok_or_else(|| Fault::new("unsigned integer overflow"))?,
        ),
        (Val::Double(a), Val::Double(b)) => Val::Double(match fun {
            Fun::Add => a + b,
            Fun::Subtract => a - b,
            Fun::Multiply => a * b,
            Fun::Divide => a / b,
            _ => return Err(Fault::no_such_overload()),
        }),
        (Val::Text(a), Val::Text(b)) if fun == Fun::Add => Val::text(format!("{a}{b}")),
        (Val::Bytes(a), Val::Bytes(b)) if fun == Fun::Add => Val::Bytes(Cow::Owned([a.as_ref(), b.as_ref()].concat())),
        (Val::List(_) | Val::JsonList(..), Val::List(_) | Val::JsonList(..)) if fun == Fun::Add => {
            if a.list_len().unwrap_or(0).saturating_add(b.list_len().unwrap_or(0)) > LONGEST_LIST {
                return Err(Fault::OverBudget);
            }
            let mut items = a.items()?;
            items.extend(b.items()?);
            Val::list(items)
        }
        _ => convert::time_arithmetic(fun, a, b)?,
    })
}

fn index_in<'a>(list: &Val<'a>, value: &Val<'a>, work: &Work, from_end: bool) -> Evaluated<Val<'a>> {
    let mut found = Val::Int(-1);
    for (index, item) in list.items()?.iter().enumerate() {
        if item.equals(value, work)? {
            found = int(index);
            if !from_end {
                break;
            }
        }
    }
    Ok(found)
}

fn sum<'a>(items: &[Val<'a>]) -> Evaluated<Val<'a>> {
    let Some((first, rest)) = items.split_first() else { return Ok(Val::Int(0)) };
    let mut total = first.clone();
    for item in rest {
        total = arithmetic(Fun::Add, &total, item)?;
    }
    Ok(total)
}

fn extreme<'a>(items: Vec<Val<'a>>, wanted: Ordering, name: &str) -> Evaluated<Val<'a>> {
    let mut items = items.into_iter();
    let Some(mut best) = items.next() else { return Err(Fault::new(format!("{name} called on empty list"))) };
    for item in items {
        if item.compare(&best) == Some(wanted) {
            best = item;
        }
    }
    Ok(best)
}

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(flag) => !flag,
        Val::Int(number) => *number == 0,
        Val::Uint(number) => *number == 0,
        Val::Double(number) => *number == 0.0,
        Val::Duration(nanos) => *nanos == 0,
        other => other.size() == Some(0),
    }
}
