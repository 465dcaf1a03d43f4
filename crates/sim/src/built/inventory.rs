//! What is below a ComputerSystem.

use serde_json::{Value, json};

use super::{Built, numbered, system_id};
use crate::hardware::Hardware;
use crate::personality::{ApplyTime, MediaPlace};

impl Built {
    pub(super) fn below_system(&self, index: usize, rest: &[&str]) -> Option<Value> {
        let hardware = self.hardware.get(index)?;
        let path = format!("Systems/{}", system_id(&self.personality, index));
        let shape = &self.personality.shape;
        let ids = |pattern: &str, count: usize| (1..=count).map(|n| numbered(pattern, n)).collect::<Vec<_>>();
        let find = |pattern: &str, count: usize, id: &str| {
            (1..=count).find(|&n| numbered(pattern, n).eq_ignore_ascii_case(id))
        };
        let (cpus, dimms, nics) = (usize::from(hardware.cpus), usize::from(hardware.dimms), hardware.macs.len());
        Some(match rest {
            [] => self.system(hardware, index, &path),
            ["processors"] => {
                self.collection(&format!("{path}/Processors"), "ProcessorCollection", ids(shape.cpu, cpus))
            }
            ["processors", id] => self.processor(hardware, &path, find(shape.cpu, cpus, id)?),
            ["memory"] => self.collection(&format!("{path}/Memory"), "MemoryCollection", ids(shape.dimm, dimms)),
            ["memory", id] => self.dimm(hardware, &path, find(shape.dimm, dimms, id)?),
            ["ethernetinterfaces"] if !shape.no_nics => {
                let path = format!("{path}/EthernetInterfaces");
                self.collection(&path, "EthernetInterfaceCollection", ids(shape.nic, nics))
            }
            ["ethernetinterfaces", id] if !shape.no_nics => self.nic(hardware, &path, find(shape.nic, nics, id)?),
            ["storage"] => {
                let ids = self.storages(hardware).into_iter().map(|(id, _)| id).collect();
                self.collection(&format!("{path}/Storage"), "StorageCollection", ids)
            }
            ["storage", id, rest @ ..] => {
                let (id, disks) = self.storages(hardware).into_iter().find(|(s, _)| s.eq_ignore_ascii_case(id))?;
                let path = format!("{path}/Storage/{id}");
                match rest {
                    [] => self.storage(&path, &id, disks),
                    ["volumes"] => self.collection(&format!("{path}/Volumes"), "VolumeCollection", Vec::new()),
                    ["drives", drive] => {
                        let disk = disks.into_iter().find(|&d| numbered(shape.drive, d).eq_ignore_ascii_case(drive))?;
                        self.drive(hardware, &path, disk)?
                    }
                    _ => return None,
                }
            }
            ["simplestorage"] if shape.simple_storage => {
                self.collection(&format!("{path}/SimpleStorage"), "SimpleStorageCollection", vec!["1".to_owned()])
            }
            ["simplestorage", "1"] if shape.simple_storage => self.node(
                &format!("{path}/SimpleStorage/1"),
                "SimpleStorage.v1_3_0.SimpleStorage",
                json!({
                    "Id": "1",
                    "Name": "Simple Storage Controller",
                    "Status": { "State": "Enabled", "Health": "OK" },
                    "Devices": hardware.disks.iter().map(|disk| json!({
                        "Name": disk.serial,
                        "CapacityBytes": disk.bytes,
                        "Status": { "State": "Enabled", "Health": "OK" },
                    })).collect::<Vec<_>>(),
                }),
            ),
            ["bios"] => {
                let path = self.bios_path(&path);
                let settings = self.link(&format!("{path}/{}", shape.bios_settings));
                self.node(
                    &path,
                    "Bios.v1_2_0.Bios",
                    json!({
                        "Id": "Bios",
                        "Name": "BIOS Configuration",
                        "Attributes": { "BootMode": "Uefi", "ProcVirtualization": "Enabled" },
                        "@Redfish.Settings": {
                            "@odata.type": "#Settings.v1_3_0.Settings",
                            "SettingsObject": settings,
                            "SupportedApplyTimes": match self.personality.bios.apply_time {
                                ApplyTime::Ignored => json!([]),
                                // Also where it is refused.
                                ApplyTime::Required | ApplyTime::Refused => json!(["OnReset"]),
                            },
                        },
                    }),
                )
            }
            ["bios", settings] if shape.bios_settings.eq_ignore_ascii_case(settings) => self.node(
                &format!("{}/{}", self.bios_path(&path), shape.bios_settings),
                "Bios.v1_2_0.Bios",
                json!({ "Id": shape.bios_settings, "Name": "BIOS Configuration Pending Settings", "Attributes": {} }),
            ),
            ["resetactioninfo"] if self.personality.power.action_info => self.node(
                &format!("{path}/ResetActionInfo"),
                "ActionInfo.v1_1_2.ActionInfo",
                json!({
                    "Id": "ResetActionInfo",
                    "Name": "Reset Action Info",
                    "Parameters": [{
                        "Name": "ResetType",
                        "Required": true,
                        "DataType": "String",
                        "AllowableValues": self.personality.power.allowable,
                    }],
                }),
            ),
            ["virtualmedia", rest @ ..] if self.personality.media.place == MediaPlace::System => {
                return self.media(&path, rest);
            }
            [settings] if shape.system_settings.is_some_and(|s| s.eq_ignore_ascii_case(settings)) => self.node(
                &format!("{path}/{}", shape.system_settings?),
                "ComputerSystem.v1_16_0.ComputerSystem",
                json!({
                    "Id": shape.system_settings,
                    "Name": "Computer System Pending Settings",
                    "Boot": self.boot(),
                }),
            ),
            _ => return None,
        })
    }

