//! Hosts that are described wrongly, twice, or not for us.

use futures::future::join_all;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use sim::PowerState;
use testkit::wait_for;
use trials::story::ISO;
use trials::world::{EVER, World, assert_told, claim, condition, fault_of, instant_bmc, is_well, spec, state_of};

#[tokio::test(start_paused = true)]
async fn a_secret_without_a_usable_password_is_told_until_it_has_one() {
    let world = World::in_process().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    let secret = async |data: Value| {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "bmc" }, "stringData": data });
        world.apply(&secret.to_string()).await;
    };
    secret(json!({ "username": "admin" })).await;
    world.create_host("server-01", json!({})).await;
    let host = world.wait_for_fault("server-01", "MissingSecretData").await;
    let name = format!("{}/bmc", world.namespace);
    assert_told(&host, "MissingSecretData", &["password", &name, "missing or empty", "Set it"]);

    secret(json!({ "username": "", "password": "password" })).await;
    let about = |key: &'static str| {
        move |host: &api::beskar7::PhysicalHost| {
            host.status.as_ref().and_then(|status| status.error_message.as_ref()).is_some_and(|told| told.contains(key))
        }
    };
    let host = world.wait_until("server-01", "a sentence about the user name", about("username")).await;
    assert_told(&host, "MissingSecretData", &["Key username", "missing or empty"]);
    // What an editor leaves behind is not a password.
    secret(json!({ "username": "admin", "password": "\n" })).await;
    let host = world.wait_until("server-01", "a sentence about the password", about("password")).await;
    assert_told(&host, "MissingSecretData", &["Key password", "missing or empty"]);
    assert_eq!(bmc.counters().total(), 0, "half a Secret is not tried");

    secret(json!({ "username": "admin\n", "password": "password\n" })).await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_makes_no_sense_gets_a_sentence_and_its_correction_is_noticed() {
    let world = World::in_process().await;
    world.create_secret("bmc", "admin", "password").await;
    let cases = [
        ("none", "https://", "AddressInvalid", "https://<host>"),
        ("port", "https://bmc:99999", "AddressInvalid", "1 to 65535"),
        ("scheme", "ftp://bmc", "AddressInvalid", "\"ftp\" is unknown"),
        ("page", "https://bmc/login.html", "AddressInvalid", "/redfish/v1/Systems/<id>"),
        ("digits", "10.0.0.300", "AddressInvalid", "neither a DNS name nor an IP address"),
        ("bracket", "https://[fe80::1", "AddressInvalid", "brackets"),
        ("ipmi", "ipmi://10.0.0.1", "ProtocolUnsupported", "ipmi:// is not supported yet"),
    ];
    join_all(cases.map(async |(name, address, reason, hint)| {
        let bmc = world.add_bmc(name, instant_bmc(name));
        world.create_host(name, json!({ "redfishConnection": { "address": address } })).await;
        let host = world.wait_for_fault(name, reason).await;
        assert_told(&host, reason, &[address, hint]);
        assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), reason.into()));
        assert_eq!((state_of(&host).as_str(), bmc.counters().total()), ("Error", 0));
        world.patch_spec(name, json!({ "redfishConnection": { "address": format!("https://{name}") } })).await;
        let host = world.wait_for_state(name, "Available").await;
        assert!(is_well(&host), "{name}: {:?}", host.status);
    }))
    .await;
    let writes = world.writes();
    assert!(writes <= cases.len() * 6, "{writes} writes");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_vendor_is_told_by_its_field() {
    let world = World::in_process().await;
    world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "password").await;
    world.create_host("server-01", json!({ "redfishConnection": { "vendor": "acme" } })).await;
    let host = world.wait_for_fault("server-01", "AddressInvalid").await;
    assert_told(&host, "AddressInvalid", &["spec.redfishConnection.vendor", "acme", "Leave it out"]);
    world.patch_spec("server-01", json!({ "redfishConnection": { "vendor": null } })).await;
    world.wait_for_state("server-01", "Available").await;
}

