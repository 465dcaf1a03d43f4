//! One system behind a BMC: finding it, remembering where things are, and looking at it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::failure::Kind;
use engine::server::{BootOverride, BootProgress, Health, PowerState, Scope, Seen};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::boot::{BootView, SettingsBoot};
use crate::boot_attributes::AttributeBoot;
use crate::choice::{Chosen, SystemChoice, is_baseboard};
use crate::client::{Care, Client};
use crate::error::Error;
use crate::inventory::Pile;
use crate::media::{RemoteMedia, Slots};
use crate::power::ResetAction;
use crate::quirks::{self, Facts, Quirks};
use crate::resource::{Resource, View, same_uri};
use crate::{Bmc, Manner};

/// The time limit of one operation, however slow the BMC is.
const OPERATION: Duration = Duration::from_mins(2);
/// But for the inventory: thirty answers of a BMC that needs ten seconds for each.
const INVENTORY: Duration = Duration::from_mins(4);

/// But for virtual media: some BMCs fetch the image before they answer.
const MEDIA: Duration = Duration::from_secs(150);

/// A server behind a Redfish service.
pub struct RedfishSystem {
    pub(crate) client: Arc<Client>,
    choice: SystemChoice,
    known: Mutex<Option<Known>>,
    /// Disks of an inventory that takes several looks.
    pub(crate) disks: Pile,
}

/// What is remembered of a system between operations: where things are, not what they were.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) uri: String,
    pub(crate) etag: Option<String>,
    pub(crate) quirks: &'static Quirks,
    pub(crate) facts: Facts,
    pub(crate) reset: ResetAction,
    pub(crate) boot: BootView,
    /// The settings object of the system, and its boot override once it was read.
    pub(crate) settings: Option<String>,
    pub(crate) settings_boot: Option<SettingsBoot>,
    pub(crate) managers: Vec<String>,
    pub(crate) manager_was_read: bool,
    /// Whether the manager serves other servers as well.
    pub(crate) manager_is_shared: bool,
    /// Where virtual media may be: of the system, then of its managers.
    pub(crate) media_of_system: Option<String>,
    pub(crate) media_of_manager: Option<String>,
    pub(crate) slots: Option<Slots>,
    /// Whether the manager serves images from afar at all, where that can be switched.
    pub(crate) remote_media: RemoteMedia,
    /// Baseboards that are listed as systems beside this one; `None` before they were read.
    pub(crate) baseboards: Option<Vec<String>>,
    /// How many other servers are listed beside this one; `None` before they were read.
    pub(crate) neighbours: Option<usize>,
    /// The boot attributes of the manager, on BMCs that boot a virtual CD that way.
    pub(crate) attributes: AttributeBoot,
}

impl RedfishSystem {
    /// Nothing is sent before the first operation.
    pub fn new(client: Arc<Client>, choice: SystemChoice) -> Self {
        Self { client, choice, known: Mutex::new(None), disks: Pile::default() }
    }

