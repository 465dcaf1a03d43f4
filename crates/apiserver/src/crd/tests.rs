use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use store::{Change, Expect};
use tokio::task::JoinSet;

use super::conditions::is_true;
use super::*;
use crate::catalogue::{Served, Shelf};
use crate::clock::Clock;
use crate::resource::Part;
use crate::table::{IncludeObject, Tabulator};
use crate::verbs::{Api, DeleteOptions, WriteOptions};

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": { "plural": plural, "kind": kind },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": {
                    "type": "object", "properties": { "color": { "type": "string" } },
                } } } },
            }],
        },
    })
}

fn named(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

/// A server without a door: objects, catalogue and the controller of definitions.
struct Bench {
    api: Api,
    _tasks: JoinSet<()>,
}

impl Bench {
    fn new(store: Store) -> Self {
        let definitions = Definitions::load(&store).unwrap();
        let now: Timestamp = "2026-11-16T02:45:44Z".parse().unwrap();
        let api = Api::new(store, Shelf::new(definitions.catalogue()), Clock::new(move || now), 1);
        let mut tasks = JoinSet::new();
        tasks.spawn(definitions.run(api.clone()));
        Self { api, _tasks: tasks }
    }

    fn definitions(&self) -> Served {
        self.api.served("apiextensions.k8s.io", "v1", "customresourcedefinitions").unwrap()
    }

    async fn define(&self, definition: Value) -> Value {
        let written = self.api.create(&self.definitions(), "", definition, &WriteOptions::by("t")).await;
        written.unwrap().object
    }

    /// The definition, once this holds of it.
    async fn until(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.wait(|| {
            let definition = self.api.get(&self.definitions(), "", name).ok()?;
            holds(&definition).then_some(definition)
        })
        .await
    }

    async fn wait<T>(&self, found: impl Fn() -> Option<T>) -> T {
        let look = async {
            loop {
                let revision = self.api.store().revision();
                let mut catalogue = self.api.shelf().changes();
                catalogue.mark_unchanged();
                if let Some(found) = found() {
                    return found;
                }
                let mut watch = self.api.store().watch("/registry/", revision).unwrap();
                tokio::select! { _ = watch.next() => {}, _ = catalogue.changed() => {} }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), look).await.expect("it happens within ten seconds")
    }

    async fn established(&self, name: &str) -> Value {
        self.until(name, |definition| is_true(definition, "Established")).await
    }
}

#[tokio::test]
async fn a_definition_is_established_and_its_resource_served() {
    let bench = Bench::new(Store::memory());
    let new = bench.define(definition("widgets", "Widget")).await;
    assert_eq!(new["metadata"]["generation"], 1);
    assert_eq!(
        new["status"],
        json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": ["v1"] })
    );
    let established = bench.established("widgets.example.com").await;
    assert_eq!(
        established["status"],
        json!({
            "acceptedNames": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "conditions": [
                {
                    "type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found",
                    "lastTransitionTime": "2026-11-16T02:45:44Z",
                },
                {
                    "type": "Established", "status": "True", "reason": "InitialNamesAccepted",
                    "message": "the initial names have been accepted", "lastTransitionTime": "2026-11-16T02:45:44Z",
                },
            ],
            "storedVersions": ["v1"],
        })
    );
    let served = bench.api.served("example.com", "v1", "widgets").unwrap();
    let widget = json!({ "metadata": { "name": "a" }, "spec": { "color": "red", "size": 1 } });
    let widget = bench.api.create(&served, "", widget, &WriteOptions::by("t")).await.unwrap().object;
    assert_eq!(widget["spec"], json!({ "color": "red" }));
    let table =
        Tabulator::new(served.version(), "v1", IncludeObject::None).table_of_one(&widget, true, bench.api.now());
    assert_eq!(table["rows"][0]["cells"], json!(["a", "0s"]));
}

#[tokio::test]
async fn names_belong_to_whoever_has_them_and_are_free_when_given_up() {
    let bench = Bench::new(Store::memory());
    bench.define(definition("widgets", "Widget")).await;
    bench.established("widgets.example.com").await;
    let mut second = definition("gizmos", "Widget");
    second["spec"]["names"]["shortNames"] = json!(["widget", "widgets", "gz"]);
    second["spec"]["names"]["singular"] = "gizmo".into();
    second["spec"]["names"]["listKind"] = "GizmoList".into();
    bench.define(second).await;
    let refused = bench.until("gizmos.example.com", |definition| definition["status"]["conditions"].is_array()).await;
    assert_eq!(
        refused["status"],
        json!({
            "acceptedNames": { "plural": "gizmos", "singular": "gizmo", "kind": "", "listKind": "GizmoList" },
            "conditions": [
                {
                    "type": "NamesAccepted", "status": "False", "reason": "KindConflict",
                    "message": "\"Widget\" is already in use", "lastTransitionTime": "2026-11-16T02:45:44Z",
                },
                {
                    "type": "Established", "status": "False", "reason": "NotAccepted",
                    "message": "not all names are accepted", "lastTransitionTime": "2026-11-16T02:45:44Z",
                },
            ],
            "storedVersions": ["v1"],
        })
    );
    assert!(bench.api.served("example.com", "v1", "gizmos").is_err());
    bench.api.delete(&bench.definitions(), "", "widgets.example.com", &DeleteOptions::default()).await.unwrap();
    bench.established("gizmos.example.com").await;
}

#[tokio::test]
async fn all_short_names_that_are_taken_are_told() {
    let mut taken = names::Taken::default();
    taken.add(&json!({ "plural": "widgets", "singular": "widget" }));
    let wanted = json!({ "plural": "a", "kind": "A", "shortNames": ["widget", "widgets", "b"] });
    let (_, condition) = names::accept(&wanted, &Value::Null, &taken);
    assert_eq!(condition.reason, "ShortNamesConflict");
    assert_eq!(condition.message, r#"["widget" is already in use, "widgets" is already in use]"#);
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects_along_and_waits_for_those_that_are_held() {
    let bench = Bench::new(Store::memory());
    bench.define(definition("gizmos", "Gizmo")).await;
    bench.established("gizmos.example.com").await;
    let served = bench.api.served("example.com", "v1", "gizmos").unwrap();
    let held = json!({ "metadata": { "name": "g1", "finalizers": ["example.com/stay"] } });
    bench.api.create(&served, "", held, &WriteOptions::by("t")).await.unwrap();
    bench.api.create(&served, "", named("g2"), &WriteOptions::by("t")).await.unwrap();
    let answer = bench.api.delete(&bench.definitions(), "", "gizmos.example.com", &DeleteOptions::default()).await;
    let crate::verbs::Deleted::Going(going) = answer.unwrap() else { panic!("it waits") };
    assert_eq!(going["metadata"]["finalizers"], json!([CLEANUP]));
    assert_eq!(going["metadata"]["generation"], 1);
    assert_eq!(
        going["status"]["conditions"][2],
        json!({
            "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            "lastTransitionTime": "2026-11-16T02:45:44Z",
        })
    );
    bench.wait(|| bench.api.get(&served, "", "g2").is_err().then_some(())).await;
    let waiting = bench
        .until("gizmos.example.com", |definition| {
            definition["status"]["conditions"][2]["reason"] == "InstanceDeletionInProgress"
        })
        .await;
    assert_eq!(waiting["status"]["conditions"][2]["message"], "CustomResource deletion is in progress");
    let closed = bench.api.served("example.com", "v1", "gizmos").unwrap();
    let refused = bench.api.create(&closed, "", named("g3"), &WriteOptions::by("t")).await.unwrap_err();
    assert_eq!(refused.message, "create not allowed while custom resource definition is terminating");
    let free = |object: &mut Value| drop(object::meta_mut(object).remove("finalizers"));
    bench.api.modify(&closed, "", "g1", Part::Main, &WriteOptions::by("t"), free).await.unwrap();
    bench.wait(|| bench.api.served("example.com", "v1", "gizmos").is_err().then_some(())).await;
    assert!(bench.api.get(&bench.definitions(), "", "gizmos.example.com").is_err());
}

#[tokio::test]
async fn a_new_schema_counts_for_objects_written_before() {
    let bench = Bench::new(Store::memory());
    bench.define(definition("widgets", "Widget")).await;
    let established = bench.established("widgets.example.com").await;
    let old = bench.api.served("example.com", "v1", "widgets").unwrap();
    bench.api.create(&old, "", named("a"), &WriteOptions::by("t")).await.unwrap();
    let mut changed = established;
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({ "type": "object", "default": {}, "properties": { "size": { "type": "integer", "default": 3 } } });
    let options = WriteOptions::by("t");
    let written =
        bench.api.update(&bench.definitions(), "", "widgets.example.com", Part::Main, changed, &options).await;
    assert_eq!(written.unwrap().object["metadata"]["generation"], 2);
    let seen = bench
        .wait(|| {
            let served = bench.api.served("example.com", "v1", "widgets").unwrap();
            (served.resource.schema_since != old.resource.schema_since).then_some(served)
        })
        .await;
    assert_eq!(bench.api.get(&seen, "", "a").unwrap()["spec"], json!({ "size": 3 }));
}

#[tokio::test]
async fn what_was_established_is_served_at_once_after_a_restart_and_damage_hurts_nobody_else() {
    let store = Store::memory();
    let bench = Bench::new(store.clone());
    bench.define(definition("widgets", "Widget")).await;
    bench.established("widgets.example.com").await;
    for (name, bytes) in [
        ("broken.example.com", "{"),
        (
            "damaged.example.com",
            r#"{"metadata": {"name": "damaged.example.com"}, "spec": 7, "status": {"conditions": [{"type": "Established", "status": "True"}]}}"#,
        ),
    ] {
        let change = Change::Put(Box::new(move |_| bytes.into()));
        store.write(&format!("{PREFIX}{name}"), Expect::Absent, change).await.unwrap();
    }
    let catalogue = Definitions::load(&store).unwrap().catalogue();
    assert!(catalogue.find("example.com", "v1", "widgets").is_some());
    assert_eq!(catalogue.resources().iter().filter(|resource| resource.custom).count(), 1);
}

#[test]
fn versions_are_read_with_their_columns_subresources_and_remarks() {
    let mut widgets = definition("widgets", "Widget");
    widgets["spec"]["versions"] = json!([
        { "name": "v1alpha1", "served": true, "storage": false, "deprecated": true },
        { "name": "v1beta1", "served": true, "storage": false, "deprecated": true, "deprecationWarning": "mind!" },
        {
            "name": "v1", "served": true, "storage": true,
            "subresources": {
                "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" },
            },
            "selectableFields": [{ "jsonPath": ".spec.color" }],
            "additionalPrinterColumns": [
                { "name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "the color" },
                { "name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1, "format": "int32" },
            ],
        },
        { "name": "v2", "served": false, "storage": false },
    ]);
    let resource = reading::resource(&widgets, 7).unwrap();
    let names: Vec<&str> = resource.versions.iter().map(|version| version.name.as_str()).collect();
    assert_eq!(names, ["v2", "v1", "v1beta1", "v1alpha1"]);
    assert_eq!(resource.stored().name, "v1");
    assert_eq!(resource.prefix, "/registry/example.com/widgets/");
    assert_eq!((resource.singular.as_str(), resource.list_kind.as_str()), ("widget", "WidgetList"));
    let v1 = resource.stored();
    assert!(v1.status);
    assert_eq!(v1.scale.as_ref().unwrap().spec_replicas, ".spec.n");
    assert_eq!(v1.selectable, [".spec.color"]);
    let headings: Vec<(&str, i32)> = v1.columns.iter().map(|column| (column.name.as_str(), column.priority)).collect();
    assert_eq!(headings, [("Name", 0), ("Color", 0), ("Size", 1)]);
    assert_eq!(v1.columns[2].description, "Custom resource definition column (in JSONPath format): .spec.size");
    assert_eq!(resource.versions[2].deprecation.as_deref(), Some("mind!"));
    assert_eq!(
        resource.versions[3].deprecation.as_deref(),
        Some("example.com/v1alpha1 Widget is deprecated; use example.com/v1 Widget")
    );
    assert_eq!(Arc::new(resource).versions[0].columns[1].kind, "date");
}
