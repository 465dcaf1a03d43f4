//! Whose server it is: claims that vanish, change or come back, and memories that get lost. A running server is not
//! touched by any of it.

use api::beskar7::{Beskar7Machine, PhysicalHost};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use sim::BootSource;
use trials::machines::CLUSTER_API;
use trials::story::{
    HOST, ISO, assert_tidy, assert_untouched, provisioned_world, resets, running_bmc, runs, sentence, unclaimed,
    world_with,
};
use trials::world::{World, claim, condition, fault_of, state_of};

const ANCHOR: &str = "beskar7.io/anchor";
const OTHER_ISO: &str = "http://images.test/other.iso";

async fn apply_cluster(world: &World, paused: bool) {
    let yaml = format!(
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {{name: c}}\nspec: {{paused: {paused}}}\n"
    );
    world.apply(CLUSTER_API).await;
    world.apply(&yaml).await;
}

fn machine_ref(name: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Beskar7Machine", "name": name })
}

async fn create_machine(world: &World, name: &str, claim_id: &str) {
    let yaml = format!(
        "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Beskar7Machine\nmetadata: {{name: {name}, annotations: {{beskar7.io/claim-id: {claim_id}}}}}\nspec: {{imageURL: {ISO}}}\n"
    );
    world.apply(&yaml).await;
}

async fn delete_machine(world: &World, name: &str) {
    let machines: Api<Beskar7Machine> = Api::namespaced(world.admin(), &world.namespace);
    machines.delete(name, &DeleteParams::default()).await.unwrap();
}

/// A world with a host that was provisioned for a machine.
async fn machines_world() -> (World, sim::Bmc) {
    let (world, bmc) = world_with(running_bmc()).await;
    create_machine(&world, "m-0", "first").await;
    world.annotate(HOST, "beskar7.io/claim-id", Some("first")).await;
    let order = json!({ "consumerRef": machine_ref("m-0"), "bootIsoSource": ISO, "claimableWhileRunning": true });
    world.patch_spec(HOST, order).await;
    world.wait_for_state(HOST, "Provisioned").await;
    (world, bmc)
}

/// Replaces a host by a manifest of it, as `kubectl replace` does: whatever is not in the manifest is gone, apart from
/// the status.
async fn replace(world: &World, annotations: Value, spec: Value) {
    let mut host = serde_json::to_value(world.host(HOST).await).unwrap();
    let version = host["metadata"]["resourceVersion"].take();
    host["metadata"] = json!({
        "name": HOST, "namespace": world.namespace, "annotations": annotations, "resourceVersion": version,
    });
    let connection = host["spec"]["redfishConnection"].take();
    host["spec"] = spec;
    host["spec"]["redfishConnection"] = connection;
    let host = serde_json::from_value(host).unwrap();
    world.hosts().replace(HOST, &PostParams::default(), &host).await.unwrap();
}

