//! Lives of claims that end early, meet others, or are interrupted by the death of the operator.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Effect, Guest, Kind, PowerState, Timing, Verb};
use tokio::time::sleep;
use trials::ironcore::{Objects as _, condition_of, ironcore};
use trials::story::resets;

use super::{BMC, LONG, NODE, SERVER, Site, quiet_world};
use crate::crash::{killed_after, killed_after_each};

/// When a claim is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    Created,
    Bound,
    /// The boot provider has refused.
    BootRefused,
    /// The BMC answers slowly when the network boot is ordered.
    Arming,
    /// The BMC refuses to order the network boot.
    ArmingRefused,
    /// The BMC has accepted the command to switch on, and nothing happens.
    NotStarting,
    Starting,
    /// The firmware takes its time.
    InPost,
    Runs,
    /// The operating system does not heed the request to shut down.
    RunsDeaf,
    ShuttingDown,
    OutOfReach,
}

impl Moment {
    const ALL: [Self; 12] = [
        Self::Created,
        Self::Bound,
        Self::BootRefused,
        Self::Arming,
        Self::ArmingRefused,
        Self::NotStarting,
        Self::Starting,
        Self::InPost,
        Self::Runs,
        Self::RunsDeaf,
        Self::ShuttingDown,
        Self::OutOfReach,
    ];

