//! Sets of fields, as `fieldsV1` writes them down.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// `f:name`: a field.
    Field(String),
    /// `k:{"name":"x"}`: the item of a list that has these fields, in the order of their names.
    Key(Vec<(String, Scalar)>),
    /// `v:"x"`: an item of a set.
    Item(Scalar),
    /// `i:0`: an item by its place.
    Index(i64),
}

/// A value that tells items apart: numbers, texts, truths, and whatever else somebody wrote down.
#[derive(Debug, Clone)]
pub(crate) struct Scalar(pub(crate) Value);

/// A set of fields below some value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSet {
    parts: BTreeMap<Element, Node>,
}

/// What is in a set about one field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Node {
    /// The field itself is in the set.
    pub(crate) member: bool,
    /// What is in the set below it.
    pub(crate) below: FieldSet,
}

impl Node {
    /// The field and nothing below it.
    pub(crate) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    fn absorb(&mut self, other: Self) {
        self.member |= other.member;
        self.below.add(other.below);
    }
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub(crate) fn get(&self, element: &Element) -> Option<&Node> {
        self.parts.get(element)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Element, &Node)> {
        self.parts.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&Element, &mut Node)> {
        self.parts.iter_mut()
    }

    /// Adds what is in the set about one field.
    pub(crate) fn insert(&mut self, element: Element, node: Node) {
        if !node.is_empty() {
            self.parts.entry(element).or_default().absorb(node);
        }
    }

    /// Adds a field by the names that lead to it.
    pub(crate) fn insert_path(&mut self, path: &[&str]) {
        if let [first, rest @ ..] = path {
            let node = self.parts.entry(Element::Field((*first).to_owned())).or_default();
            if rest.is_empty() {
                node.member = true;
            } else {
                node.below.insert_path(rest);
            }
        }
    }

    /// Union.
    pub(crate) fn add(&mut self, other: Self) {
        if self.parts.is_empty() {
            self.parts = other.parts;
            return;
        }
        for (element, node) in other.parts {
            self.insert(element, node);
        }
    }

    /// Difference: a field that is taken leaves what is below it.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.parts.retain(|element, node| {
            if let Some(taken) = other.get(element) {
                node.member &= !taken.member;
                node.below.subtract(&taken.below);
            }
            !node.is_empty()
        });
    }

    /// Difference: a field that is taken takes what is below it along.
    pub(crate) fn subtract_whole(&mut self, other: &Self) {
        self.parts.retain(|element, node| {
            if let Some(taken) = other.get(element) {
                if taken.member {
                    return false;
                }
                node.below.subtract_whole(&taken.below);
            }
            !node.is_empty()
        });
    }

    /// Intersection.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let mut common = Self::default();
        for (element, node) in &self.parts {
            if let Some(theirs) = other.get(element) {
                let both = Node { member: node.member && theirs.member, below: node.below.common(&theirs.below) };
                if !both.is_empty() {
                    common.parts.insert(element.clone(), both);
                }
            }
        }
        common
    }

    /// Calls `visit` for each field of the set with its path as it is shown to people, fields before what is below them.
    pub(crate) fn each_path(&self, prefix: &str, visit: &mut impl FnMut(String)) {
        for (element, node) in &self.parts {
            if node.member {
                visit(format!("{prefix}{element}"));
            }
        }
        for (element, node) in &self.parts {
            if !node.below.is_empty() {
                node.below.each_path(&format!("{prefix}{element}"), visit);
            }
        }
    }

    /// Reads `fieldsV1`. What a later version of Kubernetes may have added is skipped; `None` is nonsense.
    pub(crate) fn parse(fields: &Value) -> Option<Self> {
        Self::parse_node(fields).map(|node| node.below)
    }

    fn parse_node(fields: &Value) -> Option<Node> {
        let mut node = Node::default();
        match fields {
            Value::Object(fields) => {
                for (key, below) in fields {
                    match Element::parse(key) {
                        Parsed::Itself => node.member = true,
                        Parsed::Unknown => {}
                        Parsed::Known(element) => node.below.insert(element, Self::parse_node(below)?),
                        Parsed::Nonsense => return None,
                    }
                }
            }
            Value::Null => {}
            _ => return None,
        }
        node.member |= node.below.is_empty();
        Some(node)
    }

    /// Writes `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        Value::Object(self.to_map())
    }

    fn to_map(&self) -> Map<String, Value> {
        self.parts
            .iter()
            .map(|(element, node)| {
                let mut below = node.below.to_map();
                if node.member && !below.is_empty() {
                    below.insert(".".to_owned(), Value::Object(Map::new()));
                }
                (element.to_key(), Value::Object(below))
            })
            .collect()
    }
}

enum Parsed {
    Itself,
    Known(Element),
    Unknown,
    Nonsense,
}

impl Element {
    fn parse(key: &str) -> Parsed {
        if key == "." {
            return Parsed::Itself;
        }
        let element = match key.split_once(':') {
            Some(("f", name)) => Some(Self::Field(name.to_owned())),
            Some(("k", text)) => match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => {
                    Some(Self::Key(fields.into_iter().map(|(name, value)| (name, Scalar(value))).collect()))
                }
                _ => None,
            },
            Some(("v", text)) => serde_json::from_str(text).ok().map(|value| Self::Item(Scalar(value))),
            Some(("i", text)) => text.parse().ok().map(Self::Index),
            Some((kind, _)) if kind.chars().count() == 1 => return Parsed::Unknown,
            _ => None,
        };
        element.map_or(Parsed::Nonsense, Parsed::Known)
    }

    fn to_key(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(fields) => {
                let fields: Map<String, Value> =
                    fields.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
                format!("k:{}", as_go_writes(&Value::Object(fields)))
            }
            Self::Item(value) => format!("v:{}", as_go_writes(&value.0)),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

/// JSON with the characters escaped that could end a script in a web page, as Go does it.
pub(crate) fn as_go_writes(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                f.write_str("[")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", value.0)?;
                }
                f.write_str("]")
            }
            Self::Item(value) => write!(f, "[={}]", value.0),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_values(&self.0, &other.0)
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

fn compare_values(left: &Value, right: &Value) -> Ordering {
    fn rank(value: &Value) -> u8 {
        match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differing = left.iter().zip(right).map(|(left, right)| compare_values(left, right));
            differing.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let differing = left.iter().zip(right).map(|((left_name, left), (right_name, right))| {
                left_name.cmp(right_name).then_with(|| compare_values(left, right))
            });
            differing.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}
