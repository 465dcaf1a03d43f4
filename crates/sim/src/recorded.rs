//! Recorded trees: one `index.json` for each resource, from an archive or a folder.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::read::GzDecoder;
use serde_json::Value;
use tokio::time::Instant;

use crate::personality::{
    Expand, ModeRule, Personality, dell_idrac9, generic, hpe_ilo5, lenovo_xcc, openbmc, supermicro_x13,
};
use crate::place::{DrivePlace, Places, ROOT, SystemPlace};
use crate::server::{Enabled, Mode, PowerState, Server};

/// Why a recording could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It could not be read.
    #[error("cannot read the recording {path}: {source}")]
    Read {
        /// The archive, folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing in it is a service root.
    #[error("no Redfish service root among the {resources} resources of {path}")]
    NoServiceRoot {
        /// The archive or folder.
        path: PathBuf,
        /// How many resources there were.
        resources: usize,
    },
}

#[derive(Debug)]
struct Resource {
    body: Bytes,
    etag: Option<String>,
}

/// A recorded tree. It is shared by all BMCs that replay it and kept as text, since most of it is only passed on.
#[derive(Debug, Default)]
pub struct Tree {
    resources: BTreeMap<String, Resource>,
    /// Keys by their lower-case form, for BMCs whose links differ in case.
    by_lower: HashMap<String, String>,
    /// Files that are not JSON.
    broken: Vec<String>,
}

/// No resource of a BMC is larger.
const LARGEST: u64 = 64 << 20;

