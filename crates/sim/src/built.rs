//! The Redfish tree of a simulated server, built for each request from a few facts, which saves memory in fleets of thousands.
//! Live state (power, override, media, sessions, tasks) is added afterwards.

mod inventory;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::hardware::Hardware;
use crate::personality::{MediaPlace, ModeRule, Personality, StorageShape};
use crate::place::{DrivePlace, Places, ROOT, SystemPlace};

#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) personality: Arc<Personality>,
    pub(crate) hardware: Vec<Hardware>,
    /// `ServiceRoot.UUID`.
    pub(crate) uuid: String,
}

/// `{}` in an id is a number.
fn numbered(pattern: &str, number: usize) -> String {
    pattern.replace("{}", &number.to_string())
}

/// The id of the `index`th system of a BMC.
fn system_id(personality: &Personality, index: usize) -> String {
    let first = personality.shape.system;
    match (first.parse::<usize>(), index) {
        (Ok(number), _) => (number + index).to_string(),
        (Err(_), 0) => first.to_owned(),
        (Err(_), _) => format!("{first}-{}", index + 1),
    }
}

fn manager_path(personality: &Personality) -> String {
    format!("{ROOT}/Managers/{}", personality.shape.manager)
}

impl Built {
    pub(crate) fn places(personality: &Personality, systems: usize) -> Places {
        let words = |list: &[&str]| list.iter().map(|&w| w.to_owned()).collect::<Vec<_>>();
        let mut places = Places {
            sessions: format!("{ROOT}/SessionService/Sessions"),
            tasks: format!("{ROOT}/TaskService/Tasks"),
            monitors: format!("{ROOT}/TaskService/TaskMonitors"),
            manager_resets: vec![format!("{}/Actions/Manager.Reset", manager_path(personality))],
            ..Places::default()
        };
        for index in 0..systems {
            let id = system_id(personality, index);
            let path = format!("{ROOT}/Systems/{id}");
            // Drives of a manager belong to its first system.
            let media = match personality.media.place {
                MediaPlace::System => Some(path.clone()),
                _ if index == 0 => Some(manager_path(personality)),
                _ => None,
            };
            for (slot, drive) in personality.media.drives.iter().enumerate() {
                let Some(media) = &media else { break };
                let path = format!("{media}/VirtualMedia/{}", drive.id);
                let action =
                    |name: &str| personality.media.actions.then(|| format!("{path}/Actions/VirtualMedia.{name}"));
                places.drives.push(DrivePlace {
                    system: index,
                    slot,
                    insert: action("InsertMedia"),
                    eject: action("EjectMedia"),
                    patched: !personality.media.actions,
                    bootable: drive.types.iter().any(|t| matches!(*t, "CD" | "DVD")),
                    path,
                });
            }
            places.systems.push(SystemPlace {
                reset: Some(format!("{path}/Actions/ComputerSystem.Reset")),
                reset_types: words(personality.power.allowable),
                boot_targets: words(personality.boot.targets),
                settings: personality.shape.system_settings.map(|name| format!("{path}/{name}")),
                boot: true,
                id,
                path,
            });
        }
        places
    }

