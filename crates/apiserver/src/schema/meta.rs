//! What every resource has without declaring it: `apiVersion`, `kind`, `metadata`.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::node::Node;
use super::read;

/// The schema of `apiVersion`, `kind` or `metadata`.
pub(crate) fn known(key: &str) -> Option<&'static Node> {
    match key {
        "apiVersion" | "kind" => Some(&TEXT),
        "metadata" => Some(&OBJECT_META),
        _ => None,
    }
}

/// Whether the schema need not declare it.
pub(crate) fn is_known(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

static TEXT: LazyLock<Node> = LazyLock::new(|| read::node(&json!({"type": "string"})));

static OBJECT_META: LazyLock<Node> = LazyLock::new(|| read::node(&object_meta()));

/// `metav1.ObjectMeta`.
fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let integer = json!({"type": "integer", "format": "int64"});
    let flag = json!({"type": "boolean"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({"type": "object", "properties": {
        "annotations": texts,
        "creationTimestamp": time,
        "deletionGracePeriodSeconds": integer,
        "deletionTimestamp": time,
        "finalizers": {
            "type": "array", "items": text,
            "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
        },
        "generateName": text,
        "generation": integer,
        "labels": texts,
        "managedFields": {
            "type": "array", "x-kubernetes-list-type": "atomic",
            "items": {"type": "object", "properties": {
                "apiVersion": text,
                "fieldsType": text,
                "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "manager": text,
                "operation": text,
                "subresource": text,
                "time": time,
            }},
        },
        "name": text,
        "namespace": text,
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text,
                "blockOwnerDeletion": flag,
                "controller": flag,
                "kind": text,
                "name": text,
                "uid": text,
            }},
        },
        "resourceVersion": text,
        "selfLink": text,
        "uid": text,
    }})
}