    /// The BMC.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    async fn look_at(&self, scope: Scope) -> Result<Seen, Error> {
        if scope == Scope::Service {
            return self.survey().await;
        }
        let sent_before = self.client.wire().sent();
        let (known, system) = self.read_system().await?;
        let view = system.view();
        let mut seen = Seen {
            power: power_state(view),
            health: health(view),
            boot: known.boot.as_override(known.quirks),
            progress: progress(view, known.quirks),
            media: None,
            media_disabled: false,
            shares_drives: false,
            image_schemes: Vec::new(),
            hardware: None,
            uuid: view.uuid(),
            certificate: self.shown_certificate(),
            service: None,
        };
        if scope == Scope::Inventory {
            seen.hardware = Some(Box::new(Box::pin(self.take_inventory(&system, sent_before)).await?));
            seen.media = self.lacks_media().then(Vec::new);
        }
        if let Some(armed) = self.armed_by_attributes(scope).await? {
            seen.boot = Some(BootOverride { mode: seen.boot.and_then(|boot| boot.mode), ..armed });
        } else if scope == Scope::Boot
            && let Some(pending) = self.pending_boot(&known).await?
        {
            seen.boot = Some(pending);
        }
        if scope == Scope::Boot {
            let found = self.look_at_media().await?;
            seen.media_disabled = found.is_disabled;
            seen.media = Some(found.drives);
            seen.shares_drives = found.is_shared;
            seen.image_schemes = found.schemes;
        }
        Ok(seen)
    }

    /// As a look reports it.
    pub(crate) fn shown_certificate(&self) -> Option<String> {
        self.client.certificate().map(crate::Fingerprint::to_hex)
    }

    /// Reads the system, and finds it first when it is not known yet or has moved.
    pub(crate) async fn read_system(&self) -> Result<(Known, Resource), Error> {
        let Some(known) = self.known() else { return self.find().await };
        match self.client.get(&known.uri, Care::Needed).await {
            Ok(system) => match self.absorb(&system) {
                Some(known) => Ok((known, system)),
                // Forgotten by a concurrent look, which found that it has moved.
                None => self.find().await,
            },
            Err(error) if error.refusal().is_some_and(|refusal| refusal.status == 404) => {
                tracing::debug!("{} no longer has {}; looking for the system again", self.client.origin(), known.uri);
                *self.slot() = None;
                self.find().await
            }
            Err(error) => Err(error),
        }
    }

    /// What is known about the system, for an act: it was read, and its generation is known.
    pub(crate) async fn ready_to_act(&self) -> Result<Known, Error> {
        let known = match self.known() {
            Some(known) => known,
            None => self.find().await?.0,
        };
        if known.quirks.needs_manager && !known.manager_was_read {
            if let Err(error) = self.read_manager(&known).await {
                tracing::debug!("the manager cannot be read; guessing its generation: {error}");
            }
            return Ok(self.known().unwrap_or(known));
        }
        Ok(known)
    }

    /// Reads the manager of the system, and learns from it.
    pub(crate) async fn read_manager(&self, known: &Known) -> Result<Resource, Error> {
        let manager = self.find_manager(known).await?;
        self.update(|known| {
            known.manager_was_read = true;
            known.facts.manager_manufacturer = manager.view().text("/Manufacturer");
            known.facts.manager_model = manager.view().text("/Model");
            known.facts.manager_firmware = manager.view().text("/FirmwareVersion");
            known.attributes.learn(&manager);
            known.media_of_manager = manager.view().link("/VirtualMedia");
            known.remote_media = RemoteMedia::read(manager.view());
            let servers = manager.view().links("/Links/ManagerForServers");
            known.manager_is_shared = if servers.is_empty() {
                // It does not state this, so what is listed beside this one may be its own, too.
                known.neighbours.is_some_and(|others| others > 0)
            } else {
                servers.iter().any(|uri| !is_baseboard(uri) && !same_uri(uri, &known.uri))
            };
            known.quirks = self.quirks_for(&known.facts);
        });
        Ok(manager)
    }

    pub(crate) fn known(&self) -> Option<Known> {
        self.slot().clone()
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.slot().as_mut() {
            change(known);
        }
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>) -> Error {
        Error::Unsupported { url: self.client.origin().to_owned(), what: what.into() }
    }

    pub(crate) fn choice(&self) -> &SystemChoice {
        &self.choice
    }

    fn slot(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn quirks_for(&self, facts: &Facts) -> &'static Quirks {
        self.client.family().map_or_else(|| quirks::of(facts), quirks::of_family)
    }

    async fn find(&self) -> Result<(Known, Resource), Error> {
        let service = self.client.service().await?;
        let facts = Facts {
            vendor: service.vendor.clone(),
            product: service.product.clone(),
            oem: service.oem.clone(),
            ..Facts::default()
        };
        let Chosen { system, baseboards, neighbours } = self.choose().await?;
        let view = system.view();
        let facts = Facts {
            system_id: Some(system.id()),
            system_manufacturer: view.text("/Manufacturer"),
            system_model: view.text("/Model"),
            processor: view.text("/ProcessorSummary/Model"),
            ..facts
        };
        let quirks = self.quirks_for(&facts);
        tracing::debug!(system = system.uri, family = quirks.name, "found the system of {}", self.client.origin());
        let mut known = Known::new(system.uri.clone(), quirks, facts);
        known.baseboards = baseboards;
        known.neighbours = neighbours;
        known.learn(&system);
        *self.slot() = Some(known.clone());
        Ok((known, system))
    }

    /// Remembers the links of the system.
    fn absorb(&self, system: &Resource) -> Option<Known> {
        let mut slot = self.slot();
        let known = slot.as_mut()?;
        known.learn(system);
        Some(known.clone())
    }
}

