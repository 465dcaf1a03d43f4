//! What users do to a host in each of its states, and how that ends.

use std::time::Duration;

use serde_json::json;
use sim::{BootSource, Effect, Kind, PowerState, ResetType, Timing};
use trials::story::{ISO, runs};
use trials::world::World;

use super::{Site, live, quiet_world, withdrawn};

const OTHER: &str = "http://images.test/other.iso";
const PAUSED: &str = "baremetalhost.metal3.io/paused";
const DETACHED: &str = "baremetalhost.metal3.io/detached";
const INSPECT: &str = "inspect.metal3.io";

/// What was begun when somebody sets a host aside has ended after this time.
const UNDER_WAY: Duration = Duration::from_mins(5);

/// The states of a host, and what keeps it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The BMC does not answer.
    Registering,
    /// The BMC answers slowly.
    Inspecting,
    Available,
    /// The BMC refuses the image.
    Provisioning,
    /// The server takes long to start.
    Starting,
    Provisioned,
    /// Provisioned, and the BMC does not answer any more.
    OutOfReach,
    /// The BMC does not switch the server off.
    Deprovisioning,
    /// The BMC does not switch the server off that was on without an order.
    PoweringOff,
    ExternallyProvisioned,
}

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Available and off.
    Free,
    /// Provisioned and running from this image.
    Runs(&'static str),
    Gone,
    /// Nothing was ever done to the server.
    Untouched,
}

impl State {
    const ALL: [Self; 10] = [
        Self::Registering,
        Self::Inspecting,
        Self::Available,
        Self::Provisioning,
        Self::Starting,
        Self::Provisioned,
        Self::OutOfReach,
        Self::Deprovisioning,
        Self::PoweringOff,
        Self::ExternallyProvisioned,
    ];

    /// A host that is in this state and stays there, because of its BMC.
    async fn reach(self, world: &World) -> Site {
        let power_on = if self == Self::Starting { Duration::from_mins(4) } else { Duration::ZERO };
        let mut site = Site::beside(world, Timing { power_on, ..Timing::INSTANT }).await;
        site.about = format!("{self:?}");
        site.start_operator();
        let hold = |effect: Effect| site.bmc.faults().add(effect.always());
        match self {
            Self::Registering => {
                hold(Effect::Refuse);
                site.create(json!({})).await;
                site.until_error("registration error").await;
                site.until_state("registering").await;
            }
            Self::Inspecting => {
                site.create(json!({})).await;
                site.until_well("available").await;
                hold(Effect::Latency(Duration::from_secs(20)));
                site.annotate(INSPECT, Some("")).await;
                site.until_state("inspecting").await;
            }
            Self::Available => {
                site.create(json!({})).await;
                site.until_well("available").await;
            }
            Self::Provisioning => {
                hold(Effect::RefusesMedia("no licence".to_owned()));
                site.create(live(ISO)).await;
                site.until_error("provisioning error").await;
                site.until_state("provisioning").await;
            }
            Self::Starting => {
                site.create(live(ISO)).await;
                site.until("the start", |_| site.bmc.first().power() == PowerState::PoweringOn).await;
                site.until_state("provisioning").await;
            }
            Self::Provisioned | Self::OutOfReach => {
                site.create(live(ISO)).await;
                site.until_running(ISO).await;
                if self == Self::OutOfReach {
                    hold(Effect::Refuse);
                    site.until_error("provisioned registration error").await;
                    site.until_state("provisioned").await;
                }
            }
            Self::Deprovisioning => {
                site.create(live(ISO)).await;
                site.until_running(ISO).await;
                hold(Effect::IgnoresReset);
                site.set(withdrawn()).await;
                site.until_state("deprovisioning").await;
            }
            Self::PoweringOff => {
                site.create(json!({ "online": true })).await;
                site.until_well("available").await;
                site.until("its power", |host| host["status"]["poweredOn"] == true).await;
                hold(Effect::IgnoresReset);
                site.delete().await;
                site.until_state("powering off before delete").await;
            }
            Self::ExternallyProvisioned => {
                site.bmc.by_hand(&site.bmc.first().id, ResetType::On);
                site.create(json!({ "externallyProvisioned": true, "online": true })).await;
                site.until_well("externally provisioned").await;
            }
        }
        site
    }

    /// How it ends if nobody does anything.
    fn end(self) -> End {
        match self {
            Self::Registering | Self::Inspecting | Self::Available | Self::Deprovisioning => End::Free,
            Self::Provisioning | Self::Starting | Self::Provisioned | Self::OutOfReach => End::Runs(ISO),
            Self::PoweringOff => End::Gone,
            Self::ExternallyProvisioned => End::Untouched,
        }
    }

    /// How it ends if the order is changed like that.
    fn end_of(self, order: End) -> End {
        if matches!(self, Self::PoweringOff | Self::ExternallyProvisioned) { self.end() } else { order }
    }

    fn runs_undisturbed(self) -> bool {
        matches!(self, Self::Provisioned | Self::OutOfReach | Self::ExternallyProvisioned)
    }
}

