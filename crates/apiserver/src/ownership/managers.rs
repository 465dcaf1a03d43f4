//! `managedFields`: who owns what since when.

use std::cmp::Ordering;
use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::compare::Changes;
use super::fields::FieldSet;
use super::shape::Shape;
use super::{Writer, merge};

/// More entries of updates than this are folded together.
const MOST_UPDATERS: usize = 10;

/// Whose entries are folded.
const ANCIENT: &str = "ancient-changes";

/// How somebody came to own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manager {
    pub(crate) name: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    pub(crate) time: Option<Timestamp>,
    pub(crate) fields: FieldSet,
}

impl Manager {
    /// The entry of a writer, with nothing in it yet.
    pub(crate) fn of(writer: Writer<'_>, operation: Operation) -> Self {
        Self {
            name: writer.manager.to_owned(),
            operation,
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
            time: None,
            fields: FieldSet::default(),
        }
    }

    /// Whether both are about the same writer: who applies does so in whatever version.
    fn is_same(&self, other: &Self) -> bool {
        self.operation == other.operation
            && self.name == other.name
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// Sorts managers as the text does by which Kubernetes tells them apart.
    fn identity(&self) -> String {
        let mut identity = Map::new();
        identity.insert("manager".to_owned(), self.name.as_str().into());
        let mut text = Value::Object(identity).to_string();
        text.pop();
        match self.operation {
            Operation::Apply => text.push_str(",\"operation\":\"Apply\""),
            Operation::Update => {
                text.push_str(",\"operation\":\"Update\",\"apiVersion\":");
                text.push_str(&Value::from(self.api_version.as_str()).to_string());
            }
        }
        text.push_str(&self.subresource);
        text
    }

    /// Reads an entry that somebody else has written. `None` if it makes no sense.
    fn parse(entry: &Value) -> Option<Self> {
        let fields = entry.get("fieldsV1").map_or(Some(FieldSet::default()), FieldSet::parse)?;
        let mut entry = entry.clone();
        let manager = Self::trusted(&mut entry)?;
        Some(Self { fields, ..manager })
    }

    /// Takes an entry that we have written.
    fn trusted(entry: &mut Value) -> Option<Self> {
        let Value::Object(entry) = entry else { return None };
        let fields = entry.remove("fieldsV1").unwrap_or_default();
        let mut text = |key: &str| match entry.remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let operation = match text("operation").as_str() {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let manager = Self {
            name: text("manager"),
            operation,
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: text("time").parse().ok(),
            fields: FieldSet::trusted(fields),
        };
        (!manager.api_version.is_empty() && text("fieldsType") == "FieldsV1").then_some(manager)
    }

    fn into_json(self) -> Value {
        let mut entry = Map::new();
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        for (key, text) in [
            ("apiVersion", self.api_version),
            ("fieldsType", "FieldsV1".to_owned()),
            ("manager", self.name),
            ("operation", operation.to_owned()),
            ("subresource", self.subresource),
        ] {
            if !text.is_empty() {
                entry.insert(key.to_owned(), text.into());
            }
        }
        entry.insert("fieldsV1".to_owned(), self.fields.into_json());
        if let Some(time) = self.time {
            entry.insert("time".to_owned(), time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into());
        }
        Value::Object(entry)
    }

    fn seconds(&self) -> i64 {
        self.time.map_or(0, Timestamp::as_second)
    }
}

/// As it is shown in conflicts.
impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Update => write!(f, " using {}", self.api_version),
            Operation::Apply => Ok(()),
        }
    }
}

/// All that have written to an object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Managers(Vec<Manager>);

/// A field that somebody else owns.
#[derive(Debug, Clone)]
pub(crate) struct Conflict<'a> {
    pub(crate) with: &'a Manager,
    pub(crate) fields: FieldSet,
}

impl Managers {
    /// Reads `managedFields` that somebody else has written. `None` if an entry makes no sense.
    pub(crate) fn parse(entries: &Value) -> Option<Self> {
        let mut managers = Self::default();
        match entries {
            Value::Array(entries) => {
                for entry in entries {
                    managers.put(Manager::parse(entry)?);
                }
            }
            Value::Null => {}
            _ => return None,
        }
        Some(managers)
    }

    /// Takes `managedFields` that we have written.
    pub(crate) fn trusted(entries: Value) -> Self {
        match entries {
            Value::Array(entries) => {
                Self(entries.into_iter().filter_map(|mut entry| Manager::trusted(&mut entry)).collect())
            }
            _ => Self::default(),
        }
    }

