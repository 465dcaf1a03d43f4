//! Merging an intent into an object, and taking fields out of one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::compare::{element_of, fields_of};
use super::fields::{Element, FieldSet, Node};
use super::shape::{Items, Kind, Shape};

/// The object with what the intent says; the intent wins.
pub(crate) fn merge(live: &Value, intent: &Value, shape: Shape<'_>) -> Value {
    merge_at(Some(live), Some(intent), shape).unwrap_or_default()
}

fn merge_at(live: Option<&Value>, intent: Option<&Value>, shape: Shape<'_>) -> Option<Value> {
    match shape.kind(intent.or(live)) {
        Kind::Map if !shape.whole_map() => {
            let none = Map::new();
            let before = live.and_then(Value::as_object).unwrap_or(&none);
            let said = intent.and_then(Value::as_object).unwrap_or(&none);
            if !before.is_empty() || !said.is_empty() {
                let merged = merge_maps(before, said, shape);
                return (!merged.is_empty()).then_some(Value::Object(merged));
            }
        }
        Kind::List if shape.items() != Items::Whole => {
            let before = live.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let said = intent.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if !before.is_empty() || !said.is_empty() {
                let merged = merge_lists(before, said, shape);
                return (!merged.is_empty()).then_some(Value::Array(merged));
            }
        }
        _ => {}
    }
    intent.or(live).cloned()
}

fn merge_maps(before: &Map<String, Value>, said: &Map<String, Value>, shape: Shape<'_>) -> Map<String, Value> {
    let kept = before.iter().filter(|(key, _)| !said.contains_key(*key)).map(|(key, old)| (key, Some(old), None));
    let rest = said.iter().map(|(key, new)| (key, before.get(key), Some(new)));
    kept.chain(rest)
        .filter_map(|(key, old, new)| {
            let field = shape.field(key).unwrap_or(Shape::Deduced);
            Some((key.clone(), merge_at(old, new, field)?))
        })
        .collect()
}

/// Merges two lists of items that can be told apart. Items of the intent keep their order among each other; the others
/// stay before the next common item that they stood before.
fn merge_lists(before: &[Value], said: &[Value], shape: Shape<'_>) -> Vec<Value> {
    let item = shape.item();
    let live: Vec<(Element, &Value)> =
        before.iter().filter_map(|item| Some((element_of(item, shape).ok()?, item))).collect();
    let intent: Vec<(Element, &Value)> =
        said.iter().filter_map(|item| Some((element_of(item, shape).ok()?, item))).collect();
    // Items that stand there several times are not merged with: `None`.
    let mut live_items: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in &live {
        live_items.entry(element).and_modify(|several| *several = None).or_insert(Some(item));
    }
    let intended: BTreeSet<&Element> = intent.iter().map(|(element, _)| element).collect();
    let merged_with_live =
        |element: &Element, said: &Value| merge_at(live_items.get(element).copied().flatten(), Some(said), item);

    let mut common = intent.iter().map(|(element, _)| element).filter(|element| live_items.contains_key(element));
    let mut next_common = common.next();
    let mut merged = Vec::with_capacity(live.len().max(intent.len()));
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < intent.len() {
        if let (Some((here, _)), Some((there, said))) = (live.get(left), intent.get(right)) {
            if here == there {
                merged.extend(merged_with_live(here, said));
                done.insert(here);
                left += 1;
                right += 1;
                next_common = common.next();
                continue;
            }
            if intended.contains(here) && next_common.is_some_and(|next| next != here) {
                left += 1;
                continue;
            }
        }
        if let Some((here, old)) = live.get(left) {
            if !intended.contains(here) {
                merged.extend(merge_at(Some(old), None, item));
                left += 1;
                continue;
            }
            if done.contains(here) {
                left += 1;
            }
        }
        if let Some((there, said)) = intent.get(right) {
            merged.extend(merged_with_live(there, said));
            done.insert(there);
            right += 1;
            if next_common == Some(there) {
                next_common = common.next();
            }
        }
    }
    merged
}

