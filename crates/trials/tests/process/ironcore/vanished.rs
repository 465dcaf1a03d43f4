//! Something vanishes, or does not answer, while a claim has the server: nothing is done to it.

use serde_json::{Value, json};
use sim::{Effect, PowerState, Timing};
use tokio::time::sleep;
use trials::ironcore::{Objects as _, condition_of};

use super::{BMC, LONG, NODE, SERVER, Site, quiet_world};

/// What somebody takes away from a server in use.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Status,
    /// Somebody writes another state, as an operator of another version might.
    State(&'static str),
    Record,
    ClaimReference,
    BootReference,
    BootConfiguration,
    /// The status of the claim.
    Phase,
    Endpoint,
    Bmc,
    BmcSecret,
    Finalizers,
    Labels,
}

impl Loss {
    const ALL: [Self; 14] = [
        Self::Status,
        Self::State("Initial"),
        Self::State("Discovery"),
        Self::State("Available"),
        Self::Record,
        Self::ClaimReference,
        Self::BootReference,
        Self::BootConfiguration,
        Self::Phase,
        Self::Endpoint,
        Self::Bmc,
        Self::BmcSecret,
        Self::Finalizers,
        Self::Labels,
    ];

    async fn happens(self, site: &Site) {
        let world = &site.world;
        match self {
            Self::Status => site.servers().edit_status(SERVER, Value::Null).await,
            Self::State(state) => {
                site.servers().edit_status(SERVER, json!({ "state": state, "powerState": "Off" })).await;
            }
            Self::Record => site.servers().edit_status(SERVER, json!({ "record": null })).await,
            Self::ClaimReference => site.servers().edit(SERVER, json!({ "spec": { "serverClaimRef": null } })).await,
            Self::BootReference => {
                site.servers().edit(SERVER, json!({ "spec": { "bootConfigurationRef": null } })).await;
            }
            Self::BootConfiguration => site.boot_configurations().remove(NODE).await,
            Self::Phase => site.claims().edit_status(NODE, Value::Null).await,
            Self::Endpoint => world.endpoints().remove(BMC).await,
            Self::Bmc => {
                // Its Endpoint would make another one at once.
                world.endpoints().remove(BMC).await;
                world.until_gone(world.endpoints(), BMC).await;
                world.bmc_objects().remove(BMC).await;
            }
            Self::BmcSecret => world.bmc_secrets().remove(BMC).await,
            Self::Finalizers => site.servers().edit(SERVER, json!({ "metadata": { "finalizers": null } })).await,
            Self::Labels => site.servers().edit(SERVER, json!({ "metadata": { "labels": null } })).await,
        }
    }

    /// Puts back what nobody but a person can.
    async fn is_mended(self, site: &Site) {
        let world = &site.world;
        let reference = json!({ "namespace": world.namespace, "name": NODE });
        match self {
            Self::ClaimReference => {
                site.servers().edit(SERVER, json!({ "spec": { "serverClaimRef": reference } })).await;
            }
            Self::Endpoint => {
                world.until_gone(world.endpoints(), BMC).await;
                site.add_endpoint().await;
            }
            Self::Bmc => {
                world.until_gone(world.bmc_objects(), BMC).await;
                site.add_endpoint().await;
            }
            Self::BmcSecret => {
                let data = json!({ "stringData": { "username": "admin", "password": "password" } });
                world.bmc_secrets().make(json!({ "name": BMC }), data).await;
            }
            _ => {}
        }
    }
}