impl Known {
    fn new(uri: String, quirks: &'static Quirks, facts: Facts) -> Self {
        Self {
            uri,
            etag: None,
            quirks,
            facts,
            reset: ResetAction::default(),
            boot: BootView::default(),
            settings: None,
            settings_boot: None,
            managers: Vec::new(),
            manager_was_read: false,
            manager_is_shared: false,
            media_of_system: None,
            media_of_manager: None,
            slots: None,
            remote_media: RemoteMedia::default(),
            baseboards: None,
            neighbours: None,
            attributes: AttributeBoot::default(),
        }
    }

    fn learn(&mut self, system: &Resource) {
        let view = system.view();
        self.etag.clone_from(&system.etag);
        self.reset.learn(&system.uri, view);
        self.boot = BootView::read(view);
        self.settings = view.link("/@Redfish.Settings/SettingsObject");
        // Huawei's 1288H has Managers instead of ManagedBy.
        self.managers = view.links("/Links/ManagedBy");
        if self.managers.is_empty() {
            self.managers = view.links("/Links/Managers");
        }
        self.media_of_system = view.link("/VirtualMedia");
    }
}

impl Bmc for RedfishSystem {
    fn look(&self, scope: Scope) -> BoxFuture<'_, Result<Seen, Error>> {
        let (limit, operation) = match scope {
            Scope::Power | Scope::Boot => (OPERATION, "looking at the server"),
            Scope::Inventory => (INVENTORY, "looking at the server"),
            Scope::Service => (OPERATION, "looking at the BMC"),
        };
        self.bounded_by(limit, operation, self.look_at(scope)).boxed()
    }

    fn power_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded("powering on", self.switch_on()).boxed()
    }

    fn power_off(&self, manner: Manner) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded("powering off", self.switch_off(manner)).boxed()
    }

    fn restart(&self, manner: Manner) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded("restarting", self.start_over(manner)).boxed()
    }

    fn insert_media<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.bounded_by(MEDIA, "inserting the image", self.insert(image)).boxed()
    }

    fn eject_media(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded_by(MEDIA, "ejecting media", self.eject_all()).boxed()
    }

    fn set_boot<'a>(&'a self, wish: &'a BootOverride) -> BoxFuture<'a, Result<(), Error>> {
        self.bounded("setting the boot override", self.override_boot(wish)).boxed()
    }

    fn clear_boot(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded("clearing the boot override", self.end_override()).boxed()
    }

    fn reset_bmc(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded("restarting the BMC", self.reset_manager()).boxed()
    }
}

impl RedfishSystem {
    pub(crate) async fn bounded<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        self.bounded_by(OPERATION, operation, work).await
    }

    async fn bounded_by<T>(
        &self,
        limit: Duration,
        operation: &'static str,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let wire = self.client.wire();
        let _ = wire.take_trouble();
        tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
            let (kind, last) = wire.take_trouble().unwrap_or((Kind::Unreachable, "no answer was seen".into()));
            let url = wire.origin().to_owned();
            Err(Error::TooSlow { url, operation, seconds: limit.as_secs(), last, kind })
        })
    }
}

pub(crate) fn power_state(system: View<'_>) -> PowerState {
    system.text("/PowerState").as_deref().map_or(PowerState::Unknown, PowerState::named)
}

fn health(system: View<'_>) -> Health {
    // sushy misspells the rollup.
    let rollup = system.text("/Status/HealthRollup").or_else(|| system.text("/Status/HealthRollUp"));
    Health { health: system.text("/Status/Health"), rollup, state: system.text("/Status/State") }
}

fn progress(system: View<'_>, quirks: &Quirks) -> BootProgress {
    let told = match system.text("/BootProgress/LastState").as_deref() {
        Some("None") => BootProgress::NotStarted,
        Some("OSBootStarted") => BootProgress::PostFinished,
        Some("OSRunning") => BootProgress::OsStarted,
        // BlueField has OEM, and OsIsRunning beside it.
        Some("OEM") => match system.text("/BootProgress/OemLastState") {
            Some(state) if state.contains("OsIsRunning") => BootProgress::OsStarted,
            _ => BootProgress::NotReported,
        },
        Some(_) => BootProgress::InPost,
        None => match quirks.post_state.and_then(|pointer| system.text(pointer)).as_deref() {
            Some("Null" | "PowerOff" | "Reset") => BootProgress::NotStarted,
            Some("InPost" | "InPostDiscoveryComplete") => BootProgress::InPost,
            Some("FinishedPost") => BootProgress::PostFinished,
            _ => BootProgress::NotReported,
        },
    };
    // Some keep the last boot's progress while the server is off.
    if told != BootProgress::NotReported && power_state(system) == PowerState::Off {
        BootProgress::NotStarted
    } else {
        told
    }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
