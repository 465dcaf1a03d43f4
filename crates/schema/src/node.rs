//! A schema, read: what one place in an object may hold, and what is below it.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde_json::{Map, Value};

use super::format::Format;
use super::meta;

/// What one place in an object may hold.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "a schema has that many switches")]
pub struct Node {
    /// `type`; none only where everything, or an integer or a string, is allowed.
    pub kind: Option<Kind>,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// Whether null is a value of its own.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`, or the object itself: `apiVersion`, `kind` and `metadata` are known.
    pub resource: bool,
    /// What is filled in when nothing is given.
    pub default: Option<Value>,
    /// For people.
    pub description: String,
    /// The fields that are declared. See [`Node::child`] for those that are known without being declared.
    pub properties: BTreeMap<String, Node>,
    /// `additionalProperties`.
    pub additional: Option<Additional>,
    /// `items`.
    pub items: Option<Box<Node>>,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<MapType>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,
    /// `x-kubernetes-patch-strategy` of built-ins: `merge`, `replace`, `retainKeys`, joined by commas.
    pub patch_strategy: String,
    /// `x-kubernetes-patch-merge-key` of built-ins.
    pub patch_merge_key: String,
    /// What values must fulfil beyond their type.
    pub limits: Limits,
    /// What is known of everything below, so that whole branches need no visit.
    pub(crate) below: Below,
}

/// `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
}

/// `additionalProperties`.
#[derive(Debug)]
pub enum Additional {
    /// Values of this form.
    Of(Box<Node>),
    /// Whatever, or nothing at all.
    Any(bool),
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// One value.
    Atomic,
    /// Items are unique, and are their own keys.
    Set,
    /// Items are objects with keys.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    /// One value.
    Atomic,
    /// Each field for itself.
    Granular,
}

/// One of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What is said when it is false.
    pub message: String,
    /// An expression that makes the message.
    pub message_expression: String,
    /// `FieldValueInvalid` and such.
    pub reason: Option<String>,
    /// Where the error is shown, below the place of the rule.
    pub field_path: String,
    /// Whether `oldSelf` is optional.
    pub optional_old_self: Option<bool>,
}

/// What values must fulfil beyond their type.
#[derive(Debug, Default)]
pub struct Limits {
    /// `maximum`.
    pub maximum: Option<f64>,
    /// Whether the maximum itself is too much.
    pub exclusive_maximum: bool,
    /// `minimum`.
    pub minimum: Option<f64>,
    /// Whether the minimum itself is too little.
    pub exclusive_minimum: bool,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// In characters.
    pub max_length: Option<i64>,
    /// In characters.
    pub min_length: Option<i64>,
    /// What some part of a string must match.
    pub pattern: Option<Pattern>,
    /// `format` as it is written, also where nobody checks it.
    pub format: String,
    /// `format`, if it is one that Kubernetes checks.
    pub checked_format: Option<Format>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `uniqueItems`, which CustomResourceDefinitions may not use.
    pub unique_items: bool,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// `enum`.
    pub values: Vec<Value>,
    /// All of these hold.
    pub all_of: Vec<Node>,
    /// At least one of these holds.
    pub any_of: Vec<Node>,
    /// Exactly one of these holds.
    pub one_of: Vec<Node>,
    /// This does not hold.
    pub not: Option<Box<Node>>,
}

/// A regular expression with the text that it was made from.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As it is written in the schema.
    pub source: String,
    /// Compiled.
    pub regex: Regex,
}

/// What is known of everything below a node.
#[derive(Debug, Default, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "these are independent of each other")]
pub(crate) struct Below {
    /// There are defaults.
    pub(crate) defaults: bool,
    /// There are lists whose items must be unique.
    pub(crate) keyed_lists: bool,
    /// There are embedded resources.
    pub(crate) resources: bool,
    /// There are rules.
    pub(crate) rules: bool,
}

impl Node {
    /// The schema of a field: declared, or known because this is a resource, or any other of a map.
    pub fn child(&self, key: &str) -> Option<&Node> {
        if self.resource
            && let Some(known) = meta::known(key)
        {
            return Some(known);
        }
        self.declared(key)
    }

    /// The schema of a field as it is written in the schema.
    pub fn declared(&self, key: &str) -> Option<&Node> {
        match self.properties.get(key) {
            Some(property) => Some(property),
            None => self.additional_node(),
        }
    }

    /// The schema of the values of a map.
    pub fn additional_node(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Of(node)) => Some(node),
            _ => None,
        }
    }

    /// The fields that are declared, with their schemas. Both sides are sorted, so one pass finds all pairs.
    pub(crate) fn pairs<'n, 'v>(
        &'n self,
        fields: &'v Map<String, Value>,
    ) -> impl Iterator<Item = (&'v str, &'v Value, &'n Node)> {
        let mut properties = self.properties.iter().peekable();
        fields.iter().filter_map(move |(key, field)| {
            while properties.next_if(|(name, _)| *name < key).is_some() {}
            let (_, property) = properties.next_if(|(name, _)| *name == key)?;
            Some((key.as_str(), field, property))
        })
    }

    /// Whether here or anywhere below are rules.
    pub fn has_rules(&self) -> bool {
        self.below.rules
    }

    /// Collects what is below from the children, which must be complete.
    pub(crate) fn look_below(&mut self) {
        let mut below = Below {
            defaults: self.default.is_some(),
            keyed_lists: matches!(self.list_type, Some(ListType::Set | ListType::Map)),
            resources: self.resource,
            rules: !self.rules.is_empty(),
        };
        let children = self.properties.values().chain(self.items.as_deref()).chain(self.additional_node());
        for child in children {
            below.defaults |= child.below.defaults;
            below.keyed_lists |= child.below.keyed_lists;
            below.resources |= child.below.resources;
            below.rules |= child.below.rules;
        }
        self.below = below;
    }
}

impl Kind {
    /// By name.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
