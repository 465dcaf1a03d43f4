//! A look at the BMC itself: its managers, and which systems are behind it.
//!
//! A system that is not listed may be taken for one that was pulled out, so a list is complete or there is none.

use engine::server::{ListedSystem, Manager, Seen, Service};

use crate::choice::{MANAGERS_TO_READ, SYSTEMS_TO_READ, is_bmc, is_bootable, lacks_collection, leave_out_baseboards};
use crate::client::Care;
use crate::collection::Members;
use crate::error::Error;
use crate::resource::Resource;
use crate::system::RedfishSystem;

impl RedfishSystem {
    /// Chooses no system, so that it also works where there are several or none.
    pub(crate) async fn survey(&self) -> Result<Seen, Error> {
        let managers = self.list_managers().await?;
        let systems = self.list_systems().await?;
        let service = Some(Box::new(Service { managers, systems }));
        Ok(Seen { service, certificate: self.shown_certificate(), ..Seen::default() })
    }

    async fn list_managers(&self) -> Result<Vec<Manager>, Error> {
        let uri = &self.client.service().await?.managers;
        let mut members = match self.client.list(uri, Care::Needed).await {
            Err(error) if lacks_collection(&error) => return Ok(Vec::new()),
            listed => listed?,
        };
        leave_out_baseboards(&mut members);
        members.truncate(MANAGERS_TO_READ);
        let mut managers = self.read_all(uri, members).await?;
        managers.sort_by_key(|manager| !is_bmc(manager));
        Ok(managers.iter().map(manager).collect())
    }

    async fn list_systems(&self) -> Result<Vec<ListedSystem>, Error> {
        let service = self.client.service().await?;
        let mut members = match self.client.list(&service.systems, Care::Needed).await {
            // A starting BMC announces systems and answers 404 for a while, when it is too early to say that there are none.
            Err(error) if lacks_collection(&error) && !(service.announces_systems && is_not_found(&error)) => {
                return Ok(Vec::new());
            }
            listed => listed?,
        };
        leave_out_baseboards(&mut members);
        if members.len() > SYSTEMS_TO_READ {
            let what =
                format!("be used: it has {} systems, and at most {SYSTEMS_TO_READ} are supported", members.len());
            return Err(self.unsupported(what));
        }
        Ok(self.read_all(&service.systems, members).await?.iter().map(listed).collect())
    }

    /// All members of a collection, or why there are not all of them.
    async fn read_all(&self, uri: &str, members: Members) -> Result<Vec<Resource>, Error> {
        if members.is_partial() {
            let url = format!("{}{uri}", self.client.origin());
            return Err(Error::BadAnswer { url, why: "it does not list all its members".into() });
        }
        let (found, unread) = self.client.read_members(members, Care::Needed).await;
        unread.into_iter().next().map_or(Ok(found), Err)
    }
}

fn is_not_found(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.status == 404)
}

fn manager(manager: &Resource) -> Manager {
    let view = manager.view();
    Manager {
        id: manager.id(),
        uuid: view.uuid(),
        manufacturer: view.identity("/Manufacturer"),
        model: view.identity("/Model"),
        serial_number: view.identity("/SerialNumber"),
        part_number: view.identity("/PartNumber"),
        firmware_version: view.text("/FirmwareVersion"),
        state: view.text("/Status/State"),
        power_state: view.text("/PowerState"),
        last_reset: view.text("/LastResetTime"),
    }
}

fn listed(system: &Resource) -> ListedSystem {
    ListedSystem { uri: system.uri.clone(), id: system.id(), uuid: system.view().uuid(), bootable: is_bootable(system) }
}
