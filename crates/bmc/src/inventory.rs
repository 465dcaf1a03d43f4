//! What a server is made of. Only the system itself is indispensable; any other part may be missing, broken or slow.

use std::time::Duration;

use engine::hardware::{Controller, Drive, Firmware, Hardware, MemoryModule, Nic, Processor};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::Value;
use tokio::time::Instant;

use crate::client::Care;
use crate::error::Error;
use crate::resource::{Resource, View, same_uri};
use crate::system::RedfishSystem;

/// What is not read by then is left out, so that a slow part does not cost the whole inventory.
const PATIENCE: Duration = Duration::from_secs(90);
/// Firmware lists of a hundred entries are read only where they come in one piece.
const FIRMWARE_TO_WALK: usize = 64;
const ADAPTERS_TO_WALK: usize = 8;

impl RedfishSystem {
    pub(crate) async fn take_inventory(&self, system: &Resource) -> Result<Hardware, Error> {
        let view = system.view();
        let until = Instant::now() + PATIENCE;
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
            self.part("drives", until, self.drives(view)),
            self.part("network interfaces", until, self.nics(view)),
            self.part("firmware", until, self.firmware()),
            self.part("kinds of reset", until, resets),
        );
        resets?;
        let service = self.client.service().await?;
        let bmc = manager?;
        // Which generation it is may only be known now that the manager was read.
        let quirks = self.known().map(|known| known.quirks);
        let mut hardware = Hardware {
            manufacturer: view.text("/Manufacturer"),
            model: view.text("/Model"),
            serial_number: view.text("/SerialNumber"),
            sku: view.text("/SKU"),
            part_number: view.text("/PartNumber"),
            uuid: view.text("/UUID").map(|uuid| uuid.to_lowercase()),
            asset_tag: view.text("/AssetTag"),
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
        if hardware.processors.is_empty() {
            hardware.processors = summarised_processors(view);
        }
        hardware.memory_modules = memory?;
        hardware.memory_mib = hardware.memory_modules.iter().filter_map(|module| module.capacity_mib).sum();
        if hardware.memory_mib == 0 {
            hardware.memory_mib = gib_to_mib(view.float("/MemorySummary/TotalSystemMemoryGiB"));
        }
        if hardware.manufacturer.is_none() && hardware.model.is_none() && hardware.serial_number.is_none() {
            self.part("chassis", until, self.identify_by_chassis(view, &mut hardware)).await?;
        }
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
            vendor: view.text("/Manufacturer"),
            model: view.text("/Model"),
            firmware_version: view.text("/FirmwareVersion"),
            redfish_version: None,
        })
    }

    async fn processors(&self, system: View<'_>) -> Result<(Vec<Processor>, Vec<Processor>), Error> {
        let (mut cpus, mut accelerators) = (Vec::new(), Vec::new());
        for resource in
            self.collection(system, "Processors").await?.iter().filter(|resource| is_present(resource.view()))
        {
            match resource.view().text("/ProcessorType").as_deref() {
                None | Some("CPU") => cpus.push(processor(resource)),
                // Parts of a CPU that is listed itself.
                Some("Core" | "Thread") => {}
                Some(_) => accelerators.push(processor(resource)),
            }
        }
        cpus.sort_by(|a, b| a.id.cmp(&b.id));
        Ok((cpus, accelerators))
    }

    async fn memory(&self, system: View<'_>) -> Result<Vec<MemoryModule>, Error> {
        let modules = self.collection(system, "Memory").await?;
        let mut present: Vec<MemoryModule> = modules
            .iter()
            .filter(|module| is_present(module.view()))
            .map(memory_module)
            .filter(|m| m.capacity_mib != Some(0))
            .collect();
        present.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(present)
    }

    async fn nics(&self, system: View<'_>) -> Result<Vec<Nic>, Error> {
        let interfaces = self.leniently("Ethernet interfaces", self.collection(system, "EthernetInterfaces").await)?;
        let mut nics: Vec<Nic> = interfaces.iter().filter_map(nic).collect();
        if nics.is_empty() {
            nics = self.nics_of_adapters(system).await?;
        }
        nics.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(nics)
    }

    /// GB200, Cisco blades and some XCCs list no interfaces of the system, but adapters of the chassis.
    async fn nics_of_adapters(&self, system: View<'_>) -> Result<Vec<Nic>, Error> {
        let mut nics: Vec<Nic> = Vec::new();
        for chassis in system.links("/Links/Chassis").iter().take(2) {
            let chassis = self.client.get(chassis, Care::Optional).await?;
            for adapter in self.collection(chassis.view(), "NetworkAdapters").await?.iter().take(ADAPTERS_TO_WALK) {
                for part in ["NetworkDeviceFunctions", "Ports", "NetworkPorts"] {
                    let functions = self.leniently(part, self.collection(adapter.view(), part).await)?;
                    let found: Vec<Nic> =
                        functions.iter().flat_map(|function| nics_of_function(&adapter.id(), function)).collect();
                    if !found.is_empty() {
                        nics.extend(found);
                        break;
                    }
                }
            }
        }
        let mut seen = Vec::new();
        nics.retain(|nic| {
            let is_new = !seen.contains(&nic.mac);
            seen.push(nic.mac.clone());
            is_new
        });
        Ok(nics)
    }

    async fn drives(&self, system: View<'_>) -> Result<Vec<Drive>, Error> {
        let storages = self.leniently("storage", self.collection(system, "Storage").await)?;
        let found: Vec<Vec<(Resource, Option<String>)>> = futures::stream::iter(storages)
            .map(|storage| async move { self.leniently("drives", self.drives_of(&storage).await) })
            .buffered(2)
            .try_collect()
            .await?;
        let mut drives = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for (resource, controller) in found.iter().flatten() {
            // A drive may hang on two controllers, or on one that is listed twice.
            if is_present(resource.view()) && !seen.iter().any(|uri| same_uri(uri, &resource.uri)) {
                seen.push(&resource.uri);
                drives.push(drive(resource, controller.clone()));
            }
        }
        if drives.is_empty() {
            drives = self.simple_drives(system).await?;
        }
        Ok(drives)
    }

    /// The drives of one storage: in one request where links inside a resource can be expanded, else one by one.
    async fn drives_of(&self, storage: &Resource) -> Result<Vec<(Resource, Option<String>)>, Error> {
        let controller = storage.view().text("/Name").or_else(|| Some(storage.id()));
        let mut links = storage.view().links("/Drives");
        // Newer services keep the drives in a collection.
        if let ([only], Some(Value::Object(_))) = (links.as_slice(), storage.body.get("Drives")) {
            let members = self.client.list(only, Care::Optional).await?;
            let drives = self.client.bodies(members).await?;
            return Ok(drives.into_iter().map(|drive| (drive, controller.clone())).collect());
        }
        let service = self.client.service().await?;
        let mut found: Vec<Resource> = whole_members(storage.view().list("/Drives"));
        if found.is_empty() && links.len() > 1 && service.expands_all && service.expand().is_some() {
            let expanded = self.client.get_expanded(&storage.uri, Care::Attempt).await;
            found = whole_members(self.leniently("expanded drives", expanded)?.view().list("/Drives"));
        }
        links.retain(|link| !found.iter().any(|resource| same_uri(&resource.uri, link)));
        for link in &links {
            found.extend(self.leniently("a drive", self.client.get(link, Care::Optional).await.map(Some))?);
        }
        Ok(found.into_iter().map(|drive| (drive, controller.clone())).collect())
    }

    async fn simple_drives(&self, system: View<'_>) -> Result<Vec<Drive>, Error> {
        let mut drives = Vec::new();
        for storage in self.collection(system, "SimpleStorage").await? {
            let devices = storage.view().list("/Devices");
            for (at, device) in devices.iter().enumerate().filter(|(_, device)| is_present(View(device))) {
                let device = View(device);
                drives.push(Drive {
                    id: format!("{}-{at}", storage.id()),
                    name: device.text("/Name"),
                    controller: storage.view().text("/Name").or_else(|| Some(storage.id())),
                    manufacturer: device.text("/Manufacturer"),
                    model: device.text("/Model"),
                    capacity_bytes: device.number("/CapacityBytes").filter(|bytes| *bytes > 0),
                    health: device.text("/Status/Health"),
                    ..Drive::default()
                });
            }
        }
        Ok(drives)
    }

    async fn firmware(&self) -> Result<Vec<Firmware>, Error> {
        let Some(update) = &self.client.service().await?.update else { return Ok(Vec::new()) };
        let update = self.client.get(update, Care::Optional).await?;
        let Some(inventory) = update.view().link("/FirmwareInventory") else { return Ok(Vec::new()) };
        let mut members = self.client.list(&inventory, Care::Optional).await?;
        if let Some(prefix) = self.known().and_then(|known| known.quirks.installed_prefix) {
            members.retain(|uri| crate::resource::last_segment(uri).starts_with(prefix));
        }
        if members.bodies().next().is_none() && members.len() > FIRMWARE_TO_WALK {
            tracing::debug!("{} lists {} pieces of firmware one by one; left out", self.client.origin(), members.len());
            return Ok(Vec::new());
        }
        let found = self.client.bodies(members).await?;
        let named = |resource: &Resource| resource.view().text("/Name").unwrap_or_else(|| resource.id());
        Ok(found
            .iter()
            .map(|resource| Firmware { name: named(resource), version: resource.view().text("/Version") })
            .collect())
    }

    /// GB200's system says nothing about itself; its chassis does.
    async fn identify_by_chassis(&self, system: View<'_>, hardware: &mut Hardware) -> Result<(), Error> {
        let Some(uri) = system.links("/Links/Chassis").into_iter().next() else { return Ok(()) };
        let chassis = self.client.get(&uri, Care::Optional).await?;
        let view = chassis.view();
        hardware.manufacturer = view.text("/Manufacturer");
        hardware.model = view.text("/Model");
        hardware.serial_number = view.text("/SerialNumber");
        hardware.part_number = hardware.part_number.take().or_else(|| view.text("/PartNumber"));
        Ok(())
    }
}