    /// Writes `managedFields`, in the order in which Kubernetes keeps them.
    pub(crate) fn into_json(mut self) -> Value {
        self.0.sort_by(|left, right| {
            left.operation
                .cmp(&right.operation)
                .then(left.seconds().cmp(&right.seconds()))
                .then_with(|| left.name.cmp(&right.name))
                .then_with(|| left.api_version.cmp(&right.api_version))
                .then_with(|| left.subresource.cmp(&right.subresource))
        });
        self.0.into_iter().map(Manager::into_json).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Brings all entries up to date with the schema.
    pub(crate) fn reconcile(&mut self, shape: Shape<'_>) {
        for manager in &mut self.0 {
            merge::reconcile(&mut manager.fields, shape);
        }
    }

    /// The entry of the same writer.
    pub(crate) fn find(&self, like: &Manager) -> Option<&Manager> {
        self.0.iter().find(|other| other.is_same(like))
    }

    /// Puts an entry in the place of the one of the same writer. An entry that owns nothing goes.
    pub(crate) fn put(&mut self, manager: Manager) {
        self.0.retain(|other| !other.is_same(&manager));
        self.0.push(manager);
    }

    pub(crate) fn drop_empty(&mut self) {
        self.0.retain(|manager| !manager.fields.is_empty());
    }

    /// The versions in which others than `writer` have written.
    pub(crate) fn versions_of_others(&self, writer: &Manager) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|manager| !manager.is_same(writer)).map(|manager| manager.api_version.as_str())
    }

    /// All fields that others than `writer` own.
    pub(crate) fn owned_by_others(&self, writer: &Manager) -> FieldSet {
        let mut owned = FieldSet::default();
        for manager in self.0.iter().filter(|manager| !manager.is_same(writer)) {
            owned.add(manager.fields.clone());
        }
        owned
    }

    /// What others than `writer` own of what is written.
    pub(crate) fn conflicts<'a>(&'a self, writer: &Manager, written: &FieldSet) -> Vec<Conflict<'a>> {
        let mut conflicts: Vec<Conflict<'_>> = self
            .0
            .iter()
            .filter(|manager| !manager.is_same(writer))
            .map(|manager| Conflict { with: manager, fields: manager.fields.common(written) })
            .filter(|conflict| !conflict.fields.is_empty())
            .collect();
        conflicts.sort_by_cached_key(|conflict| conflict.with.identity());
        conflicts
    }

    /// Everybody but `writer` loses what has been written or removed.
    pub(crate) fn lose(&mut self, writer: Option<&Manager>, written: &FieldSet, removed: &FieldSet) {
        for manager in &mut self.0 {
            if writer.is_none_or(|writer| !manager.is_same(writer)) {
                manager.fields.subtract(written);
                manager.fields.subtract(removed);
            }
        }
        self.drop_empty();
    }

    /// Records that `writer` has updated the object.
    pub(crate) fn updated(&mut self, writer: Manager, changes: Changes, stripped: &FieldSet, now: Timestamp) {
        let (mut written, removed) = changes.into_written_and_removed();
        self.lose(None, &written, &removed);
        written.subtract(stripped);
        if written.is_empty() {
            return;
        }
        match self.0.iter_mut().find(|manager| manager.is_same(&writer)) {
            Some(previous) => {
                previous.fields.add(written);
                previous.time = Some(now);
            }
            None => self.0.push(Manager { fields: written, time: Some(now), ..writer }),
        }
    }

    /// Folds the oldest updates together, those of each version apart.
    pub(crate) fn fold_old_updates(&mut self) {
        let mut updaters: Vec<Manager> = Vec::new();
        let mut rest: Vec<Manager> = Vec::new();
        for manager in std::mem::take(&mut self.0) {
            if manager.operation == Operation::Update { updaters.push(manager) } else { rest.push(manager) }
        }
        if updaters.len() > MOST_UPDATERS {
            updaters.sort_by(|left, right| match left.seconds().cmp(&right.seconds()) {
                Ordering::Equal => left.identity().cmp(&right.identity()),
                order => order,
            });
            updaters = folded(updaters);
        }
        rest.append(&mut updaters);
        self.0 = rest;
    }
}

fn folded(updaters: Vec<Manager>) -> Vec<Manager> {
    let mut length = updaters.len();
    let mut kept: Vec<Manager> = Vec::new();
    for manager in updaters {
        let first = kept.iter_mut().find(|first| first.api_version == manager.api_version);
        match first {
            Some(first) if length > MOST_UPDATERS => {
                ANCIENT.clone_into(&mut first.name);
                first.subresource.clear();
                first.time = manager.time;
                first.fields.add(manager.fields);
                length -= 1;
            }
            _ => kept.push(manager),
        }
    }
    kept
}
