//! A second dialect beside ours, whose hosts are made of several kinds.

mod dialect;
mod marks;
mod rival;

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sim::PowerState;

use self::dialect::{Blade, Console, HANDS_OFF, Key, Permit, Report};
pub(crate) use self::dialect::{Blades, Consoles};
use super::{NAMESPACE, Scene};
use crate::dialects::Dialect;
use crate::object::{Object, api};

const ISO: &str = "https://192.0.2.1/os.iso";

/// A site with the kinds of both dialects, and an operator that speaks both.
async fn site(servers: &[&str]) -> Scene {
    let mut scene = prepared(servers).await;
    start(&mut scene);
    scene
}

/// The same without an operator.
async fn prepared(servers: &[&str]) -> Scene {
    let scene = Scene::open(servers).await;
    for kind in ["Blade", "Console", "Key", "Permit", "Report"] {
        define(&scene, kind).await;
    }
    for name in servers {
        // Only the tests that need them have our hosts, too.
        scene.hosts().delete(name, &DeleteParams::default()).await.unwrap();
    }
    scene
}

fn start(scene: &mut Scene) {
    scene.start(|config| {
        config.namespace = None;
        config.dialects = vec![Dialect::Beskar7, Dialect::Blades];
    });
}

async fn define(scene: &Scene, kind: &str) {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"status": {}}});
    let definition = json!({
        "metadata": {"name": format!("{plural}.racks.example")},
        "spec": {
            "group": "racks.example",
            "scope": "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [version],
        },
    });
    scene.define(&serde_json::from_value(definition).unwrap()).await;
}

impl Scene {
    async fn add<K: Object>(&self, name: &str, spec: Value) {
        self.add_as::<K>(json!({"name": name}), spec).await;
    }

    async fn add_as<K: Object>(&self, metadata: Value, spec: Value) {
        let object =
            json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": metadata, "spec": spec});
        let object = serde_json::from_value(object).unwrap();
        api::<K>(&self.admin, None).create(&PostParams::default(), &object).await.unwrap();
    }

    async fn add_console(&self, server: &str) {
        self.add::<Console>(server, json!({"address": format!("https://{server}"), "key": "all"})).await;
    }

    async fn add_key(&self, password: &str) {
        self.add::<Key>("all", json!({"words": {"username": "admin", "password": password}})).await;
    }

    async fn order(&self, blade: &str) {
        self.edit::<Blade>(blade, json!({"spec": {"image": ISO}})).await;
    }

