//! Power: what the owner asks for is done, once, however the BMC reports it.

use std::time::Duration;

use api::beskar7::PhysicalHost;
use serde_json::json;
use sim::{BootSource, Effect, Guest, PowerState};
use testkit::wait_for;
use trials::story::{HOST, ISO, resets, running_bmc, runs, sentence, waits_for, world_with};
use trials::world::{EVER, World, claim, condition, fault_of, state_of};

#[tokio::test(start_paused = true)]
async fn power_that_is_reported_wrongly_for_half_a_minute_is_waited_for_and_not_switched_twice() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::StalePower(Duration::from_secs(30)).always());
    world.provision(&bmc).await;
    assert_eq!(resets(&bmc), ["ForceOff", "On"]);
    assert_eq!(bmc.first().boots, 1);
    world.release(&bmc).await;
    assert_eq!(resets(&bmc), ["ForceOff", "On", "ForceOff"]);
    assert_eq!(fault_of(&world.host(HOST).await), None);
}

#[tokio::test(start_paused = true)]
async fn power_that_changes_slowly_is_waited_for_and_the_wait_is_told() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::SlowPower(Duration::from_secs(40)).always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_until(HOST, "wait for the power", |host| waits_for(host, "PoweringOff")).await;
    assert_eq!(condition(&host, "HostProvisioned"), ("False".into(), "Provisioning".into()));
    world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!((resets(&bmc), bmc.first().boots), (vec!["ForceOff".into(), "On".into()], 1));
}

