//! BareMetalHosts: what their owners, Cluster API's provider and baremetal-operator leave on the objects, and what becomes of the servers.

mod input;

use std::time::Duration;

use api::metal3::BareMetalHost;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sim::{BootSource, PowerState, ResetType};

use super::{NAMESPACE, Scene, condition};
use crate::dialects::Dialect;

const ISO: &str = "https://192.0.2.1/live.iso";

/// Servers with their Secrets, but without hosts, and the kinds of Metal3.
async fn site(servers: &[&str]) -> Scene {
    let mut scene = Scene::open(servers).await;
    for definition in api::crd::metal3_crds() {
        scene.define(&definition).await;
    }
    for name in servers {
        scene.hosts().delete(name, &DeleteParams::default()).await.unwrap();
    }
    scene.start(|config| config.dialects = vec![Dialect::Beskar7, Dialect::Metal3]);
    scene
}

fn spec(server: &str, change: &Value) -> Value {
    let address = format!("redfish-virtualmedia://{server}");
    let mut spec = json!({
        "online": false,
        "bmc": {"address": address, "credentialsName": server, "disableCertificateVerification": true},
    });
    crate::dialect::merge(&mut spec, change);
    spec
}

fn live(url: &str) -> Value {
    json!({"online": true, "image": {"url": url, "format": "live-iso"}})
}

