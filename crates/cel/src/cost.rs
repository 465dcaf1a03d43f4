//! What calls cost when they run. The numbers are those of Kubernetes, so that a rule that runs there runs here.

use super::functions::Fun;
use super::value::Val;

/// A tenth per code point or byte that is looked at.
pub(super) const TRAVERSAL: f64 = 0.1;
/// A quarter per code point of a regular expression.
pub(super) const REGEX: f64 = 0.25;

/// What is known before the call.
pub(super) fn of_call(fun: Fun, args: &[Val<'_>]) -> u64 {
    let size = |index: usize| args.get(index).and_then(Val::size).unwrap_or(1);
    let text_like = |value: &Val<'_>| matches!(value, Val::Text(_) | Val::Bytes(_));
    match (fun, args) {
        (Fun::StartsWith | Fun::EndsWith, _) | (Fun::ToBytes, [Val::Text(_)]) | (Fun::ToText, [Val::Bytes(_)]) => {
            times(size(0), TRAVERSAL)
        }
        (Fun::In, [_, list]) if list.list_len().is_some() => size(1) as u64,
        (Fun::Less | Fun::LessEquals | Fun::Greater | Fun::GreaterEquals, [a, _]) if text_like(a) => {
            times(size(0).min(size(1)), TRAVERSAL)
        }
        (Fun::Equals | Fun::NotEquals, _) => times(size(0).min(size(1)), TRAVERSAL),
        (Fun::Add, [a, _]) if text_like(a) => times(size(0).saturating_add(size(1)), TRAVERSAL),
        (Fun::Matches | Fun::Find | Fun::FindAll, _) => {
            times(size(0).saturating_add(1), TRAVERSAL).saturating_mul(times(size(1), REGEX))
        }
        (Fun::Contains, _) => times(size(0), TRAVERSAL).saturating_mul(times(size(1), TRAVERSAL)),
        (Fun::IsSorted | Fun::Sum | Fun::Min | Fun::Max | Fun::IndexOf | Fun::LastIndexOf, [of, ..]) => traversal(of),
        (
            Fun::Url
            | Fun::LowerAscii
            | Fun::UpperAscii
            | Fun::Substring
            | Fun::Trim
            | Fun::Cidr
            | Fun::IsIp
            | Fun::IsCidr
            | Fun::Ip
            | Fun::Quantity
            | Fun::IsQuantity
            | Fun::Quote
            | Fun::Format,
            _,
        ) => times(size(0), TRAVERSAL),
        (Fun::Replace | Fun::Split | Fun::IpIsCanonical, _) => times(size(0), 2.0 * TRAVERSAL),
        (Fun::ContainsIp | Fun::ContainsCidr, [Val::Cidr(cidr), other]) => {
            let address = cidr.bytes() * 2 / 10 + 1;
            let more = if fun == Fun::ContainsCidr { cidr.bytes() / 10 + 2 } else { 0 };
            let parse = if text_like(other) { times(size(1), TRAVERSAL) } else { 0 };
            address + more + parse
        }
        (Fun::SetsContains | Fun::SetsIntersects, _) => {
            (size(0) as u64).saturating_mul(size(1) as u64).saturating_add(1)
        }
        (Fun::SetsEquivalent, _) => (size(0) as u64).saturating_mul(size(1) as u64).saturating_mul(2).saturating_add(1),
        (Fun::Validate, [Val::NamedFormat(format), _]) => {
            let regex = format.regex_size().div_ceil(4);
            times(size(1).saturating_add(1), TRAVERSAL).saturating_mul(regex)
        }
        (Fun::Join, _) => 0,
        _ => 1,
    }
}

/// What is known only after the call.
pub(super) fn of_result(fun: Fun, result: &Val<'_>) -> u64 {
    match fun {
        Fun::Join => times(result.size().unwrap_or(1), 2.0 * TRAVERSAL),
        _ => 0,
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of requests"
)]
fn times(size: usize, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

/// What it costs to look at everything in a value.
#[expect(clippy::integer_division, reason = "Kubernetes rounds down here")]
fn traversal(value: &Val<'_>) -> u64 {
    match value {
        Val::Text(text) => text.len() as u64 / 10,
        Val::Bytes(bytes) => bytes.len() as u64 / 10,
        Val::List(_) | Val::JsonList(..) => {
            value.items().unwrap_or_default().iter().map(traversal).fold(0, u64::saturating_add)
        }
        Val::Map(_) | Val::JsonMap(..) => value
            .keys()
            .iter()
            .map(|key| {
                let inner = value.entry(key).and_then(Result::ok);
                traversal(key).saturating_add(inner.as_ref().map_or(1, traversal))
            })
            .fold(0, u64::saturating_add),
        _ => 1,
    }
}
