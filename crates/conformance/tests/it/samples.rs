//! Definitions and objects that many cases use.

use std::fmt::Write as _;

use conformance::{Story, Target};
use serde_json::{Value, json};

/// Widgets in the case's namespace.
pub(crate) const WIDGETS: &str = "/apis/suite.example.com/v1/namespaces/{ns}/widgets";

/// ConfigMaps in the case's namespace.
pub(crate) const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";

/// Secrets in the case's namespace. Unlike with ConfigMaps, nobody else makes any.
pub(crate) const SECRETS: &str = "/api/v1/namespaces/{ns}/secrets";

/// Definitions of custom resources.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const HOSTS: &str = include_str!("../../../../config/crd/infrastructure.cluster.x-k8s.io_physicalhosts.yaml");

/// Creates what all cases share.
pub(crate) async fn define(target: &Target) {
    let mut story = Story::new("shared", target.clone());
    story.define_once(widgets()).await;
    story.define_once(serde_saphyr::from_str(HOSTS).unwrap()).await;
}

/// A ConfigMap.
pub(crate) fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// A ConfigMap with data.
pub(crate) fn map_of(name: &str, data: Value) -> Value {
    let mut map = map(name);
    map["data"] = data;
    map
}

/// A Secret.
pub(crate) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

/// A widget.
pub(crate) fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "suite.example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A definition in the case's own group: one version `v1`, stored and served, with this schema of `spec`.
pub(crate) fn definition(story: &Story, kind: &str, spec: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    definition_with_schema(story, kind, schema)
}

/// A definition in the case's own group with a schema of its own.
pub(crate) fn definition_with_schema(story: &Story, kind: &str, schema: Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let group = story.group();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// An object of a kind in the case's own group.
pub(crate) fn object(story: &Story, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{}/v1", story.group()), "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

/// A text as it is written in a query.
pub(crate) fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    })
}

fn widgets() -> Value {
    serde_saphyr::from_str(include_str!("widgets.yaml")).unwrap()
}

/// Defines a Thing, and answers its path.
pub(crate) async fn thing(s: &mut Story, spec: Value) -> String {
    let definition = definition(s, "Thing", spec);
    s.define(definition).await
}

/// A Thing that would be taken.
pub(crate) async fn accepted(s: &mut Story, path: &str, spec: Value) {
    let object = object(s, "Thing", "a", spec);
    s.post(&format!("{path}?dryRun=All"), object).await.is(201);
}

/// A Thing that is not valid.
pub(crate) async fn refused(s: &mut Story, path: &str, spec: Value) {
    let object = object(s, "Thing", "a", spec);
    s.post(&format!("{path}?dryRun=All"), object).await.is(422);
}