    async fn until_blade(&self, name: &str, field: &str, value: &str) -> Duration {
        let what = format!("{field} of {name} is {value}");
        self.until(&what, |scene| scene.object::<Blade>(name)["status"][field] == value).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_made_of_several_kinds_is_found_inspected_booted_and_released() {
    let scene = site(&["server-0"]).await;
    scene.add_console("server-0").await;
    scene.until("a problem", |scene| scene.object::<Console>("server-0")["status"]["problem"].is_string()).await;
    let problem = scene.object::<Console>("server-0")["status"]["problem"].clone();
    assert_eq!(problem, "Key all, named in spec.key, does not exist. Create it; it is noticed at once.");

    // Credentials of another kind than Secret are noticed at once, and the console shows its server as a host.
    scene.add_key("password").await;
    let took = scene.until("a blade", |scene| scene.object::<Blade>("server-0").is_object()).await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    scene.until_blade("server-0", "state", "Available").await;
    let serial = scene.object::<Console>("server-0")["status"]["serial"].clone();
    assert!(serial.is_string());
    assert_eq!(scene.object::<Report>("server-0")["spec"]["serial"], serial, "the companion of the host");

    // The order is that of the object itself; its gate is opened by an object that names the host.
    scene.order("server-0").await;
    scene.until_blade("server-0", "wait", "WaitingForBootPermission").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::Off);
    scene.add::<Permit>("let-it", json!({"blade": "server-0"})).await;
    let took = scene.until("it is on", |scene| scene.servers.server("server-0").power() == PowerState::On).await;
    assert!(took < Duration::from_secs(20), "{took:?}");
    scene.until_blade("server-0", "state", "Provisioned").await;

    // At rest nothing is written, neither on the objects nor beside them.
    tokio::time::sleep(Duration::from_mins(2)).await;
    let written = |scene: &Scene| {
        let version = |object: Value| object["metadata"]["resourceVersion"].clone();
        [scene.object::<Blade>("server-0"), scene.object::<Report>("server-0"), scene.object::<Console>("server-0")]
            .map(version)
    };
    let before = written(&scene);
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(written(&scene), before);

    scene.edit::<Blade>("server-0", json!({"spec": {"image": null}})).await;
    scene.until_blade("server-0", "state", "Available").await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_depends_on_an_object_that_is_not_there_says_so_and_goes_on_when_it_comes() {
    let scene = site(&["server-0"]).await;
    scene.add_key("password").await;
    scene.add::<Blade>("server-0", json!({"console": "server-0"})).await;
    scene.until_blade("server-0", "fault", "spec.console: there is no Console server-0.").await;
    scene.add_console("server-0").await;
    let took = scene.until_blade("server-0", "state", "Available").await;
    assert!(took < Duration::from_secs(30), "{took:?}");

    // The address of the host is that of its console: another address is another server.
    scene.edit::<Console>("server-0", json!({"spec": {"address": "ftp://server-0"}})).await;
    let took = scene.until("a fault", |scene| scene.object::<Blade>("server-0")["status"]["fault"].is_string()).await;
    assert!(took < Duration::from_secs(10), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn hosts_of_two_dialects_that_name_one_server_never_both_act() {
    let scene = site(&["server-0"]).await;
    scene.add_key("password").await;
    scene
        .add_host_as(
            "ours",
            json!({"redfishConnection": {
                "address": "https://server-0", "credentialsSecretRef": "server-0", "insecureSkipVerify": true,
            }}),
        )
        .await;
    scene.until_state("ours", "Available").await;
    scene.add_console("server-0").await;
    scene.until("a fault", |scene| scene.object::<Blade>("server-0")["status"]["fault"].is_string()).await;
    let fault = scene.object::<Blade>("server-0")["status"]["fault"].clone();
    assert!(fault.as_str().unwrap().contains(&format!("PhysicalHost {NAMESPACE}/ours")), "{fault}");
    scene.add::<Permit>("let-it", json!({"blade": "server-0"})).await;
    scene.order("server-0").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::Off);

    scene.hosts().delete("ours", &DeleteParams::default()).await.unwrap();
    scene.until_blade("server-0", "state", "Provisioned").await;
}

#[tokio::test(start_paused = true)]
async fn what_another_operator_has_written_tells_whether_a_claimed_host_is_in_use() {
    let scene = site(&["server-0", "server-1"]).await;
    scene.add_key("password").await;
    scene.add::<Permit>("one", json!({"blade": "server-0"})).await;
    scene.add::<Permit>("two", json!({"blade": "server-1"})).await;
    scene.servers.press("server-0", sim::ResetType::On);
    for (server, deployed) in [("server-0", true), ("server-1", false)] {
        // Nobody looks after it until all of it is there.
        let metadata = json!({"name": server, "annotations": {HANDS_OFF: ""}});
        scene.add_as::<Blade>(metadata, json!({"console": server, "image": ISO})).await;
        let status = Patch::Merge(json!({"status": {"deployed": deployed}}));
        let blades: Api<Blade> = Api::all(scene.admin.clone());
        blades.patch_status(server, &PatchParams::default(), &status).await.unwrap();
    }
    for server in ["server-0", "server-1"] {
        scene.add_console(server).await;
        scene.edit::<Blade>(server, json!({"metadata": {"annotations": {HANDS_OFF: null}}})).await;
        scene.until_blade(server, "state", "Provisioned").await;
    }
    let done = |server: &str| {
        let of_server = format!("  {server}: ");
        let trace = scene.servers.notes().trace.clone();
        trace.into_iter().filter(|line| line.starts_with(&of_server)).collect::<Vec<_>>()
    };
    assert_eq!(done("server-0"), [""; 0], "it runs what was ordered");
    assert!(!done("server-1").is_empty(), "nothing ran on it");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_to_be_left_alone_is_neither_looked_at_nor_written() {
    let scene = site(&["server-0"]).await;
    scene.add_key("password").await;
    let metadata = json!({"name": "server-0", "annotations": {HANDS_OFF: ""}});
    scene.add_as::<Blade>(metadata, json!({"console": "server-0"})).await;
    let before = scene.object::<Blade>("server-0");
    // It is not touched either when what it depends on changes.
    scene.add_console("server-0").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let after = scene.object::<Blade>("server-0");
    assert_eq!((&after["status"], &after["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);

    scene.edit::<Blade>("server-0", json!({"metadata": {"annotations": {HANDS_OFF: null}}})).await;
    scene.until_blade("server-0", "state", "Available").await;
}

#[tokio::test(start_paused = true)]
async fn a_dialect_renames_events_drops_some_and_has_some_of_its_own() {
    let scene = site(&["server-0"]).await;
    scene.add_key("password").await;
    scene.add::<Permit>("let-it", json!({"blade": "server-0"})).await;
    scene.add_console("server-0").await;
    scene.until_blade("server-0", "state", "Available").await;
    scene.order("server-0").await;
    scene.until_blade("server-0", "state", "Provisioned").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    let events = Api::<Event>::all(scene.admin.clone()).list(&ListParams::default()).await.unwrap();
    let about = |reason: &str| {
        let meant = events.items.iter().filter(|event| event.reason.as_deref() == Some(reason));
        let told = |event: &Event| {
            let kind = event.regarding.as_ref().and_then(|about| about.kind.clone());
            [kind, event.type_.clone(), event.note.clone()].map(Option::unwrap).join(", ")
        };
        meant.map(told).collect::<Vec<_>>()
    };
    assert_eq!(about("Vacant").len(), 1);
    for dropped in ["Available", "Inspecting"] {
        assert_eq!(about(dropped), [""; 0]);
    }
    assert_eq!(about("LampLit"), ["Blade, Normal, The lamp is lit."]);
    assert_eq!(about("Hello"), ["Console, Warning, Here it is."]);
}
