//! What the server says about itself: groups, resources, schemas, version, health.

use conformance::Story;
use serde_json::{Map, Value, json};

use crate::court::cases;
use crate::samples::definition;

cases![
    the_groups_are_listed,
    the_versions_of_core,
    resources_of_core,
    resources_of_other_groups,
    resources_of_custom_groups,
    the_aggregated_document,
    the_aggregated_document_has_a_tag,
    a_new_kind_is_discovered,
    the_version,
    health,
    openapi_is_indexed,
    openapi_of_custom_objects,
    openapi_of_built_ins,
    openapi_follows_definitions,
    the_roots,
];

/// The groups that both servers have.
const GROUPS: [&str; 7] = [
    "",
    "apiextensions.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "suite.example.com",
];

/// The resources of core that both servers have.
const CORE: [&str; 10] = [
    "configmaps",
    "events",
    "namespaces",
    "namespaces/finalize",
    "namespaces/status",
    "secrets",
    "serviceaccounts",
    "serviceaccounts/token",
    "nothing",
    "nothing/status",
];

async fn the_groups_are_listed(s: &mut Story) {
    let groups = s.ask("GET", "/apis", &[], "").await;
    groups.is(200).has("/kind", "APIGroupList");
    let known = groups.at("/groups").as_array().into_iter().flatten();
    let mut common: Vec<_> =
        known.filter(|group| GROUPS.contains(&group["name"].as_str().unwrap_or_default())).cloned().collect();
    common.sort_by_key(|group| group["name"].to_string());
    s.record("groups", common.into());
    for group in &GROUPS[1..] {
        s.get(&format!("/apis/{group}")).await.is(200);
    }
}

async fn the_versions_of_core(s: &mut Story) {
    s.get("/api").await.is(200).has("/versions/0", "v1");
}

async fn resources_of_core(s: &mut Story) {
    let found = s.ask("GET", "/api/v1", &[], "").await;
    found.is(200).has("/kind", "APIResourceList");
    let all = found.at("/resources").as_array().into_iter().flatten();
    let common: Vec<_> = all.filter(|one| CORE.contains(&one["name"].as_str().unwrap_or_default())).cloned().collect();
    s.record("resources", common.into());
}

