//! Claims: who gets which server, what it boots, and how it is given back.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use sim::BootSource;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_claim_is_bound_before_the_boot_which_waits_for_the_boot_provider() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    let data = json!({"stringData": {"ignition": "variant: fcos", "format": "fcos"}});
    scene.make::<Secret>(json!({"name": "ignition"}), data).await;
    scene.claim("node", json!({"ignitionSecretRef": {"name": "ignition"}})).await;
    let took = scene.until_bound("node").await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    let shown = scene.object::<Server>(&server);
    let reference = json!({"namespace": NAMESPACE, "name": "node"});
    assert_eq!(shown["status"]["state"], "Reserved");
    assert_eq!((&shown["spec"]["serverClaimRef"], &shown["spec"]["bootConfigurationRef"]), (&reference, &reference));
    assert_eq!(shown["spec"]["power"], "On");
    let claim = scene.object::<ServerClaim>("node");
    assert_eq!(claim["spec"]["serverRef"]["name"], server);
    let configuration = scene.object::<ServerBootConfiguration>("node");
    assert_eq!(configuration["spec"]["serverRef"]["name"], server);
    assert_eq!(configuration["spec"]["image"], "registry.example/os:1");
    assert_eq!(configuration["spec"]["ignitionSecretRef"]["name"], "ignition");
    assert_eq!(configuration["metadata"]["ownerReferences"][0]["uid"], claim["metadata"]["uid"]);

    let told = scene.until_ready::<ServerClaim>("node", "Booting").await;
    assert_eq!(told, "Waiting for ServerBootConfiguration lab/node to be ready before the server is booted.");
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!((scene.power("server-0"), scene.done("server-0")), (PowerState::Off, vec![]));

    scene.provide("node", "Ready").await;
    scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
    assert_eq!(scene.power("server-0"), PowerState::On);
    assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe);

    // At rest nothing is written.
    tokio::time::sleep(Duration::from_mins(2)).await;
    let versions = |scene: &Scene| {
        [
            scene.object::<Server>(&server),
            scene.object::<ServerClaim>("node"),
            scene.object::<ServerBootConfiguration>("node"),
        ]
        .map(|object| object["metadata"]["resourceVersion"].clone())
    };
    let before = versions(&scene);
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(versions(&scene), before);

    // The end: shut down, cleaned up, and free again.
    scene.drop_object::<ServerClaim>("node").await;
    scene.until_server(&server, "Cleanup").await;
    scene.until_server(&server, "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    let shown = scene.object::<Server>(&server);
    for gone in ["serverClaimRef", "bootConfigurationRef", "power"] {
        assert_eq!(shown["spec"][gone], Value::Null, "{gone}");
    }
    assert_eq!(condition(&shown, "Sanitized")["reason"], "DisksNotWiped");
    assert_eq!(condition(&shown, "WaitingForPowerOff")["reason"], "PowerOffConfirmed");
    scene.until("the claim is gone", |scene| scene.object::<ServerClaim>("node").is_null()).await;
    assert!(scene.object::<ServerBootConfiguration>("node").is_null());
    let annotations = shown["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations.keys().collect::<Vec<_>>(), ["beskar7.io/anchor"]);
}

#[tokio::test(start_paused = true)]
async fn power_follows_the_claim_and_every_start_boots_from_the_network() {
    let scene = available(&["server-0"]).await;
    scene.claim("node", json!({"power": "Off"})).await;
    scene.until_bound("node").await;
    scene.provide("node", "Ready").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!((scene.power("server-0"), scene.done("server-0")), (PowerState::Off, vec![]), "nobody wants it on");
    for _ in 0..2 {
        scene.edit::<ServerClaim>("node", json!({"spec": {"power": "On"}})).await;
        scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
        assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe);
        scene.edit::<ServerClaim>("node", json!({"spec": {"power": "Off"}})).await;
        scene.until_ready::<ServerClaim>("node", "PoweredOff").await;
        scene.until_power("server-0", PowerState::Off).await;
        assert_eq!(scene.object::<Server>(&of("server-0"))["spec"]["power"], "Off");
    }
    assert_eq!(scene.object::<ServerClaim>("node")["status"]["phase"], "Bound");
}

#[tokio::test(start_paused = true)]
async fn an_annotation_makes_the_first_start_the_only_one_from_the_network() {
    let scene = available(&["server-0"]).await;
    let metadata = json!({"name": "node", "annotations": {"beskar7.io/boot": "first"}});
    scene.make::<ServerClaim>(metadata, json!({"spec": {"power": "On", "image": "os"}})).await;
    scene.provide("node", "Ready").await;
    scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
    assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe);
    scene.edit::<ServerClaim>("node", json!({"spec": {"power": "Off"}})).await;
    scene.until_power("server-0", PowerState::Off).await;
    scene.edit::<ServerClaim>("node", json!({"spec": {"power": "On"}})).await;
    scene.until_power("server-0", PowerState::On).await;
    scene.until("it boots its disk", |scene| scene.last_boot("server-0").unwrap().from == BootSource::Hdd).await;
}

