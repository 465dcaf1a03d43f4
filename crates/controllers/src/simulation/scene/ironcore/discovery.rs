//! From a device on the management network to a Server.

use sim::{Kind, ResetType, Verb};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_device_with_a_known_prefix_becomes_a_bmc_with_its_secret_and_its_server() {
    let scene = site(&["server-0"]).await;
    scene.add_endpoint("device", "23:11:8A:33:CF:EA").await;
    scene.until_server("device-system-0", "Available").await;

    let endpoint = scene.object::<Endpoint>("device");
    assert_eq!(condition(&endpoint, "Ready")["reason"], "BMCCreated");
    let bmc = scene.object::<Bmc>("device");
    assert_eq!(bmc["spec"]["endpointRef"]["name"], "device");
    assert_eq!(bmc["spec"]["bmcSecretRef"]["name"], "device");
    assert_eq!(bmc["spec"]["protocol"], json!({"name": "Redfish", "port": 443}));
    assert_eq!((&bmc["status"]["ip"], &bmc["status"]["macAddress"]), (&json!("server-0"), &json!("23:11:8A:33:CF:EA")));
    assert_eq!(
        (condition(&bmc, "Ready")["reason"].as_str(), bmc["status"]["state"].as_str()),
        (Some("Connected"), Some("Enabled"))
    );
    assert_eq!(bmc["metadata"]["ownerReferences"], Value::Null, "the deletion of one is not that of the other");
    // The second pair of default credentials was right.
    let secret = scene.object::<BmcSecret>("device");
    assert_eq!(secret["data"], json!({"username": "YWRtaW4=", "password": "cGFzc3dvcmQ="}));

    let hardware = scene.servers.hardware("server-0").clone();
    let server = scene.object::<Server>("device-system-0");
    assert_eq!(server["spec"]["systemUUID"], hardware.uuid.to_ascii_lowercase());
    assert_eq!(server["spec"]["bmcRef"]["name"], "device");
    let status = &server["status"];
    assert_eq!((&status["serialNumber"], &status["powerState"]), (&json!(hardware.serial), &json!("Off")));
    assert!(status["totalSystemMemory"].as_str().is_some_and(|memory| memory.ends_with("Gi")), "{status:#}");
    assert_eq!(status["networkInterfaces"][0]["macAddress"], hardware.macs[0].to_ascii_lowercase());
    assert_eq!(scene.done("server-0"), [""; 0], "nothing was done to the server");
    // Each pair of default credentials was tried once, and all objects share a session.
    assert_eq!(scene.servers.bmc("server-0").counters().of(Verb::Post, Kind::Sessions), 2);

    // At rest nothing is written.
    tokio::time::sleep(Duration::from_mins(2)).await;
    let versions = |scene: &Scene| {
        [scene.object::<Endpoint>("device"), scene.object::<Bmc>("device"), scene.object::<Server>("device-system-0")]
            .map(|object| object["metadata"]["resourceVersion"].clone())
    };
    let before = versions(&scene);
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(versions(&scene), before);
}