#[tokio::test(start_paused = true)]
async fn of_two_hosts_that_name_the_same_bmc_the_younger_gives_way() {
    let world = World::in_process().await;
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", json!({ "online": true })).await;
    wait_for("power", EVER, async || (bmc.first().power() == PowerState::On).then_some(())).await;

    // The same BMC, written otherwise; and what it wishes is of no interest.
    let twin = json!({ "redfishConnection": { "address": "HTTPS://Server-01:443/redfish/v1/" }, "online": false });
    world.create_host("server-01-again", twin.clone()).await;
    let host = world.wait_for_fault("server-01-again", "DuplicateHost").await;
    assert_told(&host, "DuplicateHost", &[&format!("{}/server-01", world.namespace), "Delete one of the two"]);
    assert_eq!(state_of(&host), "Error");
    assert!(is_well(&world.host("server-01").await), "the first is not concerned");

    // Deleting the duplicate does nothing to the server.
    world.delete_host("server-01-again").await;
    assert_eq!((bmc.first().power(), bmc.first().resets), (PowerState::On, 1));
    world.create_host("server-01-again", twin).await;
    world.wait_for_fault("server-01-again", "DuplicateHost").await;

    // Deleting the first frees the second.
    world.delete_host("server-01").await;
    let host = world.wait_for_state("server-01-again", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
}

#[tokio::test(start_paused = true)]
async fn two_addresses_of_one_server_are_found_out() {
    let world = World::in_process().await;
    let bmc = world.available_host("front").await;
    world.add_bmc("rear", bmc.clone());
    world.create_host("rear", json!({})).await;
    let host = world.wait_for_fault("rear", "DuplicateHost").await;
    assert_told(&host, "DuplicateHost", &["/front"]);
    assert!(is_well(&world.host("front").await));
    assert_eq!(bmc.journal(), [], "nobody did anything to the server");
    world.delete_host("rear").await;
    assert_eq!(bmc.journal(), []);
    assert!(is_well(&world.host("front").await));
}

#[tokio::test(start_paused = true)]
async fn a_server_in_use_is_not_taken_over_by_an_older_object() {
    let world = World::in_process().await;
    // Created first, and in the order of names before the other too.
    world.create_host("a-older", json!({ "redfishConnection": { "address": "ipmi://bmc" } })).await;
    world.wait_for_fault("a-older", "ProtocolUnsupported").await;
    let bmc = world.available_host("b-younger").await;
    world.patch_spec("b-younger", claim("me", ISO)).await;
    world.wait_for_state("b-younger", "Provisioned").await;
    let resets = bmc.first().resets;

    world.patch_spec("a-older", json!({ "redfishConnection": { "address": "https://b-younger" } })).await;
    let host = world.wait_for_fault("a-older", "DuplicateHost").await;
    assert_told(&host, "DuplicateHost", &["/b-younger"]);
    world.patch_spec("a-older", claim("thief", ISO)).await;
    world.annotate("b-younger", "beskar7.io/inspect", Some("again")).await;
    world.wait_for_event_of("b-younger", "Inspected").await;
    let host = world.host("b-younger").await;
    assert!(is_well(&host) && state_of(&host) == "Provisioned", "{:?}", host.status);
    assert_eq!((bmc.first().power(), bmc.first().resets), (PowerState::On, resets));
    assert_eq!(fault_of(&world.host("a-older").await).as_deref(), Some("DuplicateHost"));
}

#[tokio::test(start_paused = true)]
async fn a_claim_does_not_act_on_a_server_that_runs_for_another_host() {
    let world = World::in_process().await;
    let bmc = world.available_host("front").await;
    world.patch_spec("front", claim("me", ISO)).await;
    world.wait_for_state("front", "Provisioned").await;
    let resets = bmc.first().resets;

    // Claimed before anybody knows which server it is, so that it would be acted on with the first look.
    world.add_bmc("rear", bmc.clone());
    world.create_host("rear", json!({ "redfishConnection": { "credentialsSecretRef": "late" } })).await;
    world.wait_for_fault("rear", "SecretNotFound").await;
    world.patch_spec("rear", claim("her", ISO)).await;
    world.create_secret("late", "admin", "password").await;
    let host = world.wait_for_fault("rear", "DuplicateHost").await;
    assert_told(&host, "DuplicateHost", &["/front"]);
    assert_eq!((bmc.first().power(), bmc.first().resets), (PowerState::On, resets), "{:?}", bmc.journal());
    world.patch_spec("rear", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.delete_host("rear").await;
    assert_eq!((bmc.first().power(), bmc.first().resets), (PowerState::On, resets), "{:?}", bmc.journal());
    let host = world.host("front").await;
    assert!(is_well(&host) && state_of(&host) == "Provisioned", "{:?}", host.status);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_pointed_elsewhere_does_not_occupy_its_former_server() {
    let world = World::in_process().await;
    world.available_host("server-01").await;
    world.patch_spec("server-01", json!({ "redfishConnection": { "address": "ipmi://elsewhere" } })).await;
    world.wait_for_fault("server-01", "ProtocolUnsupported").await;
    world.create_host("successor", json!({ "redfishConnection": { "address": "https://server-01" } })).await;
    let host = world.wait_for_state("successor", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_with_several_systems_asks_which_and_serves_each_in_one_session() {
    let world = World::in_process().await;
    let mut plan = spec("chassis").timing(sim::Timing::INSTANT).systems(3);
    plan.hardware = (0..3).map(|index| sim::Hardware::invent(&plan.personality, 77, index)).collect();
    let uuids: Vec<_> = plan.hardware.iter().map(|hardware| hardware.uuid.clone()).collect();
    let bmc = world.add_bmc("chassis", sim::Bmc::new(plan));
    world.create_secret("bmc", "admin", "password").await;
    let at = |address: &str, system: Option<&str>| json!({ "redfishConnection": { "address": address, "systemID": system } });

    world.create_host("left", at("https://chassis", None)).await;
    let host = world.wait_for_fault("left", "SystemAmbiguous").await;
    assert_told(&host, "SystemAmbiguous", &["several systems", "systemID", "1", "2", "3", &uuids[1]]);
    world.patch_spec("left", at("https://chassis", Some("nine"))).await;
    let host = world.wait_for_fault("left", "SystemNotFound").await;
    assert_told(&host, "SystemNotFound", &["\"nine\"", &uuids[0]]);

    // By its id, by its UUID, by the address.
    world.patch_spec("left", at("https://chassis", Some("1"))).await;
    world.create_host("middle", at("https://chassis", Some(&uuids[1].to_uppercase()))).await;
    world.create_host("right", at("https://chassis/redfish/v1/Systems/3", None)).await;
    for (name, uuid) in ["left", "middle", "right"].into_iter().zip(&uuids) {
        let host = world.wait_for_state(name, "Available").await;
        let shown = host.status.and_then(|status| status.hardware_details?.unpack().uuid).unwrap_or_default();
        assert!(shown.eq_ignore_ascii_case(uuid), "{name} is {shown}, not {uuid}");
    }
    wait_for("one session for all", EVER, async || (bmc.sessions_open() == 1).then_some(())).await;

    world.patch_spec("middle", claim("me", ISO)).await;
    world.wait_for_state("middle", "Provisioned").await;
    let powers: Vec<_> = bmc.servers().iter().map(sim::Server::power).collect();
    assert_eq!(powers, [PowerState::Off, PowerState::On, PowerState::Off], "only the one that was meant");

    // The same system by another name is the same server.
    world.create_host("centre", at("https://chassis", Some("2"))).await;
    world.wait_for_fault("centre", "DuplicateHost").await;
    world.delete_host("left").await;
    assert_eq!(bmc.sessions_open(), 1, "the others still need it");
}

#[tokio::test(start_paused = true)]
async fn a_paused_host_is_neither_watched_nor_touched() {
    const PAUSED: &str = "cluster.x-k8s.io/paused";
    let world = World::in_process().await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_secret("bmc", "admin", "password").await;
    world.create_annotated_host("server-01", json!({ PAUSED: "true" }), json!({ "online": true })).await;
    let paused = |host: &api::beskar7::PhysicalHost| condition(host, "Paused").0 == "True";
    world.wait_until("server-01", "to say that it is paused", paused).await;
    assert_eq!(bmc.counters().total(), 0);

    world.annotate("server-01", PAUSED, None).await;
    world.wait_for_state("server-01", "Available").await;
    wait_for("power", EVER, async || (bmc.first().power() == PowerState::On).then_some(())).await;
    world
        .wait_until("server-01", "power to be seen", |host| {
            host.status
                .as_ref()
                .is_some_and(|status| status.observed_power_state.as_deref() == Some("On") && status.waiting.is_none())
        })
        .await;

    world.annotate("server-01", PAUSED, Some("")).await;
    let host = world.wait_until("server-01", "to say that it is paused", paused).await;
    assert_eq!(state_of(&host), "Available", "what was known stays");
    world.patch_spec("server-01", json!({ "online": false })).await;
    world.hosts().delete("server-01", &DeleteParams::default()).await.unwrap();
    bmc.reset_counters();
    // A host that is not paused shows that the operator has come round.
    world.available_host("server-02").await;
    assert_eq!((bmc.counters().total(), bmc.first().power()), (0, PowerState::On));
    assert!(world.host("server-01").await.metadata.deletion_timestamp.is_some());
    world.annotate("server-01", PAUSED, None).await;
    world.wait_gone("server-01").await;
    assert_eq!(bmc.first().power(), PowerState::Off, "we had switched it on");
}