#[tokio::test(start_paused = true)]
async fn another_image_makes_another_boot_configuration_and_does_not_restart_the_server() {
    let scene = available(&["server-0"]).await;
    scene.booted("node").await;
    let before = scene.object::<ServerBootConfiguration>("node")["metadata"]["uid"].clone();
    let acts = scene.done("server-0").len();
    scene.edit::<ServerClaim>("node", json!({"spec": {"image": "registry.example/os:2"}})).await;
    scene.until_of::<ServerBootConfiguration>("node", "/spec/image", "registry.example/os:2").await;
    let fresh = scene.object::<ServerBootConfiguration>("node");
    assert_ne!(fresh["metadata"]["uid"], before, "a Ready of the old one cannot count");
    scene.until_of::<ServerBootConfiguration>("node", "/status/state", "Pending").await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!((scene.done("server-0").len(), scene.power("server-0")), (acts, PowerState::On));

    // The next start waits until the new one is ready.
    scene.edit::<ServerClaim>("node", json!({"spec": {"power": "Off"}})).await;
    scene.until_power("server-0", PowerState::Off).await;
    scene.edit::<ServerClaim>("node", json!({"spec": {"power": "On"}})).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.provide("node", "Ready").await;
    scene.until_power("server-0", PowerState::On).await;
}