fn processor(resource: &Resource) -> Processor {
    let view = resource.view();
    Processor {
        id: resource.id(),
        socket: view.text("/Socket"),
        manufacturer: view.text("/Manufacturer"),
        model: view.text("/Model"),
        architecture: view.text("/InstructionSet").or_else(|| view.text("/ProcessorArchitecture")),
        cores: view.small("/TotalCores"),
        threads: view.small("/TotalThreads"),
        max_speed_mhz: view.small("/MaxSpeedMHz").filter(|mhz| *mhz > 0),
        health: view.text("/Status/Health"),
    }
}

/// Where processors are not listed, the system may still sum them up.
fn summarised_processors(system: View<'_>) -> Vec<Processor> {
    let count = system.small("/ProcessorSummary/Count").unwrap_or(0).min(64);
    let share = |pointer: &str| {
        system.small(pointer).filter(|_| count > 0).map(|total| total / count.max(1)).filter(|n| *n > 0)
    };
    (1..=count)
        .map(|at| Processor {
            id: at.to_string(),
            model: system.text("/ProcessorSummary/Model"),
            cores: share("/ProcessorSummary/CoreCount"),
            threads: share("/ProcessorSummary/LogicalProcessorCount"),
            health: system.text("/ProcessorSummary/Status/Health"),
            ..Processor::default()
        })
        .collect()
}