impl Site {
    /// The BMC works again, and then the host ends like that.
    async fn ends(&self, end: End) {
        self.bmc.faults().clear();
        match end {
            End::Free => self.until_free().await,
            End::Runs(image) => self.until_running(image).await,
            End::Gone => {
                self.until_gone().await;
                assert_eq!(
                    (self.bmc.first().power(), self.bmc.first().media()),
                    (PowerState::Off, None),
                    "{}",
                    self.about
                );
            }
            End::Untouched => {
                self.until_well("externally provisioned").await;
                assert_eq!(runs(&self.bmc), Some(BootSource::Hdd));
                assert_eq!((self.bmc.first().power(), self.bmc.journal().len()), (PowerState::On, 0));
            }
        }
        self.world.stop_operator().await;
    }
}

/// Brings a host into each state, lets something happen, and looks how it ends.
async fn in_every_state(what: impl AsyncFn(State, &Site) -> End) {
    let world = quiet_world().await;
    for state in State::ALL {
        let site = state.reach(&world).await;
        let end = what(state, &site).await;
        site.ends(end).await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_image_is_provisioned_whatever_the_host_was_about() {
    in_every_state(async |state, site| {
        site.set(live(OTHER)).await;
        state.end_of(End::Runs(OTHER))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_order_leads_to_available_whatever_the_host_was_about() {
    in_every_state(async |state, site| {
        // Nobody withdraws the order of others.
        if state != State::ExternallyProvisioned {
            site.set(withdrawn()).await;
        }
        state.end_of(End::Free)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_host_goes_whatever_it_was_about() {
    in_every_state(async |state, site| {
        site.delete().await;
        if state == State::ExternallyProvisioned {
            site.until_gone().await;
            assert_eq!((site.bmc.first().power(), site.bmc.journal().len()), (PowerState::On, 0));
            // As it was before, for whoever looks at the end.
            site.bmc.by_hand(&site.bmc.first().id, ResetType::ForceOff);
        }
        End::Gone
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_host_sees_no_write_in_any_state_and_goes_on_afterwards() {
    in_every_state(async |state, site| {
        let before = site.bmc.journal().len();
        site.annotate(PAUSED, Some("")).await;
        tokio::time::sleep(UNDER_WAY).await;
        let paused = site.writes().await;
        site.bmc.faults().clear();
        tokio::time::sleep(Duration::from_mins(20)).await;
        assert_eq!(site.writes().await, paused, "{state:?}: {:?}", site.bmc.journal());
        site.annotate(PAUSED, None).await;
        if state.runs_undisturbed() {
            tokio::time::sleep(UNDER_WAY).await;
            assert_eq!(site.bmc.journal().len(), before, "{state:?}");
        }
        state.end()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_detached_host_sees_no_bmc_write_and_goes_on_when_it_is_attached() {
    in_every_state(async |state, site| {
        let before = site.bmc.journal().len();
        site.annotate(DETACHED, Some("")).await;
        site.bmc.faults().clear();
        if state == State::PoweringOff {
            // The deletion has begun, and ends.
            return state.end();
        }
        site.until("detached", |host| host["status"]["operationalStatus"] == "detached").await;
        let detached = site.bmc.journal().len();
        tokio::time::sleep(Duration::from_mins(20)).await;
        assert_eq!(site.bmc.journal().len(), detached, "{state:?}: {:?}", site.bmc.journal());
        assert!(!state.runs_undisturbed() || detached == before, "{state:?}");
        site.annotate(DETACHED, None).await;
        state.end()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_consumer_starts_and_ends_nothing_in_any_state() {
    for consumer in [json!({ "kind": "Metal3Machine", "name": "somebody-else" }), json!(null)] {
        in_every_state(async |state, site| {
            let before = site.bmc.journal().len();
            site.set(json!({ "consumerRef": consumer })).await;
            if state.runs_undisturbed() {
                tokio::time::sleep(UNDER_WAY).await;
                assert_eq!(site.bmc.journal().len(), before, "{state:?}");
            }
            state.end()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_provisioned_host_outlasts_its_bmc() {
    let world = quiet_world().await;
    let site = State::OutOfReach.reach(&world).await;
    let before = site.bmc.journal().len();
    tokio::time::sleep(Duration::from_hours(8)).await;
    let host = site.shown().await;
    assert_eq!(host["status"]["provisioning"]["state"], "provisioned");
    assert!(host["status"]["errorCount"].as_i64() > Some(1), "{host:#}");
    site.bmc.faults().clear();
    site.until_running(ISO).await;
    assert_eq!(site.bmc.journal().len(), before, "{:?}", site.bmc.journal());
    // The media refused after that is of no interest to a host that runs.
    site.bmc
        .faults()
        .add(Effect::Status { code: 500, body: sim::FaultBody::default() }.always().kind(Kind::InsertMedia));
    tokio::time::sleep(Duration::from_hours(1)).await;
    site.until_running(ISO).await;
}