    /// The resource at this path (no slash at the end), as it is at rest.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let below = path.get(ROOT.len()..).filter(|_| path[..ROOT.len()].eq_ignore_ascii_case(ROOT))?;
        let lower = below.to_ascii_lowercase();
        let parts: Vec<&str> = lower.split('/').filter(|p| !p.is_empty()).collect();
        let body = self.resource(&parts)?;
        // Case matters on most BMCs: what was written must be what was asked for.
        let same = body["@odata.id"].as_str().is_some_and(|id| id.trim_end_matches('/') == path);
        (same || self.personality.shape.lower_case_bios).then_some(body)
    }

    fn resource(&self, parts: &[&str]) -> Option<Value> {
        let shape = &self.personality.shape;
        Some(match parts {
            [] => self.root(),
            ["systems"] => {
                let ids = (0..self.hardware.len()).map(|i| system_id(&self.personality, i)).collect();
                self.collection("Systems", "ComputerSystemCollection", ids)
            }
            ["systems", id, rest @ ..] => {
                let index =
                    (0..self.hardware.len()).find(|&i| system_id(&self.personality, i).eq_ignore_ascii_case(id))?;
                return self.below_system(index, rest);
            }
            ["managers"] => self.collection("Managers", "ManagerCollection", vec![shape.manager.to_owned()]),
            ["managers", id, rest @ ..] if shape.manager.eq_ignore_ascii_case(id) => return self.below_manager(rest),
            ["chassis"] => self.collection("Chassis", "ChassisCollection", vec![shape.chassis.to_owned()]),
            ["chassis", id] if shape.chassis.eq_ignore_ascii_case(id) => self.chassis(),
            ["sessionservice"] => self.node(
                "SessionService",
                "SessionService.v1_1_8.SessionService",
                json!({
                    "Id": "SessionService",
                    "Name": "Session Service",
                    "ServiceEnabled": true,
                    "SessionTimeout": self.personality.login.shown_timeout,
                    "Sessions": self.link("SessionService/Sessions"),
                }),
            ),
            ["sessionservice", "sessions"] => {
                self.collection("SessionService/Sessions", "SessionCollection", Vec::new())
            }
            ["accountservice"] => self.node(
                "AccountService",
                "AccountService.v1_10_0.AccountService",
                json!({
                    "Id": "AccountService",
                    "Name": "Account Service",
                    "ServiceEnabled": true,
                    "AccountLockoutThreshold": self.personality.login.lockout.map_or(0, |(n, _)| n),
                    "AccountLockoutDuration": self.personality.login.lockout.map_or(0, |(_, d)| d.as_secs()),
                    "MinPasswordLength": 8,
                    "MaxPasswordLength": 20,
                    "HTTPBasicAuth": if self.personality.login.basic { "Enabled" } else { "Disabled" },
                    "Accounts": self.link("AccountService/Accounts"),
                }),
            ),
            ["accountservice", "accounts"] => {
                self.collection("AccountService/Accounts", "ManagerAccountCollection", Vec::new())
            }
            ["taskservice"] => self.node(
                "TaskService",
                "TaskService.v1_2_0.TaskService",
                json!({
                    "Id": "TaskService",
                    "Name": "Task Service",
                    "ServiceEnabled": true,
                    "Status": { "State": "Enabled", "Health": "OK" },
                    "Tasks": self.link("TaskService/Tasks"),
                }),
            ),
            ["taskservice", "tasks"] => self.collection("TaskService/Tasks", "TaskCollection", Vec::new()),
            ["updateservice"] => self.node(
                "UpdateService",
                "UpdateService.v1_11_0.UpdateService",
                json!({
                    "Id": "UpdateService",
                    "Name": "Update Service",
                    "ServiceEnabled": true,
                    "Status": { "State": "Enabled", "Health": "OK" },
                    "FirmwareInventory": self.link("UpdateService/FirmwareInventory"),
                }),
            ),
            ["updateservice", "firmwareinventory"] => {
                let ids = FIRMWARE.iter().map(|&(id, _)| id.to_owned()).collect();
                self.collection("UpdateService/FirmwareInventory", "SoftwareInventoryCollection", ids)
            }
            ["updateservice", "firmwareinventory", id] => {
                let &(id, name) = FIRMWARE.iter().find(|(known, _)| known.eq_ignore_ascii_case(id))?;
                let identity = &self.personality.identity;
                self.node(
                    &format!("UpdateService/FirmwareInventory/{id}"),
                    "SoftwareInventory.v1_7_0.SoftwareInventory",
                    json!({
                        "Id": id,
                        "Name": name,
                        "Version": if id == "BMC" { identity.bmc_firmware } else { identity.bios },
                        "Updateable": true,
                        "Status": { "State": "Enabled", "Health": "OK" },
                    }),
                )
            }
            _ => return None,
        })
    }

    fn root(&self) -> Value {
        let identity = &self.personality.identity;
        let query = &self.personality.query;
        let expand = query.expand.map_or_else(
            || json!({ "ExpandAll": false, "Levels": false, "Links": false, "NoLinks": false }),
            |e| {
                json!({
                    "ExpandAll": e.links, "Levels": true, "Links": e.links, "NoLinks": true, "MaxLevels": e.max_levels,
                })
            },
        );
        let mut root = self.node(
            "",
            "ServiceRoot.v1_15_0.ServiceRoot",
            json!({
                "Id": "RootService",
                "Name": "Root Service",
                "RedfishVersion": identity.redfish,
                "UUID": self.uuid,
                "Systems": self.link("Systems"),
                "Managers": self.link("Managers"),
                "Chassis": self.link("Chassis"),
                "SessionService": self.link("SessionService"),
                "AccountService": self.link("AccountService"),
                "UpdateService": self.link("UpdateService"),
                "Tasks": self.link("TaskService"),
                "Links": { "Sessions": self.link("SessionService/Sessions") },
                "ProtocolFeaturesSupported": {
                    "ExpandQuery": expand,
                    "ExcerptQuery": false,
                    "FilterQuery": false,
                    "OnlyMemberQuery": query.only,
                    "SelectQuery": false,
                },
            }),
        );
        for (key, value) in [("Vendor", identity.vendor), ("Product", identity.product)] {
            if let Some(value) = value {
                root[key] = json!(value);
            }
        }
        if let Some(oem) = identity.oem {
            root["Oem"] = json!({ oem: {} });
        }
        root
    }

    fn below_manager(&self, rest: &[&str]) -> Option<Value> {
        let shape = &self.personality.shape;
        let identity = &self.personality.identity;
        let path = format!("Managers/{}", shape.manager);
        Some(match rest {
            [] => {
                let mut manager = self.node(
                    &path,
                    "Manager.v1_14_0.Manager",
                    json!({
                        "Id": shape.manager,
                        "Name": "Manager",
                        "ManagerType": "BMC",
                        "Manufacturer": identity.manufacturer,
                        "Model": identity.bmc_model,
                        "FirmwareVersion": identity.bmc_firmware,
                        "UUID": self.uuid,
                        "PowerState": "On",
                        "Status": { "State": "Enabled", "Health": "OK" },
                        "EthernetInterfaces": self.link(&format!("{path}/EthernetInterfaces")),
                        "Links": {
                            "ManagerForServers": (0..self.hardware.len())
                                .map(|i| self.link(&format!("Systems/{}", system_id(&self.personality, i))))
                                .collect::<Vec<_>>(),
                            "ManagerForChassis": [self.link(&format!("Chassis/{}", shape.chassis))],
                        },
                        "Actions": {
                            "#Manager.Reset": {
                                "target": self.target(&format!("{path}/Actions/Manager.Reset")),
                                "ResetType@Redfish.AllowableValues": ["GracefulRestart", "ForceRestart"],
                            },
                        },
                    }),
                );
                if self.personality.media.place != MediaPlace::System {
                    manager["VirtualMedia"] = self.link(&format!("{path}/VirtualMedia"));
                }
                manager
            }
            ["ethernetinterfaces"] => self.collection(
                &format!("{path}/EthernetInterfaces"),
                "EthernetInterfaceCollection",
                vec!["1".to_owned()],
            ),
            ["ethernetinterfaces", "1"] => self.node(
                &format!("{path}/EthernetInterfaces/1"),
                "EthernetInterface.v1_8_0.EthernetInterface",
                json!({
                    "Id": "1",
                    "Name": "Manager Dedicated Network Interface",
                    "MACAddress": self.hardware.first()?.bmc_mac,
                    "PermanentMACAddress": self.hardware.first()?.bmc_mac,
                    "LinkStatus": "LinkUp",
                    "SpeedMbps": 1000,
                    "Status": { "State": "Enabled", "Health": "OK" },
                }),
            ),
            ["virtualmedia", rest @ ..] if self.personality.media.place != MediaPlace::System => {
                return self.media(&path, rest);
            }
            _ => return None,
        })
    }

    fn chassis(&self) -> Value {
        let shape = &self.personality.shape;
        let identity = &self.personality.identity;
        let hardware = self.hardware.first();
        self.node(
            &format!("Chassis/{}", shape.chassis),
            "Chassis.v1_20_0.Chassis",
            json!({
                "Id": shape.chassis,
                "Name": "Computer System Chassis",
                "ChassisType": "RackMount",
                "Manufacturer": identity.manufacturer,
                "Model": hardware.map(|h| h.model),
                "SerialNumber": hardware.map(|h| h.serial.as_str()),
                "PowerState": "On",
                "Status": { "State": "Enabled", "Health": "OK" },
                "Links": {
                    "ComputerSystems": (0..self.hardware.len())
                        .map(|i| self.link(&format!("Systems/{}", system_id(&self.personality, i))))
                        .collect::<Vec<_>>(),
                    "ManagedBy": [self.link(&format!("Managers/{}", shape.manager))],
                },
            }),
        )
    }

    /// Virtual media below a system or a manager.
    fn media(&self, owner: &str, rest: &[&str]) -> Option<Value> {
        let rules = &self.personality.media;
        let path = format!("{owner}/VirtualMedia");
        match rest {
            [] => {
                let ids = rules.drives.iter().map(|d| d.id.to_owned()).collect();
                Some(self.collection(&path, "VirtualMediaCollection", ids))
            }
            [id] => {
                let drive = rules.drives.iter().find(|d| d.id.eq_ignore_ascii_case(id))?;
                let path = format!("{path}/{}", drive.id);
                let mut body = json!({
                    "Id": drive.id,
                    "Name": "Virtual Removable Media",
                    "MediaTypes": drive.types,
                    "Image": null,
                    "ImageName": null,
                    "Inserted": false,
                    "ConnectedVia": "NotConnected",
                    "WriteProtected": true,
                });
                if rules.actions {
                    body["Actions"] = json!({
                        "#VirtualMedia.InsertMedia": {
                            "target": self.target(&format!("{path}/Actions/VirtualMedia.InsertMedia")),
                        },
                        "#VirtualMedia.EjectMedia": {
                            "target": self.target(&format!("{path}/Actions/VirtualMedia.EjectMedia")),
                        },
                    });
                    if rules.lists_protocols {
                        body["Actions"]["#VirtualMedia.InsertMedia"]["TransferProtocolType@Redfish.AllowableValues"] =
                            json!(protocols(rules.schemes));
                    }
                }
                Some(self.node(&path, "VirtualMedia.v1_4_0.VirtualMedia", body))
            }
            _ => None,
        }
    }

    /// A resource: `path` is below the root.
    fn node(&self, path: &str, schema: &str, mut body: Value) -> Value {
        body["@odata.id"] = self.link(path)["@odata.id"].take();
        body["@odata.type"] = json!(format!("#{schema}"));
        body
    }

    fn collection(&self, path: &str, schema: &str, ids: Vec<String>) -> Value {
        let members: Vec<Value> = ids.into_iter().map(|id| self.link(&format!("{path}/{id}"))).collect();
        self.node(
            path,
            &format!("{schema}.{schema}"),
            json!({ "Name": schema, "Members@odata.count": members.len(), "Members": members }),
        )
    }

    fn link(&self, path: &str) -> Value {
        let slash = if self.personality.shape.trailing_slash || path.is_empty() { "/" } else { "" };
        let between = if path.is_empty() { "" } else { "/" };
        Value::Object(Map::from_iter([("@odata.id".to_owned(), json!(format!("{ROOT}{between}{path}{slash}")))]))
    }

    fn target(&self, path: &str) -> String {
        let slash = if self.personality.shape.trailing_slash { "/" } else { "" };
        format!("{ROOT}/{path}{slash}")
    }

    fn bios_path(&self, system: &str) -> String {
        if self.personality.shape.lower_case_bios {
            format!("{system}/bios").to_ascii_lowercase()
        } else {
            format!("{system}/Bios")
        }
    }

    fn storages(&self, hardware: &Hardware) -> Vec<(String, std::ops::Range<usize>)> {
        let pattern = self.personality.shape.storage;
        match self.personality.shape.storage_shape {
            StorageShape::OneController => vec![(numbered(pattern, 1), 0..hardware.disks.len())],
            StorageShape::PerDrive => (0..hardware.disks.len()).map(|i| (numbered(pattern, i), i..i + 1)).collect(),
        }
    }

    fn shows_mode(&self) -> bool {
        self.personality.boot.mode != ModeRule::Absent
    }
}

const FIRMWARE: &[(&str, &str)] = &[("BMC", "BMC Firmware"), ("BIOS", "System BIOS")];

/// What Redfish calls the ways that go with these schemes.
fn protocols(schemes: &[&str]) -> Vec<String> {
    let names = schemes.iter().map(|scheme| if *scheme == "smb" { "CIFS".to_owned() } else { scheme.to_uppercase() });
    let mut names: Vec<_> = names.collect();
    names.dedup();
    names
}
