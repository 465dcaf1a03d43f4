//! Replays what a real kube-apiserver (v1.33) was asked, and compares what it answered.
//!
//! `judged.json` has a list of stories; a story is a list of requests about one object, each with its answer. Answers
//! that are not about ownership (validation) have only a code. Times are not compared, only whether there is one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jiff::Timestamp;
use schema::Schema;
use schema::object;
use serde_json::{Map, Value, json};

use crate::ownership::{Writer, apply, keep_times, record_update};
use crate::patch;
use crate::status::Failure;

const GROUP: &str = "ownership.example.com";

pub(super) fn widget() -> &'static Schema {
    static WIDGET: LazyLock<Schema> =
        LazyLock::new(|| Schema::parse(&serde_json::from_str(include_str!("widget.json")).unwrap(), "").unwrap());
    &WIDGET
}

fn config_map() -> &'static Schema {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let schema = json!({
        "type": "object", "properties": {"data": texts, "binaryData": texts, "immutable": {"type": "boolean"}},
    });
    Box::leak(Box::new(Schema::of_built_in(&schema).unwrap()))
}

fn service_account() -> &'static Schema {
    let text = json!({"type": "string"});
    let schema = json!({
        "type": "object",
        "properties": {
            "secrets": {
                "type": "array",
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object", "x-kubernetes-map-type": "atomic",
                    "properties": {"name": text, "namespace": text},
                },
            },
            "imagePullSecrets": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"name": text}},
            },
        },
    });
    Box::leak(Box::new(Schema::of_built_in(&schema).unwrap()))
}

/// As much of a server as the stories need.
struct Server {
    schema: &'static Schema,
    kind: String,
    live: Option<Value>,
    now: Timestamp,
}

impl Server {
    fn perform(&mut self, request: &Value) -> Result<Value, Failure> {
        self.now += jiff::SignedDuration::from_secs(1);
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
        let custom = self.kind == "Widget";
        let version = if text("version").is_empty() { "v1" } else { text("version") };
        let api_version = if custom { format!("{GROUP}/{version}") } else { version.to_owned() };
        let status = text("subresource") == "status";
        let writer = Writer {
            manager: text("manager"),
            api_version: &api_version,
            kind: &self.kind,
            subresource: text("subresource"),
            untouched: match (custom, status) {
                (false, _) => &[],
                (true, false) => &["status"],
                (true, true) => &["spec"],
            },
            custom,
            now: self.now,
        };
        let mut body = request["body"].clone();
        if matches!(text("verb"), "create" | "apply") {
            let said = body.as_object_mut().unwrap();
            said.entry("apiVersion").or_insert(api_version.as_str().into());
            said.entry("kind").or_insert(self.kind.as_str().into());
            object::meta_mut(&mut body).insert("name".to_owned(), "x".into());
        }
        let old = self.live.as_ref();
        let patched = |patched: Result<Value, Failure>| -> Result<Value, Failure> {
            let mut new = patched?;
            self.read(&mut new);
            new["apiVersion"] = api_version.as_str().into();
            record_update(self.schema, old, &mut new, writer);
            Ok(new)
        };
        let mut new = match (text("verb"), old) {
            ("create", _) => patched(Ok(body))?,
            ("merge", Some(old)) => patched(patch::merge(old, &body))?,
            ("json", Some(old)) => patched(patch::json(old, &body))?,
            ("strategic", Some(old)) => patched(patch::strategic(self.schema, old, &body))?,
            ("apply", old) => {
                let force = request.get("force").is_some();
                let mut new = apply(self.schema, old, &body, writer, force)?;
                self.read(&mut new);
                new
            }
            other => panic!("{other:?}"),
        };
        if status {
            let mut whole = old.cloned().unwrap_or_default();
            whole["status"] = new["status"].take();
            object::meta_mut(&mut whole).insert("managedFields".to_owned(), new["metadata"]["managedFields"].take());
            new = whole;
        } else {
            new["status"] = old.map(|old| old["status"].clone()).unwrap_or_default();
        }
        for optional in ["status", "spec"] {
            if new[optional].is_null() {
                new.as_object_mut().unwrap().remove(optional);
            }
        }
        if object::meta(&new).unwrap().get("managedFields").is_some_and(Value::is_null) {
            object::meta_mut(&mut new).remove("managedFields");
        }
        object::meta_mut(&mut new).insert("uid".to_owned(), "u".into());
        if let Some(old) = old {
            keep_times(old, &mut new);
        }
        Ok(new)
    }

