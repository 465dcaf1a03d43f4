//! Which of the systems behind a BMC is meant, and which manager is its own.

use engine::hardware::is_same_uuid;

use crate::client::Care;
use crate::collection::Members;
use crate::error::Error;
use crate::resource::{Resource, last_segment, path_of, same_uri, uuid};
use crate::system::{Known, RedfishSystem};

/// A service with more systems than this is not searched one by one for the right one.
pub(crate) const SYSTEMS_TO_READ: usize = 64;
pub(crate) const MANAGERS_TO_READ: usize = 8;

/// Which of the systems behind a BMC is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum SystemChoice {
    /// The only one, or the only one that can be booted.
    #[default]
    Only,
    /// By its id, its UUID or its URI.
    Named(String),
}

impl SystemChoice {
    /// What the user set beside the address, otherwise what the address contains.
    pub fn of(written: Option<&str>, address: &crate::Address) -> Self {
        let written = written.map(str::trim).filter(|written| !written.is_empty());
        written.or(address.system()).map_or(Self::Only, |name| Self::Named(name.to_owned()))
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Only => None,
        }
    }
}

/// The system that is meant, and the baseboards that carry more of it.
pub(crate) struct Chosen {
    pub(crate) system: Resource,
    /// `None` where the systems were not listed.
    pub(crate) baseboards: Option<Vec<String>>,
    /// Other servers behind the same BMC; `None` where the systems were not listed.
    pub(crate) neighbours: Option<usize>,
}

impl RedfishSystem {
    pub(crate) async fn choose(&self) -> Result<Chosen, Error> {
        let url = self.client.origin().to_owned();
        let wanted = self.choice().name();
        if let Some(uri) = wanted.filter(|wanted| wanted.contains('/')).and_then(path_of) {
            match self.client.get(&uri, Care::Needed).await {
                Err(error) if error.refusal().is_some_and(|refusal| refusal.status == 404) => {}
                Ok(found) if !is_system(&found) => {
                    let offered =
                        format!("something else there ({})", found.view().text("/@odata.type").unwrap_or_default());
                    return Err(Error::SystemNotFound { url, wanted: uri, offered });
                }
                other => return other.map(|system| Chosen { system, baseboards: None, neighbours: None }),
            }
        }
        let mut members = match self.client.list(&self.client.service().await?.systems, Care::Needed).await {
            // Enclosures and power strips have managers only, and no collection of systems or an empty one.
            Err(error) if lacks_collection(&error) => return Err(Error::NoSystem { url }),
            listed => listed?,
        };
        let baseboards: Vec<String> = members.uris().filter(|uri| is_baseboard(uri)).map(str::to_owned).collect();
        let neighbours = (members.len() - baseboards.len()).saturating_sub(1);
        if let Some(wanted) = wanted {
            // The id is usually the end of the URI: no need to read the others.
            let named = |uri: &str| last_segment(uri).eq_ignore_ascii_case(last_segment(wanted));
            if members.uris().filter(|uri| named(uri)).count() == 1 {
                members.retain(named);
            }
        } else {
            leave_out_baseboards(&mut members);
        }
        if members.len() > SYSTEMS_TO_READ {
            let ids = members.uris().take(16).map(last_segment).collect::<Vec<_>>().join(", ");
            return Err(Error::SystemAmbiguous { url, offered: format!("{} systems: {ids}, …", members.len()) });
        }
        let (mut systems, unread) = self.client.read_members(members, Care::Needed).await;
        let found = match wanted {
            Some(wanted) => systems.iter().position(|system| is_named(system, wanted)),
            None => the_host(&systems).filter(|_| unread.is_empty()),
        };
        if let Some(at) = found {
            let system = systems.swap_remove(at);
            return Ok(Chosen { system, baseboards: Some(baseboards), neighbours: Some(neighbours) });
        }
        // Unless all were read, neither "the only one" nor "not there" is known.
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

    /// The manager that the system names, otherwise the one that names the system.
    pub(crate) async fn find_manager(&self, known: &Known) -> Result<Resource, Error> {
        if let Some(uri) = known.managers.first() {
            return self.client.get(uri, Care::Optional).await;
        }
        let mut members = self.client.list(&self.client.service().await?.managers, Care::Optional).await?;
        let nameless = || self.unsupported("name its manager");
        if members.len() > MANAGERS_TO_READ {
            return Err(nameless());
        }
        leave_out_baseboards(&mut members);
        let mut managers = self.client.bodies(members).await?;
        let serves = |manager: &Resource| {
            manager.view().links("/Links/ManagerForServers").iter().any(|uri| same_uri(uri, &known.uri))
        };
        let at = managers.iter().position(serves).or_else(|| managers.iter().position(is_bmc));
        let at = at.or_else(|| (managers.len() == 1).then_some(0)).ok_or_else(nameless)?;
        Ok(managers.swap_remove(at))
    }
}

/// HGX boards are listed as systems and managers of their own, beside the server that they are a part of.
pub(crate) fn is_baseboard(uri: &str) -> bool {
    let id = last_segment(uri).to_ascii_lowercase();
    id.contains("hgx") || id.contains("baseboard")
}

/// Unless there is nothing else. They are not even read: a baseboard has a controller of its own, which is away while the server
/// is off.
pub(crate) fn leave_out_baseboards(members: &mut Members) {
    if members.uris().any(|uri| !is_baseboard(uri)) {
        members.retain(|uri| !is_baseboard(uri));
    }
}

/// Whether the BMC has no such collection, as opposed to: it could not be read.
pub(crate) fn lacks_collection(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| matches!(refusal.status, 404 | 405 | 501))
}

