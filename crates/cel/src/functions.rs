//! The functions that rules may call, with the types that they take.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::types::Type;

/// What a call does; overloads of one name share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Fun {
    // Operators.
    And,
    Or,
    Not,
    Conditional,
    Equals,
    NotEquals,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Negate,
    Index,
    OptionalIndex,
    OptionalSelect,
    NotStrictlyFalse,
    MapInsert,
    // Conversions.
    ToInt,
    ToUint,
    ToDouble,
    ToText,
    ToBytes,
    ToBool,
    ToTimestamp,
    ToDuration,
    ToDyn,
    TypeOf,
    // Strings and containers.
    Size,
    Contains,
    StartsWith,
    EndsWith,
    Matches,
    CharAt,
    IndexOf,
    LastIndexOf,
    Join,
    LowerAscii,
    UpperAscii,
    Replace,
    Split,
    Substring,
    Trim,
    Format,
    Quote,
    Find,
    FindAll,
    // Lists and sets.
    IsSorted,
    Sum,
    Min,
    Max,
    First,
    Last,
    SetsContains,
    SetsEquivalent,
    SetsIntersects,
    // Time.
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
    // Optionals.
    OptionalOf,
    OptionalOfNonZero,
    OptionalNone,
    HasValue,
    Value,
    OrOptional,
    OrValue,
    Unwrap,
    // Addresses.
    Url,
    IsUrl,
    Scheme,
    Host,
    Hostname,
    Port,
    EscapedPath,
    Query,
    Ip,
    IsIp,
    IpIsCanonical,
    Family,
    IsUnspecified,
    IsLoopback,
    IsLinkLocalMulticast,
    IsLinkLocalUnicast,
    IsGlobalUnicast,
    Cidr,
    IsCidr,
    ContainsIp,
    ContainsCidr,
    CidrIp,
    Masked,
    PrefixLength,
    // Quantities.
    Quantity,
    IsQuantity,
    Sign,
    IsGreaterThan,
    IsLessThan,
    CompareTo,
    AsApproximateFloat,
    AsInteger,
    IsInteger,
    AddQuantity,
    SubQuantity,
    // Named formats.
    NamedFormat,
    FormatOf(super::formats::NamedFormat),
    Validate,
}

pub(super) const QUANTITY: &str = "kubernetes.Quantity";
pub(super) const URL: &str = "kubernetes.URL";
pub(super) const IP: &str = "net.IP";
pub(super) const CIDR: &str = "net.CIDR";
pub(super) const NAMED_FORMAT: &str = "kubernetes.NamedFormat";

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) fun: Fun,
    pub(super) member: bool,
    /// With the target first, if there is one. `Var`s are numbered from 0 within the overload.
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
    pub(super) vars: usize,
}

/// All ways to call a function of this name.
pub(super) fn named(name: &str) -> Option<&'static [Overload]> {
    OVERLOADS.get(name).map(Vec::as_slice)
}

static OVERLOADS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut overloads: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for (fun, signatures) in SIGNATURES {
        for signature in signatures.split(';').map(str::trim).filter(|signature| !signature.is_empty()) {
            if let Some((name, overload)) = read(*fun, signature) {
                overloads.entry(name).or_default().push(overload);
            }
        }
    }
    for named in super::formats::NamedFormat::ALL {
        let result = Type::Opaque(NAMED_FORMAT);
        let overload = Overload { fun: Fun::FormatOf(named), member: false, args: Vec::new(), result, vars: 0 };
        overloads.entry(named.function()).or_default().push(overload);
    }
    overloads
});

