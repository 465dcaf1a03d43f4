//! The way of a host, as its user sees it.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use sim::{BootSource, Effect, PowerState};
use testkit::wait_for;
use trials::story::{HOST, ISO, assert_untouched, running_bmc, sentence, unclaimed};
use trials::world::{SOON, World, assert_told, claim, condition, fault_of, instant_bmc, is_well, spec, state_of};

#[tokio::test]
async fn a_host_is_registered_and_shows_what_it_is_made_of() {
    let world = World::new("register").await;
    let bmc = world.available_host("server-01").await;
    let host = world.host("server-01").await;
    let status = host.status.clone().unwrap();
    let hardware = status.hardware_details.clone().unwrap().unpack();
    assert_eq!(status.ready, Some(true));
    assert_eq!(status.observed_power_state.as_deref(), Some("Off"));
    assert_eq!(status.health.as_deref(), Some("OK"));
    assert_eq!(
        hardware.uuid.as_deref().map(str::to_lowercase),
        Some(spec("server-01").hardware[0].uuid.to_lowercase())
    );
    assert!(
        !hardware.processors.is_empty() && !hardware.drives.is_empty() && !hardware.nics.is_empty(),
        "{hardware:?}"
    );
    for type_ in ["Ready", "RedfishConnectionReady", "HostInspected", "HostAvailable", "HardwareHealthy"] {
        assert_eq!(condition(&host, type_).0, "True", "{type_}");
    }
    assert_eq!(condition(&host, "HostProvisioned"), ("False".into(), "NotClaimed".into()));
    assert!(world.writes() <= 4, "apply to Available takes at most 4 writes");
    assert_eq!(bmc.first().power(), PowerState::Off, "nobody asked for a change of power");
}

#[tokio::test]
async fn an_order_is_booted_and_a_release_leaves_the_server_tidy() {
    let world = World::new("deploy").await;
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    let host = world.wait_for_state("server-01", "Provisioned").await;
    assert_eq!(condition(&host, "HostProvisioned").0, "True");
    let server = bmc.first();
    assert_eq!(server.power(), PowerState::On);
    assert_eq!(server.booted.as_ref().map(|booted| booted.from.clone()), Some(BootSource::Cd(ISO.into())));

    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.wait_for_state("server-01", "Available").await;
    let server = bmc.first();
    assert_eq!(server.power(), PowerState::Off);
    assert_eq!(server.media(), None);
}

#[tokio::test]
async fn deleting_a_provisioned_host_waits_for_its_consumer_and_then_tidies_up() {
    let world = World::new("delete").await;
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    world.wait_for_state("server-01", "Provisioned").await;
    world.hosts().delete("server-01", &kube::api::DeleteParams::default()).await.unwrap();
    let host = world
        .wait_until("server-01", "wait for the consumer", |host| {
            host.status
                .as_ref()
                .and_then(|status| status.waiting.as_ref())
                .is_some_and(|w| w.reason == "WaitingForConsumerRelease")
        })
        .await;
    assert_eq!(state_of(&host), "Deleting");
    assert_eq!(bmc.first().power(), PowerState::On);
    world.patch_spec("server-01", json!({ "consumerRef": null, "bootIsoSource": null })).await;
    world.wait_gone("server-01").await;
    let server = bmc.first();
    assert_eq!((server.power(), server.media()), (PowerState::Off, None));
    wait_for("the session to be closed", SOON, async || (bmc.sessions_open() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_host_that_others_write_to_all_the_time_is_provisioned_all_the_same() {
    let (world, bmc) = (World::new("crowded").await, running_bmc());
    world.register(&bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
    world.patch_spec(HOST, claim("me", ISO)).await;
    let scribble = async {
        for number in 0_u32.. {
            world.annotate(HOST, "example.com/scribble", Some(&number.to_string())).await;
        }
    };
    let host = tokio::select! {
        () = scribble => unreachable!("it never ends"),
        host = world.wait_for_state(HOST, "Provisioned") => host,
    };
    assert_eq!(fault_of(&host), None);
    assert_untouched(&bmc);
}

#[tokio::test]
async fn a_missing_secret_is_named_and_noticed_when_it_comes() {
    let world = World::new("no-secret").await;
    let bmc = world.add_bmc("server-01", instant_bmc("server-01"));
    world.create_host("server-01", json!({})).await;
    let host = world.wait_for_fault("server-01", "SecretNotFound").await;
    let secret = format!("{}/bmc", world.namespace);
    assert_told(&host, "SecretNotFound", &[&secret, "credentialsSecretRef", "does not exist", "Create it"]);
    assert_eq!(condition(&host, "RedfishConnectionReady"), ("False".into(), "SecretNotFound".into()));
    assert_eq!(state_of(&host), "Error");
    assert_eq!(bmc.counters().total(), 0, "there is nothing to log in with");

    world.create_secret("bmc", "admin", "password").await;
    let host = world.wait_for_state("server-01", "Available").await;
    assert!(is_well(&host), "{:?}", host.status);
    assert!(world.writes() <= 6, "{} writes", world.writes());

    // A host that was never reached is forgotten as easily.
    world.create_host("nobody", json!({ "redfishConnection": { "credentialsSecretRef": "none" } })).await;
    world.wait_for_fault("nobody", "SecretNotFound").await;
    world.delete_host("nobody").await;

    world.cluster().kubectl(&["-n", &world.namespace, "delete", "secret", "bmc"]).await.ok();
    let host = world.wait_for_fault("server-01", "SecretNotFound").await;
    assert_eq!(condition(&host, "HostInspected").0, "True", "what is known stays known");
    world.create_secret("bmc", "admin", "password").await;
    world.wait_until("server-01", "recovery", is_well).await;
}

#[tokio::test]
async fn an_operator_keeps_to_its_watch_filter_and_namespace() {
    const FILTER: &str = "cluster.x-k8s.io/watch-filter";
    let (world, elsewhere) = (World::quiet("filter").await, World::quiet("elsewhere").await);
    let label = async |world: &World, name: &str, value: Option<&str>| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { FILTER: value } } }));
        world.hosts().patch(name, &PatchParams::default(), &patch).await.unwrap();
    };
    for world in [&world, &elsewhere] {
        world.create_secret("bmc", "admin", "password").await;
        for name in ["mine", "other"] {
            world.create_host(name, json!({})).await;
        }
        label(world, "mine", Some("blue")).await;
    }
    let (mine, other) = (world.add_bmc("mine", instant_bmc("mine")), world.add_bmc("other", instant_bmc("other")));
    world.start_operator_with(world.clock(), |config| config.watch_filter = Some("blue".into()));
    world.wait_for_state("mine", "Available").await;
    assert_eq!(other.counters().total(), 0);
    for host in [world.host("other").await, elsewhere.host("mine").await, elsewhere.host("other").await] {
        assert!(host.status.is_none() && host.metadata.finalizers.is_none(), "{host:?}");
    }

    label(&world, "other", Some("blue")).await;
    world.wait_for_state("other", "Available").await;
    // Given away: whoever comes next may need our place on the BMC.
    label(&world, "other", Some("green")).await;
    wait_for("the session to be closed", SOON, async || (other.sessions_open() == 0).then_some(())).await;
    assert_eq!(mine.sessions_open(), 1);
    assert_eq!(state_of(&world.host("other").await), "Available");
}

