//! Values that expressions compute with. What comes from the object stays where it is.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Json};

use schema::wrong_type;

use super::decl::{Decl, ListKeys, Shape};
use super::formats::NamedFormat;
use super::net::{Cidr, Ip};
use super::quantity::Quantity;
use super::time;
use super::types::Type;
use super::url::Url;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// An error of the expression; `||` and `&&` get over it.
    Error(String),
    /// It costs too much; nothing gets over that.
    OverBudget,
}

impl Fault {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self::Error(text.into())
    }

    pub(super) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }
}

pub(super) type Evaluated<T> = Result<T, Fault>;

#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    Timestamp(jiff::Timestamp),
    /// Nanoseconds.
    Duration(i64),
    List(Rc<Vec<Val<'a>>>),
    /// A list in the object.
    JsonList(&'a [Json], &'a Decl),
    Map(Rc<Entries<'a>>),
    /// A map or an object in the object.
    JsonMap(&'a Map<String, Json>, &'a Decl),
    Type(Type),
    Optional(Option<Rc<Val<'a>>>),
    Quantity(Quantity),
    Url(Rc<Url>),
    Ip(Ip),
    Cidr(Cidr),
    NamedFormat(NamedFormat),
}

/// The entries of a map that an expression made, in the order of its keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries<'a> {
    sorted: Vec<(Val<'a>, Val<'a>)>,
}

impl<'a> Entries<'a> {
    pub(super) fn get(&self, key: &Val<'a>) -> Option<&Val<'a>> {
        let exactly = |key: &Val<'a>| self.position(key).ok().and_then(|position| self.sorted.get(position));
        exactly(key).or_else(|| other_numbers(key).iter().find_map(exactly)).map(|(_, value)| value)
    }

    /// Puts an entry in; `true` if one of this key was there, which is gone then.
    pub(super) fn insert(&mut self, key: Val<'a>, value: Val<'a>) -> bool {
        match self.position(&key) {
            Ok(position) => {
                if let Some(entry) = self.sorted.get_mut(position) {
                    entry.1 = value;
                }
                true
            }
            Err(position) => {
                self.sorted.insert(position, (key, value));
                false
            }
        }
    }

    fn position(&self, key: &Val<'a>) -> Result<usize, usize> {
        self.sorted.binary_search_by(|(known, _)| key_order(known, key))
    }

    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Val<'a>, Val<'a>)> {
        self.sorted.iter()
    }
}

/// Keys are bools, numbers and strings. Numbers of different types are different keys.
fn key_order(a: &Val<'_>, b: &Val<'_>) -> Ordering {
    fn rank(value: &Val<'_>) -> u8 {
        match value {
            Val::Bool(_) => 0,
            Val::Int(_) => 1,
            Val::Uint(_) => 2,
            Val::Double(_) => 3,
            _ => 4,
        }
    }
    rank(a).cmp(&rank(b)).then_with(|| a.compare(b).unwrap_or(Ordering::Equal))
}

/// The same number in the other types.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "who asks compares the result with what went in"
)]
fn other_numbers<'a>(number: &Val<'_>) -> Vec<Val<'a>> {
    let all = match number {
        Val::Int(number) => [Val::Int(*number), Val::Uint(*number as u64), Val::Double(*number as f64)],
        Val::Uint(number) => [Val::Int(*number as i64), Val::Uint(*number), Val::Double(*number as f64)],
        Val::Double(number) => [Val::Int(*number as i64), Val::Uint(*number as u64), Val::Double(*number)],
        _ => return Vec::new(),
    };
    all.into_iter().filter(|other| other.compare(number) == Some(Ordering::Equal)).collect()
}

