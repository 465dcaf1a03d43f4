//! Who owns which field: `managedFields`, and server-side apply, which is built on it.
//!
//! The rules are those of structured-merge-diff, which is what kube-apiserver uses: a writer owns what it has added or
//! changed by an update, and what it has said by an apply; who applies something else than what others own is in
//! conflict with them; what an applier no longer says and nobody else owns goes.

pub(crate) mod check;
mod compare;
mod fields;
mod managers;
mod merge;
pub(crate) mod shape;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use http::StatusCode;
use jiff::Timestamp;
use schema::Schema;
use schema::object;
use serde_json::{Map, Value};

use self::compare::{compare, fields_of};
use self::fields::{FieldSet, as_go_writes};
pub(crate) use self::managers::Operation;
use self::managers::{Conflict, Manager, Managers};
use self::shape::Shape;
use crate::resource::{Part, Resource, Version};
use crate::status::{Cause, Details, Failure};

/// Who writes, what, and how.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a> {
    /// `fieldManager`, or what the user agent says: see [`manager_name`].
    pub manager: &'a str,
    /// `apiVersion` of what is written.
    pub api_version: &'a str,
    /// `kind` of what is written.
    pub kind: &'a str,
    /// `status`, or empty.
    pub subresource: &'a str,
    /// Top-level fields that this way of writing leaves as they are, whatever is sent: see [`untouched`].
    pub untouched: &'a [&'a str],
    /// Whether a custom resource is written.
    pub custom: bool,
    /// When.
    pub now: Timestamp,
}

/// Top-level fields that a write to a part of an object leaves as they are, and so neither owns nor takes.
pub fn untouched(resource: &Resource, version: &Version, part: Part) -> &'static [&'static str] {
    match part {
        Part::Main if version.status => &["status"],
        Part::Main => &[],
        Part::Status if resource.custom => &["spec"],
        // A CustomResourceDefinition's status does not touch its metadata either.
        Part::Status if resource.group == "apiextensions.k8s.io" => &["metadata", "spec"],
        Part::Status => &["spec"],
        Part::Finalize => &["status"],
    }
}

/// The manager of a request: what it says, or else what comes before the slash in its user agent.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    const LONGEST: usize = 128;
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let mut name = String::new();
    let product = user_agent.split('/').next().unwrap_or_default();
    for character in product.chars().filter(|character| !character.is_control()) {
        if name.len() + character.len_utf8() > LONGEST {
            break;
        }
        name.push(character);
    }
    name
}

/// Fields that nobody owns.
static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut set = FieldSet::default();
    for field in ["apiVersion", "kind", "metadata"] {
        set.insert_path(&[field]);
    }
    for field in [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ] {
        set.insert_path(&["metadata", field]);
    }
    set
});

/// Records that `writer` made `new` of `old` by create, update or patch: sets `metadata.managedFields` of `new`.
///
/// Called on what has been decoded, pruned and defaulted, before anything is put right that the writer may not change.
/// `managedFields` that the writer sends count only if there is an `old`, and only for the object as a whole.
pub fn record_update(schema: &Schema, old: Option<&Value>, new: &mut Value, writer: Writer<'_>) {
    let sent = object::meta_mut(new).remove("managedFields").unwrap_or_default();
    let mut managers = match old {
        None => Managers::default(),
        Some(old) => {
            let managers = if Some(&sent) == entries(old) {
                Managers::trusted(sent)
            } else {
                let sent = if writer.subresource.is_empty() { accepted(&sent, writer.custom) } else { None };
                sent.unwrap_or_else(|| managers_of(old))
            };
            if managers.is_empty() {
                // Whom nobody has followed from the start is followed from the first apply on.
                return;
            }
            managers
        }
    };
    let shape = Shape::of(schema);
    managers.reconcile(shape);
    match old {
        Some(old) => update(&mut managers, old, new, shape, writer),
        None => update(&mut managers, &nothing_but_what_is_always_there(new, writer.custom), new, shape, writer),
    }
    managers.fold_old_updates();
    set_managers(new, managers);
}

