//! Unknown fields in each mode of field validation, on each verb.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{DEFINITIONS, MAPS, WIDGETS, definition, map, widget};

cases![
    unknown_fields_on_create,
    unknown_fields_on_replace,
    unknown_fields_in_patches,
    unknown_fields_in_metadata,
    many_unknown_fields,
    unknown_fields_in_definitions,
    unknown_fields_of_other_built_ins,
    unknown_fields_in_yaml,
];

const MODES: [&str; 4] = ["", "&fieldValidation=Ignore", "&fieldValidation=Warn", "&fieldValidation=Strict"];

async fn unknown_fields_on_create(s: &mut Story) {
    for mode in MODES {
        let mut map = map("a");
        map["unknown"] = 1.into();
        s.post(&format!("{MAPS}?dryRun=All{mode}"), map).await;
        let odd =
            widget("a", json!({"unknown": 1, "nested": {"a": "x", "deep": 1}, "ports": [{"name": "a", "odd": 1}]}));
        s.post(&format!("{WIDGETS}?dryRun=All{mode}"), odd).await;
    }
}

async fn unknown_fields_on_replace(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    let found = s.post(WIDGETS, widget("a", json!({}))).await.body().clone();
    for mode in MODES {
        let mut map = map("a");
        map["unknown"] = 1.into();
        s.put(&format!("{MAPS}/a?dryRun=All{mode}"), map).await;
        let mut odd = found.clone();
        odd["spec"]["unknown"] = 1.into();
        s.put(&format!("{WIDGETS}/a?dryRun=All{mode}"), odd).await;
    }
}

async fn unknown_fields_in_patches(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    s.post(WIDGETS, widget("a", json!({}))).await.is(201);
    for mode in MODES {
        s.merge_patch(&format!("{MAPS}/a?dryRun=All{mode}"), json!({"unknown": 1})).await;
        s.strategic_patch(&format!("{MAPS}/a?dryRun=All{mode}"), json!({"unknown": 1})).await;
        s.json_patch(&format!("{MAPS}/a?dryRun=All{mode}"), json!([{"op": "add", "path": "/unknown", "value": 1}]))
            .await;
        s.merge_patch(&format!("{WIDGETS}/a?dryRun=All{mode}"), json!({"spec": {"unknown": 1}})).await;
        s.json_patch(
            &format!("{WIDGETS}/a?dryRun=All{mode}"),
            json!([{"op": "add", "path": "/spec/unknown", "value": 1}]),
        )
        .await;
    }
}

async fn unknown_fields_in_metadata(s: &mut Story) {
    for mode in MODES {
        let mut map = map("a");
        map["metadata"]["unknown"] = 1.into();
        s.post(&format!("{MAPS}?dryRun=All{mode}"), map).await;
        let mut widget = widget("a", json!({}));
        widget["metadata"]["unknown"] = 1.into();
        widget["unknown"] = 1.into();
        s.post(&format!("{WIDGETS}?dryRun=All{mode}"), widget).await;
    }
}

async fn many_unknown_fields(s: &mut Story) {
    let mut map = map("a");
    let mut widget = widget("a", json!({}));
    for number in 0..40 {
        map[format!("unknown{number:02}")] = 1.into();
        widget["spec"][format!("unknown{number:02}")] = 1.into();
    }
    for mode in ["Warn", "Strict"] {
        s.post(&format!("{MAPS}?dryRun=All&fieldValidation={mode}"), map.clone()).await;
        s.post(&format!("{WIDGETS}?dryRun=All&fieldValidation={mode}"), widget.clone()).await;
    }
}

async fn unknown_fields_in_definitions(s: &mut Story) {
    let mut definition = definition(s, "Thing", json!({"type": "object", "wonderful": true}));
    definition["spec"]["unknown"] = 1.into();
    for mode in MODES {
        s.post(&format!("{DEFINITIONS}?dryRun=All{mode}"), definition.clone()).await;
    }
}

async fn unknown_fields_of_other_built_ins(s: &mut Story) {
    for mode in MODES {
        s.post(
            &format!("/api/v1/namespaces/{{ns}}/secrets?dryRun=All{mode}"),
            json!({"metadata": {"name": "a"}, "odd": 1}),
        )
        .await;
        let lease = json!({"metadata": {"name": "a"}, "spec": {"odd": 1}});
        s.post(&format!("/apis/coordination.k8s.io/v1/namespaces/{{ns}}/leases?dryRun=All{mode}"), lease).await;
        let account = json!({"metadata": {"name": "a"}, "secrets": [{"name": "x", "odd": 1}]});
        s.post(&format!("/api/v1/namespaces/{{ns}}/serviceaccounts?dryRun=All{mode}"), account).await;
        s.post(
            &format!("/api/v1/namespaces?dryRun=All{mode}"),
            json!({"metadata": {"name": "odd"}, "spec": {"odd": 1}}),
        )
        .await;
    }
}

async fn unknown_fields_in_yaml(s: &mut Story) {
    let yaml = [("content-type", "application/yaml")];
    let map = "metadata: {name: a}\nodd: 1\ndata:\n  k: v\n  k: w\n";
    let widget =
        "apiVersion: suite.example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  size: 1\n  size: 2\n  odd: 1\n";
    for mode in MODES {
        s.send("POST", &format!("{MAPS}?dryRun=All{mode}"), &yaml, map).await;
        s.send("POST", &format!("{WIDGETS}?dryRun=All{mode}"), &yaml, widget).await;
    }
}
