//! Events: one store, two groups. Stored as core events; events.k8s.io has other names for some fields.

use jiff::Timestamp;
use schema::{names, object};
use serde_json::{Value, json};

use super::{Plan, column, name_column, rules, v1, wide};
use crate::resource::{Cell, Column, Convert, Hooks, Part, Resource, Scope, Version};
use crate::status::{Failure, FieldError};
use crate::table::age;

/// The group that is not the core one.
const GROUP: &str = "events.k8s.io";

/// Fields that have two names: in the core group, and in events.k8s.io.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

pub(super) fn resource() -> Result<Resource, Failure> {
    let plan = Plan {
        group: "",
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        categories: &[],
        scope: Scope::Namespaced,
    };
    let core = v1(
        "io.k8s.api.core.v1.Event",
        core_columns(),
        &[
            ".involvedObject.kind",
            ".involvedObject.namespace",
            ".involvedObject.name",
            ".involvedObject.uid",
            ".involvedObject.apiVersion",
            ".involvedObject.resourceVersion",
            ".involvedObject.fieldPath",
            ".reason",
            ".reportingComponent",
            "source=.source.component",
            ".type",
        ],
    )?;
    let other = v1(
        "io.k8s.api.events.v1.Event",
        other_columns(),
        &[
            ".regarding.kind",
            ".regarding.namespace",
            ".regarding.name",
            ".regarding.uid",
            ".regarding.apiVersion",
            ".regarding.resourceVersion",
            ".regarding.fieldPath",
            ".reason",
            ".reportingController",
            ".type",
        ],
    )?;
    let convert = Some(Convert { store, load });
    let other = Version { group: Some(GROUP.to_owned()), convert, ..other };
    let hooks = Hooks { default, validate, made_by_replacing: true, ..Hooks::NONE };
    Ok(plan.resource(vec![core, other], hooks))
}

/// events.k8s.io → core.
fn store(event: &mut Value) {
    rename(event, NAMES.into_iter().map(|(core, other)| (other, core)));
    rules::set(event, "apiVersion", "v1".into());
    complete(event);
}

/// core → events.k8s.io.
fn load(event: &mut Value) {
    rename(event, NAMES.into_iter());
    rules::set(event, "apiVersion", format!("{GROUP}/v1").into());
    rules::leave_out(event, &["reportingController", "reportingInstance", "regarding", "note", "deprecatedCount"]);
    rules::keep(event, "deprecatedSource", json!({}));
    for moment in ["eventTime", "deprecatedFirstTimestamp", "deprecatedLastTimestamp"] {
        rules::keep(event, moment, Value::Null);
    }
}

fn rename<'a>(event: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Value::Object(fields) = event else { return };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

/// The fields that core events always show, even when there is nothing to say.
fn complete(event: &mut Value) {
    rules::leave_out(event, &["reason", "message", "count", "type", "action"]);
    for part in ["involvedObject", "source"] {
        rules::keep(event, part, json!({}));
    }
    for moment in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        rules::keep(event, moment, Value::Null);
    }
    for name in ["reportingComponent", "reportingInstance"] {
        rules::keep(event, name, "".into());
    }
}

fn default(new: &mut Value) {
    complete(new);
}

fn validate(new: &Value, old: Option<&Value>, _: Part, version: &Version) -> Vec<FieldError> {
    let core = version.group.is_none();
    let mut errors = every_version(new, if core { "reportingComponent" } else { "reportingController" });
    match old {
        _ if core => {}
        None => {
            errors.extend(series(new));
            errors.extend(only_new_fields(new));
        }
        Some(old) => {
            if new["series"] != old["series"] {
                errors.extend(series(new));
            }
            errors.extend(unchanged(new, old));
        }
    }
    errors
}

/// Rules of both groups. Events with `eventTime` are of the new kind and must be complete.
fn every_version(event: &Value, controller: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (here, there) = (object::namespace(event), rules::text(event, &["involvedObject", "namespace"]));
    let new = !rules::text(event, &["eventTime"]).is_empty();
    let stray = match (new, there.is_empty()) {
        (true, true) => here != "default" && here != "kube-system",
        (true, false) => false,
        (false, true) => !here.is_empty() && here != "default",
        (false, false) => here != there,
    };
    if stray {
        errors.push(FieldError::invalid("involvedObject.namespace", there, "does not match event.namespace"));
    }
    if !new {
        return errors;
    }
    let mut required = |path: &str, value: &str, most: Option<usize>| {
        if value.is_empty() {
            errors.push(FieldError::required(path, ""));
        }
        if path == controller {
            let wrong = names::qualified_faults(value).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(path, value, why)));
        }
        if let Some(most) = most.filter(|&most| value.len() > most) {
            errors.push(FieldError::invalid(path, "", format!("can have at most {most} characters")));
        }
    };
    required(controller, rules::text(event, &["reportingComponent"]), None);
    for name in ["reportingInstance", "action", "reason"] {
        required(name, rules::text(event, &[name]), Some(128));
    }
    if rules::text(event, &["message"]).len() > 1024 {
        errors.push(FieldError::invalid("message", "", "can have at most 1024 characters"));
    }
    errors
}

