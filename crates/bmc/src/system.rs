//! One system behind a BMC: finding it, remembering where things are, and looking at it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use engine::failure::Kind;
use engine::server::{BootOverride, BootProgress, Health, PowerState, Scope, Seen};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::boot::{BootView, SettingsBoot};
use crate::client::{Care, Client};
use crate::error::Error;
use crate::media::Slots;
use crate::power::ResetAction;
use crate::quirks::{self, Facts, Quirks};
use crate::resource::{Resource, View, last_segment, same_uri};
use crate::{Bmc, Manner};

/// However slow a BMC is, nobody waits longer than this for one operation.
const OPERATION: Duration = Duration::from_mins(2);
/// A service with more systems than this is not searched one by one for the right one.
const SYSTEMS_TO_READ: usize = 64;

/// Which of the systems behind a BMC is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum SystemChoice {
    /// The only one, or the only one that can be booted.
    #[default]
    Only,
    /// By its id, its UUID or its URI.
    Named(String),
}

/// A server behind a Redfish service.
pub struct RedfishSystem {
    pub(crate) client: Arc<Client>,
    choice: SystemChoice,
    known: Mutex<Option<Known>>,
}

/// What is remembered of a system between operations: where things are, not what they were.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) uri: String,
    pub(crate) etag: Option<String>,
    pub(crate) quirks: &'static Quirks,
    facts: Facts,
    pub(crate) reset: ResetAction,
    pub(crate) boot: BootView,
    /// The settings object of the system, and what it says about booting once it was read.
    pub(crate) settings: Option<String>,
    pub(crate) settings_boot: Option<SettingsBoot>,
    pub(crate) managers: Vec<String>,
    manager_was_read: bool,
    /// Where virtual media may be: of the system, then of its managers.
    pub(crate) media_of_system: Option<String>,
    pub(crate) media_of_manager: Option<String>,
    pub(crate) slots: Option<Slots>,
}

impl SystemChoice {
    /// What a user wrote beside the address, else what the address itself says.
    pub fn of(written: Option<&str>, address: &crate::Address) -> Self {
        let written = written.map(str::trim).filter(|written| !written.is_empty());
        written.or(address.system()).map_or(Self::Only, |name| Self::Named(name.to_owned()))
    }
}

impl RedfishSystem {
    /// Nothing is sent before the first operation.
    pub fn new(client: Arc<Client>, choice: SystemChoice) -> Self {
        Self { client, choice, known: Mutex::new(None) }
    }