impl Site {
    /// Power off and on again, from the network, as the claim says; then the claim ends.
    async fn lives_on(&self, what: &str) {
        self.claims().edit(NODE, json!({ "spec": { "power": "Off" } })).await;
        self.world.until_ready(self.claims(), NODE, "PoweredOff").await;
        self.world.until(self.servers(), SERVER, "off", |_| self.bmc.first().power() == PowerState::Off).await;
        self.claims().edit(NODE, json!({ "spec": { "power": "On" } })).await;
        let state = self.boot_configurations().show(NODE).await["status"]["state"].clone();
        if state != "Ready" {
            self.world.provide(NODE, "Ready").await;
        }
        self.world.until_ready(self.claims(), NODE, "ServerRuns").await;
        assert_eq!(self.bmc.first().boots, 2, "{what}: {}", self.told());
        self.claims().remove(NODE).await;
        self.world.until_gone(self.claims(), NODE).await;
        self.until_free().await;
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_vanishes_of_a_server_in_use_it_runs_on_and_is_looked_after_when_it_is_put_back() {
    for is_running in [true, false] {
        for loss in Loss::ALL {
            let what = format!("{loss:?}, operator running: {is_running}");
            let site = Site::in_use().await;
            if !is_running {
                site.world.kill_operator().await;
            }
            loss.happens(&site).await;
            if is_running {
                sleep(LONG).await;
                site.assert_untouched(&what);
                site.world.stop_operator().await;
            }
            site.start_operator();
            sleep(LONG).await;
            site.assert_untouched(&what);
            loss.is_mended(&site).await;
            let server = site.world.until_ready(site.servers(), SERVER, "Reserved").await;
            assert_eq!(server["status"]["state"], "Reserved", "{what}");
            sleep(LONG).await;
            site.assert_untouched(&what);
            site.lives_on(&what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_in_use_runs_on_when_all_that_we_have_written_of_it_was_lost() {
    for phase_is_lost in [false, true] {
        let site = Site::in_use().await;
        site.world.kill_operator().await;
        for loss in [Loss::Status, Loss::BootConfiguration, Loss::Finalizers] {
            loss.happens(&site).await;
        }
        if phase_is_lost {
            Loss::Phase.happens(&site).await;
        }
        let annotations = json!({ "metadata": { "annotations": null } });
        site.servers().edit(SERVER, annotations.clone()).await;
        site.claims().edit(NODE, annotations).await;
        site.start_operator();
        sleep(LONG).await;
        site.assert_untouched(&format!("all lost; the phase, too: {phase_is_lost}"));
        if !phase_is_lost {
            // The claim still says that it has the server.
            site.world.until_ready(site.claims(), NODE, "ServerRuns").await;
            site.claims().remove(NODE).await;
            site.world.until_gone(site.claims(), NODE).await;
            site.until_free().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_away_for_an_hour_changes_nothing_of_a_server_in_use() {
    for effect in [Effect::Refuse, Effect::Drop, Effect::Hang] {
        let site = Site::in_use().await;
        site.bmc.faults().add(effect.clone().always());
        let is_told = |server: &Value| {
            let ready = condition_of(server, "Ready");
            server["status"]["state"] == "Reserved" && ready["status"] == "False"
        };
        site.world.until(site.servers(), SERVER, "the outage to be told", is_told).await;
        site.world
            .until(site.claims(), NODE, "it, too", |claim| condition_of(claim, "Ready")["status"] == "False")
            .await;
        sleep(LONG).await;
        assert_eq!(site.until_bound(NODE).await["status"]["phase"], "Bound");
        site.world.stop_operator().await;
        site.start_operator();
        sleep(LONG).await;
        site.bmc.faults().clear();
        site.world.until_ready(site.servers(), SERVER, "Reserved").await;
        site.world.until_ready(site.claims(), NODE, "ServerRuns").await;
        sleep(LONG).await;
        site.assert_untouched(&format!("{effect:?}"));
        let bmc = site.world.bmc_objects().show(BMC).await;
        assert_eq!(condition_of(&bmc, "Ready")["status"], "True", "{bmc:#}");
        site.lives_on(&format!("{effect:?}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_is_away_when_a_claim_comes_or_goes_delays_it() {
    let site = Site::at(quiet_world().await, Timing::INSTANT);
    site.start_operator();
    site.add_endpoint().await;
    site.world.until_server(SERVER, "Available").await;
    site.bmc.faults().add(Effect::Refuse.always());
    site.world.claim_server(NODE, json!({})).await;
    sleep(LONG).await;
    site.bmc.faults().clear();
    site.world.provide(NODE, "Ready").await;
    site.world.until_ready(site.claims(), NODE, "ServerRuns").await;
    site.bmc.faults().add(Effect::Refuse.always());
    site.claims().remove(NODE).await;
    sleep(LONG).await;
    let claim = site.claims().show(NODE).await;
    assert_eq!(condition_of(&claim, "Ready")["reason"], "Releasing", "{claim:#}");
    assert_eq!((site.bmc.first().power(), site.bmc.first().resets), (PowerState::On, 1), "{}", site.told());
    site.bmc.faults().clear();
    site.world.until_gone(site.claims(), NODE).await;
    site.until_free().await;
}
