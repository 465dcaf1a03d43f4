//! Maintenance: who has a server, what it does meanwhile, and how it comes back.

use api::ironcore::{ServerMaintenance, ServerReadinessRule};
use sim::BootSource;

use super::*;

impl Scene {
    async fn maintain(&self, name: &str, change: Value) {
        let mut spec = json!({"serverRef": {"name": of("server-0")}, "policy": "OwnerApproval"});
        crate::dialect::merge(&mut spec, &change);
        self.make::<ServerMaintenance>(json!({"name": name}), json!({"spec": spec})).await;
    }

    async fn until_maintenance(&self, name: &str, state: &str) {
        self.until_of::<ServerMaintenance>(name, "/status/state", state).await;
    }

    fn holder(&self) -> Value {
        self.object::<Server>(&of("server-0"))["spec"]["serverMaintenanceRef"]["name"].clone()
    }

    async fn approve(&self, claim: &str) {
        let labels = json!({"metadata": {"labels": {"metal.ironcore.dev/maintenance-approved": "true"}}});
        self.edit::<ServerClaim>(claim, labels).await;
    }
}

fn boots(image: &str) -> Value {
    json!({"serverBootConfigurationTemplate": {"name": "any", "spec": {"serverRef": {"name": "any"}, "image": image}}})
}