/// `target::name(type, type): type`, or without the target.
const SIGNATURES: &[(Fun, &str)] = &[
    (Fun::And, "_&&_(bool, bool): bool"),
    (Fun::Or, "_||_(bool, bool): bool"),
    (Fun::Not, "!_(bool): bool"),
    (Fun::Conditional, "_?_:_(bool, A, A): A"),
    (Fun::Equals, "_==_(A, A): bool"),
    (Fun::NotEquals, "_!=_(A, A): bool"),
    (
        Fun::Less,
        "_<_(bool, bool): bool; _<_(int, int): bool; _<_(int, double): bool; _<_(int, uint): bool;
        _<_(uint, uint): bool; _<_(uint, double): bool; _<_(uint, int): bool; _<_(double, double): bool;
        _<_(double, int): bool; _<_(double, uint): bool; _<_(string, string): bool; _<_(bytes, bytes): bool;
        _<_(timestamp, timestamp): bool; _<_(duration, duration): bool",
    ),
    (
        Fun::LessEquals,
        "_<=_(bool, bool): bool; _<=_(int, int): bool; _<=_(int, double): bool; _<=_(int, uint): bool;
        _<=_(uint, uint): bool; _<=_(uint, double): bool; _<=_(uint, int): bool; _<=_(double, double): bool;
        _<=_(double, int): bool; _<=_(double, uint): bool; _<=_(string, string): bool; _<=_(bytes, bytes): bool;
        _<=_(timestamp, timestamp): bool; _<=_(duration, duration): bool",
    ),
    (
        Fun::Greater,
        "_>_(bool, bool): bool; _>_(int, int): bool; _>_(int, double): bool; _>_(int, uint): bool;
        _>_(uint, uint): bool; _>_(uint, double): bool; _>_(uint, int): bool; _>_(double, double): bool;
        _>_(double, int): bool; _>_(double, uint): bool; _>_(string, string): bool; _>_(bytes, bytes): bool;
        _>_(timestamp, timestamp): bool; _>_(duration, duration): bool",
    ),
    (
        Fun::GreaterEquals,
        "_>=_(bool, bool): bool; _>=_(int, int): bool; _>=_(int, double): bool; _>=_(int, uint): bool;
        _>=_(uint, uint): bool; _>=_(uint, double): bool; _>=_(uint, int): bool; _>=_(double, double): bool;
        _>=_(double, int): bool; _>=_(double, uint): bool; _>=_(string, string): bool; _>=_(bytes, bytes): bool;
        _>=_(timestamp, timestamp): bool; _>=_(duration, duration): bool",
    ),
    (Fun::In, "@in(A, list<A>): bool; @in(A, map<A,B>): bool"),
    (
        Fun::Add,
        "_+_(int, int): int; _+_(uint, uint): uint; _+_(double, double): double; _+_(string, string): string;
        _+_(bytes, bytes): bytes; _+_(list<A>, list<A>): list<A>; _+_(timestamp, duration): timestamp;
        _+_(duration, timestamp): timestamp; _+_(duration, duration): duration",
    ),
    (
        Fun::Subtract,
        "_-_(int, int): int; _-_(uint, uint): uint; _-_(double, double): double;
        _-_(timestamp, timestamp): duration; _-_(timestamp, duration): timestamp; _-_(duration, duration): duration",
    ),
    (Fun::Multiply, "_*_(int, int): int; _*_(uint, uint): uint; _*_(double, double): double"),
    (Fun::Divide, "_/_(int, int): int; _/_(uint, uint): uint; _/_(double, double): double"),
    (Fun::Modulo, "_%_(int, int): int; _%_(uint, uint): uint"),
    (Fun::Negate, "-_(int): int; -_(double): double"),
    (
        Fun::Index,
        "_[_](list<A>, int): A; _[_](map<A,B>, A): B; _[_](optional<list<A>>, int): optional<A>;
        _[_](optional<map<A,B>>, A): optional<B>",
    ),
    (
        Fun::OptionalIndex,
        "_[?_](list<A>, int): optional<A>; _[?_](optional<list<A>>, int): optional<A>;
        _[?_](map<A,B>, A): optional<B>; _[?_](optional<map<A,B>>, A): optional<B>",
    ),
    (Fun::OptionalSelect, "_?._(dyn, string): optional<dyn>"),
    (Fun::NotStrictlyFalse, "@not_strictly_false(bool): bool"),
    (Fun::MapInsert, "cel.@mapInsert(map<A,B>, A, B): map<A,B>; cel.@mapInsert(map<A,B>, map<A,B>): map<A,B>"),
    (
        Fun::ToInt,
        "int(int): int; int(uint): int; int(double): int; int(string): int; int(timestamp): int;
        int(duration): int",
    ),
    (Fun::ToUint, "uint(uint): uint; uint(int): uint; uint(double): uint; uint(string): uint"),
    (Fun::ToDouble, "double(double): double; double(int): double; double(uint): double; double(string): double"),
    (
        Fun::ToText,
        "string(string): string; string(bool): string; string(int): string; string(uint): string;
        string(double): string; string(bytes): string; string(timestamp): string; string(duration): string;
        string(ip): string; string(cidr): string",
    ),
    (Fun::ToBytes, "bytes(bytes): bytes; bytes(string): bytes"),
    (Fun::ToBool, "bool(bool): bool; bool(string): bool"),
    (Fun::ToTimestamp, "timestamp(timestamp): timestamp; timestamp(int): timestamp; timestamp(string): timestamp"),
    (Fun::ToDuration, "duration(duration): duration; duration(int): duration; duration(string): duration"),
    (Fun::ToDyn, "dyn(A): dyn"),
    (Fun::TypeOf, "type(A): type<A>"),
    (
        Fun::Size,
        "size(string): int; size(bytes): int; size(list<A>): int; size(map<A,B>): int;
        string::size(): int; bytes::size(): int; list<A>::size(): int; map<A,B>::size(): int",
    ),
    (Fun::Contains, "string::contains(string): bool"),
    (Fun::StartsWith, "string::startsWith(string): bool"),
    (Fun::EndsWith, "string::endsWith(string): bool"),
    (Fun::Matches, "matches(string, string): bool; string::matches(string): bool"),
    (Fun::CharAt, "string::charAt(int): string"),
    (Fun::IndexOf, "string::indexOf(string): int; string::indexOf(string, int): int; list<A>::indexOf(A): int"),
    (
        Fun::LastIndexOf,
        "string::lastIndexOf(string): int; string::lastIndexOf(string, int): int;
        list<A>::lastIndexOf(A): int",
    ),
    (Fun::Join, "list<string>::join(): string; list<string>::join(string): string"),
    (Fun::LowerAscii, "string::lowerAscii(): string"),
    (Fun::UpperAscii, "string::upperAscii(): string"),
    (Fun::Replace, "string::replace(string, string): string; string::replace(string, string, int): string"),
    (Fun::Split, "string::split(string): list<string>; string::split(string, int): list<string>"),
    (Fun::Substring, "string::substring(int): string; string::substring(int, int): string"),
    (Fun::Trim, "string::trim(): string"),
    (Fun::Format, "string::format(list<dyn>): string"),
    (Fun::Quote, "strings.quote(string): string"),
    (Fun::Find, "string::find(string): string"),
    (Fun::FindAll, "string::findAll(string): list<string>; string::findAll(string, int): list<string>"),
    (
        Fun::IsSorted,
        "list<int>::isSorted(): bool; list<uint>::isSorted(): bool; list<double>::isSorted(): bool;
        list<bool>::isSorted(): bool; list<duration>::isSorted(): bool; list<timestamp>::isSorted(): bool;
        list<string>::isSorted(): bool; list<bytes>::isSorted(): bool",
    ),
    (
        Fun::Sum,
        "list<int>::sum(): int; list<uint>::sum(): uint; list<double>::sum(): double;
        list<duration>::sum(): duration",
    ),
    (
        Fun::Min,
        "list<int>::min(): int; list<uint>::min(): uint; list<double>::min(): double; list<bool>::min(): bool;
        list<duration>::min(): duration; list<timestamp>::min(): timestamp; list<string>::min(): string;
        list<bytes>::min(): bytes",
    ),
    (
        Fun::Max,
        "list<int>::max(): int; list<uint>::max(): uint; list<double>::max(): double; list<bool>::max(): bool;
        list<duration>::max(): duration; list<timestamp>::max(): timestamp; list<string>::max(): string;
        list<bytes>::max(): bytes",
    ),
    (Fun::First, "list<A>::first(): optional<A>"),
    (Fun::Last, "list<A>::last(): optional<A>"),
    (Fun::SetsContains, "sets.contains(list<A>, list<A>): bool"),
    (Fun::SetsEquivalent, "sets.equivalent(list<A>, list<A>): bool"),
    (Fun::SetsIntersects, "sets.intersects(list<A>, list<A>): bool"),
    (Fun::FullYear, "timestamp::getFullYear(): int; timestamp::getFullYear(string): int"),
    (Fun::Month, "timestamp::getMonth(): int; timestamp::getMonth(string): int"),
    (Fun::Date, "timestamp::getDate(): int; timestamp::getDate(string): int"),
    (Fun::DayOfMonth, "timestamp::getDayOfMonth(): int; timestamp::getDayOfMonth(string): int"),
    (Fun::DayOfWeek, "timestamp::getDayOfWeek(): int; timestamp::getDayOfWeek(string): int"),
    (Fun::DayOfYear, "timestamp::getDayOfYear(): int; timestamp::getDayOfYear(string): int"),
    (Fun::Hours, "timestamp::getHours(): int; timestamp::getHours(string): int; duration::getHours(): int"),
    (Fun::Minutes, "timestamp::getMinutes(): int; timestamp::getMinutes(string): int; duration::getMinutes(): int"),
    (Fun::Seconds, "timestamp::getSeconds(): int; timestamp::getSeconds(string): int; duration::getSeconds(): int"),
    (
        Fun::Milliseconds,
        "timestamp::getMilliseconds(): int; timestamp::getMilliseconds(string): int;
        duration::getMilliseconds(): int",
    ),
    (Fun::OptionalOf, "optional.of(A): optional<A>"),
    (Fun::OptionalOfNonZero, "optional.ofNonZeroValue(A): optional<A>"),
    (Fun::OptionalNone, "optional.none(): optional<A>"),
    (Fun::HasValue, "optional<A>::hasValue(): bool"),
    (Fun::Value, "optional<A>::value(): A"),
    (Fun::OrOptional, "optional<A>::or(optional<A>): optional<A>"),
    (Fun::OrValue, "optional<A>::orValue(A): A"),
    (Fun::Unwrap, "optional.unwrap(list<optional<A>>): list<A>; list<optional<A>>::unwrapOpt(): list<A>"),
    (Fun::Url, "url(string): url"),
    (Fun::IsUrl, "isURL(string): bool"),
    (Fun::Scheme, "url::getScheme(): string"),
    (Fun::Host, "url::getHost(): string"),
    (Fun::Hostname, "url::getHostname(): string"),
    (Fun::Port, "url::getPort(): string"),
    (Fun::EscapedPath, "url::getEscapedPath(): string"),
    (Fun::Query, "url::getQuery(): map<string,list<string>>"),
    (Fun::Ip, "ip(string): ip"),
    (Fun::IsIp, "isIP(string): bool"),
    (Fun::IpIsCanonical, "ip.isCanonical(string): bool"),
    (Fun::Family, "ip::family(): int"),
    (Fun::IsUnspecified, "ip::isUnspecified(): bool"),
    (Fun::IsLoopback, "ip::isLoopback(): bool"),
    (Fun::IsLinkLocalMulticast, "ip::isLinkLocalMulticast(): bool"),
    (Fun::IsLinkLocalUnicast, "ip::isLinkLocalUnicast(): bool"),
    (Fun::IsGlobalUnicast, "ip::isGlobalUnicast(): bool"),
    (Fun::Cidr, "cidr(string): cidr"),
    (Fun::IsCidr, "isCIDR(string): bool"),
    (Fun::ContainsIp, "cidr::containsIP(string): bool; cidr::containsIP(ip): bool"),
    (Fun::ContainsCidr, "cidr::containsCIDR(string): bool; cidr::containsCIDR(cidr): bool"),
    (Fun::CidrIp, "cidr::ip(): ip"),
    (Fun::Masked, "cidr::masked(): cidr"),
    (Fun::PrefixLength, "cidr::prefixLength(): int"),
    (Fun::Quantity, "quantity(string): quantity"),
    (Fun::IsQuantity, "isQuantity(string): bool"),
    (Fun::Sign, "sign(quantity): int"),
    (Fun::IsGreaterThan, "quantity::isGreaterThan(quantity): bool"),
    (Fun::IsLessThan, "quantity::isLessThan(quantity): bool"),
    (Fun::CompareTo, "quantity::compareTo(quantity): int"),
    (Fun::AsApproximateFloat, "quantity::asApproximateFloat(): double"),
    (Fun::AsInteger, "quantity::asInteger(): int"),
    (Fun::IsInteger, "quantity::isInteger(): bool"),
    (Fun::AddQuantity, "quantity::add(quantity): quantity; quantity::add(int): quantity"),
    (Fun::SubQuantity, "quantity::sub(quantity): quantity; quantity::sub(int): quantity"),
    (Fun::NamedFormat, "format.named(string): optional<format>"),
    (Fun::Validate, "format::validate(string): optional<list<string>>"),
];