    /// The BMC.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    async fn look_at(&self, scope: Scope) -> Result<Seen, Error> {
        let (known, system) = self.read_system().await?;
        let view = system.view();
        let mut seen = Seen {
            power: power_state(view),
            health: health(view),
            boot: known.boot.as_override(known.quirks),
            progress: progress(view, known.quirks),
            media: None,
            hardware: None,
            uuid: view.text("/UUID").map(|uuid| uuid.to_lowercase()),
            certificate: self.client.certificate().map(crate::Fingerprint::to_hex),
        };
        if scope == Scope::Boot {
            if let Some(pending) = self.pending_boot(&known).await {
                seen.boot = Some(pending);
            }
            seen.media = Some(self.look_at_media().await?);
        }
        if scope == Scope::Inventory {
            seen.hardware = Some(Box::new(Box::pin(self.take_inventory(&system)).await?));
        }
        Ok(seen)
    }

    /// Reads the system, and finds it first when it is not known yet or has moved.
    pub(crate) async fn read_system(&self) -> Result<(Known, Resource), Error> {
        let Some(known) = self.known() else { return self.find().await };
        match self.client.get(&known.uri, Care::Needed).await {
            Ok(system) => Ok((self.absorb(&system), system)),
            Err(error) if error.refusal().is_some_and(|refusal| refusal.status == 404) => {
                tracing::debug!("{} has no {} any more; looking for the system anew", self.client.origin(), known.uri);
                *self.slot() = None;
                self.find().await
            }
            Err(error) => Err(error),
        }
    }

    /// What is known, for an act: the system was seen, and its generation is clear.
    pub(crate) async fn ready_to_act(&self) -> Result<Known, Error> {
        let known = match self.known() {
            Some(known) => known,
            None => self.find().await?.0,
        };
        if known.quirks.needs_manager && !known.manager_was_read {
            if let Err(error) = self.read_manager(&known).await {
                tracing::debug!("the manager cannot be read, its generation is guessed: {error}");
            }
            return Ok(self.known().unwrap_or(known));
        }
        Ok(known)
    }

    /// Reads the manager of the system, and learns from it.
    pub(crate) async fn read_manager(&self, known: &Known) -> Result<Resource, Error> {
        let uri = if let Some(uri) = known.managers.first() {
            uri.clone()
        } else {
            let managers = self.client.list(&self.client.service().await?.managers, Care::Optional).await?;
            let first = managers.uris().next().map(str::to_owned);
            first.ok_or_else(|| self.unsupported("name its manager"))?
        };
        let manager = self.client.get(&uri, Care::Optional).await?;
        self.update(|known| {
            known.manager_was_read = true;
            known.facts.manager_manufacturer = manager.view().text("/Manufacturer");
            known.facts.manager_model = manager.view().text("/Model");
            known.media_of_manager = manager.view().link("/VirtualMedia");
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
        if !self.quirks_for(&facts).expand_works {
            service.expand_does_not_work();
        }
        let system = self.choose().await?;
        let view = system.view();
        let facts =
            Facts { system_manufacturer: view.text("/Manufacturer"), system_model: view.text("/Model"), ..facts };
        let quirks = self.quirks_for(&facts);
        tracing::debug!(system = system.uri, family = quirks.name, "found the system of {}", self.client.origin());
        let mut known = Known::new(system.uri.clone(), quirks, facts);
        known.learn(&system);
        *self.slot() = Some(known.clone());
        Ok((known, system))
    }

    async fn choose(&self) -> Result<Resource, Error> {
        let url = self.client.origin().to_owned();
        let wanted = match &self.choice {
            SystemChoice::Named(wanted) => Some(wanted.as_str()),
            SystemChoice::Only => None,
        };
        if let Some(uri) = wanted.filter(|wanted| wanted.starts_with('/')) {
            match self.client.get(uri, Care::Needed).await {
                Err(error) if error.refusal().is_some_and(|refusal| refusal.status == 404) => {}
                other => return other,
            }
        }
        let mut members = self.client.list(&self.client.service().await?.systems, Care::Needed).await?;
        if let Some(wanted) = wanted {
            // The id is usually the end of the URI: no need to read the others.
            let named = |uri: &str| last_segment(uri).eq_ignore_ascii_case(last_segment(wanted));
            if members.uris().filter(|uri| named(uri)).count() == 1 {
                members.retain(named);
            }
        }
        if members.len() > SYSTEMS_TO_READ {
            let ids = members.uris().take(16).map(last_segment).collect::<Vec<_>>().join(", ");
            return Err(Error::SystemAmbiguous { url, offered: format!("{} systems: {ids}, …", members.len()) });
        }
        let (mut systems, unread) = self.client.read_members(members, Care::Needed).await;
        let found = match wanted {
            Some(wanted) => systems.iter().position(|system| is_named(system, wanted)),
            None => only_bootable(&systems).filter(|_| unread.is_empty()),
        };
        if let Some(at) = found {
            return Ok(systems.swap_remove(at));
        }
        // Without having seen them all, neither "the only one" nor "not there" can be said.
        if let Some(error) = unread.into_iter().next() {
            return Err(error);
        }
        let offered = systems.iter().take(16).map(describe).collect::<Vec<_>>().join(", ");
        Err(match wanted {
            _ if systems.is_empty() => Error::NoSystem { url },
            Some(wanted) => Error::SystemNotFound { url, wanted: wanted.to_owned(), offered },
            None => Error::SystemAmbiguous { url, offered },
        })
    }

    /// Remembers what a read of the system tells about where things are.
    fn absorb(&self, system: &Resource) -> Known {
        let mut slot = self.slot();
        // Forgotten by a concurrent look: what this one saw is as good as new.
        let known = slot.get_or_insert_with(|| {
            Known::new(system.uri.clone(), self.quirks_for(&Facts::default()), Facts::default())
        });
        known.learn(system);
        known.clone()
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
            media_of_system: None,
            media_of_manager: None,
            slots: None,
        }
    }

    fn learn(&mut self, system: &Resource) {
        let view = system.view();
        self.etag.clone_from(&system.etag);
        self.reset.learn(&system.uri, view);
        self.boot = BootView::read(view);
        self.settings = view.link("/@Redfish.Settings/SettingsObject");
        // Huawei's 1288H says Managers where the standard says ManagedBy.
        self.managers = view.links("/Links/ManagedBy");
        if self.managers.is_empty() {
            self.managers = view.links("/Links/Managers");
        }
        self.media_of_system = view.link("/VirtualMedia");
    }
}