/// The object without these fields. What is emptied by that becomes null, as structured-merge-diff leaves it.
pub(crate) fn without(value: &Value, taken: &FieldSet, shape: Shape<'_>) -> Value {
    match shape.kind(Some(value)) {
        Kind::Scalar => value.clone(),
        Kind::Map if shape.whole_map() => Value::Null,
        Kind::Map => {
            let mut rest = Map::new();
            for (key, field) in value.as_object().into_iter().flatten() {
                match taken.get(&Element::Field(key.clone())) {
                    Some(node) if node.member => {}
                    Some(node) => {
                        let shape = shape.field(key).unwrap_or(Shape::Deduced);
                        rest.insert(key.clone(), without(field, &node.below, shape));
                    }
                    None => {
                        rest.insert(key.clone(), field.clone());
                    }
                }
            }
            if rest.is_empty() { Value::Null } else { Value::Object(rest) }
        }
        Kind::List if shape.items() == Items::Whole => Value::Null,
        Kind::List => {
            let mut rest = Vec::new();
            for item in value.as_array().into_iter().flatten() {
                let element = element_of(item, shape).ok();
                match element.and_then(|element| taken.get(&element)) {
                    Some(node) if node.member => {}
                    Some(node) => rest.push(without(item, &node.below, shape.item())),
                    None => rest.push(item.clone()),
                }
            }
            if rest.is_empty() { Value::Null } else { Value::Array(rest) }
        }
    }
}

/// The set, and all declared fields on the way to its members: who has `spec.a.b` has `spec.a`, if that is a field and
/// not a key of a map.
fn with_named_fields(set: &FieldSet, shape: Option<Shape<'_>>) -> FieldSet {
    let mut all = FieldSet::default();
    for (element, node) in set.iter() {
        let (named, below) = match (element, shape) {
            (Element::Field(name), Some(shape)) => (shape.names(name), shape.field(name)),
            (Element::Key(_), Some(shape)) => (false, Some(shape.item())),
            _ => (false, None),
        };
        let mut part = node.clone();
        if !node.below.is_empty() {
            part.member |= named;
            part.below = with_named_fields(&node.below, below);
        }
        all.insert(element.clone(), part);
    }
    all
}

/// Brings a set up to date with a schema in which something has become a whole: its parts can no longer be owned.
pub(crate) fn reconcile(set: &mut FieldSet, shape: Shape<'_>) {
    for (element, node) in set.iter_mut() {
        let part = match element {
            Element::Field(name) => shape.field(name),
            _ => Some(shape.item()),
        };
        let Some(part) = part.filter(|part| matches!(part, Shape::Declared { .. })) else { continue };
        if node.below.is_empty() {
            continue;
        }
        let whole = match part.kind(None) {
            Kind::Map => part.whole_map(),
            Kind::List => part.items() == Items::Whole,
            Kind::Scalar => false,
        };
        if whole {
            *node = Node::leaf();
        } else {
            reconcile(&mut node.below, part);
        }
    }
}

/// Takes out of `merged` what was applied `before` and is `owned` by nobody now, the applier's new intent included.
pub(crate) fn prune(merged: Value, before: &FieldSet, owned: &FieldSet, shape: Shape<'_>) -> Value {
    if before.is_empty() {
        return merged;
    }
    let before = with_named_fields(before, Some(shape));
    let merged_fields = with_named_fields(&fields_of(&merged, shape), Some(shape));
    let fields = |value: &Value| with_named_fields(&fields_of(value, shape), Some(shape));

    // Nothing but what was applied before goes …
    let mut kept = fields(&without(&merged, &before, shape));
    // … and what somebody owns comes back, …
    kept.add(with_named_fields(owned, Some(shape)));
    let mut gone = merged_fields.clone();
    gone.subtract(&kept);
    let pruned = without(&merged, &gone, shape);
    // … as does what went along with something that was applied, but was not applied itself.
    let mut gone = merged_fields;
    gone.subtract(&fields(&pruned));
    without(&merged, &gone.common(&before), shape)
}
