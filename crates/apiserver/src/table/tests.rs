use std::sync::Arc;

use cel::Rules;
use schema::Schema;

use super::*;
use crate::builtins;
use crate::catalogue::{Catalogue, Served};

const V1: &str = "v1";

fn now() -> Timestamp {
    "2026-11-16T02:32:54Z".parse().unwrap()
}

fn column(kind: &str, path: &str) -> Column {
    Column {
        name: path.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        value: Cell::Path(path.to_owned()),
    }
}

fn version(columns: Vec<Column>) -> Version {
    Version {
        name: "v1".to_owned(),
        group: None,
        served: true,
        deprecation: None,
        schema: Arc::new(Schema::parse(&json!({ "type": "object" }), "").unwrap()),
        rules: Arc::new(Rules::default()),
        columns,
        status: false,
        scale: None,
        selectable: Vec::new(),
        convert: None,
    }
}

#[test]
fn cells_of_custom_resources_are_those_of_kubernetes() {
    let widget = json!({ "spec": {
        "big": 1_234_567_890.5, "color": "red", "empty": "", "nullable": null, "on": true,
        "since": "2026-11-16T02:00:00Z", "size": 3, "weight": 2.5, "html": ["<&>"],
    } });
    let expected = [
        ("string", ".spec.color", json!("red")),
        ("integer", ".spec.size", json!(3)),
        ("string", ".spec.size", json!("3")),
        ("number", ".spec.size", json!(3.0)),
        ("number", ".spec.weight", json!(2.5)),
        ("string", ".spec.weight", json!("2.5")),
        ("integer", ".spec.weight", json!(2)),
        ("boolean", ".spec.on", json!(true)),
        ("string", ".spec.on", json!("true")),
        ("date", ".spec.since", json!("32m")),
        ("string", ".spec.since", json!("2026-11-16T02:00:00Z")),
        ("string", ".spec.nullable", json!("<no value>")),
        ("integer", ".spec.nullable", Value::Null),
        ("date", ".spec.color", json!("<invalid>")),
        ("integer", ".spec.color", Value::Null),
        ("string", ".spec.empty", json!("")),
        ("string", ".spec.big", json!("1.2345678905e+09")),
        ("string", ".spec.none", Value::Null),
        ("string", ".spec.html", json!(r#"["\u003c\u0026\u003e"]"#)),
        ("string", "not a path", Value::Null),
    ];
    let version = version(expected.iter().map(|(kind, path, _)| column(kind, path)).collect());
    let table = Tabulator::new(&version, V1, IncludeObject::None).table_of_one(&widget, true, now());
    for (index, (kind, path, cell)) in expected.iter().enumerate() {
        assert_eq!(&table["rows"][0]["cells"][index], cell, "{kind} {path}");
    }
}

#[test]
fn numbers_in_texts_look_as_go_prints_them() {
    for (number, text) in
        [(0.5, "0.5"), (123_456.0, "123456"), (1_000_000.0, "1e+06"), (0.000_01, "1e-05"), (-2.5e30, "-2.5e+30")]
    {
        assert_eq!(shortest(number), text);
    }
}

#[test]
fn a_table_carries_as_much_of_the_object_as_asked_for() {
    let version = version(vec![column("string", ".metadata.name")]);
    let object =
        json!({ "apiVersion": "v1", "kind": "X", "metadata": { "name": "a", "resourceVersion": "7" }, "x": 1 });
    let table = |include| Tabulator::new(&version, V1, include).table_of_one(&object, false, now());
    assert_eq!(
        table(IncludeObject::Metadata),
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": { "resourceVersion": "7" },
            "columnDefinitions": null,
            "rows": [{ "cells": ["a"], "object": {
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": { "name": "a", "resourceVersion": "7" },
            } }],
        })
    );
    assert_eq!(table(IncludeObject::None)["rows"], json!([{ "cells": ["a"], "object": null }]));
    assert_eq!(table(IncludeObject::Object)["rows"], json!([{ "cells": ["a"], "object": object }]));
    assert_eq!(
        IncludeObject::parse("Foo").unwrap_err().message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Foo\": must be 'Metadata', 'Object', \
         'None', or empty"
    );
}

