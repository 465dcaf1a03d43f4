//! What never happens to a server that somebody has.

use ::api::metal3::BareMetalHost;
use sim::{BootSource, ResetType};

use super::*;

/// Nothing is done to a server for an hour.
async fn nothing_happens(scene: &Scene, what: &str) {
    let acts = scene.done("server-0");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((scene.done("server-0"), scene.power("server-0")), (acts, PowerState::On), "{what}");
}

#[tokio::test(start_paused = true)]
async fn a_reserved_server_is_not_touched_because_something_about_it_vanished() {
    let mut scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;

    scene.write_status_of::<Server>(&server, Value::Null).await;
    nothing_happens(&scene, "its status was wiped").await;
    scene.until_server(&server, "Reserved").await;

    scene.write_status_of::<Server>(&server, json!({"state": "Available"})).await;
    nothing_happens(&scene, "its status was put by somebody else").await;
    scene.until_server(&server, "Reserved").await;

    scene.drop_object::<ServerBootConfiguration>("node").await;
    nothing_happens(&scene, "its boot configuration was deleted").await;
    assert!(scene.object::<ServerBootConfiguration>("node").is_object(), "there is another one");

    scene.drop_object::<Bmc>("server-0").await;
    nothing_happens(&scene, "its BMC was deleted").await;
    let told = condition(&scene.object::<Server>(&server), "Ready")["message"].clone();
    assert_eq!(told, "BMC server-0, named in spec.bmcRef, does not exist. Create it; it is noticed at once.");
    assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Reserved");
    scene.add_bmc_as("server-0", json!({})).await;
    scene.until_ready::<Server>(&server, "Reserved").await;

    scene.stop().await;
    start(&mut scene);
    nothing_happens(&scene, "the operator was restarted").await;

    scene.edit::<Server>(&server, json!({"spec": {"serverClaimRef": null}})).await;
    nothing_happens(&scene, "the reference to its claim was removed").await;
    let ready = condition(&scene.object::<Server>(&server), "Ready");
    assert_eq!((&ready["reason"], ready["status"].as_str()), (&json!("ConsumerMismatch"), Some("False")));
    let reference = json!({"namespace": NAMESPACE, "name": "node"});
    scene.edit::<Server>(&server, json!({"spec": {"serverClaimRef": reference}})).await;
    scene.until_ready::<Server>(&server, "Reserved").await;

    // The end of the claim is another matter.
    scene.drop_object::<ServerClaim>("node").await;
    scene.until_server(&server, "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_upstream_has_reserved_is_taken_over_as_it_is() {
    let mut scene = prepared(&["server-0"]).await;
    let server = of("server-0");
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.add_bmc("server-0").await;
    let bmc = scene.object::<Bmc>("server-0");
    let owner = json!([{"apiVersion": "metal.ironcore.dev/v1alpha1", "kind": "BMC", "name": "server-0", "uid": bmc["metadata"]["uid"], "controller": true}]);
    let metadata = json!({"name": server, "finalizers": ["metal.ironcore.dev/server"], "ownerReferences": owner});
    let reference = json!({"namespace": NAMESPACE, "name": "node"});
    let spec = json!({
        "systemUUID": scene.servers.hardware("server-0").uuid.to_ascii_lowercase(), "bmcRef": {"name": "server-0"},
        "serverClaimRef": reference, "bootConfigurationRef": reference, "power": "On",
    });
    scene.make::<Server>(metadata, json!({"spec": spec})).await;
    // What upstream shows of the power may be old.
    scene.write_status_of::<Server>(&server, json!({"state": "Reserved", "powerState": "Off"})).await;
    let metadata = json!({"name": "node", "finalizers": ["metal.ironcore.dev/serverclaim"]});
    let claim = json!({"spec": {"power": "On", "image": "os", "serverRef": {"name": server}}});
    scene.make::<ServerClaim>(metadata, claim).await;
    scene.write_status_of::<ServerClaim>("node", json!({"phase": "Bound"})).await;
    let configuration = json!({"spec": {"serverRef": {"name": server}, "image": "os"}});
    scene.make::<ServerBootConfiguration>(json!({"name": "node"}), configuration).await;
    scene.write_status_of::<ServerBootConfiguration>("node", json!({"state": "Ready"})).await;

    start(&mut scene);
    scene.until_ready::<Server>(&server, "Reserved").await;
    nothing_happens(&scene, "taken over").await;
    let shown = scene.object::<Server>(&server);
    assert_eq!(shown["metadata"]["ownerReferences"], Value::Null);
    assert_eq!((&shown["status"]["state"], &shown["status"]["powerState"]), (&json!("Reserved"), &json!("On")));
    assert_eq!(scene.object::<ServerClaim>("node")["status"]["phase"], "Bound");

    scene.drop_object::<ServerClaim>("node").await;
    scene.until_server(&server, "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_server_and_a_physical_host_of_one_machine_never_both_act() {
    let scene = site(&["server-0"]).await;
    scene
        .add_host_as(
            "ours",
            json!({"redfishConnection": {
                "address": "https://server-0", "credentialsSecretRef": "server-0", "insecureSkipVerify": true,
            }}),
        )
        .await;
    scene.until_state("ours", "Available").await;
    scene.add_bmc("server-0").await;
    let told = scene.until_ready::<Server>(&of("server-0"), "DuplicateHost").await;
    assert!(told.contains(&format!("PhysicalHost {NAMESPACE}/ours")), "{told}");
    scene.claim("node", json!({})).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.done("server-0"), [""; 0]);
    scene.hosts().delete("ours", &DeleteParams::default()).await.unwrap();
    scene.until_bound("node").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_and_a_bare_metal_host_of_one_machine_never_both_act() {
    let mut scene = prepared(&["server-0"]).await;
    for definition in ::api::crd::metal3_crds() {
        scene.define(&definition).await;
    }
    start_as(&mut scene, vec![Dialect::Metal3, Dialect::IronCore], None, |_| {});
    scene.add_bmc("server-0").await;
    scene.until_server(&of("server-0"), "Available").await;
    let bmc = json!({"address": "redfish-virtualmedia://server-0", "credentialsName": "server-0", "disableCertificateVerification": true});
    let image = json!({"url": "https://192.0.2.1/live.iso", "format": "live-iso"});
    let spec = json!({"spec": {"online": true, "bmc": bmc, "image": image}});
    scene.make::<BareMetalHost>(json!({"name": "metal"}), spec).await;
    let told = |scene: &Scene| scene.object::<BareMetalHost>("metal")["status"]["errorMessage"].clone();
    scene
        .until("it says who has the server", |scene| {
            told(scene).as_str().is_some_and(|told| told.contains(&format!("Server {}", of("server-0"))))
        })
        .await;
    scene.booted("node").await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe, "never the image of the other one");
}

#[tokio::test(start_paused = true)]
async fn a_parked_server_is_off_and_left_alone_until_it_is_unparked() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;
    let annotate = |operation: &str| json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": operation}}});
    scene.edit::<Server>(&server, annotate("park")).await;
    scene.until_server(&server, "Parked").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.until_of::<Server>(&server, "/metadata/annotations/metal.ironcore.dev~1parked", "true").await;
    assert_eq!(scene.object::<Server>(&server)["metadata"]["annotations"]["metal.ironcore.dev/operation"], Value::Null);
    assert_eq!(scene.object::<ServerClaim>("node")["status"]["phase"], "Bound");
    // Whoever took it over switches it on, and it survives a lost status.
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.write_status_of::<Server>(&server, Value::Null).await;
    nothing_happens(&scene, "parked").await;
    scene.until_server(&server, "Parked").await;

    scene.edit::<Server>(&server, annotate("unpark")).await;
    scene.until_server(&server, "Reserved").await;
    assert_eq!(scene.object::<Server>(&server)["metadata"]["annotations"]["metal.ironcore.dev/parked"], Value::Null);
    nothing_happens(&scene, "back").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_ignored_is_left_alone() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    let ignore = json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": "ignore"}}});
    scene.booted("node").await;
    for object in [&server] {
        scene.edit::<Server>(object, ignore.clone()).await;
    }
    scene.edit::<ServerClaim>("node", json!({"spec": {"power": "Off"}})).await;
    nothing_happens(&scene, "ignored").await;
    let heed = json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": null}}});
    scene.edit::<Server>(&server, heed).await;
    scene.until_power("server-0", PowerState::Off).await;

    let metadata = json!({"name": "ignored", "annotations": {"metal.ironcore.dev/operation": "ignore"}});
    scene.make::<ServerClaim>(metadata, json!({"spec": {"power": "On", "image": "os"}})).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let shown = scene.object::<ServerClaim>("ignored");
    assert_eq!((&shown["status"], &shown["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
}