#[tokio::test(start_paused = true)]
async fn a_free_server_is_taken_at_once_boots_what_is_needed_and_is_available_and_off_again() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    let mut wants = boots("registry.example/firmware:1");
    wants["serverPower"] = json!("On");
    scene.maintain("firmware", wants).await;
    scene.until_server(&server, "Maintenance").await;
    scene.until_maintenance("firmware", "InMaintenance").await;
    let shown = scene.object::<Server>(&server);
    let reference = json!({"namespace": NAMESPACE, "name": "firmware"});
    assert_eq!(shown["spec"]["serverMaintenanceRef"], reference);
    assert_eq!(shown["spec"]["maintenanceBootConfigurationRef"], reference);
    let configuration = scene.object::<ServerBootConfiguration>("firmware");
    assert_eq!(configuration["spec"]["image"], "registry.example/firmware:1");
    assert_eq!(configuration["spec"]["serverRef"]["name"], server, "the server that is under maintenance");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off, "its boot configuration is not ready");
    // Nobody gets it meanwhile.
    scene.claim("node", json!({})).await;
    let told = scene.until_ready::<ServerClaim>("node", "NoServer").await;
    assert!(told.contains("under maintenance"), "{told}");

    scene.provide("firmware", "Ready").await;
    scene.until_power("server-0", PowerState::On).await;
    assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe);
    scene.until_of::<Server>(&server, "/spec/power", "On").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(scene.power("server-0"), PowerState::On);

    scene.drop_object::<ServerClaim>("node").await;
    scene.drop_object::<ServerMaintenance>("firmware").await;
    scene.until_server(&server, "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    let shown = scene.object::<Server>(&server);
    for gone in ["serverMaintenanceRef", "maintenanceBootConfigurationRef", "power"] {
        assert_eq!(shown["spec"][gone], Value::Null, "{gone}");
    }
    assert!(scene.object::<ServerMaintenance>("firmware").is_null());
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_a_claim_is_asked_and_gets_the_server_back_as_it_was() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;
    scene.maintain("fan", json!({"serverPower": "Off"})).await;
    scene.until_of::<ServerClaim>("node", "/metadata/labels/metal.ironcore.dev~1maintenance-needed", "true").await;
    scene.until_maintenance("fan", "Pending").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((scene.power("server-0"), scene.holder()), (PowerState::On, Value::Null), "its owner has not agreed");
    assert_eq!(
        scene.events_of("Pending").await,
        [
            "Waiting for the owner of ServerClaim lab/node, which has Server server-0-system-0, to label it with metal.ironcore.dev/maintenance-approved."
        ]
    );

    scene.approve("node").await;
    scene.until_maintenance("fan", "InMaintenance").await;
    scene.until_power("server-0", PowerState::Off).await;
    assert_eq!(scene.object::<ServerClaim>("node")["status"]["phase"], "Bound");
    assert_eq!(scene.object::<Server>(&server)["spec"]["power"], "Off");

    scene.drop_object::<ServerMaintenance>("fan").await;
    scene.until_server(&server, "Reserved").await;
    scene.until_power("server-0", PowerState::On).await;
    assert_eq!(scene.last_boot("server-0").unwrap().from, BootSource::Pxe, "a live system is booted again");
    scene.until_of::<Server>(&server, "/spec/power", "On").await;
    scene
        .until("the labels are gone", |scene| {
            let labels = &scene.object::<ServerClaim>("node")["metadata"]["labels"];
            labels["metal.ironcore.dev/maintenance-needed"].is_null()
                && labels["metal.ironcore.dev/maintenance-approved"].is_null()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_enforced_maintenance_asks_nobody_and_does_not_take_the_server_from_another_one() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;
    scene.maintain("first", json!({"policy": "Enforced"})).await;
    scene.until_maintenance("first", "InMaintenance").await;
    assert_eq!(scene.power("server-0"), PowerState::On, "nothing was said of the power");
    scene.maintain("second", json!({"policy": "Enforced", "priority": 9})).await;
    scene.maintain("third", json!({"policy": "Enforced", "priority": 10})).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.holder(), "first");
    scene.until_maintenance("second", "Pending").await;

    // From one to the next the server stays under maintenance; the highest priority comes first.
    scene.drop_object::<ServerMaintenance>("first").await;
    scene.until_maintenance("third", "InMaintenance").await;
    assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Maintenance");
    scene.drop_object::<ServerMaintenance>("third").await;
    scene.until_maintenance("second", "InMaintenance").await;
    scene.drop_object::<ServerMaintenance>("second").await;
    scene.until_server(&server, "Reserved").await;
    assert_eq!(scene.power("server-0"), PowerState::On);
}

#[tokio::test(start_paused = true)]
async fn a_maintenance_whose_boot_cannot_be_prepared_has_failed_and_changes_no_power() {
    let scene = available(&["server-0"]).await;
    let mut wants = boots("nonsense");
    wants["serverPower"] = json!("On");
    scene.maintain("firmware", wants).await;
    scene.provide("firmware", "Error").await;
    scene.until_maintenance("firmware", "Failed").await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    let told = scene.until_ready::<Server>(&of("server-0"), "WaitingForBootPermission").await;
    assert_eq!(
        told,
        "Waiting for ServerBootConfiguration lab/firmware, whose boot provider reports an error, to be ready before the server is booted."
    );
}

#[tokio::test(start_paused = true)]
async fn a_maintenance_of_a_server_that_does_not_exist_waits_and_goes_at_once() {
    let scene = site(&["server-0"]).await;
    scene.maintain("early", json!({})).await;
    scene.until_maintenance("early", "Pending").await;
    assert_eq!(scene.events_of("Pending").await, ["Waiting for Server server-0-system-0, which does not exist."]);
    scene.drop_object::<ServerMaintenance>("early").await;
    scene.until("it is gone", |scene| scene.object::<ServerMaintenance>("early").is_null()).await;
    scene.maintain("early", json!({})).await;
    scene.add_bmc("server-0").await;
    scene.until_maintenance("early", "InMaintenance").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_under_maintenance_is_not_deleted_before_its_end_unless_that_is_wanted() {
    for is_wanted in [false, true] {
        let scene = available(&["server-0"]).await;
        let server = of("server-0");
        scene.maintain("fan", json!({"serverPower": "On"})).await;
        scene.until_server(&server, "Maintenance").await;
        scene.until_power("server-0", PowerState::On).await;
        // Its BMC would find it again.
        scene
            .edit::<Bmc>("server-0", json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": "ignore"}}}))
            .await;
        scene.drop_object::<Server>(&server).await;
        tokio::time::sleep(Duration::from_mins(30)).await;
        assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Maintenance");
        if is_wanted {
            let allow =
                json!({"metadata": {"annotations": {"metal.ironcore.dev/operation": "allow-in-progress-delete"}}});
            scene.edit::<Server>(&server, allow).await;
        } else {
            scene.drop_object::<ServerMaintenance>("fan").await;
        }
        scene.until("it is gone", |scene| scene.object::<Server>(&server).is_null()).await;
        assert_eq!(scene.power("server-0"), PowerState::Off, "{is_wanted}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_ends_during_maintenance_is_released_after_it() {
    let scene = available(&["server-0"]).await;
    let server = of("server-0");
    scene.booted("node").await;
    scene.maintain("fan", json!({"policy": "Enforced"})).await;
    scene.until_maintenance("fan", "InMaintenance").await;
    scene.drop_object::<ServerClaim>("node").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.power("server-0"), PowerState::On);
    scene.drop_object::<ServerMaintenance>("fan").await;
    scene.until_server(&server, "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
    scene.until("the claim is gone", |scene| scene.object::<ServerClaim>("node").is_null()).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_operator_changes_nothing_about_a_maintenance() {
    let mut scene = available(&["server-0"]).await;
    scene.booted("node").await;
    let mut wants = boots("registry.example/firmware:1");
    wants["serverPower"] = json!("On");
    wants["policy"] = json!("Enforced");
    scene.maintain("firmware", wants).await;
    scene.provide("firmware", "Ready").await;
    scene
        .until("it boots for the maintenance", |scene| {
            scene.done("server-0").len() >= 5 && scene.power("server-0") == PowerState::On
        })
        .await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let acts = scene.done("server-0");
    scene.stop().await;
    scene.write_status_of::<Server>(&of("server-0"), Value::Null).await;
    start(&mut scene);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((scene.done("server-0"), scene.power("server-0")), (acts, PowerState::On));
    scene.until_maintenance("firmware", "InMaintenance").await;
    scene.drop_object::<ServerMaintenance>("firmware").await;
    scene.until_server(&of("server-0"), "Reserved").await;
    scene.until_ready::<ServerClaim>("node", "ServerRuns").await;
    scene.until_power("server-0", PowerState::On).await;
}

/// A rule that needs the condition Network.
async fn rule(scene: &Scene, mode: &str) {
    let spec = json!({
        "conditions": [{"type": "Network", "requiredStatus": "True"}], "enforcementMode": mode,
        "taint": {"key": "unready", "effect": "NoBind"}, "serverSelector": {"matchLabels": {"zone": "a"}},
    });
    scene.make::<ServerReadinessRule>(json!({"name": "network"}), json!({"spec": spec})).await;
}

fn taints(scene: &Scene) -> usize {
    scene.object::<Server>(&of("server-0"))["spec"]["taints"].as_array().map_or(0, Vec::len)
}

async fn report(scene: &Scene, status: &str) {
    let condition = json!({
        "type": "Network", "status": status, "reason": "Checked", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let mut all =
        scene.object::<Server>(&of("server-0"))["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.retain(|known| known["type"] != "Network");
    all.push(condition);
    scene.write_status_of::<Server>(&of("server-0"), json!({"conditions": all})).await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_taints_servers_until_they_are_ready_and_each_time_or_once() {
    for (mode, again) in [("Continuous", 1), ("BootstrapOnly", 0)] {
        let scene = available(&["server-0"]).await;
        let server = of("server-0");
        let own = json!([{"key": "own", "effect": "NoBind"}]);
        scene.edit::<Server>(&server, json!({"metadata": {"labels": {"zone": "a"}}, "spec": {"taints": own}})).await;
        rule(&scene, mode).await;
        scene.until("it is tainted", |scene| taints(scene) == 2).await;
        report(&scene, "True").await;
        scene.until("it is ready", |scene| taints(scene) == 1).await;
        assert_eq!(condition(&scene.object::<Server>(&server), "Network")["status"], "True", "foreign conditions stay");
        report(&scene, "False").await;
        tokio::time::sleep(Duration::from_mins(5)).await;
        assert_eq!(taints(&scene), 1 + again, "{mode}");

        // A deleted rule leaves no taint of its own behind, and those of others alone.
        scene.drop_object::<ServerReadinessRule>("network").await;
        scene.until("the rule is gone", |scene| scene.object::<ServerReadinessRule>("network").is_null()).await;
        assert_eq!(scene.object::<Server>(&server)["spec"]["taints"][0]["key"], "own");
        assert_eq!(taints(&scene), 1, "{mode}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_for_servers_with_its_labels_only() {
    let scene = available(&["server-0"]).await;
    rule(&scene, "Continuous").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(taints(&scene), 0);
    scene.edit::<Server>(&of("server-0"), json!({"metadata": {"labels": {"zone": "a"}}})).await;
    scene.until("it is tainted", |scene| taints(scene) == 1).await;
    scene.claim("node", json!({})).await;
    scene.until_ready::<ServerClaim>("node", "NoServer").await;
    report(&scene, "True").await;
    scene.until_bound("node").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_must_be_sanitized_stays_in_cleanup_until_somebody_says_that_it_was() {
    let mut scene = prepared(&["server-0"]).await;
    start_with(&mut scene, |settings| settings.require_sanitized = true);
    scene.add_bmc("server-0").await;
    let server = of("server-0");
    scene.until_server(&server, "Available").await;
    scene.booted("node").await;
    scene.drop_object::<ServerClaim>("node").await;
    let told = scene.until_ready::<Server>(&server, "WaitingForWipe").await;
    assert_eq!(
        told,
        "Powered off and cleaned up; the disks still hold what the last claim left. To free the server, wipe them and annotate the Server with beskar7.io/wiped: the same value as beskar7.io/released."
    );
    scene.until("the claim is gone", |scene| scene.object::<ServerClaim>("node").is_null()).await;
    scene.claim("next", json!({})).await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    let shown = scene.object::<Server>(&server);
    assert_eq!((&shown["status"]["state"], scene.power("server-0")), (&json!("Cleanup"), PowerState::Off));
    assert_eq!(condition(&shown, "Sanitized")["reason"], "DisksNotWiped");
    let annotate = |value: &str| json!({"metadata": {"annotations": {"beskar7.io/wiped": value}}});
    scene.edit::<Server>(&server, annotate("lab/other")).await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(scene.object::<Server>(&server)["status"]["state"], "Cleanup", "another claim was meant");
    scene.edit::<Server>(&server, annotate("lab/node")).await;
    scene.until_bound("next").await;
    assert_eq!(scene.object::<Server>(&server)["metadata"]["annotations"]["beskar7.io/wiped"], Value::Null);
}
