//! RemoteConfig: an image with a kernel parameter written into it, and bootstrap data for one server only. The tests play the
//! BMC, the server and whoever else sits on the network.

use std::net::Ipv4Addr;

use api::beskar7::{Beskar7Machine, PhysicalHost};
use controllers::clock::{Clock as _, SystemClock};
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};
use testkit::{WebServer, build_menu_iso, fetch_from, wait_for};
use trials::machines::{host_of, told};
use trials::served::{MENU, SERVER, boot_service, config_url, get, image_url, kernel_line};
use trials::story::{HOST, runs, sentence, waits_for};
use trials::world::{Hurry, SOON, World, claim, condition, fault_of, state_of};

const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 6);

/// What a machine asks for that is configured by its image.
pub(crate) fn remote(image: &str, more: &Value) -> Value {
    let mut spec = json!({ "osFamily": "kairos", "imageURL": image, "provisioningMode": "RemoteConfig" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// What somebody orders by hand for a server that gets its bootstrap data from us.
fn order(image: &str, secret: &str) -> Value {
    let mut order = claim("me", image);
    order["remoteConfig"] = json!({ "osFamily": "talos" });
    order["userDataSecretRef"] = json!({ "name": secret });
    order
}

#[tokio::test]
async fn a_machine_boots_an_image_that_leads_to_its_configuration() {
    let world = World::serving("remote").await;
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    world.create_machine("node-01", remote(&image, &json!({ "configURL": "http://config.test/node.yaml" }))).await;
    world.wait_for_ready("node-01").await;

    let url = image_url(&bmc).await;
    assert!(url.rsplit('.').next() == Some("iso") && !url.contains('?') && url.len() <= 255, "{url}");
    assert_eq!(kernel_line(&url).await, "console=ttyS0 quiet config_url=http://config.test/node.yaml");
    let part = fetch_from(SERVER, "GET", &url, &[("range", "bytes=32769-32773")]).await.unwrap();
    assert_eq!((part.status(), part.body().as_ref()), (StatusCode::PARTIAL_CONTENT, &b"CD001"[..]));

    world.delete_machine("node-01").await;
    world.wait_for_no_machine("node-01").await;
    let host = world.wait_for_state(HOST, "Available").await;
    assert_eq!((host.spec.remote_config, host.spec.boot_iso_source), (None, None));
    assert_eq!(get(SERVER, &url).await.status(), StatusCode::NOT_FOUND, "a ticket ends with the claim");
}

#[tokio::test]
async fn a_server_gets_its_own_bootstrap_data_and_nobody_else_does() {
    let world = World::serving("bootstrap").await;
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    let other = world.available_host("server-02").await;
    world.create_bootstrap_data("one", "hostname=one").await;
    world.create_bootstrap_data("two", "hostname=two").await;
    world.patch_spec(HOST, order(&image, "one")).await;
    world.patch_spec("server-02", order(&image, "two")).await;
    let (ours, theirs) = (image_url(&bmc).await, image_url(&other).await);
    let (config, other_config) = (config_url(&ours).await, config_url(&theirs).await);

    // Somebody mixes the tickets of two hosts, or of two purposes.
    let ticket = |url: &str| url.rsplit('/').next().unwrap().to_owned();
    let mixed = config.replace(&ticket(&config), &ticket(&other_config));
    assert_eq!(get(STRANGER, &mixed).await.status(), StatusCode::NOT_FOUND);
    let iso_ticket = ours.rsplit('/').nth(1).unwrap();
    assert_eq!(get(STRANGER, &config.replace(&ticket(&config), iso_ticket)).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(world.sessions().await, [], "and closes the door for nobody");

    let answer = get(SERVER, &config).await;
    assert_eq!((answer.status(), answer.body().as_ref()), (StatusCode::OK, &b"hostname=one"[..]));
    assert_eq!(answer.headers()["content-type"], "text/cloud-config");
    assert_eq!(get(SERVER, &config).await.status(), StatusCode::OK, "installers retry");
    let host = world.wait_for_state(HOST, "Provisioned").await;
    let host = match condition(&host, "BootServed").0.as_str() {
        "True" => host,
        _ => world.wait_until(HOST, "to tell who fetched", |host| condition(host, "BootServed").0 == "True").await,
    };
    assert_eq!(host.status.as_ref().unwrap().fetched_from.as_deref(), Some("127.0.0.5"));

    assert_eq!(get(STRANGER, &config).await.status(), StatusCode::NOT_FOUND, "from a second address");
    let host = world
        .wait_until(HOST, "to warn of a second address", |host| {
            condition(host, "BootServed").1 == "BootstrapDataSecondAddress"
        })
        .await;
    assert!(sentence(&host, "BootServed").contains("127.0.0.6"), "{}", sentence(&host, "BootServed"));
    assert_eq!(get(SERVER, &config).await.status(), StatusCode::OK, "who was first still gets it");

    // Whatever replica answers, and whenever it was started.
    world.stop_operator().await;
    let boot = boot_service(&world);
    let moved =
        |url: &str| url.replacen(url.split('/').nth(2).unwrap(), &boot.listener.local_addr().unwrap().to_string(), 1);
    let (config, ours) = (moved(&config), moved(&ours));
    world.start_operator_with(world.clock(), |config| {
        config.cluster_api = false;
        config.boot = Some(boot);
    });
    wait_for("the new operator to serve", SOON, async || {
        (get(SERVER, &config).await.status() == StatusCode::OK).then_some(())
    })
    .await;
    assert_eq!(get(STRANGER, &config).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(get(SERVER, &ours).await.status(), StatusCode::OK);

    world.patch_spec(HOST, unordered()).await;
    world.wait_for_state(HOST, "Available").await;
    for url in [&config, &ours] {
        assert_eq!(get(SERVER, url).await.status(), StatusCode::NOT_FOUND, "after release");
    }
    world.patch_spec("server-02", unordered()).await;
    world.wait_for_state("server-02", "Available").await;
    world.wait_for_no_session().await;
    let host = world.wait_until(HOST, "a clean status", |host| condition(host, "BootServed").0.is_empty()).await;
    assert_eq!(host.status.unwrap().fetched_from, None);
}

#[tokio::test]
async fn tickets_of_a_claim_by_hand_open_nothing_after_its_release() {
    let world = World::serving("again").await;
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    world.create_bootstrap_data("data", "x").await;
    world.patch_spec(HOST, order(&image, "data")).await;
    let first = image_url(&bmc).await;
    let config = config_url(&first).await;
    world.wait_for_state(HOST, "Provisioned").await;
    world.patch_spec(HOST, unordered()).await;
    world.wait_for_state(HOST, "Available").await;

    world.patch_spec(HOST, order(&image, "data")).await;
    world.wait_for_state(HOST, "Provisioned").await;
    let second = image_url(&bmc).await;
    assert_ne!(first, second);
    for url in [&first, &config] {
        assert_eq!(get(SERVER, url).await.status(), StatusCode::NOT_FOUND, "{url}");
    }
    assert_eq!(get(SERVER, &config_url(&second).await).await.status(), StatusCode::OK);
}

fn unordered() -> Value {
    json!({ "consumerRef": null, "bootIsoSource": null, "remoteConfig": null, "userDataSecretRef": null })
}

#[tokio::test]
async fn bootstrap_data_can_be_fetched_for_a_quarter_of_an_hour() {
    let world = World::serving("quarter").await;
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    world.create_bootstrap_data("data", "x").await;
    world.patch_spec(HOST, order(&image, "data")).await;
    let config = config_url(&image_url(&bmc).await).await;
    assert_eq!(get(SERVER, &config).await.status(), StatusCode::OK);
    world.wait_for_state(HOST, "Provisioned").await;
    world.stop_operator().await;

    let boot = boot_service(&world);
    let config =
        config.replacen(config.split('/').nth(2).unwrap(), &boot.listener.local_addr().unwrap().to_string(), 1);
    let later = Hurry::from(SystemClock.now() + SignedDuration::from_mins(16));
    world.start_operator_with(later, |config| config.boot = Some(boot));
    wait_for("the door to be shut and that to be told", SOON, async || {
        assert_eq!(get(SERVER, &config).await.status(), StatusCode::NOT_FOUND);
        (condition(&world.host(HOST).await, "BootServed").1 == "BootstrapDataClosed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn bootstrap_data_that_is_not_there_is_told_about_and_served_when_it_is() {
    let world = World::serving("no-data").await;
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    world.patch_spec(HOST, order(&image, "late")).await;
    let config = config_url(&image_url(&bmc).await).await;
    assert_eq!(get(SERVER, &config).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let host = world
        .wait_until(HOST, "to tell what is missing", |host| {
            condition(host, "BootServed").1 == "BootstrapDataUnavailable"
        })
        .await;
    let told = sentence(&host, "BootServed");
    assert!(told.contains(&format!("Secret {}/late", world.namespace)) && told.contains("does not exist"), "{told}");
    assert_eq!(get(STRANGER, &config).await.status(), StatusCode::SERVICE_UNAVAILABLE, "nobody was first yet");

    world.create_bootstrap_data("late", "here").await;
    assert_eq!(get(SERVER, &config).await.body().as_ref(), b"here");
    world.wait_until(HOST, "all to be well", |host| condition(host, "BootServed").0 == "True").await;
}

#[tokio::test]
async fn orders_that_cannot_be_served_are_refused_with_a_sentence_and_nothing_is_done() {
    let world = World::quiet("unserved").await;
    world.start_alone();
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    world.patch_spec(HOST, order(&image, "data")).await;
    world.wait_for_fault(HOST, "BootURLMissing").await;
    world.create_machine("node-01", remote(&image, &json!({ "configURL": "http://config.test/" }))).await;
    let machine =
        world.wait_for_machine("node-01", "says why", |m| told(m, "InfrastructureReady").1 == "BootURLMissing").await;
    assert!(told(&machine, "InfrastructureReady").2.contains("--boot-url"));
    assert_eq!(machine.status.unwrap().failure_reason, None, "a flag can be set");

    world.stop_operator().await;
    world.start_serving();
    for (order, word) in [
        (json!({ "userDataSecretRef": null }), "userDataSecretRef"),
        (json!({ "userDataSecretRef": { "name": "data", "namespace": "elsewhere" } }), "another namespace"),
        (json!({ "remoteConfig": { "osFamily": "talos", "configURL": "http://c/'x" } }), "talos.config"),
    ] {
        world.patch_spec(HOST, order).await;
        let is_told = |host: &PhysicalHost| {
            fault_of(host).as_deref() == Some("OrderInvalid")
                && host.status.as_ref().unwrap().fault.as_ref().unwrap().message.contains(word)
        };
        world.wait_until(HOST, word, is_told).await;
    }
    assert_eq!((bmc.first().boots, runs(&bmc)), (0, None));
}

#[tokio::test]
async fn an_image_that_cannot_be_served_is_told_about_before_a_server_is_claimed() {
    let world = World::serving("bad-images").await;
    let depot = WebServer::start();
    world.available_host(HOST).await;
    let good = build_menu_iso(MENU);
    let cases = [
        ("gone.iso", None, "IsoNotFound"),
        ("cut.iso", Some(good[..good.len() / 2].to_vec()), "IsoTruncated"),
        ("other.iso", Some(b"<html>Not found</html>".repeat(4096)), "NotAnIso"),
        ("bare.iso", Some(build_menu_iso("SAY nothing to boot\n")), "NoKnownBootLoader"),
    ];
    for (name, content, reason) in cases {
        let image = depot.put(name, content.clone().unwrap_or_default());
        if content.is_none() {
            depot.take(name);
        }
        world.create_machine("node-01", remote(&image, &json!({ "configURL": "http://config.test/" }))).await;
        let machine = world.wait_for_machine("node-01", reason, |m| told(m, "InfrastructureReady").1 == reason).await;
        let message = told(&machine, "InfrastructureReady").2;
        assert!(message.contains(name), "{message}");
        assert_eq!(host_of(&machine), None);
        assert_eq!(state_of(&world.host(HOST).await), "Available");
        assert!(world.host(HOST).await.spec.consumer_ref.is_none());
        world.delete_machine("node-01").await;
        world.wait_for_no_machine("node-01").await;
    }

    // Put right, it is served without anybody's help.
    let image = depot.put("os.iso", b"upload under way".to_vec());
    let legacy = json!({ "configURL": "http://config.test/", "bootMode": "Legacy" });
    world.create_machine("node-01", remote(&image, &legacy)).await;
    world.wait_for_machine("node-01", "NotAnIso", |m| told(m, "InfrastructureReady").1 == "NotAnIso").await;
    depot.put("os.iso", good);
    world.wait_for_ready("node-01").await;
    let uefi = json!({ "configURL": "http://config.test/", "bootMode": "UEFI" });
    world.create_machine("node-02", remote(&image, &uefi)).await;
    let is_told = |m: &Beskar7Machine| told(m, "InfrastructureReady").1 == "BootModeNotCovered";
    world.wait_for_machine("node-02", "the image has nothing for UEFI", is_told).await;
}

#[tokio::test]
async fn a_server_that_was_claimed_for_an_image_that_went_bad_is_given_back_untouched() {
    let world = World::quiet("gone-bad").await;
    let start_frozen = || {
        let boot = boot_service(&world);
        world.start_operator_with(world.clock(), |config| {
            config.cluster_api = false;
            config.brake.freeze = true;
            config.boot = Some(boot);
        });
    };
    start_frozen();
    let depot = WebServer::start();
    let image = depot.put("os.iso", build_menu_iso(MENU));
    let bmc = world.available_host(HOST).await;
    let journal = bmc.journal().len();
    world.create_machine("node-01", remote(&image, &json!({ "configURL": "http://config.test/" }))).await;
    world
        .wait_until(HOST, "claimed and held", |host| host.spec.consumer_ref.is_some() && waits_for(host, "FleetBrake"))
        .await;

    // A good image is believed for a minute, but not by the next operator.
    world.stop_operator().await;
    depot.put("os.iso", build_menu_iso("SAY nothing to boot\n"));
    start_frozen();
    let host = world.wait_until(HOST, "given back", |host| host.spec.consumer_ref.is_none()).await;
    assert_eq!((host.spec.boot_iso_source, host.spec.remote_config), (None, None));
    world.wait_for_state(HOST, "Available").await;
    let is_told = |m: &Beskar7Machine| told(m, "InfrastructureReady").1 == "NoKnownBootLoader" && host_of(m).is_none();
    world.wait_for_machine("node-01", "says why", is_told).await;
    assert_eq!((bmc.journal().len(), bmc.first().boots), (journal, 0));

    world.stop_operator().await;
    depot.put("os.iso", build_menu_iso(MENU));
    world.start_serving();
    world.wait_for_ready("node-01").await;
    assert_eq!(bmc.first().boots, 1);
}