fn is_observed(host: &PhysicalHost) -> bool {
    host.status.as_ref().is_some_and(|status| status.observed_generation == host.metadata.generation)
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_replaced_away_while_its_consumer_lives_is_a_fault_until_the_consumer_is_deleted() {
    let (world, bmc) = machines_world().await;
    replace(&world, json!({}), json!({})).await;
    let host = world.wait_for_fault(HOST, "ConsumerMismatch").await;
    assert_eq!(state_of(&host), "Provisioned");
    let told = sentence(&host, "Ready");
    assert!(told.contains("was removed, but Beskar7Machine") && told.contains("beskar7.io/release=first"), "{told}");
    assert!(host.finalizers().iter().any(|finalizer| finalizer.starts_with("physicalhost.")), "it came back");
    assert!(host.annotations()[ANCHOR].contains("provisioned"), "it came back");
    assert_untouched(&bmc);

    delete_machine(&world, "m-0").await;
    let host = world.wait_for_state(HOST, "Available").await;
    assert_eq!(fault_of(&host), None);
    assert_tidy(&bmc);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_put_back_ends_the_fault_without_a_trace() {
    let (world, bmc) = machines_world().await;
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_for_fault(HOST, "ConsumerMismatch").await;
    world.patch_spec(HOST, json!({ "consumerRef": machine_ref("m-0"), "bootIsoSource": ISO })).await;
    let host = world.wait_until(HOST, "no fault", |host| fault_of(host).is_none()).await;
    assert_eq!((state_of(&host).as_str(), condition(&host, "Ready").0.as_str()), ("Provisioned", "True"));
    assert_untouched(&bmc);
}

#[tokio::test(start_paused = true)]
async fn the_owner_may_release_a_host_whose_consumer_still_exists() {
    let (world, bmc) = machines_world().await;
    world.patch_spec(HOST, unclaimed()).await;
    world.wait_for_fault(HOST, "ConsumerMismatch").await;
    world.annotate(HOST, "beskar7.io/release", Some("true")).await;
    let counts_for_nothing = |host: &PhysicalHost| sentence(host, "Ready").contains("\"true\" counts for nothing");
    world.wait_until(HOST, "a remark about a value that names no claim", counts_for_nothing).await;
    assert_untouched(&bmc);
    world.annotate(HOST, "beskar7.io/release", Some("first")).await;
    let host = world.wait_for_state(HOST, "Available").await;
    assert_eq!(fault_of(&host), None);
    assert!(!host.annotations().contains_key("beskar7.io/release"), "heeded once");
    assert_tidy(&bmc);
}

/// What another provider of Cluster API brings: a kind in our group, in a newer version than ours.
const OTHER_PROVIDER: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: othermachines.infrastructure.cluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: unapproved}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: OtherMachine, plural: othermachines, singular: othermachine}
  versions:
    - name: v1beta2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[tokio::test(start_paused = true)]
async fn a_machine_is_found_beside_another_provider_with_a_newer_version_of_the_group() {
    let (world, bmc) = machines_world().await;
    world.apply(OTHER_PROVIDER).await;
    world.patch_spec(HOST, unclaimed()).await;
    let host = world.wait_for_fault(HOST, "ConsumerMismatch").await;
    let told = sentence(&host, "Ready");
    assert!(told.contains("still exists and is not being deleted"), "{told}");
    assert_untouched(&bmc);
    delete_machine(&world, "m-0").await;
    world.wait_for_state(HOST, "Available").await;
    assert_tidy(&bmc);
}

#[tokio::test(start_paused = true)]
async fn a_host_changes_hands_only_after_its_former_consumer_is_gone() {
    let (world, bmc) = machines_world().await;
    create_machine(&world, "m-1", "second").await;
    world.annotate(HOST, "beskar7.io/claim-id", Some("second")).await;
    world.patch_spec(HOST, json!({ "consumerRef": machine_ref("m-1"), "bootIsoSource": OTHER_ISO })).await;
    let host = world.wait_for_fault(HOST, "ConsumerMismatch").await;
    assert!(sentence(&host, "Ready").contains("now names Beskar7Machine"), "{}", sentence(&host, "Ready"));
    assert_untouched(&bmc);

    delete_machine(&world, "m-0").await;
    world.wait_until(HOST, "the other image", |_| runs(&bmc) == Some(BootSource::Cd(OTHER_ISO.into()))).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(fault_of(&host), None);
    assert_eq!(bmc.first().boots, 2);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_namesake_is_another_consumer() {
    let (world, bmc) = machines_world().await;
    delete_machine(&world, "m-0").await;
    create_machine(&world, "m-0", "second").await;
    world.annotate(HOST, "beskar7.io/claim-id", Some("second")).await;
    world.wait_until(HOST, "a boot for the new one", |_| bmc.first().boots == 2).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(fault_of(&host), None);
    assert!(host.annotations()[ANCHOR].contains("second"), "{:?}", host.annotations());
}

#[tokio::test(start_paused = true)]
async fn a_wiped_status_comes_back_and_nothing_happens_to_the_server() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    world.wipe_status(HOST).await;
    let is_whole = |host: &PhysicalHost| host.status.as_ref().is_some_and(|status| status.hardware_details.is_some());
    let host = world.wait_until(HOST, "the whole status", is_whole).await;
    assert_eq!(state_of(&host), "Provisioned");
    assert_eq!(condition(&host, "HostProvisioned").0, "True");
    assert_eq!(condition(&host, "OrderInEffect").0, "", "it was not adopted: the anchor knows");
    assert_untouched(&bmc);
    world.release(&bmc).await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_anchor_comes_back() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    let before = world.host(HOST).await.annotations()[ANCHOR].clone();
    world.annotate(HOST, ANCHOR, None).await;
    let host = world.wait_until(HOST, "an anchor", |host| host.annotations().contains_key(ANCHOR)).await;
    assert_eq!(host.annotations()[ANCHOR], before);
    assert_eq!(state_of(&host), "Provisioned");
    assert_untouched(&bmc);
    world.release(&bmc).await;
}

