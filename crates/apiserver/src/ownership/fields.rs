//! Sets of fields.
//!
//! A set is kept as `fieldsV1` writes it, so that reading and writing it costs nothing: a map from the parts of a value
//! to what is in the set below them. A part that is in the set itself has a `.` in its map, or nothing at all.

use std::cmp::Ordering;

use serde_json::map::Entry;
use serde_json::{Map, Value};

/// The mark of a part that is in the set while others below it are, too.
const ITSELF: &str = ".";

/// A set of fields below some value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSet(Map<String, Value>);

/// What is in a set about one part of a value.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The part itself is in the set.
    pub(crate) member: bool,
    /// What is in the set below it.
    pub(crate) below: FieldSet,
}

impl Node {
    pub(crate) fn leaf() -> Self {
        Self { member: true, below: FieldSet::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    fn into_map(self) -> Map<String, Value> {
        let mut below = self.below.0;
        if self.member && !below.is_empty() {
            below.insert(ITSELF.to_owned(), Value::Object(Map::new()));
        }
        below
    }
}

/// What a set says about one part of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'a>(&'a Map<String, Value>);

impl<'a> Part<'a> {
    /// Whether the part itself is in the set.
    pub(crate) fn is_member(self) -> bool {
        is_member(self.0)
    }

    /// Whether anything below it is.
    pub(crate) fn has_parts(self) -> bool {
        self.parts().next().is_some()
    }

    /// What a set says about a part of this part.
    pub(crate) fn get(self, element: &str) -> Option<Part<'a>> {
        if element == ITSELF { None } else { self.0.get(element)?.as_object().map(Part) }
    }

    pub(crate) fn parts(self) -> impl Iterator<Item = (&'a String, Part<'a>)> {
        parts(self.0).map(|(element, below)| (element, Part(below)))
    }

    fn each_path(self, prefix: &str, visit: &mut impl FnMut(String)) {
        let mut parts: Vec<(&String, Part<'_>)> = self.parts().collect();
        parts.sort_by(|(left, _), (right, _)| in_order(left, right));
        for (element, part) in &parts {
            if part.is_member() {
                visit(format!("{prefix}{}", shown(element)));
            }
        }
        for (element, part) in &parts {
            if part.has_parts() {
                part.each_path(&format!("{prefix}{}", shown(element)), visit);
            }
        }
    }
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The set as what is said about the whole value.
    pub(crate) fn as_part(&self) -> Part<'_> {
        Part(&self.0)
    }

    /// Adds what is in the set about one part.
    pub(crate) fn insert(&mut self, element: String, node: Node) {
        if node.is_empty() {
            return;
        }
        let node = node.into_map();
        match self.0.entry(element) {
            Entry::Vacant(place) => {
                place.insert(Value::Object(node));
            }
            Entry::Occupied(mut present) => {
                if let Value::Object(present) = present.get_mut() {
                    add_part(present, node);
                }
            }
        }
    }

    /// Adds a field by the names that lead to it.
    pub(crate) fn insert_path(&mut self, path: &[&str]) {
        if let [first, rest @ ..] = path {
            let mut node = Node { member: rest.is_empty(), below: Self::default() };
            node.below.insert_path(rest);
            self.insert(field(first), node);
        }
    }

    /// Union.
    pub(crate) fn add(&mut self, other: Self) {
        if self.0.is_empty() {
            self.0 = other.0;
        } else {
            add_parts(&mut self.0, other.0);
        }
    }

    /// Difference: a part that is taken leaves what is below it.
    pub(crate) fn subtract(&mut self, other: &Self) {
        subtract(&mut self.0, &other.0);
    }

    /// Difference: a part that is taken takes what is below it along.
    pub(crate) fn subtract_whole(&mut self, other: &Self) {
        subtract_whole(&mut self.0, &other.0);
    }

    /// Intersection.
    pub(crate) fn common(&self, other: &Self) -> Self {
        Self(common(&self.0, &other.0))
    }

    /// Whether all that is in this set is in the other.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        is_within(&self.0, &other.0)
    }

    /// Calls `visit` for each part in the set with its path as it is shown to people, parts before what is below them.
    pub(crate) fn each_path(&self, prefix: &str, visit: &mut impl FnMut(String)) {
        self.as_part().each_path(prefix, visit);
    }

