//! Dry runs answer as if, and leave nothing behind.

use conformance::Story;
use serde_json::json;

use crate::court::cases;
use crate::samples::{MAPS, SECRETS, WIDGETS, map, map_of, secret, widget};

cases![a_dry_create, a_dry_replace_and_patch, a_dry_delete, a_dry_run_is_checked_all_the_same, a_dry_generated_name,];

async fn a_dry_create(s: &mut Story) {
    s.post(&format!("{MAPS}?dryRun=All"), map_of("a", json!({"k": "v"})))
        .await
        .is(201)
        .has("/metadata/resourceVersion", json!(null));
    s.get(&format!("{MAPS}/a")).await.is(404);
    s.post(&format!("{WIDGETS}?dryRun=All"), widget("a", json!({}))).await.is(201).has("/spec/color", "red");
    s.get(&format!("{WIDGETS}/a")).await.is(404);
    s.post("/api/v1/namespaces?dryRun=All", json!({"metadata": {"name": "a-dry-namespace"}})).await.is(201);
    s.get("/api/v1/namespaces/a-dry-namespace").await.is(404);
}

async fn a_dry_replace_and_patch(s: &mut Story) {
    for (path, body) in [(MAPS, map("a")), (WIDGETS, widget("a", json!({})))] {
        let mut found = s.post(path, body).await.body().clone();
        found["metadata"]["labels"] = json!({"a": "b"});
        s.put(&format!("{path}/a?dryRun=All"), found).await.is(200).has("/metadata/labels/a", "b");
        s.merge_patch(&format!("{path}/a?dryRun=All"), json!({"metadata": {"labels": {"c": "d"}}})).await.is(200);
        s.get(&format!("{path}/a")).await.is(200).has("/metadata/labels", json!(null));
    }
    s.merge_patch(&format!("{WIDGETS}/a?dryRun=All"), json!({"spec": {"size": 7}}))
        .await
        .is(200)
        .has("/metadata/generation", 2);
    s.merge_patch(&format!("{WIDGETS}/a/status?dryRun=All"), json!({"status": {"phase": "x"}})).await.is(200);
    s.get(&format!("{WIDGETS}/a")).await.is(200);
}

async fn a_dry_delete(s: &mut Story) {
    for (path, mut body) in [(SECRETS, secret("a")), (WIDGETS, widget("a", json!({})))] {
        s.post(path, body.clone()).await.is(201);
        s.delete(&format!("{path}/a?dryRun=All")).await.is(200);
        s.delete_with(&format!("{path}/a"), json!({"dryRun": ["All"]})).await.is(200);
        s.delete(&format!("{path}?dryRun=All")).await.is(200);
        s.get(&format!("{path}/a")).await.is(200);
        body["metadata"]["name"] = "b".into();
        body["metadata"]["finalizers"] = json!(["example.com/hold"]);
        s.post(path, body).await.is(201);
        s.delete(&format!("{path}/b?dryRun=All")).await.is(200);
        s.get(&format!("{path}/b")).await.is(200).has("/metadata/deletionTimestamp", json!(null));
    }
}

async fn a_dry_run_is_checked_all_the_same(s: &mut Story) {
    s.post(MAPS, map("a")).await.is(201);
    s.post(&format!("{MAPS}?dryRun=All"), map("a")).await.is(409);
    s.post(&format!("{MAPS}?dryRun=All"), map("Bad Name")).await.is(422);
    s.post(&format!("{WIDGETS}?dryRun=All"), widget("a", json!({"size": 101}))).await.is(422);
    s.put(&format!("{MAPS}/nobody?dryRun=All"), map("nobody")).await.is(404);
    s.delete(&format!("{MAPS}/nobody?dryRun=All")).await.is(404);
    let mut stale = map("a");
    stale["metadata"]["resourceVersion"] = "1".into();
    s.put(&format!("{MAPS}/a?dryRun=All"), stale).await.is(409);
}

async fn a_dry_generated_name(s: &mut Story) {
    let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "made-"}});
    s.post(&format!("{SECRETS}?dryRun=All"), body).await.is(201);
    s.get(SECRETS).await.is(200).has("/items", json!([]));
}