async fn resources_of_other_groups(s: &mut Story) {
    for (path, names) in [
        ("/apis/apiextensions.k8s.io/v1", vec!["customresourcedefinitions", "customresourcedefinitions/status"]),
        ("/apis/coordination.k8s.io/v1", vec!["leases"]),
        ("/apis/events.k8s.io/v1", vec!["events"]),
        ("/apis/authentication.k8s.io/v1", vec!["selfsubjectreviews", "tokenreviews"]),
        ("/apis/authorization.k8s.io/v1", vec!["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    ] {
        let found = s.ask("GET", path, &[], "").await;
        found.is(200);
        let all = found.at("/resources").as_array().into_iter().flatten();
        let common: Vec<_> =
            all.filter(|one| names.contains(&one["name"].as_str().unwrap_or_default())).cloned().collect();
        s.record(path, common.into());
    }
}

async fn resources_of_custom_groups(s: &mut Story) {
    s.get("/apis/suite.example.com/v1").await.is(200).has("/resources/0/shortNames", json!(["wd"]));
}

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn found_in(document: &Value, group: &str) -> Value {
    let groups = document["items"].as_array().into_iter().flatten();
    let mut found = groups.filter(|one| one["metadata"]["name"].as_str().unwrap_or_default() == group).cloned();
    found.next().unwrap_or_default()
}

/// Only the resources of these names.
fn only(mut group: Value, names: &[&str]) -> Value {
    for version in group["versions"].as_array_mut().into_iter().flatten() {
        if let Some(resources) = version["resources"].as_array_mut() {
            resources.retain(|one| names.contains(&one["resource"].as_str().unwrap_or_default()));
        }
    }
    group
}

async fn the_aggregated_document(s: &mut Story) {
    let core = s.ask("GET", "/api", &[("accept", AGGREGATED)], "").await;
    core.is(200).has("/kind", "APIGroupDiscoveryList");
    s.record("core", only(found_in(core.body(), ""), &CORE));
    let groups = s.ask("GET", "/apis", &[("accept", AGGREGATED)], "").await;
    s.record("custom", found_in(groups.body(), "suite.example.com"));
    s.record("leases", only(found_in(groups.body(), "coordination.k8s.io"), &["leases"]));
    s.record("events", found_in(groups.body(), "events.k8s.io"));
    s.record("definitions", found_in(groups.body(), "apiextensions.k8s.io"));
    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    let groups = s.ask("GET", "/apis", &[("accept", old)], "").await;
    s.record("custom, in the old format", found_in(groups.body(), "suite.example.com"));
}

async fn the_aggregated_document_has_a_tag(s: &mut Story) {
    let answer = s.ask("GET", "/apis", &[("accept", &format!("{AGGREGATED},application/json"))], "").await;
    s.record("its content type", answer.content_type().into());
    s.record("a tag", answer.header("etag").starts_with('"').into());
    // Others may define kinds between two requests.
    let mut not_modified = false;
    for _ in 0..20 {
        let tag = s.ask("GET", "/api", &[("accept", AGGREGATED)], "").await.header("etag");
        let again = s.ask("GET", "/api", &[("accept", AGGREGATED), ("if-none-match", &tag)], "").await;
        if again.code() == 304 {
            not_modified = true;
            break;
        }
    }
    s.record("not modified", not_modified.into());
}

async fn a_new_kind_is_discovered(s: &mut Story) {
    let mut definition = definition(s, "Thing", json!({"type": "object"}));
    definition["spec"]["names"]["shortNames"] = json!(["tg"]);
    s.define(definition).await;
    let name = s.group();
    s.eventually("/apis/{group}", "listed", |answer| answer.code() == 200).await;
    s.eventually("/apis/{group}/v1", "listed", |answer| answer.at("/resources/0/name") == "things").await;
    let mut found = Value::Null;
    for _ in 0..100 {
        let all = s.ask("GET", "/apis", &[("accept", AGGREGATED)], "").await;
        found = found_in(all.body(), &name);
        if found.is_object() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    s.record("in the aggregated document", found);
}

async fn the_version(s: &mut Story) {
    let version = s.ask("GET", "/version", &[], "").await;
    version.is(200).has("/major", "1").has("/minor", "33");
    s.record(
        "its parts",
        json!([
            version.at("/major"),
            version.at("/minor"),
            version.body().as_object().map(|all| all.keys().cloned().collect::<Vec<_>>())
        ]),
    );
}

async fn health(s: &mut Story) {
    for path in ["/healthz", "/livez", "/readyz"] {
        s.get(path).await.is(200);
        s.send_anonymously("GET", path).await.is(200);
    }
    s.get("/healthz/ping").await.is(200);
    s.get("/livez/ping").await.is(200);
}

async fn openapi_is_indexed(s: &mut Story) {
    let index =
        s.until("/openapi/v3", "indexed", |answer| !answer.at("/paths/apis~1suite.example.com~1v1").is_null()).await;
    let paths = ["api/v1", "apis/coordination.k8s.io/v1", "apis/suite.example.com/v1", "apis/apiextensions.k8s.io/v1"];
    let known: Vec<_> = paths
        .iter()
        .map(|path| {
            let url = index.at("/paths")[*path]["serverRelativeURL"].as_str().unwrap_or_default().to_owned();
            url.split("hash=").next().unwrap_or_default().to_owned()
        })
        .collect();
    s.record("documents", known.into());
}

/// The parts of a document that kubectl reads: the kinds' schemas, and the operations with their parameters.
fn of_widget(document: &Value) -> Value {
    let schema = document.pointer("/components/schemas/com.example.suite.v1.Widget").cloned().unwrap_or_default();
    let mut operations = Map::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let Some(kind) = operation.get("x-kubernetes-group-version-kind") else { continue };
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let mut names: Vec<_> = parameters.map(|one| one["name"].clone()).collect();
            names.sort_by_key(Value::to_string);
            operations.insert(format!("{method} {path}"), json!([kind, operation["x-kubernetes-action"], names]));
        }
    }
    json!({"schema": schema, "operations": operations})
}

async fn openapi_of_custom_objects(s: &mut Story) {
    let path = "/openapi/v3/apis/suite.example.com/v1";
    let document = s.until(path, "published", |answer| answer.code() == 200).await;
    let widget = of_widget(document.body());
    s.record("schema", without_prose(widget["schema"].clone()));
    let operation = &widget["operations"]["patch /apis/suite.example.com/v1/namespaces/{namespace}/widgets/{name}"];
    s.record("patch", operation.clone());
    let mut paths: Vec<_> =
        document.at("/paths").as_object().into_iter().flatten().map(|(path, _)| path.clone()).collect();
    paths.sort();
    s.record("paths", paths.into());
}

async fn openapi_of_built_ins(s: &mut Story) {
    let document = s.ask("GET", "/openapi/v3/api/v1", &[], "").await;
    document.is(200);
    for name in [
        "ConfigMap",
        "Secret",
        "ServiceAccount",
        "Namespace",
        "NamespaceSpec",
        "NamespaceStatus",
        "ObjectReference",
        "LocalObjectReference",
    ] {
        let schema = document.at("/components/schemas")[format!("io.k8s.api.core.v1.{name}")].clone();
        // The prose is Kubernetes' own.
        s.record(name, without_descriptions(schema));
    }
    let parameters = document.at("/paths/~1api~1v1~1namespaces~1{namespace}~1configmaps~1{name}/patch/parameters");
    let mut names: Vec<_> = parameters.as_array().into_iter().flatten().map(|one| one["name"].clone()).collect();
    names.sort_by_key(Value::to_string);
    s.record("parameters of a patch", names.into());
}

/// What is said of fields that all kinds have is Kubernetes' own prose, and ours.
fn without_prose(mut schema: Value) -> Value {
    for field in ["apiVersion", "kind", "metadata"] {
        if let Some(field) = schema.pointer_mut(&format!("/properties/{field}/description")) {
            *field = "<prose>".into();
        }
    }
    schema
}

fn without_descriptions(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                if members.get("description").is_some_and(Value::is_string) {
                    members.remove("description");
                }
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

async fn openapi_follows_definitions(s: &mut Story) {
    let definition = definition(
        s,
        "Thing",
        json!({"type": "object", "description": "What a thing is.", "properties": {
            "a": {"type": "string", "description": "The a."},
            "list": {"type": "array", "items": {"type": "object", "properties": {"b": {"type": "integer"}}}},
        }}),
    );
    s.define(definition).await;
    let document = s.until("/openapi/v3/apis/{group}/v1", "published", |answer| answer.code() == 200).await;
    let name = document
        .at("/components/schemas")
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .find(|name| name.ends_with(".v1.Thing"));
    let name = name.unwrap_or_default();
    s.record("schema", without_prose(document.at("/components/schemas")[name].clone()));
}

async fn the_roots(s: &mut Story) {
    s.get("/nothing/here").await.is(404);
    s.get("/api/").await;
    s.get("/apis/suite.example.com/").await;
    s.get("/apis/suite.example.com/v1/").await;
}