fn memory_module(resource: &Resource) -> MemoryModule {
    let view = resource.view();
    MemoryModule {
        id: resource.id(),
        location: view.text("/DeviceLocator").or_else(|| view.text("/Location/PartLocation/ServiceLabel")),
        capacity_mib: view.number("/CapacityMiB"),
        kind: view.text("/MemoryDeviceType"),
        speed_mhz: view.small("/OperatingSpeedMhz").filter(|mhz| *mhz > 0),
        manufacturer: view.text("/Manufacturer"),
        part_number: view.text("/PartNumber"),
        serial_number: view.text("/SerialNumber"),
        health: view.text("/Status/Health"),
    }
}

fn drive(resource: &Resource, controller: Option<String>) -> Drive {
    let view = resource.view();
    Drive {
        id: resource.id(),
        name: view.text("/Name"),
        controller,
        manufacturer: view.text("/Manufacturer"),
        model: view.text("/Model"),
        serial_number: view.text("/SerialNumber"),
        capacity_bytes: view.number("/CapacityBytes").filter(|bytes| *bytes > 0),
        media: view.text("/MediaType"),
        protocol: view.text("/Protocol"),
        revision: view.text("/Revision"),
        health: view.text("/Status/Health"),
    }
}

fn nic(resource: &Resource) -> Option<Nic> {
    let view = resource.view();
    let mac =
        ["/MACAddress", "/MacAddress", "/PermanentMACAddress"].iter().find_map(|pointer| mac(&view.text(pointer)?))?;
    let addresses = ["/IPv4Addresses", "/IPv6Addresses"]
        .iter()
        .flat_map(|pointer| view.list(pointer))
        .filter_map(|address| View(address).text("/Address"))
        .filter(|address| !matches!(address.as_str(), "0.0.0.0" | "::"))
        .collect();
    Some(Nic {
        id: resource.id(),
        name: view.text("/Name"),
        mac: Some(mac),
        speed_mbps: view.number("/SpeedMbps").filter(|mbps| *mbps > 0),
        link_up: link_up(view.text("/LinkStatus").as_deref()),
        addresses,
    })
}

