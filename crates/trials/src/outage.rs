//! An outage of the API server, as the leader of three hosts lives through it: one is free, one runs, and one is being started.

use std::time::Duration;

use serde_json::json;
use sim::PowerState;
use testkit::wait_for;

use crate::running::Running;
use crate::story::{ISO, unclaimed};
use crate::world::{World, claim, is_well, spec, state_of};

/// How an outage is made, and how long everything takes.
pub struct Outage<Cut> {
    /// Stops the API server if `true`, and starts it again if not.
    pub cut: Cut,
    /// Longer than the lease lasts.
    pub long: Duration,
    /// Shorter than the lease lasts.
    pub short: Duration,
    /// How long a server takes to be switched on: its order is in progress when the API server goes.
    pub power_on: Duration,
    /// How long to wait for anything else.
    pub patience: Duration,
}

impl<Cut: AsyncFn(bool)> Outage<Cut> {
    /// Has an outage that costs the operator its lease, and another one that does not. Nothing must happen to servers that was not
    /// in progress, and afterwards everything goes on.
    pub async fn happens_to(self, world: &World, operator: Running) {
        let Self { cut, long, short, power_on, patience } = self;
        let idle = world.available_host("idle").await;
        let running = world.available_host("running").await;
        world.patch_spec("running", claim("me", ISO)).await;
        world.wait_for_state("running", "Provisioned").await;
        let delays = sim::Timing { power_on, ..sim::Timing::INSTANT };
        let starting = world.add_bmc("starting", sim::Bmc::new(spec("starting").timing(delays)));
        world.create_host("starting", json!({})).await;
        world.wait_for_state("starting", "Available").await;
        world.patch_spec("starting", claim("me", ISO)).await;
        wait_for("the order to be under way", patience, async || (starting.first().resets == 1).then_some(())).await;
        let bmcs = [&idle, &running, &starting];
        let truth = || bmcs.map(|bmc| (bmc.first().resets, bmc.first().boots, bmc.journal().len()));
        let before = truth();

        cut(true).await;
        let all_sessions = |count: usize| bmcs.iter().all(|bmc| bmc.sessions_open() == count).then_some(());
        wait_for("the lease to be lost and all sessions closed", patience, async || all_sessions(0)).await;
        for bmc in bmcs {
            bmc.reset_counters();
        }
        tokio::time::sleep(long).await;
        assert_eq!(bmcs.map(|bmc| bmc.counters().total()), [0; 3], "who does not lead does not ask");
        wait_for("the server to have started", patience, async || (starting.first().boots == 1).then_some(())).await;

        cut(false).await;
        let host = world.wait_for_state("starting", "Provisioned").await;
        assert!(is_well(&host), "{:?}", host.status);
        wait_for("all to be looked at again", patience, async || all_sessions(1)).await;
        let after = truth();
        assert_eq!((after[0], after[1]), (before[0], before[1]), "nothing was done to the others");
        assert_eq!((after[2].0, starting.first().power()), (1, PowerState::On), "{:?}", starting.journal());
        for (name, state) in [("idle", "Available"), ("running", "Provisioned")] {
            let host = world.host(name).await;
            assert!(is_well(&host) && state_of(&host) == state, "{:?}", host.status);
        }

        cut(true).await;
        tokio::time::sleep(short).await;
        cut(false).await;
        world.patch_spec("idle", claim("me", ISO)).await;
        world.wait_for_state("idle", "Provisioned").await;
        world.patch_spec("running", unclaimed()).await;
        world.wait_for_state("running", "Available").await;
        assert_eq!((running.first().power(), running.first().media()), (PowerState::Off, None));
        operator.stop().await;
        assert_eq!(all_sessions(0), Some(()));
    }
}