    /// A claim in this moment.
    async fn reach(self) -> Site {
        let timing = match self {
            Self::Starting => Timing { power_on: Duration::from_mins(4), ..Timing::INSTANT },
            Self::InPost => Timing { post: Duration::from_mins(10), ..Timing::INSTANT },
            Self::ShuttingDown => Timing { shutdown: Duration::from_mins(2), ..Timing::INSTANT },
            _ => Timing::INSTANT,
        };
        let site = Site::available(timing).await;
        let world = &site.world;
        let until_runs = async || {
            world.provide(NODE, "Ready").await;
            world.until_ready(site.claims(), NODE, "ServerRuns").await;
        };
        let first = || site.bmc.first();
        let changed = |kind: Kind| site.bmc.journal().iter().any(|mutation| mutation.kind == kind);
        match self {
            Self::Arming => {
                let slow = Effect::Latency(Duration::from_secs(20)).always().kind(Kind::System).method(Verb::Patch);
                site.bmc.faults().add(slow);
            }
            Self::ArmingRefused => {
                let refusal = Effect::Status { code: 500, body: sim::FaultBody::default() };
                site.bmc.faults().add(refusal.always().kind(Kind::System).method(Verb::Patch));
            }
            Self::NotStarting => drop(site.bmc.faults().add(Effect::IgnoresReset.always())),
            Self::RunsDeaf => site.bmc.set_guest(Guest::Ignores),
            _ => {}
        }
        world.claim_server(NODE, json!({})).await;
        match self {
            Self::Created => {}
            Self::Bound => drop(site.until_bound(NODE).await),
            Self::BootRefused => world.provide(NODE, "Error").await,
            Self::Arming => {
                world.provide(NODE, "Ready").await;
                world.until(site.servers(), SERVER, "the order", |_| changed(Kind::System)).await;
            }
            Self::ArmingRefused => {
                world.provide(NODE, "Ready").await;
                world.until_ready(site.claims(), NODE, "ServerFaulty").await;
            }
            Self::NotStarting => {
                world.provide(NODE, "Ready").await;
                world.until(site.servers(), SERVER, "the command", |_| changed(Kind::Reset)).await;
            }
            Self::Starting => {
                world.provide(NODE, "Ready").await;
                let is_starting = |_: &Value| first().power() == PowerState::PoweringOn;
                world.until(site.servers(), SERVER, "the start", is_starting).await;
            }
            Self::InPost => {
                world.provide(NODE, "Ready").await;
                world.until(site.servers(), SERVER, "the firmware", |_| first().in_post()).await;
            }
            Self::Runs | Self::RunsDeaf => until_runs().await,
            Self::ShuttingDown => {
                until_runs().await;
                site.claims().edit(NODE, json!({ "spec": { "power": "Off" } })).await;
                let is_asked = |_: &Value| resets(&site.bmc) == ["On", "GracefulShutdown"];
                world.until(site.servers(), SERVER, "the shutdown", is_asked).await;
                assert_eq!(first().power(), PowerState::On);
            }
            Self::OutOfReach => {
                until_runs().await;
                site.bmc.faults().add(Effect::Refuse.always());
                world.until_ready(site.claims(), NODE, "ServerFaulty").await;
            }
        }
        site
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_deleted_at_any_moment_gives_its_server_back() {
    for moment in Moment::ALL {
        let site = moment.reach().await;
        site.claims().remove(NODE).await;
        if moment == Moment::OutOfReach {
            sleep(LONG).await;
            assert_eq!((site.bmc.first().power(), site.bmc.first().resets), (PowerState::On, 1), "{}", site.told());
        }
        site.bmc.faults().clear();
        site.world.until_gone(site.claims(), NODE).await;
        site.until_free().await;
        assert!(site.boot_configurations().show(NODE).await.is_null(), "{moment:?}");
        assert!(site.bmc.first().boots <= 1, "{moment:?}: {}", site.told());
        let done = site.bmc.journal().len();
        sleep(LONG).await;
        assert_eq!(site.bmc.journal().len(), done, "{moment:?}: {}", site.told());
        // The next one gets it as if nothing had been.
        site.bmc.set_guest(Guest::Obeys);
        site.boot("next").await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_claims_for_one_server_one_gets_it_and_the_other_afterwards() {
    let site = Site::available(Timing::INSTANT).await;
    let wish = json!({ "serverRef": { "name": SERVER } });
    for claim in ["first", "second"] {
        site.world.claim_server(claim, wish.clone()).await;
    }
    site.world.provide("first", "Ready").await;
    site.world.until_ready(site.claims(), "first", "ServerRuns").await;
    sleep(LONG).await;
    let second = site.claims().show("second").await;
    assert_eq!(
        (&second["status"]["phase"], &condition_of(&second, "Ready")["reason"]),
        (&json!("Unbound"), &json!("NoServer"))
    );
    assert!(site.boot_configurations().show("second").await.is_null());
    site.assert_untouched("the second waits");

    site.world.kill_operator().await;
    site.claims().remove("first").await;
    site.start_operator();
    site.world.until_gone(site.claims(), "first").await;
    site.world.provide("second", "Ready").await;
    site.world.until_ready(site.claims(), "second", "ServerRuns").await;
    assert_eq!(resets(&site.bmc), ["On", "GracefulShutdown", "On"], "off in between: {}", site.told());
    let server = site.servers().show(SERVER).await;
    assert_eq!(server["spec"]["serverClaimRef"]["name"], "second");
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_the_same_name_that_comes_at_once_boots_anew() {
    let site = Site::in_use().await;
    site.claims().remove(NODE).await;
    site.world.until_gone(site.claims(), NODE).await;
    site.boot(NODE).await;
    assert_eq!(resets(&site.bmc), ["On", "GracefulShutdown", "On"], "{}", site.told());
}

#[tokio::test(start_paused = true)]
async fn killed_after_any_effect_between_endpoint_and_release_the_operator_takes_up_where_it_was() {
    let first = quiet_world().await;
    let effects = killed_after_each(async |effects| {
        let site = Site::at(first.beside().await, Timing::INSTANT);
        let world = &site.world;
        let life = async {
            site.add_endpoint().await;
            world.until_server(SERVER, "Available").await;
            assert_eq!(site.bmc.first().resets, 0, "{}", site.told());
            site.boot(NODE).await;
            site.assert_untouched("it runs");
            site.claims().edit(NODE, json!({ "spec": { "image": "registry.example/os:2" } })).await;
            let is_new = |shown: &Value| shown["spec"]["image"] == "registry.example/os:2";
            world.until(site.boot_configurations(), NODE, "the other image", is_new).await;
            world.provide(NODE, "Ready").await;
            site.assert_untouched("another image is for the next start");
            site.claims().remove(NODE).await;
            world.until_gone(site.claims(), NODE).await;
            site.until_free().await;
            assert_eq!(site.bmc.first().boots, 1, "{}", site.told());
            assert!(site.boot_configurations().show(NODE).await.is_null());
            // Each would make the next one anew.
            world.endpoints().remove(BMC).await;
            world.until_gone(world.endpoints(), BMC).await;
            world.bmc_objects().remove(BMC).await;
            world.until_gone(world.bmc_objects(), BMC).await;
            site.servers().remove(SERVER).await;
            world.until_gone(site.servers(), SERVER).await;
            world.bmc_secrets().remove(BMC).await;
            assert_eq!(site.bmc.first().boots, 1, "{}", site.told());
        };
        killed_after(effects, world, ironcore, life).await
    })
    .await;
    assert!(effects > 30, "objects, anchors, statuses, override, power on, shutdown: {effects}");
}