    fn system(&self, hardware: &Hardware, index: usize, path: &str) -> Value {
        let identity = &self.personality.identity;
        let shape = &self.personality.shape;
        let mut reset = json!({ "target": self.target(&format!("{path}/Actions/ComputerSystem.Reset")) });
        if self.personality.power.action_info {
            reset["@Redfish.ActionInfo"] = json!(self.target(&format!("{path}/ResetActionInfo")));
        } else {
            reset["ResetType@Redfish.AllowableValues"] = json!(self.personality.power.allowable);
        }
        let mut body = json!({
            "Id": system_id(&self.personality, index),
            "Name": "System",
            "SystemType": "Physical",
            "Manufacturer": identity.manufacturer,
            "Model": hardware.model,
            "SerialNumber": hardware.serial,
            "SKU": null,
            "PartNumber": format!("P{}", &hardware.uuid[..5]),
            "AssetTag": "",
            "HostName": "",
            "UUID": hardware.uuid,
            "BiosVersion": identity.bios,
            "PowerState": "Off",
            "Status": { "State": "Enabled", "Health": "OK", "HealthRollup": "OK" },
            "IndicatorLED": "Off",
            "ProcessorSummary": {
                "Count": hardware.cpus,
                "CoreCount": u16::from(hardware.cpus) * hardware.cores,
                "LogicalProcessorCount": u16::from(hardware.cpus) * hardware.cores * 2,
                "Model": hardware.cpu_model,
                "Status": { "State": "Enabled", "Health": "OK", "HealthRollup": "OK" },
            },
            "MemorySummary": {
                "TotalSystemMemoryGiB": hardware.memory_gib(),
                "Status": { "State": "Enabled", "Health": "OK", "HealthRollup": "OK" },
            },
            "Boot": self.boot(),
            "Processors": self.link(&format!("{path}/Processors")),
            "Memory": self.link(&format!("{path}/Memory")),
            "Storage": self.link(&format!("{path}/Storage")),
            "Bios": self.link(&self.bios_path(path)),
            "Links": {
                "Chassis": [self.link(&format!("Chassis/{}", shape.chassis))],
                "ManagedBy": [self.link(&format!("Managers/{}", shape.manager))],
            },
            "Actions": { "#ComputerSystem.Reset": reset },
        });
        if identity.serial_in_sku {
            body["SKU"] = json!(hardware.serial);
            body["SerialNumber"] = json!(format!("CNIVC00{}B", hardware.serial));
        }
        if !shape.no_nics {
            body["EthernetInterfaces"] = self.link(&format!("{path}/EthernetInterfaces"));
        }
        if shape.simple_storage {
            body["SimpleStorage"] = self.link(&format!("{path}/SimpleStorage"));
        }
        match self.personality.media.place {
            MediaPlace::System => body["VirtualMedia"] = self.link(&format!("{path}/VirtualMedia")),
            MediaPlace::ManagerLinkedFromSystem => {
                body["VirtualMedia"] = self.link(&format!("Managers/{}/VirtualMedia", shape.manager));
            }
            MediaPlace::Manager => {}
        }
        if shape.boot_progress {
            body["BootProgress"] = json!({ "LastState": "None" });
        }
        if shape.post_state {
            body["Oem"] = json!({ "Hpe": { "PostState": "PowerOff" } });
        }
        if let Some(settings) = shape.system_settings {
            body["@Redfish.Settings"] = json!({
                "@odata.type": "#Settings.v1_3_0.Settings",
                "SettingsObject": self.link(&format!("{path}/{settings}")),
            });
        }
        self.node(path, "ComputerSystem.v1_16_0.ComputerSystem", body)
    }

    /// Its setting is added later.
    fn boot(&self) -> Value {
        let rules = &self.personality.boot;
        let mut boot = json!({
            "BootSourceOverrideEnabled": "Disabled",
            "BootSourceOverrideEnabled@Redfish.AllowableValues": rules.enabled,
            "BootSourceOverrideTarget": "None",
            "BootSourceOverrideTarget@Redfish.AllowableValues": rules.targets,
        });
        if self.shows_mode() {
            boot["BootSourceOverrideMode"] = json!("UEFI");
        }
        if rules.http_uri {
            boot["HttpBootUri"] = Value::Null;
        }
        boot
    }