fn served(group: &str, plural: &str) -> Served {
    Catalogue::new(builtins::resources().unwrap()).find(group, "v1", plural).unwrap()
}

/// Headings with `+` for those that are only in wide tables, and the cells.
fn row(group: &str, plural: &str, object: &Value) -> (String, Value) {
    let served = served(group, plural);
    let table = Tabulator::new(served.version(), V1, IncludeObject::None).table_of_one(object, true, now());
    let headings = table["columnDefinitions"].as_array().unwrap().iter();
    let headings = headings.map(|column| {
        format!("{}{}", if column["priority"] == 1 { "+" } else { "" }, column["name"].as_str().unwrap())
    });
    (headings.collect::<Vec<_>>().join(","), table["rows"][0]["cells"].clone())
}

#[test]
fn built_ins_have_the_columns_that_kubectl_users_know() {
    let metadata = json!({ "name": "a", "creationTimestamp": "2026-11-16T02:22:54Z" });
    let object = |fields: Value| {
        let mut object = fields;
        object["metadata"] = metadata.clone();
        object
    };
    for (group, plural, object, headings, cells) in [
        (
            "",
            "namespaces",
            object(json!({ "status": { "phase": "Active" } })),
            "Name,Status,Age",
            json!(["a", "Active", "10m"]),
        ),
        (
            "",
            "secrets",
            object(json!({ "type": "Opaque", "data": { "a": "", "b": "" } })),
            "Name,Type,Data,Age",
            json!(["a", "Opaque", 2, "10m"]),
        ),
        (
            "",
            "configmaps",
            object(json!({ "binaryData": { "a": "" }, "data": { "b": "" } })),
            "Name,Data,Age",
            json!(["a", 2, "10m"]),
        ),
        ("", "serviceaccounts", object(json!({})), "Name,Secrets,Age", json!(["a", 0, "10m"])),
        (
            "coordination.k8s.io",
            "leases",
            object(json!({ "spec": { "holderIdentity": "me" } })),
            "Name,Holder,Age",
            json!(["a", "me", "10m"]),
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            object(json!({})),
            "Name,Created At",
            json!(["a", "2026-11-16T02:22:54Z"]),
        ),
    ] {
        assert_eq!(row(group, plural, &object), (headings.to_owned(), cells), "{plural}");
    }
    let bookmark = json!({ "metadata": { "resourceVersion": "461" } });
    assert_eq!(row("", "namespaces", &bookmark).1, json!(["", "", "<unknown>"]));
}

#[test]
fn events_look_the_same_in_both_groups() {
    const HEADINGS: &str = "Last Seen,Type,Reason,Object,+Subobject,+Source,Message,+First Seen,+Count,+Name";
    let core = json!({
        "metadata": { "name": "e" }, "involvedObject": { "kind": "Pod", "name": "p", "fieldPath": "spec.x" },
        "reason": "r", "message": " m\n", "source": { "component": "c", "host": "h" }, "type": "Normal",
        "firstTimestamp": "2026-11-16T02:22:54Z", "lastTimestamp": "2026-11-16T02:32:44Z", "count": 4,
    });
    let cells = json!(["10s", "Normal", "r", "pod/p", "spec.x", "c, h", "m", "10m", 4, "e"]);
    assert_eq!(row("", "events", &core), (HEADINGS.to_owned(), cells.clone()));
    let mut other = core;
    (served("events.k8s.io", "events").version().convert.unwrap().load)(&mut other);
    assert_eq!(row("events.k8s.io", "events", &other), (HEADINGS.to_owned(), cells));
    let new = json!({
        "metadata": { "name": "e" }, "regarding": { "kind": "Pod" }, "eventTime": "2026-11-16T02:22:54.123456Z",
        "reportingController": "x", "series": { "count": 9, "lastObservedTime": "2026-11-16T02:32:44.123456Z" },
    });
    assert_eq!(row("events.k8s.io", "events", &new).1, json!(["9s", "", "", "pod", "", "x", "", "9m59s", 9, "e"]));
}
