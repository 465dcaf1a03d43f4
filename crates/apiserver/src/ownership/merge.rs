//! Merging an intent into an object, and taking fields out of one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::compare::{element_of, fields_of};
use super::fields::{FieldSet, Node, Part, Simplified, field, name_of};
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
            let part = shape.field(key).unwrap_or(Shape::Deduced);
            Some((key.clone(), merge_at(old, new, part)?))
        })
        .collect()
}

/// Merges two lists of items that can be told apart. Items of the intent keep their order among each other; the others
/// stay before the next common item that they stood before.
fn merge_lists(before: &[Value], said: &[Value], shape: Shape<'_>) -> Vec<Value> {
    let item = shape.item();
    let live: Vec<(String, &Value)> =
        before.iter().filter_map(|item| Some((element_of(item, shape).ok()?, item))).collect();
    let intent: Vec<(String, &Value)> =
        said.iter().filter_map(|item| Some((element_of(item, shape).ok()?, item))).collect();
    // Items that stand there several times are not merged with: `None`.
    let mut live_items: BTreeMap<&String, Option<&Value>> = BTreeMap::new();
    for (element, item) in &live {
        live_items.entry(element).and_modify(|several| *several = None).or_insert(Some(item));
    }
    let intended: BTreeSet<&String> = intent.iter().map(|(element, _)| element).collect();
    let merged_with_live =
        |element: &String, said: &Value| merge_at(live_items.get(element).copied().flatten(), Some(said), item);

    let mut common = intent.iter().map(|(element, _)| element).filter(|element| live_items.contains_key(element));
    let mut next_common = common.next();
    let mut merged = Vec::with_capacity(live.len().max(intent.len()));
    let mut done: BTreeSet<&String> = BTreeSet::new();
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
pub(crate) fn without(object: &Value, taken: &FieldSet, shape: Shape<'_>) -> Value {
    without_part(object, taken.as_part(), shape)
}

fn without_part(value: &Value, taken: Part<'_>, shape: Shape<'_>) -> Value {
    match shape.kind(Some(value)) {
        Kind::Scalar => value.clone(),
        Kind::Map if shape.whole_map() => Value::Null,
        Kind::Map => {
            let mut rest = Map::new();
            for (key, part) in value.as_object().into_iter().flatten() {
                let left = match taken.get(&field(key)) {
                    Some(taken) if taken.is_member() => continue,
                    Some(taken) => without_part(part, taken, shape.field(key).unwrap_or(Shape::Deduced)),
                    None => part.clone(),
                };
                rest.insert(key.clone(), left);
            }
            if rest.is_empty() { Value::Null } else { Value::Object(rest) }
        }
        Kind::List if shape.items() == Items::Whole => Value::Null,
        Kind::List => {
            let mut rest = Vec::new();
            for item in value.as_array().into_iter().flatten() {
                match element_of(item, shape).ok().and_then(|element| taken.get(&element)) {
                    Some(taken) if taken.is_member() => {}
                    Some(taken) => rest.push(without_part(item, taken, shape.item())),
                    None => rest.push(item.clone()),
                }
            }
            if rest.is_empty() { Value::Null } else { Value::Array(rest) }
        }
    }
}

/// The set, and all declared fields on the way to its members: who has `spec.a.b` has `spec.a`, if that is a field and
/// not a key of a map.
fn with_named_fields(set: Part<'_>, shape: Option<Shape<'_>>) -> FieldSet {
    let mut all = FieldSet::default();
    for (element, part) in set.parts() {
        let (named, below) = match (name_of(element), shape) {
            (Some(name), Some(shape)) => match shape.named(name) {
                Some(named) => (true, Some(named)),
                None => (false, shape.unnamed()),
            },
            (None, Some(shape)) if element.starts_with("k:") => (false, Some(shape.item())),
            _ => (false, None),
        };
        let mut node = Node { member: part.is_member(), below: FieldSet::default() };
        if part.has_parts() {
            node.member |= named;
            node.below = with_named_fields(part, below);
        }
        all.insert(element.clone(), node);
    }
    all
}

/// Brings a set up to date with a schema in which something has become a whole: its parts can no longer be owned.
pub(crate) fn reconcile(set: &mut FieldSet, shape: Shape<'_>) {
    set.simplify(shape, &|shape, element| {
        let part = match name_of(element) {
            Some(name) => shape.field(name),
            None => Some(shape.item()),
        };
        let Some(part @ Shape::Declared { .. }) = part else { return Simplified::Stays };
        let whole = match part.kind(None) {
            Kind::Map => part.whole_map(),
            Kind::List => part.items() == Items::Whole,
            Kind::Scalar => false,
        };
        if whole { Simplified::Leaf } else { Simplified::Within(part) }
    });
}

/// Takes out of `merged` what was applied `before`, is no longer `intended`, and belongs to none of the `others`.
pub(crate) fn prune(
    merged: &Value,
    before: &FieldSet,
    intended: &FieldSet,
    others: &FieldSet,
    shape: Shape<'_>,
) -> Value {
    let named = |set: &FieldSet| with_named_fields(set.as_part(), Some(shape));
    let before = named(before);
    let fields = named(&fields_of(merged, shape));

    // What was applied before goes, and what somebody owns comes back, …
    let mut kept = named(&fields_of(&without(merged, &before, shape), shape));
    kept.add(named(intended));
    kept.add(named(others));
    let mut gone = fields.clone();
    gone.subtract(&kept);
    let pruned = without(merged, &gone, shape);
    // … as does what went along with something that was applied, but was not applied itself.
    let mut gone = fields;
    gone.subtract(&named(&fields_of(&pruned, shape)));
    without(merged, &gone.common(&before), shape)
}
