//! The API server is away for hours.

use std::time::Duration;

use controllers::leader::Timing;
use controllers::operator::Election;
use serde_json::json;
use sim::PowerState;
use testkit::wait_for;
use trials::gate::Gate;
use trials::story::{ISO, unclaimed};
use trials::world::{EVER, World, claim, is_well, spec, state_of};

/// Long after the lease has run out for everybody, and after the pauses between tries have grown to their longest.
const OUTAGE: Duration = Duration::from_hours(3);

#[tokio::test(start_paused = true)]
async fn a_leader_without_its_api_server_leaves_all_servers_alone_and_goes_on_afterwards() {
    let world = World::quiet_in_process().await;
    let gate = Gate::default();
    let election = Election {
        namespace: world.namespace.clone(),
        lease: "beskar7".into(),
        identity: "only".into(),
        timing: Timing::default(),
    };
    let operator = world.launch(&gate, world.clock(), |config| config.election = Some(election));
    let idle = world.available_host("idle").await;
    let running = world.available_host("running").await;
    world.patch_spec("running", claim("me", ISO)).await;
    world.wait_for_state("running", "Provisioned").await;
    // A server that takes its time: its order is under way when the API server goes.
    let delays = sim::Timing { power_on: Duration::from_secs(40), ..sim::Timing::INSTANT };
    let starting = world.add_bmc("starting", sim::Bmc::new(spec("starting").timing(delays)));
    world.create_host("starting", json!({})).await;
    world.wait_for_state("starting", "Available").await;
    world.patch_spec("starting", claim("me", ISO)).await;
    wait_for("the order to be under way", EVER, async || (starting.first().resets == 1).then_some(())).await;
    let bmcs = [&idle, &running, &starting];
    let truth = || bmcs.map(|bmc| (bmc.first().resets, bmc.first().boots, bmc.journal().len()));
    let before = truth();

    gate.refuse_api();
    let all_sessions = |count: usize| bmcs.iter().all(|bmc| bmc.sessions_open() == count).then_some(());
    wait_for("the lease to be lost and all sessions closed", EVER, async || all_sessions(0)).await;
    for bmc in bmcs {
        bmc.reset_counters();
    }
    tokio::time::sleep(OUTAGE).await;
    assert_eq!(bmcs.map(|bmc| bmc.counters().total()), [0; 3], "who does not lead does not ask");
    assert_eq!(starting.first().boots, 1, "what was begun has ended");

    gate.accept_api();
    let host = world.wait_for_state("starting", "Provisioned").await;
    assert!(is_well(&host), "{:?}", host.status);
    wait_for("all to be looked at again", EVER, async || all_sessions(1)).await;
    let after = truth();
    assert_eq!((after[0], after[1]), (before[0], before[1]), "nothing was done to the others");
    assert_eq!((after[2].0, starting.first().power()), (1, PowerState::On), "{:?}", starting.journal());
    for (name, state) in [("idle", "Available"), ("running", "Provisioned")] {
        let host = world.host(name).await;
        assert!(is_well(&host) && state_of(&host) == state, "{:?}", host.status);
    }

    // One that is over before the lease runs out; and work goes on.
    gate.refuse_api();
    tokio::time::sleep(Duration::from_secs(5)).await;
    gate.accept_api();
    world.patch_spec("idle", claim("me", ISO)).await;
    world.wait_for_state("idle", "Provisioned").await;
    world.patch_spec("running", unclaimed()).await;
    world.wait_for_state("running", "Available").await;
    assert_eq!((running.first().power(), running.first().media()), (PowerState::Off, None));
    operator.stop().await;
    assert_eq!(all_sessions(0), Some(()));
}
