//! The inventory of a server. Only the system itself is required; any other part may be missing, broken or slow.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use engine::hardware::{Controller, Firmware, Hardware, MemoryModule, Nic, Part, Processor, VirtualMedia};
use tokio::time::Instant;

use crate::choice::is_baseboard;
use crate::client::Care;
use crate::collection::{Bodies, Members};
use crate::error::Error;
use crate::resource::{Resource, View, last_segment, same_uri};
use crate::system::RedfishSystem;

mod chassis;
mod pile;
mod read;
mod storage;

use chassis::Enclosure;
pub(crate) use pile::Pile;

/// What is not read by then is reported as missing, so that a slow part does not cost the whole inventory.
const PATIENCE: Duration = Duration::from_secs(200);
/// How many requests a registration may cost. Beyond that, only lists in one piece and what placement needs are read.
const REQUESTS: u64 = 30;
/// A baseboard's parts are read one by one only up to here: eight GPUs and what drives them.
const BASEBOARD_TO_WALK: usize = 16;
const BOOT_OPTIONS_TO_WALK: usize = 16;
/// However much a server has of everything else: so many disks at a look, or its inventory would never be complete.
const DISKS_AT_LEAST: usize = 4;
/// What it costs to look at virtual drives one by one.
const DRIVES_TO_LOOK_AT: usize = 5;

/// One reading of the inventory: until when, what it has cost, and what could not be read.
pub(super) struct Round {
    until: Instant,
    /// How many requests had been sent when it began.
    sent_before: u64,
    unread: Mutex<Vec<Part>>,
    enclosure: Enclosure,
    /// How many more disks and controllers may be read one by one; `None` for no limit.
    disks_left: OnceLock<Option<AtomicUsize>>,
    /// Whether there are more of them.
    has_put_off: AtomicBool,
}

impl Round {
    /// Something of this part is there and could not be read.
    fn missed(&self, part: Part) {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if !unread.contains(&part) {
            unread.push(part);
            unread.sort_unstable();
        }
    }