/// Why the owners of an object cannot be followed from `old` to `new`: somebody owns fields in another version, which
/// does not know all that the objects have in this one.
pub(crate) fn lost_in_translation(
    resource: &Resource,
    old: &Value,
    new: &Value,
    writer: Writer<'_>,
    operation: Operation,
) -> Option<String> {
    if !resource.custom || resource.versions.len() == 1 {
        return None;
    }
    let managers = managers_of(old);
    let writing = Manager::of(writer, operation);
    let others = managers.versions_of_others(&writing);
    let others = others.filter(|version| *version != writer.api_version);
    let mut versions =
        others.filter_map(|other| resource.versions.iter().find(|one| resource.api_version(one) == other));
    versions.find_map(|version| {
        let check = |object: &Value, which: &str| {
            let fault = check::check(object, Shape::of(&version.schema))?;
            Some(format!("failed to convert {which} object: {fault}"))
        };
        check(old, "old").or_else(|| check(new, "new"))
    })
}

/// Takes over the old `managedFields` if nothing but their times has changed: a write that changes nothing is none.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (entries(old), entries(new)) else { return };
    if before == after || !differ_in_times_only(before, after) {
        return;
    }
    let before = before.clone();
    let after = object::meta_mut(new).insert("managedFields".to_owned(), before);
    if new != old
        && let Some(after) = after
    {
        object::meta_mut(new).insert("managedFields".to_owned(), after);
    }
}

/// Takes the times from what was written by way of a subresource: Kubernetes has none for scales.
pub fn forget_times(object: &mut Value, subresource: &str) {
    let Some(Value::Array(entries)) = object::meta_mut(object).get_mut("managedFields") else { return };
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        if entry.get("subresource").is_some_and(|found| found == subresource) {
            entry.remove("time");
        }
    }
}

/// Whether the types of an object are such that its fields can be followed.
pub fn is_readable(schema: &Schema, object: &Value) -> bool {
    check::check(object, Shape::of(schema)).is_none()
}

fn differ_in_times_only(before: &Value, after: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_array(), after.as_array()) else { return false };
    let timeless = |entry: &'_ Value| -> Vec<(String, Value)> {
        let fields = entry.as_object().into_iter().flatten().filter(|(key, _)| key.as_str() != "time");
        fields.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    before.len() == after.len()
        && before.iter().zip(after).all(|(before, after)| before == after || timeless(before) == timeless(after))
}

/// Server-side apply: what `live` becomes when `writer` applies `intent`. Without `live` the object is made.
///
/// The result is to be defaulted, validated and stored like that of any other patch. `Err` is the conflict (409, with a
/// cause for each field) or what is wrong with the intent.
pub fn apply(
    schema: &Schema,
    live: Option<&Value>,
    intent: &Value,
    writer: Writer<'_>,
    force: bool,
) -> Result<Value, Failure> {
    check_kind(intent, writer)?;
    if object::meta(intent).and_then(|meta| meta.get("managedFields")).is_some_and(|sent| !sent.is_null()) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    let shape = Shape::of(schema);
    if let Some(fault) = check::check(intent, shape) {
        return Err(Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            format!("failed to create typed patch object ({}): {fault}", shown(intent)),
        ));
    }
    let empty = Value::Object(Map::new());
    let mut live = live.unwrap_or(&empty).clone();
    let mut managers = Managers::trusted(object::meta_mut(&mut live).remove("managedFields").unwrap_or_default());
    if managers.is_empty() {
        let before = Writer { manager: "before-first-apply", ..writer };
        update(&mut managers, &nothing_but_what_is_always_there(&live, writer.custom), &live, shape, before);
    }
    managers.reconcile(shape);
    let apply = Apply { live: &live, intent, managers: &managers, shape, writer };
    let Applied { mut object, applier, written, removed } = match apply.perform(force) {
        Ok(applied) => applied,
        Err(conflicts) => {
            // kubectl that used to apply by itself may go on where it left off.
            let allowed = if writer.manager == "kubectl" { apply.last_applied() } else { None };
            let rest = without_allowed(conflicts, allowed.as_ref());
            if !rest.is_empty() {
                return Err(conflict(&rest));
            }
            apply.perform(true).map_err(|conflicts| conflict(&conflicts))?
        }
    };
    managers.lose(Some(&applier), &written, &removed);
    managers.put(applier);
    managers.drop_empty();
    if writer.manager == "kubectl" {
        update_last_applied(&mut object, intent);
    }
    set_managers(&mut object, managers);
    Ok(object)
}