impl<'a> Val<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn list(items: Vec<Val<'a>>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(super) fn some(value: Val<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(super) const NONE: Self = Self::Optional(None);

    /// The value at a place of the object, read as its schema says.
    pub(super) fn from_json(json: &'a Json, decl: &'a Decl) -> Evaluated<Self> {
        if json.is_null() {
            return if decl.nullable {
                Ok(Self::Null)
            } else {
                Err(Fault::new("invalid data, got null for schema with nullable=false"))
            };
        }
        let wrong = |expected: &str| {
            Fault::new(format!("invalid data: {}", wrong_type("the value", &format!("of type {expected}"), json)))
        };
        Ok(match (&decl.shape, json) {
            (Shape::IntOrString | Shape::Text, Json::String(text)) => Self::Text(Cow::Borrowed(text)),
            (Shape::IntOrString | Shape::Int, Json::Number(number)) => {
                Self::Int(number.as_i64().ok_or_else(|| wrong("int"))?)
            }
            (Shape::IntOrString, _) => {
                return Err(Fault::new("invalid data, expected XIntOrString value to be either a string or integer"));
            }
            (Shape::Bool, Json::Bool(flag)) => Self::Bool(*flag),
            (Shape::Double, Json::Number(number)) => Self::Double(number.as_f64().ok_or_else(|| wrong("float"))?),
            (Shape::Bytes, Json::String(text)) => Self::Bytes(Cow::Owned(
                STANDARD
                    .decode(text)
                    .map_err(|error| Fault::new(format!("Invalid byte formatted string {text}: {error}")))?,
            )),
            (Shape::Duration, Json::String(text)) => {
                Self::Duration(time::parse_schema_duration(text).ok_or_else(|| {
                    Fault::new(format!("Invalid duration {text}: unable to parse {text} as duration"))
                })?)
            }
            (Shape::Date, Json::String(text)) => Self::Timestamp(
                time::parse_date(text)
                    .ok_or_else(|| Fault::new(format!("Invalid date formatted string {text}: cannot parse")))?,
            ),
            (Shape::DateTime, Json::String(text)) => Self::Timestamp(
                time::parse_timestamp(text)
                    .ok_or_else(|| Fault::new(format!("Invalid date-time formatted string {text}: cannot parse")))?,
            ),
            (Shape::List { .. }, Json::Array(items)) => Self::JsonList(items, decl),
            (Shape::Map { .. } | Shape::Object { .. }, Json::Object(entries)) => Self::JsonMap(entries, decl),
            (Shape::Text | Shape::Bytes | Shape::Duration | Shape::Date | Shape::DateTime, _) => {
                return Err(wrong("string"));
            }
            (Shape::Bool, _) => return Err(wrong("bool")),
            (Shape::Int, _) => return Err(wrong("int")),
            (Shape::Double, _) => return Err(wrong("float")),
            (Shape::List { .. }, _) => {
                return Err(Fault::new("invalid data, expected an array for the provided schema with type=array"));
            }
            (Shape::Map { .. } | Shape::Object { .. }, _) => {
                return Err(Fault::new("invalid data, expected a map for the provided schema with type=object"));
            }
        })
    }

    pub(super) fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::Text,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::List(_) | Self::JsonList(..) => Type::list(Type::Dyn),
            Self::Map(_) | Self::JsonMap(..) => Type::map(Type::Dyn, Type::Dyn),
            Self::Type(_) => Type::Meta(Type::Dyn.into()),
            Self::Optional(_) => Type::optional(Type::Dyn),
            Self::Quantity(_) => Type::Opaque(super::functions::QUANTITY),
            Self::Url(_) => Type::Opaque(super::functions::URL),
            Self::Ip(_) => Type::Opaque(super::functions::IP),
            Self::Cidr(_) => Type::Opaque(super::functions::CIDR),
            Self::NamedFormat(_) => Type::Opaque(super::functions::NAMED_FORMAT),
        }
    }

    /// How many items, entries, code points or bytes; `None` if it has no size.
    pub(super) fn size(&self) -> Option<usize> {
        Some(match self {
            Self::Text(text) => code_points(text),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => items.len(),
            Self::JsonList(items, _) => items.len(),
            Self::Map(entries) => entries.len(),
            Self::JsonMap(entries, decl) => match &decl.shape {
                Shape::Object { fields } => fields.values().filter(|field| entries.contains_key(&field.name)).count(),
                _ => entries.len(),
            },
            _ => return None,
        })
    }

    /// The number of items if this is a list.
    pub(super) fn list_len(&self) -> Option<usize> {
        match self {
            Self::List(items) => Some(items.len()),
            Self::JsonList(items, _) => Some(items.len()),
            _ => None,
        }
    }

    /// One item of a list.
    pub(super) fn item(&self, index: usize) -> Option<Evaluated<Val<'a>>> {
        match self {
            Self::List(items) => items.get(index).cloned().map(Ok),
            Self::JsonList(items, decl) => {
                let Shape::List { items: of, .. } = &decl.shape else { return None };
                items.get(index).map(|item| Self::from_json(item, of))
            }
            _ => None,
        }
    }

    /// All items of a list.
    pub(super) fn items(&self) -> Evaluated<Vec<Val<'a>>> {
        let length = self.list_len().ok_or_else(Fault::no_such_overload)?;
        (0..length).filter_map(|index| self.item(index)).collect()
    }

    /// The value of a key of a map or a field of an object.
    pub(super) fn entry(&self, key: &Val<'a>) -> Option<Evaluated<Val<'a>>> {
        match self {
            Self::Map(entries) => entries.get(key).cloned().map(Ok),
            Self::JsonMap(..) => match key {
                Self::Text(key) => self.field(key),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same for a name.
    pub(super) fn field(&self, name: &str) -> Option<Evaluated<Val<'a>>> {
        match self {
            Self::Map(entries) => entries.get(&Val::Text(Cow::Owned(name.to_owned()))).cloned().map(Ok),
            Self::JsonMap(entries, decl) => match &decl.shape {
                Shape::Map { values } => entries.get(name).map(|value| Self::from_json(value, values)),
                Shape::Object { fields } => {
                    let field = fields.get(name)?;
                    // A field that is null is not there.
                    let value = entries.get(&field.name).filter(|value| !value.is_null())?;
                    Some(Self::from_json(value, &field.decl))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The keys of a map or the fields of an object that are there.
    pub(super) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Self::Map(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
            Self::JsonMap(entries, decl) => match &decl.shape {
                Shape::Object { fields } => fields
                    .iter()
                    .filter(|(_, field)| entries.contains_key(&field.name))
                    .map(|(name, _)| Val::Text(Cow::Borrowed(name.as_str())))
                    .collect(),
                _ => entries.keys().map(|key| Val::Text(Cow::Borrowed(key.as_str()))).collect(),
            },
            _ => Vec::new(),
        }
    }

    /// Which is less; `None` if they cannot be compared, as with a number that is none.
    pub(super) fn compare(&self, other: &Val<'a>) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) | (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Int(a), Self::Double(b)) => compare_with_double(i128::from(*a), *b),
            (Self::Uint(a), Self::Double(b)) => compare_with_double(i128::from(*a), *b),
            (Self::Double(a), Self::Int(b)) => compare_with_double(i128::from(*b), *a).map(Ordering::reverse),
            (Self::Double(a), Self::Uint(b)) => compare_with_double(i128::from(*b), *a).map(Ordering::reverse),
            _ => None,
        }
    }

    /// Whether two values are the same. `work` counts what had to be looked at.
    pub(super) fn equals(&self, other: &Val<'a>, work: &Work) -> Evaluated<bool> {
        work.count(1);
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Type(a), Self::Type(b)) => type_name(a) == type_name(b),
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b, work)?,
                (a, b) => a.is_none() && b.is_none(),
            },
            (Self::Quantity(a), Self::Quantity(b)) => a.compare(b) == Ordering::Equal,
            (Self::Url(a), Self::Url(b)) => a == b,
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::NamedFormat(a), Self::NamedFormat(b)) => a == b,
            (Self::JsonMap(a, of), Self::JsonMap(b, as_well)) if std::ptr::eq(*of, *as_well) => {
                equal_maps(a, b, of, work)
            }
            (Self::JsonList(a, of), Self::JsonList(b, as_well)) if std::ptr::eq(*of, *as_well) => {
                equal_lists(a, b, of, work)
            }
            (Self::Map(_) | Self::JsonMap(..), Self::Map(_) | Self::JsonMap(..)) => {
                if self.size() != other.size() {
                    return Ok(false);
                }
                for key in self.keys() {
                    let (Some(mine), Some(theirs)) = (self.entry(&key), other.entry(&key)) else { return Ok(false) };
                    if !mine?.equals(&theirs?, work)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Self::List(_) | Self::JsonList(..), Self::List(_) | Self::JsonList(..)) => {
                if self.list_len() != other.list_len() {
                    return Ok(false);
                }
                if matches!(self, Self::JsonList(_, Decl { shape: Shape::List { keys: ListKeys::Set, .. }, .. })) {
                    return self.has_all(other, work);
                }
                let (mine, theirs) = (self.items()?, other.items()?);
                for (mine, theirs) in mine.iter().zip(&theirs) {
                    if !mine.equals(theirs, work)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => self.compare(other) == Some(Ordering::Equal),
        })
    }

    /// Whether an item of the list equals the value.
    pub(super) fn has(&self, value: &Val<'a>, work: &Work) -> Evaluated<bool> {
        let length = self.list_len().ok_or_else(Fault::no_such_overload)?;
        for item in (0..length).filter_map(|index| self.item(index)) {
            if item?.equals(value, work)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether every item of the other list is an item of this one.
    pub(super) fn has_all(&self, other: &Val<'a>, work: &Work) -> Evaluated<bool> {
        for item in other.items()? {
            if !self.has(&item, work)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Counts comparisons. Kubernetes charges for the size of the outermost container only and relies on the request's
/// deadline for the rest; here the count is the deadline.
#[derive(Debug, Default)]
pub(super) struct Work(Cell<u64>);

impl Work {
    pub(super) fn count(&self, more: u64) {
        self.0.set(self.0.get().saturating_add(more));
    }

    pub(super) fn done(&self) -> u64 {
        self.0.get()
    }
}

pub(super) fn code_points(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The name of a type as `type()` shows it; what is inside of lists and maps does not matter.
pub(super) fn type_name(of: &Type) -> &'static str {
    match of {
        Type::Dyn | Type::Var(_) | Type::Error => "dyn",
        Type::Null => "null_type",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Uint => "uint",
        Type::Double => "double",
        Type::Text => "string",
        Type::Bytes => "bytes",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Duration => "google.protobuf.Duration",
        Type::List(_) => "list",
        Type::Map(..) => "map",
        Type::Object(_) => "object",
        Type::Meta(_) => "type",
        Type::Optional(_) => "optional_type",
        Type::Opaque(name) => name,
    }
}

fn compare_with_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // Every i64 and u64 is below.
    if double >= 2f64.powi(64) {
        return Some(Ordering::Less);
    }
    if double < -(2f64.powi(63)) {
        return Some(Ordering::Greater);
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is within the range of u64 and i64")]
    let floor = double.floor() as i128;
    Some(whole.cmp(&floor).then(if double.fract() == 0.0 { Ordering::Equal } else { Ordering::Less }))
}

/// Two maps or objects of the same declaration.
fn equal_maps(a: &Map<String, Json>, b: &Map<String, Json>, decl: &Decl, work: &Work) -> bool {
    work.count(a.len() as u64);
    let of = |key: &String| match &decl.shape {
        Shape::Map { values } => Some(values),
        Shape::Object { fields } => fields.values().find(|field| field.name == *key).map(|field| &field.decl),
        _ => None,
    };
    a.len() == b.len()
        && a.iter().all(|(key, mine)| b.get(key).is_some_and(|theirs| equal(mine, theirs, of(key), work)))
}

fn equal(a: &Json, b: &Json, decl: Option<&Arc<Decl>>, work: &Work) -> bool {
    match (a, b, decl) {
        (Json::Object(a), Json::Object(b), Some(decl)) => equal_maps(a, b, decl, work),
        (Json::Array(a), Json::Array(b), Some(decl)) => equal_lists(a, b, decl, work),
        (Json::Number(a), Json::Number(b), _) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Two lists of the same declaration: order matters only where the list is atomic.
fn equal_lists(a: &[Json], b: &[Json], decl: &Decl, work: &Work) -> bool {
    let Shape::List { items, keys } = &decl.shape else { return a == b };
    if a.len() != b.len() {
        return false;
    }
    work.count(a.len() as u64);
    match keys {
        ListKeys::Atomic => a.iter().zip(b).all(|(a, b)| equal(a, b, Some(items), work)),
        ListKeys::Set => {
            let mine: HashSet<String> = a.iter().map(Json::to_string).collect();
            b.iter().all(|item| mine.contains(&item.to_string()))
        }
        ListKeys::Map(keys) => {
            let key = |item: &Json| keys.iter().map(|key| item.get(key).map(Json::to_string)).collect::<Vec<_>>();
            let mine: HashMap<_, &Json> = a.iter().map(|item| (key(item), item)).collect();
            b.iter().all(|theirs| mine.get(&key(theirs)).is_some_and(|mine| equal(mine, theirs, Some(items), work)))
        }
    }
}