#[tokio::test(start_paused = true)]
async fn with_all_memory_lost_a_claimed_host_is_adopted_as_it_is() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    world.stop_operator().await;
    world.wipe_status(HOST).await;
    world.annotate(HOST, ANCHOR, None).await;
    world.start_operator();
    let is_adopted = |host: &PhysicalHost| condition(host, "OrderInEffect") == ("False".into(), "Adopted".into());
    let host = world.wait_until(HOST, "adoption", is_adopted).await;
    assert_eq!(state_of(&host), "Provisioned");
    assert!(sentence(&host, "OrderInEffect").contains("beskar7.io/provision="));
    world.wait_until(HOST, "inspection", |host| condition(host, "HostInspected").0 == "True").await;
    assert_untouched(&bmc);
}

#[tokio::test(start_paused = true)]
async fn an_anchor_of_a_newer_version_is_neither_overwritten_nor_acted_on() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    let newer = r#"{"v":99,"seq":7,"fate":"unheard of"}"#;
    world.annotate(HOST, ANCHOR, Some(newer)).await;
    let host = world.wait_for_fault(HOST, "AnchorUnreadable").await;
    assert!(sentence(&host, "Ready").contains("has format 99"), "{}", sentence(&host, "Ready"));
    assert_eq!(state_of(&host), "Provisioned");
    world.patch_spec(HOST, unclaimed()).await;
    let host = world.wait_until(HOST, "a look at that", is_observed).await;
    assert_eq!(host.annotations()[ANCHOR], newer);
    assert_untouched(&bmc);

    // Without it, the status still knows. The claim was taken back meanwhile.
    world.annotate(HOST, ANCHOR, None).await;
    world.wait_for_state(HOST, "Available").await;
    assert_tidy(&bmc);
}