fn nics_of_function(adapter: &str, function: &Resource) -> Vec<Nic> {
    let view = function.view();
    let single =
        ["/Ethernet/MACAddress", "/Ethernet/PermanentMACAddress"].iter().find_map(|pointer| mac(&view.text(pointer)?));
    let several = ["/Ethernet/AssociatedMACAddresses", "/AssociatedNetworkAddresses"]
        .iter()
        .flat_map(|pointer| view.texts(pointer));
    let mut macs: Vec<String> = single.into_iter().collect();
    if macs.is_empty() {
        macs = several.filter_map(|text| mac(&text)).collect();
    }
    let only = macs.len() == 1;
    let macs = macs.into_iter().enumerate();
    macs.map(|(at, mac)| Nic {
        id: if only { format!("{adapter}-{}", function.id()) } else { format!("{adapter}-{}-{at}", function.id()) },
        name: view.text("/Name"),
        mac: Some(mac),
        speed_mbps: None,
        link_up: link_up(view.text("/LinkStatus").as_deref()),
        addresses: Vec::new(),
    })
    .collect()
}

/// Lower case with colons; `None` for what is no address, or all zeros.
fn mac(text: &str) -> Option<String> {
    let digits: String =
        text.chars().filter(|c| !matches!(c, ':' | '-' | '.' | ' ')).map(|c| c.to_ascii_lowercase()).collect();
    let is_mac =
        digits.len() == 12 && digits.bytes().all(|b| b.is_ascii_hexdigit()) && digits.bytes().any(|b| b != b'0');
    is_mac.then(|| (0..6).map(|at| &digits[at * 2..at * 2 + 2]).collect::<Vec<_>>().join(":"))
}

fn link_up(status: Option<&str>) -> Option<bool> {
    match status? {
        "LinkUp" | "Up" => Some(true),
        "LinkDown" | "NoLink" | "Down" => Some(false),
        _ => None,
    }
}

fn is_present(part: View<'_>) -> bool {
    part.text("/Status/State").as_deref() != Some("Absent")
}

/// Entries of a list that are whole resources, not only links.
fn whole_members(entries: &[Value]) -> Vec<Resource> {
    entries
        .iter()
        .filter(|entry| View(entry).text("/Id").is_some())
        .filter_map(|entry| Resource::embedded(entry.clone()))
        .collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn gib_to_mib(gib: Option<f64>) -> u64 {
    gib.map(|gib| gib * 1024.0)
        .filter(|mib| mib.is_finite() && (0.0..9.0e15).contains(mib))
        .map_or(0, |mib| mib.round() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mac_addresses_are_lower_case_and_real() {
        assert_eq!(mac("B8:3F:D2:90:97:C4").as_deref(), Some("b8:3f:d2:90:97:c4"));
        assert_eq!(mac("b83fd29097c4").as_deref(), Some("b8:3f:d2:90:97:c4"));
        assert_eq!(mac("B8-3F-D2-90-97-C4").as_deref(), Some("b8:3f:d2:90:97:c4"));
        for text in ["", "00:00:00:00:00:00", "N/A", "b8:3f:d2", "zz:zz:zz:zz:zz:zz", "ééééééééé"] {
            assert_eq!(mac(text), None, "{text}");
        }
    }

    #[test]
    fn sushy_sums_processors_up_and_gives_numbers_as_text() {
        let system = json!({"ProcessorSummary": {"Count": 2, "CoreCount": "8"}});
        let processors = summarised_processors(View(&system));
        assert_eq!(processors.len(), 2);
        assert_eq!(processors[0].cores, Some(4));
        assert!(summarised_processors(View(&json!({}))).is_empty());
    }

    #[test]
    fn a_port_may_have_several_addresses() {
        let port = Resource {
            uri: "/p/1".into(),
            body: json!({"Id": "1", "AssociatedNetworkAddresses": ["AABBCCDDEEFF", "AABBCCDDEEF0"]}),
            etag: None,
        };
        let ids: Vec<String> = nics_of_function("A", &port).into_iter().map(|nic| nic.id).collect();
        assert_eq!(ids, ["A-1-0", "A-1-1"]);
    }
}