#[tokio::test(start_paused = true)]
async fn a_boot_configuration_in_error_is_told_and_nothing_is_booted() {
    let scene = available(&["server-0"]).await;
    scene.claim("node", json!({})).await;
    scene.provide("node", "Error").await;
    scene
        .until("the claim tells it", |scene| {
            let message = condition(&scene.object::<ServerClaim>("node"), "Ready")["message"].clone();
            message.as_str().is_some_and(|message| message.contains("whose boot provider reports an error"))
        })
        .await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn claims_choose_by_name_by_labels_by_both_or_not_at_all() {
    let scene = available(&["server-0", "server-1", "server-2", "server-3"]).await;
    for (index, zone) in ["a", "b", "b", "c"].iter().enumerate() {
        let name = of(&format!("server-{index}"));
        scene.edit::<Server>(&name, json!({"metadata": {"labels": {"zone": zone}}})).await;
    }
    let selects = |zone: &str| json!({"matchLabels": {"zone": zone}});
    scene.claim("by-both", json!({"serverRef": {"name": of("server-2")}, "serverSelector": selects("b")})).await;
    scene.claim("by-name", json!({"serverRef": {"name": of("server-3")}})).await;
    scene
        .claim(
            "by-labels",
            json!({"serverSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}}),
        )
        .await;
    scene.claim("any", json!({})).await;
    for (claim, server) in
        [("by-both", "server-2"), ("by-name", "server-3"), ("by-labels", "server-1"), ("any", "server-0")]
    {
        scene.until_bound(claim).await;
        assert_eq!(scene.object::<ServerClaim>(claim)["spec"]["serverRef"]["name"], of(server), "{claim}");
    }
    scene.claim("late", json!({"serverSelector": selects("b")})).await;
    let told = scene.until_ready::<ServerClaim>("late", "NoServer").await;
    assert_eq!(told, "None of the 4 Servers fits: 2 are claimed, 2 have other labels.");
    scene.drop_object::<ServerClaim>("by-labels").await;
    scene.until_bound("late").await;
}

#[tokio::test(start_paused = true)]
async fn taints_and_a_cordon_keep_claims_away_that_do_not_tolerate_them() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.edit::<Server>(&server, json!({"spec": {"taints": [{"key": "broken", "value": "fan"}]}})).await;
    scene.claim("picky", json!({})).await;
    scene.claim("other", json!({"tolerations": [{"key": "broken", "value": "disk"}]})).await;
    let told = scene.until_ready::<ServerClaim>("picky", "NoServer").await;
    assert!(told.contains("tainted broken=fan"), "{told}");
    scene.until_ready::<ServerClaim>("other", "NoServer").await;

    scene.edit::<Server>(&server, json!({"spec": {"unclaimable": true}})).await;
    scene.claim("tolerant", json!({"tolerations": [{"key": "broken", "operator": "Exists"}]})).await;
    scene
        .until("it says so", |scene| {
            let message = condition(&scene.object::<ServerClaim>("tolerant"), "Ready")["message"].clone();
            message.as_str().is_some_and(|message| message.contains("cordoned: spec.unclaimable is true"))
        })
        .await;
    scene.edit::<Server>(&server, json!({"spec": {"unclaimable": false}})).await;
    let took = scene.until_bound("tolerant").await;
    assert!(took < Duration::from_secs(10), "{took:?}");
    // A claim that has the server keeps it.
    scene.edit::<Server>(&server, json!({"spec": {"unclaimable": true}})).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Reserved");
}

#[tokio::test(start_paused = true)]
async fn a_claim_waits_for_a_server_that_is_not_available() {
    let scene = site(&["server-0"]).await;
    let server = of("server-0");
    scene.servers.press("server-0", sim::ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.add_bmc("server-0").await;
    scene.until_ready::<Server>(&server, "WaitingForServerOff").await;
    scene.claim("node", json!({"serverRef": {"name": server}})).await;
    let told = scene.until_ready::<ServerClaim>("node", "NoServer").await;
    assert!(told.contains("is Initial"), "{told}");
    tokio::time::sleep(Duration::from_hours(1)).await;
    let shown = scene.object::<Server>(&server);
    assert_eq!((&shown["spec"]["serverClaimRef"], &shown["status"]["state"]), (&Value::Null, &json!("Initial")));
    scene.servers.press("server-0", sim::ResetType::ForceOff);
    scene.until_bound("node").await;
}

#[tokio::test(start_paused = true)]
async fn a_toleration_of_the_same_value_is_enough_and_a_taint_of_another_effect_keeps_nobody_away() {
    let scene = available(&["server-0"]).await;
    let taints = json!([
        {"key": "slow", "value": "disk", "effect": "NoBind"},
        {"key": "old", "effect": "Evict"},
    ]);
    scene.edit::<Server>(&of("server-0"), json!({"spec": {"taints": taints}})).await;
    scene.claim("other", json!({"tolerations": [{"key": "slow", "value": "fan"}]})).await;
    scene.until_ready::<ServerClaim>("other", "NoServer").await;
    scene.claim("node", json!({"tolerations": [{"key": "slow", "operator": "Equal", "value": "disk"}]})).await;
    scene.until_bound("node").await;
}

#[tokio::test(start_paused = true)]
async fn of_two_claims_for_one_server_the_older_one_gets_it() {
    let scene = available(&["server-0"]).await;
    scene.claim("a", json!({})).await;
    scene.claim("b", json!({})).await;
    scene.until_bound("a").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(scene.object::<ServerClaim>("b")["status"]["phase"], "Unbound");
    scene.drop_object::<ServerClaim>("a").await;
    scene.until_bound("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_retained_server_is_released_until_a_person_removes_the_reference() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.edit::<Server>(&server, json!({"spec": {"reclaimPolicy": "Retain"}})).await;
    scene.booted("node").await;
    scene.drop_object::<ServerClaim>("node").await;
    scene.until_server(&server, "Released").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.until("the claim is gone", |scene| scene.object::<ServerClaim>("node").is_null()).await;
    scene.claim("next", json!({})).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let shown = scene.object::<Server>(&server);
    assert_eq!(
        (&shown["status"]["state"], &shown["spec"]["serverClaimRef"]["name"]),
        (&json!("Released"), &json!("node"))
    );
    assert_eq!(scene.object::<ServerClaim>("next")["status"]["phase"], "Unbound");
    scene.edit::<Server>(&server, json!({"spec": {"serverClaimRef": null}})).await;
    scene.until_bound("next").await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_never_got_a_server_goes_at_once() {
    let scene = site(&["server-0"]).await;
    scene.claim("node", json!({})).await;
    let told = scene.until_ready::<ServerClaim>("node", "NoServer").await;
    assert_eq!(told, "There are no Servers.");
    scene.drop_object::<ServerClaim>("node").await;
    scene.until("it is gone", |scene| scene.object::<ServerClaim>("node").is_null()).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_deleted_while_its_server_boots_is_released() {
    let scene = available(&["server-0"]).await;
    scene.claim("node", json!({})).await;
    scene.provide("node", "Ready").await;
    scene.until_power("server-0", PowerState::On).await;
    scene.drop_object::<ServerClaim>("node").await;
    scene.until_server(&of("server-0"), "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn many_claims_at_once_get_one_server_each() {
    let names: Vec<_> = (0..10).map(|number| format!("server-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let scene = available(&names).await;
    for name in &names {
        scene.edit::<Server>(&of(name), json!({"metadata": {"labels": {"foo": "bar"}}})).await;
    }
    let selects = json!({"serverSelector": {"matchLabels": {"foo": "bar"}}});
    for (number, change) in [json!({}), selects].iter().cycle().take(8).enumerate() {
        scene.claim(&format!("node-{number}"), change.clone()).await;
    }
    let mut servers = BTreeSet::new();
    for number in 0..8 {
        let name = format!("node-{number}");
        scene.until_bound(&name).await;
        let server = scene.object::<ServerClaim>(&name)["spec"]["serverRef"]["name"].as_str().unwrap().to_owned();
        assert_eq!(scene.object::<Server>(&server)["spec"]["serverClaimRef"]["name"], name.as_str());
        servers.insert(server);
    }
    assert_eq!(servers.len(), 8);
    let is_free = |name: &&&str| scene.object::<Server>(&of(name))["status"]["state"] == "Available";
    assert_eq!(names.iter().filter(is_free).count(), 2);
}
