//! What a schema says about how values are owned and merged: which maps and lists are wholes, and which consist of
//! parts that different writers may own.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::schema::Schema;

/// `metadata`, which is the same everywhere and is not part of the schemas of custom resources.
static METADATA: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "type": "object",
        "properties": {
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "creationTimestamp": {"type": "string", "format": "date-time"},
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": {"type": "string", "format": "date-time"},
            "finalizers": {
                "type": "array", "items": {"type": "string"},
                "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": {"type": "string"},
            "generation": {"type": "integer"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "managedFields": {
                "type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic",
            },
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "blockOwnerDeletion": {"type": "boolean"},
                        "controller": {"type": "boolean"},
                        "kind": {"type": "string"},
                        "name": {"type": "string"},
                        "uid": {"type": "string"},
                    },
                },
            },
            "resourceVersion": {"type": "string"},
            "selfLink": {"type": "string"},
            "uid": {"type": "string"},
        },
    })
});

/// `apiVersion` and `kind`.
static TEXT: LazyLock<Value> = LazyLock::new(|| json!({"type": "string"}));

/// What is known about the values at one place of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// What a node of a schema declares.
    Declared {
        /// The node.
        node: &'a Map<String, Value>,
        /// Fields that are not declared are kept: this node or one above it says so.
        open: bool,
        /// An object of its own, with `apiVersion`, `kind` and `metadata`.
        object: bool,
    },
    /// Nothing is known: maps consist of their fields, lists are wholes.
    Deduced,
    /// Nothing is known inside a list: everything is a whole.
    Opaque,
}

/// The three kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Map,
    List,
    Scalar,
}

/// How the items of a list are told apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Items<'a> {
    /// They are not: the list is a whole.
    Whole,
    /// By their value.
    Set,
    /// By these fields.
    Keyed(Keys<'a>),
}

/// The fields that tell items apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Keys<'a> {
    /// `x-kubernetes-list-map-keys`.
    Many(&'a [Value]),
    /// `x-kubernetes-patch-merge-key`.
    One(&'a str),
}

impl<'a> Keys<'a> {
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a str> {
        let (many, one) = match self {
            Self::Many(keys) => (keys, None),
            Self::One(key) => (&[] as &[Value], Some(key)),
        };
        many.iter().filter_map(Value::as_str).chain(one)
    }
}

impl<'a> Shape<'a> {
    /// A whole object.
    pub(crate) fn of(schema: &'a Schema) -> Self {
        match Self::from_node(schema.raw(), false) {
            Self::Declared { node, open, .. } => Self::Declared { node, open, object: true },
            other => other,
        }
    }

    fn from_node(node: &'a Value, open: bool) -> Self {
        let Value::Object(node) = node else { return Self::Deduced };
        Self::Declared {
            open: open || is_true(node, "x-kubernetes-preserve-unknown-fields"),
            object: is_true(node, "x-kubernetes-embedded-resource"),
            node,
        }
    }

    /// What a value here is treated as. Without a value, or with null, it is what it may be, maps first.
    pub(crate) fn kind(self, value: Option<&Value>) -> Kind {
        if let Self::Declared { node, .. } = self {
            match node.get("type").and_then(Value::as_str) {
                Some("object") => return Kind::Map,
                Some("array") => return Kind::List,
                Some(_) => return Kind::Scalar,
                None => {}
            }
        }
        match value {
            None | Some(Value::Null | Value::Object(_)) => Kind::Map,
            Some(Value::Array(_)) => Kind::List,
            Some(_) => Kind::Scalar,
        }
    }

    /// Whether a map here is a whole.
    pub(crate) fn whole_map(self) -> bool {
        match self {
            Self::Declared { node, .. } => node.get("x-kubernetes-map-type").is_some_and(|kind| kind == "atomic"),
            Self::Deduced => false,
            Self::Opaque => true,
        }
    }

    /// The shape of a field that is declared by name, as in a struct.
    pub(crate) fn named(self, field: &str) -> Option<Self> {
        let Self::Declared { node, open, object } = self else { return None };
        if object {
            match field {
                "metadata" => return Some(Self::from_node(&METADATA, false)),
                "apiVersion" | "kind" => return Some(Self::from_node(&TEXT, false)),
                _ => {}
            }
        }
        Some(Self::from_node(node.get("properties")?.get(field)?, open))
    }

    /// The shape of fields that are not declared by name; `None` if the schema does not allow them.
    pub(crate) fn unnamed(self) -> Option<Self> {
        let (node, open) = match self {
            Self::Declared { node, open, .. } => (node, open),
            other => return Some(other),
        };
        match node.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(Self::Deduced),
            Some(schema) => Some(Self::from_node(schema, open)),
            None if open => Some(Self::Deduced),
            None if node.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) => Some(Self::Deduced),
            None => None,
        }
    }

    /// The shape of a field; `None` if the schema does not allow it.
    pub(crate) fn field(self, field: &str) -> Option<Self> {
        self.named(field).or_else(|| self.unnamed())
    }

    /// How the items of a list here are told apart.
    pub(crate) fn items(self) -> Items<'a> {
        let Self::Declared { node, .. } = self else { return Items::Whole };
        match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => Items::Set,
            Some("map") => match node.get("x-kubernetes-list-map-keys") {
                Some(Value::Array(keys)) => Items::Keyed(Keys::Many(keys)),
                _ => Items::Whole,
            },
            None if self.merges() => match self.merge_key() {
                Some(key) => Items::Keyed(Keys::One(key)),
                None => Items::Set,
            },
            _ => Items::Whole,
        }
    }

    /// The shape of the items of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Declared { node, open, .. } => {
                node.get("items").map_or(Self::Opaque, |items| Self::from_node(items, open))
            }
            Self::Deduced | Self::Opaque => Self::Opaque,
        }
    }

    /// What a field is if it is left out.
    pub(crate) fn default_of(self, field: &str) -> Option<&'a Value> {
        let Self::Declared { node, .. } = self else { return None };
        node.get("properties")?.get(field)?.get("default")
    }

    /// What a value must be, for scalars: `string`, `integer`, …; `None` if anything may be.
    pub(crate) fn scalar(self) -> Option<&'a str> {
        let Self::Declared { node, .. } = self else { return None };
        match node.get("type").and_then(Value::as_str)? {
            "string" => match node.get("format").and_then(Value::as_str) {
                None | Some("" | "byte") => Some("string"),
                Some(_) => None,
            },
            other => Some(other),
        }
    }

    /// Whether strategic merge patches merge here, instead of replacing the list.
    pub(crate) fn merges(self) -> bool {
        self.strategies().any(|strategy| strategy == "merge")
    }

    /// Whether strategic merge patches replace a map here.
    pub(crate) fn replaces(self) -> bool {
        self.strategies().any(|strategy| strategy == "replace")
    }

    fn strategies(self) -> impl Iterator<Item = &'a str> {
        let text = match self {
            Self::Declared { node, .. } => node.get("x-kubernetes-patch-strategy").and_then(Value::as_str),
            _ => None,
        };
        text.into_iter().flat_map(|text| text.split(','))
    }

    /// `x-kubernetes-patch-merge-key`.
    pub(crate) fn merge_key(self) -> Option<&'a str> {
        let Self::Declared { node, .. } = self else { return None };
        node.get("x-kubernetes-patch-merge-key").and_then(Value::as_str)
    }
}

fn is_true(node: &Map<String, Value>, key: &str) -> bool {
    node.get(key).is_some_and(|value| value == &Value::Bool(true))
}
