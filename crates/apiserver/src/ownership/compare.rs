//! Which fields a value has, and which ones differ between two values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{FieldSet, Node, field, item, keyed};
use super::shape::{Items, Kind, Shape};

/// What became of a value: the fields that came, changed and went.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Forgets these fields and all below them.
    pub(crate) fn without(mut self, excluded: &FieldSet) -> Self {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.subtract_whole(excluded);
        }
        self
    }

    /// What came or changed, and what went.
    pub(crate) fn into_written_and_removed(self) -> (FieldSet, FieldSet) {
        let mut written = self.modified;
        written.add(self.added);
        (written, self.removed)
    }
}

/// Compares two objects.
pub(crate) fn compare(old: &Value, new: &Value, shape: Shape<'_>) -> Changes {
    let mut change = Change::default();
    compare_at(Some(old), Some(new), shape, &mut change);
    Changes { added: change.added.below, modified: change.modified.below, removed: change.removed.below }
}

#[derive(Default)]
struct Change {
    added: Node,
    modified: Node,
    removed: Node,
}

fn compare_at(old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>, change: &mut Change) {
    match (old, new) {
        (None, Some(new)) => change.added = node_of(new, shape, Claim::All),
        (Some(old), None) => change.removed = node_of(old, shape, Claim::All),
        (Some(old), Some(new)) if old != new => {
            let (was, is) = (shape.kind(Some(old)), shape.kind(Some(new)));
            if was != is {
                // What was there goes as what it was, and what is there comes as what it is.
                compare_as(was, old, new, shape, change);
            }
            compare_as(is, old, new, shape, change);
        }
        _ => {}
    }
}

fn compare_as(kind: Kind, old: &Value, new: &Value, shape: Shape<'_>, change: &mut Change) {
    match kind {
        Kind::Map if !shape.whole_map() => {
            let none = Map::new();
            let (before, after) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
            if !before.is_empty() || !after.is_empty() {
                return compare_maps(before, after, shape, change);
            }
        }
        Kind::List if shape.items() != Items::Whole => {
            let (before, after) = (items_of(old), items_of(new));
            if !before.is_empty() || !after.is_empty() {
                return compare_lists(before, after, shape, change);
            }
        }
        _ => {}
    }
    change.modified.member = true;
}

fn items_of(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn compare_maps(before: &Map<String, Value>, after: &Map<String, Value>, shape: Shape<'_>, change: &mut Change) {
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key)).map(|(key, old)| (key, Some(old), None));
    let rest = after.iter().map(|(key, new)| (key, before.get(key), Some(new)));
    for (key, old, new) in gone.chain(rest) {
        if old != new {
            let part = shape.field(key).unwrap_or(Shape::Deduced);
            compare_part(|| field(key), old, new, part, change);
        }
    }
}

fn compare_lists(before: &[Value], after: &[Value], shape: Shape<'_>, change: &mut Change) {
    let part = shape.item();
    let before = by_element(before, shape);
    let after = by_element(after, shape);
    let none: &[&Value] = &[];
    let gone = before
        .iter()
        .filter(|(element, _)| !after.contains_key(*element))
        .map(|(element, old)| (element, old.as_slice(), none));
    let rest = after.iter().map(|(element, new)| {
        let old = before.get(element).map_or(none, Vec::as_slice);
        (element, old, new.as_slice())
    });
    for (element, old, new) in gone.chain(rest) {
        let at = || element.clone();
        match (old, new) {
            ([] | [_], [] | [_]) => {
                compare_part(at, old.first().copied(), new.first().copied(), part, change);
            }
            // Several items under one key are owned together, without their fields.
            ([_, _, ..], [_, _, ..]) => {
                if old != new {
                    change.modified.below.insert(at(), Node::leaf());
                }
            }
            ([_, _, ..], _) => {
                if let Some(new) = new.first() {
                    compare_part(at, None, Some(new), part, change);
                }
                change.removed.below.insert(at(), Node::leaf());
            }
            (_, _) => {
                if let Some(old) = old.first() {
                    compare_part(at, Some(old), None, part, change);
                }
                change.added.below.insert(at(), Node::leaf());
            }
        }
    }
}

fn compare_part(
    element: impl Fn() -> String,
    old: Option<&Value>,
    new: Option<&Value>,
    shape: Shape<'_>,
    change: &mut Change,
) {
    let mut part = Change::default();
    compare_at(old, new, shape, &mut part);
    for (whole, part) in
        [(&mut change.added, part.added), (&mut change.modified, part.modified), (&mut change.removed, part.removed)]
    {
        if !part.is_empty() {
            whole.below.insert(element(), part);
        }
    }
}

/// The items of a list by what tells them apart.
fn by_element<'v>(items: &'v [Value], shape: Shape<'_>) -> BTreeMap<String, Vec<&'v Value>> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = element_of(item, shape) {
            groups.entry(element).or_default().push(item);
        }
    }
    groups
}

/// What tells an item of a list from the others. `Err` is why nothing does.
pub(crate) fn element_of(value: &Value, list: Shape<'_>) -> Result<String, String> {
    match list.items() {
        Items::Whole => Err("invalid indexing of non-associative list".to_owned()),
        Items::Set => match value {
            Value::Object(_) => Err("associative list without keys has an element that's a map type".to_owned()),
            Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
            Value::Null => Err("associative list without keys has an element that's an explicit null".to_owned()),
            scalar => Ok(item(scalar)),
        },
        Items::Keyed(keys) => {
            let fields = match value {
                Value::Object(fields) => fields,
                Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
                _ => return Err("associative list with keys may not have non-map elements".to_owned()),
            };
            let mut names = Vec::with_capacity(keys.len());
            for key in keys {
                let value = fields.get(key).or_else(|| list.item().default_of(key)).ok_or_else(|| {
                    format!(
                        "associative list with keys has an element that omits key field {key:?} (and doesn't have \
                         default value)"
                    )
                })?;
                names.push((key.as_str(), value));
            }
            names.sort_unstable_by_key(|(key, _)| *key);
            Ok(keyed(&names))
        }
    }
}

/// The fields that somebody who writes this object down lays claim to.
pub(crate) fn fields_of(object: &Value, shape: Shape<'_>) -> FieldSet {
    node_of(object, shape, Claim::Said).below
}

/// How much belongs to who writes something down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// What is said: not a struct, which is only where its fields are.
    Said,
    /// Everything.
    All,
}

fn node_of(value: &Value, shape: Shape<'_>, claim: Claim) -> Node {
    let mut node = Node { member: claim == Claim::All, below: FieldSet::default() };
    match shape.kind(Some(value)) {
        Kind::Scalar => node.member = true,
        Kind::Map if shape.whole_map() => node.member = true,
        Kind::Map => {
            for (key, part) in value.as_object().into_iter().flatten() {
                let named = shape.named(key);
                let said = named.is_none() || part.is_null() || part.as_object().is_some_and(Map::is_empty);
                let part_shape = named.or_else(|| shape.unnamed()).unwrap_or(Shape::Deduced);
                let mut below = node_of(part, part_shape, claim);
                below.member |= said;
                node.below.insert(field(key), below);
            }
        }
        Kind::List if shape.items() == Items::Whole => node.member = true,
        Kind::List => {
            for (element, group) in by_element(items_of(value), shape) {
                let mut part = match group.as_slice() {
                    [one] => node_of(one, shape.item(), claim),
                    _ => Node::default(),
                };
                part.member = true;
                node.below.insert(element, part);
            }
        }
    }
    node
}