fn series(event: &Value) -> Vec<FieldError> {
    let series = &event["series"];
    let mut errors = Vec::new();
    if series.is_object() {
        if series["count"].as_i64().unwrap_or(0) < 2 {
            errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
        }
        if rules::text(series, &["lastObservedTime"]).is_empty() {
            errors.push(FieldError::required("series.lastObservedTime", ""));
        }
    }
    errors
}

fn only_new_fields(event: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if rules::text(event, &["eventTime"]).is_empty() {
        errors.push(FieldError::required("eventTime", ""));
    }
    let kind = rules::text(event, &["type"]);
    if kind != "Normal" && kind != "Warning" {
        errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        let unset = match &event[name] {
            Value::Object(source) => source.values().all(|value| value == ""),
            other => other.is_null(),
        };
        if !unset {
            errors.push(FieldError::invalid(name, "", "needs to be unset"));
        }
    }
    errors
}

/// In events.k8s.io only the series may change.
fn unchanged(new: &Value, old: &Value) -> Vec<FieldError> {
    [
        ("involvedObject", "involvedObject"),
        ("reason", "reason"),
        ("message", "message"),
        ("source", "source"),
        ("firstTimestamp", "firstTimestamp"),
        ("lastTimestamp", "lastTimestamp"),
        ("count", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingComponent", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ]
    .into_iter()
    .filter(|(name, _)| new[name] != old[name])
    .map(|(name, path)| FieldError::invalid(path, new[name].clone(), "field is immutable"))
    .collect()
}

fn core_columns() -> Vec<Column> {
    columns([last_seen, kind, reason, target, part, source, message, first_seen, count])
}

fn other_columns() -> Vec<Column> {
    columns([
        |event, now| last_seen(&as_core(event), now),
        kind,
        reason,
        |event, now| target(&as_core(event), now),
        |event, now| part(&as_core(event), now),
        |event, now| source(&as_core(event), now),
        |event, now| message(&as_core(event), now),
        |event, now| first_seen(&as_core(event), now),
        |event, now| count(&as_core(event), now),
    ])
}

fn columns(cells: [fn(&Value, Timestamp) -> Value; 9]) -> Vec<Column> {
    let [last_seen, kind, reason, target, part, source, message, first_seen, count] = cells.map(Cell::Compute);
    vec![
        column("Last Seen", "When it was last seen.", last_seen),
        column("Type", "Normal or Warning.", kind),
        column("Reason", "Why, as a word for programs.", reason),
        column("Object", "The object that it is about.", target),
        wide(column("Subobject", "The part of the object that it is about.", part)),
        wide(column("Source", "Who reports it.", source)),
        column("Message", "A sentence for people.", message),
        wide(column("First Seen", "When it was first seen.", first_seen)),
        wide(column("Count", "How often it happened.", count)),
        wide(name_column()),
    ]
}

fn as_core(event: &Value) -> Value {
    let mut event = event.clone();
    store(&mut event);
    event
}

fn first_seen(event: &Value, now: Timestamp) -> Value {
    let moment = if event["firstTimestamp"].is_string() { "firstTimestamp" } else { "eventTime" };
    age(&event[moment], now).into()
}

fn last_seen(event: &Value, now: Timestamp) -> Value {
    if event["series"].is_object() {
        return age(&event["series"]["lastObservedTime"], now).into();
    }
    if event["lastTimestamp"].is_string() { age(&event["lastTimestamp"], now).into() } else { first_seen(event, now) }
}

fn count(event: &Value, _: Timestamp) -> Value {
    if event["series"].is_object() {
        return event["series"]["count"].as_i64().unwrap_or(0).into();
    }
    event["count"].as_i64().filter(|&count| count != 0).unwrap_or(1).into()
}

fn kind(event: &Value, _: Timestamp) -> Value {
    rules::text(event, &["type"]).into()
}

fn reason(event: &Value, _: Timestamp) -> Value {
    rules::text(event, &["reason"]).into()
}

fn target(event: &Value, _: Timestamp) -> Value {
    let kind = rules::text(event, &["involvedObject", "kind"]).to_lowercase();
    match rules::text(event, &["involvedObject", "name"]) {
        "" => kind.into(),
        name => format!("{kind}/{name}").into(),
    }
}

fn part(event: &Value, _: Timestamp) -> Value {
    rules::text(event, &["involvedObject", "fieldPath"]).into()
}

fn source(event: &Value, _: Timestamp) -> Value {
    let first = |paths: [&[&str]; 2]| {
        paths.into_iter().map(|path| rules::text(event, path)).find(|text| !text.is_empty()).unwrap_or_default()
    };
    let component = first([&["source", "component"], &["reportingComponent"]]);
    match first([&["source", "host"], &["reportingInstance"]]) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}

fn message(event: &Value, _: Timestamp) -> Value {
    rules::text(event, &["message"]).trim().into()
}
