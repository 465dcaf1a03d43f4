//! Who owns a machine: Cluster API, which may come later, go, or change its version; and who owns a server.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{GROUP, Scene, condition};

const ISO: &str = "https://192.0.2.1/os.iso";
const CLUSTER_API: &str = "cluster.x-k8s.io";

/// Cluster API's own kinds in one version, with a cluster of one Machine. Answers with the Machine's uid.
async fn install(scene: &Scene, version: &str) -> String {
    for kind in ["Cluster", "Machine"] {
        scene.define_kind(CLUSTER_API, version, kind).await;
    }
    let create = async |kind: &str, name: &str, spec: Value| {
        let object = json!({
            "apiVersion": format!("{CLUSTER_API}/{version}"), "kind": kind, "metadata": {"name": name}, "spec": spec,
            "status": {"infrastructureReady": true, "initialization": {"infrastructureProvisioned": true}},
        });
        let objects = scene.objects(CLUSTER_API, version, kind);
        objects.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
    };
    create("Cluster", "c", json!({})).await;
    let node =
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": "node"});
    let spec = json!({"clusterName": "c", "infrastructureRef": node, "bootstrap": {"dataSecretName": ""}});
    create("Machine", "m", spec).await.metadata.uid.unwrap()
}

fn owned_by(uid: &str) -> Value {
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "m", "uid": uid});
    json!({"labels": {"cluster.x-k8s.io/cluster-name": "c"}, "ownerReferences": [owner]})
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_cluster_api_says_within_seconds_what_is_missing_and_goes_on_when_it_is_installed() {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.start(|config| config.cluster_api = true);
    scene.until_state("server-0", "Available").await;
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    let is_told = |scene: &Scene| condition(&scene.machine("node"), "Ready")["reason"] == "ClusterAPIMissing";
    let took = scene.until("told", is_told).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let told = condition(&scene.machine("node"), "Ready")["message"].to_string();
    assert!(told.contains("Install Cluster API") && told.contains("--without-cluster-api"), "{told}");
    assert!(scene.machine("node")["metadata"].get("finalizers").is_none(), "nothing is done for it");

    let uid = install(&scene, "v1beta1").await;
    scene.edit_machine("node", json!({"metadata": owned_by(&uid)})).await;
    let took = scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    assert!(took < Duration::from_mins(8), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_there_before_the_operator_is_told_too() {
    let mut scene = Scene::open(&[]).await;
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    scene.start(|config| config.cluster_api = true);
    let is_told = |scene: &Scene| condition(&scene.machine("node"), "Ready")["reason"] == "ClusterAPIMissing";
    let took = scene.until("told", is_told).await;
    assert!(took < Duration::from_secs(15), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_cluster_api_says_within_seconds_what_is_missing_and_goes_on_when_it_is_installed() {
    let mut scene = Scene::open(&[]).await;
    let clusters = scene.objects(GROUP, "v1beta1", "Beskar7Cluster");
    let create = async |name: &str| {
        let cluster = json!({
            "apiVersion": format!("{GROUP}/v1beta1"), "kind": "Beskar7Cluster", "metadata": {"name": name}, "spec": {},
        });
        clusters.create(&PostParams::default(), &serde_json::from_value(cluster).unwrap()).await.unwrap();
    };
    let reason = |scene: &Scene, name: &str| condition(&scene.show("beskar7clusters", name), "Ready")["reason"].clone();
    create("before").await;
    scene.start(|config| config.cluster_api = true);
    let took = scene.until("told", |scene| reason(scene, "before") == "ClusterAPIMissing").await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    create("after").await;
    let took = scene.until("told", |scene| reason(scene, "after") == "ClusterAPIMissing").await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    let told = condition(&scene.show("beskar7clusters", "after"), "Ready")["message"].to_string();
    assert!(told.contains("Install Cluster API") && told.contains("--without-cluster-api"), "{told}");
    assert!(scene.show("beskar7clusters", "after")["metadata"].get("finalizers").is_none(), "nothing is done for it");
    let writes = scene.wire.writes();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.wire.writes(), writes, "it is said once");

    install(&scene, "v1beta1").await;
    let took = scene.until("waits", |scene| reason(scene, "after") == "WaitingForOwner").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
    let owner = scene.objects(CLUSTER_API, "v1beta1", "Cluster").get("c").await.unwrap().metadata.uid;
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c", "uid": owner});
    let owned = json!({"metadata": {"ownerReferences": [owner]}});
    clusters.patch("after", &PatchParams::default(), &Patch::Merge(owned)).await.unwrap();
    let took = scene.until("ready", |scene| scene.show("beskar7clusters", "after")["status"]["ready"] == true).await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert_eq!(reason(&scene, "after"), "Ready");
}

#[tokio::test(start_paused = true)]
async fn cluster_api_is_found_again_when_it_is_served_in_another_version() {
    let mut scene = Scene::open(&["server-0"]).await;
    let uid = install(&scene, "v1beta1").await;
    scene.start(|config| config.cluster_api = true);
    scene.until_state("server-0", "Available").await;
    // An upgrade that leaves nothing of the version that was watched.
    let definitions: kube::Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = kube::Api::all(scene.admin.clone());
    for plural in ["clusters", "machines"] {
        let name = format!("{plural}.{CLUSTER_API}");
        definitions.delete(&name, &DeleteParams::default()).await.unwrap();
        while definitions.get_opt(&name).await.unwrap().is_some() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    let new = install(&scene, "v1beta2").await;
    assert_ne!(uid, new);
    let mut metadata = owned_by(&new);
    metadata["name"] = json!("node");
    scene.create_machine_as(metadata, json!({"imageURL": ISO})).await;
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_is_told_at_once_when_an_older_one_turns_out_to_name_the_same_server() {
    let mut scene = Scene::open(&["server-0"]).await;
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> = kube::Api::default_namespaced(scene.admin.clone());
    secrets.delete("server-0", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    scene.add_secret("twin").await;
    let connection = json!({"address": "https://server-0:8443", "credentialsSecretRef": "twin"});
    scene.add_host_as("twin", json!({"redfishConnection": connection})).await;
    scene.start(|_| {});
    scene.until_state("twin", "Available").await;
    tokio::time::sleep(Duration::from_mins(5)).await;

    scene.add_secret("server-0").await;
    let is_told = |scene: &Scene| scene.host("twin")["status"]["fault"]["reason"] == "DuplicateHost";
    let took = scene.until("told", is_told).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(scene.host("server-0")["status"]["state"], "Available");
}