#[tokio::test(start_paused = true)]
async fn power_that_never_changes_is_a_fault_that_ends_when_it_does() {
    let (world, bmc) = world_with(running_bmc()).await;
    let stuck = bmc.faults().add(Effect::IgnoresReset.always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_fault(HOST, "PowerStuck").await;
    let fault = host.status.clone().unwrap().fault.unwrap();
    assert_eq!(
        fault.message,
        "The BMC accepted the command to power off, but after 5 minutes it still reports On. Check the server and its BMC."
    );
    assert!(fault.next_try.is_some());
    assert_eq!(state_of(&host), "Claimed", "a claimed host keeps its state");
    assert_eq!(condition(&host, "HostProvisioned"), ("False".into(), "PowerStuck".into()));
    let tries = resets(&bmc).len();
    assert!((2..=10).contains(&tries), "asked again about once a minute, not {tries} times");
    assert_eq!(runs(&bmc), Some(BootSource::Hdd), "it still runs what it ran");
    assert_eq!(world.wait_for_event("PowerStuck").await, fault.message);

    bmc.faults().remove(stuck);
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(fault_of(&host), None);
    assert_eq!(bmc.first().boots, 1);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_refuses_power_on_right_after_power_off_is_tried_again() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.faults().add(Effect::RestAfterOff(Duration::from_secs(6)).always());
    world.patch_spec(HOST, claim("me", ISO)).await;
    let host = world.wait_for_fault(HOST, "Refused").await;
    assert!(sentence(&host, "HostProvisioned").contains("conflicts with the present state"), "{host:?}");
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(fault_of(&host), None);
    assert_eq!((bmc.first().boots, bmc.first().resets), (1, 2), "{:?}", resets(&bmc));
}

#[tokio::test(start_paused = true)]
async fn an_unclaimed_host_is_switched_as_its_owner_says_and_left_alone_when_nothing_is_said() {
    let world = World::in_process().await;
    let bmc = world.available_host(HOST).await;
    assert!(resets(&bmc).is_empty());
    world.patch_spec(HOST, json!({ "online": true })).await;
    let on = |host: &PhysicalHost| host.status.as_ref().unwrap().observed_power_state.as_deref() == Some("On");
    let host = world.wait_until(HOST, "power on", on).await;
    assert_eq!((state_of(&host).as_str(), bmc.first().power()), ("Available", PowerState::On));

    world.patch_spec(HOST, json!({ "online": null })).await;
    world.annotate(HOST, "beskar7.io/inspect", Some("now")).await;
    world.wait_for_event("Inspected").await;
    assert_eq!(resets(&bmc), ["On"], "unset means: leave it alone");

    world.patch_spec(HOST, json!({ "online": false })).await;
    world.wait_until(HOST, "power off", |host| !on(host)).await;
    assert_eq!(resets(&bmc), ["On", "GracefulShutdown"]);
    assert_eq!(bmc.first().power(), PowerState::Off);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_does_not_shut_down_loses_its_power_after_two_minutes() {
    let (world, bmc) = world_with(running_bmc()).await;
    bmc.set_guest(Guest::Ignores);
    world.patch_spec(HOST, json!({ "online": false })).await;
    let host = world.wait_until(HOST, "shut down", |host| waits_for(host, "ShuttingDown")).await;
    assert_eq!(state_of(&host), "Available");
    let off = |host: &PhysicalHost| host.status.as_ref().unwrap().observed_power_state.as_deref() == Some("Off");
    world.wait_until(HOST, "power off", off).await;
    assert_eq!(resets(&bmc), ["GracefulShutdown", "ForceOff"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_is_carried_out_once_for_each_request() {
    let world = World::in_process().await;
    let bmc = world.available_host(HOST).await;
    world.provision(&bmc).await;
    let before = resets(&bmc).len();
    for (request, expected) in [("monday", 1), ("tuesday", 2)] {
        world.annotate(HOST, "beskar7.io/reboot", Some(request)).await;
        wait_for("the restart", EVER, async || (resets(&bmc).len() == before + expected).then_some(())).await;
    }
    // Neither a restart of the operator nor a lost status is another request.
    world.kill_operator().await;
    world.wipe_status(HOST).await;
    world.start_operator();
    let host = world.wait_for_state(HOST, "Provisioned").await;
    assert_eq!(resets(&bmc)[before..], ["ForceRestart", "ForceRestart"]);
    assert_eq!(condition(&host, "HostProvisioned").0, "True");
    // The image is still in the drive, but the override was used up: what was installed is what runs.
    assert_eq!(runs(&bmc), Some(BootSource::Hdd));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_to_a_host_under_maintenance_until_it_is_over() {
    let world = World::in_process().await;
    let bmc = world.add_bmc(HOST, running_bmc());
    world.create_secret("bmc", "admin", "password").await;
    let maintenance = json!({ "maintenance": { "reason": "fan swap" } });
    world.create_host(HOST, maintenance).await;
    let host = world.wait_for_state(HOST, "Maintenance").await;
    let available = host.status.clone().unwrap().condition("HostAvailable").cloned().unwrap();
    assert_eq!(
        (available.reason.as_str(), available.message.as_str()),
        ("Maintenance", "Under maintenance: fan swap.")
    );
    world.annotate(HOST, "beskar7.io/reboot", Some("monday")).await;
    world.patch_spec(HOST, claim("me", ISO)).await;
    // A change that the parked host does show, so that it has certainly been decided on after the wishes above.
    world.patch_spec(HOST, json!({ "maintenance": { "reason": "still the fan" } })).await;
    world.wait_until(HOST, "the new reason", |host| sentence(host, "HostAvailable").contains("still the fan")).await;
    assert!(bmc.journal().is_empty(), "nothing is done: {:?}", bmc.journal());

    world.patch_spec(HOST, json!({ "maintenance": null })).await;
    world.wait_for_state(HOST, "Provisioned").await;
    world.annotate(HOST, "beskar7.io/inspect", Some("monday")).await;
    world.wait_for_event("Inspected").await;
    assert_eq!(runs(&bmc), Some(BootSource::Cd(ISO.into())));
    assert_eq!(resets(&bmc), ["ForceOff", "On"], "the restart that was asked for came with the start of the order");
}

#[tokio::test(start_paused = true)]
async fn an_inventory_is_taken_again_when_it_is_asked_for() {
    let world = World::in_process().await;
    let bmc = world.available_host(HOST).await;
    bmc.set_health("Critical");
    world.annotate(HOST, "beskar7.io/inspect", Some("monday")).await;
    let host = world
        .wait_until(HOST, "the new health", |host| host.status.as_ref().unwrap().health.as_deref() == Some("Critical"))
        .await;
    assert_eq!(condition(&host, "HardwareHealthy"), ("False".into(), "HealthCritical".into()));
    world.wait_for_event("Inspected").await;
    assert!(bmc.journal().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_power_request_from_before_does_not_touch_a_claimed_or_a_released_server() {
    let (world, bmc) = world_with(running_bmc()).await;
    let power = |host: &PhysicalHost| host.status.as_ref().unwrap().observed_power_state.clone().unwrap_or_default();
    world.patch_spec(HOST, json!({ "online": false })).await;
    world.wait_until(HOST, "power off", |host| power(host) == "Off").await;
    world.provision(&bmc).await;
    let told = |host: &PhysicalHost| condition(host, "PowerRequestInEffect") == ("False".into(), "Outdated".into());
    let host = world.wait_until(HOST, "a remark", told).await;
    assert!(sentence(&host, "PowerRequestInEffect").contains("before the host was claimed"));
    assert_eq!(bmc.first().power(), PowerState::On);

    world.patch_spec(HOST, json!({ "online": true })).await;
    world.wait_until(HOST, "no remark", |host| !told(host)).await;
    world.release(&bmc).await;
    let host = world.wait_until(HOST, "a remark", told).await;
    assert!(sentence(&host, "PowerRequestInEffect").contains("before the host was released"));
    assert_eq!((state_of(&host).as_str(), bmc.first().power()), ("Available", PowerState::Off));
    world.annotate(HOST, "beskar7.io/power-request", Some("now")).await;
    world.wait_until(HOST, "power on", |host| power(host) == "On").await;
    assert!(world.wait_for_event("ShutDown").await.contains("cause: spec.online is false"));
}
