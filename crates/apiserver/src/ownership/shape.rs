//! What a schema says about how values are owned and merged: which maps and lists are wholes, and which consist of
//! parts that different writers may own.

use std::slice;

use serde_json::Value;

use schema::{self, Additional, ListType, MapType, Node, Schema};

/// What is known about the values at one place of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// What a node of a schema declares.
    Declared {
        /// The node.
        node: &'a Node,
        /// Fields that are not declared are kept: this node or one above it says so.
        open: bool,
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
    Keyed(&'a [String]),
}

impl<'a> Shape<'a> {
    /// A whole object.
    pub(crate) fn of(schema: &'a Schema) -> Self {
        Self::from_node(schema.root(), false)
    }

    fn from_node(node: &'a Node, open: bool) -> Self {
        Self::Declared { node, open: open || node.preserve_unknown }
    }

    /// What a value here is treated as. Without a value, or with null, it is what it may be, maps first.
    pub(crate) fn kind(self, value: Option<&Value>) -> Kind {
        if let Self::Declared { node, .. } = self {
            match node.kind {
                Some(schema::Kind::Object) => return Kind::Map,
                Some(schema::Kind::Array) => return Kind::List,
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
            Self::Declared { node, .. } => node.map_type == Some(MapType::Atomic),
            Self::Deduced => false,
            Self::Opaque => true,
        }
    }

    /// The shape of a field that is declared by name, as in a struct.
    pub(crate) fn named(self, field: &str) -> Option<Self> {
        let Self::Declared { node, open } = self else { return None };
        if node.resource
            && let Some(known) = schema::known(field)
        {
            return Some(Self::from_node(known, false));
        }
        node.properties.get(field).map(|node| Self::from_node(node, open))
    }

    /// The shape of fields that are not declared by name; `None` if the schema does not allow them.
    pub(crate) fn unnamed(self) -> Option<Self> {
        let (node, open) = match self {
            Self::Declared { node, open } => (node, open),
            other => return Some(other),
        };
        match &node.additional {
            Some(Additional::Of(node)) => Some(Self::from_node(node, open)),
            Some(Additional::Any(true)) => Some(Self::Deduced),
            None if open || node.properties.is_empty() => Some(Self::Deduced),
            Some(Additional::Any(false)) | None => None,
        }
    }

    /// The shape of a field; `None` if the schema does not allow it.
    pub(crate) fn field(self, field: &str) -> Option<Self> {
        self.named(field).or_else(|| self.unnamed())
    }

    /// How the items of a list here are told apart.
    pub(crate) fn items(self) -> Items<'a> {
        let Self::Declared { node, .. } = self else { return Items::Whole };
        match node.list_type {
            Some(ListType::Set) => Items::Set,
            Some(ListType::Map) if !node.list_map_keys.is_empty() => Items::Keyed(&node.list_map_keys),
            None if self.merges() => match self.merge_key() {
                Some(_) => Items::Keyed(slice::from_ref(&node.patch_merge_key)),
                None => Items::Set,
            },
            _ => Items::Whole,
        }
    }

    /// The shape of the items of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Declared { node, open } => {
                node.items.as_ref().map_or(Self::Opaque, |items| Self::from_node(items, open))
            }
            Self::Deduced | Self::Opaque => Self::Opaque,
        }
    }

    /// What a field is if it is left out.
    pub(crate) fn default_of(self, field: &str) -> Option<&'a Value> {
        let Self::Declared { node, .. } = self else { return None };
        node.properties.get(field)?.default.as_ref()
    }

    /// What a scalar must be; `None` if it may be anything.
    pub(crate) fn scalar(self) -> Option<schema::Kind> {
        let Self::Declared { node, .. } = self else { return None };
        match node.kind? {
            schema::Kind::String if !matches!(node.limits.format.as_str(), "" | "byte") => None,
            kind => Some(kind),
        }
    }

    /// Whether strategic merge patches merge here, instead of replacing the list.
    pub(crate) fn merges(self) -> bool {
        self.has_strategy("merge")
    }

    /// Whether strategic merge patches replace a map here.
    pub(crate) fn replaces(self) -> bool {
        self.has_strategy("replace")
    }

    fn has_strategy(self, wanted: &str) -> bool {
        let Self::Declared { node, .. } = self else { return false };
        !node.patch_strategy.is_empty() && node.patch_strategy.split(',').any(|strategy| strategy == wanted)
    }

    /// `x-kubernetes-patch-merge-key`.
    pub(crate) fn merge_key(self) -> Option<&'a str> {
        let Self::Declared { node, .. } = self else { return None };
        (!node.patch_merge_key.is_empty()).then_some(node.patch_merge_key.as_str())
    }
}
