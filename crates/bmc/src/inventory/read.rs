//! One resource → one part of the inventory. Nothing is read here.

use engine::hardware::{Drive, MemoryModule, Nic, Processor};
use serde_json::Value;

use crate::resource::{Resource, View, same_uri, whole};

/// CPUs, and everything else that is listed among them.
pub(super) fn sorted_processors(resources: &[Resource]) -> (Vec<Processor>, Vec<Processor>) {
    let (mut cpus, mut accelerators) = (Vec::new(), Vec::new());
    for resource in resources.iter().filter(|resource| is_present(resource.view())) {
        match resource.view().text("/ProcessorType").as_deref() {
            Some("CPU") => cpus.push(processor(resource)),
            // Parts of a CPU that is listed itself, and chips of the board that run no workload.
            Some("Core" | "Thread" | "FPGA" | "DSP") => {}
            None if looks_like_an_fpga(resource) => {}
            None if !looks_like_a_gpu(resource) => cpus.push(processor(resource)),
            _ => accelerators.push(processor(resource)),
        }
    }
    cpus.sort_by(|a, b| a.id.cmp(&b.id));
    accelerators.sort_by(|a, b| a.id.cmp(&b.id));
    (cpus, accelerators)
}

fn looks_like_an_fpga(resource: &Resource) -> bool {
    let view = resource.view();
    let told = ["/Name", "/Model"].iter().filter_map(|pointer| view.text(pointer)).chain([resource.id()]);
    told.map(|told| told.to_ascii_lowercase()).any(|told| told.contains("fpga"))
}

/// XCC lists GPUs as processors, and not always as what they are.
fn looks_like_a_gpu(resource: &Resource) -> bool {
    let view = resource.view();
    let told = ["/Name", "/Description", "/Socket", "/Model", "/Manufacturer", "/ProcessorArchitecture"];
    let told = told.iter().filter_map(|pointer| view.text(pointer)).chain([resource.id()]);
    let told = told.collect::<Vec<_>>().join(" ").to_ascii_lowercase();
    let is_gpu = ["gpu", "instinct", "gaudi", "tesla"].iter().any(|word| told.contains(word));
    // Grace is a CPU; all else that NVIDIA makes is none.
    is_gpu || (told.contains("nvidia") && !told.contains("grace"))
}

/// Modules that are there. A GPU's own memory is none of the server's.
pub(super) fn memory_modules(resources: &[Resource]) -> Vec<MemoryModule> {
    let mut present: Vec<MemoryModule> = resources
        .iter()
        .filter(|module| is_present(module.view()) && !module.id().to_ascii_uppercase().contains("GPU"))
        .map(memory_module)
        .filter(|module| match module.capacity_mib {
            Some(mib) => mib > 0,
            None => module.manufacturer.is_some() || module.part_number.is_some() || module.serial_number.is_some(),
        })
        .collect();
    present.sort_by(|a, b| a.id.cmp(&b.id));
    present
}

/// Drives that are there, each once: one may hang on two controllers, or be listed by its storage and by the chassis.
pub(super) fn distinct_drives(found: impl Iterator<Item = (Resource, Option<String>)>) -> Vec<Drive> {
    let mut seen: Vec<String> = Vec::new();
    let mut drives: Vec<(Drive, Option<String>)> = Vec::new();
    for (resource, controller) in found {
        if !is_present(resource.view()) || seen.iter().any(|uri| same_uri(uri, &resource.uri)) {
            continue;
        }
        let drive = drive(&resource, controller);
        let place = place_of(resource.view());
        let is_same = |(other, at): &(Drive, Option<String>)| {
            drive.serial_number.is_some()
                && (&other.serial_number, &other.model, &other.id) == (&drive.serial_number, &drive.model, &drive.id)
                && *at == place
        };
        // An empty bay may be listed as a drive without anything.
        let is_bay = drive.capacity_bytes.is_none() && drive.model.is_none() && drive.serial_number.is_none();
        if !is_bay && !is_no_disk(&drive) && !drives.iter().any(is_same) {
            drives.push((drive, place));
        }
        seen.push(resource.uri);
    }
    drives.into_iter().map(|(drive, _)| drive).collect()
}

fn place_of(drive: View<'_>) -> Option<String> {
    let places = ["/PhysicalLocation/PartLocation/ServiceLabel", "/Location/0/Info", "/Oem/Hpe/Location"];
    places.iter().find_map(|pointer| drive.text(pointer))
}