impl Tree {
    /// From an archive or a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TreeError> {
        let path = path.as_ref();
        if path.is_dir() { Self::from_folder(path) } else { Self::from_tar_gz(path) }
    }

    /// From a gzipped tar archive. The tree may begin anywhere in it.
    pub fn from_tar_gz(path: impl AsRef<Path>) -> Result<Self, TreeError> {
        let path = path.as_ref();
        let failed = |source| TreeError::Read { path: path.to_owned(), source };
        let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).map_err(failed)?));
        let mut files = Vec::new();
        for entry in archive.entries().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.path().map_err(failed)?.into_owned();
            if name.file_name().is_some_and(|n| n == "index.json") {
                let mut text = Vec::new();
                entry.take(LARGEST).read_to_end(&mut text).map_err(failed)?;
                files.push((folder_of(&name), text));
            }
        }
        Self::from_files(path, files)
    }

    /// From a folder. The tree may begin anywhere below it.
    pub fn from_folder(path: impl AsRef<Path>) -> Result<Self, TreeError> {
        let path = path.as_ref();
        let mut files = Vec::new();
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            let failed = |source| TreeError::Read { path: folder.clone(), source };
            for entry in std::fs::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = entry.path();
                if name.is_dir() {
                    folders.push(name);
                } else if name.file_name().is_some_and(|n| n == "index.json") {
                    let text = std::fs::read(&name).map_err(failed)?;
                    files.push((folder_of(name.strip_prefix(path).unwrap_or(&name)), text));
                }
            }
        }
        Self::from_files(path, files)
    }

    /// From bodies by their paths, as a test writes them down.
    pub fn from_resources(resources: impl IntoIterator<Item = (String, Value)>) -> Result<Self, TreeError> {
        let files = resources.into_iter().map(|(path, body)| (path, body.to_string().into_bytes())).collect();
        Self::from_files(Path::new("a test"), files)
    }

    fn from_files(origin: &Path, files: Vec<(String, Vec<u8>)>) -> Result<Self, TreeError> {
        let resources = files.len();
        let mut tree = Self::default();
        let mut root: Option<String> = None;
        for (folder, text) in files {
            let Ok(value) = serde_json::from_slice::<Value>(&text) else {
                tracing::warn!(folder, "a recorded resource is not JSON, skipped");
                tree.broken.push(folder);
                continue;
            };
            let is_root = value["@odata.type"].as_str().is_some_and(|t| t.starts_with("#ServiceRoot."));
            if is_root && root.as_ref().is_none_or(|root| folder.len() < root.len()) {
                root = Some(folder.clone());
            }
            let etag = value["@odata.etag"].as_str().map(str::to_owned);
            tree.resources.insert(folder, Resource { body: text.into(), etag });
        }
        let root = root.ok_or_else(|| TreeError::NoServiceRoot { path: origin.to_owned(), resources })?;
        let below =
            |folder: &str| folder.strip_prefix(&root).filter(|r| r.is_empty() || r.starts_with('/')).map(str::to_owned);
        let found = std::mem::take(&mut tree.resources);
        tree.resources =
            found.into_iter().filter_map(|(folder, r)| Some((format!("{ROOT}{}", below(&folder)?), r))).collect();
        tree.by_lower = tree.resources.keys().map(|path| (path.to_ascii_lowercase(), path.clone())).collect();
        Ok(tree)
    }

    /// Number of resources.
    pub fn len(&self) -> usize {
        self.resources.len()
    }

    /// Whether it is empty, which never happens.
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty()
    }

    /// Paths of all resources.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.resources.keys().map(String::as_str)
    }

    /// Folders whose file was not JSON.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    fn resource(&self, path: &str) -> Option<&Resource> {
        let path = path.trim_end_matches('/');
        self.resources.get(path).or_else(|| self.resources.get(self.by_lower.get(&path.to_ascii_lowercase())?))
    }

    pub(crate) fn raw(&self, path: &str) -> Option<(Bytes, Option<String>)> {
        self.resource(path).map(|r| (r.body.clone(), r.etag.clone()))
    }

    /// The resource as it was recorded.
    pub fn get(&self, path: &str) -> Option<Value> {
        serde_json::from_slice(&self.resource(path)?.body).ok()
    }

    /// What a link leads to.
    fn follow(&self, link: &Value) -> Option<Value> {
        self.get(path_of(link)?)
    }

    /// Members of a collection that were recorded, with their paths.
    fn members(&self, link: &Value) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        let mut page = self.follow(link);
        while let Some(body) = page {
            for member in body["Members"].as_array().into_iter().flatten() {
                if let Some(path) = path_of(member).map(|p| p.trim_end_matches('/'))
                    && let Some(body) = self.get(path)
                {
                    found.push((path.to_owned(), body));
                }
            }
            page = body["Members@odata.nextLink"].as_str().and_then(|next| self.get(next));
        }
        found
    }

    /// The personality whose habits fit the BMC that was recorded.
    pub fn personality(&self) -> Personality {
        let root = self.get(ROOT).unwrap_or_default();
        let vendor = root["Vendor"].as_str().unwrap_or_default().to_ascii_lowercase();
        let has_oem = |key: &str| !root["Oem"][key].is_null();
        if vendor == "dell" || has_oem("Dell") {
            return dell_idrac9();
        }
        if vendor == "hpe" || has_oem("Hpe") {
            return hpe_ilo5();
        }
        if vendor == "lenovo" || has_oem("Lenovo") {
            return lenovo_xcc();
        }
        if vendor == "supermicro" || has_oem("Supermicro") {
            return supermicro_x13();
        }
        let managers = self.members(&root["Managers"]);
        if managers.iter().any(|(_, m)| m["Model"].as_str().is_some_and(|m| m.eq_ignore_ascii_case("openbmc"))) {
            return openbmc();
        }
        generic()
    }

    /// The personality, corrected by what the recording itself shows.
    pub(crate) fn adjust(&self, personality: &Personality) -> Personality {
        let mut adjusted = personality.clone();
        let root = self.get(ROOT).unwrap_or_default();
        let features = &root["ProtocolFeaturesSupported"];
        let expand = &features["ExpandQuery"];
        adjusted.query.expand = (expand["NoLinks"] == true).then(|| Expand {
            max_levels: expand["MaxLevels"].as_u64().and_then(|n| u8::try_from(n).ok()).unwrap_or(1),
            links: expand["Links"] == true,
            collections_only: personality.query.expand.is_some_and(|e| e.collections_only),
        });
        adjusted.query.only = features["OnlyMemberQuery"] == true;
        let systems = self.members(&root["Systems"]);
        if let Some(boot) =
            systems.iter().map(|(_, s)| &s["Boot"]).find(|b| b.get("BootSourceOverrideTarget").is_some())
        {
            if boot.get("BootSourceOverrideMode").is_none() {
                adjusted.boot.mode = ModeRule::Absent;
            }
            adjusted.boot.http_uri = boot.get("HttpBootUri").is_some();
            let targets = words(&boot["BootSourceOverrideTarget@Redfish.AllowableValues"]);
            if !targets.is_empty() && !targets.iter().any(|t| t == adjusted.boot.media_target) {
                adjusted.boot.media_target = "Cd";
            }
        }
        adjusted
    }

    /// Where the living parts are.
    pub(crate) fn places(&self) -> Places {
        let root = self.get(ROOT).unwrap_or_default();
        let path_or = |link: &Value, default: &str| {
            path_of(link).map_or_else(|| format!("{ROOT}/{default}"), |p| p.trim_end_matches('/').to_owned())
        };
        let task_service = path_or(&root["Tasks"], "TaskService");
        let mut places = Places {
            sessions: path_or(&root["Links"]["Sessions"], "SessionService/Sessions"),
            tasks: self
                .get(&task_service)
                .and_then(|s| path_of(&s["Tasks"]).map(|p| p.trim_end_matches('/').to_owned()))
                .unwrap_or_else(|| format!("{task_service}/Tasks")),
            monitors: format!("{task_service}/TaskMonitors"),
            ..Places::default()
        };
        let systems = self.members(&root["Systems"]);
        for (path, body) in &systems {
            places.systems.push(self.system_place(path, body));
        }
        for (index, (_, body)) in systems.iter().enumerate() {
            self.add_drives(&mut places, index, &body["VirtualMedia"]);
        }
        for (_, manager) in self.members(&root["Managers"]) {
            if let Some(target) = manager["Actions"]["#Manager.Reset"]["target"].as_str() {
                places.manager_resets.push(target.trim_end_matches('/').to_owned());
            }
            let servers = manager["Links"]["ManagerForServers"].as_array();
            let managed = servers.into_iter().flatten().filter_map(path_of).find_map(|path| {
                places.systems.iter().position(|s| s.path.eq_ignore_ascii_case(path.trim_end_matches('/')))
            });
            if !places.systems.is_empty() {
                self.add_drives(&mut places, managed.unwrap_or(0), &manager["VirtualMedia"]);
            }
        }
        places
    }

    fn system_place(&self, path: &str, body: &Value) -> SystemPlace {
        let reset = &body["Actions"]["#ComputerSystem.Reset"];
        let info = reset["@Redfish.ActionInfo"].as_str().or_else(|| path_of(&reset["@Redfish.ActionInfo"]));
        let mut reset_types = words(&reset["ResetType@Redfish.AllowableValues"]);
        if let Some(info) = info.and_then(|path| self.get(path)) {
            let parameters = info["Parameters"].as_array();
            let of_type = parameters.into_iter().flatten().find(|p| p["Name"] == "ResetType");
            reset_types.extend(of_type.into_iter().flat_map(|p| words(&p["AllowableValues"])));
        }
        let has_target = |body: &Value| body["Boot"].get("BootSourceOverrideTarget").is_some();
        let settings = self.follow(&body["@Redfish.Settings"]["SettingsObject"]).filter(|s| has_target(s));
        let targets = |body: &Value| words(&body["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"]);
        let mut boot_targets = targets(body);
        if boot_targets.is_empty() {
            boot_targets = settings.as_ref().map(targets).unwrap_or_default();
        }
        SystemPlace {
            id: body["Id"].as_str().map_or_else(|| last_of(path).to_owned(), str::to_owned),
            reset: reset["target"].as_str().map(|t| t.trim_end_matches('/').to_owned()),
            reset_types,
            boot_targets,
            boot: has_target(body) || settings.is_some(),
            settings: settings
                .and_then(|_| path_of(&body["@Redfish.Settings"]["SettingsObject"]))
                .map(|p| p.trim_end_matches('/').to_owned()),
            path: path.to_owned(),
        }
    }

    fn add_drives(&self, places: &mut Places, system: usize, collection: &Value) {
        for (path, body) in self.members(collection) {
            if places.drives.iter().any(|d| d.path.eq_ignore_ascii_case(&path)) {
                continue;
            }
            let target = |name: &str| {
                body["Actions"][format!("#VirtualMedia.{name}")]["target"]
                    .as_str()
                    .map(|t| t.trim_end_matches('/').to_owned())
            };
            let insert = target("InsertMedia");
            // Recorded while empty, some show no eject.
            let eject = target("EjectMedia").or_else(|| Some(insert.as_ref()?.replace("InsertMedia", "EjectMedia")));
            let types = words(&body["MediaTypes"]);
            places.drives.push(DrivePlace {
                system,
                slot: places.drives.iter().filter(|d| d.system == system).count(),
                patched: insert.is_none() && body["Actions"]["#VirtualMedia.EjectMedia"].is_null(),
                insert,
                eject,
                bootable: types.is_empty() || types.iter().any(|t| t == "CD" || t == "DVD"),
                path,
            });
        }
    }
}