/// `None` cannot happen: a test reads all of them.
fn read(fun: Fun, signature: &'static str) -> Option<(&'static str, Overload)> {
    let (head, result) = signature.rsplit_once("): ")?;
    let (callee, args) = head.split_once('(')?;
    let (target, name) = match callee.split_once("::") {
        Some((target, name)) => (Some(target), name),
        None => (None, callee),
    };
    let mut vars = 0;
    let mut types = Vec::new();
    let args = args.split(", ").map(str::trim).filter(|arg| !arg.is_empty());
    for arg in target.into_iter().chain(args) {
        types.push(read_type(arg, &mut vars)?);
    }
    let result = read_type(result, &mut vars)?;
    Some((name, Overload { fun, member: target.is_some(), args: types, result, vars }))
}

fn read_type(text: &str, vars: &mut usize) -> Option<Type> {
    if let Some((outer, inner)) = text.split_once('<') {
        let inner = inner.strip_suffix('>')?;
        return Some(match outer {
            "list" => Type::list(read_type(inner, vars)?),
            "optional" => Type::optional(read_type(inner, vars)?),
            "type" => Type::Meta(Arc::new(read_type(inner, vars)?)),
            "map" => {
                let (keys, values) = inner.split_once(',')?;
                Type::map(read_type(keys, vars)?, read_type(values, vars)?)
            }
            _ => return None,
        });
    }
    Some(match text {
        "A" => {
            *vars = (*vars).max(1);
            Type::Var(0)
        }
        "B" => {
            *vars = 2;
            Type::Var(1)
        }
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        "dyn" => Type::Dyn,
        "quantity" => Type::Opaque(QUANTITY),
        "url" => Type::Opaque(URL),
        "ip" => Type::Opaque(IP),
        "cidr" => Type::Opaque(CIDR),
        "format" => Type::Opaque(NAMED_FORMAT),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_can_be_read() {
        for (fun, signatures) in SIGNATURES {
            for signature in signatures.split(';').map(str::trim).filter(|signature| !signature.is_empty()) {
                assert!(read(*fun, signature).is_some(), "{signature}");
            }
        }
    }
}