/// One apply, ready to be done.
#[derive(Clone, Copy)]
struct Apply<'a> {
    live: &'a Value,
    intent: &'a Value,
    managers: &'a Managers,
    shape: Shape<'a>,
    writer: Writer<'a>,
}

/// What comes of an apply.
struct Applied {
    object: Value,
    applier: Manager,
    /// What has come or changed.
    written: FieldSet,
    /// What has gone.
    removed: FieldSet,
}

impl<'a> Apply<'a> {
    fn perform(self, force: bool) -> Result<Applied, Vec<Conflict<'a>>> {
        let untouched = top_level(self.writer.untouched);
        let mut applier = Manager::of(self.writer, Operation::Apply);
        applier.fields = fields_of(self.intent, self.shape);
        applier.fields.subtract_whole(&untouched);
        let mut object = merge::merge(self.live, self.intent, self.shape);
        if let Some(previous) = self.managers.find(&applier) {
            applier.time = previous.time;
            if !previous.fields.is_within(&applier.fields) {
                let others = self.managers.owned_by_others(&applier);
                object = merge::prune(&object, &previous.fields, &applier.fields, &others, self.shape);
            }
        }
        applier.fields.subtract(&NOBODYS);
        if object != *self.live {
            applier.time = Some(self.writer.now);
        }
        let changes = compare(self.live, &object, self.shape).without(&untouched);
        let (written, removed) = changes.into_written_and_removed();
        if !force {
            let conflicts = self.managers.conflicts(&applier, &written);
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        Ok(Applied { object, applier, written, removed })
    }

    /// The fields that `kubectl apply` has set, according to its annotation, and that still are as it set them.
    fn last_applied(self) -> Option<FieldSet> {
        let annotation = object::meta(self.live)?.get("annotations")?.get(LAST_APPLIED)?.as_str()?;
        let last: Value = serde_json::from_str(annotation).ok()?;
        if last.get("apiVersion")?.as_str()? != self.writer.api_version || check::check(&last, self.shape).is_some() {
            return None;
        }
        let changes = compare(&last, self.live, self.shape);
        let mut fields = fields_of(&last, self.shape);
        fields.subtract(&changes.modified);
        fields.subtract(&changes.added);
        fields.subtract(&changes.removed);
        Some(fields)
    }
}

/// The annotation in which `kubectl apply` keeps what it has applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How many bytes the annotations of an object may have.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Keeps kubectl's annotation up to date, if there is one, so that its user can go back to applying by itself.
fn update_last_applied(applied: &mut Value, intent: &Value) {
    let annotations = |object: &Value| object::meta(object).and_then(|meta| meta.get("annotations")).cloned();
    let Some(Value::Object(mut present)) = annotations(applied) else { return };
    if present.get(LAST_APPLIED).and_then(Value::as_str).is_none_or(str::is_empty) {
        return;
    }
    let mut intent = intent.clone();
    if let Some(Value::Object(said)) = object::meta_mut(&mut intent).get_mut("annotations") {
        said.remove(LAST_APPLIED);
    }
    present.insert(LAST_APPLIED.to_owned(), format!("{}\n", as_go_writes(&intent)).into());
    let size: usize = present.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MOST_ANNOTATIONS {
        present.remove(LAST_APPLIED);
    }
    object::meta_mut(applied).insert("annotations".to_owned(), Value::Object(present));
}

fn update(managers: &mut Managers, old: &Value, new: &Value, shape: Shape<'_>, writer: Writer<'_>) {
    let changes = compare(old, new, shape).without(&top_level(writer.untouched));
    if !changes.is_empty() {
        managers.updated(Manager::of(writer, Operation::Update), changes, &NOBODYS, writer.now);
    }
}