/// Whether it states this, or states nothing.
pub(crate) fn is_bmc(manager: &Resource) -> bool {
    manager.view().text("/ManagerType").is_none_or(|kind| kind == "BMC")
}

/// Whether it states this, or states nothing.
fn is_system(resource: &Resource) -> bool {
    resource.view().text("/@odata.type").is_none_or(|kind| kind.contains("ComputerSystem"))
}

fn is_named(system: &Resource, wanted: &str) -> bool {
    let view = system.view();
    same_uri(&system.uri, wanted)
        || view.text("/Id").is_some_and(|id| id.eq_ignore_ascii_case(wanted))
        || view.uuid().is_some_and(|found| uuid(wanted).is_some_and(|wanted| is_same_uuid(&found, &wanted)))
        || last_segment(&system.uri).eq_ignore_ascii_case(wanted)
}

/// Whether its boot can be overridden, as far as it shows.
pub(crate) fn is_bootable(system: &Resource) -> bool {
    shows_boot_targets(system) || has_boot_settings(system)
}

fn shows_boot_targets(system: &Resource) -> bool {
    let view = system.view();
    view.text("/Boot/BootSourceOverrideTarget").is_some()
        || !view.list("/Boot/BootSourceOverrideTarget@Redfish.AllowableValues").is_empty()
}

/// Boot may live in the settings object alone.
fn has_boot_settings(system: &Resource) -> bool {
    let view = system.view();
    view.has("/Boot") && view.link("/@Redfish.Settings/SettingsObject").is_some()
}

/// If there is one system, it is used. Of several, the physical one whose boot can be set; if there are two of these, none is
/// chosen.
fn the_host(systems: &[Resource]) -> Option<usize> {
    let is_physical = |system: &Resource| system.view().text("/SystemType").is_none_or(|kind| kind == "Physical");
    let tests: [&dyn Fn(&Resource) -> bool; 4] =
        [&|system| !is_baseboard(&system.uri), &is_physical, &shows_boot_targets, &has_boot_settings];
    let mut left: Vec<usize> = (0..systems.len()).collect();
    for test in tests {
        if left.len() == 1 {
            break;
        }
        let fitting: Vec<usize> = left.iter().copied().filter(|at| systems.get(*at).is_some_and(test)).collect();
        if !fitting.is_empty() {
            left = fitting;
        }
    }
    if let [only] = left.as_slice() { Some(*only) } else { None }
}

fn describe(system: &Resource) -> String {
    match system.view().uuid() {
        Some(uuid) => format!("{} (UUID {uuid})", system.id()),
        None => system.id(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn system(uri: &str, body: serde_json::Value) -> Resource {
        Resource { uri: uri.into(), etag: None, body }
    }

    #[test]
    fn of_several_systems_the_one_that_can_be_told_what_to_boot_is_taken() {
        let boot = json!({"BootSourceOverrideTarget": "None"});
        let host = system("/s/System_0", json!({"Id": "System_0", "Boot": boot, "SystemType": "Physical"}));
        let baseboard = system("/s/HGX_Baseboard_0", json!({"Id": "HGX_Baseboard_0", "SystemType": "Physical"}));
        let dpu = system("/s/DPU", json!({"Id": "DPU", "Boot": boot, "SystemType": "DPU"}));
        assert_eq!(the_host(std::slice::from_ref(&baseboard)), Some(0));
        assert_eq!(the_host(&[baseboard.clone(), host.clone()]), Some(1));
        assert_eq!(the_host(&[dpu.clone(), baseboard.clone(), host.clone()]), Some(2));
        assert_eq!(the_host(&[host.clone(), host]), None);
        assert_eq!(the_host(&[baseboard.clone(), baseboard]), None);
    }

    #[test]
    fn a_baseboard_that_shows_a_boot_target_is_still_a_baseboard() {
        let boot = json!({"BootSourceOverrideTarget": "None"});
        let settings = json!({"SettingsObject": {"@odata.id": "/s/DGX/SD"}});
        let host = system("/s/DGX", json!({"Boot": {"BootOrder": []}, "@Redfish.Settings": settings}));
        let baseboard = system("/s/HGX_Baseboard_0", json!({"Boot": boot}));
        assert_eq!(the_host(&[baseboard, host.clone()]), Some(1));
        let other = system("/s/Other", json!({}));
        assert!(is_bootable(&host) && !is_bootable(&other));
        assert_eq!(the_host(&[other, host]), Some(1), "DGX keeps its boot settings in another resource");
    }

    #[test]
    fn a_system_is_named_by_id_uuid_or_uri_in_any_case() {
        let found = system("/redfish/v1/Systems/1", json!({"Id": "1", "UUID": "34383350-3131-584D-5133-303230393953"}));
        for name in
            ["1", "34383350-3131-584d-5133-303230393953", "343833503131584D5133303230393953", "/redfish/v1/systems/1/"]
        {
            assert!(is_named(&found, name), "{name}");
        }
        assert!(!is_named(&found, "2"));
        let nameless = system("/redfish/v1/Systems/2", json!({"UUID": ""}));
        assert!(!is_named(&nameless, "") && !is_named(&nameless, "00000000-0000-0000-0000-000000000000"));
    }
}
