//! What a server is made of. Only the system itself is indispensable; any other part may be missing, broken or slow.

use std::time::Duration;

use engine::hardware::{Controller, Firmware, Hardware, MemoryModule, Nic, Processor};
use tokio::time::Instant;

use crate::choice::is_baseboard;
use crate::client::Care;
use crate::error::Error;
use crate::resource::{Resource, View, last_segment};
use crate::system::RedfishSystem;

mod chassis;
mod read;
mod storage;

use chassis::Enclosure;

/// What is not read by then is left out, so that a slow part does not cost the whole inventory.
const PATIENCE: Duration = Duration::from_secs(90);
/// Longer firmware lists are read only where they come in one piece. DGX lists 66, one by one.
const FIRMWARE_TO_WALK: usize = 72;
/// A baseboard's parts are read one by one only up to here: eight GPUs and what drives them.
const BASEBOARD_TO_WALK: usize = 16;
const BOOT_OPTIONS_TO_WALK: usize = 16;

impl RedfishSystem {
    pub(crate) async fn take_inventory(&self, system: &Resource) -> Result<Hardware, Error> {
        let view = system.view();
        let until = Instant::now() + PATIENCE;
        let enclosure = Enclosure::new(view.links("/Links/Chassis"));
        // Not hardware, but what a first act would have to ask.
        let resets = async {
            if let Some(known) = self.known() {
                self.allowed_resets(&known).await;
            }
            Ok(())
        };
        let (manager, processors, memory, drives, nics, firmware, resets) = futures::join!(
            self.part("manager", until, self.controller()),
            self.part("processors", until, self.processors(view)),
            self.part("memory", until, self.memory(view)),
            self.part("drives", until, self.drives(view, &enclosure)),
            self.part("network interfaces", until, self.nics(view, &enclosure)),
            self.part("firmware", until, self.firmware()),
            self.part("kinds of reset", until, resets),
        );
        resets?;
        let service = self.client.service().await?;
        let bmc = manager?;
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
            drives: drives?,
            nics: nics?,
            firmware: firmware?,
            ..Hardware::default()
        };
        if quirks.is_some_and(|quirks| quirks.serial_is_sku) {
            hardware.serial_number = hardware.sku.clone().or(hardware.serial_number);
        }
        (hardware.processors, hardware.accelerators) = processors?;
        hardware.memory_modules = memory?;
        if hardware.accelerators.is_empty() || hardware.processors.is_empty() {
            self.part("baseboard", until, self.add_baseboards(view, &mut hardware)).await?;
        }
        if hardware.processors.is_empty() {
            hardware.processors = read::summarised_processors(view);
        }
        hardware.memory_mib = hardware.memory_modules.iter().filter_map(|module| module.capacity_mib).sum();
        if hardware.memory_mib == 0 {
            hardware.memory_mib = read::gib_to_mib(view.float("/MemorySummary/TotalSystemMemoryGiB"));
        }
        self.part("chassis", until, self.identify_by_chassis(system, &enclosure, &mut hardware)).await?;
        Ok(hardware)
    }

    /// An optional part, within the time that there is.
    async fn part<T: Default>(
        &self,
        what: &str,
        until: Instant,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let outcome = tokio::time::timeout_at(until, work).await.unwrap_or_else(|_| {
            tracing::warn!("{what} of {} left out: not read within {} s", self.client.origin(), PATIENCE.as_secs());
            Ok(T::default())
        });
        self.leniently(what, outcome)
    }

    /// Nothing instead of an error when the BMC lacks this. That it could not be asked is an error of the whole inventory.
    fn leniently<T: Default>(&self, what: &str, outcome: Result<T, Error>) -> Result<T, Error> {
        match outcome {
            Err(error) if error.is_about_this_resource() => {
                tracing::debug!("{what} of {} left out: {error}", self.client.origin());
                Ok(T::default())
            }
            other => other,
        }
    }

    async fn collection(&self, system: View<'_>, name: &str) -> Result<Vec<Resource>, Error> {
        let Some(uri) = system.link(&format!("/{name}")) else { return Ok(Vec::new()) };
        let members = self.client.list(&uri, Care::Optional).await?;
        self.client.bodies(members).await
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

    async fn processors(&self, system: View<'_>) -> Result<(Vec<Processor>, Vec<Processor>), Error> {
        Ok(read::sorted_processors(&self.collection(system, "Processors").await?))
    }

    async fn memory(&self, system: View<'_>) -> Result<Vec<MemoryModule>, Error> {
        Ok(read::memory_modules(&self.collection(system, "Memory").await?))
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
                    tracing::debug!("the baseboard {uri} of {} left out: {error}", self.client.origin());
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
            tracing::debug!("{name} of a baseboard of {} left out: {error}", self.client.origin());
            Vec::new()
        })
    }

    async fn nics(&self, system: View<'_>, enclosure: &Enclosure) -> Result<Vec<Nic>, Error> {
        let interfaces = self.leniently("Ethernet interfaces", self.collection(system, "EthernetInterfaces").await)?;
        let mut nics: Vec<Nic> = interfaces.iter().filter_map(read::nic).collect();
        // XCC may list the way to itself and nothing else.
        if nics.iter().all(|nic| read::leads_to_the_bmc(&nic.id)) {
            let mut found = self.nics_of_adapters(enclosure).await?;
            if found.is_empty() {
                found = self.leniently("boot options", self.nics_of_boot_options(system).await)?;
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

    async fn firmware(&self) -> Result<Vec<Firmware>, Error> {
        let Some(update) = &self.client.service().await?.update else { return Ok(Vec::new()) };
        let update = self.client.get(update, Care::Optional).await?;
        let Some(inventory) = update.view().link("/FirmwareInventory") else { return Ok(Vec::new()) };
        let mut members = self.client.list(&inventory, Care::Optional).await?;
        if let Some(known) = self.known() {
            let (prefix, suffix) = (known.quirks.installed_prefix, known.quirks.pending_suffix);
            members.retain(|uri| {
                let id = last_segment(uri);
                prefix.is_none_or(|prefix| id.starts_with(prefix)) && suffix.is_none_or(|suffix| !id.ends_with(suffix))
            });
        }
        if members.bodies().next().is_none() && members.len() > FIRMWARE_TO_WALK {
            tracing::debug!("{} lists {} pieces of firmware one by one; left out", self.client.origin(), members.len());
            return Ok(Vec::new());
        }
        let found = self.client.bodies(members).await?;
        let named = |resource: &Resource| resource.view().text("/Name").unwrap_or_else(|| resource.id());
        Ok(found
            .iter()
            .filter(|resource| read::is_present(resource.view()))
            .map(|resource| Firmware { name: named(resource), version: resource.view().text("/Version") })
            .collect())
    }
}
