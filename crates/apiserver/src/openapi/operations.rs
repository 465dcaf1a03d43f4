//! The paths in a document: what can be done with a resource, and by which parameters.

use serde_json::{Map, Value, json};

use super::schemas::{group_version_kind, reference};
use crate::catalogue::Served;
use crate::resource::Scope;

/// What the body of `/scale` looks like.
pub(super) const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Schemas that operations on any resource refer to.
pub(super) const ALWAYS: [&str; 3] = [DELETE_OPTIONS, PATCH, STATUS];

const PRETTY: [&str; 1] = ["pretty"];
const LIST: [&str; 10] = [
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
];
const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];
const APPLY: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];
const DELETE: [&str; 4] = ["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
const READ: [&str; 1] = ["resourceVersion"];

/// `/apis/<group>/<version>`.
pub(super) fn root(served: &Served) -> String {
    let version = &served.version().name;
    match served.group() {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

/// All paths of a resource in a version. `schema` is the name of the schema of its objects.
pub(super) fn paths(served: &Served, schema: &str) -> Map<String, Value> {
    let resource = &served.resource;
    let subject = Subject { served };
    let (root, plural, kind) = (root(served), &resource.plural, &resource.kind);
    let namespaced = resource.scope == Scope::Namespaced;
    let in_namespace: &[&str] = if namespaced { &["namespace"] } else { &[] };
    let scope = if namespaced { "Namespaced" } else { "" };
    let folder =
        if namespaced { format!("{root}/namespaces/{{namespace}}/{plural}") } else { format!("{root}/{plural}") };
    let list = format!("{schema}List");

    let mut paths = Map::new();
    let mut collection = path(in_namespace);
    collection["get"] =
        subject.operation("list", &format!("{scope}{kind}"), "list", "Lists objects", &LIST, None, &list);
    collection["post"] =
        subject.operation("create", &format!("{scope}{kind}"), "post", "Makes an object", &WRITE, Some(schema), schema);
    if resource.custom || plural != "namespaces" {
        let name = format!("Collection{scope}{kind}");
        let what = "Deletes all objects that are selected";
        collection["delete"] = subject.operation("delete", &name, "deletecollection", what, &LIST, None, STATUS);
    }
    paths.insert(folder.clone(), collection);
    if namespaced {
        let name = format!("{kind}ForAllNamespaces");
        let mut everywhere = path(&[]);
        everywhere["get"] =
            subject.operation("list", &name, "list", "Lists objects of all namespaces", &LIST, None, &list);
        paths.insert(format!("{root}/{plural}"), everywhere);
    }

    let of_one: Vec<&str> = ["name"].iter().chain(in_namespace).copied().collect();
    let name = format!("{scope}{kind}");
    let mut one = subject.read_and_write(&of_one, &name, schema, "an object");
    one["delete"] =
        subject.operation("delete", &name, "delete", "Deletes an object", &DELETE, Some(DELETE_OPTIONS), STATUS);
    paths.insert(format!("{folder}/{{name}}"), one);
    if served.version().status {
        let status = subject.read_and_write(&of_one, &format!("{name}Status"), schema, "the status of an object");
        paths.insert(format!("{folder}/{{name}}/status"), status);
    }
    if served.version().scale.is_some() {
        let mut scale = subject.read_and_write(&of_one, &format!("{name}Scale"), SCALE, "the scale of an object");
        for (_, operation) in scale.as_object_mut().into_iter().flatten().filter(|(verb, _)| *verb != "parameters") {
            operation["x-kubernetes-group-version-kind"] =
                json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
        }
        paths.insert(format!("{folder}/{{name}}/scale"), scale);
    }
    if !resource.custom && plural == "namespaces" {
        let mut finalize = path(&of_one);
        let what = "Replaces the finalizers of an object";
        finalize["put"] = subject.operation("replace", "NamespaceFinalize", "put", what, &WRITE, Some(schema), schema);
        paths.insert(format!("{folder}/{{name}}/finalize"), finalize);
    }
    paths
}

/// A path with parameters that all its operations have.
fn path(parts: &[&str]) -> Value {
    let parts = parts.iter().map(|part| {
        let what = if *part == "name" { "The name of the object." } else { "The namespace of the object." };
        json!({
            "name": part, "in": "path", "required": true, "description": what,
            "schema": { "type": "string", "uniqueItems": true },
        })
    });
    json!({ "parameters": parts.chain(PRETTY.map(parameter)).collect::<Vec<_>>() })
}

/// What operations are about.
struct Subject<'a> {
    served: &'a Served,
}

impl Subject<'_> {
    fn read_and_write(&self, parts: &[&str], name: &str, schema: &str, what: &str) -> Value {
        let mut path = path(parts);
        path["get"] = self.operation("read", name, "get", &format!("Reads {what}"), &READ, None, schema);
        path["put"] = self.operation("replace", name, "put", &format!("Replaces {what}"), &WRITE, Some(schema), schema);
        path["patch"] = self.operation("patch", name, "patch", &format!("Changes {what}"), &APPLY, Some(PATCH), schema);
        path
    }

    #[expect(clippy::too_many_arguments, reason = "a line of a table")]
    fn operation(
        &self,
        verb: &str,
        name: &str,
        action: &str,
        what: &str,
        parameters: &[&str],
        body: Option<&str>,
        answer: &str,
    ) -> Value {
        let (served, kind) = (self.served, &self.served.resource.kind);
        let group = camel_case(served);
        let version = &served.version().name;
        let mut operation = json!({
            "tags": [format!("{}_{version}", lower_first(&group))],
            "description": format!("{what} of kind {kind}."),
            "operationId": format!("{verb}{group}{}{name}", upper_first(version)),
            "parameters": parameters.iter().copied().map(parameter).collect::<Vec<_>>(),
            "responses": self.responses(action, answer),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": group_version_kind(served, kind),
        });
        if let Some(schema) = body {
            operation["requestBody"] = json!({ "content": self.content(schema), "required": schema != DELETE_OPTIONS });
        }
        operation
    }

    fn responses(&self, action: &str, schema: &str) -> Value {
        let mut responses = json!({ "401": { "description": "Unauthorized" } });
        let codes: &[(&str, &str)] = match action {
            "post" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
            "put" => &[("200", "OK"), ("201", "Created")],
            "patch" if !self.served.resource.custom => &[("200", "OK"), ("201", "Created")],
            "delete" => &[("200", "OK"), ("202", "Accepted")],
            _ => &[("200", "OK")],
        };
        for (code, description) in codes {
            responses[code] = json!({ "description": description, "content": self.content(schema) });
        }
        responses
    }

    fn content(&self, schema: &str) -> Value {
        let media: &[&str] = if schema != PATCH {
            &["application/json", "application/yaml"]
        } else if self.served.resource.custom {
            &["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
        } else {
            &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
            ]
        };
        let content = media.iter().map(|media| ((*media).to_owned(), json!({ "schema": reference(schema) })));
        Value::Object(content.collect())
    }
}

/// `CoreV1` is the group of built-ins by its first label; `InfrastructureClusterXK8sIo` that of custom resources by all.
fn camel_case(served: &Served) -> String {
    let group = served.group();
    if group.is_empty() {
        return "Core".to_owned();
    }
    let labels = if served.resource.custom { group } else { group.split('.').next().unwrap_or(group) };
    labels.split(['.', '-']).map(upper_first).collect()
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}

fn parameter(name: &str) -> Value {
    let (kind, what) = match name {
        "allowWatchBookmarks" => ("boolean", "Whether a watch may say how far it is, by events of type BOOKMARK."),
        "continue" => ("string", "What the page before said about where the next one begins."),
        "dryRun" => ("string", "All: do everything but keep nothing."),
        "fieldManager" => ("string", "Who owns the fields that are written. Required to apply."),
        "fieldSelector" => ("string", "Only objects with these fields: metadata.name=a."),
        "fieldValidation" => (
            "string",
            "What to do about unknown and repeated fields: Ignore, Warn or Strict (refuse). Warn by default.",
        ),
        "force" => ("boolean", "To apply even where that takes fields from other owners."),
        "gracePeriodSeconds" => ("integer", "How long the object may take to end."),
        "labelSelector" => ("string", "Only objects with these labels: a=b,c in (d,e)."),
        "limit" => ("integer", "At most so many objects in one answer."),
        "orphanDependents" => ("boolean", "Old form of propagationPolicy."),
        "pretty" => ("string", "Whether the answer is indented."),
        "propagationPolicy" => {
            ("string", "What becomes of the objects that belong to it: Orphan, Background or Foreground.")
        }
        "resourceVersion" => ("string", "How new the answer must be, or where a watch begins."),
        "resourceVersionMatch" => ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
        "sendInitialEvents" => ("boolean", "Whether a watch begins with what is there already."),
        "timeoutSeconds" => ("integer", "How long the answer may take."),
        "watch" => ("boolean", "To be told what changes from now on, instead of what there is."),
        _ => ("string", ""),
    };
    json!({ "name": name, "in": "query", "description": what, "schema": { "type": kind, "uniqueItems": true } })
}
