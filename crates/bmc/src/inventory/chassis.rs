//! The chassis of a server: its identity, adapters and drives, if the system does not list them.

use std::sync::atomic::{AtomicUsize, Ordering};

use engine::hardware::{Hardware, Nic, Part};
use tokio::sync::OnceCell;

use super::storage::DRIVES_TO_WALK;
use super::{Round, read};
use crate::client::Care;
use crate::error::Error;
use crate::resource::{Resource, View, same_uri};
use crate::system::RedfishSystem;

/// How many enclosures a system names that are read.
const LINKED: usize = 3;
/// Without `$expand` the list of all enclosures (GB200 has 47) is only walked when it is short.
const CHASSIS_TO_WALK: usize = 6;
/// Adapters cost one to three requests each, and only their addresses are wanted.
const ADAPTER_REQUESTS: usize = 20;

/// The enclosures around one system; read when something asks for them, and once.
pub(super) struct Enclosure {
    links: Vec<String>,
    linked: OnceCell<Vec<Resource>>,
    all: OnceCell<Vec<Resource>>,
    requests_left: AtomicUsize,
}

impl Enclosure {
    pub(super) fn new(links: Vec<String>) -> Self {
        Self { links, linked: OnceCell::new(), all: OnceCell::new(), requests_left: AtomicUsize::new(ADAPTER_REQUESTS) }
    }

    fn may_ask(&self) -> bool {
        self.requests_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl RedfishSystem {
    /// What the system links to.
    pub(super) async fn linked_chassis<'a>(&self, round: &'a Round) -> Result<&'a [Resource], Error> {
        let enclosure = &round.enclosure;
        let read = async {
            let mut found = Vec::new();
            for uri in enclosure.links.iter().take(LINKED) {
                let chassis = self.client.get(uri, Care::Optional).await.map(Some);
                found.extend(self.leniently(round, Part::Chassis, chassis)?);
            }
            Ok(found)
        };
        enclosure.linked.get_or_try_init(|| read).await.map(Vec::as_slice)
    }

