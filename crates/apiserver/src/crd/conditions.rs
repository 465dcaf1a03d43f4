//! `status.conditions` of definitions.

use serde_json::{Value, json};

/// One condition, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) kind: &'static str,
    pub(crate) status: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    pub(crate) fn new(kind: &'static str, status: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, status, reason, message: message.into() }
    }

    /// All names are accepted and the resource is served.
    pub(crate) fn established() -> Self {
        Self::new("Established", true, "InitialNamesAccepted", "the initial names have been accepted")
    }

    pub(crate) fn not_established() -> Self {
        Self::new("Established", false, "NotAccepted", "not all names are accepted")
    }

    /// The definition is to be deleted.
    pub(crate) fn deletion_pending() -> Self {
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        Self::new("Terminating", true, "InstanceDeletionPending", message)
    }

    /// The objects of the definition are being deleted.
    pub(crate) fn deleting_objects() -> Self {
        Self::new("Terminating", true, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    }
}

/// Whether a condition is `True`.
pub(crate) fn is_true(definition: &Value, kind: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Sets a condition. Its time only changes with its status.
pub(crate) fn set(status: &mut Value, condition: &Condition, now: &str) {
    let Condition { kind, status: holds, reason, message } = condition;
    let holds = if *holds { "True" } else { "False" };
    let Value::Object(fields) = status else { return };
    let conditions = fields.entry("conditions").or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(conditions) = conditions else { return };
    let mut fresh = json!({
        "type": kind, "status": holds, "reason": reason, "message": message, "lastTransitionTime": now,
    });
    match conditions.iter_mut().find(|known| known["type"] == *kind) {
        None => conditions.push(fresh),
        Some(known) => {
            if known["status"] == holds && known["lastTransitionTime"].is_string() {
                fresh["lastTransitionTime"] = known["lastTransitionTime"].clone();
            }
            *known = fresh;
        }
    }
}
