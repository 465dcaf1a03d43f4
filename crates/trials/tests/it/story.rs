//! What happens in many tests: a server that runs something, an order, a release.

use std::time::Duration;

use api::beskar7::PhysicalHost;
use serde_json::{Value, json};
use sim::{BootSource, Enabled, Kind, PowerState};

use crate::world::{Hurry, World, claim, spec};

pub(crate) const ISO: &str = "http://images.test/os.iso";
pub(crate) const HOST: &str = "server-01";

/// How much faster the engine's clock runs in a hurried world.
pub(crate) const HURRY: i32 = 20;

/// The same where a BMC's delays are weighed against the engine's: a busy machine may be late by seconds, and each counts
/// that often.
const STEADY: i32 = 4;

/// That much of the engine's time in a steady world, in the BMC's.
pub(crate) fn steady(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into()) / STEADY.unsigned_abs()
}

/// The BMC of a server that runs something of its own.
pub(crate) fn running_bmc() -> sim::Bmc {
    sim::Bmc::new(spec(HOST).timing(sim::Timing::INSTANT).power(PowerState::On))
}

/// A hurried world with one available host.
pub(crate) async fn hurried_world(prefix: &str, bmc: sim::Bmc) -> (World, sim::Bmc) {
    world_of_one(prefix, bmc, Hurry::by(HURRY)).await
}

/// A steady world with one available host.
pub(crate) async fn steady_world(prefix: &str, bmc: sim::Bmc) -> (World, sim::Bmc) {
    world_of_one(prefix, bmc, Hurry::by(STEADY)).await
}

async fn world_of_one(prefix: &str, bmc: sim::Bmc, clock: Hurry) -> (World, sim::Bmc) {
    let world = World::quiet(prefix).await;
    world.start_operator_with(clock, |_| {});
    world.register(&bmc, json!({})).await;
    world.wait_for_state(HOST, "Available").await;
    (world, bmc)
}

/// A hurried world with one host that was provisioned for a consumer.
pub(crate) async fn provisioned_world(prefix: &str, consumer: Value) -> (World, sim::Bmc) {
    let (world, bmc) = hurried_world(prefix, running_bmc()).await;
    world.patch_spec(HOST, json!({ "consumerRef": consumer, "bootIsoSource": ISO })).await;
    world.wait_for_state(HOST, "Provisioned").await;
    assert_untouched(&bmc);
    (world, bmc)
}

impl World {
    /// Starts the operator in a hurry.
    pub(crate) fn hurry(&self) {
        self.start_operator_with(Hurry::by(HURRY), |_| {});
    }

    /// Adds a BMC, its Secret and a host.
    pub(crate) async fn register(&self, bmc: &sim::Bmc, spec: Value) {
        self.add_bmc(HOST, bmc.clone());
        self.create_secret("bmc", "admin", "password").await;
        self.create_host(HOST, spec).await;
    }

    /// Orders, and waits until it is there.
    pub(crate) async fn provision(&self, bmc: &sim::Bmc) -> PhysicalHost {
        self.patch_spec(HOST, claim("me", ISO)).await;
        let host = self.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(runs(bmc), Some(BootSource::Cd(ISO.into())));
        host
    }

    /// Waits for an event about the host, and answers its sentence.
    pub(crate) async fn wait_for_event(&self, reason: &str) -> String {
        self.wait_for_event_of(HOST, reason).await
    }

    /// Takes the claim back, and waits until the server is tidy.
    pub(crate) async fn release(&self, bmc: &sim::Bmc) {
        self.patch_spec(HOST, unclaimed()).await;
        self.wait_for_state(HOST, "Available").await;
        assert_tidy(bmc);
    }
}

/// Neither claim nor order.
pub(crate) fn unclaimed() -> Value {
    json!({ "consumerRef": null, "bootIsoSource": null })
}

/// What runs on the first server.
pub(crate) fn runs(bmc: &sim::Bmc) -> Option<BootSource> {
    bmc.first().booted.map(|booted| booted.from)
}

/// Resets that were asked for, by their Redfish word, in order.
pub(crate) fn resets(bmc: &sim::Bmc) -> Vec<String> {
    let word = |body: &str| serde_json::from_str::<Value>(body).unwrap()["ResetType"].as_str().unwrap().to_owned();
    let resets = bmc.journal().into_iter().filter(|mutation| mutation.kind == Kind::Reset);
    resets.map(|mutation| word(&mutation.body)).collect()
}

/// Whether the host waits for that.
pub(crate) fn waits_for(host: &PhysicalHost, reason: &str) -> bool {
    host.status.as_ref().and_then(|status| status.waiting.as_ref()).is_some_and(|waiting| waiting.reason == reason)
}

/// The sentence of a condition.
pub(crate) fn sentence(host: &PhysicalHost, type_: &str) -> String {
    let condition = host.status.as_ref().and_then(|status| status.condition(type_));
    condition.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// The server of a host that was provisioned from a running start was switched off and on, and nothing since.
#[track_caller]
pub(crate) fn assert_untouched(bmc: &sim::Bmc) {
    assert_eq!(runs(bmc), Some(BootSource::Cd(ISO.into())));
    assert_eq!(resets(bmc), ["ForceOff", "On"]);
}

/// The server is off, without media and override of ours.
#[track_caller]
pub(crate) fn assert_tidy(bmc: &sim::Bmc) {
    let server = bmc.first();
    assert_eq!((server.power(), server.media()), (PowerState::Off, None));
    assert_eq!(server.boot.enabled, Enabled::Disabled);
}