pub(super) fn simple_drives(storage: &Resource) -> Vec<Drive> {
    let devices = storage.view().list("/Devices").iter().map(View).enumerate();
    devices
        .filter(|(_, device)| is_present(*device))
        .map(|(at, device)| Drive {
            id: format!("{}-{at}", storage.id()),
            name: device.text("/Name"),
            controller: storage.view().text("/Name").or_else(|| Some(storage.id())),
            manufacturer: device.identity("/Manufacturer"),
            model: device.identity("/Model"),
            capacity_bytes: device.number("/CapacityBytes").filter(|bytes| *bytes > 0),
            health: device.text("/Status/Health"),
            ..Drive::default()
        })
        .filter(|drive| drive.capacity_bytes.is_some() || drive.model.is_some())
        .filter(|drive| !is_no_disk(drive))
        .collect()
}

/// Some BMCs list virtual CDs, USB sticks and backplanes as disks.
fn is_no_disk(drive: &Drive) -> bool {
    let told = [&drive.name, &drive.model, &drive.manufacturer].into_iter().flatten();
    let told = told.map(|text| text.to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
    let says = |words: &[&str]| words.iter().any(|word| told.contains(word));
    let is_virtual = says(&["virtual"]) && says(&["cd", "dvd", "usb", "floppy", "media", "hdisk", "flash", "keyboard"]);
    let is_gadget = says(&["file-stor gadget", "file-cd gadget", "lcdrive", "oemdrv", "vflash"]);
    let is_carrier = says(&["backplane", "expander", "enclosure"]) && drive.capacity_bytes.is_none();
    let is_optical = says(&["dvd-rom", "cd-rom", "cdrom"]) || matches!(drive.media.as_deref(), Some("CD" | "DVD"));
    is_virtual || is_gadget || is_carrier || is_optical
}

/// The host's interface to its own BMC: the server is not reached through it.
pub(super) fn leads_to_the_bmc(id: &str) -> bool {
    ["ToManager", "hostusb0", "usb0"].iter().any(|name| id.eq_ignore_ascii_case(name))
}

/// Partitions and functions of one port may show the same address.
pub(super) fn drop_same_macs(nics: &mut Vec<Nic>) {
    let mut seen = Vec::new();
    nics.retain(|nic| {
        let is_new = !seen.contains(&nic.mac);
        seen.push(nic.mac.clone());
        is_new
    });
}

fn processor(resource: &Resource) -> Processor {
    let view = resource.view();
    Processor {
        id: resource.id(),
        socket: view.text("/Socket"),
        manufacturer: view.identity("/Manufacturer"),
        model: view.identity("/Model").or_else(|| view.identity("/Version")),
        architecture: view.text("/InstructionSet").or_else(|| view.text("/ProcessorArchitecture")),
        cores: view.small("/TotalCores"),
        threads: view.small("/TotalThreads"),
        max_speed_mhz: view.small("/MaxSpeedMHz").filter(|mhz| *mhz > 0),
        health: view.text("/Status/Health"),
    }
}

/// Where processors are not listed, the system may still sum them up.
pub(super) fn summarised_processors(system: View<'_>) -> Vec<Processor> {
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

/// CPUs that are listed and could not be read, from the system's summary.
pub(super) fn lacking_processors(system: View<'_>, read: &[Processor], lacking: usize) -> Vec<Processor> {
    let count = system.small("/ProcessorSummary/Count").unwrap_or(0) as usize;
    let missing = count.min(64).saturating_sub(read.len()).min(lacking);
    let rest = |pointer: &str, of: fn(&Processor) -> Option<u32>| {
        let known: u32 = read.iter().filter_map(of).sum();
        let left = system.small(pointer)?.checked_sub(known)?;
        left.checked_div(u32::try_from(missing).ok()?).filter(|share| *share > 0)
    };
    (1..=missing)
        .map(|at| Processor {
            id: format!("unread-{at}"),
            model: system.text("/ProcessorSummary/Model"),
            cores: rest("/ProcessorSummary/CoreCount", |cpu| cpu.cores),
            threads: rest("/ProcessorSummary/LogicalProcessorCount", |cpu| cpu.threads),
            ..Processor::default()
        })
        .collect()
}

fn memory_module(resource: &Resource) -> MemoryModule {
    let view = resource.view();
    MemoryModule {
        id: resource.id(),
        location: view.text("/DeviceLocator").or_else(|| view.text("/Location/PartLocation/ServiceLabel")),
        capacity_mib: ["/CapacityMiB", "/CapacityMB", "/SizeMB"].iter().find_map(|pointer| view.number(pointer)),
        kind: view.text("/MemoryDeviceType"),
        speed_mhz: view.small("/OperatingSpeedMhz").filter(|mhz| *mhz > 0),
        manufacturer: view.identity("/Manufacturer"),
        part_number: view.identity("/PartNumber"),
        serial_number: view.identity("/SerialNumber"),
        health: view.text("/Status/Health"),
    }
}

fn drive(resource: &Resource, controller: Option<String>) -> Drive {
    let view = resource.view();
    Drive {
        id: resource.id(),
        name: view.text("/Name"),
        controller,
        manufacturer: view.identity("/Manufacturer"),
        model: view.identity("/Model"),
        serial_number: view.identity("/SerialNumber"),
        capacity_bytes: view.number("/CapacityBytes").filter(|bytes| *bytes > 0),
        media: view.text("/MediaType"),
        protocol: view.text("/Protocol"),
        revision: view.text("/Revision"),
        health: view.text("/Status/Health"),
    }
}

pub(super) fn nic(resource: &Resource) -> Option<Nic> {
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

pub(super) fn nics_of_function(adapter: &str, function: &Resource) -> Vec<Nic> {
    let view = function.view();
    let single = ["/Ethernet/MACAddress", "/Ethernet/MacAddress", "/Ethernet/PermanentMACAddress"]
        .iter()
        .find_map(|pointer| mac(&view.text(pointer)?));
    let several = ["/Ethernet/AssociatedMACAddresses", "/AssociatedNetworkAddresses", "/AssociatedMACAddresses"]
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
        speed_mbps: gbps_to_mbps(view.float("/CurrentSpeedGbps")),
        link_up: link_up(view.text("/LinkStatus").as_deref()),
        addresses: Vec::new(),
    })
    .collect()
}

/// The address stands inside a device path: `PciRoot(0x0)/…/MAC(B83FD2909582,0x1)/IPv4(0.0.0.0)`.
pub(super) fn nic_of_boot_option(option: &Resource) -> Option<Nic> {
    let path = option.view().text("/UefiDevicePath")?;
    let (_, rest) = path.split_once("MAC(")?;
    let address = rest.split([',', ')']).next().and_then(mac)?;
    let name = option.view().text("/DisplayName").or_else(|| option.view().text("/Name"));
    Some(Nic { id: option.id(), name, mac: Some(address), ..Nic::default() })
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

pub(super) fn is_present(part: View<'_>) -> bool {
    part.text("/Status/State").as_deref() != Some("Absent")
}

/// Entries of a list that are whole resources, not only links.
pub(super) fn whole_members(entries: &[Value]) -> Vec<Resource> {
    entries
        .iter()
        .filter(|entry| View(entry).text("/Id").is_some())
        .filter_map(|entry| Resource::embedded(entry.clone()))
        .collect()
}

fn gbps_to_mbps(gbps: Option<f64>) -> Option<u64> {
    whole(gbps? * 1000.0).filter(|mbps| *mbps > 0)
}

pub(super) fn gib_to_mib(gib: Option<f64>) -> u64 {
    gib.and_then(|gib| whole(gib * 1024.0)).unwrap_or_default()
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

    fn part(id: &str, body: Value) -> Resource {
        let mut body = body;
        body["Id"] = json!(id);
        Resource { uri: format!("/p/{id}"), etag: None, body }
    }

    #[test]
    fn lenovo_lists_gpus_among_the_processors_with_and_without_saying_so() {
        let found = [
            part("1", json!({"ProcessorType": "CPU", "Manufacturer": "Intel(R) Corporation", "TotalCores": 32})),
            part("2", json!({"Manufacturer": "Intel(R) Corporation", "Model": "Intel(R) Xeon(R) Platinum 8358"})),
            part("3", json!({"ProcessorType": "GPU", "Model": "A100-SXM4-80GB"})),
            part("4", json!({"Manufacturer": "NVIDIA", "Model": "A100-SXM4-80GB"})),
            part("Slot_5_GPU", json!({"ProcessorType": null})),
            part("CPU_0", json!({"Manufacturer": "NVIDIA", "Model": "Grace A02P"})),
            part("8", json!({"ProcessorType": "CPU", "Status": {"State": "Absent"}})),
            part("9", json!({"ProcessorType": "Core"})),
        ];
        let (cpus, gpus) = sorted_processors(&found);
        let ids = |list: &[Processor]| list.iter().map(|p| p.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&cpus), ["1", "2", "CPU_0"]);
        assert_eq!(ids(&gpus), ["3", "4", "Slot_5_GPU"]);
    }

    #[test]
    fn fpgas_of_the_board_are_no_gpus() {
        let found = [
            part("CPU_0", json!({"ProcessorType": "CPU"})),
            part("FPGA_0", json!({"ProcessorType": "FPGA", "Manufacturer": "NVIDIA"})),
            part("HGX_FPGA_0", json!({"Manufacturer": "NVIDIA"})),
            part("GPU_0", json!({"ProcessorType": "GPU"})),
            part("A", json!({"ProcessorType": "Accelerator"})),
        ];
        let (cpus, gpus) = sorted_processors(&found);
        let ids = |list: &[Processor]| list.iter().map(|p| p.id.clone()).collect::<Vec<_>>();
        assert_eq!((ids(&cpus), ids(&gpus)), (vec!["CPU_0".into()], vec!["A".into(), "GPU_0".into()]));
    }

    #[test]
    fn virtual_drives_and_backplanes_are_no_disks() {
        let found = [
            part("1", json!({"Model": "MZ7L3960", "CapacityBytes": 960_197_124_096_u64})),
            part("2", json!({"Model": "Virtual CDROM0", "Manufacturer": "AMI"})),
            part("3", json!({"Name": "Virtual HDisk0", "Manufacturer": "AMI", "Model": "Virtual HDisk0"})),
            part("4", json!({"Model": "File-Stor Gadget", "CapacityBytes": 1024})),
            part("5", json!({"Name": "Backplane 1 on Connector 0 of RAID", "Model": "BP14G+"})),
            part("6", json!({"Name": "Drive in enclosure 1", "Model": "HUC", "CapacityBytes": 1})),
            part("7", json!({"Model": "iDRAC Virtual CD"})),
        ];
        let drives = distinct_drives(found.into_iter().map(|drive| (drive, None)));
        assert_eq!(drives.iter().map(|drive| drive.id.as_str()).collect::<Vec<_>>(), ["1", "6"]);
        let devices =
            json!([{"Name": "Disk", "Model": "X", "CapacityBytes": 5}, {"Name": "Backplane 1", "Model": "BP"}]);
        assert_eq!(simple_drives(&part("s", json!({"Devices": devices}))).len(), 1);
    }

    #[test]
    fn empty_sockets_and_gpu_memory_are_not_memory() {
        let found = [
            part("1", json!({"CapacityMiB": 65536, "Status": {"State": "Enabled"}})),
            part("2", json!({"CapacityMiB": null, "Status": {"State": "Enabled"}})),
            part("3", json!({"CapacityMiB": 0})),
            part("4", json!({"CapacityMiB": 65536, "Status": {"State": "Absent"}})),
            part("GPU_0_DRAM_0", json!({"CapacityMiB": 98304})),
            part("6", json!({"CapacityMiB": "32768", "Manufacturer": "NO DIMM"})),
        ];
        let ids: Vec<String> = memory_modules(&found).into_iter().map(|module| module.id).collect();
        assert_eq!(ids, ["1", "6"]);
    }

    #[test]
    fn a_drive_that_is_listed_twice_is_one_and_an_empty_bay_is_none() {
        let found = [
            part("a", json!({"SerialNumber": "S1", "Model": "M", "CapacityBytes": 1})),
            Resource {
                uri: "/chassis/a".into(),
                ..part("a", json!({"SerialNumber": "S1", "Model": "M", "CapacityBytes": 1}))
            },
            part("b", json!({"SerialNumber": "S1", "Model": "M", "CapacityBytes": 1})),
            part("A", json!({"SerialNumber": "S9", "Model": "M", "CapacityBytes": 1})),
            part("c", json!({"SerialNumber": "N/A", "Model": "M", "CapacityBytes": 1})),
            part("d", json!({"SerialNumber": "N/A", "Model": "M", "CapacityBytes": 1})),
            part("e", json!({"Name": "Bay 5", "CapacityBytes": null, "Status": {"State": "UnavailableOffline"}})),
        ];
        let drives = distinct_drives(found.into_iter().map(|drive| (drive, None)));
        let ids: Vec<&str> = drives.iter().map(|drive| drive.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c", "d"], "numbers may be blotted out, all alike");
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
