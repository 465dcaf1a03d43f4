//! What a schema says about a value, as far as expressions need to know: its type.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use schema::{Kind, ListType, Node};

use super::parser::RESERVED;

/// What expressions know about the value at one place of an object.
#[derive(Debug)]
pub(super) struct Decl {
    pub(super) shape: Shape,
    pub(super) nullable: bool,
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

static TEXT: LazyLock<Arc<Decl>> = LazyLock::new(|| Arc::new(Decl::plain(Shape::Text)));

impl Decl {
    fn plain(shape: Shape) -> Self {
        Self { shape, nullable: false }
    }

    /// Reads a schema. `None` is a value that expressions cannot see, such as one without a type.
    pub(super) fn read(node: &Node) -> Option<Self> {
        Some(Self { shape: Self::shape(node)?, nullable: node.nullable })
    }

    fn shape(node: &Node) -> Option<Shape> {
        if node.int_or_string {
            return Some(Shape::IntOrString);
        }
        Some(match node.kind? {
            Kind::Array => {
                let items = Self::read(node.items.as_deref()?)?;
                let keys = match node.list_type {
                    Some(ListType::Set) => ListKeys::Set,
                    Some(ListType::Map) => ListKeys::Map(node.list_map_keys.clone()),
                    Some(ListType::Atomic) | None => ListKeys::Atomic,
                };
                Shape::List { items: Arc::new(items), keys }
            }
            Kind::Object => return Self::object(node),
            Kind::String => match node.limits.format.as_str() {
                "byte" => Shape::Bytes,
                "duration" => Shape::Duration,
                "date" => Shape::Date,
                "date-time" => Shape::DateTime,
                _ => Shape::Text,
            },
            Kind::Boolean => Shape::Bool,
            Kind::Number => Shape::Double,
            Kind::Integer => Shape::Int,
        })
    }

    fn object(node: &Node) -> Option<Shape> {
        if let Some(values) = node.additional_node() {
            return Some(Shape::Map { values: Arc::new(Self::read(values)?) });
        }
        let mut fields = BTreeMap::new();
        for (name, property) in &node.properties {
            if node.resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                continue;
            }
            if let (Some(decl), Some(escaped)) = (Self::read(property), escape(name)) {
                fields.insert(escaped, Field { name: name.clone(), decl: Arc::new(decl) });
            }
        }
        if node.resource {
            let metadata = ["generateName", "name"].map(|name| (name.to_owned(), Field::text(name))).into();
            let metadata = Self::plain(Shape::Object { fields: metadata });
            fields.insert("apiVersion".to_owned(), Field::text("apiVersion"));
            fields.insert("kind".to_owned(), Field::text("kind"));
            fields.insert("metadata".to_owned(), Field { name: "metadata".to_owned(), decl: Arc::new(metadata) });
        }
        Some(Shape::Object { fields })
    }

    /// The field by the name that expressions use.
    pub(super) fn field(&self, escaped: &str) -> Option<&Field> {
        match &self.shape {
            Shape::Object { fields } => fields.get(escaped),
            _ => None,
        }
    }
}

impl Field {
    fn text(name: &str) -> Self {
        Self { name: name.to_owned(), decl: Arc::clone(&TEXT) }
    }
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