/// Gives the servers the state in which they were recorded.
pub(crate) fn settle_in(tree: &Tree, places: &Places, servers: &mut [Server], now: Instant) {
    for (server, place) in servers.iter_mut().zip(&places.systems) {
        let Some(body) = tree.get(&place.path) else { continue };
        let on = matches!(body["PowerState"].as_str(), Some("On" | "PoweringOn"));
        let power = if on { PowerState::On } else { PowerState::Off };
        let slots = std::mem::take(&mut server.slots);
        let mut begun = Server::new(std::mem::take(&mut server.id), power, slots, server.timing, now);
        begun.media_target = server.media_target;
        let recorded = place.settings.as_ref().and_then(|path| tree.get(path)).unwrap_or_default();
        let boot = |name: &str| {
            body["Boot"][name].as_str().or_else(|| recorded["Boot"][name].as_str()).unwrap_or_default().to_owned()
        };
        if let Some(enabled) = Enabled::parse(&boot("BootSourceOverrideEnabled")) {
            begun.boot.enabled = enabled;
            begun.boot.target =
                Some(boot("BootSourceOverrideTarget")).filter(|t| !t.is_empty()).unwrap_or("None".into());
        }
        begun.boot.mode = Mode::parse(&boot("BootSourceOverrideMode")).unwrap_or_default();
        begun.boot.http_uri = Some(boot("HttpBootUri")).filter(|uri| !uri.is_empty());
        *server = begun;
    }
    for place in &places.drives {
        let slot = servers.get_mut(place.system).and_then(|s| s.slots.get_mut(place.slot));
        let (Some(slot), Some(body)) = (slot, tree.get(&place.path)) else { continue };
        slot.inserted = body["Inserted"] == true;
        slot.image = body["Image"].as_str().filter(|i| !i.is_empty()).map(str::to_owned);
        slot.image_name = body["ImageName"].as_str().filter(|i| !i.is_empty()).map(str::to_owned);
        slot.write_protected = body["WriteProtected"] != false;
    }
}

fn folder_of(file: &Path) -> String {
    let parts = file.parent().into_iter().flat_map(Path::components);
    parts.fold(String::new(), |path, part| match part {
        std::path::Component::Normal(name) => format!("{path}/{}", name.to_string_lossy()),
        _ => path,
    })
}

fn path_of(link: &Value) -> Option<&str> {
    link["@odata.id"].as_str()
}

fn last_of(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
