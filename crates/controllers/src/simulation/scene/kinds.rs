//! Other providers of Cluster API serve their kinds in the same group as we do, and in other versions.

use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sim::PowerState;

use super::{GROUP, NAMESPACE, Scene, condition};

const ISO: &str = "https://192.0.2.1/os.iso";

/// A site where the group's preferred version does not have our kinds, and a server that runs for a machine.
async fn beside_another_provider() -> Scene {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.define_kind(GROUP, "v1beta2", "Metal3Machine").await;
    scene.start(|_| {});
    scene.until_state("server-0", "Available").await;
    scene.create_machine("node", json!({"imageURL": ISO})).await;
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;
    scene
}

fn without_claim() -> Value {
    let annotations = json!({"beskar7.io/claim-id": null, "beskar7.io/claim-group": null});
    json!({"metadata": {"annotations": annotations}, "spec": {"consumerRef": null, "bootIsoSource": null}})
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_found_although_another_provider_serves_a_newer_version_of_its_group() {
    let scene = beside_another_provider().await;
    scene.edit_host("server-0", without_claim()).await;
    scene.until("a fault", |scene| scene.host("server-0")["status"]["fault"]["reason"] == "ConsumerMismatch").await;
    let host = scene.host("server-0");
    let message = host["status"]["fault"]["message"].as_str().unwrap();
    assert!(message.contains("Beskar7Machine lab/node still exists"), "{message}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::On, "the server runs on");

    scene.delete_machine("node").await;
    scene.until_state("server-0", "Available").await;
}

#[tokio::test(start_paused = true)]
async fn a_consumer_whose_kind_is_not_served_is_not_taken_for_gone() {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.define_kind(GROUP, "v1beta2", "Metal3Machine").await;
    scene.define_kind("acme.example", "v1", "Tenant").await;
    scene.start(|_| {});
    scene.until_state("server-0", "Available").await;
    let tenant = json!({"apiVersion": "acme.example/v1", "kind": "Tenant", "metadata": {"name": "t"}});
    let tenants = scene.objects("acme.example", "v1", "Tenant");
    tenants.create(&PostParams::default(), &serde_json::from_value(tenant).unwrap()).await.unwrap();
    let consumer = json!({"apiVersion": "acme.example/v1", "kind": "Tenant", "namespace": NAMESPACE, "name": "t"});
    scene.edit_host("server-0", json!({"spec": {"consumerRef": consumer, "bootIsoSource": ISO}})).await;
    scene.until_state("server-0", "Provisioned").await;

    // The definition is served in no version any more: by mistake, or for the minute that its provider is upgraded.
    let definitions = kube::Api::<kube::core::DynamicObject>::all_with(
        scene.admin.clone(),
        &kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
        )),
    );
    let serve = async |served: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let stored = json!({"name": "v1", "served": served, "storage": true, "schema": schema});
        let patch = Patch::Merge(json!({"spec": {"versions": [stored]}}));
        definitions.patch("tenants.acme.example", &PatchParams::default(), &patch).await.unwrap();
    };
    serve(false).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    scene.edit_host("server-0", without_claim()).await;
    scene.until("a fault", |scene| scene.host("server-0")["status"]["fault"]["reason"] == "ConsumerMismatch").await;
    let message = scene.host("server-0")["status"]["fault"]["message"].to_string();
    assert!(message.contains("still exists (this cluster serves no acme.example/v1 Tenant)"), "{message}");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::On, "the server runs on");

    serve(true).await;
    tenants.delete("t", &kube::api::DeleteParams::default()).await.unwrap();
    scene.until_state("server-0", "Available").await;
    assert_eq!(scene.servers.server("server-0").power(), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_paused_cluster_holds_its_hosts_although_another_provider_serves_a_newer_version() {
    let mut scene = Scene::open(&["server-0"]).await;
    scene.define_kind(GROUP, "v1beta2", "Metal3Machine").await;
    for kind in ["Cluster", "Machine"] {
        scene.define_kind("cluster.x-k8s.io", "v1beta1", kind).await;
    }
    // Another add-on of the group, in a version that Cluster API itself does not serve here.
    scene.define_kind("cluster.x-k8s.io", "v1beta2", "Extension").await;
    let create = async |kind: &str, name: &str, spec: Value| {
        let object = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec,
            "status": {"infrastructureReady": true},
        });
        let objects = scene.objects("cluster.x-k8s.io", "v1beta1", kind);
        objects.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
    };
    create("Cluster", "c", json!({"paused": false})).await;
    let node =
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": "node"});
    let spec = json!({"clusterName": "c", "infrastructureRef": node, "bootstrap": {"dataSecretName": ""}});
    let machine = create("Machine", "m", spec).await;
    scene.start(|config| config.cluster_api = true);
    scene.until_state("server-0", "Available").await;
    let owner = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": "m", "uid": machine.metadata.uid,
    });
    let labels = json!({"cluster.x-k8s.io/cluster-name": "c"});
    let metadata = json!({"name": "node", "labels": labels, "ownerReferences": [owner]});
    scene.create_machine_as(metadata, json!({"imageURL": ISO})).await;
    scene.until("node is ready", |scene| scene.machine("node")["status"]["ready"] == true).await;

    let clusters = scene.objects("cluster.x-k8s.io", "v1beta1", "Cluster");
    let pause = async |paused: bool| {
        let patch = Patch::Merge(json!({"spec": {"paused": paused}}));
        clusters.patch("c", &PatchParams::default(), &patch).await.unwrap();
    };
    pause(true).await;
    let annotations = json!({"beskar7.io/reboot": "now"});
    scene.edit_host("server-0", json!({"metadata": {"annotations": annotations}})).await;
    scene.until("paused", |scene| condition(&scene.host("server-0"), "Paused")["status"] == "True").await;
    let boots = scene.servers.server("server-0").boots;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.servers.server("server-0").boots, boots, "a paused server is not restarted");
    pause(false).await;
    scene.until("restarted", |scene| scene.servers.server("server-0").boots > boots).await;
}
