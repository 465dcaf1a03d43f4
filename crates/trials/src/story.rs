//! What happens in many tests: a server that runs something, an order, a release.

use api::beskar7::PhysicalHost;
use serde_json::{Value, json};
use sim::{BootSource, Enabled, Kind, PowerState};

use crate::world::{World, claim, spec};

/// What servers are told to boot.
pub const ISO: &str = "http://images.test/os.iso";
/// The host of a test that has one.
pub const HOST: &str = "server-01";

/// The BMC of a server that runs something of its own.
pub fn running_bmc() -> sim::Bmc {
    sim::Bmc::new(spec(HOST).timing(sim::Timing::INSTANT).power(PowerState::On))
}

/// A world in process with one available host.
pub async fn world_with(bmc: sim::Bmc) -> (World, sim::Bmc) {
    World::quiet_in_process().await.with(bmc).await
}

/// A world in process with one host that was provisioned for a consumer.
pub async fn provisioned_world(consumer: Value) -> (World, sim::Bmc) {
    let (world, bmc) = world_with(running_bmc()).await;
    world.patch_spec(HOST, json!({ "consumerRef": consumer, "bootIsoSource": ISO })).await;
    world.wait_for_state(HOST, "Provisioned").await;
    assert_untouched(&bmc);
    (world, bmc)
}

impl World {
    /// Starts the operator, and registers a server under its eyes.
    pub async fn with(self, bmc: sim::Bmc) -> (Self, sim::Bmc) {
        self.start_operator();
        self.register(&bmc, json!({})).await;
        self.wait_for_state(HOST, "Available").await;
        (self, bmc)
    }

    /// Adds a BMC, its Secret and a host.
    pub async fn register(&self, bmc: &sim::Bmc, spec: Value) {
        self.add_bmc(HOST, bmc.clone());
        self.create_secret("bmc", "admin", "password").await;
        self.create_host(HOST, spec).await;
    }

    /// Orders, and waits until it is there.
    pub async fn provision(&self, bmc: &sim::Bmc) -> PhysicalHost {
        self.patch_spec(HOST, claim("me", ISO)).await;
        let host = self.wait_for_state(HOST, "Provisioned").await;
        assert_eq!(runs(bmc), Some(BootSource::Cd(ISO.into())));
        host
    }

    /// Waits for an event about the host, and answers its sentence.
    pub async fn wait_for_event(&self, reason: &str) -> String {
        self.wait_for_event_of(HOST, reason).await
    }

    /// Takes the claim back, and waits until the server is tidy.
    pub async fn release(&self, bmc: &sim::Bmc) {
        self.patch_spec(HOST, unclaimed()).await;
        self.wait_for_state(HOST, "Available").await;
        assert_tidy(bmc);
    }
}

/// Neither claim nor order.
pub fn unclaimed() -> Value {
    json!({ "consumerRef": null, "bootIsoSource": null })
}

/// What runs on the first server.
pub fn runs(bmc: &sim::Bmc) -> Option<BootSource> {
    bmc.first().booted.map(|booted| booted.from)
}

/// Resets that were asked for, by their Redfish word, in order.
pub fn resets(bmc: &sim::Bmc) -> Vec<String> {
    let word = |body: &str| serde_json::from_str::<Value>(body).unwrap()["ResetType"].as_str().unwrap().to_owned();
    let resets = bmc.journal().into_iter().filter(|mutation| mutation.kind == Kind::Reset);
    resets.map(|mutation| word(&mutation.body)).collect()
}

/// Whether the host waits for that.
pub fn waits_for(host: &PhysicalHost, reason: &str) -> bool {
    host.status.as_ref().and_then(|status| status.waiting.as_ref()).is_some_and(|waiting| waiting.reason == reason)
}

/// The sentence of a condition.
pub fn sentence(host: &PhysicalHost, type_: &str) -> String {
    let condition = host.status.as_ref().and_then(|status| status.condition(type_));
    condition.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// The server of a host that was provisioned from a running start was switched off and on, and nothing since.
#[track_caller]
pub fn assert_untouched(bmc: &sim::Bmc) {
    assert_eq!(runs(bmc), Some(BootSource::Cd(ISO.into())));
    assert_eq!(resets(bmc), ["ForceOff", "On"]);
}

/// The server is off, without media and override of ours.
#[track_caller]
pub fn assert_tidy(bmc: &sim::Bmc) {
    let server = bmc.first();
    assert_eq!((server.power(), server.media()), (PowerState::Off, None));
    assert_eq!(server.boot.enabled, Enabled::Disabled);
}