#[tokio::test]
async fn transitions_are_told_by_events_and_counted_by_metrics() {
    let world = World::new("events").await;
    let bmc = world.available_host("server-01").await;
    world.patch_spec("server-01", claim("me", ISO)).await;
    world.wait_for_state("server-01", "Provisioned").await;
    let outage = bmc.faults().add(Effect::Refuse.always());
    world.annotate("server-01", "beskar7.io/inspect", Some("now")).await;
    world.wait_for_fault("server-01", "Unreachable").await;
    bmc.faults().remove(outage);
    world.wait_until("server-01", "no fault", |host| fault_of(host).is_none()).await;
    for reason in ["Available", "Claimed", "Provisioning", "Provisioned", "Unreachable", "Recovered", "Inspected"] {
        assert!(world.wait_for_event(reason).await.ends_with('.'), "{reason} is not told by a sentence");
    }

    let text = world.metrics();
    let namespace = &world.namespace;
    for line in [
        format!("beskar7_hosts{{dialect=\"beskar7\",namespace=\"{namespace}\",state=\"Provisioned\"}} 1"),
        "beskar7_acts_total{act=\"PowerOn\",outcome=\"ok\"} 1".to_owned(),
        "beskar7_faults_total{dialect=\"beskar7\",reason=\"Unreachable\"}".to_owned(),
        "beskar7_bmc_requests_total{verb=\"GET\",outcome=\"ok\"}".to_owned(),
        "beskar7_reconciles_total{dialect=\"beskar7\",outcome=\"ok\"}".to_owned(),
        "state=\"Provisioning\"} 1".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_consumer_that_may_not_be_looked_up_counts_as_alive() {
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "mine" });
    let (world, bmc) = (World::new("may-not-look").await, running_bmc());
    if world.cluster().is_embedded_and_has("no roles") {
        return;
    }
    world.register(&bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
    world.patch_spec(HOST, json!({ "consumerRef": map, "bootIsoSource": ISO })).await;
    world.wait_for_state(HOST, "Provisioned").await;
    world.patch_spec(HOST, unclaimed()).await;
    let host = world.wait_for_fault(HOST, "ConsumerMismatch").await;
    let told = sentence(&host, "Ready");
    assert!(told.contains("the operator may not get configmaps"), "{told}");
    assert_untouched(&bmc);
    world.patch_spec(HOST, json!({ "consumerRef": map, "bootIsoSource": ISO })).await;
    world.wait_until(HOST, "no fault", |host| fault_of(host).is_none()).await;
    assert_untouched(&bmc);
}
