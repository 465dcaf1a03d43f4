//! What a schema says about a value, as far as expressions need to know: its type, and how big it can get.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::parser::RESERVED;
use crate::schema::{Kind, ListType, Node};

/// As much as one request can carry; nothing in an object is bigger.
pub(super) const REQUEST_BYTES: u64 = 3 * 1024 * 1024;

/// What expressions know about the value at one place of an object.
#[derive(Debug)]
pub(super) struct Decl {
    pub(super) shape: Shape,
    pub(super) nullable: bool,
    /// How many items, entries or bytes there can be.
    pub(super) most: u64,
    /// The least number of bytes that it takes as JSON.
    pub(super) least_bytes: u64,
}

#[derive(Debug)]
pub(super) enum Shape {
    IntOrString,
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Duration,
    Date,
    DateTime,
    List {
        items: Arc<Decl>,
        keys: ListKeys,
    },
    Map {
        values: Arc<Decl>,
    },
    /// Fields by the name that expressions use.
    Object {
        fields: BTreeMap<String, Field>,
    },
}

#[derive(Debug)]
pub(super) struct Field {
    /// The name in the object.
    pub(super) name: String,
    pub(super) decl: Arc<Decl>,
}

/// `x-kubernetes-list-type`: what makes two lists equal.
#[derive(Debug)]
pub(super) enum ListKeys {
    Atomic,
    Set,
    Map(Vec<String>),
}

static TEXT: LazyLock<Arc<Decl>> = LazyLock::new(|| Arc::new(Decl::plain(Shape::Text, REQUEST_BYTES - 2, 2)));

impl Decl {
    fn plain(shape: Shape, most: u64, least_bytes: u64) -> Self {
        Self { shape, nullable: false, most, least_bytes }
    }

    /// Reads a schema. `None` is a value that expressions cannot see, such as one without a type.
    pub(super) fn read(node: &Node) -> Option<Self> {
        let mut decl = Self::read_shape(node)?;
        decl.nullable = node.nullable;
        Some(decl)
    }

    fn read_shape(node: &Node) -> Option<Self> {
        let limits = &node.limits;
        if node.int_or_string {
            let most = limits.max_length.map_or(REQUEST_BYTES - 2, |most| count(most).saturating_mul(4));
            return Some(Self::plain(Shape::IntOrString, most, 1));
        }
        Some(match node.kind? {
            Kind::Array => {
                let items = Self::read(node.items.as_deref()?)?;
                let most = limits.max_items.map_or((REQUEST_BYTES - 2) / (items.least_bytes + 1), count);
                let keys = match node.list_type {
                    Some(ListType::Set) => ListKeys::Set,
                    Some(ListType::Map) => ListKeys::Map(node.list_map_keys.clone()),
                    Some(ListType::Atomic) | None => ListKeys::Atomic,
                };
                Self::plain(Shape::List { items: Arc::new(items), keys }, most, 2)
            }
            Kind::Object => return Self::read_object(node),
            Kind::String => Self::read_string(node),
            Kind::Boolean => Self::plain(Shape::Bool, 0, 4),
            Kind::Number => Self::plain(Shape::Double, 0, 1),
            Kind::Integer => Self::plain(Shape::Int, 0, 1),
        })
    }

    fn read_object(node: &Node) -> Option<Self> {
        let limits = &node.limits;
        if let Some(values) = node.additional_node() {
            let values = Self::read(values)?;
            let most = limits.max_properties.map_or((REQUEST_BYTES - 2) / (values.least_bytes + 6), count);
            return Some(Self::plain(Shape::Map { values: Arc::new(values) }, most, 2));
        }
        let mut fields = BTreeMap::new();
        let mut least_bytes = 2;
        for (name, property) in &node.properties {
            if node.resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let Some(decl) = Self::read(property) else { continue };
            if limits.required.contains(name) && property.default.is_none() {
                least_bytes += name.len() as u64 + decl.least_bytes + 4;
            }
            if let Some(escaped) = escape(name) {
                fields.insert(escaped, Field { name: name.clone(), decl: Arc::new(decl) });
            }
        }
        if node.resource {
            let metadata = ["generateName", "name"].map(|name| (name.to_owned(), Field::text(name))).into();
            let metadata = Self::plain(Shape::Object { fields: metadata }, 0, 2);
            fields.insert("apiVersion".to_owned(), Field::text("apiVersion"));
            fields.insert("kind".to_owned(), Field::text("kind"));
            fields.insert("metadata".to_owned(), Field { name: "metadata".to_owned(), decl: Arc::new(metadata) });
        }
        Some(Self::plain(Shape::Object { fields }, 0, least_bytes))
    }

    fn read_string(node: &Node) -> Self {
        let limits = &node.limits;
        let limit = limits.max_length.map(count);
        match limits.format.as_str() {
            "byte" => Self::plain(Shape::Bytes, limit.unwrap_or(REQUEST_BYTES - 2), 2),
            "duration" => Self::plain(Shape::Duration, 19, 4),
            "date" => Self::plain(Shape::Date, 12, 12),
            "date-time" => Self::plain(Shape::DateTime, 32, 22),
            _ => {
                // A code point is up to four bytes.
                let limit = limit.map(|limit| limit.saturating_mul(4));
                let longest = limits.values.iter().map(|value| value.as_str().map_or(0, str::len) as u64).max();
                Self::plain(Shape::Text, limit.or(longest).unwrap_or(REQUEST_BYTES - 2), 2)
            }
        }
    }

    /// The field by the name that expressions use.
    pub(super) fn field(&self, escaped: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object { fields } => fields.get(escaped),
            _ => None,
        }
    }

    /// How often the value can stand in one object if nothing limits it.
    pub(super) fn most_in_a_request(&self) -> u64 {
        REQUEST_BYTES / (self.least_bytes + 1)
    }
}

impl Field {
    fn text(name: &str) -> Self {
        Self { name: name.to_owned(), decl: Arc::clone(&TEXT) }
    }
}

/// A limit; a negative one is zero.
pub(super) fn count(limit: i64) -> u64 {
    u64::try_from(limit).unwrap_or(0)
}

/// A field's name as expressions spell it; `None` if they cannot.
pub(super) fn escape(name: &str) -> Option<String> {
    const LITERALS: [&str; 4] = ["true", "false", "null", "in"];
    if LITERALS.contains(&name) || RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let first = name.chars().next()?;
    if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-' | '/' | ' '))
        || first.is_ascii_digit()
    {
        return None;
    }
    let escaped = name
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    (!escaped.contains(' ')).then_some(escaped)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn only_what_an_expression_cannot_spell_is_escaped() {
        for (name, escaped) in [
            ("my_field", Some("my_field")),
            ("my__field", Some("my__underscores__field")),
            ("a.b-c/d", Some("a__dot__b__dash__c__slash__d")),
            ("namespace", Some("__namespace__")),
            ("namespaces", Some("namespaces")),
            ("int", Some("int")),
            ("true", Some("__true__")),
            ("1a", None),
            ("a b", None),
            ("", None),
            ("$ref", None),
            ("é", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped, "{name}");
        }
    }
}