#[tokio::test(start_paused = true)]
async fn an_old_manifest_over_a_provisioned_host_is_not_believed_about_the_past() {
    let (world, bmc) = world_with(running_bmc()).await;
    let old = world.host(HOST).await.annotations()[ANCHOR].clone();
    world.provision(&bmc).await;
    let present = world.host(HOST).await.annotations()[ANCHOR].clone();
    assert_ne!(old, present);
    replace(&world, json!({ ANCHOR: old }), claim("me", ISO)).await;
    let host = world.wait_until(HOST, "the anchor", |host| host.annotations()[ANCHOR] == present).await;
    assert_eq!((state_of(&host).as_str(), fault_of(&host)), ("Provisioned", None));
    assert_untouched(&bmc);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_created_with_a_claim_is_left_as_it_is_until_its_owner_wants_it_provisioned() {
    let world = World::quiet_in_process().await;
    world.start_operator();
    let bmc = running_bmc();
    world.register(&bmc, claim("me", ISO)).await;
    let host = world.wait_until(HOST, "inspection", |host| condition(host, "HostInspected").0 == "True").await;
    assert_eq!(state_of(&host), "Provisioned");
    assert_eq!(condition(&host, "OrderInEffect"), ("False".into(), "Adopted".into()));
    let told = sentence(&host, "OrderInEffect");
    let (_, id) = told.split_once("beskar7.io/provision=").unwrap();
    let id = id.split(',').next().unwrap().to_owned();
    assert!(bmc.journal().is_empty(), "{:?}", bmc.journal());
    assert_eq!(world.wait_for_event("Adopted").await, told);

    world.annotate(HOST, "beskar7.io/provision", Some(&id)).await;
    world.wait_until(HOST, "the image", |_| runs(&bmc) == Some(BootSource::Cd(ISO.into()))).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(condition(&host, "OrderInEffect").0, "");
    assert!(!host.annotations().contains_key("beskar7.io/provision"), "heeded once");
    assert_eq!(resets(&bmc), ["ForceOff", "On"]);
}

#[tokio::test(start_paused = true)]
async fn an_anchor_that_was_edited_does_not_reinstall_a_running_server() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    let good = world.host(HOST).await.annotations()[ANCHOR].clone();
    let edited = good.replace("\"provisioned\"", "\"armed\"");
    world.annotate(HOST, ANCHOR, Some(&edited)).await;
    let host = world.wait_for_fault(HOST, "AnchorEdited").await;
    assert_eq!((state_of(&host).as_str(), &host.annotations()[ANCHOR]), ("Provisioned", &edited));
    assert_untouched(&bmc);
    world.annotate(HOST, ANCHOR, None).await;
    let host = world.wait_until(HOST, "no fault", |host| fault_of(host).is_none()).await;
    assert_eq!((state_of(&host).as_str(), &host.annotations()[ANCHOR]), ("Provisioned", &good));
    assert_untouched(&bmc);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_changes_after_it_was_carried_out_is_only_told_about_and_a_new_claim_provisions_again() {
    let (world, bmc) = provisioned_world(json!({ "name": "me" })).await;
    let is_remarked = |host: &PhysicalHost| condition(host, "OrderInEffect").1 == "OrderChanged";
    for order in [json!(OTHER_ISO), json!(null)] {
        world.patch_spec(HOST, json!({ "bootIsoSource": order })).await;
        let host = world.wait_until(HOST, "a remark", |host| is_remarked(host) && is_observed(host)).await;
        assert_eq!((state_of(&host).as_str(), fault_of(&host)), ("Provisioned", None));
        assert!(sentence(&host, "OrderInEffect").contains("only a new claim provisions again"));
    }
    world.patch_spec(HOST, json!({ "bootIsoSource": ISO })).await;
    world.wait_until(HOST, "no remark", |host| !is_remarked(host)).await;
    assert_untouched(&bmc);

    world.patch_spec(HOST, claim("her", OTHER_ISO)).await;
    world.wait_until(HOST, "the other image", |_| runs(&bmc) == Some(BootSource::Cd(OTHER_ISO.into()))).await;
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((bmc.first().boots, condition(&host, "OrderInEffect").0.as_str()), (2, ""));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_for_a_machine_whose_cluster_is_paused() {
    let (world, bmc) = machines_world().await;
    apply_cluster(&world, true).await;
    let labelled = format!(
        "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Beskar7Machine\nmetadata: {{name: m-0, annotations: {{beskar7.io/claim-id: first}}, labels: {{cluster.x-k8s.io/cluster-name: c}}}}\nspec: {{imageURL: {ISO}}}\n"
    );
    world.apply(&labelled).await;
    world.patch_spec(HOST, json!({ "online": false })).await;
    let host = world.wait_until(HOST, "to say that it is paused", |host| condition(host, "Paused").0 == "True").await;
    assert!(sentence(&host, "Paused").contains("Cluster") && sentence(&host, "Paused").contains("/c is paused"));
    assert_eq!(state_of(&host), "Provisioned");
    assert_untouched(&bmc);

    apply_cluster(&world, false).await;
    let off = |host: &PhysicalHost| {
        host.status.as_ref().is_some_and(|status| status.observed_power_state.as_deref() == Some("Off"))
    };
    let host = world.wait_until(HOST, "power Off, as ordered meanwhile", off).await;
    assert_eq!(condition(&host, "Paused"), Default::default());
}
