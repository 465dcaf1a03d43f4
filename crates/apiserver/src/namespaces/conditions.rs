//! What the conditions of a namespace say while it is being deleted, in the words of kube-controller-manager.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schema::object;
use serde_json::{Value, json};

use crate::resource::Resource;

/// What is left in a namespace.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// How many objects, by resource: `configmaps.`, `widgets.example.com`.
    pub(super) objects: BTreeMap<String, usize>,
    /// How many objects, by finalizer.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// What could not be deleted, and why.
    pub(super) failures: BTreeSet<String>,
}

impl Remains {
    pub(super) fn count(&mut self, resource: &Resource, object: &Value) {
        *self.objects.entry(format!("{}.{}", resource.plural, resource.group)).or_default() += 1;
        for finalizer in object::finalizers(object) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Writes the conditions; those that say the same as before stay as they are.
    pub(super) fn tell(&self, status: &mut Value, now: Timestamp) {
        if !status.is_object() {
            *status = json!({});
        }
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        let Some(conditions) = status["conditions"].as_array_mut() else { return };
        for (kind, failing, reason, message) in self.conditions() {
            let value = if failing { "True" } else { "False" };
            let position = conditions.iter().position(|condition| condition["type"] == kind);
            match position.map(|position| &mut conditions[position]) {
                None => conditions.push(json!({
                    "type": kind, "status": value, "reason": reason, "message": message,
                    "lastTransitionTime": stamp(now),
                })),
                Some(condition) => {
                    if condition["status"] != value {
                        condition["status"] = value.into();
                        condition["lastTransitionTime"] = stamp(now).into();
                    }
                    condition["reason"] = reason.into();
                    condition["message"] = message.into();
                }
            }
        }
    }

    /// Type, whether it is true, reason and message.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let list = |counts: &BTreeMap<String, usize>, word: &str| {
            let mut all: Vec<String> =
                counts.iter().map(|(what, count)| format!("{what} {word} {count} resource instances")).collect();
            all.sort();
            all.join(", ")
        };
        let choose = |failing: bool, bad: (&'static str, String), good: (&'static str, &str)| {
            if failing { (true, bad.0, bad.1) } else { (false, good.0, good.1.to_owned()) }
        };
        let content = choose(
            !self.failures.is_empty(),
            ("ContentDeletionFailed", {
                let all: Vec<&str> = self.failures.iter().map(String::as_str).collect();
                format!("Failed to delete all resource types, {} remaining: {}", all.len(), all.join(", "))
            }),
            ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        );
        let objects = choose(
            !self.objects.is_empty(),
            ("SomeResourcesRemain", format!("Some resources are remaining: {}", list(&self.objects, "has"))),
            ("ContentRemoved", "All content successfully removed"),
        );
        let finalizers = choose(
            !self.finalizers.is_empty(),
            (
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {}", list(&self.finalizers, "in")),
            ),
            ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
        );
        let with = |kind, (failing, reason, message): (bool, &'static str, String)| (kind, failing, reason, message);
        [
            // Discovery cannot fail within one process.
            (
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            with("NamespaceDeletionContentFailure", content),
            with("NamespaceContentRemaining", objects),
            with("NamespaceFinalizersRemaining", finalizers),
        ]
    }
}

fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