#[tokio::test(start_paused = true)]
async fn default_credentials_are_tried_once_each_and_a_secret_by_hand_is_tried_at_once() {
    let mut scene = site(&["server-0"]).await;
    scene.add_endpoint("device", "24-00-00-00-00-01").await;
    let told = scene.until_ready::<Endpoint>("device", "AuthenticationFailed").await;
    assert_eq!(
        told,
        "The BMC has refused all default credentials, each once. Create a BMCSecret device with username and password; it is tried at once."
    );
    let logins = |scene: &Scene| scene.servers.bmc("server-0").counters().of(Verb::Post, Kind::Sessions);
    assert_eq!(logins(&scene), 2);
    tokio::time::sleep(Duration::from_hours(1)).await;
    scene.stop().await;
    start(&mut scene);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(logins(&scene), 2, "also not after a restart of the operator");

    scene.add_bmc_secret("device").await;
    let took = scene.until_server("device-system-0", "Available").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(logins(&scene), 3);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_whose_password_is_refused_is_held_until_its_secret_changes() {
    let mut scene = site(&["server-0"]).await;
    let data = json!({"stringData": {"username": "admin", "password": "guessed"}});
    scene.make::<BmcSecret>(json!({"name": "server-0"}), data).await;
    scene.add_bmc_as("server-0", json!({})).await;
    scene.until_ready::<Bmc>("server-0", "AuthenticationFailed").await;
    assert_eq!(scene.object::<Bmc>("server-0")["status"]["state"], "Error");
    let logins = |scene: &Scene| scene.servers.bmc("server-0").counters().of(Verb::Post, Kind::Sessions);
    tokio::time::sleep(Duration::from_mins(30)).await;
    scene.stop().await;
    start(&mut scene);
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(logins(&scene), 1, "one try");
    scene.edit::<BmcSecret>("server-0", json!({"stringData": {"password": "password"}})).await;
    let took = scene.until_server(&of("server-0"), "Available").await;
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(condition(&scene.object::<Bmc>("server-0"), "Ready")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_runs_when_it_is_first_seen_is_left_alone_until_it_is_off() {
    let scene = site(&["server-0"]).await;
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.add_bmc("server-0").await;
    let told = scene.until_ready::<Server>(&of("server-0"), "WaitingForServerOff").await;
    assert!(told.contains("somebody may use it"), "{told}");
    assert_eq!(scene.object::<Server>(&of("server-0"))["status"]["state"], "Initial");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((scene.power("server-0"), scene.done("server-0")), (PowerState::On, vec![]));

    scene.servers.press("server-0", ResetType::ForceOff);
    scene.until_server(&of("server-0"), "Available").await;
    // From then on it is kept off.
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.until_power("server-0", PowerState::Off).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_runs_when_it_is_first_seen_is_switched_off_where_that_is_enforced() {
    let mut scene = prepared(&["server-0"]).await;
    start_with(&mut scene, |settings| settings.enforce_first_boot = true);
    scene.servers.press("server-0", ResetType::On);
    scene.until_power("server-0", PowerState::On).await;
    scene.add_bmc("server-0").await;
    scene.until_server(&of("server-0"), "Available").await;
    assert_eq!(scene.power("server-0"), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_deleted_is_made_again_from_its_endpoint_with_the_secret_that_there_is() {
    let scene = site(&["server-0"]).await;
    scene.add_endpoint("device", "23:11:8A:33:CF:EA").await;
    scene.until_server("device-system-0", "Available").await;
    let secret = scene.object::<BmcSecret>("device");
    for _ in 0..2 {
        let before = scene.object::<Bmc>("device")["metadata"]["uid"].clone();
        scene.drop_object::<Bmc>("device").await;
        scene
            .until("there is another one", |scene| {
                let uid = scene.object::<Bmc>("device")["metadata"]["uid"].clone();
                !uid.is_null() && uid != before
            })
            .await;
        scene.until_ready::<Server>("device-system-0", "Available").await;
    }
    assert_eq!(scene.object::<BmcSecret>("device"), secret);
    assert!(scene.object::<Server>("device-system-1").is_null(), "it is the same server");
}

#[tokio::test(start_paused = true)]
async fn labels_of_a_bmc_are_those_of_its_servers_too() {
    let scene = available(&["server-0"]).await;
    scene.edit::<Server>(&of("server-0"), json!({"metadata": {"labels": {"own": "yes"}}})).await;
    scene.edit::<Bmc>("server-0", json!({"metadata": {"labels": {"rack": "r1"}}})).await;
    scene.until_of::<Server>(&of("server-0"), "/metadata/labels/rack", "r1").await;
    assert_eq!(scene.object::<Server>(&of("server-0"))["metadata"]["labels"]["own"], "yes");
}

#[tokio::test(start_paused = true)]
async fn a_server_with_an_inline_bmc_needs_no_bmc_object() {
    let scene = site(&["server-0"]).await;
    scene.add_bmc_secret("secret").await;
    let uuid = scene.servers.hardware("server-0").uuid.to_ascii_uppercase();
    let bmc = json!({"protocol": {"name": "Redfish", "port": 443}, "address": "server-0", "bmcSecretRef": {"name": "secret"}});
    scene.make::<Server>(json!({"name": "mine"}), json!({"spec": {"systemUUID": uuid, "bmc": bmc}})).await;
    scene.until_server("mine", "Available").await;
}
