//! What an API server keeps of statuses, and of objects that were stored before our CRDs were.

use std::time::Duration;

use api::ironcore::{Bmc, BmcSecret, Endpoint, Server, ServerClaim};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::Cluster;

use super::{KINDS, Stored, cluster, crd, object, objects, ours, plain, schema};
use crate::crds::specimen;
use crate::read;

#[tokio::test]
async fn no_field_of_a_status_is_lost() {
    for kind in KINDS {
        let crd = crd(kind);
        let Some(status) = schema(&crd)["properties"].get("status") else { continue };
        let mut full = specimen(status);
        if kind == "BMC" {
            full["macAddress"] = json!("23:11:8A:33:CF:EA");
        }
        let stored = Stored::new(kind, &plain(kind)).await;
        assert_eq!(stored.apply_status("beskar7", kind, &full).await, full, "{kind}");
    }
}

#[tokio::test]
async fn conditions_of_others_are_kept() {
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-11-15T12:00:00Z"});
    for kind in ["Endpoint", "BMC", "Server", "ServerClaim", "ServerBootConfiguration"] {
        let stored = Stored::new(kind, &plain(kind)).await;
        let foreign = condition("example.com/Tested", "True");
        stored.apply_status("others", kind, &json!({"conditions": [foreign]})).await;
        for status in ["False", "True"] {
            let own = condition("Ready", status);
            let kept = stored.apply_status("beskar7", kind, &json!({"conditions": [own]})).await;
            assert_eq!(kept["conditions"], json!([foreign, own]), "{kind}");
        }
    }
}

#[tokio::test]
async fn kubectl_applies_the_committed_crds_and_shows_upstreams_tables() {
    let cluster = cluster().await;
    let folder = crate::config().join("crd/ironcore").display().to_string();
    let applied = cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", &folder]).await;
    assert_eq!(applied.stderr, "");
    let tables = [
        ("Endpoint", "mep", "NAME MACADDRESS IP AGE"),
        ("BMC", "bmc", "NAME MACADDRESS IP MODEL SKU SERIALNUMBER FIRMWAREVERSION STATE POWERSTATE AGE"),
        ("BMCSecret", "bmcsec", "NAME AGE"),
        (
            "Server",
            "srv",
            "NAME SYSTEMUUID MANUFACTURER MODEL MEMORY SKU SERIALNUMBER POWERSTATE INDICATORLED STATE UNCLAIMABLE AGE",
        ),
        ("ServerClaim", "scl", "NAME SERVER IGNITION IMAGE PHASE AGE"),
        ("ServerBootConfiguration", "sbc", "NAME SERVERREF IMAGE IGNITIONREF STATE AGE"),
        ("ServerMaintenance", "sm", "NAME SERVER POLICY BOOTCONFIGURATION REASON STATE PRIORITY AGE"),
        ("ServerReadinessRule", "serverreadinessrule", "NAME AGE"),
    ];
    for (kind, word, head) in tables {
        let stored = Stored::new(kind, &plain(kind)).await;
        let table = cluster.kubectl(&["get", word, &stored.name, "-n", &stored.name, "-o", "wide"]).await.ok();
        let shown: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(shown.join(" "), head, "{kind}");
    }
    let explained = cluster.kubectl(&["explain", "srv.status.record"]).await.ok();
    let words = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Do not edit it"), "{explained}");
}

/// Objects that upstream's CRDs accept, and their statuses.
fn odd_objects() -> Vec<(&'static str, Value, Value)> {
    let twice = json!({"type": "Twice", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-15T12:00:00Z"});
    vec![
        ("Endpoint", json!({}), json!({})),
        ("BMC", json!({}), json!({"state": "Quiesced", "lastResetTime": "2026-08-20T10:00:00Z"})),
        ("BMCSecret", json!({"data": {"username": "Zm9="}}), Value::Null),
        ("Server", json!({}), json!({"state": "Odd", "totalSystemMemory": 7, "conditions": [twice, twice]})),
        ("ServerClaim", json!({}), json!({"phase": "Odd"})),
    ]
}

#[tokio::test]
async fn objects_from_before_our_crds_can_be_read_and_written_and_deleted() {
    let cluster = Cluster::start().await;
    for kind in KINDS {
        let file = format!("crds/metal.ironcore.dev_{}s.yaml", kind.to_lowercase());
        cluster.apply_yaml(&read(testkit::part("metal-operator").join(file))).await;
    }
    for (kind, fields, status) in odd_objects() {
        let objects = objects(&cluster, "default", kind);
        objects.create(&PostParams::default(), &object(kind, "odd", &fields)).await.unwrap();
        if !status.is_null() {
            let patch = json!({ "status": status });
            objects.patch_status("odd", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
    }
    cluster.apply_yaml(&ours()).await;
    let admin = cluster.admin();
    for (kind, _, status) in odd_objects() {
        let objects = objects(&cluster, "default", kind);
        if !status.is_null() {
            // The new schema takes effect after a moment.
            testkit::wait_for("the record to be kept", Duration::from_mins(1), async || {
                let patch = Patch::Merge(json!({"status": {"record": "kept"}}));
                let stored = objects.patch_status("odd", &PatchParams::default(), &patch).await.unwrap();
                stored.data["status"]["record"].as_str().map(str::to_owned)
            })
            .await;
        }
        match kind {
            "Endpoint" => drop(Api::<Endpoint>::all(admin.clone()).get("odd").await.unwrap()),
            "BMC" => drop(Api::<Bmc>::all(admin.clone()).get("odd").await.unwrap()),
            "BMCSecret" => drop(Api::<BmcSecret>::all(admin.clone()).get("odd").await.unwrap()),
            "Server" => {
                let status = Api::<Server>::all(admin.clone()).get("odd").await.unwrap().status.unwrap();
                assert_eq!((status.total_system_memory.unwrap().0, status.conditions.len()), ("7".to_owned(), 2));
            }
            "ServerClaim" => drop(Api::<ServerClaim>::namespaced(admin.clone(), "default").get("odd").await.unwrap()),
            other => panic!("no {other}"),
        }
        let marked = json!({"metadata": {"finalizers": ["metal.ironcore.dev/odd"], "annotations": {"a": "b"}}});
        objects.patch("odd", &PatchParams::default(), &Patch::Merge(marked)).await.unwrap();
        objects.delete("odd", &DeleteParams::default()).await.unwrap();
        let released = json!({"metadata": {"finalizers": null}});
        objects.patch("odd", &PatchParams::default(), &Patch::Merge(released)).await.unwrap();
        assert!(objects.get_opt("odd").await.unwrap().is_none(), "{kind}");
    }
}

#[tokio::test]
async fn a_bmc_secret_is_created_and_read_as_a_type() {
    let cluster = cluster().await;
    let name = cluster.namespace("ironcore").await;
    let secrets: Api<BmcSecret> = Api::all(cluster.admin());
    let secret = BmcSecret::new(&name, [("username", "foo"), ("password", "bar")]);
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let listed =
        secrets.list(&kube::api::ListParams::default().fields(&format!("metadata.name={name}"))).await.unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(listed.items[0].value("password").as_deref(), Some(b"bar".as_slice()));
}