impl Scene {
    fn bare_metal_hosts(&self) -> Api<BareMetalHost> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    async fn add_bare_metal_host(&self, server: &str, metadata: Value, change: &Value) {
        let mut object = json!({"metadata": {"name": server}, "spec": spec(server, change)});
        crate::dialect::merge(&mut object["metadata"], &metadata);
        let object = serde_json::from_value(object).unwrap();
        self.bare_metal_hosts().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn write_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.bare_metal_hosts().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn edit_bare_metal_host(&self, name: &str, patch: Value) {
        self.bare_metal_hosts().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    fn bare_metal_host(&self, name: &str) -> Value {
        let served = self.server.api().served("metal3.io", "v1alpha1", "baremetalhosts").unwrap();
        self.server.api().get(&served, NAMESPACE, name).unwrap_or_default()
    }

    async fn until_shown(&self, name: &str, pointer: &str, value: &str) -> Duration {
        let what = format!("{pointer} of {name} is {value}");
        let started = tokio::time::Instant::now();
        while self.bare_metal_host(name).pointer(pointer).and_then(Value::as_str) != Some(value) {
            let shown = self.bare_metal_host(name);
            assert!(started.elapsed() < Duration::from_mins(20), "not after twenty minutes: {what}\n{shown:#}");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        started.elapsed()
    }

    async fn until_provisioning(&self, name: &str, state: &str) -> Duration {
        self.until_shown(name, "/status/provisioning/state", state).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_bare_metal_host_is_registered_provisioned_rebooted_and_released() {
    let scene = site(&["server-0"]).await;
    scene.add_bare_metal_host("server-0", json!({}), &json!({})).await;
    scene.until_provisioning("server-0", "available").await;
    let host = scene.bare_metal_host("server-0");
    let status = &host["status"];
    assert_eq!((&status["operationalStatus"], &status["errorMessage"]), (&json!("OK"), &json!("")));
    assert_eq!(status["provisioning"]["ID"], host["metadata"]["uid"]);
    assert!(status["hardware"]["nics"].as_array().unwrap().iter().all(|nic| nic["mac"].is_string()));
    assert!(status["operationHistory"]["inspect"]["end"].is_string() && status["lastUpdated"].is_string());
    assert_eq!(condition(&host, "AvailableForProvisioning")["status"], "True");

    // The image is an order, and counts once the host is to be on.
    scene.edit_bare_metal_host("server-0", json!({"spec": {"image": {"url": ISO, "format": "live-iso"}}})).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.edit_bare_metal_host("server-0", json!({"spec": {"online": true}})).await;
    scene.until_provisioning("server-0", "provisioned").await;
    let host = scene.bare_metal_host("server-0");
    assert_eq!(
        (&host["status"]["provisioning"]["image"]["url"], scene.power("server-0")),
        (&json!(ISO), PowerState::On)
    );
    let first = scene.last_boot("server-0");
    assert_eq!(first.as_ref().map(|boot| &boot.from), Some(&BootSource::Cd(ISO.to_owned())));

    // One reboot, after which the image is booted again: there is nothing on the disk.
    scene.edit_bare_metal_host("server-0", json!({"metadata": {"annotations": {"reboot.metal3.io": ""}}})).await;
    scene
        .until("the annotation is gone", |scene| {
            scene.bare_metal_host("server-0").pointer("/metadata/annotations/reboot.metal3.io").is_none()
        })
        .await;
    scene.until("it runs again", |scene| scene.last_boot("server-0") != first).await;
    assert_eq!(scene.last_boot("server-0").map(|boot| boot.from), first.map(|boot| boot.from));

    // Held off as long as somebody asks for it: remediation waits for `poweredOn`.
    let key = "reboot.metal3.io/metal3-remediation-1";
    scene.edit_bare_metal_host("server-0", json!({"metadata": {"annotations": {key: r#"{"mode":"hard"}"#}}})).await;
    let took = scene
        .until("it is shown as off", |scene| scene.bare_metal_host("server-0")["status"]["poweredOn"] == false)
        .await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.edit_bare_metal_host("server-0", json!({"metadata": {"annotations": {key: null}}})).await;
    scene.until("it is on", |scene| scene.power("server-0") == PowerState::On).await;

    // At rest nothing is written.
    tokio::time::sleep(Duration::from_mins(3)).await;
    let before = scene.bare_metal_host("server-0")["metadata"]["resourceVersion"].clone();
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(scene.bare_metal_host("server-0")["metadata"]["resourceVersion"], before);

    // As Cluster API's provider withdraws an order.
    scene.edit_bare_metal_host("server-0", json!({"spec": {"image": null, "userData": null, "online": false}})).await;
    scene.until_provisioning("server-0", "available").await;
    let host = scene.bare_metal_host("server-0");
    assert_eq!(
        (scene.power("server-0"), condition(&host, "DisksCleaned")["reason"].as_str()),
        (PowerState::Off, Some("NotSupported"))
    );
    assert_eq!(host["status"]["errorMessage"], "");

    scene.bare_metal_hosts().delete("server-0", &DeleteParams::default()).await.unwrap();
    scene.until("it is gone", |scene| scene.bare_metal_host("server-0").is_null()).await;

    let metrics = scene.metrics.text();
    for line in [
        r#"metal3_provisioning_state_change_total{prev_state="registering",new_state="inspecting"} 1"#,
        r#"metal3_provisioning_state_change_total{prev_state="provisioning",new_state="provisioned"} 1"#,
        r#"metal3_operation_provision_duration_seconds_count{namespace="lab"} 1"#,
        r#"metal3_operation_deprovision_duration_seconds_count{namespace="lab"} 1"#,
        r#"metal3_operation_power_change_total{namespace="lab",on_off="on"} 3"#,
        r#"beskar7_host_state_seconds_count{dialect="metal3",state="deprovisioning"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_image_deprovisions_first_and_a_released_server_stays_off() {
    let scene = site(&["server-0"]).await;
    scene.add_bare_metal_host("server-0", json!({}), &live(ISO)).await;
    scene.until_provisioning("server-0", "provisioned").await;
    let other = "https://192.0.2.1/other.iso";
    scene.edit_bare_metal_host("server-0", json!({"spec": {"image": {"url": other, "checksum": "x"}}})).await;
    scene.until_provisioning("server-0", "deprovisioning").await;
    scene.until_shown("server-0", "/status/provisioning/image/url", other).await;

    scene.edit_bare_metal_host("server-0", json!({"spec": {"image": null}})).await;
    scene.until_provisioning("server-0", "available").await;
    tokio::time::sleep(Duration::from_mins(20)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off, "online: true is from before the release");
    for online in [false, true] {
        scene.edit_bare_metal_host("server-0", json!({"spec": {"online": online}})).await;
        tokio::time::sleep(Duration::from_mins(2)).await;
    }
    assert_eq!(scene.power("server-0"), PowerState::On, "somebody has asked again");
}

#[tokio::test(start_paused = true)]
async fn an_image_for_the_disk_is_refused_before_anything_is_done() {
    let scene = site(&["server-0"]).await;
    scene.servers.press("server-0", ResetType::On);
    let image =
        json!({"online": true, "image": {"url": "https://192.0.2.1/disk.raw", "checksum": "abc", "format": "raw"}});
    scene.add_bare_metal_host("server-0", json!({}), &image).await;
    scene.until_shown("server-0", "/status/errorType", "provisioning error").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let host = scene.bare_metal_host("server-0");
    assert!(host["status"]["errorMessage"].as_str().unwrap().contains("needs the agent"), "{host:#}");
    assert_eq!(scene.power("server-0"), PowerState::On, "it runs as before");
    scene.edit_bare_metal_host("server-0", json!({"spec": {"image": null}})).await;
    scene.until_provisioning("server-0", "available").await;
    assert_eq!(scene.bare_metal_host("server-0")["status"]["errorMessage"], "");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_baremetal_operator_provisioned_is_taken_over_and_not_touched() {
    let told = |state: &str, url: &str| {
        json!({
            "operationalStatus": "error", "errorType": "provisioned registration error", "errorMessage": "No.", "errorCount": 3, "poweredOn": true, "lastUpdated": "2026-11-01T00:00:00Z",
            "provisioning": {"state": state, "ID": "ironic-1", "image": {"url": url}},
        })
    };
    let finalizer = json!({"finalizers": ["baremetalhost.metal3.io"]});
    let annotated = |status: &Value| {
        let text = status.to_string();
        json!({"finalizers": ["baremetalhost.metal3.io"], "annotations": {"baremetalhost.metal3.io/status": text}})
    };
    // Written in the status, in the annotation, or nowhere: with and without an image.
    let table = [
        ("status", finalizer.clone(), Some(told("provisioned", ISO)), live(ISO), "provisioned"),
        ("annotation", annotated(&told("provisioned", ISO)), None, live(ISO), "provisioned"),
        ("lost", finalizer.clone(), None, live(ISO), "provisioned"),
        ("lost, without an image", finalizer, None, json!({"online": true}), "externally provisioned"),
    ];
    for (what, metadata, status, order, state) in table {
        let mut scene = site(&["server-0"]).await;
        scene.stop().await;
        scene.servers.press("server-0", ResetType::On);
        scene.until("it runs", |scene| scene.last_boot("server-0").is_some()).await;
        let boot = scene.last_boot("server-0");
        scene.add_bare_metal_host("server-0", metadata, &order).await;
        if let Some(status) = status {
            scene.write_status("server-0", status).await;
        }
        scene.start(|config| config.dialects = vec![Dialect::Metal3]);
        scene.until_provisioning("server-0", state).await;
        tokio::time::sleep(Duration::from_mins(30)).await;
        let host = scene.bare_metal_host("server-0");
        assert_eq!(host["status"]["provisioning"]["state"], state, "{what}: {host:#}");
        assert_eq!((scene.power("server-0"), scene.last_boot("server-0")), (PowerState::On, boot), "{what}");
        assert_eq!(host.pointer("/metadata/annotations/baremetalhost.metal3.io~1status"), None, "{what}");
        let status = &host["status"];
        assert_eq!(
            (&status["operationalStatus"], &status["errorMessage"], status.get("errorType")),
            (&json!("OK"), &json!(""), None),
            "{what}: no error of the other operator's stays"
        );
        if what == "annotation" {
            assert_eq!(host["status"]["provisioning"]["ID"], "ironic-1", "its id stays");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_or_detached_host_is_left_alone() {
    let scene = site(&["server-0"]).await;
    scene.add_bare_metal_host("server-0", json!({}), &live(ISO)).await;
    scene.until_provisioning("server-0", "provisioned").await;

    let paused = |value: Value| json!({"metadata": {"annotations": {"baremetalhost.metal3.io/paused": value}}});
    scene.edit_bare_metal_host("server-0", paused(json!("metal3.io/capm3"))).await;
    scene.edit_bare_metal_host("server-0", json!({"spec": {"image": null, "online": false}})).await;
    let before = scene.bare_metal_host("server-0")["metadata"]["resourceVersion"].clone();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.bare_metal_host("server-0")["metadata"]["resourceVersion"], before, "not even its status");
    assert_eq!(scene.power("server-0"), PowerState::On);
    scene.edit_bare_metal_host("server-0", json!({"spec": live(ISO)})).await;
    scene.edit_bare_metal_host("server-0", paused(Value::Null)).await;
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(scene.power("server-0"), PowerState::On);

    let detached = json!({"metadata": {"annotations": {"baremetalhost.metal3.io/detached": ""}}});
    scene.edit_bare_metal_host("server-0", detached).await;
    scene.until_shown("server-0", "/status/operationalStatus", "detached").await;
    assert_eq!(scene.bare_metal_host("server-0")["status"]["provisioning"]["state"], "provisioned");
    scene.bare_metal_hosts().delete("server-0", &DeleteParams::default()).await.unwrap();
    scene.until("it is gone", |scene| scene.bare_metal_host("server-0").is_null()).await;
    assert_eq!(scene.power("server-0"), PowerState::On, "deleted without a word to its server");
}

#[tokio::test(start_paused = true)]
async fn a_physical_host_and_a_bare_metal_host_never_both_act_on_one_server() {
    let scene = site(&["server-0"]).await;
    scene.add_bare_metal_host("server-0", json!({}), &live(ISO)).await;
    scene.until_provisioning("server-0", "provisioned").await;
    scene.add_host_as("server-0", json!({"online": false})).await;
    scene
        .until("the rival says so", |scene| scene.host("server-0")["status"]["fault"]["reason"] == "DuplicateHost")
        .await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.power("server-0"), PowerState::On);
}

#[tokio::test(start_paused = true)]
async fn a_host_without_a_bmc_is_unmanaged_until_it_has_one() {
    let scene = site(&["server-0"]).await;
    scene.add_bare_metal_host("server-0", json!({}), &json!({"bmc": null})).await;
    scene.until_provisioning("server-0", "unmanaged").await;
    let host = scene.bare_metal_host("server-0");
    assert_eq!(
        (&host["status"]["operationalStatus"], &host["status"]["errorMessage"]),
        (&json!("discovered"), &json!(""))
    );
    scene.edit_bare_metal_host("server-0", json!({"spec": spec("server-0", &json!({}))})).await;
    scene.until_provisioning("server-0", "available").await;
}