    fn processor(&self, hardware: &Hardware, path: &str, number: usize) -> Value {
        let id = numbered(self.personality.shape.cpu, number);
        self.node(
            &format!("{path}/Processors/{id}"),
            "Processor.v1_16_0.Processor",
            json!({
                "Id": id,
                "Name": format!("CPU {number}"),
                "ProcessorType": "CPU",
                "ProcessorArchitecture": "x86",
                "InstructionSet": "x86-64",
                "Manufacturer": hardware.cpu_maker,
                "Model": hardware.cpu_model,
                "Socket": format!("CPU {number}"),
                "MaxSpeedMHz": 3500,
                "TotalCores": hardware.cores,
                "TotalEnabledCores": hardware.cores,
                "TotalThreads": hardware.cores * 2,
                "Status": { "State": "Enabled", "Health": "OK" },
            }),
        )
    }

    fn dimm(&self, hardware: &Hardware, path: &str, number: usize) -> Value {
        let id = numbered(self.personality.shape.dimm, number);
        self.node(
            &format!("{path}/Memory/{id}"),
            "Memory.v1_15_0.Memory",
            json!({
                "Id": id,
                "Name": format!("DIMM {number}"),
                "MemoryType": "DRAM",
                "MemoryDeviceType": "DDR4",
                "BaseModuleType": "RDIMM",
                "CapacityMiB": u64::from(hardware.dimm_gib) * 1024,
                "OperatingSpeedMhz": 3200,
                "RankCount": 2,
                "ErrorCorrection": "MultiBitECC",
                "DeviceLocator": format!("DIMM {number}"),
                "Manufacturer": "Micron",
                "PartNumber": "36ASF8G72PZ-3G2E1",
                "SerialNumber": format!("{}{number:02}", &hardware.uuid[..6]),
                "Status": { "State": "Enabled", "Health": "OK" },
            }),
        )
    }

    fn nic(&self, hardware: &Hardware, path: &str, number: usize) -> Value {
        let shape = &self.personality.shape;
        let id = numbered(shape.nic, number);
        let mac = hardware.macs.get(number - 1);
        let up = number <= 2;
        let mut body = json!({
            "Id": id,
            "Name": format!("Ethernet Interface {number}"),
            "MACAddress": mac,
            "PermanentMACAddress": mac,
            "InterfaceEnabled": true,
            "LinkStatus": if up { "LinkUp" } else { "LinkDown" },
            "SpeedMbps": if up { 25000 } else { 0 },
            "FullDuplex": true,
            "Status": { "State": "Enabled", "Health": "OK" },
        });
        if shape.bare_nics {
            body["Name"] = json!("");
            body["LinkStatus"] = Value::Null;
            body["SpeedMbps"] = Value::Null;
        }
        self.node(&format!("{path}/EthernetInterfaces/{id}"), "EthernetInterface.v1_8_0.EthernetInterface", body)
    }

    fn storage(&self, path: &str, id: &str, disks: std::ops::Range<usize>) -> Value {
        let drive = self.personality.shape.drive;
        let drives: Vec<Value> = disks.map(|d| self.link(&format!("{path}/Drives/{}", numbered(drive, d)))).collect();
        self.node(
            path,
            "Storage.v1_13_0.Storage",
            json!({
                "Id": id,
                "Name": format!("Storage {id}"),
                "Drives@odata.count": drives.len(),
                "Drives": drives,
                "Volumes": self.link(&format!("{path}/Volumes")),
                "StorageControllers": [{
                    "MemberId": "0",
                    "Name": format!("Controller {id}"),
                    "SupportedRAIDTypes": [],
                    "Status": { "State": "Enabled", "Health": "OK" },
                }],
                "Status": { "State": "Enabled", "Health": "OK", "HealthRollup": "OK" },
            }),
        )
    }

    fn drive(&self, hardware: &Hardware, path: &str, number: usize) -> Option<Value> {
        let id = numbered(self.personality.shape.drive, number);
        let disk = hardware.disks.get(number)?;
        Some(self.node(
            &format!("{path}/Drives/{id}"),
            "Drive.v1_15_0.Drive",
            json!({
                "Id": id,
                "Name": format!("Drive {number}"),
                "CapacityBytes": disk.bytes,
                "MediaType": disk.media,
                "Protocol": disk.protocol,
                "Manufacturer": "Samsung",
                "Model": "MZ7L3960HCJR",
                "SerialNumber": disk.serial,
                "Revision": "JXTC304Q",
                "BlockSizeBytes": 512,
                "RotationSpeedRPM": 0,
                "PredictedMediaLifeLeftPercent": 100,
                "FailurePredicted": false,
                "Status": { "State": "Enabled", "Health": "OK" },
            }),
        ))
    }
}