    /// Reads `fieldsV1` that somebody else has written. What a later version of Kubernetes may have added is skipped;
    /// `None` is nonsense.
    pub(crate) fn parse(fields: &Value) -> Option<Self> {
        match fields {
            Value::Object(fields) => Some(Self(parse(fields)?.below.0)),
            Value::Null => Some(Self::default()),
            _ => None,
        }
    }

    /// Takes `fieldsV1` that we have written.
    pub(crate) fn trusted(fields: Value) -> Self {
        match fields {
            Value::Object(fields) => Self(fields),
            _ => Self::default(),
        }
    }

    /// Writes `fieldsV1`.
    pub(crate) fn into_json(self) -> Value {
        Value::Object(self.0)
    }

    /// Calls `change` for each part that has parts; what it returns true for becomes a leaf, else its parts are visited.
    pub(crate) fn simplify<C: Copy>(&mut self, context: C, change: &impl Fn(C, &str) -> Simplified<C>) {
        simplify(&mut self.0, context, change);
    }
}

/// What is to be done with a part that has parts.
pub(crate) enum Simplified<C> {
    /// Nothing.
    Stays,
    /// It becomes a leaf.
    Leaf,
    /// Its parts are looked at.
    Within(C),
}

fn simplify<C: Copy>(set: &mut Map<String, Value>, context: C, change: &impl Fn(C, &str) -> Simplified<C>) {
    for (element, below) in set {
        let Value::Object(below) = below else { continue };
        if parts(below).next().is_none() {
            continue;
        }
        match change(context, element) {
            Simplified::Stays => {}
            Simplified::Leaf => below.clear(),
            Simplified::Within(context) => simplify(below, context, change),
        }
    }
}

fn is_member(part: &Map<String, Value>) -> bool {
    part.is_empty() || part.contains_key(ITSELF)
}

fn parts(set: &Map<String, Value>) -> impl Iterator<Item = (&String, &Map<String, Value>)> {
    set.iter()
        .filter(|(element, _)| element.as_str() != ITSELF)
        .filter_map(|(element, below)| Some((element, below.as_object()?)))
}

fn mark(part: &mut Map<String, Value>) {
    if !part.is_empty() {
        part.entry(ITSELF).or_insert_with(|| Value::Object(Map::new()));
    }
}

fn add_part(part: &mut Map<String, Value>, other: Map<String, Value>) {
    let member = is_member(part) || is_member(&other);
    add_parts(part, other);
    if member {
        mark(part);
    }
}

fn add_parts(set: &mut Map<String, Value>, other: Map<String, Value>) {
    for (element, below) in other {
        if element == ITSELF {
            continue;
        }
        let Value::Object(below) = below else { continue };
        match set.get_mut(&element).and_then(Value::as_object_mut) {
            Some(present) => add_part(present, below),
            None => {
                set.insert(element, Value::Object(below));
            }
        }
    }
}

fn subtract(set: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (element, taken) in parts(other) {
        let Some(below) = set.get_mut(element).and_then(Value::as_object_mut) else { continue };
        let member = is_member(below) && !is_member(taken);
        below.remove(ITSELF);
        subtract(below, taken);
        if member {
            mark(below);
        } else if below.is_empty() {
            set.remove(element);
        }
    }
}

fn subtract_whole(set: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (element, taken) in parts(other) {
        if is_member(taken) {
            set.remove(element);
            continue;
        }
        let Some(below) = set.get_mut(element).and_then(Value::as_object_mut) else { continue };
        let member = is_member(below);
        below.remove(ITSELF);
        subtract_whole(below, taken);
        if member {
            mark(below);
        } else if below.is_empty() {
            set.remove(element);
        }
    }
}

fn common(left: &Map<String, Value>, right: &Map<String, Value>) -> Map<String, Value> {
    let mut both = Map::new();
    let (fewer, more) = if left.len() < right.len() { (left, right) } else { (right, left) };
    for (element, below) in parts(fewer) {
        let Some(other) = more.get(element).and_then(Value::as_object) else { continue };
        let member = is_member(below) && is_member(other);
        let mut below = common(below, other);
        if member {
            mark(&mut below);
        }
        if member || !below.is_empty() {
            both.insert(element.clone(), Value::Object(below));
        }
    }
    both
}