impl Bmc for RedfishSystem {
    fn look(&self, scope: Scope) -> BoxFuture<'_, Result<Seen, Error>> {
        self.bounded("looking at the server", self.look_at(scope)).boxed()
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
        self.bounded("inserting the image", self.insert(image)).boxed()
    }

    fn eject_media(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.bounded("ejecting media", self.eject_all()).boxed()
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
        let wire = self.client.wire();
        let _ = wire.take_trouble();
        tokio::time::timeout(OPERATION, work).await.unwrap_or_else(|_| {
            let (kind, last) = wire.take_trouble().unwrap_or((Kind::Unreachable, "no answer was seen".into()));
            let url = wire.origin().to_owned();
            Err(Error::TooSlow { url, operation, seconds: OPERATION.as_secs(), last, kind })
        })
    }
}

fn is_named(system: &Resource, wanted: &str) -> bool {
    let view = system.view();
    let is = |text: Option<String>| text.is_some_and(|text| text.eq_ignore_ascii_case(wanted));
    same_uri(&system.uri, wanted)
        || is(view.text("/Id"))
        || is(view.text("/UUID"))
        || last_segment(&system.uri).eq_ignore_ascii_case(wanted)
}

/// One system is the one. Of several, the one that can be told what to boot: HGX baseboards and the like cannot.
fn only_bootable(systems: &[Resource]) -> Option<usize> {
    if systems.len() == 1 {
        return Some(0);
    }
    let can_boot = |system: &Resource| system.view().text("/Boot/BootSourceOverrideTarget").is_some();
    let is_physical = |system: &Resource| system.view().text("/SystemType").is_none_or(|kind| kind == "Physical");
    let only = |test: &dyn Fn(&Resource) -> bool| {
        let mut fitting = systems.iter().enumerate().filter(|(_, system)| test(system));
        match (fitting.next(), fitting.next()) {
            (Some((at, _)), None) => Some(at),
            _ => None,
        }
    };
    only(&can_boot).or_else(|| only(&|system| can_boot(system) && is_physical(system)))
}

fn describe(system: &Resource) -> String {
    match system.view().text("/UUID") {
        Some(uuid) => format!("{} (UUID {})", system.id(), uuid.to_lowercase()),
        None => system.id(),
    }
}

pub(crate) fn power_state(system: View<'_>) -> PowerState {
    match system.text("/PowerState").as_deref() {
        Some("On") => PowerState::On,
        Some("Off") => PowerState::Off,
        Some("PoweringOn") => PowerState::PoweringOn,
        Some("PoweringOff") => PowerState::PoweringOff,
        Some("Paused") => PowerState::Paused,
        // "Reset" was seen; null and nothing come and go during transitions.
        _ => PowerState::Unknown,
    }
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
        // BlueField says OEM, and OsIsRunning beside it.
        Some("OEM") => match system.text("/BootProgress/OemLastState") {
            Some(state) if state.contains("OsIsRunning") => BootProgress::OsStarted,
            _ => BootProgress::Untold,
        },
        Some(_) => BootProgress::InPost,
        None => match quirks.post_state.and_then(|pointer| system.text(pointer)).as_deref() {
            Some("Null" | "PowerOff" | "Reset") => BootProgress::NotStarted,
            Some("InPost" | "InPostDiscoveryComplete") => BootProgress::InPost,
            Some("FinishedPost") => BootProgress::PostFinished,
            _ => BootProgress::Untold,
        },
    };
    // Some keep the last boot's progress while the server is off.
    if told != BootProgress::Untold && power_state(system) == PowerState::Off { BootProgress::NotStarted } else { told }
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