/// Parts of built-ins that Go's types have whether anybody writes them or not.
const ALWAYS_THERE: [&str; 8] =
    ["spec", "status", "names", "acceptedNames", "source", "deprecatedSource", "involvedObject", "regarding"];

/// The object before anybody has written to it. Nobody owns what it has already: in built-ins these are the parts that
/// cannot be left out, and what is shown as null or as an empty text.
fn nothing_but_what_is_always_there(object: &Value, custom: bool) -> Value {
    if custom {
        return Value::Object(Map::new());
    }
    let fields = object.as_object().into_iter().flatten();
    let always = fields.filter_map(|(key, value)| {
        let was = match value {
            Value::Null => Value::Null,
            // The one text that may be empty and yet said.
            Value::String(text) if text.is_empty() && key != "holderIdentity" => value.clone(),
            Value::Object(_) if ALWAYS_THERE.contains(&key.as_str()) => nothing_but_what_is_always_there(value, false),
            _ => return None,
        };
        Some((key.clone(), was))
    });
    always.collect()
}

fn top_level(fields: &[&str]) -> FieldSet {
    let mut set = FieldSet::default();
    for field in fields {
        set.insert_path(&[field]);
    }
    set
}

/// What a client may make of `managedFields`: it may set them, and it may reset them. What makes no sense is ignored.
fn accepted(sent: &Value, custom: bool) -> Option<Managers> {
    match sent.as_array()?.as_slice() {
        // Kubernetes cannot tell an empty list from none in custom resources.
        [] if custom => None,
        [] => Some(Managers::default()),
        [Value::Object(entry)] if entry.is_empty() => Some(Managers::default()),
        _ => Managers::parse(sent),
    }
}

fn entries(object: &Value) -> Option<&Value> {
    object::meta(object)?.get("managedFields")
}

fn managers_of(object: &Value) -> Managers {
    entries(object).cloned().map(Managers::trusted).unwrap_or_default()
}

fn set_managers(object: &mut Value, managers: Managers) {
    let meta = object::meta_mut(object);
    if managers.is_empty() {
        meta.remove("managedFields");
    } else {
        meta.insert("managedFields".to_owned(), managers.into_json());
    }
}

fn check_kind(intent: &Value, writer: Writer<'_>) -> Result<(), Failure> {
    let text = |key| intent.get(key).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") == writer.api_version && text("kind") == writer.kind {
        return Ok(());
    }
    Err(Failure::bad_request(format!("invalid object type: {}", shown_kind(intent))))
}

/// `<namespace>/<name>; <group>/<version>, Kind=<kind>`.
fn shown(object: &Value) -> String {
    format!("{}/{}; {}", object::namespace(object), object::name(object), shown_kind(object))
}

fn shown_kind(object: &Value) -> String {
    let text = |key| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let api_version = text("apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={}", text("kind"))
}

fn without_allowed<'a>(conflicts: Vec<Conflict<'a>>, allowed: Option<&FieldSet>) -> Vec<Conflict<'a>> {
    let Some(allowed) = allowed else { return conflicts };
    conflicts
        .into_iter()
        .filter_map(|mut conflict| {
            conflict.fields.subtract(allowed);
            (!conflict.fields.is_empty()).then_some(conflict)
        })
        .collect()
}

fn conflict(conflicts: &[Conflict<'_>]) -> Failure {
    let mut causes = Vec::new();
    let mut groups = Vec::new();
    for conflict in conflicts {
        let mut group = format!("conflicts with {}:", conflict.with);
        conflict.fields.each_path("", &mut |field| {
            group.push_str("\n- ");
            group.push_str(&field);
            let message = format!("conflict with {}", conflict.with);
            causes.push(Cause { reason: "FieldManagerConflict".to_owned(), message, field });
        });
        groups.push(group);
    }
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        many => format!("Apply failed with {} conflicts: {}", many.len(), groups.join("\n")),
    };
    let mut failure = Failure::new(StatusCode::CONFLICT, "Conflict", message);
    failure.details = Some(Box::new(Details { causes, ..Details::default() }));
    failure
}