fn is_within(set: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    parts(set).all(|(element, below)| {
        let other = other.get(element).and_then(Value::as_object);
        other.is_some_and(|other| (!is_member(below) || is_member(other)) && is_within(below, other))
    })
}

fn parse(fields: &Map<String, Value>) -> Option<Node> {
    let mut node = Node::default();
    for (key, below) in fields {
        let element = match key.split_once(':') {
            None if key == ITSELF => {
                node.member = true;
                continue;
            }
            Some(("f", _)) => key.clone(),
            Some(("k", text)) => {
                let fields: Map<String, Value> = serde_json::from_str(text).ok()?;
                keyed(&fields.iter().map(|(name, value)| (name.as_str(), value)).collect::<Vec<_>>())
            }
            Some(("v", text)) => item(&serde_json::from_str(text).ok()?),
            Some(("i", text)) => format!("i:{}", text.parse::<i64>().ok()?),
            Some((kind, _)) if kind.chars().count() == 1 => continue,
            _ => return None,
        };
        let part = match below {
            Value::Object(below) => parse(below)?,
            Value::Null => Node::leaf(),
            _ => return None,
        };
        node.below.insert(element, part);
    }
    node.member |= node.below.is_empty();
    Some(node)
}

/// `f:name`: a field.
pub(crate) fn field(name: &str) -> String {
    let mut element = String::with_capacity(name.len() + 2);
    element.push_str("f:");
    element.push_str(name);
    element
}

/// `k:{"name":"x"}`: the item of a list that has these fields, which are sorted.
pub(crate) fn keyed(fields: &[(&str, &Value)]) -> String {
    let mut element = "k:{".to_owned();
    for (index, (name, value)) in fields.iter().enumerate() {
        if index > 0 {
            element.push(',');
        }
        push_text(&mut element, name);
        element.push(':');
        push_value(&mut element, value);
    }
    element.push('}');
    element
}

/// `v:"x"`: an item of a set.
pub(crate) fn item(value: &Value) -> String {
    let mut element = "v:".to_owned();
    push_value(&mut element, value);
    element
}

fn push_value(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => push_text(out, text),
        other => out.push_str(&as_go_writes(other)),
    }
}

fn push_text(out: &mut String, text: &str) {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(|byte| plain(byte) || byte == b' ') {
        out.reserve(text.len() + 2);
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&as_go_writes(&Value::from(text)));
    }
}

/// The name of the field that an element is about, if it is about one.
pub(crate) fn name_of(element: &str) -> Option<&str> {
    element.strip_prefix("f:")
}

/// An element as it is shown to people: `.name`, `[name="x"]`, `[="x"]`, `[0]`.
pub(crate) fn shown(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", text)) => {
            let fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", fields.join(","))
        }
        Some(("v", text)) => {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            format!("[={value}]")
        }
        Some((_, text)) => format!("[{text}]"),
        None => element.to_owned(),
    }
}

/// The order in which elements are shown: numbers by their value.
fn in_order(left: &str, right: &str) -> Ordering {
    fn kind(element: &str) -> u8 {
        match element.as_bytes().first() {
            Some(b'f') => 0,
            Some(b'k') => 1,
            Some(b'v') => 2,
            _ => 3,
        }
    }
    let value = |element: &str| -> Value {
        let text = element.split_once(':').map_or("", |(_, text)| text);
        serde_json::from_str(text).unwrap_or_default()
    };
    match kind(left).cmp(&kind(right)) {
        Ordering::Equal if kind(left) > 0 => compare_values(&value(left), &value(right)),
        Ordering::Equal => left.cmp(right),
        order => order,
    }
}

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
        (Value::Number(left), Value::Number(right)) => {
            left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default())
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Object(left), Value::Object(right)) => {
            let differing = left.iter().zip(right).map(|((left_name, left), (right_name, right))| {
                left_name.cmp(right_name).then_with(|| compare_values(left, right))
            });
            differing.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        _ => rank(left).cmp(&rank(right)),
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
