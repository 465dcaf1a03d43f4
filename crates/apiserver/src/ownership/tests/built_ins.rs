//! What a real kube-apiserver records when a built-in is made.

use serde_json::{Value, json};

use super::units::writer;
use crate::builtins;
use crate::ownership::{Writer, record_update};

/// The kind and group of a built-in, what is sent, and what its writer then owns.
fn cases() -> Vec<(&'static str, &'static str, Value, Value)> {
    vec![
        (
            "Namespace",
            "",
            json!({"metadata": {"name": "n", "labels": {"x": "1"}}}),
            json!({"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}, "f:x": {}}}}),
        ),
        (
            "Secret",
            "",
            json!({"metadata": {"name": "s"}, "stringData": {"a": "x"}, "data": {"b": "eA=="}}),
            json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:type": {}}),
        ),
        (
            "ConfigMap",
            "",
            json!({"metadata": {"name": "s"}, "data": {}, "binaryData": {"x": "eA=="}, "immutable": null}),
            json!({"f:binaryData": {".": {}, "f:x": {}}}),
        ),
        (
            "ServiceAccount",
            "",
            json!({"metadata": {"name": "s"}, "automountServiceAccountToken": false, "secrets": []}),
            json!({"f:automountServiceAccountToken": {}}),
        ),
        (
            "Lease",
            "coordination.k8s.io",
            json!({"metadata": {"name": "s"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 5}}),
            json!({"f:spec": {"f:holderIdentity": {}, "f:leaseDurationSeconds": {}}}),
        ),
        (
            "Event",
            "",
            json!({
                "metadata": {"name": "s"}, "involvedObject": {"kind": "X", "name": "y", "namespace": "n"},
                "reason": "R", "message": "m", "type": "Normal", "count": 1, "source": {"component": "c"},
                "firstTimestamp": "2026-01-01T00:00:00Z", "series": null,
            }),
            json!({
                "f:count": {}, "f:firstTimestamp": {}, "f:involvedObject": {}, "f:message": {}, "f:reason": {},
                "f:source": {"f:component": {}}, "f:type": {},
            }),
        ),
        (
            "CustomResourceDefinition",
            "apiextensions.k8s.io",
            json!({
                "metadata": {"name": "morphs.example.com"},
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": {"plural": "morphs", "singular": "morph", "kind": "Morph", "listKind": "MorphList"},
                    "versions": [{"name": "v1", "served": true, "storage": true}],
                },
            }),
            json!({"f:spec": {
                "f:conversion": {".": {}, "f:strategy": {}}, "f:group": {},
                "f:names": {"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:singular": {}},
                "f:scope": {}, "f:versions": {},
            }}),
        ),
    ]
}

#[test]
fn who_makes_a_built_in_owns_what_it_sent_and_what_was_filled_in() {
    let resources = builtins::resources().unwrap();
    for (kind, group, mut object, expected) in cases() {
        let resource = resources.iter().find(|known| known.kind == kind && known.group == group).unwrap();
        let version = resource.stored();
        (resource.hooks.default)(&mut object);
        let api_version = resource.api_version(version);
        let writer = Writer {
            api_version: &api_version,
            kind,
            untouched: if version.status { &["status"] } else { &[] },
            custom: false,
            ..writer("c")
        };
        record_update(&version.schema, None, &mut object, writer);
        assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"], expected, "{kind}: {object:#}");
    }
}