    fn has_missed(&self, part: Part) -> bool {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).contains(&part)
    }

    /// Whether one more disk may be read. If not, that is noted.
    fn may_read_disk(&self) -> bool {
        let Some(Some(left)) = self.disks_left.get() else { return true };
        let may = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if !may {
            self.has_put_off.store(true, Ordering::Relaxed);
        }
        may
    }

    /// Whether there are more disks than may be read.
    fn has_put_off(&self) -> bool {
        self.has_put_off.load(Ordering::Relaxed)
    }

    fn into_unread(self) -> Vec<Part> {
        self.unread.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Processors as they were read, and how many more are listed.
#[derive(Default)]
struct Processors {
    cpus: Vec<Processor>,
    accelerators: Vec<Processor>,
    lacking: usize,
}

/// Memory modules as they were read, and whether more are listed.
#[derive(Default)]
struct Memory {
    modules: Vec<MemoryModule>,
    is_partial: bool,
}

impl RedfishSystem {
    /// Takes the inventory. `sent_before` is how many requests had been sent when this look began.
    pub(crate) async fn take_inventory(&self, system: &Resource, sent_before: u64) -> Result<Hardware, Error> {
        let view = system.view();
        let round = Round {
            until: Instant::now() + PATIENCE,
            sent_before,
            unread: Mutex::default(),
            enclosure: Enclosure::new(view.links("/Links/Chassis")),
            disks_left: OnceLock::new(),
            has_put_off: AtomicBool::new(false),
        };
        // Not hardware, but what a first act would have to ask.
        let resets = async {
            if let Some(known) = self.known() {
                self.allowed_resets(&known).await;
            }
            Ok(())
        };
        let service = self.client.service().await?;
        // Lists that come in one piece are read beside the rest; those that are walked have to fit into what is left.
        let is_walked = service.expand().is_none();
        let lists = async {
            if is_walked {
                return Ok((None, None, None));
            }
            let (drives, memory, firmware) = futures::join!(
                self.part(&round, Part::Drives, self.drives(view, &round)),
                self.part(&round, Part::Memory, self.memory(view, &round)),
                self.part(&round, Part::Firmware, self.firmware(&round)),
            );
            Ok::<_, Error>((Some(drives?), Some(memory?), Some(firmware?)))
        };
        let (manager, processors, nics, lists, resets) = futures::join!(
            self.part(&round, Part::Manager, self.controller()),
            self.part(&round, Part::Processors, self.processors(view, &round)),
            self.part(&round, Part::Nics, self.nics(view, &round)),
            lists,
            self.part(&round, Part::Manager, resets),
        );
        resets?;
        let (bmc, processors, (drives, memory, firmware)) = (manager?, processors?, lists?);
        // Which generation it is may only be known now that the manager was read.
        let quirks = self.known().map(|known| known.quirks);
        let mut hardware = Hardware {
            manufacturer: view.identity("/Manufacturer"),
            model: view.identity("/Model"),
            serial_number: view.identity("/SerialNumber"),
            sku: view.identity("/SKU"),
            part_number: view.identity("/PartNumber"),
            uuid: view.uuid(),
            asset_tag: view.identity("/AssetTag"),
            host_name: view.text("/HostName"),
            system_id: Some(system.id()),
            bios_version: view.text("/BiosVersion"),
            bmc: Controller {
                vendor: service.vendor.clone().or(bmc.vendor).or_else(|| service.oem.first().cloned()),
                model: bmc.model.or_else(|| service.product.clone()),
                redfish_version: service.redfish_version.clone(),
                ..bmc
            },
            nics: nics?,
            network_boot: network_boot(view),
            ..Hardware::default()
        };
        if quirks.is_some_and(|quirks| quirks.serial_is_sku) {
            hardware.serial_number = hardware.sku.clone().or(hardware.serial_number);
        }
        self.part(&round, Part::Chassis, self.identify_by_chassis(system, &round, &mut hardware)).await?;
        if !is_walked || self.left(&round) >= DRIVES_TO_LOOK_AT {
            hardware.virtual_media = self.virtual_media(&round).await?;
        }
        hardware.drives = match drives {
            Some(drives) => drives,
            None => self.part(&round, Part::Drives, self.walk_drives(view, &round)).await?,
        };
        let memory = match memory {
            Some(memory) => memory,
            None => self.part(&round, Part::Memory, self.memory(view, &round)).await?,
        };
        (hardware.processors, hardware.accelerators) = (processors.cpus, processors.accelerators);
        hardware.memory_modules = memory.modules;
        if hardware.accelerators.is_empty() || hardware.processors.is_empty() {
            self.part(&round, Part::Processors, self.add_baseboards(view, &mut hardware)).await?;
        }
        if processors.lacking > 0 {
            let summarised = read::lacking_processors(view, &hardware.processors, processors.lacking);
            if !summarised.is_empty() || view.number("/ProcessorSummary/Count").is_none() {
                round.missed(Part::Processors);
            }
            hardware.processors.extend(summarised);
        }
        if hardware.processors.is_empty() {
            hardware.processors = read::summarised_processors(view);
        }
        let summarised = read::gib_to_mib(view.float("/MemorySummary/TotalSystemMemoryGiB"));
        hardware.memory_mib = hardware.memory_modules.iter().filter_map(|module| module.capacity_mib).sum();
        if hardware.memory_mib == 0
            || (summarised > hardware.memory_mib && (memory.is_partial || round.has_missed(Part::Memory)))
        {
            hardware.memory_mib = summarised;
        }
        hardware.firmware = match firmware {
            Some(firmware) => firmware,
            None => self.part(&round, Part::Firmware, self.firmware(&round)).await?,
        };
        hardware.goes_on = round.has_put_off();
        hardware.unread = round.into_unread();
        if !hardware.unread.is_empty() {
            tracing::warn!("parts of {} could not be read: {:?}", self.client.origin(), hardware.unread);
            // A BMC that went away meanwhile must not look like a server without disks.
            self.client.get(&system.uri, Care::Needed).await?;
        }
        if hardware.goes_on && !hardware.unread.contains(&Part::Drives) {
            tracing::debug!("{} lists many disks one by one; the rest is read later", self.client.origin());
            hardware.unread.push(Part::Drives);
            hardware.unread.sort_unstable();
        }
        if !hardware.unread.contains(&Part::Drives) {
            self.disks.clear();
        }
        Ok(hardware)
    }

    /// What may still be asked for within what a registration should cost.
    pub(super) fn left(&self, round: &Round) -> usize {
        let spent = self.client.wire().sent().saturating_sub(round.sent_before);
        usize::try_from(REQUESTS.saturating_sub(spent)).unwrap_or_default()
    }

    /// An optional part, within the time that there is.
    async fn part<T: Default>(
        &self,
        round: &Round,
        part: Part,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if let Ok(outcome) = tokio::time::timeout_at(round.until, work).await {
            return self.leniently(round, part, outcome);
        }
        tracing::debug!("{} of {} not read in time", part.as_str(), self.client.origin());
        round.missed(part);
        Ok(T::default())
    }

    /// Nothing instead of an error if the BMC lacks this, or cannot show it now, which is noted. That it cannot be asked for anything is an error
    /// of the whole inventory.
    fn leniently<T: Default>(&self, round: &Round, part: Part, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            Err(error) if self.is_missing(&error) => {
                tracing::debug!("{} of {} skipped: {error}", part.as_str(), self.client.origin());
                Ok(T::default())
            }
            Err(error) if !error.is_about_the_bmc() => {
                tracing::debug!("{} of {} not read: {error}", part.as_str(), self.client.origin());
                round.missed(part);
                Ok(T::default())
            }
            other => other,
        }
    }

    /// Whether a part that cannot be read is one that the BMC lacks.
    fn is_missing(&self, error: &Error) -> bool {
        let fails_for_missing = self.known().is_some_and(|known| known.quirks.fails_for_missing);
        error.says_it_is_missing() || (fails_for_missing && error.is_about_this_resource())
    }

    /// How the server takes images, for placement. Registration does not need it.
    async fn virtual_media(&self, round: &Round) -> Result<Option<VirtualMedia>, Error> {
        match tokio::time::timeout_at(round.until, self.look_at_media()).await {
            Ok(Ok(found)) => {
                let drives = u32::try_from(found.drives.len()).unwrap_or(u32::MAX);
                Ok(Some(VirtualMedia { drives, schemes: found.schemes }))
            }
            Ok(Err(error)) if error.is_about_the_bmc() => Err(error),
            _ => Ok(None),
        }
    }

    async fn members(&self, view: View<'_>, name: &str) -> Result<Members, Error> {
        match view.link(&format!("/{name}")) {
            Some(uri) => self.client.list(&uri, Care::Optional).await,
            None => Ok(Members::default()),
        }
    }

    /// The bodies of members; that some could not be read is noted.
    async fn bodies(&self, round: &Round, part: Part, members: Members) -> Result<Vec<Resource>, Error> {
        let Bodies { found, unread, .. } = self.client.bodies_of(members).await?;
        if unread > 0 {
            round.missed(part);
        }
        Ok(found)
    }

    async fn collection(&self, round: &Round, part: Part, view: View<'_>, name: &str) -> Result<Vec<Resource>, Error> {
        let members = self.members(view, name).await?;
        self.bodies(round, part, members).await
    }

    async fn controller(&self) -> Result<Controller, Error> {
        let Some(known) = self.known() else { return Ok(Controller::default()) };
        let manager = self.read_manager(&known).await?;
        let view = manager.view();
        Ok(Controller {
            vendor: view.identity("/Manufacturer"),
            model: view.identity("/Model"),
            firmware_version: view.text("/FirmwareVersion"),
            redfish_version: None,
        })
    }

    async fn processors(&self, system: View<'_>, round: &Round) -> Result<Processors, Error> {
        let members = self.members(system, "Processors").await?;
        let Bodies { found, lacking, unread } = self.client.bodies_of(members).await?;
        if unread > 0 {
            round.missed(Part::Processors);
        }
        let (cpus, accelerators) = read::sorted_processors(&found);
        Ok(Processors { cpus, accelerators, lacking: lacking + unread })
    }

    /// Where modules come one by one and the system sums them up, they are read only if that is cheap.
    async fn memory(&self, system: View<'_>, round: &Round) -> Result<Memory, Error> {
        let sum = read::gib_to_mib(system.float("/MemorySummary/TotalSystemMemoryGiB"));
        let is_walked = self.client.service().await?.expand().is_none();
        if sum > 0 && is_walked && self.left(round) == 0 {
            return Ok(Memory::default());
        }
        let members = self.members(system, "Memory").await?;
        if sum > 0 && members.bodies().next().is_none() && members.len() > self.left(round) {
            tracing::debug!(
                "{} lists {} memory modules one by one; using the summary",
                self.client.origin(),
                members.len()
            );
            return Ok(Memory::default());
        }
        let Bodies { found, lacking, unread } = self.client.bodies_of(members).await?;
        let modules = read::memory_modules(&found);
        let is_partial = lacking + unread > 0;
        let read: u64 = modules.iter().filter_map(|module| module.capacity_mib).sum();
        // The modules have a little more in all than the system can use.
        if unread > 0 || (lacking > 0 && (sum == 0 || read < sum / 100 * 98)) {
            round.missed(Part::Memory);
        }
        Ok(Memory { modules, is_partial })
    }

    /// GPUs, and on Grace boards the CPUs and their memory, are listed under a system of their own. Its controller is away while
    /// the server is off, so nothing of this is an error.
    async fn add_baseboards(&self, system: View<'_>, hardware: &mut Hardware) -> Result<(), Error> {
        let Some(known) = self.known() else { return Ok(()) };
        let baseboards = match known.baseboards {
            Some(baseboards) => baseboards,
            None if known.quirks.has_baseboard => self.list_baseboards().await?,
            None => return Ok(()),
        };
        let lacks_memory = hardware.memory_modules.is_empty()
            && system.float("/MemorySummary/TotalSystemMemoryGiB").unwrap_or_default() <= 0.0;
        let lacks_processors = hardware.processors.is_empty();
        let lacks_accelerators = hardware.accelerators.is_empty();
        for uri in baseboards.iter().take(2) {
            let baseboard = match self.client.get(uri, Care::Attempt).await {
                Ok(baseboard) => baseboard,
                Err(error) => {
                    tracing::debug!("baseboard {uri} of {} skipped: {error}", self.client.origin());
                    continue;
                }
            };
            let (cpus, gpus) = read::sorted_processors(&self.parts_of_baseboard(baseboard.view(), "Processors").await);
            if lacks_accelerators {
                hardware.accelerators.extend(gpus);
            }
            if lacks_processors {
                hardware.processors.extend(cpus);
            }
            if lacks_memory {
                let modules = self.parts_of_baseboard(baseboard.view(), "Memory").await;
                hardware.memory_modules.extend(read::memory_modules(&modules));
            }
        }
        Ok(())
    }

    async fn list_baseboards(&self) -> Result<Vec<String>, Error> {
        let systems = self.client.list(&self.client.service().await?.systems, Care::Optional).await?;
        let baseboards: Vec<String> = systems.uris().filter(|uri| is_baseboard(uri)).map(str::to_owned).collect();
        self.update(|known| known.baseboards = Some(baseboards.clone()));
        Ok(baseboards)
    }

    async fn parts_of_baseboard(&self, baseboard: View<'_>, name: &str) -> Vec<Resource> {
        let Some(uri) = baseboard.link(&format!("/{name}")) else { return Vec::new() };
        let read = async {
            let members = self.client.list(&uri, Care::Attempt).await?;
            if members.bodies().next().is_none() && members.len() > BASEBOARD_TO_WALK {
                return Ok(Vec::new());
            }
            self.client.bodies(members).await
        };
        read.await.unwrap_or_else(|error: Error| {
            tracing::debug!("{name} of a baseboard of {} skipped: {error}", self.client.origin());
            Vec::new()
        })
    }

    async fn nics(&self, system: View<'_>, round: &Round) -> Result<Vec<Nic>, Error> {
        let interfaces = self.collection(round, Part::Nics, system, "EthernetInterfaces").await;
        let interfaces = self.leniently(round, Part::Nics, interfaces)?;
        let mut nics: Vec<Nic> = interfaces.iter().filter_map(read::nic).collect();
        // XCC may list the way to itself and nothing else.
        if nics.iter().all(|nic| read::leads_to_the_bmc(&nic.id)) {
            let mut found = self.nics_of_adapters(round).await?;
            if found.is_empty() {
                found = self.leniently(round, Part::Nics, self.nics_of_boot_options(system).await)?;
            }
            nics.extend(found);
            read::drop_same_macs(&mut nics);
        }
        nics.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(nics)
    }

    /// Where nothing else names them: what the firmware would boot from the network names their addresses.
    async fn nics_of_boot_options(&self, system: View<'_>) -> Result<Vec<Nic>, Error> {
        let Some(uri) = system.link("/Boot/BootOptions") else { return Ok(Vec::new()) };
        let members = self.client.list(&uri, Care::Optional).await?;
        if members.bodies().next().is_none() && members.len() > BOOT_OPTIONS_TO_WALK {
            return Ok(Vec::new());
        }
        Ok(self.client.bodies(members).await?.iter().filter_map(read::nic_of_boot_option).collect())
    }

    /// Nearly all keep the list where the standard does: no need to ask where it is.
    async fn firmware_members(&self, update: &str) -> Result<Members, Error> {
        let usual = format!("{}/FirmwareInventory", update.trim_end_matches('/'));
        match self.client.list(&usual, Care::Optional).await {
            Err(error) if error.refusal().is_some_and(|refusal| matches!(refusal.status, 400..500)) => {
                let update = self.client.get(update, Care::Optional).await?;
                match update.view().link("/FirmwareInventory").filter(|link| !same_uri(link, &usual)) {
                    Some(inventory) => self.client.list(&inventory, Care::Optional).await,
                    None => Ok(Members::default()),
                }
            }
            listed => listed,
        }
    }

    async fn firmware(&self, round: &Round) -> Result<Vec<Firmware>, Error> {
        let is_walked = self.client.service().await?.expand().is_none();
        if is_walked && self.left(round) < 3 {
            return Ok(Vec::new());
        }
        let Some(update) = &self.client.service().await?.update else { return Ok(Vec::new()) };
        let mut members = self.firmware_members(update).await?;
        if let Some(known) = self.known() {
            let (prefix, suffix) = (known.quirks.installed_prefix, known.quirks.pending_suffix);
            members.retain(|uri| {
                let id = last_segment(uri);
                prefix.is_none_or(|prefix| id.starts_with(prefix)) && suffix.is_none_or(|suffix| !id.ends_with(suffix))
            });
        }
        if members.bodies().next().is_none() && members.len() > self.left(round) {
            tracing::debug!("{} lists {} pieces of firmware one by one; skipped", self.client.origin(), members.len());
            return Ok(Vec::new());
        }
        let found = self.bodies(round, Part::Firmware, members).await?;
        let named = |resource: &Resource| resource.view().text("/Name").unwrap_or_else(|| resource.id());
        Ok(found
            .iter()
            .filter(|resource| read::is_present(resource.view()))
            .map(|resource| Firmware { name: named(resource), version: resource.view().text("/Version") })
            .collect())
    }
}

/// Whether the next start can be set to the network. A system without a boot override, such as a switch tray, has no such thing.
fn network_boot(system: View<'_>) -> Option<bool> {
    let targets = system.texts("/Boot/BootSourceOverrideTarget@Redfish.AllowableValues");
    let is_network = |target: &String| matches!(target.as_str(), "Pxe" | "UefiHttp");
    match system.0.get("Boot").filter(|boot| boot.is_object()) {
        None => Some(false),
        Some(_) if targets.is_empty() => None,
        Some(_) => Some(targets.iter().any(is_network)),
    }
}