    /// All others that the service lists: NVIDIA's boards keep the identity and the adapters in neighbours.
    async fn other_chassis<'a>(&self, round: &'a Round) -> Result<&'a [Resource], Error> {
        let enclosure = &round.enclosure;
        let read = async {
            let listed = self.client.list(&self.client.service().await?.chassis, Care::Optional).await;
            let mut members = self.leniently(round, Part::Chassis, listed)?;
            members.retain(|uri| !enclosure.links.iter().any(|link| same_uri(link, uri)));
            if members.bodies().next().is_none() && members.len() > CHASSIS_TO_WALK {
                return Ok(Vec::new());
            }
            self.bodies(round, Part::Chassis, members).await
        };
        enclosure.all.get_or_try_init(|| read).await.map(Vec::as_slice)
    }

    /// GB200's system does not identify itself; its chassis does.
    pub(super) async fn identify_by_chassis(
        &self,
        system: &Resource,
        round: &Round,
        hardware: &mut Hardware,
    ) -> Result<(), Error> {
        if is_identified(hardware) {
            return Ok(());
        }
        let mut linked: Vec<&Resource> = self.linked_chassis(round).await?.iter().collect();
        linked.sort_by_key(|chassis| !is_enclosure(chassis.view()));
        let has_enclosure = linked.first().is_some_and(|chassis| is_enclosure(chassis.view()));
        for chassis in linked {
            // The number of a board, the BMC's own among them, is not the server's.
            if !has_enclosure || is_enclosure(chassis.view()) || !is_board(chassis) {
                identify(hardware, chassis.view());
            }
        }
        // A server without a number may well have none; one without any name must have it elsewhere.
        if hardware.serial_number.is_some() || hardware.model.is_some() {
            return Ok(());
        }
        let mut candidates: Vec<&Resource> = self.other_chassis(round).await?.iter().collect();
        candidates.retain(|chassis| chassis.view().identity("/SerialNumber").is_some());
        candidates.sort_by_key(|chassis| !encloses(chassis.view(), &system.uri));
        candidates.sort_by_key(|chassis| !is_enclosure(chassis.view()));
        if let Some(best) = candidates
            .first()
            .filter(|best| is_enclosure(best.view()) || encloses(best.view(), &system.uri) || candidates.len() == 1)
        {
            identify(hardware, best.view());
        }
        Ok(())
    }

    /// GB200, Cisco blades and some XCCs list no interfaces of the system, but adapters of the chassis.
    pub(super) async fn nics_of_adapters(&self, round: &Round) -> Result<Vec<Nic>, Error> {
        let mut nics = Vec::new();
        for chassis in self.linked_chassis(round).await? {
            nics.extend(self.nics_in(chassis, round).await?);
        }
        if nics.is_empty() {
            for chassis in self.other_chassis(round).await? {
                nics.extend(self.nics_in(chassis, round).await?);
            }
        }
        Ok(nics)
    }

    async fn nics_in(&self, chassis: &Resource, round: &Round) -> Result<Vec<Nic>, Error> {
        let (mut nics, enclosure) = (Vec::new(), &round.enclosure);
        if !chassis.view().has("/NetworkAdapters") || !enclosure.may_ask() {
            return Ok(nics);
        }
        // iLO refuses this until the server has been through its self test.
        let adapters = self.collection(round, Part::Nics, chassis.view(), "NetworkAdapters").await;
        for adapter in self.leniently(round, Part::Nics, adapters)? {
            for part in ["NetworkDeviceFunctions", "Ports", "NetworkPorts"] {
                if adapter.view().link(&format!("/{part}")).is_none() || !enclosure.may_ask() {
                    continue;
                }
                // One by one they cost more than they are worth, once the server has an address to be known by.
                if !nics.is_empty() && self.left(round) == 0 {
                    return Ok(nics);
                }
                let functions = self.collection(round, Part::Nics, adapter.view(), part).await;
                let functions = self.leniently(round, Part::Nics, functions)?;
                let found: Vec<Nic> =
                    functions.iter().flat_map(|function| read::nics_of_function(&adapter.id(), function)).collect();
                if !found.is_empty() {
                    nics.extend(found);
                    break;
                }
            }
        }
        Ok(nics)
    }

    /// Drives that hang in the enclosure and on no controller that is shown.
    pub(super) async fn drives_in_chassis(&self, round: &Round) -> Result<Vec<Resource>, Error> {
        let mut found = Vec::new();
        for chassis in self.linked_chassis(round).await? {
            let view = chassis.view();
            let drives = self.leniently(round, Part::Drives, self.members(view, "Drives").await)?;
            found.extend(self.disks(round, drives).await?);
            if found.is_empty() {
                let links = view.links("/Links/Drives");
                found.extend(self.disks_at(round, links.into_iter().take(DRIVES_TO_WALK).collect()).await?);
            }
        }
        Ok(found)
    }
}

fn is_identified(hardware: &Hardware) -> bool {
    hardware.manufacturer.is_some() && hardware.model.is_some() && hardware.serial_number.is_some()
}

fn identify(hardware: &mut Hardware, chassis: View<'_>) {
    let fill = |field: &mut Option<String>, pointer: &str| {
        if field.is_none() {
            *field = chassis.identity(pointer);
        }
    };
    fill(&mut hardware.manufacturer, "/Manufacturer");
    fill(&mut hardware.model, "/Model");
    fill(&mut hardware.serial_number, "/SerialNumber");
    fill(&mut hardware.part_number, "/PartNumber");
    fill(&mut hardware.sku, "/SKU");
    fill(&mut hardware.asset_tag, "/AssetTag");
}

/// Chassis types of a whole server, as opposed to a card, a zone or a rack.
fn is_enclosure(chassis: View<'_>) -> bool {
    let kinds = ["RackMount", "Blade", "StandAlone", "Sled", "Enclosure", "SideCar", "Shelf", "Drawer"];
    chassis.text("/ChassisType").is_some_and(|kind| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known)))
}

fn is_board(chassis: &Resource) -> bool {
    let kinds = ["Card", "Component", "Module", "Expansion", "Zone", "Cartridge"];
    let kind = chassis.view().text("/ChassisType");
    kind.is_some_and(|kind| kinds.iter().any(|known| kind.eq_ignore_ascii_case(known)))
        || chassis.id().to_ascii_lowercase().contains("bmc")
}

fn encloses(chassis: View<'_>, system: &str) -> bool {
    chassis.links("/Links/ComputerSystems").iter().any(|uri| same_uri(uri, system))
}