    /// What is done to all that is read: defaults, and metadata without emptiness.
    fn read(&self, object: &mut Value) {
        defaults(self.schema.raw(), object);
        let meta = object::meta_mut(object);
        for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
            let empty = match meta.get(key) {
                Some(Value::Object(fields)) => fields.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                Some(other) => other.is_null(),
                None => false,
            };
            if empty {
                meta.remove(key);
            }
        }
    }
}

fn defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    fields.entry(name).or_insert_with(|| default.clone());
                }
                if let Some(field) = fields.get_mut(name) {
                    defaults(property, field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| defaults(&schema["items"], item)),
        _ => {}
    }
}

/// Entries by who they are of, without their times.
fn by_writer(entries: &Value) -> BTreeMap<String, Value> {
    let mut writers = BTreeMap::new();
    for entry in entries.as_array().into_iter().flatten() {
        let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = [text("manager"), text("operation"), text("apiVersion"), text("subresource")].join(" ");
        let timeless =
            entry.get("timeless").is_some() || (entry.get("fieldsType").is_some() && entry.get("time").is_none());
        let known = writers.insert(name, json!({"fields": entry["fieldsV1"], "timeless": timeless}));
        assert_eq!(known, None, "{entries:#}");
    }
    writers
}

fn told(object: &Value) -> Value {
    let mut told: Map<String, Value> = object.as_object().unwrap().clone();
    told.remove("apiVersion");
    told.remove("kind");
    let meta = told["metadata"].as_object().unwrap();
    let keys = ["labels", "annotations", "finalizers", "ownerReferences"];
    let meta = keys.iter().filter_map(|key| Some(((*key).to_owned(), meta.get(*key)?.clone()))).collect();
    told.insert("metadata".to_owned(), Value::Object(meta));
    Value::Object(told)
}

fn sorted(causes: &Value) -> Vec<String> {
    let mut causes: Vec<String> = causes.as_array().into_iter().flatten().map(ToString::to_string).collect();
    causes.sort();
    causes
}

/// The lines of a message that has several: their order is chance in Go.
fn lines(message: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = message.lines().collect();
    if message.contains("errors:\n") {
        lines.sort_unstable();
    }
    lines
}

#[test]
fn what_the_real_one_answered() {
    let stories: Value = serde_json::from_str(include_str!("judged.json")).unwrap();
    let mut steps = 0;
    for story in stories.as_array().unwrap() {
        let title = &story["title"];
        let kind = story["steps"][0]["do"].get("kind").and_then(Value::as_str).unwrap_or("Widget").to_owned();
        let schema = match kind.as_str() {
            "ConfigMap" => config_map(),
            "ServiceAccount" => service_account(),
            _ => widget(),
        };
        let mut server = Server { schema, kind, live: None, now: "2026-01-01T00:00:00Z".parse().unwrap() };
        for (number, step) in story["steps"].as_array().unwrap().iter().enumerate() {
            steps += 1;
            let about = format!("{title}, step {number}: {}", step["do"]);
            let expected = &step["get"];
            match server.perform(&step["do"]) {
                Ok(new)
                    if expected["code"] == 422 || (expected["code"] == 409 && expected.get("message").is_none()) =>
                {
                    drop(new);
                }
                Ok(new) => {
                    assert!(expected["code"] == 200 || expected["code"] == 201, "{about}\n{expected}\n{new:#}");
                    if let Some(object) = expected.get("object") {
                        assert_eq!(told(&new), *object, "{about}");
                        let managed = by_writer(&new["metadata"]["managedFields"]);
                        assert_eq!(managed, by_writer(&expected["managed"]), "{about}");
                    }
                    server.live = Some(new);
                }
                Err(failure) => {
                    assert_eq!(failure.code.as_u16(), expected["code"], "{about}\n{failure}");
                    let message = expected["message"].as_str().unwrap();
                    // What is said about types is said in our own words; the place is the same.
                    match message.split_once(": expected ") {
                        Some((place, _)) => {
                            assert!(failure.message.starts_with(place), "{about}\n{failure}\n{message}");
                        }
                        None => assert_eq!(lines(&failure.message), lines(message), "{about}"),
                    }
                    assert_eq!(failure.reason, expected["reason"].as_str().unwrap_or_default(), "{about}");
                    assert_eq!(sorted(&failure.to_json()["details"]["causes"]), sorted(&expected["causes"]), "{about}");
                }
            }
        }
    }
    assert!(steps > 300, "{steps}");
}
